//! Recordings that are large in one way: whoever works in the square of something would not end here.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use memlint::engine::{self, Input};
use memlint::snapshot::{Action, DeviceTrace, Event, Frame, Snapshot};
use memlint::unit::{Bytes, FrameId, Micros, StackId};

/// A stack of these functions, outermost first; those with `::` are C++.
fn stack(snapshot: &mut Snapshot, functions: &[&str]) -> Option<StackId> {
    let frames: Vec<FrameId> = functions
        .iter()
        .rev()
        .map(|name| {
            let file = if name.contains("::") { "libtorch.so" } else { "/home/me/train.py" };
            let (name, file) =
                (snapshot.strings.intern(name).unwrap(), snapshot.strings.intern(file).unwrap());
            snapshot.stacks.intern_frame(Frame { name, file, line: 7 }).unwrap()
        })
        .collect();
    snapshot.stacks.intern(&frames)
}

fn event(at: u64, action: Action, size: u64, stack: Option<StackId>) -> Event {
    Event {
        time: Micros(at.cast_signed()),
        address: (1 << 40) + (at << 20),
        size: Bytes(size),
        stack,
        metadata: None,
        stream: 0,
        action,
        compiled: false,
        particulars: 0,
    }
}

#[test]
fn saved_tensors_of_very_many_sizes_are_let_go_of_outside_a_backward_pass() {
    const TENSORS: u64 = 120_000;
    let mut snapshot = Snapshot::default();
    let made = stack(&mut snapshot, &["<module>", "main", "at::empty"]);
    let dropped = stack(&mut snapshot, &["<module>", "main", "torch::autograd::SavedVariable::reset_data"]);
    let all = |action, stack| {
        (0..TENSORS).map(move |at| Event { time: Micros(0), ..event(at, action, 4096 + at, stack) })
    };
    let events = all(Action::Alloc, made).chain(all(Action::FreeRequested, dropped));
    let events = events.chain(all(Action::FreeCompleted, dropped)).collect();
    snapshot.devices.push(DeviceTrace { events });
    let report = engine::check(vec![Input::of("drops".to_owned(), snapshot)]);
    assert!(report.findings.iter().all(|finding| finding.rule != "growing-residency"));
}

#[test]
fn very_many_lines_keep_something_for_one_reason() {
    const LINES: u64 = 6_000;
    let mut snapshot = Snapshot::default();
    let made: Vec<_> = (0..LINES)
        .map(|line| stack(&mut snapshot, &["<module>", "main", &format!("keep{line}"), "at::empty"]))
        .collect();
    let turns = 0..8_u64;
    let events = turns.flat_map(|turn| {
        let made = made.iter().enumerate();
        made.map(move |(line, stack)| event(turn * LINES + line as u64, Action::Alloc, 65_536, *stack))
    });
    let events = events.collect();
    snapshot.devices.push(DeviceTrace { events });
    let report = engine::check(vec![Input::of("keeps".to_owned(), snapshot)]);
    assert!(report.findings.len() < 100, "{} findings", report.findings.len());
}
