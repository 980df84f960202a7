//! The user's source: from recorded paths to local files, their lines, and the expression that a person would
//! underline.
//!
//! In: the folders to look in, renamed path prefixes, and (file, line, function) as recorded. Out: the local file, if
//! one fits. Always: nothing is walked, only paths that end like the recorded one are tried; a file that cannot be the
//! recorded one (too few lines, another function at that line) is not taken; a missing source is a state, not an error.

mod checkout;
mod clearing;
mod depth;
mod ignore;
mod search;
mod syntax;

pub use checkout::Checkout;
pub use clearing::ZeroGrad;
pub use ignore::{Asked, EXAMPLE, IgnoreComment, Malformed};
pub use search::{PathMap, SourceMap};
pub use syntax::{Loop, Span};

use std::cmp::Reverse;
use std::ops::{Range, RangeInclusive};
use std::sync::OnceLock;

use syntax::Syntax;

use crate::finding::{Excuse, Finding, Location, Measure, Severity, Value};
use crate::unit::Confidence;

/// A local file.
#[derive(Debug)]
pub struct SourceFile {
    /// How messages name it: as found, relative to where memlint was started.
    name: String,
    text: String,
    /// The byte at which each line begins.
    starts: Vec<usize>,
    syntax: OnceLock<Option<Syntax>>,
    ignores: OnceLock<Vec<IgnoreComment>>,
}

impl SourceFile {
    /// A file of this content.
    pub fn new(name: String, text: String) -> SourceFile {
        let after_breaks = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n').map(|(at, _)| at + 1);
        let starts = std::iter::once(0).chain(after_breaks.filter(|at| *at < text.len())).collect();
        SourceFile { name, text, starts, syntax: OnceLock::new(), ignores: OnceLock::new() }
    }

    /// How messages name it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// All of it.
    pub fn text(&self) -> &str {
        &self.text
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
            let holds_code = |line| !text(line).is_empty() && !text(line).starts_with('#');
            ignore::read(self.comments().into_iter(), holds_code, |line| text(line).is_empty(), last)
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

    /// The line of the first call of a function or method of this bare name.
    pub fn line_of_call(&self, name: &str) -> Option<u32> {
        self.syntax()?.call_of(name).map(|span| self.place(span.start).0)
    }

    /// The innermost loop around all of some lines (a loop's header belongs to it); `None` where there is none or the
    /// file is no valid Python.
    pub fn loop_around(&self, first: u32, last: u32) -> Option<Loop> {
        self.syntax()?.loop_around(&self.line(first)?, &self.line(last)?)
    }

    /// Whether the recorded line can be in this file: there is code at it, in the function that was recorded.
    fn can_hold(&self, line: u32, function: &str) -> bool {
        let Some(whole) = self.line(line) else { return false };
        let Some(syntax) = self.syntax() else { return trimmed(&self.text, whole).is_some() };
        // Comprehensions, lambdas and what torch.compile makes of a function say nothing about the function around.
        let made = function.is_empty() || function.starts_with('<') || function.starts_with("torch_dynamo_");
        let told = function == "<module>" || !made;
        syntax.expression_at(&whole).is_some()
            && (!told || syntax.scope_at(&whole).is_none_or(|name| name == function))
    }

    fn syntax(&self) -> Option<&Syntax> {
        self.syntax.get_or_init(|| Syntax::parse(&self.text)).as_ref()
    }
}

/// Reads the source for findings that need it: moves those that seek a call to its line, and takes back the level of
/// those that the source excuses. Without the source they stay as they are.
pub fn settle(findings: &mut [Finding], sources: &SourceMap) {
    for finding in &mut *findings {
        move_to_call(finding, sources);
        weigh_excuse(finding, sources);
    }
    // Stable: what the engine put in order stays so among equals.
    findings.sort_by_key(|finding| Reverse(finding.severity));
}

fn move_to_call(finding: &mut Finding, sources: &SourceMap) {
    let Some(seek) = finding.seek else { return };
    let Some(location) = &mut finding.location else {
        if let Some((file, line)) = sources.sole_caller(seek.call) {
            finding.location = Some(Location { file, line, function: String::new() });
            seek.label.clone_into(&mut finding.label);
        }
        return;
    };
    let Some(line) = sources.line_of_call(&location.file, seek.call) else { return };
    location.line = line;
    location.function.clear();
    seek.label.clone_into(&mut finding.label);
    finding.stack.clear();
}

fn weigh_excuse(finding: &mut Finding, sources: &SourceMap) {
    let (Some(Excuse::ZeroesInPlace), Some(location)) = (finding.excuse, &finding.location) else { return };
    let source = sources.find(&location.file, location.line, &location.function);
    if source.is_some_and(|file| file.zeroes_gradients_around(location.line)) {
        finding.severity = Severity::Info;
        finding.confidence = Confidence::Low;
        finding.evidence.push(Measure {
            name: "zeroes-in-place",
            value: Value::Text("source".to_owned()),
            text: "this loop's source fills gradients with zeros in place, which no recording shows"
                .to_owned(),
        });
    }
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
        assert_eq!(zero_grad(20), Some(ZeroGrad::Absent));
        assert_eq!(zero_grad(3), None);
        assert_eq!(file.loop_around(13, 18), None);
        assert_eq!(file.loop_around(13, 14).map(|found| file.place(found.header.start)), Some((4, 5)));
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
