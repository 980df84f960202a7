//! Optimizer state that is made again and again.
//!
//! In: the allocations with the role of optimizer state, by the step that made them. Out: the makings that repeat one
//! another: as many tensors of the same sizes as the first making, or all of the last one's (which are gone by then) and
//! more: a new optimizer for a growing set of parameters. A step that adds a tensor or two, and an optimizer that keeps a
//! history make other sizes than at first, while the earlier ones live on; of L-BFGS it is known that it keeps one, and it counts only where all
//! of it goes before the next step. State that is bound anew in each step goes while its successor is made.

use std::collections::BTreeMap;

use super::growing::most_goes;
use crate::facts::Facts;
use crate::frames::MemorySign;
use crate::role::Role;
use crate::threshold::Threshold;
use crate::unit::{AllocationId, Bytes, EventIndex, Index};

/// Fewer tensors than this prove nothing by their sizes.
static TENSORS: Threshold<usize> = Threshold::new("facts::regrowth::TENSORS", 4);
/// The share of bytes by which two makings have to agree.
static ALIKE: Threshold<f64> = Threshold::new("facts::regrowth::ALIKE", 0.9);

/// One making of an optimizer's state.
#[derive(Debug)]
pub struct StateMaking {
    /// The step, counted in the recording.
    pub step: usize,
    /// The tensors.
    pub tensors: Vec<AllocationId>,
    /// Their bytes.
    pub bytes: Bytes,
    /// Bytes of parameters made since the making before: with a new model a new state is due.
    pub new_parameters: Bytes,
}

impl StateMaking {
    /// When its first tensor was made.
    pub fn begun(&self, facts: &Facts) -> Option<EventIndex> {
        facts.timeline.allocation(*self.tensors.first()?)?.alloc
    }

    /// The state that is alive after the step, and the gradients that were when it began: what the state is for.
    pub fn alive(&self, facts: &Facts) -> (Bytes, Bytes) {
        let Some(step) = facts.updates().get(self.step) else { return (Bytes::ZERO, Bytes::ZERO) };
        let of = |role: Role, at: EventIndex| -> Bytes {
            facts.with_role(role).filter(|(_, one)| one.alive_after(at)).map(|(_, one)| one.bytes).sum()
        };
        (of(Role::OptimizerState, step.end), of(Role::Gradient, step.start))
    }
}

/// The first making of state, and all that repeat it.
pub(super) fn makings(facts: &Facts) -> Vec<StateMaking> {
    let by_step = made_in_steps(facts);
    let born = |id: AllocationId| facts.timeline.allocation(id).and_then(|one| one.alloc);
    let mut makings: Vec<StateMaking> = Vec::new();
    let mut first = StateSizes::default();
    let mut last_sizes = StateSizes::default();
    let mut before = None;
    let mut predecessor: Vec<AllocationId> = Vec::new();
    let parameters = Parameters::of(facts);
    for (step, tensors) in by_step {
        let sizes = StateSizes::of(facts, &tensors);
        if first.counts.is_empty() {
            first.clone_from(&sizes);
        }
        let again =
            || makings.last().is_some_and(|last| holds_again(facts, last, &last_sizes, &tensors, &sizes));
        if tensors.len() < TENSORS.get() || !(sizes.alike(&first) || again()) {
            continue;
        }
        let is_bound_anew = replaced_by(facts, &predecessor, &tensors);
        predecessor.clone_from(&tensors);
        if is_bound_anew {
            continue;
        }
        let began = tensors.first().and_then(|id| born(*id));
        let new_parameters = parameters.between(before, began);
        before = tensors.last().and_then(|id| born(*id));
        makings.push(StateMaking { step, tensors, bytes: sizes.total, new_parameters });
        last_sizes = sizes;
    }
    makings
}

/// The state that each step made.
fn made_in_steps(facts: &Facts) -> BTreeMap<usize, Vec<AllocationId>> {
    let steps = facts.updates();
    let (mut by_step, mut of_histories): (BTreeMap<usize, Vec<AllocationId>>, BTreeMap<_, Vec<_>>) =
        Default::default();
    let history = histories(facts);
    for (id, one) in facts.with_role(Role::OptimizerState) {
        let Some(born) = one.alloc else { continue };
        let after = steps.partition_point(|step| step.start <= born);
        let Some(step) = after.checked_sub(1) else { continue };
        let Some(end) = steps.get(step).map(|step| step.end).filter(|end| born < *end) else { continue };
        if one.stack.is_none_or(|stack| history.get(stack.position()) != Some(&true)) {
            by_step.entry(step).or_default().push(id);
        } else if one.alive_after(end) {
            of_histories.entry(step).or_default().push(id);
        }
    }
    // A history that goes whole before the next step has lost its optimizer.
    let goes_whole = |step: usize, left: &[AllocationId]| {
        let next = steps.get(step + 1).map(|next| next.start);
        next.is_none_or(|next| {
            left.iter().all(|id| facts.timeline.given_back(*id).is_some_and(|freed| freed < next))
        })
    };
    for (step, left) in of_histories {
        if goes_whole(step, &left) {
            by_step.entry(step).or_default().extend(left);
        }
    }
    by_step
}

/// Which stacks are those of an optimizer that keeps a history: it grows up to a bound, whatever is made of it and when.
fn histories(facts: &Facts) -> Vec<bool> {
    facts.snapshot.stacks.ids().map(|stack| facts.frames.shows(stack, MemorySign::History)).collect()
}

