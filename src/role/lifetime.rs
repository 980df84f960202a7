//! Roles that birth and death settle, where no single frame does.
//!
//! In: the scene and what is settled already. Out: gradients (made by the backward pass, left behind by it), activations
//! (let go by it), inputs, temporaries. Allocations from before the recording stay open.

use std::cmp::Reverse;

use rustc_hash::FxHashMap;

use super::scene::{Life, Scene, Side, is_forward};
use super::sizes::Sizes;
use super::stacks::{Maker, Origin};
use super::{Evidence, Role, Verdict, Verdicts};
use crate::program::Phase;
use crate::unit::{Bytes, EventIndex, Index, StackId};

/// What the backward pass leaves behind is a gradient. Results of `torch.autograd.grad` and gradients of inputs are
/// left behind, too; they are told by their size, but only where sizes explain nearly all the rest (90 % of the bytes),
/// so that a model whose parameters are not all known loses nothing. Where the program makes the gradients itself
/// (clipped and summed up from one of each sample) the backward pass leaves only strangers; there the gradients that
/// `zero_grad` clears, all of the parameters' sizes, show what a gradient looks like.
pub(super) fn settle_gradients(scene: &Scene<'_>, verdicts: &mut Verdicts) {
    let left_behind = |life: &Life| life.born().is_some_and(|born| scene.side(born) == Side::Backward);
    let known = Sizes::count(verdicts.lives(scene).filter(|(life, role)| match role {
        Some(role) => matches!(role, Role::Parameter | Role::Gradient | Role::OptimizerState),
        None => life.born().is_none(),
    }));
    let (mut total, mut explained) = (Bytes::ZERO, Bytes::ZERO);
    for (life, _) in verdicts.lives(scene).filter(|(life, role)| role.is_none() && left_behind(life)) {
        total += life.bytes();
        explained += if known.has(life.bytes()) { life.bytes() } else { Bytes::ZERO };
    }
    let sizes_explain = explained.share_of(total) >= 0.9;
    let made_elsewhere = made_by_the_program(scene, verdicts);
    verdicts.settle(scene, |life| {
        if !left_behind(life) {
            return None;
        }
        let released_by_backward = life.died().is_some_and(|died| scene.side(died) == Side::Backward);
        let stranger = !known.has(life.bytes());
        if made_elsewhere.as_ref().is_some_and(|sizes| !sizes.has(life.bytes())) {
            return Some((Role::Activation, Evidence::Sizes));
        }
        if released_by_backward && (life.was_saved() || stranger) {
            Some((Role::Activation, Evidence::Release))
        } else if sizes_explain && stranger && life.died().is_some() {
            Some((Role::Temporary, Evidence::Sizes))
        } else {
            Some((Role::Gradient, Evidence::Lifetime))
        }
    });
}

/// The sizes of the gradients that `zero_grad` is seen to clear, if nearly all of them are parameters' sizes and were made
/// elsewhere than in the backward pass: the program makes the gradients itself.
fn made_by_the_program(scene: &Scene<'_>, verdicts: &Verdicts) -> Option<Sizes> {
    let parameters = Sizes::count(verdicts.lives(scene).filter(|(life, role)| match role {
        Some(role) => *role == Role::Parameter,
        None => life.born().is_none(),
    }));
    let (mut cleared, mut known, mut others) = (Bytes::ZERO, Bytes::ZERO, Bytes::ZERO);
    let mut sizes = Sizes::default();
    for (life, _) in
        verdicts.lives(scene).filter(|(life, role)| *role == Some(Role::Gradient) && life.cleared())
    {
        sizes.add(life.bytes());
        cleared += life.bytes();
        known += if parameters.has(life.bytes()) { life.bytes() } else { Bytes::ZERO };
        let by_backward = life.born().is_some_and(|born| scene.side(born) == Side::Backward);
        others += if by_backward { Bytes::ZERO } else { life.bytes() };
    }
    (known.share_of(cleared) >= 0.9 && others.share_of(cleared) >= 0.9).then_some(sizes)
}

/// With `gradient_as_bucket_view=True` DDP's buckets are the gradients. Then the backward pass leaves next to nothing of
/// its own behind, although the buckets that stay hold half of the parameters' bytes or more.
pub(super) fn settle_bucket_views(scene: &Scene<'_>, verdicts: &mut Verdicts) {
    let (mut parameters, mut gradients, mut buckets) = (Bytes::ZERO, Bytes::ZERO, Bytes::ZERO);
    let is_bucket = |life: &Life| life.made().origin == Origin::Replicated && life.died().is_none();
    for (life, role) in verdicts.lives(scene) {
        match role {
            Some(Role::Parameter) => parameters += life.bytes(),
            Some(Role::Gradient) => gradients += life.bytes(),
            Some(Role::Communication) if is_bucket(&life) => buckets += life.bytes(),
            None if life.born().is_none() && life.died().is_none() => parameters += life.bytes(),
            _ => {}
        }
    }
    if !scene.trains || buckets.share_of(parameters) < 0.5 || gradients.share_of(buckets) > 0.1 {
        return;
    }
    for (life, verdict) in scene.lives().zip(&mut verdicts.0) {
        if life.made().origin == Origin::Replicated {
            *verdict = Some((Role::Gradient, Evidence::Lifetime));
        }
    }
}

