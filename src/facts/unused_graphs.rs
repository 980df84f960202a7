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
//! Where operators take much for themselves (forward-mode derivatives inside of a pass) little of all that a call makes is a graph: then what they take does not count, if what
//! stays is made all over the model.
//!
//! A call may make little (one step of a solver): then it counts if it keeps what calls with a backward pass save, and drops what those drop ([`saved`]).
//!
//! A model of one layer keeps only its input. Then C++ frames decide, if there are any: a saved tensor that is let go
//! of outside the autograd engine.

mod backward;
mod dropped;
mod saved;
mod training;
mod without_autograd;

use std::collections::BTreeMap;

pub use training::Trained;

use backward::{BackwardPasses, USED};
use dropped::seen_to_be_dropped;
use saved::SavedPlaces;
use training::Training;

use crate::facts::module_calls::inner_calls;
use crate::facts::scratch::{ScratchSpan, scratch};
use crate::facts::{Facts, ModuleCall};
use crate::lives::{Change, Changes};
use crate::program::Phase;
use crate::role::Role;
use crate::threshold::Threshold;
use crate::unit::{AllocationId, Bytes, EventIndex, FrameId, FunctionId, Index, StackId};

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
    let (backward, saved) = (BackwardPasses::of(facts), SavedPlaces::of(facts));
    let judge = Judge { facts, backward, saved, older: dropped_older(facts) };
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
    saved: SavedPlaces<'f>,
    older: BTreeMap<Bytes, Vec<AllocationId>>,
}

impl Judge<'_> {
    /// What some calls kept for nothing, by line, as far as it counts.
    fn lines<'c>(
        &self,
        calls: impl Iterator<Item = &'c ModuleCall>,
        counts: fn(&KeptForNothing) -> bool,
    ) -> BTreeMap<FrameId, UnusedGraph> {
        let facts = self.facts;
        let mut calls_of: BTreeMap<usize, Vec<&ModuleCall>> = BTreeMap::new();
        for call in calls {
            calls_of.entry(call.callers).or_default().push(call);
        }
        let mut found: BTreeMap<FrameId, UnusedGraph> = BTreeMap::new();
        for calls in calls_of.values() {
            let unused: Vec<(&ModuleCall, KeptForNothing)> = calls
                .iter()
                .filter_map(|call| Some((*call, self.kept_for_nothing(call).filter(counts)?)))
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

    /// What a call made that outlives it and that no backward pass lets go of, if that is most of what it made.
    fn kept_for_nothing(&self, call: &ModuleCall) -> Option<KeptForNothing> {
        let Judge { facts, backward, saved, older } = self;
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
        let is_most_of = |made: &[AllocationId]| {
            bytes.share_of(facts.bytes(made)) >= SHARE.get()
                && kept.len() as f64 >= SHARE_BY_NUMBER.get() * made.len() as f64
        };
        let is_graph = || {
            is_most_of(&made)
                || (is_made_all_over(facts, &kept) && is_most_of(&without_scratch(facts, &made)))
        };
        if !(kept.len() >= FEWEST.get() && is_graph() || saved.are_kept(&kept, &made)) {
            return None;
        }
        let freed = |id: &AllocationId| facts.timeline.allocation(*id)?.free_requested;
        let used: Vec<AllocationId> = made.iter().copied().filter(|id| is_let_go(facts, call, *id)).collect();
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

/// Whether no function made most of it: an output, a list of features and a cache of keys and values are made in one.
fn is_made_all_over(facts: &Facts, tensors: &[AllocationId]) -> bool {
    let mut by_function: BTreeMap<Option<FunctionId>, Bytes> = BTreeMap::new();
    for one in tensors.iter().filter_map(|id| facts.timeline.allocation(*id)) {
        let innermost = one.stack.and_then(|stack| facts.frames.innermost(stack));
        let function = innermost.and_then(|frame| facts.frames.function(frame));
        *by_function.entry(function).or_default() += one.bytes;
    }
    let all: Bytes = by_function.values().copied().sum();
    by_function.values().all(|bytes| bytes.times(2) <= all)
}

/// What a call made, without what its operators took for themselves.
fn without_scratch(facts: &Facts, made: &[AllocationId]) -> Vec<AllocationId> {
    let span = |id: &AllocationId| -> Option<ScratchSpan<&[FrameId]>> {
        let one = facts.timeline.allocation(*id)?;
        let dies = one.free_requested.map_or(usize::MAX, Index::position);
        Some(ScratchSpan { born: one.alloc?.position(), dies, line: facts.frames.python(one.stack?) })
    };
    let Some(spans) = made.iter().map(span).collect::<Option<Vec<_>>>() else { return made.to_vec() };
    let is_scratch = scratch(&spans);
    made.iter().zip(is_scratch).filter(|(_, is_scratch)| !is_scratch).map(|(id, _)| *id).collect()
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

/// Whether a backward pass behind a call lets go of what it made.
fn is_let_go(facts: &Facts, call: &ModuleCall, made: AllocationId) -> bool {
    let freed = facts.timeline.allocation(made).and_then(|one| one.free_requested);
    freed.is_some_and(|event| backward_frees(facts, call.end, event))
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
