//! What was found where a program that ran without a GPU decided by values that nobody computed.
//!
//! In: the branches that the recording names (`memlint_record`), and findings. Out: those that stand in such a statement are of low confidence, and
//! name it. Always: none is taken away.

use super::Input;
use crate::finding::{Finding, Location, Related, Severity};
use crate::snapshot::Branch;
use crate::unit::Confidence;

/// Lowers the confidence of findings that hang on a branch: on a GPU the program may go the other way there.
pub(super) fn doubt(input: &Input, findings: &mut [Finding]) {
    let Some(modelled) = &input.snapshot.modelled else { return };
    for finding in findings {
        if let Some(branch) = modelled.branches.iter().find(|branch| hangs_on(finding, branch)) {
            finding.confidence = Confidence::Low;
            finding.severity = finding.severity.min(Severity::Warning);
            finding.related.push(Related {
                location: location(branch),
                message: WHY.to_owned(),
                stood: None,
            });
        }
    }
}

const WHY: &str = "decided by a value that nothing computes without a GPU: with one it may go the other way";

/// Whether a finding's line, or one that led to it, stands in a statement.
fn hangs_on(finding: &Finding, branch: &Branch) -> bool {
    let stack = finding.stack.iter().map(|frame| &frame.location);
    stack
        .chain(&finding.location)
        .any(|place| place.file == branch.file && (branch.line..=branch.end).contains(&place.line))
}

fn location(branch: &Branch) -> Location {
    Location { file: branch.file.clone(), line: branch.line, function: String::new() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::finding::Group;
    use crate::snapshot::{Modelled, Snapshot};

    fn found(line: u32) -> Finding {
        let location = Location { file: "/job/train.py".to_owned(), line, function: "main".to_owned() };
        Finding { location: Some(location), ..Finding::of("growing-residency", Group::Leak, Severity::Error) }
    }

    #[test]
    fn what_stands_in_a_branch_is_doubted_and_nothing_else() {
        let branch = Branch { file: "/job/train.py".to_owned(), line: 7, end: 9 };
        let mut modelled = Modelled::default();
        modelled.branches.push(branch);
        let snapshot = Snapshot { modelled: Some(modelled), ..Snapshot::default() };
        let input = Input::of("train".to_owned(), snapshot);
        let mut findings = [found(6), found(8)];
        doubt(&input, &mut findings);
        let [sure, doubted] = findings;
        assert_eq!(sure, found(6));
        assert_eq!((doubted.confidence, doubted.severity), (Confidence::Low, Severity::Warning));
        assert_eq!(doubted.related.first().map(|one| one.location.line), Some(7));
    }
}
