//! Marks: moments that PyTorch itself notes down, whatever the loops look like.
//!
//! In: annotations, and the signs of the events' stacks. Out: optimizer steps, `zero_grad` calls and other ranges, placed
//! among the events by time.
//!
//! PyTorch annotates every `Optimizer.step` and `Optimizer.zero_grad` by itself (2.11: also without a profiler). Where a
//! file has no such annotations, runs of events under optimizer frames stand for steps; a step that allocates nothing
//! (plain SGD, or a fused one that has its state) leaves none, then the ends of backward passes set the pace.

use rustc_hash::FxHashMap;

use super::Phase;
use super::signs::Sign;
use crate::snapshot::{Action, Event, Snapshot};
use crate::unit::{Index, Micros, StringId};

/// A `record_function` range.
#[derive(Debug, Clone, Copy)]
pub(super) struct Range {
    pub(super) name: StringId,
    pub(super) start: Micros,
    /// `None` where it was running when the snapshot was taken.
    pub(super) end: Option<Micros>,
}

/// By what the iterations of a training loop are counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum PacedBy {
    /// `Optimizer.step` annotations.
    Annotations,
    /// Frames of optimizers.
    Frames,
    /// The ends of backward passes: steps leave no mark, or most do not.
    Backward,
    /// Nothing of the kind.
    #[default]
    Nothing,
}

/// A step among the events: the first event of it, and the first after it. They are equal where it has no events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct StepSpan {
    pub(super) start: usize,
    pub(super) end: usize,
}

/// What was marked.
#[derive(Debug, Default)]
pub(super) struct Marks {
    /// Optimizer steps that are seen, in order.
    pub(super) steps: Vec<StepSpan>,
    /// What stands for the steps where iterations are looked for: these, or the backward passes.
    pub(super) paces: Vec<StepSpan>,
    /// Which of them.
    pub(super) paced_by: PacedBy,
    /// `zero_grad` calls: first event and the first after it.
    pub(super) zero_grads: Vec<StepSpan>,
    /// All ranges, by start.
    pub(super) ranges: Vec<Range>,
    /// The end of the last range.
    pub(super) last: Option<Micros>,
}

impl Marks {
    pub(super) fn of(snapshot: &Snapshot, events: &[Event], signs: &[Sign], frees: bool) -> Marks {
        let timed = events.first().is_some_and(|event| event.time > Micros(0));
        let ranges = if timed { ranges(snapshot) } else { Vec::new() };
        let named = |prefix: &str| {
            let of_name = ranges.iter().filter(|range| snapshot.text(range.name).starts_with(prefix));
            of_name.copied().collect::<Vec<_>>()
        };
        let annotated = spans(events, &named("Optimizer.step#"));
        let paced_by = if annotated.is_empty() { PacedBy::Frames } else { PacedBy::Annotations };
        let mut marks = Marks {
            steps: annotated,
            paces: Vec::new(),
            paced_by,
            zero_grads: spans(events, &named("Optimizer.zero_grad#")),
            last: snapshot.annotations.iter().map(|one| one.time).max().filter(|_| timed),
            ranges,
        };
        if marks.zero_grads.is_empty() {
            marks.zero_grads = runs(events, signs, frees, Phase::ZeroGrad);
        }
        if marks.paced_by == PacedBy::Frames {
            marks.steps = runs(events, signs, frees, Phase::OptimizerStep);
            let backwards = runs(events, signs, frees, Phase::Backward);
            if marks.misses_most(&backwards) {
                (marks.paces, marks.paced_by) = (backwards, PacedBy::Backward);
            }
        }
        match marks.paced_by {
            PacedBy::Backward => {}
            _ if marks.steps.is_empty() => marks.paced_by = PacedBy::Nothing,
            _ => marks.paces.clone_from(&marks.steps),
        }
        marks
    }

    /// Whether most backward passes come after the last step that is seen: it made the state, and those that go on with it leave no
    /// mark.
    fn misses_most(&self, backwards: &[StepSpan]) -> bool {
        let last = self.steps.last().map_or(0, |step| step.start);
        let before = backwards.partition_point(|one| one.start < last);
        backwards.len() - before > before
    }

