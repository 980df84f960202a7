//! What the passes of one line keep, over all runs of loops.
//!
//! In: what each run keeps there, by time. Out: a [`KeptGraph`]: all of it together, and whether it passes: with its iteration, or when the next run of the
//! loop has made its like.

use std::collections::{BTreeMap, BTreeSet};

use rustc_hash::FxHashSet;

use super::KeptGraph;
use crate::facts::Facts;
use crate::lives::growth::Growth;
use crate::program::LoopRun;
use crate::unit::{AllocationId, Bytes, FrameId, Index};

/// What the passes of one line keep in one run of a loop.
pub(super) struct KeptByRun {
    pub(super) caller: FrameId,
    /// Passes that kept their activations.
    pub(super) passes: usize,
    /// How many passes of the same line let go of theirs, where it is one or two alone that do not; 0 elsewhere.
    pub(super) others: usize,
    pub(super) kept: Vec<AllocationId>,
    pub(super) along: Vec<AllocationId>,
    pub(super) growth: Option<Growth>,
    pub(super) retaining: bool,
    pub(super) comes_to_numbers: bool,
}

/// What the passes of one line keep, over all runs of loops.
#[derive(Default)]
pub(super) struct KeptAtLine {
    passes: BTreeMap<FrameId, usize>,
    others: usize,
    kept: BTreeSet<AllocationId>,
    along: BTreeSet<AllocationId>,
    growth: Option<Growth>,
    retaining: bool,
    comes_to_numbers: bool,
    runs: Vec<RunOfPasses>,
}

/// One run of a loop with passes that keep something.
struct RunOfPasses {
    head: FrameId,
    end: usize,
    /// When most of it has gone.
    gone: usize,
}

impl KeptAtLine {
    pub(super) fn add(&mut self, facts: &Facts, run: &LoopRun, found: KeptByRun) {
        let is_main = facts.program.is_main(run);
        *self.passes.entry(run.frame).or_default() += found.passes;
        let gone = gone_by(facts, &found.kept);
        if !is_main {
            self.runs.push(RunOfPasses { head: run.frame, end: run.end.position(), gone });
        }
        self.others = self.others.max(found.others);
        self.kept.extend(found.kept);
        self.along.extend(found.along);
        self.retaining |= found.retaining;
        self.comes_to_numbers |= found.comes_to_numbers;
        let faster = |one: &Growth| self.growth.as_ref().is_none_or(|known| known.slope < one.slope);
        self.growth = found.growth.filter(faster).filter(|_| is_main).or(self.growth.take());
    }

    pub(super) fn kept_at(
        self,
        facts: &Facts,
        caller: FrameId,
        unused: &FxHashSet<AllocationId>,
    ) -> KeptGraph {
        let kept: Vec<AllocationId> = self.kept.iter().copied().collect();
        let is_renewed = self.is_renewed();
        let (all, is_most) =
            (facts.bytes(&kept), |some: &[AllocationId], all: Bytes| facts.bytes(some).times(2) > all);
        let goes = |id: &AllocationId| {
            is_renewed || facts.timeline.allocation(*id).is_some_and(|one| facts.ends_held(one) == 0)
        };
        let passing: Vec<AllocationId> = kept.into_iter().filter(goes).collect();
        let in_vain: Vec<AllocationId> = passing.iter().copied().filter(|id| unused.contains(id)).collect();
        KeptGraph {
            caller,
            passing: !self.comes_to_numbers && is_most(&passing, all),
            for_nothing: !self.comes_to_numbers && is_most(&in_vain, all),
            passes: self.passes.values().copied().max().unwrap_or(0),
            others: self.others,
            along: self.along.difference(&self.kept).copied().collect(),
            kept: self.kept.into_iter().collect(),
            growth: self.growth,
            retaining: self.retaining,
        }
    }

    /// Whether each run of the one loop, beside the main one, lets go of most of what the run before kept: a rollout that is collected anew.
    fn is_renewed(&self) -> bool {
        let pairs = || self.runs.iter().zip(self.runs.iter().skip(1));
        pairs().next().is_some() && pairs().all(|(one, next)| one.head == next.head && one.gone <= next.end)
    }
}

/// The position by which most of some allocations have gone, by their bytes.
fn gone_by(facts: &Facts, kept: &[AllocationId]) -> usize {
    let lives = kept.iter().filter_map(|id| facts.timeline.allocation(*id));
    let mut deaths: Vec<(usize, Bytes)> =
        lives.map(|one| (one.given_back().map_or(usize::MAX, Index::position), one.bytes)).collect();
    deaths.sort_unstable();
    let (all, mut gone) = (facts.bytes(kept), Bytes::ZERO);
    let most = deaths.into_iter().find(|(_, bytes)| {
        gone += *bytes;
        gone.times(2) > all
    });
    most.map_or(0, |(at, _)| at)
}
