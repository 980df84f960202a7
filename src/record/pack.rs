//! From the plain pickle that a process wrote to the file that is kept. The program does not wait for this: Python's own
//! library has nothing that is as fast and as small, so the hook writes plainly and memlint compresses beside it.

use std::fs::{self, File};
use std::io;
use std::path::Path;

use super::destination::Destination;
use super::error::RecordError;
use super::message::Written;
use super::outcome::PackedSnapshot;
use super::partial;
use crate::unit::Bytes;

/// Zstandard's own default: 13 times smaller than a snapshot, at several hundred megabytes a second.
const LEVEL: i32 = 3;

/// Puts a snapshot into its place. The plain one is gone then; where that fails, it stays.
pub(super) fn pack(written: Written, destination: &Destination) -> Result<PackedSnapshot, RecordError> {
    let path = destination.folder.join(format!("{}{}", written.name, destination.ending));
    let moved = if destination.is_compressed() {
        compress(&written.path, &path).and_then(|()| fs::remove_file(&written.path))
    } else {
        fs::rename(&written.path, &path)
    };
    let bytes = moved.and_then(|()| Ok(Bytes(fs::metadata(&path)?.len())));
    match bytes {
        Ok(bytes) => Ok(PackedSnapshot { path, bytes, written }),
        Err(error) => Err(RecordError::Unpacked { plain: written.path, path, error }),
    }
}

fn compress(plain: &Path, packed: &Path) -> io::Result<()> {
    let mut plain = File::open(plain)?;
    partial::replace(packed, |out| {
        let mut encoder = zstd::Encoder::new(out, LEVEL)?;
        io::copy(&mut plain, &mut encoder)?;
        encoder.finish().map(|_| ())
    })
}
