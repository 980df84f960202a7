//! Large segments that small blocks keep from being released.

use super::{declare_rule, measure, place, shown};
use crate::facts::{Facts, Guilty, PinnedSegment as Pinned};
use crate::finding::{Finding, Impact, Measure, Related, Severity, Value};
use crate::unit::{Bytes, Confidence, Index, count, percent};

declare_rule! {
    /// A small block was put where a big one had been, and holds the whole segment for the rest of the run.
    PinnedSegment = "pinned-segment", Allocator, Warning,
    needs: [History],
    summary: "a small live block keeps a large segment from being released",
}

/// Below this a segment is not worth a note.
const NOTED: Bytes = Bytes(256 << 20);
/// From here on it is worth a change, if it is also [`SHARE`] of what is reserved.
const WARNED: Bytes = Bytes(512 << 20);
/// The share of what is reserved in the end.
const SHARE: f64 = 0.1;
/// In fewer iterations than this a segment may still be waiting for its use.
const ENDS: usize = 3;
/// The share of the run for which a segment has to be pinned: shorter than this, a later phase may still use it.
const LASTING: f64 = 0.5;

impl PinnedSegment {
    fn detect(facts: &Facts) -> Vec<Finding> {
        let mut pinned = facts.pinned_segments(NOTED);
        pinned.retain(|one| lasts(facts, one));
        let Some(worst) = pinned.first() else { return Vec::new() };
        let waste: Bytes = pinned.iter().map(Pinned::waste).sum();
        let (size, used) = (worst.size, worst.used);
        let message = format!("a segment of {size} cannot be released: at most {used} of it is in use");
        let help = "release it while it is empty: `del` the big tensor and every view of it, then call \
                    `torch.cuda.empty_cache()` before anything is allocated that stays";
        let mut finding = Self::META.finding(facts, message, help);
        // What a run for the largest request once reserved and gave back is no measure of what stays.
        let reserved = facts.timeline.reserved_at_end.min(facts.timeline.peak_reserved.bytes);
        let heavy = waste >= WARNED && waste.share_of(reserved) >= SHARE;
        finding.severity = if heavy { Severity::Warning } else { Severity::Info };
        finding.impact = Impact { resident: Some(waste), ..Impact::default() };
        let guilty = facts.guilty(worst.pins.iter().copied());
        let blamed = facts.blame().narrowest(&guilty);
        finding.location = blamed.and_then(|frame| place(facts, frame));
        finding.label = format!("{} put where a big one had been", count(worst.pins.len(), "block"));
        let culprit = guilty
            .iter()
            .find(|one| blamed.is_some_and(|frame| facts.frames.python(one.stack).contains(&frame)));
        if let Some(one) = culprit {
            finding.confidence = Confidence::High;
            finding.phase = one.event.map(|event| facts.phase(event)).unwrap_or_default();
            finding.stack = shown(facts, one.stack);
        }
        finding.related = tenant(facts, worst);
        finding.evidence = evidence(&pinned, worst, waste);
        vec![finding]
    }
}

/// Whether a segment has been pinned for most of the iterations, or of the events where there are none.
fn lasts(facts: &Facts, one: &Pinned) -> bool {
    let iterations = facts.iteration_ends().len();
    let (held, all) = if iterations > 0 {
        if one.ends < ENDS {
            return false;
        }
        (one.ends, iterations)
    } else {
        let events = facts.trace.events.len();
        (events - one.since.position().min(events), events)
    };
    held as f64 >= all as f64 * LASTING
}

/// Where the block was made that the segment was got for.
fn tenant(facts: &Facts, one: &Pinned) -> Vec<Related> {
    let guilty: Vec<Guilty> = facts.guilty([one.tenant]);
    let related = |frame| {
        let message =
            format!("the segment was got for this block of {}, which is gone", facts.bytes(&[one.tenant]));
        Some(Related { location: place(facts, frame)?, message })
    };
    facts.blame().narrowest(&guilty).and_then(related).into_iter().collect()
}

fn evidence(pinned: &[Pinned], worst: &Pinned, waste: Bytes) -> Vec<Measure> {
    let share = worst.used.share_of(worst.size);
    vec![
        measure("segments", Value::Count(pinned.len() as u64), count(pinned.len(), "pinned segment")),
        measure("segment", Value::Bytes(worst.size), String::new()),
        measure(
            "in-use",
            Value::Bytes(worst.used),
            format!("{} in use since its tenant went", percent(share)),
        ),
        measure("pins", Value::Count(worst.pins.len() as u64), String::new()),
        measure("wasted", Value::Bytes(waste), format!("{waste} held for nothing")),
        measure(
            "iteration-ends",
            Value::Count(worst.ends as u64),
            if worst.ends > 0 {
                format!("through {}", count(worst.ends, "iteration"))
            } else {
                String::new()
            },
        ),
    ]
}
