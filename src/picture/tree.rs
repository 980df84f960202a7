//! Who made what is drawn: the calls of all stacks as one tree, outermost first.

use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

use crate::facts::Facts;
use crate::finding::Location;
use crate::timeline::Allocation;
use crate::unit::{FrameId, StackId};

/// Calls by their callers. Node 0 is the root, which is no call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tree {
    /// For each node its caller; the root is its own. A caller stands before what it calls.
    pub callers: Vec<u32>,
    /// For each node what was called: a position in `labels`; the root's is 0.
    pub called: Vec<u32>,
    /// For each node that lifetimes belong to, the node of the line that they count for ([`Facts::line_of`]): itself or a caller, and
    /// itself where no such line is known; 0 for the others.
    pub sites: Vec<u32>,
    /// What can be called; 0 is the whole.
    pub labels: Vec<Label>,
}

impl Tree {
    /// The node of the line that a node's lifetimes count for.
    pub fn site(&self, node: u32) -> u32 {
        self.sites.get(node as usize).copied().filter(|site| *site != 0).unwrap_or(node)
    }

    fn count_for(&mut self, node: u32, site: u32) {
        if let Some(known) = self.sites.get_mut(node as usize) {
            *known = site;
        }
    }
}

/// What a node of the tree stands for.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Label {
    /// Everything.
    All,
    /// A line of Python, and whether it is the user's own.
    Line(Location, bool),
    /// An operator of PyTorch, or a node of the autograd graph: `mm`, `ReluBackward0`.
    Operator(String),
    /// The autograd engine, on whose threads there is no Python.
    Engine,
    /// No stack was recorded.
    NoStack,
    /// It is older than the recording, and carries no stack.
    Older,
    /// Too many and too small to be told apart.
    Merged,
}

/// A tree in the making, with what it holds already.
#[derive(Default)]
pub(super) struct Planting {
    tree: Tree,
    nodes: FxHashMap<(u32, u32), u32>,
    frames: FxHashMap<FrameId, u32>,
    labels: FxHashMap<Label, u32>,
    /// By the stack that is seen and the recorded one.
    stacks: FxHashMap<(StackId, StackId), Nodes>,
}

/// Where a lifetime belongs in the tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Nodes {
    /// All that is known of its making.
    pub(super) whole: u32,
    /// The same until the line that stands for it.
    pub(super) site: u32,
}

impl Default for Tree {
    fn default() -> Tree {
        Tree { callers: vec![0], called: vec![0], sites: vec![0], labels: vec![Label::All] }
    }
}

impl Planting {
    /// The tree.
    pub(super) fn done(self) -> Tree {
        self.tree
    }

    /// The node of a label below a caller.
    fn node(&mut self, caller: u32, label: u32) -> u32 {
        let next = u32::try_from(self.tree.callers.len()).unwrap_or(u32::MAX);
        let node = *self.nodes.entry((caller, label)).or_insert(next);
        if node == next {
            self.tree.callers.push(caller);
            self.tree.called.push(label);
            self.tree.sites.push(0);
        }
        node
    }

    fn label(&mut self, label: Label) -> u32 {
        let next = u32::try_from(self.tree.labels.len()).unwrap_or(u32::MAX);
        let known = *self.labels.entry(label.clone()).or_insert(next);
        if known == next {
            self.tree.labels.push(label);
        }
        known
    }

    fn frame(&mut self, facts: &Facts, frame: FrameId) -> Option<u32> {
        if let Some(label) = self.frames.get(&frame) {
            return Some(*label);
        }
        let location = Location::of(facts.snapshot, frame)?;
        let label = self.label(Label::Line(location, facts.frames.is_own(frame)));
        self.frames.insert(frame, label);
        Some(label)
    }

    /// The node below the root for what has no stack that could be told apart.
    pub(super) fn apart(&mut self, label: Label) -> u32 {
        let label = self.label(label);
        self.node(0, label)
    }

    /// The nodes of a lifetime.
    pub(super) fn place(&mut self, facts: &Facts, one: &Allocation) -> Nodes {
        let Some(stack) = one.stack else {
            let label = if one.alloc.is_none() { Label::Older } else { Label::NoStack };
            let node = self.apart(label);
            return Nodes { whole: node, site: node };
        };
        let entered = facts.stack_of(one).filter(|seen| *seen != stack);
        let key = (entered.unwrap_or(stack), stack);
        if let Some(nodes) = self.stacks.get(&key) {
            return *nodes;
        }
        let mut nodes = self.line(facts, key.0);
        if entered.is_some() {
            let engine = self.label(Label::Engine);
            nodes.whole = self.node(nodes.whole, engine);
        }
        if let Some(operator) = facts.frames.operator(facts.snapshot, stack) {
            let label = self.label(Label::Operator(operator.to_owned()));
            nodes.whole = self.node(nodes.whole, label);
        }
        if nodes.whole == 0 {
            let node = self.apart(Label::NoStack);
            nodes = Nodes { whole: node, site: node };
        }
        for node in [nodes.whole, nodes.site] {
            self.tree.count_for(node, nodes.site);
        }
        self.stacks.insert(key, nodes);
        nodes
    }

    /// The nodes of a stack's Python frames.
    fn line(&mut self, facts: &Facts, stack: StackId) -> Nodes {
        let site = facts.site(stack);
        let mut nodes = Nodes { whole: 0, site: 0 };
        for frame in facts.frames.python(stack) {
            if let Some(label) = self.frame(facts, *frame) {
                nodes.whole = self.node(nodes.whole, label);
            }
            if Some(*frame) == site {
                nodes.site = nodes.whole;
            }
        }
        if nodes.site == 0 {
            nodes.site = nodes.whole;
        }
        nodes
    }
}
