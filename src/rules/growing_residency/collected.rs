//! Growth inside a loop beside the main one: what validation collects on the GPU.
//!
//! In: the collections. Out: a finding for each loop whose collections are never let go of, or raise the run's peak.
//! A list that is small beside the peak, or that fills up and stops, is no finding; one that goes before the main loop
//! goes on is a note, unless it is very large.

use rustc_hash::FxHashSet;

use super::{DRAWDOWN, EFFICIENCY, GrowingResidency, TAIL, is_large};
use crate::facts::{Change, Changes, CollectedAt, Collection, Facts, Trend};
use crate::finding::{Finding, Impact, Measure, Severity, Value};
use crate::rules::{measure, place, shown};
use crate::timeline::Allocation;
use crate::unit::{AllocationId, Bytes, Confidence, count, percent};

/// The share of a loop's turns that have to add something.
const TURNS: f64 = 0.6;
/// What is let go of in the end has to raise the run's peak by this much. Predictions that a framework's validation holds
/// until its end raise it by 9 % in a healthy recording.
const RAISE: f64 = 0.1;
/// By how much it has to do so for a warning, if it goes before the main loop goes on: what is held no longer than it is
/// used is like any large temporary, of which a quarter of the peak is the usual bound.
const RAISE_IN_TIME: f64 = 0.25;

/// What one loop collects, as far as it is a steady growth that nothing else explains.
struct Steady<'a> {
    /// For each run its lines.
    runs: Vec<Vec<&'a CollectedAt>>,
}

pub(super) fn detect(
    facts: &Facts,
    explained: &FxHashSet<AllocationId>,
    reported: &FxHashSet<AllocationId>,
) -> Vec<Finding> {
    let one = |collection: &Collection| {
        let steady = Steady::of(collection, explained)?;
        let mostly_known = steady.share_in(facts, reported) >= 0.5;
        (!mostly_known).then(|| report(facts, &steady)).flatten()
    };
    let mut found: Vec<Finding> = facts.collections().iter().filter_map(one).collect();
    // A loop inside another sees the same tensors: the one that costs most stands for both.
    found.sort_by_key(|finding| (finding.severity, finding.impact.peak));
    let mut kept: Vec<Finding> = Vec::new();
    while let Some(finding) = found.pop() {
        if kept.iter().all(|other| other.location != finding.location) {
            kept.push(finding);
        }
    }
    kept
}

impl Steady<'_> {
    fn of<'a>(collection: &'a Collection, explained: &FxHashSet<AllocationId>) -> Option<Steady<'a>> {
        let is_known = |one: &CollectedAt| {
            one.tensors.iter().filter(|(id, _)| explained.contains(id)).count() * 2 >= one.tensors.len()
        };
        let lines = |sites: &'a [CollectedAt]| -> Vec<&'a CollectedAt> {
            sites.iter().filter(|one| is_steady(&one.trend) && !is_known(one)).collect()
        };
        let runs: Vec<Vec<&CollectedAt>> =
            collection.runs.iter().map(|run| lines(&run.sites)).filter(|lines| !lines.is_empty()).collect();
        (!runs.is_empty()).then_some(Steady { runs })
    }

    fn sites(&self) -> impl Iterator<Item = &CollectedAt> {
        self.runs.iter().flatten().copied()
    }

    fn tensors(&self) -> impl Iterator<Item = AllocationId> {
        self.sites().flat_map(|one| one.tensors.iter().map(|(id, _)| *id))
    }

    /// The share of the bytes that is in a set.
    fn share_in(&self, facts: &Facts, set: &FxHashSet<AllocationId>) -> f64 {
        let bytes = |id| facts.timeline.allocation(id).map_or(Bytes::ZERO, |one| one.bytes);
        let known: Bytes = self.tensors().filter(|id| set.contains(id)).map(bytes).sum();
        known.share_of(self.tensors().map(bytes).sum())
    }

    /// Whether several runs each left something behind, and all of it is alive at the end of the recording.
    fn never_ends(&self, facts: &Facts) -> bool {
        let alive =
            |id| facts.timeline.allocation(id).is_some_and(|one| one.free_requested.or(one.free).is_none());
        self.runs.len() >= 2 && self.tensors().all(alive)
    }

    /// Whether at least half of what some run collects outlives the next iteration of the main loop: nobody needs a
    /// validation's outputs in training.
    fn outstays(&self, facts: &Facts) -> bool {
        self.runs.iter().any(|lines| {
            let tensors = || lines.iter().flat_map(|one| &one.tensors);
            let Some(end) = tensors().map(|(_, end)| *end).max() else { return false };
            let iterations = &facts.program.iterations;
            let after = iterations.partition_point(|iteration| iteration.start <= end);
            let Some(next) = iterations.get(after) else { return false };
            let life = |id: &AllocationId| facts.timeline.allocation(*id);
            let stays =
                |one: &&Allocation| one.free_requested.or(one.free).is_none_or(|freed| freed >= next.end);
            let all: Bytes = tensors().filter_map(|(id, _)| life(id)).map(|one| one.bytes).sum();
            let late: Bytes =
                tensors().filter_map(|(id, _)| life(id)).filter(stays).map(|one| one.bytes).sum();
            late.share_of(all) >= 0.5
        })
    }

    /// The run that collects most: by how much a turn, and how much in all.
    fn largest(&self) -> (Bytes, Bytes) {
        let sums = self.runs.iter().map(|lines| {
            let net: f64 = lines.iter().map(|one| one.trend.net).sum();
            let slope: f64 = lines.iter().map(|one| one.trend.slope).sum();
            (Bytes::rounded(slope), Bytes::rounded(net) + Bytes::rounded(slope))
        });
        sums.max_by_key(|(_, net)| *net).unwrap_or_default()
    }

    /// The lifetimes as they would be if each tensor died with its turn.
    fn freed_with_their_turn(&self) -> Changes {
        let mut changes = Changes::default();
        for (id, end) in self.sites().flat_map(|one| &one.tensors) {
            changes.set(*id, Change::EndAt(*end));
        }
        changes
    }
}

