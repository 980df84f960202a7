//! When optimizers stepped and cleared gradients, and under which line the backward pass was entered.
//!
//! In: annotations, phases and stacks. Out: positions in the trace. PyTorch 2.5 and later annotate every
//! `Optimizer.step` and `Optimizer.zero_grad` (`torch/optim/optimizer.py`); for older files the phases stand in, and
//! [`Calls::annotated`] says so.

use crate::facts::code::Code;
use crate::program::{Phase, Program};
use crate::snapshot::{DeviceTrace, Snapshot};
use crate::unit::{EventIndex, FrameId, Index, Micros, StackId};

/// The calls of a device's trace that frame its iterations, each list in order.
#[derive(Debug, Default)]
pub struct Calls {
    /// Each step: the events from the first inside it to the first after it.
    pub steps: Vec<Span>,
    /// Each call of an optimizer's `zero_grad`.
    pub zero_grads: Vec<Span>,
    /// Whether the file annotates optimizers, so that a missing call is known to be missing.
    pub annotated: bool,
    backwards: Vec<(EventIndex, StackId)>,
}

/// Events from `start` up to, not including, `end`; positions count from 0 and may be the number of events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    /// The first event inside.
    pub start: usize,
    /// The first event after.
    pub end: usize,
}

impl Calls {
    /// Reads annotations and stacks once.
    pub fn of(snapshot: &Snapshot, trace: &DeviceTrace, program: &Program, code: &Code) -> Calls {
        let steps = annotated(snapshot, trace, "Optimizer.step#");
        let zero_grads = annotated(snapshot, trace, "Optimizer.zero_grad#");
        let backwards = backward_entries(snapshot, trace, code);
        if steps.is_empty() && zero_grads.is_empty() {
            let (steps, zero_grads) = (runs(program, Phase::OptimizerStep), runs(program, Phase::ZeroGrad));
            return Calls { steps, zero_grads, annotated: false, backwards };
        }
        Calls { steps, zero_grads, annotated: true, backwards }
    }

    /// The stack under which the backward pass was entered that an event belongs to: the last one before it.
    pub fn backward_before(&self, event: EventIndex) -> Option<StackId> {
        let after = self.backwards.partition_point(|(entry, _)| *entry <= event);
        after.checked_sub(1).and_then(|last| self.backwards.get(last)).map(|(_, stack)| *stack)
    }
}

/// The ranges of an annotation, as events. Ranges of one name do not nest.
fn annotated(snapshot: &Snapshot, trace: &DeviceTrace, prefix: &str) -> Vec<Span> {
    let position = |time: Micros| trace.events.partition_point(|event| event.time < time);
    let mut spans = Vec::new();
    let mut open = None;
    for annotation in &snapshot.annotations {
        if !snapshot.text(annotation.name).starts_with(prefix) {
            continue;
        }
        if annotation.start {
            open = Some(position(annotation.time));
        } else if let Some(start) = open.take() {
            spans.push(Span { start, end: position(annotation.time).max(start) });
        }
    }
    spans
}

/// Maximal runs of a phase.
fn runs(program: &Program, wanted: Phase) -> Vec<Span> {
    let mut spans: Vec<Span> = Vec::new();
    for (position, phase) in program.phases.iter().enumerate() {
        match spans.last_mut() {
            _ if *phase != wanted => {}
            Some(last) if last.end == position => last.end += 1,
            _ => spans.push(Span { start: position, end: position + 1 }),
        }
    }
    spans
}

/// Events on the thread that called `backward`, with their stacks: the engine's own thread has no Python frames.
fn backward_entries(snapshot: &Snapshot, trace: &DeviceTrace, code: &Code) -> Vec<(EventIndex, StackId)> {
    const FILES: [&str; 3] = ["torch/_tensor.py", "torch/autograd/__init__.py", "torch/autograd/graph.py"];
    const NAMES: [&str; 4] = ["backward", "grad", "_make_grads", "_engine_run_backward"];
    let enters = |frame: &FrameId| {
        snapshot.stacks.frame(*frame).is_some_and(|frame| {
            NAMES.contains(&snapshot.text(frame.name))
                && FILES.iter().any(|file| snapshot.text(frame.file).ends_with(file))
        })
    };
    let entering: Vec<bool> =
        snapshot.stacks.ids().map(|stack| code.python(stack).iter().any(enters)).collect();
    let entry = |(position, stack): (usize, Option<StackId>)| {
        let stack = stack.filter(|stack| entering.get(stack.position()) == Some(&true))?;
        Some((EventIndex::at(position)?, stack))
    };
    trace.events.iter().map(|event| event.stack).enumerate().filter_map(entry).collect()
}
