//! What a stack says of the tensors that are made under it.
//!
//! In: stacks. Out: a [`Source`] for each: by what code tensors are loaded, copied, moved, gathered from other ranks or
//! computed, and the line that stands for it.

use crate::facts::Facts;
use crate::frames::{GraphSign, MemorySign, Method, PhaseSign};
use crate::unit::{FrameId, StackId};

/// What a stack says of the tensors made under it.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Source {
    pub(super) line: Option<FrameId>,
    pub(super) made: Made,
    pub(super) constructs: bool,
    /// C++ frames show that a tensor is filled with one value.
    pub(super) blank: bool,
    /// An adapter is made.
    pub(super) adapts: bool,
}

/// By what.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Made {
    /// A file is read.
    Loaded,
    /// A module is copied, with its parameters.
    Copied,
    /// Plain tensors are copied, as those of a state dict.
    PlainCopied,
    /// A moving average of the weights makes its copy: it is wanted.
    Averaged,
    /// Sharded parameters are put together, for whoever asked.
    Gathered,
    /// Weights are computed from others in a call of a module.
    Renewed,
    /// A module is moved to the device, or cast.
    Moved,
    /// A layer makes its parameters.
    Built,
    #[default]
    Otherwise,
}

impl Made {
    /// Whether it is known to be a copy, or read: else it may be anything that has the sizes of weights.
    pub(super) const fn copies(self) -> bool {
        matches!(self, Made::Loaded | Made::Copied | Made::PlainCopied | Made::Averaged)
    }
}

/// Reads every distinct stack once.
pub(super) fn sources(facts: &Facts) -> Vec<Source> {
    facts.snapshot.stacks.ids().map(|stack| source(facts, stack)).collect()
}

fn source(facts: &Facts, stack: StackId) -> Source {
    let mut source = Source { line: facts.site(stack), ..Source::default() };
    let frames = facts.snapshot.stacks.get(stack);
    source.blank = frames.iter().any(|frame| facts.frames.graph(*frame) == GraphSign::Blank);
    let (mut reads, mut pretrained, mut copies, mut averages) = (false, false, false, false);
    let (mut tensors, mut parameters, mut called) = (false, false, false);
    let (mut moves, mut builds, mut gathers, mut renews) = (false, false, false, false);
    for frame in facts.frames.python(stack).iter().filter_map(|id| facts.frames.get(*id)) {
        reads |= frame.memory == MemorySign::Read;
        copies |= frame.memory == MemorySign::Copy;
        tensors |= frame.memory == MemorySign::CopyTensor;
        parameters |= frame.memory == MemorySign::CopyParameter;
        averages |= frame.memory == MemorySign::Average;
        moves |= frame.memory == MemorySign::Move;
        builds |= frame.memory == MemorySign::Build;
        gathers |= frame.memory == MemorySign::Gathers;
        renews |= frame.memory == MemorySign::Reparametrizes;
        called |= frame.phase == PhaseSign::ModuleCall;
        pretrained |= frame.method == Method::Pretrained;
        source.adapts |= frame.memory == MemorySign::Adapts;
        source.constructs |= frame.method == Method::Constructor;
    }
    source.made = match copies {
        _ if averages => Made::Averaged,
        // What `from_pretrained` reads is the model itself.
        _ if reads && !pretrained => Made::Loaded,
        true if tensors && !parameters => Made::PlainCopied,
        true => Made::Copied,
        false if gathers => Made::Gathered,
        false if renews && called => Made::Renewed,
        false if moves => Made::Moved,
        false if builds => Made::Built,
        false => Made::Otherwise,
    };
    source
}
