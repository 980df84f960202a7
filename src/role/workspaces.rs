//! cuBLAS workspaces, in recordings without C++ frames.
//!
//! In: the scene and what is settled already. Out: the workspaces. A size alone proves nothing: it also counts how many blocks of
//! that size are explained otherwise.

use rustc_hash::FxHashMap;

use super::scene::{Life, Scene, StepSide};
use super::sizes::Sizes;
use super::stacks::{AskingCode, TorchOrigin};
use super::{Ground, Role, RoleGround, Verdicts};
use crate::program::Phase;
use crate::unit::Bytes;

/// The sizes that PyTorch gives a cuBLAS handle by default: `:4096:2:16:8`, and 32 MiB from compute capability 9.0 on
/// (`parseChosenWorkspaceSize` in `aten/src/ATen/cuda/CublasHandlePool.cpp`); cuBLASLt gets 1 MiB
/// (`_getWorkspaceSize`, same file).
const BLAS_WORKSPACES: [Bytes; 3] = [Bytes(8_519_680), Bytes::MIB.times(32), Bytes::MIB];

/// Whether a size is that of a handle's workspace (the small one of cuBLASLt apart).
pub(super) fn is_handle_workspace(bytes: Bytes) -> bool {
    bytes == BLAS_WORKSPACES[0] || bytes == BLAS_WORKSPACES[1]
}

const HANDLE: Ground = Ground {
    evidence: RoleGround::Sizes,
    because: "the first of its thread with the size of a cuBLAS workspace, and held for as long as anything is made",
};

/// A handle belongs to a thread and a stream, is made at the first matrix product there and released by nobody but a framework that clears
/// up when all is done (Lightning). So only the first block of such a size that is kept for good can be one (the first two, where no stack tells the threads apart).
/// In the backward pass the same may hold of a gradient: there must be one block more than the gradients of that size. A forward pass that runs again in it makes none.
/// Where the forward pass is seen to make its handle, the backward pass that runs on a thread of the engine's needs one of its own, and none is older:
/// one block at least is that, whatever parameters there are of its size (those of a sharded model have no gradients of their own).
pub(super) fn settle(scene: &Scene<'_>, verdicts: &mut Verdicts) {
    let threads = if scene.has_stacks { 1 } else { 2 };
    let mut found: FxHashMap<(Bytes, bool, u16), usize> = FxHashMap::default();
    let gradients = GradientCounts::of(scene, verdicts);
    verdicts.settle_by(scene, |life| {
        let born = life.born().filter(|_| life.is_for_good() && BLAS_WORKSPACES.contains(&life.bytes()))?;
        let in_backward = scene.side(born) == StepSide::Backward;
        let may_be_gradient = in_backward && !life.is_of_a_recomputation();
        let computing = !matches!(life.born_phase()?, Phase::Setup | Phase::Input);
        if life.made().native || (scene.has_stacks && !computing) {
            return None;
        }
        let kind = (life.bytes(), life.stream());
        let needs_one = is_handle_workspace(kind.0) && found.contains_key(&(kind.0, false, kind.1));
        if may_be_gradient && !needs_one && !gradients.leave_one_over(scene.stretch(born), kind) {
            return None;
        }
        let count = found.entry((life.bytes(), in_backward, life.stream())).or_default();
        *count += 1;
        (*count <= threads).then_some((Role::Workspace, &HANDLE))
    });
}

/// How many blocks of the workspaces' sizes each backward pass leaves behind, by stream.
#[derive(Default)]
struct GradientCounts {
    left: FxHashMap<(Bytes, u16), Passes>,
    /// The parameters that could have a gradient of that size.
    parameters: Sizes,
}

impl GradientCounts {
    fn of(scene: &Scene<'_>, verdicts: &Verdicts) -> GradientCounts {
        let mut counts = GradientCounts::default();
        for (life, role) in verdicts.lives(scene).filter(|(life, _)| BLAS_WORKSPACES.contains(&life.bytes()))
        {
            let by_backward = life.born().filter(|&born| scene.side(born) == StepSide::Backward);
            let by_backward = by_backward.filter(|_| !life.is_of_a_recomputation());
            match (by_backward, role) {
                (Some(born), None | Some(Role::Gradient)) => {
                    counts.add(scene.stretch(born), (life.bytes(), life.stream()));
                }
                (None, Some(Role::Parameter)) => _ = counts.parameters.add(life.bytes()),
                (None, None) if may_be_parameter(scene, &life) => _ = counts.parameters.add(life.bytes()),
                _ => {}
            }
        }
        counts
    }

