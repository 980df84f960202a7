//! The snapshots of a folder and those that a pattern names.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use super::container::begins_like_a_snapshot;
use super::{InputError, Source};

/// How deep subfolders are looked into: torchtitan writes `outputs/memory_snapshot/iteration_10/rank0_...`.
const DEPTH: usize = 4;

/// The files of a folder and its subfolders that begin like snapshots or are named like them, by path. Hidden files and
/// folders and links to folders are left out. A file of a snapshot's name that holds none (a rank that died while it wrote)
/// is not passed over: reading it says what is wrong.
pub(super) fn snapshots_in(folder: &Path) -> Result<Vec<Source>, InputError> {
    let mut files: Vec<PathBuf> = Vec::new();
    let mut folders = vec![(folder.to_owned(), 0)];
    while let Some((folder, depth)) = folders.pop() {
        let failed = |source| InputError::Unreadable { name: folder.display().to_string(), source };
        for entry in fs::read_dir(&folder).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            if entry.file_name().as_encoded_bytes().starts_with(b".") {
                continue;
            }
            // A link's own type: a link to a folder may lead back here.
            if entry.file_type().map_err(failed)?.is_dir() {
                if depth < DEPTH {
                    folders.push((entry.path(), depth + 1));
                }
            } else if is_named_like_a_snapshot(&entry.path()) || is_snapshot(&entry.path()) {
                files.push(entry.path());
            }
        }
    }
    if files.is_empty() {
        return Err(InputError::NoSnapshots { name: folder.display().to_string(), depth: DEPTH });
    }
    files.sort();
    Ok(files.into_iter().map(Source::File).collect())
}

/// Whether a path that names no file has signs that stand for others.
pub(super) fn is_pattern(path: &Path) -> bool {
    !path.exists() && path.to_str().is_some_and(|text| text.contains(['*', '?', '[']))
}

/// What matches a pattern, by path; of a folder that matches, what is inside.
pub(super) fn matches(pattern: &Path) -> Result<Vec<Source>, InputError> {
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
    let mut matched = Vec::new();
    for path in paths {
        let path = path.map_err(|error| InputError::Unreadable {
            name: error.path().display().to_string(),
            source: error.into(),
        })?;
        matched.extend(if path.is_dir() { snapshots_in(&path)? } else { vec![Source::File(path)] });
    }
    if matched.is_empty() {
        return Err(InputError::NoMatch { name });
    }
    matched.sort();
    matched.dedup();
    Ok(matched)
}

/// Whether a path ends like a pickle's, compressed or not.
fn is_named_like_a_snapshot(path: &Path) -> bool {
    let ends_in = |path: &Path, endings: &[&str]| {
        path.extension().is_some_and(|ending| endings.iter().any(|one| ending.eq_ignore_ascii_case(one)))
    };
    let unpacked = path.with_extension("");
    let plain = if ends_in(path, &["gz", "zst", "xz"]) { unpacked.as_path() } else { path };
    ends_in(plain, &["pickle", "pkl"])
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
        assert!(!named("train.py") && !named("notes.gz") && !named("pickle"));
    }
}
