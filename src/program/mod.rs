//! What the program was doing: its main loop, its iterations, and the phase of every event.
//!
//! In: one device's events with their stacks, and the annotations. Out: a [`Program`]. Always: iterations are ascending, do
//! not overlap, and there is one phase an event; where nothing repeats there are no iterations, and [`FoundBy::Nothing`].
//!
//! A snapshot does not say "step 7 begins here". Several things hint at it, and this module asks them in the order of how
//! hard they are to mistake:
//!
//! | evidence | taken from | goes wrong when |
//! |---|---|---|
//! | back edges *and* optimizer steps | [`loops`], [`marks`], [`mod@iterations`] | two loops share the step's line |
//! | back edges alone (nothing trains) | [`loops`], [`stepless`] | set-up loops do more than the main one |
//! | `ProfilerStep#N` | [`annotated`] | the profiler's schedule is no loop |
//! | `Optimizer.step` | [`annotated`] | steps are skipped; where the first iteration begins is inferred |
//! | an annotation that repeats | [`annotated`] | it marks a part of an iteration: boundaries are shifted |
//! | the period of the sizes | [`periodicity`] | sizes vary; layers repeat more evenly than iterations |
//!
//! With stacks the first two settle nearly every program: in all 76 recordings of the corpus that go round a loop, the number
//! of iterations is the labelled one (of micro-batches, where gradients are accumulated), and every optimizer step that
//! the recording holds falls one to an iteration, or evenly many (`tests/corpus/programs.rs` repeats it). What becomes of
//! these numbers without annotations, or without the frees' stacks (`context="alloc"`), no test measures.
//!
//! Phases come from the frames ([`crate::frames`] says what each one means, [`signs`] what a stack says), and from an event's place
//! where the frames say nothing ([`phases`]).

mod annotated;
mod certainty;
mod collector;
mod iterations;
mod loops;
mod marks;
mod micro_batches;
mod paths;
mod pending;
mod periodicity;
mod phase;
mod phases;
mod signs;
mod stepless;
mod tally;
#[cfg(test)]
mod tape;
#[cfg(test)]
mod tests;
mod turns;
mod walk;

use serde::{Deserialize, Serialize};

pub use collector::{Collector, CollectorSign};
pub use phase::Phase;
pub use turns::LoopRun;

use crate::frames::Frames;
use crate::snapshot::{Action, Event, Snapshot};
use crate::timeline::Timeline;
use crate::unit::{Confidence, DeviceIndex, EventIndex, FrameId, Index, IterationIndex, Micros};
use iterations::Cut;
use marks::{Marks, PacedBy};
use paths::{Paths, Thread};
use pending::AwaitingBackward;

/// What one device's trace says of the program.
#[derive(Debug, Default)]
pub struct Program {
    /// The iterations of the main loop, in order; they do not overlap. Each ends where the next begins.
    pub iterations: Vec<Iteration>,
    /// The main loop, where the stacks show it: at the user's line that iterates, or that called the library that does.
    pub main_loop: Option<Loop>,
    /// The library's loop (Lightning, transformers) where `main_loop` is only the line that called it.
    pub library_loop: Option<Loop>,
    /// Every loop that the stacks show, the main one included, each time that it ran.
    pub loops: Vec<LoopRun>,
    /// The evidence by which the iterations were told apart.
    pub found_by: FoundBy,
    /// How sure that is.
    pub confidence: Confidence,
    /// The phase of each event, by its index.
    pub phases: Vec<Phase>,
    /// Optimizer steps that ran (skipped ones leave no trace), in order.
    pub steps: Vec<Step>,
    /// Calls that cleared gradients and left a trace, in order.
    pub zero_grads: Vec<Step>,
    /// The first event of each micro-batch; empty unless gradients are accumulated over several.
    pub micro_batches: Vec<EventIndex>,
    /// When Python's garbage collector was at work.
    pub collector: Collector,
}

