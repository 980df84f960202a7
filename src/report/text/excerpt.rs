//! The lines of source that a finding speaks of, the expressions underlined and labelled.

use std::borrow::Cow;
use std::fmt;

use miette::{Diagnostic, GraphicalReportHandler, GraphicalTheme, LabeledSpan, SourceCode, SpanContents};
use miette::{MietteError, MietteSpanContents, SourceSpan, ThemeCharacters, ThemeStyles};

use super::clip::{Clipped, ClippedPart, clip};
use crate::report::look::Look;
use crate::source::{SourceFile, Span};
use crate::unit::{shown_line, shown_name, shown_source};

/// Columns of the arrow between a part and its label.
const ARROW: usize = 4;
/// Columns that a label gets at least.
const LABEL: usize = 24;

/// A part of a line and what is said of it.
pub(super) struct Underline<'a> {
    pub(super) line: u32,
    pub(super) message: &'a str,
}

/// Draws the marked lines of a file, the first mark being the primary one. `None` where its line cannot be marked.
pub(super) fn draw(file: &SourceFile, marks: &[Underline<'_>], look: &Look) -> Option<String> {
    // A byte order mark is nothing to be shown.
    let code = file.text().get(file.start()..).unwrap_or_default();
    let shown = shown_source(code);
    // A character that is replaced has other bytes.
    let place = |offset: usize| match (&shown, offset.saturating_sub(file.start())) {
        (Cow::Borrowed(_), offset) => offset,
        (Cow::Owned(_), offset) => shown_source(code.get(..offset).unwrap_or_default()).len(),
    };
    let mut spans = Vec::new();
    for mark in marks {
        let span = on_one_line(file, mark.line)?;
        spans.push(place(span.start)..place(span.end));
    }
    // The number of the last line, which may be one below the last mark; a blank on each side of it, the frame, a blank.
    let gutter = marks.iter().map(|mark| mark.line + 1).max()?.to_string().len() + 4;
    let Clipped { text, parts } = clip(&shown, &spans, look.width.saturating_sub(gutter), ARROW + LABEL)?;
    let label = |(mark, part): (&Underline<'_>, &ClippedPart)| {
        let room = look.width.saturating_sub(gutter + part.middle + ARROW).max(LABEL);
        let message = textwrap::fill(&shown_line(mark.message), room);
        let message = Some(message).filter(|message| !message.is_empty());
        (message, SourceSpan::from(part.at.clone()))
    };
    let mut labels: Vec<LabeledSpan> = Vec::new();
    for (message, range) in marks.iter().zip(&parts).map(label) {
        labels.push(if labels.is_empty() {
            LabeledSpan::new_primary_with_span(message, range)
        } else {
            LabeledSpan::new_with_span(message, range)
        });
    }
    let excerpt = DrawnExcerpt { file: Named { name: file.name(), text, parts }, labels };
    let mut drawn = String::new();
    GraphicalReportHandler::new_themed(theme(look))
        .with_width(look.width)
        .with_links(false)
        .without_syntax_highlighting()
        .with_context_lines(1)
        .render_report(&mut drawn, &excerpt)
        .ok()?;
    // The headline is drawn elsewhere; what miette makes of its absence is the first line.
    drawn.split_once('\n').map(|(_, snippet)| snippet.to_owned())
}

/// The expression at a line, as far as it stands on that line.
pub(super) fn on_one_line(file: &SourceFile, line: u32) -> Option<Span> {
    let whole = file.line(line)?;
    let span = file.expression_at(line)?;
    let code = file.text().get(whole.clone())?;
    let blank = code.len() - code.trim_start().len();
    let clipped = Span {
        start: span.start.max(whole.start + blank),
        end: span.end.min(whole.start + code.trim_end().len()),
    };
    (clipped.start < clipped.end).then_some(clipped)
}

fn theme(look: &Look) -> GraphicalTheme {
    let ascii = ThemeCharacters { vbar_break: '|', underbar: '^', ltop: '-', ..ThemeCharacters::ascii() };
    GraphicalTheme {
        characters: if look.unicode { ThemeCharacters::unicode() } else { ascii },
        styles: if look.color { ThemeStyles::ansi() } else { ThemeStyles::none() },
    }
}

/// What miette draws.
#[derive(Debug)]
struct DrawnExcerpt<'a> {
    file: Named<'a>,
    labels: Vec<LabeledSpan>,
}

impl fmt::Display for DrawnExcerpt<'_> {
    fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
        Ok(())
    }
}

impl std::error::Error for DrawnExcerpt<'_> {}

impl Diagnostic for DrawnExcerpt<'_> {
    fn source_code(&self) -> Option<&dyn SourceCode> {
        Some(&self.file)
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        Some(Box::new(self.labels.iter().cloned()))
    }
}

/// A file's text as it is shown, with its name.
#[derive(Debug)]
struct Named<'a> {
    name: &'a str,
    text: String,
    parts: Vec<ClippedPart>,
}

impl SourceCode for Named<'_> {
    fn read_span<'s>(
        &'s self,
        span: &SourceSpan,
        before: usize,
        after: usize,
    ) -> Result<Box<dyn SpanContents<'s> + 's>, MietteError> {
        let contents = self.text.read_span(span, before, after)?;
        // Asked for nothing around a part, miette names its column: that of the file.
        let is_part = |part: &&ClippedPart| (before, after) == (0, 0) && part.at.start == span.offset();
        let moved = self.parts.iter().find(is_part).map_or(0, |part| part.moved);
        Ok(Box::new(MietteSpanContents::new_named(
            shown_name(self.name),
            contents.data(),
            *contents.span(),
            contents.line(),
            contents.column() + moved,
            contents.line_count(),
        )))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::look::Detail;

    #[test]
    fn a_byte_order_mark_is_not_drawn_and_moves_no_line_below() {
        let look = Look { width: 80, unicode: false, color: false, detail: Detail::Normal };
        let drawn = |text: &str| {
            let file = SourceFile::new("a.py".to_owned(), text.to_owned());
            draw(
                &file,
                &[Underline { line: 1, message: "here" }, Underline { line: 2, message: "there" }],
                &look,
            )
            .unwrap()
        };
        let text = "out = model(x)\nshow(out)\n";
        assert_eq!(drawn(&format!("\u{feff}{text}")), drawn(text));
    }
}
