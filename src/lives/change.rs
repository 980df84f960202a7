//! What memory would be if some lifetimes were other than they were: the what-if behind every saving.
//!
//! In: a timeline and changed ends. Out: the peak of requested bytes, computed again, and what stands at the ends of turns. The
//! saving is often less than the guilty bytes, because the new peak lies elsewhere.

use std::ops::Range;

use super::{Curve, Turns};
use crate::timeline::{Allocation, Shift, Shifts, Timeline};
use crate::unit::{AllocationId, Bytes, EventIndex, Index};

/// What is to become of a lifetime.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// It never was.
    Remove,
    /// It ends with this event, sooner or later than it did.
    EndAt(EventIndex),
}

/// Changed lifetimes; of several changes of one allocation the last counts.
#[derive(Debug, Clone, Default)]
pub struct Changes {
    of: Vec<(AllocationId, Change)>,
}

impl Changes {
    /// None of some allocations ever was.
    pub fn removing(allocations: impl IntoIterator<Item = AllocationId>) -> Changes {
        Changes { of: allocations.into_iter().map(|id| (id, Change::Remove)).collect() }
    }

    /// Notes a change; a later one for the same allocation counts.
    pub fn set(&mut self, allocation: AllocationId, change: Change) {
        self.of.push((allocation, change));
    }

    /// Whether nothing is changed.
    pub fn is_empty(&self) -> bool {
        self.of.is_empty()
    }

    /// The allocations that are changed; one may come several times.
    pub fn changed(&self) -> impl Iterator<Item = AllocationId> {
        self.of.iter().map(|(id, _)| *id)
    }

    /// Every allocation that is changed, once, by its id, with the change that counts.
    pub fn settled(&self) -> Vec<(AllocationId, Change)> {
        let mut changes = self.of.clone();
        // A stable order, the last change of an allocation first; and of equals the first is kept.
        changes.reverse();
        changes.sort_by_key(|(id, _)| *id);
        changes.dedup_by_key(|(id, _)| *id);
        changes
    }

    /// What the changes do to the curve, of those allocations that `counts` accepts.
    pub fn shifts(&self, timeline: &Timeline, counts: impl Fn(AllocationId) -> bool) -> Shifts {
        let changes = self.settled();
        let changed = || {
            let counting = changes.iter().filter(|(id, _)| counts(*id));
            counting.filter_map(|(id, change)| timeline.allocation(*id).map(|one| (one, *change)))
        };
        // Each by itself stands in the order of its events, or nearly.
        Shifts::of(changed().map(gone).chain(changed().filter_map(back)))
    }

    /// The peak of requested bytes with the changes made.
    pub fn peak(&self, timeline: &Timeline) -> Bytes {
        self.peak_within(timeline, 0..timeline.allocation_of.len())
    }

    /// The highest requested bytes after any event of a range of positions, with the changes made. A range from 0 on
    /// counts what stands before the first event, too.
    pub fn peak_within(&self, timeline: &Timeline, range: Range<usize>) -> Bytes {
        timeline.levels.highest_with(range, &self.shifts(timeline, |_| true))
    }

    /// How far the peak falls within a range of positions.
    pub fn saving_within(&self, timeline: &Timeline, range: Range<usize>) -> Bytes {
        timeline.levels.highest(range.clone()) - self.peak_within(timeline, range)
    }

    /// How far what the program holds at an end of a turn falls, at that end where it falls most.
    pub fn saving_between(&self, timeline: &Timeline, turns: &Turns) -> Bytes {
        // From which end on the bytes fall, or no longer do.
        let mut falls: Vec<(usize, i128)> = Vec::new();
        let mut count =
            |ends: Range<usize>, bytes: i128| falls.extend([(ends.start, bytes), (ends.end, -bytes)]);
        for (id, change) in self.settled() {
            let Some(one) = timeline.allocation(id) else { continue };
            let bytes = i128::from(one.bytes.get());
            count(turns.held(one), bytes);
            if let Change::EndAt(event) = change {
                count(turns.held_until(one, event), -bytes);
            }
        }
        falls.sort_unstable_by_key(|(end, _)| *end);
        let mut fall = 0;
        let each = falls.chunk_by(|one, next| one.0 == next.0).map(|at_end| {
            fall += at_end.iter().map(|(_, by)| by).sum::<i128>();
            fall
        });
        Bytes(u64::try_from(each.max().unwrap_or(0).max(0)).unwrap_or(u64::MAX))
    }

