//! From a path to the bytes of one snapshot.
//!
//! In: a path, `-` for standard input, or the address of an object. Out: a stream of the pickle's bytes, unpacked where the content (not the name)
//! says gzip, zstd, xz or a page of PyTorch's viewer; or of the JSON of a profiler's timeline, for who asks. Always: no more bytes than the limit, whatever a compressed file
//! claims, and none held but those of a page.

mod address;
mod container;
mod error;
mod folder;
mod foreign;
mod html;
mod naming;
mod origin;
mod remote;
mod stream;

pub use address::Address;
pub use error::InputError;
pub use folder::{Expansion, LeftOut};
pub use origin::{Origin, origins};
pub use remote::RemoteError;
pub use stream::{Content, Stream};

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use address::Stands;
use container::Container;

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
    /// An object of another machine.
    Remote(Address),
}

impl Source {
    /// The source that a command line argument names; `-` is standard input, and `s3://bucket/key` an object. Of no other text is it
    /// asked: what a configuration or a snapshot names is never fetched.
    pub fn named(argument: &Path) -> Source {
        if argument.as_os_str() == "-" {
            return Source::Stdin;
        }
        let address = argument.to_str().and_then(Address::of);
        address.map_or_else(|| Source::File(argument.to_owned()), Source::Remote)
    }

    /// What messages call it.
    pub fn name(&self) -> String {
        match self {
            Source::File(path) => path.display().to_string(),
            Source::Stdin => "<stdin>".to_owned(),
            Source::Remote(address) => address.shown(),
        }
    }

    /// About how many bytes its pickle has; `None` where only reading would tell.
    pub fn bulk(&self) -> Option<u64> {
        let path = match self {
            Source::File(path) => path,
            Source::Stdin => return None,
            // Its first bytes would cost a request; its name has to do.
            Source::Remote(address) => {
                let packed = naming::is_named_like_something_packed(Path::new(address.key()));
                return address.size().map(|size| if packed { size.saturating_mul(PACKED) } else { size });
            }
        };
        let bytes = fs::metadata(path).ok().filter(fs::Metadata::is_file)?.len();
        let head = File::open(path).and_then(|mut file| container::head(&mut file)).ok()?;
        let packed = Container::of(&head).compression().is_some();
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
            Source::Remote(address) if address.stands_for() != Stands::Object => Ok(listed(address)?),
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
            Source::Remote(address) => match address.stands_for() {
                Stands::Object => Stream::open(name, remote::open(address)?, *limits),
                Stands::Folder | Stands::Pattern => Err(InputError::Folder { name }),
            },
        }
    }
}

/// The objects that a folder or a pattern of a store stands for.
fn listed(address: &Address) -> Result<Expansion, RemoteError> {
    let remote::FoundObjects { objects, left_out } = remote::list(address)?;
    let left_out = left_out.into_iter().map(|(name, is_deep)| LeftOut {
        path: PathBuf::from(name),
        kind: if is_deep { folder::Omission::Deep } else { folder::Omission::Hidden },
    });
    Ok(Expansion { sources: objects.into_iter().map(Source::Remote).collect(), left_out: left_out.collect() })
}
