//! The segments of a device as they stood after some event.
//!
//! In: the final segments, the events, the lifetimes. Out: the segments at the cut, tiled with blocks. The driver's calls
//! after the cut are undone, from the last to the first; blocks in use are the allocations alive at the cut, as large as
//! the replay of the allocator says; what lies between them is free.
//!
//! A segment that the driver got back after the cut is in no list: its stream and its pool are those of the event, and
//! whether it served small requests is told by its size (see [`is_small`]).

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

use super::Replay;
use super::tuning::SMALL_SEGMENT;
use crate::snapshot::{Action, Block, BlockState, Event, Segment, Snapshot};
use crate::timeline::Timeline;
use crate::unit::{Bytes, Index, StackId};

/// The pages of the large pool's expandable segments (`kLargeBuffer`).
const LARGE_PAGE: u64 = 20 << 20;

/// Blocks in use that lie in no segment, counted: the events and the segments do not belong together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Homeless(pub usize);

/// The segments after the first `cut` events, tiled with the blocks in use and the free pieces between them. What lies free
/// next to free memory is one piece.
///
/// # Errors
/// Where blocks are in use that no segment holds.
pub fn segments_at(
    snapshot: &Snapshot,
    timeline: &Timeline,
    replay: &Replay,
    cut: usize,
) -> Result<Vec<Segment>, Homeless> {
    match tiled_segments_at(snapshot, timeline, replay, cut) {
        (segments, 0) => Ok(segments),
        (_, homeless) => Err(Homeless(homeless)),
    }
}

/// The same, and how many blocks in use no segment holds.
pub fn tiled_segments_at(
    snapshot: &Snapshot,
    timeline: &Timeline,
    replay: &Replay,
    cut: usize,
) -> (Vec<Segment>, usize) {
    let mut segments = bare_segments_at(snapshot, timeline, cut);
    let mut blocks = blocks_at(timeline, replay, cut);
    for segment in &mut segments {
        segment.blocks = tile(segment, &mut blocks);
    }
    (segments, blocks.len())
}

/// The segments after the first `cut` events by address, without their blocks.
pub(super) fn bare_segments_at(snapshot: &Snapshot, timeline: &Timeline, cut: usize) -> Vec<Segment> {
    let position = timeline.device.position();
    let events = snapshot.devices.get(position).map_or(&[][..], |trace| &trace.events);
    let (before, after) = events.split_at_checked(cut).unwrap_or((events, &[]));
    let mut held = Held::at_the_end(snapshot, position, before);
    for event in after.iter().rev() {
        held.undo(snapshot, event);
    }
    let mut segments: Vec<Segment> = held.fixed.into_values().chain(held.pages.into_values()).collect();
    segments.sort_by_key(|segment| segment.address);
    segments
}

/// What the allocator holds from the driver, by address.
struct Held {
    device: i32,
    fixed: BTreeMap<u64, Segment>,
    /// Mapped ranges of expandable segments.
    pages: BTreeMap<u64, Segment>,
    /// The driver call that got what lies at an address: how much, and the stack.
    calls: FxHashMap<u64, (Bytes, Option<StackId>)>,
}

impl Held {
    fn at_the_end(snapshot: &Snapshot, ordinal: usize, before: &[Event]) -> Held {
        let bare = |segment: &Segment| Segment { blocks: Vec::new(), ..segment.clone() };
        let (pages, fixed): (Vec<Segment>, Vec<Segment>) =
            snapshot.segments_of(ordinal).map(bare).partition(|segment| segment.expandable);
        let calls = before
            .iter()
            .filter(|event| matches!(event.action, Action::SegmentAlloc | Action::SegmentMap))
            .map(|event| (event.address, (event.size, event.stack)));
        let by_address = |all: Vec<Segment>| all.into_iter().map(|one| (one.address, one)).collect();
        Held {
            device: i32::try_from(ordinal).unwrap_or(i32::MAX),
            fixed: by_address(fixed),
            pages: by_address(pages),
            calls: calls.collect(),
        }
    }

    fn undo(&mut self, snapshot: &Snapshot, event: &Event) {
        match event.action {
            Action::SegmentAlloc => {
                self.fixed.remove(&event.address);
            }
            Action::SegmentFree => {
                self.fixed.insert(event.address, self.vanished(snapshot, event));
            }
            Action::SegmentMap => self.unmap(event.address, event.size),
            Action::SegmentUnmap => self.map(self.vanished(snapshot, event)),
            _ => {}
        }
    }

