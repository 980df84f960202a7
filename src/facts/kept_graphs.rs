//! Forward passes whose autograd graph is kept, though no backward pass lets go of it.
//!
//! In: the turns of every loop and the lifetimes. Out: for each line of the user's code that runs a model (the frame that
//! makes the outermost module call) what its passes left behind, where that is what autograd saves: not an output or
//! two, but a good part of all that the pass allocated, at several places of the model.
//!
//! What a backward pass releases in the end is no kept graph (a loss summed over micro-batches, back-propagation through
//! time); nor is what the next turn's result replaces (a forward pass without a backward), nor what copies, moves or fills
//! weights. Where the modules of a turn without a backward pass drop what they make, there is no graph that goes through them: then a
//! line that calls none keeps plain tensors. So does a pass that drops what other passes save for their backward ([`saving`]),
//! and one whose graph a backward pass has let go of while what hooks packed stays ([`hooks`]).

mod graphless;
mod hooks;
mod line;
mod lives;
mod lone;
mod pass;
mod saving;

use std::collections::BTreeMap;

use rustc_hash::{FxHashMap, FxHashSet};

use graphless::{Graphless, is_graphless};
use line::{KeptAtLine, KeptByRun};
use lives::{GraphEnd, GraphLife, ModelCaller, lives};
use pass::{Differentiated, KEPT_SHARE, Pass, is_spread, operands};
use saving::mark_saving;

use crate::facts::Facts;
use crate::facts::failure::failures;
use crate::facts::module_calls::outermost;
use crate::facts::pools::captured;
use crate::lives::growth::{FEWEST, Growth, Stay, judge};
use crate::program::{LoopRun, Phase};
use crate::threshold::Threshold;
use crate::unit::{AllocationId, Bytes, FrameId, Index};

/// The share of what outlived its turn that a backward pass may release; more means that it is used after all.
static RELEASED_BY_BACKWARD: Threshold<f64> = Threshold::new("facts::kept_graphs::RELEASED_BY_BACKWARD", 0.1);
/// How many further turns a pass's tensors have to outlive: the next turn's result replaces those of an overlap.
static OUTLIVES: Threshold<usize> = Threshold::new("facts::kept_graphs::OUTLIVES", 2);

/// The most bytes that one number takes: a complex one of double precision.
const NUMBER: Bytes = Bytes(16);

/// What the passes of one line left behind.
#[derive(Debug)]
pub struct KeptGraph {
    /// The user's frame that runs the model.
    pub caller: FrameId,
    /// Passes that kept their activations.
    pub passes: usize,
    /// How many passes of the same line let go of theirs, where it is one or two alone that do not; 0 elsewhere.
    pub others: usize,
    /// The activations, ascending.
    pub kept: Vec<AllocationId>,
    /// What else those turns made that lives as long: inputs, results of other lines, gradients with a graph of their own.
    pub along: Vec<AllocationId>,
    /// Whether it grows with every iteration, and nothing of it is given back when the loop ends; in bytes an iteration. What a loop beside the
    /// main one keeps, say before training, goes on growing with none.
    pub growth: Option<Growth>,
    /// Whether backward passes ran in these turns and let go of nothing at all: they retain the graph, or something else holds its tensors. Where they
    /// let go of other passes' activations, none went through these.
    pub retaining: bool,
    /// Whether most of what is kept goes with the iteration that made it, or when the next run of their loop has made its like, and the loop comes to a
    /// result that the program goes on with (the state of a rollout, the tiles of a picture), and not to a number (a loss, a count of what was right).
    pub passing: bool,
    /// Whether it is so, and the passes are recorded for nothing: then no number would do in their place, only passes without autograd.
    pub for_nothing: bool,
}

/// The kept graphs of a device, by line.
pub(super) fn kept_graphs(facts: &Facts) -> Vec<KeptGraph> {
    let mut lives = lives(facts);
    mark_saving(&mut lives);
    let phases = facts.program.phases.iter().enumerate();
    let backwards: Vec<usize> =
        phases.filter(|(_, phase)| **phase == Phase::Backward).map(|(at, _)| at).collect();
    let graphless = Graphless::of(facts, &lives, &backwards);
    let unused =
        facts.unused_graphs().iter().filter(|unused| unused.sure).map(|unused| unused.line).collect();
    let iterations = facts.program.iterations.iter().map(|one| one.start.position()).collect();
    let survey = GraphSurvey { lives, backwards, failures: failures(facts), graphless, unused, iterations };
    let captured = captured(facts);
    let (mut by_caller, mut lone): (BTreeMap<FrameId, KeptAtLine>, BTreeMap<FrameId, KeptAtLine>) =
        Default::default();
    for run in facts.program.loops.iter().filter(|run| keeps_for_itself(facts, run)) {
        let is_within = !facts.program.is_main(run) && survey.is_within_iterations(run);
        if let Some(found) = of_run(&survey, run, is_within) {
            by_caller.entry(found.caller).or_default().add(facts, run, found);
        }
        for found in lone::of_run(facts, (&survey.lives, &captured), run) {
            lone.entry(found.caller).or_default().add(facts, run, found);
        }
    }
    lone.retain(|caller, _| !by_caller.contains_key(caller));
    let unused = facts.unused_graphs().iter().filter(|unused| unused.sure).flat_map(|unused| &unused.kept);
    let unused: FxHashSet<AllocationId> = unused.copied().collect();
    by_caller.into_iter().chain(lone).map(|(caller, line)| line.kept_at(facts, caller, &unused)).collect()
}

