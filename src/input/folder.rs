//! The snapshots of a folder and those that a pattern names, and what of them is left out.
//!
//! Always: nothing but regular files is opened (a pipe would wait for ever), links to folders are not followed (one may lead
//! back), and what looks like a snapshot and is left out is named.

use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::fmt;
use std::fs::{self, DirEntry, File};
use std::path::{Path, PathBuf};

use super::container::begins_like_a_snapshot;
use super::error::opening;
use super::{InputError, Source, remote};
use crate::unit::natural;

/// How deep subfolders are looked into: torchtitan writes `outputs/memory_snapshot/iteration_10/rank0_...`.
const DEPTH: usize = 4;
/// How many names are looked at in a folder that is left out, to see whether it holds a snapshot. One with more than that may.
const MOST_NAMES: usize = 10_000;

/// The snapshots that something stands for.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Expansion {
    /// The snapshots, by path.
    pub sources: Vec<Source>,
    /// What looks like a snapshot or holds some, and is not among them.
    pub left_out: Vec<LeftOut>,
}

/// Something that looks like a snapshot, or a folder that holds some, and was not looked at.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct LeftOut {
    /// Where it is.
    pub path: PathBuf,
    /// What it is.
    pub kind: Kind,
}

/// Why something is left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// Its name begins with a dot.
    Hidden,
    /// A link to a folder.
    Linked,
    /// A folder below those that are looked into.
    Deep,
    /// A pipe, a socket, a device.
    Irregular,
}

impl fmt::Display for Kind {
    /// `hidden`, `a link to a folder`, ...
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Kind::Hidden => "hidden",
            Kind::Linked => "a link to a folder",
            Kind::Deep => "too deep",
            Kind::Irregular => "no regular file",
        })
    }
}

/// Endings of what files are packed with, whether memlint unpacks it or not, and of what was not written to its end: it is not to be
/// passed over.
const WRAPPED: [&str; 14] =
    ["7z", "br", "bz2", "gz", "lz4", "lzma", "part", "partial", "tar", "tgz", "tmp", "xz", "zip", "zst"];
/// Endings of pickles.
const PICKLED: [&str; 2] = ["pickle", "pkl"];

/// The files of a folder and its subfolders that begin like snapshots, or are named like them or, but for numbers, like one beside
/// them; by path. A file of such a name that holds none (a rank that died while it wrote) is not passed over: reading it says what is
/// wrong.
pub(super) fn snapshots_in(folder: &Path) -> Result<Expansion, InputError> {
    let mut search = Search { root: fs::canonicalize(folder).ok(), ..Search::default() };
    let mut folders = vec![(folder.to_owned(), 0)];
    while let Some((folder, depth)) = folders.pop() {
        let failed = |source| opening(&folder, source);
        for entry in fs::read_dir(&folder).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            folders.extend(search.visit(&entry, depth).map_err(failed)?);
        }
    }
    let Search { mut found, others, mut left_out, .. } = search;
    let shapes: BTreeSet<_> = found.iter().filter_map(|path| shape(path)).collect();
    found.extend(others.into_iter().filter(|path| shape(path).is_some_and(|shape| shapes.contains(&shape))));
    if found.is_empty() {
        return Err(InputError::NoSnapshots { name: folder.display().to_string(), depth: DEPTH });
    }
    found.sort_by(|one, other| in_order(one, other));
    left_out.sort();
    Ok(Expansion { sources: found.into_iter().map(Source::File).collect(), left_out })
}

/// A walk through a folder.
#[derive(Default)]
struct Search {
    /// The folder that is walked through.
    root: Option<PathBuf>,
    found: Vec<PathBuf>,
    /// Files that neither begin like snapshots nor are named like them.
    others: Vec<PathBuf>,
    left_out: Vec<LeftOut>,
}

