//! The program's hooks that pack what autograd saves (`torch.autograd.graph.saved_tensors_hooks`).
//!
//! In: stacks. Out: whether a stack runs such a hook. C++ frames show autograd calling it. With stacks of Python alone it is a function of the program's that
//! several functions of packages call inside of a model, none of them to call a module: they run operators, and operators save.

use rustc_hash::{FxHashMap, FxHashSet};

use crate::facts::Facts;
use crate::facts::module_calls::outermost;
use crate::frames::{GraphSign, PhaseSign};
use crate::unit::{FrameId, FunctionId, StackId};

/// Which stacks run such a hook.
pub(super) fn in_hooks(facts: &Facts) -> Vec<bool> {
    let mut packing: FxHashSet<FunctionId> = FxHashSet::default();
    let mut callers: FxHashMap<FunctionId, FxHashSet<FunctionId>> = FxHashMap::default();
    for stack in facts.snapshot.stacks.ids() {
        packing.extend(called_to_pack(facts, stack));
        for (caller, hook) in called_by_packages(facts, stack) {
            callers.entry(hook).or_default().insert(caller);
        }
    }
    if packing.is_empty() {
        packing.extend(callers.into_iter().filter(|(_, callers)| callers.len() > 1).map(|(hook, _)| hook));
    }
    let packs = |frame: &FrameId| facts.frames.function(*frame).is_some_and(|one| packing.contains(&one));
    facts.snapshot.stacks.ids().map(|stack| facts.frames.python(stack).iter().any(packs)).collect()
}

/// The function that C++ frames show to be called as a hook.
fn called_to_pack(facts: &Facts, stack: StackId) -> Option<FunctionId> {
    let frames = facts.snapshot.stacks.get(stack);
    let calls = frames.iter().rposition(|frame| facts.frames.graph(*frame) == GraphSign::Packs)?;
    let mut inside = frames.iter().skip(calls);
    let hook = inside.find(|frame| facts.frames.is_own(**frame))?;
    facts.frames.function(*hook)
}

/// The program's functions that functions of packages call inside of a model, each with its caller.
fn called_by_packages<'f>(
    facts: &'f Facts,
    stack: StackId,
) -> impl Iterator<Item = (FunctionId, FunctionId)> + 'f {
    let python = facts.frames.python(stack);
    let inside = outermost(facts, python).and_then(|at| python.get(at..)).unwrap_or_default();
    inside.windows(2).filter_map(|pair| {
        let [caller, called] = pair else { return None };
        let is_call = facts.frames.phase(*caller) == PhaseSign::ModuleCall;
        let calls_back = !is_call && !facts.frames.is_own(*caller) && facts.frames.is_own(*called);
        calls_back.then(|| Some((facts.frames.function(*caller)?, facts.frames.function(*called)?)))?
    })
}
