//! The snapshots of a folder.

use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};

use super::container::begins_like_a_snapshot;
use super::{InputError, Source};

/// The files directly inside a folder that begin like snapshots, by name.
pub(super) fn snapshots_in(folder: &Path) -> Result<Vec<Source>, InputError> {
    let name = || folder.display().to_string();
    let failed = |source| InputError::Unreadable { name: name(), source };
    let mut files: Vec<PathBuf> = Vec::new();
    for entry in fs::read_dir(folder).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        if is_snapshot(&path) {
            files.push(path);
        }
    }
    if files.is_empty() {
        return Err(InputError::NoSnapshots { name: name() });
    }
    files.sort();
    Ok(files.into_iter().map(Source::File).collect())
}

/// Whether it is a regular file whose first bytes are a pickle's, or those of a pickle inside a container.
fn is_snapshot(path: &Path) -> bool {
    let is_file = fs::metadata(path).is_ok_and(|metadata| metadata.is_file());
    // Enough for any container to give its first bytes away.
    let mut head = Vec::new();
    is_file
        && File::open(path).is_ok_and(|file| file.take(1 << 18).read_to_end(&mut head).is_ok())
        && begins_like_a_snapshot(&head)
}
