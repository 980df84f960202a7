//! Large segments that small blocks keep from being released.

use super::claim::{Anchor, Claim, Mending, Telling, Worth, related};
use super::trial::{least_pinned, tried_against_pins};
use super::{declare_rule, measure};
use crate::facts::{Facts, PinnedSegment as Pinned};
use crate::finding::{Finding, Measure, Quantity, Related, Severity};
use crate::threshold::Threshold;
use crate::unit::{Bytes, Confidence, Index, count, percent};

declare_rule! {
    /// A small block was put where a big one had been, and holds the whole segment for the rest of the run.
    PinnedSegment = "pinned-segment", Allocator, Warning,
    needs: [History],
    summary: "a small live block keeps a large segment from being released",
}

/// Smaller segments are the allocator's ordinary ones for blocks up to 10 MiB (20 MiB, `kLargeBuffer` in
/// `c10/cuda/CUDACachingAllocator.cpp`): they are shared on purpose.
const LEAST: Bytes = Bytes(20 << 20);
/// In fewer iterations than this a segment may still be waiting for its use.
static ENDS: Threshold<usize> = Threshold::new("rules::pinned_segment::ENDS", 3);
/// The share of the run for which a segment has to be pinned: shorter than this, a later phase may still use it.
static LASTING: Threshold<f64> = Threshold::new("rules::pinned_segment::LASTING", 0.5);

/// The share of the waste that a setting has to save to be worth naming.
static MOST: Threshold<f64> = Threshold::new("rules::pinned_segment::MOST", 0.5);

impl PinnedSegment {
    fn claims<'f>(facts: &'f Facts<'f>) -> Vec<Claim<'f>> {
        let mut pinned = facts.pinned_segments(LEAST);
        pinned.retain(|one| one.size > LEAST && lasts(facts, one));
        let waste: Bytes = pinned.iter().map(Pinned::waste).sum();
        let about: Vec<_> = pinned.iter().flat_map(|one| one.pins.iter().copied()).collect();
        if pinned.is_empty() {
            return Vec::new();
        }
        // What a run for the largest request once reserved and gave back is no measure of what stays.
        let stays = facts.timeline.reserved_at_end.min(facts.timeline.peak_reserved.bytes);
        let told = move |worth: &Worth| tell(facts, &pinned, waste, worth);
        let claim = Claim::new(&Self::META, about, Mending::reserved(waste), told);
        vec![claim.out_of(stays).sure(Confidence::High)]
    }
}

fn tell(facts: &Facts, pinned: &[Pinned], waste: Bytes, worth: &Worth) -> Finding {
    let meta = &PinnedSegment::META;
    let Some(worst) = pinned.first() else { return Finding::of(meta.name, meta.group, Severity::Info) };
    let (size, used) = (worst.size, worst.used);
    let place = Anchor::responsible(facts, &worst.pins, false);
    let telling = Telling {
        message: format!("a segment of {size} cannot be released: at most {used} of it is in use"),
        help: help(facts, waste),
        label: format!("{} put where a big one had been", count(worst.pins.len(), "block")),
        related: tenant(facts, worst, &place).into_iter().collect(),
        evidence: evidence(pinned, worst, waste)
            .into_iter()
            .chain(facts.trials().into_iter().flat_map(tried_against_pins))
            .collect(),
        place,
    };
    telling.told(facts, meta, worth)
}

/// A setting is named where the replay shows that it sets most of what is wasted free.
fn help(facts: &Facts, waste: Bytes) -> String {
    let release = "release it while it is empty: `del` the big tensor and every view of it, then call \
                   `torch.cuda.empty_cache()` before anything is allocated that stays";
    let best = facts.trials().and_then(least_pinned).filter(|(_, saved)| saved.share_of(waste) >= MOST.get());
    match best {
        None => release.to_owned(),
        Some((best, _)) => format!("{release}; or set PYTORCH_CUDA_ALLOC_CONF={}", best.conf()),
    }
}

/// Whether a segment has been pinned for most of the iterations, or of the events where there are none.
fn lasts(facts: &Facts, one: &Pinned) -> bool {
    let iterations = facts.iteration_ends().len();
    // Without iterations, one pass may be all that was recorded: a segment that was there before it served an earlier one, and
    // the next one needs it again.
    if iterations == 0 && one.is_older {
        return false;
    }
    let (held, all) = if iterations > 0 {
        if one.ends < ENDS.get() {
            return false;
        }
        (one.ends, iterations)
    } else {
        let events = facts.trace.events.len();
        (events - one.since.position().min(events), events)
    };
    held as f64 >= all as f64 * LASTING.get()
}

/// Where the block was made that the segment was got for.
fn tenant(facts: &Facts, one: &Pinned, place: &Anchor) -> Option<Related> {
    let bytes = facts.bytes(&[one.tenant]);
    let message = format!("the segment was got for this block of {bytes}, which is gone");
    let line = facts.blame().narrowest(&facts.guilty([one.tenant]));
    related(facts, line, place, message)
}

fn evidence(pinned: &[Pinned], worst: &Pinned, waste: Bytes) -> Vec<Measure> {
    let share = worst.used.share_of(worst.size);
    vec![
        measure("segments", Quantity::Count(pinned.len() as u64), count(pinned.len(), "pinned segment")),
        measure("segment", Quantity::Bytes(worst.size), String::new()),
        measure(
            "in-use",
            Quantity::Bytes(worst.used),
            format!("{} in use since its tenant went", percent(share)),
        ),
        measure("pins", Quantity::Count(worst.pins.len() as u64), String::new()),
        measure("wasted", Quantity::Bytes(waste), format!("{waste} held for nothing")),
        measure(
            "iteration-ends",
            Quantity::Count(worst.ends as u64),
            if worst.ends > 0 {
                format!("through {}", count(worst.ends, "iteration"))
            } else {
                String::new()
            },
        ),
    ]
}
