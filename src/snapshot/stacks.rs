//! Frames and stacks, each distinct one once.

use crate::unit::{FrameId, Index, SequenceInterner, StackId, StringId};

/// A stack frame as recorded: Python or C++.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Frame {
    /// The function's bare name (`co_name`), or a demangled C++ name.
    pub name: StringId,
    /// The file as recorded.
    pub file: StringId,
    /// The line that was executing, 1-based; for C++ frames an offset or 0.
    pub line: u32,
}

/// The distinct frames and stacks of a snapshot. Stacks are sequences of frames, innermost first.
#[derive(Debug, Default, Clone)]
pub struct Stacks {
    frames: SequenceInterner<FrameId, Frame>,
    sequences: SequenceInterner<StackId, FrameId>,
}

impl Stacks {
    /// The id of a frame; `None` beyond 2^32 - 2 distinct ones.
    pub fn intern_frame(&mut self, frame: Frame) -> Option<FrameId> {
        self.frames.intern(&[frame])
    }

    /// The id of a sequence of frames, innermost first; `None` beyond 2^32 - 2 distinct ones.
    pub fn intern(&mut self, frames: &[FrameId]) -> Option<StackId> {
        self.sequences.intern(frames)
    }

    /// The frame of an id.
    pub fn frame(&self, id: FrameId) -> Option<Frame> {
        self.frames.get(id).first().copied()
    }

    /// The frames of a stack, innermost first.
    pub fn get(&self, id: StackId) -> &[FrameId] {
        self.sequences.get(id)
    }

    /// How many distinct stacks there are; their ids are the positions below.
    pub fn len(&self) -> usize {
        self.sequences.len()
    }

    /// Whether there is no stack at all.
    pub fn is_empty(&self) -> bool {
        self.sequences.is_empty()
    }

    /// How many distinct frames there are.
    pub fn frame_count(&self) -> usize {
        self.frames.len()
    }

    /// The ids of all distinct stacks.
    pub fn ids(&self) -> impl Iterator<Item = StackId> {
        (0..self.len()).filter_map(StackId::at)
    }

    /// The ids of all distinct frames.
    pub fn frame_ids(&self) -> impl Iterator<Item = FrameId> {
        (0..self.frame_count()).filter_map(FrameId::at)
    }
}