    /// Whether an annotated step came to its end after an event, and before or at another.
    pub(super) fn stepped(&self, after: usize, until: usize) -> bool {
        let steps = if self.paced_by == PacedBy::Annotations { self.steps.as_slice() } else { &[] };
        let next = steps.partition_point(|step| step.end <= after);
        steps.get(next).is_some_and(|step| step.end <= until)
    }

    /// Whether an optimizer's steps set the pace.
    pub(super) fn has_optimizer(&self) -> bool {
        matches!(self.paced_by, PacedBy::Annotations | PacedBy::Frames)
    }
}

/// Starts and ends matched by name, the last start first, since ranges of one name nest.
fn ranges(snapshot: &Snapshot) -> Vec<Range> {
    let mut open: FxHashMap<StringId, Vec<usize>> = FxHashMap::default();
    let mut ranges: Vec<Range> = Vec::new();
    for one in &snapshot.annotations {
        if one.start {
            open.entry(one.name).or_default().push(ranges.len());
            ranges.push(Range { name: one.name, start: one.time, end: None });
        } else if let Some(range) =
            open.get_mut(&one.name).and_then(Vec::pop).and_then(|at| ranges.get_mut(at))
        {
            range.end = Some(one.time);
        }
    }
    ranges.sort_by_key(|range| range.start);
    ranges
}

/// Ranges placed among the events; one inside another (an optimizer that wraps another) is left out.
fn spans(events: &[Event], ranges: &[Range]) -> Vec<StepSpan> {
    let mut until = Micros(i64::MIN);
    let mut spans = Vec::new();
    for range in ranges {
        if range.start < until {
            continue;
        }
        until = range.end.unwrap_or(range.start);
        spans.push(StepSpan { start: position(events, range.start), end: position(events, until) });
    }
    spans
}

/// The first event after a moment.
pub(super) fn position(events: &[Event], moment: Micros) -> usize {
    events.partition_point(|event| event.time <= moment)
}

/// Runs of events in one phase, which only a forward, a backward or a step can end: the frees and user lines in between
/// do not. A backward pass ends it where the program does something else, too, before the run goes on: a step may run one itself, for the
/// second order.
fn runs(events: &[Event], signs: &[Sign], frees: bool, wanted: Phase) -> Vec<StepSpan> {
    let mut runs: Vec<StepSpan> = Vec::new();
    let mut between = Between::default();
    let mut open = false;
    for (at, event) in events.iter().enumerate() {
        if event.action != Action::Alloc && !(frees && event.action == Action::FreeRequested) {
            continue;
        }
        let phase = event.stack.and_then(|stack| signs.get(stack.position())).and_then(|sign| sign.phase);
        match phase {
            Some(phase) if phase == wanted => {
                match runs.last_mut().filter(|_| open && !between.is_another_iteration()) {
                    Some(run) => run.end = at + 1,
                    None => runs.push(StepSpan { start: at, end: at + 1 }),
                }
                (open, between) = (true, Between::default());
            }
            Some(Phase::Forward | Phase::OptimizerStep) => open = false,
            Some(Phase::Backward) => between.backward = true,
            _ => between.other = true,
        }
    }
    runs
}

/// What happened since a run was left.
#[derive(Default)]
struct Between {
    backward: bool,
    other: bool,
}

impl Between {
    fn is_another_iteration(&self) -> bool {
        self.backward && self.other
    }
}

#[cfg(test)]
mod tests {
    use crate::program::tape::Tape;

    /// Four iterations of a program written without modules, whose steps go through so many backward passes of their own.
    fn steps(passes: usize) -> usize {
        let mut tape = Tape::default();
        for _ in 0..4 {
            tape.alloc("main:10");
            tape.alloc("main:11 loss:3");
            tape.alloc("main:12 @backward");
            tape.alloc("");
            for _ in 0..passes {
                tape.alloc("main:13 @hook @adam");
                tape.alloc("");
            }
            tape.alloc("main:13 @hook @adam");
        }
        tape.program().steps.len()
    }

    #[test]
    fn a_backward_pass_inside_a_step_does_not_end_it() {
        assert_eq!((steps(0), steps(3)), (4, 4));
    }
}
