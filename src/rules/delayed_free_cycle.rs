//! Tensors of past iterations that wait for Python's garbage collector.

use std::collections::BTreeSet;

use super::{declare_rule, measure, place, shown};
use crate::facts::{Burst, Changes, Facts};
use crate::finding::{Finding, Impact, Related, Severity, Value};
use crate::timeline::Allocation;
use crate::unit::{AllocationId, Bytes, Confidence, FrameId, Index, StackId, count};

declare_rule! {
    /// Tensors of several past iterations stay until they are freed in one burst.
    DelayedFreeCycle = "delayed-free-cycle", Leak, Warning,
    needs: [History, Stacks, Iterations],
    summary: "tensors of several past iterations stay until they are freed in one burst",
}

/// From this share of the peak on it is a warning.
const WARNED: f64 = 0.05;
/// Below this it is nothing.
const LEAST: Bytes = Bytes(4 << 20);

impl DelayedFreeCycle {
    fn detect(facts: &Facts) -> Vec<Finding> {
        let bursts = cycles(facts);
        let Some(largest) = moments(&bursts).into_iter().max_by_key(|(_, bytes)| *bytes) else {
            return Vec::new();
        };
        let held = largest.1;
        if held < LEAST || held.share_of(facts.peak()) < WARNED / 5.0 {
            return Vec::new();
        }
        vec![report(facts, &bursts, held)]
    }
}

/// What cycles explain: no other rule reports it again.
pub(super) fn explained(facts: &Facts) -> impl Iterator<Item = AllocationId> {
    cycles(facts).into_iter().flat_map(|burst| burst.past.iter().copied())
}

/// The bursts that strike inside the loop's body. What goes when the body has been left (a list made anew for every
/// epoch, a function's locals) was kept on purpose.
fn cycles<'a>(facts: &'a Facts) -> Vec<&'a Burst> {
    facts.bursts().iter().filter(|burst| strikes_inside(facts, burst)).collect()
}

fn strikes_inside(facts: &Facts, burst: &Burst) -> bool {
    let Some(looping) = facts.program.library_loop.or(facts.program.main_loop) else { return false };
    let Some(head) = facts.snapshot.stacks.frame(looping.frame) else { return false };
    let Some(stack) = free_stack(facts, burst) else { return false };
    let inside = |frame: &FrameId| {
        facts.snapshot.stacks.frame(*frame).is_some_and(|frame| {
            frame.name == head.name
                && frame.file == head.file
                && (looping.line..=looping.last_line).contains(&frame.line)
        })
    };
    facts.code.python(stack).iter().any(inside)
}

fn free_stack(facts: &Facts, burst: &Burst) -> Option<StackId> {
    facts.trace.event(burst.event)?.stack
}

/// The bytes that go at each moment, of all lines together.
fn moments(bursts: &[&Burst]) -> Vec<(usize, Bytes)> {
    let mut found: Vec<(usize, Bytes)> = Vec::new();
    for burst in bursts {
        let at = burst.iteration.position();
        match found.iter_mut().find(|(known, _)| *known == at) {
            Some((_, bytes)) => *bytes += burst.bytes,
            None => found.push((at, burst.bytes)),
        }
    }
    found
}

fn report(facts: &Facts, bursts: &[&Burst], held: Bytes) -> Finding {
    let past: Vec<AllocationId> = bursts.iter().flat_map(|burst| burst.past.iter().copied()).collect();
    let iterations = bursts.iter().map(|burst| burst.iterations).max().unwrap_or(0);
    let message = format!("{held} of {iterations} past iterations wait for the garbage collector");
    let remedy = "break the reference cycle: hold the back reference in weakref.ref(owner), or del it when the step ends";
    let mut finding = DelayedFreeCycle::META.finding(facts, message, remedy);
    if held.share_of(facts.peak()) < WARNED {
        finding.severity = Severity::Info;
    }
    let moments = moments(bursts).len();
    finding.confidence = if moments > 1 { Confidence::High } else { Confidence::Medium };
    let guilty = facts.guilty(past.iter().copied());
    let blamed = facts.blame().past_forwards(&guilty);
    finding.location = blamed.and_then(|frame| place(facts, frame));
    let through = |stack: &StackId| blamed.is_some_and(|frame| facts.code.python(*stack).contains(&frame));
    let stack = guilty.iter().map(|one| one.stack).find(through);
    finding.stack = stack.map(|stack| shown(facts, stack)).unwrap_or_default();
    let born = past.first().and_then(|id| facts.timeline.allocation(*id)?.alloc);
    finding.phase = born.map(|event| facts.phase(event)).unwrap_or_default();
    "made here, unreachable soon, and freed iterations later".clone_into(&mut finding.label);
    finding.related = struck(facts, bursts);
    finding.evidence = vec![
        measure("waiting", Value::Bytes(held), format!("up to {held} wait at once")),
        measure(
            "iterations-waiting",
            Value::Count(iterations as u64),
            format!("the tensors of {} go at once", count(iterations, "iteration")),
        ),
        measure("bursts", Value::Count(moments as u64), format!("{} in the recording", count(moments, "burst"))),
        measure(
            "held-by",
            Value::Text("reference cycle".to_owned()),
            "held by a reference cycle, as the garbage collector's burst shows; which objects is not recorded".to_owned(),
        ),
    ];
    let mut freed = Changes::default();
    facts.free_with_their_iteration(&mut freed, &like(facts, &past));
    let saved = freed.saving(facts.timeline);
    finding.impact = Impact { peak: Some(saved), resident: Some(held), ..Impact::default() };
    finding
}

/// Where the bursts strike.
fn struck(facts: &Facts, bursts: &[&Burst]) -> Vec<Related> {
    let mut frames: Vec<FrameId> =
        bursts.iter().filter_map(|burst| facts.user_frame(free_stack(facts, burst)?)).collect();
    frames.sort_unstable();
    frames.dedup();
    let one = |frame: FrameId| {
        let message = "they go while this line runs".to_owned();
        Some(Related { location: place(facts, frame)?, message })
    };
    frames.into_iter().take(3).filter_map(one).collect()
}

/// What the same calls made that outlives its iteration, too: the last tooth of the saw is still alive at the end, and no
/// burst shows it.
fn like(facts: &Facts, past: &[AllocationId]) -> Vec<AllocationId> {
    let stack = |id: &AllocationId| facts.timeline.allocation(*id)?.stack;
    let stacks: BTreeSet<StackId> = past.iter().filter_map(stack).collect();
    let alike = |one: &Allocation| one.stack.is_some_and(|stack| stacks.contains(&stack));
    let stays = facts.timeline.iter().filter(|(_, one)| alike(one) && facts.ends_outlived(one) > 0);
    stays.map(|(id, _)| id).collect()
}
