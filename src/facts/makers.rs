//! What kind of code made a tensor: a layer, a loss, or a line of somebody's own.
//!
//! In: a stack. Out: a [`Maker`]. The outputs of layers are a model's ordinary memory; what code around them makes (an
//! upcast, a sort, a matrix of distances) is a choice of the line that makes it.

use crate::facts::Facts;
use crate::program::{Meaning, Origin};
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

/// Functions of `torch.nn.functional` that are the loss, or its larger half.
const LOSSES: [&str; 4] = ["cross_entropy", "log_softmax", "nll_loss", "kl_div"];

/// Who made what was allocated under a stack; `None` without Python frames.
pub(super) fn maker(facts: &Facts, stack: StackId) -> Option<Maker> {
    let python = facts.code.python(stack);
    let file = |frame: &FrameId| facts.snapshot.stacks.frame(*frame).map(|one| facts.snapshot.text(one.file));
    let name = |frame: &FrameId| facts.snapshot.stacks.frame(*frame).map(|one| facts.snapshot.text(one.name));
    let is_torch = |frame: &FrameId| facts.code.vocabulary.origin(*frame) == Origin::Torch;
    let innermost = python.iter().rposition(|frame| !is_torch(frame))?;
    let is_loss = |frame: &FrameId| {
        let functional = facts.code.vocabulary.meaning(*frame) == Meaning::Functional;
        let named = name(frame).is_some_and(|name| LOSSES.contains(&name) || name.ends_with("_loss"));
        (functional && named) || file(frame).is_some_and(|file| file.ends_with("torch/nn/modules/loss.py"))
    };
    if python.iter().skip(innermost).any(is_loss) {
        return Some(Maker::Loss);
    }
    let is_call = |frame: &FrameId| facts.code.vocabulary.meaning(*frame) == Meaning::ModuleCall;
    let Some(call) = python.iter().rposition(is_call) else { return Some(Maker::Function) };
    if innermost < call {
        return Some(Maker::Layer);
    }
    let forward = python.iter().skip(call).position(|frame| name(frame) == Some("forward"));
    let forward = forward.map_or(call + 1, |after| call + after);
    Some(if innermost > forward { Maker::Function } else { Maker::Forward })
}
