//! What a snapshot lacks or where it does not add up: the [`Gap`]s that the reader finds.

use std::collections::BTreeMap;

use super::{Action, BlockState, Gap, Segment, Snapshot};
use crate::unit::{StringId, StringInterner};

/// What is said of pinned host memory, where the file holds any.
pub(super) fn host_memory(segments: &[Segment], events: usize) -> Option<Gap> {
    let held = || segments.iter().filter(|segment| segment.device < 0);
    let (blocks, bytes) = (held().count(), held().map(|segment| segment.total_size).sum());
    let used = held().flat_map(|segment| &segment.blocks).filter(|block| block.state != BlockState::Inactive);
    let used = used.map(|block| block.size).sum();
    (blocks > 0 || events > 0).then_some(Gap::HostMemory { blocks, bytes, used, events })
}

/// Lists the names that are unknown, where there are any.
pub(super) fn list_unknown(
    gaps: &mut Vec<Gap>,
    strings: &StringInterner,
    unknown: BTreeMap<StringId, usize>,
    gap: impl Fn(Vec<(String, usize)>) -> Gap,
) {
    if unknown.is_empty() {
        return;
    }
    let mut listed: Vec<(String, usize)> =
        unknown.into_iter().map(|(key, count)| (strings.get(key).to_owned(), count)).collect();
    listed.sort();
    gaps.push(gap(listed));
}

/// What the events and segments themselves show.
pub(super) fn find(snapshot: &mut Snapshot) {
    let mut allocs = 0_usize;
    let (mut timed, mut backwards) = (false, 0);
    for trace in &snapshot.devices {
        let mut latest = i64::MIN;
        for event in &trace.events {
            allocs += usize::from(event.action == Action::Alloc);
            timed |= event.time.0 != 0;
            backwards = backwards.max(latest.saturating_sub(event.time.0));
            latest = latest.max(event.time.0);
        }
    }
    let any_stacks = snapshot.devices.iter().any(|trace| trace.has_stacks(&snapshot.stacks));
    if allocs > 0 && !any_stacks {
        snapshot.gaps.push(Gap::NoStacks);
    }
    if allocs > 0 && !timed {
        snapshot.gaps.push(Gap::NoTimes);
    }
    if backwards > 0 {
        snapshot.gaps.push(Gap::TimesOutOfOrder(backwards));
    }
    // A segment without any block was written without the list of them, and contradicts nothing.
    let listed = snapshot.segments.iter().filter(|segment| !segment.blocks.is_empty());
    let inconsistent = listed.filter(|segment| !is_tiled(segment)).count();
    if inconsistent > 0 {
        snapshot.gaps.push(Gap::InconsistentSegments(inconsistent));
    }
}

/// Whether a segment's blocks follow one another and fill it.
fn is_tiled(segment: &Segment) -> bool {
    let mut next = segment.address;
    for block in &segment.blocks {
        if block.address != next {
            return false;
        }
        let Some(end) = next.checked_add(block.size.get()) else { return false };
        next = end;
    }
    segment.address.checked_add(segment.total_size.get()) == Some(next)
}
