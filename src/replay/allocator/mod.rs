//! The caching allocator itself: what it hands out, splits, merges, and asks the driver for.
//!
//! In: requests and frees, in order, and a driver that answers. Out: where each block lies, what is held from the
//! driver, and what was asked of it. Source: `c10/cuda/CUDACachingAllocator.cpp` of PyTorch 2.1 to 2.15, `malloc`,
//! `get_free_block`, `alloc_found_block`, `free_block`, `try_merge_blocks`; where versions differ, [`FitOrder`] tells
//! them apart. Not modelled, because no recording shows it: zero-byte requests, memory shared between processes, pools
//! that lend blocks on failure or never split.
//!
//! Always: time is about linear in the requests. What is not by nature (a release looks at every free block) is counted, and
//! a recording for which it grows beyond measure is given up ([`Allocator::is_exhausted`]).

mod block;
mod expandable;
mod pool;
mod release;
mod start;

pub(super) use block::{BlockId, State};
pub use pool::FitOrder;

use block::{Blocks, ModelBlock};
use expandable::Reservation;
use pool::Pool;

use super::driver::Driver;
use super::level::Watermark;
use super::rounding;
use super::tuning::Tuning;
use crate::timeline::Peak;
use crate::unit::{Bytes, EventIndex};

/// More bytes than any device has; a request beyond it fails without the driver being asked, so that sums stay exact.
const MOST: u64 = 1 << 46;

/// How many looks at a block the model may take for each step, beside those that a step needs anyway, and how many it may
/// always take. Recordings of programs stay far below one a step.
const LOOKS_A_STEP: u64 = 64;
const LOOKS_AT_LEAST: u64 = 50_000_000;

/// What is asked of the allocator.
#[derive(Debug, Clone, Copy)]
pub(super) struct Request {
    pub(super) bytes: Bytes,
    /// The stream's pointer.
    pub(super) stream: u64,
    /// The number of the private pool, 0 for the default one.
    pub(super) pool: usize,
}

/// The allocator of one device.
#[derive(Debug)]
pub(super) struct Allocator<D> {
    pub(super) driver: D,
    /// The moment: peaks are noted with it.
    pub(super) now: Option<EventIndex>,
    tuning: Tuning,
    order: FitOrder,
    blocks: Blocks,
    /// Twice as many as there are private pools and the default one: the large, then the small one of each.
    pools: Vec<Pool>,
    /// Private pools, by number, whose memory may go back to the driver.
    released: Vec<bool>,
    reservations: Vec<Reservation>,
    segments: u32,
    looks_left: u64,
    exhausted: bool,
    held: Watermark,
    allocated: Watermark,
    active: Watermark,
    driver_calls: usize,
}

/// What an allocator's levels were.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct AllocatorLevels {
    pub(super) held: Bytes,
    pub(super) peak_held: Peak,
    pub(super) peak_allocated: Peak,
    pub(super) peak_active: Peak,
    pub(super) active: Bytes,
    pub(super) driver_calls: usize,
}

impl<D: Driver> Allocator<D> {
    /// An allocator that holds nothing, with so many pools, for about so many steps.
    pub(super) fn new(tuning: Tuning, order: FitOrder, pools: usize, steps: usize, driver: D) -> Self {
        let pool = |number: usize| Pool { small: number % 2 == 1, ..Pool::default() };
        Allocator {
            driver,
            now: None,
            tuning,
            order,
            blocks: Blocks::default(),
            pools: (0..2 * pools).map(pool).collect(),
            released: vec![false; pools],
            reservations: Vec::new(),
            segments: 0,
            looks_left: LOOKS_AT_LEAST.saturating_add(LOOKS_A_STEP.saturating_mul(steps as u64)),
            exhausted: false,
            held: Watermark::default(),
            allocated: Watermark::default(),
            active: Watermark::default(),
            driver_calls: 0,
        }
    }

    /// Whether it gave up: what it says from then on means nothing.
    pub(super) fn is_exhausted(&self) -> bool {
        self.exhausted
    }

    /// Its levels now.
    pub(super) fn levels(&self) -> AllocatorLevels {
        AllocatorLevels {
            held: self.held.now,
            peak_held: self.held.peak,
            peak_allocated: self.allocated.peak,
            peak_active: self.active.peak,
            active: self.active.now,
            driver_calls: self.driver_calls,
        }
    }

    /// A block's address and size.
    pub(super) fn extent(&self, id: BlockId) -> (u64, u64) {
        (self.blocks[id].address, self.blocks[id].size)
    }

    /// All memory that it holds, by address: each block with its size, and whether it is taken.
    pub(super) fn tiles(&self) -> Vec<(u64, u64, bool)> {
        let mapped = self.blocks.iter().filter(|block| block.state != State::Unmapped);
        let mut tiles: Vec<_> =
            mapped.map(|block| (block.address, block.size, block.state == State::Taken)).collect();
        tiles.sort_unstable();
        tiles
    }

    /// Hands out a block; `None` where no memory is left.
    pub(super) fn request(&mut self, request: &Request) -> Option<BlockId> {
        let size = rounding::round(request.bytes, &self.tuning);
        if size > MOST {
            return None;
        }
        let pool = 2 * request.pool + usize::from(size <= rounding::SMALL_REQUEST);
        let found = self.find(pool, request.stream, size);
        let id = found.or_else(|| self.obtain(pool, request.stream, size))?;
        self.hand_out(id, size);
        Some(id)
    }

    /// The program gave a block back.
    pub(super) fn give_back(&mut self, id: BlockId) {
        self.allocated.fall(self.blocks[id].size);
    }

