//! Which line of a model's calls keeps its graph.
//!
//! In: a kept graph. Out: the line that runs the model, or, where that line also makes what backward passes let go of, the line under it that
//! makes all that stays and nothing that they let go of: of a query and a key encoder that one `forward` calls, the key's.

use std::collections::BTreeSet;

use crate::facts::{Facts, KeptGraph};
use crate::program::Phase;
use crate::unit::{EventIndex, FrameId, StackId};

/// The line at which the graph is kept.
pub(super) fn keeping_line(facts: &Facts, graph: &KeptGraph) -> FrameId {
    let made = || graph.kept.iter().filter_map(|id| facts.timeline.allocation(*id));
    let stacks: BTreeSet<StackId> = made().filter_map(|one| one.stack).collect();
    let Some(inner) = common(facts, graph.caller, &stacks) else { return graph.caller };
    let births = || made().filter_map(|one| one.alloc);
    let Some((first, last)) = births().min().zip(births().max()) else { return graph.caller };
    let used = used(facts, (first, last));
    let lets_go = |line: FrameId| used.iter().any(|stack| facts.frames.python(*stack).contains(&line));
    if !lets_go(graph.caller) {
        return graph.caller;
    }
    inner.into_iter().find(|line| !lets_go(*line)).unwrap_or(graph.caller)
}

/// The user's lines under the one that runs the model through which all of these stacks go, outermost first.
fn common(facts: &Facts, caller: FrameId, stacks: &BTreeSet<StackId>) -> Option<Vec<FrameId>> {
    let inside = |stack: &StackId| -> Option<Vec<FrameId>> {
        let python = facts.frames.python(*stack);
        let at = python.iter().position(|frame| *frame == caller)?;
        let under = python.get(at + 1..)?;
        Some(under.iter().copied().filter(|frame| facts.frames.is_own(*frame)).collect())
    };
    let shared = |one: Vec<FrameId>, next: Vec<FrameId>| {
        let same = one.iter().zip(&next).take_while(|(one, next)| one == next).count();
        one.into_iter().take(same).collect()
    };
    stacks.iter().map(inside).collect::<Option<Vec<_>>>()?.into_iter().reduce(shared)
}

/// The stacks of what is made meanwhile and let go of by a backward pass.
fn used(facts: &Facts, (first, last): (EventIndex, EventIndex)) -> BTreeSet<StackId> {
    let by_backward = |event: EventIndex| facts.phase(event) == Phase::Backward;
    let made = facts.timeline.born_between(first, last);
    let used = made.filter(|one| one.given_back().is_some_and(by_backward));
    used.filter_map(|one| one.stack).collect()
}
