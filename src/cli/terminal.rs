//! What the terminal can show, and how errors look on it.

use std::fmt::Write as _;
use std::io::{IsTerminal, Write};

use miette::{Diagnostic, GraphicalReportHandler, GraphicalTheme, ThemeCharacters, ThemeStyles};

use super::arguments::Color;
use crate::report::{Detail, Look};
use crate::unit::{shown_line, shown_page};

/// Lines longer than this are hard to read, however wide the terminal.
const MOST_WIDTH: usize = 120;
/// Widths that somebody may mean who sets `COLUMNS`: below, figures and code have no room; above, it is none of a screen.
const COLUMNS: std::ops::RangeInclusive<usize> = 40..=1000;

/// How to draw on standard output.
pub(super) fn look(color: Color, detail: Detail) -> Look {
    let terminal = std::io::stdout().is_terminal();
    Look {
        width: width(terminal),
        unicode: terminal && supports_unicode::on(supports_unicode::Stream::Stdout),
        color: match color {
            Color::Always => true,
            Color::Never => false,
            Color::Auto => supports_color::on(supports_color::Stream::Stdout).is_some(),
        },
        detail,
    }
}

/// What `COLUMNS` says, where that is set to a width that text can have; else the terminal's, or that of a page without one.
fn width(terminal: bool) -> usize {
    let asked = std::env::var("COLUMNS").ok().and_then(|columns| columns.trim().parse().ok());
    let size = || terminal_size::terminal_size().filter(|_| terminal);
    asked.filter(|columns| COLUMNS.contains(columns)).unwrap_or_else(|| {
        size().map_or(Look::PLAIN.width, |(width, _)| usize::from(width.0).min(MOST_WIDTH))
    })
}

/// Writes what is wrong with the command line to standard error: the names in it may be those of files that a stranger
/// made.
pub(super) fn show_usage(usage: &clap::Error) {
    let colored = is_colored(Color::Auto);
    let page = if colored { usage.render().ansi().to_string() } else { usage.render().to_string() };
    show(&page, colored);
}

/// Whether to colour what goes to standard error.
fn is_colored(color: Color) -> bool {
    match color {
        Color::Always => true,
        Color::Never => false,
        Color::Auto => supports_color::on(supports_color::Stream::Stderr).is_some(),
    }
}

/// Where even standard error is gone, there is nobody left to tell.
fn show(page: &str, colored: bool) {
    let _ = std::io::stderr().lock().write_all(shown_page(page, colored).as_bytes());
}

/// Writes a line to standard error that is no error: what else was done, or left out.
pub(super) fn say(line: &str) {
    show(&format!("{line}\n"), false);
}

/// Writes an error with its help to standard error.
pub(super) fn show_error(error: &dyn Diagnostic, color: Color) {
    let colored = is_colored(color);
    let terminal = std::io::stderr().is_terminal();
    let unicode = terminal && supports_unicode::on(supports_unicode::Stream::Stderr);
    let ascii = ThemeCharacters { vbar_break: '|', underbar: '^', ltop: '-', ..ThemeCharacters::ascii() };
    let characters = if unicode { ThemeCharacters::unicode() } else { ascii };
    let (bar, end) = (characters.vbar, characters.lbot);
    let corner = format!("{}{}[", characters.ltop, characters.hbar);
    let theme = GraphicalTheme {
        characters: ThemeCharacters { error: "error:".to_owned(), ..characters },
        styles: ThemeStyles::none(),
    };
    let mut drawn = String::new();
    let handler = GraphicalReportHandler::new_themed(theme)
        .with_width(width(terminal))
        .with_links(false)
        .with_break_words(false)
        .with_word_separator(textwrap::WordSeparator::AsciiSpace)
        .with_word_splitter(textwrap::WordSplitter::NoHyphenation)
        .without_cause_chain();
    if handler.render_report(&mut drawn, error).is_err() {
        drawn = format!("error: {error}");
    }
    let mut out = String::new();
    let mut in_file = false;
    for line in drawn.lines().map(shown_line) {
        in_file |= line.trim_start().starts_with(&corner);
        // miette leaves room for a frame; errors of the arguments stand at the margin, and these beside them. Only the lines
        // of a file keep theirs.
        let line = match line.strip_prefix("  ") {
            Some(rest) if !in_file => rest.replacen(bar, " ", usize::from(rest.starts_with(bar))),
            _ => line,
        };
        in_file &= !line.trim_start().starts_with(end);
        let _ = match (colored, line.split_once(' ')) {
            (true, Some(("error:", rest))) => writeln!(out, "\x1b[1;31merror:\x1b[0m {rest}"),
            (true, Some(("help:", rest))) => writeln!(out, "\x1b[1;36mhelp:\x1b[0m {rest}"),
            _ => writeln!(out, "{line}"),
        };
    }
    show(&out, colored);
}
