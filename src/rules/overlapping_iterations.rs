//! Tensors of one iteration that live on through the next one's forward pass.

mod around;
mod before;
mod older;

use std::collections::{BTreeMap, BTreeSet};

use super::claim::{Anchor, Claim, Mending, Telling, Worth, made_at, related};
use super::{declare_rule, measure, place};
use crate::facts::Facts;
use crate::finding::{Finding, Measure, Quantity, Severity};
use crate::lives::Changes;
use crate::program::Phase;
use crate::role::Role;
use crate::threshold::Threshold;
use crate::timeline::Allocation;
use crate::unit::{AllocationId, Bytes, Confidence, EventIndex, FrameId, Index, count, percent};

declare_rule! {
    /// Tensors of the previous iteration live through the next one and raise the peak.
    OverlappingIterations = "overlapping-iterations", Peak, Warning,
    needs: [History, Stacks, Pass],
    summary: "tensors of the previous iteration live through the next one and raise the peak",
}

/// The share of iterations in which a line has to leave something behind.
static ITERATIONS: Threshold<f64> = Threshold::new("rules::overlapping_iterations::ITERATIONS", 0.6);

const HELP: &str =
    "drop them at the end of the iteration: del outputs, loss (or keep .detach().cpu() or .item())";

impl OverlappingIterations {
    fn claims<'f>(facts: &'f Facts<'f>) -> Vec<Claim<'f>> {
        if facts.program.iterations.is_empty() {
            return older::claim(facts).into_iter().collect();
        }
        let lines = lines(facts);
        let mut about: Vec<AllocationId> = lines.iter().flatten().copied().collect();
        let before = before::forerunners(facts, &about);
        let mut mended = Changes::removing(before.iter().copied());
        facts.free_with_their_iteration(&mut mended, &about);
        about.extend(before);
        let regular = facts.iteration_ends().len() >= 4;
        let sure = if regular { Confidence::High } else { Confidence::Medium };
        let many = lines.len();
        let told = move |worth: &Worth| tell(facts, ("iteration", many), worth);
        let claim = Claim::new(&Self::META, about, Mending::lives(mended), told);
        // The layers of one pass hand on what the next one reads: where the loop may be theirs, that is no fault.
        let most = if facts.program.confidence == Confidence::Low { Severity::Info } else { Severity::Error };
        let claim = claim.sure(sure.min(facts.program.confidence)).at_most(most).at_recorded_peak();
        std::iter::once(claim).chain(around::claims(facts)).collect()
    }
}

/// What one line leaves behind at the ends of turns.
#[derive(Default)]
struct Leftover {
    /// Tensors that outlive one end.
    once: Vec<AllocationId>,
    /// Bytes that outlive more than one end: collected, cached or leaked, and no overlap.
    longer: Bytes,
    by_turn: BTreeMap<usize, Bytes>,
}

impl Leftover {
    /// Whether the line does so in most of so many turns.
    fn is_regular(&self, facts: &Facts, turns: usize) -> bool {
        let sizes: Vec<Bytes> = self.by_turn.values().copied().collect();
        let most = sizes.iter().copied().max().unwrap_or_default();
        let alike = sizes.iter().filter(|bytes| bytes.times(2) >= most).count();
        // A buffer that is made anew a little larger each time holds what the old one held.
        let grows = sizes.len() >= 3 && sizes.is_sorted_by(|a, b| a < b);
        let enough = alike as f64 >= ITERATIONS.get() * (turns.saturating_sub(1)) as f64;
        enough && !grows && self.longer.times(2) < facts.bytes(&self.once)
    }
}

/// What lines regularly leave behind for the next iteration to drop, line by line: tensors that outlive one end.
fn lines(facts: &Facts) -> Vec<Vec<AllocationId>> {
    let mut seen: BTreeMap<FrameId, Leftover> = BTreeMap::new();
    let ahead = FetchedAhead::of(facts);
    for (id, one) in facts.timeline.iter() {
        let ends = facts.ends_held(one);
        let is_candidate = || may_overlap(facts.role(id)) || is_returned_gradient(facts, id, one);
        let may_overlap = ends > 0 && is_candidate() && !is_used_again(facts, one);
        let may_overlap = may_overlap && !ahead.fetched(facts, id, one);
        let Some(born) = facts.born_in(one).filter(|_| may_overlap) else { continue };
        let stack = one.alloc.and_then(|event| facts.seen_stack(event));
        let Some(frame) = stack.and_then(|stack| facts.site(stack)) else { continue };
        let line = seen.entry(frame).or_default();
        if ends == 1 {
            line.once.push(id);
            *line.by_turn.entry(born.position()).or_default() += one.bytes;
        } else {
            line.longer += one.bytes;
        }
    }
    let ends = facts.iteration_ends().len();
    let regular = seen.into_values().filter(|line| line.is_regular(facts, ends)).map(|line| line.once);
    regular.filter(|once| !is_carried_on(facts, once) && !is_replaced_in_place(facts, once)).collect()
}

