//! A second copy of the model's weights that nobody computes with.

mod at_end;
mod computed;
mod joined;
mod passes;
mod renewed;
mod sizes;
mod source;
mod stages;
mod standing;
mod tell;

use std::collections::{BTreeMap, BTreeSet};

use super::claim::{Claim, Mending, Worth};
use super::{Need, declare_rule};
use crate::facts::Facts;
use crate::finding::Severity;
use crate::frames::MemorySign;
use crate::lives::Changes;
use crate::program::Phase;
use crate::role::Role;
use crate::threshold::Threshold;
use crate::timeline::Allocation;
use crate::unit::{AllocationId, Bytes, Confidence, FrameId, Index};
use sizes::{CopySizes, Widening};
use source::{Filled, MadeBy, TensorSource};

declare_rule! {
    /// A second copy of the model's weights stays on the device.
    DuplicateWeights = "duplicate-weights", Peak, Warning,
    needs: [History, Stacks, Beginning, Iterations],
    in_part: [Standing],
    summary: "a second copy of the model's weights stays on the device",
}

/// The share of the model's weights that a copy has to hold.
static COVERED: Threshold<f64> = Threshold::new("rules::duplicate_weights::COVERED", 0.8);
/// The share of an in-loop copy that has to be weights: other things are made in loops, too.
static ALIKE: Threshold<f64> = Threshold::new("rules::duplicate_weights::ALIKE", 0.8);
/// How many tensors of a parameter's size a checkpoint holds for it at most: itself and what the optimizer keeps, with `amsgrad` three
/// (`torch/optim/adam.py`).
static OF_A_PARAMETER: Threshold<usize> = Threshold::new("rules::duplicate_weights::OF_A_PARAMETER", 4);
/// Fewer tensors of equal sizes prove nothing.
static FEWEST: Threshold<usize> = Threshold::new("rules::duplicate_weights::FEWEST", 4);

/// How a copy came to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    /// `torch.load` to the device, kept after the model took the values over.
    Loaded,
    /// The same, where no loop is seen: it stands at the end of the recording.
    LoadedByTheEnd,
    /// Copied while training runs: a best model, a snapshot. (Modules that are copied before training are computed with:
    /// moving averages, target networks, teachers.)
    CopiedInLoop,
    /// `deepcopy(model.state_dict())` before training: plain tensors, with which no module computes.
    StateDict,
    /// The same in a constructor: the object may keep a moving average in it.
    HeldByObject,
    /// A module is copied before training, of which adapters train and the weights themselves never: the copy stays equal.
    Base,
    /// The sharded weights of all ranks, gathered in the loop for whoever keeps them.
    Gathered,
    /// The loop builds the model, and again as large a one while the first is there: a program may use both.
    BuiltInLoop,
    /// Two models of equal sizes stand, and each turn runs one: a program may choose.
    Twice,
    /// A part of what trains was copied from another model, and each turn runs one: an average would be of the whole.
    Part,
    /// The members of an ensemble, beside one tensor for all of each of theirs.
    Stacked,
    /// The original of a model that was cast to another number format.
    Converted,
    /// Clones of the weights before training; they may be a moving average.
    SetAside,
    /// The same where no C++ frame tells: they may be anything that has a tensor for each of the weights.
    AsLarge,
    /// What weights are computed from again in each pass, although nothing trains.
    Renewed,
}

/// Which allocations belong together: made by one line in one iteration (or before all).
type Key = (Kind, FrameId, Option<usize>);

struct Copied {
    kind: Kind,
    frame: FrameId,
    tensors: Vec<AllocationId>,
    bytes: Bytes,
    covered: f64,
}

impl DuplicateWeights {
    fn claims<'f>(facts: &'f Facts<'f>) -> Vec<Claim<'f>> {
        let mut copies: BTreeMap<(Kind, FrameId), Vec<Copied>> = BTreeMap::new();
        let sees_all = Need::all_met(Self::META.needs, facts.evidence).is_ok();
        for copy in if sees_all { copies_of_weights(facts) } else { at_end::copies(facts) } {
            copies.entry((copy.kind, copy.frame)).or_default().push(copy);
        }
        copies.into_values().filter_map(|copies| claim(facts, copies)).collect()
    }
}