    fn add(&mut self, stretch: usize, kind: (Bytes, u16)) {
        self.left.entry(kind).or_default().add(stretch);
    }

    /// Whether backward passes leave more blocks of a size on a stream than there are gradients of it. Other passes on that stream
    /// show how many one of them leaves, where they make their gradients anew; otherwise there are at most as many as parameters.
    fn leave_one_over(&self, stretch: usize, kind: (Bytes, u16)) -> bool {
        let (here, others) =
            self.left.get(&kind).map_or((0, None), |passes| passes.here_and_elsewhere(stretch));
        here > others.unwrap_or_else(|| self.parameters.of(kind.0))
    }
}

/// Whether something older than the recording may be a parameter. Where modules are seen to be made, what a line outside of them computed is none.
fn may_be_parameter(scene: &Scene<'_>, life: &Life<'_>) -> bool {
    let made = life.made();
    let is_plain = made.origin == TorchOrigin::Plain && made.maker != AskingCode::Constructor;
    life.born().is_none() && !(life.stack().is_some() && is_plain && scene.makes_modules())
}

/// How many blocks of one size each backward pass leaves.
#[derive(Default)]
struct Passes {
    /// Each pass (its stretch) with its count, in order.
    counts: Vec<(usize, usize)>,
    /// The pass that leaves most, and how many.
    most: (usize, usize),
    /// The most that another one leaves.
    next: Option<usize>,
}

impl Passes {
    /// Counts a block; passes come in order.
    fn add(&mut self, stretch: usize) {
        match self.counts.last_mut() {
            Some((last, count)) if *last == stretch => *count += 1,
            _ => self.counts.push((stretch, 1)),
        }
        let (pass, count) = self.counts.last().copied().unwrap_or_default();
        if self.counts.len() == 1 || pass == self.most.0 {
            self.most = (pass, count);
        } else if count > self.most.1 {
            self.next = Some(self.most.1);
            self.most = (pass, count);
        } else {
            self.next = self.next.max(Some(count));
        }
    }

    /// How many blocks a pass leaves, and the most that any other does.
    fn here_and_elsewhere(&self, stretch: usize) -> (usize, Option<usize>) {
        let at = self.counts.binary_search_by_key(&stretch, |(pass, _)| *pass).ok();
        let here = at.and_then(|at| self.counts.get(at)).map_or(0, |(_, count)| *count);
        if self.most.0 == stretch || self.counts.is_empty() {
            (here, self.next)
        } else {
            (here, Some(self.most.1))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pass_is_held_against_the_best_of_the_others() {
        let mut passes = Passes::default();
        assert_eq!(passes.here_and_elsewhere(3), (0, None));
        for stretch in [3, 3, 5, 8, 8, 8, 9, 9] {
            passes.add(stretch);
        }
        assert_eq!(passes.here_and_elsewhere(3), (2, Some(3)));
        assert_eq!(passes.here_and_elsewhere(8), (3, Some(2)));
        assert_eq!(passes.here_and_elsewhere(7), (0, Some(3)));
    }

    #[test]
    fn many_workspaces_over_many_passes_take_no_square() {
        let mut counts = GradientCounts::default();
        let size = Bytes::MIB;
        for stretch in 0..1_000_000 {
            counts.add(stretch, (size, 0));
        }
        assert!(!(0..1_000_000).any(|stretch| counts.leave_one_over(stretch, (size, 0))));
    }

    #[test]
    fn passes_on_a_stream_are_held_against_others_on_it() {
        let mut counts = GradientCounts::default();
        for (stretch, stream) in [(1, 1), (5, 2), (9, 3)] {
            counts.add(stretch, (Bytes::MIB, stream));
        }
        assert!(counts.leave_one_over(5, (Bytes::MIB, 2)), "each stream has a handle of its own");
        counts.add(11, (Bytes::MIB, 2));
        assert!(!counts.leave_one_over(5, (Bytes::MIB, 2)), "a gradient that each pass there makes");
    }
}
