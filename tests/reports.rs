//! The text report over hand-made findings: every shape of it, against golden files.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use memlint::engine::{IterationMemory, Line, MainLoop, Profile, RecordedDevice, Recording, Report};
use memlint::finding::{
    Finding, Group, Impact, Location, Measure, Related, Severity, Sighting, Skipped, StackFrame, Value,
};
use memlint::program::{FoundBy, Phase};
use memlint::report::{Detail, Look, stats, text};
use memlint::role::Role;
use memlint::snapshot::Gap;
use memlint::source::SourceMap;
use memlint::timeline::Agreement;
use memlint::unit::{Bytes, Confidence, DeviceIndex, Index, IterationIndex, Micros};

const PLAIN: Look = Look::PLAIN;
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

/// Five iterations of a loop on one device.
fn recording() -> Recording {
    let memory = |peak| IterationMemory { peak: mib(peak), resident: mib(2921) };
    let line = |line, tenths, allocations| Line {
        location: at(RECORDED, line, "run_resnet50"),
        bytes: mib(tenths),
        allocations,
    };
    let device = RecordedDevice {
        device: DeviceIndex::at(0).unwrap(),
        events: 50,
        allocations: 25,
        duration: Some(Micros(1_300_000)),
        main_loop: Some(MainLoop { location: at(RECORDED, 16, "run_resnet50"), last_line: 18 }),
        found_by: FoundBy::LoopAndOptimizer,
        confidence: Confidence::High,
        peak_requested: mib(4484),
        peak_allocated: mib(4490),
        peak_reserved: mib(4720),
        requested_at_end: mib(2921),
        reserved_at_end: mib(4720),
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
            lines_at_peak: vec![line(16, 1559, 310), line(17, 975, 161)],
            iterations: vec![memory(3506), memory(4484), memory(4484), memory(4484), memory(4484)],
        },
        agreement: Agreement { blocks_without_alloc: 3, ..Agreement::default() },
    };
    Recording { name: "snapshot.pickle.zst".to_owned(), devices: vec![device], ..Recording::default() }
}

fn finding(rule: &'static str, severity: Severity, message: &str) -> Finding {
    Finding {
        confidence: Confidence::High,
        message: message.to_owned(),
        device: DeviceIndex::at(0),
        phase: Phase::Backward,
        ..Finding::of(rule, Group::Leak, severity)
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
        rule: "oom".into(),
        reason: "no event has a stack (recorded with context=None)".to_owned(),
        blind: true,
    };
    Report { recordings: vec![recording()], findings, skipped: vec![skipped], ..Report::default() }
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
    let mut other = recording();
    other.name = "rank1.pickle".to_owned();
    other.excerpt = Some("iterations 3..5 of 20".to_owned());
    other.gaps = vec![Gap::NoStacks, Gap::UnknownActions(vec![("segment_park".to_owned(), 12)])];
    other.devices[0].profile.iterations.clear();
    let growth = Finding {
        input: 1,
        group: Group::Allocator,
        confidence: Confidence::Low,
        impact: Impact { peak: Some(Bytes::ZERO), resident: None, per_iteration: Some(mib(160)) },
        help: "release it".to_owned(),
        ..finding("fragmentation", Severity::Warning, "holes grow by 16 MiB in each of 12 iterations")
    };
    let mut report = report(vec![missing_zero_grad(), growth, note(), note()]);
    report.recordings.push(other);
    golden("text-several", &text::render(&report, &sources(), &PLAIN));
}

/// The line of a report that says in how many places a finding was made.
fn places(report: &Report, what: &str) -> String {
    let drawn = text::render(report, &nowhere(), &PLAIN);
    let line = drawn.lines().find(|line| line.starts_with(&format!("  {what} ")));
    line.map(|line| line.trim_start().trim_start_matches(what).trim_start().to_owned()).unwrap_or_default()
}

#[test]
fn a_finding_of_several_places_says_in_how_many() {
    let sighting = |input, device, peak| Sighting {
        input,
        device: DeviceIndex::at(device),
        impact: Impact { peak: Some(mib(peak)), ..Impact::default() },
    };
    let mut report = report(vec![missing_zero_grad()]);
    report.findings[0].impact = sighting(0, 0, 24_000).impact;
    report.findings[0].also = vec![sighting(0, 1, 800)];
    report.recordings[0].devices.push(recording().devices.remove(0));
    assert_eq!(places(&report, "devices"), "2 of 2, worst on device 0; saves 80 MiB to 2.3 GiB of the peak");
    let of_job = |rank, moment| Recording {
        job: Some("out/rank*.pickle".to_owned()),
        rank,
        moment: vec![moment],
        ..recording()
    };
    report.recordings = vec![of_job(Some(3), 1), of_job(Some(0), 1), of_job(Some(1), 1), of_job(Some(0), 2)];
    report.findings[0].also = vec![sighting(1, 0, 24_000), sighting(3, 0, 24_000)];
    assert_eq!(places(&report, "ranks"), "2 of 3 alike, shown for rank 3", "no spread where there is none");
    report.findings[0].also.clear();
    assert_eq!(places(&report, "ranks"), "1 of 3: rank 3");
    report.recordings = vec![of_job(None, 1), of_job(None, 2), recording()];
    report.findings[0].also = vec![sighting(1, 0, 24_000)];
    assert_eq!(places(&report, "snapshots"), "2 of 2");
}

#[test]
fn names_out_of_a_file_do_not_command_the_terminal() {
    const UGLY: &str = "/home/me/\x1b[2J\x1b[Hno findings\x1b[8m\u{202e}\r.py";
    let mut hostile = missing_zero_grad();
    for text in [&mut hostile.message, &mut hostile.label, &mut hostile.help] {
        text.push_str(UGLY);
    }
    hostile.location = Some(at(UGLY, 17, UGLY));
    hostile.related[0].location = at(&UGLY.repeat(1_000), 18, "");
    hostile.related[0].message = UGLY.to_owned();
    hostile.evidence.push(measure("ugly", UGLY));
    hostile.stack[2].location = at(UGLY, 17, UGLY);
    let mut ugly = recording();
    ugly.name = UGLY.to_owned();
    ugly.gaps =
        vec![Gap::UnknownKeys(vec![(UGLY.to_owned(), 1)]), Gap::UnknownActions(vec![(UGLY.to_owned(), 2)])];
    let look = Look { detail: Detail::Verbose, ..PLAIN };
    let statistics = stats::render(&ugly, &nowhere(), &look);
    let mut report = report(vec![hostile]);
    report.recordings.push(ugly);
    let obeyed = |one: char| (one.is_control() && one != '\n') || one == '\u{202e}';
    for drawn in [text::render(&report, &nowhere(), &look), statistics] {
        assert!(drawn.contains("no findings") && !drawn.contains(obeyed), "{drawn:?}");
        assert!(drawn.len() < 8_000, "long names are shortened: {} bytes", drawn.len());
    }
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
    golden("stats-unicode", &stats::render(&recording(), &sources(), &look));
}
