//! What shows less cries no more: of a shorter ring buffer, a later start, fewer annotations or fewer frames comes no error that
//! the whole recording does not have. Nor does it say nothing where only annotations are missing.

use std::collections::{BTreeMap, BTreeSet};

use memlint::engine::{Input, check};
use memlint::finding::Severity;
use memlint::snapshot::{Action, Snapshot};
use memlint::timeline::Allocation;
use memlint::unit::{Index, StringId};

use crate::altered::with_stacks;
use crate::case;
use crate::recordings::{Found, busiest, found};

/// A way to record less of a run; nothing where there is no less to record.
struct Less {
    name: &'static str,
    of: fn(Snapshot) -> Option<Snapshot>,
}

const LESS: [Less; 7] = [
    Less { name: "half a ring", of: |snapshot| Some(ring(snapshot, 2)) },
    Less { name: "three quarters of a ring", of: |snapshot| Some(ring(snapshot, 4)) },
    Less { name: "a later start", of: later },
    Less { name: "no annotations", of: unannotated },
    Less { name: "every second annotation", of: half_annotated },
    Less { name: "no C++ frames", of: |snapshot| Some(without_native(snapshot)) },
    Less { name: "ten frames", of: |snapshot| Some(shallow(snapshot)) },
];

/// The first event of so many is lost, as where the ring buffer runs over: blocks keep their stacks, and annotations, which are
/// fewer and have a buffer of their own, stay.
fn ring(mut snapshot: Snapshot, one_of: usize) -> Snapshot {
    for trace in &mut snapshot.devices {
        trace.events.drain(..trace.events.len() / one_of);
    }
    snapshot
}

/// Recording began after a third of the iterations: nothing has a stack that was allocated before.
fn later(snapshot: Snapshot) -> Option<Snapshot> {
    let input = Input::of("it".to_owned(), snapshot);
    let (device, busy) = busiest(&input)?;
    let third = device.program.iterations.len() / 3;
    let first = device.program.iterations.get(third).filter(|_| third > 0).copied()?;
    let mut cuts = BTreeMap::new();
    let mut forgotten = BTreeSet::new();
    for device in &input.devices {
        let ordinal = device.device.position();
        let events = &input.snapshot.devices[ordinal].events;
        let cut = if ordinal == busy {
            first.start.position()
        } else {
            events.partition_point(|event| event.time < first.start_time)
        };
        let is_old = |one: &&Allocation| one.alloc.is_none_or(|alloc| alloc.position() < cut);
        let alive = device.timeline.allocations.iter().filter(|one| one.free.is_none());
        forgotten.extend(alive.filter(is_old).map(|one| (ordinal, one.address)));
        let segments = events[..cut].iter().filter(|event| event.action == Action::SegmentAlloc);
        forgotten.extend(segments.map(|event| (ordinal, event.address)));
        cuts.insert(ordinal, cut);
    }
    let mut snapshot = input.snapshot;
    for (ordinal, cut) in cuts {
        snapshot.devices[ordinal].events.drain(..cut);
    }
    for segment in &mut snapshot.segments {
        let Ok(ordinal) = usize::try_from(segment.device) else { continue };
        segment.stack = segment.stack.filter(|_| !forgotten.contains(&(ordinal, segment.address)));
        for block in &mut segment.blocks {
            block.stack = block.stack.filter(|_| !forgotten.contains(&(ordinal, block.address)));
        }
    }
    snapshot.annotations.retain(|annotation| annotation.time >= first.start_time);
    Some(snapshot)
}

fn unannotated(mut snapshot: Snapshot) -> Option<Snapshot> {
    let annotations = std::mem::take(&mut snapshot.annotations);
    (!annotations.is_empty()).then_some(snapshot)
}

