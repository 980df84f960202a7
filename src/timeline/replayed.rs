//! The replay itself: one pass over the events, with a table of what is alive at which address.

use rustc_hash::{FxHashMap, FxHashSet};

use super::{Agreement, Allocation, Levels, Peak, Timeline, free_stacks};
use crate::snapshot::{Action, BlockState, Event, Snapshot};
use crate::unit::{AllocationId, Bytes, DeviceIndex, EventIndex, Index};

/// A level that must never be negative: rises and falls are summed in 128 bits, so that a hostile file cannot wrap it.
#[derive(Clone, Copy, Default)]
struct CheckedLevel {
    level: i128,
    lowest: i128,
    highest: i128,
    highest_at: Option<EventIndex>,
}

impl CheckedLevel {
    fn change(&mut self, by: i128, at: EventIndex) {
        self.level += by;
        self.lowest = self.lowest.min(self.level);
        if self.level > self.highest {
            self.highest = self.level;
            self.highest_at = Some(at);
        }
    }

    fn peak(&self, start: Bytes) -> Peak {
        Peak { bytes: above(start, self.highest), event: self.highest_at }
    }
}

/// `start` moved by a difference.
fn above(start: Bytes, difference: i128) -> Bytes {
    Bytes(u64::try_from((i128::from(start.get()) + difference).max(0)).unwrap_or(u64::MAX))
}

fn clamped(level: i128) -> i64 {
    i64::try_from(level).unwrap_or(if level < 0 { i64::MIN } else { i64::MAX })
}

fn signed(bytes: Bytes) -> i128 {
    i128::from(bytes.get())
}

pub(super) fn replay(snapshot: &Snapshot, device: DeviceIndex) -> Timeline {
    let events = snapshot.devices.get(device.position()).map_or(&[][..], |trace| &trace.events);
    let mut replay = Replayer::new(events);
    for (position, event) in events.iter().enumerate() {
        let Some(at) = EventIndex::at(position) else { break };
        replay.step(at, event);
        replay.levels.push(clamped(replay.requested.level));
    }
    replay.finish(snapshot, device)
}

struct Replayer {
    /// What is alive at an address.
    alive: FxHashMap<u64, AllocationId>,
    /// Addresses that were given back at least once.
    given_back: FxHashSet<u64>,
    allocations: Vec<Allocation>,
    allocation_of: Vec<Option<AllocationId>>,
    requested: CheckedLevel,
    /// The level of requested bytes after each event so far.
    levels: Vec<i64>,
    reserved: CheckedLevel,
    agreement: Agreement,
    /// Files recorded with `skip_actions` have only one kind of free; whichever there is ends a lifetime.
    completes: bool,
}

impl Replayer {
    fn new(events: &[Event]) -> Self {
        let births = events.iter().filter(|event| event.action == Action::Alloc).count();
        Replayer {
            alive: FxHashMap::default(),
            given_back: FxHashSet::default(),
            allocations: Vec::with_capacity(births),
            allocation_of: vec![None; events.len()],
            requested: CheckedLevel::default(),
            levels: Vec::with_capacity(events.len()),
            reserved: CheckedLevel::default(),
            agreement: Agreement::default(),
            completes: events.iter().any(|event| event.action == Action::FreeCompleted),
        }
    }

    fn step(&mut self, at: EventIndex, event: &Event) {
        match event.action {
            Action::Alloc => self.begin(at, event),
            Action::FreeRequested => self.give_back(at, event),
            Action::FreeCompleted => self.end(at, event),
            _ => {
                if let Some(change) = event.reserves() {
                    self.reserved.change(change, at);
                }
            }
        }
    }

    fn begin(&mut self, at: EventIndex, event: &Event) {
        if let Some(lost) = self.alive.get(&event.address).copied() {
            // The free in between is missing: it ended at the latest when its address was handed out again.
            self.agreement.lost_frees += 1;
            self.close(lost, at);
        }
        let Some(id) = AllocationId::at(self.allocations.len()) else { return };
        self.allocations.push(Allocation {
            address: event.address,
            bytes: event.size,
            alloc: Some(at),
            free_requested: None,
            free: None,
            stack: event.stack,
            stream: event.stream,
        });
        self.alive.insert(event.address, id);
        self.note(at, id);
        self.requested.change(signed(event.size), at);
    }

    fn give_back(&mut self, at: EventIndex, event: &Event) {
        let Some(id) = self.alive_or_older(event) else { return };
        self.note(at, id);
        if let Some(allocation) = self.allocations.get_mut(id.position()) {
            allocation.free_requested = Some(at);
        }
        if !self.completes {
            self.alive.remove(&event.address);
            self.given_back.insert(event.address);
            self.close(id, at);
        }
    }

