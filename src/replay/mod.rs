//! The caching allocator replayed, twice.
//!
//! [`Replay`] goes by the recorded addresses: how large every block really was, and when the driver was asked for more although
//! enough lay free. A [`Scenario`] goes by the recorded requests and frees alone (a [`Script`]), on a model of the allocator under any
//! settings; a [`Proof`] says whether that model, under the recorded settings, does what was recorded.
//!
//! Of [`Replay`]:
//!
//! In: the snapshot and the timeline. Out: the block size of every allocation, the peaks of allocated and active bytes,
//! the misses, and the first request that failed. The addresses are known, so no search for a fit is
//! needed: a block ends where rounding and splitting say (`c10/cuda/CUDACachingAllocator.cpp`, PyTorch 2.11). Allocated bytes end when the program gives a block back,
//! active bytes when it returns to the pool; on every recording of the corpus made from the start both peaks equal
//! PyTorch's `allocated_bytes.all.peak` and `active_bytes.all.peak` to the byte.
//!
//! Where it can fail: blocks born before the recording and freed in it have no known block size; they count as their
//! rounded request, or as what later requests show ([`unsplit`]).

mod addresses;
mod allocator;
mod driver;
mod ends;
mod error;
mod held;
mod imagined;
mod layout;
mod level;
mod player;
mod pooled;
mod proof;
mod ranges;
mod rounding;
mod scenario;
mod script;
mod tuning;
mod unsplit;
mod worth_trying;

pub use allocator::FitOrder;
pub use ends::End;
pub use error::TuningError;
pub use held::{Homeless, segments_at, tiled_segments_at};
pub use player::{RecordedTrace, Sought, as_recorded};
pub use proof::{DifferenceKind, Divergence, DriverCall, Proof};
pub use rounding::is_small_request;
pub use scenario::{Forecast, Scenario};
pub use script::Script;
pub use tuning::{SettingChange, Tuning, changes};
pub use worth_trying::worth_trying;

use layout::{Extent, Home, Layout};
use level::Watermark;
use rustc_hash::FxHashMap;

use crate::snapshot::{Action, BlockState, Event, Segment, Snapshot};
use crate::timeline::{Peak, Timeline};
use crate::unit::{AllocationId, Bytes, EventIndex, Index};

/// What the replay of one device's allocator shows.
#[derive(Debug)]
pub struct Replay {
    /// The bytes that each allocation occupied, by its id.
    pub block_sizes: Vec<Bytes>,
    /// The highest allocated bytes: block sizes until the program gives them back.
    pub peak_allocated: Peak,
    /// The highest active bytes: block sizes until they return to the pool.
    pub peak_active: Peak,
    /// The driver calls that were made although enough bytes lay free in smaller pieces.
    pub misses: Vec<Miss>,
    /// The first request that failed.
    pub failure: Option<FailedRequest>,
}

/// A request that failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FailedRequest {
    /// The `oom` event.
    pub event: EventIndex,
    /// Bytes of the block that was wanted: the request, rounded.
    pub wanted: Bytes,
    /// What the allocator is known to have had: what it held, and what was left on the device. Where more was left than was
    /// wanted, something else set a limit, and what was held at most is all that is known.
    pub capacity: Bytes,
}

/// A driver call for more memory while enough was cached, but in pieces that did not fit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Miss {
    /// The `segment_alloc` or `segment_map` event.
    pub event: EventIndex,
    /// Bytes got from the driver.
    pub segment: Bytes,
    /// Bytes that lay free at that moment.
    pub free: Bytes,
}

impl Replay {
    /// Replays a device's allocator.
    pub fn of(snapshot: &Snapshot, timeline: &Timeline) -> Replay {
        let events =
            snapshot.devices.get(timeline.device.position()).map_or(&[][..], |trace| trace.events.as_slice());
        let mut machine = ReplayRun::new(snapshot, timeline);
        for (position, event) in events.iter().enumerate() {
            let Some(at) = EventIndex::at(position) else { break };
            machine.step(at, event);
        }
        machine.finish()
    }
}

struct ReplayRun<'a> {
    snapshot: &'a Snapshot,
    timeline: &'a Timeline,
    tuning: Tuning,
    layout: Layout,
    extents: Vec<Option<Extent>>,
    block_sizes: Vec<Bytes>,
    allocated: Watermark,
    active: Watermark,
    reserved: Bytes,
    misses: Vec<Miss>,
    failure: Option<FailedRequest>,
}

