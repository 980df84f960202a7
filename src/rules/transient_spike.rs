//! A few short-lived tensors of one line that make a good part of the peak.

use std::collections::{BTreeMap, BTreeSet};

use super::claim::{Claim, Mending, Place as Spot, Telling, Worth, related};
use super::{declare_rule, measure};
use crate::facts::{Facts, Maker};
use crate::finding::{Finding, Measure, Related, Severity, Value};
use crate::lives::Changes;
use crate::program::Phase;
use crate::role::Role;
use crate::threshold::Threshold;
use crate::timeline::Allocation;
use crate::unit::{AllocationId, Bytes, FrameId, FunctionId, Index, count, percent};

declare_rule! {
    /// A few short-lived tensors of one line make a good part of the peak.
    TransientSpike = "transient-spike", Peak, Warning,
    needs: [History, Stacks],
    summary: "a few short-lived tensors of one line make a good part of the peak",
}

/// The share of the peak that the tensors of one line have to make.
static SHARE: Threshold<f64> = Threshold::new("rules::transient_spike::SHARE", 0.25);
/// The share of the peak below which a single tensor is no spike.
static SINGLE: Threshold<f64> = Threshold::new("rules::transient_spike::SINGLE", 0.1);
/// The same as a divisor.
static SINGLE_PART: Threshold<u64> = Threshold::new("rules::transient_spike::SINGLE_PART", 10);
/// A spike is a few tensors: many small ones are a model at work.
static FEW: Threshold<usize> = Threshold::new("rules::transient_spike::FEW", 4);
/// A tensor may live for an iteration's events divided by this.
static LIFE_PART: Threshold<usize> = Threshold::new("rules::transient_spike::LIFE_PART", 10);
/// The same for what one function makes for a line that calls it: its tensors live until it returns. Matrices of distances
/// in a small network measure 0.13.
static CALL_PART: Threshold<usize> = Threshold::new("rules::transient_spike::CALL_PART", 5);
/// How far the peak before the loop has to stand above the loop's.
static BEFORE: Threshold<f64> = Threshold::new("rules::transient_spike::BEFORE", 1.5);

/// A line with what it has alive at the peak.
struct Spike {
    frame: FrameId,
    /// The line of the function that it calls which makes most of them, where no line of it makes enough alone.
    inner: Option<FrameId>,
    /// The largest tensors at the peak; some may be the backward pass's counterparts.
    at_peak: Vec<AllocationId>,
    /// All alike, over the whole recording.
    all: Vec<AllocationId>,
    bytes: Bytes,
}

impl TransientSpike {
    fn claims<'f>(facts: &'f Facts<'f>) -> Vec<Claim<'f>> {
        let before = claim(facts, before_the_loop(facts), facts.peak());
        let steady = facts.steady().peak;
        let inside = claim(facts, in_the_loop(facts), steady).or_else(|| library_workspace(facts, steady));
        before.into_iter().chain(inside).collect()
    }
}

/// One claim for all spikes at one peak.
fn claim<'f>(facts: &'f Facts<'f>, spikes: Vec<Spike>, peak: Bytes) -> Option<Claim<'f>> {
    let about: Vec<AllocationId> = spikes.iter().flat_map(|spike| spike.all.iter().copied()).collect();
    let mending = Mending::lives(Changes::removing(about.iter().copied()));
    let told = move |worth: &Worth| tell(facts, &spikes, peak, worth);
    let any = !about.is_empty();
    any.then(|| Claim::new(&TransientSpike::META, about, mending, told))
}

/// What the set-up needed for a moment, where the loop needs much less.
fn before_the_loop(facts: &Facts) -> Vec<Spike> {
    let loop_start = facts.program.iterations.first().map_or(0, |first| first.start.position());
    let (peak, steady) = (facts.timeline.peak_requested, facts.steady().peak);
    let Some(at) = peak.event.filter(|event| event.position() < loop_start) else { return Vec::new() };
    if (peak.bytes.get() as f64) < BEFORE.get() * steady.get() as f64 {
        return Vec::new();
    }
    let mut lines: BTreeMap<FrameId, Vec<AllocationId>> = BTreeMap::new();
    for (id, one) in facts.timeline.iter().filter(|(_, one)| one.alive_after(at)) {
        let gone = one.free.is_some_and(|event| event.position() <= loop_start);
        let role = facts.role(id);
        let kept = matches!(role, Role::Parameter | Role::OptimizerState | Role::Gradient | Role::Workspace);
        let large = one.bytes.share_of(peak.bytes) >= SINGLE.get();
        let frame = one.stack.and_then(|stack| facts.site(stack));
        if let Some(frame) = frame.filter(|_| gone && !kept && large) {
            lines.entry(frame).or_default().push(id);
        }
    }
    let spikes =
        lines.into_iter().filter_map(|(frame, all)| spike(facts, frame, all.clone(), all, peak.bytes));
    let mut spikes: Vec<Spike> = spikes.collect();
    spikes.sort_by(|a, b| b.bytes.cmp(&a.bytes).then(a.frame.cmp(&b.frame)));
    spikes
}

