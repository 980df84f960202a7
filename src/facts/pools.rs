//! How much was reserved beyond what was ever in use, private pools apart.
//!
//! In: the peaks, the replayed block sizes and the final segments. Out: bytes. What a private pool (a CUDA graph's)
//! holds beyond its own peak use is no fragmentation of the default pool and is taken off; pools are known from the
//! final segments, so a pool released before the end counts as default.

use std::collections::BTreeMap;

use crate::facts::Facts;
use crate::unit::{Bytes, Index};

/// Reserved peak less active peak, less what private pools waste.
pub(super) fn unused(facts: &Facts) -> Bytes {
    let gap = facts.timeline.peak_reserved.bytes - facts.replay.peak_active.bytes;
    gap - private_waste(facts)
}

/// A private pool's address range.
struct Range {
    end: u64,
    pool: (u64, u64),
}

#[derive(Default)]
struct Use {
    reserved: Bytes,
    active: Bytes,
    peak: Bytes,
}

fn private_waste(facts: &Facts) -> Bytes {
    let mut ranges: BTreeMap<u64, Range> = BTreeMap::new();
    let mut pools: BTreeMap<(u64, u64), Use> = BTreeMap::new();
    for segment in facts.snapshot.segments_of(facts.device.position()).filter(|one| one.pool != (0, 0)) {
        let end = segment.address.saturating_add(segment.total_size.get());
        ranges.insert(segment.address, Range { end, pool: segment.pool });
        pools.entry(segment.pool).or_default().reserved += segment.total_size;
    }
    if ranges.is_empty() {
        return Bytes::ZERO;
    }
    let pool_of = |address: u64| {
        let (_, range) = ranges.range(..=address).next_back()?;
        (address < range.end).then_some(range.pool)
    };
    for (id, allocation) in facts.timeline.iter().take_while(|(_, one)| one.alloc.is_none()) {
        let bytes = facts.replay.block_sizes.get(id.position()).copied().unwrap_or_default();
        if let Some(pool) = pool_of(allocation.address).and_then(|pool| pools.get_mut(&pool)) {
            pool.active += bytes;
            pool.peak = pool.active;
        }
    }
    for (position, id) in facts.timeline.allocation_of.iter().enumerate() {
        let Some(id) = *id else { continue };
        let Some(allocation) = facts.timeline.allocation(id) else { continue };
        let Some(pool) = pool_of(allocation.address).and_then(|pool| pools.get_mut(&pool)) else { continue };
        let bytes = facts.replay.block_sizes.get(id.position()).copied().unwrap_or_default();
        if allocation.alloc.is_some_and(|event| event.position() == position) {
            pool.active += bytes;
            pool.peak = pool.peak.max(pool.active);
        } else if allocation.free.is_some_and(|event| event.position() == position) {
            pool.active -= bytes;
        }
    }
    pools.values().map(|pool| pool.reserved - pool.peak).sum()
}
