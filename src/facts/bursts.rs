//! Moments at which tensors of several past iterations go at once.
//!
//! In: lifetimes and iterations. Out: the frees between one allocation and the next, where they let go of the tensors of
//! at least three iterations, two of them past, that came one after the other or at even distances (every second
//! iteration takes the path that leaves a cycle): everything that one line left behind since the last such moment. That
//! is how Python's garbage collector frees a reference cycle. Where C++ frames show the collector itself, the recorder heard it, or the bursts
//! strike anywhere inside of libraries, neither distances nor shares matter; where they show that it was not the collector, it is no burst.

use std::collections::{BTreeMap, BTreeSet};

use crate::facts::Facts;
use crate::program::CollectorSign;
use crate::threshold::Threshold;
use crate::unit::{AllocationId, Bytes, EventIndex, FrameId, Index, IterationIndex, Ranks};

/// Iterations whose tensors have to go together.
static ITERATIONS: Threshold<usize> = Threshold::new("facts::bursts::ITERATIONS", 3);
/// How much of the largest iteration's share the smallest has to have: cycles hold the same things each time.
static EVEN: Threshold<f64> = Threshold::new("facts::bursts::EVEN", 0.5);

/// What one line's tensors lose at one moment.
#[derive(Debug)]
pub struct Burst {
    /// The innermost user frame that made them.
    pub site: FrameId,
    /// The first free.
    pub event: EventIndex,
    /// The iteration in which they go.
    pub iteration: IterationIndex,
    /// How many iterations made them.
    pub iterations: usize,
    /// The tensors of past iterations, oldest first.
    pub past: Vec<AllocationId>,
    /// Their bytes.
    pub bytes: Bytes,
    /// How it is known that the garbage collector was at work at that moment, if it is.
    pub seen: Option<CollectorSign>,
}

/// What one line's tensors lose between one allocation and the next, each with the iteration that made it, by line and moment.
type Groups = BTreeMap<(FrameId, usize), Vec<(AllocationId, usize)>>;

/// The bursts of a device, by line, then by time.
pub(super) fn bursts(facts: &Facts) -> Vec<Burst> {
    // Allocations stand in the order of their birth.
    let births = Ranks::of(facts.timeline.iter().filter_map(|(_, one)| Some(one.alloc?.position())));
    let loop_end = births.before(facts.iteration_ends().last().copied().unwrap_or(0));
    let mut groups = Groups::new();
    for (id, one) in facts.timeline.iter() {
        let (Some(freed), Some(born)) = (one.given_back(), facts.born_in(one)) else {
            continue;
        };
        let Some(dies) = facts.iteration_of(freed) else { continue };
        let stack = one.alloc.and_then(|event| facts.seen_stack(event));
        let Some(site) = stack.and_then(|stack| facts.user_frame(stack)) else { continue };
        if dies.position() < born.position() + 1 {
            continue;
        }
        let moment = births.before(freed.position());
        // What goes when the loop has made its last tensor is what the end of the loop lets go of.
        if moment < loop_end {
            groups.entry((site, moment)).or_default().push((id, born.position()));
        }
    }
    let seen = if groups.is_empty() { BTreeMap::new() } else { collections(facts, &births, &groups) };
    let of_group = |((site, moment), group): ((FrameId, usize), Vec<_>)| {
        burst(facts, site, &group, seen.get(&moment).copied())
    };
    groups.into_iter().filter_map(of_group).collect()
}

/// The moments at which the garbage collector is seen at work.
fn collections(facts: &Facts, births: &Ranks, groups: &Groups) -> BTreeMap<usize, CollectorSign> {
    let mut seen: BTreeMap<usize, CollectorSign> =
        anywhere(facts, groups).into_iter().map(|moment| (moment, CollectorSign::Anywhere)).collect();
    for (at, event) in facts.trace.events.iter().enumerate() {
        let Some(sign) = facts.program.collector.frees(event) else { continue };
        let moment = seen.entry(births.before(at)).or_insert(sign);
        // Of one moment its own frames say most.
        if sign == CollectorSign::Frames || *moment == CollectorSign::Anywhere {
            *moment = sign;
        }
    }
    seen
}

