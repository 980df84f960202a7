//! What a file is packed in, told from its first bytes, and the reader that unpacks it.

use std::io::{self, Read};

/// Bytes of the beginning that are looked at.
const HEAD: usize = 512;

/// What the first bytes of a stream are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Container {
    Pickle,
    Gzip,
    Zstd,
    Xz,
    Html,
    Other,
}

impl Container {
    pub(super) fn of(head: &[u8]) -> Container {
        match head.trim_ascii_start() {
            _ if matches!(head, [0x80, 2..=5, ..]) => Container::Pickle,
            _ if head.starts_with(&[0x1f, 0x8b]) => Container::Gzip,
            _ if head.starts_with(&[0x28, 0xb5, 0x2f, 0xfd]) => Container::Zstd,
            _ if head.starts_with(b"\xfd7zXZ\0") => Container::Xz,
            text if starts_with_ignoring_case(text, b"<!doctype html") => Container::Html,
            text if starts_with_ignoring_case(text, b"<html") => Container::Html,
            _ => Container::Other,
        }
    }

    /// The compression's name, if it is one.
    pub(super) fn compression(self) -> Option<&'static str> {
        match self {
            Container::Gzip => Some("gzip"),
            Container::Zstd => Some("zstd"),
            Container::Xz => Some("xz"),
            Container::Pickle | Container::Html | Container::Other => None,
        }
    }

    /// What a compressed stream unpacks to; any other as it is.
    pub(super) fn unpack<'a>(self, packed: impl Read + 'a) -> io::Result<Box<dyn Read + 'a>> {
        Ok(match self {
            Container::Gzip => Box::new(flate2::read::MultiGzDecoder::new(packed)),
            Container::Zstd => Box::new(zstd::Decoder::new(packed)?),
            Container::Xz => Box::new(liblzma::read::XzDecoder::new_multi_decoder(packed)),
            Container::Pickle | Container::Html | Container::Other => Box::new(packed),
        })
    }
}

fn starts_with_ignoring_case(text: &[u8], prefix: &[u8]) -> bool {
    text.get(..prefix.len()).is_some_and(|start| start.eq_ignore_ascii_case(prefix))
}

/// Reads the beginning of a stream; fewer bytes only where it ends.
pub(super) fn head(stream: &mut impl Read) -> io::Result<Vec<u8>> {
    let mut head = Vec::with_capacity(HEAD);
    stream.take(HEAD as u64).read_to_end(&mut head)?;
    Ok(head)
}

/// What the first bytes of a file say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Beginning {
    /// It begins like a snapshot, or unpacks to what does.
    Snapshot,
    /// It is packed, and ends before anything can be unpacked.
    CutOff,
    /// There are none.
    Empty,
    /// Anything else.
    Other,
}

/// How a file begins. One that is not packed is told by its first bytes alone.
pub(super) fn beginning(file: &mut impl Read) -> io::Result<Beginning> {
    let of = |head: &[u8]| if is_dict_or_list(head) { Beginning::Snapshot } else { Beginning::Other };
    let first = head(file)?;
    let kind = Container::of(&first);
    if first.is_empty() {
        return Ok(Beginning::Empty);
    }
    if kind.compression().is_none() {
        return Ok(of(&first));
    }
    let unpacked = kind.unpack(first.chain(file)).and_then(|mut inner| head(&mut inner));
    Ok(unpacked.map_or(Beginning::CutOff, |inner| of(&inner)))
}

/// Whether a pickle begins with a dict or a list, as snapshots do and most other pickles do not (`torch.save` before
/// PyTorch 1.6 wrote a number first).
fn is_dict_or_list(head: &[u8]) -> bool {
    let [0x80, 2..=5, rest @ ..] = head else { return false };
    // FRAME and the eight bytes of its length.
    let body = if rest.first() == Some(&0x95) { rest.get(9..).unwrap_or_default() } else { rest };
    matches!(body.first(), Some(b'}' | b']'))
}

/// Whether it begins like what `export_chrome_trace` of PyTorch's profiler writes: an object whose first entries are the profiler's.
pub(super) fn begins_like_a_trace(head: &[u8]) -> bool {
    let holds = |key: &[u8]| head.windows(key.len()).any(|window| window == key);
    let keys: [&[u8]; 3] = [b"\"traceEvents\"", b"\"deviceProperties\"", b"\"baseTimeNanoseconds\""];
    head.trim_ascii_start().starts_with(b"{") && keys.iter().any(|key| holds(key))
}

/// Whether it begins like what `export_memory_timeline` of PyTorch's profiler writes: rows of numbers
/// (`[[time, action, bytes, category], ...`), or a row of times.
pub(super) fn begins_like_a_timeline(head: &[u8]) -> bool {
    let numbers = |byte: &u8| byte.is_ascii_digit() || b"[], .-e\n".contains(byte);
    // Of a device on which nothing happened there are no rows.
    let is_empty = head.trim_ascii_end() == b"[]";
    let has_rows = head.starts_with(b"[[") && head.get(2).is_some_and(|byte| *byte != b'[');
    is_empty || (has_rows && head.iter().all(numbers))
}
