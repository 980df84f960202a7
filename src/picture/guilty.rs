//! What findings are about, among what is drawn, where to look at those that are about no lifetime, and what would be drawn were they
//! mended.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::ops::Range;

use serde::{Deserialize, Serialize};

use super::lives::{CloudStep, Drawn, Gathered, Lives, born, died, steps};
use super::{Bins, MemoryRefusal};
use crate::facts::Facts;
use crate::finding::{Fingerprint, Group};
use crate::lives::Change;
use crate::unit::{AllocationId, Bytes, Index};
use crate::verdict::Told;

/// A finding and what it is about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Guilty {
    /// Its rule.
    pub rule: String,
    /// Its identity.
    pub fingerprint: Fingerprint,
    /// What it says: of several with one identity it tells them apart.
    pub message: String,
    /// The lifetimes that it is about: positions in [`super::Lives::each`], ascending.
    pub each: Vec<u32>,
    /// The clouds that it is about.
    pub clouds: Vec<u32>,
    /// The moment at which to look at it, where it is about no lifetime.
    pub moment: Option<usize>,
    /// What would be drawn without it; nothing where no other lifetimes mend it.
    pub without: Option<Counterfactual>,
}

/// What would be drawn were a finding mended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counterfactual {
    /// The peak of requested bytes.
    pub peak: Bytes,
    /// Lifetimes that end in another bin than they did, or, where that is no later than they begin, never were.
    pub ends: Vec<(u32, usize)>,
    /// Clouds that change otherwise.
    pub clouds: Vec<(u32, Vec<CloudStep>)>,
}

impl Counterfactual {
    /// Some lifetimes as they would be then.
    pub(super) fn applied(&self, lives: &Lives) -> Lives {
        let mut mended = lives.clone();
        for (at, end) in &self.ends {
            if let Some(life) = mended.each.get_mut(*at as usize) {
                life.end = Some(*end);
            }
        }
        for (at, steps) in &self.clouds {
            if let Some(cloud) = mended.clouds.get_mut(*at as usize) {
                cloud.steps.clone_from(steps);
            }
        }
        mended
    }
}

/// The findings in their order, on a device on which some requests failed.
pub(super) fn guilty(
    facts: &Facts,
    told: &[Told],
    (bins, failures): (&Bins, &[MemoryRefusal]),
    gathered: &Gathered,
) -> Vec<Guilty> {
    let peak = super::peak(facts);
    let one = |told: &Told| {
        let (each, clouds) = drawn(gathered, told.about.iter().copied());
        let is_lit = !each.is_empty() || !clouds.is_empty();
        let moment = || worth_a_look(bins, failures, told.finding.group).unwrap_or(peak);
        Guilty {
            moment: (!is_lit).then(moment),
            rule: told.finding.rule.to_string(),
            fingerprint: Fingerprint::of(&told.finding),
            message: told.finding.message.clone(),
            each,
            clouds,
            without: (!told.lives.is_empty()).then(|| without(facts, told, bins, gathered)),
        }
    };
    told.iter().map(one).collect()
}

/// The moment to look at for what is about no lifetime: where memory ran out; where most is reserved beside what is in use, for what
/// the allocator makes of the requests.
fn worth_a_look(bins: &Bins, failures: &[MemoryRefusal], group: Group) -> Option<usize> {
    let beside = |bin: &usize| {
        let of = |series: &[Bytes]| series.get(*bin).copied().unwrap_or_default();
        of(&bins.reserved) - of(&bins.requested)
    };
    let emptiest = || {
        let of_allocator = (0..bins.len()).filter(|_| group == Group::Allocator);
        let bin = of_allocator.max_by_key(|bin| (beside(bin), Reverse(*bin)))?;
        bins.shown.get(bin).copied()
    };
    failures.first().map(|mark| mark.moment).or_else(emptiest)
}

/// Where some allocations are drawn: alone, and in clouds.
fn drawn(gathered: &Gathered, ids: impl Iterator<Item = AllocationId>) -> (Vec<u32>, Vec<u32>) {
    let (mut each, mut clouds) = (Vec::new(), Vec::new());
    for place in ids.filter_map(|id| gathered.drawn.get(id.position()).copied().flatten()) {
        match place {
            Drawn::Alone(at) => each.push(at),
            Drawn::Merged(at) => clouds.push(at),
        }
    }
    for list in [&mut each, &mut clouds] {
        list.sort_unstable();
        list.dedup();
    }
    (each, clouds)
}

fn without(facts: &Facts, told: &Told, bins: &Bins, gathered: &Gathered) -> Counterfactual {
    let changes: BTreeMap<AllocationId, Change> = told.lives.settled().into_iter().collect();
    let (_, clouds) = drawn(gathered, changes.keys().copied());
    let mut ends = Vec::new();
    let mut members: BTreeMap<u32, Vec<(Range<usize>, Bytes)>> = BTreeMap::new();
    for (id, one) in facts.timeline.iter() {
        let died = match changes.get(&id) {
            None => died(one),
            Some(Change::Remove) => Some(born(one)),
            Some(Change::EndAt(event)) => Some((event.position() + 1).max(born(one))),
        };
        let seen = bins.seen(born(one), died);
        match gathered.drawn.get(id.position()).copied().flatten() {
            Some(Drawn::Alone(at)) if changes.contains_key(&id) => ends.push((at, seen.end)),
            Some(Drawn::Merged(at)) if seen.start < seen.end && clouds.binary_search(&at).is_ok() => {
                members.entry(at).or_default().push((seen, one.bytes));
            }
            _ => {}
        }
    }
    let mut cloud = |at: u32| (at, steps(members.remove(&at).unwrap_or_default().into_iter(), bins.len()));
    let clouds = clouds.iter().map(|at| cloud(*at)).collect();
    Counterfactual { peak: told.lives.peak(facts.timeline), ends, clouds }
}
