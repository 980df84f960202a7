//! Saved tensors that C++ frames show to be let go of outside the autograd engine.
//!
//! In: frees with their stacks. Out: for each line that ran a model what it kept for nothing, and the lifetimes without autograd.

use std::collections::{BTreeMap, BTreeSet};

use rustc_hash::FxHashMap;

use super::UnusedGraph;
use super::backward::BackwardPasses;
use crate::facts::Facts;
use crate::facts::module_calls::outermost;
use crate::frames::{GraphSign, MemorySign};
use crate::lives::Change;
use crate::snapshot::Action;
use crate::timeline::Allocation;
use crate::unit::{AllocationId, Bytes, FrameId, Index, IterationIndex, StackId};

/// What C++ frames show to have been saved for a backward pass and let go of outside one.
pub(super) fn seen_to_be_dropped(facts: &Facts, backward: &BackwardPasses) -> Vec<UnusedGraph> {
    let drops: Vec<bool> =
        facts.snapshot.stacks.ids().map(|stack| drops_saved_tensor(facts, stack)).collect();
    let mut found: BTreeMap<FrameId, UnusedGraph> = BTreeMap::new();
    let mut passes: BTreeSet<(FrameId, Option<IterationIndex>)> = BTreeSet::new();
    let mut dropped: Vec<(FrameId, AllocationId, &Allocation)> = Vec::new();
    for (id, one) in facts.timeline.iter() {
        let Some((born, freed)) = one.alloc.zip(one.free_requested) else { continue };
        let stack = facts.trace.event(freed).and_then(|event| event.stack);
        let Some(stack) = stack.filter(|stack| drops.get(stack.position()) == Some(&true)) else { continue };
        let (born_at, freed_at) = (born.position(), freed.position());
        let used = backward.ran(born_at, freed_at) || backward.cut_off(born_at, freed_at);
        if used || facts.ends_held(one) > 1 || makes_weights(facts, one) {
            continue;
        }
        // The line that ran the model, if one did: one and the same graph may be dropped at several.
        let called = one.stack.and_then(|made| Some((model_line(facts, made)?, made)));
        let Some((line, stack)) = called.or_else(|| Some((facts.site(stack)?, stack))) else { continue };
        let graph = found.entry(line).or_insert_with(|| UnusedGraph::at(line));
        graph.seen_in_frames = true;
        graph.sure = true;
        graph.stack = graph.stack.or(Some(stack));
        passes.insert((line, facts.born_in(one)));
        graph.most = graph.most.max(one.bytes);
        graph.kept.push(id);
        dropped.push((line, id, one));
    }
    // The variable that held one is bound again where the next one is made.
    let alike = Lookalikes::of(facts, dropped.iter().map(|(_, _, one)| *one));
    for (line, id, one) in dropped {
        let graph = found.get_mut(&line);
        if let Some((graph, end)) = graph.zip(alike.after(one).and_then(|position| facts.event(position))) {
            graph.changes.set(id, Change::EndAt(end));
        }
    }
    for (line, _) in passes {
        if let Some(graph) = found.get_mut(&line) {
            graph.calls += 1;
        }
    }
    found.into_values().collect()
}

/// Whether it is computed for a module's weights (pruning, a parametrization): the next forward pass computes them again, and what that keeps of
/// them the module holds itself.
fn makes_weights(facts: &Facts, one: &Allocation) -> bool {
    one.stack.is_some_and(|stack| facts.frames.shows(stack, MemorySign::Reparametrizes))
}

/// The user's line outside the outermost module call of a stack.
fn model_line(facts: &Facts, stack: StackId) -> Option<FrameId> {
    let python = facts.frames.python(stack);
    let outside = python.get(..outermost(facts, python)?)?;
    outside.iter().rev().copied().find(|frame| facts.frames.is_own(*frame))
}

/// Where there are allocations like some given ones: of the same size under the same stack.
struct Lookalikes(FxHashMap<(Option<StackId>, Bytes), Vec<usize>>);

impl Lookalikes {
    fn of<'a>(facts: &Facts, sought: impl Iterator<Item = &'a Allocation>) -> Lookalikes {
        let mut births: FxHashMap<_, Vec<usize>> =
            sought.map(|one| ((one.stack, one.bytes), Vec::new())).collect();
        if !births.is_empty() {
            for (position, event) in facts.trace.events.iter().enumerate() {
                if event.action == Action::Alloc
                    && let Some(births) = births.get_mut(&(event.stack, event.size))
                {
                    births.push(position);
                }
            }
        }
        Lookalikes(births)
    }

    /// The next after an allocation.
    fn after(&self, one: &Allocation) -> Option<usize> {
        let (born, births) = (one.alloc?.position(), self.0.get(&(one.stack, one.bytes))?);
        births.get(births.partition_point(|at| *at <= born)).copied()
    }
}

/// Whether a stack lets go of a saved tensor outside the engine. What dies while a tensor is being saved (inside the
/// pack hook of `saved_tensors_hooks`) stands under `SavedVariable`, too, but under its constructor
/// (`torch/csrc/autograd/saved_variable.cpp`).
fn drops_saved_tensor(facts: &Facts, stack: StackId) -> bool {
    let frames = facts.snapshot.stacks.get(stack);
    let signs = || frames.iter().map(|frame| facts.frames.graph(*frame));
    GraphSign::release(signs()) && !signs().any(|sign| sign == GraphSign::Engine)
}
