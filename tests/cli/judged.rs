//! Green means judged: each way in which a recording hides what rules need, and what the gate makes of it.

use std::fs::File;
use std::path::Path;
use std::process::Output;

use memlint::edit;
use memlint::engine::Input;
use memlint::input::{Limits, Source};
use memlint::pickle;
use memlint::program::Phase;
use memlint::snapshot::{Action, DeviceTrace, Event, Frame, Particulars, Segment, Snapshot, Stacks};
use memlint::unit::{Bytes, FrameId};
use serde_json::Value;

use crate::{folder, memlint_in, recording, root, stderr, stdout};

/// A recording in which nothing is wrong, and which shows everything.
const SOUND: &str = "ho-seq2seq";

fn sound() -> Snapshot {
    let source = Source::File(root().join(recording(SOUND)));
    Snapshot::read(source.open(&Limits::default()).unwrap(), &pickle::PickleLimits::default()).unwrap()
}

/// What a recording without some of its events shows.
fn keeping(keep: impl Fn(&Event) -> bool) -> Snapshot {
    let mut snapshot = sound();
    snapshot.devices[0].events.retain(|event| keep(event));
    snapshot
}

fn is_of_driver(event: &Event) -> bool {
    use Action::{SegmentAlloc, SegmentFree, SegmentMap, SegmentUnmap};
    matches!(event.action, SegmentAlloc | SegmentFree | SegmentMap | SegmentUnmap)
}

fn is_free(event: &Event) -> bool {
    matches!(event.action, Action::FreeRequested | Action::FreeCompleted)
}

/// Every event of a kind gets an action of a later version.
fn renamed(is: impl Fn(usize, &Event) -> bool) -> Snapshot {
    let mut snapshot = sound();
    let action = snapshot.strings.intern("alloc_graph_v2");
    let strange = u16::try_from(snapshot.particulars.len()).unwrap();
    snapshot.particulars.push(Particulars { action, ..Particulars::default() });
    for (at, event) in snapshot.devices[0].events.iter_mut().enumerate() {
        if is(at, event) {
            (event.action, event.particulars) = (Action::Other, strange);
        }
    }
    snapshot
}

/// Only the optimizer's events keep their stacks; the others have none, or empty ones.
fn optimizers_stacks(empty: bool) -> Snapshot {
    let input = Input::of(SOUND.to_owned(), sound());
    let phases = input.devices[0].program.phases.clone();
    let mut snapshot = input.snapshot;
    let bare = empty.then(|| snapshot.stacks.intern(&[]).unwrap());
    for (event, phase) in snapshot.devices[0].events.iter_mut().zip(phases) {
        if phase != Phase::OptimizerStep {
            event.stack = bare;
        }
    }
    snapshot
}

/// The program lies where packages are installed.
fn packaged() -> Snapshot {
    let mut snapshot = sound();
    let old = std::mem::take(&mut snapshot.stacks);
    let mut stacks = Stacks::default();
    for id in old.ids() {
        let frames = old.get(id).iter().map(|frame| {
            let frame = old.frame(*frame).unwrap();
            let file = snapshot.text(frame.file).replace("/train.py", "/site-packages/job/train.py");
            stacks.intern_frame(Frame { file: snapshot.strings.intern(&file).unwrap(), ..frame }).unwrap()
        });
        let frames: Vec<FrameId> = frames.collect();
        assert_eq!(stacks.intern(&frames), Some(id), "stacks keep their numbers");
    }
    snapshot.stacks = stacks;
    snapshot
}

/// The ring buffer kept the last events alone.
fn wrapped() -> Snapshot {
    let mut snapshot = sound();
    let events = &mut snapshot.devices[0].events;
    events.drain(..events.len() * 6 / 10);
    snapshot
}

/// Nine of ten frees are missing.
fn without_most_frees() -> Snapshot {
    let mut snapshot = sound();
    let mut number = 0;
    snapshot.devices[0].events.retain(|event| {
        number += usize::from(is_free(event));
        !is_free(event) || number.is_multiple_of(10)
    });
    snapshot
}

