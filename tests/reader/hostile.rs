//! Files made to harm: each is refused with a clear error, quickly and within little memory.

use std::io::{self, Read};

use memlint::pickle::{PickleError, PickleLimits};
use memlint::snapshot::{Gap, Snapshot, SnapshotError};
use memlint::timeline::Timeline;
use memlint::unit::{Bytes, DeviceIndex, Index};

use crate::opcodes::{Field, Pickle, one_event, one_trace, read};

fn error(bytes: &[u8]) -> SnapshotError {
    read(bytes).map(|snapshot| format!("{snapshot:?}")).unwrap_err()
}

fn pickle_error(bytes: &[u8]) -> PickleError {
    match error(bytes) {
        SnapshotError::Pickle(error) => error,
        other => panic!("{other:?}"),
    }
}

#[test]
fn nothing_is_imported_or_called() {
    let calls: [(&[u8], &str); 6] = [
        (b"cos\nsystem\n\x8c\x02id\x85R.", "import os.system"),
        (b"\x8c\x02os\x8c\x06system\x93\x8c\x02id\x85R.", "import os.system"),
        (b"(ios\nsystem\n.", "import os.system"),
        (b"\x82\x01.", "import something from the extension registry"),
        (b"\x8c\x01a\x51.", "load a persistent object"),
        (b"})R.", "call a function"),
    ];
    for (opcodes, wants) in calls {
        let bytes = Pickle::new(4).raw(opcodes).0;
        match pickle_error(&bytes) {
            PickleError::Code { what, .. } => assert_eq!(what, wants),
            other => panic!("{wants}: {other:?}"),
        }
    }
}

#[test]
fn a_long_or_ugly_name_does_not_reach_the_terminal() {
    let name = format!("{}\u{1b}[2J", "x".repeat(4_000));
    let bytes = Pickle::new(4).raw(b"c").raw(name.as_bytes()).raw(b"\nf\n.").0;
    let message = pickle_error(&bytes).to_string();
    assert!(message.len() < 400 && !message.contains('\u{1b}'), "{message}");
}

#[test]
fn the_type_tag_of_pytorchs_own_pickler_is_understood() {
    let tagged = Pickle::new(2).raw(b"ctorch.jit._pickle\nrestore_type_tag\n").raw(&one_trace(b"")[2..]).0;
    // The last byte is the inner STOP: replace it by the tag's argument and the call.
    let tagged = Pickle(tagged[..tagged.len() - 1].to_vec()).text("Dict[str, Any]").raw(b"\x86R").stop();
    assert!(read(&tagged).is_ok());
}

#[test]
fn lengths_beyond_the_file_are_refused_before_anything_is_allocated() {
    let claims: [&[u8]; 5] = [
        b"X\xff\xff\xff\x3fab",
        b"\x8d\xff\xff\xff\x3f\0\0\0\0ab",
        b"\x8b\xff\xff\xff\x7fab",
        b"\x8e\xff\xff\xff\xff\xff\xff\xff\xffab",
        b"\x8c\xffab",
    ];
    for claim in claims {
        let bytes = Pickle::new(4).raw(claim).0;
        assert_eq!(pickle_error(&bytes), PickleError::Truncated { offset: bytes.len() });
    }
}

/// A pickle without end: what stands at its beginning, and then the same byte for ever.
struct Endless<'a> {
    beginning: &'a [u8],
    given: usize,
}

impl Read for Endless<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        assert!(self.given < 16 << 20, "what is refused or passed over need not be read");
        let given = if self.beginning.is_empty() {
            buffer.fill(b'x');
            buffer.len()
        } else {
            self.beginning.read(buffer)?
        };
        self.given += given;
        Ok(given)
    }
}

#[test]
fn long_text_and_long_names_are_refused_before_they_are_read() {
    let limits = PickleLimits { text: 1 << 20, ..PickleLimits::default() };
    let refuse = |beginning: &[u8]| {
        let endless = Endless { beginning: &[&[0x80, 4], beginning].concat(), given: 0 };
        Snapshot::read(endless, &limits).unwrap_err().to_string()
    };
    for text in [&b"X\0\0\x10\0"[..], b"T\xff\xff\xff\xff", b"\x8d\xff\xff\xff\xff\xff\xff\xff\x7f"] {
        assert!(refuse(text).contains("more than 1048576 bytes of text"), "{}", refuse(text));
    }
    assert!(refuse(b"c").contains("a name of more than 4096 bytes"), "{}", refuse(b"c"));
    assert!(refuse(b"cos\n").contains("a name of more than 4096 bytes"));
}

