//! What one stack says about the phase, by itself.
//!
//! In: the frames of a stack. Out: its [`Sign`]. The stack is read from the innermost frame outward and the first
//! decisive frame wins, because outer frames lie: Lightning runs forward and backward inside `optimizer.step(closure)`.
//! A module call is only a tentative answer: further out it may turn out to be recomputation or an evaluation loop.
//!
//! Two kinds of stack need care.
//! - A thread without Python frames is the autograd engine's: with `stacks="python"` its events have an *empty* stack,
//!   with the default `stacks="all"` they have C++ frames of `torch::autograd::Engine` alone. In 47 recordings with C++
//!   frames both ways of telling agree on every allocation.
//! - An optimizer's frames below user code are a closure, unless that code *is* the optimizer: a `step` called straight
//!   from the wrapper that PyTorch puts around every optimizer.

use super::Phase;
use super::frames::{Entry, Meaning, Origin, Vocabulary};
use crate::snapshot::Snapshot;
use crate::unit::{StackId, StringId};

/// What a stack says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Sign {
    /// The phase; `None` where only user code, and nothing decisive, was on the stack.
    pub(super) phase: Option<Phase>,
    /// Whether a framework's evaluation loop is on the stack.
    pub(super) evaluating: bool,
}

/// The sign of every distinct stack, by its position.
pub(super) fn read(snapshot: &Snapshot, vocabulary: &Vocabulary) -> Vec<Sign> {
    let known = Known {
        step: snapshot.strings.find("step"),
        backward: snapshot.strings.find("backward"),
        engine: snapshot.devices.iter().any(|trace| trace.has_stacks(&snapshot.stacks)),
    };
    snapshot.stacks.ids().map(|stack| sign(snapshot, vocabulary, known, stack)).collect()
}

/// What holds for all stacks: the names by which methods are known whoever wrote them (an optimizer's, a custom
/// function's), and what an empty stack means.
#[derive(Clone, Copy)]
struct Known {
    step: Option<StringId>,
    backward: Option<StringId>,
    /// Whether an empty stack tells the engine's thread: not where all are empty (`context=None`).
    engine: bool,
}

/// What the frame just further in is, decorators skipped.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Callee {
    /// A `step` outside PyTorch.
    Step,
    /// A `backward`.
    Backward,
    Other,
}

fn sign(snapshot: &Snapshot, vocabulary: &Vocabulary, known: Known, stack: StackId) -> Sign {
    let frames = snapshot.stacks.get(stack);
    let mut walk = Walk::default();
    let mut callee = Callee::Other;
    let mut any_python = false;
    let mut python =
        frames.iter().copied().filter(|&frame| vocabulary.origin(frame) != Origin::Native).peekable();
    while let Some(frame) = python.next() {
        any_python = true;
        let Some(entry) = vocabulary.entry(frame) else { continue };
        if let Some(phase) = walk.decide(*entry, callee, python.peek().is_none()) {
            return Sign { phase: Some(phase), evaluating: walk.evaluating };
        }
        if entry.meaning == Meaning::Wrapper {
            continue;
        }
        let name = snapshot.stacks.frame(frame).map(|one| one.name);
        callee = match name {
            Some(_) if name == known.backward => Callee::Backward,
            Some(_) if name == known.step && entry.origin != Origin::Torch => Callee::Step,
            _ => Callee::Other,
        };
    }
    let engine = frames.iter().any(|&frame| vocabulary.meaning(frame) == Meaning::Engine);
    let phase = if engine || (!any_python && known.engine) { Some(Phase::Backward) } else { walk.tentative };
    Sign { phase, evaluating: walk.evaluating }
}

/// What was met so far on the way outward.
#[derive(Default)]
struct Walk {
    tentative: Option<Phase>,
    evaluating: bool,
    /// Whether code outside PyTorch, or a module call, lies further in.
    foreign: bool,
    /// Whether a module call does.
    calls_module: bool,
}

impl Walk {
    /// The phase, if this frame settles it; otherwise what it says is kept.
    fn decide(&mut self, entry: Entry, callee: Callee, outermost: bool) -> Option<Phase> {
        let undisturbed = !self.foreign && self.tentative.is_none();
        match entry.meaning {
            Meaning::ZeroGrad => return Some(Phase::ZeroGrad),
            Meaning::Recompute => return Some(Phase::Recomputation),
            Meaning::CheckpointBackward => {
                let recomputing = self.tentative == Some(Phase::Forward);
                return Some(if recomputing { Phase::Recomputation } else { Phase::Backward });
            }
            Meaning::Backward => return Some(Phase::Backward),
            Meaning::FunctionApply if outermost || callee == Callee::Backward => {
                return Some(Phase::Backward);
            }
            Meaning::Clip => return Some(Phase::Clipping),
            Meaning::ScalerStep | Meaning::Optimizer | Meaning::OptimizerHook if undisturbed => {
                return Some(Phase::OptimizerStep);
            }
            Meaning::OptimizerHook if callee == Callee::Step && !self.calls_module => {
                return Some(Phase::OptimizerStep);
            }
            Meaning::ModuleCall => {
                self.tentative.get_or_insert(Phase::Forward);
                (self.foreign, self.calls_module) = (true, true);
            }
            Meaning::Functional => {
                self.tentative.get_or_insert(Phase::Forward);
            }
            Meaning::Building | Meaning::OptimizerSetup => {
                self.tentative.get_or_insert(Phase::Setup);
            }
            Meaning::Constructor => {
                self.tentative.get_or_insert(Phase::Setup);
                self.foreign = true;
            }
            Meaning::Input => {
                self.tentative.get_or_insert(Phase::Input);
            }
            Meaning::Evaluation => self.evaluating = true,
            Meaning::Plain => self.foreign |= matches!(entry.origin, Origin::User | Origin::Library),
            _ => {}
        }
        None
    }
}
