//! What computes with weights: passes through models.
//!
//! In: calls of modules in the loop. Out: whether a turn runs one model, so that of two sets of the same weights one
//! lies idle in it. Always: where two passes could pass for one, they are taken for two.

use std::collections::{BTreeMap, BTreeSet};

use super::sizes::{CopySizes, Widening};
use crate::facts::{Facts, ModuleCall};
use crate::frames::PhaseSign;
use crate::program::Phase;
use crate::role::Role;
use crate::timeline::Allocation;
use crate::unit::{AllocationId, Bytes, FrameId, IterationIndex};

/// Whether the program trains: a moving average of its weights is wanted, and nothing shows that it is updated.
pub(super) fn trains(facts: &Facts) -> bool {
    let backward = facts.program.phases.contains(&Phase::Backward);
    let mut kept = facts.timeline.iter().map(|(id, _)| facts.role(id));
    backward
        || !facts.program.steps.is_empty()
        || kept.any(|role| matches!(role, Role::Gradient | Role::OptimizerState))
}

/// The sizes of what trains: of the gradients of one iteration, of that which has most.
pub(super) fn trained(facts: &Facts) -> CopySizes {
    let mut of_turns: BTreeMap<IterationIndex, Vec<AllocationId>> = BTreeMap::new();
    for (id, one) in facts.with_role(Role::Gradient) {
        if let Some(turn) = facts.born_in(one) {
            of_turns.entry(turn).or_default().push(id);
        }
    }
    let most = of_turns.into_values().max_by_key(Vec::len);
    most.map(|gradients| CopySizes::of(facts, &gradients)).unwrap_or_default()
}

/// Whether the loop makes a tensor as large as the largest of some weights outside of models and of what an optimizer does: it may compute with the weights themselves, as a
/// penalty on their distance to others does.
pub(super) fn reads_outside(facts: &Facts, weights: &CopySizes) -> bool {
    let mut others = facts.timeline.iter().filter(|(_, one)| Some(one.bytes) == weights.largest());
    others.any(|(_, one)| facts.born_in(one).is_some() && is_outside(facts, one))
}

/// Whether the program makes a tensor itself: in no call of a module, no backward pass and no step of an optimizer.
pub(super) fn is_outside(facts: &Facts, one: &Allocation) -> bool {
    let own = |event| !matches!(facts.phase(event), Phase::Backward | Phase::OptimizerStep | Phase::Clipping);
    let in_module = |stack| {
        facts.frames.python(stack).iter().any(|frame| facts.frames.phase(*frame) == PhaseSign::ModuleCall)
    };
    one.alloc.is_some_and(own) && !one.stack.is_some_and(in_module)
}

/// Whether each turn makes one pass through one model at most, always for the same caller, and nothing after the loop's beginning makes
/// another; and no pass begins with a tensor that is to another pass's in this scale: those would be two models in turns. (Of two that
/// are as large in all things nothing can tell that.)
pub(super) fn one_a_turn(facts: &Facts, scale: Widening) -> bool {
    let start = facts.loop_start();
    // A trial of both before the loop tells nothing of two formats; of two equal models it tells that both are used.
    let from = if scale.is_same() { 0 } else { start };
    one_a_turn_from(facts, from, scale)
}

/// The same of the passes from an event on.
pub(super) fn one_a_turn_from(facts: &Facts, from: usize, scale: Widening) -> bool {
    let calls: Vec<&ModuleCall> = facts.module_calls().iter().filter(|call| call.start >= from).collect();
    let turns: BTreeSet<IterationIndex> =
        calls.iter().filter_map(|call| facts.iteration_of(facts.event(call.start)?)).collect();
    let one_caller = calls.windows(2).all(|pair| matches!(pair, [a, b] if a.callers == b.callers));
    let beginnings: Option<BTreeSet<Bytes>> = calls.iter().map(|call| first_bytes(facts, call)).collect();
    let Some(beginnings) = beginnings.filter(|_| calls.len() >= 2 && turns.len() == calls.len()) else {
        return false;
    };
    let takes_turns =
        |one: &Bytes| !scale.is_same() && scale.related(*one).iter().any(|other| beginnings.contains(other));
    one_caller && !beginnings.iter().any(takes_turns) && calls.iter().all(|call| begins_once(facts, call))
}

fn first_bytes(facts: &Facts, call: &ModuleCall) -> Option<Bytes> {
    Some(facts.timeline.allocation(*call.made.first()?)?.bytes)
}

/// Whether a call can be no two passes: a second one would begin as the first does, on the same line by the same operator, and would end as it does,
/// too. (Like layers of one pass begin alike; what follows on the last of them comes once.)
fn begins_once(facts: &Facts, call: &ModuleCall) -> bool {
    let place = |id: &AllocationId| -> Option<(&[FrameId], Option<&str>)> {
        let stack = facts.timeline.allocation(*id)?.stack?;
        Some((facts.frames.python(stack), facts.frames.operator(facts.snapshot, stack)))
    };
    let places: Vec<_> = call.made.iter().map(place).collect();
    let Some((first, last)) = places.first().zip(places.last()).filter(|(first, _)| first.is_some()) else {
        return false;
    };
    let again = places.iter().rposition(|place| place == first).unwrap_or(0);
    again == 0 || places.iter().take(again + 1).all(|place| place != last)
}