fn spike(
    facts: &Facts,
    frame: FrameId,
    mut at_peak: Vec<AllocationId>,
    all: Vec<AllocationId>,
    peak: Bytes,
) -> Option<Spike> {
    at_peak.sort_by_key(|id| std::cmp::Reverse(facts.bytes(&[*id])));
    at_peak.truncate(FEW.get());
    let bytes = facts.bytes(&at_peak);
    (bytes.share_of(peak) >= SHARE.get()).then_some(Spike { frame, inner: None, at_peak, all, bytes })
}

/// The lines that set the loop's peak with short-lived tensors; heaviest first.
fn in_the_loop(facts: &Facts) -> Vec<Spike> {
    let steady = facts.steady();
    let Some(at) = steady.peak_event else { return Vec::new() };
    let scene = Scene::of(facts);
    let mut lines: BTreeMap<Place, Vec<AllocationId>> = BTreeMap::new();
    let mut backward: BTreeMap<Bytes, Vec<AllocationId>> = BTreeMap::new();
    for (id, one) in facts.timeline.iter().filter(|(_, one)| scene.is_large_and_short(one)) {
        if facts.role(id) == Role::Workspace {
            continue;
        }
        match scene.place(one) {
            Some(place) => lines.entry(place).or_default().push(id),
            None if scene.is_unframed_backward(one) => backward.entry(one.bytes).or_default().push(id),
            None => {}
        }
    }
    let is_at_peak =
        |id: &AllocationId| facts.timeline.allocation(*id).is_some_and(|one| one.alive_after(at));
    let mut spikes: Vec<Spike> = lines
        .into_iter()
        .filter_map(|(place, mut all)| {
            // The gradient of a large tensor is as large, and is made and dropped on the engine's thread.
            let sizes: BTreeSet<Bytes> = all.iter().map(|id| facts.bytes(&[*id])).collect();
            let counterparts = backward.iter().filter(|(bytes, _)| is_one_of(&sizes, **bytes));
            let mut counterparts: Vec<AllocationId> =
                counterparts.flat_map(|(_, ids)| ids).copied().collect();
            counterparts.sort_unstable();
            all.extend(counterparts);
            let at_peak: Vec<AllocationId> = all.iter().copied().filter(is_at_peak).collect();
            let heaviest = heaviest_line(facts, &at_peak)?;
            let enough = heaviest.1.share_of(steady.peak) >= SHARE.get();
            let (frame, inner) = match place {
                Place::Call { caller, .. } if !enough => (caller, Some(heaviest.0)),
                _ => (heaviest.0, None),
            };
            Some(Spike { inner, ..spike(facts, frame, at_peak, all, steady.peak)? })
        })
        .collect();
    spikes.sort_by(|a, b| b.bytes.cmp(&a.bytes).then(a.frame.cmp(&b.frame)));
    spikes
}

/// Of some tensors the line that makes most bytes, and these.
fn heaviest_line(facts: &Facts, tensors: &[AllocationId]) -> Option<(FrameId, Bytes)> {
    let mut lines: BTreeMap<FrameId, Bytes> = BTreeMap::new();
    for one in tensors.iter().filter_map(|id| facts.timeline.allocation(*id)) {
        if let Some(frame) = one.stack.and_then(|stack| facts.site(stack)) {
            *lines.entry(frame).or_default() += one.bytes;
        }
    }
    lines.into_iter().max_by_key(|(frame, bytes)| (*bytes, std::cmp::Reverse(*frame)))
}

