//! A driver for settings that nobody recorded.

use std::collections::BTreeMap;

use super::driver::Driver;
use super::tuning::Tuning;
use crate::unit::Bytes;

/// Addresses come from the system in pieces that are multiples of this (measured on recordings of an H200).
const CHUNK: u64 = 32 << 20;
/// Where addresses begin, from high to low.
const TOP: u64 = 1 << 47;
/// Ranges of expandable segments lie above all others, so far apart.
const RANGES: u64 = 1 << 48;

/// A driver with so much memory.
#[derive(Debug)]
pub(super) struct Imagined {
    capacity: Option<u64>,
    limit: Option<u64>,
    /// Addresses that belong to the process and hold no segment: where each gap ends, by its start.
    gaps: BTreeMap<u64, u64>,
    /// The lowest address so far.
    lowest: u64,
    ranges: u64,
}

impl Imagined {
    pub(super) fn new(capacity: Option<Bytes>, tuning: &Tuning) -> Imagined {
        let capacity = capacity.map(Bytes::get);
        let limit = capacity.filter(|_| tuning.memory_fraction < 1.0);
        let limit = limit.map(|capacity| Bytes::rounded((capacity as f64 * tuning.memory_fraction).floor()).get());
        Imagined { capacity, limit, gaps: BTreeMap::new(), lowest: TOP, ranges: 0 }
    }

    fn has(&self, size: u64, held: u64) -> bool {
        self.capacity.is_none_or(|capacity| held.saturating_add(size) <= capacity)
    }
}

impl Driver for Imagined {
    fn allows(&mut self, size: u64, held: u64) -> bool {
        self.limit.is_none_or(|limit| held.saturating_add(size) <= limit)
    }

    fn obtain(&mut self, size: u64, held: u64) -> Option<u64> {
        if !self.has(size, held) {
            return None;
        }
        let gap = self.gaps.iter().find(|(start, end)| *end - *start >= size);
        if let Some((start, end)) = gap.map(|(start, end)| (*start, *end)) {
            self.gaps.remove(&start);
            if start + size < end {
                self.gaps.insert(start + size, end);
            }
            return Some(start);
        }
        let chunk = size.next_multiple_of(CHUNK);
        self.lowest -= chunk;
        if size < chunk {
            self.gaps.insert(self.lowest + size, self.lowest + chunk);
        }
        Some(self.lowest)
    }

    fn release(&mut self, address: u64, size: u64) {
        let mut start = address;
        let mut end = address + size;
        if let Some(after) = self.gaps.remove(&end) {
            end = after;
        }
        if let Some((&before, &until)) = self.gaps.range(..start).next_back()
            && until == start
        {
            start = before;
        }
        self.gaps.insert(start, end);
    }

    fn reserve(&mut self) -> u64 {
        self.ranges += 1;
        RANGES * self.ranges
    }

    fn map(&mut self, _: u64, size: u64, held: u64) -> bool {
        self.has(size, held)
    }

    fn unmap(&mut self, _: u64, _: u64) {}

    fn excess(&mut self, held: u64, threshold: f64) -> u64 {
        let limit = self.limit.map(|limit| (limit as f64 * threshold) as u64);
        limit.map_or(0, |limit| held.saturating_sub(limit))
    }
}
