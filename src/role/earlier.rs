//! Blocks that were there before the recording.
//!
//! In: the scene and what is settled of the rest. Out: roles for what is still open, all of it by release and size. How
//! much of each role there is can be trusted further than which block has it: blocks of one size look alike.

use std::cmp::Reverse;

use rustc_hash::FxHashMap;

use super::scene::{Life, Scene, Side};
use super::sizes::{Sizes, is_handle_workspace};
use super::{Evidence, Role, Verdict, Verdicts};
use crate::unit::Bytes;

/// One that the backward pass lets go of was saved for it. Of those that stay, as many of a size as one backward pass
/// makes gradients are parameters; if the program trains and made no state, a surplus of the same bytes again is the
/// optimizer's state. Parameters come first in age.
pub(super) fn settle(scene: &Scene<'_>, verdicts: &mut Verdicts) {
    let gradients = gradients_of_one_pass(scene, verdicts);
    let has_state = holds_state(scene, verdicts, &gradients);
    let held = Sizes::count(verdicts.lives(scene).filter(|(life, role)| {
        life.died.is_none() && matches!(role, Some(Role::Activation | Role::Unknown))
    }));
    let mut handles = missing_handles(scene, verdicts);
    let mut seen = Sizes::default();
    let mut judge = |life: &Life| -> Verdict {
        if !stays(scene, life) {
            return let_go(scene, life);
        }
        let surplus = seen.add(life.bytes) > gradients.of(life.bytes);
        let role = if surplus && is_handle_workspace(life.bytes) && handles > 0 {
            handles -= 1;
            Role::Workspace
        } else if surplus && gradients.has(life.bytes) && has_state {
            Role::OptimizerState
        } else if !gradients.has(life.bytes) && held.of(life.bytes) > 1 {
            Role::Unknown
        } else {
            Role::Parameter
        };
        (role, Evidence::Sizes)
    };
    for at in open_by_age(scene, verdicts) {
        let life = scene.timeline.allocations.get(at).map(|allocation| scene.life(allocation));
        if let (Some(life), Some(verdict)) = (life, verdicts.0.get_mut(at)) {
            *verdict = Some(judge(&life));
        }
    }
}

fn let_go(scene: &Scene<'_>, life: &Life) -> Verdict {
    let by_backward = life.died.is_some_and(|died| scene.side(died) == Side::Backward);
    if by_backward || life.freed.releases_saved {
        (Role::Activation, Evidence::Release)
    } else {
        (Role::Unknown, Evidence::Nothing)
    }
}

/// Whether a block is there to stay: held to the end, or at least through a whole lap and not let go by a backward pass.
fn stays(scene: &Scene<'_>, life: &Life) -> bool {
    let Some(died) = life.died else { return true };
    scene.laps_lived(0, life.died) > 1 && scene.side(died) != Side::Backward && !life.freed.releases_saved
}

/// The open allocations, oldest first as far as addresses show: the driver hands out addresses downwards (on all
/// recordings of the corpus), the allocator fills each segment upwards.
fn open_by_age(scene: &Scene<'_>, verdicts: &Verdicts) -> Vec<usize> {
    let open = verdicts.0.iter().enumerate().filter(|(_, verdict)| verdict.is_none());
    let mut found: Vec<(Reverse<u64>, u64, usize)> = open
        .filter_map(|(at, _)| {
            let address = scene.timeline.allocations.get(at)?.address;
            Some((Reverse(scene.segment_of(address)), address, at))
        })
        .collect();
    found.sort_unstable();
    found.into_iter().map(|(_, _, at)| at).collect()
}

/// The most gradients of each size that one stretch makes.
fn gradients_of_one_pass(scene: &Scene<'_>, verdicts: &Verdicts) -> Sizes {
    let mut passes: FxHashMap<(usize, Bytes), usize> = FxHashMap::default();
    let mut most = Sizes::default();
    for (life, _) in verdicts.lives(scene).filter(|(_, role)| *role == Some(Role::Gradient)) {
        let stretch = life.born.map_or(0, |born| scene.stretch(born) + 1);
        let count = passes.entry((stretch, life.bytes)).or_default();
        *count += 1;
        most.raise(life.bytes, *count);
    }
    most
}

/// Whether the blocks from before the recording hold an optimizer's state: the program trains without making nearly
/// any, and beyond the parameters there are nearly as many bytes again in blocks of their sizes. (Steps need not show:
/// in the steady state a fused optimizer allocates nothing.)
fn holds_state(scene: &Scene<'_>, verdicts: &Verdicts, gradients: &Sizes) -> bool {
    let (mut made, mut parameters, mut surplus) = (Bytes::ZERO, Bytes::ZERO, Bytes::ZERO);
    let mut seen = Sizes::default();
    for (life, role) in verdicts.lives(scene) {
        match role {
            Some(Role::OptimizerState) => made += life.bytes,
            None if stays(scene, &life) && gradients.has(life.bytes) => {
                let first = seen.add(life.bytes) <= gradients.of(life.bytes);
                *(if first { &mut parameters } else { &mut surplus }) += life.bytes;
            }
            _ => {}
        }
    }
    scene.trains && made.share_of(parameters) < 0.1 && surplus.share_of(parameters) >= 0.9
}

/// How many cuBLAS handles can have been made before the recording: one for the forward pass, one for the backward
/// pass, less those whose workspace is seen being made.
fn missing_handles(scene: &Scene<'_>, verdicts: &Verdicts) -> usize {
    let made = verdicts.lives(scene).filter(|(life, role)| {
        *role == Some(Role::Workspace) && life.born.is_some() && is_handle_workspace(life.bytes)
    });
    (1 + usize::from(scene.trains)).saturating_sub(made.count())
}
