//! How sure it is that the iterations found are those of the program's main loop.

use super::FoundBy;
use super::iterations::Cut;
use super::marks::StepSpan;
use super::paths::Paths;
use crate::frames::Frames;
use crate::snapshot::{Action, Event};
use crate::unit::Confidence;

/// Whether a loop does something itself: its turns begin with an allocation of its own line or function (a batch), or it calls a model. A
/// loop that only calls the program's own functions may be one over the layers of a model that is written as such; and where optimizers step outside of
/// it alone, what it allocates itself is no batch (a loop over the parameters that are pruned).
pub(super) fn is_at_work(
    events: &[Event],
    frames: &Frames,
    paths: &Paths,
    cut: &Cut,
    steps: &[StepSpan],
) -> bool {
    let Some(header) = cut.header else { return true };
    let looping = frames.function(header.frame);
    let made = |start: usize, end: usize| {
        let inside = events.iter().take(end).skip(start).filter(|event| event.action == Action::Alloc);
        inside.filter_map(|event| paths.get(paths.of_event(event)?))
    };
    let begins_itself = |(start, end): (usize, usize)| {
        let own = made(start, end)
            .next()
            .and_then(|path| path.frames.iter().rev().find(|frame| frames.is_own(**frame)));
        own.is_some_and(|own| frames.function(*own) == looping)
    };
    // What stands before the loop and behind it is in the first iteration and in the last.
    let inner = cut.starts.len().saturating_sub(2).max(1);
    let turns: Vec<(usize, usize)> =
        cut.spans().skip(usize::from(cut.starts.len() > 1)).take(inner).collect();
    let begun = turns.iter().filter(|turn| begins_itself(**turn)).count();
    let calls = || turns.iter().any(|(start, end)| made(*start, *end).any(|path| path.calls_module));
    let steps_in = |(start, end): &(usize, usize)| {
        let next = steps.partition_point(|step| step.start < *start);
        steps.get(next).is_some_and(|step| step.start < *end)
    };
    let trains_beside = !steps.is_empty() && !turns.iter().any(steps_in);
    (begun * 2 > turns.len() && !trains_beside) || calls()
}

/// How sure it is that these are the iterations.
pub(super) fn of(found_by: FoundBy, cut: &Cut, is_at_work: impl FnOnce() -> bool) -> Confidence {
    match found_by {
        FoundBy::LoopAndOptimizer | FoundBy::ProfilerSteps => Confidence::High,
        FoundBy::LoopBackEdges if !is_at_work() => Confidence::Low,
        FoundBy::LoopBackEdges if cut.starts.len() >= 4 => Confidence::High,
        FoundBy::LoopBackEdges | FoundBy::OptimizerSteps => Confidence::Medium,
        FoundBy::Annotations | FoundBy::Periodicity | FoundBy::Nothing => Confidence::Low,
    }
}
