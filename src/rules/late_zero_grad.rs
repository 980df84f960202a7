//! Gradients that outlive the optimizer's step into the next forward pass.

use std::collections::{BTreeMap, BTreeSet};

use super::{declare_rule, measure, place, shown};
use crate::facts::{Change, Changes, Facts};
use crate::finding::{Finding, Impact, Related, Severity, Value};
use crate::program::{Meaning, Origin, Phase, Step};
use crate::role::Role;
use crate::unit::{AllocationId, Bytes, Confidence, EventIndex, Index, StackId, count, percent};

declare_rule! {
    /// Old gradients live through the next forward pass and raise the peak.
    LateZeroGrad = "late-zero-grad", Peak, Warning,
    needs: [History, Iterations, Optimizer],
    summary: "old gradients live through the next forward pass and raise the peak",
}

/// The share of the peak that clearing gradients after the step has to save. Below, nobody moves a line for it; where the
/// peak lies in the backward pass nothing is saved at all.
const SAVED: f64 = 0.05;

/// A gradient that is cleared after the step that used it, and not at once.
struct Late {
    id: AllocationId,
    bytes: Bytes,
    /// The step that used it last; `None` where that was before the recording.
    step: Option<Step>,
    freed: EventIndex,
}

impl LateZeroGrad {
    fn detect(facts: &Facts) -> Vec<Finding> {
        let late = late_gradients(facts);
        let mut changes = Changes::default();
        for one in &late {
            let end = one.step.and_then(|step| EventIndex::at(step.end.position().saturating_sub(1)));
            changes.set(one.id, end.map_or(Change::Remove, Change::EndAt));
        }
        let steady = facts.steady();
        let share = changes.saving_within(facts.timeline, steady.events.clone()).share_of(steady.peak);
        if share < SAVED {
            return Vec::new();
        }
        vec![report(facts, &late, &changes, share)]
    }
}

/// Gradients that a step used and that were given back later, with the last such step.
fn late_gradients(facts: &Facts) -> Vec<Late> {
    let steps = &facts.program.steps;
    let late = facts.timeline.iter().filter_map(|(id, one)| {
        let freed = one.free_requested?;
        let cleared = one.alloc.is_none() && facts.phase(freed) == Phase::ZeroGrad;
        if facts.role(id) != Role::Gradient && !cleared {
            return None;
        }
        let before = steps.partition_point(|step| step.end <= freed).checked_sub(1);
        let step = before.and_then(|before| steps.get(before)).copied();
        let used = match (one.alloc, step) {
            (Some(born), Some(step)) => born < step.end,
            // Older than the recording: used by a step before it, if zero_grad clears it before any step.
            (None, None) => cleared,
            (born, step) => born.is_none() && step.is_some(),
        };
        used.then_some(Late { id, bytes: one.bytes, step, freed })
    });
    late.collect()
}

fn report(facts: &Facts, late: &[Late], changes: &Changes, share: f64) -> Finding {
    let bytes = held_at_once(late);
    let message = format!("old gradients ({bytes}) live through the next forward pass");
    let help = "clear them directly after the step: optimizer.step(); optimizer.zero_grad(set_to_none=True)";
    let mut finding = LateZeroGrad::META.finding(facts, message, help);
    let cleared = clearing_stack(facts, late);
    let backward = late.iter().find_map(|one| {
        let born = facts.timeline.allocation(one.id)?.alloc?;
        facts.seen_stack(born)
    });
    "cleared only here, after the forward pass".clone_into(&mut finding.label);
    if cleared.is_none() {
        "made here, and cleared only after the next forward pass".clone_into(&mut finding.label);
    }
    if let Some(stack) = cleared.or(backward) {
        finding.location = facts.site(stack).and_then(|frame| place(facts, frame));
        finding.stack = shown(facts, stack);
        if is_of_a_framework(facts, stack) {
            finding.severity = Severity::Info;
        }
    }
    finding.phase = Phase::Backward;
    finding.confidence = if facts.calls.annotated { Confidence::High } else { Confidence::Medium };
    finding.related.extend(last_use(facts, late));
    let steps = late.iter().filter_map(|one| one.step).map(|step| step.start);
    let steps = steps.collect::<BTreeSet<_>>().len();
    finding.evidence = vec![
        measure("gradients", Value::Bytes(bytes), format!("{bytes} of gradients at once")),
        measure(
            "steps",
            Value::Count(steps as u64),
            format!("held after {}", count(steps, "optimizer step")),
        ),
        measure("share-of-peak", Value::Ratio(share), format!("{} of the peak", percent(share))),
    ];
    let saved = changes.saving(facts.timeline);
    finding.impact = Impact { peak: Some(saved), resident: Some(bytes), ..Impact::default() };
    finding
}

/// The most that outlived one step.
fn held_at_once(late: &[Late]) -> Bytes {
    let mut by_step: BTreeMap<Option<EventIndex>, Bytes> = BTreeMap::new();
    for one in late {
        *by_step.entry(one.step.map(|step| step.start)).or_default() += one.bytes;
    }
    by_step.into_values().max().unwrap_or_default()
}

/// The stack under which most of the gradients are cleared: `zero_grad`, or the user's own code that drops them.
fn clearing_stack(facts: &Facts, late: &[Late]) -> Option<StackId> {
    if !facts.program.frees_have_stacks {
        return None;
    }
    let mut bytes: BTreeMap<StackId, Bytes> = BTreeMap::new();
    for one in late {
        let stack = facts.trace.event(one.freed).and_then(|event| event.stack);
        if let Some(stack) = stack.filter(|stack| facts.site(*stack).is_some()) {
            *bytes.entry(stack).or_default() += one.bytes;
        }
    }
    let most = bytes.into_iter().max_by_key(|(stack, bytes)| (*bytes, std::cmp::Reverse(*stack)));
    most.map(|(stack, _)| stack)
}

/// Whether a library's loop decides when gradients are cleared, so that no line of the user's does.
fn is_of_a_framework(facts: &Facts, stack: StackId) -> bool {
    let mut frames = facts.code.python(stack).iter().rev().skip_while(|frame| {
        let vocabulary = &facts.code.vocabulary;
        let name = facts.snapshot.stacks.frame(**frame).map(|frame| facts.snapshot.text(frame.name));
        vocabulary.origin(**frame) == Origin::Torch
            || matches!(vocabulary.meaning(**frame), Meaning::ZeroGrad | Meaning::Wrapper)
            || name.is_some_and(|name| name.contains("zero_grad"))
    });
    frames.next().is_some_and(|frame| !facts.code.is_own(*frame))
}

/// The line of the step that used the gradients last.
fn last_use(facts: &Facts, late: &[Late]) -> Option<Related> {
    let inside = |step: &Step| (step.start.position()..step.end.position()).filter_map(EventIndex::at);
    let mut steps: Vec<Step> = late.iter().filter_map(|one| one.step).collect();
    // The gradients of one step stand together: it is searched once.
    steps.dedup_by_key(|step| step.start);
    let stack =
        steps.iter().copied().flat_map(|step| inside(&step)).find_map(|event| facts.seen_stack(event))?;
    let location = place(facts, facts.site(stack)?)?;
    Some(Related { location, message: "used for the last time here".to_owned() })
}
