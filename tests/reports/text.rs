//! The text report and the statistics: every shape of them, against golden files.

use memlint::engine::{Recording, Report, Verdict};
use memlint::finding::{Finding, Group, Hidden, Impact, Related, Severity, Sighting, Silence, Stood};
use memlint::report::{Detail, Look, stats, text};
use memlint::role::Role;
use memlint::snapshot::{Excerpt, Gap};
use memlint::source::SourceMap;
use memlint::unit::{Bytes, Confidence, DeviceIndex, Index};

use crate::fixture::{
    PLAIN, RECORDED, at, finding, golden, measure, mib, missing_zero_grad, note, nowhere, recording, report,
    sources,
};

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
fn long_lines_of_source_are_clipped_around_what_is_marked() {
    let folder = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("long-lines");
    std::fs::create_dir_all(&folder).unwrap();
    let chain = "model(torch.cat([batch.images, batch.more_images], dim=1), mask=batch.mask, positions=None)";
    let far = "loss_of_everything, parts_of_it = (criterion_of_the_experiment, 1); x, y = 1, 2; step()";
    let program =
        format!("def run(model, batch):\n    # {}\n    out = {chain}\n    {far}\n", "why ".repeat(40));
    std::fs::write(folder.join("long.py"), program).unwrap();
    let file = "/opt/job/long.py";
    let finding = Finding {
        location: Some(at(file, 3, "run")),
        label: "allocated here in iteration 1, added to in place ever since".to_owned(),
        related: vec![Related {
            location: at(file, 4, "run"),
            message: "5 steps, no zero_grad".to_owned(),
            stood: None,
        }],
        ..finding("missing-zero-grad", Severity::Error, "gradients are never released")
    };
    let sources = SourceMap::new([folder.clone()], Vec::new());
    let drawn = |width: usize| {
        let look = Look { width, detail: Detail::Quiet, ..PLAIN };
        let text = text::render(&report(vec![finding.clone()]), &sources, &look);
        text.replace(&format!("{}/", folder.display()), "")
    };
    for width in [70, 80, 100, 120, 200] {
        let text = drawn(width);
        let longest = text.lines().filter(|line| line.contains('|')).map(|line| line.chars().count()).max();
        assert!(longest.unwrap() <= width, "{width}:\n{text}");
        assert!(text.contains("long.py:3:11]"), "the column is the file's: {text}");
    }
    golden("text-long-lines", &drawn(80));
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

/// Memory ran out in the third line of a program that grows, and a rule could not judge.
fn ran_out() -> Report {
    let stood = |line, tenths, what: &'static str| Related {
        location: at(RECORDED, line, "run_resnet50"),
        message: format!("{} of {what} stood at that moment", mib(tenths)),
        stood: Some(Stood { bytes: mib(tenths), here: mib(tenths), what: what.into() }),
    };
    let finding = Finding {
        location: Some(at(RECORDED, 17, "run_resnet50")),
        label: "failed in iteration 4 (backward)".to_owned(),
        related: vec![stood(16, 975, "parameters"), stood(17, 1559, "activations")],
        evidence: vec![measure("reserved", "472 MiB reserved")],
        help: "keep fewer activations: a smaller batch".to_owned(),
        ..finding("oom", Severity::Error, "out of memory: 64 MiB wanted, 470 MiB in use, the device is full")
    };
    let mut report = report(vec![finding, note()]);
    report.skipped[0].silence = Silence::Blind(Hidden::Iterations);
    report.verdict = Verdict { fail_on: Some(Severity::Error), failing: 1, ..Verdict::default() };
    report.recordings[0].devices[0].profile.growing_at_peak = vec![(Role::Activation, mib(1200))];
    report
}

#[test]
fn what_closes_the_gate_comes_first_and_what_stood_there_is_one_table() {
    let text = text::render(&ran_out(), &sources(), &PLAIN);
    golden("text-oom", &text);
    let wide = Look { width: 120, unicode: true, ..PLAIN };
    golden("text-oom-wide", &text::render(&ran_out(), &nowhere(), &wide));
    // What grows is to be mended first, however unsure it is.
    let mut grows = ran_out();
    let note = grows.findings.iter_mut().find(|one| one.severity == Severity::Info).unwrap();
    note.impact.per_iteration = Some(mib(160));
    note.message = "memory grows".to_owned();
    let text = text::render(&grows, &sources(), &PLAIN);
    assert!(text.contains("info: memory grows") && text.contains("\n1 error, 1 note\n"), "{text}");
    // Where it stays open, what could not be judged comes first.
    let mut open = ran_out();
    open.verdict.failing = 0;
    assert!(
        text::render(&open, &sources(), &PLAIN).starts_with("1 error, 1 note, but 1 of 3 rules could not")
    );
}

#[test]
fn several_snapshots_and_what_they_lack() {
    let mut other = recording();
    other.name = "rank1.pickle".to_owned();
    other.excerpt = Some(Excerpt::of(3, 5, 20));
    other.gaps = vec![Gap::NoStacks, Gap::UnknownActions(vec![("segment_park".to_owned(), 12)])];
    other.devices[0].profile.iterations.clear();
    let growth = Finding {
        input: 1,
        group: Group::Allocator,
        confidence: Confidence::Low,
        impact: Impact { reserved: Some(Bytes::ZERO), per_iteration: Some(mib(160)), ..Impact::default() },
        help: "release it".to_owned(),
        ..finding("fragmentation", Severity::Warning, "holes grow by 16 MiB in each of 12 iterations")
    };
    let mut report = report(vec![missing_zero_grad(), growth, note(), note()]);
    report.recordings.push(other);
    golden("text-several", &text::render(&report, &sources(), &PLAIN));
}

#[test]
fn a_slice_too_short_for_a_trend_says_so() {
    let drawn = |last| {
        let mut report = report(Vec::new());
        report.recordings[0].excerpt = Some(Excerpt::of(3, last, 20));
        let text = text::render(&report, &nowhere(), &PLAIN);
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let (two, three) = (drawn(4), drawn(5));
    assert!(
        two.contains("this is a slice, iterations 3..4 of 20; too short to show what grows or lives on"),
        "{two}"
    );
    assert!(
        three.contains("this is a slice, iterations 3..5 of 20") && !three.contains("too short"),
        "{three}"
    );
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
    let statistics = stats::render(&ugly, &[], &nowhere(), &look);
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
    golden("stats-unicode", &stats::render(&recording(), &[], &sources(), &look));
}
