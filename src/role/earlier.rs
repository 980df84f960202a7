//! Blocks that were there before the recording.
//!
//! In: the scene and what is settled of the rest. Out: roles for what is still open, all of it by release and size. How
//! much of each role there is can be trusted further than which block has it: blocks of one size look alike.

use std::cmp::Reverse;

use super::gradients::Gradients;
use super::scene::{Life, Scene};
use super::sizes::Sizes;
use super::workspaces::is_handle_workspace;
use super::{Ground, Role, RoleGround, RoleVerdict, Verdicts};
use crate::program::Phase;
use crate::unit::Bytes;

const SAVED: Ground = Ground {
    evidence: RoleGround::Release,
    because: "older than the recording; the backward pass let it go",
};
const GONE: Ground =
    Ground { evidence: RoleGround::Nothing, because: "older than the recording, and let go in it" };
const REPLACED: Ground = Ground::sizes(
    "older than the recording; it went, and then the backward pass made as many gradients of its size",
);
const BOUND_ANEW: Ground = Ground::sizes(
    "older than the recording; it went inside of a model, and a backward pass makes as many gradients of its size",
);
const HANDLE: Ground = Ground::sizes("older than the recording, of the size of a cuBLAS workspace");
const LIKE_THE_KEPT: Ground =
    Ground::sizes("older than the recording, of the size of what the program goes on to keep");
const TRAINED: Ground =
    Ground::sizes("older than the recording; a backward pass makes as many gradients of its size");
const STANDS: Ground = Ground::sizes("older than the recording, and held through it");
const ADDED_TO: Ground =
    Ground::sizes("older than the recording; a backward pass adds to as many of its size");
const SURPLUS: Ground =
    Ground::sizes("older than the recording, beyond parameters and gradients of its size");

/// One that the backward pass lets go of was saved for it. Of those that stay, as many of a size as one backward pass
/// makes gradients are parameters. If it only adds to gradients that are there, as many again are these. If the program
/// trains and made no state, a surplus of the same bytes again is the optimizer's state. They come in this order of age.
pub(super) fn settle(scene: &Scene<'_>, verdicts: &mut Verdicts) {
    let gradients = Gradients::of(scene, verdicts);
    let has_state = holds_state(scene, verdicts, &gradients);
    let held = Sizes::count(verdicts.lives(scene).filter(|(life, role)| {
        life.died().is_none() && matches!(role, Some(Role::Activation | Role::Unknown))
    }));
    let mut handles = missing_handles(scene, verdicts);
    let (mut seen, mut replaced) = (Sizes::default(), Sizes::default());
    let mut judge = |life: &Life| -> RoleVerdict {
        let parameters = gradients.of_size(life.bytes());
        if makes_way(scene, life) && gradients.makes(life.bytes()) && replaced.add(life.bytes()) <= parameters
        {
            return if life.goes_in_forward() {
                (Role::Parameter, &BOUND_ANEW)
            } else {
                (Role::Gradient, &REPLACED)
            };
        }
        if !stays(scene, life, &gradients) || (parameters == 0 && life.died().is_some()) {
            return let_go(life);
        }
        let rank = seen.add(life.bytes());
        if rank > parameters && is_handle_workspace(life.bytes()) && handles > 0 {
            handles -= 1;
            (Role::Workspace, &HANDLE)
        } else if parameters == 0 && held.of(life.bytes()) > 1 {
            (Role::Unknown, &LIKE_THE_KEPT)
        } else if rank <= parameters {
            (Role::Parameter, &TRAINED)
        } else if parameters == 0 {
            (Role::Parameter, &STANDS)
        } else if rank <= parameters + gradients.standing(life.bytes()) {
            (Role::Gradient, &ADDED_TO)
        } else if has_state {
            (Role::OptimizerState, &SURPLUS)
        } else {
            (Role::Parameter, &STANDS)
        }
    };
    for at in open_by_age(scene, verdicts) {
        if let (Some(life), Some(verdict)) = (scene.life(at), verdicts.0.get_mut(at)) {
            *verdict = Some(judge(&life));
        }
    }
}

fn let_go(life: &Life<'_>) -> RoleVerdict {
    if life.ends_in_backward() || life.was_saved() {
        (Role::Activation, &SAVED)
    } else {
        (Role::Unknown, &GONE)
    }
}

/// Whether a block goes before the first backward pass: where the program drops its old gradients, or, inside of a model, what that binds anew. What a step lets go of that was running when the
/// recording began are its temporaries.
fn makes_way(scene: &Scene<'_>, life: &Life<'_>) -> bool {
    let before = life.died().zip(scene.first_backward).is_some_and(|(died, pass)| died < pass);
    before && life.died_phase() != Some(Phase::OptimizerStep) && !life.ends_in_backward() && !life.was_saved()
}

/// Whether a block is there to stay: held to the end, or at least through a whole turn and not let go by a backward pass. One
/// that goes after a backward pass made gradients of its size is no gradient of before, to which the pass would have added: a
/// weight that is replaced, or a state that is bound anew.
fn stays(scene: &Scene<'_>, life: &Life<'_>, gradients: &Gradients) -> bool {
    let Some(died) = life.died() else { return true };
    let outlives_pass =
        || gradients.makes(life.bytes()) && scene.first_backward.is_some_and(|pass| pass < died);
    !life.ends_in_backward() && !life.was_saved() && (life.turns() > 1 || outlives_pass())
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

/// Whether the blocks from before the recording hold an optimizer's state: the program trains without making nearly
/// any, and beyond parameters and gradients there are nearly as many bytes again in blocks of their sizes. (Steps need
/// not show: in the steady state a fused optimizer allocates nothing.)
fn holds_state(scene: &Scene<'_>, verdicts: &Verdicts, gradients: &Gradients) -> bool {
    let (mut made, mut parameters, mut surplus) = (Bytes::ZERO, Bytes::ZERO, Bytes::ZERO);
    let mut seen = Sizes::default();
    for (life, role) in verdicts.lives(scene) {
        let expected = gradients.of_size(life.bytes());
        match role {
            Some(Role::OptimizerState) => made += life.bytes(),
            None if expected > 0 && stays(scene, &life, gradients) => {
                let rank = seen.add(life.bytes());
                if rank <= expected {
                    parameters += life.bytes();
                } else if rank > expected + gradients.standing(life.bytes()) {
                    surplus += life.bytes();
                }
            }
            _ => {}
        }
    }
    scene.trains() && made.share_of(parameters) < 0.1 && surplus.share_of(parameters) >= 0.9
}

/// How many cuBLAS handles can have been made before the recording: one for the forward pass, one for the backward
/// pass, less those whose workspace is seen being made.
fn missing_handles(scene: &Scene<'_>, verdicts: &Verdicts) -> usize {
    let made = verdicts.lives(scene).filter(|(life, role)| {
        *role == Some(Role::Workspace) && life.born().is_some() && is_handle_workspace(life.bytes())
    });
    (1 + usize::from(scene.trains())).saturating_sub(made.count())
}
