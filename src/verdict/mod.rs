//! What claims are worth, and which of them has the cause.
//!
//! In: the claims of all rules about one device. Out: findings: each with what mending it saves, and the level that this gives
//! it. Always: one cause gives one finding; adding a fault to a program takes away no finding of another; low confidence is
//! never an error; and what saves nothing is no warning.
//!
//! 1. *Savings.* Each claim's change is applied to the recorded curve: that is the saving which is shown. For its level a
//!    share is taken of the peak as it would be if nothing else were wrong (all other claims that matter mended), so that a
//!    large fault does not hide a small one ([`worlds`]).
//! 2. *Levels.* One table says from which worth on a claim is a note, a warning, an error ([`materiality`]).
//! 3. *Causes.* Where claims are about the same allocations, the one that stands first in the table has them (those that give way
//!    come last), if it is at least as severe; what is left of the others is told if it is most of what they claimed. Passes that no backward follows
//!    are a fault by themselves, whoever keeps their results: `no_grad` mends them, and dropping the results does not.

mod materiality;
mod worlds;

pub use materiality::{Bound, Materiality, Replacement, RuleBounds, Scale};

use rustc_hash::FxHashMap;

use crate::facts::Facts;
use crate::finding::{Finding, Hidden, Impact, Severity};
use crate::lives::Changes;
use crate::rules::{Claim, Worth};
use crate::snapshot::Action;
use crate::threshold::Threshold;
use crate::unit::{AllocationId, Bytes, Confidence, FrameId};
use worlds::Worlds;

/// The memory of a device about which nothing is known: that of an A100 or H100.
pub const USUAL_DEVICE: Bytes = Bytes(80 << 30);

/// The share of a claim's bytes that other claims have to leave to it.
static MOST: Threshold<f64> = Threshold::new("verdict::MOST", 0.5);

/// A claim with what was found out about it.
struct Settled<'c, 'f> {
    claim: &'c Claim<'f>,
    rank: usize,
    row: RuleBounds<'c>,
    worth: Worth,
    severity: Severity,
}