/// One call among the events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Step {
    /// Its first event, if it has any: it has none where this is not before `end`.
    pub start: EventIndex,
    /// The event after its last.
    pub end: EventIndex,
}

/// One pass through the main loop (of the optimizer's period, where gradients are accumulated).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Iteration {
    /// Its first event.
    pub start: EventIndex,
    /// The event after its last; the number of events for the last one.
    pub end: EventIndex,
    /// When it begins.
    pub start_time: Micros,
    /// When it ends: when the next begins, or the last event.
    pub end_time: Micros,
    /// Whether the recording holds all of it.
    pub complete: bool,
}

/// A loop of the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Loop {
    /// The frame that iterates. Its line is where most iterations were first seen: the `for` or `while` itself, or the
    /// first line of the body that allocates.
    pub frame: FrameId,
    /// That line.
    pub line: u32,
    /// The last line of the body that was seen; `line` for the call of a library's loop.
    pub last_line: u32,
}

/// The evidence by which iterations were told apart, best first.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum FoundBy {
    /// `ProfilerStep#N` annotations.
    ProfilerSteps,
    /// An annotation of the user's own that repeats.
    Annotations,
    /// `Optimizer.step` annotations, or frames of optimizer steps.
    OptimizerSteps,
    /// A loop's back edges in the Python stacks.
    LoopBackEdges,
    /// Back edges and optimizer steps that agree.
    LoopAndOptimizer,
    /// The sequence of sizes repeats.
    Periodicity,
    /// Nothing repeats.
    #[default]
    Nothing,
}

impl FoundBy {
    /// The name in every machine-readable format: `loop-back-edges`.
    pub const fn name(self) -> &'static str {
        match self {
            FoundBy::ProfilerSteps => "profiler-steps",
            FoundBy::Annotations => "annotations",
            FoundBy::OptimizerSteps => "optimizer-steps",
            FoundBy::LoopBackEdges => "loop-back-edges",
            FoundBy::LoopAndOptimizer => "loop-and-optimizer",
            FoundBy::Periodicity => "periodicity",
            FoundBy::Nothing => "nothing",
        }
    }
}

impl Program {
    /// Reads a device's trace; `frames` is the snapshot's.
    pub fn of(snapshot: &Snapshot, timeline: &Timeline, frames: &Frames) -> Program {
        let device = timeline.device;
        let events = snapshot.devices.get(device.position()).map_or(&[][..], |trace| &trace.events);
        let signs = signs::read(snapshot, frames);
        let frees = timeline.frees_have_stacks();
        let marks = Marks::of(snapshot, events, &signs, frees);
        let moments: Vec<usize> = marks.paces.iter().map(|step| step.end).collect();
        let collector = Collector::of(snapshot, frames, frees);
        let search = |paths: Paths, thread: Thread| {
            let told = walk::Frees { own: frees, collector: &collector };
            let loops = walk::walk(frames, &paths, events, &told, &moments);
            let (cut, found_by) = find(&IterationSearch {
                snapshot,
                device: timeline.device,
                events,
                marks: &marks,
                paths: &paths,
                loops: &loops,
                signs: &signs,
                frees,
                thread,
            });
            (paths, loops, cut, found_by)
        };
        let of = |thread: Thread| Paths::of(snapshot, frames, events, thread);
        let mut found = search(of(Thread::Main).unwrap_or_default(), Thread::Main);
        if found.3 == FoundBy::Nothing {
            let busiest = of(Thread::Busiest).map(|paths| search(paths, Thread::Busiest));
            found = busiest.filter(|other| other.3 != FoundBy::Nothing).unwrap_or(found);
        }
        let (paths, loops, mut cut, found_by) = found;
        let complete = complete(events, &marks, &paths, &cut);
        if !frees {
            cut.leave_out_teardown(events);
        }
        let evidence =
            phases::PhaseEvidence { events, signs: &signs, paths: &paths, marks: &marks, cut: &cut, frees };
        let phases = phases::assign(&evidence);
        let (main_loop, library_loop) = place(frames, &loops, &cut);
        Program {
            iterations: iterations(events, &marks, &cut, complete),
            main_loop,
            library_loop,
            loops: turns::runs(&loops, events.len()),
            found_by,
            confidence: certainty::of(found_by, &cut, || {
                certainty::is_at_work(events, frames, &paths, (&cut, &phases), &marks.steps)
                    && !certainty::is_one_pass(timeline, &phases, &cut)
            }),
            phases,
            steps: steps(&marks.steps),
            zero_grads: steps(&marks.zero_grads),
            micro_batches: cut.micro_batches.iter().filter_map(|&at| EventIndex::at(at)).collect(),
            collector,
        }
    }

