//! Gradients that no `zero_grad` ever clears.

mod older;
mod rows;
mod staying;

use std::collections::BTreeMap;

use staying::{StayingGradient, at_once, cleared, kept_gradients};

use super::claim::{Anchor, Besides, Claim, Mending, Telling, Worth, related};
use super::{declare_rule, measure};
use crate::facts::Facts;
use crate::finding::{Absent, Excuse, Finding, Quantity, Related, Severity, Silence};
use crate::lives::{Change, Changes};
use crate::program::Step;
use crate::role::Role;
use crate::unit::{AllocationId, Bytes, Confidence, EventIndex, Index, StackId, count};

declare_rule! {
    /// Gradients are never cleared between iterations.
    MissingZeroGrad = "missing-zero-grad", Leak, Error,
    needs: [History, Gradients, Updates],
    summary: "gradients are never cleared between iterations",
}

/// Why the gradients stay.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Neglect {
    /// No `zero_grad` at all.
    NeverCalled,
    /// Other gradients are cleared, and fewer `zero_grad` than steps were called.
    OneOptimizerForgotten,
    /// Every step has its `zero_grad`, which clears other gradients: no optimizer has these parameters.
    NotInOptimizer,
    /// There is no optimizer: what the program asks its backward passes for are gradients of something else.
    NotAskedFor,
}

/// What helps where every step has its `zero_grad`, and some parameters are in no optimizer.
const NOT_IN_OPTIMIZER: &str =
    "freeze what no optimizer updates: backbone.requires_grad_(False), or clear it with model.zero_grad()";

impl MissingZeroGrad {
    fn claims<'f>(facts: &'f Facts<'f>) -> Vec<Claim<'f>> {
        let dense = older::claim(facts).or_else(|| newer(facts));
        dense.into_iter().chain(rows::claims(facts)).collect()
    }
}

/// The claim about gradients whose making was recorded.
fn newer<'f>(facts: &'f Facts<'f>) -> Option<Claim<'f>> {
    facts.evidence.first_iteration().ok()?;
    let kept = kept_gradients(facts);
    // A single tensor that is as large as no parameter is rather a library's workspace: cuBLAS makes one on the engine's thread,
    // in the first backward pass and for good.
    let is_a_parameters = |one: &StayingGradient<'_>| {
        facts.with_role(Role::Parameter).any(|(_, two)| two.bytes == one.allocation.bytes)
    };
    let counts = kept.len() >= 2 || kept.first().is_some_and(is_a_parameters);
    let first = kept.first().and_then(|one| one.allocation.alloc).filter(|_| counts)?;
    let steps: Vec<Step> = after(facts.updates(), first);
    let zeroed = after(&facts.program.zero_grads, first).len();
    // Where no annotation tells of steps only those that allocate are seen, and that may be the first alone, which makes the state.
    let seen_steps = if facts.calls.annotated { 2 } else { 1 };
    if steps.len() < seen_steps {
        return None;
    }
    let asks_for_others = facts.evidence.steps() == Err(Silence::NotApplicable(Absent::Optimizer));
    let cause = match (cleared_gradients(facts), zeroed) {
        (0, 0) if asks_for_others => Neglect::NotAskedFor,
        // What no step uses may be meant to add up.
        (0, _) if facts.program.steps.is_empty() => return None,
        (0, 0) => Neglect::NeverCalled,
        // Called, and yet nothing is ever freed: `set_to_none=False`.
        (0, _) => return None,
        (_, zeroed) if zeroed + 1 < steps.len() && zeroed > 0 => Neglect::OneOptimizerForgotten,
        _ => Neglect::NotInOptimizer,
    };
    // One optimizer's `zero_grad` clears all that its step uses: what it leaves is summed for nobody, and costs memory alone. Where no
    // optimizer is seen at all, gradients are what the program makes of them.
    let is_left = zeroed + 1 >= steps.len() && has_one_optimizer(facts, &steps);
    let idle = match cause {
        Neglect::NotAskedFor => true,
        Neglect::NotInOptimizer => is_left || facts.program.steps.is_empty(),
        _ => false,
    };
    let mended = if idle { never_made(&kept) } else { cleared_after_each_step(facts, &kept, &steps) };
    let mending = Mending::lives(mended);
    let about: Vec<AllocationId> = kept.iter().map(|one| one.id).collect();
    let sure = confidence(facts, cause, &steps);
    let bytes = facts.bytes(&about);
    // Of an optimizer that leaves no mark it is not known what it has, and when it steps.
    let is_sure_of_steps = !facts.program.steps.is_empty() && steps.len() >= 2;
    let most = if is_sure_of_steps { Severity::Error } else { Severity::Warning };
    let told = move |worth: &Worth| tell(facts, &kept, cause, (&steps, zeroed), worth);
    let claim = Claim::new(&MissingZeroGrad::META, about, mending, told);
    // What is idle is worth what freezing it saves; what a step uses is wrong by being there.
    let claim = if idle { claim } else { claim.holding(bytes) };
    Some(claim.sure(sure).at_most(most))
}

