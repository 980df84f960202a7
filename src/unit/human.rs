//! How sizes and counts are written for people.

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
