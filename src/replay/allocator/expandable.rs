//! Segments that grow in place: ranges of addresses of which pages are mapped and unmapped.
//!
//! A stream and a pool get a range much larger than what they need; free space in it is made of memory that is mapped and
//! of addresses that are not, and a request takes the lowest place where both together are enough
//! (`find_expandable_block`, `map_block`, `unmap_block`).

use super::block::{BlockId, ModelBlock, State};
use super::{Allocator, MOST};
use crate::replay::driver::Driver;

/// A range of addresses of an expandable segment. PyTorch takes 9/8 of the device's memory, which nothing here knows:
/// the model's ranges are larger than any device, and never used up.
#[derive(Debug, Clone, Copy)]
pub(super) struct Reservation {
    pub(super) base: u64,
    /// What is mapped at a time.
    pub(super) page: u64,
}

impl<D: Driver> Allocator<D> {
    /// Memory for a request at the lowest place of an expandable segment that has room for it.
    pub(super) fn grow_in_place(&mut self, pool: usize, stream: u64, size: u64) -> Option<BlockId> {
        let mut id = self.place_with_room(pool, stream, size);
        if self.blocks[id].state == State::Unmapped {
            self.map(id, size)?;
        }
        while self.blocks[id].size < size {
            let missing = size - self.blocks[id].size;
            id = self.blocks[id].after.filter(|after| self.blocks[*after].state == State::Unmapped)?;
            self.map(id, missing)?;
        }
        self.remove(id);
        Some(id)
    }

    /// The first of the blocks that a request can be put in; a new range where there is none.
    fn place_with_room(&mut self, pool: usize, stream: u64, size: u64) -> BlockId {
        let mut looks = 0;
        let unmapped = self.pools[pool].unmapped.range((stream, 0)..);
        let mut found = None;
        for (_, id) in unmapped.take_while(|((of, _), _)| *of == stream) {
            let before = self.blocks[*id].before.filter(|before| self.blocks[*before].state == State::Free);
            let first = before.unwrap_or(*id);
            let (mut room, mut next) = (0, Some(first));
            while let Some(id) = next.filter(|_| room < size) {
                looks += 1;
                let block = &self.blocks[id];
                if block.state == State::Taken {
                    break;
                }
                room += block.size;
                next = block.after;
            }
            if room >= size {
                found = Some(first);
                break;
            }
        }
        self.look(looks);
        found.unwrap_or_else(|| self.reserve(pool, stream))
    }

    /// A new range of addresses.
    fn reserve(&mut self, pool: usize, stream: u64) -> BlockId {
        let page = self.tuning.page(self.pools[pool].small);
        let base = self.driver.reserve();
        self.reservations.push(Reservation { base, page });
        let age = self.next_age();
        let id = self.blocks.add(ModelBlock {
            address: base,
            size: MOST.next_multiple_of(page),
            state: State::Unmapped,
            before: None,
            after: None,
            pool,
            stream,
            age,
            free_since: 0,
            reservation: Some(self.reservations.len() - 1),
        });
        self.insert(id);
        id
    }

    /// Maps pages for so many bytes at the start of an unmapped block, and joins them with the memory around them. The
    /// block's id stays; `None` where the driver has no more.
    fn map(&mut self, id: BlockId, size: u64) -> Option<()> {
        let block = self.blocks[id];
        let range = self.reservations[block.reservation?];
        let offset = block.address - range.base;
        let end = (offset + size.min(block.size)).next_multiple_of(range.page);
        let mapped = (end - offset).min(block.size);
        if !self.driver.map(block.address, mapped, self.held.now.get()) {
            return None;
        }
        self.note_call();
        self.remove(id);
        self.blocks[id].state = State::Free;
        if mapped < block.size {
            let rest = ModelBlock { address: block.address + mapped, size: block.size - mapped, ..block };
            let rest = self.blocks.add_after(id, rest);
            self.blocks[id].size = mapped;
            self.insert(rest);
        }
        self.merge_around(id);
        self.insert(id);
        self.held.rise(mapped, self.now);
        Some(())
    }

    /// Unmaps the whole pages of a free block; what is left of it on both sides stays free.
    pub(super) fn unmap(&mut self, id: BlockId) {
        let block = self.blocks[id];
        let Some(range) = block.reservation.and_then(|at| self.reservations.get(at).copied()) else { return };
        let start = range.base + (block.address - range.base).next_multiple_of(range.page);
        let end = block.address + block.size;
        let end = end - (end - range.base) % range.page;
        if start >= end {
            return;
        }
        self.driver.unmap(start, end - start);
        self.note_call();
        self.remove(id);
        let pieces = [(block.address, start), (end, block.address + block.size)];
        for (from, to) in pieces.into_iter().filter(|(from, to)| from < to) {
            let piece = ModelBlock { address: from, size: to - from, ..block };
            let piece = if from < start {
                self.blocks.add_before(id, piece)
            } else {
                self.blocks.add_after(id, piece)
            };
            self.insert(piece);
        }
        let unmapped = &mut self.blocks[id];
        (unmapped.address, unmapped.size, unmapped.state) = (start, end - start, State::Unmapped);
        self.merge_around(id);
        self.insert(id);
        self.held.fall(end - start);
        if self.blocks[id].is_whole() {
            self.remove(id);
            self.blocks.remove(id);
        }
    }
}
