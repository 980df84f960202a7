//! What other programs and options write: pinned host memory, other backends, conversions of profiles, skipped actions,
//! PyTorch's own pickler.

use memlint::engine::Input;
use memlint::report::json;
use memlint::snapshot::{Action, Event, Gap, Snapshot};
use memlint::source::SourceMap;
use memlint::timeline::Timeline;
use memlint::unit::{Bytes, DeviceIndex, Index};
use serde_json::Value;

use crate::layouts::{dict, list};
use crate::opcodes::{Field, Pickle, one_event, one_trace, read};

fn event(action: &str, address: u64, size: u64) -> Vec<u8> {
    dict(&[
        ("action", Field::Text(action)),
        ("addr", Field::Number(address)),
        ("size", Field::Number(size)),
        ("stream", Field::Number(0)),
    ])
}

fn segment(device: &[u8], address: u64, size: u64) -> Vec<u8> {
    segment_with("active_allocated", device, address, size)
}

fn segment_with(state: &str, device: &[u8], address: u64, size: u64) -> Vec<u8> {
    let block = dict(&[
        ("address", Field::Number(address)),
        ("size", Field::Number(size)),
        ("requested_size", Field::Number(size)),
        ("state", Field::Text(state)),
    ]);
    dict(&[
        ("device", Field::Raw(device)),
        ("address", Field::Number(address)),
        ("total_size", Field::Number(size)),
        ("blocks", Field::Raw(&list(&[block]))),
    ])
}

fn timeline(snapshot: &Snapshot, ordinal: usize) -> Timeline {
    Timeline::of(snapshot, DeviceIndex::at(ordinal).unwrap())
}

#[test]
fn pinned_host_memory_is_counted_apart() {
    // BININT -1, and for the second one an ordinal that a device has too: the key decides.
    let cached = segment_with("inactive", b"K\x00", 1 << 21, 512);
    let host = list(&[segment(b"J\xff\xff\xff\xff", 1 << 20, 4096), cached]);
    let bytes = Pickle::new(4)
        .dict(&[
            ("segments", Field::Raw(&list(&[segment(b"K\x00", 1 << 22, 1024)]))),
            ("device_traces", Field::Raw(&list(&[list(&[event("alloc", 1 << 22, 1024)])]))),
            ("host_segments", Field::Raw(&host)),
            (
                "host_traces",
                Field::Raw(&list(&[event("alloc", 1 << 20, 4096), event("alloc", 1 << 21, 512)])),
            ),
        ])
        .stop();
    let snapshot = read(&bytes).unwrap();
    let told = Gap::HostMemory { blocks: 2, bytes: Bytes(4608), used: Bytes(4096), events: 2 };
    assert_eq!(snapshot.gaps, [told, Gap::NoStacks, Gap::NoTimes]);
    let timeline = timeline(&snapshot, 0);
    assert_eq!((timeline.peak_requested.bytes, timeline.peak_reserved.bytes), (Bytes(1024), Bytes(1024)));
    assert_eq!(snapshot.devices[0].events.len(), 1, "host events are no device's");
    let (mut out, files) = (Vec::new(), SourceMap::new(Vec::new(), Vec::new()));
    json::stats(&Input::of("pinned".to_owned(), snapshot), &[], &files, false, &mut out).unwrap();
    let host = &serde_json::from_slice::<Value>(&out).unwrap()["host_memory"];
    assert_eq!((host["held_bytes"].as_u64(), host["used_bytes"].as_u64()), (Some(4608), Some(4096)));
    assert_eq!((host["blocks"].as_u64(), host["events"].as_u64()), (Some(2), Some(2)));
}

#[test]
fn snapshots_of_2_14_without_pinned_memory_have_no_gap_for_it() {
    let bytes = Pickle::new(4)
        .dict(&[
            ("segments", Field::Raw(b"]")),
            ("device_traces", Field::Raw(b"]")),
            ("host_segments", Field::Raw(b"]")),
            ("host_traces", Field::Raw(b"]")),
        ])
        .stop();
    assert_eq!(read(&bytes).unwrap().gaps, []);
}

