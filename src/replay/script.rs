//! What a recorded program asked of the allocator: requests, frees, releases, in order.
//!
//! In: the events and lifetimes of a device. Out: steps that can be played on a model of the allocator, under any
//! settings. The driver's calls are no part of it, but for what only the program can have caused: memory that went back
//! to the driver outside of a request is a call of `empty_cache`.
//!
//! Where it can fail: a call of `empty_cache` that had nothing to release leaves no trace; without stacks, a release
//! right in front of a request that failed at first looks like one; the private pool of a request is told by the
//! segment that it lay in where events have no `pool_id` (before 2.12), and then unknown for segments that are gone.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

use super::Replay;
use super::addresses::Habits;
use super::held::tiled_segments_at;
use crate::snapshot::{Action, Event, Segment, Snapshot};
use crate::timeline::Timeline;
use crate::unit::{AllocationId, Bytes, EventIndex, Index};

/// Private pools beyond this many are taken for the last of them: no program has so many, but a file may say so.
const MOST_POOLS: u16 = 4096;

/// One thing that the program did; eight bytes, because there is one for every event. Pools go by number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Operation {
    /// It asked for memory and got it.
    Request(AllocationId),
    /// It asked for memory and got none: so many bytes, by a stream, from a pool.
    Refused,
    /// It gave memory back.
    GiveBack(AllocationId),
    /// Memory that was given back is free.
    Complete(AllocationId),
    /// It let go of a private pool, which may be released from now on.
    LetGo(u16),
    /// It called `empty_cache`.
    Release,
    /// It released one private pool.
    ReleasePrivate(u16),
}

/// The steps of one device.
#[derive(Debug, Clone)]
pub struct Script {
    /// Each with the event that shows it.
    pub(super) steps: Vec<(EventIndex, Operation)>,
    /// The pools by number, the default one first.
    pub(super) pools: Vec<(u64, u64)>,
    /// The number of each allocation's pool.
    pub(super) pool_of: Vec<u16>,
    /// The segments that were held before the first event, with their blocks and the numbers of their pools.
    pub(super) at_start: Vec<(Segment, u16)>,
    /// What the program had asked for before the first event and not given back.
    pub(super) requested_at_start: Bytes,
    /// What the driver's calls show of it.
    pub(super) habits: Habits,
}

impl Script {
    /// Reads the steps off a recording.
    pub fn of(snapshot: &Snapshot, timeline: &Timeline, replay: &Replay) -> Script {
        let events =
            snapshot.devices.get(timeline.device.position()).map_or(&[][..], |trace| trace.events.as_slice());
        let mut writer = Writer::new(snapshot, timeline, replay, events);
        let mut position = 0;
        while let (Some(event), Some(at)) = (events.get(position), EventIndex::at(position)) {
            if gives_memory_back(event) {
                position = writer.write_release(position);
            } else {
                writer.write(at, event);
                position += 1;
            }
        }
        writer.finish()
    }
}

fn gives_memory_back(event: &Event) -> bool {
    matches!(event.action, Action::SegmentFree | Action::SegmentUnmap)
}

struct Writer<'a> {
    snapshot: &'a Snapshot,
    timeline: &'a Timeline,
    events: &'a [Event],
    at_start: Vec<Segment>,
    steps: Vec<(EventIndex, Operation)>,
    pools: PoolNumbers,
    pool_of: Vec<u16>,
    /// Lifetimes that end with the birth of another at their address, because their free is missing: by that event.
    cut_short: FxHashMap<EventIndex, AllocationId>,
}

impl<'a> Writer<'a> {
    fn new(snapshot: &'a Snapshot, timeline: &'a Timeline, replay: &Replay, events: &'a [Event]) -> Self {
        let (at_start, _) = tiled_segments_at(snapshot, timeline, replay, 0);
        let pools = PoolNumbers::of(snapshot, timeline, events, &at_start);
        let mut pool_of = vec![0; timeline.allocations.len()];
        let mut cut_short = FxHashMap::default();
        for (id, allocation) in timeline.iter() {
            if allocation.alloc.is_none() {
                pool_of[id.position()] = pools.at(allocation.address);
            }
            if let Some(end) = allocation.free
                && timeline.allocation_of.get(end.position()) != Some(&Some(id))
            {
                cut_short.insert(end, id);
            }
        }
        let steps = Vec::with_capacity(events.len());
        Writer { snapshot, timeline, events, at_start, steps, pools, pool_of, cut_short }
    }

