//! Tensors of one iteration that live on through the next one's forward pass.

use std::collections::BTreeMap;

use super::{declare_rule, measure, place, shown};
use crate::facts::{Changes, Facts, Guilty};
use crate::finding::{Finding, Impact, Measure, Related, Value};
use crate::program::Phase;
use crate::role::Role;
use crate::timeline::Allocation;
use crate::unit::{AllocationId, Bytes, Confidence, EventIndex, FrameId, Index, count, percent};

declare_rule! {
    /// Tensors of the previous iteration live through the next one and raise the peak.
    OverlappingIterations = "overlapping-iterations", Peak, Warning,
    needs: [History, Stacks, Iterations],
    summary: "tensors of the previous iteration live through the next one and raise the peak",
}

/// The share of the peak that freeing at the iteration's end has to save.
const SAVED: f64 = 0.1;
/// The share of iterations in which a line has to leave something behind.
const ITERATIONS: f64 = 0.6;

impl OverlappingIterations {
    fn detect(facts: &Facts) -> Vec<Finding> {
        let lines = lines(facts);
        let steady = facts.steady();
        // What autograd keeps for nothing has its own rule; only what would overlap without it counts here.
        let mut blamed = Changes::default();
        for graph in facts.unused_graphs() {
            blamed = blamed.and(&graph.changes);
        }
        let changes = blamed.clone().and(&cut(facts, &lines));
        let within = |changes: &Changes| changes.peak_within(facts.timeline, steady.events.clone());
        let (before, after) = (within(&blamed), within(&changes));
        let share = (before - after).share_of(before);
        if share < SAVED {
            return Vec::new();
        }
        let saved = blamed.peak(facts.timeline) - changes.peak(facts.timeline);
        report(facts, &lines, share, saved).into_iter().collect()
    }
}

/// What lines regularly leave behind for the next iteration to drop, line by line: tensors that outlive one end.
fn lines(facts: &Facts) -> Vec<Vec<AllocationId>> {
    #[derive(Default)]
    struct Seen {
        once: Vec<AllocationId>,
        /// Bytes that outlive more than one end: collected, cached or leaked, and no overlap.
        longer: Bytes,
        by_iteration: BTreeMap<usize, Bytes>,
    }
    let mut seen: BTreeMap<FrameId, Seen> = BTreeMap::new();
    let ahead = Ahead::of(facts);
    for (id, one) in facts.timeline.iter() {
        let ends = facts.ends_held(one);
        let may_overlap = ends > 0 && may_overlap(facts.role(id)) && !ahead.fetched(facts, id, one);
        let Some(born) = facts.born_in(one).filter(|_| may_overlap) else { continue };
        let stack = one.alloc.and_then(|event| facts.seen_stack(event));
        let Some(frame) = stack.and_then(|stack| facts.site(stack)) else { continue };
        let line = seen.entry(frame).or_default();
        if ends == 1 {
            line.once.push(id);
            *line.by_iteration.entry(born.position()).or_default() += one.bytes;
        } else {
            line.longer += one.bytes;
        }
    }
    let ends = facts.iteration_ends().len();
    let regular = |line: &Seen| {
        let sizes: Vec<Bytes> = line.by_iteration.values().copied().collect();
        let most = sizes.iter().copied().max().unwrap_or_default();
        let alike = sizes.iter().filter(|bytes| bytes.times(2) >= most).count();
        // A buffer that is made anew a little larger each time holds what the old one held.
        let grows = sizes.len() >= 3 && sizes.is_sorted_by(|a, b| a < b);
        let enough = alike as f64 >= ITERATIONS * (ends.saturating_sub(1)) as f64;
        enough && !grows && line.longer.times(2) < facts.bytes(&line.once)
    };
    seen.into_values().filter(regular).map(|line| line.once).collect()
}

/// How batches that are fetched ahead are known: they are for the next iteration, and no overlap.
struct Ahead {
    /// The stream on which the program computes.
    stream: Option<u16>,
    /// For each iteration the event of its first forward pass.
    forwards: BTreeMap<usize, EventIndex>,
}

impl Ahead {
    fn of(facts: &Facts) -> Ahead {
        let mut bytes: BTreeMap<u16, Bytes> = BTreeMap::new();
        let mut forwards: BTreeMap<usize, EventIndex> = BTreeMap::new();
        for (_, one) in facts.timeline.iter() {
            let Some((born, iteration)) = one.alloc.zip(facts.born_in(one)) else { continue };
            let phase = facts.phase(born);
            *bytes.entry(one.stream).or_default() +=
                if phase == Phase::Input { Bytes::ZERO } else { one.bytes };
            if phase == Phase::Forward {
                forwards.entry(iteration.position()).or_insert(born);
            }
        }
        let stream = bytes.into_iter().max_by_key(|(stream, bytes)| (*bytes, std::cmp::Reverse(*stream)));
        Ahead { stream: stream.map(|(stream, _)| stream), forwards }
    }

