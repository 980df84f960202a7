//! At which addresses the driver puts segments.
//!
//! In: the driver's calls of a recording. Out: addresses for calls that nobody recorded. Where PyTorch takes the lowest of
//! several equally large free blocks, they decide which. What is here was read off recordings of H200 GPUs (CUDA 13) and is
//! no promise of NVIDIA's: the driver takes addresses from the system in chunks of whole 32 MiB and puts each segment
//! at the lowest free place of those that it has; a chunk that is empty goes back; the system gives new ones from high to low, first
//! where there is room again. A recording in which segments do not begin at such multiples was made with a driver
//! that asks the system for each segment, 2 MiB apart.
//!
//! Where it can fail: the system hands the same addresses to others, too, and the driver puts things of its own between.
//! What a recording shows of that is kept in mind: a chunk that lay elsewhere than it should, or was larger, is put there
//! again when the next one of its size is asked for, and a place in a chunk that nobody asked for is there from that event
//! on.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

use super::ranges::{cut, join};
use crate::snapshot::{Action, Event, Segment};

/// The unit of chunks.
const CHUNK: u64 = 32 << 20;
/// The unit where there are none.
const SEGMENT: u64 = 2 << 20;
/// Only segments of at least this size tell the unit: smaller ones share chunks.
const TELLING: u64 = 10 << 20;
/// By chance one in 16 segments begins at a multiple of 32 MiB; in recordings of GPUs more than half of them do.
const ALIGNED: f64 = 0.25;
/// Where addresses of a process end; the first chunk that nothing is known of lies below.
const TOP: u64 = 1 << 47;
/// No segment and no address of one is larger.
const MOST: u64 = 1 << 48;
/// At most so many places are looked at for one segment; programs have some dozens.
const MOST_PLACES: usize = 1000;

/// What a recording shows of its driver.
#[derive(Debug, Clone, Default)]
pub(super) struct Habits {
    unit: u64,
    /// Ranges that were held before the first event.
    held_at_start: Vec<(u64, u64)>,
    /// Places in chunks that nobody asked for: start, end, and the position of the event from which on they are there.
    found: Vec<(u64, u64, usize)>,
    /// Gaps that something else took, likewise.
    taken: Vec<(u64, u64, usize)>,
    /// For each size the chunks that were asked for, in their order: start and end, if they are not what they should be.
    chunks: FxHashMap<u64, Vec<Option<(u64, u64)>>>,
}

/// What a chunk is known by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ChunkIdentity {
    /// It was held before the first event.
    Held,
    /// It was found: by its place among those.
    Found(usize),
    /// It was asked for: by its size, and by its place among those of that size.
    Asked(u64, usize),
}

impl Habits {
    /// Reads them off the driver's calls.
    pub(super) fn of(events: &[Event], at_start: &[(Segment, u16)]) -> Habits {
        let fixed = at_start.iter().map(|(segment, _)| segment).filter(|segment| !segment.expandable);
        let range =
            |segment: &Segment| (segment.address, segment.address.saturating_add(segment.total_size.get()));
        let held_at_start: Vec<(u64, u64)> =
            fixed.map(range).filter(|(start, end)| start < end && *end < MOST).collect();
        let mut habits = Habits { unit: unit(events), held_at_start, ..Habits::default() };
        let mut space = Addresses::new(habits.clone());
        let mut calls = Vec::new();
        for (position, event) in events.iter().enumerate() {
            let (address, size) = (event.address, event.size.get());
            if size == 0 || address.saturating_add(size) >= MOST {
                continue;
            }
            match event.action {
                Action::SegmentAlloc => {
                    habits.pass_over(&mut space, address, size, position);
                    let fresh =
                        !space.take_at(address, size) && habits.learn(&mut space, address, size, &calls);
                    calls.push(SegmentRequest { position, address, size, fresh });
                }
                Action::SegmentFree => space.give(address, size),
                _ => {}
            }
        }
        habits.found.sort_by_key(|found| found.2);
        habits
    }

