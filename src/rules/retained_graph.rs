//! Forward passes whose activations stay, because something keeps their autograd graph.

use rustc_hash::FxHashSet;

use super::{declare_rule, delayed_free_cycle, measure, place, shown};
use crate::facts::{Change, Changes, Facts, Retention};
use crate::finding::{Finding, Impact, Measure, Related, Severity, Value};
use crate::program::Phase;
use crate::unit::{AllocationId, Bytes, Confidence, EventIndex, FrameId, Index, count};

declare_rule! {
    /// Every forward pass leaves its activations behind.
    RetainedGraph = "retained-graph", Leak, Error,
    needs: [History, Stacks],
    summary: "every forward pass leaves its activations behind",
}

/// Below this share of the peak nobody would look for it.
const MATTERS: f64 = 0.02;
/// Nor below this.
const LEAST: Bytes = Bytes(4 << 20);
/// So many passes in a row prove it.
const MANY_PASSES: usize = 4;

/// The share of all that is kept that has to go in bursts, before a cycle is to blame: the last tooth of the saw is still
/// alive at the end.
const IN_BURSTS: f64 = 0.25;

impl RetainedGraph {
    fn detect(facts: &Facts) -> Vec<Finding> {
        let cycles: FxHashSet<AllocationId> = delayed_free_cycle::explained(facts).collect();
        let own = facts.retentions().iter().filter(|retention| !is_cycle(facts, retention, &cycles));
        own.filter_map(|retention| report(facts, retention)).collect()
    }
}

/// Whether most of what is let go of goes with the garbage collector's bursts, and enough to judge by: then a reference
/// cycle holds the graphs, and is reported as such.
fn is_cycle(facts: &Facts, retention: &Retention, cycles: &FxHashSet<AllocationId>) -> bool {
    let kept = || retention.kept.iter().copied();
    let goes =
        |id: &AllocationId| facts.timeline.allocation(*id).is_some_and(|one| one.free_requested.is_some());
    let gone: Vec<AllocationId> = kept().filter(goes).collect();
    let in_bursts: Vec<AllocationId> = kept().filter(|id| cycles.contains(id)).collect();
    let bytes = facts.bytes(&in_bursts);
    bytes.share_of(facts.bytes(&gone)) >= 0.5 && bytes.share_of(facts.bytes(&retention.kept)) >= IN_BURSTS
}

/// What retained graphs explain: no other rule reports it again.
pub(super) fn explained(facts: &Facts) -> impl Iterator<Item = AllocationId> {
    let matter = facts.retentions().iter().filter(|one| matters(facts, held(facts, one)));
    matter.flat_map(|one| one.kept.iter().chain(&one.along).copied())
}

fn matters(facts: &Facts, held: Bytes) -> bool {
    held >= LEAST && held.share_of(facts.peak()) >= MATTERS
}

/// The most that is kept at one time.
fn held(facts: &Facts, retention: &Retention) -> Bytes {
    let mut steps: Vec<(usize, bool, Bytes)> = Vec::new();
    for one in retention.kept.iter().filter_map(|id| facts.timeline.allocation(*id)) {
        steps.push((one.alloc.map_or(0, Index::position), true, one.bytes));
        steps.push((one.free_requested.or(one.free).map_or(usize::MAX, Index::position), false, one.bytes));
    }
    steps.sort_unstable();
    let (mut level, mut most) = (Bytes::ZERO, Bytes::ZERO);
    for (_, begins, bytes) in steps {
        level = if begins { level + bytes } else { level - bytes };
        most = most.max(level);
    }
    most
}

fn bytes(facts: &Facts, ids: &[AllocationId]) -> Bytes {
    ids.iter().filter_map(|id| facts.timeline.allocation(*id)).map(|one| one.bytes).sum()
}

fn report(facts: &Facts, retention: &Retention) -> Option<Finding> {
    let held = held(facts, retention);
    if !matters(facts, held) {
        return None;
    }
    let allocation = |id: &AllocationId| facts.timeline.allocation(*id);
    let births: Vec<EventIndex> = retention.kept.iter().filter_map(|id| allocation(id)?.alloc).collect();
    let (first, last) = (births.iter().copied().min()?, births.iter().copied().max()?);
    let differentiated = ran_backward(facts, retention, first, last);
    let each = Bytes(bytes(facts, &retention.kept).get() / retention.passes.max(1) as u64);
    let alive: Vec<AllocationId> = retention
        .kept
        .iter()
        .copied()
        .filter(|id| allocation(id).is_some_and(|one| one.free_requested.is_none()))
        .collect();
    let message = format!("{each} of activations stay after every forward pass, up to {held} at once");
    let mut finding = RetainedGraph::META.finding(facts, message, help(differentiated));
    finding.location = place(facts, retention.caller);
    finding.phase = facts.phase(first);
    "the graph of every pass made here is kept".clone_into(&mut finding.label);
    finding.related = related(facts, retention);
    let few = retention.passes < MANY_PASSES;
    // What went before the recording's end may have been meant for a few passes; nobody means it for many.
    finding.severity = if few && alive.is_empty() { Severity::Warning } else { Severity::Error };
    finding.confidence = if few { Confidence::Medium } else { Confidence::High };
    let through = retention.kept.iter().filter_map(|id| allocation(id)?.stack);
    finding.stack = through
        .max_by_key(|stack| std::cmp::Reverse(stack.position()))
        .map(|stack| shown(facts, stack))
        .unwrap_or_default();
    finding.evidence = evidence(facts, retention, each, held, differentiated);
    let saved = freed_with_their_pass(facts, retention).saving(facts.timeline);
    finding.impact = Impact {
        peak: Some(saved),
        resident: Some(bytes(facts, &alive)),
        per_iteration: Some(each),
        ..Impact::default()
    };
    Some(finding)
}