fn copies_of_weights(facts: &Facts) -> Vec<Copied> {
    let sources = source::sources(facts);
    let trained = trained(facts, &sources);
    let loop_start = facts.loop_start();
    let mut groups: BTreeMap<Key, Vec<AllocationId>> = BTreeMap::new();
    let (mut weights, mut originals) = (CopySizes::default(), CopySizes::default());
    let mut sharded = CopySizes::default();
    for (id, one) in facts.timeline.iter() {
        let source = one.stack.and_then(|stack| sources.get(stack.position())).copied().unwrap_or_default();
        match key(facts, id, one, source, (loop_start, trained.as_ref())) {
            Some(key) => groups.entry(key).or_default().push(id),
            None if is_weight(facts, id, one, loop_start) => {
                weights.add(one.bytes);
                if shards(facts, one) {
                    sharded.add(one.bytes);
                }
                if source.made != MadeBy::Copied {
                    originals.add(one.bytes);
                }
            }
            None => {}
        }
    }
    if weights.is_empty() {
        (weights, groups) = built_in_loop(facts, &sources, groups);
    }
    let sets = standing::sets(facts, &sources);
    let models: Vec<&CopySizes> = sets.iter().filter(|set| set.is_model).map(|set| &set.sizes).collect();
    let makes_copies = !models.is_empty() && groups.keys().any(|(kind, ..)| *kind == Kind::CopiedInLoop);
    let trained = if makes_copies { passes::trained(facts) } else { CopySizes::default() };
    let trained = models.iter().copied().filter(|model| trained.cover(model)).collect();
    let model = CopySource { weights, originals, models, trained, sharded };
    let copies = groups.into_iter().filter_map(|(key, tensors)| {
        let plain = all_plain(facts, &sources, &tensors);
        copy(facts, &model, key, tensors, plain)
    });
    let mut copies = joined::without(facts, computed::without(facts, &sources, copies.collect()));
    let trains = passes::trains(facts);
    if trains {
        copies = stages::without(facts, &sources, copies);
    }
    copies.extend(standing::copies(facts, &sets, trains));
    if !trains {
        copies.extend(renewed::copies(facts, &sources, &sets));
    }
    copies
}

/// What a copy may be one of.
struct CopySource<'s> {
    weights: CopySizes,
    /// Without what is copied from others: of a model that was loaded whole, an average is no original.
    originals: CopySizes,
    /// The weights of each model, where there are several.
    models: Vec<&'s CopySizes>,
    /// Those that train as a whole.
    trained: Vec<&'s CopySizes>,
    /// Those of which this rank has a part alone; not what the program makes of them, an average of the parts, say.
    sharded: CopySizes,
}

/// Whether a wrapper made it that shards parameters over ranks.
fn shards(facts: &Facts, one: &Allocation) -> bool {
    one.stack.is_some_and(|stack| facts.frames.shows(stack, MemorySign::Sharded))
}

/// Whether plain tensors are copied, with which no module computes.
fn all_plain(facts: &Facts, sources: &[TensorSource], tensors: &[AllocationId]) -> bool {
    let source = |id: &AllocationId| sources.get(facts.timeline.allocation(*id)?.stack?.position());
    tensors.iter().all(|id| source(id).is_some_and(|source| source.made == MadeBy::PlainCopied))
}