    /// A segment of which only its end is recorded.
    fn vanished(&self, snapshot: &Snapshot, event: &Event) -> Segment {
        let expandable = event.action == Action::SegmentUnmap;
        let call = self.calls.get(&event.address).copied();
        Segment {
            device: self.device,
            address: event.address,
            total_size: event.size,
            stream: event.stream,
            small_pool: is_small(call.map_or(event.size, |(size, _)| size), expandable),
            pool: snapshot.particulars_of(event).pool.unwrap_or_default(),
            expandable,
            stack: call.and_then(|(_, stack)| stack),
            blocks: Vec::new(),
        }
    }

    /// Takes pages away from the range that holds them.
    fn unmap(&mut self, address: u64, size: Bytes) {
        let Some((&start, range)) = self.pages.range(..=address).next_back() else { return };
        let (end, gap_end) = (end(range), address.saturating_add(size.get()));
        if address >= end {
            return;
        }
        let Some(range) = self.pages.remove(&start) else { return };
        for (from, to) in [(start, address), (gap_end, end)] {
            if from < to {
                let part = Segment { address: from, total_size: Bytes(to - from), ..range.clone() };
                self.pages.insert(from, part);
            }
        }
    }

    /// Gives pages back, joined with the ranges of the same pool that they touch.
    fn map(&mut self, mut pages: Segment) {
        let alike = |one: &Segment, other: &Segment| (one.stream, one.pool) == (other.stream, other.pool);
        let below = self.pages.range(..pages.address).next_back();
        let below = below.filter(|(_, range)| end(range) == pages.address && alike(range, &pages));
        if let Some(range) = below.map(|(&at, _)| at).and_then(|at| self.pages.remove(&at)) {
            pages = Segment { total_size: range.total_size + pages.total_size, ..range };
        }
        let above = self.pages.get(&end(&pages)).filter(|range| alike(range, &pages)).map(|one| one.address);
        if let Some(range) = above.and_then(|at| self.pages.remove(&at)) {
            pages.total_size += range.total_size;
            pages.small_pool = range.small_pool;
        }
        self.pages.insert(pages.address, pages);
    }
}

fn end(segment: &Segment) -> u64 {
    segment.address.saturating_add(segment.total_size.get())
}

/// Whether a driver call served the small pool: its segments are 2 MiB, and its pages are mapped one by one, while those of
/// the large pool come in multiples of 20 MiB (`c10/cuda/CUDACachingAllocator.cpp`).
fn is_small(size: Bytes, expandable: bool) -> bool {
    if expandable { !size.get().is_multiple_of(LARGE_PAGE) } else { size == Bytes(SMALL_SEGMENT) }
}

/// The blocks in use after the first `cut` events, by address.
fn blocks_at(timeline: &Timeline, replay: &Replay, cut: usize) -> BTreeMap<u64, Block> {
    let mut blocks = BTreeMap::new();
    for (id, allocation) in timeline.iter() {
        let born = allocation.alloc.is_none_or(|at| at.position() < cut);
        let over = allocation.free.is_some_and(|at| at.position() < cut);
        if !born || over {
            continue;
        }
        let given_back = allocation.free_requested.is_some_and(|at| at.position() < cut);
        let block = Block {
            address: allocation.address,
            size: replay.block_sizes.get(id.position()).copied().unwrap_or(allocation.bytes),
            requested: allocation.bytes,
            stack: allocation.stack,
            state: if given_back { BlockState::PendingFree } else { BlockState::Allocated },
        };
        blocks.insert(block.address, block);
    }
    blocks
}

/// The blocks of a segment, taken from those that are left, and the free ones between them.
fn tile(segment: &Segment, blocks: &mut BTreeMap<u64, Block>) -> Vec<Block> {
    let limit = end(segment);
    let within: Vec<u64> = blocks.range(segment.address..limit).map(|(address, _)| *address).collect();
    let mut tiles = Vec::with_capacity(2 * within.len() + 1);
    let mut free_from = segment.address;
    let mut inside = within.into_iter().filter_map(|address| blocks.remove(&address)).peekable();
    while let Some(mut block) = inside.next() {
        tiles.extend(free(free_from, block.address));
        // The size of a block that was born before the recording and freed in it is not known exactly.
        let next = inside.peek().map_or(limit, |next| next.address);
        block.size = block.size.min(Bytes(next - block.address));
        free_from = block.address + block.size.get();
        tiles.push(block);
    }
    tiles.extend(free(free_from, limit));
    tiles
}

