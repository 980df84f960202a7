//! The text report over hand-made findings: every shape of it, against golden files.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use memlint::engine::{Device, Input, IterationMemory, Profile, Report};
use memlint::finding::{
    Finding, Group, Impact, Location, Measure, Related, Severity, Skipped, StackFrame, Value,
};
use memlint::program::{FoundBy, Iteration, Loop, Phase, Program};
use memlint::replay::Replay;
use memlint::report::{Detail, Look, stats, text};
use memlint::role::{Role, Roles};
use memlint::snapshot::{Frame, Gap, Snapshot};
use memlint::source::SourceMap;
use memlint::timeline::{Agreement, Peak, Timeline};
use memlint::unit::{Bytes, Confidence, DeviceIndex, EventIndex, Index, IterationIndex, Micros};

const PLAIN: Look = Look { width: 80, unicode: false, color: false, detail: Detail::Normal };
/// Where the program was recorded, and where it lies here.
const RECORDED: &str = "/opt/job/seed-resnet50-bug/train.py";
const SOURCE: &str = "examples/seed-resnet50-bug";

fn golden(name: &str, text: &str) {
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path("expected");
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| insta::assert_snapshot!(name, text));
}

fn mib(tenths: u64) -> Bytes {
    Bytes(tenths * (1 << 20) / 10)
}

fn at(file: &str, line: u32, function: &str) -> Location {
    Location { file: file.to_owned(), line, function: function.to_owned() }
}

fn event(position: usize) -> EventIndex {
    EventIndex::at(position).unwrap()
}

/// Five iterations of a loop on one device.
fn input() -> Input {
    let mut snapshot = Snapshot::default();
    let name = snapshot.strings.intern("run_resnet50").unwrap();
    let file = snapshot.strings.intern(RECORDED).unwrap();
    let frame = snapshot.stacks.intern_frame(Frame { name, file, line: 16 }).unwrap();
    let timeline = Timeline {
        device: DeviceIndex::at(0).unwrap(),
        allocations: Vec::new(),
        allocation_of: vec![None; 50],
        requested_at_start: Bytes::ZERO,
        reserved_at_start: Bytes::ZERO,
        peak_requested: Peak { bytes: mib(4484), event: Some(event(14)) },
        peak_reserved: Peak { bytes: mib(4720), event: Some(event(14)) },
        requested_at_end: mib(2921),
        reserved_at_end: mib(4720),
        agreement: Agreement { blocks_without_alloc: 3, ..Agreement::default() },
    };
    let iteration = |index: usize| Iteration {
        start: event(index * 10),
        end: event(index * 10 + 10),
        start_time: Micros(0),
        end_time: Micros(0),
        complete: true,
    };
    let memory = |peak| IterationMemory { peak: mib(peak), resident: mib(2921) };
    let device = Device {
        device: timeline.device,
        replay: Replay::of(&snapshot, &timeline),
        program: Program {
            iterations: (0..5).map(iteration).collect(),
            main_loop: Some(Loop { frame, line: 16, last_line: 18 }),
            found_by: FoundBy::LoopAndOptimizer,
            confidence: Confidence::High,
            ..Program::default()
        },
        roles: Roles::default(),
        profile: Profile {
            peak_by_role: vec![
                (Role::Activation, mib(1559)),
                (Role::Parameter, mib(975)),
                (Role::Gradient, mib(975)),
                (Role::OptimizerState, mib(972)),
                (Role::Buffer, mib(2)),
                (Role::Unknown, mib(1)),
            ],
            peak_phase: Phase::Backward,
            peak_iteration: IterationIndex::at(1),
            iterations: vec![memory(3506), memory(4484), memory(4484), memory(4484), memory(4484)],
        },
        timeline,
    };
    Input { name: "snapshot.pickle.zst".to_owned(), snapshot, devices: vec![device] }
}

fn finding(rule: &'static str, severity: Severity, message: &str) -> Finding {
    Finding {
        input: 0,
        rule,
        group: Group::Leak,
        severity,
        confidence: Confidence::High,
        message: message.to_owned(),
        help: String::new(),
        device: DeviceIndex::at(0),
        phase: Phase::Backward,
        location: None,
        seek: None,
        excuse: None,
        label: String::new(),
        related: Vec::new(),
        evidence: Vec::new(),
        impact: Impact::default(),
        stack: Vec::new(),
    }
}

fn measure(name: &'static str, text: &str) -> Measure {
    Measure { name, value: Value::Count(4), text: text.to_owned() }
}