/// The moments at which what one line made goes inside of library functions, at more than one place of them: a name of the
/// program's ends on the program's own lines, and what a library keeps goes where the library lets go of it.
fn anywhere(facts: &Facts, groups: &Groups) -> BTreeSet<usize> {
    let mut of_sites: BTreeMap<FrameId, (BTreeSet<FrameId>, Vec<usize>)> = BTreeMap::new();
    for ((site, moment), group) in groups {
        let made: BTreeSet<usize> = group.iter().map(|(_, born)| *born).collect();
        if made.len() < ITERATIONS.get() || is_innocent(facts, group) {
            continue;
        }
        if let Some(place) = library_place(facts, group) {
            let (places, moments) = of_sites.entry(*site).or_default();
            places.insert(place);
            moments.push(*moment);
        }
    }
    of_sites.into_values().filter(|(places, _)| places.len() > 1).flat_map(|(_, moments)| moments).collect()
}

/// The innermost Python frame under which a group goes, where that is no code of the user's.
fn library_place(facts: &Facts, group: &[(AllocationId, usize)]) -> Option<FrameId> {
    let first = facts.first_to_go(group.iter().map(|(id, _)| *id))?;
    let innermost = facts.frames.innermost(facts.freed_under(first)?)?;
    (!facts.frames.is_own(innermost)).then_some(innermost)
}

/// A group of tensors that one line made and that go at one moment, if it is a burst.
fn burst(
    facts: &Facts,
    site: FrameId,
    group: &[(AllocationId, usize)],
    seen: Option<CollectorSign>,
) -> Option<Burst> {
    let event = group.iter().filter_map(|(id, _)| facts.timeline.given_back(*id)).min()?;
    let iteration = facts.iteration_of(event)?;
    let bytes = |id: AllocationId| facts.timeline.allocation(id).map_or(Bytes::ZERO, |one| one.bytes);
    let mut shares: BTreeMap<usize, Bytes> = BTreeMap::new();
    for (id, born) in group {
        *shares.entry(*born).or_default() += bytes(*id);
    }
    if shares.len() < ITERATIONS.get()
        || seen.is_none() && (is_innocent(facts, group) || !is_collected(&shares, iteration))
    {
        return None;
    }
    let past: Vec<AllocationId> = group.iter().map(|(id, _)| *id).collect();
    let total = past.iter().map(|id| bytes(*id)).sum();
    Some(Burst { site, event, iteration, iterations: shares.len(), past, bytes: total, seen })
}

/// Whether the collector is known to have no part in frees of which nothing shows it.
fn is_innocent(facts: &Facts, group: &[(AllocationId, usize)]) -> bool {
    let collector = &facts.program.collector;
    let event = |id: AllocationId| facts.trace.events.get(facts.timeline.given_back(id)?.position());
    collector.is_told() || group.iter().all(|(id, _)| event(*id).is_some_and(|one| collector.is_spared(one)))
}

/// Whether what goes at once, by iterations, looks like garbage: the same of each, at even distances, up to the last.
fn is_collected(shares: &BTreeMap<usize, Bytes>, now: IterationIndex) -> bool {
    let (smallest, most) = (shares.values().min(), shares.values().max());
    let even = smallest.zip(most).is_some_and(|(smallest, most)| smallest.share_of(*most) >= EVEN.get());
    let stride = stride(&shares.keys().copied().collect::<Vec<_>>());
    let last = shares.keys().next_back().copied().unwrap_or_default();
    even && stride.is_some_and(|stride| last + 1 + stride >= now.position())
}

/// The even distance between iterations. Before the first and the last a smaller one will do: a younger generation's collection has taken what
/// lies between the others, and not yet what is youngest.
fn stride(iterations: &[usize]) -> Option<usize> {
    let gaps: Vec<usize> =
        iterations.iter().zip(iterations.iter().skip(1)).map(|(one, next)| next - one).collect();
    let stride = *gaps.get(gaps.len() / 2)?;
    let is_even = |gaps: &[usize]| gaps.iter().all(|gap| *gap == stride);
    let (first, last) = (*gaps.first()?, *gaps.last()?);
    let inner = gaps.get(1..gaps.len() - 1).unwrap_or_default();
    let frayed = first <= stride && last <= stride && inner.len() + 1 >= ITERATIONS.get() && is_even(inner);
    (is_even(&gaps) || frayed).then_some(stride)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn iterations_stand_at_even_distances_but_for_the_ends() {
        assert_eq!(stride(&[3, 4, 5]), Some(1));
        assert_eq!(stride(&[3, 5, 7]), Some(2));
        assert_eq!(stride(&[4, 5, 7, 9, 11, 12]), Some(2), "what a younger collection has not taken yet");
        assert_eq!(stride(&[4, 5, 7]), None, "too few to tell");
        assert_eq!(stride(&[1, 4, 5, 7, 12, 13]), None);
        assert_eq!((stride(&[]), stride(&[3])), (None, None));
    }
}
