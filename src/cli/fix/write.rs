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
    let mut done: Vec<(&Patched, PathBuf)> = Vec::new();
    for (file, (whole, path)) in ready {
        if let Err(error) = whole.persist(&path) {
            // All of the edits or none: a program of which half was mended is nobody's.
            for (file, path) in done {
                let _ = fs::write(path, &file.before);
            }
            return Err(failed(file, error.error));
        }
        done.push((file, path));
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_one_file_cannot_be_written_none_is() {
        let folder = tempfile::tempdir().unwrap();
        let patched = |name: &str| {
            let path = folder.path().join(name);
            fs::write(&path, "old\n").unwrap();
            let name = path.display().to_string();
            Patched { name, before: "old\n".to_owned(), after: "new\n".to_owned() }
        };
        let files = [patched("a.py"), patched("b.py")];
        let mut permissions = fs::metadata(&files[1].name).unwrap().permissions();
        permissions.set_readonly(true);
        fs::set_permissions(&files[1].name, permissions).unwrap();
        let error = replace_all(&files).unwrap_err().to_string();
        assert!(error.contains("b.py` cannot be written: it is read-only"), "{error}");
        assert_eq!(fs::read_to_string(&files[0].name).unwrap(), "old\n");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2, "nothing is left beside them");
        replace_all(&files[..1]).unwrap();
        assert_eq!(fs::read_to_string(&files[0].name).unwrap(), "new\n");
    }
}
