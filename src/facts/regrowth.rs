//! Optimizer state that is made again and again.
//!
//! In: the allocations with the role of optimizer state, by the step that made them. Out: the makings that repeat one
//! another: as many tensors of the same sizes as the first making, or all of the last one's (which are gone by then) and
//! more: a new optimizer for a growing set of parameters. A step that adds a tensor or two, and an optimizer that keeps a
//! history of its own (L-BFGS) make other sizes than at first, while the earlier ones live on.

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

impl StateMaking {
    /// The state that is alive after the step, and the gradients that were when it began: what the state is for.
    pub fn alive(&self, facts: &Facts) -> (Bytes, Bytes) {
        let Some(step) = facts.program.steps.get(self.step) else { return (Bytes::ZERO, Bytes::ZERO) };
        let of = |role: Role, at: EventIndex| -> Bytes {
            facts.with_role(role).filter(|(_, one)| one.alive_after(at)).map(|(_, one)| one.bytes).sum()
        };
        (of(Role::OptimizerState, step.end), of(Role::Gradient, step.start))
    }
}

/// The first making of state, and all that repeat it.
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
    let mut first: BTreeMap<Bytes, usize> = BTreeMap::new();
    let mut before = None;
    let mut last_sizes = BTreeMap::new();
    for (step, tensors) in by_step {
        let sizes = sizes(facts, &tensors);
        if first.is_empty() {
            first.clone_from(&sizes);
        }
        let again = makings.last().is_some_and(|last| is_gone(facts, &last.tensors, &tensors))
            && covers(&sizes, &last_sizes);
        if tensors.len() < TENSORS || !(alike(&first, &sizes) || again) {
            continue;
        }
        let began = tensors.first().and_then(|id| born(*id));
        let between = |(_, one): &(AllocationId, &crate::timeline::Allocation)| {
            one.alloc.is_some_and(|event| Some(event) > before && Some(event) < began)
        };
        let new = facts.with_role(Role::Parameter).filter(between).map(|(_, one)| one.bytes).sum();
        before = tensors.last().and_then(|id| born(*id));
        makings.push(StateMaking { step, tensors, bytes: total(&sizes), new_parameters: new });
        last_sizes = sizes;
    }
    makings
}

/// Whether nearly all of an earlier making is gone before a later one begins.
fn is_gone(facts: &Facts, old: &[AllocationId], new: &[AllocationId]) -> bool {
    let began = new.first().and_then(|id| facts.timeline.allocation(*id)?.alloc);
    let gone = |id: &AllocationId| {
        let one = facts.timeline.allocation(*id);
        one.and_then(|one| one.free_requested.or(one.free)).is_some_and(|freed| Some(freed) <= began)
    };
    let left: Vec<AllocationId> = old.iter().copied().filter(|id| !gone(id)).collect();
    facts.bytes(&left).share_of(facts.bytes(old)) <= 1.0 - ALIKE
}

fn sizes(facts: &Facts, tensors: &[AllocationId]) -> BTreeMap<Bytes, usize> {
    let mut sizes = BTreeMap::new();
    for one in tensors.iter().filter_map(|id| facts.timeline.allocation(*id)) {
        *sizes.entry(one.bytes).or_default() += 1;
    }
    sizes
}

fn total(sizes: &BTreeMap<Bytes, usize>) -> Bytes {
    sizes.iter().map(|(bytes, count)| bytes.times(*count as u64)).sum()
}

fn alike(first: &BTreeMap<Bytes, usize>, other: &BTreeMap<Bytes, usize>) -> bool {
    covers(other, first) && covers(first, other)
}

/// Whether a set has tensors for nearly all bytes of another.
fn covers(set: &BTreeMap<Bytes, usize>, other: &BTreeMap<Bytes, usize>) -> bool {
    let common = other
        .iter()
        .map(|(bytes, count)| bytes.times((*count).min(set.get(bytes).copied().unwrap_or(0)) as u64));
    let common: Bytes = common.sum();
    common.share_of(total(other)) >= ALIKE
}
