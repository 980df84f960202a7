//! The machine: a stack of values, a memo, and the containers.

use super::cursor::{Cursor, Step};
use super::error::PickleError;
use super::heap::{Content, Heap, Node, Value};
use super::stream::Consumer;
use super::{Fold, Limits, opcode};
use crate::unit::{Index, StringId, StringInterner};

/// The module and name of the one function that PyTorch's C++ pickler may wrap a container in
/// (`torch/csrc/jit/serialization/pickler.cpp`, `endTypeTag`); it returns its first argument.
const TYPE_TAG: (&str, &str) = ("torch.jit._pickle", "restore_type_tag");

pub(super) struct Machine<'a, F> {
    /// Whether the protocol's mark has been seen.
    begun: bool,
    fold: &'a mut F,
    limits: Limits,
    pub(super) strings: StringInterner,
    stack: Vec<Value>,
    /// Heights of the stack at the open marks.
    marks: Vec<u32>,
    memo: Vec<Memoised>,
    pub(super) heap: Heap,
    text_bytes: u64,
}

/// A memo entry in four bytes: nothing, text or a container. Other values are never memoised by a pickler; a file that
/// does so anyway is refused when it asks for them.
#[derive(Clone, Copy)]
struct Memoised(u32);

const MEMO_BITS: u32 = 30;
const MEMO_TEXT: u32 = 1;
const MEMO_NODE: u32 = 2;

impl Memoised {
    const NOTHING: Memoised = Memoised(0);

    fn of(value: Value) -> Memoised {
        let (tag, position) = match value {
            Value::Text(id) => (MEMO_TEXT, u32::try_from(id.position()).unwrap_or(u32::MAX)),
            Value::Container(node) => (MEMO_NODE, node.0),
            _ => return Memoised::NOTHING,
        };
        if position >> MEMO_BITS == 0 { Memoised(tag << MEMO_BITS | position) } else { Memoised::NOTHING }
    }

    #[inline]
    fn value(self) -> Option<Value> {
        let position = self.0 & ((1 << MEMO_BITS) - 1);
        match self.0 >> MEMO_BITS {
            MEMO_TEXT => StringId::at(position as usize).map(Value::Text),
            MEMO_NODE => Some(Value::Container(Node(position))),
            _ => None,
        }
    }
}

impl<'a, F: Fold> Machine<'a, F> {
    pub(super) fn new(strings: StringInterner, fold: &'a mut F, limits: &Limits) -> Self {
        Machine {
            begun: false,
            fold,
            limits: *limits,
            strings,
            stack: Vec::new(),
            marks: Vec::new(),
            memo: Vec::new(),
            heap: Heap::default(),
            text_bytes: 0,
        }
    }