/// Whether an amount is within a hundredth of one of these sizes. If it is of any, it is of one of its neighbours.
fn is_one_of(sizes: &BTreeSet<Bytes>, bytes: Bytes) -> bool {
    let mut neighbours = sizes.range(..bytes).next_back().into_iter().chain(sizes.range(bytes..).next());
    neighbours.any(|size| size.get().abs_diff(bytes.get()) <= size.get() / 100)
}

/// What counts together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Place {
    /// What one line makes.
    Line(FrameId),
    /// What a function makes for one line that calls it: the steps of one computation.
    Call { caller: FrameId, function: FunctionId },
}

/// What short and large mean here.
struct Scene<'f, 'a> {
    facts: &'f Facts<'a>,
    makers: Vec<Option<Maker>>,
    /// Bytes from which a single tensor counts.
    large: Bytes,
    /// How many events it may live, and how many if it is a function's.
    short: usize,
    short_in_call: usize,
    /// The largest output of a layer in the loop.
    largest_layer: Bytes,
}

/// How many events an iteration has, the median one; where nothing repeats, a step's share of the recording.
fn length_of_a_pass(facts: &Facts) -> usize {
    let iterations = facts.program.iterations.iter();
    let mut lengths: Vec<usize> =
        iterations.map(|one| one.end.position().saturating_sub(one.start.position())).collect();
    lengths.sort_unstable();
    lengths
        .get(lengths.len() / 2)
        .copied()
        .unwrap_or(facts.trace.events.len() / facts.program.steps.len().max(1))
}

impl<'f, 'a> Scene<'f, 'a> {
    fn of(facts: &'f Facts<'a>) -> Scene<'f, 'a> {
        let makers = facts.makers();
        let median = length_of_a_pass(facts);
        let large = Bytes(facts.steady().peak.get() / SINGLE_PART.get());
        let (short, short_in_call) = (median / LIFE_PART.get(), median / CALL_PART.get());
        let mut scene = Scene { facts, makers, large, short, short_in_call, largest_layer: Bytes::ZERO };
        let layers = facts.timeline.iter().filter(|(id, one)| {
            scene.maker(one) == Some(Maker::Layer)
                && facts.role(*id) != Role::Workspace
                && one.alloc.is_some_and(|event| facts.steady().events.contains(&event.position()))
        });
        scene.largest_layer = layers.map(|(_, one)| one.bytes).max().unwrap_or_default();
        scene
    }

    fn maker(&self, one: &Allocation) -> Option<Maker> {
        one.stack.and_then(|stack| self.makers.get(stack.position()).copied().flatten())
    }

    fn is_large_and_short(&self, one: &Allocation) -> bool {
        let (Some(born), Some(died)) = (one.alloc, one.free_requested) else { return false };
        let in_loop = self.facts.works_at(born);
        let lives = died.position() - born.position();
        in_loop && one.bytes >= self.large && (lives <= self.short || self.is_brief_in_call(one, lives))
    }

    fn is_brief_in_call(&self, one: &Allocation, lives: usize) -> bool {
        lives <= self.short_in_call && matches!(self.place(one), Some(Place::Call { .. }))
    }

    /// The line that chose to make a tensor: that of a loss, or of code whose tensor is larger than what layers make.
    fn line(&self, one: &Allocation) -> Option<FrameId> {
        let (factor, otherwise) = match self.maker(one)? {
            Maker::Layer => return None,
            Maker::Loss => (0.0, true),
            Maker::Function => (1.5, true),
            Maker::Forward => (3.0, false),
        };
        let outgrows = if self.largest_layer == Bytes::ZERO {
            otherwise
        } else {
            one.bytes.get() as f64 >= factor * self.largest_layer.get() as f64
        };
        self.facts.site(one.stack?).filter(|_| outgrows)
    }

    /// A function outside every module and outside the main loop's own body does one thing for the line that calls it.
    fn place(&self, one: &Allocation) -> Option<Place> {
        let line = self.line(one)?;
        let function = |frame: FrameId| self.facts.frames.function(frame);
        let looping = self.facts.program.main_loop.and_then(|main| function(main.frame));
        let own = function(line).filter(|own| Some(*own) != looping);
        let caller = self.facts.frames.user(one.stack?).nth(1);
        let is_function = self.maker(one) == Some(Maker::Function);
        let call = caller.zip(own).filter(|_| is_function);
        Some(call.map_or(Place::Line(line), |(caller, function)| Place::Call { caller, function }))
    }

