//! What the peak would be if some lifetimes were other than they were.
//!
//! In: a timeline and changed ends. Out: the peak of requested bytes, computed again. The saving is often less than the
//! guilty bytes, because the new peak lies elsewhere.

use std::ops::Range;

use rustc_hash::FxHashMap;

use crate::timeline::{Allocation, Timeline};
use crate::unit::{AllocationId, Bytes, EventIndex, Index};

/// What is to become of a lifetime.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// It never was.
    Remove,
    /// It ends with this event, sooner or later than it did.
    EndAt(EventIndex),
}

/// Changed lifetimes; each allocation at most once.
#[derive(Debug, Clone, Default)]
pub struct Changes {
    of: FxHashMap<AllocationId, Change>,
}

impl Changes {
    /// Notes a change; a later one for the same allocation counts.
    pub fn set(&mut self, allocation: AllocationId, change: Change) {
        self.of.insert(allocation, change);
    }

    /// Whether nothing is changed.
    pub fn is_empty(&self) -> bool {
        self.of.is_empty()
    }

    /// The peak of requested bytes with the changes made.
    pub fn peak(&self, timeline: &Timeline) -> Bytes {
        self.peak_within(timeline, 0..timeline.allocation_of.len())
    }

    /// The highest requested bytes after any event of a range of positions, with the changes made. A range from 0 on
    /// counts what stands before the first event, too.
    pub fn peak_within(&self, timeline: &Timeline, range: Range<usize>) -> Bytes {
        let events = timeline.allocation_of.len();
        let mut steps = vec![0_i128; events];
        let mut level: i128 = 0;
        for (id, allocation) in timeline.iter() {
            let change = self.of.get(&id).copied();
            if change == Some(Change::Remove) {
                continue;
            }
            let bytes = i128::from(allocation.bytes.get());
            match allocation.alloc.and_then(|born| steps.get_mut(born.position())) {
                Some(step) => *step += bytes,
                None => level += bytes,
            }
            if let Some(step) = end(allocation, change).and_then(|died| steps.get_mut(died.position())) {
                *step -= bytes;
            }
        }
        let mut peak = if range.start == 0 { level } else { 0 };
        for (at, step) in steps.into_iter().enumerate().take(range.end) {
            level += step;
            if at >= range.start {
                peak = peak.max(level);
            }
        }
        Bytes(u64::try_from(peak).unwrap_or(0))
    }

    /// How far the peak falls within a range of positions.
    pub fn saving_within(&self, timeline: &Timeline, range: Range<usize>) -> Bytes {
        Changes::default().peak_within(timeline, range.clone()) - self.peak_within(timeline, range)
    }

    /// The changes of both; those of `other` count where both change the same allocation.
    #[must_use]
    pub fn and(mut self, other: &Changes) -> Changes {
        self.of.extend(other.of.iter().map(|(id, change)| (*id, *change)));
        self
    }

    /// How far the peak falls.
    pub fn saving(&self, timeline: &Timeline) -> Bytes {
        timeline.peak_requested.bytes - self.peak(timeline)
    }
}

fn end(allocation: &Allocation, change: Option<Change>) -> Option<EventIndex> {
    match change {
        Some(Change::EndAt(event)) => Some(allocation.alloc.map_or(event, |born| born.max(event))),
        _ => allocation.free,
    }
}
