//! Feeds a stream through a window: whoever takes opcodes apart sees a slice, and a file of any size costs one window.
//! What is passed over never enters it; it grows for text alone, whose length the machine bounds first.

use std::io::{self, ErrorKind, Read};

use super::cursor::{Cursor, Step};
use super::error::PickleError;

/// Bytes asked of the source at a time; larger windows fall out of the processor's cache.
const WINDOW: usize = 1 << 18;

/// What takes the opcodes of a stream.
pub(super) trait Consumer {
    /// What it makes of the whole stream.
    type Output;

    /// Takes one opcode with its operands; `Some` at the last. All operands are read before anything changes, so that
    /// an opcode cut in two by the window's end can be taken again.
    fn take(&mut self, cursor: &mut Cursor<'_>) -> Step<Option<Self::Output>>;
}

/// Runs a consumer over a stream until it has what it wants.
pub(super) fn feed<C: Consumer>(mut source: impl Read, consumer: &mut C) -> Step<C::Output> {
    let mut window = Vec::new();
    let mut before = 0;
    loop {
        let ended = refill(&mut source, &mut window, before)?;
        let mut cursor = Cursor::new(&window, before);
        let taken = loop {
            let taken = cursor.offset() - before;
            match consumer.take(&mut cursor) {
                Ok(None) => {}
                Ok(Some(output)) => return Ok(output),
                Err(error) if !ended && matches!(*error, PickleError::Truncated { .. }) => break taken,
                Err(error) => return Err(error),
            }
        };
        let owed = cursor.owed();
        window.drain(..taken);
        before += taken;
        if owed > 0 {
            before = pass_over(&mut source, owed, before)?;
        }
    }
}

/// Reads `length` bytes and drops them; the stream's offset behind them.
fn pass_over(source: &mut impl Read, length: u64, before: usize) -> Step<usize> {
    let passed = io::copy(&mut source.by_ref().take(length), &mut io::sink());
    let passed = passed.map_err(|error| unreadable(&error, before))?;
    let offset = before.saturating_add(usize::try_from(passed).unwrap_or(usize::MAX));
    if passed < length { Err(Box::new(PickleError::Truncated { offset })) } else { Ok(offset) }
}

fn unreadable(error: &io::Error, offset: usize) -> Box<PickleError> {
    Box::new(PickleError::Unreadable { reason: error.to_string(), offset })
}

/// Reads on behind what the window holds, at least doubling an opcode that did not fit; true where the stream ended.
fn refill(source: &mut impl Read, window: &mut Vec<u8>, before: usize) -> Step<bool> {
    let wanted = window.len() + WINDOW.max(window.len());
    while window.len() < wanted {
        let room = (wanted - window.len()) as u64;
        match source.by_ref().take(room).read_to_end(window) {
            Ok(0) => return Ok(true),
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(unreadable(&error, before + window.len())),
        }
    }
    Ok(false)
}
