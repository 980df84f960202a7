//! Second copies among what stands from before the loop to its end.
//!
//! In: tensors that are made before the loop and stay, by the line that makes them and its callers. Out: sets of which one repeats another: all
//! members of an ensemble in one tensor each, and the members still there; the same weights in another number format, where
//! each turn runs one model; a second model of the same sizes; clones of the weights. What stands beside what it was made of is seen by sizes alone: no chance makes ten
//! tensors twice as large, or eight times, each of them.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use super::passes;
use super::sizes::{CopySizes, Widening};
use super::source::{MadeBy, TensorSource};
use super::{ALIKE, COVERED, Copied, FEWEST, Kind};
use crate::facts::Facts;
use crate::role::Role;
use crate::timeline::Allocation;
use crate::unit::{AllocationId, Bytes, FrameId, Index, StackId};

/// The most sets that are held against each other, the largest first: of those that hold the peak, few are. A hostile file could have as many as
/// tensors.
const MOST: usize = 64;

/// What one line makes before the loop for the same callers, and leaves there.
pub(super) struct StandingSet {
    line: FrameId,
    callers: Vec<FrameId>,
    pub(super) tensors: Vec<AllocationId>,
    pub(super) sizes: CopySizes,
    /// A module makes, moves or copies some of them: they are weights.
    built: bool,
    /// The same, and none of it is copied from others or read from a file.
    pub(super) is_model: bool,
    /// How many of them are copied with their module.
    copied: usize,
    /// What may say that they are copies, one by one.
    single: Option<SingleCopies>,
}

/// How tensors that no module holds may be copies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SingleCopies {
    /// Each is a clone by itself, or moved here by itself.
    Named,
    /// Each is made on a line of the user's by one operator, and no C++ frame names it.
    Unnamed,
}

impl StandingSet {
    /// The innermost line that this set has to itself: a function that loads models makes each of them by the same.
    fn apart(&self, other: &StandingSet) -> FrameId {
        self.callers.iter().copied().find(|frame| !other.callers.contains(frame)).unwrap_or(self.line)
    }
}

/// The sets, in the order of their first tensors.
pub(super) fn sets(facts: &Facts, sources: &[TensorSource]) -> Vec<StandingSet> {
    let start = facts.loop_start();
    let ends = facts.iteration_ends().len();
    let stays = |one: &Allocation| {
        one.alloc.is_some_and(|born| born.position() < start) && facts.ends_held(one) >= ends
    };
    let mut paths: BTreeMap<(FrameId, Vec<FrameId>), Vec<AllocationId>> = BTreeMap::new();
    for (id, one) in facts.timeline.iter().filter(|(_, one)| stays(one)) {
        let source = one.stack.and_then(|stack| sources.get(stack.position()));
        let weighs = matches!(facts.role(id), Role::Parameter | Role::Buffer | Role::Input | Role::Unknown);
        let line = source.filter(|source| weighs && source.made != MadeBy::Averaged);
        if let Some((line, stack)) = line.and_then(|source| source.line).zip(one.stack) {
            paths.entry((line, callers(facts, stack))).or_default().push(id);
        }
    }
    let set = |((line, callers), tensors): ((FrameId, Vec<FrameId>), Vec<AllocationId>)| {
        let stacks: Vec<StackId> =
            tensors.iter().filter_map(|id| facts.timeline.allocation(*id)?.stack).collect();
        let any = |is: fn(&TensorSource) -> bool| {
            stacks.iter().filter_map(|stack| sources.get(stack.position())).any(is)
        };
        let operator = |stack: &StackId| facts.frames.operator(facts.snapshot, *stack);
        let clones = |stack: &StackId| {
            operator(stack)
                .is_some_and(|name| name == "clone" || name == "_to_copy" || name.starts_with("to_"))
        };
        let is_unnamed = |stack: &StackId| {
            let innermost = facts.frames.innermost(*stack);
            operator(stack).is_none() && innermost.is_some_and(|frame| facts.frames.is_own(frame))
        };
        let built = any(|source| matches!(source.made, MadeBy::Moved | MadeBy::Built | MadeBy::Copied));
        let is_model = built && !any(|source| source.made.copies());
        let of_copies =
            |stack: &&StackId| sources.get(stack.position()).is_some_and(|one| one.made == MadeBy::Copied);
        let copied = stacks.iter().filter(of_copies).count();
        let single = match stacks.as_slice() {
            _ if built => None,
            [] => None,
            stacks if stacks.iter().all(clones) => Some(SingleCopies::Named),
            stacks => stacks.iter().all(is_unnamed).then_some(SingleCopies::Unnamed),
        };
        StandingSet {
            line,
            callers,
            sizes: CopySizes::of(facts, &tensors),
            tensors,
            built,
            is_model,
            copied,
            single,
        }
    };
    let mut sets: Vec<StandingSet> =
        paths.into_iter().map(set).filter(|set| set.tensors.len() >= FEWEST.get()).collect();
    sets.sort_by_key(|set| (Reverse(set.sizes.bytes()), set.tensors.first().copied()));
    sets.truncate(MOST);
    sets.sort_by_key(|set| set.tensors.first().copied());
    sets
}

