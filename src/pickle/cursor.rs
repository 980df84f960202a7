//! A position in the bytes; every read is checked.

use super::error::PickleError;

/// Reads little-endian numbers and runs of bytes.
pub(super) struct Cursor<'a> {
    rest: &'a [u8],
    whole: usize,
}

impl<'a> Cursor<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Cursor { rest: bytes, whole: bytes.len() }
    }

    /// How many bytes have been read.
    pub(super) fn offset(&self) -> usize {
        self.whole - self.rest.len()
    }

    #[inline]
    pub(super) fn byte(&mut self) -> Result<u8, PickleError> {
        self.array::<1>().map(|[byte]| byte)
    }

    #[inline]
    pub(super) fn array<const N: usize>(&mut self) -> Result<[u8; N], PickleError> {
        match self.rest.split_first_chunk::<N>() {
            Some((chunk, rest)) => {
                self.rest = rest;
                Ok(*chunk)
            }
            None => Err(self.truncated()),
        }
    }

    /// The next `length` bytes. The length comes from the file; nothing is allocated for it.
    #[inline]
    pub(super) fn run(&mut self, length: u64) -> Result<&'a [u8], PickleError> {
        let split = usize::try_from(length).ok().and_then(|length| self.rest.split_at_checked(length));
        match split {
            Some((run, rest)) => {
                self.rest = rest;
                Ok(run)
            }
            None => Err(self.truncated()),
        }
    }

    /// The next line, without its end (GLOBAL's module and name).
    pub(super) fn line(&mut self) -> Result<&'a [u8], PickleError> {
        let end = self.rest.iter().position(|&byte| byte == b'\n').ok_or_else(|| self.truncated())?;
        let line = self.run(end as u64)?;
        self.byte()?;
        Ok(line)
    }

    fn truncated(&self) -> PickleError {
        PickleError::Truncated { offset: self.whole }
    }
}