    /// The phase of an event.
    pub fn phase(&self, event: EventIndex) -> Phase {
        self.phases.get(event.position()).copied().unwrap_or_default()
    }

    /// The iteration that holds an event.
    pub fn iteration_of(&self, event: EventIndex) -> Option<IterationIndex> {
        let after = self.iterations.partition_point(|iteration| iteration.start <= event);
        let position = after.checked_sub(1)?;
        let inside = self.iterations.get(position).is_some_and(|iteration| event < iteration.end);
        inside.then(|| IterationIndex::at(position)).flatten()
    }
}

/// What iterations are sought in.
struct IterationSearch<'a> {
    snapshot: &'a Snapshot,
    device: DeviceIndex,
    events: &'a [Event],
    marks: &'a Marks,
    paths: &'a Paths,
    loops: &'a loops::Loops,
    signs: &'a [signs::Sign],
    /// Whether frees have stacks of their own.
    frees: bool,
    /// Whose paths are followed.
    thread: Thread,
}

/// The iterations by the best evidence there is.
fn find(sought: &IterationSearch) -> (Cut, FoundBy) {
    let IterationSearch { snapshot, events, marks, paths, .. } = *sought;
    if let Some(found) = by_loops(sought) {
        return found;
    }
    // Two steps without any loop around them are two steps in a row; without stacks they may be a loop's.
    let least = if paths.is_empty() { 2 } else { 3 };
    let by_annotation = annotated::by_profiler(snapshot, marks, events)
        .map(|cut| (cut, FoundBy::ProfilerSteps))
        .or_else(|| annotated::by_steps(marks, events, least).map(|cut| (cut, FoundBy::OptimizerSteps)))
        .or_else(|| annotated::by_repetition(snapshot, marks, events).map(|cut| (cut, FoundBy::Annotations)));
    let by_size = || {
        let cut = paths.is_empty().then(|| periodicity::by_sizes(events)).flatten();
        cut.map(|cut| (cut, FoundBy::Periodicity))
    };
    by_annotation.or_else(by_size).unwrap_or_default()
}

fn by_loops(sought: &IterationSearch) -> Option<(Cut, FoundBy)> {
    let IterationSearch { snapshot, device, events, marks, paths, loops, signs, frees, thread } = *sought;
    if loops.edges.is_empty() {
        return None;
    }
    let training = iterations::by_steps(loops, marks, events.len());
    let pools = tally::Pools::of(snapshot, device);
    let graphs = !pools.is_empty();
    if let Some(training) = training {
        let replaying = graphs.then(|| {
            let tally = tally::TraceTotals::of(events, paths, pools);
            let pending = &AwaitingBackward::of(events, signs, frees);
            stepless::replaying_loop(
                &stepless::StepSearch { events, paths, loops, tally: &tally, pending, thread },
                &training,
            )
        });
        if let Some(cut) = replaying.flatten() {
            return Some((cut, FoundBy::LoopBackEdges));
        }
        let found_by = match marks.paced_by {
            PacedBy::Annotations | PacedBy::Frames => FoundBy::LoopAndOptimizer,
            PacedBy::Backward | PacedBy::Nothing => FoundBy::LoopBackEdges,
        };
        let passes = || AwaitingBackward::of(events, signs, frees);
        return Some((micro_batches::join(training, marks, passes), found_by));
    }
    let tally = tally::TraceTotals::of(events, paths, pools);
    let pending = &AwaitingBackward::of(events, signs, frees);
    let cut =
        stepless::main_loop(&stepless::StepSearch { events, paths, loops, tally: &tally, pending, thread })?;
    Some((cut, FoundBy::LoopBackEdges))
}

