//! Code that runs later than it stands: lambdas, and generators that nothing draws at once.

use ruff_python_ast::visitor::{self, Visitor};
use ruff_python_ast::{Expr, ExprCall, Stmt};

use super::{Names, callee};

/// Functions that are done with what they are given when they return.
const AT_ONCE: [&str; 13] = [
    "all",
    "any",
    "dict",
    "frozenset",
    "join",
    "list",
    "max",
    "min",
    "set",
    "sort",
    "sorted",
    "sum",
    "tuple",
];

/// Whether some code has a lambda, or a generator that may be drawn from later, which reads a name when it runs. Those of definitions are
/// their own.
pub(in crate::fix) fn is_read_later(code: &[Stmt], name: &str) -> bool {
    let mut later = Later { name, found: false };
    later.visit_body(code);
    later.found
}

struct Later<'n> {
    name: &'n str,
    found: bool,
}

impl Later<'_> {
    fn reads(&self, expression: &Expr) -> bool {
        Names::in_expression(expression).read.contains(self.name)
    }

    /// The arguments of a call that is over with them when it returns.
    fn drawn(&mut self, call: &ExprCall) {
        self.visit_expr(&call.func);
        let named = call.arguments.keywords.iter().map(|keyword| &keyword.value);
        for one in call.arguments.args.iter().chain(named) {
            self.inside(one);
        }
    }

    /// A lambda or a generator that runs at once: only what stands in it may run later.
    fn inside(&mut self, one: &Expr) {
        match one {
            Expr::Lambda(_) | Expr::Generator(_) => visitor::walk_expr(self, one),
            other => self.visit_expr(other),
        }
    }
}

impl<'a> Visitor<'a> for Later<'_> {
    fn visit_stmt(&mut self, statement: &'a Stmt) {
        match statement {
            Stmt::Assign(of) if of.targets.iter().any(|one| one.is_tuple_expr() || one.is_list_expr()) => {
                self.inside(&of.value);
            }
            Stmt::For(of) => {
                self.inside(&of.iter);
                of.body.iter().chain(&of.orelse).for_each(|one| self.visit_stmt(one));
            }
            _ => visitor::walk_stmt(self, statement),
        }
    }

    fn visit_expr(&mut self, expression: &'a Expr) {
        match expression {
            Expr::Lambda(_) => self.found |= self.reads(expression),
            // What it iterates over first is taken at once.
            Expr::Generator(of) => {
                self.found |= self.reads(&of.elt);
                for (depth, one) in of.generators.iter().enumerate() {
                    self.found |=
                        depth > 0 && self.reads(&one.iter) || one.ifs.iter().any(|test| self.reads(test));
                }
            }
            Expr::Call(call) if callee(call).is_some_and(|name| AT_ONCE.contains(&name)) => {
                return self.drawn(call);
            }
            Expr::Starred(of) => return self.inside(&of.value),
            _ => {}
        }
        visitor::walk_expr(self, expression);
    }
}
