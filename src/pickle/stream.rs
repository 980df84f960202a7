//! Feeds a stream through a window: whoever takes opcodes apart sees a slice, and a file of any size costs a few windows.
//! It grows for text alone, whose length the machine bounds first. What is larger than one window is read (and unpacked)
//! on this thread while another takes apart what was read before.

use std::io::{self, Read};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

use super::cursor::{Cursor, ReadResult};
use super::error::PickleError;

/// Bytes asked of the source at a time; larger windows fall out of the processor's cache.
const WINDOW: usize = 1 << 18;

/// Bytes left free before what is read, so that the beginning of an opcode that was cut in two goes there and nothing is
/// copied. Longer ones are.
const HEADROOM: usize = 64;

/// Windows that are read ahead.
const AHEAD: usize = 2;

/// What takes the opcodes of a stream.
pub(super) trait Consumer: Send {
    /// Takes one opcode with its operands, or several that are whole in the window; whether the last was among them. All
    /// operands are read before anything changes, so that an opcode cut in two by the window's end can be taken again.
    fn take(&mut self, cursor: &mut Cursor<'_>) -> ReadResult<bool>;
}

/// Where windows come from. Each begins with [`HEADROOM`] bytes that mean nothing; one without any more is the end.
trait Windows {
    /// The next window; `spent` is one that nobody needs any more.
    fn next(&mut self, spent: Vec<u8>) -> io::Result<Vec<u8>>;
}

/// Windows that are read when they are asked for.
struct Here<R>(R);

impl<R: Read> Windows for Here<R> {
    fn next(&mut self, spent: Vec<u8>) -> io::Result<Vec<u8>> {
        read(&mut self.0, spent)
    }
}

/// Windows that another thread reads.
struct Ahead {
    read: Receiver<io::Result<Vec<u8>>>,
    spent: SyncSender<Vec<u8>>,
}

impl Windows for Ahead {
    fn next(&mut self, spent: Vec<u8>) -> io::Result<Vec<u8>> {
        // Who reads has enough of them, or is done.
        let _ = self.spent.try_send(spent);
        self.read.recv().unwrap_or_else(|_| Ok(vec![0; HEADROOM]))
    }
}

fn read(source: &mut impl Read, mut window: Vec<u8>) -> io::Result<Vec<u8>> {
    // A window that was full before has nothing to be zeroed.
    window.resize(HEADROOM + WINDOW, 0);
    let mut end = HEADROOM;
    while let Some(room @ [_, ..]) = window.get_mut(end..) {
        match source.read(room) {
            Ok(0) => break,
            Ok(count) => end += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    window.truncate(end);
    Ok(window)
}

/// Runs a consumer over a stream until it has what it wants, which must be where the stream ends.
pub(super) fn feed<C: Consumer>(mut source: impl Read, consumer: &mut C) -> ReadResult<()> {
    let first = read(&mut source, Vec::new()).map_err(|error| unreadable(&error, 0))?;
    if first.len() < HEADROOM + WINDOW {
        return consume(first, Here(source), consumer);
    }
    match feed_ahead(first, &mut source, consumer) {
        Ok(outcome) => outcome,
        Err(first) => consume(first, Here(source), consumer),
    }
}

/// Reads on this thread and consumes on another; gives the first window back where the system has no thread to give.
fn feed_ahead<C: Consumer>(
    first: Vec<u8>,
    mut source: impl Read,
    consumer: &mut C,
) -> Result<ReadResult<()>, Vec<u8>> {
    thread::scope(|scope| {
        let (sender, receiver) = sync_channel(AHEAD);
        let (back, spent) = sync_channel(AHEAD);
        let work = move || {
            let mut windows = Ahead { read: receiver, spent: back };
            let first = windows.next(Vec::new()).map_err(|error| unreadable(&error, 0))?;
            consume(first, windows, consumer)
        };
        let Ok(thread) = thread::Builder::new().spawn_scoped(scope, work) else { return Err(first) };
        let mut next = Ok(first);
        loop {
            let last = next.as_ref().map_or(true, |window: &Vec<u8>| window.len() <= HEADROOM);
            if sender.send(next).is_err() || last {
                break;
            }
            next = read(&mut source, spent.try_recv().unwrap_or_default());
        }
        drop(sender);
        Ok(thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    })
}

/// Windows of chosen lengths, the last of them as often as it takes.
#[cfg(test)]
struct Pieces<'a> {
    bytes: &'a [u8],
    lengths: &'a [usize],
}

#[cfg(test)]
impl Windows for Pieces<'_> {
    fn next(&mut self, _: Vec<u8>) -> io::Result<Vec<u8>> {
        let length = match *self.lengths {
            [length, ref rest @ ..] => {
                self.lengths = if rest.is_empty() { self.lengths } else { rest };
                length
            }
            [] => WINDOW,
        };
        let (piece, rest) = self.bytes.split_at(length.min(self.bytes.len()));
        self.bytes = rest;
        Ok([&[0; HEADROOM], piece].concat())
    }
}

/// Runs a consumer over bytes that come in windows of these lengths.
#[cfg(test)]
pub(super) fn feed_in_pieces<C: Consumer>(
    bytes: &[u8],
    lengths: &[usize],
    consumer: &mut C,
) -> ReadResult<()> {
    let mut pieces = Pieces { bytes, lengths };
    let first = pieces.next(Vec::new()).map_err(|error| unreadable(&error, 0))?;
    consume(first, pieces, consumer)
}

/// Gives a consumer one window after the other.
fn consume(first: Vec<u8>, mut windows: impl Windows, consumer: &mut impl Consumer) -> ReadResult<()> {
    let (mut window, mut start, mut before) = (first, HEADROOM, 0);
    loop {
        let held = window.get(start..).unwrap_or_default();
        let mut cursor = Cursor::new(held, before);
        let (taken, starved) = loop {
            let taken = cursor.offset() - before;
            match consumer.take(&mut cursor) {
                Ok(false) => {}
                Ok(true) => return end(&mut windows, before + held.len(), cursor.offset()),
                Err(error) if matches!(*error, PickleError::Truncated { .. }) => break (taken, error),
                Err(error) => return Err(error),
            }
        };
        let owed = cursor.owed();
        before += taken;
        start += taken;
        let went_on = if owed > 0 {
            pass_over(&mut windows, &mut window, &mut start, owed, &mut before)?
        } else {
            go_on(&mut windows, &mut window, &mut start, before)?
        };
        if !went_on {
            return Err(starved);
        }
    }
}

/// Makes sure that the stream ends where the pickle does, at byte `offset`; the window ends at byte `last`.
fn end(windows: &mut impl Windows, last: usize, offset: usize) -> ReadResult<()> {
    let is_followed = last > offset || {
        let next = windows.next(Vec::new()).map_err(|error| unreadable(&error, offset))?;
        next.len() > HEADROOM
    };
    if is_followed {
        return Err(Box::new(PickleError::Followed { offset }));
    }
    Ok(())
}

/// Reads on behind what the window holds from `start` on, at least doubling an opcode that did not fit; false where the
/// stream ended.
fn go_on(
    windows: &mut impl Windows,
    window: &mut Vec<u8>,
    start: &mut usize,
    before: usize,
) -> ReadResult<bool> {
    let left = window.get(*start..).unwrap_or_default().to_vec();
    let failed = |error: io::Error| unreadable(&error, before + left.len());
    let mut next = windows.next(std::mem::take(window)).map_err(failed)?;
    let mut went_on = next.len() > HEADROOM;
    if let Some(place) = HEADROOM.checked_sub(left.len()) {
        if let Some(room) = next.get_mut(place..HEADROOM) {
            room.copy_from_slice(&left);
        }
        (*window, *start) = (next, place);
        return Ok(went_on);
    }
    let wanted = 2 * left.len();
    let mut longer = left;
    while next.len() > HEADROOM {
        longer.extend_from_slice(next.get(HEADROOM..).unwrap_or_default());
        if longer.len() >= wanted {
            break;
        }
        next = windows.next(next).map_err(|error| unreadable(&error, before + longer.len()))?;
        went_on |= next.len() > HEADROOM;
    }
    (*window, *start) = (longer, 0);
    Ok(went_on)
}

/// Goes to the window that holds what comes `owed` bytes behind this one.
fn pass_over(
    windows: &mut impl Windows,
    window: &mut Vec<u8>,
    start: &mut usize,
    owed: u64,
    before: &mut usize,
) -> ReadResult<bool> {
    let mut owed = usize::try_from(owed).unwrap_or(usize::MAX);
    loop {
        let next = windows.next(std::mem::take(window)).map_err(|error| unreadable(&error, *before))?;
        let length = next.len() - HEADROOM.min(next.len());
        *window = next;
        if length == 0 {
            return Err(Box::new(PickleError::Truncated { offset: *before }));
        }
        let passed = owed.min(length);
        *before += passed;
        owed -= passed;
        if owed == 0 {
            *start = HEADROOM + passed;
            return Ok(true);
        }
    }
}

fn unreadable(error: &io::Error, offset: usize) -> Box<PickleError> {
    Box::new(PickleError::Unreadable { reason: error.to_string(), offset })
}
