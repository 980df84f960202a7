//! Forward passes whose activations are kept, though no backward pass lets go of them.
//!
//! In: the turns of every loop and the lifetimes. Out: for each line of the user's code that runs a model (the frame that
//! makes the outermost module call) what its passes left behind, where that is what autograd saves: not an output or
//! two, but a good part of all that the pass allocated, at several places of the model, turn after turn.
//!
//! What a backward pass releases in the end is no retention (a loss summed over micro-batches, back-propagation through
//! time); nor is what the next turn's result replaces (a forward pass without a backward).

use std::collections::{BTreeMap, BTreeSet};

use rustc_hash::{FxHashMap, FxHashSet};

use crate::facts::Facts;
use crate::frames::PhaseSign;
use crate::program::{LoopRun, Phase};
use crate::unit::{AllocationId, Bytes, EventIndex, FrameId, FunctionId, Index, StackId};

/// The share of a pass's allocated bytes that has to stay. Passes with autograd keep 0.4 to 0.9; layers whose outputs a
/// hook collects 0.02, outputs of a pass without autograd less than 0.1.
const KEPT_SHARE: f64 = 0.35;
/// The share that is enough in a turn with a backward pass: `retain_graph=True` with a state that is not detached keeps
/// the part of the graph that leads to the state (0.22 in a language model of two LSTM layers), and what is kept of a
/// pass that a backward pass has gone through is else an output or two.
const KEPT_SHARE_AFTER_BACKWARD: f64 = 0.15;
/// In how many functions what stays was made. Outputs and cached keys and values are made in one.
const FUNCTIONS: usize = 2;
/// Or at how many places of one function, in models written without modules.
const PLACES: usize = 4;
/// The share of turns that have to keep theirs.
const TURNS: f64 = 0.6;
/// The share of what outlived its turn that a backward pass may release; more means that it is used after all.
const RELEASED_BY_BACKWARD: f64 = 0.1;

/// What the passes of one line left behind.
#[derive(Debug)]
pub struct Retention {
    /// The user's frame that runs the model.
    pub caller: FrameId,
    /// Passes that kept their activations.
    pub passes: usize,
    /// The activations, oldest first.
    pub kept: Vec<AllocationId>,
    /// What else those turns made that lives as long: inputs, results of other lines, gradients with a graph of their own.
    pub along: Vec<AllocationId>,
}

/// What is asked of each allocation, by its id.
struct Life {
    id: AllocationId,
    bytes: Bytes,
    born: usize,
    dies: usize,
    caller: Option<FrameId>,
    place: usize,
    /// That of the innermost Python frame; none on the autograd engine's thread.
    function: Option<FunctionId>,
    released: bool,
}

#[derive(Default)]
struct Pass {
    made: Bytes,
    kept: Bytes,
    released: Bytes,
    places: FxHashSet<usize>,
    functions: FxHashSet<Option<FunctionId>>,
    /// Whether a backward pass ran in its turn.
    backward: bool,
    ids: Vec<AllocationId>,
}

/// The retentions of a device, by line.
pub(super) fn retentions(facts: &Facts) -> Vec<Retention> {
    let lives = lives(facts);
    let phases = facts.program.phases.iter().enumerate();
    let backwards: Vec<usize> =
        phases.filter(|(_, phase)| **phase == Phase::Backward).map(|(at, _)| at).collect();
    let mut by_caller: BTreeMap<FrameId, Line> = BTreeMap::new();
    for run in &facts.program.loops {
        let Some(kept) = of_run(&lives, &backwards, run) else { continue };
        let line = by_caller.entry(kept.caller).or_default();
        *line.passes.entry(run.frame).or_default() += kept.passes;
        line.kept.extend(kept.kept);
        line.along.extend(kept.along);
    }
    let found = by_caller.into_iter().map(|(caller, line)| Retention {
        caller,
        passes: line.passes.values().copied().max().unwrap_or(0),
        along: line.along.difference(&line.kept).copied().collect(),
        kept: line.kept.into_iter().collect(),
    });
    found.collect()
}

#[derive(Default)]
struct Line {
    passes: BTreeMap<FrameId, usize>,
    kept: BTreeSet<AllocationId>,
    along: BTreeSet<AllocationId>,
}

/// Everything that a forward pass or the fetching of a batch made, by birth.
fn lives(facts: &Facts) -> Vec<Life> {
    let callers: Vec<Option<FrameId>> =
        facts.snapshot.stacks.ids().map(|stack| caller(facts, stack)).collect();
    let mut lives: Vec<Life> = facts
        .timeline
        .iter()
        .filter_map(|(id, one)| {
            let (born, stack) = one.alloc.zip(one.stack)?;
            let phase = facts.phase(born);
            let freed = one.free_requested.or(one.free);
            let forward = matches!(phase, Phase::Forward | Phase::Evaluation);
            // With `create_graph` the backward pass makes a part of the graph, and gradients that the graph holds.
            let ours = match phase {
                Phase::Forward | Phase::Evaluation | Phase::Input | Phase::Other => true,
                Phase::Backward => freed.is_none(),
                _ => false,
            };
            let function = function(facts, stack);
            if !ours || (function.is_none() && phase != Phase::Backward) {
                return None;
            }
            Some(Life {
                id,
                bytes: one.bytes,
                born: born.position(),
                dies: freed.map_or(usize::MAX, Index::position),
                caller: callers.get(stack.position()).copied().flatten().filter(|_| forward),
                place: stack.position(),
                function,
                released: freed.is_some_and(|event| facts.phase(event) == Phase::Backward),
            })
        })
        .collect();
    lives.sort_by_key(|life| life.born);
    lives
}

