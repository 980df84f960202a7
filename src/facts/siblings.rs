//! Where kept tensors go after all, and where their healthy siblings are let go of.
//!
//! In: kept tensors; frees with stacks of their own. Out: the user's line under which most of them go in the end; or that under
//! which most bytes of other tensors of the same stacks go, the backward pass's own thread counting as the line that entered it.
//! What stays has no free that could tell; what was made at the same place and went shows how it should have gone.

use std::collections::BTreeMap;

use rustc_hash::FxHashSet;

use crate::facts::Facts;
use crate::timeline::Allocation;
use crate::unit::{AllocationId, Bytes, FrameId, StackId};

pub(super) fn siblings_go(facts: &Facts, kept: &[AllocationId]) -> Option<FrameId> {
    let stays: FxHashSet<AllocationId> = kept.iter().copied().collect();
    let made = |id: &AllocationId| facts.timeline.allocation(*id)?.stack;
    let stacks: FxHashSet<StackId> = kept.iter().filter_map(made).collect();
    let others = facts
        .timeline
        .iter()
        .filter(|(id, one)| one.stack.is_some_and(|stack| stacks.contains(&stack)) && !stays.contains(id));
    freed_at(facts, others.map(|(_, one)| one)).map(|(line, _)| line)
}

/// The line at which most of what is kept goes after all.
pub(super) fn go_at(facts: &Facts, kept: &[AllocationId]) -> Option<FrameId> {
    let (line, bytes) = freed_at(facts, kept.iter().filter_map(|id| facts.timeline.allocation(*id)))?;
    (bytes.times(2) > facts.bytes(kept)).then_some(line)
}

/// Whether what is kept is only gathered: when the last of it is made, one tensor of all its bytes is (`torch.cat` or `torch.stack`), and then the
/// first of it goes. The loop that collects it has ended by then.
pub(super) fn are_gathered(facts: &Facts, kept: &[AllocationId]) -> bool {
    let lives = || kept.iter().filter_map(|id| facts.timeline.allocation(*id));
    let goes = lives()
        .map(Allocation::given_back)
        .collect::<Option<Vec<_>>>()
        .and_then(|ends| ends.into_iter().min());
    let (Some(last), Some(goes)) = (lives().filter_map(|one| one.alloc).max(), goes) else { return false };
    let bytes = facts.bytes(kept);
    facts.timeline.born_between(last, goes).any(|one| one.bytes == bytes)
}

/// The line at which most bytes are given back, and how many. What an exception gives back while it unwinds may have no line.
fn freed_at<'a>(
    facts: &Facts,
    allocations: impl Iterator<Item = &'a Allocation>,
) -> Option<(FrameId, Bytes)> {
    if !facts.timeline.frees_have_stacks() {
        return None;
    }
    let mut lines: BTreeMap<FrameId, Bytes> = BTreeMap::new();
    for one in allocations {
        let freed = one.free_requested.and_then(|freed| facts.site(facts.seen_stack(freed)?));
        if let Some(line) = freed.filter(|line| facts.frames.line(*line) > 0) {
            *lines.entry(line).or_default() += one.bytes;
        }
    }
    lines.into_iter().max_by_key(|(line, bytes)| (*bytes, std::cmp::Reverse(*line)))
}