    /// Lower gaps that hold a segment, and where it was not put: something else lies there.
    fn pass_over(&mut self, space: &mut Addresses, address: u64, size: u64, position: usize) {
        let fits = |(start, end): &(&u64, &u64)| **start < address && **end - **start >= size;
        let passed: Vec<(u64, u64)> =
            space.gaps.iter().take(MOST_PLACES).filter(fits).map(|(start, end)| (*start, *end)).collect();
        for (start, end) in passed {
            let taken = end.min(address);
            cut(&mut space.gaps, start, end, start, taken);
            self.taken.push((start, taken, position));
        }
    }

    /// A segment that lies in no gap; says whether the system was asked for a chunk.
    fn learn(&mut self, space: &mut Addresses, address: u64, size: u64, calls: &[SegmentRequest]) -> bool {
        let mut fresh = false;
        let start = address - address % self.unit;
        let end = (address + size).next_multiple_of(self.unit);
        if space.is_vacant(start, end) && start == address {
            let asked = self.chunks.entry(end - start).or_default();
            let surprise = space.place(end - start) != start;
            asked.push(surprise.then_some((start, end)));
            space.occupy(start, end, ChunkIdentity::Asked(end - start, asked.len() - 1));
            fresh = true;
        } else if let Some(origin) = space.extend(address, end) {
            // It lies at the end of a chunk, and beyond: the chunk was larger.
            match origin {
                ChunkIdentity::Held => {}
                ChunkIdentity::Found(at) => self.found[at].1 = end,
                ChunkIdentity::Asked(length, at) => {
                    let start = end - space.chunk_length(address);
                    if let Some(chunk) = self.chunks.get_mut(&length).and_then(|chunks| chunks.get_mut(at)) {
                        *chunk = Some((start, end));
                    }
                }
            }
        } else if space.is_vacant(address, end) {
            // It begins within a chunk, so that was there already.
            space.occupy(address, end, ChunkIdentity::Found(self.found.len()));
            self.found.push((address, end, since(calls, address, end - address)));
        }
        space.take_at(address, size);
        fresh
    }
}

/// A call that got a segment.
struct SegmentRequest {
    position: usize,
    address: u64,
    size: u64,
    /// Whether the system was asked for a chunk.
    fresh: bool,
}

/// The position from which on a gap can have been there: had it been there before, an earlier segment would lie in it.
fn since(calls: &[SegmentRequest], address: u64, length: u64) -> usize {
    let passed = |call: &&SegmentRequest| call.size <= length && (call.fresh || call.address > address);
    calls.iter().rev().find(passed).map_or(0, |call| call.position + 1)
}

fn unit(events: &[Event]) -> u64 {
    let tells = |event: &&Event| event.action == Action::SegmentAlloc && event.size.get() >= TELLING;
    let telling = events.iter().filter(tells).count();
    let aligned = events.iter().filter(tells).filter(|event| event.address.is_multiple_of(CHUNK)).count();
    if aligned as f64 >= ALIGNED * telling as f64 { CHUNK } else { SEGMENT }
}

/// The addresses of a process, as far as its driver has to do with them.
#[derive(Debug)]
pub(super) struct Addresses {
    habits: Habits,
    /// What was taken from the system, by start.
    chunks: BTreeMap<u64, Chunk>,
    /// Free places in chunks: where each ends, by start.
    gaps: BTreeMap<u64, u64>,
    /// What was given back to the system: where it ends, by start.
    holes: BTreeMap<u64, u64>,
    /// The lowest address so far.
    lowest: u64,
    /// How many chunks of a size were asked for.
    asked: FxHashMap<u64, usize>,
    /// How many of the places that were found, and of those that were taken, count by now.
    shown: usize,
    hidden: usize,
}

