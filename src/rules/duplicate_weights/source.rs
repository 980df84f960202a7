//! What a stack says of the tensors that are made under it.
//!
//! In: stacks. Out: a [`TensorSource`] for each: by what code tensors are loaded, copied, moved, gathered from other ranks or
//! computed, and the line that stands for it.

use crate::facts::Facts;
use crate::frames::{GraphSign, MemorySign, Method, PhaseSign};
use crate::unit::{AllocationId, FrameId, Index, StackId};

/// The operators that make a tensor with nothing in it, by which a program makes one like another.
const EMPTY: [&str; 3] = ["empty", "empty_like", "new_empty"];

/// What a stack says of the tensors made under it.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct TensorSource {
    pub(super) line: Option<FrameId>,
    pub(super) made: MadeBy,
    pub(super) constructs: bool,
    pub(super) filled: Filled,
    /// An adapter is made.
    pub(super) adapts: bool,
}

/// With what a tensor is filled when it is made, as C++ frames show.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Filled {
    /// With one value.
    Blank,
    /// With nothing: what the program writes into it later is not seen.
    Later,
    #[default]
    Otherwise,
}

/// By what.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum MadeBy {
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

impl MadeBy {
    /// Whether it is known to be a copy, or read: else it may be anything that has the sizes of weights.
    pub(super) const fn copies(self) -> bool {
        matches!(self, MadeBy::Loaded | MadeBy::Copied | MadeBy::PlainCopied | MadeBy::Averaged)
    }
}

/// Reads every distinct stack once.
pub(super) fn sources(facts: &Facts) -> Vec<TensorSource> {
    facts.snapshot.stacks.ids().map(|stack| source(facts, stack)).collect()
}

/// By what some tensors are made, as the first of them shows.
pub(super) fn made_by(facts: &Facts, sources: &[TensorSource], tensors: &[AllocationId]) -> Option<MadeBy> {
    let stack = facts.timeline.allocation(*tensors.first()?)?.stack?;
    sources.get(stack.position()).map(|source| source.made)
}

fn source(facts: &Facts, stack: StackId) -> TensorSource {
    let mut source = TensorSource { line: facts.site(stack), ..TensorSource::default() };
    let frames = facts.snapshot.stacks.get(stack);
    source.filled = if frames.iter().any(|frame| facts.frames.graph(*frame) == GraphSign::Blank) {
        Filled::Blank
    } else if is_empty(facts, stack) {
        Filled::Later
    } else {
        Filled::Otherwise
    };
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
        _ if averages => MadeBy::Averaged,
        // What `from_pretrained` reads is the model itself.
        _ if reads && !pretrained => MadeBy::Loaded,
        true if tensors && !parameters => MadeBy::PlainCopied,
        true => MadeBy::Copied,
        false if gathers => MadeBy::Gathered,
        false if renews && called => MadeBy::Renewed,
        false if moves => MadeBy::Moved,
        false if builds => MadeBy::Built,
        false => MadeBy::Otherwise,
    };
    source
}

/// Whether a line of the user's makes a tensor with nothing in it.
fn is_empty(facts: &Facts, stack: StackId) -> bool {
    let innermost = facts.frames.innermost(stack);
    innermost.is_some_and(|frame| facts.frames.is_own(frame))
        && facts.frames.operator(facts.snapshot, stack).is_some_and(|name| EMPTY.contains(&name))
}
