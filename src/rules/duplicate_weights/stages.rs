//! What has the sizes of weights and is no copy of them: the module that a program trains next (a stage, a round, a fold).
//!
//! In: what looks like copies that the loop makes. Out: those that are. A module that is made in the loop, and no copy by the code that makes
//! it, has the values of another only where somebody goes on with that other: the state of its optimizer stands beside the two. An optimizer
//! without state shows nothing of that; then one of the two lies idle where each turn makes one pass.

use super::passes;
use super::source::{MadeBy, TensorSource, made_by};
use super::{Copied, CopySizes, Kind, Widening};
use crate::facts::Facts;
use crate::role::Role;
use crate::timeline::Allocation;
use crate::unit::{AllocationId, EventIndex, Index};

/// Leaves out what is trained instead of the model before it, and is less sure of what may be.
pub(super) fn without(facts: &Facts, sources: &[TensorSource], copies: Vec<Copied>) -> Vec<Copied> {
    let judged = |copy: Copied| {
        if !is_module(facts, sources, &copy) {
            return Some(copy);
        }
        let made = copy.tensors.iter().filter_map(|id| facts.timeline.allocation(*id)?.alloc).max()?;
        if facts.with_role(Role::OptimizerState).next().is_some() {
            return original_has_state(facts, &copy, made).then_some(copy);
        }
        let idle = passes::one_a_turn_from(facts, made.position(), Widening::SAME);
        let kind = if idle { copy.kind } else { Kind::BuiltInLoop };
        Some(Copied { kind, ..copy })
    };
    copies.into_iter().filter_map(judged).collect()
}

/// Whether the loop makes a module: on the host and moves it, or where it is.
fn is_module(facts: &Facts, sources: &[TensorSource], copy: &Copied) -> bool {
    let made = made_by(facts, sources, &copy.tensors);
    copy.kind == Kind::CopiedInLoop && matches!(made, Some(MadeBy::Moved | MadeBy::Built))
}

/// Whether the original has an optimizer: state for tensors of these sizes was there before they were, and still is in the next step.
fn original_has_state(facts: &Facts, copy: &Copied, made: EventIndex) -> bool {
    let steps = facts.updates();
    let Some(next) = steps.get(steps.partition_point(|step| step.start <= made)) else { return false };
    let stands = |one: &Allocation| {
        one.alloc.is_none_or(|born| born < made) && one.given_back().is_none_or(|gone| gone > next.start)
    };
    let state = facts.with_role(Role::OptimizerState).filter(|(_, one)| stands(one));
    let state: Vec<AllocationId> = state.map(|(id, _)| id).collect();
    CopySizes::of(facts, &state).cover(&CopySizes::of(facts, &copy.tensors))
}
