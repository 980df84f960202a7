//! Memory timelines of PyTorch's profiler: real ones (`tests/data/profiler`, made by `record.py` there), and damaged ones.

use std::path::Path;

use memlint::input::{Content, Limits, Source};
use memlint::profiler::{Category, Form, MemoryTrend, PassSign, ProfilerError, ProfilerTimeline};
use memlint::unit::{Bytes, Confidence};

/// More numbers than any of these files holds.
const ENOUGH: u64 = 1 << 16;
/// `[memory]` events of the GPU in `leak.trace.json.gz`.
const LEAK_MOMENTS: usize = 482;

fn recorded(name: &str) -> ProfilerTimeline {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/profiler").join(name);
    match Source::File(path).open_any(&Limits::default()).unwrap() {
        Content::Timeline(stream) => ProfilerTimeline::read(stream, ENOUGH).unwrap(),
        Content::Snapshot(_) => panic!("{name} is no timeline"),
    }
}

fn read(json: &str) -> Result<ProfilerTimeline, ProfilerError> {
    ProfilerTimeline::read(json.as_bytes(), ENOUGH)
}

fn damage(json: &str) -> String {
    match read(json) {
        Err(ProfilerError::Damaged { what }) => what,
        other => panic!("{json}: {other:?}"),
    }
}

fn bytes(composition: &memlint::profiler::Composition, category: Category) -> Bytes {
    composition.iter().find(|(one, _)| *one == category).unwrap().1
}

#[test]
fn both_forms_of_one_recording_have_the_same_peak() {
    for name in ["leak", "whole", "steps"] {
        let events = recorded(&format!("{name}.raw.json.gz"));
        let levels = recorded(&format!("{name}.json.gz"));
        assert_eq!((events.form, levels.form), (Form::Events, Form::Levels));
        assert_eq!(events.peak, levels.peak, "{name}");
        assert_eq!(events.at_end, levels.at_end, "{name}");
        assert_eq!((events.below_zero, events.backwards), (Bytes::ZERO, 0), "{name}");
    }
}

#[test]
fn a_trace_of_the_same_program_tells_the_same_leak() {
    let (tensors, blocks) = (recorded("leak.raw.json.gz"), recorded("leak.trace.json.gz"));
    assert_eq!(
        (blocks.form, blocks.rows, blocks.found_by),
        (Form::Trace, LEAK_MOMENTS, PassSign::Annotations)
    );
    assert_eq!((tensors.passes.len(), blocks.passes.len()), (8, 8));
    let MemoryTrend::Grows { per_pass, .. } = blocks.growth else { panic!("{:?}", blocks.growth) };
    assert_eq!(per_pass, Bytes(512 * 1024), "512 KiB a step");
    let reserved = blocks.reserved.unwrap();
    assert!(tensors.peak.total() <= blocks.peak.total() && blocks.peak.total() <= reserved, "{reserved}");
    assert_eq!(recorded("steps.trace.json.gz").passes.len(), 6, "prof.step() was called");
}

#[test]
fn the_peak_is_what_the_program_had() {
    let leak = recorded("leak.raw.json.gz");
    assert_eq!((leak.rows, leak.peak.total()), (1_159, Bytes(11_725_864)));
    // Weights and biases of 256x512, 512x512 and 512x10; one gradient each (rounded up to 512 bytes by the profiler).
    assert_eq!(
        bytes(&leak.peak, Category::Parameter),
        Bytes(4 * (256 * 512 + 512 + 512 * 512 + 512 + 5_120 + 10))
    );
    assert_eq!(bytes(&leak.peak, Category::Gradient), Bytes(1_597_952));
    assert_eq!(leak.older.unwrap().total(), Bytes(1_597_480), "the parameters are older than the recording");
    assert_eq!(bytes(&leak.at_end, Category::Unknown), Bytes(8 * 512 * 1024), "eight tensors were kept");
}

#[test]
fn steps_and_passes_are_those_that_ran() {
    for (name, ran) in [("leak", 8), ("whole", 8), ("steps", 6)] {
        let events = recorded(&format!("{name}.raw.json.gz"));
        assert_eq!((events.found_by, events.passes.len()), (PassSign::OptimizerSteps, ran), "{name}");
        let levels = recorded(&format!("{name}.json.gz"));
        assert_eq!((levels.found_by, levels.passes.len()), (PassSign::Activations, ran), "{name}");
        assert_eq!((events.confidence, levels.confidence), (Confidence::Medium, Confidence::Medium));
        for timeline in [events, levels] {
            for pass in &timeline.passes {
                assert!(pass.resident.total() <= pass.peak && pass.peak <= timeline.peak.total(), "{pass:?}");
            }
        }
    }
    let cpu = recorded("whole-cpu.raw.json.gz");
    assert_eq!((cpu.found_by, cpu.growth), (PassSign::Nothing, MemoryTrend::TooShort));
}