/// The loop at the user's line, and the library's own.
fn place(frames: &Frames, loops: &loops::Loops, cut: &Cut) -> (Option<Loop>, Option<Loop>) {
    let Some(header) = cut.header else { return (None, None) };
    let own = Loop { frame: header.frame, line: frames.line(header.frame), last_line: header.last_line };
    if frames.is_own(header.frame) {
        return (Some(own), None);
    }
    let caller = loops.nodes.get(header.node as usize).and_then(|node| node.caller);
    let line = |frame| frames.line(frame);
    let call = caller.map(|frame| Loop { frame, line: line(frame), last_line: line(frame) });
    match call {
        Some(call) => (Some(call), Some(own)),
        None => (Some(own), None),
    }
}

fn iterations(events: &[Event], marks: &Marks, cut: &Cut, complete: Vec<bool>) -> Vec<Iteration> {
    let last = events.last().map(|event| event.time).max(marks.last).unwrap_or_default();
    let time = |at: usize| events.get(at).map_or(Micros(last.0.saturating_add(1)), |event| event.time);
    let spans = cut.spans().zip(complete);
    spans
        .filter_map(|((start, end), complete)| {
            let (from, to) = EventIndex::at(start).zip(EventIndex::at(end))?;
            Some(Iteration { start: from, end: to, start_time: time(start), end_time: time(end), complete })
        })
        .collect()
}

/// Which iterations the recording holds whole: all but a first one that was running when it began, and a last one that was
/// running when it ended or in which memory ran out.
fn complete(events: &[Event], marks: &Marks, paths: &Paths, cut: &Cut) -> Vec<bool> {
    let made = |start: usize, end: usize| {
        events.iter().take(end).skip(start).filter(|event| event.action == Action::Alloc).count()
    };
    let counts: Vec<usize> = cut.spans().map(|(start, end)| made(start, end)).collect();
    let inner = counts.get(1..counts.len().saturating_sub(1)).unwrap_or_default();
    let least = inner.iter().min().copied().unwrap_or(0);
    let mut complete = vec![true; counts.len()];
    let path = |at: usize| events.iter().skip(at).find_map(|event| paths.of_event(event));
    if let Some(first) = complete.first_mut().filter(|_| cut.begins_inside) {
        let begins = cut.starts.first().and_then(|&at| path(at));
        let like_others = cut.starts.iter().skip(1).any(|&at| path(at) == begins);
        *first = like_others && counts.first().is_some_and(|&count| count * 10 >= least * 9);
    }
    let ran_out = events.iter().take(cut.end).skip(cut.starts.last().copied().unwrap_or(0));
    let ran_out = ran_out.clone().any(|event| event.action == Action::OutOfMemory);
    let stepped = marks.paces.last().and_then(|step| cut.find(step.end.saturating_sub(1)));
    let trains = marks.has_optimizer() && stepped.is_some();
    let whole = if trains {
        stepped == counts.len().checked_sub(1)
    } else {
        counts.last().is_some_and(|&count| count * 10 >= least * 9)
    };
    if let Some(last) = complete.last_mut() {
        *last &= !ran_out && (cut.end < events.len() || whole);
    }
    complete
}

fn steps(spans: &[marks::StepSpan]) -> Vec<Step> {
    let indices = spans.iter().map(|span| EventIndex::at(span.start).zip(EventIndex::at(span.end)));
    indices.flatten().map(|(start, end)| Step { start, end }).collect()
}
