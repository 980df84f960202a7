//! What the iteration before the recording left behind for the first one that was recorded.
//!
//! In: what lines regularly leave behind. Out: what is older than the recording and goes in its first iteration as that goes in later ones: under
//! the same calls, as large. Without it a recording of two iterations of a running job has its peak where nothing that the rule knows stands.

use std::collections::BTreeSet;

use super::may_overlap;
use crate::facts::Facts;
use crate::timeline::Allocation;
use crate::unit::{AllocationId, Bytes, Index, StackId};

/// The older ones that go as some of these do.
pub(super) fn forerunners(facts: &Facts, left: &[AllocationId]) -> Vec<AllocationId> {
    let goes = |one: &Allocation| -> Option<(StackId, Bytes)> { Some((facts.freed_under(one)?, one.bytes)) };
    let known: BTreeSet<(StackId, Bytes)> =
        left.iter().filter_map(|id| goes(facts.timeline.allocation(*id)?)).collect();
    let in_the_first = |one: &Allocation| {
        one.free_requested
            .and_then(|freed| facts.iteration_of(freed))
            .is_some_and(|turn| turn.position() == 0)
    };
    let goes_alike =
        |one: &Allocation| goes(one).is_some_and(|how| known.contains(&how)) && in_the_first(one);
    let older = facts.timeline.older().filter(|(id, one)| goes_alike(one) && may_overlap(facts.role(*id)));
    older.map(|(id, _)| id).collect()
}
