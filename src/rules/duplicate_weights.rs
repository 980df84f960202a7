//! A second copy of the model's weights that nobody computes with.

use std::collections::BTreeMap;

use rustc_hash::FxHashSet;

use super::{declare_rule, growing_residency, measure, place, shown};
use crate::facts::{Changes, Facts};
use crate::finding::{Finding, Impact, Severity, Value};
use crate::program::Phase;
use crate::role::Role;
use crate::timeline::Allocation;
use crate::unit::{AllocationId, Bytes, Confidence, FrameId, Index, StackId, count, percent};

declare_rule! {
    /// A second copy of the model's weights stays on the device.
    DuplicateWeights = "duplicate-weights", Peak, Warning,
    needs: [History, Stacks, Beginning, Iterations],
    summary: "a second copy of the model's weights stays on the device",
}

/// The share of the model's weights that a copy has to hold.
const COVERED: f64 = 0.8;
/// The share of an in-loop copy that has to be weights: other things are made in loops, too.
const ALIKE: f64 = 0.8;
/// Fewer tensors of equal sizes prove nothing.
const FEWEST: usize = 4;
/// The share of the peak that doing without the copy has to save for a warning.
const SAVED: f64 = 0.05;

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

impl Copied {
    /// Whether at least half of it is known otherwise: copies that pile up are a leak.
    fn is_mostly_in(&self, facts: &Facts, known: &FxHashSet<AllocationId>) -> bool {
        let inside: Vec<AllocationId> =
            self.tensors.iter().copied().filter(|id| known.contains(id)).collect();
        facts.bytes(&inside).share_of(self.bytes) >= 0.5
    }
}

impl DuplicateWeights {
    fn detect(facts: &Facts) -> Vec<Finding> {
        let mut copies: BTreeMap<(Kind, FrameId), Vec<Copied>> = BTreeMap::new();
        let piled = growing_residency::piled(facts);
        for copy in copies_of_weights(facts).into_iter().filter(|copy| !copy.is_mostly_in(facts, &piled)) {
            copies.entry((copy.kind, copy.frame)).or_default().push(copy);
        }
        copies.values().filter_map(|copies| report(facts, copies)).collect()
    }
}

