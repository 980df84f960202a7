//! What each distinct stack says about the memory that it asked for or let go.
//!
//! In: the interned stacks. Out: one [`StackTraits`] a stack, so that the work per allocation is a look-up.
//!
//! Two scans. The C++ frames name the *requester*: the first frame above the caching allocator. If that is not the
//! maker of a tensor's storage, the memory is a library's own scratch, whatever the frames further out say. The Python
//! frames name the *origin*: innermost first, within PyTorch and up to the first module call or foreign frame, since
//! outer frames lie (Lightning runs the forward inside of `optimizer.step`).

use super::frames::{FrameKind, classify};
use crate::snapshot::Snapshot;
use crate::unit::{Index, StackId};

/// Who asked the allocator for memory, by the C++ frames.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Requester {
    /// A tensor's storage.
    Tensor,
    /// cuDNN, cuBLAS and the like, for themselves.
    Vendor,
    /// A device-wide algorithm, for itself.
    Algorithm,
    /// A collective, for itself.
    Collective,
    /// The stack has no C++ frames, or none that says.
    #[default]
    Unseen,
}

/// What of PyTorch's Python code asked for memory, if it was PyTorch.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Origin {
    /// `zero_grad`.
    ZeroGrad,
    /// An optimizer.
    Optimizer,
    /// A module that is built, moved, cast, copied or loaded.
    Module,
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
pub(super) enum Maker {
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
    /// Neither, or the frames do not say.
    #[default]
    Unseen,
}

/// What a stack says about memory.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct StackTraits {
    pub(super) requester: Requester,
    pub(super) origin: Origin,
    pub(super) maker: Maker,
    pub(super) graph: Graph,
    /// Whether there are C++ frames.
    pub(super) native: bool,
}

/// The traits of all stacks of a snapshot.
#[derive(Debug)]
pub(super) struct TraitTable(Vec<StackTraits>);

impl TraitTable {
    /// Reads every distinct frame once and every distinct stack once.
    pub(super) fn of(snapshot: &Snapshot) -> TraitTable {
        let stacks = &snapshot.stacks;
        let kinds: Vec<FrameKind> = stacks
            .frame_ids()
            .map(|id| {
                let frame = stacks.frame(id);
                frame.map_or(FrameKind::User, |f| classify(snapshot.text(f.file), snapshot.text(f.name)))
            })
            .collect();
        let mut of_one = Vec::new();
        let traits = stacks.ids().map(|stack| {
            of_one.clear();
            of_one.extend(stacks.get(stack).iter().filter_map(|frame| kinds.get(frame.position()).copied()));
            traits_of(&of_one)
        });
        TraitTable(traits.collect())
    }

    /// The traits of a stack; those of an empty one where none was recorded.
    pub(super) fn get(&self, stack: Option<StackId>) -> StackTraits {
        stack.and_then(|id| self.0.get(id.position())).copied().unwrap_or_default()
    }
}

fn traits_of(kinds: &[FrameKind]) -> StackTraits {
    StackTraits {
        requester: requester(kinds),
        origin: origin(kinds),
        maker: maker(kinds),
        graph: graph(kinds),
        native: kinds.iter().any(|&kind| is_native(kind)),
    }
}

fn graph(kinds: &[FrameKind]) -> Graph {
    if kinds.contains(&FrameKind::SavedVariable) {
        Graph::Releases
    } else if kinds.contains(&FrameKind::Accumulation) {
        Graph::Accumulates
    } else {
        Graph::Unseen
    }
}

fn is_native(kind: FrameKind) -> bool {
    use FrameKind::{Accumulation, Algorithm, Allocator, Collective, Native, SavedVariable, Storage, Vendor};
    matches!(
        kind,
        Accumulation | Allocator | Storage | Vendor | Algorithm | Collective | SavedVariable | Native
    )
}

/// The allocator's frames are the innermost ones; within the three frames above them a library shows its name (the
/// first may be a template or a lambda of its own).
fn requester(kinds: &[FrameKind]) -> Requester {
    let native = kinds.iter().position(|&kind| !is_native(kind)).unwrap_or(kinds.len());
    let native = kinds.get(..native).unwrap_or_default();
    let Some(inner) = native.iter().rposition(|&kind| kind == FrameKind::Allocator) else {
        return Requester::Unseen;
    };
    let above = native.iter().skip(inner + 1).take(3);
    match above.copied().find(|&kind| kind != FrameKind::Native) {
        Some(FrameKind::Storage) => Requester::Tensor,
        Some(FrameKind::Vendor) => Requester::Vendor,
        Some(FrameKind::Algorithm) => Requester::Algorithm,
        Some(FrameKind::Collective) => Requester::Collective,
        _ => Requester::Unseen,
    }
}

/// The first frame that decides, innermost first. Past a frame that is not PyTorch's only one pattern counts: a method
/// `step` that PyTorch's optimizer wrapper calls is an optimizer of the user's or of a package.
fn origin(kinds: &[FrameKind]) -> Origin {
    let mut foreign = false;
    let mut stepping = false;
    for &kind in kinds.iter().filter(|&&kind| !is_native(kind)) {
        match kind {
            FrameKind::Torch => {}
            FrameKind::StepWrapper if stepping || !foreign => return Origin::Optimizer,
            FrameKind::Step | FrameKind::User | FrameKind::Package | FrameKind::Constructor => {
                foreign = true;
                stepping = kind == FrameKind::Step;
            }
            _ if foreign => return Origin::Plain,
            FrameKind::ZeroGrad => return Origin::ZeroGrad,
            FrameKind::Optimizer => return Origin::Optimizer,
            FrameKind::ModuleMove | FrameKind::ModuleBuild | FrameKind::Copy | FrameKind::Load => {
                return Origin::Module;
            }
            FrameKind::Replicated => return Origin::Replicated,
            FrameKind::Sharded => return Origin::Sharded,
            _ => return Origin::Plain,
        }
    }
    Origin::Plain
}

/// Whose code asked, where it was not PyTorch's: that of the innermost frame outside of PyTorch, a constructor first.
fn maker(kinds: &[FrameKind]) -> Maker {
    if kinds.contains(&FrameKind::Constructor) {
        return Maker::Constructor;
    }
    match kinds.iter().find(|kind| matches!(kind, FrameKind::User | FrameKind::Package | FrameKind::Step)) {
        Some(FrameKind::Package) => Maker::Package,
        _ => Maker::User,
    }
}
