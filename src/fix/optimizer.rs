//! The steps of a program's optimizers, as its source shows them.

use ruff_python_ast::{Expr, ExprCall, Stmt};

use super::case::Case;
use super::tree::{self, Statement, call_of, callee, dotted, method};

/// A statement that makes an optimizer's step.
#[derive(Debug, Clone)]
pub(super) struct OptimizerStep<'a> {
    pub(super) step: Statement<'a>,
    /// What the program calls the optimizer: `self.optimizer`.
    pub(super) optimizer: String,
}

/// The steps in a block, at any depth, in the order of the file.
pub(super) fn steps<'a>(case: &Case<'a>, block: &'a [Stmt]) -> Vec<OptimizerStep<'a>> {
    let one = |step: Statement<'a>| {
        let optimizer = stepped(case, call_of(step.statement())?)?;
        Some(OptimizerStep { step, optimizer })
    };
    tree::statements(block).into_iter().filter_map(one).collect()
}

/// The optimizer whose step a call makes: `optimizer.step()`, `scaler.step(optimizer)`.
fn stepped(case: &Case<'_>, call: &ExprCall) -> Option<String> {
    let (on, name) = method(call)?;
    if name != "step" || !call.arguments.keywords.is_empty() {
        return None;
    }
    let path = match &*call.arguments.args {
        [] => dotted(on)?,
        [optimizer] if dotted(on)?.to_lowercase().contains("scaler") => dotted(optimizer)?,
        // A closure, which may be run several times; a number, which is a scheduler's.
        _ => return None,
    };
    is_optimizer(case, &path).then_some(path)
}

/// Whether a name is an optimizer's: made by something of `torch.optim`, or called so.
fn is_optimizer(case: &Case<'_>, path: &str) -> bool {
    let last = path.rsplit('.').next().unwrap_or(path).to_lowercase();
    if last.contains("sched") {
        return false;
    }
    let made = case.assigned(path).into_iter().any(|value| match value {
        Expr::Call(call) => dotted(&call.func)
            .is_some_and(|maker| maker.contains("optim.") && !maker.contains("lr_scheduler")),
        _ => false,
    });
    made || last.starts_with("opt")
}

/// All calls named `backward` in some statements.
pub(super) fn backwards<'a>(statements: impl IntoIterator<Item = &'a Stmt>) -> Vec<&'a ExprCall> {
    tree::calls(statements).into_iter().filter(|call| callee(call) == Some("backward")).collect()
}

/// All calls named `zero_grad` in some statements, with what they are called on.
pub(super) fn clearings<'a>(statements: impl IntoIterator<Item = &'a Stmt>) -> Vec<String> {
    let calls = tree::calls(statements).into_iter();
    let clears = calls.filter_map(method).filter(|(_, name)| *name == "zero_grad");
    clears.map(|(on, _)| dotted(on).unwrap_or_default()).collect()
}
