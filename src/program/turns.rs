//! Every loop that the stacks show, turn by turn: the main one, and those inside and beside it.
//!
//! In: the back edges of each call. Out: a [`LoopRun`] for each loop of each call, with at least three turns. An edge to a
//! lower line of the same call belongs to an outer loop; it begins a turn of the inner one as well.

use std::collections::BTreeMap;

use super::Program;
use super::loops::{Activation, Edge, Loops};
use crate::unit::{EventIndex, FrameId, Index};

/// How many loops of one call are looked at, lowest line first: a bound on what a hostile file can ask for.
const MOST_OF_A_CALL: usize = 16;

/// A loop, from the moment one call entered it until the call left it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoopRun {
    /// The frame at the line that turns jump back to.
    pub frame: FrameId,
    /// The first event of each turn; at least three.
    pub starts: Vec<EventIndex>,
    /// The event after the last turn.
    pub end: EventIndex,
}

impl LoopRun {
    /// The event after a turn.
    pub fn end_of(&self, turn: usize) -> EventIndex {
        self.starts.get(turn + 1).copied().unwrap_or(self.end)
    }
}

impl Program {
    /// Whether a loop is the main one: the user's own, or the library's that a line of the user's called.
    pub fn is_main(&self, run: &LoopRun) -> bool {
        self.library_loop.or(self.main_loop).is_some_and(|main| main.frame == run.frame)
    }
}

/// The runs of all loops, by their first event.
pub(super) fn runs(loops: &Loops, events: usize) -> Vec<LoopRun> {
    let mut calls: BTreeMap<u32, Vec<&Edge>> = BTreeMap::new();
    for edge in &loops.edges {
        calls.entry(edge.activation).or_default().push(edge);
    }
    let mut found = Vec::new();
    for (call, edges) in calls {
        let Some(activation) = loops.activations.get(call as usize) else { continue };
        let mut targets: Vec<u32> = edges.iter().map(|edge| edge.to).collect();
        targets.sort_unstable();
        targets.dedup();
        let each = targets.into_iter().take(MOST_OF_A_CALL);
        found.extend(each.filter_map(|line| run(loops, activation, &edges, line, events)));
    }
    found.sort_by_key(|run| (run.starts.first().copied(), run.end));
    found
}

/// The loop of a call whose head is at `line`.
fn run(loops: &Loops, activation: &Activation, edges: &[&Edge], line: u32, events: usize) -> Option<LoopRun> {
    let own = |edge: &&&Edge| edge.to == line;
    let (first, last) = (edges.iter().find(own)?, edges.iter().rfind(own)?);
    let between =
        edges.iter().filter(|edge| edge.to <= line && (first.event..=last.event).contains(&edge.event));
    let visits = || activation.visits.iter();
    let entered =
        visits().find(|(at, to)| *to >= line && *at < first.event).map_or(activation.entry, |one| one.0);
    let mut starts: Vec<usize> = std::iter::once(entered).chain(between.map(|edge| edge.event)).collect();
    starts.dedup();
    let highest = edges.iter().filter(own).map(|edge| edge.highest.max(edge.from)).max()?;
    let left = visits().find(|(at, to)| *at > last.event && (*to > highest || *to < line)).map(|one| one.0);
    let end = left.or(activation.end).unwrap_or(events);
    let end = loops.left_by_head(last.event, end, &[(last.node, line)]).unwrap_or(end);
    let starts: Vec<EventIndex> = starts.into_iter().filter_map(EventIndex::at).collect();
    (starts.len() >= 3).then_some(LoopRun { frame: first.frame, starts, end: EventIndex::at(end)? })
}
