//! Calls of models: what each one allocated.
//!
//! In: stacks and iterations. Out: for every outermost call of a module, and for every call of one by a module of the user's own, the
//! stretch of its events and its allocations, in order. A call is known by the callers around it; two calls in a row from one line fall apart where the program frees
//! or allocates anything outside the module in between, and at the end of an iteration.

use rustc_hash::FxHashMap;

use crate::facts::Facts;
use crate::frames::PhaseSign;
use crate::snapshot::Action;
use crate::unit::{AllocationId, FrameId, Index, IterationIndex, StackId};

/// One call of a module.
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

/// Who called a module of a stack.
#[derive(Clone, Copy, PartialEq, Eq)]
struct ModuleCaller {
    number: usize,
    line: Option<FrameId>,
}

/// All outermost calls, in order.
pub(super) fn module_calls(facts: &Facts) -> Vec<ModuleCall> {
    calls(facts, &callers(facts, outermost))
}

/// All calls by the code of modules that the user wrote, in order: of the networks that a model is made of.
pub(super) fn inner_calls(facts: &Facts) -> Vec<ModuleCall> {
    calls(facts, &callers(facts, by_own_module))
}

/// The position of the outermost call of a module.
pub(super) fn outermost(facts: &Facts, python: &[FrameId]) -> Option<usize> {
    python.iter().position(|frame| facts.frames.phase(*frame) == PhaseSign::ModuleCall)
}

/// The position of the first call of a module below a line of the user's that a call of a module runs.
fn by_own_module(facts: &Facts, python: &[FrameId]) -> Option<usize> {
    let below = |from: usize, is: &dyn Fn(FrameId) -> bool| {
        python.iter().enumerate().skip(from).find(|(_, frame)| is(**frame)).map(|(at, _)| at)
    };
    let own = below(outermost(facts, python)?, &|frame| facts.frames.is_own(frame))?;
    below(own, &|frame| facts.frames.phase(frame) == PhaseSign::ModuleCall)
}

/// The calls that such callers make, in order.
fn calls(facts: &Facts, callers: &[Option<ModuleCaller>]) -> Vec<ModuleCall> {
    let caller_of = |stack: StackId| callers.get(stack.position()).copied().flatten();
    let mut calls: Vec<ModuleCall> = Vec::new();
    let mut open: Option<(ModuleCaller, Option<IterationIndex>)> = None;
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

/// For each stack with a module call on it, of which `called` says where it stands, who called.
fn callers(facts: &Facts, called: fn(&Facts, &[FrameId]) -> Option<usize>) -> Vec<Option<ModuleCaller>> {
    let mut numbers: FxHashMap<&[FrameId], usize> = FxHashMap::default();
    let mut callers = Vec::new();
    for stack in facts.snapshot.stacks.ids() {
        let python = facts.frames.python(stack);
        let outside = called(facts, python).and_then(|at| python.get(..at));
        callers.push(outside.map(|outside| {
            let next = numbers.len();
            let number = *numbers.entry(outside).or_insert(next);
            let own = outside.iter().rev().copied().find(|frame| facts.frames.is_own(*frame));
            let packaged = |frame: &FrameId| facts.frames.owner(*frame).is_package();
            let line = own.or_else(|| outside.iter().rev().copied().find(packaged));
            ModuleCaller { number, line }
        }));
    }
    callers
}
