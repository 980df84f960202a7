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

/// Iterations in which gradients are cleared, or dropped, from which on that may be the program's habit.
static HABIT: Threshold<usize> = Threshold::new("facts::updates::HABIT", 2);

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
    is_habit(program, &drops(program, timeline, roles, |_, role| role == Role::Gradient))
}

/// Whether the backward passes of most iterations leave what no parameter has the size of, and the program drops it soon: it asks for the
/// gradients of something else (an input, a path of interpolated images), and those of the parameters are for nobody.
pub(super) fn asks_for_others(program: &Program, timeline: &Timeline, roles: &Roles) -> bool {
    let is_left = |one: &Allocation, role| {
        role == Role::Temporary && one.alloc.is_some_and(|born| program.phase(born) == Phase::Backward)
    };
    is_habit(program, &drops(program, timeline, roles, is_left))
}

/// The iterations in which something goes outside of a backward pass, of what is asked for.
fn drops(
    program: &Program,
    timeline: &Timeline,
    roles: &Roles,
    is_asked: impl Fn(&Allocation, Role) -> bool,
) -> BTreeSet<IterationIndex> {
    let freed_outside =
        |one: &Allocation| one.given_back().filter(|event| program.phase(*event) != Phase::Backward);
    let asked = timeline.iter().filter(|(id, one)| is_asked(one, roles.get(*id)));
    asked.filter_map(|(_, one)| program.iteration_of(freed_outside(one)?)).collect()
}

/// Whether something happens in most of the iterations that run a backward pass.
fn is_habit(program: &Program, happens: &BTreeSet<IterationIndex>) -> bool {
    let runs_backward = |iteration: &&Iteration| {
        let phases = program.phases.get(iteration.start.position()..iteration.end.position());
        phases.is_some_and(|phases| phases.contains(&Phase::Backward))
    };
    let backward = program.iterations.iter().filter(runs_backward).count();
    happens.len() >= HABIT.get() && happens.len() * 2 >= backward
}
