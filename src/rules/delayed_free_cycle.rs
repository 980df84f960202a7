//! Tensors of past iterations that wait for Python's garbage collector.

use std::collections::{BTreeMap, BTreeSet};

use super::claim::{Anchor, Claim, Mending, Telling, Worth, related};
use super::{declare_rule, measure};
use crate::facts::{Burst, Facts};
use crate::finding::{Finding, Quantity, Related};
use crate::lives::{Changes, Turns};
use crate::program::{CollectorSign, LoopRun};
use crate::timeline::Allocation;
use crate::unit::{AllocationId, Bytes, Confidence, FrameId, Index, StackId, count};

declare_rule! {
    /// Tensors of several past iterations stay until they are freed in one burst.
    DelayedFreeCycle = "delayed-free-cycle", Leak, Warning,
    needs: [History, Stacks, Iterations],
    summary: "tensors of several past iterations stay until they are freed in one burst",
}

/// The rule's name: its findings are about garbage.
pub const GARBAGE: &str = DelayedFreeCycle::META.name;

impl DelayedFreeCycle {
    fn claims<'f>(facts: &'f Facts<'f>) -> Vec<Claim<'f>> {
        // Each by itself: bursts of one line say nothing of what waits at another, which is no `growing-residency` any more.
        let garbage = Garbage::freed(facts).into_iter().chain(Garbage::stranded(facts));
        garbage.map(|garbage| claim(facts, garbage)).collect()
    }
}

/// What waits for the collector.
struct Garbage<'f> {
    /// The tensors that waited, oldest first.
    past: Vec<AllocationId>,
    /// The bytes that go at each moment at which the collector lets go of such, of all lines together.
    moments: Vec<(usize, Bytes)>,
    /// How many bytes wait at once, and of how many iterations.
    held: Bytes,
    iterations: usize,
    seen: Option<CollectorSign>,
    /// Where the collector strikes.
    frees: Vec<&'f Allocation>,
    /// Whether what waits is there to the end.
    is_stranded: bool,
}

impl<'f> Garbage<'f> {
    /// What goes in bursts.
    fn freed(facts: &'f Facts<'f>) -> Option<Garbage<'f>> {
        let bursts = cycles(facts);
        let moments = moments(&bursts);
        let held = moments.iter().map(|(_, bytes)| *bytes).max()?;
        Some(Garbage {
            past: bursts.iter().flat_map(|burst| burst.past.iter().copied()).collect(),
            held,
            iterations: bursts.iter().map(|burst| burst.iterations).max().unwrap_or(0),
            seen: bursts.iter().find_map(|burst| burst.seen),
            frees: bursts.iter().filter_map(|burst| facts.first_to_go(burst.past.iter().copied())).collect(),
            moments,
            is_stranded: false,
        })
    }

    /// What grows until the collector comes, and no burst shows.
    fn stranded(facts: &'f Facts<'f>) -> Option<Garbage<'f>> {
        let lines = facts.stranded();
        let mut past: Vec<AllocationId> = lines.iter().flat_map(|line| line.stays.iter().copied()).collect();
        past.sort_unstable();
        let gone = lines.iter().flat_map(|line| &line.gone);
        let frees: Vec<&Allocation> = gone.filter_map(|id| facts.timeline.allocation(*id)).collect();
        let mut moments: BTreeMap<usize, Bytes> = BTreeMap::new();
        for one in &frees {
            let iteration = one.given_back().and_then(|event| facts.iteration_of(event));
            *moments.entry(iteration.map_or(0, Index::position)).or_default() += one.bytes;
        }
        let made = past.iter().filter_map(|id| facts.born_in(facts.timeline.allocation(*id)?));
        Some(Garbage {
            iterations: made.collect::<BTreeSet<_>>().len(),
            held: facts.bytes(&past),
            moments: moments.into_iter().collect(),
            seen: Some(lines.first()?.seen),
            past,
            frees,
            is_stranded: true,
        })
    }
}

fn claim<'f>(facts: &'f Facts<'f>, garbage: Garbage<'f>) -> Claim<'f> {
    let alike = like(facts, &garbage.past);
    let mut mended = Changes::default();
    facts.free_with_their_iteration(&mut mended, &alike);
    let sure = if garbage.seen.is_some() || garbage.moments.len() > 1 {
        Confidence::High
    } else {
        Confidence::Medium
    };
    let held = garbage.held;
    let told = move |worth: &Worth| tell(facts, &garbage, worth);
    Claim::new(&DelayedFreeCycle::META, alike, Mending::lives(mended), told).holding(held).sure(sure)
}

/// The bursts in which the collector is seen, and those that strike inside the loop's body. What goes when the body has been left (a list made anew for every
/// epoch, a function's locals) was kept on purpose, unless it comes from several turns of a loop around it.
fn cycles<'a>(facts: &'a Facts) -> Vec<&'a Burst> {
    let strikes =
        |burst: &&Burst| burst.seen.is_some() || strikes_inside(facts, burst) || strikes_around(facts, burst);
    facts.bursts().iter().filter(strikes).collect()
}