/// Whether the next iteration replaces them one by one, each as soon as its successor is there: the values of a container that outlives the
/// iterations (what a network has made of each batch so far). What a name holds goes at once; what two names hold that one line binds may
/// go one by one, but the first of it before its successor is there.
fn is_replaced_in_place(facts: &Facts, made: &[AllocationId]) -> bool {
    let mut turns: BTreeMap<usize, Vec<(usize, usize)>> = BTreeMap::new();
    for one in made.iter().filter_map(|id| facts.timeline.allocation(*id)) {
        let Some((born, dies)) = one.alloc.zip(one.given_back()) else { continue };
        let Some(turn) = facts.born_in(one) else { continue };
        turns.entry(turn.position()).or_default().push((born.position(), dies.position()));
    }
    for made in turns.values_mut() {
        made.sort_unstable();
    }
    let (mut replaced, mut all) = (0, 0);
    for (turn, old) in &turns {
        let Some(new) = turns.get(&(turn + 1)) else { continue };
        // Oldest first, as their successors stand.
        let has_successor =
            |&(at, &(_, dies)): &(usize, &(usize, usize))| new.get(at).is_some_and(|(born, _)| *born <= dies);
        let succeeded: BTreeSet<usize> =
            old.iter().enumerate().filter(has_successor).map(|(_, (_, dies))| *dies).collect();
        let mut deaths: Vec<usize> = old.iter().map(|(_, dies)| *dies).collect();
        deaths.sort_unstable();
        // Between two that go, a new one comes.
        let comes = |before: usize, after: usize| {
            let next = new.partition_point(|(born, _)| *born <= before);
            new.get(next).is_some_and(|(born, _)| *born < after)
        };
        let gaps = deaths.iter().zip(deaths.iter().skip(1)).map(|(one, next)| (*one, *next));
        all += old.len().saturating_sub(1);
        replaced += gaps.filter(|(one, next)| succeeded.contains(one) && comes(*one, *next)).count();
    }
    replaced * 2 > all
}

/// Whether what a line makes is joined of more than its iteration has at hand, as the last of them shows: of what is there from before, mostly the
/// one that it replaces (`bank = torch.cat([bank, new])[-n:]`). Then each is used in the next iteration, and can't go sooner.
fn is_carried_on(facts: &Facts, made: &[AllocationId]) -> bool {
    let joined = || {
        let one = facts.timeline.allocation(*made.last()?)?;
        let (born, iteration) = (one.alloc?, facts.program.iterations.get(facts.born_in(one)?.position())?);
        facts.joins(one.stack?).then_some((one.bytes, iteration.start, born))
    };
    let Some((bytes, start, born)) = joined() else { return false };
    let at_hand = (start.position()..born.position()).filter_map(|at| {
        let one = facts.timeline.allocation((*facts.timeline.allocation_of.get(at)?)?)?;
        (one.alloc == EventIndex::at(at) && one.alive_after(born)).then_some(one.bytes)
    });
    bytes > at_hand.sum()
}

/// Whether the backward pass of a later iteration lets go of something: then the forward pass of that iteration saved it, and so
/// computed with it. A recurrent state is carried on so.
fn is_used_again(facts: &Facts, one: &Allocation) -> bool {
    one.given_back().is_some_and(|event| facts.phase(event) == Phase::Backward)
}

/// How batches that are fetched ahead are known: they are for the next iteration, and no overlap.
struct FetchedAhead {
    /// The stream on which the program computes.
    stream: Option<u16>,
    /// For each iteration the event of its first forward pass, if there is one.
    forwards: Vec<Option<EventIndex>>,
}

impl FetchedAhead {
    fn of(facts: &Facts) -> FetchedAhead {
        let mut bytes: BTreeMap<u16, Bytes> = BTreeMap::new();
        let mut forwards: Vec<Option<EventIndex>> = vec![None; facts.iteration_ends().len()];
        for (_, one) in facts.timeline.iter() {
            let Some((born, iteration)) = one.alloc.zip(facts.born_in(one)) else { continue };
            let phase = facts.phase(born);
            *bytes.entry(one.stream).or_default() +=
                if phase == Phase::Input { Bytes::ZERO } else { one.bytes };
            if let Some(first) = forwards.get_mut(iteration.position()).filter(|_| phase == Phase::Forward) {
                first.get_or_insert(born);
            }
        }
        let stream = bytes.into_iter().max_by_key(|(stream, bytes)| (*bytes, std::cmp::Reverse(*stream)));
        FetchedAhead { stream: stream.map(|(stream, _)| stream), forwards }
    }

