//! A buffer that is replaced by a larger one again and again.

use super::claim::{Anchor, Claim, Mending, Telling, Worth, related};
use super::{declare_rule, measure};
use crate::facts::{Facts, Reallocation};
use crate::finding::{Finding, Measure, Quantity, Related};
use crate::lives::{Change, Changes};
use crate::unit::{AllocationId, Confidence, EventIndex, count};

declare_rule! {
    /// A buffer is re-allocated a little larger again and again.
    GrowingReallocation = "growing-reallocation", Leak, Warning,
    needs: [History, Stacks],
    summary: "a buffer is re-allocated a little larger again and again",
}

impl GrowingReallocation {
    fn claims<'f>(facts: &'f Facts<'f>) -> Vec<Claim<'f>> {
        facts.reallocations().iter().map(|one| claim(facts, one)).collect()
    }
}

fn claim<'f>(facts: &'f Facts<'f>, one: &'f Reallocation) -> Claim<'f> {
    let mut mended = Changes::default();
    for (old, new) in one.links() {
        if let Some(event) = facts.timeline.allocation(new).and_then(|new| new.alloc) {
            mended.set(old, Change::EndAt(event));
        }
    }
    let mending = Mending { reserved: one.holes(facts), ..Mending::lives(mended) };
    let told = move |worth: &Worth| tell(facts, one, worth);
    let mut claim =
        Claim::new(&GrowingReallocation::META, one.chains.iter().flatten().copied(), mending, told);
    claim.pace = one.pace(facts);
    let sure = if one.joins { Confidence::High } else { Confidence::Medium };
    claim.holding(one.last).sure(sure)
}

fn tell(facts: &Facts, one: &Reallocation, worth: &Worth) -> Finding {
    let buffers = if one.chains.len() == 1 {
        "a buffer is".to_owned()
    } else {
        format!("{} are", count(one.chains.len(), "buffer"))
    };
    let stack_of = |id: &AllocationId| facts.seen_stack(facts.timeline.allocation(*id)?.alloc?);
    let help = if one.by_engine {
        "clear the gradients after each step, optimizer.zero_grad(set_to_none=True): sparse ones that are added up hold the rows of all"
    } else {
        "allocate the final size once and write into it: buffer = torch.empty(total, ...); buffer[start:end] = part"
    };
    let at_site =
        |id: &&AllocationId| stack_of(id).and_then(|stack| facts.user_frame(stack)) == Some(one.site);
    let sample = one.chains.iter().flatten().find(at_site);
    let born = sample.and_then(|id| facts.timeline.allocation(*id)?.alloc);
    let place = Anchor::At(one.site, sample.and_then(stack_of), born);
    let telling = Telling {
        message: format!("{buffers} re-allocated ever larger, {} times, up to {}", one.versions, one.last),
        help: help.to_owned(),
        label: "each copy is larger than the one it replaces".to_owned(),
        related: old_copies_go(facts, one, &place).into_iter().collect(),
        evidence: evidence(facts, one),
        place,
    };
    telling.told(facts, &GrowingReallocation::META, worth)
}

fn evidence(facts: &Facts, one: &Reallocation) -> Vec<Measure> {
    let copied = one.copied(facts);
    let step = one.step(facts);
    let mut evidence = vec![
        measure(
            "versions",
            Quantity::Count(one.versions as u64),
            format!("{} sizes in a row, each larger", one.versions),
        ),
        measure("step", Quantity::Bytes(step), format!("{step} more each time")),
        measure("final", Quantity::Bytes(one.last), String::new()),
        measure("copied", Quantity::Bytes(copied), format!("{copied} copied from old to new")),
    ];
    if let Some(unused) = one.holes(facts) {
        let text = format!(
            "{unused} reserved and never used: no hole that one leaves fits the next (fragmentation)"
        );
        evidence.push(measure("holes", Quantity::Bytes(unused), text));
    }
    evidence
}

/// Where the old copies go.
fn old_copies_go(facts: &Facts, one: &Reallocation, place: &Anchor) -> Option<Related> {
    let freed = |(old, _): (AllocationId, AllocationId)| -> Option<EventIndex> {
        facts.timeline.allocation(old)?.free_requested
    };
    let frame =
        one.links().filter_map(freed).find_map(|event| facts.user_frame(facts.trace.event(event)?.stack?));
    related(facts, frame, place, "the old copy goes here, when the name is bound to the new one")
}
