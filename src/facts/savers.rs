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

/// The names of the nodes that hold most of these bytes, largest first; empty where no free has C++ frames.
pub(super) fn savers(facts: &Facts, kept: &[AllocationId]) -> Vec<String> {
    let names: Vec<Option<&str>> = facts.snapshot.stacks.ids().map(|stack| node(facts, stack)).collect();
    let mut places: FxHashMap<&[FrameId], &str> = FxHashMap::default();
    for (_, one) in facts.timeline.iter() {
        let freed = one.given_back().and_then(|event| facts.trace.event(event));
        let name = freed.and_then(|event| names.get(event.stack?.position()).copied().flatten());
        if let Some((stack, name)) = one.stack.zip(name) {
            places.entry(place(facts, stack)).or_insert(name);
        }
    }
    let mut weights: BTreeMap<&str, Bytes> = BTreeMap::new();
    for one in kept.iter().filter_map(|id| facts.timeline.allocation(*id)) {
        let name = one.stack.and_then(|stack| places.get(place(facts, stack)));
        if let Some(name) = name {
            *weights.entry(name).or_default() += one.bytes;
        }
    }
    let mut found: Vec<(&str, Bytes)> = weights.into_iter().collect();
    found.sort_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(b.0)));
    found.into_iter().take(NAMED).map(|(name, _)| name.to_owned()).collect()
}

/// The innermost Python frames of a stack: the operator's place in the model, wherever it was called from.
fn place<'a>(facts: &'a Facts, stack: StackId) -> &'a [FrameId] {
    let python = facts.frames.python(stack);
    python.get(python.len().saturating_sub(DEPTH)..).unwrap_or_default()
}

/// The node that a stack has let go of what it saved: `ReluBackward0`.
fn node<'a>(facts: &'a Facts, stack: StackId) -> Option<&'a str> {
    let frames = facts.snapshot.stacks.get(stack);
    frames.iter().find_map(|frame| facts.frames.node(facts.snapshot, *frame))
}
