//! Numbers, text and bytes.

use super::Fold;
use super::cursor::{Cursor, ReadResult};
use super::heap::Value;
use super::machine::Machine;

/// Bytes of the longest integer that is looked at, which is what LONG1 can hold; none beyond fits 64 bits.
const LONGEST_INTEGER: u64 = 255;

impl<F: Fold> Machine<'_, F> {
    pub(super) fn push_long(&mut self, length: u64, cursor: &mut Cursor<'_>) -> ReadResult<()> {
        if length > LONGEST_INTEGER {
            return self.push_opaque(length, cursor);
        }
        let bytes = cursor.run(length)?;
        if let Some(number) = short_integer(bytes) {
            return self.push(Value::Int(number));
        }
        let value = match integer(bytes) {
            Some(number) => {
                i64::try_from(number).map(Value::Int).or_else(|_| u64::try_from(number).map(Value::Unsigned))
            }
            None => Ok(Value::Opaque),
        };
        self.push(value.unwrap_or(Value::Opaque))
    }

    /// Text; lone surrogates and other bytes that are no UTF-8 become replacement characters. A length beyond the limit
    /// is refused before the text is read.
    pub(super) fn push_text(&mut self, length: u64, cursor: &mut Cursor<'_>) -> ReadResult<()> {
        Self::check(length, self.limits.text, "bytes of text", "--max-text")?;
        let bytes = cursor.run(length)?;
        if let Some(last) = self.last_text.filter(|last| self.strings.get(*last).as_bytes() == bytes) {
            return self.push(Value::Text(last));
        }
        let lossy;
        let text = if let Ok(text) = str::from_utf8(bytes) {
            text
        } else {
            lossy = String::from_utf8_lossy(bytes).into_owned();
            &lossy
        };
        let before = self.strings.len();
        let id = self.strings.intern(text);
        self.last_text = id;
        if self.strings.len() > before {
            self.text_bytes += text.len() as u64;
            Self::check(self.text_bytes, self.limits.text, "bytes of text", "--max-text")?;
        }
        match id {
            Some(id) => self.push(Value::Text(id)),
            None => Err(Self::damaged("more distinct text than can be held")),
        }
    }

    pub(super) fn push_opaque(&mut self, length: u64, cursor: &mut Cursor<'_>) -> ReadResult<()> {
        cursor.pass(length);
        self.push(Value::Opaque)
    }
}

/// A little-endian two's complement integer of at most 8 bytes: addresses and times.
fn short_integer(bytes: &[u8]) -> Option<i64> {
    if bytes.len() > 8 {
        return None;
    }
    let number = bytes.iter().rev().fold(0_u64, |number, byte| number << 8 | u64::from(*byte));
    let unused = 64 - 8 * u32::try_from(bytes.len()).unwrap_or(8);
    Some(number.checked_shl(unused).unwrap_or(0).cast_signed().checked_shr(unused).unwrap_or(0))
}

/// A little-endian two's complement integer of at most 16 significant bytes.
fn integer(bytes: &[u8]) -> Option<i128> {
    let negative = bytes.last().is_some_and(|&top| top & 0x80 != 0);
    let fill = if negative { 0xff } else { 0 };
    let mut wide = [fill; 16];
    let (low, high) = bytes.split_at(bytes.len().min(16));
    if high.iter().any(|&byte| byte != fill) {
        return None;
    }
    for (place, byte) in wide.iter_mut().zip(low) {
        *place = *byte;
    }
    let number = i128::from_le_bytes(wide);
    ((number < 0) == negative).then_some(number)
}
