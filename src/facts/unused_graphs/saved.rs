//! Whether what outlives a call of a model is what backward passes need of it, as other calls show.
//!
//! In: calls of modules. Out: the places inside of models (the frames from the outermost call on) of which backward passes let go of most that is made there. A call
//! is recorded by autograd if what outlives it was made at such places, and next to nothing of theirs goes within it: without
//! autograd all of that goes, but for what the program puts aside. However few tensors a call makes (one step of a solver), that tells.

use std::collections::BTreeSet;

use rustc_hash::FxHashMap;

use super::is_let_go;
use crate::facts::Facts;
use crate::facts::module_calls::outermost;
use crate::facts::released::ReleasedShare;
use crate::unit::{AllocationId, Bytes, FrameId, Index};

/// What backward passes let go of, by place.
pub(super) struct SavedPlaces<'f> {
    facts: &'f Facts<'f>,
    /// The place of each stack inside of a model, numbered.
    of_stacks: Vec<Option<usize>>,
    /// What calls that a backward pass goes through make at each.
    shares: Vec<ReleasedShare>,
}

impl<'f> SavedPlaces<'f> {
    pub(super) fn of(facts: &'f Facts<'f>) -> SavedPlaces<'f> {
        let mut numbers: FxHashMap<&[FrameId], usize> = FxHashMap::default();
        let mut number = |python: &'f [FrameId]| {
            let inside = python.get(outermost(facts, python)?..)?;
            let next = numbers.len();
            Some(*numbers.entry(inside).or_insert(next))
        };
        let stacks = facts.snapshot.stacks.ids();
        let of_stacks = stacks.map(|stack| number(facts.frames.python(stack))).collect();
        let shares = vec![ReleasedShare::default(); numbers.len()];
        let mut places = SavedPlaces { facts, of_stacks, shares };
        for call in facts.module_calls() {
            let let_go = |id: &AllocationId| is_let_go(facts, call, *id);
            if !call.made.iter().any(let_go) {
                continue;
            }
            for id in &call.made {
                let Some((place, bytes)) = places.place(*id) else { continue };
                if let Some(share) = places.shares.get_mut(place) {
                    share.note(bytes, let_go(id));
                }
            }
        }
        places
    }

    /// Whether what is kept of all that a call made is what backward passes need.
    pub(super) fn are_kept(&self, kept: &[AllocationId], made: &[AllocationId]) -> bool {
        // Of one place it may be a result that the program keeps.
        if kept.len() < 2 {
            return false;
        }
        let mut found: BTreeSet<usize> = BTreeSet::new();
        let (mut stays, mut goes, mut stays_beside) = (Bytes::ZERO, Bytes::ZERO, Bytes::ZERO);
        for id in made {
            let Some((place, bytes)) = self.place(*id) else { continue };
            let is_kept = kept.binary_search(id).is_ok();
            match self.shares.get(place).is_some_and(ReleasedShare::saves) {
                true if is_kept => {
                    stays += bytes;
                    found.insert(place);
                }
                true => goes += bytes,
                false if is_kept => stays_beside += bytes,
                false => {}
            }
        }
        found.len() > 1 && stays > stays_beside && stays > goes.times(2)
    }

    fn place(&self, id: AllocationId) -> Option<(usize, Bytes)> {
        let one = self.facts.timeline.allocation(id)?;
        let place = *self.of_stacks.get(one.stack?.position())?;
        Some((place?, one.bytes))
    }
}
