//! Feeds a stream through a window: whoever takes opcodes apart sees a slice, and a file of any size costs one window.

use std::io::{ErrorKind, Read};

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
        window.drain(..taken);
        before += taken;
    }
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
            Err(error) => {
                let offset = before + window.len();
                return Err(Box::new(PickleError::Unreadable { reason: error.to_string(), offset }));
            }
        }
    }
    Ok(false)
}
