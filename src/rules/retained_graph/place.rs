//! Which line of a model's calls keeps its graph.
//!
//! In: a kept graph. Out: the line that runs the model, or, where that line also makes what backward passes let go of, the line under it that
//! makes all that stays and nothing that they let go of (of a query and a key encoder that one `forward` calls, the key's), or else the line
//! above it that does (of a helper that evaluates for training and for a log, the log's call).

use std::collections::BTreeSet;

use crate::facts::{Facts, KeptGraph};
use crate::program::Phase;
use crate::unit::{EventIndex, FrameId, StackId};

/// The line at which the graph is kept.
pub(super) fn keeping_line(facts: &Facts, graph: &KeptGraph) -> FrameId {
    let made = || graph.kept.iter().filter_map(|id| facts.timeline.allocation(*id));
    let stacks: BTreeSet<StackId> = made().filter_map(|one| one.stack).collect();
    let births = || made().filter_map(|one| one.alloc);
    let Some((first, last)) = births().min().zip(births().max()) else { return graph.caller };
    let used = used(facts, (first, last));
    let lets_go = |line: FrameId| used.iter().any(|stack| facts.frames.python(*stack).contains(&line));
    if !lets_go(graph.caller) {
        return graph.caller;
    }
    let common = |side| common(facts, graph.caller, &stacks, side);
    let (under, above) = (common(under), common(above));
    under.into_iter().chain(above).find(|line| !lets_go(*line)).unwrap_or(graph.caller)
}

/// The user's lines on one side of the one that runs the model, through which all of some stacks go, in the order in which they stand on that side.
fn common(
    facts: &Facts,
    caller: FrameId,
    stacks: &BTreeSet<StackId>,
    side: fn(&[FrameId], usize) -> Vec<FrameId>,
) -> Vec<FrameId> {
    let beside = |stack: &StackId| -> Option<Vec<FrameId>> {
        let python = facts.frames.python(*stack);
        let at = python.iter().position(|frame| *frame == caller)?;
        Some(side(python, at).into_iter().filter(|frame| facts.frames.is_own(*frame)).collect())
    };
    let shared = |one: Vec<FrameId>, next: Vec<FrameId>| {
        let same = one.iter().zip(&next).take_while(|(one, next)| one == next).count();
        one.into_iter().take(same).collect()
    };
    let lines = stacks.iter().map(beside).collect::<Option<Vec<_>>>();
    lines.and_then(|lines| lines.into_iter().reduce(shared)).unwrap_or_default()
}

/// The frames that one calls, outermost first.
fn under(python: &[FrameId], at: usize) -> Vec<FrameId> {
    python.get(at + 1..).unwrap_or_default().to_vec()
}

/// The frames that call one, innermost first.
fn above(python: &[FrameId], at: usize) -> Vec<FrameId> {
    python.get(..at).unwrap_or_default().iter().rev().copied().collect()
}

/// The stacks of what is made meanwhile and let go of by a backward pass.
fn used(facts: &Facts, (first, last): (EventIndex, EventIndex)) -> BTreeSet<StackId> {
    let by_backward = |event: EventIndex| facts.phase(event) == Phase::Backward;
    let made = facts.timeline.born_between(first, last);
    let used = made.filter(|one| one.given_back().is_some_and(by_backward));
    used.filter_map(|one| one.stack).collect()
}
