//! Iterations of a loop that does not train: inference, generation, simulation.
//!
//! In: the loops that the stacks show. Out: a [`Cut`] of the loop that is the program's main one, if there is any.
//!
//! No step says which loop matters, so the loops themselves must:
//!
//! - Back edges of one call are gathered into loops by the lines they span; a loop in a loop of the same function is told
//!   apart by its higher target line. One edge in each iteration, of which a few jump a little lower, is no inner loop but a
//!   line that not every iteration runs.
//! - Of the outermost loops the main one is not set-up (run by a constructor, or capturing CUDA graphs into private pools),
//!   preferably calls modules, and allocates most often. What a constructor, or a function that calls itself, repeats
//!   without calling a module is never it: layers that are built, or built anew while a function walks through a model.
//! - A loop that goes round while saved tensors of one pass wait for their backward pass is a part of that pass; so is one most of
//!   whose turns save something for a backward pass behind it (a rollout, a solver).
//! - Where one inner loop makes 90 % of a loop's allocations and bytes *and* begins its iterations with an input of its own
//!   (an allocation outside any module call), the inner one iterates: batches within epochs, and not tokens within a
//!   request, layers within a batch, or steps within a pass whose backward comes behind them. Where the outer one's turns
//!   call a module before the inner one begins, they have an input of their own: it is encoded, and then decoded or searched.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use super::iterations::{Cut, heads, tile};
use super::loops::{Activation, Edge, EdgeKind, Loops};
use super::paths::{Paths, Thread};
use super::pending::AwaitingBackward;
use super::tally::{Sum, TraceTotals};
use crate::frames::Owner;
use crate::snapshot::{Action, Event};

/// How deep loops of one function may nest.
const MOST_NESTED: usize = 8;
/// Loops of one call that are looked at; the ones with most edges are taken.
const MOST_LOOPS: usize = 64;
/// The share of an outer loop's allocations and bytes that an inner one must make, in percent.
const WHOLE: u64 = 90;

/// One loop in one call.
#[derive(Debug, Clone)]
struct LoopCandidate {
    node: u32,
    line: u32,
    /// Depth of the call, then of the loop among those of the same call.
    depth: (usize, usize),
    start: usize,
    end: usize,
    edges: Vec<Edge>,
    sum: Sum,
    constructing: bool,
    /// Whether a constructor runs it, or a function that called itself.
    builds: bool,
}

impl LoopCandidate {
    /// Whether it only prepares the real work.
    fn is_setup(&self) -> bool {
        self.constructing || self.sum.private * 10 > self.sum.allocations
    }

    /// The first events of its turns, ascending.
    fn turns(&self) -> Vec<usize> {
        let mut starts: Vec<usize> = self.edges.iter().map(|edge| edge.event).collect();
        starts.push(self.start);
        starts.sort_unstable();
        starts.dedup();
        starts
    }
}

/// What the search looks at.
pub(super) struct StepSearch<'a> {
    pub(super) events: &'a [Event],
    pub(super) paths: &'a Paths,
    pub(super) loops: &'a Loops,
    pub(super) tally: &'a TraceTotals<'a>,
    pub(super) pending: &'a AwaitingBackward,
    /// Whose paths these are: a worker's loop over its tasks is seldom the user's.
    pub(super) thread: Thread,
}

/// The main loop of a program without steps, outside of what waits for a backward pass.
pub(super) fn main_loop(stage: &StepSearch<'_>) -> Option<Cut> {
    let pending = stage.pending;
    let candidates = stage.candidates();
    let works = outermost(&candidates)
        .filter(|one| !one.builds || one.sum.in_modules > 0)
        .filter(|one| !pending.spans(one.start, one.end) && !pending.is_fed_by(&one.turns(), one.end));
    let best = works.max_by_key(|one| {
        (!one.is_setup(), one.sum.in_modules > 0, one.sum.allocations, Reverse(one.start))
    })?;
    stage.cut(best, &candidates)
}

/// The loop that replays CUDA graphs next to a loop that trains: outside it, not set-up, and with more iterations. The steps
/// inside a graph leave no events, so the loop that shows steps is only its warm-up.
pub(super) fn replaying_loop(stage: &StepSearch<'_>, training: &Cut) -> Option<Cut> {
    let first = *training.starts.first()?;
    let candidates = stage.candidates();
    let best = outermost(&candidates)
        .filter(|one| !one.is_setup() && (one.start >= training.end || one.end <= first))
        .max_by_key(|one| (one.sum.allocations, Reverse(one.start)))?;
    (best.edges.len() + 1 > training.starts.len()).then(|| stage.cut(best, &candidates)).flatten()
}

