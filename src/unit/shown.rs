//! The one place that makes text out of files safe to show: nothing that a recording, a source file or a path holds may
//! command a terminal or the log of a CI service, or hide what stands beside it.
//!
//! In: names, lines, sources, finished pages. Out: the same with a replacement character for whatever is obeyed or hidden
//! instead of read. Always: one table of characters and one of commands for all formats; text that holds none of them stays
//! as it is, and every text keeps its number of characters.
//!
//! Pieces are made safe where they enter a report ([`shown_name`], [`shown_line`], [`shown_source`]): later nobody could tell
//! their line breaks and colours from the report's own. A page for people is made safe once more as a whole ([`shown_page`]):
//! only there is it known where its lines begin.

use std::borrow::Cow;

/// The most characters of a name that are shown; paths on Linux may have 4096, names in a hostile file any number.
const MOST_OF_NAME: usize = 200;
/// Of a name that is too long the beginning, and all the rest from its end, where the file's own name stands.
const HEAD_OF_NAME: usize = 60;
/// What stands for the rest.
const BETWEEN: &str = "...";

/// What stands for a character that is not shown.
const REPLACED: char = char::REPLACEMENT_CHARACTER;

/// Parameters of the colours that a page may have: off, bold, faint, underlined, and the six colours that no background
/// hides. Whatever else `ESC [ ... m` can do (conceal, blink, black) is nothing that memlint writes.
const COLORS: [&str; 10] = ["0", "1", "2", "4", "31", "32", "33", "34", "35", "36"];

/// A name out of a file, safe to print: on one line, of 200 characters at most, and without anything that is obeyed.
pub fn shown_name(name: &str) -> String {
    let length = name.chars().count();
    if length <= MOST_OF_NAME {
        return shown_line(name);
    }
    let tail = MOST_OF_NAME - HEAD_OF_NAME - BETWEEN.len();
    let head: String = name.chars().take(HEAD_OF_NAME).collect();
    let tail: String = name.chars().skip(length - tail).collect();
    shown_line(&format!("{head}{BETWEEN}{tail}"))
}

/// A line of text that may contain names out of a file, with the same replaced, at any length.
pub fn shown_line(line: &str) -> String {
    safe(line, |at| at.one == '\t').into_owned()
}

/// The text of a source file; its lines stay apart.
pub fn shown_source(text: &str) -> Cow<'_, str> {
    safe(text, |at| matches!(at.one, '\t' | '\n') || at.one == '\r' && at.behind.starts_with('\n'))
}

/// A finished page of lines for people, with its own colours where it is `colored`. No line of it begins with what GitHub
/// takes for a command, wherever text was wrapped.
pub fn shown_page(page: &str, colored: bool) -> String {
    let mut shown = String::with_capacity(page.len());
    for line in page.split_inclusive('\n') {
        let (indent, text) = line.split_at(indent(line, colored));
        shown.push_str(&dyed(indent, colored));
        match text.strip_prefix("::") {
            Some(rest) => shown.push_str(&dyed(&format!("{REPLACED}:{rest}"), colored)),
            None => shown.push_str(&dyed(text, colored)),
        }
    }
    shown
}

/// The bytes of blanks and colours with which a line begins: GitHub's runner passes over them, or may.
fn indent(line: &str, colored: bool) -> usize {
    let mut rest = line;
    loop {
        let text = rest.trim_start();
        let own = text.strip_prefix('\x1b').filter(|_| colored).map_or(0, color);
        match text.get(1 + own..).filter(|_| own > 0) {
            Some(behind) => rest = behind,
            None => return line.len() - text.len(),
        }
    }
}

/// A part of a line with its own colours and nothing else that is obeyed.
fn dyed(part: &str, colored: bool) -> String {
    let mut shown = String::with_capacity(part.len());
    for (position, part) in part.split('\x1b').enumerate() {
        let own = if position > 0 && colored { color(part) } else { 0 };
        let (color, text) = part.split_at(own);
        shown.extend((position > 0).then_some(if own > 0 { '\x1b' } else { REPLACED }));
        shown.push_str(color);
        shown.push_str(&safe(text, |at| matches!(at.one, '\t' | '\n')));
    }
    shown
}

/// The bytes of a colour behind its escape; 0 where it is none.
fn color(rest: &str) -> usize {
    let end = rest.find(|one: char| !matches!(one, '[' | ';' | '0'..='9')).unwrap_or(rest.len());
    let (sequence, behind) = rest.split_at(end);
    let known = sequence.strip_prefix('[').filter(|_| behind.starts_with('m'));
    let known = known.filter(|colors| colors.split(';').all(|one| COLORS.contains(&one)));
    known.map_or(0, |_| end + "m".len())
}

/// A character in its place.
struct At<'a> {
    one: char,
    before: &'a str,
    behind: &'a str,
}