#[derive(Debug, Clone, Copy)]
struct Chunk {
    end: u64,
    used: u64,
    origin: ChunkIdentity,
}

impl Addresses {
    /// As they were before the first event.
    pub(super) fn new(habits: Habits) -> Addresses {
        let mut space = Addresses {
            habits,
            chunks: BTreeMap::new(),
            gaps: BTreeMap::new(),
            holes: BTreeMap::new(),
            lowest: TOP,
            asked: FxHashMap::default(),
            shown: 0,
            hidden: 0,
        };
        let unit = space.habits.unit;
        for (start, end) in space.habits.held_at_start.clone() {
            let (from, to) = (start - start % unit, end.next_multiple_of(unit));
            if space.is_vacant(from, to) {
                space.occupy(from, to, ChunkIdentity::Held);
                cut(&mut space.gaps, from, to, from, start);
            }
            space.take_at(start, end - start);
        }
        space
    }

    /// The address of a new segment, at the event of a position.
    pub(super) fn take(&mut self, size: u64, position: usize) -> u64 {
        self.pass_to(position);
        let fits = |(start, end): &(&u64, &u64)| **end - **start >= size;
        if let Some((&start, _)) = self.gaps.iter().take(MOST_PLACES).find(fits) {
            self.take_at(start, size);
            return start;
        }
        let length = size.next_multiple_of(self.habits.unit);
        let asked = self.asked.entry(length).or_default();
        let at = *asked;
        *asked += 1;
        let known = self.habits.chunks.get(&length).and_then(|chunks| chunks.get(at).copied().flatten());
        let known = known.filter(|(start, end)| self.is_vacant(*start, *end));
        let (start, end) = known.unwrap_or_else(|| {
            let start = self.place(length);
            (start, start + length)
        });
        self.occupy(start, end, ChunkIdentity::Asked(length, at));
        self.take_at(start, size);
        start
    }

    /// Takes a segment back.
    pub(super) fn give(&mut self, address: u64, size: u64) {
        let chunk = self.chunks.range_mut(..=address).next_back();
        let Some((&start, chunk)) = chunk.filter(|(_, chunk)| address < chunk.end) else { return };
        chunk.used = chunk.used.saturating_sub(size);
        let Chunk { end, used, origin } = *chunk;
        if used == 0 && matches!(origin, ChunkIdentity::Asked(..)) {
            self.chunks.remove(&start);
            let inside: Vec<u64> = self.gaps.range(start..end).map(|(gap, _)| *gap).collect();
            for gap in inside {
                self.gaps.remove(&gap);
            }
            join(&mut self.holes, start, end, (0, u64::MAX));
        } else {
            join(&mut self.gaps, address, (address + size).min(end), (start, end));
        }
    }

    /// What changed up to the event of a position without being asked for.
    fn pass_to(&mut self, position: usize) {
        while let Some(&(start, end, _)) = self.habits.found.get(self.shown).filter(|one| one.2 <= position) {
            if self.is_vacant(start, end) {
                self.occupy(start, end, ChunkIdentity::Found(self.shown));
            }
            self.shown += 1;
        }
        while let Some(&(start, end, _)) = self.habits.taken.get(self.hidden).filter(|one| one.2 <= position)
        {
            self.take_at(start, end - start);
            self.hidden += 1;
        }
    }

    /// Makes the chunk larger that ends in a free place at or around an address, if nothing lies behind it.
    fn extend(&mut self, address: u64, end: u64) -> Option<ChunkIdentity> {
        let (&start, chunk) = self.chunks.range(..=address).next_back()?;
        let (old, origin) = (chunk.end, chunk.origin);
        let touches =
            address == old || self.gaps.range(..=address).next_back().is_some_and(|gap| *gap.1 == old);
        if address > old || end <= old || !touches || !self.is_vacant(old, end) {
            return None;
        }
        self.chunks.insert(start, Chunk { end, ..*chunk });
        join(&mut self.gaps, old, end, (start, end));
        Some(origin)
    }

