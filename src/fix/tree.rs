//! Where a line stands in a program, and what an expression names.
//!
//! In: a file's statements. Out: the statements around a line, each with its neighbours. Always: a definition's body is not
//! its surroundings' business: what is asked of a block leaves out functions and classes defined in it.

mod later;

use std::collections::BTreeSet;

pub(super) use later::is_read_later;

use ruff_python_ast::visitor::{self, Visitor};
use ruff_python_ast::{Expr, ExprCall, Stmt, StmtFunctionDef};
use ruff_text_size::{Ranged, TextSize};

/// A statement among its neighbours.
#[derive(Debug, Clone, Copy)]
pub(super) struct Statement<'a> {
    /// The block that holds it.
    pub(super) block: &'a [Stmt],
    /// Which of the block it is.
    pub(super) index: usize,
}

impl<'a> Statement<'a> {
    pub(super) fn statement(&self) -> &'a Stmt {
        &self.block[self.index]
    }

    /// The loop that this is: its body.
    pub(super) fn loop_body(&self) -> Option<&'a [Stmt]> {
        match self.statement() {
            Stmt::For(of) => Some(&of.body),
            Stmt::While(of) => Some(&of.body),
            _ => None,
        }
    }
}

/// The statements around a part of a file, outermost first.
#[derive(Debug, Clone)]
pub(super) struct Nesting<'a> {
    pub(super) steps: Vec<Statement<'a>>,
}

impl<'a> Nesting<'a> {
    /// Where a byte is; empty where no statement holds it.
    pub(super) fn of(body: &'a [Stmt], offset: usize) -> Nesting<'a> {
        let mut steps = Vec::new();
        let mut block = Some(body);
        while let Some(here) = block.take() {
            let holds = |one: &Stmt| one.start().to_usize() <= offset && offset < one.end().to_usize();
            let Some(index) = here.iter().position(holds) else { break };
            steps.push(Statement { block: here, index });
            let deeper = |inner: &&'a [Stmt]| inner.iter().any(holds);
            block = here.get(index).and_then(|statement| blocks(statement).into_iter().find(deeper));
        }
        Nesting { steps }
    }

    pub(super) fn innermost(&self) -> Option<Statement<'a>> {
        self.steps.last().copied()
    }

    /// The function around it, and which of the steps that is.
    pub(super) fn function(&self) -> Option<(usize, &'a StmtFunctionDef)> {
        self.steps.iter().enumerate().rev().skip(1).find_map(|(at, step)| match step.statement() {
            Stmt::FunctionDef(of) => Some((at, of)),
            _ => None,
        })
    }

    /// Whether the same class is around both.
    pub(super) fn shares_class(&self, other: &Nesting<'_>) -> bool {
        self.class().is_some_and(|start| other.class() == Some(start))
    }

    /// Where the class around it begins.
    fn class(&self) -> Option<TextSize> {
        let around = self.steps.iter().rev().map(Statement::statement);
        around.filter(|one| matches!(one, Stmt::ClassDef(_))).map(Ranged::start).next()
    }

    /// The steps inside the innermost function (or the file).
    pub(super) fn inside(&self) -> &[Statement<'a>] {
        let from = self.function().map_or(0, |(at, _)| at + 1);
        self.steps.get(from..).unwrap_or_default()
    }

    /// The block of the function around it, or the file's.
    pub(super) fn scope(&self) -> &'a [Stmt] {
        self.inside().first().map_or(&[], |step| step.block)
    }

    /// The loops around it within its function, the innermost first.
    pub(super) fn loops(&self) -> impl Iterator<Item = Statement<'a>> {
        let inside: Vec<Statement<'a>> = self.inside().to_vec();
        let own = inside.len().saturating_sub(1);
        inside.into_iter().take(own).rev().filter(|step| step.loop_body().is_some())
    }
}

/// The blocks directly inside a statement.
pub(super) fn blocks(statement: &Stmt) -> Vec<&[Stmt]> {
    match statement {
        Stmt::FunctionDef(of) => vec![&of.body],
        Stmt::ClassDef(of) => vec![&of.body],
        Stmt::For(of) => vec![&of.body, &of.orelse],
        Stmt::While(of) => vec![&of.body, &of.orelse],
        Stmt::With(of) => vec![&of.body],
        Stmt::If(of) => {
            let clauses = of.elif_else_clauses.iter().map(|clause| &clause.body[..]);
            std::iter::once(&of.body[..]).chain(clauses).collect()
        }
        Stmt::Match(of) => of.cases.iter().map(|case| &case.body[..]).collect(),
        Stmt::Try(of) => {
            let handlers = of.handlers.iter().map(|handler| {
                let ruff_python_ast::ExceptHandler::ExceptHandler(handler) = handler;
                &handler.body[..]
            });
            let ends = [&of.orelse[..], &of.finalbody[..]];
            std::iter::once(&of.body[..]).chain(handlers).chain(ends).collect()
        }
        _ => Vec::new(),
    }
}

