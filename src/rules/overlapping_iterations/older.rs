//! What the pass before the recording left behind for the one pass that was recorded.
//!
//! In: a recording without iterations. Out: a claim about tensors that are older than it and that a line lets go of after it has
//! made the like: of each size as many as it has made and still holds at the end. A value that a name is bound to anew looks
//! so; what the pass before needed for its backward, its gradients and its batch do not.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use super::may_overlap;
use crate::facts::Facts;
use crate::finding::{Finding, Location, Quantity, Related};
use crate::lives::Changes;
use crate::program::Phase;
use crate::rules::claim::{Anchor, Claim, Mending, Telling, Worth, related};
use crate::rules::measure;
use crate::unit::{AllocationId, Bytes, Confidence, EventIndex, FrameId, StackId, percent};

/// Lines that are named beside the first.
const BESIDE: usize = 3;

/// A value of the pass before, and the one that took its place.
struct Replaced {
    old: AllocationId,
    new: AllocationId,
}

pub(super) fn claim<'f>(facts: &'f Facts<'f>) -> Option<Claim<'f>> {
    let replaced = replaced(facts);
    let old = || replaced.iter().map(|one| one.old);
    let (about, mended): (Vec<AllocationId>, Changes) = (old().collect(), Changes::removing(old()));
    let held = facts.bytes(&about);
    let any = !replaced.is_empty();
    let told = move |worth: &Worth| tell(facts, &replaced, worth);
    let claim = Claim::new(&super::OverlappingIterations::META, about, Mending::lives(mended), told)
        .at_recorded_peak();
    any.then(|| claim.holding(held).sure(Confidence::Medium))
}

/// Pairs each older tensor that goes in the user's own code with the last of its size that was made before and stays.
fn replaced(facts: &Facts) -> Vec<Replaced> {
    let mut stays: BTreeMap<Bytes, Vec<(EventIndex, AllocationId)>> = BTreeMap::new();
    for (id, one) in facts.timeline.iter() {
        if let Some(born) = one.alloc.filter(|_| one.given_back().is_none()) {
            stays.entry(one.bytes).or_default().push((born, id));
        }
    }
    let older = facts.timeline.older();
    let mut gone: Vec<(EventIndex, AllocationId, Bytes)> = older
        .filter(|(id, _)| may_overlap(facts.role(*id)))
        .filter_map(|(id, one)| Some((one.free_requested?, id, one.bytes)))
        .filter(|(freed, _, _)| is_the_programs(facts, *freed))
        .collect();
    gone.sort_unstable();
    let pair = |(freed, old, bytes): (EventIndex, AllocationId, Bytes)| {
        let alike = stays.get_mut(&bytes)?;
        let (_, new) = alike.remove(alike.partition_point(|(born, _)| *born < freed).checked_sub(1)?);
        Some(Replaced { old, new })
    };
    gone.into_iter().filter_map(pair).collect()
}

/// Whether the program itself lets go of something: not a backward pass, an optimizer, or `zero_grad`.
fn is_the_programs(facts: &Facts, freed: EventIndex) -> bool {
    matches!(facts.phase(freed), Phase::Input | Phase::Forward | Phase::Evaluation | Phase::Other)
}

fn tell(facts: &Facts, replaced: &[Replaced], worth: &Worth) -> Finding {
    let (old, new): (Vec<_>, Vec<_>) = replaced.iter().map(|one| (one.old, one.new)).unzip();
    let bytes = facts.bytes(&old);
    let made = Anchor::responsible(facts, &super::heaviest_line(facts, &new), true);
    let maker = made.frame();
    // What is made may be made inside the model; what is bound anew is the program's own name.
    let mut lines = freeing_lines(facts, replaced).into_iter();
    let (place, label) = match lines.next() {
        Some(most) => (Anchor::of_stack(facts, Some(most.stack)), "only here the old value is replaced"),
        None => (made, "what is made here takes the place of an old value"),
    };
    let more = lines.take(BESIDE).filter_map(|one| {
        related(facts, Some(one.line), &place, format!("only here {} more are replaced", one.bytes))
    });
    let mut beside: Vec<Related> = more.collect();
    let is_named = maker.and_then(|maker| Location::of(facts.snapshot, maker));
    if !beside.iter().any(|one| Some(&one.location) == is_named.as_ref()) {
        beside.extend(related(facts, maker, &place, "the new one is made here"));
    }
    let telling = Telling {
        message: format!("{bytes} of the previous pass stay alive through this one"),
        help: super::HELP.to_owned(),
        label: label.to_owned(),
        related: beside,
        evidence: vec![
            measure(
                "held",
                Quantity::Bytes(bytes),
                format!("{bytes} from before the recording, replaced in it"),
            ),
            measure(
                "share-of-peak",
                Quantity::Ratio(worth.share),
                format!("{} of the peak", percent(worth.share)),
            ),
        ],
        place,
    };
    telling.told(facts, &super::OverlappingIterations::META, worth)
}

/// A line of the user's under which old values are let go of.
struct FreeingLine {
    line: FrameId,
    bytes: Bytes,
    stack: StackId,
}

/// The lines under which the old values go, that of most bytes first.
fn freeing_lines(facts: &Facts, replaced: &[Replaced]) -> Vec<FreeingLine> {
    let mut lines: BTreeMap<FrameId, FreeingLine> = BTreeMap::new();
    for one in replaced {
        let stack = facts.timeline.allocation(one.old).and_then(|old| facts.freed_under(old));
        if let Some((stack, line)) = stack.and_then(|stack| Some((stack, facts.site(stack)?))) {
            let fresh = FreeingLine { line, bytes: Bytes::ZERO, stack };
            lines.entry(line).or_insert(fresh).bytes += facts.bytes(&[one.old]);
        }
    }
    let mut lines: Vec<FreeingLine> = lines.into_values().collect();
    lines.sort_by_key(|one| (Reverse(one.bytes), one.line));
    lines
}
