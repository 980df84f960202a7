//! A file's syntax tree, and the questions that reports ask of it.
//!
//! Parsed by ruff's parser. Spans are byte offsets into the file.

use std::borrow::Cow;
use std::ops::Range;

use ruff_python_ast::statement_visitor::{self, StatementVisitor};
use ruff_python_ast::token::TokenKind;
use ruff_python_ast::visitor::{self, Visitor};
use ruff_python_ast::{ElifElseClause, ExceptHandler, Expr, ExprCall, Keyword, MatchCase, Stmt};
use ruff_text_size::Ranged;

use super::clearing::{self, ZeroGrad, called};
use super::depth;
use super::outline::Outline;
use crate::finding::Seek;

/// Trees deeper than this are not built: walking one takes some hundred bytes of stack a level.
const MOST_LEVELS: usize = 500;

/// A part of a file, in bytes from its start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    /// The first byte.
    pub start: usize,
    /// The byte after the last.
    pub end: usize,
}

impl Span {
    fn of(node: &impl Ranged) -> Span {
        Span { start: node.start().to_usize(), end: node.end().to_usize() }
    }

    fn contains(self, other: Span) -> bool {
        self.start <= other.start && other.end <= self.end
    }

    /// Whether it shares a byte with a line.
    fn touches(self, line: &Range<usize>) -> bool {
        self.start < line.end.max(line.start + 1) && line.start < self.end
    }

    fn starts_in(self, line: &Range<usize>) -> bool {
        line.contains(&self.start)
    }

    fn length(self) -> usize {
        self.end - self.start
    }
}

/// A loop of the source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SourceLoop {
    /// `for batch in loader`, `while True`.
    pub header: Span,
    /// How its body clears gradients.
    pub zero_grad: ZeroGrad,
}

/// A parsed file.
#[derive(Debug)]
pub(super) struct Syntax {
    body: Vec<Stmt>,
    comments: Vec<Span>,
}

impl Syntax {
    /// The tree of a file; `None` where it is no valid Python, or nested as no person writes it.
    pub(super) fn parse(text: &str) -> Option<Syntax> {
        if depth::bound(text) > MOST_LEVELS {
            return None;
        }
        let parsed = ruff_python_parser::parse_module(text).ok()?;
        let comments = parsed.tokens().iter().filter(|token| token.kind() == TokenKind::Comment);
        let comments = comments.map(Span::of).collect();
        Some(Syntax { body: parsed.into_suite().into_iter().collect(), comments })
    }

    /// Its statements.
    pub(super) fn body(&self) -> &[Stmt] {
        &self.body
    }

    /// What to underline at a line.
    pub(super) fn expression_at(&self, line: &Range<usize>) -> Option<Span> {
        let code = self.innermost(line)?;
        if let Some(header) = header(code).filter(|header| header.touches(line)) {
            return Some(header);
        }
        match code {
            Code::Statement(statement) => in_statement(statement, line),
            _ => Some(code.span()),
        }
    }

    /// Every comment, in order.
    pub(super) fn comments(&self) -> &[Span] {
        &self.comments
    }

    /// What belongs to a line: the whole of a simple statement, the header of a compound one; `None` where there is
    /// neither.
    pub(super) fn statement_at(&self, line: &Range<usize>) -> Option<Span> {
        let code = self.innermost(line)?;
        match (header(code), code) {
            (Some(header), _) => Some(header).filter(|header| header.touches(line)),
            (None, Code::Statement(Stmt::Try(_))) => None,
            (None, Code::Statement(statement)) => Some(Span::of(statement)),
            (None, _) => None,
        }
    }

    /// The file line by line; `line_of` gives the line of a byte.
    pub(super) fn outline(&self, line_of: impl Fn(usize) -> u32) -> Outline {
        Outline::of(&self.body, line_of)
    }

    /// The innermost loop around two lines.
    pub(super) fn loop_around(&self, first: &Range<usize>, last: &Range<usize>) -> Option<SourceLoop> {
        let loops = self.around(first).into_iter().rev().filter(|code| code.span().touches(last));
        let (code, body) = loops.into_iter().find_map(|code| Some((code, loop_body(code)?)))?;
        Some(SourceLoop { header: header(code)?, zero_grad: clearing::of_body(&self.body, body) })
    }

