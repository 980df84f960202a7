//! When parameters are updated.
//!
//! In: the optimizer's steps; where some leave no mark (an optimizer of the program's own, a step that allocates nothing in a file
//! without annotations), the iterations and their backward passes. Out: the stretches in which gradients are used. Always: a stretch ends no earlier than the gradients are last used, so that what outlives it is
//! not needed any more.

use std::collections::BTreeSet;

use crate::facts::Facts;
use crate::program::{Iteration, Phase, Program, Step};
use crate::role::{Role, Roles};
use crate::threshold::Threshold;
use crate::timeline::{Allocation, Timeline};
use crate::unit::{EventIndex, Index, IterationIndex};

/// Iterations in which gradients are cleared, from which on that may be the program's habit.
static CLEARED: Threshold<usize> = Threshold::new("facts::updates::CLEARED", 2);

/// The steps that are seen, and the stretches in which others must have run.
pub(super) fn updates(facts: &Facts) -> Vec<Step> {
    let seen = &facts.program.steps;
    let all_are_seen = facts.calls.annotated || !clears(facts.program, facts.timeline, facts.roles);
    if !seen.is_empty() && all_are_seen {
        return seen.clone();
    }
    let holds_one = |stretch: &Step| {
        let next = seen.partition_point(|step| step.end <= stretch.start);
        seen.get(next).is_some_and(|step| step.start < stretch.end)
    };
    let others = unmarked(facts).into_iter().filter(|stretch| !holds_one(stretch));
    let mut updates: Vec<Step> = others.chain(seen.iter().copied()).collect();
    updates.sort_unstable_by_key(|step| step.start);
    updates
}

/// Where an optimizer leaves no mark: what follows the last backward pass of each iteration.
fn unmarked(facts: &Facts) -> Vec<Step> {
    let after_backward = |(start, end): (EventIndex, EventIndex)| {
        let phases = facts.program.phases.get(start.position()..end.position())?;
        let last = phases.iter().rposition(|phase| *phase == Phase::Backward)?;
        Some(Step { start: EventIndex::at(start.position() + last + 1)?, end })
    };
    let iterations = facts.program.iterations.iter().map(|one| (one.start, one.end));
    iterations.filter_map(after_backward).collect()
}

/// Whether a program is seen to clear gradients in most of the iterations that run a backward pass: then it
/// uses them, too. Gradients that go now and then go with their parameters, for one in a benchmark that makes new tensors for each
/// setting.
pub(super) fn clears(program: &Program, timeline: &Timeline, roles: &Roles) -> bool {
    let freed_outside =
        |one: &Allocation| one.given_back().filter(|event| program.phase(*event) != Phase::Backward);
    let gradients = timeline.iter().filter(|(id, _)| roles.get(*id) == Role::Gradient);
    let cleared: BTreeSet<IterationIndex> =
        gradients.filter_map(|(_, one)| program.iteration_of(freed_outside(one)?)).collect();
    let runs_backward = |iteration: &&Iteration| {
        let phases = program.phases.get(iteration.start.position()..iteration.end.position());
        phases.is_some_and(|phases| phases.contains(&Phase::Backward))
    };
    let backward = program.iterations.iter().filter(runs_backward).count();
    cleared.len() >= CLEARED.get() && cleared.len() * 2 >= backward
}
