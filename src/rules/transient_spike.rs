//! A few short-lived tensors of one line that make a good part of the peak.

mod yardstick;

use std::collections::{BTreeMap, BTreeSet};

use super::claim::{Anchor as Spot, Claim, Mending, Telling, Worth, related};
use super::{declare_rule, measure};
use crate::facts::Facts;
use crate::finding::{Finding, Measure, Quantity, Related, Severity};
use crate::lives::Changes;
use crate::role::Role;
use crate::threshold::Threshold;
use crate::unit::{AllocationId, Bytes, FrameId, Index, count, percent};
use yardstick::{Together, Yardstick};

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
/// A spike is a few tensors: many small ones are a model at work.
static FEW: Threshold<usize> = Threshold::new("rules::transient_spike::FEW", 4);
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
    /// Whether they are gradients of each sample by itself.
    per_sample: bool,
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
    let loop_start = facts.loop_start();
    let (peak, steady) = (facts.timeline.peak_requested, facts.steady().peak);
    let Some(at) = peak.event.filter(|event| event.position() < loop_start) else { return Vec::new() };
    if (peak.bytes.get() as f64) < BEFORE.get() * steady.get() as f64 {
        return Vec::new();
    }
    // What the line makes at the peak, and its like at other times: without the one the next is the peak.
    let mut lines: BTreeMap<FrameId, (Vec<AllocationId>, Vec<AllocationId>)> = BTreeMap::new();
    for (id, one) in
        facts.timeline.iter().filter(|(_, one)| one.alloc.is_none_or(|born| born.position() < loop_start))
    {
        let gone = one.free.is_some_and(|event| event.position() <= loop_start);
        let role = facts.role(id);
        let kept = matches!(role, Role::Parameter | Role::OptimizerState | Role::Gradient | Role::Workspace);
        let large = one.bytes.share_of(peak.bytes) >= SINGLE.get();
        let frame = one.stack.and_then(|stack| facts.site(stack));
        if let Some(frame) = frame.filter(|_| gone && !kept && large) {
            let (at_peak, all) = lines.entry(frame).or_default();
            all.push(id);
            at_peak.extend(one.alive_after(at).then_some(id));
        }
    }
    let spikes =
        lines.into_iter().filter_map(|(frame, (at_peak, all))| spike(facts, frame, at_peak, all, peak.bytes));
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
    (bytes.share_of(peak) >= SHARE.get()).then_some(Spike {
        frame,
        inner: None,
        at_peak,
        all,
        bytes,
        per_sample: false,
    })
}

/// Brief tensors that count together.
#[derive(Default)]
struct BriefGroup {
    all: Vec<AllocationId>,
    /// Sizes of those that are larger than what layers make.
    chosen: BTreeSet<Bytes>,
}

/// The lines that set the loop's peak with short-lived tensors; heaviest first.
fn in_the_loop(facts: &Facts) -> Vec<Spike> {
    let steady = facts.steady();
    let Some(at) = steady.peak_event else { return Vec::new() };
    let yardstick = Yardstick::of(facts);
    let mut groups: BTreeMap<Together, BriefGroup> = BTreeMap::new();
    let mut backward: BTreeMap<Bytes, Vec<AllocationId>> = BTreeMap::new();
    for (id, one) in facts.timeline.iter() {
        let scratch = facts.role(id) == Role::Workspace;
        if let Some(brief) = yardstick.brief(one, scratch) {
            let group = groups.entry(brief.place).or_default();
            group.all.push(id);
            group.chosen.extend(brief.chosen.then_some(one.bytes));
        } else if !scratch && yardstick.is_brief_gradient(one) {
            backward.entry(one.bytes).or_default().push(id);
        }
    }
    groups.retain(|_, group| !group.chosen.is_empty());
    let is_at_peak =
        |id: &AllocationId| facts.timeline.allocation(*id).is_some_and(|one| one.alive_after(at));
    let mut spikes: Vec<Spike> = groups
        .into_iter()
        .filter_map(|(place, BriefGroup { mut all, chosen })| {
            // The gradient of a large tensor is as large, and is made and dropped on the engine's thread.
            let counterparts = backward.iter().filter(|(bytes, _)| is_one_of(&chosen, **bytes));
            let mut counterparts: Vec<AllocationId> =
                counterparts.flat_map(|(_, ids)| ids).copied().collect();
            counterparts.sort_unstable();
            let own = all.len();
            all.extend(counterparts);
            let at_peak: Vec<AllocationId> = all.iter().copied().filter(is_at_peak).collect();
            let made = |ids: &[AllocationId]| -> Vec<(Vec<FrameId>, Bytes)> {
                let tensors = ids.iter().filter_map(|id| facts.timeline.allocation(*id));
                tensors.map(|one| (yardstick.lines(place, one), one.bytes)).collect()
            };
            // Where none but the backward pass's are at the peak, no frame of theirs says whose they are.
            let own = || narrowest(&made(all.get(..own).unwrap_or_default()), steady.peak);
            let (frame, inner) = narrowest(&made(&at_peak), steady.peak).or_else(own)?;
            let per_sample = matches!(place, Together::PerSample(_));
            Some(Spike { inner, per_sample, ..spike(facts, frame, at_peak, all, steady.peak)? })
        })
        .collect();
    spikes.sort_by(|a, b| b.bytes.cmp(&a.bytes).then(a.frame.cmp(&b.frame)));
    spikes
}

