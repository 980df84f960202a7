//! One forward pass of a line, and whether it keeps its graph.
//!
//! In: what the pass made, by birth. Out: whether what stays of it is a graph: more than an output or two, and a good part of all that it made.
//! That is so where it was made in several functions or at many places, or on lines of which the operands stay with the result: an expression hands one
//! value on, and what it computed on the way has no name that could hold it. C++ frames show the operators of a line; without them, that its last tensor
//! was handed on and has gone, while one of equal size that it made before stays.

use rustc_hash::{FxHashMap, FxHashSet};

use super::lives::{GraphEnd, GraphLife};
use super::saving::Weighed;
use crate::program::Phase;
use crate::threshold::Threshold;
use crate::unit::{AllocationId, Bytes, FunctionId};

/// The share of a pass's allocated bytes that has to stay. Passes with autograd keep 0.4 to 0.9; layers whose outputs a
/// hook collects 0.02, outputs of a pass without autograd less than 0.1.
pub(super) static KEPT_SHARE: Threshold<f64> = Threshold::new("facts::kept_graphs::pass::KEPT_SHARE", 0.35);
/// The share that is enough in a turn with a backward pass: `retain_graph=True` with a state that is not detached keeps
/// the part of the graph that leads to the state (0.22 in a language model of two LSTM layers), and what is kept of a
/// pass that a backward pass has gone through is else an output or two.
static KEPT_SHARE_AFTER_BACKWARD: Threshold<f64> =
    Threshold::new("facts::kept_graphs::pass::KEPT_SHARE_AFTER_BACKWARD", 0.15);
/// In how many functions what stays was made. Outputs and cached keys and values are made in one.
static FUNCTIONS: Threshold<usize> = Threshold::new("facts::kept_graphs::pass::FUNCTIONS", 2);
/// Or at how many places of one function, in models written without modules.
static PLACES: Threshold<usize> = Threshold::new("facts::kept_graphs::pass::PLACES", 4);

/// What backward passes did in a turn.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Differentiated {
    /// One ran.
    pub(super) at_all: bool,
    /// They let go of nothing at all that the turn made: they were told to retain the graph.
    pub(super) retaining: bool,
    /// They made tensors that stay and are no gradients of parameters, with `create_graph`: nothing but a graph keeps them.
    pub(super) again: bool,
}

/// What stays of a line in one pass.
#[derive(Default)]
struct LineResults {
    bytes: Bytes,
    operator: Option<usize>,
    /// Whether several operators made it: a line hands one value on, and the operands of that have no name.
    has_operands: bool,
}

/// What one pass of a line made, and what stays of it.
#[derive(Default)]
pub(super) struct Pass {
    pub(super) made: Bytes,
    pub(super) kept: Bytes,
    pub(super) released: Bytes,
    places: FxHashSet<usize>,
    functions: FxHashSet<Option<FunctionId>>,
    /// What stays of each line.
    lines: FxHashMap<usize, LineResults>,
    pub(super) turn: Differentiated,
    /// What stays and what goes, by what other passes save.
    weighed: Weighed,
    /// What stays of what hooks packed, and whether a backward pass let go of anything else of this pass.
    packed: Bytes,
    is_used: bool,
    /// Whether any of it was made by a module.
    pub(super) in_module: bool,
    /// Whether any of it was made in what is seen to be a pass.
    is_seen: bool,
    /// What stays, and the first event at which some of it goes.
    pub(super) ids: Vec<AllocationId>,
    pub(super) until: usize,
}

impl Pass {
    pub(super) fn note(&mut self, life: &GraphLife, stays: bool, is_operand: bool) {
        self.in_module |= life.in_module;
        self.is_seen |= life.phase != Phase::Other;
        self.made += if life.end == GraphEnd::Scratch { Bytes::ZERO } else { life.bytes };
        self.weighed.note(life, stays);
        if stays {
            self.until = if self.ids.is_empty() { life.dies } else { self.until.min(life.dies) };
            self.kept += life.bytes;
            self.released += if life.end == GraphEnd::Released { life.bytes } else { Bytes::ZERO };
            self.packed += if life.in_hook { life.bytes } else { Bytes::ZERO };
            self.places.insert(life.place);
            self.functions.insert(life.function);
            self.ids.push(life.id);
            let line = self.lines.entry(life.line).or_default();
            line.bytes += life.bytes;
            let operator = life.operator.filter(|_| life.phase != Phase::Other);
            line.has_operands |=
                is_operand || line.operator.zip(operator).is_some_and(|(one, other)| one != other);
            line.operator = line.operator.or(operator);
        } else {
            self.is_used |= life.end == GraphEnd::Released;
        }
    }

    /// Whether the program's hooks keep what they packed: a node lets go of all that it has saved, and a backward pass has gone through these.
    fn is_kept_by_hooks(&self) -> bool {
        self.is_used && self.packed.times(2) > self.kept
    }

    /// Whether most of what stays was made on lines of which the operands stay with the result.
    fn keeps_operands(&self) -> bool {
        let with_operands = self.lines.values().filter(|line| line.has_operands);
        with_operands.map(|line| line.bytes).sum::<Bytes>().times(2) > self.kept
    }

