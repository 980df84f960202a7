//! Lines of source that are longer than the terminal is wide, clipped so that what is marked on them stays.
//!
//! In: a text, the marked parts, each on a line of its own, and the columns there are. Out: the text with the same lines, none
//! longer than that, and where the parts are in it. A part too far right for its label to stand below moves left. Where a line that is
//! drawn does not fit, all that are drawn lose the indentation that they share, and only then what they say.

use std::ops::Range;

use textwrap::core::display_width;

/// What stands for what was clipped.
const CLIPPED: &str = "...";
/// Columns of the line that are kept before a part that moves left.
const KEPT: usize = 4;
/// miette draws a tabulator as so many blanks.
const TAB: usize = 4;
/// A line is not clipped to less than that, however narrow the terminal.
const LEAST: usize = 24;

/// A text whose lines fit.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Clipped {
    pub(super) text: String,
    /// The marked parts, in their order.
    pub(super) parts: Vec<ClippedPart>,
}

/// A marked part of a clipped text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ClippedPart {
    /// Where it is, in bytes of the text.
    pub(super) at: Range<usize>,
    /// Columns before its middle, where the arrow of its label stands.
    pub(super) middle: usize,
    /// By how many bytes its line moved left.
    pub(super) moved: usize,
}

/// Clips the lines of a text to a number of columns, of which labels take `label` on the right of what they belong to. `None`
/// where a part is not on one line.
pub(super) fn clip(text: &str, parts: &[Range<usize>], columns: usize, label: usize) -> Option<Clipped> {
    let columns = columns.max(LEAST);
    let reach = columns.saturating_sub(label).max(KEPT);
    let lines = lines(text, parts)?;
    let fits =
        |line: &MarkedLine<'_>| window(line.text, line.part.as_ref(), columns, reach) == (0..line.text.len());
    let first = lines.iter().position(|line| line.of.is_some()).unwrap_or(0).saturating_sub(1);
    let last = lines.iter().rposition(|line| line.of.is_some()).unwrap_or(0) + 1;
    let drawn = || lines.iter().take(last + 1).skip(first);
    let indent = if drawn().all(fits) { 0 } else { shared_indent(drawn().map(|line| line.text)) };
    let mut clipped = String::with_capacity(text.len());
    let mut found: Vec<Option<ClippedPart>> = vec![None; parts.len()];
    for (number, line) in lines.iter().enumerate() {
        let cut = if (first..=last).contains(&number) { indent } else { 0 };
        let part = line.cut(cut).clipped(&mut clipped, cut, (columns, reach));
        if let Some((slot, part)) = line.of.and_then(|at| found.get_mut(at)).zip(part) {
            *slot = Some(part);
        }
        clipped.push_str(line.end);
    }
    Some(Clipped { text: clipped, parts: found.into_iter().collect::<Option<_>>()? })
}

/// A line with the part that is marked on it.
#[derive(Clone)]
struct MarkedLine<'a> {
    text: &'a str,
    /// What ends it.
    end: &'a str,
    /// Which part is on it, and where.
    of: Option<usize>,
    part: Option<Range<usize>>,
}

impl<'a> MarkedLine<'a> {
    /// The same without its first bytes, which are blank.
    fn cut(&self, bytes: usize) -> MarkedLine<'a> {
        let part =
            self.part.as_ref().map(|part| part.start.saturating_sub(bytes)..part.end.saturating_sub(bytes));
        MarkedLine { text: self.text.get(bytes..).unwrap_or_default(), part, ..self.clone() }
    }

    /// Writes what is shown of a line that lost `cut` bytes already, and tells where its part is then.
    fn clipped(&self, out: &mut String, cut: usize, (columns, reach): (usize, usize)) -> Option<ClippedPart> {
        let window = window(self.text, self.part.as_ref(), columns, reach);
        let before = out.len();
        let dots = if window.start > 0 { CLIPPED } else { "" };
        out.push_str(dots);
        out.push_str(self.text.get(window.clone()).unwrap_or_default());
        if window.end < self.text.len() {
            out.push_str(CLIPPED);
        }
        let part = self.part.as_ref()?;
        let offset = |byte: usize| byte.clamp(window.start, window.end) - window.start + dots.len();
        let shown = offset(part.start)..offset(part.end);
        let columns = |range: Range<usize>| {
            width(out.get(before..).and_then(|line| line.get(range)).unwrap_or_default())
        };
        Some(ClippedPart {
            middle: columns(0..shown.start) + columns(shown.clone()) / 2,
            moved: cut + window.start.saturating_sub(dots.len()),
            at: before + shown.start..before + shown.end,
        })
    }
}

/// The lines of a text, each with the first part that lies on it. `None` where a part lies on none.
fn lines<'a>(text: &'a str, parts: &[Range<usize>]) -> Option<Vec<MarkedLine<'a>>> {
    let mut start = 0;
    let line = |whole: &'a str| {
        let text = whole.trim_end_matches(['\n', '\r']);
        let range = start..start + text.len();
        start += whole.len();
        let of = parts.iter().position(|part| range.start <= part.start && part.end <= range.end);
        let part =
            of.and_then(|at| parts.get(at)).map(|part| part.start - range.start..part.end - range.start);
        MarkedLine { text, end: whole.get(text.len()..).unwrap_or_default(), of, part }
    };
    let lines: Vec<MarkedLine<'_>> = text.split_inclusive('\n').map(line).collect();
    lines.iter().any(|line| line.of.is_some()).then_some(lines)
}