fn free(from: u64, to: u64) -> Option<Block> {
    (from < to).then(|| Block {
        address: from,
        size: Bytes(to - from),
        requested: Bytes::ZERO,
        stack: None,
        state: BlockState::Inactive,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::snapshot::BlockState::{Allocated, Inactive, PendingFree};
    use crate::snapshot::{DeviceTrace, Particulars};
    use crate::testing;
    use crate::unit::DeviceIndex;

    const MIB: u64 = 1 << 20;
    const BASE: u64 = 1 << 40;

    fn event(action: Action, address: u64, size: u64) -> Event {
        Event { stream: 3, ..testing::event(action, BASE + address, Bytes(size)) }
    }

    /// The segments after each number of events, where none is left at the end.
    fn segments(events: &[Event], cut: usize) -> Result<Vec<Segment>, Homeless> {
        let mut snapshot = Snapshot::default();
        snapshot.particulars.push(Particulars { pool: Some((0, 7)), ..Particulars::default() });
        snapshot.devices.push(DeviceTrace { events: events.to_vec() });
        let timeline = Timeline::of(&snapshot, DeviceIndex::at(0).unwrap());
        segments_at(&snapshot, &timeline, &Replay::of(&snapshot, &timeline), cut)
    }

    fn tiles(segment: &Segment) -> Vec<(u64, u64, BlockState)> {
        let blocks = segment.blocks.iter();
        blocks.map(|block| (block.address - BASE, block.size.get(), block.state)).collect()
    }

    #[test]
    fn a_segment_that_vanished_later_is_there_at_the_cut() {
        let events = [
            event(Action::SegmentAlloc, 0, 20 * MIB),
            event(Action::Alloc, 0, 5 * MIB),
            event(Action::Alloc, 5 * MIB, 2 * MIB),
            event(Action::FreeRequested, 0, 5 * MIB),
            event(Action::FreeCompleted, 0, 5 * MIB),
            event(Action::FreeRequested, 5 * MIB, 2 * MIB),
            event(Action::FreeCompleted, 5 * MIB, 2 * MIB),
            event(Action::SegmentFree, 0, 20 * MIB),
        ];
        let at = |cut| segments(&events, cut).unwrap();
        assert_eq!(at(0), []);
        assert_eq!(at(events.len()), []);
        let [segment] = &at(5)[..] else { panic!("one segment") };
        let expected = [(0, 5 * MIB, Inactive), (5 * MIB, 2 * MIB, Allocated), (7 * MIB, 13 * MIB, Inactive)];
        assert_eq!(tiles(segment), expected);
        assert_eq!((segment.stream, segment.pool, segment.small_pool), (3, (0, 7), false));
        assert_eq!(tiles(&at(6)[0])[1], (5 * MIB, 2 * MIB, PendingFree));
        assert_eq!(tiles(&at(7)[0]), [(0, 20 * MIB, Inactive)], "free neighbours are one block");
    }

    #[test]
    fn pages_are_mapped_and_unmapped_backwards() {
        let events = [
            event(Action::SegmentMap, 0, 20 * MIB),
            event(Action::SegmentMap, 20 * MIB, 20 * MIB),
            event(Action::SegmentMap, 1 << 30, 2 * MIB),
            event(Action::SegmentUnmap, 20 * MIB, 20 * MIB),
            event(Action::SegmentUnmap, 0, 20 * MIB),
            event(Action::SegmentUnmap, 1 << 30, 2 * MIB),
        ];
        let ranges = |cut| -> Vec<(u64, u64, bool)> {
            let all = segments(&events, cut).unwrap();
            all.iter().map(|one| (one.address - BASE, one.total_size.get(), one.small_pool)).collect()
        };
        assert_eq!(ranges(1), [(0, 20 * MIB, false)]);
        assert_eq!(ranges(3), [(0, 40 * MIB, false), (1 << 30, 2 * MIB, true)]);
        assert_eq!(ranges(4), [(0, 20 * MIB, false), (1 << 30, 2 * MIB, true)]);
        assert_eq!(ranges(5), [(1 << 30, 2 * MIB, true)]);
        assert_eq!(ranges(6), []);
    }

    #[test]
    fn very_many_segments_take_no_square() {
        let all = |action, size| (0..100_000).map(move |at| event(action, at << 22, size));
        let mut events: Vec<Event> =
            all(Action::SegmentAlloc, 2 * MIB).chain(all(Action::Alloc, MIB)).collect();
        let cut = events.len();
        events.extend(all(Action::FreeRequested, MIB).chain(all(Action::FreeCompleted, MIB)));
        events.extend(all(Action::SegmentFree, 2 * MIB));
        let found = segments(&events, cut).unwrap();
        assert_eq!(found.len(), 100_000);
        assert!(found.iter().all(|one| tiles(one).len() == 2));
    }

    #[test]
    fn blocks_without_a_segment_are_refused() {
        let homeless = segments(&[event(Action::Alloc, 0, MIB)], 1);
        assert_eq!(homeless, Err(Homeless(1)));
    }
}