/// Every statement of a block, at any depth, in the order of the file; not those of definitions inside.
pub(super) fn statements(block: &[Stmt]) -> Vec<Statement<'_>> {
    let mut found = Vec::new();
    for (index, statement) in block.iter().enumerate() {
        found.push(Statement { block, index });
        if !is_definition(statement) {
            found.extend(blocks(statement).into_iter().flat_map(statements));
        }
    }
    found
}

/// Every statement of a file, those of definitions as well.
pub(super) fn all_statements(block: &[Stmt]) -> Vec<Statement<'_>> {
    let mut found = Vec::new();
    for (index, statement) in block.iter().enumerate() {
        found.push(Statement { block, index });
        found.extend(blocks(statement).into_iter().flat_map(all_statements));
    }
    found
}

pub(super) fn is_definition(statement: &Stmt) -> bool {
    matches!(statement, Stmt::FunctionDef(_) | Stmt::ClassDef(_))
}

/// The call that a statement is, if it is nothing else.
pub(super) fn call_of(statement: &Stmt) -> Option<&ExprCall> {
    match statement {
        Stmt::Expr(of) => match &*of.value {
            Expr::Call(call) => Some(call),
            _ => None,
        },
        _ => None,
    }
}

/// The method that a call names, with what it is called on.
pub(super) fn method(call: &ExprCall) -> Option<(&Expr, &str)> {
    match &*call.func {
        Expr::Attribute(of) => Some((&of.value, of.attr.as_str())),
        _ => None,
    }
}

/// What a call hands to each parameter of a function; nothing where that is not plain.
pub(super) fn given<'a>(helper: &'a StmtFunctionDef, call: &'a ExprCall) -> Vec<(&'a str, &'a Expr)> {
    let mut parameters: Vec<&str> =
        helper.parameters.iter_non_variadic_params().map(|one| one.name().as_str()).collect();
    if method(call).is_some() && parameters.first().is_some_and(|first| *first == "self") {
        parameters.remove(0);
    }
    let args = &call.arguments.args;
    if args.iter().any(Expr::is_starred_expr) || args.len() > parameters.len() {
        return Vec::new();
    }
    let named = call.arguments.keywords.iter().filter_map(|keyword| {
        let name = keyword.arg.as_ref()?;
        parameters.iter().find(|one| **one == name.as_str()).map(|one| (*one, &keyword.value))
    });
    let named: Vec<(&str, &Expr)> = named.collect();
    parameters.iter().copied().zip(args).chain(named).collect()
}

/// The last name of what is called.
pub(super) fn callee(call: &ExprCall) -> Option<&str> {
    match &*call.func {
        Expr::Attribute(of) => Some(of.attr.as_str()),
        Expr::Name(of) => Some(of.id.as_str()),
        _ => None,
    }
}

/// `torch.cuda.empty_cache` as text; `None` where it is no chain of names.
pub(super) fn dotted(expression: &Expr) -> Option<String> {
    match expression {
        Expr::Name(of) => Some(of.id.to_string()),
        Expr::Attribute(of) => Some(format!("{}.{}", dotted(&of.value)?, of.attr)),
        _ => None,
    }
}

/// All calls in some statements, also within definitions.
pub(super) fn calls<'a>(statements: impl IntoIterator<Item = &'a Stmt>) -> Vec<&'a ExprCall> {
    let mut found = CallCollector { found: Vec::new() };
    statements.into_iter().for_each(|one| found.visit_stmt(one));
    found.found
}

struct CallCollector<'a> {
    found: Vec<&'a ExprCall>,
}

impl<'a> Visitor<'a> for CallCollector<'a> {
    fn visit_expr(&mut self, expression: &'a Expr) {
        if let Expr::Call(call) = expression {
            self.found.push(call);
        }
        visitor::walk_expr(self, expression);
    }
}

/// Names that some code reads, binds, and whose attributes it takes.
#[derive(Debug, Default)]
pub(super) struct Names<'a> {
    pub(super) read: BTreeSet<&'a str>,
    pub(super) bound: BTreeSet<&'a str>,
    pub(super) attributes: BTreeSet<&'a str>,
}

