//! Files that memlint writes: there whole, or not at all.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::Path;

use super::error::CliError;

/// What writes the contents.
type Contents<'a> = dyn FnOnce(&mut dyn Write) -> io::Result<()> + 'a;

/// Makes or replaces a file.
pub(super) fn replace(
    path: &Path,
    contents: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> Result<(), CliError> {
    write_beside(path, Box::new(contents))
        .or_else(|error| match error.kind() {
            // A reader who has seen enough, of a pipe.
            io::ErrorKind::BrokenPipe => Ok(()),
            _ => Err(error),
        })
        .map_err(|error| CliError::Unwritable { name: path.display().to_string(), error })
}

/// Writes beside the file first and puts it into place when it is whole.
fn write_beside(path: &Path, contents: Box<Contents>) -> io::Result<()> {
    let is_device = fs::metadata(path).is_ok_and(|about| !about.is_file());
    let Some(name) = path.file_name().filter(|_| !is_device) else {
        return write_to(contents, File::create(path)?);
    };
    let mut partial = OsString::from(".");
    partial.push(name);
    partial.push(format!(".{}.partial", std::process::id()));
    let partial = path.with_file_name(partial);
    // Two runs do not meet, and a link that somebody laid there is not followed.
    let file = File::create_new(&partial)?;
    let written = write_to(contents, file).and_then(|()| fs::rename(&partial, path));
    if written.is_err() {
        // What is left of it helps nobody; the first error is the one to report.
        let _ = fs::remove_file(&partial);
    }
    written
}

fn write_to(contents: Box<Contents>, file: File) -> io::Result<()> {
    let mut out = BufWriter::new(file);
    contents(&mut out)?;
    out.flush()
}