/// The program holds memory on a second device, which was not recorded.
fn with_a_second_device() -> Snapshot {
    let mut snapshot = sound();
    snapshot.devices.push(DeviceTrace::default());
    snapshot.segments.push(Segment { device: 1, total_size: Bytes(2 << 20), ..Segment::default() });
    snapshot
}

/// What a recording is, what its report says first, and whether any rule could judge it.
type Way = (&'static str, Snapshot, &'static str, bool);

fn ways() -> Vec<Way> {
    let first = |event: &Event| event.action == Action::Alloc;
    let mut one = sound();
    let at = one.devices[0].events.iter().position(first).unwrap();
    one.devices[0].events = vec![one.devices[0].events[at]];
    let iteration = edit::slice(sound(), "4".parse().unwrap(), Vec::new()).unwrap();
    let alloc = |event: &Event| event.action == Action::Alloc;
    vec![
        ("one-event", one, "record 5 to 10 whole iterations", false),
        ("segments-alone", keeping(is_of_driver), "record 5 to 10 whole iterations", false),
        ("frees-alone", keeping(is_free), "record 5 to 10 whole iterations", false),
        ("no-alloc", keeping(|event| !alloc(event)), "record 5 to 10 whole iterations", false),
        ("no-free", keeping(|event| !is_free(event)), "record all actions in one go", false),
        ("few-frees", without_most_frees(), "record all actions in one go", false),
        ("no-segments", keeping(|event| !is_of_driver(event)), "record all actions", true),
        ("strange-allocs", renamed(|_, event| alloc(event)), "look for a newer memlint", false),
        ("strange-half", renamed(|at, event| alloc(event) && at % 2 == 0), "look for a newer memlint", false),
        ("strange-all", renamed(|_, _| true), "look for a newer memlint", false),
        ("optimizers-stacks", optimizers_stacks(false), "record with context=\"all\"", true),
        ("empty-stacks", optimizers_stacks(true), "record with context=\"all\"", true),
        ("packaged", packaged(), "record your own script", true),
        ("one-iteration", iteration, "record 5 to 10 iterations", true),
        ("ring", wrapped(), "raise max_entries", true),
        ("second-device", with_a_second_device(), "record every device", true),
    ]
}

fn write(folder: &Path, name: &str, snapshot: &Snapshot) -> String {
    let file = format!("{name}.pickle");
    snapshot.write(File::create(folder.join(&file)).unwrap()).unwrap();
    file
}

fn check(folder: &Path, file: &str, more: &[&str]) -> Output {
    memlint_in(folder, &[&["check", file, "--isolated"], more].concat())
}

fn first_line(output: &Output) -> &str {
    stdout(output).lines().next().unwrap_or_default()
}

#[test]
fn a_recording_that_shows_everything_passes_strictly_and_without_a_word() {
    let folder = folder("judged-sound");
    let file = write(&folder, "sound", &sound());
    let strict = check(&folder, &file, &["--strict"]);
    assert_eq!((strict.status.code(), stderr(&strict)), (Some(0), ""), "{}", stdout(&strict));
    assert!(!stdout(&strict).contains("could not judge"), "{}", stdout(&strict));
    assert_eq!(stdout(&check(&folder, &file, &["--quiet"])), "");
}

