//! A buffer that is replaced by a larger one again and again.

use super::claim::{Anchor, Claim, Mending, Telling, Worth, related};
use super::{declare_rule, measure};
use crate::facts::{Facts, Reallocation};
use crate::finding::{Finding, Measure, Quantity, Related};
use crate::lives::{Change, Changes};
use crate::unit::{AllocationId, Bytes, Confidence, EventIndex, Index, count};

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
    let mending = Mending { reserved: holes(facts, one), ..Mending::lives(mended) };
    let told = move |worth: &Worth| tell(facts, one, worth);
    let mut claim =
        Claim::new(&GrowingReallocation::META, one.chains.iter().flatten().copied(), mending, told);
    claim.pace = pace(facts, one);
    let sure = if one.joins { Confidence::High } else { Confidence::Medium };
    claim.holding(one.last).sure(sure)
}

/// What is reserved and was never in use, if that is more than the buffers themselves: no hole that one leaves fits the next. The
/// holes that they leave are together no larger than what was copied out of them: what is more has other causes.
fn holes(facts: &Facts, one: &Reallocation) -> Option<Bytes> {
    let pool = facts.default_pool();
    let unused = pool.reserved - pool.active.max(pool.held_before);
    Some(unused.min(copied(facts, one))).filter(|unused| *unused > one.last)
}

/// What all versions but the last ones hold, and leave behind.
fn copied(facts: &Facts, one: &Reallocation) -> Bytes {
    one.links().map(|(old, _)| size(facts, old)).sum()
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

fn size(facts: &Facts, id: AllocationId) -> Bytes {
    facts.timeline.allocation(id).map_or(Bytes::ZERO, |one| one.bytes)
}

/// By how much all buffers together grow from iteration to iteration; nothing where none outlives the iteration that begins it, as a cache that
/// each request fills anew.
fn pace(facts: &Facts, one: &Reallocation) -> Option<Bytes> {
    let born = |id: &AllocationId| facts.born_in(facts.timeline.allocation(*id)?).map(Index::position);
    let of_chain = |chain: &Vec<AllocationId>| {
        let (first, last) = (chain.first()?, chain.last()?);
        let turns = born(last)?.checked_sub(born(first)?).filter(|turns| *turns > 0)?;
        Some((size(facts, *last) - size(facts, *first)).get() as f64 / turns as f64)
    };
    let all: f64 = one.chains.iter().filter_map(of_chain).sum();
    (all > 0.0).then(|| Bytes::rounded(all))
}

/// The median growth from one version to the next.
fn step(facts: &Facts, one: &Reallocation) -> Bytes {
    let grown = one.links().map(|(old, new)| size(facts, new) - size(facts, old));
    let mut steps: Vec<Bytes> = grown.filter(|step| *step > Bytes::ZERO).collect();
    steps.sort_unstable();
    steps.get(steps.len() / 2).copied().unwrap_or_default()
}

fn evidence(facts: &Facts, one: &Reallocation) -> Vec<Measure> {
    let copied = copied(facts, one);
    let step = step(facts, one);
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
    if let Some(unused) = holes(facts, one) {
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