#[test]
fn segments_below_unknown_keys_are_nobodys() {
    let bytes = Pickle::new(4)
        .dict(&[
            ("segments", Field::Raw(b"]")),
            ("device_traces", Field::Raw(b"]")),
            ("other_segments", Field::Raw(&list(&[segment(b"K\x00", 4096, 512)]))),
        ])
        .stop();
    let snapshot = read(&bytes).unwrap();
    assert!(snapshot.segments.is_empty());
    assert_eq!(snapshot.gaps, [Gap::UnknownKeys(vec![("other_segments".to_owned(), 1)])]);
}

#[test]
fn a_file_with_segments_only_still_shows_its_devices() {
    let segments = list(&[segment(b"K\x02", 4096, 512), segment(b"K\x00", 8192, 1024)]);
    for bytes in [
        Pickle::new(4).raw(&segments).stop(),
        Pickle::new(4).dict(&[("segments", Field::Raw(&segments)), ("traces", Field::Raw(b"]"))]).stop(),
    ] {
        let input = Input::of("it".to_owned(), read(&bytes).unwrap());
        let held: Vec<(usize, Bytes)> = input
            .devices
            .iter()
            .map(|device| (device.device.position(), device.timeline.requested_at_end))
            .collect();
        assert_eq!(held, [(0, Bytes(1024)), (2, Bytes(512))]);
    }
}

#[test]
fn xpu_streams_are_pointers_and_settings_are_few() {
    let queue = 0xffff_8a3c_1234_5678_u64;
    let alloc = dict(&[
        ("action", Field::Text("alloc")),
        ("addr", Field::Number(0xffff_8181_0000_0000)),
        ("size", Field::Number(512)),
        ("stream", Field::Number(queue)),
        ("time_us", Field::Number(7)),
        ("compile_context", Field::Text("N/A")),
        ("user_metadata", Field::Text("")),
        ("frames", Field::Raw(b"]")),
    ]);
    let settings = dict(&[
        ("PYTORCH_XPU_ALLOC_CONF", Field::Text("expandable_segments:True")),
        ("expandable_segments", Field::Raw(b"\x88")),
    ]);
    let bytes = Pickle::new(4)
        .dict(&[
            ("segments", Field::Raw(b"]")),
            ("device_traces", Field::Raw(&list(&[list(&[alloc])]))),
            ("allocator_settings", Field::Raw(&settings)),
        ])
        .stop();
    let snapshot = read(&bytes).unwrap();
    let event = snapshot.devices[0].events[0];
    assert_eq!(event.address, 0xffff_8181_0000_0000, "nine bytes keep an address in the upper half positive");
    assert_eq!(snapshot.stream_pointer(event.stream), queue.cast_signed());
    assert_eq!(snapshot.settings.conf.as_deref(), Some("expandable_segments:True"));
    assert!(snapshot.settings.expandable_segments);
    assert_eq!(snapshot.gaps, [Gap::NoStacks]);
}

#[test]
fn ascend_adds_keys_and_an_action() {
    let mark = dict(&[
        ("action", Field::Text("workspace_snapshot")),
        ("addr", Field::Number(0)),
        ("size", Field::Number(0)),
        ("device", Field::Number(0)),
    ]);
    let oom = dict(&[
        ("action", Field::Text("oom")),
        ("device_free", Field::Number(99)),
        ("size", Field::Number(512)),
    ]);
    let snapshot = read(&one_trace(&[mark, oom].concat())).unwrap();
    let actions: Vec<Action> = snapshot.devices[0].events.iter().map(|event| event.action).collect();
    assert_eq!(actions, [Action::Other, Action::OutOfMemory]);
    assert!(!snapshot.gaps.iter().any(|gap| matches!(gap, Gap::UnknownKeys(_) | Gap::UnknownActions(_))));
}

