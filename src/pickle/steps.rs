//! What each opcode does.

use super::cursor::{Cursor, ReadResult};
use super::error::PickleError;
use super::heap::{ContainerState, Value};
use super::machine::Machine;
use super::{Fold, opcode};
use crate::unit::shown_name;

/// The module and name of the one function that PyTorch's C++ pickler may wrap a container in
/// (`torch/csrc/jit/serialization/pickler.cpp`, `endTypeTag`); it returns its first argument.
const TYPE_TAG: (&str, &str) = ("torch.jit._pickle", "restore_type_tag");

impl<F: Fold> Machine<'_, F> {
    pub(super) fn begin(&mut self, cursor: &mut Cursor<'_>) -> ReadResult<()> {
        let [first, protocol] = cursor.array()?;
        if first != opcode::PROTO {
            let found = format!("byte {first:#04x} instead of a protocol mark");
            return Err(Box::new(PickleError::NotAPickle { found }));
        }
        if !(2..=5).contains(&protocol) {
            return Err(Box::new(PickleError::Protocol { protocol }));
        }
        self.begun = true;
        Ok(())
    }

    /// The opcodes of which snapshots consist; the others are in [`Self::step_rare`].
    #[inline]
    pub(super) fn step(&mut self, code: u8, cursor: &mut Cursor<'_>) -> ReadResult<()> {
        match code {
            opcode::BINGET => {
                let position = usize::from(cursor.byte()?);
                self.recall(position)
            }
            opcode::LONG_BINGET => {
                let position = length32(cursor)? as usize;
                self.recall(position)
            }
            opcode::MEMOIZE => self.memoise_next(cursor),
            opcode::BININT1 => {
                let number = i64::from(cursor.byte()?);
                self.push(Value::Int(number))
            }
            opcode::BININT2 => {
                let number = u16::from_le_bytes(cursor.array()?);
                self.push(Value::Int(i64::from(number)))
            }
            opcode::BININT => {
                let number = i32::from_le_bytes(cursor.array()?);
                self.push(Value::Int(i64::from(number)))
            }
            opcode::LONG1 => {
                let length = u64::from(cursor.byte()?);
                self.push_long(length, cursor)
            }
            opcode::SHORT_BINUNICODE => {
                let length = u64::from(cursor.byte()?);
                self.push_text(length, cursor)
            }
            opcode::MARK => self.mark_or_list(cursor),
            opcode::EMPTY_DICT => self.new_dict(cursor),
            opcode::EMPTY_LIST => self.push_new(ContainerState::NewList),
            opcode::SETITEMS => {
                let base = self.pop_mark()?;
                self.set_items(base)
            }
            opcode::APPENDS => {
                let base = self.pop_mark()?;
                self.append_items(base)
            }
            opcode::APPEND => {
                let base = self.below(1)?;
                self.append_items(base)
            }
            opcode::SETITEM => {
                let base = self.below(2)?;
                self.set_items(base)
            }
            opcode::TUPLE2 => self.push_tuple_of(2),
            opcode::FRAME => cursor.array::<8>().map(|_| ()),
            _ => self.step_rare(code, cursor),
        }
    }

    pub(super) fn step_rare(&mut self, code: u8, cursor: &mut Cursor<'_>) -> ReadResult<()> {
        match code {
            opcode::NONE => self.push(Value::None),
            opcode::NEWTRUE => self.push(Value::Bool(true)),
            opcode::NEWFALSE => self.push(Value::Bool(false)),
            opcode::BINFLOAT => {
                let number = f64::from_be_bytes(cursor.array()?);
                self.push(Value::Float(number))
            }
            opcode::LONG4 => {
                let length = u64::from(length32(cursor)?);
                self.push_long(length, cursor)
            }
            opcode::BINUNICODE | opcode::BINSTRING => {
                let length = u64::from(length32(cursor)?);
                self.push_text(length, cursor)
            }
            opcode::SHORT_BINSTRING => {
                let length = u64::from(cursor.byte()?);
                self.push_text(length, cursor)
            }
            opcode::BINUNICODE8 => {
                let length = u64::from_le_bytes(cursor.array()?);
                self.push_text(length, cursor)
            }
            opcode::SHORT_BINBYTES => {
                let length = u64::from(cursor.byte()?);
                self.push_opaque(length, cursor)
            }
            opcode::BINBYTES => {
                let length = u64::from(length32(cursor)?);
                self.push_opaque(length, cursor)
            }
            opcode::BINBYTES8 | opcode::BYTEARRAY8 => {
                let length = u64::from_le_bytes(cursor.array()?);
                self.push_opaque(length, cursor)
            }
            opcode::BINPUT => {
                let position = usize::from(cursor.byte()?);
                self.memoise(position, cursor)
            }
            opcode::LONG_BINPUT => {
                let position = length32(cursor)? as usize;
                self.memoise(position, cursor)
            }
            opcode::EMPTY_TUPLE => self.push_tuple_of(0),
            opcode::TUPLE1 => self.push_tuple_of(1),
            opcode::TUPLE3 => self.push_tuple_of(3),
            opcode::TUPLE => {
                let base = self.pop_mark()?;
                self.push_tuple(base)
            }
            opcode::LIST => self.gather(ContainerState::NewList),
            opcode::DICT => self.gather(ContainerState::NewDict),
            opcode::POP => self.drop_top(),
            opcode::POP_MARK => {
                let base = self.pop_mark()?;
                self.stack.truncate(base);
                Ok(())
            }
            opcode::DUP => {
                let top = self.pop()?;
                self.push(top)?;
                self.push(top)
            }
            _ => self.step_code(code, cursor),
        }
    }

    /// Opcodes that import or call, which no snapshot needs, and bytes that are no opcodes.
    pub(super) fn step_code(&mut self, code: u8, cursor: &mut Cursor<'_>) -> ReadResult<()> {
        let offset = cursor.offset() - 1;
        let what = match code {
            opcode::GLOBAL | opcode::INST => {
                let module = String::from_utf8_lossy(cursor.line()?).into_owned();
                let name = String::from_utf8_lossy(cursor.line()?).into_owned();
                if code == opcode::GLOBAL && (module.as_str(), name.as_str()) == TYPE_TAG {
                    return self.push(Value::TypeTag);
                }
                format!("import {}", shown_name(&format!("{module}.{name}")))
            }
            opcode::STACK_GLOBAL => match (self.pop()?, self.pop()?) {
                (Value::Text(name), Value::Text(module)) => {
                    let (module, name) = (self.strings.get(module), self.strings.get(name));
                    if (module, name) == TYPE_TAG {
                        return self.push(Value::TypeTag);
                    }
                    format!("import {}", shown_name(&format!("{module}.{name}")))
                }
                _ => return Err(Box::new(PickleError::Damaged { what: "an import without a name", offset })),
            },
            opcode::REDUCE => return self.untag(offset),
            opcode::BUILD | opcode::OBJ | opcode::NEWOBJ | opcode::NEWOBJ_EX => "build an object".to_owned(),
            opcode::EXT1 | opcode::EXT2 | opcode::EXT4 => {
                "import something from the extension registry".to_owned()
            }
            opcode::PERSID | opcode::BINPERSID => "load a persistent object".to_owned(),
            opcode::NEXT_BUFFER | opcode::READONLY_BUFFER => "use a buffer outside the file".to_owned(),
            _ => {
                let what = match opcode::name(code) {
                    Some(name) => format!("opcode {name}"),
                    None => format!("byte {code:#04x}"),
                };
                return Err(Box::new(PickleError::Unexpected { what, offset }));
            }
        };
        Err(Box::new(PickleError::Code { what, offset }))
    }

    /// REDUCE: allowed for the C++ pickler's type tag alone, which stands for its first argument.
    pub(super) fn untag(&mut self, offset: usize) -> ReadResult<()> {
        let arguments = self.pop()?;
        let function = self.pop()?;
        match (function, self.heap.tuple(arguments)) {
            (Value::TypeTag, Some(&[tagged, _])) => self.push(tagged),
            _ => Err(Box::new(PickleError::Code { what: "call a function".to_owned(), offset })),
        }
    }
}

fn length32(cursor: &mut Cursor<'_>) -> ReadResult<u32> {
    cursor.array().map(u32::from_le_bytes)
}
