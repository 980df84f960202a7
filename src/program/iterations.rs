//! Iterations of a loop that trains: back edges and optimizer steps, each keeping the other honest.
//!
//! In: the loops that the stacks show and the steps that PyTorch marked. Out: a [`Cut`]: where iterations begin.
//!
//! - Between two steps the program went round a loop that encloses the step. So among the back edges between them only
//!   those count whose call was running at the step, and that jump to the step's line or above: loops over layers,
//!   parameters or evaluation batches are not on the step's path. The shallowest of these calls is the loop (an epoch's
//!   end shows in an outer one), the first edge in it the boundary.
//! - The calls so found are searched for edges of the same kind that no step marks: iterations that `GradScaler` skipped, the
//!   ones before the first step, an incomplete last one.
//! - Two optimizers in one iteration (GANs) need no rule: no edge lies between their steps. Where one of them has a loop of its
//!   own, that loop's iterations hold unequal numbers of steps, and the loop around it is taken.
//! - Where no optimizer is seen and backward passes set the pace, a loop in a function that is called after such a pass is a solver's.
//! - A loop inside the main one that shows in few of its turns (over optimizers, which leave a mark where they make their state) parts none, where all
//!   turns hold as many steps without it.
//! - Where all other iterations hold one step, a first one with several is parted behind each: there was nothing yet to free
//!   on the loop's own line, so that no edge shows.
//! - Iterations tile the loop: each ends where the next begins, so an evaluation in between belongs to the one before (and
//!   its events have the phase of an evaluation). The last ends when the outermost loop on the step's path is left.

use std::collections::BTreeMap;

use super::loops::{Activation, Edge, EdgeKind, Loops};
use super::marks::Marks;
use crate::snapshot::{Action, Event};
use crate::unit::FrameId;

/// Where iterations begin and the last one ends.
#[derive(Debug, Clone, Default)]
pub(super) struct Cut {
    /// The first event of each, ascending.
    pub(super) starts: Vec<usize>,
    /// The event after the last.
    pub(super) end: usize,
    /// The looping line.
    pub(super) header: Option<Header>,
    /// Whether the recording may have begun inside the first one.
    pub(super) begins_inside: bool,
    /// The first event of each micro-batch, where gradients are accumulated.
    pub(super) micro_batches: Vec<usize>,
}

/// A loop's place.
#[derive(Debug, Clone, Copy)]
pub(super) struct Header {
    /// The frame at the line to which most iterations jump back.
    pub(super) frame: FrameId,
    /// Its node.
    pub(super) node: u32,
    /// The highest line of the body that was seen.
    pub(super) last_line: u32,
}

impl Cut {
    /// First event and event after the last of each iteration.
    pub(super) fn spans(&self) -> impl Iterator<Item = (usize, usize)> {
        let ends = self.starts.iter().skip(1).copied().chain([self.end]);
        self.starts.iter().copied().zip(ends)
    }

    /// The iteration that holds an event.
    pub(super) fn find(&self, at: usize) -> Option<usize> {
        let position = self.starts.partition_point(|&start| start <= at).checked_sub(1)?;
        (at < self.end).then_some(position)
    }

    /// Ends the last iteration where the loop's teardown begins, in which all goes that the loop held. Where frees have no stacks of their own
    /// it follows what the iteration itself lets go of at its end without a seam: that is taken to be as many tensors at most as any other lets go of there.
    pub(super) fn leave_out_teardown(&mut self, events: &[Event]) {
        let last_freed = |(start, end): (usize, usize)| {
            let inside = events.get(start..end).unwrap_or_default();
            let is_free =
                |event: &&Event| matches!(event.action, Action::FreeRequested | Action::FreeCompleted);
            inside.iter().rev().take_while(is_free).count()
        };
        let ends: Vec<usize> = self.spans().map(last_freed).collect();
        if let Some((&last, others)) = ends.split_last()
            && let Some(&most) = others.iter().max()
        {
            self.end -= last.saturating_sub(most);
        }
    }
}

/// What the edges at the steps say of one node.
#[derive(Debug, Clone, Copy)]
struct Targets {
    lowest: u32,
    highest: u32,
    /// The lowest line at which the node stood when a step ended.
    step_line: u32,
}

