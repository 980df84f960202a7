//! A source file line by line: which function a line belongs to, whether anything begins there, and what may run there.
//!
//! In: a file's syntax tree. Out: tables by line. Always: a line is where Python's frames see it (3.8 and later): a call
//! runs at the line on which it begins, or on which the name of its method ends; a comprehension anywhere within it.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;

use ruff_python_ast::visitor::{self, Visitor};
use ruff_python_ast::{
    Comprehension, Decorator, ElifElseClause, ExceptHandler, Expr, ExprCall, MatchCase, Pattern, Stmt,
    WithItem,
};
use ruff_text_size::Ranged;
use rustc_hash::FxHashMap;

use super::bindings::{Bindings, Reach};

/// Which code a line belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CodeScope<'a> {
    /// No function or class.
    Module,
    /// The body of a function or class of this name.
    Of(&'a str),
    /// The head of a definition: it runs in the code around it, and compilers record it for the definition itself.
    Head,
}

/// Something at a line that may run other code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct CallPoint {
    pub(super) kind: Invocation,
    /// The bare name of what is called or read; empty where there is none.
    pub(super) name: String,
    /// The function or class around it, by number.
    pub(super) scope: usize,
}

/// How a [`CallPoint`] runs other code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Invocation {
    /// It calls something.
    Call(Reach),
    /// It reads an attribute, which may be a property.
    Attribute,
    /// An operator, a comparison, a text with values in it.
    Operator,
    /// `a[b]`.
    Subscript,
    /// It iterates, unpacks or resumes.
    Loop,
    /// It enters or leaves a context.
    With,
    /// It loads a module, which runs whatever that module holds.
    Import,
    /// It may end the life of an object, and nothing else.
    Release,
}

/// A frame that Python makes of an expression.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ImplicitFrame {
    Lambda,
    List,
    Set,
    Dict,
    Generator,
}

/// What is known of each line. Lines count from 1.
#[derive(Debug, Default)]
pub(super) struct Outline {
    scopes: Vec<String>,
    of_line: BTreeMap<u32, Surroundings>,
    sites: BTreeMap<u32, Vec<CallPoint>>,
    begins: BTreeSet<u32>,
    made: Vec<(ImplicitFrame, RangeInclusive<u32>)>,
    calls: FxHashMap<(usize, String), Vec<u32>>,
    /// The functions, by number, that run where they are resumed and not where they are called.
    resumed: BTreeSet<usize>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Surroundings {
    In(usize),
    Head,
}

/// No function or class: the number of the module itself.
const MODULE: usize = 0;

impl Outline {
    /// The outline of a file; `line_of` gives the line of a byte.
    pub(super) fn of(body: &[Stmt], line_of: impl Fn(usize) -> u32) -> Outline {
        let bindings = Bindings::of(body);
        let outline = Outline { scopes: vec!["<module>".to_owned()], ..Outline::default() };
        let mut builder = Builder { outline, bindings, line_of, scope: MODULE };
        builder.visit_body(body);
        builder.outline
    }

    /// Whether code begins at a line: no blank, no comment, no inside of a text, no lone bracket.
    pub(super) fn begins(&self, line: u32) -> bool {
        self.begins.contains(&line)
    }

    /// Which code a line belongs to.
    pub(super) fn scope(&self, line: u32) -> CodeScope<'_> {
        match self.of_line.get(&line) {
            None => CodeScope::Module,
            Some(Surroundings::Head) => CodeScope::Head,
            Some(Surroundings::In(scope)) => {
                CodeScope::Of(self.scopes.get(*scope).map_or("", String::as_str))
            }
        }
    }

    /// Whether a line can be in a frame of this name: `<lambda>`, `<listcomp>` and the like need one around them. Names
    /// of other kinds are not known, and so not denied.
    pub(super) fn makes(&self, line: u32, name: &str) -> bool {
        let made = match name {
            "<lambda>" => ImplicitFrame::Lambda,
            "<listcomp>" => ImplicitFrame::List,
            "<setcomp>" => ImplicitFrame::Set,
            "<dictcomp>" => ImplicitFrame::Dict,
            "<genexpr>" => ImplicitFrame::Generator,
            _ => return true,
        };
        self.made.iter().any(|(kind, lines)| *kind == made && lines.contains(&line))
    }

    /// What may run other code at a line.
    pub(super) fn sites(&self, line: u32) -> &[CallPoint] {
        self.sites.get(&line).map_or(&[], Vec::as_slice)
    }

