//! Forward passes that recorded an autograd graph for which no backward pass came.
//!
//! In: calls of modules and lifetimes. Out: for each calling line what it kept for nothing, and the lifetimes as they
//! would be without autograd.
//!
//! Without autograd the tensors inside a forward die inside it; what it returns, and a cache of keys and values, is a
//! small part by number. With autograd most of them live until a backward pass lets go of them one by one. Where most
//! of a call's tensors outlive the call and are let go of elsewhere, the graph died unused. Three things look alike and are
//! told apart: a graph that a backward pass with `retain_graph` did use (a backward ran in between, and let go of
//! nothing), one that a backward pass used while the program holds its outputs (the backward let go of the rest of this
//! very call: states kept by time step or by node), and activations that wait for their backward pass in a later
//! iteration (they die in it). A pass that memory ran out in, or behind, might have had its backward pass yet.
//!
//! A model of one layer keeps only its input. Then C++ frames decide, if there are any: a saved tensor that is let go
//! of outside the autograd engine.

mod backward;
mod training;
mod without_autograd;

use std::collections::{BTreeMap, BTreeSet};

use rustc_hash::FxHashMap;

pub use training::Trained;

use backward::{BackwardPasses, USED};
use training::Training;

use crate::facts::module_calls::{inner_calls, outermost};
use crate::facts::{Facts, ModuleCall};
use crate::frames::{GraphSign, MemorySign};
use crate::lives::{Change, Changes};
use crate::program::Phase;
use crate::role::Role;
use crate::snapshot::Action;
use crate::threshold::Threshold;
use crate::timeline::Allocation;
use crate::unit::{AllocationId, Bytes, EventIndex, FrameId, Index, IterationIndex, StackId};

/// The share of a call's bytes that has to outlive it for nothing. Recordings without `no_grad` measure 0.38 to 0.93,
/// training at most 0.24.
static SHARE: Threshold<f64> = Threshold::new("facts::unused_graphs::SHARE", 0.3);
/// The share of a call's tensors, by number: caches of keys and values hold most bytes of a call, but few tensors.
static SHARE_BY_NUMBER: Threshold<f64> = Threshold::new("facts::unused_graphs::SHARE_BY_NUMBER", 0.25);
/// Fewer tensors than this are a small model's output.
static FEWEST: Threshold<usize> = Threshold::new("facts::unused_graphs::FEWEST", 4);
/// The share of a line's calls that has to look so: a line that serves training as well does not.
static CALLS: Threshold<f64> = Threshold::new("facts::unused_graphs::CALLS", 0.8);

/// What a line's forward passes kept for nothing.
#[derive(Debug)]
pub struct UnusedGraph {
    /// The user's line that called the model.
    pub line: FrameId,
    /// A stack of such a call.
    pub stack: Option<StackId>,
    /// How many calls kept it; in how many iterations, where frames show it.
    pub calls: usize,
    /// What was kept, over all calls.
    pub kept: Vec<AllocationId>,
    /// The most that one call kept.
    pub most: Bytes,
    /// Whether it is seen that no backward pass was to come.
    pub sure: bool,
    /// Where backward passes use what the same code computes.
    pub trained: Trained,
    /// Whether C++ frames show saved tensors let go of, rather than lifetimes.
    pub seen_in_frames: bool,
    /// The lifetimes without autograd.
    pub changes: Changes,
}

/// All such lines, heaviest first. A network inside a model whose other networks train (a target, a frozen critic) is looked at by itself.
pub(super) fn unused_graphs(facts: &Facts) -> Vec<UnusedGraph> {
    let judge = Judge { facts, backward: BackwardPasses::of(facts), older: dropped_older(facts) };
    let mut found = judge.lines(facts.module_calls().iter(), |_| true);
    let inner = inner_calls(facts);
    let inner = inner.iter().filter(|call| judge.is_within_a_used_one(call));
    // A backward pass that runs while they stand may be theirs: that of an implicit layer runs inside another one.
    for (line, graph) in judge.lines(inner, |kept| !kept.sees_backward) {
        found.entry(line).or_insert(graph);
    }
    let mut found: Vec<UnusedGraph> = found.into_values().collect();
    if found.is_empty() {
        found = seen_to_be_dropped(facts, &judge.backward);
    }
    if !found.is_empty() {
        let training = Training::of(facts);
        for graph in &mut found {
            graph.trained = training.around(facts, graph.line);
        }
    }
    found.sort_by(|a, b| b.most.cmp(&a.most).then(a.line.cmp(&b.line)));
    found
}

/// What calls are judged by.
struct Judge<'f> {
    facts: &'f Facts<'f>,
    backward: BackwardPasses,
    older: BTreeMap<Bytes, Vec<AllocationId>>,
}

