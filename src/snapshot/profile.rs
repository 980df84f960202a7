//! Snapshots that PyTorch made from a profile (`torch/cuda/_memory_viz.py`, `_profile_to_snapshot`).
//!
//! In: what such a file says. Out: what it means. Its last device is the CPU. The one segment of each device reaches from
//! the lowest to the highest address of any tensor, so that its size and its free blocks mean nothing; each block in use
//! becomes a segment of its own, which neither reserves memory that nobody asked for nor hides any.

use super::{BlockState, Gap, Segment, Snapshot};

pub(super) fn settle(snapshot: &mut Snapshot) {
    snapshot.devices.pop();
    let devices = snapshot.devices.len();
    let mut segments: Vec<Segment> = Vec::new();
    for segment in &snapshot.segments {
        // Host memory keeps its place; the CPU's segments go with its trace.
        if segment.device < 0 {
            segments.push(segment.clone());
        } else if usize::try_from(segment.device).is_ok_and(|ordinal| ordinal < devices) {
            let used = segment.blocks.iter().filter(|block| block.state != BlockState::Inactive);
            segments.extend(used.map(|&block| Segment {
                address: block.address,
                total_size: block.size,
                stack: None,
                blocks: vec![block],
                ..*segment
            }));
        }
    }
    snapshot.segments = segments;
    snapshot.gaps.push(Gap::FromProfiler);
}