/// The candidates that no other one holds.
fn outermost(candidates: &[LoopCandidate]) -> impl Iterator<Item = &LoopCandidate> {
    let mut until = 0;
    candidates.iter().filter(move |one| {
        let outside = one.end > until;
        until = until.max(one.end);
        outside
    })
}

impl StepSearch<'_> {
    /// All loops: the user's; a library's where the user has none, or none that runs a model while a library's does (an evaluation by a trainer, and
    /// the user's own code goes through its results afterwards); a worker's whosever they are. By start, the outer one first.
    fn candidates(&self) -> Vec<LoopCandidate> {
        let edges = without_chance_reentries(self.loops);
        let is_users = |edge: &Edge| self.thread == Thread::Busiest || self.origin_is_user(edge.node);
        let (users, others): (Vec<Edge>, Vec<Edge>) = edges.into_iter().partition(is_users);
        let runs_a_model = |found: &[LoopCandidate]| found.iter().any(|one| one.sum.in_modules > 0);
        let mut found = self.gather(users);
        if !runs_a_model(&found) {
            let packaged = self.gather(others);
            if found.is_empty() || runs_a_model(&packaged) {
                found = packaged;
            }
        }
        found.sort_by_key(|one| (one.start, Reverse(one.end), one.depth));
        found
    }

    fn origin_is_user(&self, node: u32) -> bool {
        self.loops.nodes.get(node as usize).is_some_and(|one| one.owner == Owner::User)
    }

    fn gather(&self, edges: Vec<Edge>) -> Vec<LoopCandidate> {
        let mut by_call: BTreeMap<u32, Vec<Edge>> = BTreeMap::new();
        for edge in edges {
            by_call.entry(edge.activation).or_default().push(edge);
        }
        let mut found = Vec::new();
        for (call, edges) in by_call {
            if let Some(call) = self.loops.activations.get(call as usize) {
                self.nest(call, edges, 0, &mut found);
            }
        }
        found
    }

    /// Splits the edges of one call into loops and the loops inside them.
    fn nest(&self, call: &Activation, edges: Vec<Edge>, level: usize, found: &mut Vec<LoopCandidate>) {
        let mut groups = by_lines(edges);
        groups.sort_by_key(|group| Reverse(group.len()));
        groups.truncate(MOST_LOOPS);
        for group in groups {
            let Some(mut one) = self.candidate(call, group, level) else { continue };
            let inner = self.split(call, &mut one);
            found.push(one);
            if !inner.is_empty() && level < MOST_NESTED {
                self.nest(call, inner, level + 1, found);
            }
        }
    }

    fn candidate(&self, call: &Activation, mut edges: Vec<Edge>, level: usize) -> Option<LoopCandidate> {
        edges.sort_by_key(|edge| edge.event);
        let (first, last) = (*edges.first()?, *edges.last()?);
        let line = edges.iter().map(|edge| edge.to).min()?;
        let highest = edges.iter().map(|edge| edge.highest).max()?;
        let mut start = None;
        for &(event, at) in call.visits.iter().take_while(|(event, _)| *event < first.event) {
            start = if at >= line { start.or(Some(event)) } else { None };
        }
        let start = start.unwrap_or(call.entry);
        let from = call.visits.partition_point(|(event, _)| *event <= last.event);
        let past = call.visits.iter().skip(from).find(|(_, at)| *at > highest || *at < line);
        let end = past.map(|(event, _)| *event).or(call.end).unwrap_or(self.events.len());
        let node = self.loops.nodes.get(call.node as usize)?;
        // An inner loop is left and entered again: what its outer one does in between is not its own.
        let sum = match level {
            0 => self.tally.between(start, end),
            _ => self.at_lines(call, (start, end), &edges),
        };
        Some(LoopCandidate {
            node: call.node,
            line,
            depth: (node.depth, level),
            start,
            end,
            edges,
            sum,
            constructing: node.constructing,
            builds: node.constructing || node.recursive,
        })
    }

    /// Takes the edges of inner loops out of a candidate and returns them.
    fn split(&self, call: &Activation, one: &mut LoopCandidate) -> Vec<Edge> {
        let (own, higher): (Vec<Edge>, Vec<Edge>) = one.edges.iter().partition(|edge| edge.to == one.line);
        let Some(whole) = own.iter().map(|edge| edge.highest).min() else { return Vec::new() };
        let passes = |edge: &Edge| edge.kind == EdgeKind::Back && edge.highest >= whole;
        // An inner loop goes round at least twice, hence at least as often as the outer one.
        let varied = higher.iter().filter(|edge| passes(edge)).count() < own.len();
        let (mut own, mut inner) = (own, Vec::new());
        for edge in higher {
            if varied && passes(&edge) { own.push(edge) } else { inner.push(edge) }
        }
        own.sort_by_key(|edge| edge.event);
        let encodes = || {
            let turns: Vec<usize> =
                [one.start].into_iter().chain(own.iter().map(|edge| edge.event)).collect();
            self.encode_first(&turns, one.end, entries(call, &inner))
        };
        if inner.is_empty() || (self.bring_input(&inner) && self.fill(call, one, &inner) && !encodes()) {
            return Vec::new();
        }
        one.edges = own;
        inner
    }

    /// Whether the lines of an inner loop make nearly everything of the outer one: then they are one loop for us.
    fn fill(&self, call: &Activation, outer: &LoopCandidate, inner: &[Edge]) -> bool {
        self.at_lines(call, (outer.start, outer.end), inner).fills(&outer.sum, WHOLE)
    }

    /// What a stretch of a call allocates at the lines of a loop.
    fn at_lines(&self, call: &Activation, (start, end): (usize, usize), edges: &[Edge]) -> Sum {
        let lines = span(edges);
        let mut sum = Sum::default();
        let from = call.visits.partition_point(|(event, _)| *event < start);
        let visits = call.visits.iter().skip(from).take_while(|(event, _)| *event < end);
        let after = call.visits.iter().skip(from + 1).map(|(event, _)| *event).chain([end]);
        for (&(event, line), next) in visits.zip(after) {
            if lines.contains(&line) {
                sum += self.tally.between(event, next.min(end));
            }
        }
        sum
    }

    /// Whether most iterations that these edges begin first allocate outside a module call.
    fn bring_input(&self, edges: &[Edge]) -> bool {
        let bring = edges.iter().filter(|edge| {
            let events = self.events.iter().skip(edge.event).take(200);
            let first = events
                .filter(|event| event.action == Action::Alloc)
                .find_map(|event| self.paths.of_event(event));
            first.and_then(|path| self.paths.get(path)).is_some_and(|path| !path.calls_module)
        });
        bring.count() * 2 > edges.len()
    }

    /// The iterations of `best`, or of the loops inside it that do its work.
    fn cut(&self, best: &LoopCandidate, candidates: &[LoopCandidate]) -> Option<Cut> {
        let mut best = best.clone();
        for _ in 0..MOST_NESTED {
            let Some(inner) = self.descend(&best, candidates) else { break };
            best = inner;
        }
        best.edges.sort_by_key(|edge| edge.event);
        let mut cut = tile(self.loops, &best.edges, best.node, self.events.len());
        (cut.starts.len() >= 2).then(|| {
            let last = cut.starts.last().copied().unwrap_or(0);
            let end = best.end.max(last + 1);
            cut.end = self.loops.left_by_head(last, end, &heads(&best.edges)).unwrap_or(end);
            cut
        })
    }

    /// Whether most turns of a loop that run an inner one call a module before it begins: what comes in is encoded, and then
    /// decoded, denoised or searched. `turns` are the first events of the loop's turns, `runs` those of the inner one's runs, both ascending.
    fn encode_first(&self, turns: &[usize], end: usize, runs: impl Iterator<Item = usize>) -> bool {
        let (mut all, mut encoded) = (0, 0);
        let mut turns = turns.iter().copied().peekable();
        let mut runs = runs.peekable();
        while let Some(turn) = turns.next() {
            let next = turns.peek().copied().unwrap_or(end);
            while runs.next_if(|run| *run < turn).is_some() {}
            if let Some(run) = runs.next_if(|run| *run < next) {
                all += 1;
                encoded += usize::from(self.tally.between(turn, run).in_modules > 0);
            }
        }
        encoded * 2 > all
    }

    /// The inner loop that makes up nearly all of `outer`, with the edges of both.
    fn descend(&self, outer: &LoopCandidate, candidates: &[LoopCandidate]) -> Option<LoopCandidate> {
        let mut groups: BTreeMap<(u32, u32), Vec<&LoopCandidate>> = BTreeMap::new();
        for one in candidates {
            let inside = one.start >= outer.start && one.end <= outer.end && one.depth > outer.depth;
            if inside {
                groups.entry((one.node, one.line)).or_default().push(one);
            }
        }
        let fits = groups.into_values().filter(|group| {
            let edges: Vec<Edge> = group.iter().flat_map(|one| one.edges.iter().copied()).collect();
            let sum: Sum = group.iter().map(|one| one.sum).sum();
            let is_fed = |one: &&&LoopCandidate| self.pending.is_fed_by(&one.turns(), one.end);
            edges.len() > outer.edges.len()
                && sum.fills(&outer.sum, WHOLE)
                && self.bring_input(&edges)
                && !self.encode_first(&outer.turns(), outer.end, group.iter().map(|one| one.start))
                && group.iter().filter(is_fed).count() * 2 <= group.len()
        });
        let group = fits.min_by_key(|group| group.first().map(|one| (one.depth, one.start)))?;
        let mut inner = (*group.first()?).clone();
        inner.edges = group.iter().flat_map(|one| one.edges.iter().copied()).collect();
        inner.edges.extend(outer.edges.iter().copied());
        (inner.start, inner.end, inner.sum) = (outer.start, outer.end, outer.sum);
        Some(inner)
    }
}