/// Of each name every second range is lost, both of its ends.
fn half_annotated(mut snapshot: Snapshot) -> Option<Snapshot> {
    let mut begun: BTreeMap<StringId, usize> = BTreeMap::new();
    let mut open: BTreeMap<StringId, Vec<bool>> = BTreeMap::new();
    let before = snapshot.annotations.len();
    snapshot.annotations.retain(|annotation| {
        let ranges = open.entry(annotation.name).or_default();
        if !annotation.start {
            return ranges.pop().unwrap_or(true);
        }
        let number = begun.entry(annotation.name).or_default();
        *number += 1;
        ranges.push(*number % 2 == 1);
        *number % 2 == 1
    });
    (snapshot.annotations.len() < before).then_some(snapshot)
}

fn without_native(snapshot: Snapshot) -> Snapshot {
    with_stacks(snapshot, |mut stack| {
        stack.retain(crate::altered::Words::is_python);
        stack
    })
}

fn shallow(snapshot: Snapshot) -> Snapshot {
    with_stacks(snapshot, |mut stack| {
        stack.truncate(10);
        stack
    })
}

/// Whether a finding of the whole recording says as much as an error of a part: there, or anywhere, where the part does not
/// show the place of the same.
fn excuses(whole: &Found, error: &Found) -> bool {
    let (same_rule, same_place) = (whole.rule == error.rule, whole.line == error.line);
    match whole.severity {
        Severity::Info => false,
        Severity::Warning => (same_rule || whole.is_growth()) && same_place,
        Severity::Error => {
            same_rule && (same_place || error.line.is_none()) || whole.is_growth() && same_place
        }
    }
}

/// New errors of recordings of which less is seen, for the pairs for which `wanted` says so, by their numbers.
fn new_errors(wanted: impl Fn(usize, usize) -> bool) -> Vec<(String, &'static str, Found)> {
    let mut new = Vec::new();
    for (at, case) in case::all().iter().enumerate() {
        let less: Vec<&Less> =
            LESS.iter().enumerate().filter(|(number, _)| wanted(at, *number)).map(|(_, one)| one).collect();
        if less.is_empty() {
            continue;
        }
        let whole = found(case.snapshot());
        for Less { name, of } in less {
            let Some(part) = of(case.snapshot()) else { continue };
            let errors = found(part).into_iter().filter(|one| one.severity == Severity::Error);
            let errors = errors.filter(|error| !whole.iter().any(|one| excuses(one, error)));
            new.extend(errors.map(|error| (case.name.clone(), *name, error)));
        }
    }
    new
}

/// Fails where there is any.
fn none(new: &[(String, &'static str, Found)]) {
    let lines: Vec<String> = new.iter().map(|one| format!("{one:?}")).collect();
    assert!(new.is_empty(), "{} new errors:\n{}", new.len(), lines.join("\n"));
}

#[test]
fn what_shows_less_cries_no_more() {
    none(&new_errors(|recording, less| recording % 3 == 1 && recording / 3 % LESS.len() == less));
}

#[test]
#[ignore = "takes a minute: every recording in every way; CI runs it"]
fn nothing_that_shows_less_cries_more() {
    none(&new_errors(|_, _| true));
}

/// What an error becomes where nothing is annotated: less sure, and no less than a warning at its line, or a rule that says it is blind.
#[test]
fn without_annotations_no_error_passes_unsaid() {
    for case in case::all() {
        let Some(part) = unannotated(case.snapshot()) else { continue };
        let errors = found(case.snapshot()).into_iter().filter(|one| one.severity == Severity::Error);
        let errors: Vec<Found> = errors.collect();
        if errors.is_empty() {
            continue;
        }
        let report = check(vec![Input::of("it".to_owned(), part)]);
        let told: Vec<Found> = report.findings.iter().map(Found::of).collect();
        for error in errors {
            let same = |one: &Found| {
                one.severity > Severity::Info && (&one.rule, one.line) == (&error.rule, error.line)
            };
            let is_said = told.iter().any(same) || report.blind_rules().contains(&error.rule.as_str());
            assert!(is_said, "{}: {error:?} is lost: {told:?}", case.name);
        }
    }
}