impl Judge<'_> {
    /// What some calls kept for nothing, by line, as far as it counts.
    fn lines<'c>(
        &self,
        calls: impl Iterator<Item = &'c ModuleCall>,
        counts: fn(&KeptForNothing) -> bool,
    ) -> BTreeMap<FrameId, UnusedGraph> {
        let Judge { facts, backward, older } = self;
        let mut calls_of: BTreeMap<usize, Vec<&ModuleCall>> = BTreeMap::new();
        for call in calls {
            calls_of.entry(call.callers).or_default().push(call);
        }
        let mut found: BTreeMap<FrameId, UnusedGraph> = BTreeMap::new();
        for calls in calls_of.values() {
            let unused: Vec<(&ModuleCall, KeptForNothing)> = calls
                .iter()
                .filter_map(|call| {
                    Some((*call, kept_for_nothing(facts, backward, older, call).filter(counts)?))
                })
                .collect();
            let Some(line) = calls.first().and_then(|call| call.line) else { continue };
            if unused.is_empty() || (unused.len() as f64) < CALLS.get() * calls.len() as f64 {
                continue;
            }
            let graph = found.entry(line).or_insert_with(|| UnusedGraph::at(line));
            for (call, kept) in unused {
                graph.add(facts, call, &kept);
            }
        }
        found
    }

    /// Whether a backward pass lets go of something that the outermost call around an inner one made: then autograd was on there.
    fn is_within_a_used_one(&self, inner: &ModuleCall) -> bool {
        let outer = self.facts.module_calls();
        let around = outer.partition_point(|call| call.start <= inner.start).checked_sub(1);
        around.and_then(|at| outer.get(at)).is_some_and(|call| {
            inner.start < call.end && let_go_by_backward(self.facts, call, usize::MAX).next().is_some()
        })
    }
}

impl UnusedGraph {
    fn at(line: FrameId) -> UnusedGraph {
        UnusedGraph {
            line,
            stack: None,
            calls: 0,
            kept: Vec::new(),
            most: Bytes::ZERO,
            sure: false,
            trained: Trained::default(),
            seen_in_frames: false,
            changes: Changes::default(),
        }
    }

    fn add(&mut self, facts: &Facts, call: &ModuleCall, kept: &KeptForNothing) {
        let KeptForNothing { tensors: kept, before, sure, .. } = kept;
        let bytes = facts.bytes(kept);
        // What was kept stands in the order in which it was made.
        let mut made = call.made.iter().enumerate();
        for id in kept {
            let place = made.find(|(_, made)| *made == id).map(|(place, _)| place);
            if let Some(end) = place.and_then(|place| without_autograd::end(facts, call, place)) {
                self.changes.set(*id, Change::EndAt(end));
            }
        }
        let first = kept.first().and_then(|id| facts.timeline.allocation(*id));
        self.stack = self.stack.or(first.and_then(|one| one.stack));
        self.calls += 1;
        self.most = self.most.max(bytes);
        self.sure |= *sure;
        self.kept.extend(kept);
        // The pass before would have kept nothing either.
        self.kept.extend(before);
        for id in before {
            self.changes.set(*id, Change::Remove);
        }
    }
}

/// What a call kept for nothing.
struct KeptForNothing {
    tensors: Vec<AllocationId>,
    /// What the pass before the recording kept, where this one's is still there at the end.
    before: Vec<AllocationId>,
    /// Whether no backward pass was to come.
    sure: bool,
    /// Whether a backward pass runs before all of it is gone.
    sees_backward: bool,
}

