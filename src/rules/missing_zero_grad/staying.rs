//! Gradients that stay, once a backward pass has made them.
//!
//! In: gradients, and what later backward passes make of their sizes. Out: those that outlive iterations and the loop and that later passes are seen to
//! add to; and those that are cleared meanwhile. Gradients of parameters that no optimizer has may go while the loop runs, too, when something clears
//! the whole model (a trainer does before it evaluates).

use std::collections::BTreeMap;

use rustc_hash::FxHashSet;

use super::has_one_optimizer;
use crate::facts::Facts;
use crate::frames::MemorySign;
use crate::program::Phase;
use crate::role::Role;
use crate::threshold::Threshold;
use crate::timeline::Allocation;
use crate::unit::{AllocationId, Bytes, EventIndex, Index};

/// The share of all gradients' bytes that the parameters' sizes have to explain, before another size counts as strange.
/// Plain models measure 1; with flat parameters, or gradients in buckets, it is near 0.
static EXPLAINED: Threshold<f64> = Threshold::new("rules::missing_zero_grad::staying::EXPLAINED", 0.8);

/// How many calls of `zero_grad` have to pass a gradient over: with gradients that are added up over two steps on purpose, one does.
static PASSED_OVER: Threshold<usize> = Threshold::new("rules::missing_zero_grad::staying::PASSED_OVER", 3);

/// How often gradients are looked for in later iterations, for each event of the trace. Where each pass makes each of them once
/// the number of events is enough; in a hostile file all of them could be sought in all iterations.
const LOOKS: usize = 8;

/// Those of the gradients that stand when the first of them is cleared, or at the end: one set of them.
pub(super) fn at_once<'k, 'a>(
    kept: &'k [StayingGradient<'a>],
) -> impl Iterator<Item = &'k StayingGradient<'a>> {
    let first = kept.iter().filter_map(|one| one.allocation.given_back()).min();
    kept.iter()
        .filter(move |one| first.is_none_or(|first| one.allocation.alloc.is_some_and(|born| born < first)))
}

/// A gradient that stays, with the temporaries that later backward passes added to it.
pub(super) struct StayingGradient<'a> {
    pub(super) id: AllocationId,
    pub(super) allocation: &'a Allocation,
    pub(super) added: Vec<AllocationId>,
}

/// Gradients that outlive at least two iterations and the loop, and that later backward passes are seen to add to.
pub(super) fn kept_gradients<'a>(facts: &Facts<'a>) -> Vec<StayingGradient<'a>> {
    let loop_end = facts.iteration_ends().last().copied().unwrap_or(0);
    // Others, as of an optimizer that steps every third time, stood as long and were cleared in the end: so may these be.
    let oldest_cleared = cleared(facts).into_iter().map(|one| facts.ends_outlived(one)).max().unwrap_or(0);
    let passed_over = PassedOver::of(facts);
    let stays = |allocation: &Allocation| {
        let stays_to_the_end = allocation.free.is_none_or(|event| event.position() >= loop_end)
            && facts.ends_outlived(allocation) > oldest_cleared.max(1);
        allocation.alloc.is_some() && (stays_to_the_end || passed_over.has(facts, allocation))
    };
    let backward_births = backward_births(facts);
    let strangers = Strangers::of(facts);
    let counts = |one: &Allocation| !strangers.has(one.bytes) && !is_bucket(facts, one);
    let gradients = facts.with_role(Role::Gradient).filter(|(_, one)| counts(one));
    let mut kept = Vec::new();
    let mut looks = facts.trace.events.len().saturating_mul(LOOKS);
    for (id, allocation) in gradients.filter(|(_, allocation)| stays(allocation)) {
        let Some(born) = facts.born_in(allocation).map(Index::position) else { continue };
        let same_size = |iteration: usize| backward_births.get(&(iteration, allocation.bytes));
        let ordinal = same_size(born).and_then(|births| births.binary_search(&id).ok()).unwrap_or(0);
        let later = born + 1..facts.turns().occupied(allocation).end.min(facts.iteration_ends().len());
        let expected = later.len();
        let Some(rest) = looks.checked_sub(expected) else { break };
        looks = rest;
        // A backward pass computes the new gradient, adds it to the old one and frees it. The temporary that does so
        // stands at the same place among those of its size.
        let added: Vec<AllocationId> = later
            .filter_map(|iteration| {
                let births = same_size(iteration)?;
                births.get(ordinal).or(births.last()).copied()
            })
            .filter(|other| dies_in_its_iteration(facts, *other))
            .collect();
        if 2 * added.len() >= expected {
            kept.push(StayingGradient { id, allocation, added });
        }
    }
    kept
}

