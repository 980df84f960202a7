//! A streaming pickle writer: what a snapshot needs, and nothing else.
//!
//! In: values, in the order of the file. Out: a pickle of protocol 4 (CPython 3.4 on; the newest that PyTorch's viewer
//! reads), written as it comes: the only thing kept is the number of memoised objects. Always: text and whatever else
//! is written through [`PickleWriter::shared`] stands in the file once, and each further use is a reference of two or
//! five bytes.
//!
//! That is why this writer exists. serde-pickle writes trees: it has no memo for objects, so each event would carry its
//! stack spelt out, frame by frame. The recording `seed-many-all` (25 MB as PyTorch wrote it) comes to 780 MB that way, and
//! to 11 MB this way, because text and equal stacks are shared, too.
//!
//! `FRAME` opcodes are left out: they are hints for buffering (PEP 3154), and readers must do without them.

use std::io::{self, Write};

use super::opcode;

/// Items between one `MARK` and its `APPENDS`, as CPython's pickler writes them: a bound on the reader's stack.
const BATCH: usize = 1000;

/// An object that was written and can be referred to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Memo(u32);

/// Writes one pickle.
#[derive(Debug)]
pub struct PickleWriter<W> {
    out: W,
    memoised: u32,
}

impl<W: Write> PickleWriter<W> {
    /// Begins a pickle.
    pub fn new(mut out: W) -> io::Result<Self> {
        out.write_all(&[opcode::PROTO, 4])?;
        Ok(PickleWriter { out, memoised: 0 })
    }

    /// Ends the pickle: exactly one value must have been written.
    pub fn finish(mut self) -> io::Result<W> {
        self.out.write_all(&[opcode::STOP])?;
        self.out.flush()?;
        Ok(self.out)
    }

    /// `True` or `False`.
    pub fn bool(&mut self, value: bool) -> io::Result<()> {
        self.out.write_all(&[if value { opcode::NEWTRUE } else { opcode::NEWFALSE }])
    }

    /// A whole number.
    pub fn signed(&mut self, value: i64) -> io::Result<()> {
        match u64::try_from(value) {
            Ok(value) => self.unsigned(value),
            Err(_) => match i32::try_from(value) {
                Ok(value) => self.with_operand(opcode::BININT, &value.to_le_bytes()),
                Err(_) => self.long(value.to_le_bytes(), 0xff),
            },
        }
    }

    /// A whole number that is not negative.
    pub fn unsigned(&mut self, value: u64) -> io::Result<()> {
        if let Ok(value) = u8::try_from(value) {
            self.with_operand(opcode::BININT1, &[value])
        } else if let Ok(value) = u16::try_from(value) {
            self.with_operand(opcode::BININT2, &value.to_le_bytes())
        } else if let Ok(value) = i32::try_from(value) {
            self.with_operand(opcode::BININT, &value.to_le_bytes())
        } else {
            self.long(value.to_le_bytes(), 0)
        }
    }

    /// `LONG1`: little-endian two's complement in as few bytes as keep the sign, which all bytes beyond repeat.
    fn long(&mut self, bytes: [u8; 8], sign: u8) -> io::Result<()> {
        let mut all = [sign; 9];
        for (place, byte) in all.iter_mut().zip(bytes) {
            *place = byte;
        }
        let needed = all.iter().rposition(|&byte| byte != sign).map_or(0, |last| last + 1);
        let top = needed.checked_sub(1).and_then(|last| all.get(last)).copied().unwrap_or(sign);
        // A byte more where the highest bit would tell the other sign.
        let length = needed + usize::from((top ^ sign) & 0x80 != 0);
        self.out.write_all(&[opcode::LONG1, u8::try_from(length).unwrap_or(9)])?;
        self.out.write_all(all.get(..length).unwrap_or(&all))
    }

    /// A floating point number.
    pub fn float(&mut self, value: f64) -> io::Result<()> {
        self.with_operand(opcode::BINFLOAT, &value.to_be_bytes())
    }

    /// Text, without sharing it.
    pub fn text(&mut self, text: &str) -> io::Result<()> {
        let length = text.len();
        if let Ok(length) = u8::try_from(length) {
            self.with_operand(opcode::SHORT_BINUNICODE, &[length])?;
        } else if let Ok(length) = u32::try_from(length) {
            self.with_operand(opcode::BINUNICODE, &length.to_le_bytes())?;
        } else {
            self.with_operand(opcode::BINUNICODE8, &(length as u64).to_le_bytes())?;
        }
        self.out.write_all(text.as_bytes())
    }

    /// An object that stands in the file once: written and remembered the first time, referred to afterwards.
    pub fn shared(
        &mut self,
        memo: &mut Option<Memo>,
        write: impl FnOnce(&mut Self) -> io::Result<()>,
    ) -> io::Result<()> {
        if let Some(Memo(place)) = *memo {
            return match u8::try_from(place) {
                Ok(place) => self.with_operand(opcode::BINGET, &[place]),
                Err(_) => self.with_operand(opcode::LONG_BINGET, &place.to_le_bytes()),
            };
        }
        write(self)?;
        // Beyond 2^32 - 1 objects the file grows instead.
        if let Some(next) = self.memoised.checked_add(1) {
            self.out.write_all(&[opcode::MEMOIZE])?;
            *memo = Some(Memo(self.memoised));
            self.memoised = next;
        }
        Ok(())
    }