#[test]
fn bytes_and_endless_integers_are_passed_over_wherever_the_window_ends() {
    for length in [0_usize, 255, 256, (1 << 18) - 20, 1 << 18, 3 << 20] {
        for opcode in [&b"B"[..], b"\x8b", b"\x8e", b"\x96"] {
            let width = if matches!(opcode, [0x8e | 0x96]) { 8 } else { 4 };
            let claim = (length as u64).to_le_bytes();
            let body = vec![0x2e; length];
            let junk = [opcode, &claim[..width], &body, b"0"].concat();
            let event = [&junk, one_trace(b"").get(2..).unwrap()].concat();
            let bytes = Pickle::new(5).raw(&event).0;
            assert!(read(&bytes).is_ok(), "{opcode:?} {length}: {:?}", read(&bytes));
            let opcodes = memlint::pickle::walk(bytes.as_slice()).unwrap();
            assert_eq!(opcodes, memlint::pickle::walk(&one_trace(b"")[..]).unwrap() + 2);
            let cut = Pickle::new(5).raw(&junk[..junk.len() - 2]).0;
            assert_eq!(
                pickle_error(&cut),
                PickleError::Truncated { offset: cut.len() },
                "{opcode:?} {length}"
            );
        }
    }
}

#[test]
fn depth_costs_no_stack() {
    let mut deep = Pickle::new(4);
    for _ in 0..2_000_000 {
        deep = deep.raw(b"](");
    }
    assert!(matches!(pickle_error(&deep.0), PickleError::Truncated { .. }));
    let nested = Pickle::new(4).raw(&b")\x85".repeat(1_000_000)).stop();
    assert!(matches!(error(&nested), SnapshotError::NotASnapshot { .. }));
}

#[test]
fn a_graph_of_shared_lists_is_not_expanded() {
    // Each list holds the one before it ten times: 10^40 leaves when expanded.
    let mut laughs = Pickle::new(4).raw(b"]\x94");
    for depth in 0..40_u8 {
        laughs = laughs.raw(b"]\x94(");
        for _ in 0..10 {
            laughs = laughs.raw(&[b'h', depth]);
        }
        laughs = laughs.raw(b"e");
    }
    assert!(matches!(error(&laughs.stop()), SnapshotError::NotASnapshot { .. }));
}

#[test]
fn cycles_are_harmless() {
    let cyclic = Pickle::new(4).raw(b"]\x94h\x00a").stop();
    assert!(matches!(error(&cyclic), SnapshotError::NotASnapshot { .. }));
    let itself = Pickle::new(4)
        .raw(b"}\x94(")
        .text("segments")
        .raw(b"h\x00")
        .text("device_traces")
        .raw(b"h\x00u")
        .stop();
    assert!(matches!(error(&itself), SnapshotError::Shape { .. }));
}

