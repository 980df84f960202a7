//! What kind of code made a tensor: a layer, a loss, or a line of somebody's own.
//!
//! In: a stack. Out: a [`Maker`]. The outputs of layers are a model's ordinary memory; what code around them makes (an
//! upcast, a sort, a matrix of distances) is a choice of the line that makes it.

use crate::facts::Facts;
use crate::frames::{MemorySign, Method, Owner, PhaseSign};
use crate::unit::{FrameId, StackId};

/// Who made a tensor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Maker {
    /// A layer of `torch.nn`.
    Layer,
    /// The forward of a module outside PyTorch, by itself.
    Forward,
    /// A function outside every module, or one that a forward calls.
    Function,
    /// A loss, as a module or a function of PyTorch.
    Loss,
}

/// Who made what was allocated under a stack; `None` without Python frames.
pub(super) fn maker(facts: &Facts, stack: StackId) -> Option<Maker> {
    let python = facts.frames.python(stack);
    let is_torch = |frame: &FrameId| facts.frames.owner(*frame) == Owner::Torch;
    let innermost = python.iter().rposition(|frame| !is_torch(frame))?;
    let is_loss = |frame: &FrameId| facts.frames.memory(*frame) == MemorySign::Loss;
    if python.iter().skip(innermost).any(is_loss) {
        return Some(Maker::Loss);
    }
    let is_call = |frame: &FrameId| facts.frames.phase(*frame) == PhaseSign::ModuleCall;
    let Some(call) = python.iter().rposition(is_call) else { return Some(Maker::Function) };
    if innermost < call {
        return Some(Maker::Layer);
    }
    let forward = python.iter().skip(call).position(|frame| facts.frames.method(*frame) == Method::Forward);
    let forward = forward.map_or(call + 1, |after| call + after);
    Some(if innermost > forward { Maker::Function } else { Maker::Forward })
}
