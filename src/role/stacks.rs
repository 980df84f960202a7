//! What each distinct stack says about the memory that it asked for or let go.
//!
//! In: the interned stacks. Out: one [`StackTraits`] a stack, so that the work per allocation is a look-up.
//!
//! Two scans. The C++ frames name the *requester*: the first frame above the caching allocator. If that is not the
//! maker of a tensor's storage, the memory is a library's own scratch, whatever the frames further out say. The Python
//! frames name the *origin*: innermost first, within PyTorch and up to the first module call or foreign frame, since
//! outer frames lie (Lightning runs the forward inside of `optimizer.step`).

use crate::frames::{Frames, GraphSign, Meaning, MemorySign, Method, Owner, PhaseSign};
use crate::snapshot::Snapshot;
use crate::unit::{Index, StackId};

/// Who asked the allocator for memory, by the C++ frames.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Requester {
    /// A tensor's storage.
    Tensor,
    /// cuDNN, cuBLAS and the like, for themselves.
    Vendor,
    /// A collective, for itself.
    Collective,
    /// The stack has no C++ frames, or none that says.
    #[default]
    Unseen,
}

/// What of PyTorch's Python code asked for memory, if it was PyTorch.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum TorchOrigin {
    /// `zero_grad`.
    ZeroGrad,
    /// An optimizer.
    Optimizer,
    /// A module that is built, moved, cast or copied, or that gets an adapter.
    Module,
    /// A file is read.
    File,
    /// A wrapper that keeps whole replicas (DDP).
    Replicated,
    /// A wrapper that shards parameters (FSDP, `DeepSpeed`).
    Sharded,
    /// Other code.
    #[default]
    Plain,
}

/// Whose code asked for memory, PyTorch's apart.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum AskingCode {
    /// Something is being constructed, by whomever.
    Constructor,
    /// An installed package.
    Package,
    /// The user.
    #[default]
    User,
}

/// What the autograd graph is doing, by the C++ frames.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Graph {
    /// It lets a saved tensor go.
    Releases,
    /// It adds a gradient to the one that is there.
    Accumulates,
    /// It runs the backward pass, and nothing of these.
    Runs,
    /// Neither, or the frames do not say.
    #[default]
    Unseen,
}

/// What a stack says about memory.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct StackTraits {
    pub(super) requester: Requester,
    pub(super) origin: TorchOrigin,
    pub(super) maker: AskingCode,
    pub(super) graph: Graph,
    /// Whether a module is being called.
    pub(super) in_forward: bool,
    /// Whether it is called by what runs in a backward pass, and not the other way round.
    pub(super) in_inner_forward: bool,
    /// Whether there are C++ frames.
    pub(super) native: bool,
}

/// The traits of all stacks of a snapshot.
#[derive(Debug)]
pub(super) struct TraitTable(Vec<StackTraits>);

impl TraitTable {
    /// Reads every distinct stack once.
    pub(super) fn of(snapshot: &Snapshot, frames: &Frames) -> TraitTable {
        let (mut native, mut python) = (Vec::new(), Vec::new());
        let traits = snapshot.stacks.ids().map(|stack| {
            native.clear();
            python.clear();
            for meaning in snapshot.stacks.get(stack).iter().filter_map(|frame| frames.get(*frame)) {
                let part = if meaning.owner == Owner::Native { &mut native } else { &mut python };
                part.push(*meaning);
            }
            StackTraits {
                requester: requester(&native),
                origin: origin(&python),
                maker: maker(&python),
                graph: graph(&native),
                in_forward: python.iter().any(|one| one.phase == PhaseSign::ModuleCall),
                in_inner_forward: calls_module_last(&python),
                native: !native.is_empty(),
            }
        });
        TraitTable(traits.collect())
    }

    /// Whether any stack shows such code.
    pub(super) fn shows(&self, origin: TorchOrigin) -> bool {
        self.0.iter().any(|traits| traits.origin == origin)
    }