/// Whether what a loop's turns leave behind is theirs to keep. What a package loops over inside one call of the user's (a solver, a
/// sampler), and what a module loops over (its layers), makes one graph, which that call hands on whole; only where the program's iterations are
/// such a loop's is it otherwise.
fn keeps_for_itself(facts: &Facts, run: &LoopRun) -> bool {
    facts.program.is_main(run) || (facts.frames.is_own(run.frame) && !is_of_a_module(facts, run))
}

/// Whether a loop's function is a module's, or called by one.
fn is_of_a_module(facts: &Facts, run: &LoopRun) -> bool {
    let stack = run.starts.first().and_then(|start| facts.trace.event(*start)?.stack);
    let python = stack.map_or(&[][..], |stack| facts.frames.python(stack));
    let function = facts.frames.function(run.frame);
    let looping = python.iter().rposition(|frame| facts.frames.function(*frame) == function);
    outermost(facts, python).zip(looping).is_some_and(|(module, looping)| module <= looping)
}

/// The passes of one line in one run, by turn; only turns in which the line ran. A loop whose every turn runs another line
/// (generated code) would else cost lines x turns.
type PassesByTurn = BTreeMap<usize, Pass>;

/// What runs of loops are judged by: lives by birth, the positions of backward passes' events and of requests that failed,
/// iterations without a graph.
struct GraphSurvey {
    lives: Vec<GraphLife>,
    backwards: Vec<usize>,
    failures: Vec<usize>,
    graphless: Graphless,
    /// The lines whose passes are seen to be recorded by autograd and used by no backward pass.
    unused: FxHashSet<FrameId>,
    /// Where the program's iterations begin, ascending.
    iterations: Vec<usize>,
}

impl GraphSurvey {
    /// Whether a loop is one within the iterations: its turns are more than these.
    fn is_within_iterations(&self, run: &LoopRun) -> bool {
        let first = run.starts.first().map_or(0, |start| start.position());
        self.begun(first, run.end.position()) < run.starts.len()
    }

    /// How many iterations begin between two positions.
    fn begun(&self, from: usize, to: usize) -> usize {
        self.iterations.partition_point(|at| *at < to) - self.iterations.partition_point(|at| *at < from)
    }
}

/// What one run of a loop keeps, at the line that keeps most.
fn of_run(survey: &GraphSurvey, run: &LoopRun, is_within: bool) -> Option<KeptByRun> {
    let turns = run.starts.len();
    let Ran { passes, along, graphless } = ran(survey, run, is_within);
    let has_graph = |turn: usize, pass: &Pass| pass.in_module || graphless.get(turn) == Some(&false);
    let is_recorded = |caller: &ModelCaller| survey.unused.contains(&caller.frame);
    let best = passes.into_iter().filter_map(|(caller, mut passes)| {
        passes.retain(|turn, pass| has_graph(*turn, pass));
        Some((weigh(&passes, turns, is_recorded(&caller))?, caller, passes))
    });
    let (_, caller, passes) = best.max_by_key(|(held, caller, _)| (*held, *caller))?;
    let keeping = passes.iter().filter(|(_, pass)| pass.keeps(is_recorded(&caller)));
    let keeping: Vec<(usize, &Pass)> = keeping.map(|(turn, pass)| (*turn, pass)).collect();
    let along = grown_old(&along);
    let along = keeping.iter().filter_map(|(turn, _)| along.get(*turn)).flatten().copied().collect();
    Some(KeptByRun {
        caller: caller.frame,
        passes: keeping.len(),
        others: 0,
        kept: keeping.iter().flat_map(|(_, pass)| pass.ids.iter().copied()).collect(),
        along,
        growth: growth(&keeping, run),
        retaining: keeping.iter().any(|(_, pass)| pass.turn.retaining),
        comes_to_numbers: comes_to_a_number(&survey.lives, run),
    })
}