    fn is_unframed_backward(&self, one: &Allocation) -> bool {
        self.maker(one).is_none() && one.alloc.is_some_and(|event| self.facts.phase(event) == Phase::Backward)
    }
}

/// One finding for all spikes at one peak: at the heaviest line, the others related.
fn tell(facts: &Facts, spikes: &[Spike], peak: Bytes, worth: &Worth) -> Finding {
    let Some(first) = spikes.first() else {
        return Finding::of(TransientSpike::META.name, TransientSpike::META.group, Severity::Info);
    };
    let share = first.bytes.share_of(peak);
    let own = first.all.iter().filter_map(|id| facts.timeline.allocation(*id));
    let stack = own.clone().find_map(|one| one.stack.filter(|stack| facts.site(*stack).is_some()));
    let place = Spot::At(first.frame, stack, own.clone().find_map(|one| one.alloc));
    let inner = related(facts, first.inner, &place, "most of them are made here");
    let others = spikes.iter().skip(1).take(3);
    let others = others
        .filter_map(|spike| related(facts, Some(spike.frame), &place, format!("{} more here", spike.bytes)));
    let beside: Vec<Related> = inner.into_iter().chain(others).collect();
    let telling = Telling {
        message: format!("{} of short-lived tensors make {} of the peak", first.bytes, percent(share)),
        help: "work in pieces: for part in x.split(n, dim=0): ... (a fused or chunked loss, no upcast of the whole)"
            .to_owned(),
        label: format!("{} for a moment", count(first.at_peak.len(), "large tensor")),
        related: beside,
        evidence: evidence(facts, first, share),
        place,
    };
    telling.told(facts, &TransientSpike::META, worth)
}

fn evidence(facts: &Facts, spike: &Spike, share: f64) -> Vec<Measure> {
    let largest = spike.at_peak.first().map_or(Bytes::ZERO, |id| facts.bytes(&[*id]));
    vec![
        measure(
            "at-peak",
            Value::Bytes(spike.bytes),
            format!("{} in {} at the peak", spike.bytes, count(spike.at_peak.len(), "tensor")),
        ),
        measure("largest", Value::Bytes(largest), format!("the largest holds {largest}")),
        measure("share-of-peak", Value::Ratio(share), String::new()),
    ]
}

/// One workspace of a library that makes a quarter of the peak: worth knowing, rarely worth a change.
fn library_workspace<'f>(facts: &'f Facts<'f>, peak: Bytes) -> Option<Claim<'f>> {
    let at = facts.steady().peak_event?;
    let largest = facts
        .with_role(Role::Workspace)
        .filter(|(_, one)| one.alive_after(at) && facts.ends_held(one) == 0)
        .max_by_key(|(id, one)| (one.bytes, std::cmp::Reverse(*id)));
    let (id, one) = largest.filter(|(_, one)| one.bytes.share_of(peak) >= SHARE.get())?;
    let stack = facts.seen_stack(one.alloc?)?;
    let frame = facts.site(stack)?;
    let (bytes, born) = (one.bytes, one.alloc);
    let told = move |worth: &Worth| {
        let telling = Telling {
            message: format!("one workspace of a library is {bytes} at the peak"),
            help: "limit it if memory is short: torch.backends.cudnn.benchmark = False, or a smaller batch"
                .to_owned(),
            place: Spot::At(frame, Some(stack), born),
            label: "a library's scratch memory, for one operation".to_owned(),
            related: Vec::new(),
            evidence: vec![measure("at-peak", Value::Bytes(bytes), format!("{bytes} for a moment"))],
        };
        telling.told(facts, &TransientSpike::META, worth)
    };
    let mending = Mending::lives(Changes::removing([id]));
    Some(Claim::new(&TransientSpike::META, [id], mending, told).at_most(Severity::Info))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_alike_within_a_hundredth() {
        let sizes = BTreeSet::from([Bytes(1000), Bytes(2000), Bytes(u64::MAX)]);
        let alike = |bytes| is_one_of(&sizes, Bytes(bytes));
        assert!(alike(990) && alike(1010) && alike(1980) && alike(u64::MAX - 9));
        assert!(!alike(989) && !alike(1011) && !alike(1979) && !alike(1 << 63));
    }
}