    /// A block that was given back is free: it is joined with free neighbours.
    pub(super) fn complete(&mut self, id: BlockId) {
        self.active.fall(self.blocks[id].size);
        self.blocks[id].state = State::Free;
        self.merge_around(id);
        self.insert(id);
    }

    /// The best fit of a pool, taken out of it.
    fn find(&mut self, pool: usize, stream: u64, size: u64) -> Option<BlockId> {
        self.pools[pool].searches += 1;
        let mut looks = 0;
        let best = self.best_fit(pool, stream, size, &mut looks);
        self.look(looks);
        let best = best?;
        let found = self.blocks[best].size;
        if let Some(limit) = self.tuning.max_split_size.map(Bytes::get) {
            let slack = self.tuning.max_non_split_rounding.unwrap_or(self.tuning.large_segment);
            let oversize = if size < limit { found >= limit } else { found >= size + slack.get() };
            if oversize {
                return None;
            }
        }
        self.remove(best);
        Some(best)
    }

    fn best_fit(&self, pool: usize, stream: u64, size: u64, looks: &mut u64) -> Option<BlockId> {
        let grows = |id: &BlockId| self.blocks[*id].reservation.is_some();
        let mut fitting = self.pools[pool].fitting(stream, size).inspect(|_| *looks += 1);
        let mut best = fitting.next()?;
        if !grows(&best) {
            return Some(best);
        }
        if !self.tuning.expandable_segments {
            return fitting.find(|next| !grows(next));
        }
        // What a block at the growing end could become counts, so that small requests do not use the end up.
        for next in fitting {
            if !grows(&best) || self.room(next) >= self.room(best) {
                break;
            }
            best = next;
        }
        Some(best)
    }

    /// A block's bytes and those that it could grow by.
    fn room(&self, id: BlockId) -> u64 {
        let block = &self.blocks[id];
        let after = block.after.map(|after| &self.blocks[after]);
        block.size + after.filter(|after| after.state == State::Unmapped).map_or(0, |after| after.size)
    }

    /// New memory from the driver, if need be after giving some back.
    fn obtain(&mut self, pool: usize, stream: u64, size: u64) -> Option<BlockId> {
        self.collect();
        if let Some(id) = self.grow(pool, stream, size) {
            return Some(id);
        }
        if self.release_oversize(pool, stream, size)
            && let Some(id) = self.grow(pool, stream, size)
        {
            return Some(id);
        }
        // Requests for a private pool come while a graph is captured, when nothing may be released.
        if pool > 1 {
            return None;
        }
        self.release_cached();
        self.grow(pool, stream, size)
    }

    /// Asks the driver for a segment, or for pages.
    fn grow(&mut self, pool: usize, stream: u64, size: u64) -> Option<BlockId> {
        let segment = rounding::segment(size, &self.tuning);
        let held = self.held.now.get();
        if !self.driver.allows(segment, held) {
            return None;
        }
        if self.tuning.expandable_segments {
            return self.grow_in_place(pool, stream, size);
        }
        let address = self.driver.obtain(segment, held)?;
        self.note_call();
        self.held.rise(segment, self.now);
        let age = self.next_age();
        Some(self.blocks.add(ModelBlock {
            address,
            size: segment,
            state: State::Taken,
            before: None,
            after: None,
            pool,
            stream,
            age,
            free_since: 0,
            reservation: None,
        }))
    }

    /// Cuts what is too much off a block that was found, and marks it as taken.
    fn hand_out(&mut self, id: BlockId, size: u64) {
        let block = self.blocks[id];
        let fine = self.pools[block.pool].small || self.tuning.expandable_segments;
        let remainder = block.size - size;
        if rounding::splits(size, remainder, fine, &self.tuning) {
            let rest =
                ModelBlock { address: block.address + size, size: remainder, state: State::Free, ..block };
            let rest = self.blocks.add_after(id, rest);
            self.blocks[id].size = size;
            self.insert(rest);
        }
        let block = &mut self.blocks[id];
        block.state = State::Taken;
        let size = block.size;
        self.allocated.rise(size, self.now);
        self.active.rise(size, self.now);
    }

    /// Joins a block with the neighbours that are what it is.
    fn merge_around(&mut self, id: BlockId) {
        let ModelBlock { before, after, state, .. } = self.blocks[id];
        for other in [before, after].into_iter().flatten() {
            if self.blocks[other].state == state {
                self.remove(other);
                self.blocks.merge(id, other);
            }
        }
    }

    /// Puts a block that is not taken among those of its pool.
    fn insert(&mut self, id: BlockId) {
        let block = self.blocks[id];
        let pool = &mut self.pools[block.pool];
        let other = if block.state == State::Unmapped {
            pool.unmapped.insert((block.stream, block.address), id)
        } else {
            self.blocks[id].free_since = pool.searches;
            pool.free.insert(self.order.place(&block), id)
        };
        // Two segments at one address: only a damaged file says so.
        self.exhausted |= other.is_some();
    }

    /// Takes a block out of those of its pool.
    fn remove(&mut self, id: BlockId) {
        let block = &self.blocks[id];
        let pool = &mut self.pools[block.pool];
        if block.state == State::Unmapped {
            pool.unmapped.remove(&(block.stream, block.address));
        } else {
            pool.free.remove(&self.order.place(block));
        }
    }

    fn next_age(&mut self) -> u32 {
        self.segments = self.segments.saturating_add(1);
        self.segments
    }

    fn note_call(&mut self) {
        self.driver_calls += 1;
    }

    /// Counts looks at blocks.
    fn look(&mut self, looks: u64) {
        self.looks_left = self.looks_left.saturating_sub(looks);
        self.exhausted |= self.looks_left == 0;
    }
}
