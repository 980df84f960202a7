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
    /// A module is moved to the device, or cast.
    pub(super) moves: bool,
    /// A layer makes its parameters.
    pub(super) builds: bool,
    /// Sharded parameters are put together, for whoever asked.
    pub(super) gathers: bool,
    /// Weights are computed from others in a call of a module.
    pub(super) renews: bool,
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
    #[default]
    Otherwise,
}

/// Reads every distinct stack once.
pub(super) fn sources(facts: &Facts) -> Vec<Source> {
    facts.snapshot.stacks.ids().map(|stack| source(facts, stack)).collect()
}

fn source(facts: &Facts, stack: StackId) -> Source {
    let mut source = Source { line: facts.site(stack), ..Source::default() };
    let frames = facts.snapshot.stacks.get(stack);
    source.blank = frames.iter().any(|frame| facts.frames.graph(*frame) == GraphSign::Blank);
    let (mut loads, mut pretrained, mut copies, mut averages) = (false, false, false, false);
    let (mut tensors, mut parameters, mut called) = (false, false, false);
    for frame in facts.frames.python(stack).iter().filter_map(|id| facts.frames.get(*id)) {
        loads |= frame.memory == MemorySign::Read;
        copies |= frame.memory == MemorySign::Copy;
        tensors |= frame.memory == MemorySign::CopyTensor;
        parameters |= frame.memory == MemorySign::CopyParameter;
        averages |= frame.memory == MemorySign::Average;
        source.adapts |= frame.memory == MemorySign::Adapts;
        source.moves |= frame.memory == MemorySign::Move;
        source.builds |= frame.memory == MemorySign::Build;
        source.gathers |= frame.memory == MemorySign::Gathers;
        source.renews |= frame.memory == MemorySign::Reparametrizes;
        called |= frame.phase == PhaseSign::ModuleCall;
        pretrained |= frame.method == Method::Pretrained;
        source.constructs |= frame.method == Method::Constructor;
    }
    source.renews &= called;
    // What `from_pretrained` reads is the model itself.
    source.made = match (loads && !pretrained, copies) {
        _ if averages => Made::Averaged,
        (true, _) => Made::Loaded,
        (false, true) if tensors && !parameters => Made::PlainCopied,
        (false, true) => Made::Copied,
        (false, false) => Made::Otherwise,
    };
    source
}
