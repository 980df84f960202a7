//! The user's source: from recorded paths to local files, their lines, and the expression that a person would
//! underline.
//!
//! In: the folders to look in, renamed path prefixes, and (file, line, function) as recorded. Out: the local file, if
//! one fits. Always: nothing is walked, only paths that end like the recorded one are tried; a file that cannot be the
//! recorded one (too few lines, another function at that line) is not taken; a missing source is a state, not an error.

mod bindings;
mod bounds;
mod checkout;
mod clearing;
mod depth;
mod fit;
mod folders;
mod ignore;
mod map;
mod open;
mod outline;
mod search;
mod settle;
mod syntax;

pub use checkout::{Checkout, plain};
pub use clearing::ZeroGrad;
pub use fit::Misfit;
pub use ignore::{EXAMPLE, IgnoreComment, IgnoreComments, Malformed};
pub use map::{Changed, SourceMap, Spot};
pub use search::PathMap;
pub use settle::settle;
pub use syntax::{SourceLoop, Span};

use std::ops::{Range, RangeInclusive};
use std::sync::OnceLock;

use fit::LineFit;
use outline::{CodeScope, Outline};
use syntax::Syntax;

use ruff_python_ast::Stmt;

use crate::engine::RecordedFile;
use crate::finding::{Location, Seek};

/// What editors of Windows begin a file of UTF-8 with.
const MARK: char = '\u{feff}';

/// A local file.
#[derive(Debug)]
pub struct SourceFile {
    /// How messages name it: as found, relative to where memlint was started.
    name: String,
    text: String,
    /// The byte at which each line begins.
    starts: Vec<usize>,
    syntax: OnceLock<Option<Syntax>>,
    outline: OnceLock<Option<Outline>>,
    ignores: OnceLock<Vec<IgnoreComment>>,
}

impl SourceFile {
    /// A file of this content.
    pub fn new(name: String, text: String) -> SourceFile {
        let after_breaks = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n').map(|(at, _)| at + 1);
        let starts =
            std::iter::once(start_of(&text)).chain(after_breaks.filter(|at| *at < text.len())).collect();
        let (syntax, outline, ignores) = (OnceLock::new(), OnceLock::new(), OnceLock::new());
        SourceFile { name, text, starts, syntax, outline, ignores }
    }

    /// How messages name it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// All of it.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The byte at which its first line begins: behind a byte order mark, which is no part of the program.
    pub fn start(&self) -> usize {
        start_of(&self.text)
    }

    /// The bytes of a line, counted from 1, without its line break.
    pub fn line(&self, line: u32) -> Option<Range<usize>> {
        let position = usize::try_from(line).ok()?.checked_sub(1)?;
        let start = *self.starts.get(position)?;
        let end = self.starts.get(position + 1).copied().unwrap_or(self.text.len());
        let length = self.text.get(start..end)?.trim_end_matches(['\n', '\r']).len();
        Some(start..start + length)
    }

    /// The line, counted from 1, that holds a byte, and the column in characters, counted from 1.
    pub fn place(&self, offset: usize) -> (u32, u32) {
        let position = self.starts.partition_point(|start| *start <= offset).saturating_sub(1);
        let start = self.starts.get(position).copied().unwrap_or(0);
        let column = self.text.get(start..offset).map_or(0, |before| before.chars().count());
        let count = |number: usize| u32::try_from(number + 1).unwrap_or(u32::MAX);
        (count(position), count(column))
    }

    /// What to underline at a line: the expression that allocates, the header of a loop, or the line's text where the
    /// file is no valid Python. `None` where the line holds no code.
    pub fn expression_at(&self, line: u32) -> Option<Span> {
        let whole = self.line(line)?;
        match self.syntax() {
            Some(syntax) => syntax.expression_at(&whole),
            None => trimmed(&self.text, whole),
        }
    }

    /// The lines that belong to what stands at a line: all of a simple statement, the header of a loop or a function.
    pub fn statement_lines(&self, line: u32) -> RangeInclusive<u32> {
        let statement = || self.syntax()?.statement_at(&self.line(line)?);
        match statement() {
            Some(span) => self.place(span.start).0..=self.place(span.end.saturating_sub(1)).0.max(line),
            None => line..=line,
        }
    }