/// The innermost user frame outside the outermost module call of a stack; without such a call, the innermost.
fn caller(facts: &Facts, stack: StackId) -> Option<FrameId> {
    let python = facts.frames.python(stack);
    let is_call = |frame: &FrameId| facts.frames.phase(*frame) == PhaseSign::ModuleCall;
    let outside = python.iter().position(is_call).unwrap_or(python.len());
    let outer = python.get(..outside).unwrap_or_default();
    outer.iter().rev().copied().find(|frame| facts.frames.is_own(*frame))
}

/// The function of a stack's innermost Python frame.
fn function(facts: &Facts, stack: StackId) -> Option<FunctionId> {
    facts.frames.function(*facts.frames.python(stack).last()?)
}

/// The passes of one line in one run, by turn; only turns in which the line ran. A loop whose every turn runs another line
/// (generated code) would else cost lines x turns.
type Passes = BTreeMap<usize, Pass>;

/// What one run of a loop keeps, at the line that keeps most.
fn of_run(lives: &[Life], backwards: &[usize], run: &LoopRun) -> Option<Retention> {
    let turns = run.starts.len();
    let mut passes: FxHashMap<FrameId, Passes> = FxHashMap::default();
    let mut along: Vec<Vec<AllocationId>> = Vec::with_capacity(turns);
    for turn in 0..turns {
        let (from, to) = (position(run.starts.get(turn).copied())?, run.end_of(turn).position());
        // It outlives two further turns, or all that are left.
        let until = run.end_of((turn + 2).min(turns - 1)).position();
        let begin = lives.partition_point(|life| life.born < from);
        let backward = backwards.partition_point(|at| *at < from) < backwards.partition_point(|at| *at < to);
        let mut beside = Vec::new();
        for life in lives.iter().skip(begin).take_while(|life| life.born < to) {
            let stays = life.dies >= until;
            if stays {
                beside.push(life.id);
            }
            let Some(caller) = life.caller else { continue };
            let pass = passes.entry(caller).or_default().entry(turn).or_default();
            pass.backward = backward;
            pass.made += life.bytes;
            if stays {
                pass.kept += life.bytes;
                pass.released += if life.released { life.bytes } else { Bytes::ZERO };
                pass.places.insert(life.place);
                pass.functions.insert(life.function);
                pass.ids.push(life.id);
            }
        }
        along.push(beside);
    }
    let best =
        passes.into_iter().filter_map(|(caller, passes)| Some((weigh(&passes, turns)?, caller, passes)));
    let (_, caller, passes) = best.max_by_key(|(held, caller, _)| (*held, *caller))?;
    let keeping: Vec<(usize, &Pass)> =
        passes.iter().filter(|(_, pass)| pass.keeps()).map(|(turn, pass)| (*turn, pass)).collect();
    let tested = keeping.iter().filter(|(turn, _)| turn + 1 < turns).count();
    let kept = keeping.iter().flat_map(|(_, pass)| pass.ids.iter().copied()).collect();
    let along = keeping.iter().filter_map(|(turn, _)| along.get(*turn)).flatten().copied().collect();
    Some(Retention { caller, passes: tested + 1, kept, along })
}

/// The bytes that a line's passes keep, if that is a retention.
fn weigh(passes: &Passes, turns: usize) -> Option<Bytes> {
    // The last turn is too young to tell.
    let tested = || passes.range(..turns - 1).map(|(_, pass)| pass).filter(|pass| pass.made > Bytes::ZERO);
    let keeping = tested().filter(|pass| pass.keeps()).count();
    let kept: Bytes = tested().map(|pass| pass.kept).sum();
    let released: Bytes = tested().map(|pass| pass.released).sum();
    let enough = keeping >= 2 && keeping as f64 >= TURNS * tested().count() as f64;
    (enough && released.get() as f64 <= RELEASED_BY_BACKWARD * kept.get() as f64).then_some(kept)
}

impl Pass {
    fn keeps(&self) -> bool {
        let share = if self.backward { KEPT_SHARE_AFTER_BACKWARD } else { KEPT_SHARE };
        let spread = self.functions.len() >= FUNCTIONS || self.places.len() >= PLACES;
        spread && self.kept.get() as f64 >= share * self.made.get() as f64
    }
}

fn position(event: Option<EventIndex>) -> Option<usize> {
    event.map(Index::position)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(position: usize) -> EventIndex {
        EventIndex::at(position).unwrap()
    }

    fn life(id: usize, born: usize, bytes: u64, (caller, place): (usize, usize)) -> Life {
        Life {
            id: AllocationId::at(id).unwrap(),
            bytes: Bytes(bytes),
            born,
            dies: usize::MAX,
            caller: FrameId::at(caller),
            place,
            function: FunctionId::at(place),
            released: false,
        }
    }

    fn run(turns: usize, length: usize) -> LoopRun {
        let starts = (0..turns).map(|turn| event(turn * length)).collect();
        LoopRun { frame: FrameId::at(0).unwrap(), starts, end: event(turns * length) }
    }

    #[test]
    fn a_line_costs_by_its_passes_and_not_by_the_turns() {
        // Dense, the passes would take some 300 GB.
        let turns: usize = 50_000;
        let lives: Vec<Life> = (0..turns).map(|turn| life(turn, turn, 1 << 20, (turn, turn))).collect();
        assert!(of_run(&lives, &[], &run(turns, 1)).is_none());
    }

    #[test]
    fn bytes_beyond_64_bits_do_not_wrap_to_nothing() {
        // Two tensors of 2^63 bytes a turn: wrapped, a pass would have kept 0 bytes.
        let lives: Vec<Life> = (0..8).map(|at| life(at, at, 1 << 63, (0, at % 2))).collect();
        let found = of_run(&lives, &[], &run(4, 2)).unwrap();
        assert_eq!((found.passes, found.kept.len()), (4, 8));
    }
}
