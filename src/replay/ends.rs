//! A script with other ends: what the program would have asked for, had some allocations gone sooner, or never been made.
//!
//! In: a script, and for some allocations the event that ends them now. Out: the script without their old ends and with the new
//! ones; without the requests of those that never were. Always: all other requests and frees stay as they are and in order.
//! What never was and is older than the recording leaves its segment, and the segment goes where it held nothing else: it
//! would not have been got. What shared a segment with others leaves a hole.

use rustc_hash::{FxHashMap, FxHashSet};

use super::script::{Operation, Script};
use crate::snapshot::{Block, BlockState, Segment};
use crate::timeline::Timeline;
use crate::unit::{AllocationId, Bytes, EventIndex};

/// The event with which an allocation ends, sooner or later than it did; nothing for one that never was.
pub type End = Option<EventIndex>;

impl Script {
    /// The same program with other ends. An allocation that ends before it begins never was.
    #[must_use]
    pub fn with_ends(
        &self,
        timeline: &Timeline,
        ends: impl IntoIterator<Item = (AllocationId, End)>,
    ) -> Script {
        let settled = |(id, end): (AllocationId, End)| {
            let born = timeline.allocation(id)?.alloc;
            Some((id, end.filter(|end| born.is_none_or(|born| born < *end))))
        };
        let ends: FxHashMap<AllocationId, End> = ends.into_iter().filter_map(settled).collect();
        let mut steps: Vec<(EventIndex, Operation)> = Vec::with_capacity(self.steps.len() + ends.len());
        let mut ended: Vec<(EventIndex, AllocationId)> =
            ends.iter().filter_map(|(id, end)| Some(((*end)?, *id))).collect();
        ended.sort_unstable();
        for (at, id) in ended {
            steps.extend([(at, Operation::GiveBack(id)), (at, Operation::Complete(id))]);
        }
        let stays = |step: &Operation| match step {
            Operation::Request(id) => ends.get(id) != Some(&None),
            Operation::GiveBack(id) | Operation::Complete(id) => !ends.contains_key(id),
            _ => true,
        };
        steps.extend(self.steps.iter().filter(|(_, step)| stays(step)));
        // Stable: what ends with an event is gone when the event's own request comes, as it is in the curve of lifetimes.
        steps.sort_by_key(|(at, _)| *at);
        let gone = timeline.older();
        let gone: Vec<_> = gone.filter(|(id, _)| ends.get(id) == Some(&None)).map(|(_, one)| one).collect();
        let addresses: FxHashSet<u64> = gone.iter().map(|one| one.address).collect();
        let at_start =
            self.at_start.iter().filter_map(|(one, pool)| Some((without(one, &addresses)?, *pool)));
        Script {
            steps,
            at_start: at_start.collect(),
            requested_at_start: self.requested_at_start - gone.iter().map(|one| one.bytes).sum::<Bytes>(),
            ..self.clone()
        }
    }
}

/// A segment without some of its blocks in use; nothing where it held nothing else.
fn without(segment: &Segment, addresses: &FxHashSet<u64>) -> Option<Segment> {
    let in_use = |block: &Block| block.state != BlockState::Inactive;
    let goes = |block: &Block| in_use(block) && addresses.contains(&block.address);
    if !segment.blocks.iter().any(goes) {
        return Some(segment.clone());
    }
    if !segment.blocks.iter().any(|block| in_use(block) && !goes(block)) {
        return None;
    }
    let mut blocks: Vec<Block> = Vec::with_capacity(segment.blocks.len());
    for block in &segment.blocks {
        let state = if goes(block) { BlockState::Inactive } else { block.state };
        match blocks.last_mut().filter(|last| !in_use(last)) {
            Some(last) if state == BlockState::Inactive => last.size += block.size,
            _ => blocks.push(Block { state, ..*block }),
        }
    }
    Some(Segment { blocks, ..segment.clone() })
}