/// The iterations of the loop that encloses the steps; `None` if no loop does.
pub(super) fn by_steps(loops: &Loops, marks: &Marks, events: usize) -> Option<Cut> {
    let picks = picks(loops, marks, events);
    let mut targets: BTreeMap<u32, Targets> = BTreeMap::new();
    for &(edge, step_line) in &picks {
        let one = targets.entry(edge.node).or_insert(Targets { lowest: u32::MAX, highest: 0, step_line });
        one.lowest = one.lowest.min(edge.to);
        one.highest = one.highest.max(edge.to);
        one.step_line = one.step_line.min(step_line);
    }
    let mut bounds: Vec<Edge> = picks.iter().map(|&(edge, _)| edge).collect();
    bounds.extend(loops.edges.iter().filter(|edge| {
        targets.get(&edge.node).is_some_and(|one| {
            (one.lowest..=one.highest).contains(&edge.to)
                && edge.to <= one.step_line
                && edge.highest >= one.highest
        })
    }));
    bounds.sort_by_key(|edge| edge.event);
    even(loops, marks, &bounds, events)
}

/// Nested loops that are tried, from the innermost.
const MOST_LEVELS: usize = 6;

/// The iterations of the innermost loop into which the steps fall evenly. Where one loop trains the critic five times and
/// the generator's step follows outside it, that is the loop around both.
fn even(loops: &Loops, marks: &Marks, bounds: &[Edge], events: usize) -> Option<Cut> {
    // Of two edges to one line the one that calls the same again lies deeper than the one that comes from below.
    let level = |edge: &Edge| (edge.depth, edge.to, edge.kind == EdgeKind::Reentry);
    let mut levels: Vec<(usize, u32, bool)> = bounds.iter().map(level).collect();
    levels.sort_unstable();
    levels.dedup();
    let main = main_node(loops, bounds)?;
    let special = if marks.has_optimizer() {
        without_strays(loops, marks, (bounds, main), events)
    } else {
        around_solvers(loops, marks, bounds, events)
    };
    if special.is_some() {
        return special;
    }
    let all = part(tile(loops, bounds, main, events), marks);
    if !marks.has_optimizer() {
        return Some(all);
    }
    if is_even(&all, marks) {
        return Some(at_joints(all, bounds, loops, marks));
    }
    let outer = levels.iter().rev().skip(1).take(MOST_LEVELS).find_map(|&most| {
        let kept: Vec<Edge> = bounds.iter().filter(|edge| level(edge) <= most).copied().collect();
        let cut = tile(loops, &kept, main_node(loops, &kept)?, events);
        (cut.starts.len() >= 2 && is_even(&cut, marks) && holds_most(&cut, marks)).then_some(cut)
    });
    outer.or_else(|| Some(at_joints(all, bounds, loops, marks)))
}

/// The turns of the main loop alone, where a loop inside it shows in few of them, and all hold as many steps without it: a loop over optimizers leaves its mark where
/// they make their state, and hardly a trace in the turns after.
fn without_strays(
    loops: &Loops,
    marks: &Marks,
    (bounds, main): (&[Edge], u32),
    events: usize,
) -> Option<Cut> {
    let own: Vec<Edge> = bounds.iter().filter(|edge| edge.node == main).copied().collect();
    let (depth, turns) = (own.first()?.depth, tile(loops, &own, main, events));
    let is_stray = |edge: &&Edge| edge.depth > depth && turns.find(edge.event).is_some();
    let strays = bounds.iter().filter(is_stray).count();
    if strays == 0 || strays * 2 >= own.len() {
        return None;
    }
    let kept: Vec<Edge> = bounds.iter().filter(|edge| !is_stray(edge)).copied().collect();
    let cut = tile(loops, &kept, main, events);
    let counts = steps_in(&cut, marks);
    // The last may be cut short.
    let (_, whole) = counts.split_last()?;
    let usual = *whole.first()?;
    (usual > 0 && whole.iter().all(|count| *count == usual)).then_some(cut)
}

/// The turns of the outermost loop, where most of those that call a function with a loop of its own run a backward pass before: the loop of a solver
/// (conjugate gradients, a line search) takes up what that pass left.
fn around_solvers(loops: &Loops, marks: &Marks, bounds: &[Edge], events: usize) -> Option<Cut> {
    let depth = bounds.iter().map(|edge| edge.depth).min()?;
    let (outer, inner): (Vec<Edge>, Vec<Edge>) = bounds.iter().partition(|edge| edge.depth == depth);
    let cut = tile(loops, &outer, main_node(loops, &outer)?, events);
    let called = |(start, end): (usize, usize)| {
        let calls = inner.iter().filter_map(|edge| loops.activations.get(edge.activation as usize));
        calls.map(|call| call.entry).filter(|entry| (start..end).contains(entry)).min()
    };
    let runs_before = |(start, call): (usize, usize)| {
        let next = marks.paces.partition_point(|pace| pace.end <= start);
        marks.paces.get(next).is_some_and(|pace| pace.end <= call)
    };
    let solving: Vec<(usize, usize)> =
        cut.spans().filter_map(|(start, end)| Some((start, called((start, end))?))).collect();
    let after_a_pass = solving.iter().filter(|one| runs_before(**one)).count();
    (cut.starts.len() >= 2 && after_a_pass * 2 > solving.len()).then_some(cut)
}