/// What the turns of one run made.
#[derive(Default)]
struct Ran {
    /// The passes of each line.
    passes: FxHashMap<ModelCaller, PassesByTurn>,
    /// What outlives each turn for long, whoever made it.
    along: Vec<Vec<(AllocationId, Bytes)>>,
    /// Whether modules drop in each turn what they make.
    graphless: Vec<bool>,
}

fn ran(survey: &GraphSurvey, run: &LoopRun, is_within: bool) -> Ran {
    let GraphSurvey { lives, backwards, failures, graphless, .. } = survey;
    let turns = run.starts.len();
    let mut ran = Ran::default();
    for (turn, start) in run.starts.iter().enumerate() {
        let (from, to) = (start.position(), run.end_of(turn).position());
        ran.graphless.push(graphless.hold(from) || is_graphless(lives, backwards, &(from..to)));
        // A pass that memory ran out in would have had its backward pass yet.
        let after = failures.partition_point(|at| *at < from);
        let fails = failures.get(after).is_some_and(|at| *at < to);
        // Of a loop within the iterations the turn in which one of these begins holds what leads from the loop to itself, and the turns after it are too
        // short to tell how long that lives.
        if fails || (is_within && survey.begun(from, to) > 0) {
            ran.along.push(Vec::new());
            continue;
        }
        // It outlives two further turns, or all that are left.
        let until = run.end_of((turn + OUTLIVES.get()).min(turns - 1)).position();
        let begin = lives.partition_point(|life| life.born < from);
        let made = lives.get(begin..lives.partition_point(|life| life.born < to)).unwrap_or_default();
        let backward = backwards.partition_point(|at| *at < from) < backwards.partition_point(|at| *at < to);
        let operands = operands(made, to, until);
        let differentiated = Differentiated {
            at_all: backward,
            retaining: backward && !made.iter().any(|life| life.end == GraphEnd::Released),
            again: made
                .iter()
                .any(|life| life.dies >= until && life.function.is_none() && !life.like_a_weight),
        };
        let mut beside = Vec::new();
        for life in made {
            let stays = life.dies >= until;
            if stays {
                beside.push((life.id, life.bytes));
            }
            let Some(caller) = life.caller else { continue };
            let pass = ran.passes.entry(caller).or_default().entry(turn).or_default();
            pass.turn = differentiated;
            pass.note(life, stays, operands.contains(&life.id));
        }
        ran.along.push(beside);
    }
    ran
}

/// What outlives each turn, of those that are too young to tell no more than of one that is not: gradients and what the next turn replaces stand
/// at the end of the last turn, too.
fn grown_old(along: &[Vec<(AllocationId, Bytes)>]) -> Vec<Vec<AllocationId>> {
    let old = along.len().saturating_sub(OUTLIVES.get());
    let lasts = along.get(..old).and_then(<[_]>::last);
    let of_turn = |(turn, made): (usize, &Vec<(AllocationId, Bytes)>)| {
        let Some(lasts) = lasts.filter(|_| turn >= old) else {
            return made.iter().map(|(id, _)| *id).collect();
        };
        let mut room: FxHashMap<Bytes, usize> = FxHashMap::default();
        for (_, bytes) in lasts {
            *room.entry(*bytes).or_default() += 1;
        }
        let mut fits = |bytes: &Bytes| {
            let left = room.get_mut(bytes).filter(|left| **left > 0);
            left.map(|left| *left -= 1).is_some()
        };
        made.iter().filter(|(_, bytes)| fits(bytes)).map(|(id, _)| *id).collect()
    };
    along.iter().enumerate().map(of_turn).collect()
}

/// Whether the last that a loop computes is a number: where the line that runs the model computes the loss, too, its turns may begin between
/// the two.
fn comes_to_a_number(lives: &[GraphLife], run: &LoopRun) -> bool {
    let end = lives.partition_point(|life| life.born < run.end.position());
    let is_number = |life: &&GraphLife| life.bytes <= NUMBER;
    let mut computed = lives.iter().take(end).rev().filter(|life| life.caller.is_some());
    computed
        .find(|life| is_number(life) || life.end != GraphEnd::Scratch)
        .is_some_and(|last| is_number(&last))
}

/// The growth of what passes keep over the turns of a loop, if nothing of it is ever given back.
fn growth(keeping: &[(usize, &Pass)], run: &LoopRun) -> Option<Growth> {
    let stay = |(turn, pass): &(usize, &Pass)| Stay {
        first: *turn,
        last: (pass.until < usize::MAX).then_some(run.starts.len() - 1),
        bytes: pass.kept.get() as f64,
        weight: 1.0,
    };
    judge(&keeping.iter().map(stay).collect::<Vec<_>>(), run.starts.len())
}

