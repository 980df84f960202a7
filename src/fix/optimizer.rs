//! The steps of a program's optimizers, as its source shows them.

use ruff_python_ast::visitor::{self, Visitor};
use ruff_python_ast::{Expr, ExprCall, Stmt};

use super::case::Case;
use super::script::Reason;
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

/// What the file's calls of `zero_grad` clear, by name: of a call in a loop over several optimizers each of them. Where nothing shows
/// what a loop draws, what it calls it.
pub(super) fn all_cleared(case: &Case<'_>) -> Result<Vec<String>, Reason> {
    let mut clearings = Clearings { drawn: Vec::new(), found: Vec::new() };
    clearings.visit_body(case.script.body);
    let mut names = Vec::new();
    for (on, from) in clearings.found {
        match from {
            None => names.push(dotted(on).unwrap_or_default()),
            Some(from) => names.extend(members(case, from).ok_or_else(|| {
                format!("nothing shows which optimizers `{}.zero_grad()` clears", case.script.words(on))
            })?),
        }
    }
    Ok(names)
}

/// The names in a tuple or a list that is written out, here or where its name is bound.
fn members(case: &Case<'_>, several: &Expr) -> Option<Vec<String>> {
    let named = |parts: &[Expr]| parts.iter().map(dotted).collect();
    match several {
        Expr::Tuple(of) => named(&of.elts),
        Expr::List(of) => named(&of.elts),
        Expr::Name(_) | Expr::Attribute(_) => match case.assigned(&dotted(several)?)[..] {
            [made @ (Expr::Tuple(_) | Expr::List(_))] => members(case, made),
            _ => None,
        },
        _ => None,
    }
}

/// Looks for calls of `zero_grad`, with what the loops around them draw from.
struct Clearings<'a> {
    drawn: Vec<(&'a str, &'a Expr)>,
    found: Vec<(&'a Expr, Option<&'a Expr>)>,
}

impl<'a> Clearings<'a> {
    fn draw(&mut self, target: &'a Expr, from: &'a Expr) {
        if let Expr::Name(of) = target {
            self.drawn.push((&of.id, from));
        }
    }
}

impl<'a> Visitor<'a> for Clearings<'a> {
    fn visit_stmt(&mut self, statement: &'a Stmt) {
        let around = self.drawn.len();
        if let Stmt::For(of) = statement {
            self.draw(&of.target, &of.iter);
        }
        visitor::walk_stmt(self, statement);
        self.drawn.truncate(around);
    }

    fn visit_expr(&mut self, expression: &'a Expr) {
        let around = self.drawn.len();
        let generators = match expression {
            Expr::ListComp(of) => &of.generators[..],
            Expr::SetComp(of) => &of.generators,
            Expr::Generator(of) => &of.generators,
            _ => &[],
        };
        generators.iter().for_each(|one| self.draw(&one.target, &one.iter));
        if let Expr::Call(call) = expression
            && let Some((on, "zero_grad")) = method(call)
        {
            let from =
                self.drawn.iter().rev().find(|(name, _)| matches!(on, Expr::Name(of) if of.id == *name));
            self.found.push((on, from.map(|(_, from)| *from)));
        }
        visitor::walk_expr(self, expression);
        self.drawn.truncate(around);
    }
}
