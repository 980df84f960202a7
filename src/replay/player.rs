//! Plays a script on a model of the allocator.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

use super::Replay;
use super::allocator::{Allocator, BlockId, FitOrder, Request};
use super::driver::Driver;
use super::level::Watermark;
use super::script::{Operation, Script};
use super::tuning::Tuning;
use crate::snapshot::{Event, Segment, Snapshot};
use crate::timeline::{Allocation, Timeline};
use crate::unit::{AllocationId, Bytes, EventIndex, Index};

/// One device of a recording, as a model of its allocator needs it.
#[derive(Debug, Clone, Copy)]
pub struct RecordedTrace<'a> {
    /// The file.
    pub snapshot: &'a Snapshot,
    /// The device's lifetimes.
    pub timeline: &'a Timeline,
    /// The allocator at the recorded addresses.
    pub replay: &'a Replay,
    /// What the program asked for.
    pub script: &'a Script,
}

impl<'a> RecordedTrace<'a> {
    pub(super) fn events(&self) -> &'a [Event] {
        let trace = self.snapshot.devices.get(self.timeline.device.position());
        trace.map_or(&[], |trace| trace.events.as_slice())
    }
}

/// A request whose size is to be said.
#[derive(Debug, Clone, Copy)]
pub enum Sought<'a> {
    /// It got memory in the recording.
    Got(AllocationId, &'a Allocation),
    /// It got none.
    Refused(EventIndex, &'a Event),
}

/// A request as large as it was.
pub fn as_recorded(sought: Sought<'_>) -> Bytes {
    match sought {
        Sought::Got(_, allocation) => allocation.bytes,
        Sought::Refused(_, event) => event.size,
    }
}

/// How a step went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OperationOutcome {
    /// As it was meant to.
    Done,
    /// A request got this block.
    Got(AllocationId, BlockId),
    /// A request that failed in the recording got memory.
    Served,
    /// A request got none.
    Failed(Bytes),
}

/// A script on its way through an allocator.
pub(super) struct Player<'a, D> {
    pub(super) allocator: Allocator<D>,
    recorded: RecordedTrace<'a>,
    /// Where each allocation lies that is alive.
    blocks: Vec<Option<BlockId>>,
    /// What is older than the recording, by address.
    older: FxHashMap<u64, AllocationId>,
    /// What the program has asked for and not given back.
    pub(super) requested: Watermark,
}

impl<'a, D: Driver> Player<'a, D> {
    /// An allocator as it stood before the first event.
    pub(super) fn new(recorded: RecordedTrace<'a>, tuning: Tuning, order: FitOrder, driver: D) -> Self {
        let script = recorded.script;
        let allocator = Allocator::new(tuning, order, script.pools.len(), script.steps.len(), driver);
        let blocks = vec![None; recorded.timeline.allocations.len()];
        let older = recorded.timeline.older();
        let older = older.map(|(id, one)| (one.address, id)).collect();
        let requested = Watermark::start(script.requested_at_start);
        let mut player = Player { allocator, recorded, blocks, older, requested };
        player.set_up();
        player
    }

    /// Puts what was held before the first event in its place. Of segments that overlap, which only a damaged file has, the
    /// first counts.
    fn set_up(&mut self) {
        let mut end = 0;
        let apart = |(segment, _): &&(Segment, u16)| {
            let starts = segment.address >= end;
            end = end.max(segment.address.saturating_add(segment.total_size.get()));
            starts
        };
        let held: Vec<&(Segment, u16)> = self.recorded.script.at_start.iter().filter(apart).collect();
        let mut pages: BTreeMap<(u16, bool, u64), Vec<&Segment>> = BTreeMap::new();
        // How old they are, nothing tells; but the driver hands addresses out from high to low for the most part.
        for (segment, pool) in held.into_iter().rev() {
            let stream = self.stream(segment.stream);
            if segment.expandable {
                pages.entry((*pool, segment.small_pool, stream)).or_default().push(segment);
            } else {
                let in_use = self.allocator.hold_segment(segment, usize::from(*pool), stream);
                self.settle(&in_use);
            }
        }
        for ((pool, _, stream), mut pages) in pages {
            pages.reverse();
            let in_use = self.allocator.hold_pages(&pages, usize::from(pool), stream);
            self.settle(&in_use);
        }
    }