fn missing_zero_grad() -> Finding {
    let frame =
        |file: &str, line, function: &str, user| StackFrame { location: at(file, line, function), user };
    Finding {
        location: Some(at(RECORDED, 17, "run_resnet50")),
        label: "allocated here in iteration 1, added to in place ever since".to_owned(),
        related: vec![
            Related {
                location: at(RECORDED, 18, "run_resnet50"),
                message: "5 steps, no zero_grad".to_owned(),
            },
            Related {
                location: at("/opt/job/lib/loop.py", 7, "run"),
                message: "called from here".to_owned(),
            },
        ],
        evidence: vec![
            measure("alive-at-boundaries", "alive at 4 of 4 iteration boundaries"),
            measure("tensors", "one tensor for each of 161 parameters"),
            measure("seen-by-machines-only", ""),
            measure("steps", "5 calls of Optimizer.step and none of zero_grad"),
        ],
        impact: Impact { peak: Some(mib(253)), resident: Some(mib(975)), per_iteration: None },
        help:
            "clear them once per iteration, directly after the step:\n  optimizer.zero_grad(set_to_none=True)"
                .to_owned(),
        stack: vec![
            frame(
                "/usr/lib/python3.12/site-packages/torch/autograd/graph.py",
                824,
                "_engine_run_backward",
                false,
            ),
            frame("/usr/lib/python3.12/site-packages/torch/_tensor.py", 626, "backward", false),
            frame(RECORDED, 17, "run_resnet50", true),
            frame(RECORDED, 23, "<module>", true),
        ],
        ..finding(
            "missing-zero-grad",
            Severity::Error,
            "gradients of the first iteration are never released (97.5 MiB, 161 tensors)",
        )
    }
}

fn note() -> Finding {
    Finding {
        location: Some(at(RECORDED, 18, "run_resnet50")),
        label: "made here".to_owned(),
        evidence: vec![measure("state", "97.5 MiB of state")],
        ..finding(
            "lazy-optimizer-init",
            Severity::Info,
            "optimizer state (97.5 MiB) appears in the first step",
        )
    }
}

fn report(findings: Vec<Finding>) -> Report {
    let skipped = Skipped {
        input: 0,
        rule: "oom",
        reason: "no event has a stack (recorded with context=None)".to_owned(),
        blind: true,
    };
    Report { inputs: vec![input()], findings, skipped: vec![skipped] }
}

fn sources() -> SourceMap {
    SourceMap::new([SOURCE.into()], Vec::new())
}

fn nowhere() -> SourceMap {
    SourceMap::new(["nowhere".into()], Vec::new())
}

#[test]
fn an_error_and_a_note() {
    golden("text-source", &text::render(&report(vec![missing_zero_grad(), note()]), &sources(), &PLAIN));
}

#[test]
fn on_a_wide_terminal_with_unicode() {
    let look = Look { width: 100, unicode: true, ..PLAIN };
    golden("text-unicode", &text::render(&report(vec![missing_zero_grad(), note()]), &sources(), &look));
}

#[test]
fn in_full() {
    let look = Look { detail: Detail::Verbose, ..PLAIN };
    golden("text-verbose", &text::render(&report(vec![missing_zero_grad(), note()]), &sources(), &look));
}

#[test]
fn without_the_source() {
    golden("text-no-source", &text::render(&report(vec![missing_zero_grad(), note()]), &nowhere(), &PLAIN));
}

#[test]
fn a_quiet_report_is_its_findings() {
    let look = Look { detail: Detail::Quiet, ..PLAIN };
    let quiet = text::render(&report(vec![missing_zero_grad(), note()]), &sources(), &look);
    let normal = text::render(&report(vec![missing_zero_grad(), note()]), &sources(), &PLAIN);
    assert!(
        normal.starts_with(&quiet) && quiet.contains("missing-zero-grad") && !quiet.contains("iterations of")
    );
    assert_eq!(text::render(&report(vec![note()]), &sources(), &look), "");
}

#[test]
fn a_clean_program() {
    golden("text-clean", &text::render(&report(vec![note()]), &sources(), &PLAIN));
}

#[test]
fn several_snapshots_and_what_they_lack() {
    let mut other = input();
    other.name = "rank1.pickle".to_owned();
    other.snapshot.gaps = vec![Gap::NoStacks, Gap::UnknownActions(vec![("segment_park".to_owned(), 12)])];
    other.devices[0].program = Program::default();
    let growth = Finding {
        input: 1,
        group: Group::Allocator,
        confidence: Confidence::Low,
        impact: Impact { peak: Some(Bytes::ZERO), resident: None, per_iteration: Some(mib(160)) },
        help: "release it".to_owned(),
        ..finding("fragmentation", Severity::Warning, "holes grow by 16 MiB in each of 12 iterations")
    };
    let mut report = report(vec![missing_zero_grad(), growth, note(), note()]);
    report.inputs.push(other);
    golden("text-several", &text::render(&report, &sources(), &PLAIN));
}

#[test]
fn colours_only_add_escapes() {
    let strip = |text: &str| {
        let mut parts = text.split('\x1b');
        let first = parts.next().unwrap_or_default().to_owned();
        parts.fold(first, |all, part| all + part.split_once('m').map_or("", |(_, rest)| rest))
    };
    let colored = Look { color: true, ..PLAIN };
    let report = report(vec![missing_zero_grad(), note()]);
    let drawn = text::render(&report, &sources(), &colored);
    assert!(drawn.contains("\x1b[1;31merror:\x1b[0m"));
    assert_eq!(strip(&drawn), text::render(&report, &sources(), &PLAIN));
}

#[test]
fn statistics() {
    let look = Look { unicode: true, ..PLAIN };
    golden("stats-unicode", &stats::render(&input(), &sources(), &look));
}