    /// Comments that ask for findings to be ignored, from the first line on.
    pub fn ignores(&self) -> &[IgnoreComment] {
        self.ignores.get_or_init(|| {
            if !ignore::may_hold(&self.text) {
                return Vec::new();
            }
            let text = |line| self.line(line).and_then(|line| self.text.get(line)).unwrap_or_default().trim();
            let last = u32::try_from(self.starts.len()).unwrap_or(u32::MAX);
            let is_blank = |line| text(line).is_empty();
            ignore::read(self.comments().into_iter(), |line| self.holds_code(line), is_blank, last)
        })
    }

    /// The comments with their lines; in a file that is no valid Python whatever follows the first `#` of a line.
    fn comments(&self) -> Vec<(u32, &str)> {
        let Some(syntax) = self.syntax() else {
            let rest = |line: u32| {
                let text = self.text.get(self.line(line)?)?;
                Some((line, text.get(text.find('#')?..)?))
            };
            return (1..).take(self.starts.len()).filter_map(rest).collect();
        };
        let one = |span: &Span| Some((self.place(span.start).0, self.text.get(span.start..span.end)?));
        syntax.comments().iter().filter_map(one).collect()
    }

    /// Whether the loop around a line fills gradients with zeros in place instead of releasing them.
    pub fn zeroes_gradients_around(&self, line: u32) -> bool {
        let around = || Some(self.syntax()?.zeroes_gradients_around(&self.line(line)?));
        around().unwrap_or(false)
    }

    /// Whether a call of `_record_memory_history` at a line asks for the state alone.
    pub fn records_state_alone(&self, line: u32) -> bool {
        let asks = || Some(self.syntax()?.records_state_alone(&self.line(line)?));
        asks().unwrap_or(false)
    }

    /// The line of the first call that may be the one which is sought.
    pub fn line_of_call(&self, seek: &Seek) -> Option<u32> {
        self.syntax()?.call_of(seek).map(|span| self.place(span.start).0)
    }

    /// The innermost loop around all of some lines (a loop's header belongs to it); `None` where there is none or the
    /// file is no valid Python.
    pub fn loop_around(&self, first: u32, last: u32) -> Option<SourceLoop> {
        self.syntax()?.loop_around(&self.line(first)?, &self.line(last)?)
    }

    /// The name of the function or class whose body holds a line, `<module>` outside of all; `None` at the head of a
    /// definition, and where the file is no valid Python.
    pub fn function_at(&self, line: u32) -> Option<&str> {
        match self.outline()?.scope(line) {
            CodeScope::Head => None,
            CodeScope::Module => Some("<module>"),
            CodeScope::Of(name) => Some(name),
        }
    }

    /// Whether the recorded line can be in this file: there is code at it, in the function that was recorded.
    fn can_hold(&self, line: u32, function: &str) -> bool {
        let Some(whole) = self.line(line) else { return false };
        let Some(outline) = self.outline() else { return trimmed(&self.text, whole).is_some() };
        // Comprehensions, lambdas and what torch.compile makes of a function say nothing about the function around.
        let made = function.is_empty() || function.starts_with('<') || function.starts_with("torch_dynamo_");
        outline.begins(line)
            && match outline.scope(line) {
                CodeScope::Head => true,
                CodeScope::Module => made || function == "<module>",
                CodeScope::Of(name) => (made && function != "<module>") || function == name,
            }
    }

    /// Where the recorded lines are in this file, or the first that cannot be in it. Comments of memlint's own that stand
    /// alone on their lines may have come in since.
    fn check(&self, recorded: &RecordedFile) -> Result<LineFit, Misfit> {
        let Some(outline) = self.outline() else {
            let line = recorded.lines.first().map_or(1, |first| first.line);
            return Err(Misfit { line, why: "cannot be told in a file that is no valid Python".to_owned() });
        };
        fit::check(outline, &recorded.lines, &LineFit::default()).map(|()| LineFit::default()).or_else(
            |misfit| {
                let lines = self.without_own_comments();
                if lines != LineFit::default() && fit::check(outline, &recorded.lines, &lines).is_ok() {
                    return Ok(lines);
                }
                Err(misfit)
            },
        )
    }

    /// The lines of a file that has got its comments of memlint's own, as far as they stand alone, since it was recorded.
    fn without_own_comments(&self) -> LineFit {
        let alone = self.ignores().iter().map(|comment| comment.line).filter(|line| !self.holds_code(*line));
        LineFit::without(alone.collect())
    }

    /// The line of a recorded one, although the file has changed; `None` where that is not beyond doubt.
    fn found_again(&self, recorded: &RecordedFile, location: &Location) -> Option<u32> {
        let place = (location.line, location.function.as_str());
        fit::found_again(self.outline()?, recorded, &self.without_own_comments(), place)
    }

