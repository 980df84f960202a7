//! How sure it is that the iterations found are those of the program's main loop.

use std::collections::BTreeSet;

use super::iterations::Cut;
use super::marks::StepSpan;
use super::paths::Paths;
use super::{FoundBy, Phase};
use crate::frames::Frames;
use crate::snapshot::{Action, Event};
use crate::timeline::{Allocation, Timeline};
use crate::unit::{Confidence, Index};

/// Whether a loop does something itself: its turns begin with an allocation of its own line or function (a batch), it calls a model, or its turns run backward passes. A
/// loop that only calls the program's own functions may be one over the layers of a model that is written as such; and where optimizers step outside of
/// it alone, what it allocates itself is no batch (a loop over the parameters that are pruned).
pub(super) fn is_at_work(
    events: &[Event],
    frames: &Frames,
    paths: &Paths,
    (cut, phases): (&Cut, &[Phase]),
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
    // The layers of a pass have one backward pass behind them, and not one each.
    let backward = |&&(start, end): &&(usize, usize)| {
        phases.get(start..end).is_some_and(|turn| turn.contains(&Phase::Backward))
    };
    let trains = turns.iter().filter(backward).count() * 2 > turns.len();
    ((begun * 2 > turns.len() || trains) && !trains_beside) || calls()
}

/// Whether one backward pass behind a loop lets go of what most of its turns made: then these are parts of one pass (a recurrent step, a view, a sample), and
/// none of them an iteration.
pub(super) fn is_one_pass(timeline: &Timeline, phases: &[Phase], cut: &Cut) -> bool {
    let backward = |at: usize| phases.get(at) == Some(&Phase::Backward);
    // What stands before the loop and behind it is in the first iteration and in the last.
    let Some(mut inner) = cut.starts.get(1).zip(cut.starts.last()).map(|(second, last)| *second..*last)
    else {
        return false;
    };
    if inner.is_empty() || inner.any(backward) {
        return false;
    }
    let awaits = |one: &Allocation| {
        let made = cut.find(one.alloc?.position())?;
        one.free_requested.is_some_and(|freed| backward(freed.position())).then_some(made)
    };
    let await_it: BTreeSet<usize> = timeline.allocations.iter().filter_map(awaits).collect();
    await_it.len() * 2 > cut.starts.len()
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program::tape::Tape;

    /// A module that is called eight times from a loop between two backward passes.
    fn turns(used: bool) -> Confidence {
        let mut tape = Tape::default();
        tape.alloc("main:60 @backward");
        let mut turn = || [tape.alloc("main:51 @module forward:5"), tape.alloc("main:52")];
        let made: Vec<usize> = (0..8).flat_map(|_| turn()).collect();
        let backward = tape.alloc("main:60 @backward");
        for at in made.into_iter().filter(|_| used) {
            let (stack, mut event) = (tape.recorder.events[backward].stack, tape.recorder.events[at]);
            (event.action, event.stack, event.time) =
                (Action::FreeRequested, stack, tape.recorder.events[backward].time);
            tape.recorder.events.push(event);
        }
        let program = tape.program();
        assert_eq!(program.found_by, FoundBy::LoopBackEdges);
        assert!(program.iterations.len() >= 8);
        program.confidence
    }

    #[test]
    fn turns_that_one_backward_pass_uses_are_parts_of_one_pass() {
        assert_eq!(turns(true), Confidence::Low);
        assert_eq!(turns(false), Confidence::High, "it may be a loop that evaluates");
    }

    #[test]
    fn a_loop_whose_turns_run_backward_passes_is_at_work() {
        let confidence = |each: &str| {
            let mut tape = Tape::default();
            for _ in 0..8 {
                tape.alloc("main:51 objective:5");
                tape.alloc(each);
                tape.alloc("main:53 update:9");
            }
            tape.program().confidence
        };
        assert_eq!(confidence("main:52 @backward"), Confidence::High);
        assert_eq!(confidence("main:52 layer:7"), Confidence::Low, "these may be the layers of a pass");
    }
}
