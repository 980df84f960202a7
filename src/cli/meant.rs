//! Which rule or group somebody means who does not know its name: `zero-grad`, `retained_graph`, `mising-zero-grad`.

use std::cmp::Reverse;

/// One slip of the finger in so many letters is taken for one; with more the word could as well be another.
const LETTERS_A_SLIP: usize = 5;

/// How many names are offered where none is meant for certain.
const MOST_OFFERED: usize = 3;

/// Names at least this alike (Jaro-Winkler, 0 to 1) are offered, as everywhere in memlint (`unit::suggestion`).
const ALIKE: f64 = 0.7;

/// What a word may mean.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Meant<'a> {
    /// One name, for certain: written in another way, or the only one that has the word in it, or the only one that so few
    /// slips of the finger lead to.
    One(&'a str),
    /// One of these, the likeliest first; of none where nothing is alike.
    OneOf(Vec<&'a str>),
}

/// What a word may mean, of some names.
pub(super) fn meant<'a>(word: &str, names: &[&'a str]) -> Meant<'a> {
    let word = plain(word);
    let those = |fits: &dyn Fn(&str) -> bool| -> Vec<&'a str> {
        names.iter().copied().filter(|name| fits(name)).collect()
    };
    let slips = |name: &str| strsim::damerau_levenshtein(name, &word);
    // A word of a letter or two stands in half of all names, and says nothing.
    let is_part = |name: &str| word.len() > 2 && name.contains(&word);
    let is_misspelt = |name: &str| slips(name) <= word.len() / LETTERS_A_SLIP;
    for fits in [&|name: &str| name == word, &is_part as &dyn Fn(&str) -> bool, &is_misspelt] {
        match those(fits).as_slice() {
            [] => {}
            [one] => return Meant::One(one),
            several => return Meant::OneOf(several.to_vec()),
        }
    }
    let likeness = |name: &str| strsim::jaro_winkler(name, &word);
    let mut alike = those(&|name| likeness(name) > ALIKE);
    // Likeness lies between 0 and 1, and so the order of the bits is that of the numbers.
    alike.sort_by_key(|name| Reverse(likeness(name).to_bits()));
    alike.truncate(MOST_OFFERED);
    Meant::OneOf(alike)
}

/// A name as all of them are written: small letters, joined by hyphens, without the brackets behind a finding.
fn plain(word: &str) -> String {
    let bare = word.trim().trim_start_matches('[').trim_end_matches(']');
    bare.to_lowercase().replace(['_', ' '], "-")
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAMES: [&str; 6] =
        ["missing-zero-grad", "late-zero-grad", "retained-graph", "growing-residency", "leak", "peak"];

    #[test]
    fn what_fits_one_name_alone_is_meant() {
        for (word, name) in [
            ("Missing_Zero_Grad", "missing-zero-grad"),
            ("[retained-graph]", "retained-graph"),
            ("retained", "retained-graph"),
            ("mising-zero-grads", "missing-zero-grad"),
            ("growing-residnecy", "growing-residency"),
            ("LEAK", "leak"),
        ] {
            assert_eq!(meant(word, &NAMES), Meant::One(name), "{word}");
        }
    }

    #[test]
    fn what_fits_several_or_none_is_asked_back() {
        let zero_grad = Meant::OneOf(vec!["missing-zero-grad", "late-zero-grad"]);
        assert_eq!(meant("zero_grad", &NAMES), zero_grad);
        assert_eq!(meant("qqq", &NAMES), Meant::OneOf(Vec::new()));
        assert_eq!(meant("retaining", &NAMES), Meant::OneOf(vec!["retained-graph"]));
        assert_eq!(meant("a", &NAMES), Meant::OneOf(Vec::new()));
    }
}
