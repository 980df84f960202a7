//! Names in the order in which people count: `rank2` before `rank10`.

use std::cmp::Ordering;

/// Compares two names; numbers in them by their value. Of names that differ in leading zeros alone the shorter comes first, and so
/// only equal names are equal.
pub fn natural(one: &str, other: &str) -> Ordering {
    let (mut left, mut right) = (one, other);
    while !left.is_empty() && !right.is_empty() {
        let ((number, rest), (other_number, other_rest)) = (digits(left), digits(right));
        let compared = if number.is_empty() || other_number.is_empty() {
            let (first, second) = (left.chars().next(), right.chars().next());
            (left, right) = (skip(left), skip(right));
            first.cmp(&second)
        } else {
            (left, right) = (rest, other_rest);
            let (number, other_number) =
                (number.trim_start_matches('0'), other_number.trim_start_matches('0'));
            number.len().cmp(&other_number.len()).then_with(|| number.cmp(other_number))
        };
        if compared.is_ne() {
            return compared;
        }
    }
    left.len().cmp(&right.len()).then_with(|| (one.len(), one).cmp(&(other.len(), other)))
}

/// The number at the beginning, and what follows.
fn digits(text: &str) -> (&str, &str) {
    let end = text.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(text.len());
    text.split_at(end)
}

fn skip(text: &str) -> &str {
    let mut letters = text.chars();
    letters.next();
    letters.as_str()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_count_and_letters_do_not_change() {
        let mut names = ["out/rank10.pickle", "out/rank2.pickle", "out/rank1/b", "out/a", "out/rank2"];
        names.sort_by(|one, other| natural(one, other));
        assert_eq!(names, ["out/a", "out/rank1/b", "out/rank2", "out/rank2.pickle", "out/rank10.pickle"]);
        let huge = ["iteration_99999999999999999999999", "iteration_100000000000000000000000"];
        assert!(natural(huge[0], huge[1]).is_lt());
        assert!(natural("a01", "a1").is_gt() && natural("a1", "a01b").is_lt() && natural("é1", "é1").is_eq());
    }
}