/// A claim with its row, and the row's place in the order of precedence.
type RankedClaim<'c, 'f> = (usize, RuleBounds<'c>, &'c Claim<'f>);

/// A finding, and what mending it does to lifetimes: nothing where that is not what mends it.
#[derive(Debug)]
pub struct Told {
    /// The finding.
    pub finding: Finding,
    /// The changes that its saving was computed with.
    pub lives: Changes,
    /// The allocations that it is about, ascending: what is left of them when other findings have theirs.
    pub about: Vec<AllocationId>,
    /// What the recording hides that would make it a fault, or rule it out.
    pub undecided: Option<Hidden>,
}

/// The findings of all claims about a device, by a table of materiality. `capacity` is its memory, where somebody said so.
pub fn settle(
    facts: &Facts,
    claims: &[Claim<'_>],
    table: &Materiality,
    capacity: Option<Bytes>,
) -> Vec<Told> {
    let left = Left::of(facts, capacity);
    let mut ranked: Vec<RankedClaim<'_, '_>> = claims
        .iter()
        .filter_map(|claim| table.row(claim.rule.name).map(|(rank, row)| (rank, row, claim)))
        .collect();
    // What is undecided explains nothing that another claim of its rule has decided.
    ranked.sort_by_key(|(rank, _, claim)| (claim.gives_way, *rank, claim.undecided.is_some()));
    let judged = worth_of_all(facts, &ranked, &left);
    let causes = causes(facts, judged.into_iter().flatten().collect());
    told(facts, causes, &left)
}

/// How long until the device is full.
struct Left {
    bytes: Bytes,
}

impl Left {
    fn of(facts: &Facts, capacity: Option<Bytes>) -> Left {
        let capacity = capacity.unwrap_or_else(|| recorded_capacity(facts).unwrap_or(USUAL_DEVICE));
        Left { bytes: capacity - facts.timeline.peak_reserved.bytes }
    }

    fn turns(&self, pace: Bytes) -> Option<u64> {
        self.bytes.get().checked_div(pace.get())
    }
}

/// The memory that the device has for this process: what was modelled, or, as a failure shows it, what was reserved then and what was left.
fn recorded_capacity(facts: &Facts) -> Option<Bytes> {
    if let Some(modelled) = &facts.snapshot.modelled {
        return Some(modelled.memory());
    }
    let failed = facts.trace.events.iter().find(|event| event.action == Action::OutOfMemory)?;
    // Such an event holds the device's free bytes where others hold an address.
    Some(facts.timeline.peak_reserved.bytes + Bytes(failed.address))
}

/// Every claim with its worth and level where the other faults are mended. Which are faults is found out in rounds: first
/// those that are on the recording as it is, then those that these hid.
fn worth_of_all<'c, 'f>(
    facts: &Facts,
    ranked: &[RankedClaim<'c, 'f>],
    left: &Left,
) -> Vec<Option<Settled<'c, 'f>>> {
    let saved = |(.., claim): &RankedClaim<'_, '_>| saved_alone(facts, claim);
    let saved: Vec<Option<Bytes>> = ranked.iter().map(saved).collect();
    let judge = |matters: &[bool]| {
        judged(facts, (ranked, &saved), left, &|at| matters.get(at).copied().unwrap_or(false))
    };
    let warns = |judged: &Vec<Option<Settled<'_, '_>>>| {
        judged.iter().map(|one| one.as_ref().is_some_and(|one| one.severity >= Severity::Warning)).collect()
    };
    where_what_is_told_is_mended(&saved, judge, warns)
}

/// How claims are judged where those that matter are mended, given what each saves alone; `warns` says which ones are then at least a warning.
///
/// In the end each that matters is one: two that each lower the peak to the same next one hide each other, and what is not told mends nothing. Of several hidden
/// ones that with the largest saving stays mended while the others are judged anew, and goes if it is hidden then, too.
fn where_what_is_told_is_mended<J>(
    saved: &[Option<Bytes>],
    judge: impl Fn(&[bool]) -> J,
    warns: impl Fn(&J) -> Vec<bool>,
) -> J {
    let mut matters = vec![false; saved.len()];
    let mut judged = judge(&matters);
    let mut warning = warns(&judged);
    // Each round adds a claim to what matters, or is the last.
    while warning.iter().zip(&matters).any(|(warns, matters)| *warns && !matters) {
        matters.iter_mut().zip(&warning).for_each(|(matters, warns)| *matters |= warns);
        judged = judge(&matters);
        warning = warns(&judged);
    }
    loop {
        let is_hidden = |at: &usize| matters.get(*at) == Some(&true) && warning.get(*at) == Some(&false);
        let mut hidden: Vec<usize> = (0..saved.len()).filter(is_hidden).collect();
        hidden.sort_by_key(|at| (saved.get(*at), std::cmp::Reverse(*at)));
        if hidden.is_empty() {
            return judged;
        }
        hidden.truncate((hidden.len() - 1).max(1));
        for at in hidden {
            matters.get_mut(at).into_iter().for_each(|matters| *matters = false);
        }
        judged = judge(&matters);
        warning = warns(&judged);
    }
}

/// How far the peak of the recording as it is falls if one claim alone is mended; nothing where that is not what mends it.
fn saved_alone(facts: &Facts, claim: &Claim<'_>) -> Option<Bytes> {
    let lives = &claim.mending.lives;
    claim.mending.estimate.or_else(|| (!lives.is_empty()).then(|| lives.saving(facts.timeline)))
}

/// Every claim, with what it saves alone, with its worth and level, those that are not even a note left out; `counts` says
/// which others are mended.
fn judged<'c, 'f>(
    facts: &Facts,
    (ranked, saved): (&[RankedClaim<'c, 'f>], &[Option<Bytes>]),
    left: &Left,
    counts: &dyn Fn(usize) -> bool,
) -> Vec<Option<Settled<'c, 'f>>> {
    let mendings: Vec<_> = ranked.iter().map(|(.., claim)| &claim.mending.lives).collect();
    let worlds = Worlds::of(facts, &mendings, counts);
    let one = |(at, ((rank, row, claim), saved)): (usize, (&RankedClaim<'c, 'f>, &Option<Bytes>))| {
        let alone = saved.map_or(0.0, |saved| saved.share_of(facts.peak()));
        let share = if claim.mending.estimate.is_some() {
            alone
        } else {
            let share = worlds.share(at).max(if claim.by_itself { alone } else { 0.0 });
            if claim.at_recorded_peak { share.min(alone) } else { share }
        };
        let worth = Worth {
            about: claim.about.clone(),
            confidence: claim.confidence,
            peak: *saved,
            share,
            reserved: claim.mending.reserved,
            pace: claim.pace,
            held: claim.held,
            turns_left: claim.pace.and_then(|pace| left.turns(pace)),
        };
        let severity = level(facts, row, claim, &worth)?;
        Some(Settled { claim, rank: *rank, row: *row, worth, severity })
    };
    ranked.iter().zip(saved).enumerate().map(one).collect()
}

/// The level of a claim; `None` where it is not even a note.
fn level(facts: &Facts, row: &RuleBounds<'_>, claim: &Claim<'_>, worth: &Worth) -> Option<Severity> {
    let sure = if worth.confidence == Confidence::Low { Severity::Warning } else { Severity::Error };
    Some(reached(facts, row, claim, worth)?.min(sure).min(claim.at_most))
}

/// The level that a claim would have if nothing about it were in doubt.
fn reached(facts: &Facts, row: &RuleBounds<'_>, claim: &Claim<'_>, worth: &Worth) -> Option<Severity> {
    let scale = Scale {
        held: claim.whole.unwrap_or(facts.peak()),
        reserved: claim.whole.unwrap_or(facts.timeline.peak_reserved.bytes),
    };
    row.level(worth, &scale)
}

/// What is left when each allocation belongs to one cause.
fn causes<'c, 'f>(facts: &Facts, judged: Vec<Settled<'c, 'f>>) -> Vec<Settled<'c, 'f>> {
    let mut taken: FxHashMap<AllocationId, Severity> = FxHashMap::default();
    let mut causes = Vec::new();
    for mut one in judged {
        let is_free = |id: &AllocationId| taken.get(id).is_none_or(|by| *by < one.severity);
        let free: Vec<AllocationId> = one.worth.about.iter().copied().filter(is_free).collect();
        let (all, rest) = (facts.bytes(&one.worth.about), facts.bytes(&free));
        if !one.claim.by_itself {
            let explained = !one.worth.about.is_empty() && rest.share_of(all) < MOST.get();
            if explained {
                continue;
            }
            one.worth.about = free;
        }
        for id in &one.worth.about {
            let by = taken.entry(*id).or_insert(one.severity);
            *by = one.severity.max(*by);
        }
        causes.push(one);
    }
    causes
}

/// The findings: claims of one rule that belong together told as one.
fn told(facts: &Facts, causes: Vec<Settled<'_, '_>>, left: &Left) -> Vec<Told> {
    let mut groups: Vec<Vec<Settled<'_, '_>>> = Vec::new();
    let mut known: FxHashMap<(usize, FrameId), usize> = FxHashMap::default();
    for one in causes {
        let key = one.claim.together.map(|frame| (one.rank, frame));
        if let Some(group) = key.and_then(|key| known.get(&key)).and_then(|at| groups.get_mut(*at)) {
            group.push(one);
        } else {
            known.extend(key.map(|key| (key, groups.len())));
            groups.push(vec![one]);
        }
    }
    groups.into_iter().filter_map(|group| tell(facts, &group, left)).collect()
}

/// One finding of one or more claims, worth what they are worth together.
fn tell(facts: &Facts, group: &[Settled<'_, '_>], left: &Left) -> Option<Told> {
    let first = group.first()?;
    let mut worth = first.worth.clone();
    let mut severity = first.severity;
    for other in group.iter().skip(1) {
        worth = together(worth, &other.worth);
        severity = severity.max(other.severity);
    }
    // Once for all: ten thousand lines may have one cause.
    worth.about.sort_unstable();
    let mut lives = first.claim.mending.lives.clone();
    if group.len() > 1 {
        for other in group.iter().skip(1) {
            lives = lives.and(&other.claim.mending.lives);
        }
        worth.peak = Some(lives.saving(facts.timeline));
        worth.turns_left = worth.pace.and_then(|pace| left.turns(pace));
        severity = level(facts, &first.row, first.claim, &worth).unwrap_or(severity).max(severity);
    }
    let told = first.claim.tell(&worth);
    let impact = Impact {
        peak: worth.peak,
        // A replay may have shown what the rule could only bound.
        reserved: told.impact.reserved.or(worth.reserved),
        resident: Some(lives.saving_between(facts.timeline, facts.turns()))
            .filter(|saved| *saved > Bytes::ZERO),
        per_iteration: worth.pace,
        // Where no lifetime can be shortened, the rule's own number: a known fault must not grow unseen.
        at_once: Some(lives.at_once(facts.timeline))
            .filter(|bytes| *bytes > Bytes::ZERO)
            .or(told.impact.at_once)
            .or(worth.held),
    };
    let matters = reached(facts, &first.row, first.claim, &worth) >= Some(Severity::Warning);
    let undecided = first.claim.undecided.filter(|_| matters && severity == Severity::Info);
    Some(Told { finding: Finding { severity, impact, ..told }, lives, about: worth.about, undecided })
}

/// The worth of two claims about different allocations, which stand in no order.
fn together(one: Worth, other: &Worth) -> Worth {
    let sum = |a: Option<Bytes>, b: Option<Bytes>| a.map(|a| a + b.unwrap_or_default()).or(b);
    let mut about = one.about;
    about.extend_from_slice(&other.about);
    Worth {
        about,
        confidence: one.confidence.max(other.confidence),
        peak: one.peak,
        share: one.share.max(other.share),
        reserved: sum(one.reserved, other.reserved),
        pace: sum(one.pace, other.pace),
        held: sum(one.held, other.held),
        turns_left: one.turns_left,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The claims that are told in the end, where a peak of 100 has others beside it; each claim takes some bytes off each of these.
    fn told(peaks: &[u64], claims: &[&[u64]]) -> Vec<bool> {
        let left = |mended: &dyn Fn(usize) -> bool| -> u64 {
            let off = |at: usize| -> u64 {
                claims
                    .iter()
                    .enumerate()
                    .filter(|(claim, _)| mended(*claim))
                    .filter_map(|(_, off)| off.get(at))
                    .sum()
            };
            peaks.iter().enumerate().map(|(at, peak)| peak - off(at)).max().unwrap_or(0)
        };
        let saves = |claim: usize, matters: &[bool]| {
            let others = |other: usize| other != claim && matters.get(other) == Some(&true);
            left(&others) - left(&|other| other == claim || others(other))
        };
        let saved: Vec<Option<Bytes>> = (0..claims.len()).map(|at| Some(Bytes(saves(at, &[])))).collect();
        let judge = |matters: &[bool]| (0..claims.len()).map(|at| saves(at, matters) >= 10).collect();
        where_what_is_told_is_mended(&saved, judge, Vec::clone)
    }

    #[test]
    fn claims_that_hide_each_other_are_not_all_silent() {
        assert_eq!(told(&[100, 85], &[&[15, 0], &[20, 0]]), [true, false], "of equals the first is told");
        assert_eq!(told(&[100, 50], &[&[15, 0], &[20, 0]]), [true, true], "each has a part of its own");
        assert_eq!(told(&[100, 85], &[&[5, 0], &[9, 0]]), [false, false], "too little to tell");
        assert_eq!(told(&[100, 85], &[&[0, 30], &[40, 0]]), [true, true], "a fault that another hid");
    }
}
