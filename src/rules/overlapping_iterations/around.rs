//! What a turn of a loop around the main one leaves behind for the next turn: the rollout that was trained on, while the next one is
//! collected.
//!
//! In: the loops that hold whole runs of iterations, and lifetimes. Out: claims about what one turn made, several iterations used
//! and the next turn drops only when it has made the like. Always: it is dropped before the next turn's first backward pass, and there is one.
//! What stands beside its successor while that is trained (targets that are averaged over epochs) may be computed with.

use std::collections::{BTreeMap, BTreeSet};

use super::{FetchedAhead, Leftover, OverlappingIterations, is_used_again, may_overlap, tell};
use crate::facts::Facts;
use crate::lives::{Change, Changes, Turns};
use crate::program::{LoopRun, Phase};
use crate::rules::claim::{Claim, Mending, Worth};
use crate::threshold::Threshold;
use crate::timeline::Allocation;
use crate::unit::{AllocationId, Bytes, Confidence, FrameId, Index};

/// Turns of a loop that prove a habit.
static TURNS: Threshold<usize> = Threshold::new("rules::overlapping_iterations::around::TURNS", 4);
/// How many iterations a turn holds at least, so that its loop is none of the main one's.
const WITHIN: usize = 2;

pub(super) fn claims<'f>(facts: &'f Facts<'f>) -> Vec<Claim<'f>> {
    let around = facts.program.loops.iter().filter(|run| is_around(facts, run));
    around.filter_map(|run| claim(facts, run)).collect()
}

/// Whether each turn of a loop of the program's own but the last runs the main loop.
fn is_around(facts: &Facts, run: &LoopRun) -> bool {
    let iterations = &facts.program.iterations;
    let begun = |turn: usize| {
        let (from, to) = (run.starts.get(turn).copied(), Some(run.end_of(turn)));
        let before = |event| iterations.partition_point(|one| Some(one.start) < event);
        before(to) - before(from)
    };
    let whole = run.starts.len() - 1;
    !facts.program.is_main(run)
        && facts.frames.is_own(run.frame)
        && run.starts.len() >= TURNS.get()
        && (0..whole).all(|turn| begun(turn) >= WITHIN)
}

fn claim<'f>(facts: &'f Facts<'f>, run: &LoopRun) -> Option<Claim<'f>> {
    let turns = Turns::of_run(run);
    let lines = lines(facts, &turns);
    let about: Vec<AllocationId> = lines.iter().flatten().copied().collect();
    let mut mended = Changes::default();
    for id in &about {
        let born = facts.timeline.allocation(*id).and_then(|one| turns.making(one));
        if let Some(end) = born.and_then(|turn| turns.last_event(turn)) {
            mended.set(*id, Change::EndAt(end));
        }
    }
    let (any, many) = (!about.is_empty(), lines.len());
    let told = move |worth: &Worth| tell(facts, ("outer turn", many), worth);
    let claim =
        Claim::new(&OverlappingIterations::META, about, Mending::lives(mended), told).at_recorded_peak();
    any.then(|| claim.sure(Confidence::Medium))
}

/// What lines regularly leave behind for the next turn to drop, line by line.
fn lines(facts: &Facts, turns: &Turns) -> Vec<Vec<AllocationId>> {
    let phases = facts.program.phases.iter().enumerate();
    let backwards: Vec<usize> =
        phases.filter(|(_, phase)| **phase == Phase::Backward).map(|(at, _)| at).collect();
    // What has a size at a line is made again by its successor.
    let mut made: BTreeMap<(FrameId, Bytes), BTreeSet<usize>> = BTreeMap::new();
    let mut seen: BTreeMap<FrameId, Leftover> = BTreeMap::new();
    let site = |one: &Allocation| facts.site(facts.seen_stack(one.alloc?)?);
    let stream = FetchedAhead::of(facts).stream;
    // What another stream makes is fetched ahead.
    let ours =
        |(id, one): &(AllocationId, &Allocation)| Some(one.stream) == stream && may_overlap(facts.role(*id));
    let candidates = || {
        let may = facts.timeline.iter().filter(ours);
        may.filter_map(|(id, one)| Some((id, one, turns.making(one)?, site(one)?)))
    };
    for (_, one, _, frame) in candidates() {
        made.entry((frame, one.bytes)).or_default().extend(one.alloc.map(Index::position));
    }
    for (id, one, turn, frame) in candidates() {
        let ends = turns.held(one).len();
        // What outlives one end of an iteration is told of that.
        if ends == 0 || facts.ends_held(one) < WITHIN || is_used_again(facts, one) {
            continue;
        }
        let line = seen.entry(frame).or_default();
        if ends > 1 {
            line.longer += one.bytes;
            continue;
        }
        let from = turns.last_event(turn).map_or(0, |last| last.position() + 1);
        let Some(freed) = one.given_back().map(Index::position) else { continue };
        let trains_later =
            backwards.get(backwards.partition_point(|at| *at < from)).is_some_and(|at| *at > freed);
        let succeeded =
            made.get(&(frame, one.bytes)).is_some_and(|made| made.range(from..freed).next().is_some());
        if succeeded && trains_later {
            line.once.push(id);
            *line.by_turn.entry(turn).or_default() += one.bytes;
        }
    }
    seen.into_values().filter(|line| line.is_regular(facts, turns.len())).map(|line| line.once).collect()
}
