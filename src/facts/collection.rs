//! What loops beside the main one collect: validation that keeps the outputs of every batch.
//!
//! In: the turns of every loop and the lifetimes. Out: for each such loop the tensors that its turns leave behind, line
//! by line, where the judge of growth finds that they pile up to the end of the loop, and where they go. A tensor is
//! collected if it outlives two further turns, or all that are left.
//!
//! A loop counts if it goes over something as the main loop does: it runs beside the iterations or in few of them (one
//! that runs in most of them is a part of an iteration), outside any module's forward (that one keeps skip connections),
//! and its turns run a model, most of whose memory goes with the turn (a loop that copies or makes weights keeps all
//! that it allocates). What a backward pass lets go of was kept for it, and is no collection; nor is what captured CUDA graphs
//! made, whose replays use it.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

use crate::facts::Facts;
use crate::facts::pools::captured;
use crate::frames::PhaseSign;
use crate::lives::growth::{Growth, Stay, judge};
use crate::program::{LoopRun, Phase};
use crate::role::Role;
use crate::threshold::Threshold;
use crate::unit::{AllocationId, EventIndex, FrameId, FunctionId, Index, StackId};

/// The largest share of what a turn's model allocates that may stay. Outputs of models measure 0.01 to 0.2 in the
/// corpus; copies of weights 1.
static KEPT_SHARE: Threshold<f64> = Threshold::new("facts::collection::KEPT_SHARE", 0.5);
/// The share of collected bytes that a backward pass may let go of.
static RELEASED_BY_BACKWARD: Threshold<f64> = Threshold::new("facts::collection::RELEASED_BY_BACKWARD", 0.1);

/// What one loop collects, in all of its runs.
#[derive(Debug)]
pub struct Collection {
    /// The frame that iterates.
    pub frame: FrameId,
    /// What each run collects, in order.
    pub runs: Vec<Collected>,
}

/// What one run of a loop collects.
#[derive(Debug)]
pub struct Collected {
    /// How often the loop turned.
    pub turns: usize,
    /// The lines that leave tensors behind.
    pub sites: Vec<CollectedAt>,
}

/// What one line leaves behind in one run of a loop.
#[derive(Debug)]
pub struct CollectedAt {
    /// The user's innermost line.
    pub site: FrameId,
    /// How they pile up, in bytes a turn.
    pub growth: Growth,
    /// The tensors, oldest first, each with the event with which it would go if nothing collected it: the last with which its
    /// function lets go of anything in the same turn, or the last of the turn.
    pub tensors: Vec<(AllocationId, EventIndex)>,
}

/// A tensor that a turn's model made.
struct Made {
    id: AllocationId,
    bytes: u64,
    born: usize,
    dies: usize,
    stack: StackId,
    /// Whether it counts among what is collected: weights and optimizer state do not.
    keeps: bool,
    released: bool,
}

/// The collections of a device, by loop.
pub(super) fn collections(facts: &Facts) -> Vec<Collection> {
    let made = made(facts);
    let mut by_loop: BTreeMap<FrameId, Vec<&LoopRun>> = BTreeMap::new();
    for run in facts.program.loops.iter().filter(|run| is_beside(facts, run)) {
        by_loop.entry(run.frame).or_default().push(run);
    }
    let one = |(frame, runs): (FrameId, Vec<&LoopRun>)| {
        if is_part_of_iterations(facts, &runs) {
            return None;
        }
        let runs: Vec<Collected> = runs.into_iter().filter_map(|run| collected(facts, &made, run)).collect();
        (!runs.is_empty()).then_some(Collection { frame, runs })
    };
    by_loop.into_iter().filter_map(one).collect()
}

/// Whether no iteration of the main loop begins while the loop turns.
fn is_beside(facts: &Facts, run: &LoopRun) -> bool {
    let Some((first, last)) = run.starts.first().zip(run.starts.last()) else { return false };
    let starts = &facts.program.iterations;
    let before = |event: &EventIndex| starts.partition_point(|iteration| iteration.start <= *event);
    !facts.program.is_main(run) && before(first) == before(last)
}

/// Whether a loop runs in more than half of the main loop's iterations.
fn is_part_of_iterations(facts: &Facts, runs: &[&LoopRun]) -> bool {
    let within = |run: &&LoopRun| facts.iteration_of(*run.starts.first()?);
    let mut iterations: Vec<_> = runs.iter().filter_map(within).collect();
    iterations.dedup();
    iterations.len() * 2 > facts.program.iterations.len()
}

