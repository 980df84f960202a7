//! One program and what was found in it: the findings, recordings and sources that all formats are tested on.

use memlint::engine::{
    IterationMemory, LineProfile, MainLoop, Profile, RecordedDevice, Recording, Report, Verdict,
};
use memlint::facts::RecordingKind;
use memlint::finding::{
    Absent, Finding, Fingerprint, Group, Hidden, Impact, Location, Matter, Measure, Notice, Quantity,
    Related, Severity, Sighting, Silence, Skipped, StackFrame, Standing,
};
use memlint::program::{FoundBy, Phase};
use memlint::report::{Look, VerdictFailure};
use memlint::role::Role;
use memlint::snapshot::Gap;
use memlint::source::SourceMap;
use memlint::timeline::Agreement;
use memlint::unit::{Bytes, Confidence, DeviceIndex, Index, IterationIndex, Micros};

pub(crate) const PLAIN: Look = Look::PLAIN;
/// Where the program was recorded, and where it lies here.
pub(crate) const RECORDED: &str = "/opt/job/seed-resnet50-bug/train.py";
pub(crate) const SOURCE: &str = "examples/seed-resnet50-bug";

pub(crate) fn golden(name: &str, text: &str) {
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path("../expected");
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| insta::assert_snapshot!(name, text));
}

pub(crate) fn mib(tenths: u64) -> Bytes {
    Bytes(tenths * (1 << 20) / 10)
}

pub(crate) fn at(file: &str, line: u32, function: &str) -> Location {
    Location { file: file.to_owned(), line, function: function.to_owned() }
}

/// Five iterations of a loop on one device.
pub(crate) fn recording() -> Recording {
    let memory = |peak| IterationMemory { peak: mib(peak), resident: mib(2921) };
    let line = |line, tenths, allocations| LineProfile {
        location: at(RECORDED, line, "run_resnet50"),
        bytes: mib(tenths),
        allocations,
    };
    let device = RecordedDevice {
        device: DeviceIndex::at(0).unwrap(),
        kind: RecordingKind::Whole,
        events: 50,
        allocations: 25,
        duration: Some(Micros(1_300_000)),
        main_loop: Some(MainLoop { location: at(RECORDED, 16, "run_resnet50"), last_line: 18 }),
        found_by: FoundBy::LoopAndOptimizer,
        confidence: Confidence::High,
        iterations: 5,
        hidden: None,
        peak_requested: Some(mib(4484)),
        peak_allocated: Some(mib(4490)),
        peak_reserved: Some(mib(4720)),
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
            growing_at_peak: Vec::new(),
            garbage_at_peak: Vec::new(),
            reserved_growth: Bytes::ZERO,
            peak_phase: Phase::Backward,
            peak_iteration: IterationIndex::at(1),
            lines_at_peak: vec![line(16, 1559, 310), line(17, 975, 161)],
            iterations: vec![memory(3506), memory(4484), memory(4484), memory(4484), memory(4484)],
            curve: [3506, 4484, 3000, 4484, 2921].map(mib).to_vec(),
        },
        agreement: Agreement { blocks_without_alloc: 3, ..Agreement::default() },
    };
    Recording {
        name: "snapshot.pickle.zst".to_owned(),
        devices: vec![device],
        rules: ["missing-zero-grad", "lazy-optimizer-init", "oom"].map(Into::into).to_vec(),
        judged: 2,
        ..Recording::default()
    }
}

pub(crate) fn finding(rule: &'static str, severity: Severity, message: &str) -> Finding {
    Finding {
        confidence: Confidence::High,
        message: message.to_owned(),
        device: DeviceIndex::at(0),
        phase: Phase::Backward,
        ..Finding::of(rule, Group::Leak, severity)
    }
}

pub(crate) fn measure(name: &'static str, text: &str) -> Measure {
    Measure { name: name.into(), value: Quantity::Count(4), text: text.to_owned() }
}

