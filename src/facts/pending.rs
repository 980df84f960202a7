//! Bytes that the program has given back, but that another stream may still be using.
//!
//! In: the lifetimes and the replayed block sizes. Out: the moment at which most bytes waited, and which. The allocator
//! completes a free in the event after its request, unless `record_stream` named other streams: then it asks the GPU,
//! with each later request, whether they are done (`c10/cuda/CUDACachingAllocator.cpp`, `insert_events`). A recording
//! without completed frees (`skip_actions`) shows nothing of this.

use crate::facts::Facts;
use crate::lives::Curve;
use crate::snapshot::Action;
use crate::timeline::Allocation;
use crate::unit::{AllocationId, Bytes, EventIndex, Index};

/// What waited when most did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pending {
    /// The most that waited at once, in whole blocks.
    pub peak: Bytes,
    /// When.
    pub at: EventIndex,
    /// What waited then, oldest first.
    pub waiting: Vec<AllocationId>,
    /// Everything that ever waited, oldest first.
    pub late: Vec<AllocationId>,
}

pub(super) fn pending(facts: &Facts) -> Option<Pending> {
    let events = &facts.trace.events;
    if !events.iter().any(|event| event.action == Action::FreeCompleted) {
        return None;
    }
    let late: Vec<(AllocationId, usize, Option<usize>)> = facts
        .timeline
        .iter()
        .filter_map(|(id, one)| wait(one).map(|(asked, done)| (id, asked, done)))
        .collect();
    let mut curve = Curve::default();
    for (id, asked, done) in &late {
        curve.add(*asked, *done, facts.block_size(*id));
    }
    let (peak, at) = curve.highest();
    let waits = |(_, asked, done): &&(AllocationId, usize, Option<usize>)| {
        *asked <= at && done.is_none_or(|done| done > at)
    };
    let waiting = late.iter().filter(waits).map(|(id, ..)| *id).collect();
    let late = late.iter().map(|(id, ..)| *id).collect();
    (peak > Bytes::ZERO).then_some(Pending { peak, at: EventIndex::at(at)?, waiting, late })
}

/// From when to when an allocation waited, where it did.
fn wait(allocation: &Allocation) -> Option<(usize, Option<usize>)> {
    let asked = allocation.free_requested?.position();
    let done = allocation.free.map(Index::position);
    done.is_none_or(|done| done > asked + 1).then_some((asked, done))
}