/// Everything that a forward pass made, by birth.
fn made(facts: &Facts) -> Vec<Made> {
    let captured = captured(facts);
    let one = |(id, one): (AllocationId, &crate::timeline::Allocation)| {
        let (born, stack) = one.alloc.zip(one.stack)?;
        let freed = one.given_back();
        let is_forward = matches!(facts.phase(born), Phase::Forward | Phase::Evaluation);
        let role = facts.role(id);
        // What the model keeps, and what a library keeps for itself.
        let lasting = matches!(
            role,
            Role::Parameter | Role::Buffer | Role::Gradient | Role::OptimizerState | Role::Workspace
        );
        (is_forward && !captured.contains(&id)).then(|| Made {
            id,
            bytes: one.bytes.get(),
            born: born.position(),
            dies: freed.map_or(usize::MAX, Index::position),
            stack,
            keeps: !lasting,
            released: freed.is_some_and(|event| facts.phase(event) == Phase::Backward),
        })
    };
    let mut made: Vec<Made> = facts.timeline.iter().filter_map(one).collect();
    made.sort_by_key(|one| one.born);
    made
}

/// A tensor that outlived its turn, and the turn.
struct Survivor<'a> {
    made: &'a Made,
    turn: usize,
    /// The position of the event with which it would have gone.
    due: usize,
}

/// What one run of a loop collects; `None` if that is nothing.
fn collected(facts: &Facts, made: &[Made], run: &LoopRun) -> Option<Collected> {
    let turns = run.starts.len();
    let mut sites: BTreeMap<FrameId, Vec<Survivor>> = BTreeMap::new();
    let (mut all, mut stays) = (0_u64, 0_u64);
    for (turn, from) in run.starts.iter().enumerate() {
        let (from, to) = (from.position(), run.end_of(turn).position());
        let until = run.end_of((turn + 2).min(turns - 1)).position();
        let begin = made.partition_point(|one| one.born < from);
        let turns_own = || made.iter().skip(begin).take_while(|one| one.born < to);
        let due = last_let_go(facts, turns_own().filter(|one| one.dies < to));
        for one in turns_own() {
            all += one.bytes;
            if one.dies < until || !one.keeps || is_inside_forward(facts, one.stack, run.frame) {
                continue;
            }
            stays += one.bytes;
            if let Some(site) = facts.site(one.stack) {
                let due = facts.frames.function(site).and_then(|function| due.get(&function).copied());
                let due = due.filter(|due| *due > one.born).unwrap_or(to.saturating_sub(1));
                sites.entry(site).or_default().push(Survivor { made: one, turn, due });
            }
        }
    }
    if stays as f64 > KEPT_SHARE.get() * all as f64 {
        return None;
    }
    let sites: Vec<CollectedAt> =
        sites.into_iter().filter_map(|(site, kept)| collected_at(run, site, &kept)).collect();
    (!sites.is_empty()).then_some(Collected { turns, sites })
}

/// With which event each function lets go of the last of what it made.
fn last_let_go<'m>(facts: &Facts, gone: impl Iterator<Item = &'m Made>) -> FxHashMap<FunctionId, usize> {
    let mut last: FxHashMap<FunctionId, usize> = FxHashMap::default();
    for one in gone {
        if let Some(function) = facts.site(one.stack).and_then(|site| facts.frames.function(site)) {
            let at = last.entry(function).or_default();
            *at = (*at).max(one.dies);
        }
    }
    last
}

/// What one line leaves behind over a run's turns; `None` where that does not pile up, or a backward pass lets go of it.
fn collected_at(run: &LoopRun, site: FrameId, kept: &[Survivor]) -> Option<CollectedAt> {
    let bytes = |released: bool| -> u64 {
        kept.iter().filter(|one| one.made.released || !released).map(|one| one.made.bytes).sum()
    };
    if bytes(true) as f64 > RELEASED_BY_BACKWARD.get() * bytes(false) as f64 {
        return None;
    }
    let turns = run.starts.len();
    let ends: Vec<usize> = (0..turns).map(|turn| run.end_of(turn).position()).collect();
    let stay = |one: &Survivor| Stay {
        first: one.turn,
        last: Some(ends.partition_point(|end| *end <= one.made.dies)).filter(|gone| *gone < turns),
        bytes: one.made.bytes as f64,
        weight: 1.0,
    };
    let growth = judge(&kept.iter().map(stay).collect::<Vec<_>>(), turns)?;
    let tensors = kept.iter().filter_map(|one| Some((one.made.id, EventIndex::at(one.due)?))).collect();
    Some(CollectedAt { site, growth, tensors })
}

/// Whether the function that iterates runs inside a module's forward, under this stack.
fn is_inside_forward(facts: &Facts, stack: StackId, looping: FrameId) -> bool {
    let python = facts.frames.python(stack);
    let function = |frame: FrameId| facts.frames.function(frame);
    let at = python.iter().position(|frame| function(*frame) == function(looping)).unwrap_or(python.len());
    let outer = python.get(..at).unwrap_or_default();
    outer.iter().any(|frame| facts.frames.phase(*frame) == PhaseSign::ModuleCall)
}