impl<'a> Names<'a> {
    pub(super) fn of(statements: impl IntoIterator<Item = &'a Stmt>) -> Names<'a> {
        let mut names = Names::default();
        statements.into_iter().for_each(|one| names.visit_stmt(one));
        names
    }

    pub(super) fn in_expression(expression: &'a Expr) -> Names<'a> {
        let mut names = Names::default();
        names.visit_expr(expression);
        names
    }
}

impl<'a> Visitor<'a> for Names<'a> {
    fn visit_stmt(&mut self, statement: &'a Stmt) {
        match statement {
            Stmt::FunctionDef(of) => {
                self.bound.insert(&of.name);
            }
            Stmt::ClassDef(of) => {
                self.bound.insert(&of.name);
            }
            // What is added to is read first.
            Stmt::AugAssign(of) => {
                if let Expr::Name(name) = &*of.target {
                    self.read.insert(&name.id);
                }
            }
            Stmt::Global(of) => self.read.extend(of.names.iter().map(ruff_python_ast::Identifier::as_str)),
            Stmt::Nonlocal(of) => self.read.extend(of.names.iter().map(ruff_python_ast::Identifier::as_str)),
            _ => {}
        }
        visitor::walk_stmt(self, statement);
    }

    fn visit_expr(&mut self, expression: &'a Expr) {
        match expression {
            Expr::Name(of) if of.ctx.is_load() => {
                self.read.insert(&of.id);
            }
            Expr::Name(of) => {
                self.bound.insert(&of.id);
            }
            Expr::Attribute(of) => {
                self.attributes.insert(&of.attr);
            }
            _ => {}
        }
        visitor::walk_expr(self, expression);
    }
}

/// The plain names that an assignment binds: `a`, or all of `a, b`; `None` where it binds anything else, too.
pub(super) fn bound_names(statement: &Stmt) -> Option<Vec<&str>> {
    let name = |target: &'_ Expr| matches!(target, Expr::Name(_));
    let targets = match statement {
        Stmt::Assign(of) => &of.targets[..],
        // Without a value it binds nothing.
        Stmt::AnnAssign(of) if of.value.is_some() => std::slice::from_ref(&*of.target),
        _ => return None,
    };
    let [target] = targets else { return None };
    let parts = match target {
        Expr::Tuple(of) => &of.elts[..],
        one => std::slice::from_ref(one),
    };
    parts.iter().all(name).then(|| {
        parts
            .iter()
            .filter_map(|part| match part {
                Expr::Name(of) => Some(of.id.as_str()),
                _ => None,
            })
            .collect()
    })
}

/// The value that a statement computes.
pub(super) fn value_of(statement: &Stmt) -> Option<&Expr> {
    match statement {
        Stmt::Assign(of) => Some(&of.value),
        Stmt::AugAssign(of) => Some(&of.value),
        Stmt::AnnAssign(of) => of.value.as_deref(),
        Stmt::Expr(of) => Some(&of.value),
        Stmt::Return(of) => of.value.as_deref(),
        _ => None,
    }
}

/// Whether some code hands values out as it goes, or waits: decorators and blocks around it then reach further than it.
pub(super) fn suspends<'a>(statements: impl IntoIterator<Item = &'a Stmt>) -> bool {
    let mut found = Suspends(false);
    statements.into_iter().for_each(|one| found.visit_stmt(one));
    found.0
}

struct Suspends(bool);

impl<'a> Visitor<'a> for Suspends {
    fn visit_expr(&mut self, expression: &'a Expr) {
        self.0 |= matches!(expression, Expr::Yield(_) | Expr::YieldFrom(_) | Expr::Await(_));
        visitor::walk_expr(self, expression);
    }
}

/// How often some code reads a name.
pub(super) fn reads(statements: &[Stmt], name: &str) -> usize {
    let mut count = Count { name, found: 0 };
    count.visit_body(statements);
    count.found
}

struct Count<'n> {
    name: &'n str,
    found: usize,
}

impl<'a> Visitor<'a> for Count<'_> {
    fn visit_expr(&mut self, expression: &'a Expr) {
        let is_it = matches!(expression, Expr::Name(of) if of.ctx.is_load() && of.id == self.name);
        self.found += usize::from(is_it);
        visitor::walk_expr(self, expression);
    }
}

/// Whether a function says that a name is the file's, or a function's around it.
pub(super) fn is_anothers(scope: &[Stmt], name: &str) -> bool {
    statements(scope).into_iter().any(|step| match step.statement() {
        Stmt::Global(of) => of.names.iter().any(|one| one.as_str() == name),
        Stmt::Nonlocal(of) => of.names.iter().any(|one| one.as_str() == name),
        _ => false,
    })
}
