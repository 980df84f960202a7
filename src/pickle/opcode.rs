//! The opcodes of pickle protocols 2 to 5 (CPython `Lib/pickle.py`).

macro_rules! opcodes {
    ($($name:ident = $byte:literal;)*) => {
        $(pub(super) const $name: u8 = $byte;)*

        /// The name of an opcode that the machine carries out, or knows and refuses.
        pub(super) fn name(byte: u8) -> Option<&'static str> {
            match byte {
                $($byte => Some(stringify!($name)),)*
                _ => unused(byte),
            }
        }
    };
}

opcodes! {
    MARK = b'(';
    STOP = b'.';
    POP = b'0';
    POP_MARK = b'1';
    DUP = b'2';
    NONE = b'N';
    NEWTRUE = 0x88;
    NEWFALSE = 0x89;
    BININT = b'J';
    BININT1 = b'K';
    BININT2 = b'M';
    LONG1 = 0x8a;
    LONG4 = 0x8b;
    BINFLOAT = b'G';
    BINSTRING = b'T';
    SHORT_BINSTRING = b'U';
    BINBYTES = b'B';
    SHORT_BINBYTES = b'C';
    BINBYTES8 = 0x8e;
    BYTEARRAY8 = 0x96;
    BINUNICODE = b'X';
    SHORT_BINUNICODE = 0x8c;
    BINUNICODE8 = 0x8d;
    EMPTY_LIST = b']';
    APPEND = b'a';
    APPENDS = b'e';
    LIST = b'l';
    EMPTY_TUPLE = b')';
    TUPLE = b't';
    TUPLE1 = 0x85;
    TUPLE2 = 0x86;
    TUPLE3 = 0x87;
    EMPTY_DICT = b'}';
    DICT = b'd';
    SETITEM = b's';
    SETITEMS = b'u';
    BINGET = b'h';
    LONG_BINGET = b'j';
    BINPUT = b'q';
    LONG_BINPUT = b'r';
    MEMOIZE = 0x94;
    PROTO = 0x80;
    FRAME = 0x95;
    GLOBAL = b'c';
    STACK_GLOBAL = 0x93;
    REDUCE = b'R';
    BUILD = b'b';
    INST = b'i';
    OBJ = b'o';
    NEWOBJ = 0x81;
    NEWOBJ_EX = 0x92;
    EXT1 = 0x82;
    EXT2 = 0x83;
    EXT4 = 0x84;
    PERSID = b'P';
    BINPERSID = b'Q';
    NEXT_BUFFER = 0x97;
    READONLY_BUFFER = 0x98;
}

/// Sets, and the text opcodes of protocols 0 and 1: in no snapshot, but worth their name in a message.
fn unused(byte: u8) -> Option<&'static str> {
    Some(match byte {
        0x8f => "EMPTY_SET",
        0x90 => "ADDITEMS",
        0x91 => "FROZENSET",
        b'I' => "INT",
        b'L' => "LONG",
        b'F' => "FLOAT",
        b'S' => "STRING",
        b'V' => "UNICODE",
        b'g' => "GET",
        b'p' => "PUT",
        _ => return None,
    })
}
