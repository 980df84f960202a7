//! Optimizer state that is made again and again.
//!
//! In: the allocations with the role of optimizer state, by the step that made them. Out: the makings that are alike: as
//! many tensors of the same sizes as the first making. A step that adds a tensor or two, and an optimizer that keeps a
//! history of its own (L-BFGS) make other sizes than at first.

use std::collections::BTreeMap;

use crate::facts::Facts;
use crate::role::Role;
use crate::unit::{AllocationId, Bytes};

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
    let mut first: BTreeMap<Bytes, usize> = BTreeMap::new();
    let mut before = None;
    for (step, tensors) in by_step {
        let sizes = sizes(facts, &tensors);
        if first.is_empty() {
            first.clone_from(&sizes);
        }
        if tensors.len() < TENSORS || !alike(&first, &sizes) {
            continue;
        }
        let began = tensors.first().and_then(|id| born(*id));
        let between = |(_, one): &(AllocationId, &crate::timeline::Allocation)| {
            one.alloc.is_some_and(|event| Some(event) > before && Some(event) < began)
        };
        let new = facts.with_role(Role::Parameter).filter(between).map(|(_, one)| one.bytes).sum();
        before = tensors.last().and_then(|id| born(*id));
        makings.push(StateMaking { step, tensors, bytes: total(&sizes), new_parameters: new });
    }
    makings
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
    let common = first
        .iter()
        .map(|(bytes, count)| bytes.times((*count).min(other.get(bytes).copied().unwrap_or(0)) as u64));
    let common: Bytes = common.sum();
    common.share_of(total(first).max(total(other))) >= ALIKE
}