    fn end(&mut self, at: EventIndex, event: &Event) {
        let Some(id) = self.alive_or_older(event) else { return };
        self.note(at, id);
        self.alive.remove(&event.address);
        self.given_back.insert(event.address);
        self.close(id, at);
    }

    /// The allocation that a free belongs to: one seen before, or one born before the recording. One whose beginning the
    /// recording lost has no place in time.
    fn alive_or_older(&mut self, event: &Event) -> Option<AllocationId> {
        if let Some(&id) = self.alive.get(&event.address) {
            return Some(id);
        }
        if self.given_back.contains(&event.address) {
            // A block is given back and completed; it is one all the same.
            let once = event.action == Action::FreeCompleted || !self.completes;
            self.agreement.lost_allocations += usize::from(once);
            return None;
        }
        self.agreement.frees_without_alloc += 1;
        let id = AllocationId::at(self.allocations.len())?;
        self.allocations.push(Allocation {
            address: event.address,
            bytes: event.size,
            alloc: None,
            free_requested: None,
            free: None,
            stack: None,
            stream: event.stream,
        });
        self.alive.insert(event.address, id);
        Some(id)
    }

    fn close(&mut self, id: AllocationId, at: EventIndex) {
        if let Some(allocation) = self.allocations.get_mut(id.position()) {
            allocation.free = Some(at);
            let bytes = allocation.bytes;
            self.requested.change(-signed(bytes), at);
        }
    }

    fn note(&mut self, at: EventIndex, id: AllocationId) {
        if let Some(place) = self.allocation_of.get_mut(at.position()) {
            *place = Some(id);
        }
    }

    fn finish(mut self, snapshot: &Snapshot, device: DeviceIndex) -> Timeline {
        let mut held = Bytes::ZERO;
        for segment in snapshot.segments_of(device.position()) {
            held += segment.total_size;
            for block in segment.blocks.iter().filter(|block| block.state != BlockState::Inactive) {
                if self.alive.remove(&block.address).is_some() {
                    continue;
                }
                self.agreement.blocks_without_alloc += 1;
                let recorded = block.stack.is_some_and(|stack| !snapshot.stacks.get(stack).is_empty());
                let is_cut = snapshot.excerpt.as_ref().is_some_and(|excerpt| !excerpt.lost);
                self.agreement.blocks_cut += usize::from(recorded && is_cut);
                self.agreement.blocks_evicted += usize::from(recorded && !is_cut);
                self.allocations.push(Allocation {
                    address: block.address,
                    bytes: block.requested,
                    alloc: None,
                    free_requested: None,
                    free: None,
                    stack: block.stack.filter(|_| recorded),
                    stream: segment.stream,
                });
            }
        }
        self.agreement.allocations_without_block = self.alive.len();
        self.order_by_birth();
        let events = snapshot.devices.get(device.position()).map_or(&[][..], |trace| &trace.events);
        let free_stacks = free_stacks::find(&self.allocations, events, &snapshot.stacks);
        let requested_at_start =
            self.allocations.iter().filter(|one| one.alloc.is_none()).map(|one| one.bytes).sum();
        // What the segments hold at the end, less what the trace added, was held before; never less than what the
        // trace itself needs in order not to go below zero (a trace without segments, or a damaged one).
        let reserved_at_start =
            above(held, -self.reserved.level).max(above(Bytes::ZERO, -self.reserved.lowest));
        Timeline {
            device,
            levels: Levels::of(requested_at_start, self.levels),
            requested_at_start,
            reserved_at_start,
            peak_requested: self.requested.peak(requested_at_start),
            peak_reserved: self.reserved.peak(reserved_at_start),
            requested_at_end: above(requested_at_start, self.requested.level),
            reserved_at_end: above(reserved_at_start, self.reserved.level),
            allocations: self.allocations,
            allocation_of: self.allocation_of,
            agreement: self.agreement,
            free_stacks,
        }
    }

    /// Puts those born before the recording first and renumbers; the others are in order already.
    fn order_by_birth(&mut self) {
        let older = self.allocations.iter().filter(|one| one.alloc.is_none()).count();
        if older == 0 {
            return;
        }
        let (mut next_older, mut next_younger) = (0, older);
        let mut places = Vec::with_capacity(self.allocations.len());
        for allocation in &self.allocations {
            let next = if allocation.alloc.is_none() { &mut next_older } else { &mut next_younger };
            places.push(AllocationId::at(*next));
            *next += 1;
        }
        self.allocations.sort_by_key(|one| one.alloc.is_some());
        for id in self.allocation_of.iter_mut().flatten() {
            if let Some(Some(place)) = places.get(id.position()) {
                *id = *place;
            }
        }
    }
}
