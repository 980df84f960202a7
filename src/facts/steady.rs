//! The part of the recording by which a program is judged: its loop without the first iteration.
//!
//! In: iterations. Out: a range of events and the highest requested bytes in it. The first iteration is left out where
//! two more follow: `cudnn.benchmark` tries workspaces there that no later iteration needs, and lazy state appears. A loop that may be none
//! (over the layers of one pass) is no measure: then it is all of the recording.

use std::ops::Range;

use crate::facts::Facts;
use crate::unit::{Bytes, Confidence, EventIndex, Index};

/// The steady part of a recording.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Steady {
    /// The positions of its events.
    pub events: Range<usize>,
    /// The highest requested bytes in it.
    pub peak: Bytes,
    /// The first event that reaches them.
    pub peak_event: Option<EventIndex>,
}

impl Steady {
    pub(super) fn of(facts: &Facts) -> Steady {
        let iterations = &facts.program.iterations;
        let from = if iterations.len() >= 3 { iterations.get(1) } else { iterations.first() };
        let events = match (from, iterations.last()) {
            (Some(first), Some(last)) if facts.program.confidence > Confidence::Low => {
                first.start.position()..last.end.position()
            }
            _ => 0..facts.trace.events.len(),
        };
        let levels = &facts.timeline.levels;
        let peak = levels.highest(events.clone());
        let moves = |at: usize| facts.timeline.allocation_of.get(at).is_some_and(Option::is_some);
        let peak_event = levels.reaching(events.clone(), peak, moves).and_then(EventIndex::at);
        Steady { events, peak, peak_event }
    }
}
