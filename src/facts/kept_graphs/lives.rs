//! What may be part of a graph that is kept: what forward passes, and backward passes with `create_graph`, make.
//!
//! In: lifetimes, phases and stacks. Out: one [`GraphLife`] for each allocation of a forward pass, of the fetching of a batch, or that a backward pass
//! leaves behind, by birth, but for what a library keeps for itself; with the line of the user's that runs the model.

use rustc_hash::{FxHashMap, FxHashSet};

use super::hooks::in_hooks;
use crate::facts::Facts;
use crate::facts::module_calls::outermost;
use crate::facts::scratch::{ScratchSpan, scratch};
use crate::frames::MemorySign;
use crate::program::Phase;
use crate::role::Role;
use crate::unit::{AllocationId, Bytes, FrameId, FunctionId, Index, StackId};

/// What is asked of each allocation, by its birth.
pub(super) struct GraphLife {
    pub(super) id: AllocationId,
    pub(super) bytes: Bytes,
    pub(super) born: usize,
    pub(super) dies: usize,
    pub(super) caller: Option<ModelCaller>,
    /// Whether a module made it.
    pub(super) in_module: bool,
    pub(super) place: usize,
    /// The line with its calls, numbered.
    pub(super) line: usize,
    /// The operator of PyTorch that the line called for it, numbered; where C++ frames show it.
    pub(super) operator: Option<usize>,
    /// The innermost Python frame, and its function; none on the autograd engine's thread.
    pub(super) innermost: Option<FrameId>,
    pub(super) function: Option<FunctionId>,
    /// What the program did meanwhile. Outside of all passes and steps that are seen (`Other`) only an expression's operands tell of a graph.
    pub(super) phase: Phase,
    /// Whether a parameter is as large.
    pub(super) like_a_weight: bool,
    /// Whether a hook of the program's made it, which packs what autograd saves.
    pub(super) in_hook: bool,
    pub(super) end: GraphEnd,
    /// What other passes show of it ([`super::saving`]).
    pub(super) saving: Saving,
}

/// How a life ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum GraphEnd {
    /// An operator took it for itself and gave it back: no part of a graph, however large.
    Scratch,
    /// A backward pass let go of it.
    Released,
    /// Otherwise, or not at all.
    Plain,
}

/// What passes of other callers, which a backward pass goes through, do with what a line makes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Saving {
    /// Most of it a backward pass lets go of.
    Saved,
    /// Most of it goes before.
    Dropped,
    /// None of them runs the line.
    #[default]
    Unseen,
}

/// The line that runs the model, on one way to it: a helper that computes the loss is run for training, and for a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct ModelCaller {
    pub(super) frame: FrameId,
    /// The calls outside the model, numbered.
    pub(super) way: usize,
}

