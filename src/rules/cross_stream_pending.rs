//! Freed memory that waits for another stream.

use super::claim::{Anchor, Claim, Mending, Telling, Worth, related};
use super::{declare_rule, measure};
use crate::facts::{Facts, GuiltyStack, Pending};
use crate::finding::{Finding, Measure, Quantity, Related};
use crate::lives::{Change, Changes};
use crate::unit::{AllocationId, Confidence, count, percent};

declare_rule! {
    /// Freed memory cannot be used again yet, because another stream may still be using it.
    CrossStreamPending = "cross-stream-pending", Allocator, Warning,
    needs: [History],
    summary: "freed memory waits for another stream before it can be used again",
}

impl CrossStreamPending {
    fn claims<'f>(facts: &'f Facts<'f>) -> Vec<Claim<'f>> {
        let Some(pending) = facts.pending() else { return Vec::new() };
        let mut mended = Changes::default();
        for id in &pending.late {
            let asked = facts.timeline.allocation(*id).and_then(|one| one.free_requested);
            if let Some(asked) = asked {
                mended.set(*id, Change::EndAt(asked));
            }
        }
        let (peak, active) = (pending.peak, facts.replay.peak_active.bytes);
        let about = pending.late.clone();
        let told = move |worth: &Worth| tell(facts, &pending, worth);
        let claim = Claim::new(&Self::META, about, Mending::lives(mended), told).holding(peak);
        vec![claim.out_of(active).sure(Confidence::High)]
    }
}

fn tell(facts: &Facts, pending: &Pending, worth: &Worth) -> Finding {
    let share = pending.peak.share_of(facts.replay.peak_active.bytes);
    let place = Anchor::responsible(facts, &pending.waiting, true);
    let telling = Telling {
        message: format!("{} already freed waits for another stream", pending.peak),
        help:
            "let the other stream finish first: keep the tensor until `event.synchronize()`, then drop it, \
               instead of `tensor.record_stream(stream)`"
                .to_owned(),
        label: format!("{} of what is made here waited at once", count(pending.waiting.len(), "block")),
        related: given_back(facts, pending, &place).into_iter().collect(),
        evidence: evidence(facts, pending, share),
        place,
    };
    telling.told(facts, &CrossStreamPending::META, worth)
}

/// The line at which the program lets go of the blocks, where frees have stacks of their own.
fn given_back(facts: &Facts, pending: &Pending, place: &Anchor) -> Option<Related> {
    let one = |id: &AllocationId| {
        let event = facts.timeline.allocation(*id)?.free_requested?;
        let weight = facts.block_size(*id).get();
        Some(GuiltyStack { stack: facts.seen_stack(event)?, event: Some(event), weight })
    };
    let told = facts.timeline.frees_have_stacks();
    let frees: Vec<GuiltyStack> = pending.waiting.iter().filter(|_| told).filter_map(one).collect();
    let message = "given back here while another stream still uses it";
    related(facts, facts.blame().narrowest(&frees), place, message)
}

fn evidence(facts: &Facts, pending: &Pending, share: f64) -> Vec<Measure> {
    let (active, allocated) = (facts.replay.peak_active.bytes, facts.replay.peak_allocated.bytes);
    vec![
        measure(
            "pending-peak",
            Quantity::Bytes(pending.peak),
            format!("{} waited at once, {} of the peak", pending.peak, percent(share)),
        ),
        measure("pending-share", Quantity::Ratio(share), String::new()),
        measure(
            "late-frees",
            Quantity::Count(pending.late.len() as u64),
            format!("{} completed late", count(pending.late.len(), "free")),
        ),
        measure(
            "allocated-peak",
            Quantity::Bytes(allocated),
            format!("memory_allocated() never shows more than {allocated} of {active}"),
        ),
    ]
}
