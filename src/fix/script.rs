//! A file as somebody laid it out: indentation, line ends, and edits that keep to them.
//!
//! Always: an edit touches whole statements that have their lines to themselves; what shares a line with other code gets a
//! reason instead.

use std::ops::Range;

use ruff_python_ast::visitor::{self, Visitor};
use ruff_python_ast::{Expr, Stmt};
use ruff_text_size::Ranged;

use super::tree::{self, Nesting};
use crate::source::SourceFile;

/// Why there is no edit: lower-case start, no final stop.
pub(super) type Reason = String;

/// A replacement in a file.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Edit {
    /// The first byte that goes.
    pub start: usize,
    /// The byte after the last; as `start` where nothing goes.
    pub end: usize,
    /// What comes in its place.
    pub text: String,
}

impl Edit {
    pub(super) fn new(range: Range<usize>, text: impl Into<String>) -> Edit {
        Edit { start: range.start, end: range.end, text: text.into() }
    }

    /// Whether both change the same bytes, or put something at the same place.
    pub(super) fn meets(&self, other: &Edit) -> bool {
        (self.start < other.end && other.start < self.end)
            || self.start == other.start && (self.start == self.end || other.start == other.end)
    }
}

/// A file that is to be edited.
#[derive(Clone, Copy)]
pub(super) struct EditedFile<'a> {
    pub(super) file: &'a SourceFile,
    pub(super) body: &'a [Stmt],
}

impl<'a> EditedFile<'a> {
    pub(super) fn of(file: &'a SourceFile) -> Result<EditedFile<'a>, Reason> {
        let body = file.tree().ok_or("the file is no valid Python, or nested too deeply")?;
        let text = file.text();
        if text.replace("\r\n", "\n").contains('\r') {
            return Err("the file has line ends of several kinds".to_owned());
        }
        Ok(EditedFile { file, body })
    }

    pub(super) fn text(&self) -> &'a str {
        self.file.text()
    }