/// Whether a making holds all of an earlier one, and at least as many tensors, while that is gone before it begins, or stays: the old optimizer is gone or kept, not
/// the same that makes a part anew.
fn holds_again(
    facts: &Facts,
    last: &StateMaking,
    last_sizes: &StateSizes,
    tensors: &[AllocationId],
    sizes: &StateSizes,
) -> bool {
    // Never more work than the later making has tensors.
    if tensors.len() < last.tensors.len() || !sizes.hold(last_sizes) {
        return false;
    }
    let began = tensors.first().and_then(|id| facts.timeline.allocation(*id)?.alloc);
    let gone = |id: &AllocationId| facts.timeline.given_back(*id).is_some_and(|freed| Some(freed) <= began);
    let left: Vec<AllocationId> = last.tensors.iter().copied().filter(|id| !gone(id)).collect();
    let left = facts.bytes(&left).share_of(last.bytes);
    left <= 1.0 - ALIKE.get() || left >= ALIKE.get()
}

/// Whether most of an earlier making goes while a later one is made: an optimizer that binds its state anew
/// (`state["buf"] = mu * state["buf"] + g`), tensor by tensor. What another optimizer leaves behind is gone before, or stays.
fn replaced_by(facts: &Facts, earlier: &[AllocationId], tensors: &[AllocationId]) -> bool {
    let born = |id: &AllocationId| facts.timeline.allocation(*id)?.alloc;
    let Some((began, step)) = tensors.first().and_then(born).and_then(|began| {
        let after = facts.updates().partition_point(|step| step.start <= began);
        Some((began, facts.updates().get(after.checked_sub(1)?)?))
    }) else {
        return false;
    };
    most_goes(facts, earlier, |at| began < at && at < step.end)
}

/// The parameters by birth.
struct Parameters {
    /// The bytes of those born up to each, oldest first.
    born: Vec<(EventIndex, u128)>,
}

impl Parameters {
    fn of(facts: &Facts) -> Parameters {
        let mut total = 0_u128;
        let born = facts.with_role(Role::Parameter).filter_map(|(_, one)| {
            let born = one.alloc?;
            total += u128::from(one.bytes.get());
            Some((born, total))
        });
        Parameters { born: born.collect() }
    }

    /// The bytes of those born after an event and before another.
    fn between(&self, after: Option<EventIndex>, before: Option<EventIndex>) -> Bytes {
        let up_to = |count: usize| {
            count.checked_sub(1).and_then(|last| self.born.get(last)).map_or(0, |(_, sum)| *sum)
        };
        let first = self.born.partition_point(|(born, _)| Some(*born) <= after);
        let last = self.born.partition_point(|(born, _)| Some(*born) < before);
        Bytes(u64::try_from(up_to(last).saturating_sub(up_to(first))).unwrap_or(u64::MAX))
    }
}

/// How many tensors there are of each size, and their bytes.
#[derive(Debug, Default, Clone)]
pub struct StateSizes {
    counts: BTreeMap<Bytes, usize>,
    total: Bytes,
}

impl StateSizes {
    /// The sizes of some allocations.
    pub fn of<'i>(facts: &Facts, tensors: impl IntoIterator<Item = &'i AllocationId>) -> StateSizes {
        let mut sizes = StateSizes::default();
        for one in tensors.into_iter().filter_map(|id| facts.timeline.allocation(*id)) {
            *sizes.counts.entry(one.bytes).or_default() += 1;
            sizes.total += one.bytes;
        }
        sizes
    }

    /// How many there are of a size.
    pub fn count(&self, bytes: Bytes) -> usize {
        self.counts.get(&bytes).copied().unwrap_or(0)
    }

    /// Whether most bytes are in tensors of sizes that a condition holds of, given how many there are of each.
    pub fn mostly(&self, holds: impl Fn(Bytes, usize) -> bool) -> bool {
        let held = self.counts.iter().filter(|(bytes, count)| holds(**bytes, **count));
        let held: Bytes = held.map(|(bytes, count)| bytes.times(*count as u64)).sum();
        held.times(2) > self.total
    }

    /// Whether nearly all bytes are in tensors of equal sizes. Takes time by the sizes of this one alone.
    fn alike(&self, first: &StateSizes) -> bool {
        self.common(first).share_of(self.total.max(first.total)) >= ALIKE.get()
    }

    /// Whether nearly all of another's bytes are here, in tensors of equal sizes.
    fn hold(&self, other: &StateSizes) -> bool {
        self.common(other).share_of(other.total) >= ALIKE.get()
    }

    fn common(&self, other: &StateSizes) -> Bytes {
        let common = self.counts.iter().map(|(bytes, count)| {
            let others = other.counts.get(bytes).copied().unwrap_or(0);
            bytes.times((*count).min(others) as u64)
        });
        common.sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_between_two_events_are_summed() {
        let event = |at| EventIndex::at(at).unwrap();
        let born = vec![(event(3), 10), (event(5), 30), (event(9), 100)];
        let parameters = Parameters { born };
        let between = |after: Option<usize>, before: Option<usize>| {
            parameters.between(after.map(event), before.map(event)).get()
        };
        assert_eq!(
            (between(None, Some(9)), between(Some(3), Some(9)), between(Some(3), Some(10))),
            (30, 20, 90)
        );
        assert_eq!((between(Some(5), Some(5)), between(Some(9), Some(4)), between(None, None)), (0, 0, 0));
    }

    #[test]
    fn few_sizes_are_held_against_very_many() {
        let counts = |sizes: u64| StateSizes {
            counts: (0..sizes).map(|size| (Bytes(size), 1)).collect(),
            total: (0..sizes).map(Bytes).sum(),
        };
        let (many, few) = (counts(1_000_000), counts(4));
        assert!((0..1_000_000).all(|_| !few.alike(&many)));
        assert!(many.alike(&many));
    }
}
