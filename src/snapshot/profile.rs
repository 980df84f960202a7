//! Snapshots that PyTorch made from a profile (`torch/cuda/_memory_viz.py`, `_profile_to_snapshot`).
//!
//! In: what such a file says. Out: what it means. Its last device is the CPU. The one segment of each device reaches from
//! the lowest to the highest address of any tensor, so that its size and its free blocks mean nothing; each block in use
//! becomes a segment of its own, which neither reserves memory that nobody asked for nor hides any. A frame is one text,
//! `train.py(33): step`, with the line on which the function begins, and stands in the file `none`.

use super::{BlockState, Frame, Gap, Segment, Snapshot, Stacks};
use crate::unit::StringInterner;

pub(super) fn settle(snapshot: &mut Snapshot) {
    if let Some(stacks) = with_frames_apart(&snapshot.stacks, &mut snapshot.strings) {
        snapshot.stacks = stacks;
    }
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

/// The same stacks under the same ids, each frame with file, line and function; `None` if that is not possible.
fn with_frames_apart(stacks: &Stacks, strings: &mut StringInterner) -> Option<Stacks> {
    let mut apart = Stacks::default();
    for id in stacks.frame_ids() {
        let frame = frame_apart(stacks.frame(id)?, strings)?;
        if apart.intern_frame(frame)? != id {
            return None;
        }
    }
    for id in stacks.ids() {
        if apart.intern(stacks.get(id))? != id {
            return None;
        }
    }
    Some(apart)
}

/// File, line and function of a frame; what names no file (`<built-in method ...>`, `nn.Module: Net_0`) stands where C++ frames
/// without one do.
fn frame_apart(frame: Frame, strings: &mut StringInterner) -> Option<Frame> {
    if strings.get(frame.file) != "none" {
        return Some(frame);
    }
    let text = strings.get(frame.name);
    let place = text.split_once("): ").and_then(|(place, name)| {
        let (file, line) = place.rsplit_once('(')?;
        Some((file.to_owned(), line.parse().ok()?, name.to_owned()))
    });
    match place {
        Some((file, line, name)) => {
            Some(Frame { name: strings.intern(&name)?, file: strings.intern(&file)?, line })
        }
        None => Some(Frame { file: strings.intern("??")?, ..frame }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_of_a_profile_are_taken_apart() {
        let mut snapshot = Snapshot::default();
        let mut ids = Vec::new();
        for name in
            ["<built-in method relu of type object at 0x7f>", "train (1).py(16): forward", "nn.Module: Net_0"]
        {
            let (name, file) =
                (snapshot.strings.intern(name).unwrap(), snapshot.strings.intern("none").unwrap());
            ids.push(snapshot.stacks.intern_frame(Frame { name, file, line: 0 }).unwrap());
        }
        let stack = snapshot.stacks.intern(&ids).unwrap();
        snapshot.devices.push(super::super::DeviceTrace::default());
        settle(&mut snapshot);
        let frames = snapshot.stacks.get(stack).iter().filter_map(|id| snapshot.stacks.frame(*id));
        let shown: Vec<(&str, u32, &str)> =
            frames.map(|one| (snapshot.text(one.file), one.line, snapshot.text(one.name))).collect();
        assert_eq!(shown[1], ("train (1).py", 16, "forward"));
        assert_eq!((shown[0].0, shown[2].0), ("??", "??"));
    }
}
