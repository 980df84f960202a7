//! The names of a file's functions: which each of them binds, and which it takes from outside.

use std::collections::BTreeSet;

use ruff_python_ast::visitor::{self, Visitor};
use ruff_python_ast::{Expr, Stmt, StmtFunctionDef};

use crate::fix::tree;

/// What the file, or a function of it, calls its own.
#[derive(Debug, Default)]
pub(super) struct Scope {
    /// All names that it binds, those of its parameters as well.
    pub(super) names: BTreeSet<String>,
    /// Those of them that are functions.
    pub(super) functions: BTreeSet<String>,
    /// Those of them that it is given.
    pub(super) parameters: BTreeSet<String>,
    /// Names that it says are the file's.
    pub(super) global: BTreeSet<String>,
    /// Where the function begins.
    pub(super) start: usize,
}

impl Scope {
    /// That of a file: also what functions say is the file's.
    pub(super) fn of_file(body: &[Stmt]) -> Scope {
        let mut scope = Scope::of(body);
        for step in tree::all_statements(body) {
            if let Stmt::Global(of) = step.statement() {
                scope.names.extend(of.names.iter().map(ToString::to_string));
            }
        }
        scope.global.clear();
        scope
    }

    pub(super) fn of_function(function: &StmtFunctionDef) -> Scope {
        let mut scope = Scope::of(&function.body);
        let parameters: BTreeSet<String> =
            function.parameters.iter().map(|one| one.name().to_string()).collect();
        scope.names.extend(parameters.iter().cloned());
        Scope { parameters, start: function.range.start().to_usize(), ..scope }
    }

    fn of(body: &[Stmt]) -> Scope {
        let mut bound = BoundNames::default();
        bound.visit_body(body);
        let BoundNames { mut scope, outer } = bound;
        scope.names.retain(|name| !outer.contains(name) && !scope.global.contains(name));
        scope
    }
}

/// Names bound outside of definitions.
#[derive(Default)]
struct BoundNames {
    scope: Scope,
    /// Names of a function around.
    outer: BTreeSet<String>,
}

impl<'a> Visitor<'a> for BoundNames {
    fn visit_stmt(&mut self, statement: &'a Stmt) {
        match statement {
            Stmt::FunctionDef(of) => {
                self.scope.names.insert(of.name.to_string());
                self.scope.functions.insert(of.name.to_string());
            }
            Stmt::ClassDef(of) => {
                self.scope.names.insert(of.name.to_string());
            }
            Stmt::Global(of) => self.scope.global.extend(of.names.iter().map(ToString::to_string)),
            Stmt::Nonlocal(of) => self.outer.extend(of.names.iter().map(ToString::to_string)),
            _ => visitor::walk_stmt(self, statement),
        }
    }

    fn visit_expr(&mut self, expression: &'a Expr) {
        if let Expr::Name(of) = expression
            && !of.ctx.is_load()
        {
            self.scope.names.insert(of.id.to_string());
        }
        visitor::walk_expr(self, expression);
    }
}

/// The functions of a file.
#[derive(Default)]
pub(super) struct Functions<'a> {
    /// All of them, in the order of the file.
    pub(super) all: Vec<&'a StmtFunctionDef>,
    /// The names of those that stand in classes and are called as they are taken: no properties.
    pub(super) methods: BTreeSet<&'a str>,
}

impl<'a> Functions<'a> {
    pub(super) fn of(body: &'a [Stmt]) -> Functions<'a> {
        let mut functions = Functions::default();
        for step in tree::all_statements(body) {
            match step.statement() {
                Stmt::FunctionDef(of) => functions.all.push(of),
                Stmt::ClassDef(of) => functions.methods.extend(of.body.iter().filter_map(method_name)),
                _ => {}
            }
        }
        functions
    }

    /// Those of a name.
    pub(super) fn named(&self, name: &str) -> impl Iterator<Item = &'a StmtFunctionDef> {
        self.all.iter().copied().filter(move |of| of.name == *name)
    }
}

fn method_name(statement: &Stmt) -> Option<&str> {
    let Stmt::FunctionDef(of) = statement else { return None };
    let is_property = of.decorator_list.iter().any(|one| {
        tree::dotted(&one.expression)
            .is_some_and(|name| name.ends_with("property") || name.ends_with(".setter"))
    });
    (!is_property).then_some(of.name.as_str())
}
