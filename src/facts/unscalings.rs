//! The moments at which `GradScaler` looks at the gradients, and whether a step followed.
//!
//! In: stacks and marked steps. Out: the unscalings in order. Before it steps, the scaler divides all gradients by the scale
//! and looks for infinities (`torch/amp/grad_scaler.py`, `_unscale_grads_`); where it finds one it does not call the
//! optimizer. Several calls with no backward pass in between (two optimizers) count as one. A fused optimizer is called
//! in any case and looks itself, so its skipped steps are not seen.

use crate::facts::Facts;
use crate::frames::{GraphSign, PhaseSign};
use crate::program::Phase;
use crate::unit::{EventIndex, FrameId, Index, StackId};

/// Gradients looked at after a backward pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unscaling {
    /// The first event.
    pub event: EventIndex,
    /// Its stack.
    pub stack: StackId,
    /// Whether the optimizer stepped before the next one.
    pub stepped: bool,
}

pub(super) fn unscalings(facts: &Facts) -> Vec<Unscaling> {
    let unscales: Vec<bool> = facts.snapshot.stacks.ids().map(|stack| has(facts, stack, unscaling)).collect();
    let steps: Vec<bool> = facts.snapshot.stacks.ids().map(|stack| has(facts, stack, stepping)).collect();
    let is = |marks: &[bool], stack: Option<StackId>| {
        stack.is_some_and(|stack| marks.get(stack.position()) == Some(&true))
    };
    let mut found: Vec<Unscaling> = Vec::new();
    // Without annotations a step that the scaler skipped cannot be told from one that it took.
    let steps_marked = facts.program.steps.iter().filter(|_| facts.calls.annotated);
    let mut marked = steps_marked.map(|step| step.start.position()).peekable();
    let mut backward = true;
    for (position, event) in facts.trace.events.iter().enumerate() {
        let Some(at) = EventIndex::at(position) else { break };
        // A marked step may hold no event: then it begins with the event after it.
        let begins = std::iter::from_fn(|| marked.next_if(|start| *start <= position)).count() > 0;
        if let Some(last) = found.last_mut().filter(|_| begins || is(&steps, event.stack)) {
            last.stepped = true;
        }
        match event.stack.filter(|_| is(&unscales, event.stack)) {
            Some(stack) if backward => {
                found.push(Unscaling { event: at, stack, stepped: false });
                backward = false;
            }
            Some(_) => {}
            None => backward |= facts.phase(at) == Phase::Backward,
        }
    }
    if let Some(last) = found.last_mut().filter(|_| marked.next().is_some()) {
        last.stepped = true;
    }
    found
}

fn has(facts: &Facts, stack: StackId, meant: fn(&Facts, FrameId) -> bool) -> bool {
    facts.frames.python(stack).iter().any(|frame| meant(facts, *frame))
}

fn unscaling(facts: &Facts, frame: FrameId) -> bool {
    facts.frames.graph(frame) == GraphSign::Unscales
}

fn stepping(facts: &Facts, frame: FrameId) -> bool {
    facts.frames.phase(frame) == PhaseSign::Optimizer || facts.frames.graph(frame) == GraphSign::Steps
}
