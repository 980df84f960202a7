//! A small model of the caching allocator: where blocks lie, and what the driver was asked for.

use std::collections::{BTreeMap, BTreeSet};

/// The unit of block sizes.
const ROUND: u64 = 512;
/// The first address, and the distance between segments.
const BASE: u64 = 0x7f00_0000_0000;
const SPACING: u64 = 1 << 34;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    Allocated,
    Pending,
    Free,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Block {
    pub(crate) size: u64,
    pub(crate) requested: u64,
    pub(crate) state: State,
}

/// What blocks may share: memory of one pool and stream on one device.
pub(crate) type Home = (usize, usize, u64);

#[derive(Debug)]
pub(crate) struct Segment {
    pub(crate) home: Home,
    pub(crate) size: u64,
    pub(crate) blocks: BTreeMap<u64, Block>,
}

/// All segments, by address.
#[derive(Debug, Default)]
pub(crate) struct Allocator {
    pub(crate) segments: BTreeMap<u64, Segment>,
    /// The free blocks: home, size and address.
    free: BTreeSet<(Home, u64, u64)>,
    made: u64,
}

impl Allocator {
    /// A block of at least this size, and the segment that had to be made for it.
    pub(crate) fn take(&mut self, home: Home, requested: u64) -> (u64, Option<(u64, u64)>) {
        let size = requested.max(1).next_multiple_of(ROUND);
        let best = self.free.range((home, size, 0)..).next().filter(|found| found.0 == home);
        let (address, made) = match best {
            Some(&(.., address)) => (address, None),
            None => {
                let made = self.grow(home, size);
                (made.0, Some(made))
            }
        };
        self.split(address, size, requested);
        (address, made)
    }

    fn grow(&mut self, home: Home, size: u64) -> (u64, u64) {
        let total = match size {
            0..=0x10_0000 => 2 << 20,
            0x10_0001..=0xa0_0000 => 20 << 20,
            _ => size.next_multiple_of(2 << 20),
        };
        self.made += 1;
        let address = BASE + self.made * SPACING;
        let whole = Block { size: total, requested: 0, state: State::Free };
        let blocks = BTreeMap::from([(address, whole)]);
        self.segments.insert(address, Segment { home, size: total, blocks });
        self.free.insert((home, total, address));
        (address, total)
    }

    fn segment_of(&mut self, address: u64) -> Option<&mut Segment> {
        self.segments.range_mut(..=address).next_back().map(|(_, segment)| segment)
    }

    pub(crate) fn request_free(&mut self, address: u64) {
        let block = self.segment_of(address).and_then(|segment| segment.blocks.get_mut(&address));
        if let Some(block) = block {
            block.state = State::Pending;
        }
    }

    fn split(&mut self, address: u64, size: u64, requested: u64) {
        let Some(segment) = self.segment_of(address) else { return };
        let (home, is_small) = (segment.home, segment.size == 2 << 20);
        let Some(block) = segment.blocks.get_mut(&address) else { return };
        let whole = block.size;
        *block = Block { size: whole, requested, state: State::Allocated };
        let rest = whole - size;
        let least = if is_small { ROUND } else { (1 << 20) + 1 };
        if rest >= least {
            block.size = size;
            segment.blocks.insert(address + size, Block { size: rest, requested: 0, state: State::Free });
            self.free.insert((home, rest, address + size));
        }
        self.free.remove(&(home, whole, address));
    }

    /// Makes a block free, in one piece with its free neighbours.
    pub(crate) fn complete_free(&mut self, address: u64) {
        let Some(segment) = self.segment_of(address) else { return };
        let home = segment.home;
        let Some(block) = segment.blocks.remove(&address) else { return };
        let (mut start, mut size) = (address, block.size);
        let before = segment.blocks.range(..address).next_back().map(|(&at, block)| (at, *block));
        let after = segment.blocks.get(&(address + size)).map(|block| (address + size, *block));
        let neighbours = [before, after].into_iter().flatten();
        let merged: Vec<_> = neighbours.filter(|(_, block)| block.state == State::Free).collect();
        for (at, block) in &merged {
            segment.blocks.remove(at);
            start = start.min(*at);
            size += block.size;
        }
        segment.blocks.insert(start, Block { size, requested: 0, state: State::Free });
        for (at, block) in merged {
            self.free.remove(&(home, block.size, at));
        }
        self.free.insert((home, size, start));
    }

    /// Gives back the segments of a device that hold nothing.
    pub(crate) fn release(&mut self, device: usize) -> Vec<(u64, Segment)> {
        let unused = |segment: &Segment| segment.blocks.values().all(|block| block.state == State::Free);
        let released: Vec<_> =
            self.segments.extract_if(.., |_, segment| segment.home.0 == device && unused(segment)).collect();
        for (_, segment) in &released {
            for (&at, block) in &segment.blocks {
                self.free.remove(&(segment.home, block.size, at));
            }
        }
        released
    }
}