    /// The lines at which a function or class, by number, calls something of this bare name; each call once.
    pub(super) fn calls(&self, scope: usize, name: &str) -> &[u32] {
        self.calls.get(&(scope, name.to_owned())).map_or(&[], Vec::as_slice)
    }

    /// Whether a function of this name may run at another line than the one that calls it: a generator or a coroutine of this file, or,
    /// at a line that resumes something, one that is none of this file's.
    pub(super) fn may_be_resumed(&self, name: &str, line: u32) -> bool {
        let mut named = self.scopes.iter().enumerate().filter(|(_, scope)| *scope == name).peekable();
        if named.peek().is_none() {
            return self
                .sites(line)
                .iter()
                .any(|site| matches!(site.kind, Invocation::Loop | Invocation::Call(Reach::Builtin)));
        }
        named.any(|(number, _)| self.resumed.contains(&number))
    }

    /// The number of the only function or class of this name; `<module>` is the file itself.
    pub(super) fn only(&self, name: &str) -> Option<usize> {
        let mut named = self.scopes.iter().enumerate().filter(|(_, scope)| *scope == name);
        let (number, _) = named.next()?;
        named.next().is_none().then_some(number)
    }
}

struct Builder<'a, L> {
    outline: Outline,
    bindings: Bindings<'a>,
    line_of: L,
    scope: usize,
}

impl<'a, L: Fn(usize) -> u32> Builder<'a, L> {
    fn line(&self, offset: impl Into<u32>) -> u32 {
        (self.line_of)(usize::try_from(offset.into()).unwrap_or(usize::MAX))
    }

    fn first(&self, node: &impl Ranged) -> u32 {
        self.line(node.start())
    }

    /// The line of a node's last byte.
    fn last(&self, node: &impl Ranged) -> u32 {
        self.line(u32::from(node.end()).saturating_sub(1))
    }

    fn begin(&mut self, node: &impl Ranged) {
        let line = self.first(node);
        self.outline.begins.insert(line);
    }

    fn note(&mut self, line: u32, kind: Invocation, name: &str) {
        let site = CallPoint { kind, name: name.to_owned(), scope: self.scope };
        self.outline.begins.insert(line);
        self.outline.sites.entry(line).or_default().push(site);
    }

    fn note_at(&mut self, node: &impl Ranged, kind: Invocation) {
        self.note(self.first(node), kind, "");
    }

    fn make(&mut self, node: &impl Ranged, made: ImplicitFrame) {
        let lines = self.first(node)..=self.last(node);
        self.outline.made.push((made, lines));
    }

    /// A function or class: `first` is the line of its first decorator.
    fn define(&mut self, name: &str, definition: &impl Ranged, head: u32, body: &'a [Stmt]) {
        let number = self.outline.scopes.len();
        self.outline.scopes.push(name.to_owned());
        let first = self.first(definition);
        let inside = body.first().map_or(head, |first| self.first(first));
        for line in first..=self.last(definition) {
            let place =
                if line < inside || line <= head { Surroundings::Head } else { Surroundings::In(number) };
            self.outline.of_line.insert(line, place);
        }
        self.outline.begins.insert(head);
        let around = std::mem::replace(&mut self.scope, number);
        self.visit_body(body);
        self.scope = around;
    }

    fn call(&mut self, call: &ExprCall) {
        let name = super::clearing::called(call).unwrap_or_default();
        let kind = Invocation::Call(self.bindings.reach(&call.func));
        let (first, method) = (self.first(call), self.last(&*call.func));
        self.note(first, kind, name);
        if method != first {
            self.note(method, kind, name);
        }
        self.outline.calls.entry((self.scope, name.to_owned())).or_default().push(method);
    }
}

