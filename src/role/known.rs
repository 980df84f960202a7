//! What the sizes of blocks tell, as far as their roles are settled.
//!
//! In: the scene and what is settled already. Out: [`Known`], which rows of the table compare a lifetime with. A size alone proves
//! nothing: every row that asks for one also asks when the block was made and how long it is held.

use rustc_hash::{FxHashMap, FxHashSet};

use super::gradients::Gradients;
use super::scene::{Life, Scene, StepSide};
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
    /// Of the gradients that are seen cleared, where the program makes them itself.
    pub(super) cleared: Option<Sizes>,
    /// Of states, where the backward pass makes no gradient of that size.
    pub(super) ungraded: Sizes,
    /// The bytes of all gradients of a backward pass that makes several; nothing where an optimizer of PyTorch's is seen.
    pub(super) flat: FxHashSet<Bytes>,
}

impl Known {
    /// Counts what is settled so far.
    pub(super) fn of(scene: &Scene<'_>, verdicts: &Verdicts) -> Known {
        let mut known = Known::default();
        let (mut gradients, mut states) = (Sizes::default(), Sizes::default());
        let mut left = Vec::new();
        let mut passes: FxHashMap<usize, (usize, Bytes)> = FxHashMap::default();
        for (life, role) in verdicts.lives(scene) {
            let bytes = life.bytes();
            match role {
                Some(Role::Parameter) => _ = known.weights.add(bytes),
                Some(Role::Gradient) => {
                    gradients.add(bytes);
                    if let Some(born) = life.born() {
                        let (count, sum) = passes.entry(scene.stretch(born)).or_default();
                        *count += 1;
                        *sum += bytes;
                    }
                }
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
        known.explained = explained.share_of(left.into_iter().sum()) >= 0.9;
        known.cleared = made_by_the_program(scene, verdicts);
        let counts = Gradients::of(scene, verdicts);
        known.complete = known.weights.only(|bytes, many| (1..=many).contains(&counts.of_size(bytes)));
        known.ungraded = states.without(&gradients);
        if !scene.has_optimizer {
            known.flat = passes.into_values().filter(|(count, _)| *count > 1).map(|(_, sum)| sum).collect();
        }
        known
    }
}

/// The sizes of the gradients that `zero_grad` is seen to clear, if nearly all of them are parameters' sizes and were made
/// elsewhere than in the backward pass: the program makes the gradients itself (clipped and summed up from one of each sample), and
/// the backward pass leaves only strangers.
fn made_by_the_program(scene: &Scene<'_>, verdicts: &Verdicts) -> Option<Sizes> {
    let may_be_parameter = |(life, role): &(Life<'_>, Option<Role>)| match role {
        Some(role) => *role == Role::Parameter,
        None => life.born().is_none(),
    };
    let parameters = Sizes::count(verdicts.lives(scene).filter(may_be_parameter));
    let (mut cleared, mut known, mut others) = (Bytes::ZERO, Bytes::ZERO, Bytes::ZERO);
    let mut sizes = Sizes::default();
    for (life, _) in
        verdicts.lives(scene).filter(|(life, role)| *role == Some(Role::Gradient) && life.cleared())
    {
        sizes.add(life.bytes());
        cleared += life.bytes();
        known += if parameters.has(life.bytes()) { life.bytes() } else { Bytes::ZERO };
        others += if life.born_side() == Some(StepSide::Backward) { Bytes::ZERO } else { life.bytes() };
    }
    (known.share_of(cleared) >= 0.9 && others.share_of(cleared) >= 0.9).then_some(sizes)
}