#[test]
fn whatever_a_recording_hides_is_said_first_and_closes_a_strict_gate() {
    let folder = folder("judged-ways");
    for (name, snapshot, remedy, judged) in ways() {
        let file = write(&folder, name, &snapshot);
        let plain = check(&folder, &file, &["--output-file", "json=report.json"]);
        let (line, said) = (first_line(&plain).to_owned(), stdout(&plain).to_owned());
        assert_eq!(plain.status.code(), Some(if judged { 0 } else { 2 }), "{name}: {said}");
        assert!(line.contains(remedy), "{name}: {line}");
        let begins = if judged { line.find(" of 25 rules") } else { line.find("no verdict: no rule could") };
        let warned = line.starts_with("1 warning, ");
        assert!(begins.is_some_and(|at| at <= 2) || judged && warned, "{name}: {line}");
        let nothing = line.find("no findings");
        assert!(nothing.is_none_or(|at| at > line.find("could not judge").unwrap()), "{name}: {line}");
        assert_eq!(line.contains("of 25 rules could not judge"), judged, "{name}: {line}");
        let report: Value =
            serde_json::from_slice(&std::fs::read(folder.join("report.json")).unwrap()).unwrap();
        assert!(report["findings"].is_array(), "{name}: the report is written all the same");
        assert_eq!(report["verdict"]["unjudged"], usize::from(!judged), "{name}");
        let strict = check(&folder, &file, &["--strict"]);
        assert_eq!((strict.status.code(), first_line(&strict)), (Some(2), &*line), "{name}");
        assert!(stderr(&strict).starts_with("error: "), "{name}: {}", stderr(&strict));
        let excused = check(&folder, &file, &["--strict", "--exit-zero"]);
        assert_eq!(excused.status.code(), Some(0), "{name}: --exit-zero");
        assert_eq!(first_line(&check(&folder, &file, &["--quiet"])), line, "{name}");
    }
}

#[test]
fn every_format_says_first_that_not_all_was_judged() {
    let folder = folder("judged-formats");
    for (name, snapshot, judged) in [("ring", wrapped(), true), ("frees", keeping(is_free), false)] {
        let file = write(&folder, name, &snapshot);
        let text = check(&folder, &file, &[]);
        let line = first_line(&text);
        let of = |format: &str| stdout(&check(&folder, &file, &["--output-format", format])).to_owned();
        assert!(of("concise").starts_with(&format!("memlint: {line}\n")), "{}", of("concise"));
        let level = if judged { "warning" } else { "error" };
        assert!(of("github").starts_with(&format!("::{level} title=memlint::{line}\n")), "{}", of("github"));
        let heading = of("markdown").lines().next().unwrap().replace('\\', "");
        assert_eq!(heading, format!("## memlint: {line}"));
        let gitlab: Value = serde_json::from_str(&of("gitlab")).unwrap();
        let severity = if judged { "minor" } else { "blocker" };
        assert_eq!(
            (&gitlab[0]["check_name"], &gitlab[0]["severity"]),
            (&"not-judged".into(), &severity.into())
        );
        let sarif: Value = serde_json::from_str(&of("sarif")).unwrap();
        let invocation = &sarif["runs"][0]["invocations"][0];
        assert_eq!(invocation["executionSuccessful"], judged);
        assert_eq!(invocation["toolExecutionNotifications"][0]["message"]["text"], line);
        assert_eq!(of("junit").contains("<error type=\"no-verdict\""), !judged);
        assert!(of("junit").contains("<skipped message="));
    }
}

#[test]
fn a_peak_that_cannot_be_known_is_not_shown() {
    let folder = folder("judged-peak");
    let file = write(&folder, "no-alloc", &keeping(|event| event.action != Action::Alloc));
    let text = memlint_in(&folder, &["stats", &file]);
    assert!(stdout(&text).contains("requested is not known"), "{}", stdout(&text));
    let json = memlint_in(&folder, &["stats", &file, "--output-format", "json"]);
    let stats: Value = serde_json::from_str(stdout(&json)).unwrap();
    let device = &stats["devices"][0];
    assert_eq!(
        (&device["peak_requested_bytes"], &device["peak_allocated_bytes"]),
        (&Value::Null, &Value::Null)
    );
    assert!(device["peak_reserved_bytes"].is_u64() && device["requested_bytes_at_end"].is_u64());
    assert!(device["iterations"][0]["peak_requested_bytes"].is_null());
    let diff = memlint_in(&folder, &["diff", &file, &file]);
    assert_eq!(diff.status.code(), Some(2));
    assert!(stderr(&diff).contains("does not show how much memory was in use"), "{}", stderr(&diff));
}

