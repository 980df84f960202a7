//! What a person probably meant by a misspelt word.

/// Words at least this alike (Jaro-Winkler, 0 to 1) are offered; clap uses 0.7 for the same question.
const ALIKE: f64 = 0.7;

/// ``did you mean `fragmentation`?``, or, where nothing is alike, all there is: `the rules are: fragmentation, ...`.
pub fn suggestion<'a>(word: &str, several: &str, known: impl Iterator<Item = &'a str> + Clone) -> String {
    let likeness = |other: &&str| strsim::jaro_winkler(other, word);
    let nearest = known.clone().max_by(|a, b| likeness(a).total_cmp(&likeness(b)));
    match nearest.filter(|other| likeness(other) > ALIKE) {
        Some(other) => format!("did you mean `{other}`?"),
        None => format!("the {several} are: {}", known.collect::<Vec<_>>().join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_word_is_offered_and_all_where_none_is_near() {
        let known = ["leak", "peak", "allocator"];
        let suggest = |word| suggestion(word, "groups", known.into_iter());
        assert_eq!(suggest("laek"), "did you mean `leak`?");
        assert_eq!(suggest("alocator"), "did you mean `allocator`?");
        assert_eq!(suggest("qqq"), "the groups are: leak, peak, allocator");
    }
}