/// Whether a backward pass was entered under the functions that ran these forward passes, between the first and the last.
fn ran_backward(facts: &Facts, retention: &Retention, first: EventIndex, last: EventIndex) -> bool {
    let Some(caller) = facts.snapshot.stacks.frame(retention.caller) else { return false };
    let same = |frame: &FrameId| {
        facts
            .snapshot
            .stacks
            .frame(*frame)
            .is_some_and(|one| one.name == caller.name && one.file == caller.file)
    };
    let entered = facts.calls.backward_before(last).filter(|_| first < last);
    let after_first = facts
        .trace
        .events
        .iter()
        .enumerate()
        .take(last.position())
        .skip(first.position())
        .any(|(at, _)| EventIndex::at(at).is_some_and(|event| facts.phase(event) == Phase::Backward));
    after_first && entered.is_some_and(|stack| facts.code.python(stack).iter().any(same))
}

fn help(differentiated: bool) -> &'static str {
    if differentiated {
        "drop retain_graph=True, and keep numbers or detached tensors: log.append(loss.item()); h = h.detach()"
    } else {
        "keep numbers: total += loss.item(); run passes without a backward under `with torch.no_grad():`"
    }
}

/// The places of the model that hold most.
fn related(facts: &Facts, retention: &Retention) -> Vec<Related> {
    let inner = facts.blame().narrowest(&facts.guilty(retention.kept.iter().copied()));
    let inner = inner.filter(|frame| *frame != retention.caller);
    let one = |frame: FrameId| {
        let message = "most of what is kept is made under this line".to_owned();
        Some(Related { location: place(facts, frame)?, message })
    };
    let mut related: Vec<Related> = inner.and_then(one).into_iter().collect();
    let healthy = facts.siblings_go(&retention.kept).and_then(|line| place(facts, line));
    let message = "what other passes made at the same places goes here".to_owned();
    related.extend(healthy.map(|location| Related { location, message }));
    related
}

fn evidence(
    facts: &Facts,
    retention: &Retention,
    each: Bytes,
    held: Bytes,
    differentiated: bool,
) -> Vec<Measure> {
    let tensors = retention.kept.len();
    let nodes = facts.savers(&retention.kept);
    let holder = match (nodes.is_empty(), differentiated) {
        (false, _) => format!(
            "held by the autograd graph: {}, as the release of their like in other passes shows",
            nodes.join(", ")
        ),
        (true, true) => "held by the autograd graph, although a backward pass went through it".to_owned(),
        (true, false) => "held by the autograd graph: no backward pass lets go of them".to_owned(),
    };
    vec![
        measure("kept-per-pass", Value::Bytes(each), format!("{each} a pass")),
        measure(
            "kept",
            Value::Bytes(held),
            format!(
                "up to {held} at once, {} of {} in all",
                count(tensors, "tensor"),
                count(retention.passes, "forward pass")
            ),
        ),
        measure("passes", Value::Count(retention.passes as u64), String::new()),
        measure("held-by", Value::Text(holder.clone()), holder),
    ]
}

/// The lifetimes as they would be if each pass's activations went with the turn that made them.
fn freed_with_their_pass(facts: &Facts, retention: &Retention) -> Changes {
    let mut ends: Vec<usize> = facts
        .program
        .loops
        .iter()
        .flat_map(|run| (0..run.starts.len()).map(|turn| run.end_of(turn).position()))
        .collect();
    ends.sort_unstable();
    let mut changes = Changes::default();
    for id in retention.kept.iter().chain(&retention.along) {
        let Some(one) = facts.timeline.allocation(*id) else { continue };
        let born = one.alloc.map_or(0, Index::position);
        let end = ends.get(ends.partition_point(|end| *end <= born)).copied();
        let sooner = end.filter(|end| one.free.is_none_or(|freed| freed.position() > *end));
        if let Some(end) = sooner.and_then(|end| EventIndex::at(end.saturating_sub(1))) {
            changes.set(*id, Change::EndAt(end));
        }
    }
    changes
}
