//! What the terminal can show, and how errors look on it.

use std::io::{IsTerminal, Write};

use miette::{Diagnostic, GraphicalReportHandler, GraphicalTheme, ThemeCharacters, ThemeStyles};

use super::arguments::Color;
use crate::report::{Detail, Look};

/// Columns where there is no terminal to ask.
const WIDTH_OF_PIPES: usize = 80;
/// Lines longer than this are hard to read, however wide the terminal.
const MOST_WIDTH: usize = 120;

/// How to draw on standard output.
pub(super) fn look(color: Color, detail: Detail) -> Look {
    let terminal = std::io::stdout().is_terminal();
    Look {
        width: if terminal { width() } else { WIDTH_OF_PIPES },
        unicode: terminal && supports_unicode::on(supports_unicode::Stream::Stdout),
        color: match color {
            Color::Always => true,
            Color::Never => false,
            Color::Auto => supports_color::on(supports_color::Stream::Stdout).is_some(),
        },
        detail,
    }
}

fn width() -> usize {
    terminal_size::terminal_size().map_or(WIDTH_OF_PIPES, |(width, _)| usize::from(width.0).min(MOST_WIDTH))
}

/// Writes an error with its help to standard error.
pub(super) fn show_error(error: &dyn Diagnostic, color: Color) {
    let colored = match color {
        Color::Always => true,
        Color::Never => false,
        Color::Auto => supports_color::on(supports_color::Stream::Stderr).is_some(),
    };
    let terminal = std::io::stderr().is_terminal();
    let unicode = terminal && supports_unicode::on(supports_unicode::Stream::Stderr);
    let characters = if unicode { ThemeCharacters::unicode() } else { ThemeCharacters::ascii() };
    let theme = GraphicalTheme {
        characters: ThemeCharacters { error: "error:".to_owned(), ..characters },
        styles: if colored { ThemeStyles::ansi() } else { ThemeStyles::none() },
    };
    let mut drawn = String::new();
    let handler = GraphicalReportHandler::new_themed(theme)
        .with_width(if terminal { width() } else { WIDTH_OF_PIPES })
        .with_links(false)
        .without_cause_chain();
    if handler.render_report(&mut drawn, error).is_err() {
        drawn = format!("error: {error}\n");
    }
    // Where even standard error is gone, there is nobody left to tell.
    let _ = std::io::stderr().write_all(drawn.as_bytes());
}