    /// The length of the chunk that holds an address.
    fn chunk_length(&self, address: u64) -> u64 {
        let chunk = self.chunks.range(..=address).next_back();
        chunk.map_or(0, |(start, chunk)| chunk.end - start)
    }

    /// Takes a certain place, if it lies in a gap.
    fn take_at(&mut self, address: u64, size: u64) -> bool {
        let Some((&start, &end)) = self.gaps.range(..=address).next_back() else { return false };
        if end < address.saturating_add(size) {
            return false;
        }
        cut(&mut self.gaps, start, end, address, address + size);
        if let Some((_, chunk)) = self.chunks.range_mut(..=address).next_back() {
            chunk.used += size;
        }
        true
    }

    /// Where the system should put a new chunk: at the end of the highest hole that holds it, or below everything.
    fn place(&self, length: u64) -> u64 {
        let mut holes = self.holes.iter().rev().take(MOST_PLACES);
        let fit = holes.find(|(start, end)| **end - **start >= length);
        fit.map_or_else(|| self.lowest.saturating_sub(length), |(_, end)| end - length)
    }

    fn is_vacant(&self, start: u64, end: u64) -> bool {
        let below = self.chunks.range(..end).next_back();
        below.is_none_or(|(_, chunk)| chunk.end <= start)
    }

    /// Takes a chunk from the system; all of it is free.
    fn occupy(&mut self, start: u64, end: u64, origin: ChunkIdentity) {
        if let Some((&hole, &until)) = self.holes.range(..=start).next_back()
            && end <= until
        {
            cut(&mut self.holes, hole, until, start, end);
        }
        self.chunks.insert(start, Chunk { end, used: 0, origin });
        self.gaps.insert(start, end);
        self.lowest = self.lowest.min(start);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;
    use crate::unit::Bytes;

    fn event(action: Action, address: u64, mebibytes: u64) -> Event {
        testing::event(action, address, Bytes::MIB.times(mebibytes))
    }

    #[test]
    fn segments_share_chunks_and_empty_chunks_go_back() {
        let mut space = Addresses::new(Habits { unit: CHUNK, ..Habits::default() });
        let first = space.take(20 << 20, 0);
        assert_eq!(first, TOP - CHUNK);
        assert_eq!(space.take(12 << 20, 0), first + (20 << 20), "the rest of the chunk");
        let second = space.take(2 << 20, 0);
        assert_eq!(second, first - CHUNK, "chunks come from high to low");
        space.give(first, 20 << 20);
        assert_eq!(space.take(40 << 20, 0), second - 2 * CHUNK, "a chunk that is in use stays");
        space.give(first + (20 << 20), 12 << 20);
        assert_eq!(space.take(32 << 20, 0), first, "an empty one is the system's again");
    }

    #[test]
    fn where_a_recording_surprised_it_is_kept_in_mind() {
        let (alloc, free) = (Action::SegmentAlloc, Action::SegmentFree);
        let start = 0x7000_0000_0000;
        // The second chunk lies far above the first, where nothing said that it would.
        let events = [event(alloc, start, 32), event(alloc, start + 64 * CHUNK, 64), event(free, start, 32)];
        let mut space = Addresses::new(Habits::of(&events, &[]));
        assert_eq!(space.take(32 << 20, 0), start);
        assert_eq!(space.take(64 << 20, 1), start + 64 * CHUNK);
    }

    #[test]
    fn segments_off_the_chunks_tell_of_a_driver_without_them() {
        let at = |number: u64| event(Action::SegmentAlloc, 0x7000_0020_0000 + number * (22 << 20), 20);
        let events: Vec<Event> = (0..8).map(at).collect();
        assert_eq!(unit(&events), SEGMENT);
        assert_eq!(unit(&[event(Action::SegmentAlloc, 0x7000_0000_0000, 20)]), CHUNK);
    }
}