/// What a call made that outlives it and that no backward pass lets go of, if that is most of what it made.
fn kept_for_nothing(
    facts: &Facts,
    backward: &BackwardPasses,
    older: &BTreeMap<Bytes, Vec<AllocationId>>,
    call: &ModuleCall,
) -> Option<KeptForNothing> {
    let is_tensor = |id: &&AllocationId| facts.role(**id) != Role::Workspace;
    let made: Vec<AllocationId> = call.made.iter().filter(is_tensor).copied().collect();
    let outlives = |id: &AllocationId| {
        let Some(one) = facts.timeline.allocation(*id) else { return false };
        one.free_requested.is_none_or(|freed| {
            let phase = facts.phase(freed);
            freed.position() >= call.end && !matches!(phase, Phase::Backward | Phase::Recomputation)
        })
    };
    let output = made.last().copied();
    let kept: Vec<AllocationId> =
        made.iter().copied().filter(|id| Some(*id) != output && outlives(id)).collect();
    let (bytes, all) = (facts.bytes(&kept), facts.bytes(&made));
    let most =
        bytes.share_of(all) >= SHARE.get() && kept.len() as f64 >= SHARE_BY_NUMBER.get() * made.len() as f64;
    if kept.len() < FEWEST.get() || !most {
        return None;
    }
    let freed = |id: &AllocationId| facts.timeline.allocation(*id)?.free_requested;
    let by_backward =
        |id: &AllocationId| freed(id).is_some_and(|event| backward_frees(facts, call.end, event));
    let used: Vec<AllocationId> = made.iter().copied().filter(by_backward).collect();
    let end = facts.trace.events.len();
    let last = kept.iter().map(|id| freed(id).map_or(end, Index::position)).max()?;
    let unused = facts.bytes(&used).share_of(all) < USED.get()
        && (!backward.used_and_retained(call.end, last, bytes)
            || another_was_used(facts, backward, call, last)
            || backward.belong_to_later_calls(call.end, last))
        && !backward.cut_off(call.start, last);
    let before = if last == end { alike(facts, older, &kept) } else { Vec::new() };
    let stepped = facts.program.steps.last().is_some_and(|step| step.start.position() >= call.end);
    let sees_backward = backward.ran(call.end, last);
    let sure = last < end || (stepped && sees_backward) || facts.bytes(&before).times(2) >= bytes;
    unused.then_some(KeptForNothing { tensors: kept, before, sure, sees_backward })
}

/// Whether the backward passes between a call and a moment belong to another call: none runs in the call's own iteration any more, and one
/// in a later iteration lets go of what a call that came after had made.
fn another_was_used(facts: &Facts, backward: &BackwardPasses, call: &ModuleCall, until: usize) -> bool {
    let begun = facts.event(call.start).and_then(|event| facts.iteration_of(event));
    let Some(own) = begun.and_then(|iteration| facts.program.iterations.get(iteration.position())) else {
        return false;
    };
    let used = |other: &ModuleCall| is_used(facts, other, until);
    let calls = facts.module_calls();
    let after = calls.partition_point(|other| other.start < own.end.position());
    let mut later = calls.iter().skip(after).take_while(|other| other.end <= until);
    !backward.ran(call.end, own.end.position()) && later.any(used)
}

/// What is older than the recording and was let go of outside a backward pass, by size.
fn dropped_older(facts: &Facts) -> BTreeMap<Bytes, Vec<AllocationId>> {
    let mut dropped: BTreeMap<Bytes, Vec<AllocationId>> = BTreeMap::new();
    for (id, one) in facts.timeline.older() {
        let phase = one.free_requested.map(|event| facts.phase(event));
        if phase
            .is_some_and(|phase| !matches!(phase, Phase::Backward | Phase::Recomputation | Phase::ZeroGrad))
        {
            dropped.entry(one.bytes).or_default().push(id);
        }
    }
    dropped
}

/// Of older tensors as many of each size as there are among some others.
fn alike(
    facts: &Facts,
    older: &BTreeMap<Bytes, Vec<AllocationId>>,
    kept: &[AllocationId],
) -> Vec<AllocationId> {
    let mut wanted: BTreeMap<Bytes, usize> = BTreeMap::new();
    for one in kept.iter().filter_map(|id| facts.timeline.allocation(*id)) {
        *wanted.entry(one.bytes).or_default() += 1;
    }
    let of_size = |(bytes, many): (Bytes, usize)| older.get(&bytes).into_iter().flatten().copied().take(many);
    wanted.into_iter().flat_map(of_size).collect()
}

/// Of what a call made what backward passes behind it let go of before a position.
fn let_go_by_backward<'c>(
    facts: &'c Facts<'_>,
    call: &'c ModuleCall,
    until: usize,
) -> impl Iterator<Item = AllocationId> + 'c {
    let freed = move |id: &AllocationId| facts.timeline.allocation(*id)?.free_requested;
    let let_go = move |event: EventIndex| event.position() < until && backward_frees(facts, call.end, event);
    call.made.iter().copied().filter(move |id| freed(id).is_some_and(let_go))
}

/// Whether backward passes use a call's graph before a position.
fn is_used(facts: &Facts, call: &ModuleCall, until: usize) -> bool {
    let used: Vec<AllocationId> = let_go_by_backward(facts, call, until).collect();
    facts.bytes(&used).share_of(facts.bytes(&call.made)) >= USED.get()
}

/// Whether an event lies behind a call and in a backward pass.
fn backward_frees(facts: &Facts, call_end: usize, event: EventIndex) -> bool {
    event.position() >= call_end && facts.phase(event) == Phase::Backward
}

/// What C++ frames show to have been saved for a backward pass and let go of outside one.
fn seen_to_be_dropped(facts: &Facts, backward: &BackwardPasses) -> Vec<UnusedGraph> {
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
