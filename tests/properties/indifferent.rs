//! What does not matter changes nothing: other addresses, another clock, lines moved.

use memlint::snapshot::Snapshot;

use crate::altered::{at_times, farther, with_stacks};
use crate::case;
use crate::recordings::{Found, found};

/// Lines that somebody wrote at the top of every file.
const MOVED: u32 = 1000;

/// The driver's granularity: what the allocator asks of it lies at multiples of that.
const GRANULARITY: u64 = 2 << 20;

/// A recording of the same run, and by how much the lines of what is found have moved.
struct Same {
    name: &'static str,
    of: fn(Snapshot) -> Snapshot,
    lines: u32,
}

const SAME: [Same; 6] = [
    Same { name: "next addresses", of: |snapshot| farther(snapshot, GRANULARITY), lines: 0 },
    Same { name: "far addresses", of: |snapshot| farther(snapshot, 131_071 * GRANULARITY), lines: 0 },
    Same { name: "a day later", of: |snapshot| at_times(snapshot, |time| time + 86_400_000_000), lines: 0 },
    Same { name: "seven times as slow", of: |snapshot| slower(snapshot, 7), lines: 0 },
    Same { name: "a thousand times as slow", of: |snapshot| slower(snapshot, 1000), lines: 0 },
    Same { name: "lines moved", of: moved, lines: MOVED },
];

/// Everything took so many times as long.
fn slower(snapshot: Snapshot, times: i64) -> Snapshot {
    let first = snapshot.devices.iter().flat_map(|trace| &trace.events).map(|event| event.time.0);
    let first = first.filter(|time| *time > 0).min().unwrap_or_default();
    at_times(snapshot, |time| first + (time - first) * times)
}

fn moved(snapshot: Snapshot) -> Snapshot {
    with_stacks(snapshot, |mut stack| {
        for frame in stack.iter_mut().filter(|frame| frame.is_python()) {
            frame.line += MOVED;
        }
        stack
    })
}

/// Holds recordings against themselves: those for which `wanted` says so, by the numbers of both.
fn compare(wanted: impl Fn(usize, usize) -> bool) {
    let mut wrong = Vec::new();
    for (at, case) in case::all().iter().enumerate() {
        let same: Vec<&Same> =
            SAME.iter().enumerate().filter(|(number, _)| wanted(at, *number)).map(|(_, one)| one).collect();
        if same.is_empty() {
            continue;
        }
        let here = found(case.snapshot());
        for Same { name, of, lines } in same {
            let mut expected = here.clone();
            for line in expected.iter_mut().filter_map(|one: &mut Found| one.line.as_mut()) {
                *line += lines;
            }
            let there = found(of(case.snapshot()));
            if there != expected {
                let only = |one: &[Found], other: &[Found]| -> Vec<Found> {
                    one.iter().filter(|one| !other.contains(one)).cloned().collect()
                };
                wrong.push(format!(
                    "{}, {name}: -{:?} +{:?}",
                    case.name,
                    only(&expected, &there),
                    only(&there, &expected)
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "{} differ:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn what_does_not_matter_changes_nothing() {
    compare(|recording, same| recording % 3 == 0 && recording / 3 % SAME.len() == same);
}

#[test]
#[ignore = "takes a minute: every recording in every way; CI runs it"]
fn nothing_that_does_not_matter_changes_anything() {
    compare(|_, _| true);
}
