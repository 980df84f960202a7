//! Memory that went back to the driver inside the loop and was asked for again.
//!
//! In: the segment events of a device. Out: the releases in order, each with what was got back before the next one. A
//! recording with stacks of allocations only (`context="alloc"`) shows who allocated a segment, not who released it.

use crate::facts::Facts;
use crate::frames::MemorySign;
use crate::snapshot::Action;
use crate::unit::{Bytes, EventIndex, Index, StackId};

/// Segments that went back to the driver with nothing got in between.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Release {
    /// The first of its events.
    pub event: EventIndex,
    /// What was asked of the driver again before the next release, but no more than what had gone back by then.
    pub regained: Bytes,
    /// The events that asked for it.
    pub requests: Vec<EventIndex>,
    /// How many segments went back.
    pub segments: usize,
    /// What made them go back.
    pub cause: ReleaseCause,
}

/// Why segments go back to the driver.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReleaseCause {
    /// `empty_cache` was called, under this stack.
    Call(StackId),
    /// A CUDA graph was about to be captured: PyTorch empties the cache once for each, and no line of the user's asks for it.
    Capture,
    /// A request that the driver refused (or `garbage_collection_threshold`) emptied the cache before it was tried again.
    Retry(StackId),
    /// The recording does not show it.
    Unknown,
}

pub(super) fn releases(facts: &Facts) -> Vec<Release> {
    let mut releases: Vec<Release> = Vec::new();
    let mut stacks: Vec<Option<StackId>> = Vec::new();
    // What went back and was not asked for again yet: what one part of an iteration gives back the same part of the next may need.
    let mut gone = Bytes::ZERO;
    for (position, event) in facts.trace.events.iter().enumerate() {
        let Some(at) = EventIndex::at(position) else { break };
        match event.action {
            Action::SegmentFree | Action::SegmentUnmap => {
                gone += event.size;
                if let Some(open) = releases.last_mut().filter(|release| release.requests.is_empty()) {
                    open.segments += 1;
                } else {
                    stacks.clear();
                    releases.push(Release {
                        event: at,
                        regained: Bytes::default(),
                        requests: Vec::new(),
                        segments: 1,
                        cause: ReleaseCause::Unknown,
                    });
                }
                stacks.push(event.stack);
            }
            Action::SegmentAlloc | Action::SegmentMap => {
                let Some(release) = releases.last_mut() else { continue };
                if release.requests.is_empty() {
                    release.cause = cause(facts, &stacks, event.stack);
                }
                let again = gone.min(event.size);
                gone -= again;
                release.regained += again;
                release.requests.push(at);
            }
            _ => {}
        }
    }
    releases
}

/// What the stacks of a release and of the request after it say.
fn cause(facts: &Facts, released: &[Option<StackId>], request: Option<StackId>) -> ReleaseCause {
    let calls = |stack: &&StackId| facts.frames.shows(**stack, MemorySign::EmptyCache);
    if let Some(stack) = released.iter().flatten().find(calls) {
        let captures = facts.frames.shows(*stack, MemorySign::Captures);
        return if captures { ReleaseCause::Capture } else { ReleaseCause::Call(*stack) };
    }
    match request {
        Some(stack) if released.iter().all(|one| *one == Some(stack)) => ReleaseCause::Retry(stack),
        _ => ReleaseCause::Unknown,
    }
}
