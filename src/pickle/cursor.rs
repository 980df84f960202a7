//! A position in a window of the stream; every read is checked.

use std::num::NonZeroU8;

use super::error::PickleError;
use super::opcode;

/// The longest line that is read: far beyond any name that may be imported.
const LONGEST_LINE: usize = 4096;

/// What reading costs when it fails: a pointer, so that success is returned in registers.
pub(super) type ReadResult<T> = Result<T, Box<PickleError>>;

/// Bytes of each opcode with its operands, where they do not depend on these.
pub(super) type Lengths = [Option<NonZeroU8>; 256];

/// Reads little-endian numbers and runs of bytes. A read beyond the window fails as [`PickleError::Truncated`], which
/// means that the file is at its end only if the window is.
pub(super) struct Cursor<'a> {
    rest: &'a [u8],
    /// The stream's offset at the end of the window.
    end: usize,
    /// Bytes behind the window that were passed over.
    owed: u64,
}

impl<'a> Cursor<'a> {
    /// A cursor on a window that begins `before` bytes into the stream.
    pub(super) fn new(window: &'a [u8], before: usize) -> Self {
        Cursor { rest: window, end: before + window.len(), owed: 0 }
    }

    /// How many bytes of the stream have been read.
    #[inline]
    pub(super) fn offset(&self) -> usize {
        self.end - self.rest.len()
    }

    #[inline]
    pub(super) fn byte(&mut self) -> ReadResult<u8> {
        match self.rest.split_first() {
            Some((byte, rest)) => {
                self.rest = rest;
                Ok(*byte)
            }
            None => Err(self.starved()),
        }
    }

    #[inline]
    pub(super) fn array<const N: usize>(&mut self) -> ReadResult<[u8; N]> {
        match self.rest.split_first_chunk::<N>() {
            Some((chunk, rest)) => {
                self.rest = rest;
                Ok(*chunk)
            }
            None => Err(self.starved()),
        }
    }

    /// The next `length` bytes.
    #[inline]
    pub(super) fn run(&mut self, length: u64) -> ReadResult<&'a [u8]> {
        let split = usize::try_from(length).ok().and_then(|length| self.rest.split_at_checked(length));
        match split {
            Some((run, rest)) => {
                self.rest = rest;
                Ok(run)
            }
            None => Err(self.starved()),
        }
    }

    /// Passes over the opcodes that come next, as far as the table knows how long they are with their operands and all of them
    /// are in the window; how many there were.
    #[inline]
    pub(super) fn pass_opcodes(&mut self, lengths: &Lengths) -> u64 {
        let (mut at, mut passed) = (0, 0);
        while let Some(&code) = self.rest.get(at)
            && let Some(length) = lengths[usize::from(code)]
            && at + usize::from(length.get()) <= self.rest.len()
        {
            at += usize::from(length.get());
            passed += 1;
        }
        self.rest = self.rest.get(at..).unwrap_or_default();
        passed
    }

    /// What the window still holds.
    #[inline]
    pub(super) fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// Goes to what is the end of [`Self::rest`].
    #[inline]
    pub(super) fn go_to(&mut self, rest: &'a [u8]) {
        self.rest = rest;
    }

    /// The GETs that come next, where they are the whole of a list: APPENDS follows, and all of it is in the window.
    #[inline]
    pub(super) fn written_list(&self) -> Option<&'a [u8]> {
        let mut length = 0;
        loop {
            match *self.rest.get(length)? {
                opcode::BINGET => length += 2,
                opcode::LONG_BINGET => length += 5,
                opcode::APPENDS => return self.rest.get(..length),
                _ => return None,
            }
        }
    }

    /// Passes over the next `length` bytes, also those behind the window: nobody need hold them.
    #[inline]
    pub(super) fn pass(&mut self, length: u64) {
        let held = usize::try_from(length).unwrap_or(usize::MAX).min(self.rest.len());
        self.rest = self.rest.get(held..).unwrap_or_default();
        self.owed = length - held as u64;
    }

    /// How many bytes behind the window were passed over; the window is at its end where there are any.
    pub(super) fn owed(&self) -> u64 {
        self.owed
    }

    /// The next line, without its end (GLOBAL's module and name).
    pub(super) fn line(&mut self) -> ReadResult<&'a [u8]> {
        let Some(end) = self.rest.iter().take(LONGEST_LINE + 1).position(|&byte| byte == b'\n') else {
            return Err(if self.rest.len() > LONGEST_LINE { self.endless() } else { self.starved() });
        };
        let line = self.run(end as u64)?;
        self.byte()?;
        Ok(line)
    }

    #[cold]
    fn endless(&self) -> Box<PickleError> {
        Box::new(PickleError::Damaged { what: "a name of more than 4096 bytes", offset: self.offset() })
    }

    #[cold]
    fn starved(&self) -> Box<PickleError> {
        Box::new(PickleError::Truncated { offset: self.end })
    }
}
