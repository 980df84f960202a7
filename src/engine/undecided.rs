//! What was found where a program that ran without a GPU decided by values that nobody computed.
//!
//! In: the branches that the recording names (`memlint_record`), and findings. Out: those that stand in such a statement are of low confidence, and
//! name it; where the program never stepped for want of values, all are, because what it trains looks like what it only evaluates. Always: none is
//! taken away.

use super::Input;
use crate::finding::{Finding, Group, Location, Related, Severity};
use crate::rules;
use crate::snapshot::Branch;
use crate::unit::Confidence;

/// Lowers the confidence of findings that hang on a branch: on a GPU the program may go the other way there.
pub(super) fn doubt(input: &Input, findings: &mut [Finding]) {
    let Some(modelled) = &input.snapshot.modelled else { return };
    for finding in findings {
        let hides_steps = modelled.hides_steps() && !is_certain(finding);
        let is_doubted = |branch: &&Branch| hides_steps || hangs_on(finding, branch);
        if let Some(branch) = modelled.branches.iter().find(is_doubted) {
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

/// What holds of the recording whatever else the program would have done: what the file itself lacks, what is over a budget, that memory ran out.
fn is_certain(finding: &Finding) -> bool {
    matches!(finding.group, Group::Input | Group::Budget) || finding.rule == rules::OUT_OF_MEMORY
}

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

    #[test]
    fn all_is_doubted_where_steps_may_be_missing_but_for_what_cannot_change() {
        let mut modelled = Modelled::default();
        modelled.branches.push(Branch { file: "/job/train.py".to_owned(), line: 7, end: 9 });
        modelled.never_steps = true;
        let snapshot = Snapshot { modelled: Some(modelled), ..Snapshot::default() };
        let input = Input::of("train".to_owned(), snapshot);
        let over = Finding::of("no-more", Group::Budget, Severity::Error);
        let mut findings = [found(6), over.clone()];
        doubt(&input, &mut findings);
        assert_eq!((findings[0].confidence, findings[0].severity), (Confidence::Low, Severity::Warning));
        assert_eq!(findings[1], over);
    }
}
