//! A copy of the current folder, in which a program can run and write without the working copy noticing.
//!
//! Always: links inside the folder lead into the copy, all others where they led; environments of Python are linked as they are.

use std::fs;
use std::io;
use std::path::Path;

use crate::source::plain;

/// More than a program's own folder holds, and little enough to be copied in seconds.
const MOST_BYTES: u64 = 2 << 30;
const MOST_FILES: usize = 50_000;
/// What no program needs to run.
const LEFT_OUT: [&str; 5] = [".git", ".hg", ".jj", "__pycache__", "node_modules"];

/// What was copied so far.
struct Copying<'a> {
    from: &'a Path,
    to: &'a Path,
    bytes: u64,
    files: usize,
}

/// Copies a folder (a real path) into an empty one.
pub(super) fn copy(from: &Path, to: &Path) -> io::Result<()> {
    Copying { from, to, bytes: 0, files: 0 }.folder(Path::new(""))
}

impl Copying<'_> {
    fn folder(&mut self, path: &Path) -> io::Result<()> {
        fs::create_dir_all(self.to.join(path))?;
        for entry in fs::read_dir(self.from.join(path))? {
            let entry = entry?;
            let (name, kind) = (entry.file_name(), entry.file_type()?);
            let inside = path.join(&name);
            // The copy itself may lie in the folder.
            if LEFT_OUT.iter().any(|left| name == *left) || self.to.starts_with(entry.path()) {
                continue;
            }
            if kind.is_symlink() {
                self.link(&fs::read_link(entry.path())?, &inside)?;
            } else if kind.is_dir() && entry.path().join("pyvenv.cfg").exists() {
                link(&entry.path(), &self.to.join(&inside))?;
            } else if kind.is_dir() {
                self.folder(&inside)?;
            } else if kind.is_file() {
                self.bytes += entry.metadata()?.len();
                self.files += 1;
                if self.bytes > MOST_BYTES || self.files > MOST_FILES {
                    return Err(io::Error::other(
                        "it holds more than 2 GiB or 50,000 files: start memlint in the program's own folder",
                    ));
                }
                fs::copy(entry.path(), self.to.join(&inside))?;
            }
        }
        Ok(())
    }

    /// A link that leads into the folder, into the copy; any other where it led.
    fn link(&self, target: &Path, inside: &Path) -> io::Result<()> {
        let parent = self.from.join(inside).parent().map(Path::to_owned).unwrap_or_default();
        let whole = plain(&parent.join(target));
        let leads = match whole.strip_prefix(self.from) {
            Ok(below) => self.to.join(below),
            Err(_) => whole,
        };
        link(&leads, &self.to.join(inside))
    }
}

#[cfg(unix)]
fn link(to: &Path, at: &Path) -> io::Result<()> {
    std::os::unix::fs::symlink(to, at)
}

/// Elsewhere links need rights that few have.
#[cfg(not(unix))]
fn link(_to: &Path, _at: &Path) -> io::Result<()> {
    Ok(())
}
