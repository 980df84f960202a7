//! The table of evidence: what a lifetime shows of its role, row by row.
//!
//! In: one lifetime, and what is known of sizes so far. Out: the first row that holds, with its role and its reason. The tables
//! are asked one after the other, each about what the ones before left open: [`SIGNS`] (who asked, which code made it, who let it
//! go), [`OLDER`] what is older than the recording, [`STACKLESS`] in recordings without any stack, [`LEFT_BEHIND`] (what the backward pass leaves), [`LIVES`] (birth and
//! death). What only a comparison of many lifetimes shows is no row: [`super::workspaces`], [`super::ties`], [`super::earlier`].

use super::known::Known;
use super::scene::{Life, StepSide, is_forward};
use super::stacks::{AskingCode, Graph, Requester, TorchOrigin};
use super::{Ground, Role, RoleGround, RoleVerdict};
use crate::program::Phase;

/// A row: a role, why, and when it holds.
pub(super) struct Inference {
    role: Role,
    ground: Ground,
    holds: fn(&Life<'_>, &Known) -> bool,
}

const fn row(
    role: Role,
    evidence: RoleGround,
    because: &'static str,
    holds: fn(&Life<'_>, &Known) -> bool,
) -> Inference {
    Inference { role, ground: Ground { evidence, because }, holds }
}

/// The verdict of the first row that holds.
pub(super) fn judge(table: &'static [Inference], life: &Life<'_>, known: &Known) -> Option<RoleVerdict> {
    table.iter().find(|row| (row.holds)(life, known)).map(|row| (row.role, &row.ground))
}

/// What one sign settles, whatever the rest of the program does.
#[rustfmt::skip]
pub(super) const SIGNS: &[Inference] = &[
    row(Role::Workspace, RoleGround::Requester, "a library of NVIDIA's or the like asked for it, for itself",
        |life, _| life.made().requester == Requester::Vendor),
    row(Role::Communication, RoleGround::Requester, "a collective asked for it, for itself",
        |life, _| life.made().requester == Requester::Collective),
    // Wrappers for several ranks. Of what shards its parameters, the reduced gradient is what the backward pass leaves behind.
    row(Role::Gradient, RoleGround::Frames, "a wrapper for several ranks made it, and it was cleared or outlives the backward pass",
        |life, _| is_wrapped(life) && (life.cleared() || (is_sharded(life) && life.born_side() == Some(StepSide::Backward) && !life.is_brief()))),
    row(Role::Parameter, RoleGround::Frames, "a wrapper for several ranks made it before the work began, and keeps it",
        |life, _| is_wrapped(life) && is_sharded(life) && life.is_from_setup() && life.sees_work()),
    row(Role::Communication, RoleGround::Frames, "a wrapper for several ranks made it",
        |life, _| is_wrapped(life)),
    row(Role::Gradient, RoleGround::Release, "clearing gradients let it go",
        |life, _| life.cleared()),
    row(Role::Temporary, RoleGround::Frames, "the optimizer made it and let it go",
        |life, _| steps(life) && life.is_brief()),
    row(Role::OptimizerState, RoleGround::Frames, "the optimizer made it and keeps it",
        |life, _| steps(life)),
    row(Role::Temporary, RoleGround::Frames, "a module was built, moved, copied or loaded, and it was replaced",
        |life, _| is_built(life) && is_replaced(life)),
    row(Role::Parameter, RoleGround::Frames, "a module was built, moved, copied or loaded",
        |life, _| is_built(life)),
    // Under activation checkpointing the backward pass makes activations itself, and lets go of them as of saved ones.
    row(Role::Activation, RoleGround::Release, "computed again for the backward pass, which let it go",
        |life, _| within_backward(life) && (life.was_saved() || is_recomputed(life))),
    row(Role::Temporary, RoleGround::Lifetime, "the backward pass made it and let it go",
        |life, _| within_backward(life)),
];

/// What is older than the recording and still has its stack: all of a snapshot without events, and what a ring buffer lost.
#[rustfmt::skip]
pub(super) const OLDER: &[Inference] = &[
    row(Role::Gradient, RoleGround::Frames, "older than the recording; its stack is the backward pass's, and a weight has its size",
        |life, known| is_older(life) && life.made().graph == Graph::Runs && known.weights.has(life.bytes())),
    row(Role::Gradient, RoleGround::Sizes, "no Python made it, others have stacks, and a weight has its size",
        |life, known| is_older(life) && life.scene.is_still && life.stack().is_none() && known.weights.has(life.bytes())),
    row(Role::Activation, RoleGround::Frames, "older than the recording; its stack shows a forward pass",
        |life, _| is_older(life) && life.made().in_forward && life.made().graph != Graph::Runs),
];

/// Recordings without stacks (`context=None`): annotations give the steps, the rest is size and order.
#[rustfmt::skip]
pub(super) const STACKLESS: &[Inference] = &[
    row(Role::Gradient, RoleGround::Sizes, "made since the last step, alive at the next, of the size of something trained",
        |life, known| awaits_a_step(life) && (known.trained.has(life.bytes()) || known.standing.has(life.bytes()))),
];

/// What the backward pass makes and leaves behind. Results of `torch.autograd.grad` and gradients of inputs are told by their
/// size, but only where sizes explain nearly all the rest, so that a model whose parameters are not all known loses nothing.
#[rustfmt::skip]
pub(super) const LEFT_BEHIND: &[Inference] = &[
    row(Role::Activation, RoleGround::Release, "one backward pass left it, another let it go",
        |life, known| left_behind(life) && life.ends_in_backward() && (life.was_saved() || !known.model.has(life.bytes()))),
    row(Role::Temporary, RoleGround::Sizes, "the backward pass left it, but no parameter has its size",
        |life, known| left_behind(life) && known.explained && !known.model.has(life.bytes()) && life.died().is_some()),
    row(Role::Activation, RoleGround::Sizes, "the backward pass left it, no parameter has its size, and all have gradients of their own",
        |life, known| left_behind(life) && known.graded && !known.model.has(life.bytes()) && !known.standing.has(life.bytes()) && life.died().is_some()),
    row(Role::Gradient, RoleGround::Lifetime, "the backward pass made it and left it behind",
        |life, _| left_behind(life) && !life.is_of_a_recomputation()),
];

/// Everything else that was born during the recording.
#[rustfmt::skip]
pub(super) const LIVES: &[Inference] = &[
    row(Role::Activation, RoleGround::Release, "saved for the backward pass, which let it go",
        |life, _| life.born().is_some() && (life.ends_in_backward() || life.was_saved())),
    row(Role::Gradient, RoleGround::Sizes, "made after a backward pass and alive at the step, of the size of states and of no other gradient",
        |life, known| known.ungraded.has(life.bytes()) && awaits_a_step(life) && life.born().is_some_and(|at| life.scene.follows_backward(at))),
    row(Role::Parameter, RoleGround::Sizes, "kept from setup, of the size of something trained that is not known yet",
        |life, known| kept_from_setup(life) && known.trained.has(life.bytes()) && !known.complete.has(life.bytes())),
    row(Role::Buffer, RoleGround::Lifetime, "a constructor made it, and it is kept",
        |life, _| (kept_from_setup(life) || built_late(life) || computed_early(life)) && life.made().maker == AskingCode::Constructor),
    row(Role::Parameter, RoleGround::Lifetime, "an installed package made it before the work began, and it is kept",
        |life, _| kept_from_setup(life) && life.made().maker == AskingCode::Package),
    row(Role::Input, RoleGround::Lifetime, "the program made it before the work began, and keeps it",
        |life, _| kept_from_setup(life)),
    // What a forward pass made, or the program after one in the same stretch (the loss).
    row(Role::Temporary, RoleGround::Lifetime, "a forward pass made it and let it go",
        |life, _| from_forward(life) && life.is_brief() && life.turns() == 0),
    row(Role::Activation, RoleGround::Lifetime, "a forward pass made it, and it goes in this iteration or the next",
        |life, _| from_forward(life) && life.turns() <= 1),
    row(Role::Activation, RoleGround::Lifetime, "a forward pass made it in a program that trains, and it is kept",
        |life, _| from_forward(life) && in_forward(life) && life.scene.trains()),
    // A cache or a collection, which have no role of their own.
    row(Role::Unknown, RoleGround::Lifetime, "a forward pass made it, and it is kept",
        |life, _| from_forward(life)),
    // Loaders fetch one batch ahead; what stays for longer is a collection.
    row(Role::Input, RoleGround::Lifetime, "made before a forward pass that sees it",
        |life, _| (is_seen(life) || is_fetched(life)) && life.turns() <= 2),
    row(Role::Temporary, RoleGround::Lifetime, "gone in the iteration that made it",
        |life, _| life.born().is_some() && life.died().is_some() && life.turns() == 0),
    row(Role::Unknown, RoleGround::Nothing, "nothing tells",
        |life, _| life.born().is_some()),
];

fn is_older(life: &Life<'_>) -> bool {
    life.born().is_none() && life.died().is_none()
}

fn is_sharded(life: &Life<'_>) -> bool {
    life.made().origin == TorchOrigin::Sharded
}

fn is_wrapped(life: &Life<'_>) -> bool {
    life.born().is_some() && matches!(life.made().origin, TorchOrigin::Sharded | TorchOrigin::Replicated)
}

fn steps(life: &Life<'_>) -> bool {
    let stepping =
        life.made().origin == TorchOrigin::Optimizer || life.born_phase() == Some(Phase::OptimizerStep);
    (life.born().is_some() || life.died().is_none()) && stepping
}

/// A batch that is read with `torch.load` is a batch; a module that is built or moved where batches are fetched is none.
fn is_built(life: &Life<'_>) -> bool {
    let building = match life.made().origin {
        TorchOrigin::Module => true,
        TorchOrigin::File => life.born_phase() != Some(Phase::Input),
        _ => false,
    };
    (life.born().is_some() || life.died().is_none()) && building
}

/// A first copy that a cast or a move replaces is gone before the work begins; later ones within their own turn.
fn is_replaced(life: &Life<'_>) -> bool {
    if life.is_from_setup() {
        life.died().is_some_and(|died| died < life.scene.first_work)
    } else {
        life.is_brief() && life.turns() == 0
    }
}

fn within_backward(life: &Life<'_>) -> bool {
    life.born_side() == Some(StepSide::Backward) && life.is_brief()
}

fn is_recomputed(life: &Life<'_>) -> bool {
    let made_again = life.born_phase() == Some(Phase::Recomputation);
    made_again && life.died_phase() == Some(Phase::Backward) && !life.made().native
}

/// Made at work outside of a step, and alive at the next.
fn awaits_a_step(life: &Life<'_>) -> bool {
    !life.is_from_setup() && life.sees_a_step() && life.born_side() == Some(StepSide::Main)
}

/// What the backward pass made; what it also let go of in the same stretch is settled by [`SIGNS`].
fn left_behind(life: &Life<'_>) -> bool {
    life.born_side() == Some(StepSide::Backward)
}

/// Made before the work began, and kept for longer than an iteration of it.
fn kept_from_setup(life: &Life<'_>) -> bool {
    life.is_from_setup() && (life.died().is_none() || (life.sees_work() && life.turns() > 1))
}

fn built_late(life: &Life<'_>) -> bool {
    life.born_phase() == Some(Phase::Setup) && !life.is_brief() && (life.died().is_none() || life.turns() > 1)
}

/// Whether a function of PyTorch's computed it before the loop, outside of every module, and it is there for good: that is no forward pass.
fn computed_early(life: &Life<'_>) -> bool {
    let early = life.born().is_some_and(|born| life.scene.turn(born) == 0);
    early && life.died().is_none() && !life.made().in_forward
}

fn in_forward(life: &Life<'_>) -> bool {
    life.born_phase().is_some_and(|phase| is_forward(phase) || phase == Phase::Recomputation)
}

fn from_forward(life: &Life<'_>) -> bool {
    let Some(born) = life.born() else { return false };
    in_forward(life) || (life.born_phase() != Some(Phase::Input) && life.scene.forward_has_begun(born))
}

/// Whether a forward pass of the same turn runs while it is there.
fn is_seen(life: &Life<'_>) -> bool {
    let Some(born) = life.born() else { return false };
    let next = life.scene.next_forward(born);
    next.is_some_and(|next| {
        life.scene.turn(next) == life.scene.turn(born) && life.died().is_none_or(|died| died > next)
    })
}

fn is_fetched(life: &Life<'_>) -> bool {
    life.born_phase() == Some(Phase::Input) && !life.is_brief()
}