/// A group of tensors, if it repeats the weights: of what is loaded, and of a state dict that the loop copies, those of one model are enough.
fn copy(
    facts: &Facts,
    model: &CopySource<'_>,
    (kind, frame, _): Key,
    tensors: Vec<AllocationId>,
    plain: bool,
) -> Option<Copied> {
    let sizes = CopySizes::of(facts, &tensors);
    // The parts of all ranks are whole times as large as this rank's.
    let parts = if model.sharded.is_empty() { &model.weights } else { &model.sharded };
    let of_all_ranks = || parts.scale(&sizes).filter(|scale| scale.members().is_some());
    let scale = match kind {
        Kind::Gathered => of_all_ranks()?,
        Kind::Loaded if !model.sharded.is_empty() => of_all_ranks().unwrap_or(Widening::SAME),
        _ => Widening::SAME,
    };
    let whole = match kind {
        Kind::Loaded => &model.originals,
        Kind::Gathered => parts,
        _ => &model.weights,
    };
    let alone = match kind {
        Kind::Loaded => model.models.as_slice(),
        // An average of one model may begin as a copy of its state dict, too, but before the loop.
        Kind::CopiedInLoop if plain => &model.models,
        // What may be no copy repeats at least what trains.
        Kind::CopiedInLoop => &model.trained,
        _ => &[],
    };
    let bytes = facts.bytes(&tensors);
    let covered = |of: &CopySizes| {
        let repeated = of.repeated(&sizes, scale, 1);
        let alike = match kind {
            // Of a base there may be several copies.
            Kind::Loaded | Kind::Base => true,
            // A snapshot of the whole training holds the optimizer's state, too.
            Kind::CopiedInLoop => of.at_most(&sizes, OF_A_PARAMETER.get()).share_of(bytes) >= ALIKE.get(),
            _ => repeated.copy.share_of(bytes) >= ALIKE.get(),
        };
        let covered = repeated.original.share_of(of.bytes());
        (alike && covered >= COVERED.get() && repeated.count >= FEWEST.get()).then_some(covered)
    };
    let covered = std::iter::once(whole).chain(alone.iter().copied()).find_map(covered)?;
    Some(Copied { kind, frame, tensors, bytes, covered })
}

/// Where no weights are older than the loop: what the first turn that builds a model makes, and of the other groups those that
/// are there together with an earlier one at the end of a turn.
fn built_in_loop(
    facts: &Facts,
    sources: &[TensorSource],
    groups: BTreeMap<Key, Vec<AllocationId>>,
) -> (CopySizes, BTreeMap<Key, Vec<AllocationId>>) {
    let is_built = |id: &AllocationId| {
        let stack = facts.timeline.allocation(*id).and_then(|one| one.stack);
        let source = stack.and_then(|stack| sources.get(stack.position()));
        source.is_some_and(|source| source.made == MadeBy::Moved) && facts.role(*id) == Role::Parameter
    };
    let builds = |(key, tensors): (&Key, &Vec<AllocationId>)| {
        (key.0 == Kind::CopiedInLoop && tensors.iter().all(is_built)).then_some(key.2).flatten()
    };
    let Some(first) = groups.iter().filter_map(builds).min() else {
        return (CopySizes::default(), groups);
    };
    let mut weights = CopySizes::default();
    let mut later: BTreeMap<Key, Vec<AllocationId>> = BTreeMap::new();
    let mut held_until = 0;
    let mut by_turn: Vec<(Key, Vec<AllocationId>)> = groups.into_iter().collect();
    by_turn.sort_by_key(|((.., turn), _)| *turn);
    for ((kind, frame, turn), tensors) in by_turn {
        if kind != Kind::CopiedInLoop || !tensors.iter().all(is_built) {
            later.insert((kind, frame, turn), tensors);
            continue;
        }
        let held =
            tensors.iter().filter_map(|id| facts.timeline.allocation(*id)).map(|one| facts.turns().held(one));
        let (from, until) =
            held.fold((usize::MAX, 0), |(from, until), held| (from.min(held.start), until.max(held.end)));
        if turn == Some(first) {
            for one in tensors.iter().filter_map(|id| facts.timeline.allocation(*id)) {
                weights.add(one.bytes);
            }
        } else if from < held_until {
            later.insert((Kind::BuiltInLoop, frame, turn), tensors);
        }
        held_until = held_until.max(until);
    }
    (weights, later)
}

