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

/// Which node saves what is made under a stack.
#[derive(Debug)]
pub(super) struct Savers {
    names: Vec<String>,
    /// By stack: the name of the node, as a position among them.
    of: Vec<Option<usize>>,
}

impl Savers {
    /// Reads off all frees which node had saved what they let go. Empty where none has C++ frames.
    pub(super) fn of(facts: &Facts) -> Savers {
        let nodes: Vec<Option<&str>> = facts.snapshot.stacks.ids().map(|stack| node(facts, stack)).collect();
        let mut places: FxHashMap<&[FrameId], usize> = FxHashMap::default();
        let mut names: Vec<&str> = Vec::new();
        let any = nodes.iter().any(Option::is_some);
        for (_, one) in facts.timeline.iter().filter(|_| any) {
            let freed = one.given_back().and_then(|event| facts.trace.event(event));
            let name = freed.and_then(|event| nodes.get(event.stack?.position()).copied().flatten());
            if let Some((stack, name)) = one.stack.zip(name) {
                places.entry(place(facts, stack)).or_insert_with(|| {
                    let known = names.iter().position(|known| *known == name);
                    known.unwrap_or_else(|| {
                        names.push(name);
                        names.len() - 1
                    })
                });
            }
        }
        let of = facts.snapshot.stacks.ids().map(|stack| places.get(place(facts, stack)).copied());
        Savers { of: of.collect(), names: names.into_iter().map(str::to_owned).collect() }
    }

    /// The names of the nodes that hold most of these bytes, largest first.
    pub(super) fn names(&self, facts: &Facts, kept: &[AllocationId]) -> Vec<String> {
        let mut weights: BTreeMap<&str, Bytes> = BTreeMap::new();
        for one in kept.iter().filter_map(|id| facts.timeline.allocation(*id)) {
            let name = one.stack.and_then(|stack| self.of.get(stack.position()).copied().flatten());
            if let Some(name) = name.and_then(|name| self.names.get(name)) {
                *weights.entry(name).or_default() += one.bytes;
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

/// The node that a stack has let go of what it saved: `ReluBackward0`.
fn node<'a>(facts: &'a Facts, stack: StackId) -> Option<&'a str> {
    let frames = facts.snapshot.stacks.get(stack);
    frames.iter().find_map(|frame| facts.frames.node(facts.snapshot, *frame))
}