    /// Whether the loop around a line fills gradients with zeros in place, itself or through a function of this file.
    /// Where the line's function holds no loop around it, the function itself and the loops that call it count.
    pub(super) fn zeroes_gradients_around(&self, line: &Range<usize>) -> bool {
        let around = self.around(line);
        let innermost_loop = around.iter().rev().find_map(|code| loop_body(*code));
        let function = around.iter().rev().find_map(|code| match code {
            Code::Statement(Stmt::FunctionDef(function)) => Some(function),
            _ => None,
        });
        let bodies: Vec<&[Stmt]> = match (innermost_loop, function) {
            (Some(body), _) => vec![body],
            (None, Some(function)) => {
                let callers = clearing::loops_calling(&self.body, function.name.as_str());
                callers.into_iter().chain([&function.body[..]]).collect()
            }
            (None, None) => vec![&self.body],
        };
        clearing::fills_with_zeros(&self.body, &bodies)
    }

    /// Where the first call of a function of this bare name stands.
    pub(super) fn call_of(&self, seek: &Seek) -> Option<Span> {
        let mut calls = CallsOf { seek, found: None };
        calls.visit_body(&self.body);
        calls.found
    }

    /// Whether a call of `_record_memory_history` that begins at a line has `"state"` for its first argument.
    pub(super) fn records_state_alone(&self, line: &Range<usize>) -> bool {
        let mut calls = StateCalls { line, found: false };
        calls.visit_body(&self.body);
        calls.found
    }

    fn innermost(&self, line: &Range<usize>) -> Option<Code<'_>> {
        self.around(line).pop()
    }

    /// The statements and clauses that share a line, outermost first; of several on one line the first.
    fn around(&self, line: &Range<usize>) -> Vec<Code<'_>> {
        let mut around = Around { line, found: Vec::new() };
        around.visit_body(&self.body);
        around.found
    }
}

/// What can hold a line: a statement, or a clause of one.
#[derive(Debug, Clone, Copy)]
enum Code<'a> {
    Statement(&'a Stmt),
    Clause(&'a ElifElseClause),
    Handler(&'a ExceptHandler),
    Case(&'a MatchCase),
}

impl Code<'_> {
    fn span(self) -> Span {
        match self {
            Code::Statement(node) => Span::of(node),
            Code::Clause(node) => Span::of(node),
            Code::Handler(node) => Span::of(node),
            Code::Case(node) => Span::of(node),
        }
    }
}

/// The body of a loop.
fn loop_body(code: Code<'_>) -> Option<&[Stmt]> {
    match code {
        Code::Statement(Stmt::For(of)) => Some(&of.body),
        Code::Statement(Stmt::While(of)) => Some(&of.body),
        _ => None,
    }
}

/// Collects what shares a line.
struct Around<'a, 'l> {
    line: &'l Range<usize>,
    found: Vec<Code<'a>>,
}

impl<'a> Around<'a, '_> {
    /// Notes a node that shares the line, unless its predecessor on the same line was noted before.
    fn note(&mut self, code: Code<'a>) -> bool {
        let span = code.span();
        let inside = self.found.last().is_none_or(|outer| outer.span().contains(span));
        let holds = inside && span.touches(self.line);
        if holds {
            self.found.push(code);
        }
        holds
    }
}

impl<'a> StatementVisitor<'a> for Around<'a, '_> {
    fn visit_stmt(&mut self, statement: &'a Stmt) {
        if self.note(Code::Statement(statement)) {
            statement_visitor::walk_stmt(self, statement);
        }
    }

    fn visit_elif_else_clause(&mut self, clause: &'a ElifElseClause) {
        if self.note(Code::Clause(clause)) {
            statement_visitor::walk_elif_else_clause(self, clause);
        }
    }

    fn visit_except_handler(&mut self, handler: &'a ExceptHandler) {
        if self.note(Code::Handler(handler)) {
            statement_visitor::walk_except_handler(self, handler);
        }
    }

    fn visit_match_case(&mut self, case: &'a MatchCase) {
        if self.note(Code::Case(case)) {
            statement_visitor::walk_match_case(self, case);
        }
    }
}

/// The part of a compound statement before its body: `for batch in loader`.
fn header(code: Code<'_>) -> Option<Span> {
    let start = match code {
        Code::Statement(Stmt::FunctionDef(of)) if !of.decorator_list.is_empty() => of.name.start().to_usize(),
        Code::Statement(Stmt::ClassDef(of)) if !of.decorator_list.is_empty() => of.name.start().to_usize(),
        _ => code.span().start,
    };
    let end = match code {
        Code::Statement(Stmt::For(of)) => of.iter.end(),
        Code::Statement(Stmt::While(of)) => of.test.end(),
        Code::Statement(Stmt::If(of)) => of.test.end(),
        Code::Statement(Stmt::With(of)) => of.items.last()?.end(),
        Code::Statement(Stmt::Match(of)) => of.subject.end(),
        Code::Statement(Stmt::FunctionDef(of)) => {
            of.returns.as_ref().map_or(of.parameters.end(), |kind| kind.end())
        }
        Code::Statement(Stmt::ClassDef(of)) => {
            of.arguments.as_ref().map_or(of.name.end(), |bases| bases.end())
        }
        Code::Clause(of) => of.test.as_ref()?.end(),
        Code::Handler(ExceptHandler::ExceptHandler(of)) => of.type_.as_ref()?.end(),
        Code::Case(of) => of.pattern.end(),
        Code::Statement(_) => return None,
    };
    Some(Span { start, end: end.to_usize() })
}

/// The part of a simple statement to underline: its value where that begins on the line, else the largest call, else
/// the largest expression that does, else all of it.
fn in_statement(statement: &Stmt, line: &Range<usize>) -> Option<Span> {
    let value = match statement {
        Stmt::Assign(of) => Some(&of.value),
        Stmt::AugAssign(of) => Some(&of.value),
        Stmt::AnnAssign(of) => of.value.as_ref(),
        Stmt::Return(of) => of.value.as_ref(),
        Stmt::Expr(of) => Some(&of.value),
        _ => None,
    };
    if let Some(value) = value.map(|value| Span::of(&**value)).filter(|value| value.starts_in(line)) {
        return Some(value);
    }
    let whole = Span::of(statement);
    if whole.starts_in(line) {
        return Some(whole);
    }
    let mut starting = Starting { line, call: None, any: None };
    starting.visit_stmt(statement);
    starting.call.or(starting.any).or(Some(whole))
}

/// Collects the largest expressions that begin on a line.
struct Starting<'l> {
    line: &'l Range<usize>,
    call: Option<Span>,
    any: Option<Span>,
}

