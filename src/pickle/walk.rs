//! The floor of any reader: step over every opcode and build nothing.

use std::io::Read;
use std::num::NonZeroU8;

use super::cursor::{Cursor, Lengths, ReadResult};
use super::error::PickleError;
use super::opcode;
use super::stream::{self, Consumer};

/// Steps over a pickle's opcodes and counts them. Benchmarks measure the reader against this.
///
/// # Errors
/// Where the bytes end early or a byte is no binary opcode.
pub fn walk(source: impl Read) -> Result<u64, PickleError> {
    let mut walker = Walker { count: 0, lengths: lengths() };
    stream::feed(source, &mut walker).map_err(|error| *error)?;
    Ok(walker.count)
}

struct Walker {
    count: u64,
    lengths: Lengths,
}

impl Consumer for Walker {
    /// Takes all opcodes that come next and whose length they tell themselves, in one tight loop: what a reader may do, too.
    #[inline]
    fn take(&mut self, cursor: &mut Cursor<'_>) -> ReadResult<bool> {
        let passed = cursor.pass_opcodes(&self.lengths);
        if passed > 0 {
            self.count += passed;
            return Ok(false);
        }
        let code = cursor.byte()?;
        let skip = match code {
            opcode::STOP => {
                self.count += 1;
                return Ok(true);
            }
            opcode::SHORT_BINUNICODE | opcode::SHORT_BINBYTES | opcode::SHORT_BINSTRING | opcode::LONG1 => {
                u64::from(cursor.byte()?)
            }
            opcode::BINUNICODE | opcode::BINBYTES | opcode::BINSTRING | opcode::LONG4 => {
                u64::from(u32::from_le_bytes(cursor.array()?))
            }
            opcode::BINUNICODE8 | opcode::BINBYTES8 | opcode::BYTEARRAY8 => {
                u64::from_le_bytes(cursor.array()?)
            }
            _ => {
                if let Some(length) = self.lengths[usize::from(code)] {
                    // The window ends before its operands do.
                    return cursor.run(u64::from(length.get()) - 1).map(|_| false);
                }
                let offset = cursor.offset() - 1;
                return Err(Box::new(PickleError::Unexpected { what: format!("byte {code:#04x}"), offset }));
            }
        };
        self.count += 1;
        cursor.pass(skip);
        Ok(false)
    }
}

/// Those of all opcodes but STOP and the ones whose operands say how long they are.
fn lengths() -> Lengths {
    std::array::from_fn(|code| {
        let operands = match u8::try_from(code).ok()? {
            opcode::BINGET | opcode::BINPUT | opcode::BININT1 | opcode::PROTO => 1,
            opcode::BININT2 => 2,
            opcode::BININT | opcode::LONG_BINGET | opcode::LONG_BINPUT => 4,
            opcode::BINFLOAT | opcode::FRAME => 8,
            opcode::STOP
            | opcode::SHORT_BINUNICODE
            | opcode::SHORT_BINBYTES
            | opcode::SHORT_BINSTRING
            | opcode::LONG1
            | opcode::BINUNICODE
            | opcode::BINBYTES
            | opcode::BINSTRING
            | opcode::LONG4
            | opcode::BINUNICODE8
            | opcode::BINBYTES8
            | opcode::BYTEARRAY8 => return None,
            code => opcode::name(code).map(|_| 0)?,
        };
        NonZeroU8::new(1 + operands)
    })
}
