//! Optimizer state that a checkpoint brought.
//!
//! In: the scene and what is settled. Out: roles of what `torch.load` made. `Optimizer.load_state_dict` binds the tensors that it is given
//! where device and number format fit (`torch/optim/optimizer.py`, `_process_value_according_to_param_policy`: a `to` that copies nothing), so
//! no frame shows that loaded tensors are state. What shows it: the optimizer steps and makes next to no state of its own, and beside one
//! copy of what is trained the file brought as much again.

use super::gradients::Gradients;
use super::scene::{Life, Scene};
use super::sizes::Sizes;
use super::stacks::TorchOrigin;
use super::{Ground, Role, Verdicts};
use crate::unit::Bytes;

const RESUMED: Ground = Ground::sizes(
    "loaded from a file beyond one copy of what is trained, and the optimizer makes no state of its own",
);

/// Tells loaded state from loaded weights: which came first in the file is told by its sizes.
pub(super) fn settle(scene: &Scene<'_>, verdicts: &mut Verdicts) {
    if !scene.has_optimizer || !scene.trains() {
        return;
    }
    let gradients = Gradients::of(scene, verdicts);
    let loaded = loaded(scene, verdicts, &gradients);
    let weights = of_weights(&loaded, &gradients);
    let bytes = |of_weights: bool| -> Bytes {
        let chosen = loaded.iter().zip(&weights).filter(|(_, weight)| **weight == of_weights);
        chosen.map(|((_, bytes), _)| *bytes).sum()
    };
    let (trained, surplus) = (bytes(true), bytes(false));
    let made: Bytes = verdicts
        .lives(scene)
        .filter(|(_, role)| *role == Some(Role::OptimizerState))
        .map(|(life, _)| life.bytes())
        .sum();
    if made.share_of(trained) >= 0.1 || surplus.share_of(trained) < 0.9 {
        return;
    }
    for ((at, _), _) in loaded.iter().zip(&weights).filter(|(_, weight)| !**weight) {
        if let Some(verdict) = verdicts.0.get_mut(*at) {
            *verdict = Some((Role::OptimizerState, &RESUMED));
        }
    }
}

/// What is read from files before the work begins, kept, and of the size of something trained: positions and sizes, in order.
fn loaded(scene: &Scene<'_>, verdicts: &Verdicts, gradients: &Gradients) -> Vec<(usize, Bytes)> {
    let is_loaded = |life: &Life| {
        life.made().origin == TorchOrigin::File
            && life.is_from_setup()
            && life.sees_work()
            && gradients.of_size(life.bytes()) > 0
    };
    let lives = verdicts.lives(scene).filter(|(_, role)| *role == Some(Role::Parameter));
    lives.filter(|(life, _)| is_loaded(life)).map(|(life, _)| (life.at, life.bytes())).collect()
}

/// Which of the loaded are one copy of what is trained: the first, if these have its sizes, or else the last.
fn of_weights(loaded: &[(usize, Bytes)], gradients: &Gradients) -> Vec<bool> {
    let one_copy = |order: &mut dyn Iterator<Item = &(usize, Bytes)>| -> Vec<bool> {
        let mut seen = Sizes::default();
        order.map(|(_, bytes)| seen.add(*bytes) <= gradients.of_size(*bytes)).collect()
    };
    let first = one_copy(&mut loaded.iter());
    let copies = first.iter().filter(|weight| **weight).count();
    if first.iter().take(copies).all(|weight| *weight) {
        return first;
    }
    let mut last = one_copy(&mut loaded.iter().rev());
    last.reverse();
    last
}