    /// A list, one item after the other.
    pub fn list<T>(
        &mut self,
        items: impl IntoIterator<Item = T>,
        mut write: impl FnMut(&mut Self, T) -> io::Result<()>,
    ) -> io::Result<()> {
        self.out.write_all(&[opcode::EMPTY_LIST])?;
        let mut in_batch = 0;
        for item in items {
            if in_batch == 0 {
                self.out.write_all(&[opcode::MARK])?;
            }
            write(self, item)?;
            in_batch += 1;
            if in_batch == BATCH {
                self.out.write_all(&[opcode::APPENDS])?;
                in_batch = 0;
            }
        }
        if in_batch > 0 {
            self.out.write_all(&[opcode::APPENDS])?;
        }
        Ok(())
    }

    /// A dict; `write` writes keys and values in turn.
    pub fn dict(&mut self, write: impl FnOnce(&mut Self) -> io::Result<()>) -> io::Result<()> {
        self.out.write_all(&[opcode::EMPTY_DICT, opcode::MARK])?;
        write(self)?;
        self.out.write_all(&[opcode::SETITEMS])
    }

    /// A pair of numbers, as a tuple.
    pub fn pair(&mut self, pair: (u64, u64)) -> io::Result<()> {
        self.unsigned(pair.0)?;
        self.unsigned(pair.1)?;
        self.out.write_all(&[opcode::TUPLE2])
    }

    fn with_operand(&mut self, opcode: u8, operand: &[u8]) -> io::Result<()> {
        self.out.write_all(&[opcode])?;
        self.out.write_all(operand)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_pickle::{DeOptions, HashableValue, Value, value_from_slice};

    use super::*;

    fn written(write: impl FnOnce(&mut PickleWriter<Vec<u8>>) -> io::Result<()>) -> Vec<u8> {
        let mut writer = PickleWriter::new(Vec::new()).unwrap();
        write(&mut writer).unwrap();
        writer.finish().unwrap()
    }

    fn read(pickle: &[u8]) -> Value {
        value_from_slice(pickle, DeOptions::new()).unwrap()
    }

    #[test]
    fn whole_numbers_come_back_and_are_as_short_as_pythons() {
        let edges =
            [0, 1, 127, 128, 255, 256, 65_535, 65_536, i64::from(i32::MAX), 1 << 31, 1 << 39, i64::MAX];
        for number in edges.iter().flat_map(|&edge| [edge, -edge, (-edge).saturating_sub(1)]) {
            assert_eq!(read(&written(|out| out.signed(number))), Value::I64(number));
        }
        let large = read(&written(|out| out.unsigned(u64::MAX)));
        assert_eq!(large.to_string(), u64::MAX.to_string());
        // pickle.dumps(2**39, 4)[11:] == b'\x8a\x06\x00\x00\x00\x00\x80\x00.'
        assert_eq!(written(|out| out.unsigned(1 << 39)).get(2..), Some(&b"\x8a\x06\0\0\0\0\x80\0."[..]));
    }

    #[test]
    fn long_lists_are_written_in_batches_and_come_back() {
        let pickle = written(|out| out.list(0..2500, |out, _| out.bool(true)));
        let batches = pickle.split(|&byte| byte == opcode::APPENDS).count() - 1;
        assert_eq!(batches, 3);
        assert_eq!(read(&pickle), Value::List(vec![Value::Bool(true); 2500]));
        assert_eq!(read(&written(|out| out.list(0..0, PickleWriter::unsigned))), Value::List(Vec::new()));
    }

    #[test]
    fn shared_objects_stand_in_the_file_once() {
        let text = "a name that is worth sharing".repeat(20);
        let pickle = written(|out| {
            let mut memos = vec![None; 300];
            out.list((0..300).chain(0..300), |out, number: usize| {
                out.shared(&mut memos[number], |out| out.text(&format!("{text}{number}")))
            })
        });
        assert!(pickle.len() < 301 * (text.len() + 16));
        let Value::List(items) = read(&pickle) else { panic!("no list") };
        assert_eq!(items.len(), 600);
        assert_eq!(items[..300], items[300..]);
        assert_eq!(items[299], Value::String(format!("{text}299")));
    }

    #[test]
    fn dicts_pairs_and_the_rest_come_back() {
        let pickle = written(|out| {
            out.dict(|out| {
                out.text("pool")?;
                out.pair((0, 7))?;
                out.text("on")?;
                out.bool(true)?;
                out.text("share")?;
                out.float(0.25)
            })
        });
        let key = |text: &str| HashableValue::String(text.to_owned());
        let expected = BTreeMap::from([
            (key("pool"), Value::Tuple(vec![Value::I64(0), Value::I64(7)])),
            (key("on"), Value::Bool(true)),
            (key("share"), Value::F64(0.25)),
        ]);
        assert_eq!(read(&pickle), Value::Dict(expected));
    }
}
