//! The moments at which `GradScaler` looks at the gradients, and whether a step followed; and the passes of a program that decides by itself.
//!
//! In: stacks and marked steps. Out: the unscalings in order. Before it steps, the scaler divides all gradients by the scale
//! and looks for infinities (`torch/amp/grad_scaler.py`, `_unscale_grads_`); where it finds one it does not call the
//! optimizer. Several calls with no backward pass in between (two optimizers) count as one. A fused optimizer is called
//! in any case and looks itself, so its skipped steps are not seen.

use std::collections::BTreeMap;

use crate::facts::Facts;
use crate::frames::{GraphSign, PhaseSign};
use crate::program::Phase;
use crate::role::Role;
use crate::unit::{Bytes, EventIndex, FrameId, Index, StackId};

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

/// What the backward passes of an iteration made of gradients that outlived them.
struct UnscaledGradients {
    first: EventIndex,
    gradients: Vec<(Bytes, Option<EventIndex>)>,
}

/// The iterations whose gradients were for a step, in order, where the program itself leaves steps out (a loss scale of its own, batches that
/// came to nothing): gradients are cleared, and no step came between. What stays until a later step is summed up for that. Steps have to be
/// marked: one that leaves no event cannot be told from none.
pub(super) fn passes(facts: &Facts) -> Vec<Unscaling> {
    if !facts.calls.annotated {
        return Vec::new();
    }
    let mut made: BTreeMap<usize, UnscaledGradients> = BTreeMap::new();
    let in_backward = |event: EventIndex| facts.phase(event) == Phase::Backward;
    for (_, one) in facts.with_role(Role::Gradient) {
        let Some(born) = one.alloc.filter(|born| in_backward(*born)) else { continue };
        let Some(iteration) = facts.iteration_of(born) else { continue };
        let freed = one.given_back();
        if freed.is_none_or(|freed| !in_backward(freed)) {
            let new = || UnscaledGradients { first: born, gradients: Vec::new() };
            let here = made.entry(iteration.position()).or_insert_with(new);
            here.first = here.first.min(born);
            here.gradients.push((one.bytes, freed));
        }
    }
    made.into_iter().filter_map(|(iteration, made)| pass(facts, iteration, &made)).collect()
}

fn pass(facts: &Facts, iteration: usize, made: &UnscaledGradients) -> Option<Unscaling> {
    let steps = &facts.program.steps;
    let next = steps.get(steps.partition_point(|step| step.start <= made.first)).map(|step| step.start);
    let end = facts.iteration_ends().get(iteration).copied()?;
    let stepped = next.is_some_and(|next| next.position() < end);
    let cleared =
        |freed: &Option<EventIndex>| freed.is_some_and(|freed| next.is_none_or(|next| freed < next));
    let all: Bytes = made.gradients.iter().map(|(bytes, _)| *bytes).sum();
    let lost: Bytes =
        made.gradients.iter().filter(|(_, freed)| cleared(freed)).map(|(bytes, _)| *bytes).sum();
    let stack = facts.calls.backward_before(made.first)?;
    (stepped || lost.times(2) > all).then_some(Unscaling { event: made.first, stack, stepped })
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
