//! What an allocator holds before its first request, where the recording began later than the program.

use super::block::{BlockId, ModelBlock, State};
use super::expandable::Reservation;
use super::{Allocator, MOST};
use crate::replay::driver::Driver;
use crate::snapshot::{BlockState, Segment};

impl<D: Driver> Allocator<D> {
    /// Takes over a segment of its own driver call; its blocks in use come back with their addresses. The first that is
    /// taken over is the oldest.
    pub(in crate::replay) fn hold_segment(
        &mut self,
        segment: &Segment,
        pool: usize,
        stream: u64,
    ) -> Vec<(u64, BlockId)> {
        let age = self.next_age();
        let blank = ModelBlock {
            address: segment.address,
            size: 0,
            state: State::Free,
            before: None,
            after: None,
            pool: 2 * pool + usize::from(segment.small_pool),
            stream,
            age,
            free_since: 0,
            reservation: None,
        };
        let mut in_use = Vec::new();
        self.hold_tiles(segment, blank, &mut None, &mut in_use);
        in_use
    }

    /// The same for the pages of one stream and pool, by address: parts of one range, which begins with the first of them.
    pub(in crate::replay) fn hold_pages(
        &mut self,
        pages: &[&Segment],
        pool: usize,
        stream: u64,
    ) -> Vec<(u64, BlockId)> {
        let mut in_use = Vec::new();
        let Some(first) = pages.first() else { return in_use };
        let page = self.tuning.page(first.small_pool);
        self.reservations.push(Reservation { base: first.address, page });
        let age = self.next_age();
        let blank = ModelBlock {
            address: first.address,
            size: 0,
            state: State::Unmapped,
            before: None,
            after: None,
            pool: 2 * pool + usize::from(first.small_pool),
            stream,
            age,
            free_since: 0,
            reservation: Some(self.reservations.len() - 1),
        };
        let (mut last, mut end) = (None, first.address);
        for segment in pages {
            self.hold_gap(end, segment.address, blank, &mut last);
            self.hold_tiles(segment, blank, &mut last, &mut in_use);
            end = segment.address.saturating_add(segment.total_size.get());
        }
        self.hold_gap(end, first.address.saturating_add(MOST.next_multiple_of(page)), blank, &mut last);
        in_use
    }

    fn hold_tiles(
        &mut self,
        segment: &Segment,
        blank: ModelBlock,
        last: &mut Option<BlockId>,
        in_use: &mut Vec<(u64, BlockId)>,
    ) {
        for tile in &segment.blocks {
            let taken = tile.state != BlockState::Inactive;
            let state = if taken { State::Taken } else { State::Free };
            let (address, size) = (tile.address, tile.size.get());
            let id = self.append(ModelBlock { address, size, state, ..blank }, last);
            if taken {
                in_use.push((address, id));
                self.allocated.rise(size, None);
                self.active.rise(size, None);
            } else {
                self.insert(id);
            }
        }
        self.held.rise(segment.total_size.get(), None);
    }

    fn hold_gap(&mut self, from: u64, to: u64, blank: ModelBlock, last: &mut Option<BlockId>) {
        if from < to {
            let gap = ModelBlock { address: from, size: to - from, state: State::Unmapped, ..blank };
            let id = self.append(gap, last);
            self.insert(id);
        }
    }

    fn append(&mut self, block: ModelBlock, last: &mut Option<BlockId>) -> BlockId {
        let id = match *last {
            Some(last) => self.blocks.add_after(last, block),
            None => self.blocks.add(block),
        };
        *last = Some(id);
        id
    }
}
