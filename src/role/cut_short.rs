//! Lives that the end of the program cuts short.
//!
//! In: the scene and what is settled of all born in the recording. Out: the role that the same line's blocks have in earlier turns,
//! for what the last turn made and would have held for longer.

use std::cmp::Reverse;

use rustc_hash::FxHashMap;

use super::scene::{Scene, StepSide};
use super::{Ground, Role, RoleGround, Verdicts};
use crate::unit::{EventIndex, Index, StackId};

const LIKE_EARLIER: Ground = Ground {
    evidence: RoleGround::Lifetime,
    because: "the end cut its life short; the same line's earlier ones had this role",
};

/// The end of the program cuts lives short: what the last turn made and would have held for longer looks temporary. Such
/// an allocation takes the role that most of those from the same stack had in earlier turns.
pub(super) fn settle(scene: &Scene<'_>, verdicts: &mut Verdicts) {
    let allocations = &scene.timeline.allocations;
    let last = scene.last_turn();
    // The engine's thread may have one empty stack for all that it does.
    let made_in_main =
        |at: Option<EventIndex>| at.map(Index::position).filter(|&at| scene.side(at) == StepSide::Main);
    let made_in_last = |at| made_in_main(at).is_some_and(|born| scene.turn(born) >= last);
    let mut earlier: FxHashMap<StackId, [usize; Role::ALL.len()]> = FxHashMap::default();
    for (allocation, verdict) in allocations.iter().zip(&verdicts.0) {
        let (Some(stack), Some((role, _))) = (allocation.stack, verdict) else { continue };
        if made_in_main(allocation.alloc).is_some_and(|born| scene.turn(born) < last) {
            let counts = earlier.entry(stack).or_default();
            Role::ALL.iter().zip(counts).filter(|(of, _)| *of == role).for_each(|(_, count)| *count += 1);
        }
    }
    for (allocation, verdict) in allocations.iter().zip(&mut verdicts.0) {
        let brief = verdict
            .is_some_and(|(role, ground)| role == Role::Temporary && ground.evidence == RoleGround::Lifetime);
        let Some(stack) = allocation.stack.filter(|_| brief && made_in_last(allocation.alloc)) else {
            continue;
        };
        let counts = earlier.get(&stack).copied().unwrap_or_default();
        let most = Role::ALL.into_iter().zip(counts).max_by_key(|&(role, count)| (count, Reverse(role)));
        let most = most.filter(|&(_, count)| count * 2 > counts.iter().sum::<usize>());
        if let Some((role, _)) = most.filter(|&(role, _)| role != Role::Temporary) {
            *verdict = Some((role, &LIKE_EARLIER));
        }
    }
}