impl<'a, L: Fn(usize) -> u32> Visitor<'a> for Builder<'a, L> {
    fn visit_stmt(&mut self, statement: &'a Stmt) {
        match statement {
            // These run nothing.
            Stmt::Global(_) | Stmt::Nonlocal(_) => return,
            Stmt::Expr(of) if of.value.is_string_literal_expr() => return,
            Stmt::FunctionDef(of) => {
                of.decorator_list.iter().for_each(|one| self.visit_decorator(one));
                self.visit_parameters(&of.parameters);
                of.returns.iter().for_each(|kind| self.visit_annotation(kind));
                let head = self.first(&of.name);
                let number = self.outline.scopes.len();
                self.outline.resumed.extend(of.is_async.then_some(number));
                self.define(&of.name, of, head, &of.body);
                return;
            }
            Stmt::ClassDef(of) => {
                of.decorator_list.iter().for_each(|one| self.visit_decorator(one));
                of.arguments.iter().for_each(|bases| self.visit_arguments(bases));
                let head = self.first(&of.name);
                self.note(head, Invocation::Call(Reach::Any), "");
                self.define(&of.name, of, head, &of.body);
                return;
            }
            Stmt::For(of) => {
                self.note_at(of, Invocation::Loop);
                self.note_at(&*of.iter, Invocation::Loop);
                self.note_at(&*of.target, Invocation::Loop);
            }
            Stmt::With(of) => self.note_at(of, Invocation::With),
            Stmt::AugAssign(of) => self.note_at(of, Invocation::Operator),
            Stmt::Assign(of) if of.targets.iter().any(|one| one.is_tuple_expr() || one.is_list_expr()) => {
                self.note_at(of, Invocation::Loop);
            }
            Stmt::Import(_) | Stmt::ImportFrom(_) => self.note_at(statement, Invocation::Import),
            // `raise Failure` makes one.
            Stmt::Raise(_) => self.note_at(statement, Invocation::Call(Reach::Any)),
            Stmt::Pass(_) | Stmt::Break(_) | Stmt::Continue(_) | Stmt::Expr(_) => self.begin(statement),
            _ => self.note_at(statement, Invocation::Release),
        }
        visitor::walk_stmt(self, statement);
    }

    fn visit_decorator(&mut self, decorator: &'a Decorator) {
        self.note_at(decorator, Invocation::Call(Reach::Any));
        visitor::walk_decorator(self, decorator);
    }

    fn visit_expr(&mut self, expression: &'a Expr) {
        self.begin(expression);
        match expression {
            Expr::Call(of) => self.call(of),
            Expr::Attribute(of) => {
                let (first, last) = (self.first(of), self.last(of));
                self.note(first, Invocation::Attribute, &of.attr);
                if last != first {
                    self.note(last, Invocation::Attribute, &of.attr);
                }
            }
            Expr::BinOp(_) | Expr::UnaryOp(_) | Expr::Compare(_) | Expr::BoolOp(_) | Expr::FString(_) => {
                self.note_at(expression, Invocation::Operator);
            }
            Expr::Subscript(_) => self.note_at(expression, Invocation::Subscript),
            Expr::Yield(_) | Expr::YieldFrom(_) => {
                self.outline.resumed.insert(self.scope);
                self.note_at(expression, Invocation::Loop);
            }
            Expr::Starred(_) | Expr::Await(_) => self.note_at(expression, Invocation::Loop),
            Expr::Lambda(_) => self.make(expression, ImplicitFrame::Lambda),
            Expr::ListComp(_) => self.make(expression, ImplicitFrame::List),
            Expr::SetComp(_) => self.make(expression, ImplicitFrame::Set),
            Expr::DictComp(_) => self.make(expression, ImplicitFrame::Dict),
            Expr::Generator(_) => self.make(expression, ImplicitFrame::Generator),
            _ => {}
        }
        visitor::walk_expr(self, expression);
    }

    fn visit_comprehension(&mut self, comprehension: &'a Comprehension) {
        self.note_at(&comprehension.iter, Invocation::Loop);
        self.note_at(&comprehension.target, Invocation::Loop);
        visitor::walk_comprehension(self, comprehension);
    }

    fn visit_with_item(&mut self, item: &'a WithItem) {
        self.note_at(item, Invocation::With);
        visitor::walk_with_item(self, item);
    }

    fn visit_elif_else_clause(&mut self, clause: &'a ElifElseClause) {
        self.begin(clause);
        visitor::walk_elif_else_clause(self, clause);
    }

    fn visit_except_handler(&mut self, handler: &'a ExceptHandler) {
        self.begin(handler);
        visitor::walk_except_handler(self, handler);
    }

    fn visit_match_case(&mut self, case: &'a MatchCase) {
        self.begin(case);
        visitor::walk_match_case(self, case);
    }

    fn visit_pattern(&mut self, pattern: &'a Pattern) {
        self.note_at(pattern, Invocation::Operator);
        visitor::walk_pattern(self, pattern);
    }
}
