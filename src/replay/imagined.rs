//! A driver for settings that nobody recorded.

use super::addresses::{Addresses, Habits};
use super::driver::Driver;
use super::tuning::Tuning;
use crate::unit::Bytes;

/// Ranges of expandable segments lie above all others, so far apart.
const RANGES: u64 = 1 << 48;

/// A driver with so much memory.
#[derive(Debug)]
pub(super) struct Imagined {
    capacity: Option<u64>,
    limit: Option<u64>,
    addresses: Addresses,
    ranges: u64,
    /// The position of the event of the step under way.
    pub(super) position: usize,
}

impl Imagined {
    pub(super) fn new(capacity: Option<Bytes>, tuning: &Tuning, habits: &Habits) -> Imagined {
        let capacity = capacity.map(Bytes::get);
        let limit = capacity.filter(|_| tuning.memory_fraction < 1.0);
        let limit =
            limit.map(|capacity| Bytes::rounded((capacity as f64 * tuning.memory_fraction).floor()).get());
        Imagined { capacity, limit, addresses: Addresses::new(habits.clone()), ranges: 0, position: 0 }
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
        self.has(size, held).then(|| self.addresses.take(size, self.position))
    }

    fn release(&mut self, address: u64, size: u64) {
        self.addresses.give(address, size);
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
        let limit = self.limit.map(|limit| Bytes::rounded((limit as f64 * threshold).floor()));
        limit.map_or(0, |limit| held.saturating_sub(limit.get()))
    }
}