/// A text with what is not safe replaced, but for what `keeps`.
fn safe(text: &str, keeps: impl Fn(&At<'_>) -> bool) -> Cow<'_, str> {
    let is_safe = |(start, one): (usize, char)| {
        let (before, rest) = text.split_at(start);
        let at = At { one, before, behind: rest.get(one.len_utf8()..).unwrap_or_default() };
        keeps(&at) || !(is_obeyed(one) || is_hidden(one) || at.begins_command())
    };
    if text.char_indices().all(is_safe) {
        return Cow::Borrowed(text);
    }
    let shown = |at: (usize, char)| if is_safe(at) { at.1 } else { REPLACED };
    Cow::Owned(text.char_indices().map(shown).collect())
}

/// Terminals obey them. The separators of lines and paragraphs end a line for some readers.
fn is_obeyed(one: char) -> bool {
    one.is_control() || matches!(one, '\u{2028}' | '\u{2029}')
}

/// What is not seen, or reorders what is: the characters that Unicode calls default-ignorable (marks of direction, joiners,
/// variation selectors, tags), and those of interlinear annotation.
fn is_hidden(one: char) -> bool {
    matches!(
        one,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}'..='\u{1160}' | '\u{17b4}'..='\u{17b5}'
            | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
            | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}'
            | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}'
    )
}

impl At<'_> {
    /// Whether it is the second sign of `##[error]` (GitHub, Azure), `##vso[...]` (Azure) or `##teamcity[...]`, which these
    /// services look for anywhere in a line.
    fn begins_command(&self) -> bool {
        let word =
            |rest: &str| rest.trim_start_matches(|one: char| one.is_ascii_alphanumeric()).starts_with('[');
        self.one == '#' && self.before.ends_with('#') && word(self.behind)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_cannot_command_a_terminal() {
        assert_eq!(
            shown_name("/home/me/\x1b[2J\x1b[Hno\nfindings\u{9b}8m.py"),
            "/home/me/\u{fffd}[2J\u{fffd}[Hno\u{fffd}findings\u{fffd}8m.py"
        );
        assert_eq!(shown_name("a\u{202e}b\u{2066}c\u{200f}d\x7f"), "a\u{fffd}b\u{fffd}c\u{fffd}d\u{fffd}");
        assert_eq!(shown_name("/home/größe/训练.py"), "/home/größe/训练.py");
    }

    #[test]
    fn what_is_not_seen_is_shown_to_be_there() {
        for hidden in
            ['\u{e0001}', '\u{e0041}', '\u{e007f}', '\u{e01ef}', '\u{fe0f}', '\u{ad}', '\u{3164}', '\u{fffa}']
        {
            assert_eq!(shown_line(&format!("a{hidden}b")), "a\u{fffd}b", "{:x}", u32::from(hidden));
        }
    }

    #[test]
    fn commands_of_services_are_broken_and_headings_are_not() {
        assert_eq!(
            shown_line("x ##[error]y ##vso[task.x] ###[a"),
            "x #\u{fffd}[error]y #\u{fffd}vso[task.x] ##\u{fffd}[a"
        );
        for plain in ["## [a]", "see #12 and ##", "## heading", "#[attribute]", "a::b", "x[::2]"] {
            assert_eq!(shown_line(plain), plain);
        }
    }

    #[test]
    fn no_line_of_a_page_begins_with_a_command() {
        let page = "a\n  ::error::b\n\t::warning x::c\nd ::e\n";
        assert_eq!(shown_page(page, false), "a\n  \u{fffd}:error::b\n\t\u{fffd}:warning x::c\nd ::e\n");
        let colored = "\x1b[1;31merror:\x1b[0m x\n \x1b[2m ::error::y\x1b[0m\n\x1b[8mhidden\x1b[0m\n";
        let kept = "\x1b[1;31merror:\x1b[0m x\n \x1b[2m \u{fffd}:error::y\x1b[0m\n\u{fffd}[8mhidden\x1b[0m\n";
        assert_eq!(shown_page(colored, true), kept);
        assert!(!shown_page(colored, false).contains('\x1b'));
        assert_eq!(shown_page("\u{a0}::error::x", false), "\u{a0}\u{fffd}:error::x", "any blank");
    }

    #[test]
    fn sources_keep_their_lines_and_places() {
        assert!(matches!(shown_source("a = 1\r\nb\t= x[:, ::2]\n"), Cow::Borrowed(_)));
        assert_eq!(shown_source("a\r\n\x1b[8m\rb\u{202e}\n"), "a\r\n\u{fffd}[8m\u{fffd}b\u{fffd}\n");
    }

    #[test]
    fn long_names_keep_their_ends() {
        let fits = "é".repeat(200);
        assert_eq!(shown_name(&fits), fits);
        let long = format!("/home/{}/train.py", "é".repeat(5_000));
        let shown = shown_name(&long);
        assert_eq!(shown.chars().count(), 200);
        assert!(shown.starts_with("/home/é") && shown.contains("é...é") && shown.ends_with("é/train.py"));
        assert_eq!(shown_line(&long), long);
    }
}