fn copies_of_weights(facts: &Facts) -> Vec<Copied> {
    let sources: Vec<Source> = facts.snapshot.stacks.ids().map(|stack| source(facts, stack)).collect();
    let mut groups: BTreeMap<Key, Vec<AllocationId>> = BTreeMap::new();
    let mut weights: BTreeMap<Bytes, usize> = BTreeMap::new();
    let loop_start = facts.program.iterations.first().map_or(0, |first| first.start.position());
    for (id, one) in facts.timeline.iter() {
        let source = one.stack.and_then(|stack| sources.get(stack.position())).copied().unwrap_or_default();
        match key(facts, id, one, source, loop_start) {
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
        let alike = kind == Kind::Loaded || matched.share_of(bytes) >= ALIKE;
        let copied = covered >= COVERED && alike && count >= FEWEST;
        copied.then_some(Copied { kind, frame, tensors, bytes, covered })
    };
    groups.into_iter().filter_map(copy).collect()
}

/// What a stack says of the tensors made under it.
#[derive(Debug, Clone, Copy, Default)]
struct Source {
    line: Option<FrameId>,
    made: Made,
    constructs: bool,
    /// A moving average of the weights makes its copy: it is wanted.
    averages: bool,
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
    #[default]
    Otherwise,
}

fn source(facts: &Facts, stack: StackId) -> Source {
    let mut source = Source { line: facts.site(stack), ..Source::default() };
    let (mut loads, mut builds, mut copies) = (false, false, false);
    let (mut tensors, mut parameters) = (false, false);
    for frame in facts.code.python(stack).iter().filter_map(|id| facts.snapshot.stacks.frame(*id)) {
        let (file, name) = (facts.snapshot.text(frame.file), facts.snapshot.text(frame.name));
        loads |= is_loader(file, name);
        builds |= name == "from_pretrained";
        copies |= file.ends_with("/copy.py");
        tensors |= name == "__deepcopy__" && file.ends_with("torch/_tensor.py");
        parameters |= name == "__deepcopy__" && file.ends_with("torch/nn/parameter.py");
        source.averages |= file.ends_with("torch/optim/swa_utils.py") || file.ends_with("utils/model_ema.py");
        source.constructs |= name == "__init__";
    }
    // What `from_pretrained` reads is the model itself.
    source.made = match (loads && !builds, copies) {
        (true, _) => Made::Loaded,
        (false, true) if tensors && !parameters => Made::PlainCopied,
        (false, true) => Made::Copied,
        (false, false) => Made::Otherwise,
    };
    source
}

/// Whether a function reads a file of weights into tensors of its own: `torch.load`, safetensors, and what stands before
/// them in `huggingface_hub` and transformers.
fn is_loader(file: &str, name: &str) -> bool {
    file.ends_with("torch/serialization.py")
        || (file.ends_with("safetensors/torch.py") && name.starts_with("load"))
        || (file.ends_with("huggingface_hub/serialization/_torch.py") && name.starts_with("load"))
        || (file.ends_with("transformers/modeling_utils.py") && name == "load_state_dict")
}

/// The copy that an allocation may be part of.
fn key(facts: &Facts, id: AllocationId, one: &Allocation, source: Source, loop_start: usize) -> Option<Key> {
    let frame = source.line.filter(|_| !source.averages)?;
    let born = one.alloc?;
    let ends = facts.ends_held(one);
    if source.made == Made::Loaded {
        return (ends > 0).then_some((Kind::Loaded, frame, None));
    }
    if source.made == Made::PlainCopied && born.position() < loop_start {
        let kind = if source.constructs { Kind::HeldByObject } else { Kind::StateDict };
        return (ends > 0).then_some((kind, frame, None));
    }
    let busy = matches!(facts.phase(born), Phase::Backward | Phase::OptimizerStep | Phase::Clipping);
    let other = facts.role(id) == Role::OptimizerState;
    let long = ends >= if source.made == Made::Otherwise { 2 } else { 1 };
    let in_loop = born.position() >= loop_start && !busy && !other && long;
    in_loop.then(|| (Kind::CopiedInLoop, frame, facts.born_in(one).map(Index::position)))
}

/// Whether an allocation is of the model: there before the loop and to its end.
fn is_weight(facts: &Facts, id: AllocationId, one: &Allocation, loop_start: usize) -> bool {
    facts.role(id) == Role::Parameter
        && one.alloc.is_none_or(|born| born.position() < loop_start)
        && facts.ends_held(one) >= facts.iteration_ends().len()
}

fn report(facts: &Facts, copies: &[Copied]) -> Option<Finding> {
    let largest = copies.iter().max_by_key(|copy| copy.bytes)?;
    let changes = Changes::removing(copies.iter().flat_map(|copy| copy.tensors.iter().copied()));
    let steady = facts.steady();
    let saved = changes.saving(facts.timeline);
    let later = changes.saving_within(facts.timeline, steady.events.clone());
    let share = saved.share_of(facts.peak()).max(later.share_of(steady.peak));
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
    };
    let mut finding = DuplicateWeights::META.finding(facts, message, help);
    if share < SAVED || largest.kind == Kind::HeldByObject {
        finding.severity = Severity::Info;
    }
    let tensors = largest.tensors.as_slice();
    let guilty = facts.guilty(tensors.iter().copied());
    let blamed = facts.blame().narrowest(&guilty).unwrap_or(largest.frame);
    finding.location = place(facts, blamed);
    label.clone_into(&mut finding.label);
    finding.stack = guilty.first().map(|one| shown(facts, one.stack)).unwrap_or_default();
    let first = tensors.first().and_then(|id| facts.timeline.allocation(*id)?.alloc);
    finding.phase = first.map(|event| facts.phase(event)).unwrap_or_default();
    finding.confidence = match largest.kind {
        Kind::Loaded => Confidence::High,
        Kind::CopiedInLoop | Kind::StateDict => Confidence::Medium,
        Kind::HeldByObject => Confidence::Low,
    };
    let ends = tensors.iter().filter_map(|id| facts.timeline.allocation(*id)).map(|one| facts.ends_held(one));
    let ends = ends.max().unwrap_or(0);
    finding.evidence = vec![
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
    ];
    finding.impact = Impact { peak: Some(saved), resident: Some(bytes), ..Impact::default() };
    Some(finding)
}