/// Everything else that was born during the recording.
pub(super) fn settle_rest(scene: &Scene<'_>, verdicts: &mut Verdicts) {
    let trained = Sizes::trained(scene, verdicts);
    verdicts.settle(scene, |life| {
        let born = life.born()?;
        by_release(scene, life)
            .or_else(|| from_setup(scene, life, born, &trained))
            .or_else(|| from_forward(scene, life, born))
            .or_else(|| Some(from_elsewhere(scene, life, born)))
    });
}

fn by_release(scene: &Scene<'_>, life: &Life) -> Option<Verdict> {
    let by_backward = life.died().is_some_and(|died| scene.side(died) == Side::Backward);
    (by_backward || life.was_saved()).then_some((Role::Activation, Evidence::Release))
}

/// Made before the work began, and kept: a weight if something of its size is trained, a module's buffer if a
/// constructor ran, a weight if a package made it (a loader), else data.
fn from_setup(scene: &Scene<'_>, life: &Life, born: usize, trained: &Sizes) -> Option<Verdict> {
    let kept = match life.died() {
        None => true,
        Some(died) => died > scene.first_work && scene.laps_lived(born, life.died()) > 1,
    };
    if born >= scene.first_work || !kept {
        return None;
    }
    if trained.has(life.bytes()) {
        return Some((Role::Parameter, Evidence::Sizes));
    }
    let role = match life.made().maker {
        Maker::Constructor => Role::Buffer,
        Maker::Package => Role::Parameter,
        Maker::User => Role::Input,
    };
    Some((role, Evidence::Lifetime))
}

/// Made by a forward pass, or by the user's code after one in the same stretch (the loss). What is held for longer than
/// to the next lap was still saved for a backward pass, if a forward pass made it in a program that has backward passes;
/// otherwise it is a cache or a collection, which have no role of their own.
fn from_forward(scene: &Scene<'_>, life: &Life, born: usize) -> Option<Verdict> {
    let phase = life.born_phase()?;
    let in_forward = is_forward(phase) || phase == Phase::Recomputation;
    if !in_forward && (phase == Phase::Input || !scene.forward_has_begun(born)) {
        return None;
    }
    let laps = scene.laps_lived(born, life.died());
    let role = if scene.same_stretch(born, life.died()) && laps == 0 {
        Role::Temporary
    } else if laps <= 1 || (in_forward && scene.trains) {
        Role::Activation
    } else {
        Role::Unknown
    };
    Some((role, Evidence::Lifetime))
}

/// Made outside of forward, backward and step: a batch, if a forward pass of the same lap sees it.
fn from_elsewhere(scene: &Scene<'_>, life: &Life, born: usize) -> Verdict {
    let next = scene.next_forward(born);
    let seen = next
        .is_some_and(|next| scene.lap(next) == scene.lap(born) && life.died().is_none_or(|died| died > next));
    let fetched = life.born_phase() == Some(Phase::Input) && !scene.same_stretch(born, life.died());
    // Loaders fetch one batch ahead; what stays for longer is a collection.
    if (seen || fetched) && scene.laps_lived(born, life.died()) <= 2 {
        (Role::Input, Evidence::Lifetime)
    } else if life.died().is_some() && scene.laps_lived(born, life.died()) == 0 {
        (Role::Temporary, Evidence::Lifetime)
    } else {
        (Role::Unknown, Evidence::Nothing)
    }
}

/// The end of the program cuts lives short: what the last lap made and would have held for longer looks temporary. Such
/// an allocation takes the role that most of those from the same stack had in earlier laps.
pub(super) fn settle_last_lap(scene: &Scene<'_>, verdicts: &mut Verdicts) {
    let allocations = &scene.timeline.allocations;
    let last = scene.last_lap();
    // The engine's thread may have one empty stack for all that it does.
    let made_in_main =
        |at: Option<EventIndex>| at.map(Index::position).filter(|&at| scene.side(at) == Side::Main);
    let made_in_last = |at| made_in_main(at).is_some_and(|born| scene.lap(born) >= last);
    let mut earlier: FxHashMap<StackId, [usize; Role::ALL.len()]> = FxHashMap::default();
    for (allocation, verdict) in allocations.iter().zip(&verdicts.0) {
        let (Some(stack), Some((role, _))) = (allocation.stack, verdict) else { continue };
        if made_in_main(allocation.alloc).is_some_and(|born| scene.lap(born) < last) {
            let counts = earlier.entry(stack).or_default();
            Role::ALL.iter().zip(counts).filter(|(of, _)| *of == role).for_each(|(_, count)| *count += 1);
        }
    }
    for (allocation, verdict) in allocations.iter().zip(&mut verdicts.0) {
        let brief = *verdict == Some((Role::Temporary, Evidence::Lifetime));
        let Some(stack) = allocation.stack.filter(|_| brief && made_in_last(allocation.alloc)) else {
            continue;
        };
        let counts = earlier.get(&stack).copied().unwrap_or_default();
        let most = Role::ALL.into_iter().zip(counts).max_by_key(|&(role, count)| (count, Reverse(role)));
        if let Some((role, _)) = most.filter(|&(_, count)| count * 2 > counts.iter().sum::<usize>()) {
            *verdict = Some((role, Evidence::Lifetime));
        }
    }
}
