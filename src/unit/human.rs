//! How sizes, counts and names are written for people.

/// `1023 B`, `97.5 MiB`, `2 GiB`: binary units, one decimal below 100 where it is not zero.
pub(super) fn bytes(count: u64) -> String {
    const UNITS: [&str; 6] = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
    let mut scaled = count as f64;
    let mut unit = 0;
    while scaled >= 1023.95 && unit + 1 < UNITS.len() {
        scaled /= 1024.0;
        unit += 1;
    }
    let name = UNITS.get(unit).copied().unwrap_or("B");
    let number = format!("{scaled:.1}");
    let number = number.strip_suffix(".0").unwrap_or(&number);
    format!("{number} {name}")
}

/// `1 step`, `3 steps`, `1,213,937 events`: a count with its noun in the right number.
pub fn count(number: usize, noun: &str) -> String {
    let plural = match noun.strip_suffix('y') {
        Some(stem) if !stem.ends_with(['a', 'e', 'o', 'u']) => format!("{stem}ies"),
        _ if noun.ends_with('s') || noun.ends_with("ch") => format!("{noun}es"),
        _ => format!("{noun}s"),
    };
    format!("{} {}", grouped(number), if number == 1 { noun } else { &plural })
}

/// `23 %`, or `0.4 %` below one.
pub fn percent(share: f64) -> String {
    let scaled = share * 100.0;
    if scaled != 0.0 && scaled.abs() < 0.95 { format!("{scaled:.1} %") } else { format!("{scaled:.0} %") }
}

/// The most characters of a name that are shown; paths on Linux may have 4096, names in a hostile file any number.
const MOST_OF_NAME: usize = 200;
/// Of a name that is too long the beginning, and all the rest from its end, where the file's own name stands.
const HEAD_OF_NAME: usize = 60;
/// What stands for the rest.
const BETWEEN: &str = "...";

/// A name out of a file, safe to print: on one line, of 200 characters at most, and without any character that moves
/// the cursor, changes colours or the direction of writing.
pub fn shown_name(name: &str) -> String {
    let length = name.chars().count();
    if length <= MOST_OF_NAME {
        return shown_line(name);
    }
    let tail = MOST_OF_NAME - HEAD_OF_NAME - BETWEEN.len();
    let head: String = name.chars().take(HEAD_OF_NAME).collect();
    let tail: String = name.chars().skip(length - tail).collect();
    format!("{}{BETWEEN}{}", shown_line(&head), shown_line(&tail))
}

/// A line of text that may contain names out of a file, with the same characters replaced, at any length.
pub fn shown_line(line: &str) -> String {
    line.chars().map(|one| if is_unsafe(one) { char::REPLACEMENT_CHARACTER } else { one }).collect()
}

/// Control characters (terminals obey them), and the marks of Unicode that reorder or hide what is around them.
fn is_unsafe(one: char) -> bool {
    (one.is_control() && one != '\t')
        || matches!(
            one,
            '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}'
        )
}

/// Thousands apart: `136,581`.
fn grouped(number: usize) -> String {
    let digits = number.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_keep_one_decimal_and_never_show_1024() {
        assert_eq!(bytes(0), "0 B");
        assert_eq!(bytes(1023), "1023 B");
        assert_eq!(bytes(1024), "1 KiB");
        assert_eq!(bytes(102_236_160), "97.5 MiB");
        assert_eq!(bytes((1 << 20) - 1), "1 MiB");
        assert_eq!(bytes(3 << 30), "3 GiB");
        assert_eq!(bytes(u64::MAX), "16384 PiB");
    }

    #[test]
    fn counts_agree_with_their_noun() {
        assert_eq!(count(1, "boundary"), "1 boundary");
        assert_eq!(count(2, "boundary"), "2 boundaries");
        assert_eq!(count(0, "pass"), "0 passes");
        assert_eq!(count(1_213_937, "event"), "1,213,937 events");
        assert_eq!(count(2, "day"), "2 days");
    }

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
    fn long_names_keep_their_ends() {
        let fits = "é".repeat(200);
        assert_eq!(shown_name(&fits), fits);
        let long = format!("/home/{}/train.py", "é".repeat(5_000));
        let shown = shown_name(&long);
        assert_eq!(shown.chars().count(), 200);
        assert!(shown.starts_with("/home/é") && shown.contains("é...é") && shown.ends_with("é/train.py"));
        assert_eq!(shown_line(&long), long);
    }

    #[test]
    fn small_shares_keep_a_decimal() {
        assert_eq!(percent(0.234), "23 %");
        assert_eq!(percent(0.004), "0.4 %");
        assert_eq!(percent(0.0), "0 %");
    }
}