    /// The traits of a stack; those of an empty one where none was recorded.
    pub(super) fn get(&self, stack: Option<StackId>) -> StackTraits {
        stack.and_then(|id| self.0.get(id.position())).copied().unwrap_or_default()
    }
}

fn graph(native: &[Meaning]) -> Graph {
    let any = |sign| native.iter().any(|one| one.graph == sign);
    if GraphSign::release(native.iter().map(|one| one.graph)) {
        Graph::Releases
    } else if any(GraphSign::Accumulates) {
        Graph::Accumulates
    } else if any(GraphSign::Engine) {
        Graph::Runs
    } else {
        Graph::Unseen
    }
}

/// The allocator's frames are the innermost ones; within the three frames above them a library shows its name (the
/// first may be a template or a lambda of its own).
fn requester(native: &[Meaning]) -> Requester {
    let Some(inner) = native.iter().rposition(|one| one.memory == MemorySign::Allocator) else {
        return Requester::Unseen;
    };
    let above = native.iter().skip(inner + 1).take(3);
    match above.map(|one| one.memory).find(|&sign| sign != MemorySign::Nothing) {
        Some(MemorySign::Storage) => Requester::Tensor,
        Some(MemorySign::Vendor) => Requester::Vendor,
        Some(MemorySign::Collective) => Requester::Collective,
        _ => Requester::Unseen,
    }
}

/// Whether of the calls of modules and of the engine the innermost is a module's. (A custom function's `backward` may run a model: it computes again what it
/// differentiates, as an adjoint or a reversible layer does.)
fn calls_module_last(python: &[Meaning]) -> bool {
    let calls = |one: &&Meaning| matches!(one.phase, PhaseSign::ModuleCall | PhaseSign::Backward);
    python.iter().find(calls).is_some_and(|one| one.phase == PhaseSign::ModuleCall)
}

/// The first frame that decides, innermost first. Past a frame that is not PyTorch's only one pattern counts: a method
/// `step` that PyTorch's optimizer wrapper calls is an optimizer of the user's or of a package.
fn origin(python: &[Meaning]) -> TorchOrigin {
    let mut foreign = false;
    let mut stepping = false;
    for one in python {
        if one.phase == PhaseSign::OptimizerHook && (stepping || !foreign) {
            return TorchOrigin::Optimizer;
        }
        match decided(one) {
            Some(_) if foreign => return TorchOrigin::Plain,
            Some(origin) => return origin,
            None if one.owner == Owner::User || one.owner.is_package() => {
                (foreign, stepping) = (true, one.method == Method::Step);
            }
            None => {}
        }
    }
    TorchOrigin::Plain
}

/// What a frame says by itself of who asked.
fn decided(one: &Meaning) -> Option<TorchOrigin> {
    match one.phase {
        PhaseSign::ZeroGrad => return Some(TorchOrigin::ZeroGrad),
        PhaseSign::Optimizer | PhaseSign::OptimizerSetup => return Some(TorchOrigin::Optimizer),
        PhaseSign::ModuleCall | PhaseSign::OptimizerHook => return Some(TorchOrigin::Plain),
        _ => {}
    }
    match one.memory {
        MemorySign::Read => Some(TorchOrigin::File),
        MemorySign::Adapts | MemorySign::Build | MemorySign::Copy | MemorySign::Fill | MemorySign::Move => {
            Some(TorchOrigin::Module)
        }
        MemorySign::Replicated => Some(TorchOrigin::Replicated),
        MemorySign::Sharded => Some(TorchOrigin::Sharded),
        _ => None,
    }
}

/// Whose code asked, where it was not PyTorch's: that of the innermost frame outside of PyTorch, a constructor first.
fn maker(python: &[Meaning]) -> AskingCode {
    if python.iter().any(|one| one.phase == PhaseSign::Constructor) {
        return AskingCode::Constructor;
    }
    let outside = python.iter().find(|one| one.owner == Owner::User || one.owner.is_package());
    if outside.is_some_and(|one| one.owner.is_package()) { AskingCode::Package } else { AskingCode::User }
}
