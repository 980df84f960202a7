//! Large segments of which nearly nothing is in use, and which cannot be released all the same.
//!
//! In: the final segments, the lifetimes and the replayed block sizes. Out: for each such segment what it was made for,
//! and which small blocks hold it. A segment goes back to the driver as a whole or not at all
//! (`c10/cuda/CUDACachingAllocator.cpp`, `release_block`); an expandable one goes page by page and is never pinned.
//! Each segment's allocations are swept once.

use crate::facts::Facts;
use crate::facts::occupants::{made, occupants};
use crate::snapshot::Segment;
use crate::threshold::Threshold;
use crate::timeline::Allocation;
use crate::unit::{AllocationId, Bytes, EventIndex, Index};

/// The share of a segment that its tenant takes: the block for which the segment was made.
static TENANT: Threshold<f64> = Threshold::new("facts::pinned::TENANT", 0.5);
/// The share of a segment up to which it counts as nearly empty. The pinned ones of the corpus reach 6 %, segments that
/// serve a loop 47 % and more.
static EMPTY: Threshold<f64> = Threshold::new("facts::pinned::EMPTY", 0.25);

/// A segment that small blocks keep from being released.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PinnedSegment {
    /// Bytes held from the driver.
    pub size: Bytes,
    /// The most that was in use of it since its tenant went.
    pub used: Bytes,
    /// The block for which it was made.
    pub tenant: AllocationId,
    /// What is in use of it at the end of the last iteration and was put there after the tenant had gone, or stood beside it.
    pub pins: Vec<AllocationId>,
    /// The event since which it has never been empty.
    pub since: EventIndex,
    /// The ends of iterations from then on.
    pub ends: usize,
    /// Whether it was there before the recording, so that its tenant was not the first that it served.
    pub is_older: bool,
}

impl PinnedSegment {
    /// The bytes that are held for nothing.
    pub fn waste(&self) -> Bytes {
        self.size - self.used
    }
}

pub(super) fn pinned_segments(facts: &Facts, least: Bytes) -> Vec<PinnedSegment> {
    let candidate = |one: &Segment| one.pool == (0, 0) && !one.expandable && one.total_size >= least;
    let made = made(facts);
    let mut pinned: Vec<PinnedSegment> = occupants(facts, candidate)
        .into_iter()
        .filter_map(|(segment, inside)| {
            let is_older = !made.contains(&segment.address);
            Some(PinnedSegment { is_older, ..examine(facts, segment.total_size, &inside)? })
        })
        .filter(|one| one.waste() >= least)
        .collect();
    pinned.sort_by_key(|one| std::cmp::Reverse(one.waste()));
    pinned
}

fn examine(facts: &Facts, size: Bytes, inside: &[AllocationId]) -> Option<PinnedSegment> {
    let all: Vec<(AllocationId, &Allocation, Bytes)> = inside
        .iter()
        .filter_map(|id| Some((*id, facts.timeline.allocation(*id)?, facts.block_size(*id))))
        .collect();
    // What holds it through the last iteration pins it, also where the program's end frees that before the snapshot is taken.
    let ends = facts.iteration_ends();
    let last = ends.last().and_then(|end| EventIndex::at(*end));
    let in_time = |died: &EventIndex| last.is_none_or(|last| *died <= last);
    let tenants = all.iter().filter(|(.., bytes)| bytes.share_of(size) >= TENANT.get());
    let (tenant, gone) = tenants
        .map(|(id, one, _)| one.free.filter(in_time).map(|died| (*id, died)))
        .collect::<Option<Vec<_>>>()?
        .into_iter()
        .max_by_key(|(_, died)| *died)?;
    let mut changes: Vec<(usize, i128)> = Vec::new();
    for (_, one, bytes) in &all {
        let bytes = i128::from(bytes.get());
        changes.push((one.alloc.map_or(0, Index::position), bytes));
        changes.extend(one.free.map(|died| (died.position(), -bytes)));
    }
    changes.retain(|(position, _)| last.is_none_or(|last| *position <= last.position()));
    changes.sort_unstable();
    let (mut level, mut used, mut since) = (0_i128, 0_i128, gone.position());
    for (position, by) in changes {
        if level == 0 {
            since = since.max(position);
        }
        level += by;
        if position >= gone.position() {
            used = used.max(level);
        }
    }
    let used = Bytes(u64::try_from(used).unwrap_or(0));
    if level <= 0 || used.share_of(size) > EMPTY.get() {
        return None;
    }
    let pins = all
        .iter()
        .filter(|(_, one, _)| last.map_or(one.free.is_none(), |last| one.alive_after(last)))
        .map(|(id, ..)| *id)
        .collect();
    let ends = ends.len() - ends.partition_point(|end| *end <= since);
    Some(PinnedSegment { size, used, tenant, pins, since: EventIndex::at(since)?, ends, is_older: false })
}
