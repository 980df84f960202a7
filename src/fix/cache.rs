//! Memory that is given back to the driver only to be asked for again.

use ruff_python_ast::{Expr, Stmt};
use ruff_text_size::Ranged;

use super::case::Case;
use super::script::Reason;
use super::tree::{self, Statement, call_of, callee, dotted};
use super::{Applicability, Draft, Saves};

const UNSEEN: &str = "it changes no value: what is cached serves the next turn";
/// Functions that tell how much the allocator has of the driver.
const MEASURING: [&str; 7] = [
    "max_memory_cached",
    "max_memory_reserved",
    "mem_get_info",
    "memory_cached",
    "memory_reserved",
    "memory_stats",
    "memory_summary",
];

/// Takes `empty_cache()` out, with a condition that guards nothing else.
pub(super) fn leave_alone(case: &Case<'_>) -> Result<Draft, Reason> {
    let statement = case.statement()?;
    let called = call_of(statement).and_then(|call| dotted(&call.func)).unwrap_or_default();
    if called.rsplit('.').next() != Some("empty_cache") {
        return Err("no plain call of `empty_cache()` stands at the line".to_owned());
    }
    if case.place.inside().iter().any(|step| handles(step.statement(), statement)) {
        return Err("it stands where an error is handled: memory may have run out there".to_owned());
    }
    let own = case.place.innermost().ok_or("no statement stands at the line")?;
    let outer = case.place.steps.iter().rev().nth(1).copied();
    let guard = outer.filter(|outer| own.block.len() == 1 && only_guards(outer.statement()));
    let gone: Statement<'_> = guard.unwrap_or(own);
    let measured =
        tree::calls(case.script.body).into_iter().filter_map(callee).find(|name| MEASURING.contains(name));
    Ok(Draft {
        title: "take `empty_cache()` out of the loop".to_owned(),
        applicability: if measured.is_some() { Applicability::Unsafe } else { Applicability::Safe },
        saves: Saves::All,
        why: measured
            .map_or(UNSEEN.into(), |name| format!("`{name}` then counts what is cached, too").into()),
        edits: vec![case.script.remove(gone.statement(), gone.block.len() == 1)?],
    })
}

/// Whether a statement handles errors, and another is part of that.
fn handles(around: &Stmt, statement: &Stmt) -> bool {
    let Stmt::Try(of) = around else { return false };
    of.handlers.iter().any(|handler| handler.range().contains_range(statement.range()))
}

/// Whether a statement is a condition without an `else` whose test calls nothing.
fn only_guards(statement: &Stmt) -> bool {
    match statement {
        Stmt::If(of) => of.elif_else_clauses.is_empty() && is_plain(&of.test),
        _ => false,
    }
}

fn is_plain(test: &Expr) -> bool {
    match test {
        Expr::Name(_) | Expr::NumberLiteral(_) | Expr::BooleanLiteral(_) => true,
        Expr::Attribute(of) => is_plain(&of.value),
        Expr::BinOp(of) => is_plain(&of.left) && is_plain(&of.right),
        Expr::UnaryOp(of) => is_plain(&of.operand),
        Expr::BoolOp(of) => of.values.iter().all(is_plain),
        Expr::Compare(of) => is_plain(&of.left) && of.comparators.iter().all(is_plain),
        _ => false,
    }
}
