//! The names of a loop's turn that have the same memory.

use std::collections::BTreeSet;

use ruff_python_ast::visitor::{self, Visitor};
use ruff_python_ast::{Expr, Pattern, Stmt};

use super::shared::{Sharing, viewed};
use crate::fix::tree::{self, Names};

/// What some code binds: names, and the value that they are bound to or draw from.
#[derive(Default)]
pub(super) struct TurnBindings<'a> {
    found: Vec<(BTreeSet<&'a str>, &'a Expr)>,
    /// Names without a value of their own: parts of what a `match` looks at.
    captured: BTreeSet<&'a str>,
}

impl<'a> TurnBindings<'a> {
    pub(super) fn of(code: &'a [Stmt]) -> TurnBindings<'a> {
        let mut bindings = TurnBindings::default();
        bindings.visit_body(code);
        bindings
    }

    /// The names that it binds.
    pub(super) fn names(&self) -> BTreeSet<&'a str> {
        self.found.iter().flat_map(|(names, _)| names).chain(&self.captured).copied().collect()
    }

    /// Names with the same memory as some names: what they are views of, what is a view of them, and what holds them.
    pub(super) fn aliases(&self, names: &[&str], sharing: Sharing<'_>) -> BTreeSet<String> {
        let mut held: BTreeSet<String> = names.iter().map(|name| (*name).to_owned()).collect();
        loop {
            let before = held.len();
            for (bound, value) in &self.found {
                let is_of_held = sharing.names(value).iter().any(|name| held.contains(*name));
                if is_of_held {
                    held.extend(bound.iter().map(|name| (*name).to_owned()));
                } else if let Some(of) = viewed(value)
                    && bound.iter().any(|name| held.contains(*name))
                {
                    held.insert(of.to_owned());
                }
            }
            if held.len() == before {
                break;
            }
        }
        let known = self.names();
        held.retain(|name| known.contains(name.as_str()));
        held
    }

    fn bind(&mut self, target: &'a Expr, value: &'a Expr) {
        let names = Names::in_expression(target).bound;
        if !names.is_empty() {
            self.found.push((names, value));
        }
    }
}

impl<'a> Visitor<'a> for TurnBindings<'a> {
    fn visit_stmt(&mut self, statement: &'a Stmt) {
        match statement {
            _ if tree::is_definition(statement) => return,
            Stmt::Assign(of) => of.targets.iter().for_each(|target| self.bind(target, &of.value)),
            Stmt::AnnAssign(of) => of.value.iter().for_each(|value| self.bind(&of.target, value)),
            Stmt::For(of) => self.bind(&of.target, &of.iter),
            Stmt::With(of) => {
                for item in &of.items {
                    item.optional_vars.iter().for_each(|to| self.bind(to, &item.context_expr));
                }
            }
            _ => {}
        }
        visitor::walk_stmt(self, statement);
    }

    fn visit_expr(&mut self, expression: &'a Expr) {
        if let Expr::Named(of) = expression {
            self.bind(&of.target, &of.value);
        }
        visitor::walk_expr(self, expression);
    }

    fn visit_pattern(&mut self, pattern: &'a Pattern) {
        if let Pattern::MatchAs(of) = pattern {
            self.captured.extend(of.name.as_ref().map(ruff_python_ast::Identifier::as_str));
        }
        visitor::walk_pattern(self, pattern);
    }
}
