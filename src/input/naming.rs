//! What the names of snapshots have in common, wherever they lie.

use std::cmp::Ordering;
use std::path::{Path, PathBuf};

use crate::unit::natural;

/// Endings of what files are packed with, whether memlint unpacks it or not, and of what was not written to its end: it is not to be
/// passed over.
const WRAPPED: [&str; 14] =
    ["7z", "br", "bz2", "gz", "lz4", "lzma", "part", "partial", "tar", "tgz", "tmp", "xz", "zip", "zst"];
/// Endings of pickles.
const PICKLED: [&str; 2] = ["pickle", "pkl"];

/// How deep subfolders are looked into: torchtitan writes `outputs/memory_snapshot/iteration_10/rank0_...`.
pub(super) const DEPTH: usize = 4;

/// How patterns match: `*` and `?` stop at a folder's end, and what is hidden is left out.
pub(super) const MATCHING: glob::MatchOptions = glob::MatchOptions {
    case_sensitive: true,
    require_literal_separator: true,
    require_literal_leading_dot: true,
};

/// Whether a text has signs that stand for others.
pub(super) fn has_signs(text: &str) -> bool {
    text.contains(['*', '?', '['])
}

/// As people count: rank 2 before rank 10.
pub(super) fn in_order(one: &Path, other: &Path) -> Ordering {
    natural(&one.to_string_lossy(), &other.to_string_lossy()).then_with(|| one.cmp(other))
}

/// Whether a path ends like a pickle's, compressed or not.
pub(super) fn is_named_like_a_snapshot(path: &Path) -> bool {
    ends_in(&unwrapped(path), &PICKLED)
}

/// Whether a path ends like that of something packed.
pub(super) fn is_named_like_something_packed(path: &Path) -> bool {
    ends_in(path, &WRAPPED)
}

/// A path without the endings of what it is packed with.
fn unwrapped(path: &Path) -> PathBuf {
    let mut plain = path.to_owned();
    while ends_in(&plain, &WRAPPED) {
        plain.set_extension("");
    }
    plain
}

fn ends_in(path: &Path, endings: &[&str]) -> bool {
    path.extension().is_some_and(|ending| endings.iter().any(|one| ending.eq_ignore_ascii_case(one)))
}

/// What names of one job's snapshots have in common: folder and name, with a sign in place of each number, whatever they are packed
/// with. Nothing for a name without numbers.
pub(super) fn shape(path: &Path) -> Option<(PathBuf, String)> {
    let mut plain = unwrapped(path);
    if ends_in(&plain, &PICKLED) {
        plain.set_extension("");
    }
    let name = plain.file_name()?.to_str()?;
    let mut shape = String::new();
    for sign in name.chars() {
        match sign {
            '0'..='9' if shape.ends_with('#') => {}
            '0'..='9' => shape.push('#'),
            other => shape.push(other),
        }
    }
    shape.contains('#').then(|| (path.parent().unwrap_or(Path::new("")).to_owned(), shape))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endings_tell_snapshots_whatever_is_inside() {
        let named = |name: &str| is_named_like_a_snapshot(Path::new(name));
        assert!(named("rank1.pickle") && named("a/rank1.pkl.zst") && named("RANK0.PICKLE.GZ"));
        assert!(named("rank1.pickle.bz2") && named("rank1.pickle.zst.tmp"));
        assert!(!named("train.py") && !named("notes.gz") && !named("pickle"));
    }

    #[test]
    fn names_of_one_job_differ_in_numbers_alone() {
        let alike = |one: &str, other: &str| {
            let (one, other) = (shape(Path::new(one)), shape(Path::new(other)));
            one.is_some() && one == other
        };
        assert!(alike("out/rank1.memory", "out/rank12.memory.bz2"));
        assert!(alike("rank1_step20", "rank0_step5"));
        assert!(alike("rank1.pickle.zst", "rank3") && alike("rank1.pickle", "rank3.tar.gz"));
        assert!(!alike("out/rank1.memory", "other/rank2.memory"));
        assert!(!alike("rank1.memory", "rank1.json"));
        assert!(!alike("memory", "memory"), "without a number it is no one of several");
    }
}