impl<'a> ReplayRun<'a> {
    fn new(snapshot: &'a Snapshot, timeline: &'a Timeline) -> Self {
        let count = timeline.allocations.len();
        let mut machine = ReplayRun {
            snapshot,
            timeline,
            tuning: Tuning::recorded(snapshot),
            layout: Layout::default(),
            extents: vec![None; count],
            block_sizes: vec![Bytes::ZERO; count],
            allocated: Watermark::default(),
            active: Watermark::default(),
            reserved: timeline.reserved_at_start,
            misses: Vec::new(),
            failure: None,
        };
        for segment in held::bare_segments_at(snapshot, timeline, 0) {
            machine.layout.release(segment.address, segment.total_size.get(), home_of(&segment));
        }
        machine.place_older_blocks();
        machine
    }

    /// Puts the blocks that were alive before the first event in their places.
    fn place_older_blocks(&mut self) {
        let mut known: FxHashMap<u64, Bytes> = FxHashMap::default();
        for segment in self.snapshot.segments_of(self.timeline.device.position()) {
            let active = segment.blocks.iter().filter(|block| block.state != BlockState::Inactive);
            known.extend(active.map(|block| (block.address, block.size)));
        }
        let unsplit = unsplit::sizes(self.timeline, |id| {
            let allocation = self.timeline.allocation(id)?;
            let is_large = self.layout.keeps_remainders(allocation.address);
            is_large.then(|| rounding::round(allocation.bytes, &self.tuning))
        });
        let mut total = Bytes::ZERO;
        for (id, allocation) in self.timeline.older() {
            let size = known.get(&allocation.address).filter(|_| allocation.free.is_none()).copied();
            let shown = || unsplit.get(&id).copied();
            let rounded = || rounding::round(allocation.bytes, &self.tuning);
            let size = size.map(Bytes::get).or_else(shown).unwrap_or_else(rounded);
            let extent = self.layout.take_exactly(allocation.address, size);
            total += Bytes(extent.size);
            self.settle(id, extent);
        }
        self.allocated = Watermark::start(total);
        self.active = Watermark::start(total);
    }

    fn settle(&mut self, id: AllocationId, extent: Extent) {
        if let Some(place) = self.extents.get_mut(id.position()) {
            *place = Some(extent);
        }
        if let Some(place) = self.block_sizes.get_mut(id.position()) {
            *place = Bytes(extent.size);
        }
    }

    fn step(&mut self, at: EventIndex, event: &Event) {
        let (address, size) = (event.address, event.size);
        match event.action {
            Action::SegmentAlloc => {
                self.note_miss(at, size);
                let home = Home::Segment { base: address, small: size == Bytes(tuning::SMALL_SEGMENT) };
                self.layout.release(address, size.get(), home);
                self.reserved += size;
            }
            Action::SegmentMap => {
                self.note_miss(at, size);
                self.layout.release(address, size.get(), Home::Expandable);
                self.reserved += size;
            }
            Action::SegmentFree | Action::SegmentUnmap => {
                self.layout.withdraw(address, size.get());
                self.reserved -= size;
            }
            Action::Alloc | Action::FreeRequested | Action::FreeCompleted => self.step_block(at, event),
            Action::OutOfMemory => self.note_failure(at, size, Bytes(address)),
            Action::Snapshot | Action::Other => {}
        }
    }

    fn step_block(&mut self, at: EventIndex, event: &Event) {
        let Some(id) = self.timeline.allocation_of.get(at.position()).copied().flatten() else { return };
        let Some(allocation) = self.timeline.allocation(id) else { return };
        if allocation.alloc == Some(at) {
            let extent = self.layout.take(event.address, event.size, &self.tuning);
            self.allocated.rise(extent.size, Some(at));
            self.active.rise(extent.size, Some(at));
            self.settle(id, extent);
            return;
        }
        let Some(extent) = self.extents.get(id.position()).copied().flatten() else { return };
        // A free without its request (recorded with `skip_actions`) ends both.
        if allocation.free_requested.unwrap_or(at) == at {
            self.allocated.fall(extent.size);
        }
        if allocation.free == Some(at) {
            self.active.fall(extent.size);
            self.layout.give_back(event.address, extent);
        }
    }

    fn note_miss(&mut self, at: EventIndex, segment: Bytes) {
        let free = self.reserved - self.active.now;
        if free >= segment {
            self.misses.push(Miss { event: at, segment, free });
        }
    }

    /// Such an event holds the device's free bytes where others hold an address.
    fn note_failure(&mut self, event: EventIndex, wanted: Bytes, left: Bytes) {
        let held = self.timeline.peak_reserved.bytes;
        let capacity = if left < wanted { held.max(self.reserved + left) } else { held };
        self.failure.get_or_insert(FailedRequest { event, wanted, capacity });
    }

    fn finish(self) -> Replay {
        Replay {
            block_sizes: self.block_sizes,
            peak_allocated: self.allocated.peak,
            peak_active: self.active.peak,
            misses: self.misses,
            failure: self.failure,
        }
    }
}

fn home_of(segment: &Segment) -> Home {
    if segment.expandable {
        Home::Expandable
    } else {
        Home::Segment { base: segment.address, small: segment.small_pool }
    }
}
