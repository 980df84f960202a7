//! Roles that one sign settles: who asked, which code made it, who let it go.
//!
//! In: the scene. Out: verdicts for workspaces, communication, gradients that `zero_grad` releases, optimizer state,
//! weights, and what the backward pass makes and drops again. Everything else stays open.

use super::scene::{Life, Scene, Side};
use super::stacks::{Origin, Requester};
use super::{Evidence, Role, Verdict, Verdicts};
use crate::program::Phase;

pub(super) fn settle(scene: &Scene<'_>, verdicts: &mut Verdicts) {
    verdicts.settle(scene, |life| {
        by_requester(life)
            .or_else(|| by_wrapper(scene, life))
            .or_else(|| by_clearing(life))
            .or_else(|| by_maker(scene, life))
            .or_else(|| within_backward(scene, life))
    });
}

fn by_requester(life: &Life) -> Option<Verdict> {
    let role = match life.made().requester {
        Requester::Vendor => Role::Workspace,
        Requester::Algorithm => Role::Temporary,
        Requester::Collective => Role::Communication,
        Requester::Tensor | Requester::Unseen => return None,
    };
    Some((role, Evidence::Requester))
}

/// DDP makes buckets. Of what FSDP and `DeepSpeed` make, the reduced gradient is what the backward pass leaves behind,
/// the shard of a parameter what setup leaves behind; the rest is gathered parameters and buffers of collectives.
fn by_wrapper(scene: &Scene<'_>, life: &Life) -> Option<Verdict> {
    let sharded = match life.made().origin {
        Origin::Sharded => true,
        Origin::Replicated => false,
        _ => return None,
    };
    let born = life.born()?;
    let outlives = !scene.same_stretch(born, life.died());
    let role = if life.cleared() || (sharded && scene.side(born) == Side::Backward && outlives) {
        Role::Gradient
    } else if sharded && born < scene.first_work && life.died().is_none_or(|died| died > scene.first_work) {
        Role::Parameter
    } else {
        Role::Communication
    };
    Some((role, Evidence::Frames))
}

fn by_clearing(life: &Life) -> Option<Verdict> {
    if !life.cleared() {
        return None;
    }
    let role = if life.born_phase() == Some(Phase::ZeroGrad) { Role::Temporary } else { Role::Gradient };
    Some((role, Evidence::Release))
}

fn by_maker(scene: &Scene<'_>, life: &Life) -> Option<Verdict> {
    let born = life.born()?;
    let brief = scene.same_stretch(born, life.died());
    if life.made().origin == Origin::Optimizer || life.born_phase() == Some(Phase::OptimizerStep) {
        let role = if brief { Role::Temporary } else { Role::OptimizerState };
        return Some((role, Evidence::Frames));
    }
    // A batch that is read with `torch.load` is a batch.
    if life.made().origin != Origin::Module || life.born_phase() == Some(Phase::Input) {
        return None;
    }
    // A first copy that a cast or a move replaces is gone before the work begins; later ones within their own lap.
    let replaced = if born < scene.first_work {
        life.died().is_some_and(|died| died < scene.first_work)
    } else {
        brief && scene.laps_lived(born, life.died()) == 0
    };
    let role = if replaced { Role::Temporary } else { Role::Parameter };
    Some((role, Evidence::Frames))
}

/// Under activation checkpointing the backward pass makes activations itself; it lets go of them as of saved ones.
fn within_backward(scene: &Scene<'_>, life: &Life) -> Option<Verdict> {
    let born = life.born()?;
    if scene.side(born) != Side::Backward || !scene.same_stretch(born, life.died()) {
        return None;
    }
    let recomputed =
        life.born_phase() == Some(Phase::Recomputation) && life.died_phase() == Some(Phase::Backward);
    if life.was_saved() || (recomputed && !life.made().native) {
        Some((Role::Activation, Evidence::Release))
    } else {
        Some((Role::Temporary, Evidence::Lifetime))
    }
}