pub(crate) fn missing_zero_grad() -> Finding {
    let frame =
        |file: &str, line, function: &str, user| StackFrame { location: at(file, line, function), user };
    Finding {
        location: Some(at(RECORDED, 17, "run_resnet50")),
        label: "allocated here in iteration 1, added to in place ever since".to_owned(),
        related: vec![
            Related {
                location: at(RECORDED, 18, "run_resnet50"),
                message: "5 steps, no zero_grad".to_owned(),
                stood: None,
            },
            Related {
                location: at("/opt/job/lib/loop.py", 7, "run"),
                message: "called from here".to_owned(),
                stood: None,
            },
        ],
        evidence: vec![
            measure("alive-at-boundaries", "alive at 4 of 4 iteration boundaries"),
            measure("tensors", "one tensor for each of 161 parameters"),
            measure("seen-by-machines-only", ""),
            measure("steps", "5 calls of Optimizer.step and none of zero_grad"),
        ],
        impact: Impact { peak: Some(mib(253)), resident: Some(mib(975)), ..Impact::default() },
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

pub(crate) fn note() -> Finding {
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

pub(crate) fn report(findings: Vec<Finding>) -> Report {
    let skipped = Skipped {
        input: 0,
        device: DeviceIndex::at(0),
        rule: "oom".into(),
        silence: Silence::NotApplicable(Absent::Training),
    };
    Report { recordings: vec![recording()], findings, skipped: vec![skipped], ..Report::default() }
}

pub(crate) fn sources() -> SourceMap {
    SourceMap::new([SOURCE.into()], Vec::new())
}

pub(crate) fn nowhere() -> SourceMap {
    SourceMap::new(["nowhere".into()], Vec::new())
}

/// A job of two ranks: everything that a report can hold.
pub(crate) fn findings() -> Report {
    let other = Recording { name: "rank1.pickle".to_owned(), gaps: vec![Gap::NoTimes], ..recording() };
    let ranks = [(0, recording()), (1, other)];
    let sighting = |input| Sighting { input, device: DeviceIndex::at(0), impact: Impact::default() };
    let everywhere = Finding { also: vec![sighting(1)], ..missing_zero_grad() };
    let holes = Finding {
        input: 1,
        group: Group::Allocator,
        confidence: Confidence::Medium,
        impact: Impact { reserved: Some(mib(512)), ..Impact::default() },
        evidence: vec![
            Measure {
                name: "holes".into(),
                value: Quantity::Bytes(mib(512)),
                text: "51.2 MiB of holes at the peak".to_owned(),
            },
            Measure { name: "share".into(), value: Quantity::Ratio(0.125), text: String::new() },
            Measure {
                name: "resident".into(),
                value: Quantity::Series(vec![mib(10), mib(20)]),
                text: String::new(),
            },
        ],
        help: "allocate the largest batch first".to_owned(),
        ..finding("fragmentation", Severity::Warning, "51.2 MiB of 472 MiB reserved are holes")
    };
    let mut report = suppressed();
    report.recordings = ranks
        .map(|(rank, recording)| Recording {
            rank: Some(rank),
            job: Some("*.pickle".to_owned()),
            ..recording
        })
        .to_vec();
    report.findings.extend([everywhere, holes, note()]);
    report.findings.sort_by_key(|one| std::cmp::Reverse(one.severity));
    report.notices = vec![unused_ignore()];
    report.skipped = self::report(Vec::new()).skipped;
    report.verdict = Verdict { fail_on: Some(Severity::Error), failing: 1, ..Verdict::default() };
    with_fingerprints(report)
}

/// Nothing was found, and a rule could not judge.
pub(crate) fn blind() -> Report {
    let mut report = report(Vec::new());
    report.skipped[0].silence = Silence::Blind(Hidden::Iterations);
    report.verdict = none().verdict;
    report
}

/// A program in order.
pub(crate) fn none() -> Report {
    let verdict = Verdict { fail_on: Some(Severity::Error), ..Verdict::default() };
    Report { recordings: vec![recording()], verdict, ..Report::default() }
}

/// Two errors, neither of which counts.
pub(crate) fn suppressed() -> Report {
    let ignored = Finding {
        standing: Standing::Ignored {
            reason: "one epoch of history is meant".to_owned(),
            by: "train.py:17".to_owned(),
        },
        location: Some(at(RECORDED, 17, "run_resnet50")),
        help: "keep the number only:\n  history.append(loss.item())".to_owned(),
        ..finding("growing-residency", Severity::Error, "2 MiB more in each of 5 iterations")
    };
    let known = Finding {
        standing: Standing::Baselined,
        location: Some(at("/opt/job/lib/loop.py", 7, "run")),
        ..finding("transient-spike", Severity::Warning, "a spike of 80 MiB sets the peak")
    };
    with_fingerprints(Report { findings: vec![ignored, known], ..none() })
}

pub(crate) fn unused_ignore() -> Notice {
    Notice {
        kind: Matter::UnusedIgnore,
        severity: Severity::Warning,
        message: "this ignore of `oom` matches no finding".to_owned(),
        help: "remove it".to_owned(),
        location: Some(at("memlint.toml", 9, "")),
    }
}

pub(crate) fn failure() -> VerdictFailure {
    VerdictFailure {
        message: "`rank1.pickle`: the file ends in the middle of a pickle, at byte 4096".to_owned(),
        help: Some("was the disk full, or the process killed while it wrote?".to_owned()),
    }
}

/// Words out of a recording that mean something to every format.
pub(crate) const HOSTILE: &str = "a|b`c``` ]]> <script>&amp;\"'</details>\n\n::error::x%0A,%\r\u{1b}[2J\u{202e}\u{fffe}[d](e) {0} **f**\n# g @h";

/// The same report, with such words wherever a recording or a person can put some.
pub(crate) fn hostile() -> Report {
    saying(HOSTILE)
}

/// The same report, with some words wherever a recording or a person can put some.
pub(crate) fn saying(words: &str) -> Report {
    let mut report = findings();
    for recording in &mut report.recordings {
        recording.name.push_str(words);
        recording.gaps.push(Gap::UnknownKeys(vec![(words.to_owned(), 1)]));
        for device in &mut recording.devices {
            device.main_loop = Some(MainLoop { location: at(words, 3, words), last_line: 3 });
            device.profile.lines_at_peak[0].location = at(words, 3, words);
        }
    }
    for finding in &mut report.findings {
        finding.location = finding.location.take().map(|_| at(words, 3, words));
        for text in [&mut finding.message, &mut finding.help, &mut finding.label] {
            text.push_str(words);
        }
        finding.evidence.push(measure("hostile", words));
        finding.stack.push(StackFrame { location: at(words, 3, words), user: true });
        finding.related.push(Related {
            location: at(words, 3, words),
            message: words.to_owned(),
            stood: None,
        });
        if let Standing::Ignored { reason, by } = &mut finding.standing {
            reason.push_str(words);
            by.insert_str(0, words);
        }
    }
    for notice in &mut report.notices {
        notice.message.push_str(words);
        notice.help.push_str(words);
        notice.location = Some(at(words, 3, words));
    }
    report
}

fn with_fingerprints(mut report: Report) -> Report {
    for finding in &mut report.findings {
        finding.fingerprint = Fingerprint::of(finding);
    }
    report
}
