//! What must hold of every snapshot, whatever it says.

use std::path::PathBuf;

use memlint::edit::{anonymize, slice};
use memlint::engine::{Closer, Device, Input, Report, check};
use memlint::pickle::PickleLimits;
use memlint::report::{Detail, Format, Look, json, stats};
use memlint::snapshot::{Event, Snapshot};
use memlint::source::{self, SourceMap};
use memlint::timeline::Timeline;
use memlint::unit::{Bytes, Index, StackId};

use crate::stack::SECRET;

pub(crate) fn written(snapshot: &Snapshot) -> Vec<u8> {
    let mut pickle = Vec::new();
    snapshot.write(&mut pickle).expect("memory takes everything");
    pickle
}

pub(crate) fn read(pickle: &[u8]) -> Snapshot {
    Snapshot::read(pickle, &PickleLimits::default()).expect("what is written can be read")
}

/// The frames of a stack as text.
fn frames(snapshot: &Snapshot, stack: Option<StackId>) -> Vec<(&str, &str, u32)> {
    let ids = stack.map(|stack| snapshot.stacks.get(stack)).unwrap_or_default();
    let frames = ids.iter().filter_map(|&id| snapshot.stacks.frame(id));
    frames.map(|frame| (snapshot.text(frame.name), snapshot.text(frame.file), frame.line)).collect()
}

/// Whether two snapshots say the same, whatever their numbers for strings, stacks and streams.
pub(crate) fn assert_same(one: &Snapshot, other: &Snapshot) {
    let event = |snapshot: &Snapshot, event: &Event| {
        let metadata = event.metadata.map(|text| snapshot.text(text).to_owned());
        let stream = snapshot.stream_pointer(event.stream);
        (event.action, event.address, event.size, event.time, stream, metadata, event.stack.is_some())
    };
    assert_eq!(one.devices.len(), other.devices.len());
    for (a, b) in one.devices.iter().zip(&other.devices) {
        assert_eq!(a.events.len(), b.events.len());
        for (a, b) in a.events.iter().zip(&b.events) {
            assert_eq!(event(one, a), event(other, b));
            assert_eq!(frames(one, a.stack), frames(other, b.stack));
        }
    }
    assert_eq!(one.segments.len(), other.segments.len());
    for (a, b) in one.segments.iter().zip(&other.segments) {
        assert_eq!((a.device, a.address, a.total_size, a.pool), (b.device, b.address, b.total_size, b.pool));
        assert_eq!(one.stream_pointer(a.stream), other.stream_pointer(b.stream));
        assert_eq!(a.blocks.len(), b.blocks.len());
        for (a, b) in a.blocks.iter().zip(&b.blocks) {
            assert_eq!((a.address, a.size, a.requested, a.state), (b.address, b.size, b.requested, b.state));
            assert_eq!(frames(one, a.stack), frames(other, b.stack));
        }
    }
    let annotations = |snapshot: &Snapshot| -> Vec<_> {
        let all = snapshot.annotations.iter();
        all.map(|one| (snapshot.text(one.name).to_owned(), one.start, one.time, one.device)).collect()
    };
    assert_eq!(annotations(one), annotations(other));
}

/// The report of a check, and all that the formats write of it.
pub(crate) fn judged(snapshot: Snapshot) -> (Report, Vec<u8>) {
    let files = SourceMap::new(vec![PathBuf::from("/nonexistent")], Vec::new());
    let input = Input::of("fuzz".to_owned(), snapshot);
    for device in &input.devices {
        assert_sums(device);
    }
    let mut out = Vec::new();
    let looks = [Look::PLAIN, Look { width: 30, unicode: true, color: true, detail: Detail::Verbose }];
    let closer = Closer::all(&input);
    for look in &looks {
        out.extend(stats::render(&input.recording(), &closer, &files, look).into_bytes());
    }
    json::stats(&input, &closer, &files, true, &mut out).expect("memory takes everything");
    let peaks: Vec<(Bytes, Bytes)> = input
        .devices
        .iter()
        .map(|device| (device.timeline.peak_requested.bytes, device.timeline.peak_reserved.bytes))
        .collect();
    let mut report = check(vec![input]);
    source::settle(&mut report, &files);
    for finding in &report.findings {
        assert!(!finding.message.is_empty() && !finding.help.is_empty(), "{finding:?}");
        let most = peaks.iter().map(|(requested, reserved)| *requested.max(reserved)).max();
        assert!(finding.impact.peak <= most, "{finding:?} saves more than there is");
    }
    for format in Format::ALL {
        for look in &looks {
            format.write(&report, &files, look, &mut out).expect("memory takes everything");
        }
    }
    (report, out)
}

