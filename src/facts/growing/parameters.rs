//! What parameters have of their own, and no leak: gradients and optimizer state, as many as there are parameters.
//!
//! In: roles and sizes. Out: whether what stays at a line is that, and what stays without it. Always: more than parameters have is no
//! part of it: it grows.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

use super::Growing;
use crate::facts::Facts;
use crate::role::Role;
use crate::threshold::Threshold;
use crate::unit::{AllocationId, Bytes};

/// How many tensors of state an optimizer keeps for a parameter at most: Adam with `amsgrad` keeps three
/// (`torch/optim/adam.py`).
static STATES: Threshold<usize> = Threshold::new("facts::growing::parameters::STATES", 3);

/// The most bytes of a single number, as optimizers count their steps for each parameter: one of double precision.
const NUMBER: Bytes = Bytes(8);

/// How many parameters there are.
pub(super) struct ParameterCounts {
    of_size: FxHashMap<Bytes, usize>,
    all: usize,
}

impl ParameterCounts {
    pub(super) fn of(facts: &Facts) -> ParameterCounts {
        let mut counts = ParameterCounts { of_size: FxHashMap::default(), all: 0 };
        for (_, one) in facts.with_role(Role::Parameter) {
            *counts.of_size.entry(one.bytes).or_default() += 1;
            counts.all += 1;
        }
        counts
    }

    /// Whether what stays is mostly gradients and optimizer state, and no more than the parameters of these sizes have: layers
    /// that are unfrozen one after the other gain theirs in steps, and only so many.
    pub(super) fn bound(&self, facts: &Facts, stays: &[AllocationId]) -> bool {
        // A workspace is made once and does not grow.
        let of_any = stays.iter().copied().filter(|id| facts.role(*id) != Role::Workspace);
        let (theirs, others): (Vec<_>, Vec<_>) = of_any.partition(|id| is_updates(facts, *id));
        facts.bytes(&theirs) > facts.bytes(&others) && self.fit(facts, &theirs)
    }

    /// Whether gradients and states are no more than the parameters of their sizes have.
    fn fit(&self, facts: &Facts, theirs: &[AllocationId]) -> bool {
        let mut counts: BTreeMap<(Bytes, Role), usize> = BTreeMap::new();
        for id in theirs {
            let Some(one) = facts.timeline.allocation(*id) else { continue };
            *counts.entry((one.bytes, facts.role(*id))).or_default() += 1;
        }
        let room = |bytes: &Bytes, each: usize| {
            each * if *bytes <= NUMBER { self.all } else { self.of_size.get(bytes).copied().unwrap_or(0) }
        };
        counts.iter().all(|((bytes, role), count)| {
            *count <= room(bytes, if *role == Role::Gradient { 1 } else { STATES.get() })
        })
    }

    /// Leaves out of what stays what was made once at the same line and lasts: mending the leak does not free it. A library makes its
    /// workspace once for each stream, at whatever line calls it first (PyTorch hands out 32 streams of a priority in turn,
    /// `kStreamsPerPoolBits` in `c10/cuda/CUDAStream.cpp`), and a trainer its optimizer's state in the call that runs the loop. What is
    /// mostly workspaces does not grow.
    pub(super) fn leave_lasting_out(&self, facts: &Facts, growing: &mut Growing) -> bool {
        let all = facts.bytes(&growing.stays);
        growing.stays.retain(|id| facts.role(*id) != Role::Workspace);
        let grows = facts.bytes(&growing.stays).times(2) > all;
        let theirs: Vec<AllocationId> =
            growing.stays.iter().copied().filter(|id| is_updates(facts, *id)).collect();
        if self.fit(facts, &theirs) {
            growing.stays.retain(|id| !is_updates(facts, *id));
        }
        grows
    }
}

/// Whether it is what parameters are updated by.
fn is_updates(facts: &Facts, id: AllocationId) -> bool {
    matches!(facts.role(id), Role::Gradient | Role::OptimizerState)
}
