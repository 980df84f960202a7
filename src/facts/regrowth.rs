//! Optimizer state that is made again and again.
//!
//! In: the allocations with the role of optimizer state, by the step that made them. Out: the makings that are alike: as
//! many tensors of the same sizes as the first making. A step that adds a tensor or two, and an optimizer that keeps a
//! history of its own (L-BFGS) make other sizes than at first.

use std::collections::BTreeMap;

use crate::facts::Facts;
use crate::role::Role;
use crate::unit::{AllocationId, Bytes, EventIndex};

/// Fewer tensors than this prove nothing by their sizes.
const TENSORS: usize = 4;
/// The share of bytes by which two makings have to agree.
const ALIKE: f64 = 0.9;

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

/// The first making of state, and all that are like it.
pub(super) fn makings(facts: &Facts) -> Vec<StateMaking> {
    let steps = &facts.program.steps;
    let mut by_step: BTreeMap<usize, Vec<AllocationId>> = BTreeMap::new();
    for (id, one) in facts.with_role(Role::OptimizerState) {
        let Some(born) = one.alloc else { continue };
        let after = steps.partition_point(|step| step.start <= born);
        let inside = after.checked_sub(1).filter(|at| steps.get(*at).is_some_and(|step| born < step.end));
        if let Some(step) = inside {
            by_step.entry(step).or_default().push(id);
        }
    }
    let born = |id: AllocationId| facts.timeline.allocation(id).and_then(|one| one.alloc);
    let mut makings: Vec<StateMaking> = Vec::new();
    let mut first = Sizes::default();
    let mut before = None;
    let parameters = Parameters::of(facts);
    for (step, tensors) in by_step {
        let sizes = Sizes::of(facts, &tensors);
        if first.counts.is_empty() {
            first.clone_from(&sizes);
        }
        if tensors.len() < TENSORS || !sizes.alike(&first) {
            continue;
        }
        let began = tensors.first().and_then(|id| born(*id));
        let new_parameters = parameters.between(before, began);
        before = tensors.last().and_then(|id| born(*id));
        makings.push(StateMaking { step, tensors, bytes: sizes.total, new_parameters });
    }
    makings
}

/// The bytes of the parameters born up to each of them, oldest first.
struct Parameters(Vec<(EventIndex, u128)>);

impl Parameters {
    fn of(facts: &Facts) -> Parameters {
        let mut total = 0_u128;
        let born = facts.with_role(Role::Parameter).filter_map(|(_, one)| {
            let born = one.alloc?;
            total += u128::from(one.bytes.get());
            Some((born, total))
        });
        Parameters(born.collect())
    }

    /// The bytes of those born after an event and before another.
    fn between(&self, after: Option<EventIndex>, before: Option<EventIndex>) -> Bytes {
        let up_to =
            |count: usize| count.checked_sub(1).and_then(|last| self.0.get(last)).map_or(0, |(_, sum)| *sum);
        let first = self.0.partition_point(|(born, _)| Some(*born) <= after);
        let last = self.0.partition_point(|(born, _)| Some(*born) < before);
        Bytes(u64::try_from(up_to(last).saturating_sub(up_to(first))).unwrap_or(u64::MAX))
    }
}

/// How many tensors there are of each size, and their bytes.
#[derive(Debug, Default, Clone)]
struct Sizes {
    counts: BTreeMap<Bytes, usize>,
    total: Bytes,
}

impl Sizes {
    fn of(facts: &Facts, tensors: &[AllocationId]) -> Sizes {
        let mut sizes = Sizes::default();
        for one in tensors.iter().filter_map(|id| facts.timeline.allocation(*id)) {
            *sizes.counts.entry(one.bytes).or_default() += 1;
            sizes.total += one.bytes;
        }
        sizes
    }

    /// Whether nearly all bytes are in tensors of equal sizes. Takes time by the sizes of this one alone.
    fn alike(&self, first: &Sizes) -> bool {
        let common = self.counts.iter().map(|(bytes, count)| {
            let others = first.counts.get(bytes).copied().unwrap_or(0);
            bytes.times((*count).min(others) as u64)
        });
        common.sum::<Bytes>().share_of(self.total.max(first.total)) >= ALIKE
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::unit::Index;

    #[test]
    fn parameters_between_two_events_are_summed() {
        let event = |at| EventIndex::at(at).unwrap();
        let parameters = Parameters(vec![(event(3), 10), (event(5), 30), (event(9), 100)]);
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
        let counts = |sizes: u64| Sizes {
            counts: (0..sizes).map(|size| (Bytes(size), 1)).collect(),
            total: (0..sizes).map(Bytes).sum(),
        };
        let (many, few) = (counts(1_000_000), counts(4));
        assert!((0..1_000_000).all(|_| !few.alike(&many)));
        assert!(many.alike(&many));
    }
}