#[test]
fn a_leak_grows_by_what_is_kept_and_its_healthy_twins_do_not() {
    for form in ["raw.json.gz", "json.gz"] {
        match recorded(&format!("leak.{form}")).growth {
            MemoryTrend::Grows { per_pass, mostly: Some((Category::Unknown, _)), rises, .. } => {
                assert_eq!(per_pass, Bytes(512 * 1024), "{form}");
                assert!(rises >= 3, "{form}: {rises}");
            }
            other => panic!("{form}: {other:?}"),
        }
        for healthy in ["whole", "steps"] {
            let growth = recorded(&format!("{healthy}.{form}")).growth;
            assert!(
                matches!(growth, MemoryTrend::Steady { between: (least, most), .. } if least == most),
                "{growth:?}"
            );
        }
    }
}

#[test]
fn a_device_without_tensors_has_no_rows() {
    for empty in ["[]", "[[], []]"] {
        let timeline = read(empty).unwrap();
        assert_eq!((timeline.rows, timeline.times, timeline.peak.total()), (0, None, Bytes::ZERO), "{empty}");
    }
}

#[test]
fn one_row_and_four_times_are_told_apart() {
    let row = read("[[-1, 1, 4096, 0]]").unwrap();
    assert_eq!((row.form, row.rows, row.peak.total(), row.peak_time), (Form::Events, 1, Bytes(4096), None));
    let sizes = "[0, 1, 0, 0, 0, 0, 0, 0, 0]";
    let times = read(&format!("[[1, 2, 3, 4], [{sizes}, {sizes}, {sizes}, {sizes}]]")).unwrap();
    assert_eq!((times.form, times.rows), (Form::Levels, 4));
}

#[test]
fn rows_that_do_not_fit_are_named() {
    let sizes = "[0, 1, 0, 0, 0, 0, 0, 0, 0]";
    for (json, part) in [
        ("[[1, 2, 3, 4], [1, 2, 3, 9]]", "row 2 is of no category"),
        ("[[1, 5, 3, 4]]", "row 1 has the unknown action 5"),
        ("[[1, 2, 3]]", "a row of 3 numbers instead of 4"),
        ("[[1, 2, 3, 4], [1, 2, 3, 4, 5]]", "a row of 5 numbers instead of 4"),
        ("[[1, 2, 3, 4], [1, 2, 3, 4], [1, 2, 3]]", "invalid length 3"),
        ("[[1, 2], []]", "fewer rows of sizes than times"),
        (&format!("[[1], [{sizes}, {sizes}]]"), "more rows of sizes than times"),
        (&format!("[[1], [{sizes}], [2]]"), "a number"),
        (&format!("[[1], [{sizes}], 2]"), "a third part"),
        ("[[1], [[0, 1]]]", "invalid length 2"),
        ("[[1, 2, [3], 4]]", "expected a number"),
        ("[[1, 2, 18446744073709551615, 4]]", "beyond 63 bits"),
        ("[[1, 2, 3, 4]", "EOF"),
        ("[[1, 2, 3, 4]] [", "trailing"),
        ("[[1, 2, 1e999, 4]]", "out of range"),
    ] {
        let what = damage(json);
        assert!(what.contains(part), "{json}: {what}");
    }
    let text = ProfilerError::NotNumbers { found: "`n`".to_owned(), offset: 11 };
    assert_eq!(read("[[1, 2, 3, null]]"), Err(text));
}

#[test]
fn sums_that_do_not_add_up_are_said_and_nothing_overflows() {
    let timeline =
        read("[[9000, 4, -512, 0], [1000, 2, 9223372036854775807, 1], [2000, 2, 9223372036854775807, 1]]")
            .unwrap();
    assert_eq!((timeline.below_zero, timeline.backwards), (Bytes(512), 8));
    assert_eq!(timeline.peak.total(), Bytes(i64::MAX.unsigned_abs()));
}

#[test]
fn what_is_held_has_a_limit() {
    let rows = vec!["[0, 1, 0, 0, 0, 0, 0, 0, 0]"; 100].join(", ");
    let times: Vec<String> = (0..100).map(|time| time.to_string()).collect();
    let json = format!("[[{}], [{rows}]]", times.join(", "));
    assert_eq!(ProfilerTimeline::read(json.as_bytes(), 999), Err(ProfilerError::Limit { limit: 999 }));
    assert_eq!(ProfilerTimeline::read(json.as_bytes(), 1_000).unwrap().rows, 100);
}