    fn write(&mut self, at: EventIndex, event: &Event) {
        match event.action {
            Action::Alloc | Action::FreeRequested | Action::FreeCompleted => self.write_block(at, event),
            Action::OutOfMemory => self.steps.push((at, Operation::Refused)),
            Action::SegmentAlloc | Action::SegmentMap => self.pools.got(self.snapshot, at, event),
            Action::SegmentFree | Action::SegmentUnmap | Action::Snapshot | Action::Other => {}
        }
    }

    fn write_block(&mut self, at: EventIndex, event: &Event) {
        let Some(id) = self.timeline.allocation_of.get(at.position()).copied().flatten() else { return };
        let Some(allocation) = self.timeline.allocation(id) else { return };
        if allocation.alloc == Some(at) {
            if let Some(lost) = self.cut_short.remove(&at) {
                self.end(at, lost);
            }
            self.pool_of[id.position()] = self.pools.of_event(self.snapshot, event);
            self.steps.push((at, Operation::Request(id)));
            return;
        }
        // A free without its request (recorded with `skip_actions`) is both.
        if allocation.free_requested.unwrap_or(at) == at {
            self.steps.push((at, Operation::GiveBack(id)));
        }
        if allocation.free == Some(at) {
            self.steps.push((at, Operation::Complete(id)));
        }
    }

    fn end(&mut self, at: EventIndex, id: AllocationId) {
        let given_back = self.timeline.allocation(id).is_some_and(|one| one.free_requested.is_some());
        if !given_back {
            self.steps.push((at, Operation::GiveBack(id)));
        }
        self.steps.push((at, Operation::Complete(id)));
    }

    /// Memory that goes back to the driver from an event on; the position after the last such event in a row.
    fn write_release(&mut self, from: usize) -> usize {
        let rest = self.events.get(from..).unwrap_or_default();
        let length = rest.iter().take_while(|event| gives_memory_back(event)).count();
        let (freed, next) = rest.split_at(length);
        let mut pools: Vec<u16> = freed.iter().map(|event| self.pools.lost(self.snapshot, event)).collect();
        let Some(at) = EventIndex::at(from + length - 1) else { return from + length };
        if is_retry(freed, next) {
            return from + length;
        }
        pools.dedup();
        let mut private = pools.clone();
        private.retain(|pool| *pool != 0);
        private.sort_unstable();
        private.dedup();
        self.steps.extend(private.iter().map(|pool| (at, Operation::LetGo(*pool))));
        if pools.contains(&0) {
            self.steps.push((at, Operation::Release));
        } else {
            self.steps.extend(private.iter().map(|pool| (at, Operation::ReleasePrivate(*pool))));
        }
        from + length
    }

    fn finish(self) -> Script {
        let mut pools = self.pools;
        let at_start = self.at_start.into_iter().map(|segment| {
            let pool = pools.number(segment.pool);
            (segment, pool)
        });
        let at_start: Vec<(Segment, u16)> = at_start.collect();
        let habits = Habits::of(self.events, &at_start);
        Script {
            habits,
            steps: self.steps,
            pools: pools.known,
            pool_of: self.pool_of,
            at_start,
            requested_at_start: self.timeline.requested_at_start,
        }
    }
}

/// Whether memory was given back by a request that got none at first, and not by the program: then the request's own
/// stack stands at what it gave back (`maybeGatherContext` is called once a request).
fn is_retry(freed: &[Event], next: &[Event]) -> bool {
    let got = |event: &&Event| matches!(event.action, Action::SegmentAlloc | Action::SegmentMap);
    let mut next = next.iter().skip_while(got);
    let Some(request) = next.next() else { return false };
    match request.action {
        Action::OutOfMemory => true,
        Action::Alloc => request.stack.is_some() && freed.iter().all(|event| event.stack == request.stack),
        _ => false,
    }
}