/// Everything that a forward pass or the fetching of a batch made, by birth.
pub(super) fn lives(facts: &Facts) -> Vec<GraphLife> {
    let mut ways: FxHashMap<&[FrameId], usize> = FxHashMap::default();
    let (mut lines, mut operators): (FxHashMap<&[FrameId], usize>, FxHashMap<&str, usize>) =
        Default::default();
    let mut calls: Vec<(usize, Option<usize>)> = Vec::new();
    let of_models = functions_of_models(facts);
    let mut callers: Vec<Option<(ModelCaller, bool)>> = Vec::new();
    for stack in facts.snapshot.stacks.ids() {
        let (line, operator) = (lines.len(), operators.len());
        calls.push((
            *lines.entry(facts.frames.python(stack)).or_insert(line),
            facts
                .frames
                .operator(facts.snapshot, stack)
                .map(|name| *operators.entry(name).or_insert(operator)),
        ));
        callers.push(caller(facts, stack, &of_models).map(|(frame, outer, in_module)| {
            let next = ways.len();
            (ModelCaller { frame, way: *ways.entry(outer).or_insert(next) }, in_module)
        }));
    }
    let weights = facts.parameter_sizes();
    let in_hooks = in_hooks(facts);
    let mut lives: Vec<GraphLife> = facts
        .timeline
        .iter()
        .filter_map(|(id, one)| {
            let (born, stack) = one.alloc.zip(one.stack)?;
            let phase = facts.phase(born);
            let freed = one.given_back();
            let computes = matches!(phase, Phase::Forward | Phase::Evaluation | Phase::Other);
            // With `create_graph` the backward pass makes a part of the graph, and gradients that the graph holds.
            let ours = match phase {
                Phase::Forward | Phase::Evaluation | Phase::Input | Phase::Other => true,
                Phase::Backward => freed.is_none(),
                _ => false,
            };
            let innermost = facts.frames.innermost(stack);
            let function = innermost.and_then(|frame| facts.frames.function(frame));
            let of_library = facts.role(id) == Role::Workspace;
            if !ours || of_library || (function.is_none() && phase != Phase::Backward) {
                return None;
            }
            let caller = callers.get(stack.position()).copied().flatten().filter(|_| computes);
            let (line, operator) = calls.get(stack.position()).copied()?;
            Some(GraphLife {
                id,
                line,
                operator,
                bytes: one.bytes,
                born: born.position(),
                dies: freed.map_or(usize::MAX, Index::position),
                caller: caller.map(|(caller, _)| caller),
                in_module: caller.is_some_and(|(_, in_module)| in_module),
                place: stack.position(),
                innermost,
                function,
                phase,
                like_a_weight: weights.contains(&one.bytes),
                end: match freed.map(|event| facts.phase(event)) {
                    Some(Phase::Backward) => GraphEnd::Released,
                    _ => GraphEnd::Plain,
                },
                in_hook: in_hooks.get(stack.position()) == Some(&true),
                saving: Saving::Unseen,
            })
        })
        .collect();
    lives.sort_by_key(|life| life.born);
    mark_scratch(&mut lives);
    lives
}

/// Marks what an operator takes for itself, of what no backward pass lets go of.
fn mark_scratch(lives: &mut [GraphLife]) {
    let span = |life: &GraphLife| ScratchSpan { born: life.born, dies: life.dies, line: life.line };
    let is_scratch = scratch(&lives.iter().map(span).collect::<Vec<_>>());
    for (life, _) in lives.iter_mut().zip(is_scratch).filter(|(_, is_scratch)| *is_scratch) {
        if life.end == GraphEnd::Plain {
            life.end = GraphEnd::Scratch;
        }
    }
}

/// The innermost user frame outside the outermost call of a module, or of a function that belongs to models, with the calls down to it, and whether there is such a call;
/// without one, the innermost. None where weights are made, moved or copied, or a metric is updated without a call of it: that is no pass, and records
/// nothing.
fn caller<'f>(
    facts: &'f Facts,
    stack: StackId,
    of_models: &FxHashSet<FunctionId>,
) -> Option<(FrameId, &'f [FrameId], bool)> {
    let python = facts.frames.python(stack);
    if python.iter().any(|frame| handles_weights(facts.frames.memory(*frame))) {
        return None;
    }
    let function = |frame: &FrameId| facts.frames.function(*frame);
    let method = python.iter().position(|frame| function(frame).is_some_and(|one| of_models.contains(&one)));
    let called = outermost(facts, python);
    let outside = method.into_iter().chain(called).min();
    if outside.is_none() && python.iter().any(|frame| facts.frames.memory(*frame) == MemorySign::Measures) {
        return None;
    }
    let outer = python.get(..outside.unwrap_or(python.len())).unwrap_or_default();
    let own = outer.iter().rposition(|frame| facts.frames.is_own(*frame))?;
    Some((*outer.get(own)?, outer.get(..=own)?, outside.is_some()))
}

/// The user's functions that calls of modules run: also where they are called by themselves, they are the model's.
fn functions_of_models(facts: &Facts) -> FxHashSet<FunctionId> {
    let stacks = facts.snapshot.stacks.ids().map(|stack| facts.frames.python(stack));
    let inside = stacks.filter_map(|python| python.get(outermost(facts, python)?..)).flatten();
    let own = inside.filter(|frame| facts.frames.is_own(**frame));
    own.filter_map(|frame| facts.frames.function(*frame)).collect()
}

fn handles_weights(sign: MemorySign) -> bool {
    use MemorySign::{Average, Build, Copy, CopyParameter, CopyTensor, Fill, Move, Read};
    matches!(sign, Average | Build | Copy | CopyParameter | CopyTensor | Fill | Move | Read)
}
