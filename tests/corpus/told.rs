//! What is told about the recordings: it fits a terminal of 80 columns, and promises no more than there is.

use memlint::report::{Format, Look, stats};
use memlint::source::SourceMap;
use memlint::unit::Bytes;

use crate::case;

#[test]
fn no_line_is_wider_than_the_terminal() {
    let mut wide = Vec::new();
    for case in case::all() {
        let report = case.report();
        let files = SourceMap::default().seen_by(&report.recordings);
        let mut checked = Vec::new();
        Format::Text.write(&report, &files, &Look::PLAIN, &mut checked).unwrap();
        let counted = stats::render(&report.recordings[0], &[], &files, &Look::PLAIN);
        let checked = String::from_utf8(checked).unwrap();
        // The first line goes whole into a log.
        let lines = checked
            .lines()
            .skip(1)
            .chain(counted.lines())
            .filter(|line| line.chars().count() > Look::PLAIN.width);
        wide.extend(lines.map(|line| format!("{}: {line}", case.name)));
    }
    assert!(wide.is_empty(), "{} lines:\n{}", wide.len(), wide.join("\n"));
}

#[test]
fn no_more_is_less_between_iterations_than_stands_there() {
    let mut promised = 0;
    for case in case::all() {
        let report = case.report();
        for finding in &report.findings {
            let Some(resident) = finding.impact.resident else { continue };
            let device = report.recordings[0].device(finding.device.unwrap()).unwrap();
            let ends = device.profile.iterations.iter().map(|iteration| iteration.resident);
            let most = ends.max().unwrap_or_default();
            assert!(
                resident > Bytes::ZERO && resident <= most,
                "{}: {} saves {resident} of {most}",
                case.name,
                finding.rule
            );
            promised += 1;
        }
    }
    assert!(promised > 50, "only {promised} findings save anything between iterations");
}