    /// What a node says.
    pub(super) fn words(&self, node: &impl Ranged) -> &'a str {
        self.text().get(range(node)).unwrap_or_default()
    }

    /// The statements around a line's code.
    pub(super) fn place(&self, line: u32) -> Result<Nesting<'a>, Reason> {
        let whole = self.file.line(line).ok_or("the line is not in the file")?;
        let text = self.text().get(whole.clone()).unwrap_or_default();
        let code = whole.start + (text.len() - text.trim_start().len());
        let place = Nesting::of(self.body, code);
        if place.steps.is_empty() { Err("no statement stands at the line".to_owned()) } else { Ok(place) }
    }

    /// The line of a node, counted from 1.
    pub(super) fn line_of(&self, node: &impl Ranged) -> u32 {
        self.file.place(node.start().to_usize()).0
    }

    /// Where the line of a byte begins; the first one behind a byte order mark, which has to stay where it is.
    pub(super) fn line_start(&self, offset: usize) -> usize {
        let before = self.text().get(..offset).and_then(|before| before.rfind('\n'));
        before.map_or(self.file.start(), |at| at + 1)
    }

    /// Behind the line break of the line that holds a byte.
    fn line_end(&self, offset: usize) -> usize {
        let rest = self.text().get(offset..).unwrap_or_default();
        offset + rest.find('\n').map_or(rest.len(), |at| at + 1)
    }

    /// The file's line break.
    pub(super) fn line_break(&self) -> &'static str {
        if self.text().contains("\r\n") { "\r\n" } else { "\n" }
    }

    /// The blanks before a statement that begins its line.
    pub(super) fn indent(&self, statement: &Stmt) -> Result<&'a str, Reason> {
        let start = statement.start().to_usize();
        let before = self.text().get(self.line_start(start)..start).unwrap_or_default();
        let is_blank = before.chars().all(|letter| letter == ' ' || letter == '\t');
        if is_blank { Ok(before) } else { Err(self.shared(statement)) }
    }

    fn shared(&self, statement: &Stmt) -> Reason {
        format!("line {} holds other code, too", self.line_of(statement))
    }

    /// All lines of a statement that has them to itself, with the last one's break and comment.
    pub(super) fn lines(&self, statement: &Stmt) -> Result<Range<usize>, Reason> {
        self.indent(statement)?;
        let (start, end) = (statement.start().to_usize(), statement.end().to_usize());
        let line_end = self.line_end(end);
        let rest = self.text().get(end..line_end).unwrap_or_default().trim();
        if !rest.is_empty() && !rest.starts_with('#') {
            return Err(self.shared(statement));
        }
        Ok(self.line_start(start)..line_end)
    }

    /// One level of indentation, as the file has it.
    pub(super) fn level(&self) -> String {
        let inner = tree::all_statements(self.body).into_iter().find_map(|step| {
            let outer = self.indent(step.statement()).ok()?;
            let inner = tree::blocks(step.statement()).into_iter().find_map(|block| block.first())?;
            self.indent(inner).ok()?.strip_prefix(outer).filter(|more| !more.is_empty())
        });
        inner.unwrap_or("    ").to_owned()
    }

    /// Puts lines behind a statement, indented as it is.
    pub(super) fn insert_after(&self, statement: &Stmt, lines: &[String]) -> Result<Edit, Reason> {
        let (indent, at) = (self.indent(statement)?, self.lines(statement)?.end);
        let (break_, whole) = (self.line_break(), self.text().get(..at).unwrap_or_default());
        let text: String = if whole.ends_with('\n') {
            joined(lines, &[indent], break_)
        } else {
            joined(lines, &[break_, indent], "")
        };
        Ok(Edit::new(at..at, text))
    }

    /// Puts lines before a statement, indented as it is.
    pub(super) fn insert_before(&self, statement: &Stmt, lines: &[String]) -> Result<Edit, Reason> {
        let (indent, at) = (self.indent(statement)?, self.line_start(statement.start().to_usize()));
        let break_ = self.line_break();
        let text = joined(lines, &[indent], break_);
        Ok(Edit::new(at..at, text))
    }

    /// Takes a statement out; where a block would be left empty, `pass` stays.
    pub(super) fn remove(&self, statement: &Stmt, is_alone: bool) -> Result<Edit, Reason> {
        let lines = self.lines(statement)?;
        if is_alone {
            return Ok(Edit::new(range(statement), "pass"));
        }
        Ok(Edit::new(lines, ""))
    }

    /// Puts a statement into a block of its own: `with torch.no_grad():`.
    pub(super) fn wrap(&self, statement: &Stmt, header: &str) -> Result<Vec<Edit>, Reason> {
        let (indent, lines) = (self.indent(statement)?, self.lines(statement)?);
        let (level, break_) = (self.level(), self.line_break());
        let mut texts = Texts { script: *self, spans: false };
        texts.visit_stmt(statement);
        if texts.spans {
            return Err("a text over several lines would have to be indented".to_owned());
        }
        let mut edits = vec![Edit::new(lines.start..lines.start, format!("{indent}{header}{break_}{level}"))];
        let mut next = self.line_end(lines.start);
        while next < lines.end {
            let end = self.line_end(next);
            // An empty line stays empty.
            if !self.text().get(next..end).unwrap_or_default().trim().is_empty() {
                edits.push(Edit::new(next..next, level.clone()));
            }
            next = end;
        }
        Ok(edits)
    }
}

/// Lines one after another, each with something before and behind it.
fn joined(lines: &[String], before: &[&str], behind: &str) -> String {
    lines.iter().flat_map(|line| before.iter().copied().chain([line.as_str(), behind])).collect()
}

/// Looks for texts that hold a line break.
struct Texts<'a> {
    script: EditedFile<'a>,
    spans: bool,
}

impl<'a> Visitor<'a> for Texts<'_> {
    fn visit_expr(&mut self, expression: &'a Expr) {
        let is_text = matches!(
            expression,
            Expr::StringLiteral(_) | Expr::BytesLiteral(_) | Expr::FString(_) | Expr::TString(_)
        );
        self.spans |= is_text && self.script.words(expression).contains('\n');
        visitor::walk_expr(self, expression);
    }
}

/// The bytes of a node.
pub(super) fn range(node: &impl Ranged) -> Range<usize> {
    node.start().to_usize()..node.end().to_usize()
}