/// Sizes of gradients, where adapters are put into a model: its weights of other sizes are frozen. None where there are no adapters.
fn trained(facts: &Facts, sources: &[TensorSource]) -> Option<BTreeSet<Bytes>> {
    let gradients = facts.with_role(Role::Gradient).map(|(_, one)| one.bytes);
    sources.iter().any(|source| source.adapts).then(|| gradients.collect())
}

/// The copy that an allocation may be part of.
fn key(
    facts: &Facts,
    id: AllocationId,
    one: &Allocation,
    source: TensorSource,
    (loop_start, trained): (usize, Option<&BTreeSet<Bytes>>),
) -> Option<Key> {
    let frame = source.line.filter(|_| source.made != MadeBy::Averaged)?;
    let born = one.alloc?;
    let ends = facts.ends_held(one);
    if source.made == MadeBy::Loaded {
        // What the optimizer took over from the file is no copy.
        let copy = ends > 0 && facts.role(id) != Role::OptimizerState;
        return copy.then_some((Kind::Loaded, frame, None));
    }
    if source.made == MadeBy::PlainCopied && born.position() < loop_start {
        let kind = if source.constructs { Kind::HeldByObject } else { Kind::StateDict };
        return (ends > 0).then_some((kind, frame, None));
    }
    if source.made == MadeBy::Copied && born.position() < loop_start {
        let frozen = trained.is_some_and(|trained| !trained.contains(&one.bytes));
        return (frozen && ends > 0).then_some((Kind::Base, frame, None));
    }
    let busy = matches!(facts.phase(born), Phase::Backward | Phase::OptimizerStep | Phase::Clipping);
    let other = facts.role(id) == Role::OptimizerState;
    let blank = source.filled == Filled::Blank;
    let long = ends >= if source.made.copies() { 1 } else { 2 };
    let in_loop = born.position() >= loop_start && !busy && !other && !blank && long;
    let kind = match source.made {
        MadeBy::Gathered => Kind::Gathered,
        MadeBy::Otherwise if source.filled == Filled::Later => Kind::AsLarge,
        _ => Kind::CopiedInLoop,
    };
    in_loop.then(|| (kind, frame, facts.born_in(one).map(Index::position)))
}

/// Whether an allocation is of the model: there before the loop and to its end.
fn is_weight(facts: &Facts, id: AllocationId, one: &Allocation, loop_start: usize) -> bool {
    facts.role(id) == Role::Parameter
        && one.alloc.is_none_or(|born| born.position() < loop_start)
        && facts.ends_held(one) >= facts.iteration_ends().len()
}

fn claim<'f>(facts: &'f Facts<'f>, copies: Vec<Copied>) -> Option<Claim<'f>> {
    let about: Vec<AllocationId> = copies.iter().flat_map(|copy| copy.tensors.iter().copied()).collect();
    let largest = copies.iter().max_by_key(|copy| copy.bytes)?;
    let bytes = largest.bytes;
    let sure = match largest.kind {
        Kind::Loaded => Confidence::High,
        Kind::CopiedInLoop
        | Kind::StateDict
        | Kind::Base
        | Kind::Gathered
        | Kind::Part
        | Kind::Stacked
        | Kind::Converted
        | Kind::LoadedByTheEnd
        | Kind::Renewed => Confidence::Medium,
        Kind::HeldByObject | Kind::BuiltInLoop | Kind::Twice | Kind::SetAside | Kind::AsLarge => {
            Confidence::Low
        }
    };
    let mending = Mending::lives(Changes::removing(about.iter().copied()));
    let told = move |worth: &Worth| tell::tell(facts, &copies, worth);
    let claim = Claim::new(&DuplicateWeights::META, about, mending, told).holding(bytes).sure(sure);
    // A program may well compute with these, and the recording would not show it.
    let most = if sure == Confidence::Low { Severity::Info } else { Severity::Error };
    Some(claim.at_most(most))
}
