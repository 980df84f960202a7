//! Which bytes of the device are held, and which of those are free: the holes, by address.

use std::collections::BTreeMap;

use super::rounding;
use super::tuning::Tuning;
use crate::unit::Bytes;

/// Where a hole lies. Holes of different segments never merge, even where the addresses touch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Home {
    /// A segment of its own driver call, by its first address.
    Segment { base: u64, small: bool },
    /// Pages of expandable segments, which grow in place.
    Expandable,
}

impl Home {
    fn is_fine(self) -> bool {
        !matches!(self, Home::Segment { small: false, .. })
    }
}

#[derive(Debug, Clone, Copy)]
struct Hole {
    end: u64,
    home: Home,
}

/// The holes of one device.
#[derive(Debug, Default)]
pub(super) struct Layout {
    holes: BTreeMap<u64, Hole>,
}

/// The extent of a block, and the hole it was cut from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Extent {
    pub(super) size: u64,
    home: Option<Home>,
}

impl Layout {
    /// Adds a free range and merges it with its neighbours.
    pub(super) fn release(&mut self, start: u64, size: u64, home: Home) {
        let mut end = start.saturating_add(size);
        if let Some(hole) = self.holes.get(&end).copied()
            && hole.home == home
        {
            self.holes.remove(&end);
            end = hole.end;
        }
        if let Some((_, hole)) = self.holes.range_mut(..start).next_back()
            && hole.end == start
            && hole.home == home
        {
            hole.end = end;
        } else if end > start {
            self.holes.insert(start, Hole { end, home });
        }
    }

    /// Takes a free range away (the driver got it back); whatever of it is no hole is passed over.
    pub(super) fn withdraw(&mut self, start: u64, size: u64) {
        let end = start.saturating_add(size);
        if let Some((before, hole)) = self.hole_at(start) {
            self.holes.remove(&before);
            self.keep(before, start, hole.home);
            self.keep(end, hole.end, hole.home);
        }
    }

    /// Cuts a block for a request out of the hole at its address, as the allocator splits.
    pub(super) fn take(&mut self, address: u64, requested: Bytes, tuning: &Tuning) -> Extent {
        let rounded = rounding::round(requested, tuning);
        let Some((before, hole)) = self.hole_at(address) else { return Extent { size: rounded, home: None } };
        let room = hole.end - address;
        let remainder = room.saturating_sub(rounded);
        let split = rounding::splits(rounded, remainder, hole.home.is_fine(), tuning);
        self.cut(before, hole, address, if split { rounded } else { room })
    }

    /// Cuts a block of a known size.
    pub(super) fn take_exactly(&mut self, address: u64, size: u64) -> Extent {
        match self.hole_at(address) {
            Some((before, hole)) => self.cut(before, hole, address, size.min(hole.end - address)),
            None => Extent { size, home: None },
        }
    }

    /// Whether a block that is cut at an address keeps a small remainder.
    pub(super) fn keeps_remainders(&self, address: u64) -> bool {
        self.hole_at(address).is_some_and(|(_, hole)| !hole.home.is_fine())
    }

    /// Gives a block back.
    pub(super) fn give_back(&mut self, address: u64, extent: Extent) {
        if let Some(home) = extent.home {
            self.release(address, extent.size, home);
        }
    }

    fn cut(&mut self, before: u64, hole: Hole, address: u64, size: u64) -> Extent {
        if before == address {
            self.holes.remove(&before);
        } else if let Some(hole) = self.holes.get_mut(&before) {
            hole.end = address;
        }
        self.keep(address + size, hole.end, hole.home);
        Extent { size, home: Some(hole.home) }
    }

    fn keep(&mut self, start: u64, end: u64, home: Home) {
        if start < end {
            self.holes.insert(start, Hole { end, home });
        }
    }

    fn hole_at(&self, address: u64) -> Option<(u64, Hole)> {
        let (&start, &hole) = self.holes.range(..=address).next_back()?;
        (address < hole.end).then_some((start, hole))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LARGE: Home = Home::Segment { base: 0, small: false };
    const MIB: u64 = 1 << 20;

    fn holes(layout: &Layout) -> Vec<(u64, u64)> {
        layout.holes.iter().map(|(start, hole)| (start / MIB, (hole.end - start) / MIB)).collect()
    }

    #[test]
    fn freed_blocks_merge_with_the_holes_beside_them() {
        let tuning = Tuning::default();
        let mut layout = Layout::default();
        layout.release(0, 20 * MIB, LARGE);
        let first = layout.take(0, Bytes(3 * MIB), &tuning);
        let second = layout.take(3 * MIB, Bytes(4 * MIB), &tuning);
        assert_eq!((first.size, second.size), (3 * MIB, 4 * MIB));
        layout.give_back(0, first);
        layout.give_back(3 * MIB, second);
        assert_eq!(holes(&layout), [(0, 20)]);
    }

    #[test]
    fn a_remainder_that_is_too_small_stays_with_the_block() {
        let mut layout = Layout::default();
        layout.release(0, 20 * MIB, LARGE);
        let block = layout.take(0, Bytes(19 * MIB + MIB / 2), &Tuning::default());
        assert_eq!((block.size, holes(&layout)), (20 * MIB, vec![]));
    }

    #[test]
    fn neighbouring_segments_stay_apart() {
        let mut layout = Layout::default();
        layout.release(0, 2 * MIB, LARGE);
        layout.release(2 * MIB, 2 * MIB, Home::Segment { base: 2 * MIB, small: false });
        layout.withdraw(2 * MIB, MIB);
        assert_eq!(holes(&layout), [(0, 2), (3, 1)]);
    }
}