impl Search {
    /// Looks at an entry; the folder to go on with, if it is one.
    fn visit(&mut self, entry: &DirEntry, depth: usize) -> std::io::Result<Option<(PathBuf, usize)>> {
        let path = entry.path();
        let hidden = entry.file_name().as_encoded_bytes().starts_with(b".");
        // A link's own type: where it leads is another matter.
        let kind = entry.file_type()?;
        if path.is_dir() {
            let kind = match (hidden, kind.is_symlink(), depth < DEPTH) {
                (true, ..) => Kind::Hidden,
                (_, true, _) => Kind::Linked,
                (.., false) => Kind::Deep,
                (false, false, true) => return Ok(Some((path, depth + 1))),
            };
            if !self.covers(&path, kind) && holds_snapshots(&path) {
                self.left_out.push(LeftOut { path, kind });
            }
        } else if is_named_like_a_snapshot(&path) || is_snapshot(&path) {
            let irregular = fs::metadata(&path).is_ok_and(|about| !about.is_file());
            match (irregular, hidden) {
                (true, _) => self.left_out.push(LeftOut { path, kind: Kind::Irregular }),
                (_, true) => self.left_out.push(LeftOut { path, kind: Kind::Hidden }),
                (false, false) => self.found.push(path),
            }
        } else if !hidden && fs::metadata(&path).is_ok_and(|about| about.is_file()) {
            self.others.push(path);
        }
        Ok(None)
    }

    /// Whether what a link leads to is walked through anyway.
    fn covers(&self, path: &Path, kind: Kind) -> bool {
        let target = fs::canonicalize(path).ok();
        let inside = self.root.as_ref().zip(target).is_some_and(|(root, target)| target.starts_with(root));
        kind == Kind::Linked && inside
    }
}

/// Whether a folder holds files that are named like snapshots, as far as a bounded look tells. Nothing is opened.
fn holds_snapshots(folder: &Path) -> bool {
    let mut looked_at = 0;
    let mut folders = vec![(folder.to_owned(), 0)];
    while let Some((folder, depth)) = folders.pop() {
        // What cannot be listed may hold anything.
        let Ok(entries) = fs::read_dir(&folder) else { return true };
        for entry in entries.flatten() {
            looked_at += 1;
            if looked_at > MOST_NAMES {
                return true;
            }
            let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
            if is_folder && depth < DEPTH {
                folders.push((entry.path(), depth + 1));
            } else if !is_folder && is_named_like_a_snapshot(&entry.path()) {
                return true;
            }
        }
    }
    false
}

/// Whether a path that names no file has signs that stand for others. In an address they are its own.
pub(super) fn is_pattern(path: &Path) -> bool {
    let has_signs = |text: &str| text.contains(['*', '?', '[']) && remote::how_to_fetch(text).is_none();
    !path.exists() && path.to_str().is_some_and(has_signs)
}

/// What matches a pattern, by path; of a folder that matches, what is inside.
pub(super) fn matches(pattern: &Path) -> Result<Expansion, InputError> {
    let name = pattern.display().to_string();
    let options = glob::MatchOptions {
        case_sensitive: true,
        require_literal_separator: true,
        require_literal_leading_dot: true,
    };
    let paths = match glob::glob_with(&name, options) {
        Ok(paths) => paths,
        Err(error) => return Err(InputError::Pattern { name, found: error.msg }),
    };
    let mut matched = Expansion::default();
    for path in paths {
        let path = path.map_err(|error| {
            let path = error.path().to_owned();
            opening(&path, error.into())
        })?;
        if path.is_dir() {
            let Expansion { sources, left_out } = snapshots_in(&path)?;
            matched.sources.extend(sources);
            matched.left_out.extend(left_out);
        } else if fs::metadata(&path).is_ok_and(|about| !about.is_file()) {
            matched.left_out.push(LeftOut { path, kind: Kind::Irregular });
        } else {
            matched.sources.push(Source::File(path));
        }
    }
    if matched.sources.is_empty() {
        return Err(InputError::NoMatch { name });
    }
    matched.sources.sort_by(|one, other| natural(&one.name(), &other.name()).then_with(|| one.cmp(other)));
    matched.sources.dedup();
    matched.left_out.sort();
    matched.left_out.dedup();
    Ok(matched)
}

/// As people count: rank 2 before rank 10.
fn in_order(one: &Path, other: &Path) -> Ordering {
    natural(&one.to_string_lossy(), &other.to_string_lossy()).then_with(|| one.cmp(other))
}

/// Whether a path ends like a pickle's, compressed or not.
fn is_named_like_a_snapshot(path: &Path) -> bool {
    ends_in(&unwrapped(path), &PICKLED)
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
fn shape(path: &Path) -> Option<(PathBuf, String)> {
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

/// Whether it is a regular file whose first bytes are a snapshot's, or those of one inside a container.
fn is_snapshot(path: &Path) -> bool {
    let is_file = fs::metadata(path).is_ok_and(|metadata| metadata.is_file());
    is_file && File::open(path).and_then(|mut file| begins_like_a_snapshot(&mut file)).unwrap_or(false)
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
