//! The tree of what is alive, as rows: which nodes are open, which row is chosen, what is searched for.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use super::grove::Grove;

/// A row of the tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TreeRow {
    pub(super) node: u32,
    pub(super) depth: usize,
    /// Bytes that it holds at the moment.
    pub(super) bytes: u64,
    pub(super) opens: Opens,
}

/// Whether there is more below a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Opens {
    Leaf,
    Closed,
    Open,
}

/// What somebody made of a tree. It survives a change of the moment.
#[derive(Debug, Default)]
pub(super) struct TreeState {
    /// Nodes that are not as they were in the beginning.
    toggled: BTreeSet<u32>,
    chosen: Option<u32>,
    /// The first row on the screen.
    top: usize,
}

impl TreeState {
    /// The rows of what is alive, the largest first. `held` is what each node holds.
    pub(super) fn rows(&self, grove: &Grove, held: &[u64]) -> Vec<TreeRow> {
        walked(grove, held, |node| self.is_open(grove, node))
    }

    /// In the beginning what calls one thing alone is open, and all until the first of which there are several.
    fn is_open(&self, grove: &Grove, node: u32) -> bool {
        let opens = grove.children(node).len() == 1 || is_trunk(grove, node);
        opens != self.toggled.contains(&node)
    }

    /// Which row is chosen.
    pub(super) fn position(&self, rows: &[TreeRow]) -> usize {
        let chosen = self.chosen.and_then(|node| rows.iter().position(|row| row.node == node));
        chosen.unwrap_or(0)
    }

    /// Chooses the row so many rows further.
    pub(super) fn step(&mut self, rows: &[TreeRow], by: isize) {
        let last = rows.len().saturating_sub(1);
        let at = self.position(rows).saturating_add_signed(by).min(last);
        self.chosen = rows.get(at).map(|row| row.node);
    }

    /// Opens or closes the chosen row.
    pub(super) fn toggle(&mut self, rows: &[TreeRow]) {
        let row = rows.get(self.position(rows)).filter(|row| row.opens != Opens::Leaf);
        if let Some(row) = row {
            self.chosen = Some(row.node);
            if !self.toggled.remove(&row.node) {
                self.toggled.insert(row.node);
            }
        }
    }

    /// Opens the largest below the chosen row until there is nothing below, and chooses that.
    pub(super) fn follow_largest(&mut self, grove: &Grove, held: &[u64], rows: &[TreeRow]) {
        let Some(mut node) = rows.get(self.position(rows)).map(|row| row.node) else { return };
        while let Some(largest) = below(grove, held, node).first() {
            self.open(grove, node);
            node = *largest;
        }
        self.chosen = Some(node);
    }

    fn open(&mut self, grove: &Grove, node: u32) {
        if !self.is_open(grove, node) && !self.toggled.remove(&node) {
            self.toggled.insert(node);
        }
    }

    /// Chooses the next row, or the one before, whose name holds some text, be it hidden or not; whether there is one.
    pub(super) fn search(&mut self, grove: &Grove, held: &[u64], text: &str, forward: bool) -> bool {
        let all = walked(grove, held, |_| true);
        let text = text.to_lowercase();
        let matches = |row: &TreeRow| grove.says(row.node, &text);
        let from = self.chosen.and_then(|node| all.iter().position(|row| row.node == node));
        let count = all.len();
        let nth = |step: usize| match (from, forward) {
            (Some(at), true) => (at + step) % count,
            (Some(at), false) => (at + count - step % count) % count,
            (None, _) => step - 1,
        };
        let found = (1..=count).filter_map(|step| all.get(nth(step))).find(|row| matches(row));
        let Some(found) = found else { return false };
        self.chosen = Some(found.node);
        let mut above = grove.parent(found.node);
        while above != 0 {
            self.open(grove, above);
            above = grove.parent(above);
        }
        true
    }

    /// Scrolls so that the chosen row is among so many; the first of them.
    pub(super) fn scroll(&mut self, rows: &[TreeRow], height: usize) -> usize {
        let at = self.position(rows);
        let last = rows.len().saturating_sub(height);
        self.top = self.top.clamp((at + 1).saturating_sub(height), at).min(last);
        self.top
    }
}

/// Whether there is nothing beside a node, nor beside what is above it.
fn is_trunk(grove: &Grove, node: u32) -> bool {
    let parent = grove.parent(node);
    node == 0 || grove.children(parent).len() == 1 && is_trunk(grove, parent)
}

/// What is alive below a node, the largest first.
fn below(grove: &Grove, held: &[u64], node: u32) -> Vec<u32> {
    let bytes = |node: u32| held.get(node as usize).copied().unwrap_or(0);
    let mut alive: Vec<u32> =
        grove.children(node).iter().copied().filter(|child| bytes(*child) > 0).collect();
    alive.sort_by_key(|child| (Reverse(bytes(*child)), *child));
    alive
}

/// The rows below the root, and those below what is open.
fn walked(grove: &Grove, held: &[u64], is_open: impl Fn(u32) -> bool) -> Vec<TreeRow> {
    let mut rows = Vec::new();
    let mut ahead: Vec<(u32, usize)> =
        below(grove, held, 0).into_iter().rev().map(|node| (node, 0)).collect();
    while let Some((node, depth)) = ahead.pop() {
        let children = below(grove, held, node);
        let opens = match (children.is_empty(), is_open(node)) {
            (true, _) => Opens::Leaf,
            (false, true) => Opens::Open,
            (false, false) => Opens::Closed,
        };
        rows.push(TreeRow { node, depth, bytes: held.get(node as usize).copied().unwrap_or(0), opens });
        if opens == Opens::Open {
            ahead.extend(children.into_iter().rev().map(|child| (child, depth + 1)));
        }
    }
    rows
}
