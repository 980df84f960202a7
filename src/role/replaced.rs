//! Weights whose storage is replaced while the program works: `p.data = new`, `p.data = p.data * m + q.data * (1 - m)`.
//!
//! In: the scene and what is settled of all born in the recording. Out: the role of weights for their successors. Parameters
//! go although the program goes on; one place makes blocks of just their sizes, as many bytes in a lap as went, and
//! these outlive their lap.

use rustc_hash::{FxHashMap, FxHashSet};

use super::scene::Scene;
use super::sizes::Sizes;
use super::{Evidence, Role, Verdicts};
use crate::threshold::Threshold;
use crate::unit::{Bytes, StackId};

/// Fewer blocks of a place in a lap prove nothing by their sizes.
static FEWEST: Threshold<usize> = Threshold::new("role::replaced::FEWEST", 4);

/// What one place makes.
#[derive(Default)]
struct Place {
    blocks: usize,
    alike: usize,
    bytes: Bytes,
    laps: FxHashSet<usize>,
}

pub(super) fn settle(scene: &Scene<'_>, verdicts: &mut Verdicts) {
    let mut gone = Sizes::default();
    let mut replaced = Bytes::ZERO;
    for (life, role) in verdicts.lives(scene) {
        let at_work =
            life.died().is_some_and(|died| died > scene.first_work && scene.lap(died) < scene.last_lap());
        if role == Some(Role::Parameter) && at_work && life.born().is_none_or(|born| born < scene.first_work)
        {
            gone.add(life.bytes());
            replaced += life.bytes();
        }
    }
    if replaced == Bytes::ZERO {
        return;
    }
    let may_be = |born: Option<usize>, died: Option<usize>, role: Option<Role>| {
        let open = matches!(role, Some(Role::Unknown | Role::Input | Role::Activation | Role::Buffer));
        open && born.is_some_and(|born| born >= scene.first_work && scene.laps_lived(born, died) >= 1)
    };
    let allocations = &scene.timeline.allocations;
    let mut places: FxHashMap<StackId, Place> = FxHashMap::default();
    for (allocation, (life, role)) in allocations.iter().zip(verdicts.lives(scene)) {
        let asked = allocation.stack.zip(life.born()).filter(|_| may_be(life.born(), life.died(), role));
        let Some((stack, born)) = asked else { continue };
        let place = places.entry(stack).or_default();
        place.blocks += 1;
        place.alike += usize::from(gone.has(life.bytes()));
        place.bytes += life.bytes();
        place.laps.insert(scene.lap(born));
    }
    // Whether a place makes, lap by lap, what went: at least nine tenths of it, and no more than a tenth beyond.
    let makes_up = |place: &Place| {
        let (whole, made) = (replaced.times(place.laps.len() as u64), place.bytes);
        place.blocks >= FEWEST.get() * place.laps.len()
            && place.alike * 10 >= place.blocks * 9
            && (0.9..=1.1).contains(&made.share_of(whole))
    };
    let chosen: FxHashSet<StackId> =
        places.into_iter().filter(|(_, place)| makes_up(place)).map(|(stack, _)| stack).collect();
    if chosen.is_empty() {
        return;
    }
    for ((allocation, life), verdict) in allocations.iter().zip(scene.lives()).zip(&mut verdicts.0) {
        let at_place = allocation.stack.is_some_and(|stack| chosen.contains(&stack));
        if at_place && may_be(life.born(), life.died(), verdict.map(|(role, _)| role)) {
            *verdict = Some((Role::Parameter, Evidence::Sizes));
        }
    }
}
