//! How large blocks were that are older than the recording and freed in it.
//!
//! In: lifetimes, and the block sizes that rounding gives. Out: sizes that are larger, where later requests show it. In the large pool a remainder
//! of up to a mebibyte stays with the block (`should_split` in `c10/cuda/CUDACachingAllocator.cpp`), so that no piece there is that small, free or in
//! use. A request is served from the start of a free piece: where one begins within a mebibyte behind an older block that is still there, what lies
//! between belongs to that block.
//!
//! Linear in the requests, with a search among the older blocks for each; those ends are few.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

use super::rounding::SMALL_REQUEST;
use crate::timeline::Timeline;
use crate::unit::{AllocationId, EventIndex};

/// An older block, as far as its request says.
struct OlderBlock {
    id: AllocationId,
    address: u64,
    freed: EventIndex,
}

/// The sizes of the older blocks of the large pool that are larger than `rounded` says of them; nothing is said of those for which that gives none.
pub(super) fn sizes(
    timeline: &Timeline,
    rounded: impl Fn(AllocationId) -> Option<u64>,
) -> FxHashMap<AllocationId, u64> {
    let mut ends: BTreeMap<u64, OlderBlock> = BTreeMap::new();
    for (id, one) in timeline.older() {
        let Some((size, freed)) = rounded(id).zip(one.free).filter(|(size, _)| *size > SMALL_REQUEST) else {
            continue;
        };
        ends.insert(one.address.saturating_add(size), OlderBlock { id, address: one.address, freed });
    }
    let mut found = FxHashMap::default();
    let born = timeline.iter().filter_map(|(_, one)| Some((one.alloc?, one.address)));
    for (at, address) in born {
        if ends.is_empty() {
            break;
        }
        let Some((&end, block)) = ends.range(..address).next_back() else { continue };
        if address - end <= SMALL_REQUEST && at < block.freed {
            found.insert(block.id, address - block.address);
            ends.remove(&end);
        }
    }
    found
}
