//! What the sizes of blocks tell, as far as their roles are settled.
//!
//! In: the scene and what is settled already. Out: [`Known`], which rows of the table compare a lifetime with. A size alone proves
//! nothing: every row that asks for one also asks when the block was made and how long it is held.

use rustc_hash::FxHashSet;

use super::gradients::Gradients;
use super::scene::{Scene, StepSide};
use super::sizes::Sizes;
use super::workspaces::is_handle_workspace;
use super::{Role, Verdicts};
use crate::unit::Bytes;

/// Sizes, by what is settled of the blocks that have them.
#[derive(Debug, Default)]
pub(super) struct Known {
    /// Of gradients and optimizer states.
    pub(super) trained: Sizes,
    /// Of what is kept from before the work begins, and could be weights.
    pub(super) standing: Sizes,
    /// Of parameters.
    pub(super) weights: Sizes,
    /// Of parameters of which as many are known as a backward pass has gradients of that size.
    pub(super) complete: Sizes,
    /// Of parameters, gradients and states, and of what is older than the recording.
    pub(super) model: Sizes,
    /// Whether `model` has nearly all that the backward pass leaves behind (90 % of the bytes).
    pub(super) explained: bool,
    /// Whether the backward pass leaves something behind of the size of nearly each parameter (90 % of the bytes): then what has another size
    /// is no gradient of theirs, however much it is.
    pub(super) graded: bool,
    /// Of states, where the backward pass makes no gradient of that size.
    pub(super) ungraded: Sizes,
}

impl Known {
    /// Counts what is settled so far.
    pub(super) fn of(scene: &Scene<'_>, verdicts: &Verdicts) -> Known {
        let mut known = Known::default();
        let (mut gradients, mut states) = (Sizes::default(), Sizes::default());
        let mut left = Vec::new();
        for (life, role) in verdicts.lives(scene) {
            let bytes = life.bytes();
            match role {
                Some(Role::Parameter) => _ = known.weights.add(bytes),
                Some(Role::Gradient) => _ = gradients.add(bytes),
                Some(Role::OptimizerState) => _ = states.add(bytes),
                None if life.born_side() == Some(StepSide::Backward) => left.push(bytes),
                _ => {}
            }
            let trained = matches!(role, Some(Role::Gradient | Role::OptimizerState));
            if trained {
                known.trained.add(bytes);
            }
            if trained || role == Some(Role::Parameter) || (role.is_none() && life.born().is_none()) {
                known.model.add(bytes);
            }
            let stands = life.died().is_none() && (life.born().is_none() || life.is_from_setup());
            if role.is_none() && stands && !is_handle_workspace(bytes) {
                known.standing.add(bytes);
            }
        }
        let explained = left.iter().copied().filter(|bytes| known.model.has(*bytes)).sum::<Bytes>();
        known.explained = explained.share_of(left.iter().copied().sum()) >= 0.9;
        let left_behind: FxHashSet<Bytes> = left.into_iter().collect();
        let graded = known.weights.only(|bytes, _| left_behind.contains(&bytes)).bytes();
        known.graded = graded > Bytes::ZERO && graded.share_of(known.weights.bytes()) >= 0.9;
        let counts = Gradients::of(scene, verdicts);
        known.complete = known.weights.only(|bytes, many| (1..=many).contains(&counts.of_size(bytes)));
        known.ungraded = states.without(&gradients);
        known
    }
}
