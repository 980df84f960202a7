//! The request that the program did not survive, and how the allocator stood then.
//!
//! In: events, lifetimes, the allocator at the recorded addresses. Out: the failure that counts, with the free pieces of that
//! moment and what lies between them. Libraries ask for more than they need and take less where they get none: cuDNN tries
//! algorithms by the size of their workspaces, and nothing of it reaches Python. Such a refusal shows by what comes next: the same
//! Python call goes on and is handed memory, while an exception gives memory back first. Where every refusal was survived so, the first one
//! counts. PyTorch has given all empty segments back to the driver by then (`release_cached_blocks`), so what is free lies in segments
//! that are in use.

use crate::facts::Facts;
use crate::replay::{is_small_request, tiled_segments_at};
use crate::snapshot::{Action, Block, BlockState, Event, Segment};
use crate::unit::{AllocationId, Bytes, EventIndex, FrameId, Index, StackId};

/// A request that failed, and how the allocator stood.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// The `oom` event.
    pub event: EventIndex,
    /// Bytes of the block that was wanted: the request, rounded.
    pub wanted: Bytes,
    /// Bytes held from the driver.
    pub reserved: Bytes,
    /// Bytes of these that were in use.
    pub in_use: Bytes,
    /// Bytes that lay free where requests of this size are served: up to 1 MiB and above it are kept apart (`kSmallSize` in
    /// `c10/cuda/CUDACachingAllocator.cpp`), and neither takes what the other has.
    pub free: Bytes,
    /// The largest free piece of these, whatever stream or pool it belongs to.
    pub largest: Bytes,
    /// How many there were.
    pub pieces: usize,
    /// What is in use of segments that are free for the most part, and keeps them from going back to the driver.
    pub pins: Vec<AllocationId>,
}

pub(super) fn failure(facts: &Facts) -> Option<Failure> {
    let events = &facts.trace.events;
    let first = facts.replay.failure?.event.position();
    let position = failures(facts).first().copied().unwrap_or(first);
    let (event, wanted) = (EventIndex::at(position)?, events.get(position)?.size);
    let (segments, _) = tiled_segments_at(facts.snapshot, facts.timeline, facts.replay, position);
    let is_free = |block: &&Block| block.state == BlockState::Inactive;
    let used = segments.iter().flat_map(|segment| &segment.blocks).filter(|block| !is_free(block));
    let small = is_small_request(wanted);
    let own = segments.iter().filter(|segment| segment.small_pool == small);
    let free: Vec<Bytes> =
        own.flat_map(|segment| &segment.blocks).filter(is_free).map(|block| block.size).collect();
    Some(Failure {
        event,
        wanted,
        reserved: segments.iter().map(|segment| segment.total_size).sum(),
        in_use: used.map(|block| block.size).sum(),
        free: free.iter().copied().sum(),
        largest: free.iter().copied().max().unwrap_or_default(),
        pieces: free.len(),
        pins: pins(facts, &segments, event),
    })
}

/// The positions of the refusals that were not survived. Of several in a row the last decides: after each other one the call tried
/// again.
pub(super) fn failures(facts: &Facts) -> Vec<usize> {
    let mut refused: Option<usize> = None;
    let mut failures = Vec::new();
    for (position, event) in facts.trace.events.iter().enumerate() {
        match event.action {
            Action::OutOfMemory => refused = Some(position),
            Action::Alloc | Action::FreeRequested | Action::FreeCompleted => {
                failures.extend(refused.take().filter(|refusal| !goes_on(facts, *refusal, event)));
            }
            _ => {}
        }
    }
    failures.extend(refused);
    failures
}

/// Whether what next happens to a block is that one is handed out under the same Python stack.
fn goes_on(facts: &Facts, refusal: usize, next: &Event) -> bool {
    let python =
        |stack: Option<StackId>| -> &[FrameId] { stack.map_or(&[], |stack| facts.frames.python(stack)) };
    let own = facts.trace.events.get(refusal).and_then(|event| event.stack);
    next.action == Action::Alloc && python(own) == python(next.stack)
}

/// The blocks in use of segments that are free for the most part. Pages of expandable segments go back one by one.
fn pins(facts: &Facts, segments: &[Segment], at: EventIndex) -> Vec<AllocationId> {
    let mostly_free = |segment: &&Segment| {
        let in_use = segment.blocks.iter().filter(|block| block.state != BlockState::Inactive);
        let used: Bytes = in_use.map(|block| block.size).sum();
        !segment.expandable && used.get() > 0 && used.get() <= segment.total_size.get() / 2
    };
    let ranges: Vec<(u64, u64)> = segments
        .iter()
        .filter(mostly_free)
        .map(|segment| (segment.address, segment.address.saturating_add(segment.total_size.get())))
        .collect();
    let within = |address: u64| {
        let after = ranges.partition_point(|(start, _)| *start <= address);
        after.checked_sub(1).and_then(|last| ranges.get(last)).is_some_and(|(_, end)| address < *end)
    };
    let alive = facts.timeline.iter().filter(|(_, one)| one.alive_after(at));
    alive.filter(|(_, one)| within(one.address)).map(|(id, _)| id).collect()
}
