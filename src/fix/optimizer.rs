//! The steps of a program's optimizers, as its source shows them.

use ruff_python_ast::visitor::{self, Visitor};
use ruff_python_ast::{Expr, ExprCall, Stmt, StmtFunctionDef};

use super::case::Case;
use super::script::Reason;
use super::tree::{self, Statement, call_of, callee, dotted, given, method};

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
    let mut clearings = Clearings { drawn: Vec::new(), function: None, found: Vec::new() };
    clearings.visit_body(case.script.body);
    let mut names = Vec::new();
    for (on, from) in clearings.found {
        let own = match from {
            Cleared::Itself => dotted(on).map(|name| vec![name]),
            Cleared::Several(several) => members(case, several),
            Cleared::Given(function) => handed(case, function, on),
        };
        names.extend(own.ok_or_else(|| {
            format!("nothing shows which optimizers `{}.zero_grad()` clears", case.script.words(on))
        })?);
    }
    Ok(names)
}

/// What a function is given for a parameter, by name, and the parameter itself.
fn handed(case: &Case<'_>, function: &StmtFunctionDef, parameter: &Expr) -> Option<Vec<String>> {
    let name = dotted(parameter)?;
    let calls = tree::calls(case.script.body).into_iter();
    let calls = calls.filter(|call| callee(call) == Some(function.name.as_str()));
    let handed = calls.map(|call| {
        let value = given(function, call).into_iter().find(|(to, _)| *to == name);
        value.and_then(|(_, value)| dotted(value))
    });
    let mut names: Vec<String> = handed.collect::<Option<_>>()?;
    names.push(name);
    Some(names)
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

/// What stands for a thing that is cleared.
#[derive(Clone, Copy)]
enum Cleared<'a> {
    Itself,
    /// Each of several, in a loop.
    Several(&'a Expr),
    /// A function's parameter.
    Given(&'a StmtFunctionDef),
}

/// Looks for calls of `zero_grad`, with what the loops around them draw from.
struct Clearings<'a> {
    drawn: Vec<(&'a str, &'a Expr)>,
    function: Option<&'a StmtFunctionDef>,
    found: Vec<(&'a Expr, Cleared<'a>)>,
}

impl<'a> Clearings<'a> {
    fn draw(&mut self, target: &'a Expr, from: &'a Expr) {
        if let Expr::Name(of) = target {
            self.drawn.push((&of.id, from));
        }
    }

    fn from(&self, on: &Expr) -> Cleared<'a> {
        let Expr::Name(of) = on else { return Cleared::Itself };
        let is_given =
            |function: &&StmtFunctionDef| function.parameters.iter().any(|one| *one.name() == *of.id);
        match self.drawn.iter().rev().find(|(name, _)| of.id == *name) {
            Some((_, several)) => Cleared::Several(several),
            None => self.function.filter(is_given).map_or(Cleared::Itself, Cleared::Given),
        }
    }
}

impl<'a> Visitor<'a> for Clearings<'a> {
    fn visit_stmt(&mut self, statement: &'a Stmt) {
        let (around, function) = (self.drawn.len(), self.function);
        match statement {
            Stmt::For(of) => self.draw(&of.target, &of.iter),
            Stmt::FunctionDef(of) => self.function = Some(of),
            _ => {}
        }
        visitor::walk_stmt(self, statement);
        self.drawn.truncate(around);
        self.function = function;
    }

    fn visit_expr(&mut self, expression: &'a Expr) {
        let around = self.drawn.len();
        let generators = match expression {
            Expr::ListComp(of) => &of.generators[..],
            Expr::SetComp(of) => &of.generators,
            Expr::Generator(of) => &of.generators,
            _ => &[],
        };
        for one in generators {
            self.draw(&one.target, &one.iter);
        }
        if let Expr::Call(call) = expression
            && let Some((on, "zero_grad")) = method(call)
        {
            self.found.push((on, self.from(on)));
        }
        visitor::walk_expr(self, expression);
        self.drawn.truncate(around);
    }
}