impl<'a> Visitor<'a> for Starting<'_> {
    fn visit_expr(&mut self, expression: &'a Expr) {
        let span = Span::of(expression);
        if span.starts_in(self.line) {
            let larger = |best: Option<Span>| best.is_none_or(|best| best.length() < span.length());
            if matches!(expression, Expr::Call(_)) && larger(self.call) {
                self.call = Some(span);
            }
            if larger(self.any) {
                self.any = Some(span);
            }
        }
        visitor::walk_expr(self, expression);
    }
}

/// Looks for the first call of a function that may be the one.
struct CallsOf<'s> {
    seek: &'s Seek,
    found: Option<Span>,
}

impl<'a> Visitor<'a> for CallsOf<'_> {
    fn visit_expr(&mut self, expression: &'a Expr) {
        if let Expr::Call(call) = expression
            && called(call) == Some(&*self.seek.call)
            && may_set_one(call, &self.seek.arguments)
        {
            let span = Span::of(expression);
            if self.found.is_none_or(|first| span.start < first.start) {
                self.found = Some(span);
            }
        }
        visitor::walk_expr(self, expression);
    }
}

/// Looks for calls that record the state alone.
struct StateCalls<'l> {
    line: &'l Range<usize>,
    found: bool,
}

impl<'a> Visitor<'a> for StateCalls<'_> {
    fn visit_expr(&mut self, expression: &'a Expr) {
        if let Expr::Call(call) = expression
            && called(call) == Some("_record_memory_history")
            && self.line.contains(&Span::of(expression).start)
        {
            let enabled = call.arguments.find_argument_value("enabled", 0);
            let text = enabled.and_then(|value| value.as_string_literal_expr());
            self.found |= text.is_some_and(|text| text.value.to_str() == "state");
        }
        visitor::walk_expr(self, expression);
    }
}

/// Whether a call may set one of some arguments to something else than its default, a text. Which one a second positional argument is,
/// its name does not tell.
fn may_set_one(call: &ExprCall, wanted: &[(Cow<'static, str>, Cow<'static, str>)]) -> bool {
    let is_default = |value: &Expr, default: &str| {
        value.as_string_literal_expr().is_some_and(|text| text.value.to_str() == default)
    };
    let sets_one = |keyword: &Keyword| match &keyword.arg {
        Some(name) => {
            wanted.iter().any(|(one, default)| *one == name.as_str() && !is_default(&keyword.value, default))
        }
        None => true,
    };
    let positional = &call.arguments.args;
    wanted.is_empty()
        || call.arguments.keywords.iter().any(sets_one)
        || positional.len() > 1
        || positional.iter().any(Expr::is_starred_expr)
}