/// The lines that a loop runs through.
fn span(edges: &[Edge]) -> RangeInclusive<u32> {
    let lowest = edges.iter().map(|edge| edge.to).min().unwrap_or(0);
    let highest = edges.iter().map(|edge| edge.highest).max().unwrap_or(0);
    lowest..=highest
}

/// Where a call comes to the lines of a loop from others, ascending.
fn entries<'c>(call: &'c Activation, edges: &[Edge]) -> impl Iterator<Item = usize> + 'c {
    let lines = span(edges);
    let mut within = false;
    call.visits.iter().filter_map(move |(event, line)| {
        let was = std::mem::replace(&mut within, lines.contains(line));
        (within && !was).then_some(*event)
    })
}

/// Edges grouped so that the line spans of different groups do not overlap.
fn by_lines(mut edges: Vec<Edge>) -> Vec<Vec<Edge>> {
    edges.sort_by_key(|edge| (edge.to, edge.event));
    let mut groups: Vec<(Vec<Edge>, u32)> = Vec::new();
    for edge in edges {
        match groups.last_mut().filter(|(_, highest)| edge.to <= *highest) {
            Some((group, highest)) => {
                *highest = edge.highest.max(*highest);
                group.push(edge);
            }
            None => groups.push((vec![edge], edge.highest.max(edge.to))),
        }
    }
    groups.into_iter().map(|(group, _)| group).collect()
}

/// All edges but re-entries that happen within an iteration: a line that calls twice (`f(x) + f(y)`) does so in nearly every
/// one. A single re-entry of a line that shows no back edge is chance, too.
fn without_chance_reentries(loops: &Loops) -> Vec<Edge> {
    let mut lines: BTreeMap<(u32, u32), (Vec<usize>, Vec<usize>)> = BTreeMap::new();
    for edge in &loops.edges {
        let (back, again) = lines.entry((edge.activation, edge.to)).or_default();
        if edge.kind == EdgeKind::Back { back.push(edge.event) } else { again.push(edge.event) }
    }
    let keep = |edge: &&Edge| {
        let Some((back, again)) = lines.get(&(edge.activation, edge.to)) else { return true };
        if edge.kind == EdgeKind::Back {
            return true;
        }
        if back.is_empty() {
            return again.len() >= 2;
        }
        let pairs = back.iter().zip(back.iter().skip(1));
        let hit = pairs
            .filter(|&(a, b)| again.partition_point(|one| one < b) > again.partition_point(|one| one <= a));
        hit.count() * 2 < back.len()
    };
    loops.edges.iter().filter(keep).copied().collect()
}

#[cfg(test)]
mod tests;
