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
//!   from the wrapper that PyTorch puts around every optimizer. What such a `step` calls is the optimizer's, too, but not a
//!   closure that it was given: a function that runs a module or a backward pass in some stack is one in every stack.

use rustc_hash::FxHashSet;

use super::Phase;
use crate::frames::{Frames, GraphSign, Meaning, Method, Owner, PhaseSign};
use crate::snapshot::Snapshot;
use crate::unit::{FrameId, FunctionId, StackId};

/// What a stack says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Sign {
    /// The phase; `None` where only user code, and nothing decisive, was on the stack.
    pub(super) phase: Option<Phase>,
    /// Whether a framework's evaluation loop is on the stack.
    pub(super) evaluating: bool,
    /// Whether nothing shows who it was: no Python frame, and none of the engine.
    pub(super) unseen: bool,
}

/// The sign of every distinct stack, by its position.
pub(super) fn read(snapshot: &Snapshot, frames: &Frames) -> Vec<Sign> {
    // An empty stack tells the engine's thread, but not where all are empty (`context=None`).
    let empty_is_engine = snapshot.devices.iter().any(|trace| trace.has_stacks(&snapshot.stacks));
    let reading = Reading { snapshot, frames, empty_is_engine, closures: closures(snapshot, frames) };
    snapshot.stacks.ids().map(|stack| reading.sign(stack)).collect()
}

/// The functions that optimizers of the program's own call to have the loss computed anew.
fn closures(snapshot: &Snapshot, frames: &Frames) -> FxHashSet<FunctionId> {
    snapshot.stacks.ids().filter_map(|stack| closure(frames, frames.python(stack))).collect()
}

/// What an optimizer's own `step` calls in a stack, if a module or a backward pass runs under it.
fn closure(frames: &Frames, python: &[FrameId]) -> Option<FunctionId> {
    let hook = python.iter().position(|frame| frames.phase(*frame) == PhaseSign::OptimizerHook)?;
    let is_foreign = |frame: &FrameId| !matches!(frames.owner(*frame), Owner::Torch | Owner::Python);
    let mut inner = python.iter().skip(hook + 1).copied().skip_while(|frame| !is_foreign(frame));
    inner.next().filter(|frame| frames.method(*frame) == Method::Step)?;
    let called = inner.find(is_foreign)?;
    let runs = |frame| matches!(frames.phase(frame), PhaseSign::ModuleCall | PhaseSign::Backward);
    inner.any(runs).then(|| frames.function(called)).flatten()
}

/// What stacks are read with.
struct Reading<'a> {
    snapshot: &'a Snapshot,
    frames: &'a Frames,
    /// Whether an empty stack is the autograd engine's.
    empty_is_engine: bool,
    closures: FxHashSet<FunctionId>,
}

/// What the frame just further in is, decorators skipped.
#[derive(Clone, Copy, PartialEq, Eq)]
enum InnerFrame {
    /// A `step` outside PyTorch.
    Step,
    /// A `backward`.
    Backward,
    Other,
}

impl Reading<'_> {
    fn sign(&self, stack: StackId) -> Sign {
        let Reading { snapshot, frames, empty_is_engine, .. } = *self;
        let python = frames.python(stack);
        let mut walk = OutwardWalk::default();
        let mut callee = InnerFrame::Other;
        for (outer, frame) in python.iter().enumerate().rev() {
            let Some(meaning) = frames.get(*frame) else { continue };
            if let Some(phase) = walk.decide(*meaning, callee, outer == 0) {
                return Sign { phase: Some(phase), evaluating: walk.evaluating, unseen: false };
            }
            walk.calls_module |= self.closures.contains(&meaning.function);
            if meaning.phase == PhaseSign::Wrapper || meaning.owner == Owner::Python {
                continue;
            }
            callee = match meaning.method {
                Method::Backward => InnerFrame::Backward,
                Method::Step if meaning.owner != Owner::Torch => InnerFrame::Step,
                _ => InnerFrame::Other,
            };
        }
        let all = snapshot.stacks.get(stack);
        let engine = all.iter().any(|&frame| frames.graph(frame) == GraphSign::Engine);
        let unseen = python.is_empty() && !engine;
        let engine = engine || (unseen && empty_is_engine);
        let phase = if engine { Some(Phase::Backward) } else { walk.tentative };
        Sign { phase, evaluating: walk.evaluating, unseen }
    }
}

/// What was met so far on the way outward.
#[derive(Default)]
struct OutwardWalk {
    tentative: Option<Phase>,
    evaluating: bool,
    /// Whether code outside PyTorch, or a module call, lies further in.
    foreign: bool,
    /// Whether a module call, or a closure that runs one, does.
    calls_module: bool,
}

impl OutwardWalk {
    /// The phase, if this frame settles it; otherwise what it says is kept.
    fn decide(&mut self, meaning: Meaning, callee: InnerFrame, outermost: bool) -> Option<Phase> {
        let undisturbed = !self.foreign && self.tentative.is_none();
        match meaning.phase {
            PhaseSign::ZeroGrad => return Some(Phase::ZeroGrad),
            PhaseSign::Recompute => return Some(Phase::Recomputation),
            PhaseSign::CheckpointBackward => {
                let recomputing = self.tentative == Some(Phase::Forward);
                return Some(if recomputing { Phase::Recomputation } else { Phase::Backward });
            }
            PhaseSign::Backward => return Some(Phase::Backward),
            PhaseSign::FunctionApply if outermost || callee == InnerFrame::Backward => {
                return Some(Phase::Backward);
            }
            PhaseSign::Clip => return Some(Phase::Clipping),
            PhaseSign::ScalerStep | PhaseSign::Optimizer | PhaseSign::OptimizerHook if undisturbed => {
                return Some(Phase::OptimizerStep);
            }
            PhaseSign::OptimizerHook if callee == InnerFrame::Step && !self.calls_module => {
                return Some(Phase::OptimizerStep);
            }
            PhaseSign::ModuleCall => {
                self.tentative.get_or_insert(Phase::Forward);
                (self.foreign, self.calls_module) = (true, true);
            }
            PhaseSign::Functional => {
                self.tentative.get_or_insert(Phase::Forward);
            }
            PhaseSign::Building | PhaseSign::OptimizerSetup => {
                self.tentative.get_or_insert(Phase::Setup);
            }
            PhaseSign::Constructor => {
                self.tentative.get_or_insert(Phase::Setup);
                self.foreign = true;
            }
            PhaseSign::Input => {
                self.tentative.get_or_insert(Phase::Input);
            }
            PhaseSign::Evaluation => self.evaluating = true,
            PhaseSign::Nothing => self.foreign |= meaning.owner == Owner::User || meaning.owner.is_package(),
            _ => {}
        }
        None
    }
}
