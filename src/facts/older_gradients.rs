//! Gradients of before the recording, as its backward passes show them.
//!
//! In: blocks that are older than the recording, backward passes that a step follows. Out: by size, what stands from the first event to
//! the last step, what the passes make and drop again, and what they hand over. PyTorch's `AccumulateGrad` hands a new gradient over to a
//! parameter that has none; to one that has, it adds the new gradient and drops it.

use std::collections::{BTreeMap, BTreeSet};

use crate::program::{Phase, Program, Step};
use crate::role::{Role, Roles};
use crate::timeline::{Allocation, Timeline};
use crate::unit::{AllocationId, Bytes};

/// What backward passes do with tensors of the sizes of which blocks stand from the first event to the last.
#[derive(Debug, Default)]
pub struct OlderGradients {
    /// The blocks that stand, gradients first.
    pub standing: BTreeMap<Bytes, Vec<AllocationId>>,
    /// The tensors that die in the pass that made them, by size and the step that follows.
    pub dropped: BTreeMap<(Bytes, usize), Vec<AllocationId>>,
    /// The sizes of which a tensor outlives its pass: the parameter had no gradient.
    pub handed_over: BTreeSet<Bytes>,
}

impl OlderGradients {
    pub(super) fn of(timeline: &Timeline, program: &Program, roles: &Roles) -> OlderGradients {
        let mut older = OlderGradients {
            standing: standing(timeline, roles, &program.steps),
            ..OlderGradients::default()
        };
        let steps = &program.steps;
        for (id, one) in timeline.iter().filter(|(_, one)| older.standing.contains_key(&one.bytes)) {
            let Some(born) = one.alloc.filter(|event| program.phase(*event) == Phase::Backward) else {
                continue;
            };
            let following = steps.partition_point(|step| step.start <= born);
            let Some(step) = steps.get(following) else { continue };
            if one.given_back().is_none_or(|event| event >= step.start) {
                older.handed_over.insert(one.bytes);
            } else {
                older.dropped.entry((one.bytes, following)).or_default().push(id);
            }
        }
        older
    }

    /// Whether some parameters, and not all, may have gradients of before that are added to and never cleared, beside others whose gradients are
    /// handed over: the same is seen where a pass computes with tensors of the sizes of frozen weights.
    pub(super) fn is_ambiguous(&self, zero_grads: bool) -> bool {
        if self.handed_over.is_empty() && !zero_grads {
            return false;
        }
        // Every parameter of a size has a gradient beside it, and as many blocks of state as the others.
        let may_be_gradients = |bytes: &Bytes, tensors: usize| {
            let blocks = self.standing.get(bytes).map_or(0, Vec::len);
            !self.handed_over.contains(bytes) && blocks >= 2 * tensors && blocks.is_multiple_of(tensors)
        };
        let mut dropped: BTreeMap<usize, usize> = BTreeMap::new();
        for ((bytes, step), ids) in &self.dropped {
            if may_be_gradients(bytes, ids.len()) {
                *dropped.entry(*step).or_default() += ids.len();
            }
        }
        // A single one is rather a library's workspace.
        dropped.values().any(|tensors| *tensors >= 2)
    }
}

/// By size, what is older than the recording and still there when the last step ends (later on the program takes itself down),
/// gradients first. Nothing of a size of which more go than come and stay: those are cleared. (An optimizer that binds its state anew gives
/// back as many as it makes.)
fn standing(timeline: &Timeline, roles: &Roles, steps: &[Step]) -> BTreeMap<Bytes, Vec<AllocationId>> {
    let end = steps.last().map(|step| step.end);
    let is_there = |one: &Allocation| one.given_back().is_none_or(|event| end.is_some_and(|end| event > end));
    let mut standing: BTreeMap<Bytes, Vec<AllocationId>> = BTreeMap::new();
    let mut gone: BTreeMap<Bytes, usize> = BTreeMap::new();
    for (id, one) in timeline.older() {
        if is_there(one) {
            standing.entry(one.bytes).or_default().push(id);
        } else {
            *gone.entry(one.bytes).or_default() += 1;
        }
    }
    for (_, one) in timeline.iter().filter(|(_, one)| one.alloc.is_some() && is_there(one)) {
        if let Some(left) = gone.get_mut(&one.bytes) {
            *left = left.saturating_sub(1);
        }
    }
    gone.retain(|_, left| *left > 0);
    standing.retain(|bytes, blocks| blocks.len() >= 2 && !gone.contains_key(bytes));
    for blocks in standing.values_mut() {
        blocks.sort_by_key(|id| match roles.get(*id) {
            Role::Gradient => 0,
            Role::Parameter => 2,
            _ => 1,
        });
    }
    standing
}
