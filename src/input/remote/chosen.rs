//! Which objects of a listing a folder or a pattern stands for.
//!
//! In: the keys of a bucket, with their sizes. Out: those that count, in the order in which people count, and what looks like a
//! snapshot and is not among them. Always: by name alone; opening every object to look at it would cost what reading it costs.

use std::collections::BTreeSet;
use std::path::Path;

use super::super::naming::{DEPTH, MATCHING, in_order, is_named_like_a_snapshot, shape};

/// An object of a listing.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ObjectKey {
    /// Its name in the bucket.
    pub(super) name: String,
    /// Its bytes.
    pub(super) size: u64,
}

/// Why something is left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum WhyLeftOut {
    /// A name begins with a dot.
    Hidden,
    /// It lies below the folders that are looked into.
    Deep,
}

/// What counts of a listing.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Chosen {
    pub(crate) keys: Vec<ObjectKey>,
    /// Names of objects and folders that are left out.
    pub(crate) left_out: BTreeSet<(String, WhyLeftOut)>,
}

/// The literal beginning of a pattern, up to a folder's end: below it everything lies that can match.
pub(super) fn folder_of(pattern: &str) -> &str {
    let literal =
        pattern.find(['*', '?', '[']).map_or(pattern, |sign| pattern.get(..sign).unwrap_or_default());
    literal.rfind('/').map_or("", |end| literal.get(..=end).unwrap_or_default())
}

/// The snapshots below a folder (which ends in `/`, or is the whole bucket): what is named like one, or like one beside it but for
/// numbers.
pub(super) fn in_folder(keys: Vec<ObjectKey>, folder: &str) -> Chosen {
    let mut chosen = Chosen::default();
    let mut others = Vec::new();
    for key in keys {
        let Some(below) = key.name.strip_prefix(folder) else { continue };
        let named = is_named_like_a_snapshot(Path::new(&key.name));
        match (passed_over(below), named) {
            (Some((part, why)), true) => {
                chosen.left_out.insert((format!("{folder}{part}"), why));
            }
            (Some(_), false) => {}
            (None, true) => chosen.keys.push(key),
            (None, false) => others.push(key),
        }
    }
    let shapes: BTreeSet<_> = chosen.keys.iter().filter_map(|key| shape(Path::new(&key.name))).collect();
    let alike = |key: &ObjectKey| shape(Path::new(&key.name)).is_some_and(|shape| shapes.contains(&shape));
    chosen.keys.extend(others.into_iter().filter(alike));
    chosen.settled()
}

/// What matches a pattern; of a folder that matches, what is inside.
pub(super) fn matching(keys: Vec<ObjectKey>, pattern: &str) -> Result<Chosen, &'static str> {
    let pattern = glob::Pattern::new(pattern.trim_end_matches('/')).map_err(|error| error.msg)?;
    let matches = |name: &str| pattern.matches_with(name, MATCHING);
    let mut chosen = Chosen::default();
    let mut folders: BTreeSet<String> = BTreeSet::new();
    let mut rest = Vec::new();
    for key in keys {
        let ends = key.name.match_indices('/').map(|(end, _)| end);
        let mut above = ends.filter_map(|end| key.name.get(..end));
        if matches(&key.name) {
            chosen.keys.push(key);
        } else if let Some(folder) = above.find(|folder| matches(folder)) {
            folders.insert(format!("{folder}/"));
            rest.push(key);
        }
    }
    for folder in folders {
        let (inside, others) = rest.into_iter().partition(|key: &ObjectKey| key.name.starts_with(&folder));
        let found = in_folder(inside, &folder);
        chosen.keys.extend(found.keys);
        chosen.left_out.extend(found.left_out);
        rest = others;
    }
    Ok(chosen.settled())
}

/// What of a name below a folder keeps it from being looked at: the name of the hidden object or folder, or of that which lies too
/// deep.
fn passed_over(below: &str) -> Option<(&str, WhyLeftOut)> {
    let mut end = 0;
    for (depth, part) in below.split('/').enumerate() {
        end += part.len();
        let so_far = below.get(..end)?;
        if part.starts_with('.') {
            return Some((so_far, WhyLeftOut::Hidden));
        }
        if depth == DEPTH && end < below.len() {
            return Some((so_far, WhyLeftOut::Deep));
        }
        end += 1;
    }
    None
}

impl Chosen {
    fn settled(mut self) -> Chosen {
        self.keys.sort_by(|one, other| in_order(Path::new(&one.name), Path::new(&other.name)));
        self.keys.dedup();
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(names: &[&str]) -> Vec<ObjectKey> {
        names.iter().map(|name| ObjectKey { name: (*name).to_owned(), size: 1 }).collect()
    }

    fn names(chosen: &Chosen) -> Vec<&str> {
        chosen.keys.iter().map(|key| key.name.as_str()).collect()
    }

    #[test]
    fn a_folder_stands_for_what_is_named_like_snapshots() {
        let listed = keys(&[
            "run/rank10.pickle",
            "run/rank2.pickle.zst",
            "run/rank3",
            "run/train.py",
            "run/it_1/rank0.pkl",
            "run/.old/rank0.pickle",
            "run/a/b/c/d/e/rank0.pickle",
            "running/rank0.pickle",
        ]);
        let chosen = in_folder(listed, "run/");
        assert_eq!(
            names(&chosen),
            ["run/it_1/rank0.pkl", "run/rank2.pickle.zst", "run/rank3", "run/rank10.pickle"]
        );
        let left: Vec<_> = chosen.left_out.iter().map(|(name, why)| (name.as_str(), *why)).collect();
        assert_eq!(left, [("run/.old", WhyLeftOut::Hidden), ("run/a/b/c/d/e", WhyLeftOut::Deep)]);
        let whole = in_folder(keys(&["rank0.pickle", "a/b/c/d/rank1.pickle"]), "");
        assert_eq!(names(&whole), ["a/b/c/d/rank1.pickle", "rank0.pickle"]);
    }

    #[test]
    fn a_pattern_matches_objects_and_folders() {
        let listed = [
            "out/it_1/rank0.pickle",
            "out/it_1/notes.txt",
            "out/it_2/rank0.pickle",
            "out/rank1.pickle",
            "out/.rank2.pickle",
        ];
        let chosen = |pattern: &str| matching(keys(&listed), pattern).unwrap();
        assert_eq!(names(&chosen("out/rank?.pickle")), ["out/rank1.pickle"]);
        assert_eq!(names(&chosen("out/*.pickle")), ["out/rank1.pickle"]);
        assert_eq!(names(&chosen("out/it_*")), ["out/it_1/rank0.pickle", "out/it_2/rank0.pickle"]);
        assert_eq!(names(&chosen("out/it_[2-9]/")), ["out/it_2/rank0.pickle"]);
        assert_eq!(
            names(&chosen("out/**/rank*.pickle")),
            ["out/it_1/rank0.pickle", "out/it_2/rank0.pickle", "out/rank1.pickle"]
        );
        assert!(chosen("out/x*").keys.is_empty());
        assert!(matching(keys(&listed), "out/a**").is_err());
    }

    #[test]
    fn only_what_can_match_is_listed() {
        for (pattern, folder) in
            [("run/rank*.pickle", "run/"), ("rank*", ""), ("a/b*/c", "a/"), ("a/b/c", "a/b/")]
        {
            assert_eq!(folder_of(pattern), folder);
        }
    }
}
