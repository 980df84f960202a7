//! A small model of PyTorch's caching allocator: requests in, addresses and new segments out.
//!
//! Best fit, sizes rounded to 512 bytes, segments of 2 MiB, 20 MiB or the request, split where more than 1 MiB (in
//! small segments 512 bytes) is left, neighbours joined (`c10/cuda/CUDACachingAllocator.cpp`). One stream; a
//! private pool is another [`Pool`] with addresses of its own.

use std::collections::BTreeMap;

#[derive(Default)]
pub(crate) struct Pool {
    /// Base address and size.
    segments: BTreeMap<u64, u64>,
    /// Address, size and whether in use; the blocks tile the segments.
    blocks: BTreeMap<u64, (u64, bool)>,
    /// Which pool this is; 0 is the default one.
    number: u64,
}

/// The addresses that one pool may use.
const SPACE: u64 = 1 << 40;

const MIB: u64 = 1 << 20;
const START: u64 = 0x7f00_0000_0000;

impl Pool {
    /// A segment that serves requests up to 1 MiB.
    pub(crate) const SMALL_SEGMENT: u64 = 2 * MIB;

    /// The first number of the pools that the program makes itself (`torch.cuda.MemPool`).
    pub(crate) const OWN: u64 = 10;

    /// An empty pool of a number.
    pub(crate) fn numbered(number: u64) -> Pool {
        Pool { number, ..Pool::default() }
    }

    /// The number of the pool that an address belongs to.
    pub(crate) fn number_of(address: u64) -> u64 {
        (address - START) / SPACE
    }

    /// The identity of the pool that an address belongs to, as PyTorch numbers pools.
    pub(crate) fn id_of(address: u64) -> (u64, u64) {
        match Self::number_of(address) {
            own if own >= Self::OWN => (0, own),
            of_a_graph => (of_a_graph, 0),
        }
    }

    /// The address of a new block and, if one was needed, the segment made for it.
    pub(crate) fn take(&mut self, bytes: u64) -> (u64, Option<(u64, u64)>) {
        let size = bytes.max(1).next_multiple_of(512);
        let fits = |(&address, &(free, used)): (&u64, &(u64, bool))| {
            let small = self.segment_of(address).is_some_and(|(_, total)| total == Self::SMALL_SEGMENT);
            (!used && free >= size && small == (size <= MIB)).then_some((free, address))
        };
        let best = self.blocks.iter().filter_map(fits).min();
        let made = if best.is_none() { Some(self.grow(size)) } else { None };
        let address = best.map(|(_, address)| address).or(made.map(|(base, _)| base)).unwrap_or_default();
        let small = size <= MIB;
        if let Some(&(free, _)) = self.blocks.get(&address) {
            let left = free - size;
            let split = if small { left >= 512 } else { left > MIB };
            if split {
                self.blocks.insert(address + size, (left, false));
            }
            self.blocks.insert(address, (if split { size } else { free }, true));
        }
        (address, made)
    }

    /// Frees the block at an address and joins it with free neighbours.
    pub(crate) fn give_back(&mut self, address: u64) {
        let Some(&(mut size, _)) = self.blocks.get(&address) else { return };
        let base = self.segment_of(address).map(|(base, _)| base);
        let mut start = address;
        let next = address + size;
        if let Some(&(more, false)) = self.blocks.get(&next)
            && self.segment_of(next).map(|(base, _)| base) == base
        {
            self.blocks.remove(&next);
            size += more;
        }
        if let Some((&before, &(more, false))) = self.blocks.range(..address).next_back()
            && self.segment_of(before).map(|(base, _)| base) == base
        {
            self.blocks.remove(&address);
            start = before;
            size += more;
        }
        self.blocks.insert(start, (size, false));
    }

    /// Takes the segments of which nothing is in use out of the pool.
    pub(crate) fn release(&mut self) -> Vec<(u64, u64)> {
        let unused = |(&base, &total): (&u64, &u64)| {
            (self.blocks.get(&base) == Some(&(total, false))).then_some((base, total))
        };
        let free: Vec<(u64, u64)> = self.segments.iter().filter_map(unused).collect();
        for (base, _) in &free {
            self.segments.remove(base);
            self.blocks.remove(base);
        }
        free
    }

    /// Every segment with its blocks (address and size).
    pub(crate) fn segments(&self) -> impl Iterator<Item = (u64, u64, impl Iterator<Item = (u64, u64)>)> {
        self.segments.iter().map(|(&base, &total)| {
            let blocks = self.blocks.range(base..base + total).map(|(&address, &(size, _))| (address, size));
            (base, total, blocks)
        })
    }

    fn segment_of(&self, address: u64) -> Option<(u64, u64)> {
        self.segments.range(..=address).next_back().map(|(&base, &total)| (base, total))
    }

    fn grow(&mut self, size: u64) -> (u64, u64) {
        let total = match size {
            ..=MIB => Self::SMALL_SEGMENT,
            _ if size < 10 * MIB => 20 * MIB,
            _ => size.next_multiple_of(2 * MIB),
        };
        // A gap between segments, so that no two of them touch.
        let first = START + self.number * SPACE;
        let base = self.segments.last_key_value().map_or(first, |(&base, &total)| base + total + MIB);
        self.segments.insert(base, total);
        self.blocks.insert(base, (total, false));
        (base, total)
    }
}