/// A program that ran out of memory, with other events.
fn ran_out(altered: impl FnOnce(&mut Vec<Event>)) -> Snapshot {
    let source = Source::File(root().join(recording("seed-oom")));
    let stream = source.open(&Limits::default()).unwrap();
    let mut snapshot = Snapshot::read(stream, &pickle::PickleLimits::default()).unwrap();
    altered(&mut snapshot.devices[0].events);
    snapshot
}

/// The same with another request that fails.
fn failing(altered: impl FnMut(&mut Event)) -> Snapshot {
    ran_out(|events| events.iter_mut().filter(|one| one.action == Action::OutOfMemory).for_each(altered))
}

#[test]
fn a_request_for_more_than_there_is_is_not_put_down_to_what_else_is_in_use() {
    let folder = folder("judged-too-large");
    let file = write(&folder, "huge", &failing(|event| event.size = Bytes::GIB.times(200)));
    let output = check(&folder, &file, &[]);
    assert_eq!(
        first_line(&output),
        "error: out of memory: 200 GiB wanted, more than the 139.1 GiB to be had in all",
        "the device is not full: {}",
        stdout(&output)
    );
    assert!(stdout(&output).contains("make this one tensor smaller"), "{}", stdout(&output));
}

#[test]
fn no_stack_but_that_of_the_request_that_failed_is_shown_as_its_own() {
    let folder = folder("judged-stack");
    let shown = |snapshot: &Snapshot| {
        let output = check(&folder, &write(&folder, "oom", snapshot), &["--select", "oom", "-v"]);
        stdout(&output).split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let own = shown(&failing(|_| ()));
    assert!(own.contains("in _multi_tensor_adam") && own.contains("failed here (optimizer step)"), "{own}");
    let lost = shown(&failing(|event| event.stack = None));
    assert!(!lost.contains("in _multi_tensor_adam") && !lost.contains(" stack torch"), "{lost}");
    assert!(lost.contains("the last stack before the request that failed"), "{lost}");
}

#[test]
fn a_line_that_made_only_most_of_what_stood_there_is_not_taken_for_the_only_one() {
    let output = memlint_in(root(), &["check", &recording("oom-second-step-bug"), "--isolated"]);
    let rows: Vec<&str> = stdout(&output).lines().filter(|line| line.contains("train.py:")).collect();
    let row = |what: &str| rows.iter().find(|row| row.contains(what)).unwrap();
    assert!(
        row("  activations  ").contains("  mostly ") && !row("  optimizer state  ").contains("mostly"),
        "{rows:#?}"
    );
    let json = memlint_in(root(), &["check", &recording("oom-second-step-bug"), "--output-format", "json"]);
    let report: Value = serde_json::from_slice(&json.stdout).unwrap();
    let related = report["findings"][0]["related"].as_array().unwrap();
    let said = |text: &str| related.iter().any(|one| one["message"].as_str().unwrap().ends_with(text));
    assert!(said("of activations stood at that moment, mostly made here"), "{related:#?}");
    assert!(said("of optimizer state stood at that moment"), "{related:#?}");
}

#[test]
fn memory_that_ran_out_is_a_finding_whatever_else_is_hidden() {
    let folder = folder("judged-oom");
    let snapshot = ran_out(|events| events.retain(|event| event.action != Action::Alloc));
    let output = check(&folder, &write(&folder, "oom", &snapshot), &[]);
    assert_eq!(output.status.code(), Some(1), "{}", stdout(&output));
    // What is wrong comes first, and then, how far that can be trusted.
    assert!(first_line(&output).starts_with("error: out of memory: "), "{}", stdout(&output));
    let last = stdout(&output).lines().find(|line| line.contains(" rules could not judge: "));
    assert!(last.is_some_and(|line| line.ends_with("; -v names them")), "{}", stdout(&output));
}
