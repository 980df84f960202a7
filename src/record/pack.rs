//! From the plain pickle that a process wrote to the file that is kept. The program does not wait for this: Python's own
//! library has nothing that is as fast and as small, so the hook writes plainly and memlint compresses beside it.

use std::fs::{self, File, Permissions};
use std::io::{self, Write};
use std::path::Path;

use tempfile::NamedTempFile;

use super::destination::Destination;
use super::error::RecordError;
use super::ledger::Written;
use super::outcome::Snapshot;
use crate::unit::Bytes;

/// Zstandard's own default: 13 times smaller than a snapshot, at several hundred megabytes a second.
const LEVEL: i32 = 3;

/// Puts a snapshot into its place. The plain one is gone then; where that fails, it stays.
pub(super) fn pack(written: Written, destination: &Destination) -> Result<Snapshot, RecordError> {
    let path = destination.folder.join(format!("{}{}", written.name, destination.ending));
    let moved = if destination.is_compressed() {
        compress(&written.path, &path).and_then(|()| fs::remove_file(&written.path))
    } else {
        fs::rename(&written.path, &path)
    };
    let bytes = moved.and_then(|()| Ok(Bytes(fs::metadata(&path)?.len())));
    match bytes {
        Ok(bytes) => Ok(Snapshot { path, bytes, written }),
        Err(error) => Err(RecordError::Unpacked { plain: written.path, path, error }),
    }
}

fn compress(plain: &Path, packed: &Path) -> io::Result<()> {
    let mut plain = File::open(plain)?;
    replace(packed, |out| {
        let mut encoder = zstd::Encoder::new(out, LEVEL)?;
        io::copy(&mut plain, &mut encoder)?;
        encoder.finish().map(|_| ())
    })
}

/// Makes or replaces a file: whole, or not at all.
pub(super) fn replace(path: &Path, contents: impl FnOnce(&mut File) -> io::Result<()>) -> io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut partial = partial_in(folder)?;
    contents(partial.as_file_mut())?;
    partial.flush()?;
    partial.persist(path).map(|_| ()).map_err(|failed| failed.error)
}

/// A hidden file that goes by itself, with the permissions of any other.
pub(super) fn partial_in(folder: &Path) -> io::Result<NamedTempFile> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(".").suffix(".partial");
    if let Some(permissions) = usual_permissions() {
        builder.permissions(permissions);
    }
    builder.tempfile_in(folder)
}

/// What everybody else's new files have before the process's mask.
#[cfg(unix)]
#[expect(clippy::unnecessary_wraps, reason = "elsewhere there are none")]
fn usual_permissions() -> Option<Permissions> {
    use std::os::unix::fs::PermissionsExt;
    Some(Permissions::from_mode(0o666))
}

#[cfg(not(unix))]
fn usual_permissions() -> Option<Permissions> {
    None
}