    fn begin(&mut self, cursor: &mut Cursor<'_>) -> Step<()> {
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
    fn step(&mut self, code: u8, cursor: &mut Cursor<'_>) -> Step<()> {
        match code {
            opcode::BINGET => {
                let position = usize::from(cursor.byte()?);
                self.recall(position)
            }
            opcode::LONG_BINGET => {
                let position = length32(cursor)? as usize;
                self.recall(position)
            }
            opcode::MEMOIZE => self.memoise(self.memo.len(), cursor),
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
            opcode::MARK => {
                let height = self.stack.len() as u64;
                self.check(self.marks.len() as u64, self.limits.stack, "open marks", "--max-stack")?;
                self.marks.push(u32::try_from(height).unwrap_or(u32::MAX));
                Ok(())
            }
            opcode::EMPTY_DICT => self.push_new(Content::NewDict),
            opcode::EMPTY_LIST => self.push_new(Content::NewList),
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

    fn step_rare(&mut self, code: u8, cursor: &mut Cursor<'_>) -> Step<()> {
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
            opcode::LIST => self.gather(Content::NewList),
            opcode::DICT => self.gather(Content::NewDict),
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
    fn step_code(&mut self, code: u8, cursor: &mut Cursor<'_>) -> Step<()> {
        let offset = cursor.offset() - 1;
        let what = match code {
            opcode::GLOBAL | opcode::INST => {
                let module = String::from_utf8_lossy(cursor.line()?).into_owned();
                let name = String::from_utf8_lossy(cursor.line()?).into_owned();
                if code == opcode::GLOBAL && (module.as_str(), name.as_str()) == TYPE_TAG {
                    return self.push(Value::TypeTag);
                }
                format!("import {}", shortened(&format!("{module}.{name}")))
            }
            opcode::STACK_GLOBAL => match (self.pop()?, self.pop()?) {
                (Value::Text(name), Value::Text(module)) => {
                    let (module, name) = (self.strings.get(module), self.strings.get(name));
                    if (module, name) == TYPE_TAG {
                        return self.push(Value::TypeTag);
                    }
                    format!("import {}", shortened(&format!("{module}.{name}")))
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
    fn untag(&mut self, offset: usize) -> Step<()> {
        let arguments = self.pop()?;
        let function = self.pop()?;
        match (function, self.heap.tuple(arguments)) {
            (Value::TypeTag, Some(&[tagged, _])) => self.push(tagged),
            _ => Err(Box::new(PickleError::Code { what: "call a function".to_owned(), offset })),
        }
    }

    #[inline]
    fn push(&mut self, value: Value) -> Step<()> {
        if self.stack.len() as u64 >= self.limits.stack {
            self.check(self.stack.len() as u64, self.limits.stack, "values at a time", "--max-stack")?;
        }
        self.stack.push(value);
        Ok(())
    }

    fn pop(&mut self) -> Step<Value> {
        let floor = self.marks.last().map_or(0, |&mark| mark as usize);
        if self.stack.len() <= floor {
            return Err(self.damaged("a value is missing"));
        }
        self.stack.pop().ok_or_else(|| self.damaged("a value is missing"))
    }

    fn drop_top(&mut self) -> Step<()> {
        if self.marks.last().is_some_and(|&mark| mark as usize == self.stack.len()) {
            self.marks.pop();
            return Ok(());
        }
        self.pop().map(|_| ())
    }

    #[inline]
    fn pop_mark(&mut self) -> Step<usize> {
        match self.marks.pop() {
            Some(mark) if mark as usize <= self.stack.len() => Ok(mark as usize),
            _ => Err(self.damaged("a mark is missing")),
        }
    }

    /// The height of the stack below its `count` topmost values, which must all lie above the last mark.
    fn below(&self, count: usize) -> Step<usize> {
        let floor = self.marks.last().map_or(0, |&mark| mark as usize);
        match self.stack.len().checked_sub(count) {
            Some(base) if base >= floor => Ok(base),
            _ => Err(self.damaged("a value is missing")),
        }
    }

    #[inline]
    fn recall(&mut self, position: usize) -> Step<()> {
        match self.memo.get(position).and_then(|entry| entry.value()) {
            Some(value) => self.push(value),
            None => Err(self.damaged("a memo entry is asked for that was never made")),
        }
    }

    #[inline]
    fn memoise(&mut self, position: usize, cursor: &Cursor<'_>) -> Step<()> {
        let entry = Memoised::of(*self.stack.last().ok_or_else(|| self.damaged("nothing to memoise"))?);
        if position == self.memo.len() {
            self.check(position as u64, self.limits.nodes, "memoised values", "--max-nodes")?;
            self.memo.push(entry);
            return Ok(());
        }
        // A pickler numbers its entries from 0; a gap chosen by the file may not make the memo larger than the file.
        if position > cursor.offset() {
            return Err(self.damaged("a memo entry far beyond the others"));
        }
        if position >= self.memo.len() {
            self.check(position as u64, self.limits.nodes, "memoised values", "--max-nodes")?;
            self.memo.resize(position + 1, Memoised::NOTHING);
        }
        if let Some(place) = self.memo.get_mut(position) {
            *place = entry;
        }
        Ok(())
    }

    #[inline]
    fn push_new(&mut self, content: Content) -> Step<()> {
        self.check(self.heap.contents.len() as u64, self.limits.nodes, "containers", "--max-nodes")?;
        let node = Node(u32::try_from(self.heap.contents.len()).unwrap_or(u32::MAX));
        self.heap.contents.push(content);
        self.push(Value::Container(node))
    }

    fn push_tuple_of(&mut self, count: usize) -> Step<()> {
        let base = self.below(count)?;
        self.push_tuple(base)
    }

    fn push_tuple(&mut self, base: usize) -> Step<()> {
        let items = self.stack.split_off(base);
        let slot = self.keep(items)?;
        self.push_new(Content::Tuple(slot))
    }

    /// LIST and DICT: a container from everything above the mark.
    fn gather(&mut self, kind: Content) -> Step<()> {
        let base = self.pop_mark()?;
        let items = self.stack.split_off(base);
        self.push_new(kind)?;
        let base = self.stack.len();
        self.stack.extend(items);
        if matches!(kind, Content::NewDict) { self.set_items(base) } else { self.append_items(base) }
    }

    fn push_long(&mut self, length: u64, cursor: &mut Cursor<'_>) -> Step<()> {
        let bytes = cursor.run(length)?;
        let value = match integer(bytes) {
            Some(number) => {
                i64::try_from(number).map(Value::Int).or_else(|_| u64::try_from(number).map(Value::Unsigned))
            }
            None => Ok(Value::Opaque),
        };
        self.push(value.unwrap_or(Value::Opaque))
    }

    /// Text; lone surrogates and other bytes that are no UTF-8 become replacement characters.
    fn push_text(&mut self, length: u64, cursor: &mut Cursor<'_>) -> Step<()> {
        let bytes = cursor.run(length)?;
        let lossy;
        let text = if let Ok(text) = str::from_utf8(bytes) {
            text
        } else {
            lossy = String::from_utf8_lossy(bytes).into_owned();
            &lossy
        };
        let before = self.strings.len();
        let id = self.strings.intern(text);
        if self.strings.len() > before {
            self.text_bytes += text.len() as u64;
            self.check(self.text_bytes, self.limits.text, "bytes of text", "--max-text")?;
        }
        match id {
            Some(id) => self.push(Value::Text(id)),
            None => Err(self.damaged("more distinct text than can be held")),
        }
    }

    fn push_opaque(&mut self, length: u64, cursor: &mut Cursor<'_>) -> Step<()> {
        cursor.run(length)?;
        self.push(Value::Opaque)
    }

    /// Sets the items above `base` (keys and values in turn) in the dict that stands just below it.
    #[inline]
    fn set_items(&mut self, base: usize) -> Step<()> {
        let Some(node) = self.container_below(base) else {
            return Err(self.damaged("items for something that is no dict"));
        };
        let items = self.stack.get(base..).unwrap_or_default();
        if items.len() % 2 != 0 {
            return Err(self.damaged("a key without a value"));
        }
        let content = self.heap.contents.get(node.0 as usize).copied();
        let next = match content {
            Some(Content::NewDict) if items.is_empty() => Content::NewDict,
            Some(Content::NewDict) => match self.fold.dict(items, &self.heap) {
                Ok(Some(row)) => Content::Folded(row),
                Ok(None) => Content::Dict(self.keep(items.to_vec())?),
                Err(what) => return Err(self.damaged(what)),
            },
            Some(Content::Dict(slot)) => {
                if let Some(kept) = self.heap.kept.get_mut(slot as usize) {
                    kept.extend_from_slice(items);
                }
                Content::Dict(slot)
            }
            _ => return Err(self.damaged("items for something that is no dict, or is complete")),
        };
        self.settle(node, next, base);
        Ok(())
    }

    /// Appends the values above `base` to the list that stands just below it.
    #[inline]
    fn append_items(&mut self, base: usize) -> Step<()> {
        let Some(node) = self.container_below(base) else {
            return Err(self.damaged("items for something that is no list"));
        };
        let items = self.stack.get(base..).unwrap_or_default();
        let content = self.heap.contents.get(node.0 as usize).copied();
        let next = match content {
            Some(Content::NewList) if items.is_empty() => Content::NewList,
            Some(Content::NewList) => match self.fold.extend(None, items, &self.heap) {
                Ok(Some(row)) => Content::Folded(row),
                Ok(None) => Content::List(self.keep(items.to_vec())?),
                Err(what) => return Err(self.damaged(what)),
            },
            Some(Content::Folded(row)) => match self.fold.extend(Some(row), items, &self.heap) {
                Ok(Some(row)) => Content::Folded(row),
                Ok(None) => {
                    let mut all = self.fold.unfold(row).map_err(|what| self.damaged(what))?;
                    all.extend_from_slice(items);
                    Content::List(self.keep(all)?)
                }
                Err(what) => return Err(self.damaged(what)),
            },
            Some(Content::List(slot)) => {
                if let Some(kept) = self.heap.kept.get_mut(slot as usize) {
                    kept.extend_from_slice(items);
                }
                Content::List(slot)
            }
            _ => return Err(self.damaged("items for something that is no list")),
        };
        self.settle(node, next, base);
        Ok(())
    }

    #[inline]
    fn container_below(&self, base: usize) -> Option<Node> {
        match self.stack.get(base.checked_sub(1)?)? {
            Value::Container(node) => Some(*node),
            _ => None,
        }
    }

    #[inline]
    fn settle(&mut self, node: Node, content: Content, base: usize) {
        if let Some(place) = self.heap.contents.get_mut(node.0 as usize) {
            *place = content;
        }
        self.stack.truncate(base);
    }

    fn keep(&mut self, items: Vec<Value>) -> Step<u32> {
        self.check(self.heap.kept.len() as u64, self.limits.nodes, "containers", "--max-nodes")?;
        let slot = u32::try_from(self.heap.kept.len()).unwrap_or(u32::MAX);
        self.heap.kept.push(items);
        Ok(slot)
    }

    #[inline]
    fn check(&self, count: u64, limit: u64, what: &'static str, flag: &'static str) -> Step<()> {
        if count < limit {
            return Ok(());
        }
        Err(Box::new(PickleError::Limit { what, limit, flag, offset: 0 }))
    }

    fn damaged(&self, what: &'static str) -> Box<PickleError> {
        Box::new(PickleError::Damaged { what, offset: 0 })
    }
}

impl<F: Fold> Consumer for Machine<'_, F> {
    /// The top value.
    type Output = Value;

    #[inline]
    fn take(&mut self, cursor: &mut Cursor<'_>) -> Step<Option<Value>> {
        if !self.begun {
            return self.begin(cursor).map(|()| None);
        }
        let code = cursor.byte()?;
        if code == opcode::STOP {
            return self.pop().map(Some).map_err(|error| error.located(cursor.offset()));
        }
        match self.step(code, cursor) {
            Ok(()) => Ok(None),
            Err(error) => Err(error.located(cursor.offset())),
        }
    }
}

fn length32(cursor: &mut Cursor<'_>) -> Step<u32> {
    cursor.array().map(u32::from_le_bytes)
}

/// A little-endian two's complement integer of at most 16 significant bytes.
fn integer(bytes: &[u8]) -> Option<i128> {
    let negative = bytes.last().is_some_and(|&top| top & 0x80 != 0);
    let fill = if negative { 0xff } else { 0 };
    let mut wide = [fill; 16];
    let (low, high) = bytes.split_at(bytes.len().min(16));
    if high.iter().any(|&byte| byte != fill) {
        return None;
    }
    for (place, byte) in wide.iter_mut().zip(low) {
        *place = *byte;
    }
    let number = i128::from_le_bytes(wide);
    ((number < 0) == negative).then_some(number)
}

/// A name from a hostile file, cut to what fits a message.
fn shortened(name: &str) -> String {
    let clean: String = name.chars().filter(|c| !c.is_control()).collect();
    match clean.char_indices().nth(80) {
        Some((end, _)) => format!("{}...", clean.get(..end).unwrap_or_default()),
        None => clean,
    }
}
