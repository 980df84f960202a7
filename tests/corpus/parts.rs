//! Every recording examined, written as a part, read and concluded: in every format the same bytes as judged at once.

use memlint::engine::{Examination, Input, Plan, Report, conclude, examine};
use memlint::part::Part;
use memlint::picture::Room;
use memlint::report::{Format, Look};
use memlint::rules;
use memlint::source::SourceMap;

use crate::case;

/// An examination as it comes out of a file.
fn through_a_file(plan: &Plan, examination: Examination) -> Examination {
    let mut bytes = Vec::new();
    Part { asked: plan.mark(), page: None, examination }.write(&mut bytes).unwrap();
    Part::read(bytes.as_slice(), 1 << 30).unwrap().examination
}

fn written(report: &Report) -> Vec<String> {
    let files = SourceMap::default().seen_by(&report.recordings);
    let write = |format: Format| {
        let mut bytes = Vec::new();
        format.write(report, &files, &Look::PLAIN, &mut bytes).unwrap();
        String::from_utf8(bytes).unwrap()
    };
    Format::ALL.map(write).into()
}

#[test]
fn every_recording_says_the_same_by_way_of_a_file() {
    let plan = Plan::of_rules(rules::RULES).drawing(Room::PAGE.shared_by(16));
    let report = |input: &Input, by_file: bool| {
        let mut examination = examine(input, &plan);
        if by_file {
            examination = through_a_file(&plan, examination);
        }
        written(&conclude(vec![examination], Vec::new(), &plan))
    };
    for case in case::all() {
        let (at_once, by_file) = (report(&case.input, false), report(&case.input, true));
        for (format, (one, other)) in Format::ALL.iter().zip(at_once.iter().zip(&by_file)) {
            assert!(one == other, "{}: {} differs", case.name, format.name());
        }
    }
}
