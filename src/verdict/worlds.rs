//! The peak as it would be if other claims were mended.
//!
//! In: the changes of all claims, and which of them count as faults. Out: for each claim the share of the peak that its own change
//! saves where all other faults are mended. Takes time by the
//! changes, and by the events once.

use std::ops::Range;

use rustc_hash::FxHashMap;

use crate::facts::Facts;
use crate::lives::Changes;
use crate::timeline::{Levels, Shifts};
use crate::unit::{AllocationId, Bytes};

/// The recording with all faults mended, and what each claim changes in it.
pub(super) struct Worlds {
    mended: Levels,
    /// For each claim what its own change does to the curve, and whether that is among what is mended.
    own: Vec<(Shifts, bool)>,
    /// All of the recording and its steady part, each with its peak where all faults are mended.
    stretches: [(Range<usize>, Bytes); 2],
}

impl Worlds {
    pub(super) fn of(facts: &Facts, mendings: &[&Changes], counts: &dyn Fn(usize) -> bool) -> Worlds {
        let mut owner: FxHashMap<AllocationId, usize> = FxHashMap::default();
        for (at, changes) in mendings.iter().enumerate().filter(|(at, _)| counts(*at)) {
            for id in changes.changed() {
                owner.entry(id).or_insert(at);
            }
        }
        let own = mendings.iter().enumerate().map(|(at, changes)| {
            let is_own = |id: AllocationId| owner.get(&id).is_none_or(|by| *by == at);
            (changes.shifts(facts.timeline, is_own), counts(at))
        });
        let own: Vec<(Shifts, bool)> = own.collect();
        let faults = own.iter().filter(|(_, is_mended)| *is_mended).map(|(shifts, _)| shifts);
        let mended = facts.timeline.levels.shifted(&Shifts::all(faults));
        let stretches = [0..facts.trace.events.len(), facts.steady().events.clone()];
        let stretches = stretches.map(|events| (events.clone(), mended.highest(events)));
        Worlds { mended, own, stretches }
    }

    /// The share of the peak that one claim's change saves where all other faults are mended: off the peak itself, or off that
    /// of the steady part, where it lies before.
    pub(super) fn share(&self, at: usize) -> f64 {
        let Some((own, is_mended)) = self.own.get(at) else { return 0.0 };
        let back = is_mended.then(|| own.undone());
        let [(whole, without), (steady, steady_without)] =
            self.stretches.each_ref().map(|(events, plain)| {
                let other = self.mended.highest_with(events.clone(), back.as_ref().unwrap_or(own));
                if *is_mended { (other, *plain) } else { (*plain, other) }
            });
        (whole - without).max(steady - steady_without).share_of(whole)
    }
}