/// As `_profile_to_snapshot` of `torch/cuda/_memory_viz.py` writes it: two GPUs and, last, the CPU.
#[test]
fn a_snapshot_from_a_profile_has_tensors_and_no_reserved_memory() {
    let frame =
        dict(&[("filename", Field::Text("none")), ("line", Field::Number(0)), ("name", Field::Text("f"))]);
    let frames = list(&[frame]);
    let alloc = |address| {
        dict(&[
            ("action", Field::Text("alloc")),
            ("addr", Field::Number(address)),
            ("size", Field::Number(512)),
            ("stream", Field::Number(0)),
            ("frames", Field::Raw(&frames)),
            ("category", Field::Text("activation")),
        ])
    };
    let fake = |device: u64, address: &[u8]| {
        let blocks = list(&[
            dict(&[("size", Field::Number(1 << 30)), ("state", Field::Text("inactive"))]),
            dict(&[
                ("size", Field::Number(512)),
                ("state", Field::Text("active_allocated")),
                ("requested_size", Field::Number(512)),
                ("frames", Field::Raw(&frames)),
            ]),
        ]);
        dict(&[
            ("device", Field::Number(device)),
            ("address", Field::Raw(address)),
            ("total_size", Field::Number((1 << 30) + 512)),
            ("stream", Field::Number(0)),
            ("blocks", Field::Raw(&blocks)),
        ])
    };
    let segments = list(&[fake(0, b"K\x00"), fake(1, b"N"), fake(2, b"K\x00")]);
    let traces = list(&[list(&[alloc(1 << 30)]), b"]".to_vec(), list(&[alloc(77)])]);
    let bytes = Pickle::new(4)
        .dict(&[("device_traces", Field::Raw(&traces)), ("segments", Field::Raw(&segments))])
        .stop();
    let snapshot = read(&bytes).unwrap();
    assert!(snapshot.gaps.contains(&Gap::FromProfiler));
    assert_eq!(snapshot.devices.len(), 2, "the CPU's trace is the last one");
    assert!(snapshot.segments.iter().all(|segment| segment.device < 2));
    let first = timeline(&snapshot, 0);
    assert_eq!((first.peak_requested.bytes, first.peak_reserved.bytes), (Bytes(512), Bytes(512)));
    assert_eq!((first.allocations.len(), first.agreement.blocks_without_alloc), (1, 0));
}

#[test]
fn either_kind_of_free_ends_a_lifetime() {
    for free in ["free_requested", "free_completed", "free"] {
        let events = [event("alloc", 4096, 512), event(free, 4096, 512), event("alloc", 4096, 1024)];
        let timeline = timeline(&read(&one_trace(&events.concat())).unwrap(), 0);
        let ends: Vec<bool> = timeline.allocations.iter().map(|one| one.free.is_some()).collect();
        assert_eq!((ends, timeline.agreement.lost_frees), (vec![true, false], 0), "{free}");
        assert_eq!(timeline.peak_requested.bytes, Bytes(1024), "{free}");
    }
}

#[test]
fn allocations_without_any_free_end_when_their_address_returns() {
    let events = [event("alloc", 4096, 512), event("alloc", 4096, 1024)];
    let timeline = timeline(&read(&one_trace(&events.concat())).unwrap(), 0);
    assert_eq!((timeline.agreement.lost_frees, timeline.peak_requested.bytes), (1, Bytes(1024)));
}

#[test]
fn annotate_changes_nothing() {
    let events =
        [event("alloc", 4096, 512), event("annotate", 4096, 512), event("free_completed", 4096, 512)];
    let snapshot = read(&one_trace(&events.concat())).unwrap();
    let timeline = timeline(&snapshot, 0);
    assert_eq!((timeline.allocations.len(), timeline.requested_at_end), (1, Bytes::ZERO));
    assert!(!snapshot.gaps.iter().any(|gap| matches!(gap, Gap::UnknownActions(_))));
}

#[test]
fn addresses_from_2_to_the_63_on_take_nine_bytes() {
    let bytes = one_event(&[
        ("action", Field::Text("alloc")),
        ("addr", Field::Number(u64::MAX - 511)),
        ("size", Field::Number(512)),
    ]);
    assert_eq!(read(&bytes).unwrap().devices[0].events[0].address, u64::MAX - 511);
}

/// PyTorch's own pickler (`torch/csrc/jit/serialization/pickler.cpp`): protocol 2, text memoised by value, a dict or list
/// in one batch of any length, memoised only after it was filled.
#[derive(Default)]
struct Cpp {
    bytes: Vec<u8>,
    texts: Vec<String>,
    memos: u32,
}

