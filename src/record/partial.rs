//! A file that is there whole or not at all: it grows under a hidden name beside its place.

use std::fs::{File, Permissions};
use std::io::{self, Write};
use std::path::Path;

use tempfile::NamedTempFile;

/// Makes or replaces a file: whole, or not at all.
pub(super) fn replace(path: &Path, contents: impl FnOnce(&mut File) -> io::Result<()>) -> io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut partial = hidden_in(folder)?;
    contents(partial.as_file_mut())?;
    partial.flush()?;
    partial.persist(path).map(|_| ()).map_err(|failed| failed.error)
}

/// A hidden file that goes by itself, with the permissions of any other.
pub(super) fn hidden_in(folder: &Path) -> io::Result<NamedTempFile> {
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
