//! Whether what outlives a call of a model is what backward passes need of it, as other calls show.
//!
//! In: calls of modules. Out: the places inside of models (the frames from the outermost call on) of which backward passes let go of most that is made there. A call
//! is recorded by autograd if what outlives it was made at such places, and next to nothing of theirs goes within it: without
//! autograd all of that goes, but for what the program puts aside. However few tensors a call makes (one step of a solver), that tells.

use std::collections::BTreeSet;

use rustc_hash::FxHashMap;

use super::let_go_by_backward;
use crate::facts::Facts;
use crate::facts::module_calls::outermost;
use crate::unit::{AllocationId, Bytes, FrameId};

/// The frames from the outermost call of a module on.
type SavedPlace<'f> = &'f [FrameId];

/// What backward passes let go of, by place.
pub(super) struct SavedPlaces<'f> {
    facts: &'f Facts<'f>,
    /// Whether of what a place makes most is saved, of the calls that backward passes use.
    places: FxHashMap<SavedPlace<'f>, bool>,
}

impl<'f> SavedPlaces<'f> {
    pub(super) fn of(facts: &'f Facts<'f>) -> SavedPlaces<'f> {
        let mut bytes: FxHashMap<SavedPlace<'f>, (Bytes, Bytes)> = FxHashMap::default();
        for call in facts.module_calls() {
            let let_go: BTreeSet<AllocationId> = let_go_by_backward(facts, call, usize::MAX).collect();
            if let_go.is_empty() {
                continue;
            }
            for id in &call.made {
                let Some((place, size)) = place(facts, *id) else { continue };
                let (made, saved) = bytes.entry(place).or_default();
                *made += size;
                *saved += if let_go.contains(id) { size } else { Bytes::ZERO };
            }
        }
        let places = bytes.into_iter().map(|(place, (made, saved))| (place, saved.times(2) > made)).collect();
        SavedPlaces { facts, places }
    }

    /// Whether what is kept of all that a call made is what backward passes need.
    pub(super) fn are_kept(&self, kept: &[AllocationId], made: &[AllocationId]) -> bool {
        let mut found: BTreeSet<SavedPlace<'_>> = BTreeSet::new();
        let (mut stays, mut goes, mut stays_beside) = (Bytes::ZERO, Bytes::ZERO, Bytes::ZERO);
        for id in made {
            let Some((place, bytes)) = place(self.facts, *id) else { continue };
            let is_kept = kept.binary_search(id).is_ok();
            match self.places.get(place) {
                Some(true) if is_kept => {
                    stays += bytes;
                    found.insert(place);
                }
                Some(true) => goes += bytes,
                _ if is_kept => stays_beside += bytes,
                _ => {}
            }
        }
        // Of one place it may be a result that the program keeps.
        found.len() > 1 && stays > stays_beside && stays > goes.times(2)
    }
}

fn place<'f>(facts: &'f Facts<'f>, id: AllocationId) -> Option<(SavedPlace<'f>, Bytes)> {
    let one = facts.timeline.allocation(id)?;
    let python = facts.frames.python(one.stack?);
    Some((python.get(outermost(facts, python)?..)?, one.bytes))
}