/// The bytes that a line's passes keep, if these are graphs.
fn weigh(passes: &PassesByTurn, turns: usize, is_recorded: bool) -> Option<Bytes> {
    let ran = || passes.values().filter(|pass| pass.made > Bytes::ZERO);
    let keeping = ran().filter(|pass| pass.keeps(is_recorded)).count();
    // The last turn is too young to tell by itself.
    let tested = passes.range(..turns - 1).filter(|(_, pass)| pass.keeps(is_recorded)).count();
    let kept: Bytes = ran().map(|pass| pass.kept).sum();
    let released: Bytes = ran().map(|pass| pass.released).sum();
    let used = released.get() as f64 > RELEASED_BY_BACKWARD.get() * kept.get() as f64;
    (keeping >= FEWEST.get() && tested + 1 >= FEWEST.get() && !used).then_some(kept)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::at;
    use crate::unit::FunctionId;

    fn life(id: usize, born: usize, bytes: u64, (caller, place): (usize, usize)) -> GraphLife {
        GraphLife {
            id: AllocationId::at(id).unwrap(),
            bytes: Bytes(bytes),
            born,
            dies: usize::MAX,
            caller: FrameId::at(caller).map(|frame| ModelCaller { frame, way: caller }),
            in_module: true,
            place,
            line: place,
            operator: None,
            innermost: None,
            function: FunctionId::at(place),
            phase: Phase::Forward,
            like_a_weight: false,
            end: GraphEnd::Plain,
            in_hook: false,
            saving: lives::Saving::Unseen,
        }
    }

    fn survey(lives: Vec<GraphLife>) -> GraphSurvey {
        GraphSurvey {
            lives,
            backwards: Vec::new(),
            failures: Vec::new(),
            graphless: Graphless::default(),
            unused: FxHashSet::default(),
            iterations: Vec::new(),
        }
    }

    fn run(turns: usize, length: usize) -> LoopRun {
        let starts = (0..turns).map(|turn| at(turn * length)).collect();
        LoopRun { frame: FrameId::at(0).unwrap(), starts, end: at(turns * length) }
    }

    #[test]
    fn a_line_costs_by_its_passes_and_not_by_the_turns() {
        // Dense, the passes would take some 300 GB.
        let turns: usize = 50_000;
        let lives: Vec<GraphLife> = (0..turns).map(|turn| life(turn, turn, 1 << 20, (turn, turn))).collect();
        assert!(of_run(&survey(lives), &run(turns, 1), false).is_none());
    }

    #[test]
    fn three_passes_of_eleven_that_keep_everything_count() {
        // Each turn makes two tensors; those of turns 2, 5 and 8 stay.
        let lives: Vec<GraphLife> = (0..22)
            .map(|at| {
                let stays = [2, 5, 8].contains(&(at / 2));
                GraphLife {
                    dies: if stays { usize::MAX } else { at + 1 },
                    ..life(at, at, 1 << 20, (0, at % 2))
                }
            })
            .collect();
        let found = of_run(&survey(lives), &run(11, 2), false).unwrap();
        assert_eq!((found.passes, found.kept.len()), (3, 6));
        assert!(found.growth.is_some_and(|growth| growth.rises == 3));
    }

    #[test]
    fn what_leads_to_a_loop_within_the_iterations_is_not_kept_by_it() {
        // Four iterations of four turns: the first turn of each makes what the next iteration lets go of, three of these short turns later.
        let lives = (0..8).map(|id| {
            let born = id / 2 * 8 + id % 2;
            GraphLife { dies: born + 9, ..life(id, born, 1 << 20, (0, id % 2)) }
        });
        let (mut survey, run) = (survey(lives.collect()), run(16, 2));
        survey.iterations = vec![0, 8, 16, 24];
        assert!(survey.is_within_iterations(&run));
        assert!(of_run(&survey, &run, true).is_none());
        assert!(of_run(&survey, &run, false).is_some(), "they outlive two of its turns");
    }

    #[test]
    fn bytes_beyond_64_bits_do_not_wrap_to_nothing() {
        // Two tensors of 2^63 bytes a turn: wrapped, a pass would have kept 0 bytes.
        let lives: Vec<GraphLife> = (0..8).map(|at| life(at, at, 1 << 63, (0, at % 2))).collect();
        let found = of_run(&survey(lives), &run(4, 2), false).unwrap();
        assert_eq!((found.passes, found.kept.len()), (4, 8));
    }
}
