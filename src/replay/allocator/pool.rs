//! The free blocks of a pool, in the order in which the allocator looks through them.

use std::collections::BTreeMap;

use super::block::{BlockId, ModelBlock};

/// The order in which equally large free blocks are taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FitOrder {
    /// The lowest address first: PyTorch up to about 2.13 (`BlockComparatorSize`).
    Address,
    /// The oldest segment first, and in it the lowest address: PyTorch 2.14 or 2.15 on
    /// (`BlockComparatorSizeCounterAddress`, pull request 183591 of May 2026).
    Age,
}

/// Where a free block stands: stream, size, age, address.
pub(super) type FreeKey = (u64, u64, u32, u64);

/// A pool: the small or the large requests of the default pool or of a private one.
#[derive(Debug, Default)]
pub(super) struct Pool {
    pub(super) small: bool,
    /// Free blocks.
    pub(super) free: BTreeMap<FreeKey, BlockId>,
    /// Addresses without memory, by stream and address.
    pub(super) unmapped: BTreeMap<(u64, u64), BlockId>,
    /// How often it was searched.
    pub(super) searches: u64,
}

impl Pool {
    /// The free blocks of a stream that hold so many bytes, best fit first.
    pub(super) fn fitting(&self, stream: u64, size: u64) -> impl Iterator<Item = BlockId> {
        let first = (stream, size, 0, 0);
        self.free.range(first..).take_while(move |(place, _)| place.0 == stream).map(|(_, id)| *id)
    }
}

impl FitOrder {
    pub(super) fn place(self, block: &ModelBlock) -> FreeKey {
        let age = if self == FitOrder::Age { block.age } else { 0 };
        (block.stream, block.size, age, block.address)
    }
}
