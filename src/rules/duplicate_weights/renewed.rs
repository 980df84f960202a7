//! Weights that a program without training computes again in each pass, from others that stand beside them.
//!
//! In: what stands from before the loop, and tensors that hooks of PyTorch make in each turn and that the next turn's replace.
//! Out: those that stand, if what is made again has their sizes: masks and the weights that they prune, or the parts of a
//! normalised weight, are needed to train; to infer, their product is. (Other code may compute weights that are not the same in
//! each turn.)

use std::collections::BTreeMap;

use super::sizes::{CopySizes, Widening};
use super::source::{MadeBy, TensorSource};
use super::standing::StandingSet;
use super::{COVERED, Copied, FEWEST, Kind};
use crate::facts::Facts;
use crate::timeline::Allocation;
use crate::unit::{AllocationId, Bytes, FrameId, Index, IterationIndex};

/// What stands though its product is made again in most turns: one copy for all of it.
pub(super) fn copies(facts: &Facts, sources: &[TensorSource], sets: &[StandingSet]) -> Option<Copied> {
    let turns = renewed(facts, sources);
    let made = |set: &StandingSet| {
        let most = turns.values().filter(|(sizes, _)| is_product(set, sizes)).count();
        most * 2 > facts.program.iterations.len()
    };
    let parts: Vec<&StandingSet> = sets.iter().filter(|set| made(set)).collect();
    let (sizes, lines) = turns.values().next_back()?;
    let is_part = |id: &AllocationId| facts.timeline.allocation(*id).is_some_and(|one| sizes.has(one.bytes));
    let tensors = parts.iter().flat_map(|set| set.tensors.iter().copied()).filter(is_part);
    let tensors: Vec<AllocationId> = tensors.collect();
    let (frame, _) = lines.iter().max_by_key(|(frame, bytes)| (**bytes, std::cmp::Reverse(**frame)))?;
    let bytes = facts.bytes(&tensors);
    let any = !tensors.is_empty();
    any.then_some(Copied { kind: Kind::Renewed, frame: *frame, tensors, bytes, covered: 1.0 })
}

/// Whether what a turn makes again is as large as most of a set, tensor for tensor.
fn is_product(set: &StandingSet, made: &CopySizes) -> bool {
    let repeated = set.sizes.repeated(made, Widening::SAME, 1);
    repeated.original.share_of(set.sizes.bytes()) >= COVERED.get() && repeated.count >= FEWEST.get()
}

/// For each turn what hooks make in it that lives until the next, and how much of it each line makes.
fn renewed(
    facts: &Facts,
    sources: &[TensorSource],
) -> BTreeMap<IterationIndex, (CopySizes, BTreeMap<FrameId, Bytes>)> {
    let mut turns: BTreeMap<IterationIndex, (CopySizes, BTreeMap<FrameId, Bytes>)> = BTreeMap::new();
    let lives_on = |one: &Allocation| facts.ends_held(one) == 1;
    for (_, one) in facts.timeline.iter().filter(|(_, one)| lives_on(one)) {
        let source = one.stack.and_then(|stack| sources.get(stack.position()));
        let line = source.filter(|source| source.made == MadeBy::Renewed).and_then(|source| source.line);
        if let Some((turn, line)) = facts.born_in(one).zip(line) {
            let (sizes, lines) = turns.entry(turn).or_default();
            sizes.add(one.bytes);
            *lines.entry(line).or_default() += one.bytes;
        }
    }
    turns
}
