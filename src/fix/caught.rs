//! Exceptions that a program keeps: their tracebacks hold the frames that they passed, with all that these name.
//!
//! In: a finding's line and its callers. Out: the statement of a handler around one of them that keeps the exception itself, and not
//! what it says.

use ruff_python_ast::{ExceptHandler, Expr, Stmt, StmtTry};

use super::case::Case;
use super::tree::{self, Statement, method};

/// Methods of containers that keep what they are given.
pub(super) const KEEPING: [&str; 4] = ["append", "add", "appendleft", "insert"];

/// An exception that is kept.
pub(super) struct KeptException<'a> {
    /// What the handler calls it.
    pub(super) name: &'a str,
    /// What holds it: `self.failures`.
    pub(super) container: &'a Expr,
}

/// The exception that a handler around the line or one of its callers keeps, if one does; the innermost.
pub(super) fn kept<'a>(case: &Case<'a>) -> Option<KeptException<'a>> {
    let places = std::iter::once(&case.place).chain(&case.callers);
    places.flat_map(|place| place.steps.iter().rev().zip(place.steps.iter().rev().skip(1))).find_map(
        |(inner, around)| {
            let Stmt::Try(of) = around.statement() else { return None };
            of.body.iter().any(|one| one == inner.statement()).then(|| by_handlers(of)).flatten()
        },
    )
}

fn by_handlers(of: &StmtTry) -> Option<KeptException<'_>> {
    of.handlers.iter().find_map(|handler| {
        let ExceptHandler::ExceptHandler(handler) = handler;
        let name = handler.name.as_ref()?.as_str();
        tree::statements(&handler.body).into_iter().find_map(|step| keeps(step, name))
    })
}

/// What a statement of a handler keeps the exception in: a container, an attribute, a place under a key.
fn keeps<'a>(step: Statement<'a>, name: &'a str) -> Option<KeptException<'a>> {
    let container = match step.statement() {
        Stmt::Expr(of) => {
            let Expr::Call(call) = &*of.value else { return None };
            let (on, _) = method(call).filter(|(_, taken)| KEEPING.contains(taken))?;
            call.arguments.args.iter().any(|one| holds(one, name)).then_some(on)?
        }
        Stmt::Assign(of) => {
            let [target] = &of.targets[..] else { return None };
            let lasts = matches!(target, Expr::Attribute(_) | Expr::Subscript(_));
            (lasts && holds(&of.value, name)).then_some(target)?
        }
        _ => return None,
    };
    Some(KeptException { name, container })
}

/// Whether a value is the exception, or a tuple, a list or a dictionary that has it: what is made of it (`str(error)`) does not hold it.
fn holds(value: &Expr, name: &str) -> bool {
    match value {
        Expr::Name(of) => of.id.as_str() == name,
        Expr::Tuple(of) => of.elts.iter().any(|one| holds(one, name)),
        Expr::List(of) => of.elts.iter().any(|one| holds(one, name)),
        Expr::Dict(of) => of.items.iter().any(|one| holds(&one.value, name)),
        _ => false,
    }
}
