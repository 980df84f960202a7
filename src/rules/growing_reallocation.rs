//! A buffer that is replaced by a larger one again and again.

use super::{declare_rule, measure, place, shown};
use crate::facts::{Change, Changes, Facts, Reallocation};
use crate::finding::{Finding, Impact, Measure, Related, Severity, Value};
use crate::unit::{AllocationId, Bytes, Confidence, EventIndex, FrameId, count};

declare_rule! {
    /// A buffer is re-allocated a little larger again and again.
    GrowingReallocation = "growing-reallocation", Leak, Warning,
    needs: [History, Stacks],
    summary: "a buffer is re-allocated a little larger again and again",
}

/// From this share of the peak on the buffers are worth a warning.
const WARNED: f64 = 0.1;
/// From this share on they are worth a note.
const NOTED: f64 = 0.01;
/// Smaller buffers are not.
const LEAST: Bytes = Bytes(8 << 20);

impl GrowingReallocation {
    fn detect(facts: &Facts) -> Vec<Finding> {
        noted(facts).map(|one| report(facts, one)).collect()
    }
}

fn noted<'a>(facts: &'a Facts) -> impl Iterator<Item = &'a Reallocation> {
    let matters = |one: &&Reallocation| one.last >= LEAST && one.last.share_of(facts.peak()) >= NOTED;
    facts.reallocations().iter().filter(matters)
}

/// What growing buffers explain: no other rule reports it again. A note explains nothing: what it names may be a leak.
pub(super) fn explained(facts: &Facts) -> impl Iterator<Item = AllocationId> {
    let warned = noted(facts).filter(|one| one.last.share_of(facts.peak()) >= WARNED);
    warned.flat_map(|one| one.chains.iter().flatten().copied())
}

/// The lines at which buffers outgrow themselves: the holes that they leave are theirs.
pub(super) fn sites<'a>(facts: &'a Facts) -> impl Iterator<Item = FrameId> + 'a {
    noted(facts).map(|one| one.site)
}

fn report(facts: &Facts, one: &Reallocation) -> Finding {
    let longest = one.chains.iter().map(Vec::len).max().unwrap_or(0);
    let buffers = if one.chains.len() == 1 {
        "a buffer is".to_owned()
    } else {
        format!("{} are", count(one.chains.len(), "buffer"))
    };
    let message = format!("{buffers} re-allocated ever larger, {longest} times, up to {}", one.last);
    let stack_of = |id: &AllocationId| facts.seen_stack(facts.timeline.allocation(*id)?.alloc?);
    let help = if one.by_engine {
        "clear the gradients after each step, optimizer.zero_grad(set_to_none=True): sparse ones that are added up hold the rows of all"
    } else {
        "allocate the final size once and write into it: buffer = torch.empty(total, ...); buffer[start:end] = part"
    };
    let mut finding = GrowingReallocation::META.finding(facts, message, help);
    if one.last.share_of(facts.peak()) < WARNED {
        finding.severity = Severity::Info;
    }
    finding.confidence = if one.joins { Confidence::High } else { Confidence::Medium };
    finding.location = place(facts, one.site);
    let at_site =
        |id: &&AllocationId| stack_of(id).and_then(|stack| facts.user_frame(stack)) == Some(one.site);
    let sample = one.chains.iter().flatten().find(at_site);
    finding.stack = sample.and_then(stack_of).map(|stack| shown(facts, stack)).unwrap_or_default();
    let born = sample.and_then(|id| facts.timeline.allocation(*id)?.alloc);
    finding.phase = born.map(|event| facts.phase(event)).unwrap_or_default();
    "each copy is larger than the one it replaces".clone_into(&mut finding.label);
    finding.related = old_copies_go(facts, one);
    finding.evidence = evidence(facts, one, longest);
    let mut changes = Changes::default();
    for (old, new) in one.links() {
        if let Some(event) = facts.timeline.allocation(new).and_then(|new| new.alloc) {
            changes.set(old, Change::EndAt(event));
        }
    }
    let resident = one.chains.iter().filter_map(|chain| facts.timeline.allocation(*chain.last()?));
    let resident: Bytes = resident.filter(|last| last.free_requested.is_none()).map(|last| last.bytes).sum();
    finding.impact = Impact {
        peak: Some(changes.saving(facts.timeline)),
        resident: Some(resident),
        per_iteration: Some(step(facts, one)),
        ..Impact::default()
    };
    finding
}

fn size(facts: &Facts, id: AllocationId) -> Bytes {
    facts.timeline.allocation(id).map_or(Bytes::ZERO, |one| one.bytes)
}

/// The median growth from one version to the next.
fn step(facts: &Facts, one: &Reallocation) -> Bytes {
    let mut steps: Vec<Bytes> = one.links().map(|(old, new)| size(facts, new) - size(facts, old)).collect();
    steps.sort_unstable();
    steps.get(steps.len() / 2).copied().unwrap_or_default()
}

fn evidence(facts: &Facts, one: &Reallocation, longest: usize) -> Vec<Measure> {
    let copied: Bytes = one.links().map(|(old, _)| size(facts, old)).sum();
    let step = step(facts, one);
    let unused = facts.default_pool().reserved - facts.default_pool().active;
    let mut evidence = vec![
        measure("versions", Value::Count(longest as u64), format!("{longest} sizes in a row, each larger")),
        measure("step", Value::Bytes(step), format!("{step} more each time")),
        measure("final", Value::Bytes(one.last), String::new()),
        measure("copied", Value::Bytes(copied), format!("{copied} copied from old to new")),
    ];
    if unused > one.last {
        let text = format!(
            "{unused} reserved and never used: no hole that one leaves fits the next (fragmentation)"
        );
        evidence.push(measure("holes", Value::Bytes(unused), text));
    }
    evidence
}

/// Where the old copies go.
fn old_copies_go(facts: &Facts, one: &Reallocation) -> Vec<Related> {
    let freed = |(old, _): (AllocationId, AllocationId)| -> Option<EventIndex> {
        facts.timeline.allocation(old)?.free_requested
    };
    let frame =
        one.links().filter_map(freed).find_map(|event| facts.user_frame(facts.trace.event(event)?.stack?));
    let message = "the old copy goes here, when the name is bound to the new one".to_owned();
    let elsewhere = frame.filter(|frame| *frame != one.site).and_then(|frame| place(facts, frame));
    elsewhere.map(|location| Related { location, message }).into_iter().collect()
}
