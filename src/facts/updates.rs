//! When parameters are updated.
//!
//! In: the optimizer's steps, or, of an optimizer of the program's own that leaves no mark, the iterations and their backward
//! passes. Out: the stretches in which gradients are used. Always: a stretch ends no earlier than the gradients are last used, so that what outlives it is
//! not needed any more.

use crate::facts::Facts;
use crate::program::{Phase, Program, Step};
use crate::role::{Role, Roles};
use crate::threshold::Threshold;
use crate::timeline::Timeline;
use crate::unit::{EventIndex, Index};

/// Iterations in which gradients are cleared, from which on that is the program's habit.
static CLEARED: Threshold<usize> = Threshold::new("facts::updates::CLEARED", 2);

/// Where an optimizer leaves no mark: what follows the last backward pass of each iteration.
pub(super) fn unmarked(facts: &Facts) -> Vec<Step> {
    let after_backward = |(start, end): (EventIndex, EventIndex)| {
        let phases = facts.program.phases.get(start.position()..end.position())?;
        let last = phases.iter().rposition(|phase| *phase == Phase::Backward)?;
        Some(Step { start: EventIndex::at(start.position() + last + 1)?, end })
    };
    let iterations = facts.program.iterations.iter().map(|one| (one.start, one.end));
    iterations.filter_map(after_backward).collect()
}

/// Whether a program without a recorded step is seen to clear gradients, iteration for iteration: then it uses them, too.
pub(super) fn clears(program: &Program, timeline: &Timeline, roles: &Roles) -> bool {
    let cleared =
        timeline.iter().filter(|(id, _)| roles.get(*id) == Role::Gradient).filter_map(|(_, one)| {
            let freed = one.given_back().filter(|freed| program.phase(*freed) != Phase::Backward)?;
            one.alloc.and_then(|_| program.iteration_of(freed))
        });
    let mut iterations: Vec<_> = cleared.collect();
    iterations.sort_unstable();
    iterations.dedup();
    iterations.len() >= CLEARED.get()
}
