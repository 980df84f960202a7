//! Events replayed into allocations with lifetimes, and the curves of requested and reserved bytes.
//!
//! In: the snapshot. Out: per device every allocation (born before or during the recording, freed or alive at its end),
//! the peaks, and how well the trace agrees with the final segments. Requested bytes count from `alloc` to
//! `free_completed`, as PyTorch's `requested_bytes.all` does; reserved bytes are the driver's segments and mapped pages.

mod free_stacks;
mod levels;
mod replayed;

use serde::{Deserialize, Serialize};

pub use levels::{Levels, Shift, Shifts};

use crate::snapshot::Snapshot;
use crate::unit::{AllocationId, Bytes, DeviceIndex, EventIndex, Index, StackId};

/// One device's allocations and curves.
#[derive(Debug)]
pub struct Timeline {
    /// The device.
    pub device: DeviceIndex,
    /// Every lifetime, in the order of birth; those born before the recording come first.
    pub allocations: Vec<Allocation>,
    /// For each event of the trace the allocation that it begins or ends.
    pub allocation_of: Vec<Option<AllocationId>>,
    /// Requested bytes after each event.
    pub levels: Levels,
    /// Requested bytes before the first event.
    pub requested_at_start: Bytes,
    /// Reserved bytes before the first event.
    pub reserved_at_start: Bytes,
    /// The highest requested bytes.
    pub peak_requested: Peak,
    /// The highest reserved bytes.
    pub peak_reserved: Peak,
    /// Requested bytes after the last event.
    pub requested_at_end: Bytes,
    /// Reserved bytes after the last event.
    pub reserved_at_end: Bytes,
    /// How the trace agrees with itself and with the final segments.
    pub agreement: Agreement,
    /// Whose stacks the frees carry.
    pub free_stacks: FreeStacks,
}

/// Whose stacks frees carry.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum FreeStacks {
    /// Their own: where the program gave the memory back.
    Own,
    /// Those of the allocations (`context="alloc"`): they say nothing of the release.
    Copied,
    /// None.
    #[default]
    Missing,
}

/// A lifetime: one block from the moment it was handed out until it went back to the pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Allocation {
    /// First byte.
    pub address: u64,
    /// Requested bytes.
    pub bytes: Bytes,
    /// The event that handed it out; `None` if that was before the recording.
    pub alloc: Option<EventIndex>,
    /// The event with which the program gave it back.
    pub free_requested: Option<EventIndex>,
    /// The event with which it went back to the pool; `None` while alive at the end.
    pub free: Option<EventIndex>,
    /// The allocation's stack, where one was recorded.
    pub stack: Option<StackId>,
    /// The stream, numbered as in the snapshot.
    pub stream: u16,
}

impl Allocation {
    /// The event with which the program gave it back: where its life ends for the program. For the allocator it ends with
    /// [`Allocation::free`], which may be later (another stream still reads it) or the only one recorded.
    pub fn given_back(&self) -> Option<EventIndex> {
        self.free_requested.or(self.free)
    }

    /// Whether it is alive just after event `at`.
    pub fn alive_after(&self, at: EventIndex) -> bool {
        self.alloc.is_none_or(|born| born <= at) && self.free.is_none_or(|died| died > at)
    }
}

/// A maximum of a curve.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Peak {
    /// How high.
    pub bytes: Bytes,
    /// The event that reached it first; `None` where it stood before the first event.
    pub event: Option<EventIndex>,
}

/// How a trace agrees with itself and with the final segments; all zero in a recording without faults.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Agreement {
    /// Allocations at an address that was still taken (the free in between is missing).
    pub lost_frees: usize,
    /// Frees of a block whose allocation is not in the trace: born before the recording.
    pub frees_without_alloc: usize,
    /// Frees of a block at an address that was given back before in the trace: an allocation in between is missing, and with
    /// it a life that counts in no level.
    pub lost_allocations: usize,
    /// Blocks alive in the final segments whose allocation is not in the trace: born before the recording.
    pub blocks_without_alloc: usize,
    /// Of these, blocks that carry a stack: their allocation was recorded and pushed out of the ring buffer.
    pub blocks_evicted: usize,
    /// The same where the file says that it is a slice of a recording that has them.
    pub blocks_cut: usize,
    /// Allocations that are alive in the trace, but whose block is not in the final segments.
    pub allocations_without_block: usize,
}

impl Timeline {
    /// Replays a device's trace.
    pub fn of(snapshot: &Snapshot, device: DeviceIndex) -> Timeline {
        replayed::replay(snapshot, device)
    }

    /// Whether frees tell where the program gave memory back.
    pub fn frees_have_stacks(&self) -> bool {
        self.free_stacks == FreeStacks::Own
    }

    /// The allocation of an id.
    pub fn allocation(&self, id: AllocationId) -> Option<&Allocation> {
        self.allocations.get(id.position())
    }

    /// When the program gave back the allocation of an id ([`Allocation::given_back`]).
    pub fn given_back(&self, id: AllocationId) -> Option<EventIndex> {
        self.allocation(id)?.given_back()
    }

    /// What is older than the first event, with its ids: it stands first.
    pub fn older(&self) -> impl Iterator<Item = (AllocationId, &Allocation)> {
        self.iter().take_while(|(_, one)| one.alloc.is_none())
    }

    /// What is born after one event and before another.
    pub fn born_between(&self, after: EventIndex, before: EventIndex) -> impl Iterator<Item = &Allocation> {
        let first = self.allocations.partition_point(|one| one.alloc.is_none_or(|born| born <= after));
        let born = self.allocations.get(first..).unwrap_or_default().iter();
        born.take_while(move |one| one.alloc.is_some_and(|born| born < before))
    }

    /// All allocations with their ids.
    pub fn iter(&self) -> impl Iterator<Item = (AllocationId, &Allocation)> {
        self.allocations.iter().enumerate().filter_map(|(at, one)| Some((AllocationId::at(at)?, one)))
    }
}
