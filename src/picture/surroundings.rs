//! What stands around the lifetimes: phases, iterations, failed requests, and what the program named.

use serde::{Deserialize, Serialize};

use super::Bins;
use crate::facts::Facts;
use crate::program::Phase;
use crate::snapshot::{Action, Annotation};
use crate::unit::{Bytes, EventIndex, Index};

/// Spans of the program's own that are kept at most: a page shows no more (chosen).
const MOST_ANNOTATIONS: usize = 20_000;
/// Spans within spans that are followed.
const DEEPEST: usize = 64;

/// Bins of one phase.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct PhaseSpan {
    /// The first bin.
    pub bin: usize,
    /// What the program was doing; [`Phase::Other`] before the first event.
    pub phase: Phase,
}

/// An iteration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Turn {
    /// The moment before its first event.
    pub start: usize,
    /// The moment after its last.
    pub end: usize,
    /// Whether the recording holds all of it.
    pub complete: bool,
    /// The highest requested bytes within it.
    pub peak: Bytes,
    /// Requested bytes at its end.
    pub resident: Bytes,
}

/// A request that got no memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemoryRefusal {
    /// The moment after it.
    pub moment: usize,
    /// What was asked for.
    pub bytes: Bytes,
}

/// A span of `record_function`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Annotated {
    /// Its name.
    pub name: String,
    /// The moment at which it begins.
    pub start: usize,
    /// The moment at which it ends.
    pub end: usize,
    /// In how many others it lies.
    pub depth: usize,
}

/// The phase of each bin, where it differs from that before.
pub(super) fn phases(facts: &Facts, bins: &Bins) -> Vec<PhaseSpan> {
    let mut runs: Vec<PhaseSpan> = Vec::new();
    for (bin, moment) in bins.shown.iter().enumerate() {
        let last = moment.checked_sub(1).and_then(EventIndex::at);
        let phase = last.map(|event| facts.phase(event)).unwrap_or_default();
        if runs.last().is_none_or(|run| run.phase != phase) {
            runs.push(PhaseSpan { bin, phase });
        }
    }
    runs
}

/// The iterations, in order.
pub(super) fn turns(facts: &Facts) -> Vec<Turn> {
    let levels = &facts.timeline.levels;
    let turn = |one: &crate::program::Iteration| {
        let (start, end) = (one.start.position(), one.end.position());
        Turn {
            start,
            end,
            complete: one.complete,
            peak: levels.before(start).max(levels.highest(start..end)),
            resident: levels.before(end),
        }
    };
    facts.program.iterations.iter().map(turn).collect()
}

/// The requests that failed, in order.
pub(super) fn failures(facts: &Facts) -> Vec<MemoryRefusal> {
    let events = facts.trace.events.iter().enumerate();
    let failed = events.filter(|(_, event)| event.action == Action::OutOfMemory);
    failed.map(|(at, event)| MemoryRefusal { moment: at + 1, bytes: event.size }).collect()
}

/// The spans that the program named, by their beginning. What has no end ends with the recording.
pub(super) fn annotations(facts: &Facts) -> Vec<Annotated> {
    let times: Vec<i64> = facts.trace.events.iter().map(|event| event.time.0).collect();
    let moment = |one: &Annotation| times.partition_point(|time| *time < one.time.0);
    let own = |one: &&Annotation| usize::try_from(one.device) == Ok(facts.device.position());
    let mut spans: Vec<Annotated> = Vec::new();
    let mut open: Vec<(usize, &Annotation)> = Vec::new();
    for one in facts.snapshot.annotations.iter().filter(own) {
        if one.start {
            if spans.len() < MOST_ANNOTATIONS && open.len() < DEEPEST {
                let name = facts.snapshot.text(one.name).to_owned();
                open.push((spans.len(), one));
                spans.push(Annotated { name, start: moment(one), end: times.len(), depth: open.len() - 1 });
            }
        } else if let Some(place) = open.iter().rposition(|(_, begun)| begun.name == one.name)
            && let Some(span) = spans.get_mut(open.remove(place).0)
        {
            span.end = moment(one);
        }
    }
    spans
}