/// Whether nine tenths of the steps lie in iterations. A loop over stages of the training is not the loop of the program where others follow it.
fn holds_most(cut: &Cut, marks: &Marks) -> bool {
    steps_in(cut, marks).iter().sum::<usize>() * 10 >= marks.paces.len() * 9
}

/// Parts each iteration in which the loop that began it is left before a further step: a step of the next loop, to which no edge leads.
fn at_joints(mut cut: Cut, bounds: &[Edge], loops: &Loops, marks: &Marks) -> Cut {
    let steps_between = |from: usize, to: usize| {
        let first = marks.paces.partition_point(|step| step.end <= from);
        marks.paces.get(first).is_some_and(|step| step.end <= to)
    };
    let edge_at = |event: usize| {
        let at = bounds.partition_point(|edge| edge.event < event);
        bounds.get(at).filter(|edge| edge.event == event)
    };
    let joint = |(start, end): (usize, usize)| {
        let edge = edge_at(start)?;
        let call = loops.activations.get(edge.activation as usize)?;
        let next = edge_at(end).filter(|next| next.activation == edge.activation);
        let joint = next.and_then(|next| enters_below(call, edge, next)).or(call.end)?;
        (joint < end && steps_between(start, joint) && steps_between(joint, end)).then_some(joint)
    };
    let joints: Vec<usize> = cut.spans().filter_map(joint).collect();
    cut.starts.extend(joints);
    cut.starts.sort_unstable();
    cut
}

/// The event at which a call comes to the lines of a loop that stands below the one that it is in, before the first edge of that.
fn enters_below(call: &Activation, edge: &Edge, next: &Edge) -> Option<usize> {
    let stands_below = next.to > edge.highest.max(edge.from);
    let from = call.visits.partition_point(|(event, _)| *event <= edge.event);
    let later = call.visits.get(from..).unwrap_or_default().iter();
    let mut inside = later.take_while(|(event, _)| *event < next.event);
    inside.find(|(_, line)| *line >= next.to).filter(|_| stands_below).map(|(event, _)| *event)
}

/// The node with most of the edges; the shallower one of two that have as many.
fn main_node(loops: &Loops, bounds: &[Edge]) -> Option<u32> {
    let mut counts: BTreeMap<u32, usize> = BTreeMap::new();
    for edge in bounds {
        *counts.entry(edge.node).or_insert(0) += 1;
    }
    let depth = |node: u32| loops.nodes.get(node as usize).map_or(0, |one| one.depth);
    counts
        .into_iter()
        .max_by_key(|&(node, count)| (count, std::cmp::Reverse(depth(node))))
        .map(|(node, _)| node)
}

/// How many steps each iteration holds.
fn steps_in(cut: &Cut, marks: &Marks) -> Vec<usize> {
    let mut counts = vec![0_usize; cut.starts.len()];
    for step in &marks.paces {
        if let Some(count) = cut.find(step.end.saturating_sub(1)).and_then(|at| counts.get_mut(at)) {
            *count += 1;
        }
    }
    counts
}

/// Parts a first iteration that holds several steps where all others hold at most one.
fn part(mut cut: Cut, marks: &Marks) -> Cut {
    let counts = steps_in(&cut, marks);
    let Some((&first, others)) = counts.split_first() else { return cut };
    if !marks.has_optimizer() || first < 2 || others.len() < 2 || others.iter().any(|&count| count > 1) {
        return cut;
    }
    let inside = marks.paces.iter().filter(|step| cut.find(step.end.saturating_sub(1)) == Some(0));
    let behind: Vec<usize> = inside.take(first - 1).map(|step| step.end).collect();
    cut.starts.splice(1..1, behind);
    cut.starts.dedup();
    cut
}

/// Whether nine tenths of the steps share their iterations with equally many. Iterations without a step (skipped, or a
/// micro-batch) do not count, nor do the first and the last one, which may be cut short.
fn is_even(cut: &Cut, marks: &Marks) -> bool {
    let counts = steps_in(cut, marks);
    let inner = if counts.len() > 3 { counts.get(1..counts.len() - 1).unwrap_or_default() } else { &counts };
    let mut shares: BTreeMap<usize, usize> = BTreeMap::new();
    for &count in inner.iter().filter(|&&count| count > 0) {
        *shares.entry(count).or_insert(0) += count;
    }
    let whole: usize = shares.values().sum();
    shares.values().max().is_none_or(|&usual| usual * 10 >= whole * 9)
}

