//! Recordings without stacks (`context=None`): annotations give the optimizer's steps, everything else is size and order.
//!
//! In: the scene and what the phases of steps have settled. Out: gradients and parameters. Without annotations either,
//! only what is kept from the start can be told: it is taken for the model.

use super::scene::{Life, Scene, Side};
use super::sizes::{Sizes, is_handle_workspace};
use super::{Evidence, Role, Verdict, Verdicts};
use crate::unit::Bytes;

pub(super) fn settle(scene: &Scene<'_>, verdicts: &mut Verdicts) {
    if scene.has_stacks {
        return;
    }
    let trained = Sizes::trained(scene, verdicts);
    let standing =
        |life: &Life| life.died().is_none() && life.born().is_none_or(|born| born < scene.first_work);
    let may_be_weight = |life: &Life| standing(life) && !is_handle_workspace(life.bytes());
    let model =
        Sizes::count(verdicts.lives(scene).filter(|(life, role)| role.is_none() && may_be_weight(life)));
    verdicts.settle(scene, |life| {
        let born = life.born()?;
        at_a_step(scene, life, born, &[&trained, &model])
            .or_else(|| from_the_start(scene, life, born, &trained))
    });
    close_ranks(scene, verdicts);
}

/// Made since the last step and alive at the next, of the size of something trained or kept from the start: a gradient.
fn at_a_step(scene: &Scene<'_>, life: &Life, born: usize, known: &[&Sizes]) -> Option<Verdict> {
    let step = scene.next_start(Side::Optimizer, born)?;
    let alive = life.died().is_none_or(|died| died > step);
    let of_the_model = |bytes: Bytes| known.iter().any(|sizes| sizes.has(bytes));
    let gradient =
        born >= scene.first_work && alive && scene.side(born) == Side::Main && of_the_model(life.bytes());
    gradient.then_some((Role::Gradient, Evidence::Sizes))
}

/// Kept from before the work begins, of the size of something trained: a parameter.
fn from_the_start(scene: &Scene<'_>, life: &Life, born: usize, trained: &Sizes) -> Option<Verdict> {
    let kept = born < scene.first_work && life.died().is_none();
    let parameter = kept && (trained.is_empty() || trained.has(life.bytes()));
    parameter.then_some((Role::Parameter, Evidence::Sizes))
}

/// Parameters without a gradient stand between those with one, since a model is moved in one go.
fn close_ranks(scene: &Scene<'_>, verdicts: &mut Verdicts) {
    let is_parameter = |role: Option<Role>| role == Some(Role::Parameter);
    let births =
        || verdicts.lives(scene).filter(|(_, role)| is_parameter(*role)).filter_map(|(life, _)| life.born());
    let (Some(first), Some(last)) = (births().min(), births().max()) else { return };
    verdicts.settle(scene, |life| {
        let between = life.died().is_none() && life.born().is_some_and(|born| first < born && born < last);
        between.then_some((Role::Parameter, Evidence::Sizes))
    });
}