/// The sizes of gradients that the calls of `zero_grad` of the one optimizer there is pass over, and that something else clears.
struct PassedOver(FxHashSet<Bytes>);

impl PassedOver {
    fn of(facts: &Facts) -> PassedOver {
        let one_optimizer = has_one_optimizer(facts, facts.updates());
        let calls = &facts.program.zero_grads;
        let is_passed_over = |one: &Allocation| {
            let Some(freed) = one.given_back() else { return false };
            let last = calls.partition_point(|call| call.start <= freed).checked_sub(1);
            let is_by_the_last = last.and_then(|last| calls.get(last)).is_some_and(|call| freed < call.end);
            outlived_calls(facts, one) >= PASSED_OVER.get() && !is_by_the_last
        };
        let gradients =
            facts.with_role(Role::Gradient).filter(|(_, one)| one_optimizer && is_passed_over(one));
        PassedOver(gradients.map(|(_, one)| one.bytes).collect())
    }

    /// Whether a gradient is one of them, or the last of them, which nothing has cleared yet.
    fn has(&self, facts: &Facts, one: &Allocation) -> bool {
        self.0.contains(&one.bytes) && outlived_calls(facts, one) > 0
    }
}

/// How many calls of `zero_grad` a gradient outlives.
fn outlived_calls(facts: &Facts, one: &Allocation) -> usize {
    let calls = &facts.program.zero_grads;
    let begun = |event: EventIndex| calls.partition_point(|call| call.start <= event);
    let until = one.given_back().map_or(calls.len(), |freed| calls.partition_point(|call| call.end <= freed));
    until.saturating_sub(one.alloc.map_or(0, begun))
}

/// Whether it is a bucket that DDP keeps, gradients cleared or not: with `gradient_as_bucket_view=True` these are views of it.
fn is_bucket(facts: &Facts, one: &Allocation) -> bool {
    one.stack.is_some_and(|stack| facts.frames.shows(stack, MemorySign::Replicated))
}

/// Sizes that no parameter has, where the parameters' sizes explain nearly all gradients: what the backward pass leaves of
/// such a size is a library's workspace, or the gradient of an input.
struct Strangers {
    parameters: FxHashSet<Bytes>,
    explained: bool,
}

impl Strangers {
    fn of(facts: &Facts) -> Strangers {
        let parameters = facts.parameter_sizes();
        let gradients = || facts.with_role(Role::Gradient).map(|(_, one)| one.bytes);
        let known: Bytes = gradients().filter(|bytes| parameters.contains(bytes)).sum();
        let explained = known.share_of(gradients().sum()) >= EXPLAINED.get();
        Strangers { parameters, explained }
    }

    fn has(&self, bytes: Bytes) -> bool {
        self.explained && !self.parameters.contains(&bytes)
    }
}

/// What backward passes allocate, by iteration and size, in order.
fn backward_births(facts: &Facts) -> BTreeMap<(usize, Bytes), Vec<AllocationId>> {
    let mut births: BTreeMap<(usize, Bytes), Vec<AllocationId>> = BTreeMap::new();
    for (id, allocation) in facts.timeline.iter() {
        let Some(event) = allocation.alloc.filter(|event| facts.phase(*event) == Phase::Backward) else {
            continue;
        };
        if let Some(iteration) = facts.iteration_of(event) {
            births.entry((iteration.position(), allocation.bytes)).or_default().push(id);
        }
    }
    births
}

fn dies_in_its_iteration(facts: &Facts, id: AllocationId) -> bool {
    let allocation = facts.timeline.allocation(id);
    allocation.is_some_and(|one| one.free.is_some() && facts.ends_outlived(one) == 0)
}

/// Gradients that live over a step and are freed while the loop runs. (What is freed after it, the end of the function frees.)
pub(super) fn cleared<'a>(facts: &Facts<'a>) -> Vec<&'a Allocation> {
    let steps = facts.updates();
    let loop_end = facts.iteration_ends().last().copied().unwrap_or(0);
    let over_a_step = |allocation: &Allocation| {
        let (Some(born), Some(died)) = (allocation.alloc, allocation.free) else { return false };
        let next = steps.partition_point(|step| step.start <= born);
        steps.get(next).is_some_and(|step| step.start < died) && died.position() < loop_end
    };
    facts.with_role(Role::Gradient).map(|(_, one)| one).filter(|one| over_a_step(one)).collect()
}
