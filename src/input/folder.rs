//! The snapshots of a folder and those that a pattern names, and what of them is left out.
//!
//! Always: nothing but regular files is opened (a pipe would wait for ever), links to folders are not followed (one may lead
//! back), and what looks like a snapshot and is left out is named.

use std::collections::BTreeSet;
use std::fmt;
use std::fs::{self, DirEntry, File};
use std::io;
use std::path::{Path, PathBuf};

use super::container::{Beginning, beginning};
use super::error::opening;
use super::naming::{DEPTH, MATCHING, has_signs, in_order, is_named_like_a_snapshot, shape};
use super::origin::origins;
use super::{InputError, Source, address};
use crate::unit::natural;

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
    pub kind: Omission,
}

/// Why something is left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Omission {
    /// Its name begins with a dot.
    Hidden,
    /// A link to a folder.
    Linked,
    /// A folder below those that are looked into.
    Deep,
    /// A pipe, a socket, a device.
    Irregular,
    /// It may not be read: nobody knows what it is.
    Unreadable,
    /// Packed, and too short to tell what it is.
    CutOff,
    /// Empty, and by its name of a rank of which there is nothing else.
    Empty,
}

impl fmt::Display for Omission {
    /// `hidden`, `a link to a folder`, ...
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Omission::Hidden => "hidden",
            Omission::Linked => "a link to a folder",
            Omission::Deep => "too deep",
            Omission::Irregular => "no regular file",
            Omission::Unreadable => "may not be read",
            Omission::CutOff => "packed and cut off",
            Omission::Empty => "empty",
        })
    }
}

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
    let Search { mut found, others, unknown, mut left_out, .. } = search;
    let shapes: BTreeSet<_> = found.iter().filter_map(|path| shape(path)).collect();
    found.extend(others.into_iter().filter(|path| shape(path).is_some_and(|shape| shapes.contains(&shape))));
    if found.is_empty() {
        return Err(InputError::NoSnapshots { name: folder.display().to_string(), depth: DEPTH });
    }
    found.sort_by(|one, other| in_order(one, other));
    let sources: Vec<Source> = found.into_iter().map(Source::File).collect();
    let missing = without_a_snapshot(&sources, unknown);
    left_out.extend(missing);
    left_out.sort();
    Ok(Expansion { sources, left_out })
}

/// Of files of which nobody knows what they are: those that are not read anyway. An empty one may be anything (a mark, a log), and counts where it
/// is by its name of a rank that has no snapshot beside ranks that have one.
fn without_a_snapshot(sources: &[Source], unknown: Vec<LeftOut>) -> Vec<LeftOut> {
    let ranks = |sources: &[Source]| origins(sources).into_iter().filter_map(|one| one.rank);
    let there: BTreeSet<u32> = ranks(sources).collect();
    let lacks_its_rank = |path: &Path| {
        let own = ranks(&[Source::File(path.to_owned())]).next();
        !there.is_empty() && own.is_some_and(|own| !there.contains(&own))
    };
    let counts = |one: &LeftOut| {
        let is_read = sources.iter().any(|source| matches!(source, Source::File(path) if *path == one.path));
        !is_read && (one.kind != Omission::Empty || lacks_its_rank(&one.path))
    };
    unknown.into_iter().filter(counts).collect()
}

/// A walk through a folder.
#[derive(Default)]
struct Search {
    /// The folder that is walked through.
    root: Option<PathBuf>,
    found: Vec<PathBuf>,
    /// Files that neither begin like snapshots nor are named like them.
    others: Vec<PathBuf>,
    /// Those of them of which nobody knows what they are.
    unknown: Vec<LeftOut>,
    left_out: Vec<LeftOut>,
}

impl Search {
    /// Looks at an entry; the folder to go on with, if it is one.
    fn visit(&mut self, entry: &DirEntry, depth: usize) -> io::Result<Option<(PathBuf, usize)>> {
        let path = entry.path();
        let hidden = entry.file_name().as_encoded_bytes().starts_with(b".");
        // A link's own type: where it leads is another matter.
        let kind = entry.file_type()?;
        if path.is_dir() {
            let kind = match (hidden, kind.is_symlink(), depth < DEPTH) {
                (true, ..) => Omission::Hidden,
                (_, true, _) => Omission::Linked,
                (.., false) => Omission::Deep,
                (false, false, true) => return Ok(Some((path, depth + 1))),
            };
            if !self.covers(&path, kind) && holds_snapshots(&path) {
                self.left_out.push(LeftOut { path, kind });
            }
            return Ok(None);
        }
        let is_file = fs::metadata(&path).is_ok_and(|about| about.is_file());
        let is_named = is_named_like_a_snapshot(&path);
        let begins = if is_file && !is_named { look(&path) } else { Ok(Beginning::Other) };
        if is_named || matches!(begins, Ok(Beginning::Snapshot)) {
            let irregular = fs::metadata(&path).is_ok_and(|about| !about.is_file());
            match (irregular, hidden) {
                (true, _) => self.left_out.push(LeftOut { path, kind: Omission::Irregular }),
                (_, true) => self.left_out.push(LeftOut { path, kind: Omission::Hidden }),
                (false, false) => self.found.push(path),
            }
        } else if is_file && !hidden {
            let kind = match begins {
                Err(_) => Some(Omission::Unreadable),
                Ok(Beginning::CutOff) => Some(Omission::CutOff),
                Ok(Beginning::Empty) => Some(Omission::Empty),
                Ok(Beginning::Snapshot | Beginning::Other) => None,
            };
            self.unknown.extend(kind.map(|kind| LeftOut { path: path.clone(), kind }));
            self.others.push(path);
        }
        Ok(None)
    }

    /// Whether what a link leads to is walked through anyway.
    fn covers(&self, path: &Path, kind: Omission) -> bool {
        let target = fs::canonicalize(path).ok();
        let inside = self.root.as_ref().zip(target).is_some_and(|(root, target)| target.starts_with(root));
        kind == Omission::Linked && inside
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
    let is_one = |text: &str| has_signs(text) && address::how_to_fetch(text).is_none();
    !path.exists() && path.to_str().is_some_and(is_one)
}

/// What matches a pattern, by path; of a folder that matches, what is inside.
pub(super) fn matches(pattern: &Path) -> Result<Expansion, InputError> {
    let name = pattern.display().to_string();
    let paths = match glob::glob_with(&name, MATCHING) {
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
            matched.left_out.push(LeftOut { path, kind: Omission::Irregular });
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

/// How a regular file begins.
fn look(path: &Path) -> io::Result<Beginning> {
    File::open(path).and_then(|mut file| beginning(&mut file))
}
