//! Files that may be opened, taken for a program or not.
//!
//! In: a real path. Out: the program that stands there, or what it is instead. Always: nothing of a file is read that is larger than any
//! program.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

use super::SourceFile;
use crate::unit::shown_name;

/// Files larger than this are not read: no program that a person wrote is.
const MOST_BYTES: u64 = 4 << 20;

/// What a file is that is there and is not taken for a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Unopened {
    /// Not text in UTF-8 from this byte of this line on.
    NoUtf8 { line: usize, byte: u8 },
    /// More than a person writes.
    TooLarge,
    /// A folder, a pipe.
    NoFile,
    /// The system does not give it out.
    Refused(String),
    /// A link out of the folders that may be looked into, and where it leads.
    LinkOutside(PathBuf),
}

impl fmt::Display for Unopened {
    /// What it is: "is no UTF-8: ...".
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unopened::NoUtf8 { line, byte } => {
                write!(
                    out,
                    "is no UTF-8: line {line} holds the byte 0x{byte:02x}; memlint reads and edits UTF-8 alone"
                )
            }
            Unopened::TooLarge => write!(out, "is larger than 4 MiB, and no program that a person wrote"),
            Unopened::NoFile => write!(out, "is no ordinary file"),
            Unopened::Refused(error) => write!(out, "cannot be read: {error}"),
            Unopened::LinkOutside(target) => write!(
                out,
                "is a link out of the folders that are searched, to {}: name that one's folder with --source-root",
                shown_name(&target.display().to_string())
            ),
        }
    }
}

pub(super) fn may_be_source(path: &Path) -> bool {
    path.extension().is_some_and(|ending| ending == "py")
}

/// A Python file's text, or what the file is instead.
pub(super) fn open(shown: &Path, real: &Path) -> Result<SourceFile, Unopened> {
    let refused = |error: std::io::Error| Unopened::Refused(error.to_string());
    let metadata = fs::symlink_metadata(real).map_err(refused)?;
    if !metadata.is_file() {
        return Err(Unopened::NoFile);
    }
    if metadata.len() > MOST_BYTES {
        return Err(Unopened::TooLarge);
    }
    let text = String::from_utf8(fs::read(real).map_err(refused)?).map_err(|error| {
        let (at, bytes) = (error.utf8_error().valid_up_to(), error.as_bytes());
        let line = bytes.iter().take(at).filter(|byte| **byte == b'\n').count() + 1;
        Unopened::NoUtf8 { line, byte: bytes.get(at).copied().unwrap_or_default() }
    })?;
    Ok(SourceFile::new(shown.display().to_string(), text))
}
