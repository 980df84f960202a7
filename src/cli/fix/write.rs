//! Files of the working copy, replaced as a whole.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

use crate::cli::error::CliError;
use crate::fix::Patched;

/// What a file says now.
pub(super) fn on_disk(name: &str) -> Option<String> {
    fs::read_to_string(name).ok()
}

/// Replaces files: none before all could be written beside, so that what cannot be written stops everything.
pub(super) fn replace_all(files: &[Patched]) -> Result<(), CliError> {
    let failed = |file: &Patched, error| CliError::Unwritable { name: file.name.clone(), error };
    let mut ready = Vec::new();
    for file in files {
        ready.push((file, prepared(file).map_err(|error| failed(file, error))?));
    }
    for (file, (whole, path)) in ready {
        whole.persist(&path).map_err(|error| failed(file, error.error))?;
    }
    Ok(())
}

/// The new content beside a file, with its permissions; and the file itself, where a link leads to it.
fn prepared(file: &Patched) -> io::Result<(NamedTempFile, PathBuf)> {
    let path = fs::canonicalize(&file.name)?;
    let about = fs::metadata(&path)?;
    // A new file could take its place all the same: whoever made it read-only does not want that.
    if about.permissions().readonly() {
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, "it is read-only"));
    }
    if fs::read_to_string(&path)? != file.before {
        return Err(io::Error::other("it has changed meanwhile"));
    }
    let mut whole = NamedTempFile::new_in(path.parent().unwrap_or(Path::new(".")))?;
    whole.write_all(file.after.as_bytes())?;
    whole.as_file().set_permissions(about.permissions())?;
    whole.as_file().sync_all()?;
    Ok((whole, path))
}
