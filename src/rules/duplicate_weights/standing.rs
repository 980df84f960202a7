//! Second copies among what stands from before the loop to its end.
//!
//! In: tensors that are made before the loop and stay, by the line that makes them. Out: sets of which one repeats another: all
//! members of an ensemble in one tensor each, and the members still there; the same weights in another number format, where
//! each turn runs one model; clones of the weights. What stands beside what it was made of is seen by sizes alone: no chance makes ten
//! tensors twice as large, or eight times, each of them.

use std::collections::BTreeMap;

use super::passes;
use super::sizes::{Scale, Sizes};
use super::source::{Made, Source};
use super::{ALIKE, COVERED, Copied, FEWEST, Kind};
use crate::facts::Facts;
use crate::role::Role;
use crate::timeline::Allocation;
use crate::unit::{AllocationId, Bytes, FrameId, Index, StackId};

/// What one line makes before the loop and leaves there.
pub(super) struct Set {
    pub(super) line: FrameId,
    pub(super) tensors: Vec<AllocationId>,
    pub(super) sizes: Sizes,
    /// A module makes, moves or copies some of them: they are weights.
    built: bool,
    /// A module is moved, cast or copied.
    moved: bool,
    /// Each is a clone, by itself.
    cloned: bool,
}

/// The sets, in the order of their first tensors.
pub(super) fn sets(facts: &Facts, sources: &[Source]) -> Vec<Set> {
    let start = facts.program.iterations.first().map_or(0, |first| first.start.position());
    let ends = facts.iteration_ends().len();
    let stays = |one: &Allocation| {
        one.alloc.is_some_and(|born| born.position() < start) && facts.ends_held(one) >= ends
    };
    let mut lines: BTreeMap<FrameId, Vec<AllocationId>> = BTreeMap::new();
    for (id, one) in facts.timeline.iter().filter(|(_, one)| stays(one)) {
        let source = one.stack.and_then(|stack| sources.get(stack.position()));
        let weighs = matches!(facts.role(id), Role::Parameter | Role::Buffer | Role::Input | Role::Unknown);
        let line = source.filter(|source| weighs && source.made != Made::Averaged);
        if let Some(line) = line.and_then(|source| source.line) {
            lines.entry(line).or_default().push(id);
        }
    }
    let set = |(line, tensors): (FrameId, Vec<AllocationId>)| {
        let stacks: Vec<StackId> =
            tensors.iter().filter_map(|id| facts.timeline.allocation(*id)?.stack).collect();
        let any =
            |is: fn(&Source) -> bool| stacks.iter().filter_map(|stack| sources.get(stack.position())).any(is);
        let clones = |stack: &StackId| facts.frames.operator(facts.snapshot, *stack) == Some("clone");
        let moved = any(|source| source.moves || source.made == Made::Copied);
        let built = moved || any(|source| source.builds);
        let cloned = !built && !stacks.is_empty() && stacks.iter().all(clones);
        Set { line, sizes: Sizes::of(facts, &tensors), tensors, built, moved, cloned }
    };
    let mut sets: Vec<Set> =
        lines.into_iter().map(set).filter(|set| set.tensors.len() >= FEWEST.get()).collect();
    sets.sort_by_key(|set| set.tensors.first().copied());
    sets
}

/// The copies among the sets.
pub(super) fn copies(facts: &Facts, sets: &[Set]) -> Vec<Copied> {
    let trains = passes::trains(facts);
    let mut copies = Vec::new();
    for (at, later) in sets.iter().enumerate() {
        for earlier in sets.iter().take(at) {
            let Some(scale) = earlier.sizes.scale(&later.sizes) else { continue };
            copies.extend(stacked(facts, earlier, later, scale));
            if !trains {
                copies.extend(converted(facts, earlier, later, scale));
            } else {
                copies.extend(set_aside(facts, earlier, later, scale));
            }
        }
    }
    copies
}

/// All members of an ensemble in one tensor each, of which each holds so many of the earlier ones; and those are there still.
fn stacked(facts: &Facts, members: &Set, stack: &Set, scale: Scale) -> Option<Copied> {
    let number = scale.members().filter(|_| members.built)?;
    let mut trained = facts.with_role(Role::Gradient).map(|(_, one)| one.bytes);
    let covered = covers(members, stack, scale, number)?;
    let computed = trained.any(|bytes| members.sizes.has(bytes) && !stack.sizes.has(bytes));
    (!computed).then(|| copied(facts, Kind::Stacked, stack.line, members, covered))
}

/// The same weights in another number format.
fn converted(facts: &Facts, original: &Set, copy: &Set, scale: Scale) -> Option<Copied> {
    let covered = covers(original, copy, scale, 1).filter(|_| !scale.is_same() && copy.moved)?;
    passes::one_a_turn(facts, scale).then(|| copied(facts, Kind::Converted, copy.line, original, covered))
}

/// Clones of the weights of a program that trains.
fn set_aside(facts: &Facts, weights: &Set, copy: &Set, scale: Scale) -> Option<Copied> {
    let covered = covers(weights, copy, scale, 1).filter(|_| scale.is_same() && copy.cloned)?;
    weights.built.then(|| copied(facts, Kind::SetAside, copy.line, copy, covered))
}

/// The share of the original's bytes that a copy repeats, where the copy is that and little else.
fn covers(original: &Set, copy: &Set, scale: Scale, members: usize) -> Option<f64> {
    let repeated = original.sizes.repeated(&copy.sizes, scale, members);
    let covered = repeated.original.share_of(original.sizes.bytes());
    let alike = repeated.copy.share_of(copy.sizes.bytes());
    let repeats = covered >= COVERED.get() && alike >= ALIKE.get() && repeated.count >= FEWEST.get();
    // Of equal tensors some are always to others as one number to another.
    let telling = scale.is_same() || copy.sizes.kinds() > 1;
    (repeats && telling).then_some(covered)
}

fn copied(facts: &Facts, kind: Kind, frame: FrameId, spare: &Set, covered: f64) -> Copied {
    let tensors = spare.tensors.clone();
    let bytes: Bytes = facts.bytes(&tensors);
    Copied { kind, frame, tensors, bytes, covered }
}
