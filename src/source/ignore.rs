//! Comments that put up with a finding: `# memlint: ignore[rule, other-rule] reason`.
//!
//! In: a file's comments. Out: what each asks for, or what is wrong with it. Always: a rule is named and a reason is given,
//! or nothing is ignored; which rules there are is not known here.

/// How such a comment is written.
pub const EXAMPLE: &str = "# memlint: ignore[growing-residency] the replay buffer fills and stops";

/// What every such comment begins with, behind its `#`.
const MARK: &str = "memlint:";

/// A comment that speaks to memlint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IgnoreComment {
    /// Its line, counted from 1.
    pub line: u32,
    /// The line for which it stands, if there is no code on its own: the next that holds code.
    pub stands_for: u32,
    /// What it asks for.
    pub asks: Result<IgnoreComments, Malformed>,
}

/// What is to be ignored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IgnoreComments {
    /// The rules as written, at least one.
    pub rules: Vec<String>,
    /// Why; never empty.
    pub reason: String,
}

/// What is wrong with a comment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Malformed {
    /// It names no rule.
    NoRule,
    /// It gives no reason.
    NoReason,
    /// It asks for something else.
    NotIgnore,
}

/// What comments ask for. Each is the line it stands on and its text, from the first `#` on; `code` says whether a line
/// holds anything but a comment, `last` is the file's last line.
pub(super) fn read<'a>(
    comments: impl Iterator<Item = (u32, &'a str)>,
    holds_code: impl Fn(u32) -> bool,
    is_blank: impl Fn(u32) -> bool,
    last: u32,
) -> Vec<IgnoreComment> {
    let one = |(line, text): (u32, &str)| {
        let asks = parse(asked(text)?);
        let below = || (line + 1..=last).find(|below| holds_code(*below) || is_blank(*below));
        let stands_for = if holds_code(line) { line } else { below().unwrap_or(line) };
        Some(IgnoreComment { line, stands_for, asks })
    };
    comments.filter_map(one).collect()
}

/// Whether a file may hold such comments at all.
pub(super) fn may_hold(text: &str) -> bool {
    text.contains(MARK)
}

/// The words behind `# memlint:`, which may follow other remarks: `# noqa: E501  # memlint: ignore[...] ...`.
fn asked(comment: &str) -> Option<&str> {
    let remarks = comment.match_indices('#').filter_map(|(at, sign)| comment.get(at + sign.len()..));
    // All that follows belongs to the remark: a reason may hold a `#`, as in "see #12".
    remarks.filter_map(|remark| remark.trim_start().strip_prefix(MARK)).map(str::trim).next()
}

fn parse(words: &str) -> Result<IgnoreComments, Malformed> {
    let rest = words.strip_prefix("ignore").ok_or(Malformed::NotIgnore)?.trim_start();
    let (rules, reason) =
        rest.strip_prefix('[').and_then(|rest| rest.split_once(']')).ok_or(Malformed::NoRule)?;
    let rules: Vec<String> =
        rules.split(',').map(str::trim).filter(|rule| !rule.is_empty()).map(str::to_owned).collect();
    if rules.is_empty() {
        return Err(Malformed::NoRule);
    }
    let reason = reason.trim_start_matches(|letter: char| letter.is_whitespace() || "-:–—".contains(letter));
    if reason.trim_end().is_empty() {
        return Err(Malformed::NoReason);
    }
    Ok(IgnoreComments { rules, reason: reason.trim_end().to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules_and_reason(comment: &str) -> Option<Result<(String, String), Malformed>> {
        asked(comment).map(|words| parse(words).map(|asked| (asked.rules.join("+"), asked.reason)))
    }

    #[test]
    fn rules_are_named_and_reasons_given() {
        assert_eq!(
            rules_and_reason("# memlint: ignore[oom] known"),
            Some(Ok(("oom".to_owned(), "known".to_owned())))
        );
        assert_eq!(
            rules_and_reason("#memlint:ignore[a,b ,c] - see #12"),
            Some(Ok(("a+b+c".to_owned(), "see #12".to_owned())))
        );
        assert_eq!(
            rules_and_reason("# noqa: E501  # memlint: ignore[oom]: fits"),
            Some(Ok(("oom".to_owned(), "fits".to_owned())))
        );
        for (wrong, why) in [
            ("# memlint: ignore", Malformed::NoRule),
            ("# memlint: ignore because", Malformed::NoRule),
            ("# memlint: ignore[] because", Malformed::NoRule),
            ("# memlint: ignore[oom because", Malformed::NoRule),
            ("# memlint: ignore[oom]", Malformed::NoReason),
            ("# memlint: ignore[oom] -- ", Malformed::NoReason),
            ("# memlint: off", Malformed::NotIgnore),
        ] {
            assert_eq!(rules_and_reason(wrong), Some(Err(why)), "{wrong}");
        }
        assert_eq!(rules_and_reason("# see memlint: ignore[oom] is an option"), None);
    }

    #[test]
    fn a_comment_alone_on_its_line_stands_for_the_code_below() {
        let lines = [
            "# memlint: ignore[a] one",
            "# and more",
            "x = 1  # memlint: ignore[b] two",
            "",
            "# memlint: ignore[c] three",
            "",
            "y",
        ];
        let comments = lines.iter().zip(1_u32..).filter(|(text, _)| text.contains('#'));
        let comments = comments.map(|(text, line)| (line, &text[text.find('#').unwrap()..]));
        let line = |number: u32| lines[number as usize - 1].trim();
        let found = read(
            comments,
            |number| !line(number).is_empty() && !line(number).starts_with('#'),
            |number| line(number).is_empty(),
            7,
        );
        let places: Vec<(u32, u32)> = found.iter().map(|one| (one.line, one.stands_for)).collect();
        assert_eq!(places, [(1, 3), (3, 3), (5, 6)], "a blank line ends what a comment stands above");
    }
}
