//! A second copy of the model's weights that nobody computes with.

mod computed;

use std::collections::{BTreeMap, BTreeSet};

use super::claim::{Claim, Mending, Place, Telling, Worth};
use super::{declare_rule, measure};
use crate::facts::Facts;
use crate::finding::{Finding, Severity, Value};
use crate::frames::{GraphSign, MemorySign, Method};
use crate::lives::Changes;
use crate::program::Phase;
use crate::role::Role;
use crate::threshold::Threshold;
use crate::timeline::Allocation;
use crate::unit::{AllocationId, Bytes, Confidence, FrameId, Index, StackId, count, percent};

declare_rule! {
    /// A second copy of the model's weights stays on the device.
    DuplicateWeights = "duplicate-weights", Peak, Warning,
    needs: [History, Stacks, Beginning, Iterations],
    summary: "a second copy of the model's weights stays on the device",
}

/// The share of the model's weights that a copy has to hold.
static COVERED: Threshold<f64> = Threshold::new("rules::duplicate_weights::COVERED", 0.8);
/// The share of an in-loop copy that has to be weights: other things are made in loops, too.
static ALIKE: Threshold<f64> = Threshold::new("rules::duplicate_weights::ALIKE", 0.8);
/// Fewer tensors of equal sizes prove nothing.
static FEWEST: Threshold<usize> = Threshold::new("rules::duplicate_weights::FEWEST", 4);

/// How a copy came to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    /// `torch.load` to the device, kept after the model took the values over.
    Loaded,
    /// Copied while training runs: a best model, a snapshot. (Modules that are copied before training are computed with:
    /// moving averages, target networks, teachers.)
    CopiedInLoop,
    /// `deepcopy(model.state_dict())` before training: plain tensors, with which no module computes.
    StateDict,
    /// The same in a constructor: the object may keep a moving average in it.
    HeldByObject,
    /// A module is copied before training, of which adapters train and the weights themselves never: the copy stays equal.
    Base,
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
        for copy in copies_of_weights(facts) {
            copies.entry((copy.kind, copy.frame)).or_default().push(copy);
        }
        copies.into_values().filter_map(|copies| claim(facts, copies)).collect()
    }
}

fn copies_of_weights(facts: &Facts) -> Vec<Copied> {
    let sources: Vec<Source> = facts.snapshot.stacks.ids().map(|stack| source(facts, stack)).collect();
    let trained = trained(facts, &sources);
    let mut groups: BTreeMap<Key, Vec<AllocationId>> = BTreeMap::new();
    let mut weights: BTreeMap<Bytes, usize> = BTreeMap::new();
    let loop_start = facts.program.iterations.first().map_or(0, |first| first.start.position());
    for (id, one) in facts.timeline.iter() {
        let source = one.stack.and_then(|stack| sources.get(stack.position())).copied().unwrap_or_default();
        match key(facts, id, one, source, (loop_start, trained.as_ref())) {
            Some(key) => groups.entry(key).or_default().push(id),
            None if is_weight(facts, id, one, loop_start) => *weights.entry(one.bytes).or_default() += 1,
            None => {}
        }
    }
    let all: Bytes = weights.iter().map(|(bytes, count)| bytes.times(*count as u64)).sum();
    let copy = |((kind, frame, _), tensors): (Key, Vec<AllocationId>)| {
        let mut left = weights.clone();
        let mut matched = Bytes::ZERO;
        let mut count = 0;
        for one in tensors.iter().filter_map(|id| facts.timeline.allocation(*id)) {
            if let Some(left) = left.get_mut(&one.bytes).filter(|left| **left > 0) {
                *left -= 1;
                matched += one.bytes;
                count += 1;
            }
        }
        let bytes = facts.bytes(&tensors);
        let covered = matched.share_of(all);
        // Of a base there may be several copies.
        let alike = matches!(kind, Kind::Loaded | Kind::Base) || matched.share_of(bytes) >= ALIKE.get();
        let copied = covered >= COVERED.get() && alike && count >= FEWEST.get();
        copied.then_some(Copied { kind, frame, tensors, bytes, covered })
    };
    computed::without(facts, &sources, groups.into_iter().filter_map(copy).collect())
}

/// Sizes of gradients, where adapters are put into a model: its weights of other sizes are frozen. None where there are no adapters.
fn trained(facts: &Facts, sources: &[Source]) -> Option<BTreeSet<Bytes>> {
    let gradients = facts.with_role(Role::Gradient).map(|(_, one)| one.bytes);
    sources.iter().any(|source| source.adapts).then(|| gradients.collect())
}

/// What a stack says of the tensors made under it.
#[derive(Debug, Clone, Copy, Default)]
struct Source {
    line: Option<FrameId>,
    made: Made,
    constructs: bool,
    /// C++ frames show that a tensor is filled with one value.
    blank: bool,
    /// An adapter is made.
    adapts: bool,
}

/// By what.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Made {
    /// A file is read.
    Loaded,
    /// A module is copied, with its parameters.
    Copied,
    /// Plain tensors are copied, as those of a state dict.
    PlainCopied,
    /// A moving average of the weights makes its copy: it is wanted.
    Averaged,
    #[default]
    Otherwise,
}

