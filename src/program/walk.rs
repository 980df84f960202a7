//! The walk that finds [`Loops`]: one pass over the events, following which calls are running.
//!
//! What counts as a loop, and why, is told in [`super::loops`]. The walk holds the calls that run now, outermost first, as the
//! paths show them; an event on the same path as the one before costs a comparison.

use std::collections::VecDeque;

use rustc_hash::FxHashMap;

use super::collector::Collector;
use super::loops::{Activation, CallNode, Edge, EdgeKind, Loops};
use super::paths::{Path, Paths, passes_through};
use crate::frames::{Frames, Owner, PhaseSign};
use crate::snapshot::{Action, Event};
use crate::unit::{FrameId, FunctionId};

impl Loops {
    /// Judges an edge by what came before the next move of its call, and by that move, if there is one.
    fn resolve(&mut self, pending: Option<PendingEdge>, allocated: usize, to: Option<u32>) {
        let Some(pending) = pending else { return };
        let Some(edge) = self.edges.get_mut(pending.edge) else { return };
        edge.used = allocated > pending.allocated;
        edge.confirmed = to.is_some_and(|to| to > edge.to && to <= pending.came_from);
    }
}

/// What frees say of where the program is.
pub(super) struct Frees<'a> {
    /// Whether they have stacks of their own.
    pub(super) own: bool,
    /// Which of them the garbage collector makes, on whatever line.
    pub(super) collector: &'a Collector,
}

/// Walks over a device's events. `moments` are event positions, ascending: [`Loops::running`] tells what ran just before
/// each of them.
pub(super) fn walk(
    frames: &Frames,
    paths: &Paths,
    events: &[Event],
    frees: &Frees<'_>,
    moments: &[usize],
) -> Loops {
    let mut walker = StackWalker {
        frames,
        live: Vec::new(),
        nodes: FxHashMap::default(),
        found: Loops::default(),
        allocated: 0,
    };
    let mut before = None;
    for (at, event) in events.iter().enumerate() {
        walker.answer(moments, at);
        let allocates = event.action == Action::Alloc;
        let takes = allocates
            || event.action == Action::OutOfMemory
            || (frees.own && event.action == Action::FreeRequested && frees.collector.frees(event).is_none());
        let Some(id) = takes.then(|| paths.of_event(event)).flatten() else { continue };
        if before != Some(id) {
            let Some(path) = paths.get(id) else { continue };
            walker.found.first.get_or_insert(at);
            walker.follow(path, at);
        }
        if allocates {
            walker.enter_again();
            walker.allocate(at);
        }
        before = Some(id);
    }
    walker.answer(moments, usize::MAX);
    walker.finish()
}

/// What became of a call that was just seen to begin.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Entry {
    /// Not looked at yet.
    New,
    /// The same callee ran from this line before; an allocation will make it a re-entry.
    Again,
    /// Nothing to do.
    Settled,
}

/// A call that is running.
struct Live {
    id: u32,
    node: u32,
    function: FunctionId,
    frame: FrameId,
    line: u32,
    highest: u32,
    first_event: usize,
    /// The callee by which calls from one line are told apart.
    key: FunctionId,
    entry: Entry,
    passes_through: bool,
    /// A boundary of the path: its own lines are PyTorch's and say nothing.
    foreign: bool,
    /// What was called from the present line before, with the highest line it reached.
    called: FxHashMap<FunctionId, u32>,
    /// Allocations that the present line made by itself before its first call: they belong to what it then calls.
    leading: usize,
    /// Allocations that the line made by itself since it last called anything.
    own: VecDeque<usize>,
    /// The last edge, until the call moves again.
    pending: Option<PendingEdge>,
}

/// An edge that no move has confirmed or refuted yet.
#[derive(Clone, Copy)]
struct PendingEdge {
    edge: usize,
    came_from: u32,
    /// Allocations seen when it was made.
    allocated: usize,
}

struct StackWalker<'a> {
    frames: &'a Frames,
    live: Vec<Live>,
    nodes: FxHashMap<(u32, u32, FunctionId), u32>,
    found: Loops,
    /// Allocations of the main thread so far.
    allocated: usize,
}