    /// Whether a line holds anything but a comment.
    fn holds_code(&self, line: u32) -> bool {
        let text = self.line(line).and_then(|line| self.text.get(line)).unwrap_or_default().trim();
        !text.is_empty() && !text.starts_with('#')
    }

    fn outline(&self) -> Option<&Outline> {
        let outline = || Some(self.syntax()?.outline(|offset| self.place(offset).0));
        self.outline.get_or_init(outline).as_ref()
    }

    /// Its statements; `None` where it is no valid Python, or nested as no person writes it.
    pub(crate) fn tree(&self) -> Option<&[Stmt]> {
        self.syntax().map(Syntax::body)
    }

    fn syntax(&self) -> Option<&Syntax> {
        self.syntax.get_or_init(|| Syntax::parse(&self.text)).as_ref()
    }
}

/// Where a text begins behind its byte order mark, if it has one.
fn start_of(text: &str) -> usize {
    if text.starts_with(MARK) { MARK.len_utf8() } else { 0 }
}

/// A range without the blanks and the comment around its code.
fn trimmed(text: &str, whole: Range<usize>) -> Option<Span> {
    let line = text.get(whole.clone())?;
    let code = line.trim();
    let start = whole.start + (line.len() - line.trim_start().len());
    (!code.is_empty() && !code.starts_with('#')).then(|| Span { start, end: start + code.len() })
}

#[cfg(test)]
mod tests {
    use super::*;

    const PROGRAM: &str = "\
import torch
def train(model, loader):
    history = []
    for step, batch in enumerate(loader):
        optimizer.zero_grad(set_to_none=False)
        loss = criterion(
            model(batch.cuda()),
            batch.target,
        )
        with torch.no_grad(), other():
            history.append(loss)
        if step % 10 == 0: evaluate()
        loss_fn(pred, labels).backward()  # sums
        total += loss; step += 1

@compiled
def other():
    return [torch.ones(n) for n in sizes]
while True:
    train(1, 2)
";

    fn underlined(line: u32) -> String {
        let file = SourceFile::new("train.py".to_owned(), PROGRAM.to_owned());
        let span = file.expression_at(line);
        span.and_then(|span| file.text().get(span.start..span.end)).unwrap_or_default().to_owned()
    }

    #[test]
    fn gradients_filled_with_zeros_by_hand_are_seen_in_their_loop_only() {
        let zeroes = |clearing: &str, rest: &str| {
            let text = format!("for batch in loader:\n    loss(batch).backward()\n    {clearing}\n{rest}");
            SourceFile::new("a.py".to_owned(), text).zeroes_gradients_around(2)
        };
        assert!(zeroes("for p in model.parameters(): p.grad.zero_()", ""));
        assert!(zeroes("for p in model.parameters(): p.grad.data.zero_()", ""));
        assert!(zeroes("torch._foreach_zero_([p.grad for p in params])", ""));
        assert!(zeroes("model.zero_grad(set_to_none=False)", ""));
        let helper = "def clear(model):\n    model.zero_grad(set_to_none=False)\n";
        assert!(zeroes("clear(model)", helper));
        assert!(!zeroes("optimizer.step()", helper), "nobody calls it");
        assert!(!zeroes("buffer.zero_(); optimizer.zero_grad(); p.grad = None", ""));
        let called = "def step(batch):\n    loss(batch).backward()\nfor batch in loader:\n    step(batch)\n    model.zero_grad(False)\n";
        assert!(SourceFile::new("a.py".to_owned(), called.to_owned()).zeroes_gradients_around(2));
    }

    #[test]
    fn a_value_a_call_or_a_header_is_underlined() {
        assert_eq!(underlined(4), "for step, batch in enumerate(loader)");
        assert!(underlined(6).starts_with("criterion(\n") && underlined(6).ends_with(')'));
        assert_eq!(underlined(7), "model(batch.cuda())");
        assert_eq!(underlined(8), "batch.target");
        assert_eq!(underlined(10), "with torch.no_grad(), other()");
        assert_eq!(underlined(11), "history.append(loss)");
        assert_eq!(underlined(12), "evaluate()");
        assert_eq!(underlined(13), "loss_fn(pred, labels).backward()");
        assert_eq!(underlined(14), "loss");
        assert_eq!(underlined(17), "other()");
        assert_eq!(underlined(18), "[torch.ones(n) for n in sizes]");
    }

