//! The part of the recording by which a program is judged: its loop without the first iteration.
//!
//! In: iterations. Out: a range of events and the highest requested bytes in it. The first iteration is left out where
//! two more follow: `cudnn.benchmark` tries workspaces there that no later iteration needs, and lazy state appears.

use std::ops::Range;

use crate::facts::{Changes, Facts};
use crate::unit::{Bytes, EventIndex, Index};

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
            (Some(first), Some(last)) => first.start.position()..last.end.position(),
            _ => 0..facts.trace.events.len(),
        };
        let peak = Changes::default().peak_within(facts.timeline, events.clone());
        let peak_event = reaching(facts, &events, peak);
        Steady { events, peak, peak_event }
    }
}

/// The first event of a range after which so many bytes are in use.
fn reaching(facts: &Facts, events: &Range<usize>, peak: Bytes) -> Option<EventIndex> {
    let mut level = facts.timeline.requested_at_start;
    for (at, id) in facts.timeline.allocation_of.iter().enumerate().take(events.end) {
        let Some(one) = id.and_then(|id| facts.timeline.allocation(id)) else { continue };
        let here = EventIndex::at(at);
        if one.alloc == here {
            level += one.bytes;
        } else if one.free == here {
            level -= one.bytes;
        }
        if at >= events.start && level >= peak {
            return here;
        }
    }
    None
}