#[test]
fn limits_name_the_flag_that_raises_them() {
    let limits = PickleLimits { nodes: 10, stack: 10, text: 1 << 20 };
    let cases: [(&[u8], &str); 3] = [(b"]0", "--max-nodes"), (b"N", "--max-stack"), (b"(", "--max-stack")];
    for (opcode, expected) in cases {
        let bytes = Pickle::new(4).raw(&opcode.repeat(100)).stop();
        match Snapshot::read(bytes.as_slice(), &limits).map(|_| ()) {
            Err(SnapshotError::Pickle(PickleError::Limit { flag, limit: 10, .. })) => {
                assert_eq!(flag, expected);
            }
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn a_memo_entry_far_away_costs_no_memory() {
    let bytes = Pickle::new(2).raw(b"Nr\xff\xff\xff\x7f").stop();
    assert!(matches!(pickle_error(&bytes), PickleError::Damaged { .. }));
}

#[test]
fn a_trace_listed_twice_is_refused() {
    let event = Pickle::default()
        .dict(&[("action", Field::Text("alloc")), ("addr", Field::Number(512)), ("size", Field::Number(512))])
        .0;
    let traces = [b"](]\x94(".as_slice(), &event, b"eh\x00e"].concat();
    let twice =
        Pickle::new(4).dict(&[("segments", Field::Raw(b"]")), ("device_traces", Field::Raw(&traces))]).stop();
    match error(&twice) {
        SnapshotError::Shape { path, .. } => assert_eq!(path, "device_traces"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn sizes_and_addresses_of_64_bits_are_kept_and_sums_do_not_wrap() {
    let event = |action: &str, address: u64, size: u64| {
        Pickle::default()
            .dict(&[
                ("action", Field::Text(action)),
                ("addr", Field::Number(address)),
                ("size", Field::Number(size)),
            ])
            .0
    };
    let all = [
        event("alloc", u64::MAX, u64::MAX),
        event("alloc", 0, u64::MAX),
        event("segment_alloc", u64::MAX - 1, u64::MAX),
        event("free_completed", 7, u64::MAX),
    ]
    .concat();
    let snapshot = read(&one_trace(&all)).unwrap();
    let timeline = Timeline::of(&snapshot, DeviceIndex::at(0).unwrap());
    assert_eq!(timeline.peak_requested.bytes, Bytes(u64::MAX), "capped, not wrapped");
    assert_eq!(timeline.allocations.iter().filter(|one| one.address == u64::MAX).count(), 1);
}

#[test]
fn wrong_fields_are_named() {
    let negative = Pickle::default().raw(b"J\xff\xff\xff\xff").0;
    let huge = Pickle::default().raw(&[0x8a, 100]).raw(&[0x7f; 100]).0;
    let alloc = || ("action", Field::Text("alloc"));
    let cases = [
        (vec![alloc(), ("addr", Field::Number(1)), ("size", Field::Raw(&negative))], "`size`"),
        (vec![alloc(), ("addr", Field::Raw(&huge)), ("size", Field::Number(1))], "`addr`"),
        (vec![alloc(), ("size", Field::Number(1))], "without `addr` or `size`"),
        (vec![("action", Field::Number(1))], "`action`"),
        (vec![alloc(), ("frames", Field::Text("oops"))], "`frames`"),
    ];
    for (fields, named) in cases {
        let message = pickle_error(&one_event(&fields)).to_string();
        assert!(message.contains(named), "{named}: {message}");
    }
}

#[test]
fn blocks_that_leave_their_segment_are_counted() {
    let block = Pickle::default()
        .dict(&[
            ("address", Field::Number(u64::MAX - 10)),
            ("size", Field::Number(4096)),
            ("state", Field::Text("active_allocated")),
        ])
        .0;
    let blocks = [b"](".as_slice(), &block, b"e"].concat();
    let segment = Pickle::default()
        .dict(&[
            ("device", Field::Number(0)),
            ("address", Field::Number(512)),
            ("total_size", Field::Number(1 << 21)),
            ("blocks", Field::Raw(&blocks)),
        ])
        .0;
    let segments = [b"](".as_slice(), &segment, b"e"].concat();
    let pickle = Pickle::new(4)
        .dict(&[("segments", Field::Raw(&segments)), ("device_traces", Field::Raw(b"](]e"))])
        .stop();
    let snapshot = read(&pickle).unwrap();
    assert_eq!(snapshot.gaps, [Gap::InconsistentSegments(1)]);
}

#[test]
fn a_segment_without_a_list_of_blocks_contradicts_nothing() {
    let segment = Pickle::default()
        .dict(&[
            ("device", Field::Number(0)),
            ("address", Field::Number(512)),
            ("total_size", Field::Number(1 << 21)),
        ])
        .0;
    let segments = [b"](".as_slice(), &segment, b"e"].concat();
    let pickle = Pickle::new(4)
        .dict(&[("segments", Field::Raw(&segments)), ("device_traces", Field::Raw(b"](]e"))])
        .stop();
    let snapshot = read(&pickle).unwrap();
    assert_eq!((snapshot.segments.len(), snapshot.gaps), (1, Vec::new()));
}
