//! The settings that are worth trying on a recording of which nobody says what to try.

use super::tuning::{SettingChange, Tuning, changes};

/// Each is a text as in `PYTORCH_CUDA_ALLOC_CONF`. PyTorch's own advice for fragmentation is the first; limits of splitting keep
/// large blocks whole, from the least that models need to what only large ones do; divisions make sizes alike.
const CANDIDATES: [&str; 8] = [
    "expandable_segments:True",
    "expandable_segments:False",
    "max_split_size_mb:64",
    "max_split_size_mb:128",
    "max_split_size_mb:256",
    "max_split_size_mb:512",
    "roundup_power2_divisions:4",
    "roundup_power2_divisions:8",
];

/// What differs from the settings of a recording, each with what changes it.
pub fn worth_trying(recorded: &Tuning) -> Vec<(Vec<SettingChange>, Tuning)> {
    let tuned = |text: &&str| {
        let changes = changes(text).ok()?;
        let tuning = changes.iter().try_fold(recorded.clone(), |tuning, change| tuning.with(change)).ok()?;
        let all_new = changes.iter().all(|change| recorded.with(change).is_ok_and(|one| one != *recorded));
        all_new.then_some((changes, tuning))
    };
    CANDIDATES.iter().filter_map(tuned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_set_already_is_not_tried() {
        let of = |text: &str| {
            let set = changes(text).unwrap();
            let tuning = set.iter().try_fold(Tuning::default(), |tuning, one| tuning.with(one)).unwrap();
            worth_trying(&tuning)
        };
        let names = |all: &[(Vec<SettingChange>, Tuning)]| -> Vec<String> {
            all.iter()
                .map(|(changes, _)| changes.iter().map(ToString::to_string).collect::<Vec<_>>().join(","))
                .collect()
        };
        // All are understood, and without settings only one of them changes nothing.
        assert_eq!(of("").len(), CANDIDATES.len() - 1);
        let growing = names(&of("expandable_segments:True,roundup_power2_divisions:8"));
        assert_eq!(growing.first().map(String::as_str), Some("expandable_segments:False"));
        assert!(
            growing.iter().all(|one| !one.contains("True") && !one.contains("divisions:8")),
            "{growing:?}"
        );
    }
}
