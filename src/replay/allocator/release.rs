//! What goes back to the driver: on demand of the program, where memory runs out, and by garbage collection
//! (`release_blocks`, `release_available_cached_blocks`, `garbage_collect_cached_blocks`).

use super::Allocator;
use super::block::BlockId;
use crate::replay::driver::Driver;

impl<D: Driver> Allocator<D> {
    /// Lets the memory of a private pool go with the next release.
    pub(in crate::replay) fn allow_release(&mut self, pool: usize) {
        if let Some(released) = self.released.get_mut(pool) {
            *released = true;
        }
    }

    /// Gives back every segment and page that is free as a whole, of the default pool and of the private ones that may go:
    /// `empty_cache`.
    pub(in crate::replay) fn release_cached(&mut self) {
        self.release_pool(0);
        self.release_pool(1);
        for pool in 1..self.released.len() {
            self.release_private(pool);
        }
    }

    /// Gives back what is free as a whole of one private pool, if it may go.
    pub(in crate::replay) fn release_private(&mut self, pool: usize) {
        if self.released.get(pool) == Some(&true) {
            self.release_pool(2 * pool + 1);
            self.release_pool(2 * pool);
        }
    }

    fn release_pool(&mut self, pool: usize) {
        let all: Vec<BlockId> = self.pools[pool].free.values().copied().collect();
        self.look(all.len() as u64);
        let (growing, fixed): (Vec<BlockId>, Vec<BlockId>) =
            all.into_iter().partition(|id| self.blocks[*id].reservation.is_some());
        for id in fixed {
            if self.blocks[id].is_whole() {
                self.release(id);
            }
        }
        for id in growing {
            self.unmap(id);
        }
    }

    fn release(&mut self, id: BlockId) {
        self.remove(id);
        let block = self.blocks[id];
        self.blocks.remove(id);
        self.driver.release(block.address, block.size);
        self.note_call();
        self.held.fall(block.size);
    }

    /// Where blocks beyond `max_split_size` are never split: gives back the smallest of them that is large enough for a
    /// request, or else the largest, one after the other, until they were enough. Says whether they were.
    pub(super) fn release_oversize(&mut self, pool: usize, stream: u64, size: u64) -> bool {
        let Some(limit) = self.tuning.max_split_size.map(crate::unit::Bytes::get) else { return false };
        let wanted = size.max(limit);
        let enough = self.pools[pool].fitting(stream, wanted).next();
        if let Some(id) = enough {
            return self.release_if_whole(id);
        }
        let mut released = 0;
        while released < wanted {
            let below = self.pools[pool].free.range((stream, limit, 0, 0)..(stream, wanted, 0, 0));
            let Some((_, &id)) = { below }.next_back() else { break };
            let size = self.blocks[id].size;
            if !self.release_if_whole(id) {
                break;
            }
            released += size;
        }
        released >= wanted
    }

    fn release_if_whole(&mut self, id: BlockId) -> bool {
        let block = &self.blocks[id];
        let whole = block.is_whole() && block.reservation.is_none();
        if whole {
            self.release(id);
        }
        whole
    }

    /// Garbage collection: where more is held than the threshold allows, gives back the large free blocks that have not
    /// been used for longest, those of at least mean age at a time. A block's age is the number of searches since it
    /// became free.
    pub(super) fn collect(&mut self) {
        if self.tuning.garbage_collection_threshold <= 0.0 {
            return;
        }
        let excess = self.driver.excess(self.held.now.get(), self.tuning.garbage_collection_threshold);
        if excess == 0 {
            return;
        }
        let searches = self.pools[0].searches;
        let mut idle: Vec<(BlockId, u64)> = self.pools[0]
            .free
            .values()
            .filter(|id| self.blocks[**id].is_whole())
            .map(|id| (*id, searches - self.blocks[*id].free_since))
            .collect();
        let mut reclaimed = 0;
        while reclaimed < excess && !idle.is_empty() {
            self.look(self.pools[0].free.len() as u64);
            let total: u64 = idle.iter().map(|(_, age)| age).sum();
            let mean = total as f64 / idle.len() as f64;
            let (old, young): (Vec<_>, Vec<_>) = idle.into_iter().partition(|(_, age)| *age as f64 >= mean);
            idle = young;
            for (id, _) in old {
                reclaimed += self.blocks[id].size;
                self.release(id);
            }
        }
    }
}
