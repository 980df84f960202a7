//! The floor of any reader: step over every opcode and build nothing.

use std::io::Read;

use super::cursor::{Cursor, Step};
use super::error::PickleError;
use super::opcode;
use super::stream::{self, Consumer};

/// Steps over a pickle's opcodes and counts them. Benchmarks measure the reader against this.
///
/// # Errors
/// Where the bytes end early or a byte is no binary opcode.
pub fn walk(source: impl Read) -> Result<u64, PickleError> {
    let mut walker = Walker { count: 0 };
    stream::feed(source, &mut walker).map_err(|error| *error)?;
    Ok(walker.count)
}

struct Walker {
    count: u64,
}

impl Consumer for Walker {
    #[inline]
    fn take(&mut self, cursor: &mut Cursor<'_>) -> Step<bool> {
        let code = cursor.byte()?;
        self.count += 1;
        let skip = match code {
            opcode::STOP => return Ok(true),
            opcode::BINGET | opcode::BINPUT | opcode::BININT1 | opcode::PROTO => 1,
            opcode::BININT2 => 2,
            opcode::BININT | opcode::LONG_BINGET | opcode::LONG_BINPUT => 4,
            opcode::BINFLOAT | opcode::FRAME => 8,
            opcode::SHORT_BINUNICODE | opcode::SHORT_BINBYTES | opcode::SHORT_BINSTRING | opcode::LONG1 => {
                u64::from(cursor.byte()?)
            }
            opcode::BINUNICODE | opcode::BINBYTES | opcode::BINSTRING | opcode::LONG4 => {
                u64::from(u32::from_le_bytes(cursor.array()?))
            }
            opcode::BINUNICODE8 | opcode::BINBYTES8 | opcode::BYTEARRAY8 => {
                u64::from_le_bytes(cursor.array()?)
            }
            _ if opcode::name(code).is_some() => 0,
            _ => {
                let offset = cursor.offset() - 1;
                return Err(Box::new(PickleError::Unexpected { what: format!("byte {code:#04x}"), offset }));
            }
        };
        cursor.pass(skip);
        Ok(false)
    }
}