/// What adds up by definition.
fn assert_sums(device: &Device) {
    let Device { timeline, program, roles, profile, replay, .. } = device;
    let of_roles: Bytes = profile.peak_by_role.iter().map(|(_, bytes)| *bytes).sum();
    assert_eq!(of_roles, timeline.peak_requested.bytes, "roles at the peak");
    assert!(timeline.peak_requested.bytes >= timeline.requested_at_end.max(timeline.requested_at_start));
    assert!(timeline.peak_reserved.bytes >= timeline.reserved_at_end.max(timeline.reserved_at_start));
    assert!(
        replay.peak_active.bytes >= replay.peak_allocated.bytes,
        "active blocks are allocated or pending"
    );
    assert_eq!(roles.of.len(), timeline.allocations.len());
    assert_eq!(replay.block_sizes.len(), timeline.allocations.len());
    assert_eq!(program.phases.len(), timeline.allocation_of.len());
    assert_eq!(profile.iterations.len(), program.iterations.len());
    for pair in program.iterations.windows(2) {
        assert!(pair[0].start < pair[0].end && pair[0].end <= pair[1].start, "iterations follow one another");
    }
    for (iteration, memory) in program.iterations.iter().zip(&profile.iterations) {
        assert!(iteration.end.position() <= program.phases.len());
        assert!(memory.resident <= memory.peak && memory.peak <= timeline.peak_requested.bytes);
    }
}

/// A slice holds at its end what the original held there, and can be written and read.
pub(crate) fn assert_slice(pickle: &[u8], last: u8) {
    let whole = read(pickle);
    let range = format!("1..{}", u32::from(last) + 1);
    let Ok(iterations) = range.parse() else { return };
    let Ok(part) = slice(whole, iterations, Vec::new()) else { return };
    let again = read(&written(&part));
    assert_same(&part, &again);
    let devices: Vec<_> = part.active_devices().map(|(device, _)| device).collect();
    for device in devices {
        let (one, other) = (Timeline::of(&part, device), Timeline::of(&again, device));
        assert_eq!(one.requested_at_end, other.requested_at_end);
        assert_eq!(one.reserved_at_end, other.reserved_at_end);
    }
}

/// Without names the same is found, and no name is left.
pub(crate) fn assert_anonymous(pickle: &[u8], report: &Report) {
    let bytes = written(&anonymize(read(pickle)));
    let secret = SECRET.as_bytes();
    assert!(!bytes.windows(secret.len()).any(|window| window == secret), "a name is left");
    let (nameless, _) = judged(read(&bytes));
    let found = |report: &Report| -> Vec<_> {
        let place = |finding: &memlint::finding::Finding| finding.location.as_ref().map(|place| place.line);
        report
            .findings
            .iter()
            .map(|one| (one.rule.clone(), one.severity, one.device, place(one), one.impact.peak))
            .collect()
    };
    let (mut one, mut other) = (found(report), found(&nameless));
    let order = |a: &(_, _, _, _, _), b: &(_, _, _, _, _)| format!("{a:?}").cmp(&format!("{b:?}"));
    one.sort_by(order);
    other.sort_by(order);
    assert_eq!(one, other, "without names something else is found");
}
