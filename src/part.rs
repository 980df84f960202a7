//! What one input has to say, as a file: so that the work goes where the snapshots lie, and what comes of it is put together
//! elsewhere.
//!
//! In and out: an examination and what it was made with, JSON compressed with zstd, with a version and a checksum. Always: what is
//! read is what was written, to the last bit; a file of another version, or one that was damaged, is refused, and none grows
//! beyond a limit.

mod error;

use std::error::Error;
use std::io::{self, Read, Write};

use serde::{Deserialize, Serialize};

pub use self::error::PartError;
use crate::engine::Examination;

/// The version of the document. Any change of what an examination holds makes another.
const FORMAT: u32 = 1;
/// The program that writes and reads it: what rules say changes with it.
const TOOL: &str = env!("CARGO_PKG_VERSION");
/// With what zstd's frames begin (RFC 8878).
const MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
/// Of small documents, quick enough: they are written once and read once.
const COMPRESSION: i32 = 3;

/// One input, examined.
#[derive(Debug)]
pub struct Part {
    /// What was asked of it: [`crate::engine::Plan::mark`].
    pub asked: String,
    /// Of how many recordings a page was drawn for, where one was.
    pub page: Option<usize>,
    /// What it has to say.
    pub examination: Examination,
}

/// What stands in front: enough to tell whether the rest can be understood.
#[derive(Deserialize)]
struct Head {
    memlint_part: u32,
    tool: String,
}

/// The document.
#[derive(Serialize)]
struct Written<'a> {
    memlint_part: u32,
    tool: &'a str,
    asked: &'a str,
    page: Option<usize>,
    examination: &'a Examination,
}

/// The same as it is read.
#[derive(Deserialize)]
struct Body {
    asked: String,
    page: Option<usize>,
    examination: Examination,
}

impl Part {
    /// Writes it.
    ///
    /// # Errors
    /// Where the output cannot be written.
    pub fn write(&self, out: impl Write) -> io::Result<()> {
        let Part { asked, page, examination } = self;
        let document = Written { memlint_part: FORMAT, tool: TOOL, asked, page: *page, examination };
        let mut packed = zstd::Encoder::new(out, COMPRESSION)?;
        packed.include_checksum(true)?;
        serde_json::to_writer(&mut packed, &document)?;
        packed.finish()?.flush()
    }

    /// Reads one, of at most so many bytes when it is unpacked.
    ///
    /// # Errors
    /// Where it is something else, of another version, damaged or too large.
    pub fn read(packed: impl Read, limit: u64) -> Result<Part, PartError> {
        let mut packed = packed;
        let mut magic = Vec::with_capacity(MAGIC.len());
        packed.by_ref().take(MAGIC.len() as u64).read_to_end(&mut magic).map_err(|error| damaged(&error))?;
        if magic != MAGIC {
            return Err(PartError::Other);
        }
        let mut text = Vec::new();
        let unpacked = zstd::Decoder::new(MAGIC.as_slice().chain(packed)).map_err(|error| damaged(&error))?;
        unpacked.take(limit.saturating_add(1)).read_to_end(&mut text).map_err(|error| damaged(&error))?;
        if text.len() as u64 > limit {
            return Err(PartError::TooLarge { limit });
        }
        let Ok(head) = serde_json::from_slice::<Head>(&text) else { return Err(PartError::Other) };
        if (head.memlint_part, head.tool.as_str()) != (FORMAT, TOOL) {
            return Err(PartError::Version { found: head.tool });
        }
        let Body { asked, page, examination } =
            serde_json::from_slice(&text).map_err(|error| damaged(&error))?;
        Ok(Part { asked, page, examination })
    }
}

fn damaged(error: &dyn Error) -> PartError {
    PartError::Damaged { what: error.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::Recording;
    use crate::finding::{Finding, Group, Measure, Quantity, Severity};

    fn written() -> Vec<u8> {
        let finding = Finding {
            evidence: vec![Measure {
                name: "share".into(),
                value: Quantity::Ratio(0.1 + 0.2),
                text: String::new(),
            }],
            ..Finding::of("oom", Group::Allocator, Severity::Error)
        };
        let recording = Recording { name: "out/rank3.pickle".to_owned(), ..Recording::default() };
        let examination = Examination { recording, findings: vec![finding], skipped: Vec::new() };
        let mut bytes = Vec::new();
        Part { asked: "a".to_owned(), page: Some(8), examination }.write(&mut bytes).unwrap();
        bytes
    }

    fn packed(text: &str) -> Vec<u8> {
        zstd::encode_all(text.as_bytes(), 1).unwrap()
    }

    #[test]
    fn what_is_read_is_what_was_written() {
        let part = Part::read(written().as_slice(), 1 << 20).unwrap();
        assert_eq!((part.asked.as_str(), part.page), ("a", Some(8)));
        assert_eq!(part.examination.recording.name, "out/rank3.pickle");
        let value = &part.examination.findings[0].evidence[0].value;
        assert_eq!(*value, Quantity::Ratio(0.1 + 0.2), "to the last bit");
    }

    #[test]
    fn others_damaged_ones_and_those_of_other_versions_are_refused() {
        let whole = written();
        let error = |bytes: &[u8]| Part::read(bytes, 1 << 20).unwrap_err();
        assert!(matches!(error(b""), PartError::Other));
        assert!(matches!(error(b"\x80\x04}."), PartError::Other));
        assert!(matches!(error(&packed("[1, 2]")), PartError::Other));
        let newer = packed(r#"{"memlint_part": 2, "tool": "9.1.0", "more": {}}"#);
        assert_eq!(
            error(&newer).to_string(),
            format!("it was examined by memlint 9.1.0, and this is memlint {TOOL}")
        );
        let hollow = packed(&format!(r#"{{"memlint_part": {FORMAT}, "tool": "{TOOL}", "asked": "a"}}"#));
        assert!(matches!(error(&hollow), PartError::Damaged { .. }));
        for end in 1..whole.len() {
            let wrong = matches!(error(&whole[..end]), PartError::Damaged { .. } | PartError::Other);
            assert!(wrong, "{end} bytes of it");
        }
        let mut changed = whole.clone();
        let last = changed.len() - 8;
        changed[last] ^= 1;
        assert!(matches!(error(&changed), PartError::Damaged { .. } | PartError::Other));
        assert!(matches!(Part::read(whole.as_slice(), 10), Err(PartError::TooLarge { limit: 10 })));
    }
}
