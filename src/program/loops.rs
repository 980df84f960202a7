//! Loops, read off the stacks.
//!
//! In: the paths of the main thread's events, in order. Out: back [`Edge`]s, and the [`Activation`]s (calls of functions)
//! in which they happen.
//!
//! Compare each path with the one before, outermost frame first. Up to the first frame that differs, the same calls are
//! still running. If the two frames there are of one function, that call has moved to another line; everything further in
//! has returned. A move to a *lower* line is a loop's back edge, with three exceptions that are recognised afterwards:
//!
//! - leaving a `with` block jumps back to the `with` line, and the call in an expression of several lines has a lower line
//!   than its arguments. Then the next move goes past the line that the jump came from; in a loop it stays inside the
//!   body. An edge counts once the next move confirms it; without that if something was allocated after it, and
//!   another edge between the same lines is confirmed or its target is a re-entry's.
//! - A loop whose body is one call shows no move at all in the looping function, but in the callee, which seems to run
//!   backwards. If anything happened in the caller in between (locals freed on return), the callee is seen to be called
//!   anew: an edge from the caller's line to itself, of the kind [`EdgeKind::Reentry`].
//! - Python's garbage collector frees on whatever line it strikes; so only allocations make a re-entry, and what it is seen to free
//!   ([`super::collector`]) moves no call.
//!
//! Where the recording has `context="alloc"`, a free carries the stack of the allocation; then frees are left out.

use crate::frames::Owner;
use crate::unit::FrameId;

/// A function at a place in the tree of calls: which function, called from which lines.
#[derive(Debug, Clone, Copy)]
pub(super) struct CallNode {
    /// How many calls lie outside it.
    pub(super) depth: usize,
    /// Whose code it is.
    pub(super) owner: Owner,
    /// Whether it is, or runs inside, a constructor.
    pub(super) constructing: bool,
    /// Whether the function is running already further out.
    pub(super) recursive: bool,
    /// The innermost frame of the user's own code on the way here, the function's caller included; `None` if there is none.
    pub(super) caller: Option<FrameId>,
}

/// One call of a function, as long as it was seen to run.
#[derive(Debug)]
pub(super) struct Activation {
    /// Which function, by its place in the tree of calls.
    pub(super) node: u32,
    /// The event that first showed it.
    pub(super) entry: usize,
    /// The event that showed it gone; `None` if it was running to the end.
    pub(super) end: Option<usize>,
    /// The lines it moved to, each with the event that showed it.
    pub(super) visits: Vec<(usize, u32)>,
}

/// How an edge shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EdgeKind {
    /// A move to a lower line.
    Back,
    /// The callee is called again from the same line.
    Reentry,
}

/// A loop's back edge.
#[derive(Debug, Clone, Copy)]
pub(super) struct Edge {
    /// The event that shows it: the first of the new iteration.
    pub(super) event: usize,
    /// The call in which the loop runs.
    pub(super) activation: u32,
    /// Its node.
    pub(super) node: u32,
    /// Its depth.
    pub(super) depth: usize,
    /// The line it left.
    pub(super) from: u32,
    /// The line it went to.
    pub(super) to: u32,
    /// The frame of that line.
    pub(super) frame: FrameId,
    /// The highest line since the edge before, in the same call.
    pub(super) highest: u32,
    /// How it shows.
    pub(super) kind: EdgeKind,
    /// Whether the next move showed that the body runs again.
    pub(super) confirmed: bool,
    /// Whether anything was allocated before the next move. Leaving a `with` block allocates nothing.
    pub(super) used: bool,
}

/// Everything that the walk found.
#[derive(Debug, Default)]
pub(super) struct Loops {
    /// Confirmed edges, by event.
    pub(super) edges: Vec<Edge>,
    /// Moves back that nothing confirmed and after which nothing was allocated, by event: a `with` block is left, or a loop.
    pub(super) idle: Vec<Edge>,
    /// All calls.
    pub(super) activations: Vec<Activation>,
    /// All nodes.
    pub(super) nodes: Vec<CallNode>,
    /// The calls that were running at each moment asked for, with their lines, outermost first.
    pub(super) running: Vec<Vec<(u32, u32)>>,
    /// The first event of the main thread.
    pub(super) first: Option<usize>,
}

impl Loops {
    /// The event with which a loop is left through its head: what the loop held (its iterator, the last batch) goes with the
    /// jump back that begins no turn. `from` is its last turn's first event, `until` the event at which its call shows elsewhere,
    /// `heads` the node and the lines to which its turns jump back.
    pub(super) fn left_by_head(&self, from: usize, until: usize, heads: &[(u32, u32)]) -> Option<usize> {
        let first = self.idle.partition_point(|edge| edge.event <= from);
        let idle: Vec<&Edge> = self.idle.iter().skip(first).take_while(|edge| edge.event < until).collect();
        let is_idle = |at: usize| idle.binary_search_by_key(&at, |edge| edge.event).is_ok();
        let leaves = |edge: &&&Edge| {
            let visits = self.activations.get(edge.activation as usize).map_or(&[][..], |call| &call.visits);
            let later = visits.get(visits.partition_point(|(at, _)| *at <= edge.event)..).unwrap_or_default();
            heads.contains(&(edge.node, edge.to)) && later.iter().all(|(at, _)| *at >= until || is_idle(*at))
        };
        idle.iter().find(leaves).map(|edge| edge.event)
    }
}
