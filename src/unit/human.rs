//! How sizes and counts are written for people.

use super::Bytes;

const UNITS: [&str; 6] = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
/// Where one decimal does not show a difference, up to so many do.
const MOST_DECIMALS: usize = 4;
/// A size in somebody else's unit is read up to so many of it.
const MOST_OF_A_UNIT: f64 = 10_000.0;

/// `1023 B`, `97.5 MiB`, `2 GiB`: binary units, one decimal below 100 where it is not zero.
pub(super) fn bytes(count: u64) -> String {
    rounded(count, 1)
}

/// In its own unit, with so many decimals as far as they are not zero.
fn rounded(count: u64, decimals: usize) -> String {
    let (scaled, unit) = scaled(count);
    let number = format!("{scaled:.decimals$}");
    let number = if decimals > 0 { number.trim_end_matches('0').trim_end_matches('.') } else { &number };
    format!("{number} {}", name(unit))
}

/// A number of bytes in the largest unit of which one decimal shows one or more, and which unit that is.
fn scaled(count: u64) -> (f64, usize) {
    let mut scaled = count as f64;
    let mut unit = 0;
    while scaled >= 1023.95 && unit + 1 < UNITS.len() {
        scaled /= 1024.0;
        unit += 1;
    }
    (scaled, unit)
}

fn name(unit: usize) -> &'static str {
    UNITS.get(unit).copied().unwrap_or("B")
}

/// Sizes that stand beside one another to be compared: with the fewest decimals that show apart all that differ, in bytes where none do.
/// "1.2 GiB are more than 1.2 GiB" says nothing.
pub fn told_apart<const N: usize>(sizes: [Bytes; N]) -> [String; N] {
    let differ = |texts: &[String; N]| {
        let all = || sizes.iter().zip(texts);
        all().all(|(one, text)| all().all(|(other, others)| one == other || text != others))
    };
    let with = |decimals| sizes.map(|size| rounded(size.0, decimals));
    let exact = || sizes.map(|size| format!("{} B", thousands(&size.0.to_string())));
    (1..=MOST_DECIMALS).map(with).find(differ).unwrap_or_else(exact)
}

/// A size before something is taken off it, and after, in the unit of what is taken off, so that the three add up: `1,276.5 MiB` and
/// `477.1 MiB` where 799.4 MiB go. `None` where what goes is too small beside it to be seen.
pub fn lowered(before: Bytes, taken: Bytes) -> Option<(String, String)> {
    let after = before - taken;
    let (shown, unit) = scaled(taken.0);
    let tenths = |size: f64| (size * 10.0).round();
    let whole = before.0 as f64 / 1024_f64.powi(i32::try_from(unit).ok()?);
    if whole >= MOST_OF_A_UNIT {
        return None;
    }
    let left = tenths(whole) - tenths(shown);
    if left <= 0.0 && after > Bytes::ZERO {
        return Some((bytes(before.0), bytes(after.0)));
    }
    let text = |tenths: f64| {
        let number = format!("{:.1}", tenths.max(0.0) / 10.0);
        let number = number.strip_suffix(".0").unwrap_or(&number);
        let (whole, decimal) = number.split_once('.').unwrap_or((number, ""));
        let dot = if decimal.is_empty() { "" } else { "." };
        format!("{}{dot}{decimal} {}", thousands(whole), name(unit))
    };
    let nothing = after == Bytes::ZERO;
    Some((text(tenths(whole)), if nothing { bytes(0) } else { text(left) }))
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

/// `late-zero-grad, oom and 3 more`.
pub fn some_of(names: &[&str]) -> String {
    match names {
        [first, second, rest @ ..] if rest.len() > 1 => format!("{first}, {second} and {} more", rest.len()),
        _ => names.join(", "),
    }
}

/// `23 %`, or `0.4 %` below one.
pub fn percent(share: f64) -> String {
    let scaled = share * 100.0;
    if scaled != 0.0 && scaled.abs() < 0.95 { format!("{scaled:.1} %") } else { format!("{scaled:.0} %") }
}

/// `2.5 %`: a share that somebody wrote, with all its decimals.
pub fn exact_percent(share: f64) -> String {
    // 0.07 times 100 is not 7 in binary: the fewest decimals that mean this share.
    let is_it = |percent: f64| (percent / 100.0).to_bits() == share.to_bits();
    let means = |text: &String| text.parse().is_ok_and(is_it);
    let fewest = (0..=15).map(|decimals| format!("{:.decimals$}", share * 100.0)).find(means);
    format!("{} %", fewest.unwrap_or_else(|| (share * 100.0).to_string()))
}

/// Thousands apart: `136,581`.
pub fn grouped(number: usize) -> String {
    thousands(&number.to_string())
}

fn thousands(digits: &str) -> String {
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
    fn sizes_that_differ_are_shown_to_differ() {
        assert_eq!(told_apart([Bytes(6 << 30), Bytes(5 << 30)]), ["6 GiB", "5 GiB"]);
        assert_eq!(told_apart([Bytes(1_300_000_000), Bytes(1_290_000_000)]), ["1.21 GiB", "1.2 GiB"]);
        assert_eq!(told_apart([Bytes(5 << 30), Bytes(5 << 30)]), ["5 GiB", "5 GiB"]);
        assert_eq!(
            told_apart([Bytes((1 << 30) + 1), Bytes(1 << 30)]),
            ["1,073,741,825 B", "1,073,741,824 B"]
        );
    }

    #[test]
    fn what_goes_and_what_is_left_add_up() {
        let lowered = |before, taken| {
            lowered(Bytes(before), Bytes(taken)).map(|(before, after)| format!("{before} to {after}"))
        };
        let mib = |tenths: u64| tenths * (1 << 20) / 10;
        assert_eq!(lowered(mib(12_765), mib(7_994)).as_deref(), Some("1,276.5 MiB to 477.1 MiB"));
        assert_eq!(lowered(7 << 30, 7 << 30).as_deref(), Some("7 GiB to 0 B"));
        assert_eq!(lowered((7 << 30) + 5, 7 << 30).as_deref(), Some("7 GiB to 5 B"), "what is left is seen");
        assert_eq!(lowered(20 << 30, 4096), None);
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
    fn small_shares_keep_a_decimal() {
        assert_eq!(percent(0.234), "23 %");
        assert_eq!(percent(0.004), "0.4 %");
        assert_eq!(percent(0.0), "0 %");
    }

    #[test]
    fn shares_keep_the_decimals_that_were_written() {
        let shown = [0.05, 0.07, 0.025, 0.003, 1.0, 0.0, 0.123_45].map(exact_percent);
        assert_eq!(shown, ["5 %", "7 %", "2.5 %", "0.3 %", "100 %", "0 %", "12.345 %"]);
    }
}
