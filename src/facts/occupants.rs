//! What was allocated from the segments that are there at the end.
//!
//! In: the final segments and the lifetimes. Out: for each segment asked for the allocations made in it. A segment may stand
//! where an earlier one was given back; what that one held does not count. Each allocation is looked up once.

use std::collections::BTreeMap;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::facts::Facts;
use crate::snapshot::{Action, Segment};
use crate::unit::{AllocationId, Index};

/// The segments that `wanted` picks, by address, each with its allocations, oldest first.
pub(super) fn occupants<'a>(
    facts: &Facts<'a>,
    wanted: impl Fn(&Segment) -> bool,
) -> Vec<(&'a Segment, Vec<AllocationId>)> {
    let snapshot = facts.snapshot;
    let mut picked: BTreeMap<u64, (&Segment, Vec<AllocationId>)> = snapshot
        .segments_of(facts.device.position())
        .filter(|one| wanted(one))
        .map(|one| (one.address, (one, Vec::new())))
        .collect();
    if picked.is_empty() {
        return Vec::new();
    }
    let made: FxHashMap<u64, usize> = facts
        .trace
        .events
        .iter()
        .enumerate()
        .filter(|(_, event)| event.action == Action::SegmentAlloc)
        .map(|(position, event)| (event.address, position))
        .collect();
    for (id, allocation) in facts.timeline.iter() {
        let Some((base, (segment, inside))) = picked.range_mut(..=allocation.address).next_back() else {
            continue;
        };
        let end = base.saturating_add(segment.total_size.get());
        let is_later = |made: &usize| allocation.alloc.is_some_and(|born| born.position() > *made);
        if allocation.address < end && made.get(base).is_none_or(is_later) {
            inside.push(id);
        }
    }
    picked.into_values().collect()
}

/// The addresses at which the recording shows the driver's calls for memory.
pub(super) fn made(facts: &Facts) -> FxHashSet<u64> {
    let makes = |action| matches!(action, Action::SegmentAlloc | Action::SegmentMap);
    facts.trace.events.iter().filter(|event| makes(event.action)).map(|event| event.address).collect()
}