    fn settle(&mut self, in_use: &[(u64, BlockId)]) {
        for (address, block) in in_use {
            let id = self.older.get(address);
            if let Some(place) = id.and_then(|id| self.blocks.get_mut(id.position())) {
                *place = Some(*block);
            }
        }
    }

    /// Does one step; `bytes` says how large the requests are to be.
    pub(super) fn step(
        &mut self,
        at: EventIndex,
        step: Operation,
        bytes: impl Fn(Sought<'_>) -> Bytes,
    ) -> OperationOutcome {
        self.allocator.now = Some(at);
        match step {
            Operation::Request(id) => return self.request(id, bytes),
            Operation::Refused => return self.ask_again(at, bytes),
            Operation::GiveBack(id) => {
                if let Some(block) = self.block(id) {
                    self.allocator.give_back(block);
                }
            }
            Operation::Complete(id) => self.complete(id, bytes),
            Operation::LetGo(pool) => self.allocator.allow_release(usize::from(pool)),
            Operation::Release => self.allocator.release_cached(),
            Operation::ReleasePrivate(pool) => self.allocator.release_private(usize::from(pool)),
        }
        OperationOutcome::Done
    }

    fn complete(&mut self, id: AllocationId, bytes: impl Fn(Sought<'_>) -> Bytes) {
        if let Some(block) = self.blocks.get_mut(id.position()).and_then(Option::take) {
            self.allocator.complete(block);
        }
        let Some(allocation) = self.recorded.timeline.allocation(id) else { return };
        // What is older than the recording is as large as it was.
        let asked = Sought::Got(id, allocation);
        let asked = if allocation.alloc.is_none() { as_recorded(asked) } else { bytes(asked) };
        self.requested.fall(asked.get());
    }

    fn block(&self, id: AllocationId) -> Option<BlockId> {
        self.blocks.get(id.position()).copied().flatten()
    }

    fn request(&mut self, id: AllocationId, bytes: impl Fn(Sought<'_>) -> Bytes) -> OperationOutcome {
        let Some(allocation) = self.recorded.timeline.allocation(id) else { return OperationOutcome::Done };
        let bytes = bytes(Sought::Got(id, allocation));
        let pool = self.recorded.script.pool_of.get(id.position()).copied().unwrap_or(0);
        let request = Request { bytes, stream: self.stream(allocation.stream), pool: usize::from(pool) };
        match self.allocator.request(&request) {
            Some(block) => {
                if let Some(place) = self.blocks.get_mut(id.position()) {
                    *place = Some(block);
                }
                self.requested.rise(bytes.get(), self.allocator.now);
                OperationOutcome::Got(id, block)
            }
            None => OperationOutcome::Failed(bytes),
        }
    }

    /// A request that failed in the recording: where it succeeds now, nothing is known of what would have become of it, so
    /// it is given back at once.
    fn ask_again(&mut self, at: EventIndex, bytes: impl Fn(Sought<'_>) -> Bytes) -> OperationOutcome {
        let Some(event) = self.recorded.events().get(at.position()) else { return OperationOutcome::Done };
        let pools = &self.recorded.script.pools;
        let pool = self.recorded.snapshot.particulars_of(event).pool.unwrap_or_default();
        let pool = pools.iter().position(|known| *known == pool).unwrap_or(0);
        let bytes = bytes(Sought::Refused(at, event));
        let request = Request { bytes, stream: self.stream(event.stream), pool };
        match self.allocator.request(&request) {
            Some(block) => {
                self.allocator.give_back(block);
                self.allocator.complete(block);
                OperationOutcome::Served
            }
            None => OperationOutcome::Failed(bytes),
        }
    }

    #[expect(clippy::cast_sign_loss, reason = "a pointer, which the file holds as a signed number")]
    fn stream(&self, number: u16) -> u64 {
        self.recorded.snapshot.stream_pointer(number) as u64
    }
}
