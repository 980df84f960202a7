//! The peaks of the default pool, private pools apart; and these.
//!
//! In: events, replayed block sizes and the final segments. Out: the most that the default pool reserved, and the most that
//! was in use of it at once; the same for each private pool. What a private pool (a CUDA graph's) holds is no fragmentation of the default pool. Pools are
//! known from the final segments, so one that was released before the end counts as default.

use std::collections::BTreeMap;

use rustc_hash::FxHashSet;

use crate::facts::Facts;
use crate::facts::occupants::{made, occupants};
use crate::lives::Curve;
use crate::unit::{AllocationId, Bytes, Index};

/// The peaks of a pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PoolPeaks {
    /// The most that was held from the driver.
    pub reserved: Bytes,
    /// The most that was in use at once, in whole blocks.
    pub active: Bytes,
    /// What was held before the first event. How much of it was ever in use, the recording cannot know.
    pub held_before: Bytes,
}

/// A private pool: the memory of one CUDA graph, or of several that share it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PrivatePool {
    /// PyTorch's two numbers. A graph that is captured without `pool=` gets a pool (n, 0) of its own; handles that the
    /// program asks for are (0, n) (`c10/cuda/CUDACachingAllocator.cpp`, `MemPool::MemPool`).
    pub id: (u64, u64),
    /// What it holds from the driver.
    pub reserved: Bytes,
    /// The most that was in use of it at once, in whole blocks.
    pub peak: Bytes,
    /// What is still in use of it at the end: the outputs of its graphs.
    pub kept: Bytes,
    /// What was allocated from it.
    pub allocations: Vec<AllocationId>,
    /// The most that was in use of it at once in the steady part of the recording, in whole blocks.
    pub steady_peak: Bytes,
    /// Whether it may serve a CUDA graph, whose replays use its memory and leave no event: a capture never runs on the
    /// default stream.
    pub may_serve_graphs: bool,
    /// Whether some of it was there before the first event.
    pub is_older: bool,
}

impl Facts<'_> {
    /// The peaks of the default pool: private ones (CUDA graphs) apart.
    pub fn default_pool(&self) -> PoolPeaks {
        *self.default_pool.get_or_init(|| default_pool(self))
    }

    /// The private pools that were there when the snapshot was taken, by their numbers.
    pub fn private_pools(&self) -> &[PrivatePool] {
        self.private_pools.get_or_init(|| private_pools(self))
    }
}

/// The private pools of the final segments.
fn private_pools(facts: &Facts) -> Vec<PrivatePool> {
    let mut pools: BTreeMap<(u64, u64), PrivatePool> = BTreeMap::new();
    let made = made(facts);
    for (segment, inside) in occupants(facts, |one| one.pool != (0, 0)) {
        let pool = pools.entry(segment.pool).or_insert_with(|| PrivatePool {
            id: segment.pool,
            reserved: Bytes::ZERO,
            peak: Bytes::ZERO,
            kept: Bytes::ZERO,
            allocations: Vec::new(),
            steady_peak: Bytes::ZERO,
            may_serve_graphs: false,
            is_older: false,
        });
        pool.reserved += segment.total_size;
        pool.may_serve_graphs |= facts.snapshot.stream_pointer(segment.stream) != 0;
        pool.is_older |= !made.contains(&segment.address);
        pool.allocations.extend(inside);
    }
    let steady = &facts.steady().events;
    for pool in pools.values_mut() {
        let (mut curve, mut steady_curve) = (Curve::default(), Curve::default());
        for (id, one) in pool.allocations.iter().filter_map(|id| Some((*id, facts.timeline.allocation(*id)?)))
        {
            let born = one.alloc.map_or(0, Index::position);
            let died = one.free.map(Index::position);
            curve.add(born, died, facts.block_size(id));
            if born < steady.end && died.is_none_or(|died| died > steady.start) {
                steady_curve.add(born.max(steady.start), died, facts.block_size(id));
            }
        }
        pool.steady_peak = steady_curve.highest().0;
        pool.kept = curve.rest();
        pool.peak = curve.highest().0;
    }
    pools.into_values().collect()
}

/// What captured graphs made: their replays use it and leave no event, so it lies there on purpose.
pub(super) fn captured(facts: &Facts) -> FxHashSet<AllocationId> {
    let pools = facts.private_pools().iter().filter(|pool| pool.may_serve_graphs);
    pools.flat_map(|pool| &pool.allocations).copied().collect()
}

fn default_pool(facts: &Facts) -> PoolPeaks {
    let private: BTreeMap<u64, u64> = facts
        .snapshot
        .segments_of(facts.device.position())
        .filter(|segment| segment.pool != (0, 0))
        .map(|segment| (segment.address, segment.address.saturating_add(segment.total_size.get())))
        .collect();
    if private.is_empty() {
        return PoolPeaks {
            reserved: facts.timeline.peak_reserved.bytes,
            active: facts.replay.peak_active.bytes,
            held_before: facts.timeline.reserved_at_start,
        };
    }
    let is_private =
        |address: u64| private.range(..=address).next_back().is_some_and(|(_, end)| address < *end);
    let mut reserved = PoolLevel { now: signed(facts.timeline.reserved_at_start), peak: 0 };
    let mut active = PoolLevel::default();
    // Private segments that were there before the first event are part of what was reserved then.
    let made = made(facts);
    let older = private.iter().filter(|(address, _)| !made.contains(address));
    reserved.change(-older.map(|(address, end)| i128::from(end - address)).sum::<i128>());
    let held_before = bytes(reserved.now);
    for (id, allocation) in facts.timeline.older() {
        if !is_private(allocation.address) {
            active.change(block(facts, id.position()));
        }
    }
    for (position, event) in
        facts.trace.events.iter().enumerate().filter(|(_, event)| !is_private(event.address))
    {
        if let Some(change) = event.reserves() {
            reserved.change(change);
            continue;
        }
        let id = facts.timeline.allocation_of.get(position).copied().flatten();
        let Some((id, allocation)) = id.and_then(|id| Some((id, facts.timeline.allocation(id)?))) else {
            continue;
        };
        if allocation.alloc.is_some_and(|born| born.position() == position) {
            active.change(block(facts, id.position()));
        } else if allocation.free.is_some_and(|died| died.position() == position) {
            active.change(-block(facts, id.position()));
        }
    }
    PoolPeaks { reserved: bytes(reserved.peak), active: bytes(active.peak), held_before }
}

#[derive(Default)]
struct PoolLevel {
    now: i128,
    peak: i128,
}

impl PoolLevel {
    fn change(&mut self, by: i128) {
        self.now += by;
        self.peak = self.peak.max(self.now);
    }
}

fn bytes(level: i128) -> Bytes {
    Bytes(u64::try_from(level).unwrap_or(0))
}

fn signed(bytes: Bytes) -> i128 {
    i128::from(bytes.get())
}

fn block(facts: &Facts, position: usize) -> i128 {
    facts.replay.block_sizes.get(position).copied().map_or(0, signed)
}