fn source(facts: &Facts, stack: StackId) -> Source {
    let mut source = Source { line: facts.site(stack), ..Source::default() };
    let frames = facts.snapshot.stacks.get(stack);
    source.blank = frames.iter().any(|frame| facts.frames.graph(*frame) == GraphSign::Blank);
    let (mut loads, mut builds, mut copies, mut averages) = (false, false, false, false);
    let (mut tensors, mut parameters) = (false, false);
    for frame in facts.frames.python(stack).iter().filter_map(|id| facts.frames.get(*id)) {
        loads |= frame.memory == MemorySign::Read;
        copies |= frame.memory == MemorySign::Copy;
        tensors |= frame.memory == MemorySign::CopyTensor;
        parameters |= frame.memory == MemorySign::CopyParameter;
        averages |= frame.memory == MemorySign::Average;
        source.adapts |= frame.memory == MemorySign::Adapts;
        builds |= frame.method == Method::Pretrained;
        source.constructs |= frame.method == Method::Constructor;
    }
    // What `from_pretrained` reads is the model itself.
    source.made = match (loads && !builds, copies) {
        _ if averages => Made::Averaged,
        (true, _) => Made::Loaded,
        (false, true) if tensors && !parameters => Made::PlainCopied,
        (false, true) => Made::Copied,
        (false, false) => Made::Otherwise,
    };
    source
}

/// The copy that an allocation may be part of.
fn key(
    facts: &Facts,
    id: AllocationId,
    one: &Allocation,
    source: Source,
    (loop_start, trained): (usize, Option<&BTreeSet<Bytes>>),
) -> Option<Key> {
    let frame = source.line.filter(|_| source.made != Made::Averaged)?;
    let born = one.alloc?;
    let ends = facts.ends_held(one);
    if source.made == Made::Loaded {
        return (ends > 0).then_some((Kind::Loaded, frame, None));
    }
    if source.made == Made::PlainCopied && born.position() < loop_start {
        let kind = if source.constructs { Kind::HeldByObject } else { Kind::StateDict };
        return (ends > 0).then_some((kind, frame, None));
    }
    if source.made == Made::Copied && born.position() < loop_start {
        let frozen = trained.is_some_and(|trained| !trained.contains(&one.bytes));
        return (frozen && ends > 0).then_some((Kind::Base, frame, None));
    }
    let busy = matches!(facts.phase(born), Phase::Backward | Phase::OptimizerStep | Phase::Clipping);
    let other = facts.role(id) == Role::OptimizerState;
    let blank = source.blank;
    let long = ends >= if source.made == Made::Otherwise { 2 } else { 1 };
    let in_loop = born.position() >= loop_start && !busy && !other && !blank && long;
    in_loop.then(|| (Kind::CopiedInLoop, frame, facts.born_in(one).map(Index::position)))
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
    let (kind, bytes) = (largest.kind, largest.bytes);
    let sure = match kind {
        Kind::Loaded => Confidence::High,
        Kind::CopiedInLoop | Kind::StateDict | Kind::Base => Confidence::Medium,
        Kind::HeldByObject => Confidence::Low,
    };
    let mending = Mending::lives(Changes::removing(about.iter().copied()));
    let told = move |worth: &Worth| tell(facts, &copies, worth);
    let claim = Claim::new(&DuplicateWeights::META, about, mending, told).holding(bytes).sure(sure);
    // An object may well compute with what it holds.
    let most = if kind == Kind::HeldByObject { Severity::Info } else { Severity::Error };
    Some(claim.at_most(most))
}

fn tell(facts: &Facts, copies: &[Copied], worth: &Worth) -> Finding {
    let meta = &DuplicateWeights::META;
    let Some(largest) = copies.iter().max_by_key(|copy| copy.bytes) else {
        return Finding::of(meta.name, meta.group, Severity::Info);
    };
    let bytes = largest.bytes;
    let (message, help, label) = match largest.kind {
        Kind::Loaded => (
            format!("a loaded checkpoint stays next to the model ({bytes})"),
            "load to the host and let go of it: torch.load(path, map_location=\"cpu\"); del checkpoint",
            "loaded to the device here and never freed",
        ),
        Kind::CopiedInLoop => (
            format!("a copy of the model's weights stays on the device ({bytes})"),
            "keep it on the host: {k: v.detach().cpu() for k, v in model.state_dict().items()}, or save it to disk",
            "copied here while training runs",
        ),
        Kind::StateDict | Kind::HeldByObject => (
            format!("a copy of the model's state dict stays on the device ({bytes})"),
            "keep it on the host: {k: v.detach().cpu() for k, v in model.state_dict().items()}, or save it to disk",
            "copied here before training, and held ever since",
        ),
        Kind::Base => (
            format!("copies of a frozen base model stay beside it ({bytes})"),
            "share one base: model.add_adapter(name, config) and model.set_adapter(name); a reference is the same model under `with model.disable_adapter():`",
            "copied here, though only adapters are trained",
        ),
    };
    let tensors = largest.tensors.as_slice();
    let place = match Place::responsible(facts, tensors, false) {
        Place::Nowhere => Place::At(largest.frame, None, None),
        known @ Place::At(..) => known,
    };
    let ends = tensors.iter().filter_map(|id| facts.timeline.allocation(*id)).map(|one| facts.ends_held(one));
    let ends = ends.max().unwrap_or(0);
    let telling = Telling {
        message,
        help: help.to_owned(),
        place,
        label: label.to_owned(),
        related: Vec::new(),
        evidence: vec![
            measure("copy", Value::Bytes(bytes), format!("{bytes} in {}", count(tensors.len(), "tensor"))),
            measure(
                "covered",
                Value::Ratio(largest.covered),
                format!("equal in size to {} of the model's weights", percent(largest.covered)),
            ),
            measure("copies", Value::Count(copies.len() as u64), count(copies.len(), "such copy")),
            measure(
                "ends-outlived",
                Value::Count(ends as u64),
                format!("alive over {}", count(ends, "iteration end")),
            ),
        ],
    };
    telling.told(facts, meta, worth)
}
