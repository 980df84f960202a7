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
    /// A wrapper for several ranks.
    Distributed,
    /// Other code.
    #[default]
    Plain,
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
    /// Whether a constructor of the user's or of a package is being run.
    pub(super) in_constructor: bool,
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
                frame.map_or(FrameKind::Other, |f| classify(snapshot.text(f.file), snapshot.text(f.name)))
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
        in_constructor: kinds.contains(&FrameKind::Constructor),
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
    let Some(inner) = kinds.iter().take_while(|&&kind| is_native(kind)).rposition_of_allocator() else {
        return Requester::Unseen;
    };
    let mut above = kinds.iter().skip(inner + 1).take_while(|&&kind| is_native(kind)).take(3);
    let first = above.next().copied();
    match first {
        None => Requester::Unseen,
        Some(FrameKind::Storage) => Requester::Tensor,
        Some(FrameKind::Algorithm) => Requester::Algorithm,
        Some(FrameKind::Collective) => Requester::Collective,
        Some(FrameKind::Vendor) => Requester::Vendor,
        Some(_) => match above.find(|&&kind| kind != FrameKind::Native) {
            Some(FrameKind::Storage) => Requester::Tensor,
            Some(FrameKind::Vendor) => Requester::Vendor,
            Some(FrameKind::Algorithm) => Requester::Algorithm,
            _ => Requester::Unseen,
        },
    }
}

trait AllocatorPosition {
    fn rposition_of_allocator(self) -> Option<usize>;
}

impl<'a, I: Iterator<Item = &'a FrameKind>> AllocatorPosition for I {
    fn rposition_of_allocator(self) -> Option<usize> {
        self.enumerate().filter(|&(_, &kind)| kind == FrameKind::Allocator).map(|(at, _)| at).last()
    }
}

fn origin(kinds: &[FrameKind]) -> Origin {
    for &kind in kinds.iter().filter(|&&kind| !is_native(kind)) {
        return match kind {
            FrameKind::Torch => continue,
            FrameKind::ZeroGrad => Origin::ZeroGrad,
            FrameKind::Optimizer => Origin::Optimizer,
            FrameKind::ModuleMove | FrameKind::ModuleBuild | FrameKind::Copy | FrameKind::Load => {
                Origin::Module
            }
            FrameKind::Distributed => Origin::Distributed,
            _ => Origin::Plain,
        };
    }
    Origin::Plain
}
