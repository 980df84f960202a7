//! One forward pass among many whose graph is kept: the first, for a reference loss that nobody detached; the best, for its
//! loss.
//!
//! In: the passes of one line in one run of a loop. Out: what one or two of them keep for good. What they made alone proves
//! nothing: a table that the first pass computes, a buffer that it fills, parameters that it makes. So only places count at which other passes of
//! the line make what a backward pass needs, and let go of it in their own turn; and a graph is most of that, not the
//! output or the features that somebody set aside. What stands at the end for want of time is not kept: enough passes
//! must have come and gone since.

use std::collections::{BTreeMap, BTreeSet};

use rustc_hash::FxHashSet;

use super::line::KeptByRun;
use super::{GraphLife, is_spread};
use crate::facts::Facts;
use crate::lives::growth::FEWEST;
use crate::program::LoopRun;
use crate::role::Role;
use crate::threshold::Threshold;
use crate::unit::{AllocationId, Bytes, FrameId, FunctionId, Index};

/// The share of what a pass saves for its backward that has to stay: a graph is most of it.
static MOST: Threshold<f64> = Threshold::new("facts::kept_graphs::lone::MOST", 0.5);

/// A line's lives in one run, by turn.
type LivesByTurn<'l> = BTreeMap<usize, Vec<&'l GraphLife>>;

/// The lines of which one pass or two keep what the others let go of.
pub(super) fn of_run(
    facts: &Facts,
    (lives, captured): (&[GraphLife], &FxHashSet<AllocationId>),
    run: &LoopRun,
) -> Vec<KeptByRun> {
    let begin =
        run.starts.first().map_or(0, |start| lives.partition_point(|one| one.born < start.position()));
    let inside = lives.iter().skip(begin).take_while(|life| life.born < run.end.position());
    let inside = inside.filter(|life| !captured.contains(&life.id));
    let mut lines: BTreeMap<FrameId, LivesByTurn> = BTreeMap::new();
    for life in inside {
        let Some(caller) = life.caller else { continue };
        let turn = run.starts.partition_point(|start| start.position() <= life.born).saturating_sub(1);
        lines.entry(caller.frame).or_default().entry(turn).or_default().push(life);
    }
    lines.iter().filter_map(|(caller, turns)| lone(facts, run, *caller, turns)).collect()
}

fn lone(facts: &Facts, run: &LoopRun, caller: FrameId, turns: &LivesByTurn) -> Option<KeptByRun> {
    let stays = |life: &&&GraphLife| life.dies == usize::MAX;
    if turns.len() <= FEWEST.get() || !turns.values().flatten().any(|life| stays(&life)) {
        return None;
    }
    let saving = saving_places(facts, run, turns);
    let keeps = |(turn, lives): (&usize, &Vec<&GraphLife>)| {
        let saved = || lives.iter().filter(|life| saving.contains(&life.place));
        let kept: Vec<&&GraphLife> = saved().filter(stays).collect();
        let (all, held): (Bytes, Bytes) =
            (saved().map(|life| life.bytes).sum(), kept.iter().map(|life| life.bytes).sum());
        let places: BTreeSet<usize> = kept.iter().map(|life| life.place).collect();
        let functions: BTreeSet<Option<FunctionId>> = kept.iter().map(|life| life.function).collect();
        (is_spread(functions.len(), places.len()) && held > Bytes::ZERO && held.share_of(all) >= MOST.get())
            .then_some(*turn)
    };
    let keeping: Vec<usize> = turns.iter().filter_map(keeps).collect();
    let last = *keeping.last()?;
    let since = turns.range(last + 1..).count();
    if keeping.len() >= FEWEST.get() || since < FEWEST.get() {
        return None;
    }
    let mut kept: Vec<AllocationId> = keeping
        .iter()
        .filter_map(|turn| turns.get(turn))
        .flatten()
        .filter(|life| stays(life))
        .map(|life| life.id)
        .collect();
    kept.sort_unstable();
    let (passes, others) = (keeping.len(), turns.len() - keeping.len());
    Some(KeptByRun {
        caller,
        passes,
        others,
        kept,
        along: Vec::new(),
        growth: None,
        retaining: false,
        comes_to_numbers: false,
    })
}

/// The places at which passes of several turns save something for a backward pass and let go of it before the next turn is over.
fn saving_places(facts: &Facts, run: &LoopRun, turns: &LivesByTurn) -> FxHashSet<usize> {
    let mut healthy: BTreeMap<usize, usize> = BTreeMap::new();
    for (turn, lives) in turns {
        let end = run.end_of((turn + 1).min(run.starts.len() - 1)).position();
        let lets_go = |life: &&&GraphLife| life.dies < end && facts.role(life.id) == Role::Activation;
        let places: BTreeSet<usize> = lives.iter().filter(lets_go).map(|life| life.place).collect();
        for place in places {
            *healthy.entry(place).or_default() += 1;
        }
    }
    healthy.into_iter().filter(|(_, turns)| *turns >= FEWEST.get()).map(|(place, _)| place).collect()
}