/// The bytes of the blanks with which all lines begin that have anything else.
fn shared_indent<'a>(lines: impl Iterator<Item = &'a str>) -> usize {
    let indents = lines.filter(|line| !line.trim().is_empty()).map(|line| {
        let blanks = line.len() - line.trim_start_matches([' ', '\t']).len();
        line.get(..blanks).unwrap_or_default()
    });
    let shared = |one: &'a str, other: &'a str| {
        let alike = one.bytes().zip(other.bytes()).take_while(|(one, other)| one == other).count();
        one.get(..alike).unwrap_or_default()
    };
    indents.reduce(shared).map_or(0, str::len)
}

/// The bytes of a line that are shown: all, if they fit and the middle of the part is within `reach`.
fn window(line: &str, part: Option<&Range<usize>>, columns: usize, reach: usize) -> Range<usize> {
    let room = columns - CLIPPED.len();
    let fits = width(line) <= columns;
    let part = part.cloned().unwrap_or(0..0);
    let before = width(line.get(..part.start).unwrap_or_default());
    let length = width(line.get(part.clone()).unwrap_or_default()).min(columns.saturating_sub(before));
    let is_near = part.is_empty() || (before + CLIPPED.len() < room && before + length / 2 <= reach);
    if is_near {
        return 0..if fits { line.len() } else { end_after(line, 0, room) };
    }
    let skip = before.saturating_sub(KEPT);
    let start = end_after(line, 0, skip);
    let rest = line.get(start..).unwrap_or_default();
    let fits = width(rest) + CLIPPED.len() <= columns;
    start..if fits { line.len() } else { end_after(line, start, room - CLIPPED.len()) }
}

/// Where the characters from a byte on have filled a number of columns.
fn end_after(line: &str, start: usize, columns: usize) -> usize {
    let mut filled = 0;
    for (at, letter) in line.char_indices().filter(|(at, _)| *at >= start) {
        filled += letter_width(letter);
        if filled > columns {
            return at;
        }
    }
    line.len()
}

fn width(text: &str) -> usize {
    text.chars().map(letter_width).sum()
}

fn letter_width(letter: char) -> usize {
    if letter == '\t' { TAB } else { display_width(letter.encode_utf8(&mut [0; 4])) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The clipped line that holds a word, and what the part is then.
    fn clipped(line: &str, word: &str) -> (String, String) {
        let text = format!("before\n{line}\nafter\n");
        let start = text.find(word).unwrap();
        let marked = start..start + word.len();
        let Clipped { text, parts } = clip(&text, std::slice::from_ref(&marked), 40, 20).unwrap();
        let [part] = parts.as_slice() else { panic!("{parts:?}") };
        assert!(text.starts_with("before\n") && text.ends_with("\nafter\n"));
        let shown = text.lines().nth(1).unwrap();
        assert!(width(shown) <= 40, "{shown}");
        assert_eq!(part.at.start - "before\n".len() + part.moved, line.find(word).unwrap(), "{shown}");
        (shown.to_owned(), text[part.at.clone()].to_owned())
    }

    #[test]
    fn what_fits_stays_as_it_is() {
        let line = "    x = f(a)  # as long as the terminal";
        assert_eq!(clipped(line, "f(a)"), (line.to_owned(), "f(a)".to_owned()));
    }

    #[test]
    fn indentation_goes_before_anything_else() {
        let text = "        for a in b:\n            y = f(a) + g(b) + h(c) + 1\n\n        return y\n";
        let start = text.find("f(a)").unwrap();
        let part = start..start + 4;
        let Clipped { text, parts } = clip(text, std::slice::from_ref(&part), 34, 20).unwrap();
        assert_eq!(
            text, "for a in b:\n    y = f(a) + g(b) + h(c) + 1\n\n        return y\n",
            "but not below"
        );
        assert_eq!((&text[parts[0].at.clone()], parts[0].moved), ("f(a)", 8));
    }

    #[test]
    fn a_long_line_is_clipped_around_the_part() {
        let long = format!("    x = f(a){}", " + g(b)".repeat(10));
        assert_eq!(clipped(&long, "f(a)").0, "    x = f(a) + g(b) + g(b) + g(b) + g...");
        let far = format!("    {}call(model, batch){}", "g(b) + ".repeat(10), " + g(b)".repeat(10));
        let (shown, part) = clipped(&far, "call(model, batch)");
        assert_eq!(
            (shown.as_str(), part.as_str()),
            ("...) + call(model, batch) + g(b) + g(...", "call(model, batch)")
        );
        let wide = "漢".repeat(60);
        assert!(clipped(&format!("{wide} = f(a)"), "f(a)").0.ends_with("f(a)"));
    }

    #[test]
    fn a_part_that_is_longer_than_the_terminal_is_clipped_itself() {
        let call = format!("call({})", "argument, ".repeat(20));
        let (shown, part) = clipped(&format!("    {call}"), &call);
        assert!(shown.ends_with("...") && shown.contains(&part) && part.len() > 20, "{shown}: {part}");
    }

    #[test]
    fn a_part_at_the_right_margin_moves_left_for_its_label() {
        let line = format!("{}f(a)", " ".repeat(30));
        assert_eq!(clipped(&line, "f(a)"), ("...    f(a)".to_owned(), "f(a)".to_owned()));
    }
}
