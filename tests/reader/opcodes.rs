//! Pickles written opcode by opcode.

use memlint::pickle::PickleLimits;
use memlint::snapshot::{Snapshot, SnapshotError};

/// A pickle in the making.
#[derive(Default, Clone)]
pub(crate) struct Pickle(pub(crate) Vec<u8>);

impl Pickle {
    /// Begins with the protocol's mark.
    pub(crate) fn new(protocol: u8) -> Pickle {
        Pickle(vec![0x80, protocol])
    }

    /// Adds bytes as they are.
    pub(crate) fn raw(mut self, bytes: &[u8]) -> Pickle {
        self.0.extend_from_slice(bytes);
        self
    }

    /// Adds text.
    pub(crate) fn text(self, text: &str) -> Pickle {
        let length = u8::try_from(text.len()).unwrap();
        self.raw(&[0x8c, length]).raw(text.as_bytes())
    }

    /// Adds a number of up to 64 bits.
    pub(crate) fn number(self, number: u64) -> Pickle {
        // A ninth byte keeps numbers from 2^63 on positive.
        self.raw(&[0x8a, 9]).raw(&number.to_le_bytes()).raw(&[0])
    }

    /// Adds a dict of texts and numbers.
    pub(crate) fn dict(self, items: &[(&str, Field)]) -> Pickle {
        let mut pickle = self.raw(b"}(");
        for (key, value) in items {
            pickle = pickle.text(key);
            pickle = match value {
                Field::Text(text) => pickle.text(text),
                Field::Number(number) => pickle.number(*number),
                Field::Raw(bytes) => pickle.raw(bytes),
            };
        }
        pickle.raw(b"u")
    }

    /// Ends the pickle.
    pub(crate) fn stop(self) -> Vec<u8> {
        self.raw(b".").0
    }
}

/// A value of a dict.
pub(crate) enum Field<'a> {
    Text(&'a str),
    Number(u64),
    Raw(&'a [u8]),
}

/// Reads a pickle with the default limits.
pub(crate) fn read(bytes: &[u8]) -> Result<Snapshot, SnapshotError> {
    Snapshot::read(bytes, &PickleLimits::default())
}

/// A snapshot that holds one trace with one event of these fields, and nothing else.
pub(crate) fn one_event(fields: &[(&str, Field)]) -> Vec<u8> {
    let event = Pickle::default().dict(fields).0;
    one_trace(&event)
}

/// A snapshot with one trace, whose events are given as opcodes.
pub(crate) fn one_trace(events: &[u8]) -> Vec<u8> {
    let traces = Pickle::default().raw(b"](](").raw(events).raw(b"ee").0;
    Pickle::new(4).dict(&[("segments", Field::Raw(b"]")), ("device_traces", Field::Raw(&traces))]).stop()
}
