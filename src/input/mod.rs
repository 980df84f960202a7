//! From a path to the bytes of one snapshot.
//!
//! In: a path, or `-` for standard input. Out: a stream of the pickle's bytes, unpacked where the content (not the name)
//! says gzip, zstd, xz or a page of PyTorch's viewer; or of the JSON of a profiler's timeline, for who asks. Always: no more bytes than the limit, whatever a compressed file
//! claims, and none held but those of a page.

mod container;
mod error;
mod folder;
mod foreign;
mod html;
mod origin;
mod remote;
mod stream;

pub use error::InputError;
pub use folder::{Expansion, LeftOut};
pub use origin::{Origin, origins};
pub use stream::{Content, Stream};

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use container::Kind;

/// How many times larger a compressed snapshot usually becomes: 20 to 60 times in the corpus of `snapshots/`.
const PACKED: u64 = 40;

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

    /// About how many bytes its pickle has; `None` where only reading would tell.
    pub fn bulk(&self) -> Option<u64> {
        let Source::File(path) = self else { return None };
        let bytes = fs::metadata(path).ok().filter(fs::Metadata::is_file)?.len();
        let head = File::open(path).and_then(|mut file| container::head(&mut file)).ok()?;
        let packed = Kind::of(&head).compression().is_some();
        Some(if packed { bytes.saturating_mul(PACKED) } else { bytes })
    }

    /// The snapshots that it stands for: those of a folder and its subfolders, the files that match a pattern
    /// (`out/*.pickle`) where no file has this very name, anything else itself.
    ///
    /// # Errors
    /// Where a folder cannot be listed or holds no snapshot, and where nothing matches.
    pub fn expand(self) -> Result<Expansion, InputError> {
        match &self {
            Source::File(path) if path.is_dir() => folder::snapshots_in(path),
            Source::File(path) if folder::is_pattern(path) => folder::matches(path),
            _ => Ok(Expansion { sources: vec![self], left_out: Vec::new() }),
        }
    }

    /// Opens it as a stream of the pickle inside.
    ///
    /// # Errors
    /// Where it cannot be opened, is empty, or begins like nothing that a snapshot comes in.
    pub fn open(&self, limits: &Limits) -> Result<Stream, InputError> {
        match self.open_any(limits)? {
            Content::Snapshot(stream) => Ok(stream),
            Content::Timeline(_) => Err(InputError::MemoryTimeline { name: self.name() }),
        }
    }

    /// Opens it as a stream of whichever of the two it holds.
    ///
    /// # Errors
    /// Where it cannot be opened, is empty, or begins like neither.
    pub fn open_any(&self, limits: &Limits) -> Result<Content, InputError> {
        let name = self.name();
        match self {
            Source::File(path) => {
                let file = File::open(path).map_err(|source| error::opening(path, source))?;
                if file.metadata().is_ok_and(|metadata| metadata.is_dir()) {
                    return Err(InputError::Folder { name });
                }
                Stream::open(name, file, *limits)
            }
            Source::Stdin => Stream::open(name, io::stdin(), *limits),
        }
    }
}