/// The user's frames of a stack, innermost first, of each function the innermost: one that walks through a model by calling itself makes one set.
fn callers(facts: &Facts, stack: StackId) -> Vec<FrameId> {
    let mut seen = BTreeSet::new();
    facts.frames.user(stack).filter(|frame| seen.insert(facts.frames.function(*frame))).collect()
}

/// The copies among the sets of a program that trains, or does not.
pub(super) fn copies(facts: &Facts, sets: &[StandingSet], trains: bool) -> Vec<Copied> {
    let mut copies = Vec::new();
    for (at, later) in sets.iter().enumerate() {
        for earlier in sets.iter().take(at) {
            let Some(scale) = earlier.sizes.scale(&later.sizes) else { continue };
            copies.extend(stacked(facts, earlier, later, scale));
            if trains {
                copies.extend(set_aside(facts, earlier, later, scale));
                copies.extend(part(facts, earlier, later, scale));
            } else {
                copies.extend(converted(facts, earlier, later, scale));
            }
            copies.extend(twice(facts, (earlier, later), scale, trains));
        }
    }
    copies
}

/// All members of an ensemble in one tensor each, of which each holds so many of the earlier ones; and those are there still.
fn stacked(facts: &Facts, members: &StandingSet, stack: &StandingSet, scale: Widening) -> Option<Copied> {
    let number = scale.members().filter(|_| members.built)?;
    let mut trained = facts.with_role(Role::Gradient).map(|(_, one)| one.bytes);
    let covered = covers(members, stack, scale, number)?;
    let computed = trained.any(|bytes| members.sizes.has(bytes) && !stack.sizes.has(bytes));
    (!computed).then(|| copied(facts, Kind::Stacked, stack.apart(members), members, covered))
}

/// The same weights in another number format.
fn converted(facts: &Facts, original: &StandingSet, copy: &StandingSet, scale: Widening) -> Option<Copied> {
    let covered =
        covers(original, copy, scale, 1).filter(|_| !scale.is_same() && (original.built || copy.built))?;
    passes::one_a_turn(facts, scale)
        .then(|| copied(facts, Kind::Converted, copy.apart(original), original, covered))
}

/// Two models of equal sizes, of which each turn runs one: perhaps always the same. Where one trains, a copy of it may be a moving average.
fn twice(
    facts: &Facts,
    (first, second): (&StandingSet, &StandingSet),
    scale: Widening,
    trains: bool,
) -> Option<Copied> {
    let is_model = |set: &StandingSet| if trains { set.is_model } else { set.built };
    let both = scale.is_same() && is_model(first) && is_model(second);
    let covered = covers(first, second, scale, 1).filter(|_| both)?;
    passes::one_a_turn(facts, scale).then(|| copied(facts, Kind::Twice, second.apart(first), second, covered))
}

/// A model of which a copy is a part of what trains, where each turn runs one and nothing else reads as large tensors: one of the two lies idle. An average of what
/// trains would have all of it.
fn part(facts: &Facts, original: &StandingSet, copy: &StandingSet, scale: Widening) -> Option<Copied> {
    let is_copy = scale.is_same() && original.is_model && copy.copied >= FEWEST.get();
    let covered = covers(original, copy, scale, 1).filter(|_| is_copy)?;
    let trained = passes::trained(facts);
    let is_part = trained.cover(&copy.sizes) && trained.count() > copy.copied;
    let idle = is_part && passes::one_a_turn(facts, scale) && !passes::reads_outside(facts, &copy.sizes);
    idle.then(|| copied(facts, Kind::Part, copy.apart(original), original, covered))
}

/// Clones of the weights of a program that trains, or what may be such.
fn set_aside(facts: &Facts, weights: &StandingSet, copy: &StandingSet, scale: Widening) -> Option<Copied> {
    let kind = match copy.single? {
        SingleCopies::Named => Kind::SetAside,
        SingleCopies::Unnamed => Kind::AsLarge,
    };
    let covered = covers(weights, copy, scale, 1).filter(|_| scale.is_same() && weights.built)?;
    Some(copied(facts, kind, copy.apart(weights), copy, covered))
}

/// The share of the original's bytes that a copy repeats, where the copy is that and little else.
fn covers(original: &StandingSet, copy: &StandingSet, scale: Widening, members: usize) -> Option<f64> {
    let repeated = original.sizes.repeated(&copy.sizes, scale, members);
    let covered = repeated.original.share_of(original.sizes.bytes());
    let alike = repeated.copy.share_of(copy.sizes.bytes());
    let repeats = covered >= COVERED.get() && alike >= ALIKE.get() && repeated.count >= FEWEST.get();
    // Of equal tensors some are always to others as one number to another.
    let telling = scale.is_same() || copy.sizes.kinds() > 1;
    (repeats && telling).then_some(covered)
}

fn copied(facts: &Facts, kind: Kind, frame: FrameId, spare: &StandingSet, covered: f64) -> Copied {
    let tensors = spare.tensors.clone();
    let bytes: Bytes = facts.bytes(&tensors);
    Copied { kind, frame, tensors, bytes, covered }
}
