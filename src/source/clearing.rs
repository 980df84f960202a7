//! How a program's source clears gradients: what a recording cannot show where it happens in place.

use std::collections::BTreeSet;

use ruff_python_ast::statement_visitor::{self, StatementVisitor};
use ruff_python_ast::visitor::{self, Visitor};
use ruff_python_ast::{Expr, ExprCall, Stmt};

/// How a loop's body clears gradients.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ZeroGrad {
    /// Nothing in it, or in what it calls of its file, clears gradients.
    #[default]
    Absent,
    /// It calls `zero_grad(set_to_none=False)` or the like: gradients are kept and filled with zeros.
    FillsWithZeros,
    /// It calls `zero_grad`, which releases gradients.
    Releases,
}

/// How a body clears gradients: itself, or in functions of the file that it calls, and those that they call.
pub(super) fn of_body(file: &[Stmt], body: &[Stmt]) -> ZeroGrad {
    let mut functions = Definitions::default();
    functions.visit_body(file);
    let mut seen = BTreeSet::new();
    let mut open = vec![body];
    while let Some(body) = open.pop() {
        let here = clearing(body);
        if here.found != ZeroGrad::Absent {
            return here.found;
        }
        let called = functions.found.iter().filter(|(name, _)| here.called.contains(name));
        open.extend(called.filter(|(_, body)| seen.insert(body.as_ptr())).map(|(_, body)| *body));
    }
    ZeroGrad::Absent
}

/// Whether one of the bodies fills gradients with zeros in place (`zero_grad(set_to_none=False)`,
/// `parameter.grad.zero_()`, `torch._foreach_zero_(gradients)`), itself or in a function of the file that it calls.
pub(super) fn fills_with_zeros(file: &[Stmt], bodies: &[&[Stmt]]) -> bool {
    let mut functions = Definitions::default();
    functions.visit_body(file);
    bodies.iter().map(|body| clearing(body)).any(|here| {
        let helps = |name: &str, body: &[Stmt]| here.called.contains(&name) && clearing(body).in_place;
        here.in_place || functions.found.iter().any(|(name, body)| helps(name, body))
    })
}

/// The bodies of the loops that call a function of this bare name.
pub(super) fn loops_calling<'a>(file: &'a [Stmt], name: &str) -> Vec<&'a [Stmt]> {
    let mut loops = LoopBodies::default();
    loops.visit_body(file);
    loops.found.into_iter().filter(|body| clearing(body).called.contains(&name)).collect()
}

fn clearing(body: &[Stmt]) -> Clearing<'_> {
    let mut clearing = Clearing::default();
    clearing.visit_body(body);
    clearing
}

/// The functions and methods of a file.
#[derive(Default)]
struct Definitions<'a> {
    found: Vec<(&'a str, &'a [Stmt])>,
}

impl<'a> StatementVisitor<'a> for Definitions<'a> {
    fn visit_stmt(&mut self, statement: &'a Stmt) {
        if let Stmt::FunctionDef(function) = statement {
            self.found.push((function.name.as_str(), &function.body));
        }
        statement_visitor::walk_stmt(self, statement);
    }
}

/// The bodies of a file's loops.
#[derive(Default)]
struct LoopBodies<'a> {
    found: Vec<&'a [Stmt]>,
}

impl<'a> StatementVisitor<'a> for LoopBodies<'a> {
    fn visit_stmt(&mut self, statement: &'a Stmt) {
        match statement {
            Stmt::For(of) => self.found.push(&of.body),
            Stmt::While(of) => self.found.push(&of.body),
            _ => {}
        }
        statement_visitor::walk_stmt(self, statement);
    }
}

/// Looks for what clears gradients; a call that releases outweighs one that fills with zeros.
#[derive(Default)]
struct Clearing<'a> {
    found: ZeroGrad,
    /// Whether anything fills gradients with zeros.
    in_place: bool,
    /// The bare names of what is called.
    called: Vec<&'a str>,
}

/// The bare name of what is called.
pub(super) fn called(call: &ExprCall) -> Option<&str> {
    match &*call.func {
        Expr::Attribute(method) => Some(method.attr.as_str()),
        Expr::Name(function) => Some(function.id.as_str()),
        _ => None,
    }
}

impl Clearing<'_> {
    fn note(&mut self, call: &ExprCall) {
        match called(call) {
            Some("zero_grad") => self.note_zero_grad(call),
            Some("_foreach_zero_") => self.fill(),
            Some("zero_") if is_on_gradient(call) => self.fill(),
            _ => {}
        }
    }

    fn fill(&mut self) {
        self.in_place = true;
        if self.found == ZeroGrad::Absent {
            self.found = ZeroGrad::FillsWithZeros;
        }
    }

    fn note_zero_grad(&mut self, call: &ExprCall) {
        let argument = call.arguments.find_keyword("set_to_none").map(|keyword| &keyword.value);
        let keeps = argument
            .or(call.arguments.args.first())
            .is_some_and(|value| matches!(value, Expr::BooleanLiteral(literal) if !literal.value));
        if keeps {
            self.fill();
        } else {
            self.found = ZeroGrad::Releases;
        }
    }
}

/// Whether a method is called on something's `.grad` or `.grad.data`.
fn is_on_gradient(call: &ExprCall) -> bool {
    let Expr::Attribute(method) = &*call.func else { return false };
    let receiver = match &*method.value {
        Expr::Attribute(data) if data.attr.as_str() == "data" => &*data.value,
        other => other,
    };
    matches!(receiver, Expr::Attribute(gradient) if gradient.attr.as_str() == "grad")
}

impl<'a> Visitor<'a> for Clearing<'a> {
    fn visit_expr(&mut self, expression: &'a Expr) {
        if let Expr::Call(call) = expression {
            self.note(call);
            self.called.extend(called(call));
        }
        visitor::walk_expr(self, expression);
    }
}
