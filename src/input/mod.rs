//! From a path to the bytes of one snapshot.
//!
//! In: a path, or `-` for standard input. Out: the bytes, decompressed where the content (not the name) says gzip, zstd
//! or xz. Always: no more bytes than the limit, whatever a compressed file claims.

mod container;
mod error;
mod folder;

pub use error::InputError;

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

/// How much may be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of a snapshot after decompression.
    pub bytes: u64,
    /// How many times larger a snapshot may become by decompression, beyond the first 256 MiB. Real ones compress 20 to
    /// 60 times (the corpus of `snapshots/`); a decompression bomb a thousand times and more.
    pub ratio: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Limits { bytes: 16 << 30, ratio: 400 }
    }
}

/// Where a snapshot comes from.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Source {
    /// A file.
    File(PathBuf),
    /// Standard input.
    Stdin,
}

impl Source {
    /// The source that a command line argument names; `-` is standard input.
    pub fn named(argument: &Path) -> Source {
        if argument.as_os_str() == "-" { Source::Stdin } else { Source::File(argument.to_owned()) }
    }

    /// What messages call it.
    pub fn name(&self) -> String {
        match self {
            Source::File(path) => path.display().to_string(),
            Source::Stdin => "<stdin>".to_owned(),
        }
    }

    /// The snapshots that it stands for: a folder's files by name, anything else itself.
    ///
    /// # Errors
    /// Where a folder cannot be listed or holds no snapshot.
    pub fn expand(self) -> Result<Vec<Source>, InputError> {
        match &self {
            Source::File(path) if path.is_dir() => folder::snapshots_in(path),
            _ => Ok(vec![self]),
        }
    }

    /// Reads it, decompressed.
    ///
    /// # Errors
    /// Where it cannot be opened or read, is empty, no container of a snapshot, or larger than the limits.
    pub fn read(&self, limits: &Limits) -> Result<Vec<u8>, InputError> {
        let raw = self.read_raw(limits)?;
        container::open(raw, limits).map_err(|error| error.about(&self.name()))
    }

    fn read_raw(&self, limits: &Limits) -> Result<Vec<u8>, InputError> {
        let name = self.name();
        let failed = |source| InputError::Unreadable { name: name.clone(), source };
        let (mut reader, size): (Box<dyn Read>, u64) = match self {
            Source::File(path) => {
                let file = File::open(path).map_err(|source| error::opening(&name, source))?;
                let metadata = file.metadata().map_err(failed)?;
                if metadata.is_dir() {
                    return Err(InputError::Folder { name });
                }
                (Box::new(file), metadata.len())
            }
            Source::Stdin => (Box::new(std::io::stdin().lock()), 0),
        };
        // The size is only a hint: what a pipe or a growing file really holds is what counts.
        let hint = usize::try_from(size.min(limits.bytes)).unwrap_or(0);
        let mut raw = Vec::with_capacity(hint + 1);
        reader.by_ref().take(limits.bytes + 1).read_to_end(&mut raw).map_err(failed)?;
        if raw.len() as u64 > limits.bytes {
            return Err(InputError::TooLarge { name, limit: limits.bytes });
        }
        Ok(raw)
    }
}