/// Whether a burst strikes inside the body of a loop of which each turn made its own share of it: what one turn leaves, a list or a
/// function's locals, goes with that turn.
fn strikes_around(facts: &Facts, burst: &Burst) -> bool {
    let Some(stack) = free_stack(facts, burst) else { return false };
    let turns_apart = |run: &LoopRun| {
        let turns = Turns::of_run(run);
        let made = burst.past.iter().filter_map(|id| turns.making(facts.timeline.allocation(*id)?));
        made.collect::<BTreeSet<_>>().len() == burst.iterations && turns.holding(burst.event).is_some()
    };
    let is_running = |run: &&LoopRun| {
        let head = facts.frames.function(run.frame);
        let same = |frame: &FrameId| head.is_some() && facts.frames.function(*frame) == head;
        !facts.program.is_main(run)
            && facts.frames.is_own(run.frame)
            && facts.frames.python(stack).iter().any(same)
    };
    facts.program.loops.iter().filter(is_running).any(turns_apart)
}

fn strikes_inside(facts: &Facts, burst: &Burst) -> bool {
    if !facts.timeline.frees_have_stacks() {
        return strikes_between_turns(facts, burst);
    }
    let Some(looping) = facts.program.library_loop.or(facts.program.main_loop) else { return false };
    let Some(head) = facts.frames.function(looping.frame) else { return false };
    let Some(stack) = free_stack(facts, burst) else { return false };
    let inside = |frame: &FrameId| {
        facts.frames.get(*frame).is_some_and(|frame| {
            frame.function == head && (looping.line..=looping.last_line).contains(&frame.line)
        })
    };
    facts.frames.python(stack).iter().any(inside)
}

/// The same where frees say nothing of what ran: the loop had been entered, and the same call of it went on.
fn strikes_between_turns(facts: &Facts, burst: &Burst) -> bool {
    let is_running = |run: &&LoopRun| {
        run.starts.first().is_some_and(|first| *first < burst.event) && burst.event < run.end
    };
    facts.program.loops.iter().filter(is_running).any(|run| facts.program.is_main(run))
}

fn free_stack(facts: &Facts, burst: &Burst) -> Option<StackId> {
    facts.freed_under(facts.first_to_go(burst.past.iter().copied())?)
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

fn tell(facts: &Facts, garbage: &Garbage<'_>, worth: &Worth) -> Finding {
    let Garbage { held, iterations, .. } = garbage;
    let moments = garbage.moments.len();
    let place = Anchor::responsible(facts, &garbage.past, true);
    let (of, struck_at) = (count(*iterations, "iteration"), count(moments, "burst"));
    let (label, waiting, bursts) = if garbage.is_stranded {
        (
            "made here, unreachable soon, and there at the end",
            format!("the tensors of {of} are there at the end"),
            format!("others like them went while they were young, in {struck_at}"),
        )
    } else {
        (
            "made here, unreachable soon, and freed iterations later",
            format!("the tensors of {of} go at once"),
            format!("{struck_at} in the recording let it go again"),
        )
    };
    let telling = Telling {
        message: format!("{held} of {iterations} past iterations wait for the garbage collector"),
        help: "break the reference cycle: hold the back reference weakly (weakref.ref(owner), for a bound method \
               weakref.WeakMethod), or set it to None when the step ends"
            .to_owned(),
        label: label.to_owned(),
        related: struck(facts, garbage, &place),
        evidence: vec![
            measure("waiting", Quantity::Bytes(*held), format!("up to {held} wait at once")),
            measure("iterations-waiting", Quantity::Count(*iterations as u64), waiting),
            measure("bursts", Quantity::Count(moments as u64), bursts),
            measure("held-by", Quantity::Text("reference cycle".to_owned()), held_by(garbage.seen)),
        ],
        place,
    };
    telling.told(facts, &DelayedFreeCycle::META, worth)
}

fn held_by(seen: Option<CollectorSign>) -> String {
    let sign = match seen {
        Some(CollectorSign::Frames) => "the C++ frames of the garbage collector show",
        Some(CollectorSign::Told) => "the garbage collector's own times show",
        Some(CollectorSign::Anywhere) => "their going on different lines inside of libraries shows",
        None => "the garbage collector's burst shows",
    };
    format!("held by a reference cycle, as {sign}; the recording does not show which objects")
}

/// Where the collector strikes.
fn struck(facts: &Facts, garbage: &Garbage<'_>, place: &Anchor) -> Vec<Related> {
    let lines = garbage.frees.iter().filter_map(|one| facts.user_frame(facts.freed_under(one)?));
    let frames: BTreeSet<FrameId> = lines.collect();
    let one = |frame| related(facts, Some(frame), place, "they go while this line runs");
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
