//! How a report is drawn: width, colours, characters; and the few shapes that all text is made of.

use std::fmt::Write;

use textwrap::core::display_width;

use crate::finding::Severity;
use crate::unit::shown_line;

/// The column at which the text of an attribute begins.
const INDENT: usize = 14;

/// What stands for folders that are left out.
const CUT: &str = "...";

/// What the terminal can show, and how much is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Look {
    /// Columns.
    pub width: usize,
    /// Whether frames and bars may be drawn with Unicode characters.
    pub unicode: bool,
    /// Whether to colour.
    pub color: bool,
    /// How much to say.
    pub detail: Detail,
}

/// How much a report says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Detail {
    /// Findings only.
    Quiet,
    /// Findings, and a closing summary.
    Normal,
    /// Notes, stacks and skipped rules in full.
    Verbose,
}

/// What a piece of text is, to be coloured accordingly.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ink {
    Severity(Severity),
    Strong,
    Faint,
}

/// Wraps at blanks alone: names of rules and paths stay whole where they fit.
pub(super) fn at_blanks<'a>(width: usize) -> textwrap::Options<'a> {
    textwrap::Options::new(width)
        .word_separator(textwrap::WordSeparator::AsciiSpace)
        .word_splitter(textwrap::WordSplitter::NoHyphenation)
}

impl Look {
    /// Where there is no terminal to ask: 80 columns, plain characters, no colour.
    pub const PLAIN: Look = Look { width: 80, unicode: false, color: false, detail: Detail::Normal };

    /// Colours a piece of text, where there are colours. The text holds no other command to the terminal afterwards.
    pub(super) fn paint(&self, ink: Ink, text: &str) -> String {
        let text = shown_line(text);
        if !self.color {
            return text;
        }
        let code = match ink {
            Ink::Severity(Severity::Error) => "1;31",
            Ink::Severity(Severity::Warning) => "1;33",
            Ink::Severity(Severity::Info) => "1;36",
            Ink::Strong => "1",
            Ink::Faint => "2",
        };
        format!("\x1b[{code}m{text}\x1b[0m")
    }

    /// Wraps text at words, but not between a number and its unit; lines after the first are indented by `indent`
    /// columns.
    pub(super) fn wrap(&self, text: &str, indent: usize) -> String {
        let hanging = " ".repeat(indent);
        let options = at_blanks(self.width.max(indent + 20)).subsequent_indent(&hanging).break_words(false);
        textwrap::fill(&join_units(text), options).replace(JOINED, " ")
    }

    /// `  name        text`, wrapped; lines of the text that begin with a blank are code and stay as they are, but
    /// for characters that would command the terminal.
    pub(super) fn attribute(&self, out: &mut String, name: &str, text: &str) {
        let mut head = format!(
            "  {}{}",
            self.paint(Ink::Strong, name),
            " ".repeat((INDENT - 2).saturating_sub(name.len()))
        );
        for line in text.lines().map(shown_line) {
            if line.starts_with(' ') {
                let _ = writeln!(out, "{head}{line}");
            } else {
                let _ = writeln!(out, "{}", self.wrap(&format!("{head}{line}"), INDENT));
            }
            head = " ".repeat(INDENT);
        }
    }

    /// `  name        lines`, each line as it is.
    pub(super) fn listing(&self, out: &mut String, name: &str, lines: &[String]) {
        let mut head = self.head(name);
        for line in lines {
            let _ = writeln!(out, "{head}{line}");
            head = " ".repeat(INDENT);
        }
    }

    /// A row of a listing that ends with a place: without its first folders where it would not fit. `-v` shows all.
    pub(super) fn row(&self, before: &str, place: &str) -> String {
        let room = self.width.saturating_sub(INDENT + before.len());
        if self.detail == Detail::Verbose || display_width(place) <= room {
            return format!("{before}{place}");
        }
        let mut tails =
            place.match_indices(['/', '\\']).filter(|(at, _)| *at > 0).filter_map(|(at, _)| place.get(at..));
        // The file and the line are told in any case, the function where there is room.
        let line =
            tails.clone().next_back().map(|tail| tail.split_once(" in ").map_or(tail, |(line, _)| line));
        let cut = tails.find(|tail| display_width(tail) + CUT.len() <= room).or(line);
        cut.map_or_else(|| format!("{before}{place}"), |cut| format!("{before}{CUT}{cut}"))
    }

    fn head(&self, name: &str) -> String {
        format!("  {}{}", self.paint(Ink::Strong, name), " ".repeat((INDENT - 2).saturating_sub(name.len())))
    }

    /// A bar of `length` columns of which the first `solid` are filled and the others shaded.
    pub(super) fn bar(&self, solid: usize, length: usize) -> String {
        let (filled, shaded) = if self.unicode { ("█", "░") } else { ("#", "-") };
        format!("{}{}", filled.repeat(solid), shaded.repeat(length.saturating_sub(solid)))
    }
}

/// A blank at which no line is broken.
const JOINED: char = '\u{a0}';

/// Ties each number to the unit behind it.
fn join_units(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut words = text.split(' ').peekable();
    while let Some(word) = words.next() {
        out.push_str(word);
        let number = word.ends_with(|letter: char| letter.is_ascii_digit());
        let Some(next) = words.peek() else { break };
        let name = next.trim_end_matches(|letter: char| !letter.is_ascii_alphabetic() && letter != '%');
        let unit = matches!(name, "B" | "KiB" | "MiB" | "GiB" | "TiB" | "PiB" | "%" | "s");
        out.push(if number && unit { JOINED } else { ' ' });
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: Look = Look { width: 40, unicode: false, color: false, detail: Detail::Normal };

    #[test]
    fn attributes_hang_and_keep_code_as_it_is() {
        let mut out = String::new();
        PLAIN.attribute(
            &mut out,
            "help",
            "clear them once in every iteration:\n  optimizer.zero_grad(set_to_none=True)",
        );
        assert_eq!(
            out,
            "  help        clear them once in every\n              iteration:\n                optimizer.zero_grad(set_to_none=True)\n"
        );
    }

    #[test]
    fn numbers_stay_with_their_units() {
        assert_eq!(
            PLAIN.wrap("activations and other things use 12.5 MiB, then", 2),
            "activations and other things use\n  12.5 MiB, then"
        );
    }

    #[test]
    fn colours_are_not_counted_as_columns() {
        let colored = Look { color: true, ..PLAIN };
        let mut out = String::new();
        colored.attribute(&mut out, "impact", "peak twenty-five and more MiB");
        assert_eq!(out, "  \x1b[1mimpact\x1b[0m      peak twenty-five and more\n              MiB\n");
    }

    #[test]
    fn places_that_do_not_fit_lose_their_first_folders() {
        let place = "/home/somebody/project/train.py:7 in fit";
        assert_eq!(PLAIN.row("", place), ".../train.py:7 in fit");
        let narrow = PLAIN.row(&" ".repeat(20), place);
        assert_eq!(narrow.trim_start(), ".../train.py:7", "the file and the line are always told");
        assert_eq!(PLAIN.row("", "a/train.py:7"), "a/train.py:7");
        let verbose = Look { detail: Detail::Verbose, ..PLAIN };
        assert_eq!(verbose.row("", place), place);
    }
}