/// Whether one line alone is seen to call every step, at most once in an iteration: so one optimizer at a time.
fn has_one_optimizer(facts: &Facts, steps: &[Step]) -> bool {
    let mut lines = steps.iter().map(|step| facts.step_stack(*step).and_then(|stack| facts.site(stack)));
    let first = lines.next().flatten();
    first.is_some() && lines.all(|line| line == first) && !has_several_steps(facts, steps)
}

fn has_several_steps(facts: &Facts, steps: &[Step]) -> bool {
    steps.len() > facts.iteration_ends().len() + 1
}

/// The calls that begin after an event.
fn after(calls: &[Step], event: EventIndex) -> Vec<Step> {
    calls.iter().copied().filter(|call| call.start > event).collect()
}

/// How many gradients are cleared.
fn cleared_gradients(facts: &Facts) -> usize {
    cleared(facts).len()
}

fn tell(
    facts: &Facts,
    kept: &[StayingGradient],
    cause: Neglect,
    (steps, zeroed): (&[Step], usize),
    worth: &Worth,
) -> Finding {
    let bytes: Bytes = at_once(kept).map(|one| one.allocation.bytes).sum();
    let tensors = count(at_once(kept).count(), "tensor");
    let born = kept.first().and_then(|one| facts.born_in(one.allocation)).map_or(0, Index::position);
    let (message, help) = match cause {
        Neglect::NeverCalled => (
            format!("gradients of iteration {} are never cleared ({bytes}, {tensors})", born + 1),
            "clear them once per step, directly after it: optimizer.zero_grad(set_to_none=True)",
        ),
        Neglect::OneOptimizerForgotten => (
            format!("one optimizer's gradients are never cleared ({bytes}, {tensors})"),
            "call zero_grad(set_to_none=True) on every optimizer, directly after it steps, and once more where another loss reaches its parameters",
        ),
        Neglect::NotInOptimizer => {
            (format!("no optimizer clears the gradients of {tensors} ({bytes})"), NOT_IN_OPTIMIZER)
        }
        Neglect::NotAskedFor => (
            format!("the gradients of {tensors} add up for nobody ({bytes})"),
            "freeze the model: model.requires_grad_(False), or ask for what is used alone: torch.autograd.grad(score, x)",
        ),
    };
    let place = entered_before(facts, kept.iter().map(|one| one.id));
    let telling = Telling {
        message,
        help: help.to_owned(),
        label: format!("allocated here in iteration {}, added to in place {}", born + 1, until(facts, kept)),
        related: step_line(facts, steps, zeroed, &place).into_iter().collect(),
        evidence: evidence(facts, kept, steps, zeroed),
        place,
    };
    let may_zero_in_place = matches!(cause, Neglect::NeverCalled | Neglect::NotAskedFor);
    let excuse = may_zero_in_place.then_some(Excuse::ZeroesInPlace);
    telling.told(facts, &MissingZeroGrad::META, worth).excused_by(excuse)
}

/// Without annotations a `zero_grad` that zeroes in place leaves no trace. With several optimizers, each with its own
/// `zero_grad`, the kept gradients may be those of one that zeroes in place. And without Python's frames
/// everything seems to be made by the engine's thread, so that parameters pass for gradients, and `model.zero_grad()`, which is not
/// annotated, is not seen.
fn confidence(facts: &Facts, cause: Neglect, steps: &[Step]) -> Confidence {
    let several = has_several_steps(facts, steps);
    match cause {
        Neglect::NeverCalled if !facts.calls.annotated => Confidence::Low,
        _ if facts.evidence.stacks().is_err() => Confidence::Low,
        Neglect::NotAskedFor => Confidence::Medium,
        Neglect::NotInOptimizer if several || facts.program.steps.is_empty() => Confidence::Medium,
        _ => Confidence::High,
    }
}

/// The line that called `backward` before most of these were made: the engine's own thread has no Python frames.
fn entered_before(facts: &Facts, made: impl Iterator<Item = AllocationId> + Clone) -> Anchor {
    let born = made.filter_map(|id| facts.timeline.allocation(id)?.alloc);
    let mut stacks: BTreeMap<StackId, usize> = BTreeMap::new();
    for stack in born.clone().filter_map(|event| facts.calls.backward_before(event)) {
        *stacks.entry(stack).or_default() += 1;
    }
    let own = || born.clone().find_map(|event| facts.seen_stack(event));
    let most = stacks.into_iter().max_by_key(|(stack, entries)| (*entries, std::cmp::Reverse(*stack)));
    Anchor::of_stack(facts, most.map(|(stack, _)| stack).or_else(own))
}