/// Of tensors with the lines that may stand for them, innermost first: the innermost with enough of the peak, or else the outermost,
/// and the line within it that makes most.
fn narrowest(made: &[(Vec<FrameId>, Bytes)], peak: Bytes) -> Option<(FrameId, Option<FrameId>)> {
    let own = heaviest(made, 0)?;
    let depth = made.iter().map(|(lines, _)| lines.len()).max().unwrap_or(1);
    let mut levels = (0..depth).filter_map(|level| heaviest(made, level));
    let enough = levels.clone().find(|(_, bytes)| bytes.share_of(peak) >= SHARE.get());
    let (frame, _) = enough.or_else(|| levels.next_back())?;
    Some((frame, (frame != own.0).then_some(own.0)))
}

/// The line with most bytes, so many calls outwards.
fn heaviest(made: &[(Vec<FrameId>, Bytes)], level: usize) -> Option<(FrameId, Bytes)> {
    let mut lines: BTreeMap<FrameId, Bytes> = BTreeMap::new();
    for (outward, bytes) in made {
        if let Some(frame) = outward.get(level).or_else(|| outward.last()) {
            *lines.entry(*frame).or_default() += *bytes;
        }
    }
    lines.into_iter().max_by_key(|(frame, bytes)| (*bytes, std::cmp::Reverse(*frame)))
}

/// Whether an amount is within a hundredth of one of these sizes. If it is of any, it is of one of its neighbours.
fn is_one_of(sizes: &BTreeSet<Bytes>, bytes: Bytes) -> bool {
    let mut neighbours = sizes.range(..bytes).next_back().into_iter().chain(sizes.range(bytes..).next());
    neighbours.any(|size| size.get().abs_diff(bytes.get()) <= size.get() / 100)
}

const IN_PIECES: &str = "work in pieces, a slice of the largest dimension at a time (`torch.split`), or with an operator that makes no tensor of that \
                         size (a fused or chunked loss, `torch.cdist` for all pairs, no upcast of the whole)";

const FEWER_SAMPLES: &str = "take fewer samples at once: `vmap(..., chunk_size=n)`, in a loop that adds up what is made of each chunk (its clipped \
                             gradients, their norms), so that no more than one chunk's gradients are there";

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
        help: if first.per_sample { FEWER_SAMPLES } else { IN_PIECES }.to_owned(),
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
            Quantity::Bytes(spike.bytes),
            format!("{} in {} at the peak", spike.bytes, count(spike.at_peak.len(), "tensor")),
        ),
        measure("largest", Quantity::Bytes(largest), format!("the largest holds {largest}")),
        measure("share-of-peak", Quantity::Ratio(share), String::new()),
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
            evidence: vec![measure("at-peak", Quantity::Bytes(bytes), format!("{bytes} for a moment"))],
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
