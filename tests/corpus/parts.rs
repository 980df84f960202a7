//! Recordings examined, written as a part, read and concluded: in every format the same bytes as judged at once.

use memlint::engine::{Examination, Plan, Report, conclude, examine};
use memlint::part::Part;
use memlint::picture::Room;
use memlint::report::{Format, Look};
use memlint::rules;
use memlint::source::SourceMap;

use crate::case;

fn written(report: &Report) -> Vec<String> {
    let files = SourceMap::default().seen_by(&report.recordings);
    let write = |format: Format| {
        let mut bytes = Vec::new();
        format.write(report, &files, &Look::PLAIN, &mut bytes).unwrap();
        String::from_utf8(bytes).unwrap()
    };
    Format::ALL.map(write).into()
}

/// Compares every so many-th recording.
fn compare(share: usize) {
    let plan = Plan::of_rules(rules::RULES).drawing(Room::PAGE.shared_by(16));
    let report = |examination: Examination| written(&conclude(vec![examination], Vec::new(), &plan));
    for case in case::all().iter().step_by(share) {
        let part = Part { asked: plan.mark(), page: None, examination: examine(&case.input, &plan) };
        let mut bytes = Vec::new();
        part.write(&mut bytes).unwrap();
        let at_once = report(part.examination);
        let by_file = report(Part::read(bytes.as_slice(), 1 << 30).unwrap().examination);
        for (format, (one, other)) in Format::ALL.iter().zip(at_once.iter().zip(&by_file)) {
            assert!(one == other, "{}: {} differs", case.name, format.name());
        }
    }
}

#[test]
fn a_recording_says_the_same_by_way_of_a_file() {
    compare(4);
}

#[test]
#[ignore = "takes half a minute: every recording in every format, twice"]
fn every_recording_says_the_same_by_way_of_a_file() {
    compare(1);
}
