//! Which nodes of the autograd graph hold tensors, read off how their like were released.
//!
//! In: kept tensors; the frees' C++ frames. A block that a backward pass releases is freed by `SavedVariable::reset_data`
//! under `ReluBackward0::release_variables`, or under the node's destructor: that names the node that had saved it. A tensor that is never released has
//! no such frames, but a tensor that the same place of the model made in another pass may have.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

use crate::facts::Facts;
use crate::unit::{AllocationId, Bytes, FrameId, Index, StackId};

/// How many nodes are named.
const NAMED: usize = 3;
/// How many of the innermost Python frames make a place.
const DEPTH: usize = 2;

/// Which node saves what is made under each stack: a C++ frame that names it, read off all frees. None where no free has such frames.
#[derive(Debug)]
pub(super) struct Savers(Vec<Option<FrameId>>);

impl Savers {
    pub(super) fn of(facts: &Facts) -> Savers {
        let stacks = || facts.snapshot.stacks.ids();
        let nodes: Vec<Option<FrameId>> = stacks().map(|stack| node(facts, stack)).collect();
        if nodes.iter().all(Option::is_none) {
            return Savers(nodes);
        }
        let mut places: FxHashMap<&[FrameId], FrameId> = FxHashMap::default();
        for (_, one) in facts.timeline.iter() {
            let freed = one.given_back().and_then(|event| facts.trace.event(event));
            let node = freed.and_then(|event| nodes.get(event.stack?.position()).copied().flatten());
            if let Some((stack, node)) = one.stack.zip(node) {
                places.entry(place(facts, stack)).or_insert(node);
            }
        }
        Savers(stacks().map(|stack| places.get(place(facts, stack)).copied()).collect())
    }

    /// The names of the nodes that hold most of these bytes, largest first.
    pub(super) fn names(&self, facts: &Facts, kept: &[AllocationId]) -> Vec<String> {
        let mut frames: BTreeMap<FrameId, Bytes> = BTreeMap::new();
        for one in kept.iter().filter_map(|id| facts.timeline.allocation(*id)) {
            let node = one.stack.and_then(|stack| self.0.get(stack.position()).copied().flatten());
            if let Some(node) = node {
                *frames.entry(node).or_default() += one.bytes;
            }
        }
        let mut weights: BTreeMap<&str, Bytes> = BTreeMap::new();
        for (node, bytes) in frames {
            if let Some(name) = facts.frames.node(facts.snapshot, node) {
                *weights.entry(name).or_default() += bytes;
            }
        }
        let mut found: Vec<(&str, Bytes)> = weights.into_iter().collect();
        found.sort_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(b.0)));
        found.into_iter().take(NAMED).map(|(name, _)| name.to_owned()).collect()
    }
}

/// The innermost Python frames of a stack: the operator's place in the model, wherever it was called from.
fn place<'a>(facts: &'a Facts, stack: StackId) -> &'a [FrameId] {
    let python = facts.frames.python(stack);
    python.get(python.len().saturating_sub(DEPTH)..).unwrap_or_default()
}

/// The frame of a stack that names the node that has let go of what it saved: `ReluBackward0`.
fn node(facts: &Facts, stack: StackId) -> Option<FrameId> {
    let names = |frame: &FrameId| facts.frames.node(facts.snapshot, *frame).is_some();
    facts.snapshot.stacks.get(stack).iter().copied().find(names)
}
