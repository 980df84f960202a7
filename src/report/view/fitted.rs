//! Text that has to fit into a line: what matters most is kept, and a path loses its beginning.

use textwrap::core::display_width;

/// A path, or what begins with one, in so many columns: where it is too long it loses its beginning, up to a separator where
/// one is in reach. What tells paths apart stands at their end.
pub(super) fn from_the_end(text: &str, columns: usize, dots: &str) -> String {
    if display_width(text) <= columns {
        return text.to_owned();
    }
    let room = columns.saturating_sub(display_width(dots));
    let rests = || text.char_indices().filter_map(|(at, _)| text.get(at..));
    let fitting = || rests().filter(|rest| display_width(rest) <= room);
    let from_a_separator = fitting().find(|rest| rest.starts_with(['/', '\\']));
    let rest = from_a_separator.or_else(|| fitting().next()).unwrap_or_default();
    format!("{dots}{rest}")
}

/// Where a finding is, its rule and what it costs.
#[derive(Debug, Clone, Copy)]
pub(super) struct Consequence<'a> {
    /// `train.py:34 in observe`.
    pub(super) place: &'a str,
    /// `train.py:34`.
    pub(super) line: &'a str,
    pub(super) rule: &'a str,
    /// What it costs, the saving first.
    pub(super) impact: &'a str,
}

impl Consequence<'_> {
    /// In so many columns. The saving goes last: before it go the rest of what it costs, the function, the rule, and the beginning of the
    /// path.
    pub(super) fn fitted(self, columns: usize, dots: &str) -> String {
        let Consequence { place, line, rule, impact } = self;
        let colon = if impact.is_empty() { "" } else { ": " };
        let costs = beginnings(impact);
        let saving = costs.last().copied().unwrap_or_default();
        let with_rule = |place, cost: &str| (place, format!(" [{rule}]{colon}{cost}"));
        let ways = costs.iter().map(|cost| with_rule(place, cost)).chain([with_rule(line, saving)]);
        let fits = |(place, end): &(&str, String)| display_width(end) + least(place, dots) <= columns;
        let (place, end) = ways.into_iter().find(fits).unwrap_or_else(|| (line, format!("{colon}{saving}")));
        let room = columns.saturating_sub(display_width(&end));
        format!("{}{end}", from_the_end(place, room, dots))
    }
}

/// A text of clauses with all of them, without the last, and so on down to the first alone.
fn beginnings(text: &str) -> Vec<&str> {
    let ends = text.match_indices("; ").map(|(at, _)| at).chain([text.len()]);
    let mut all: Vec<&str> = ends.filter_map(|end| text.get(..end)).collect();
    all.reverse();
    all
}

/// The columns of a place that begins with its file's own name.
fn least(place: &str, dots: &str) -> usize {
    let name = place.rfind(['/', '\\']).and_then(|at| place.get(at..));
    let shortened = name.map_or(usize::MAX, |name| display_width(dots) + display_width(name));
    shortened.min(display_width(place))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_loses_its_beginning() {
        let path = "/home/somebody/project/train.py:34 in observe";
        assert_eq!(from_the_end(path, 80, "..."), path);
        assert_eq!(from_the_end(path, 30, "..."), ".../train.py:34 in observe");
        assert_eq!(from_the_end(path, 12, "..."), "...n observe");
        assert_eq!(from_the_end("träin", 4, "…"), "…äin");
        assert_eq!(from_the_end(path, 0, "..."), "...");
    }

    #[test]
    fn the_saving_is_the_last_to_go() {
        let line = "/home/somebody/with/a/long/path/to/train.py:34";
        let place = format!("{line} in observe");
        let impact = "peak -799.4 MiB; more; yet more";
        let of = |columns| {
            Consequence { place: &place, line, rule: "growing-residency", impact }.fitted(columns, "...")
        };
        assert_eq!(of(110), format!("{place} [growing-residency]: {impact}"));
        assert_eq!(of(80), format!(".../train.py:34 in observe [growing-residency]: {impact}"));
        assert_eq!(of(70), ".../train.py:34 in observe [growing-residency]: peak -799.4 MiB; more");
        assert_eq!(of(62), ".../path/to/train.py:34 [growing-residency]: peak -799.4 MiB");
        assert_eq!(of(50), ".../a/long/path/to/train.py:34: peak -799.4 MiB");
        let near = Consequence { place: "train.py:1 in f", line: "train.py:1", rule: "rule", impact: "" };
        assert_eq!(near.fitted(80, "..."), "train.py:1 in f [rule]");
        assert_eq!(near.fitted(19, "..."), "train.py:1 [rule]");
    }
}