impl StackWalker<'_> {
    /// Notes what is running for every moment up to event `at`.
    fn answer(&mut self, moments: &[usize], at: usize) {
        while moments.get(self.found.running.len()).is_some_and(|&moment| moment <= at) {
            let running = self.live.iter().map(|call| (call.id, call.line)).collect();
            self.found.running.push(running);
        }
    }

    fn follow(&mut self, path: &Path, at: usize) {
        let mut depth = 0;
        for &frame in &path.frames {
            let (Some(call), Some(entry)) = (self.live.get(depth), self.frames.get(frame)) else {
                break;
            };
            if call.function != entry.function {
                break;
            }
            if call.frame == frame {
                depth += 1;
                continue;
            }
            self.leave(depth + 1, at);
            self.shift(depth, frame, entry.line, at);
            depth += 1;
            break;
        }
        self.leave(depth, at);
        for level in depth..path.frames.len() {
            self.enter(path, level, at);
        }
        for level in depth.max(1)..self.live.len() {
            self.look_back(path, level);
        }
    }

    /// The calls from `depth` inward have returned.
    fn leave(&mut self, depth: usize, at: usize) {
        for call in self.live.iter().skip(depth) {
            if let Some(activation) = self.found.activations.get_mut(call.id as usize) {
                activation.end = Some(at);
            }
            self.found.resolve(call.pending, self.allocated, None);
        }
        let gone = self.live.get(depth).map(|call| (call.key, call.highest));
        self.live.truncate(depth);
        let Some(caller) = depth.checked_sub(1).and_then(|outer| self.live.get_mut(outer)) else { return };
        let Some((key, highest)) = gone else { return };
        caller.own.clear();
        caller.called.insert(key, highest);
    }

    /// The call at `depth` moves to another line.
    fn shift(&mut self, depth: usize, frame: FrameId, to: u32, at: usize) {
        let Some(call) = self.live.get_mut(depth) else { return };
        let from = call.line;
        let pending = call.pending.take();
        self.found.resolve(pending, self.allocated, Some(to));
        call.called.clear();
        call.own.clear();
        call.leading = 0;
        call.line = to;
        call.frame = frame;
        if let Some(activation) = self.found.activations.get_mut(call.id as usize) {
            activation.visits.push((at, to));
        }
        if to < from && !call.foreign {
            let highest = call.highest;
            call.pending = Some(PendingEdge {
                edge: self.found.edges.len(),
                came_from: highest,
                allocated: self.allocated,
            });
            call.highest = to;
            let (activation, node) = (call.id, call.node);
            self.found.edges.push(Edge {
                event: at,
                activation,
                node,
                depth,
                from,
                to,
                frame,
                highest,
                kind: EdgeKind::Back,
                confirmed: false,
                used: false,
            });
        } else {
            call.highest = call.highest.max(to);
        }
    }

    /// A call begins at level `level` of `path`.
    fn enter(&mut self, path: &Path, level: usize, at: usize) {
        let Some(&frame) = path.frames.get(level) else { return };
        let Some(entry) = self.frames.get(frame).copied() else { return };
        let caller = level.checked_sub(1).and_then(|outer| self.live.get(outer));
        let (above, line) = caller.map_or((u32::MAX, 0), |call| (call.node, call.line));
        let node = self.node(above, line, entry.function, frame, caller.map(|call| call.frame));
        let id = u32::try_from(self.found.activations.len()).unwrap_or(u32::MAX);
        self.found.activations.push(Activation {
            node,
            entry: at,
            end: None,
            visits: vec![(at, entry.line)],
        });
        self.live.push(Live {
            id,
            node,
            function: entry.function,
            frame,
            line: entry.line,
            highest: entry.line,
            first_event: at,
            key: entry.function,
            entry: Entry::New,
            passes_through: passes_through(entry.phase),
            foreign: matches!(entry.owner, Owner::Torch | Owner::Generated),
            called: FxHashMap::default(),
            leading: 0,
            own: VecDeque::new(),
            pending: None,
        });
    }

    fn node(
        &mut self,
        above: u32,
        line: u32,
        function: FunctionId,
        frame: FrameId,
        caller: Option<FrameId>,
    ) -> u32 {
        let next = u32::try_from(self.found.nodes.len()).unwrap_or(u32::MAX);
        let node = *self.nodes.entry((above, line, function)).or_insert(next);
        if node == next {
            let outer = self.found.nodes.get(above as usize).copied();
            let recursive = self.live.iter().any(|call| call.function == function);
            let users = caller.filter(|&one| self.frames.is_own(one));
            self.found.nodes.push(CallNode {
                depth: outer.map_or(0, |one| one.depth + 1),
                owner: self.frames.owner(frame),
                constructing: self.frames.phase(frame) == PhaseSign::Constructor
                    || outer.is_some_and(|one| one.constructing),
                recursive,
                caller: users.or(outer.and_then(|one| one.caller)),
            });
        }
        node
    }

    /// Whether the call at `level`, just begun, is one that its caller's line has made before.
    fn look_back(&mut self, path: &Path, level: usize) {
        let Some((outer, inner)) = self.live.split_at_mut_checked(level) else { return };
        let (Some(caller), Some(call)) = (outer.last(), inner.first()) else { return };
        if call.entry != Entry::New {
            return;
        }
        let through = inner.iter().find(|one| !one.passes_through).map(|one| one.function);
        let key = through.or(path.leaf).unwrap_or(call.function);
        let again = caller.called.get(&key).is_some_and(|highest| call.line <= *highest);
        if let Some(call) = inner.first_mut() {
            call.key = key;
            call.entry = if again { Entry::Again } else { Entry::Settled };
        }
    }

    /// The innermost call allocates by itself.
    fn allocate(&mut self, at: usize) {
        self.allocated += 1;
        if let Some(call) = self.live.last_mut().filter(|call| !call.foreign) {
            call.leading += usize::from(call.called.is_empty());
            // More than it led with is never asked for.
            if call.own.len() == call.leading.max(1) {
                call.own.pop_front();
            }
            call.own.push_back(at);
        }
    }

    /// An allocation confirms the outermost re-entry: an edge of the line that calls again, decorators skipped. The new
    /// iteration begins with as many allocations of that line as the first one did (`model(x.cuda())`).
    fn enter_again(&mut self) {
        let Some(level) = self.live.iter().position(|call| call.entry == Entry::Again) else { return };
        let event = self.live.get(level).map_or(0, |call| call.first_event);
        let led = self.live.get(level.wrapping_sub(1)).filter(|call| call.leading > 0);
        let event = led
            .and_then(|call| call.own.get(call.own.len().checked_sub(call.leading)?))
            .copied()
            .unwrap_or(event);
        for call in self.live.iter_mut().skip(level) {
            call.entry = Entry::Settled;
        }
        // A turn of `step(batch(n))` calls both again, and is one turn all the same.
        if let Some(caller) = level.checked_sub(1).and_then(|outer| self.live.get_mut(outer)) {
            caller.called.clear();
        }
        let caller = self.live.iter().take(level).enumerate().rev().find(|(_, call)| !call.passes_through);
        let Some((depth, call)) = caller.filter(|(_, call)| !call.foreign) else { return };
        self.found.edges.push(Edge {
            event,
            activation: call.id,
            node: call.node,
            depth,
            from: call.line,
            to: call.line,
            frame: call.frame,
            highest: call.highest,
            kind: EdgeKind::Reentry,
            confirmed: true,
            used: true,
        });
    }

    fn finish(mut self) -> Loops {
        for call in &self.live {
            self.found.resolve(call.pending, self.allocated, None);
        }
        let mut sure: Vec<(u32, u32, Option<u32>)> = Vec::new();
        for edge in self.found.edges.iter().filter(|edge| edge.confirmed) {
            // A line that is seen to call again is the head of a loop from wherever it is reached.
            let from = if edge.kind == EdgeKind::Reentry { None } else { Some(edge.from) };
            sure.push((edge.node, edge.to, from));
        }
        sure.sort_unstable();
        sure.dedup();
        self.found.edges.sort_by_key(|edge| edge.event);
        self.found.idle =
            self.found.edges.iter().filter(|edge| !edge.confirmed && !edge.used).copied().collect();
        self.found.edges.retain(|edge| {
            let known = |from| sure.binary_search(&(edge.node, edge.to, from)).is_ok();
            edge.confirmed || (edge.used && (known(Some(edge.from)) || known(None)))
        });
        self.found
    }
}
