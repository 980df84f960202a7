//! Where the healthy siblings of kept tensors are let go of.
//!
//! In: kept tensors; frees with stacks of their own. Out: the user's line under which most bytes of other tensors of the
//! same stacks go, the backward pass's own thread counting as the line that entered it. What stays has no free that could
//! tell; what was made at the same place and went shows how it should have gone.

use std::collections::BTreeMap;

use rustc_hash::FxHashSet;

use crate::facts::Facts;
use crate::unit::{AllocationId, Bytes, FrameId, StackId};

pub(super) fn siblings_go(facts: &Facts, kept: &[AllocationId]) -> Option<FrameId> {
    if !facts.timeline.frees_have_stacks() {
        return None;
    }
    let stays: FxHashSet<AllocationId> = kept.iter().copied().collect();
    let made = |id: &AllocationId| facts.timeline.allocation(*id)?.stack;
    let stacks: FxHashSet<StackId> = kept.iter().filter_map(made).collect();
    let mut lines: BTreeMap<FrameId, Bytes> = BTreeMap::new();
    for (id, one) in facts.timeline.iter() {
        let sibling = one.stack.is_some_and(|stack| stacks.contains(&stack)) && !stays.contains(&id);
        let Some(freed) = one.free_requested.filter(|_| sibling) else { continue };
        if let Some(line) = facts.seen_stack(freed).and_then(|stack| facts.site(stack)) {
            *lines.entry(line).or_default() += one.bytes;
        }
    }
    let most = lines.into_iter().max_by_key(|(line, bytes)| (*bytes, std::cmp::Reverse(*line)));
    most.map(|(line, _)| line)
}