fn step_line(facts: &Facts, steps: &[Step], zeroed: usize, place: &Anchor) -> Option<Related> {
    let stack = facts.program.steps.iter().find_map(|step| facts.step_stack(*step))?;
    let message = format!("{}, {}", count(steps.len(), "step"), zero_grads(zeroed));
    related(facts, facts.site(stack), place, message)
}

/// How long gradients are added to.
fn until(facts: &Facts, kept: &[StayingGradient]) -> &'static str {
    let loop_end = facts.iteration_ends().last().copied().unwrap_or(0);
    let goes = |one: &StayingGradient| one.allocation.free.is_some_and(|event| event.position() < loop_end);
    if kept.iter().any(goes) { "until all is cleared" } else { "ever since" }
}

/// Updates of the parameters: of an optimizer that leaves no mark it is known where they must be, not that they are steps.
fn updates(facts: &Facts, many: usize) -> String {
    count(many, if facts.program.steps.is_empty() { "backward pass" } else { "optimizer step" })
}

fn zero_grads(zeroed: usize) -> String {
    if zeroed == 0 {
        "not one zero_grad".to_owned()
    } else {
        format!("{} of zero_grad", count(zeroed, "call"))
    }
}

fn evidence(
    facts: &Facts,
    kept: &[StayingGradient],
    steps: &[Step],
    zeroed: usize,
) -> Vec<crate::finding::Measure> {
    let ends = facts.iteration_ends().len();
    let outlived = kept.iter().map(|one| facts.ends_outlived(one.allocation)).min().unwrap_or(0);
    let cleared = cleared_gradients(facts);
    let tensors = at_once(kept).count();
    vec![
        measure(
            "ends-outlived",
            Quantity::Count(outlived as u64),
            format!("alive at {outlived} of {}", count(ends, "iteration end")),
        ),
        measure("tensors", Quantity::Count(tensors as u64), count(tensors, "tensor")),
        measure(
            "optimizer-steps",
            Quantity::Count(steps.len() as u64),
            format!("{} since, {}", updates(facts, steps.len()), zero_grads(zeroed)),
        ),
        measure("zero-grad-calls", Quantity::Count(zeroed as u64), String::new()),
        measure(
            "cleared-gradients",
            Quantity::Count(cleared as u64),
            if cleared > 0 {
                format!("{} cleared in the meantime", count(cleared, "other gradient"))
            } else {
                String::new()
            },
        ),
    ]
}

/// The lifetimes as they would be where what no optimizer updates is frozen.
fn never_made(kept: &[StayingGradient]) -> Changes {
    Changes::removing(kept.iter().flat_map(|one| one.added.iter().chain([&one.id])).copied())
}

/// The lifetimes as they would be: each gradient ends with its iteration's last step, and in later iterations the
/// temporary takes its place until that iteration's last step.
fn cleared_after_each_step(facts: &Facts, kept: &[StayingGradient], steps: &[Step]) -> Changes {
    let last_step = |born: EventIndex| {
        let iteration = facts.iteration_of(born)?;
        let end = facts.iteration_ends().get(iteration.position())?;
        let step = last_step_between(steps, born, *end);
        EventIndex::at(step.map_or(*end, |step| step.end.position()).saturating_sub(1))
    };
    let mut changes = Changes::default();
    for one in kept {
        if let Some(end) = one.allocation.alloc.and_then(last_step) {
            changes.set(one.id, Change::EndAt(end));
        }
        for added in &one.added {
            let Some(allocation) = facts.timeline.allocation(*added) else { continue };
            let end = allocation.alloc.and_then(last_step).max(allocation.free);
            if let Some(end) = end {
                changes.set(*added, Change::EndAt(end));
            }
        }
    }
    changes
}

/// The last step that begins after an event and before a position.
fn last_step_between(steps: &[Step], after: EventIndex, end: usize) -> Option<Step> {
    let last = steps.partition_point(|step| step.start.position() < end).checked_sub(1)?;
    steps.get(last).copied().filter(|step| step.start > after)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_step_is_found_without_asking_all_of_them() {
        let event = |at| EventIndex::at(at).unwrap();
        let step = |at: usize| Step { start: event(10 * at + 5), end: event(10 * at + 8) };
        let steps: Vec<Step> = (0..500_000).map(step).collect();
        let found =
            |born: usize, end| last_step_between(&steps, event(born), end).map(|step| step.start.position());
        assert!((0..500_000).all(|at| found(10 * at, 10 * at + 10) == Some(10 * at + 5)));
        assert_eq!((found(6, 10), found(0, 5), found(0, 26)), (None, None, Some(25)));
    }
}