    fn fetched(&self, facts: &Facts, id: AllocationId, one: &Allocation) -> bool {
        let forward = facts.born_in(one).and_then(|iteration| self.forwards.get(&iteration.position()));
        let after_forward = forward.is_some_and(|forward| one.alloc > Some(*forward));
        Some(one.stream) != self.stream || (facts.role(id) == Role::Input && after_forward)
    }
}

/// Whether what has a role could as well die with its iteration.
fn may_overlap(role: Role) -> bool {
    matches!(role, Role::Activation | Role::Input | Role::Temporary | Role::Unknown)
}

/// The lifetimes cut at the ends of the iterations.
fn cut(facts: &Facts, lines: &[Vec<AllocationId>]) -> Changes {
    let mut changes = Changes::default();
    facts.free_with_their_iteration(&mut changes, lines.iter().flatten());
    changes
}

fn report(facts: &Facts, lines: &[Vec<AllocationId>], share: f64, saved: Bytes) -> Option<Finding> {
    let at_peak = |id: &AllocationId| {
        let alive = facts.timeline.allocation(*id).zip(facts.steady().peak_event);
        alive.is_some_and(|(one, at)| {
            let older = facts.born_in(one) < facts.iteration_of(at);
            older && one.alive_after(at)
        })
    };
    let held: Vec<AllocationId> = lines.iter().flatten().copied().collect();
    let mut old: Vec<AllocationId> = held.iter().copied().filter(at_peak).collect();
    if old.is_empty() {
        old.clone_from(&held);
    }
    let bytes = facts.bytes(&old);
    let guilty = heaviest_line(facts, &old);
    let blamed = facts.blame().past_forwards(&guilty)?;
    let message = format!("{bytes} of the previous iteration live on through the next one");
    let remedy =
        "drop them at the end of the iteration: del outputs, loss (or keep .detach().cpu() or .item())";
    let mut finding = OverlappingIterations::META.finding(facts, message, remedy);
    finding.location = place(facts, blamed);
    "what is made here is freed only when the next iteration replaces it".clone_into(&mut finding.label);
    let stack =
        guilty.iter().find(|one| facts.code.python(one.stack).contains(&blamed)).or(guilty.first())?.stack;
    finding.stack = shown(facts, stack);
    let first = old.first().and_then(|id| facts.timeline.allocation(*id));
    finding.phase = first.and_then(|one| one.alloc).map(|event| facts.phase(event)).unwrap_or_default();
    finding.related = related(facts, &old, blamed);
    let regular = facts.iteration_ends().len() >= 4;
    finding.confidence = if regular { Confidence::High } else { Confidence::Medium };
    finding.evidence = vec![
        measure("held", Value::Bytes(bytes), format!("{bytes} held in {}", count(old.len(), "tensor"))),
        measure("share-of-peak", Value::Ratio(share), format!("{} of the peak", percent(share))),
        measure("lines", Value::Count(lines.len() as u64), String::new()),
        holder(facts, &old),
    ];
    finding.impact = Impact { peak: Some(saved), resident: Some(bytes), ..Impact::default() };
    Some(finding)
}

/// Of the old tensors those of the line that holds most.
fn heaviest_line(facts: &Facts, old: &[AllocationId]) -> Vec<Guilty> {
    let mut lines: BTreeMap<FrameId, (u64, Vec<Guilty>)> = BTreeMap::new();
    for one in facts.guilty(old.iter().copied()) {
        let Some(frame) = facts.site(one.stack) else { continue };
        let (weight, guilty) = lines.entry(frame).or_default();
        *weight = weight.saturating_add(one.weight);
        guilty.push(one);
    }
    let heaviest = lines.into_iter().max_by_key(|(frame, (weight, _))| (*weight, std::cmp::Reverse(*frame)));
    heaviest.map(|(_, (_, guilty))| guilty).unwrap_or_default()
}

/// What held them until they went: a name, if the program's own line let go of them.
fn holder(facts: &Facts, old: &[AllocationId]) -> Measure {
    let place = freeing_line(facts, old).and_then(|line| place(facts, line));
    let text = match place {
        Some(place) => format!(
            "held by a name or an object that line {} of {}() binds anew or drops",
            place.line, place.function
        ),
        None => "held by a name or an object of the program: which is not recorded".to_owned(),
    };
    measure("held-by", Value::Text(text.clone()), text)
}

/// The user's line at which the largest of the old tensors is let go of in the end.
fn freeing_line(facts: &Facts, old: &[AllocationId]) -> Option<FrameId> {
    if !facts.program.frees_have_stacks {
        return None;
    }
    let largest = old.iter().filter_map(|id| facts.timeline.allocation(*id)).max_by_key(|one| one.bytes);
    facts.site(facts.trace.event(largest?.free_requested?)?.stack?)
}

/// Where the old tensors are let go of in the end.
fn related(facts: &Facts, old: &[AllocationId], blamed: FrameId) -> Vec<Related> {
    let line = freeing_line(facts, old).filter(|frame| *frame != blamed);
    let location = line.and_then(|frame| place(facts, frame));
    let message = "freed here in the next iteration".to_owned();
    location.map(|location| Related { location, message }).into_iter().collect()
}
