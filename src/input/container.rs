//! What a file is packed in, told from its first bytes.

use std::io::{self, Read};

use super::Limits;

/// Bytes that any file may become, whatever its compressed size.
const FREE_BYTES: u64 = 256 << 20;

/// What a container can be wrong with, before it has a name.
pub(super) enum ContainerError {
    Empty,
    NotASnapshot(String),
    Broken { kind: &'static str, source: io::Error },
    TooLarge(u64),
    Bomb { kind: &'static str, limit: u64 },
}

/// The pickle inside: the bytes themselves, or what they decompress to.
pub(super) fn open(raw: Vec<u8>, limits: &Limits) -> Result<Vec<u8>, ContainerError> {
    match raw.as_slice() {
        [] => Err(ContainerError::Empty),
        [0x80, 2..=5, ..] => Ok(raw),
        [0x1f, 0x8b, ..] => {
            decompress("gzip", raw.len(), limits, flate2::read::MultiGzDecoder::new(raw.as_slice()))
        }
        [0x28, 0xb5, 0x2f, 0xfd, ..] => match zstd::Decoder::new(raw.as_slice()) {
            Ok(decoder) => decompress("zstd", raw.len(), limits, decoder),
            Err(source) => Err(ContainerError::Broken { kind: "zstd", source }),
        },
        [0xfd, b'7', b'z', b'X', b'Z', 0, ..] => {
            decompress("xz", raw.len(), limits, liblzma::read::XzDecoder::new_multi_decoder(raw.as_slice()))
        }
        other => Err(ContainerError::NotASnapshot(describe(other))),
    }
}

/// Whether the first bytes of a file are those of a pickle, or decompress to them.
pub(super) fn begins_like_a_snapshot(head: &[u8]) -> bool {
    let mut first = [0; 2];
    let read = match head {
        [0x80, 2..=5, ..] => return true,
        [0x1f, 0x8b, ..] => flate2::read::MultiGzDecoder::new(head).read_exact(&mut first),
        [0x28, 0xb5, 0x2f, 0xfd, ..] => {
            zstd::Decoder::new(head).and_then(|mut decoder| decoder.read_exact(&mut first))
        }
        [0xfd, b'7', b'z', b'X', b'Z', 0, ..] => {
            liblzma::read::XzDecoder::new_multi_decoder(head).read_exact(&mut first)
        }
        _ => return false,
    };
    read.is_ok() && matches!(first, [0x80, 2..=5])
}

fn decompress(
    kind: &'static str,
    compressed: usize,
    limits: &Limits,
    decoder: impl Read,
) -> Result<Vec<u8>, ContainerError> {
    let by_ratio = (compressed as u64).saturating_mul(limits.ratio).max(FREE_BYTES);
    let most = limits.bytes.min(by_ratio);
    let mut bytes = Vec::new();
    decoder
        .take(most + 1)
        .read_to_end(&mut bytes)
        .map_err(|source| ContainerError::Broken { kind, source })?;
    if bytes.len() as u64 > most {
        let bomb = by_ratio < limits.bytes;
        return Err(if bomb {
            ContainerError::Bomb { kind, limit: limits.ratio }
        } else {
            ContainerError::TooLarge(limits.bytes)
        });
    }
    match bytes.as_slice() {
        [] => Err(ContainerError::Empty),
        [0x80, ..] => Ok(bytes),
        other => Err(ContainerError::NotASnapshot(format!("{} inside {kind}", describe(other)))),
    }
}

/// What a file is that is no snapshot, in words.
fn describe(bytes: &[u8]) -> String {
    let head = bytes.get(..bytes.len().min(512)).unwrap_or_default();
    let known: &[(&[u8], &str)] = &[
        (b"PK\x03\x04", "a zip archive (from `torch.save`?)"),
        (b"\x7fELF", "a program"),
        (b"<!DOCTYPE", "an HTML page"),
        (b"<html", "an HTML page"),
        (b"{", "JSON or other text"),
        (b"[", "JSON or other text"),
    ];
    if let Some((_, what)) = known.iter().find(|(magic, _)| head.starts_with(magic)) {
        return (*what).to_owned();
    }
    if let [0x80, protocol, ..] = head {
        return format!("a pickle of protocol {protocol}");
    }
    let printable = |byte: &u8| byte.is_ascii_graphic() || byte.is_ascii_whitespace();
    match str::from_utf8(head) {
        Ok(text) if head.iter().all(printable) => {
            let line: String = text.lines().next().unwrap_or_default().chars().take(40).collect();
            format!("text (\"{line}\")")
        }
        _ => {
            let first: Vec<String> = head.iter().take(4).map(|byte| format!("{byte:02x}")).collect();
            format!("data that begins with {}", first.join(" "))
        }
    }
}
