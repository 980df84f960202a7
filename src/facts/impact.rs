//! What the peak would be if some lifetimes were other than they were.
//!
//! In: a timeline and changed ends. Out: the peak of requested bytes, computed again. The saving is often less than the
//! guilty bytes, because the new peak lies elsewhere.

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
#[derive(Debug, Default)]
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
        let mut peak = level;
        for step in steps {
            level += step;
            peak = peak.max(level);
        }
        Bytes(u64::try_from(peak).unwrap_or(0))
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::timeline::Peak;
    use crate::unit::DeviceIndex;

    fn event(position: usize) -> EventIndex {
        EventIndex::at(position).unwrap()
    }

    fn allocation(bytes: u64, born: usize, died: Option<usize>) -> Allocation {
        Allocation {
            address: 0,
            bytes: Bytes(bytes),
            alloc: Some(event(born)),
            free_requested: None,
            free: died.map(event),
            stack: None,
            stream: 0,
        }
    }

    /// 10 bytes for good, 4 bytes early on, 8 bytes late: the peak is 18.
    fn timeline() -> Timeline {
        Timeline {
            device: DeviceIndex::at(0).unwrap(),
            allocations: vec![allocation(10, 0, None), allocation(4, 1, Some(2)), allocation(8, 3, Some(4))],
            allocation_of: vec![None; 5],
            requested_at_start: Bytes::ZERO,
            reserved_at_start: Bytes::ZERO,
            peak_requested: Peak { bytes: Bytes(18), event: Some(event(3)) },
            peak_reserved: Peak::default(),
            requested_at_end: Bytes(10),
            reserved_at_end: Bytes::ZERO,
            agreement: crate::timeline::Agreement::default(),
        }
    }

    #[test]
    fn without_changes_the_peak_is_the_recorded_one() {
        assert_eq!(Changes::default().peak(&timeline()), Bytes(18));
    }

    #[test]
    fn the_new_peak_may_lie_elsewhere() {
        let mut changes = Changes::default();
        changes.set(AllocationId::at(0).unwrap(), Change::EndAt(event(2)));
        // Ten bytes gone before the late eight: what remains is the early peak of 14, not 18 - 10.
        assert_eq!(changes.saving(&timeline()), Bytes(4));
    }

    #[test]
    fn a_removed_lifetime_never_counts() {
        let mut changes = Changes::default();
        changes.set(AllocationId::at(0).unwrap(), Change::Remove);
        assert_eq!(changes.peak(&timeline()), Bytes(8));
    }
}