/// For each step the back edge that ends its iteration, with the line at which its call stood at the step.
fn picks(loops: &Loops, marks: &Marks, events: usize) -> Vec<(Edge, u32)> {
    let mut picks = Vec::new();
    for (at, step) in marks.paces.iter().enumerate() {
        let until = marks.paces.get(at + 1).map_or(events, |next| next.end);
        let Some(running) = loops.running.get(at) else { break };
        let from = loops.edges.partition_point(|edge| edge.event < step.end);
        let enclosing =
            loops.edges.iter().skip(from).take_while(|edge| edge.event < until).filter_map(|edge| {
                let (_, line) = running.iter().find(|&&(call, _)| call == edge.activation)?;
                (edge.to <= *line).then_some((*edge, *line))
            });
        // The shallowest, and of these the first.
        if let Some(pick) = enclosing.reduce(|best, one| if one.0.depth < best.0.depth { one } else { best })
        {
            picks.push(pick);
        }
    }
    picks
}

/// The iterations between `bounds` (by event, not empty): from the first event of the loop to the event that leaves it.
pub(super) fn tile(loops: &Loops, bounds: &[Edge], main: u32, events: usize) -> Cut {
    let Some((first, last)) = bounds.first().zip(bounds.last()) else { return Cut::default() };
    let start = start_of(loops, bounds, first);
    let begins_inside = Some(start) == loops.first;
    let start = if begins_inside { 0 } else { start };
    let mut starts = vec![start];
    for edge in bounds {
        if starts.last().is_none_or(|&before| before < edge.event) {
            starts.push(edge.event);
        }
    }
    let end = end_of(loops, bounds, last.event).unwrap_or(events);
    let end = loops.left_by_head(last.event, end, &heads(bounds)).unwrap_or(end);
    Cut { starts, end, header: header(bounds, main), begins_inside, micro_batches: Vec::new() }
}

/// The lines that edges go to, with their nodes.
pub(super) fn heads(bounds: &[Edge]) -> Vec<(u32, u32)> {
    let mut heads: Vec<(u32, u32)> = bounds.iter().map(|edge| (edge.node, edge.to)).collect();
    heads.sort_unstable();
    heads.dedup();
    heads
}

/// The first event of the first iteration: the last time before the first edge that its call came to the loop's lines.
fn start_of(loops: &Loops, bounds: &[Edge], first: &Edge) -> usize {
    let lowest =
        bounds.iter().filter(|edge| edge.node == first.node).map(|edge| edge.to).min().unwrap_or(first.to);
    let Some(call) = loops.activations.get(first.activation as usize) else { return first.event };
    let mut start = None;
    for &(event, line) in call.visits.iter().take_while(|(event, _)| *event < first.event) {
        start = if line >= lowest { start.or(Some(event)) } else { None };
    }
    start.unwrap_or(call.entry)
}

/// The event at which the outermost loop was left after the last edge: its call goes past the body, or returns.
fn end_of(loops: &Loops, bounds: &[Edge], last: usize) -> Option<usize> {
    let depth = bounds.iter().map(|edge| edge.depth).min()?;
    let outer = bounds.iter().rev().find(|edge| edge.depth == depth)?;
    let highest = bounds.iter().filter(|edge| edge.node == outer.node).map(|edge| edge.highest).max()?;
    let call = loops.activations.get(outer.activation as usize)?;
    let from = call.visits.partition_point(|(event, _)| *event <= last);
    let past = call.visits.iter().skip(from).find(|(_, line)| *line > highest).map(|(event, _)| *event);
    past.or(call.end.filter(|&end| end > last))
}

/// The line to which most iterations jump back; the lower one of two that are equally common.
fn header(bounds: &[Edge], main: u32) -> Option<Header> {
    let mut counts: BTreeMap<u32, (usize, FrameId)> = BTreeMap::new();
    for edge in bounds.iter().filter(|edge| edge.node == main) {
        counts.entry(edge.to).or_insert((0, edge.frame)).0 += 1;
    }
    let (_, &(_, frame)) = counts.iter().rev().max_by_key(|(_, (count, _))| *count)?;
    let last_line = bounds.iter().filter(|edge| edge.node == main).map(|edge| edge.highest).max()?;
    Some(Header { frame, node: main, last_line })
}

#[cfg(test)]
mod tests;