    #[test]
    fn comments_are_found_and_strings_are_none() {
        let text = "x = '# memlint: ignore[a] no'\nf(\n    1,  # memlint: ignore[oom] yes\n)\n";
        let file = SourceFile::new("a.py".to_owned(), text.to_owned());
        let lines = |file: &SourceFile| file.ignores().iter().map(|one| one.line).collect::<Vec<_>>();
        assert_eq!(lines(&file), [3]);
        let broken = SourceFile::new("a.py".to_owned(), "print 'x'  # memlint: ignore[oom] yes\n".to_owned());
        assert_eq!(lines(&broken), [1]);
    }

    #[test]
    fn a_statement_has_all_its_lines_and_a_block_its_header() {
        let file = SourceFile::new("train.py".to_owned(), PROGRAM.to_owned());
        assert_eq!(file.statement_lines(7), 6..=9);
        assert_eq!(file.statement_lines(9), 6..=9);
        assert_eq!(file.statement_lines(4), 4..=4);
        assert_eq!(file.statement_lines(10), 10..=10);
        assert_eq!(file.statement_lines(14), 14..=14);
        assert_eq!(file.statement_lines(15), 15..=15);
    }

    #[test]
    fn lines_without_code_have_nothing_to_underline() {
        assert_eq!(underlined(15), "");
        assert_eq!(underlined(99), "");
    }

    #[test]
    fn a_file_that_is_no_python_still_has_lines() {
        let file = SourceFile::new("train.py".to_owned(), "print 'old'\n\n# note\n  x = (\n".to_owned());
        let text = |line| file.expression_at(line).and_then(|span| file.text().get(span.start..span.end));
        assert_eq!((text(1), text(2), text(3), text(4)), (Some("print 'old'"), None, None, Some("x = (")));
        assert!(file.can_hold(1, "anything"));
    }

    #[test]
    fn the_function_must_be_the_recorded_one() {
        let file = SourceFile::new("train.py".to_owned(), PROGRAM.to_owned());
        assert!(file.can_hold(13, "train") && !file.can_hold(13, "forward"));
        assert!(file.can_hold(13, "torch_dynamo_resume_in_step_at_4"));
        assert!(file.can_hold(20, "<module>") && !file.can_hold(13, "<module>"));
        assert!(file.can_hold(18, "<listcomp>"));
        assert!(!file.can_hold(15, "train") && !file.can_hold(21, "<module>"));
    }

    #[test]
    fn a_loop_tells_how_it_clears_gradients() {
        let file = SourceFile::new("train.py".to_owned(), PROGRAM.to_owned());
        let zero_grad = |line| file.loop_around(line, line).map(|found| found.zero_grad);
        assert_eq!(zero_grad(4), Some(ZeroGrad::FillsWithZeros));
        assert_eq!(zero_grad(13), Some(ZeroGrad::FillsWithZeros));
        // By the function that it calls.
        assert_eq!(zero_grad(20), Some(ZeroGrad::FillsWithZeros));
        assert_eq!(zero_grad(3), None);
        assert_eq!(file.loop_around(13, 18), None);
        assert_eq!(file.loop_around(13, 14).map(|found| file.place(found.header.start)), Some((4, 5)));
    }

    #[test]
    fn a_byte_order_mark_is_no_part_of_the_first_line() {
        let text = "\u{feff}out = model(x)  # memlint: ignore[oom] why\ny = 1\n";
        let file = SourceFile::new("a.py".to_owned(), text.to_owned());
        assert_eq!((file.start(), file.line(1), file.line(2)), (3, Some(3..45), Some(46..51)));
        assert_eq!((file.place(0), file.place(3), file.place(9)), ((1, 1), (1, 1), (1, 7)));
        assert_eq!(file.expression_at(1), Some(Span { start: 9, end: 17 }));
        assert!(file.tree().is_some_and(|tree| tree.len() == 2) && file.can_hold(1, "<module>"));
        assert_eq!(file.ignores().len(), 1);
    }

    #[test]
    fn places_count_characters_from_one() {
        let file = SourceFile::new("a.py".to_owned(), "é = 1\r\nx = é + y".to_owned());
        assert_eq!(file.place(3), (1, 3));
        assert_eq!(file.line(1), Some(0..6));
        assert_eq!(file.place(14), (2, 6));
        assert_eq!(file.line(3), None);
    }
}