/// Which private pool an address belongs to.
struct PoolNumbers {
    /// By number, the default one first.
    known: Vec<(u64, u64)>,
    numbers: FxHashMap<(u64, u64), u16>,
    /// Ranges that belong to a private pool now: where they end, and the pool.
    ranges: BTreeMap<u64, (u64, u16)>,
    /// Final segments of private pools, by the event that got them.
    coming: FxHashMap<EventIndex, u16>,
}

impl PoolNumbers {
    fn of(snapshot: &Snapshot, timeline: &Timeline, events: &[Event], at_start: &[Segment]) -> PoolNumbers {
        let mut pools = PoolNumbers {
            known: vec![(0, 0)],
            numbers: FxHashMap::default(),
            ranges: BTreeMap::new(),
            coming: FxHashMap::default(),
        };
        pools.numbers.insert((0, 0), 0);
        for segment in at_start {
            pools.add_range(segment);
        }
        let segments = snapshot.segments_of(timeline.device.position());
        let private: Vec<&Segment> = segments.filter(|segment| segment.pool != (0, 0)).collect();
        // Where a segment was got, given back and got again, the last time counts.
        let got = events.iter().enumerate().filter(|(_, event)| event.action == Action::SegmentAlloc);
        let last: FxHashMap<u64, usize> = if private.is_empty() {
            FxHashMap::default()
        } else {
            got.map(|(position, event)| (event.address, position)).collect()
        };
        for segment in private {
            // Pages are got one by one, and never given to another pool: their range may be known from the start.
            if segment.expandable {
                pools.add_range(segment);
            } else if let Some(at) = last.get(&segment.address).and_then(|at| EventIndex::at(*at)) {
                let number = pools.number(segment.pool);
                pools.coming.insert(at, number);
            }
        }
        pools
    }

    fn number(&mut self, pool: (u64, u64)) -> u16 {
        let next = self.known.len();
        if let Some(known) = self.numbers.get(&pool) {
            return *known;
        }
        let Some(number) = u16::try_from(next).ok().filter(|number| *number < MOST_POOLS) else {
            return MOST_POOLS - 1;
        };
        self.known.push(pool);
        self.numbers.insert(pool, number);
        number
    }

    fn add_range(&mut self, segment: &Segment) {
        if segment.pool != (0, 0) {
            let end = segment.address.saturating_add(segment.total_size.get());
            let number = self.number(segment.pool);
            self.ranges.insert(segment.address, (end, number));
        }
    }

    /// The pool of an address.
    fn at(&self, address: u64) -> u16 {
        let range = self.ranges.range(..=address).next_back();
        range.filter(|(_, (end, _))| address < *end).map_or(0, |(_, (_, pool))| *pool)
    }

    /// The pool of an event: as it says, or as its address says.
    fn of_event(&mut self, snapshot: &Snapshot, event: &Event) -> u16 {
        match snapshot.particulars_of(event).pool {
            Some(pool) => self.number(pool),
            None if self.ranges.is_empty() => 0,
            None => self.at(event.address),
        }
    }

    /// Notes a segment that was got.
    fn got(&mut self, snapshot: &Snapshot, at: EventIndex, event: &Event) {
        let size = event.size.get();
        let pool = match snapshot.particulars_of(event).pool {
            Some(pool) => self.number(pool),
            None => self.coming.get(&at).copied().unwrap_or(0),
        };
        if pool != 0 {
            self.ranges.insert(event.address, (event.address.saturating_add(size), pool));
        }
    }

    /// Notes a segment that went back, and says whose it was.
    fn lost(&mut self, snapshot: &Snapshot, event: &Event) -> u16 {
        let pool = self.of_event(snapshot, event);
        if event.action == Action::SegmentFree {
            self.ranges.remove(&event.address);
        }
        pool
    }
}
