//! Traces of events as a pickler writes them, and as none does.

use proptest::collection::vec;
use proptest::prelude::{Just, Strategy, any};
use proptest::prop_oneof;

/// A pickle in the making: opcodes as CPython's pickler writes them.
#[derive(Debug, Clone, Default)]
struct Pickle {
    bytes: Vec<u8>,
    entries: u8,
}

impl Pickle {
    fn put(&mut self, bytes: &[u8]) -> &mut Self {
        self.bytes.extend_from_slice(bytes);
        self
    }

    /// MEMOIZE; the entry's number.
    fn memoise(&mut self) -> u8 {
        self.put(b"\x94").entries += 1;
        self.entries - 1
    }

    fn text(&mut self, text: &str) -> u8 {
        self.put(&[0x8c, u8::try_from(text.len()).unwrap()]).put(text.as_bytes()).memoise()
    }
}

/// A value of an event, in all the ways in which it may be written, and some in which none is.
#[derive(Debug, Clone)]
pub(super) enum Written {
    /// These opcodes.
    Bytes(&'static [u8]),
    Long(Vec<u8>),
    /// The text of this number, written out.
    Text(u8),
    /// Written out and not memoised.
    Unmemoised(u8),
    /// Written out, and put in the place of this entry.
    Replacing(u8, u8),
    /// A frame, put in the place of another.
    Reframing(u8, u8),
    /// A GET of this entry, if there is one.
    Get(u8),
    LongGet(u8),
    /// A list of these frames.
    Frames(Vec<u8>),
}

const TEXTS: [&str; 8] = [
    "alloc",
    "free_requested",
    "free_completed",
    "N/A",
    "",
    "garbage_collection_threshold",
    "mine",
    "user_defined",
];
const KEYS: [&str; 10] = [
    "action",
    "addr",
    "size",
    "stream",
    "time_us",
    "compile_context",
    "user_metadata",
    "frames",
    "pool_id",
    "other",
];

fn written() -> impl Strategy<Value = Written> {
    let bytes = prop_oneof![
        Just(&b"K\x07"[..]),
        Just(&b"K\x00"[..]),
        Just(&b"M\x00\x02"[..]),
        Just(&b"J\x00\x00\x01\x00"[..]),
        Just(&b"J\xff\xff\xff\xff"[..]),
        Just(&b"N"[..]),
        Just(&b"\x88"[..]),
        Just(&b"]\x94"[..]),
        Just(&b"]"[..]),
        Just(&b"K\x01K\x02\x86\x94"[..]),
        Just(&b"K\x00K\x00\x86\x94"[..]),
        Just(&b"K\x00K\x00\x86"[..]),
        Just(&b"}\x94"[..]),
        Just(&b"G\x00\x00\x00\x00\x00\x00\x00\x00"[..]),
        Just(&b"\x95\x00\x00\x00\x00\x00\x00\x00\x00K\x01"[..]),
    ];
    prop_oneof![
        2 => bytes.prop_map(Written::Bytes),
        4 => vec(any::<u8>(), 0..10).prop_map(Written::Long),
        2 => (0..8_u8).prop_map(Written::Text),
        1 => (0..8_u8).prop_map(Written::Unmemoised),
        1 => (0..8_u8, any::<u8>()).prop_map(|(text, entry)| Written::Replacing(text, entry)),
        1 => (0..4_u8, 0..4_u8).prop_map(|(frame, place)| Written::Reframing(frame, place)),
        1 => any::<u8>().prop_map(Written::Get),
        1 => any::<u8>().prop_map(Written::LongGet),
        3 => vec(0..4_u8, 0..4).prop_map(Written::Frames),
    ]
}

/// The value that belongs to a key, or one of any kind.
fn value_of(key: usize) -> impl Strategy<Value = Written> {
    let usual = match key {
        0 | 5 | 6 => (0..6_u8).prop_map(Written::Text).boxed(),
        1 => vec(any::<u8>(), 6)
            .prop_map(|mut number| {
                number.push(0);
                Written::Long(number)
            })
            .boxed(),
        2 | 4 => Just(Written::Bytes(b"M\x00\x02")).boxed(),
        3 => Just(Written::Bytes(b"K\x00")).boxed(),
        7 => prop_oneof![
            8 => vec(0..4_u8, 0..4).prop_map(Written::Frames),
            1 => any::<u8>().prop_map(Written::LongGet),
            1 => (0..4_u8, 0..4_u8).prop_map(|(frame, place)| Written::Reframing(frame, place)),
        ]
        .boxed(),
        _ => Just(Written::Bytes(b"K\x00K\x00\x86\x94")).boxed(),
    };
    prop_oneof![24 => usual, 1 => written()]
}

/// Events of some of the keys, each with its own values; the keys of most are the same.
pub(super) fn events() -> impl Strategy<Value = Vec<Vec<(usize, Written)>>> {
    let keys = prop_oneof![
        4 => Just((0..8).collect::<Vec<_>>()),
        1 => Just((0..7).collect()),
        1 => Just((0..9).collect()),
        1 => vec(0..11_usize, 1..10),
    ];
    let kinds = vec(keys, 1..3);
    let event =
        |keys: Vec<usize>| keys.into_iter().map(|key| (Just(key), value_of(key).boxed())).collect::<Vec<_>>();
    kinds.prop_flat_map(move |kinds| {
        let kinds = kinds.into_iter().map(event).collect::<Vec<_>>();
        vec(proptest::sample::select((0..kinds.len()).collect::<Vec<_>>()), 1..12)
            .prop_flat_map(move |turns| turns.into_iter().map(|kind| kinds[kind].clone()).collect::<Vec<_>>())
    })
}

/// A trace of these events as CPython's pickler writes it: four frames and the keys first, so that all of them are memoised.
pub(super) fn trace(events: &[Vec<(usize, Written)>]) -> Vec<u8> {
    let mut pickle = Pickle::default();
    pickle.put(b"\x80\x04]").memoise();
    pickle.put(b"(]").memoise();
    pickle.put(b"(");
    let keys = KEYS.map(|key| pickle.text(key));
    pickle.put(b"e(");
    let frames = [0, 1, 2, 3_u8].map(|line| {
        pickle.put(b"}");
        let frame = pickle.memoise();
        pickle.put(b"(").text("name");
        pickle.text("main");
        pickle.text("filename");
        pickle.text("train.py");
        pickle.text("line");
        pickle.put(&[b'K', line, b'u']);
        frame
    });
    pickle.put(b"e]").memoise();
    pickle.put(b"(");
    for event in events {
        if pickle.entries > 200 {
            break;
        }
        pickle.put(b"}").memoise();
        pickle.put(b"(");
        for (key, value) in event {
            // No pickler's: a dict is no key.
            pickle.put(&[b'h', keys.get(*key).copied().unwrap_or(frames[0])]);
            write(&mut pickle, value, frames);
        }
        pickle.put(b"u");
    }
    pickle.put(b"ee.");
    pickle.bytes
}

fn write(pickle: &mut Pickle, value: &Written, frames: [u8; 4]) {
    match value {
        Written::Bytes(bytes) => {
            pickle.put(bytes).entries += u8::from(bytes.last() == Some(&0x94));
        }
        Written::Long(number) => {
            pickle.put(&[0x8a, u8::try_from(number.len()).unwrap()]).put(number);
        }
        Written::Text(number) => {
            pickle.text(TEXTS[usize::from(*number)]);
        }
        Written::Replacing(number, entry) => {
            write(pickle, &Written::Unmemoised(*number), frames);
            pickle.put(&[b'q', entry % (pickle.entries + 1)]);
        }
        Written::Reframing(frame, place) => {
            let [frame, place] = [frame, place].map(|place| frames[usize::from(*place)]);
            pickle.put(&[b'h', frame, b'q', place]);
        }
        Written::Unmemoised(number) => {
            let text = TEXTS[usize::from(*number)];
            pickle.put(&[0x8c, u8::try_from(text.len()).unwrap()]).put(text.as_bytes());
        }
        Written::Get(entry) => {
            pickle.put(&[b'h', entry % (pickle.entries + 1)]);
        }
        Written::LongGet(entry) => {
            pickle.put(&[b'j', entry % (pickle.entries + 1), 0, 0, 0]);
        }
        Written::Frames(places) => {
            pickle.put(b"]").memoise();
            if !places.is_empty() {
                pickle.put(b"(");
                for place in places {
                    pickle.put(&[b'h', frames[usize::from(*place)]]);
                }
                pickle.put(b"e");
            }
        }
    }
}
