//! The JSON as it comes: rows of numbers, and nothing else gets through.
//!
//! In: a stream. Out: the timeline, or what is wrong with the file and where. Always: no recursion (the format has three
//! levels, and a fourth is an error), and nothing held whose length the file chooses but within the limit.

use std::io::{self, BufReader, Read};

use serde::de::DeserializeSeed;

use super::rows::{RowsDocument, RowsRead};
use super::{ProfilerError, ProfilerTimeline};

pub(super) fn read(json: impl Read, most: u64) -> Result<ProfilerTimeline, ProfilerError> {
    let mut plain = Plain { inner: json, offset: 0, found: None };
    let mut rows = RowsRead::within(most);
    let read = {
        let mut json = serde_json::Deserializer::from_reader(BufReader::new(&mut plain));
        RowsDocument(&mut rows).deserialize(&mut json).and_then(|()| json.end())
    };
    if let Some(error) = plain.found {
        return Err(error);
    }
    if rows.are_too_many() {
        return Err(ProfilerError::Limit { limit: most });
    }
    match read {
        Ok(()) => Ok(rows.finish()),
        Err(error) => Err(ProfilerError::Damaged { what: error.to_string() }),
    }
}

/// Lets only the characters of numbers and lists pass: a text of any length would be held whole to be refused.
struct Plain<R> {
    inner: R,
    offset: u64,
    found: Option<ProfilerError>,
}

impl<R: Read> Read for Plain<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buffer)?;
        let bytes = buffer.get(..read).unwrap_or_default();
        let odd = |byte: &u8| !(byte.is_ascii_digit() || b"[], \n\r\t.-+eE".contains(byte));
        if let Some(at) = bytes.iter().position(odd) {
            let offset = self.offset + at as u64;
            let found = bytes.get(at).map_or_else(String::new, |byte| match char::from(*byte) {
                letter if letter.is_ascii_graphic() => format!("`{letter}`"),
                _ => format!("the byte {byte:#04x}"),
            });
            self.found = Some(ProfilerError::NotNumbers { found, offset });
            return Err(io::Error::other("not a timeline"));
        }
        self.offset += read as u64;
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_refused_at_its_first_byte_and_not_held() {
        let endless = b"[[1, 2, 3, \"".chain(io::repeat(b'a'));
        let error = read(endless, 100).unwrap_err();
        assert_eq!(error, ProfilerError::NotNumbers { found: "`\"`".to_owned(), offset: 11 });
    }

    #[test]
    fn no_depth_is_followed() {
        let error = read(io::repeat(b'['), 100).unwrap_err();
        assert!(matches!(error, ProfilerError::Damaged { .. }), "{error:?}");
    }

    #[test]
    fn numbers_without_end_pass_the_limit() {
        let row = b"[1, 2, 3, 4], ";
        let rows = io::Cursor::new(row.repeat(10_000));
        assert!(
            matches!(read(b"[".chain(rows), 10), Err(ProfilerError::Damaged { .. })),
            "events are not held"
        );
        let times = io::Cursor::new(b"1,".repeat(10_000));
        assert_eq!(read(b"[[".chain(times), 1_000), Err(ProfilerError::Limit { limit: 1_000 }));
    }
}
