//! What the fuzzer makes up: a small program and how it was recorded.

use arbitrary::Arbitrary;

/// A program with one loop, and the options of its recording.
#[derive(Debug, Arbitrary)]
pub(crate) struct Script {
    pub(crate) recording: Recording,
    pub(crate) setup: Vec<Step>,
    pub(crate) body: Vec<Step>,
    pub(crate) turns: u8,
    pub(crate) ending: Vec<Step>,
}

/// How it was recorded.
#[derive(Debug, Arbitrary)]
pub(crate) struct Recording {
    pub(crate) stacks: Stacks,
    /// Whether frees carry the stack of the free, and not that of the allocation.
    pub(crate) frees_have_stacks: bool,
    /// Whether the line of the outermost frame tells the place in the loop.
    pub(crate) lines_advance: bool,
    pub(crate) annotations: bool,
    pub(crate) clock: Clock,
    /// Events at the beginning that were pushed out of the buffer.
    pub(crate) lost: u8,
    pub(crate) ending: Ending,
    pub(crate) expandable: bool,
    /// Whether the trace may go on for tens of thousands of events: rarely, because such runs are slow.
    pub(crate) length: u8,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Arbitrary)]
pub(crate) enum Stacks {
    All,
    Python,
    Empty,
    Absent,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Arbitrary)]
pub(crate) enum Clock {
    Steady,
    Tied,
    Backwards,
    Absent,
}

/// What the file says of the allocator's segments.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Arbitrary)]
pub(crate) enum Ending {
    /// How they stood at the end.
    True,
    /// The same, but with blocks that overlap, leave their segment, or are missing.
    Torn(u8),
    /// Nothing.
    Absent,
}

/// One thing that the program does.
#[derive(Debug, Arbitrary)]
pub(crate) enum Step {
    Train(Training),
    Alloc {
        slot: u8,
        size: Size,
        place: Place,
    },
    /// Gives back what the slot has held for `back` iterations.
    Free {
        slot: u8,
        back: u8,
        place: Place,
    },
    Request {
        slot: u8,
        back: u8,
    },
    Complete {
        slot: u8,
        back: u8,
    },
    Enter(Phase),
    Annotate {
        name: u8,
        start: bool,
    },
    OutOfMemory(Size),
    EmptyCache,
    Device(u8),
    Stream(u8),
    Pool(u8),
    Metadata(u8),
    /// An event that belongs to nothing.
    Stray {
        action: u8,
        address: u16,
        size: Size,
    },
    Repeat {
        times: u8,
        steps: Vec<Step>,
    },
    /// Only in some iterations.
    Sometimes {
        period: u8,
        offset: u8,
        steps: Vec<Step>,
    },
}

/// One step of a model with some layers.
#[derive(Debug, Arbitrary)]
pub(crate) struct Training {
    pub(crate) layers: u8,
    /// KiB of a layer's weight.
    pub(crate) weight: u16,
    /// KiB of a layer's activation.
    pub(crate) activation: u16,
    pub(crate) place: Place,
    pub(crate) keeps_loss: bool,
    pub(crate) keeps_graph: bool,
    pub(crate) clears_late: bool,
    pub(crate) clears_never: bool,
    pub(crate) has_input: bool,
    pub(crate) evaluates: bool,
    /// Iterations for which gradients are accumulated.
    pub(crate) accumulates: u8,
}

#[derive(Debug, Clone, Copy, Arbitrary)]
pub(crate) enum Size {
    Tiny(u8),
    Small(u16),
    /// In KiB.
    Large(u16),
    /// In MiB; grows with the iteration.
    Growing(u8),
    Any(u64),
}

/// A line of the user's and how it is called.
#[derive(Debug, Clone, Copy, Arbitrary)]
pub(crate) struct Place {
    pub(crate) line: u8,
    pub(crate) function: u8,
    pub(crate) file: u8,
    /// How many frames call it.
    pub(crate) depth: u8,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Arbitrary)]
pub(crate) enum Phase {
    Plain,
    Input,
    Forward,
    Evaluation,
    Loss,
    Backward,
    BackwardCall,
    CustomBackward,
    Recomputation,
    Unscale,
    Clip,
    StateOfOptimizer,
    OptimizerStep,
    ZeroGrad,
    Compiled,
    Lightning,
    Trainer,
    Distributed,
    Generated,
    Native,
}
