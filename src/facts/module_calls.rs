//! Calls of models: what each one allocated.
//!
//! In: stacks and iterations. Out: for every outermost call of a module the stretch of its events and its allocations, in
//! order. A call is known by the callers around it; two calls in a row from one line fall apart where the program frees
//! or allocates anything outside the module in between, and at the end of an iteration.

use rustc_hash::FxHashMap;

use crate::facts::Facts;
use crate::frames::PhaseSign;
use crate::snapshot::Action;
use crate::unit::{AllocationId, FrameId, Index, IterationIndex, StackId};

/// One outermost call of a module.
#[derive(Debug)]
pub struct ModuleCall {
    /// Which calls have the same callers: equal numbers, equal callers.
    pub callers: usize,
    /// The user's line that called; in a packaged program the innermost line outside PyTorch.
    pub line: Option<FrameId>,
    /// The position of its first allocation.
    pub start: usize,
    /// The position of the first event that is known to lie behind it.
    pub end: usize,
    /// What it allocated on the calling thread, in order.
    pub made: Vec<AllocationId>,
}

/// Who called the outermost module of a stack.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Caller {
    number: usize,
    line: Option<FrameId>,
}

/// All outermost calls, in order.
pub(super) fn module_calls(facts: &Facts) -> Vec<ModuleCall> {
    let callers = callers(facts);
    let caller_of = |stack: StackId| callers.get(stack.position()).copied().flatten();
    let mut calls: Vec<ModuleCall> = Vec::new();
    let mut open: Option<(Caller, Option<IterationIndex>)> = None;
    for (position, event) in facts.trace.events.iter().enumerate() {
        let allocates = event.action == Action::Alloc;
        let told = allocates || (facts.timeline.frees_have_stacks() && event.action == Action::FreeRequested);
        let Some(stack) = event.stack.filter(|stack| told && !facts.frames.python(*stack).is_empty()) else {
            continue;
        };
        let iteration = facts.event(position).and_then(|event| facts.iteration_of(event));
        let here = caller_of(stack).map(|caller| (caller, iteration));
        if here != open {
            if let Some(last) = calls.last_mut().filter(|_| open.is_some()) {
                last.end = position;
            }
            open = None;
        }
        let Some((caller, _)) = here.filter(|_| allocates) else { continue };
        if open.is_none() {
            let (callers, line) = (caller.number, caller.line);
            calls.push(ModuleCall { callers, line, start: position, end: position + 1, made: Vec::new() });
            open = here;
        }
        let made = facts.timeline.allocation_of.get(position).copied().flatten();
        if let Some((call, made)) = calls.last_mut().zip(made) {
            call.made.push(made);
            call.end = position + 1;
        }
    }
    calls
}

/// For each stack with a module call on it who called the outermost one.
fn callers(facts: &Facts) -> Vec<Option<Caller>> {
    let mut numbers: FxHashMap<&[FrameId], usize> = FxHashMap::default();
    let mut callers = Vec::new();
    for stack in facts.snapshot.stacks.ids() {
        let python = facts.frames.python(stack);
        let is_call = |frame: &FrameId| facts.frames.phase(*frame) == PhaseSign::ModuleCall;
        let outside = python.iter().position(is_call).and_then(|at| python.get(..at));
        callers.push(outside.map(|outside| {
            let next = numbers.len();
            let number = *numbers.entry(outside).or_insert(next);
            let own = outside.iter().rev().copied().find(|frame| facts.frames.is_own(*frame));
            let packaged = |frame: &FrameId| facts.frames.owner(*frame).is_package();
            let line = own.or_else(|| outside.iter().rev().copied().find(packaged));
            Caller { number, line }
        }));
    }
    callers
}
