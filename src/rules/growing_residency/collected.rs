//! Growth inside a loop beside the main one: what validation collects on the GPU.
//!
//! In: the collections. Out: a claim for each loop. What several runs leave behind for good grows like any leak; what is let go
//! of in the end is worth what it raises the peak by.

use super::GrowingResidency;
use crate::facts::{CollectedAt, Collection, Facts};
use crate::finding::{Finding, Measure, Quantity, Severity};
use crate::lives::{Change, Changes};
use crate::rules::claim::{Anchor, Claim, Mending, Telling, Worth};
use crate::rules::measure;
use crate::threshold::Threshold;
use crate::timeline::Allocation;
use crate::unit::{AllocationId, Bytes, Confidence, EventIndex, count, percent};

/// The share of what a loop collects that has to outlive the next iteration of the main loop for it to be held too long.
static MOST: Threshold<f64> = Threshold::new("rules::growing_residency::collected::MOST", 0.5);

pub(super) fn claims<'f>(facts: &'f Facts<'f>) -> impl Iterator<Item = Claim<'f>> {
    facts.collections().iter().filter(|one| !feeds(facts, one)).map(|collection| claim(facts, collection))
}

/// Whether the main loop goes through what is collected, as far as the order shows: it begins behind the first run, and each run has iterations behind it (a rollout, and then
/// the updates with it). A validation follows training. Where the recording begins late, what ran before the first run is not seen.
fn feeds(facts: &Facts, collection: &Collection) -> bool {
    let iterations = &facts.program.iterations;
    let first = |sites: &[CollectedAt]| {
        let born = |(id, _): &(AllocationId, EventIndex)| facts.timeline.allocation(*id)?.alloc;
        sites.iter().flat_map(|one| &one.tensors).filter_map(born).min()
    };
    let beginnings: Vec<EventIndex> = collection.runs.iter().filter_map(|run| first(&run.sites)).collect();
    let leads = |begin: &EventIndex| iterations.first().is_some_and(|one| *begin < one.start);
    let ends = beginnings.iter().skip(1).copied().map(Some).chain([None]);
    let is_followed = |(begin, end): (&EventIndex, Option<EventIndex>)| {
        let next = iterations.get(iterations.partition_point(|one| one.start <= *begin));
        next.is_some_and(|next| end.is_none_or(|end| next.start < end))
    };
    let begins_late = facts.evidence.first_iteration().is_err();
    !never_ends(facts, collection)
        && (begins_late || beginnings.first().is_some_and(leads))
        && beginnings.iter().zip(ends).all(is_followed)
}

fn claim<'f>(facts: &'f Facts<'f>, collection: &'f Collection) -> Claim<'f> {
    let mut mended = Changes::default();
    for (id, end) in sites(collection).flat_map(|one| &one.tensors) {
        mended.set(*id, Change::EndAt(*end));
    }
    let never_ends = never_ends(facts, collection);
    let (slope, held) = largest(collection);
    let mut claim =
        Claim::new(&GrowingResidency::META, tensors(collection), Mending::lives(mended), move |worth| {
            tell(facts, collection, never_ends, worth)
        });
    claim.pace = Some(slope).filter(|_| never_ends);
    // A framework's validation holds its predictions until it ends: what goes in time is no more than a temporary.
    claim.held = Some(held).filter(|_| never_ends || outstays(facts, collection));
    claim.gives_way = !never_ends;
    claim.at_most = if never_ends { Severity::Error } else { Severity::Warning };
    claim.sure(if collection.runs.len() >= 2 { Confidence::Medium } else { Confidence::Low })
}

fn sites(collection: &Collection) -> impl Iterator<Item = &CollectedAt> {
    collection.runs.iter().flat_map(|run| &run.sites)
}

fn tensors(collection: &Collection) -> impl Iterator<Item = AllocationId> {
    sites(collection).flat_map(|one| one.tensors.iter().map(|(id, _)| *id))
}

/// Whether several runs each left something behind, and all of it is alive at the end of the recording.
fn never_ends(facts: &Facts, collection: &Collection) -> bool {
    let alive = |id| facts.timeline.allocation(id).is_some_and(|one| one.given_back().is_none());
    collection.runs.len() >= 2 && tensors(collection).all(alive)
}

/// Whether most of what some run collects outlives the next iteration of the main loop: nobody needs a validation's outputs in
/// training.
fn outstays(facts: &Facts, collection: &Collection) -> bool {
    collection.runs.iter().any(|run| {
        let tensors = || run.sites.iter().flat_map(|one| &one.tensors);
        let Some(end) = tensors().map(|(_, end)| *end).max() else { return false };
        let iterations = &facts.program.iterations;
        let after = iterations.partition_point(|iteration| iteration.start <= end);
        let Some(next) = iterations.get(after) else { return false };
        let life = |id: &AllocationId| facts.timeline.allocation(*id);
        let stays = |one: &&Allocation| one.given_back().is_none_or(|freed| freed >= next.end);
        let all: Bytes = tensors().filter_map(|(id, _)| life(id)).map(|one| one.bytes).sum();
        let late: Bytes = tensors().filter_map(|(id, _)| life(id)).filter(stays).map(|one| one.bytes).sum();
        late.share_of(all) >= MOST.get()
    })
}

/// The run that collects most: by how much a turn, and how much in all.
fn largest(collection: &Collection) -> (Bytes, Bytes) {
    let sums = collection.runs.iter().map(|run| {
        let net: f64 = run.sites.iter().map(|one| one.growth.net).sum();
        let slope: f64 = run.sites.iter().map(|one| one.growth.slope).sum();
        (Bytes::rounded(slope), Bytes::rounded(net))
    });
    sums.max_by_key(|(_, net)| *net).unwrap_or_default()
}

fn tell(facts: &Facts, collection: &Collection, never_ends: bool, worth: &Worth) -> Finding {
    let (slope, held) = largest(collection);
    let message = if never_ends {
        format!("a loop leaves {slope} behind in every turn, and none of it is freed")
    } else {
        format!("a loop collects {slope} in every turn, {held} before it is freed")
    };
    let telling = Telling {
        message,
        help: "move what the loop collects off the GPU as it goes: .detach().cpu(); or keep the numbers that you need"
            .to_owned(),
        place: Anchor::responsible(facts, &worth.about, true),
        label: format!("{} made here outlive the turn that made them", count(worth.about.len(), "tensor")),
        related: Vec::new(),
        evidence: evidence(collection, (slope, held), worth),
    };
    telling.told(facts, &GrowingResidency::META, worth)
}

fn evidence(collection: &Collection, (slope, held): (Bytes, Bytes), worth: &Worth) -> Vec<Measure> {
    let runs = collection.runs.len();
    vec![
        measure("slope", Quantity::Bytes(slope), format!("{slope} a turn")),
        measure(
            "collected",
            Quantity::Bytes(held),
            format!("up to {held} in one run, {}", count(runs, "run")),
        ),
        measure(
            "share-of-peak",
            Quantity::Ratio(worth.share),
            format!("{} of the peak", percent(worth.share)),
        ),
        measure("tensors", Quantity::Count(worth.about.len() as u64), String::new()),
    ]
}