impl Cpp {
    fn put(&mut self) -> u32 {
        let memo = self.memos;
        self.memos += 1;
        match u8::try_from(memo) {
            Ok(short) => self.bytes.extend([b'q', short]),
            Err(_) => self.bytes.extend([b"r".as_slice(), &memo.to_le_bytes()].concat()),
        }
        memo
    }

    fn get(&mut self, memo: u32) {
        match u8::try_from(memo) {
            Ok(short) => self.bytes.extend([b'h', short]),
            Err(_) => self.bytes.extend([b"j".as_slice(), &memo.to_le_bytes()].concat()),
        }
    }

    fn text(&mut self, text: &str) {
        // The first texts get the first memos, because nothing else is memoised before `frames`.
        if let Some(known) = self.texts.iter().position(|one| one == text) {
            self.get(u32::try_from(known).unwrap());
            return;
        }
        self.bytes.push(b'X');
        self.bytes.extend(u32::try_from(text.len()).unwrap().to_le_bytes());
        self.bytes.extend(text.as_bytes());
        assert_eq!(self.put() as usize, self.texts.len());
        self.texts.push(text.to_owned());
    }

    fn number(&mut self, number: u64) {
        match i32::try_from(number) {
            Ok(small) => self.bytes.extend([b"J".as_slice(), &small.to_le_bytes()].concat()),
            Err(_) => self.bytes.extend([b"\x8a\x08".as_slice(), &number.to_le_bytes()].concat()),
        }
    }

    fn pair(&mut self, key: &str, value: impl FnOnce(&mut Cpp)) {
        self.text(key);
        value(self);
    }
}

#[test]
fn pytorchs_own_pickler_is_read() {
    const EVENTS: u64 = 3000;
    let mut cpp = Cpp { bytes: vec![0x80, 2], ..Cpp::default() };
    for word in
        ["action", "addr", "size", "stream", "frames", "name", "filename", "line", "alloc", "f", "a.py"]
    {
        cpp.text(word);
        cpp.bytes.push(b'0');
    }
    for word in ["segments", "device_traces"] {
        cpp.text(word);
        cpp.bytes.push(b'0');
    }
    cpp.bytes.extend(b"}(");
    cpp.pair("segments", |cpp| cpp.bytes.extend(b"](e"));
    cpp.text("device_traces");
    cpp.bytes.extend(b"](](");
    let mut shared = None;
    for at in 0..EVENTS {
        cpp.bytes.extend(b"}(");
        cpp.pair("action", |cpp| cpp.text("alloc"));
        cpp.pair("addr", |cpp| cpp.number((1 << 40) + at * 512));
        cpp.pair("size", |cpp| cpp.number(512));
        cpp.pair("stream", |cpp| cpp.number(0));
        cpp.text("frames");
        if let Some(memo) = shared {
            cpp.get(memo);
        } else {
            cpp.bytes.extend(b"](}(");
            cpp.pair("name", |cpp| cpp.text("f"));
            cpp.pair("filename", |cpp| cpp.text("a.py"));
            cpp.pair("line", |cpp| cpp.number(12));
            cpp.bytes.push(b'u');
            cpp.put();
            cpp.bytes.push(b'e');
            shared = Some(cpp.put());
        }
        cpp.bytes.push(b'u');
    }
    cpp.bytes.extend(b"eeu.");
    let snapshot = read(&cpp.bytes).unwrap();
    let events: &[Event] = &snapshot.devices[0].events;
    assert_eq!(events.len() as u64, EVENTS);
    assert_eq!(events.last().map(|event| event.address), Some((1 << 40) + (EVENTS - 1) * 512));
    let stacks: Vec<_> = events.iter().map(|event| event.stack).collect();
    assert!(stacks.iter().all(|stack| stack.is_some() && *stack == stacks[0]));
    let frame = snapshot.stacks.frame(snapshot.stacks.get(stacks[0].unwrap())[0]).unwrap();
    assert_eq!((snapshot.text(frame.name), snapshot.text(frame.file), frame.line), ("f", "a.py", 12));
}
