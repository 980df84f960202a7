//! Freed memory that waits for another stream.

use super::{declare_rule, measure, place, shown};
use crate::facts::{Change, Changes, Facts, Guilty, Pending};
use crate::finding::{Finding, Impact, Measure, Related, Severity, Value};
use crate::unit::{AllocationId, Bytes, Confidence, count, percent};

declare_rule! {
    /// Freed memory cannot be used again yet, because another stream may still be using it.
    CrossStreamPending = "cross-stream-pending", Allocator, Warning,
    needs: [History],
    summary: "freed memory waits for another stream before it can be used again",
}

/// The share of the peak from which waiting memory counts. The two recordings that show it reach 66 % and more; of the
/// others none has any.
const SHARE: f64 = 0.1;
/// Below this nobody would look for it.
const NOTED: Bytes = Bytes(64 << 20);
/// From here on it is worth a change.
const WARNED: Bytes = Bytes(256 << 20);

impl CrossStreamPending {
    fn detect(facts: &Facts) -> Vec<Finding> {
        let Some(pending) = facts.pending() else { return Vec::new() };
        let share = pending.peak.share_of(facts.replay.peak_active.bytes);
        if pending.peak < NOTED || share < SHARE {
            return Vec::new();
        }
        let saving = saving(facts, &pending);
        let message = format!("{} already freed waits for another stream", pending.peak);
        let help = "let the other stream finish first: keep the tensor until `event.synchronize()`, then drop it, \
                    instead of `tensor.record_stream(stream)`";
        let mut finding = Self::META.finding(facts, message, help);
        let raises = saving.share_of(facts.peak()) >= SHARE;
        finding.severity = if pending.peak >= WARNED && raises { Severity::Warning } else { Severity::Info };
        finding.confidence = Confidence::High;
        finding.impact = Impact { peak: (saving > Bytes::ZERO).then_some(saving), ..Impact::default() };
        let guilty = facts.guilty(pending.waiting.iter().copied());
        let blamed = facts.blame().past_forwards(&guilty);
        finding.location = blamed.and_then(|frame| place(facts, frame));
        finding.label =
            format!("{} of what is made here waited at once", count(pending.waiting.len(), "block"));
        if let Some(one) = guilty
            .iter()
            .find(|one| blamed.is_some_and(|frame| facts.frames.python(one.stack).contains(&frame)))
        {
            finding.phase = one.event.map(|event| facts.phase(event)).unwrap_or_default();
            finding.stack = shown(facts, one.stack);
        }
        finding.related = given_back(facts, &pending);
        finding.evidence = evidence(facts, &pending, share);
        vec![finding]
    }
}

/// How far the peak of requested bytes falls if every free took effect at once.
fn saving(facts: &Facts, pending: &Pending) -> Bytes {
    let mut changes = Changes::default();
    for id in &pending.late {
        let asked = facts.timeline.allocation(*id).and_then(|one| one.free_requested);
        if let Some(asked) = asked {
            changes.set(*id, Change::EndAt(asked));
        }
    }
    changes.saving(facts.timeline)
}

/// The line at which the program lets go of the blocks, where frees have stacks of their own.
fn given_back(facts: &Facts, pending: &Pending) -> Vec<Related> {
    if !facts.timeline.frees_have_stacks() {
        return Vec::new();
    }
    let one = |id: &AllocationId| {
        let event = facts.timeline.allocation(*id)?.free_requested?;
        let weight = facts.block_size(*id).get();
        Some(Guilty { stack: facts.seen_stack(event)?, event: Some(event), weight })
    };
    let frees: Vec<Guilty> = pending.waiting.iter().filter_map(one).collect();
    let related = |frame| {
        let message = "given back here, while another stream is still at it".to_owned();
        Some(Related { location: place(facts, frame)?, message })
    };
    facts.blame().narrowest(&frees).and_then(related).into_iter().collect()
}

fn evidence(facts: &Facts, pending: &Pending, share: f64) -> Vec<Measure> {
    let (active, allocated) = (facts.replay.peak_active.bytes, facts.replay.peak_allocated.bytes);
    vec![
        measure(
            "pending-peak",
            Value::Bytes(pending.peak),
            format!("{} waited at once, {} of the peak", pending.peak, percent(share)),
        ),
        measure("pending-share", Value::Ratio(share), String::new()),
        measure(
            "late-frees",
            Value::Count(pending.late.len() as u64),
            format!("{} completed late", count(pending.late.len(), "free")),
        ),
        measure(
            "allocated-peak",
            Value::Bytes(allocated),
            format!("memory_allocated() never shows more than {allocated} of {active}"),
        ),
    ]
}