/// Whether most turns add to the series, up to the last ones.
fn is_steady(trend: &Trend) -> bool {
    let steps = trend.values.saturating_sub(1) as f64;
    trend.net > 0.0
        && trend.efficiency >= EFFICIENCY
        && trend.drawdown <= DRAWDOWN
        && trend.tail >= TAIL
        && trend.steps_since_rise <= trend.longest_pause
        && trend.rises >= 2
        && trend.rises as f64 >= TURNS * steps
}

fn report(facts: &Facts, steady: &Steady) -> Option<Finding> {
    let (slope, held) = steady.largest();
    let changes = steady.freed_with_their_turn();
    let saved = changes.saving(facts.timeline);
    let raise = saved.share_of(facts.peak() - saved);
    let never_ends = steady.never_ends(facts) && is_large(facts, slope.get() as f64, held.get() as f64);
    if !never_ends && raise < RAISE {
        return None;
    }
    let message = if never_ends {
        format!("a loop leaves {slope} behind in every turn, and none of it is freed")
    } else {
        format!("a loop collects {slope} in every turn, {held} before it is freed")
    };
    let help = "move what the loop collects off the GPU as it goes: .detach().cpu(); or keep the numbers that you need";
    let mut finding = GrowingResidency::META.finding(facts, message, help);
    finding.severity = match (never_ends, steady.outstays(facts) || raise >= RAISE_IN_TIME) {
        (true, _) => Severity::Error,
        (false, true) => Severity::Warning,
        (false, false) => Severity::Info,
    };
    let guilty = facts.guilty(steady.tensors());
    let blamed = facts.blame().past_forwards(&guilty);
    finding.location = blamed.and_then(|frame| place(facts, frame));
    let first = steady.tensors().next().and_then(|id| facts.timeline.allocation(id)?.alloc);
    finding.phase = first.map(|event| facts.phase(event)).unwrap_or_default();
    let tensors = steady.tensors().count();
    finding.label = format!("{} made here outlive the turn that made them", count(tensors, "tensor"));
    let through = guilty
        .iter()
        .rev()
        .find(|one| blamed.is_some_and(|frame| facts.code.python(one.stack).contains(&frame)));
    if let Some(one) = through {
        finding.stack = shown(facts, one.stack);
    }
    finding.confidence = if steady.runs.len() >= 2 { Confidence::Medium } else { Confidence::Low };
    finding.evidence = evidence(steady, slope, held, raise);
    let resident = never_ends.then_some(held);
    finding.impact = Impact { peak: Some(saved), resident, per_iteration: Some(slope), ..Impact::default() };
    Some(finding)
}

fn evidence(steady: &Steady, slope: Bytes, held: Bytes, raise: f64) -> Vec<Measure> {
    let longest = steady.sites().max_by_key(|one| one.series.len());
    let series = longest.map(|one| one.series.clone()).unwrap_or_default();
    let runs = steady.runs.len();
    vec![
        measure("slope", Value::Bytes(slope), format!("{slope} a turn (Theil-Sen)")),
        measure("collected", Value::Bytes(held), format!("up to {held} in one run, {}", count(runs, "run"))),
        measure("raise", Value::Ratio(raise), format!("raises the peak by {}", percent(raise))),
        measure("tensors", Value::Count(steady.tensors().count() as u64), String::new()),
        measure("resident", Value::Series(series), String::new()),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::trend;

    fn steady(levels: &[f64]) -> bool {
        trend(levels).is_some_and(|trend| is_steady(&trend))
    }

    #[test]
    fn a_list_is_steady_even_if_some_turns_add_nothing() {
        assert!(steady(&[8.0, 16.0, 24.0, 32.0]));
        assert!(steady(&[8.0, 16.0, 16.0, 24.0, 32.0, 32.0, 40.0]));
        // The last batch is smaller.
        assert!(steady(&[8.0, 16.0, 24.0, 32.0, 33.0]));
    }

    #[test]
    fn what_fills_up_or_goes_now_and_then_is_not() {
        assert!(!steady(&[8.0, 16.0, 24.0, 24.0, 24.0, 24.0]));
        assert!(!steady(&[8.0, 16.0, 24.0, 8.0, 16.0, 24.0]));
        assert!(!steady(&[8.0, 8.0, 8.0, 16.0]));
    }
}
