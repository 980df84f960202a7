//! One forward pass of a line, and whether it keeps its graph.
//!
//! In: what the pass made, by birth. Out: whether what stays of it is a graph: more than an output or two, and a good part of all that it made.
//! That is so where it was made in several functions or at many places, or on lines of which the operands stay with the result: an expression hands one
//! value on, and what it computed on the way has no name that could hold it (C++ frames show the operators of a line).

use rustc_hash::{FxHashMap, FxHashSet};

use super::lives::GraphLife;
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
    /// Whether any of it was made by a module.
    pub(super) in_module: bool,
    /// What stays, and the first event at which some of it goes.
    pub(super) ids: Vec<AllocationId>,
    pub(super) until: usize,
}

impl Pass {
    pub(super) fn note(&mut self, life: &GraphLife, stays: bool) {
        self.in_module |= life.in_module;
        self.made += life.bytes;
        if stays {
            self.until = if self.ids.is_empty() { life.dies } else { self.until.min(life.dies) };
            self.kept += life.bytes;
            self.released += if life.released { life.bytes } else { Bytes::ZERO };
            self.places.insert(life.place);
            self.functions.insert(life.function);
            self.ids.push(life.id);
            let line = self.lines.entry(life.line).or_default();
            line.bytes += life.bytes;
            line.has_operands |= line.operator.zip(life.operator).is_some_and(|(one, other)| one != other);
            line.operator = line.operator.or(life.operator);
        }
    }

    /// Whether most of what stays was made on lines of which the operands stay with the result.
    fn keeps_operands(&self) -> bool {
        let with_operands = self.lines.values().filter(|line| line.has_operands);
        with_operands.map(|line| line.bytes).sum::<Bytes>().times(2) > self.kept
    }

    /// Whether a graph is kept; of a pass that lifetimes show to be recorded for nothing any share is one.
    pub(super) fn keeps(&self, is_recorded: bool) -> bool {
        let share = if self.turn.at_all { KEPT_SHARE_AFTER_BACKWARD.get() } else { KEPT_SHARE.get() };
        let spread = is_spread(self.functions.len(), self.places.len()) || self.keeps_operands();
        let kept = self.kept.share_of(self.made);
        ((spread || self.turn.again) && (kept >= share || is_recorded))
            || (self.turn.retaining && kept >= KEPT_SHARE.get())
    }
}

/// Whether what stays was made at so many places that it is more than an output.
pub(super) fn is_spread(functions: usize, places: usize) -> bool {
    functions >= FUNCTIONS.get() || places >= PLACES.get()
}

#[cfg(test)]
mod tests {
    use super::*;
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
                function: FunctionId::at(0),
                like_a_weight: false,
                released: false,
            };
            pass.note(&life, true);
        }
        pass
    }

    #[test]
    fn the_operands_of_a_line_are_held_by_its_graph_alone() {
        assert!(pass([0, 0], [Some(0), Some(1)]).keeps(false), "torch.sin(w * x)");
        assert!(!pass([0, 0], [Some(0), Some(0)]).keeps(false), "two results of one operator: topk");
        assert!(!pass([0, 1], [Some(0), Some(1)]).keeps(false), "two lines, each with a value of its own");
        assert!(!pass([0, 0], [None, None]).keeps(false), "without C++ frames nothing tells");
    }
}