    /// The most that the changes take away at any one moment.
    pub fn at_once(&self, timeline: &Timeline) -> Bytes {
        let mut gone = Curve::default();
        for (id, change) in self.settled() {
            let Some(one) = timeline.allocation(id) else { continue };
            let born = one.alloc.map_or(0, Index::position);
            let from = match change {
                Change::Remove => born,
                Change::EndAt(event) => event.position().max(born),
            };
            let until = one.free.map_or(usize::MAX, Index::position);
            if from < until {
                gone.add(from, Some(until), one.bytes);
            }
        }
        gone.highest().0
    }

    /// The changes of both; those of `other` count where both change the same allocation.
    #[must_use]
    pub fn and(mut self, other: &Changes) -> Changes {
        self.of.extend_from_slice(&other.of);
        self
    }

    /// How far the peak falls.
    pub fn saving(&self, timeline: &Timeline) -> Bytes {
        timeline.peak_requested.bytes - self.peak(timeline)
    }
}

/// What a change takes from the curve: the bytes are gone from the new end on.
fn gone((allocation, change): (&Allocation, Change)) -> Shift {
    let born = allocation.alloc;
    let from = match change {
        Change::Remove => born,
        Change::EndAt(event) => Some(born.map_or(event, |born| born.max(event))),
    };
    Shift { from: from.map(Index::position), bytes: allocation.bytes, more: false }
}

/// What a change gives back to the curve: the bytes count as they did from the old end on.
fn back((allocation, _): (&Allocation, Change)) -> Option<Shift> {
    let old = allocation.free?;
    Some(Shift { from: Some(old.position()), bytes: allocation.bytes, more: true })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program::LoopRun;
    use crate::testing::{self, allocation, at};
    use crate::unit::FrameId;

    /// 10 bytes for good, 4 bytes early on, 8 bytes late: the peak is 18.
    fn timeline() -> Timeline {
        let allocations = vec![
            allocation(10, Some(0), None),
            allocation(4, Some(1), Some(2)),
            allocation(8, Some(3), Some(4)),
        ];
        testing::timeline(allocations, 0, &[10, 14, 10, 18, 10])
    }

    #[test]
    fn without_changes_the_peak_is_the_recorded_one() {
        assert_eq!(Changes::default().peak(&timeline()), Bytes(18));
    }

    #[test]
    fn the_new_peak_may_lie_elsewhere() {
        let mut changes = Changes::default();
        changes.set(AllocationId::at(0).unwrap(), Change::EndAt(at(2)));
        // Ten bytes gone before the late eight: what remains is the early peak of 14, not 18 - 10.
        assert_eq!(changes.saving(&timeline()), Bytes(4));
        assert_eq!(changes.at_once(&timeline()), Bytes(10), "whatever else stands there");
    }

    #[test]
    fn a_removed_lifetime_never_counts() {
        let mut changes = Changes::default();
        changes.set(AllocationId::at(0).unwrap(), Change::Remove);
        assert_eq!(changes.peak(&timeline()), Bytes(8));
    }

    #[test]
    fn between_turns_falls_what_stood_at_an_end_of_one() {
        let starts = [0, 2, 4].into_iter().map(at).collect();
        let turns = Turns::of_run(&LoopRun { frame: FrameId::at(0).unwrap(), starts, end: at(5) });
        let falls = |id: usize, change: Change| {
            let mut changes = Changes::default();
            changes.set(AllocationId::at(id).unwrap(), change);
            changes.saving_between(&timeline(), &turns)
        };
        assert_eq!(falls(0, Change::Remove), Bytes(10));
        assert_eq!(falls(0, Change::EndAt(at(3))), Bytes(10), "it stands at the later ends");
        assert_eq!(falls(0, Change::EndAt(at(4))), Bytes(10));
        assert_eq!(falls(1, Change::EndAt(at(3))), Bytes::ZERO, "it would stand for longer");
        assert_eq!(falls(2, Change::Remove), Bytes(8));
    }
}