    /// Whether a graph is kept; of a pass that lifetimes show to be recorded for nothing any share is one.
    pub(super) fn keeps(&self, is_recorded: bool) -> bool {
        let share = if self.turn.at_all { KEPT_SHARE_AFTER_BACKWARD.get() } else { KEPT_SHARE.get() };
        let kept = self.kept.share_of(self.made);
        if self.is_kept_by_hooks() {
            return false;
        }
        let is_enough = (kept >= share && !self.weighed.is_plain()) || is_recorded;
        if !self.is_seen {
            return is_enough && self.keeps_operands();
        }
        let spread = is_spread(self.functions.len(), self.places.len()) || self.keeps_operands();
        ((spread || self.turn.again) && is_enough) || (self.turn.retaining && kept >= KEPT_SHARE.get())
    }
}

/// Of what a turn made (up to event `end`), what stays past `until` though the line that made it handed on something else: after it the line made a tensor of
/// equal size, and last of all one that outlived the line; neither stays. An operator with several results seldom makes two of equal size, and a line that
/// puts a value aside hands that on.
pub(super) fn operands(made: &[GraphLife], end: usize, until: usize) -> FxHashSet<AllocationId> {
    let mut operands = FxHashSet::default();
    let stays = |life: &GraphLife| life.dies >= until;
    let mut lines = made.chunk_by(|one, next| one.line == next.line).peekable();
    while let Some(line) = lines.next() {
        let left = lines.peek().and_then(|next| next.first()).map_or(end, |next| next.born);
        let hands_on = line.last().is_some_and(|last| last.dies > left && !stays(last));
        if !hands_on {
            continue;
        }
        let mut gone: FxHashSet<Bytes> = FxHashSet::default();
        for life in line.iter().rev() {
            if !stays(life) {
                gone.insert(life.bytes);
            } else if gone.contains(&life.bytes) {
                operands.insert(life.id);
            }
        }
    }
    operands
}

/// Whether what stays was made at so many places that it is more than an output.
pub(super) fn is_spread(functions: usize, places: usize) -> bool {
    functions >= FUNCTIONS.get() || places >= PLACES.get()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::kept_graphs::lives::Saving;
    use crate::unit::Index;

    /// A pass that makes two tensors with two operators, both of which stay, on lines of one function.
    fn pass(lines: [usize; 2], operators: [Option<usize>; 2]) -> Pass {
        let mut pass = Pass::default();
        for at in 0..2 {
            let life = GraphLife {
                id: AllocationId::at(at).unwrap(),
                bytes: Bytes::MIB,
                born: at,
                dies: usize::MAX,
                caller: None,
                in_module: true,
                place: at,
                line: lines[at],
                operator: operators[at],
                innermost: None,
                function: FunctionId::at(0),
                phase: Phase::Forward,
                like_a_weight: false,
                end: GraphEnd::Plain,
                in_hook: false,
                saving: Saving::Unseen,
            };
            pass.note(&life, true, false);
        }
        pass
    }

    #[test]
    fn the_operands_of_a_line_are_held_by_its_graph_alone() {
        assert!(pass([0, 0], [Some(0), Some(1)]).keeps(false), "torch.sin(w * x)");
        assert!(!pass([0, 0], [Some(0), Some(0)]).keeps(false), "two results of one operator: topk");
        assert!(!pass([0, 1], [Some(0), Some(1)]).keeps(false), "two lines, each with a value of its own");
        assert!(!pass([0, 0], [None, None]).keeps(false), "without C++ frames no operator tells");
    }

    #[test]
    fn without_operators_the_order_of_a_line_tells_its_operands() {
        // What line 0 makes, with its size in MiB and whether it stays; line 1 comes next, and then all that does not stay goes.
        let of = |line: &[(u64, bool)]| -> Vec<usize> {
            let life = |(at, &(mib, stays)): (usize, &(u64, bool))| GraphLife {
                id: AllocationId::at(at).unwrap(),
                bytes: Bytes::MIB.times(mib),
                born: at,
                dies: if stays { usize::MAX } else { 20 },
                caller: None,
                in_module: false,
                place: 0,
                line: usize::from(at >= line.len()),
                operator: None,
                innermost: None,
                function: FunctionId::at(0),
                phase: Phase::Forward,
                like_a_weight: false,
                end: GraphEnd::Plain,
                in_hook: false,
                saving: Saving::Unseen,
            };
            let made: Vec<GraphLife> = line.iter().chain(&[(1, false)]).enumerate().map(life).collect();
            let mut found: Vec<usize> = operands(&made, 10, 50).into_iter().map(Index::position).collect();
            found.sort_unstable();
            found
        };
        assert_eq!(
            of(&[(64, true), (64, true), (64, false), (1, false)]),
            [0, 1],
            "(p.exp() * (p - q)).mean()"
        );
        assert_eq!(of(&[(64, false), (64, true), (64, false)]), [1], "torch.clamp(x - rate * slope, min=0)");
        assert!(of(&[(64, false), (64, true)]).is_empty(), "kept.append(2 * x + 1)");
        assert!(of(&[(64, true), (32, false)]).is_empty(), "scores, indices = x.topk(k)");
    }
}