    fn fetched(&self, facts: &Facts, id: AllocationId, one: &Allocation) -> bool {
        let forward = facts.born_in(one).and_then(|iteration| *self.forwards.get(iteration.position())?);
        let after_forward = forward.is_some_and(|forward| one.alloc > Some(forward));
        Some(one.stream) != self.stream || (facts.role(id) == Role::Input && after_forward)
    }
}

/// Whether what has a role could as well die with its iteration.
fn may_overlap(role: Role) -> bool {
    matches!(role, Role::Activation | Role::Input | Role::Temporary | Role::Unknown)
}

/// Whether it is a gradient that a function returned: it goes only when the next iteration has made its like.
fn is_returned_gradient(facts: &Facts, id: AllocationId, one: &Allocation) -> bool {
    let end = || EventIndex::at(*facts.iteration_ends().get(facts.born_in(one)?.position())?);
    facts.role(id) == Role::Gradient && end().is_some_and(|end| facts.is_bound_anew(one, end))
}

fn tell(facts: &Facts, (turn, lines): (&str, usize), worth: &Worth) -> Finding {
    let at_peak = |id: &AllocationId| {
        let alive = facts.timeline.allocation(*id).zip(facts.steady().peak_event);
        alive.is_some_and(|(one, at)| {
            let older = facts.born_in(one) < facts.iteration_of(at);
            older && one.alive_after(at)
        })
    };
    let mut old: Vec<AllocationId> = worth.about.iter().copied().filter(at_peak).collect();
    if old.is_empty() {
        old.clone_from(&worth.about);
    }
    let bytes = facts.bytes(&old);
    // What is older than the recording has no line; what came after it has.
    let made = Some(heaviest_line(facts, &old)).filter(|made| !made.is_empty());
    let made = made.unwrap_or_else(|| heaviest_line(facts, &worth.about));
    let place = Anchor::responsible(facts, &made, true);
    let freed = related(facts, freeing_line(facts, &old), &place, format!("freed here in the next {turn}"));
    let mut beside = made_at(facts, &old, &place);
    beside.retain(|one| freed.as_ref().is_none_or(|freed| freed.location != one.location));
    beside.extend(freed);
    let telling = Telling {
        message: format!("{bytes} of the previous {turn} live on through the next one"),
        help: HELP.to_owned(),
        label: format!("what is made here is freed only when the next {turn} replaces it"),
        related: beside,
        evidence: vec![
            measure(
                "held",
                Quantity::Bytes(bytes),
                format!("{bytes} held in {}", count(old.len(), "tensor")),
            ),
            measure(
                "share-of-peak",
                Quantity::Ratio(worth.share),
                format!("{} of the peak", percent(worth.share)),
            ),
            measure("lines", Quantity::Count(lines as u64), String::new()),
            holder(facts, &old),
        ],
        place,
    };
    telling.told(facts, &OverlappingIterations::META, &Worth { held: Some(bytes), ..worth.clone() })
}

/// Of the old tensors those of the line that holds most.
fn heaviest_line(facts: &Facts, old: &[AllocationId]) -> Vec<AllocationId> {
    let mut lines: BTreeMap<FrameId, Vec<AllocationId>> = BTreeMap::new();
    for id in old {
        let seen = facts.timeline.allocation(*id).and_then(|one| facts.seen_stack(one.alloc?));
        if let Some(frame) = seen.and_then(|stack| facts.site(stack)) {
            lines.entry(frame).or_default().push(*id);
        }
    }
    let weight = |(frame, ids): &(FrameId, Vec<AllocationId>)| (facts.bytes(ids), std::cmp::Reverse(*frame));
    lines.into_iter().max_by_key(weight).map(|(_, ids)| ids).unwrap_or_default()
}

/// What held them until they went: a name, if the program's own line let go of them.
fn holder(facts: &Facts, old: &[AllocationId]) -> Measure {
    let place = freeing_line(facts, old).and_then(|line| place(facts, line));
    let text = match place {
        Some(place) => format!(
            "held by a name or an object that line {} of {}() binds anew or drops",
            place.line, place.function
        ),
        None => "held by a name or an object of the program: the recording does not name it".to_owned(),
    };
    measure("held-by", Quantity::Text(text.clone()), text)
}

/// The user's line at which the largest of the old tensors is let go of in the end.
fn freeing_line(facts: &Facts, old: &[AllocationId]) -> Option<FrameId> {
    let largest = old.iter().filter_map(|id| facts.timeline.allocation(*id)).max_by_key(|one| one.bytes);
    facts.site(facts.freed_under(largest?)?)
}
