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
/// makes gradients are parameters. If it only adds to gradients that are there, as many again are these. If the program
/// trains and made no state, a surplus of the same bytes again is the optimizer's state. They come in this order of age.
pub(super) fn settle(scene: &Scene<'_>, verdicts: &mut Verdicts) {
    let gradients = Gradients::of(scene, verdicts);
    let has_state = holds_state(scene, verdicts, &gradients);
    let held = Sizes::count(verdicts.lives(scene).filter(|(life, role)| {
        life.died().is_none() && matches!(role, Some(Role::Activation | Role::Unknown))
    }));
    let mut handles = missing_handles(scene, verdicts);
    let mut seen = Sizes::default();
    let mut judge = |life: &Life| -> Verdict {
        let parameters = gradients.of_size(life.bytes());
        if !stays(scene, life) || (parameters == 0 && life.died().is_some()) {
            return let_go(scene, life);
        }
        let rank = seen.add(life.bytes());
        let role = if rank > parameters && is_handle_workspace(life.bytes()) && handles > 0 {
            handles -= 1;
            Role::Workspace
        } else if parameters == 0 && held.of(life.bytes()) > 1 {
            Role::Unknown
        } else if rank <= parameters || parameters == 0 {
            Role::Parameter
        } else if rank <= parameters + gradients.standing(life.bytes()) {
            Role::Gradient
        } else if has_state {
            Role::OptimizerState
        } else {
            Role::Parameter
        };
        (role, Evidence::Sizes)
    };
    for at in open_by_age(scene, verdicts) {
        if let (Some(life), Some(verdict)) = (scene.life(at), verdicts.0.get_mut(at)) {
            *verdict = Some(judge(&life));
        }
    }
}

fn let_go(scene: &Scene<'_>, life: &Life) -> Verdict {
    let by_backward = life.died().is_some_and(|died| scene.side(died) == Side::Backward);
    if by_backward || life.was_saved() {
        (Role::Activation, Evidence::Release)
    } else {
        (Role::Unknown, Evidence::Nothing)
    }
}

/// Whether a block is there to stay: held to the end, or at least through a whole lap and not let go by a backward pass.
fn stays(scene: &Scene<'_>, life: &Life) -> bool {
    let Some(died) = life.died() else { return true };
    scene.laps_lived(0, life.died()) > 1 && scene.side(died) != Side::Backward && !life.was_saved()
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

/// How many gradients of each size a backward pass deals with.
struct Gradients {
    /// The most that one pass makes and leaves behind.
    made: Sizes,
    /// The most that one pass adds to gradients that are there, as C++ frames show.
    added: Sizes,
}

impl Gradients {
    fn of(scene: &Scene<'_>, verdicts: &Verdicts) -> Gradients {
        let mut gradients = Gradients { made: Sizes::default(), added: Sizes::default() };
        let mut passes: FxHashMap<(usize, Bytes, bool), usize> = FxHashMap::default();
        for (life, role) in verdicts.lives(scene) {
            let made = role == Some(Role::Gradient);
            if made || (life.was_added() && life.born().is_some()) {
                let stretch = life.born().map_or(0, |born| scene.stretch(born) + 1);
                let count = passes.entry((stretch, life.bytes(), made)).or_default();
                *count += 1;
                let most = if made { &mut gradients.made } else { &mut gradients.added };
                most.raise(life.bytes(), *count);
            }
        }
        gradients
    }

    /// How many gradients there are of a size, and so parameters that are trained.
    fn of_size(&self, bytes: Bytes) -> usize {
        self.made.of(bytes).max(self.added.of(bytes))
    }

    /// How many gradients of a size stand from before the recording: a pass that clears them makes them anew.
    fn standing(&self, bytes: Bytes) -> usize {
        if self.made.has(bytes) { 0 } else { self.added.of(bytes) }
    }
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
            None if expected > 0 && stays(scene, &life) => {
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
    scene.trains && made.share_of(parameters) < 0.1 && surplus.share_of(parameters) >= 0.9
}

/// How many cuBLAS handles can have been made before the recording: one for the forward pass, one for the backward
/// pass, less those whose workspace is seen being made.
fn missing_handles(scene: &Scene<'_>, verdicts: &Verdicts) -> usize {
    let made = verdicts.lives(scene).filter(|(life, role)| {
        *role == Some(Role::Workspace) && life.born().is_some() && is_handle_workspace(life.bytes())
    });
    (1 + usize::from(scene.trains)).saturating_sub(made.count())
}
