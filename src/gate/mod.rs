//! The gate: which findings count, and whether they close it.
//!
//! In: the engine's report, settled with the sources. Out: the same report with the standing of every finding and a
//! verdict. Always: a finding that does not count stays in the report and says why.

mod against;
mod baseline;
mod suppress;

pub use against::inherit;
pub use baseline::{Baseline, BaselineChanges, BaselineError, Terms};
pub use suppress::Suppressions;

use crate::engine::{Report, Verdict};
use crate::finding::{Finding, Group, Severity};
use crate::unit::Confidence;

/// What closes the gate.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Gate {
    /// The least severity that does; `None` where nothing does.
    pub fail_on: Option<Severity>,
    /// Whether a rule that could not judge a recording leaves no verdict.
    pub strict: bool,
}

impl Gate {
    /// Decides the verdict.
    pub fn judge(&self, report: &mut Report) {
        let closes = |severity: Severity| self.fail_on.is_some_and(|least| severity >= least);
        let findings = report.open().filter(|finding| closes(finding.severity)).count();
        let notices = report.notices.iter().filter(|notice| closes(notice.severity)).count();
        let left_out = report.notices.iter().filter(|notice| notice.unseen().is_some()).count();
        let strictly = |number: usize| if self.strict { number } else { 0 };
        report.verdict = Verdict {
            fail_on: self.fail_on,
            failing: findings + notices,
            unread: report.unread.len(),
            unjudged: report.unjudged().count(),
            blind: strictly(report.blind_rules().len()),
            left_out: strictly(left_out),
        };
    }
}

/// Leaves out open findings that are less sure than is asked for; the report counts them. A budget is the user's own word: what passes it is
/// told however it was measured.
pub fn leave_out_unsure(report: &mut Report, least: Confidence) {
    let before = report.findings.len();
    let is_told = |finding: &Finding| finding.confidence >= least || finding.group == Group::Budget;
    report.findings.retain(|finding| is_told(finding) || !finding.is_open());
    report.unsure += before - report.findings.len();
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::{Outcome, Recording, Why};
    use crate::finding::{Absent, Hidden, Matter, Notice, Silence, Skipped, Standing};

    fn failing(report: &mut Report, fail_on: Option<Severity>) -> usize {
        Gate { fail_on, strict: false }.judge(report);
        report.verdict.failing
    }

    #[test]
    fn what_is_left_out_is_counted() {
        let finding =
            |confidence| Finding { confidence, ..Finding::of("rule", Group::Leak, Severity::Error) };
        let findings = Confidence::ALL.map(finding).to_vec();
        let mut report = Report { findings, ..Report::default() };
        leave_out_unsure(&mut report, Confidence::Low);
        assert_eq!((report.findings.len(), report.unsure), (3, 0));
        leave_out_unsure(&mut report, Confidence::High);
        assert_eq!((report.findings.len(), report.unsure), (1, 2));
    }

    fn skipped(rule: &'static str, silence: Silence) -> Skipped {
        Skipped { input: 0, device: None, rule: rule.into(), silence }
    }

    fn outcome(report: &mut Report, strict: bool) -> Outcome {
        Gate { strict, fail_on: Some(Severity::Error) }.judge(report);
        report.verdict.outcome()
    }

    #[test]
    fn rules_that_could_not_see_count_where_that_is_asked_for() {
        let (blind, absent) = (Silence::Blind(Hidden::Iterations), Silence::NotApplicable(Absent::Training));
        let recordings = vec![Recording { judged: 1, ..Recording::default() }];
        let mut report = Report { recordings, skipped: vec![skipped("b", absent)], ..Report::default() };
        assert_eq!(outcome(&mut report, true), Outcome::Open, "what is not applicable is not missed");
        report.skipped = vec![skipped("a", blind), skipped("a", blind), skipped("b", absent)];
        assert_eq!(outcome(&mut report, true), Outcome::NoVerdict(Why::Strict));
        assert_eq!(report.verdict.blind, 1);
        assert_eq!(outcome(&mut report, false), Outcome::Open);
        report.findings = vec![Finding::of("c", Group::Leak, Severity::Error)];
        assert_eq!(outcome(&mut report, true), Outcome::Closed, "what is found is certain");
    }

    #[test]
    fn where_nothing_could_be_judged_there_is_no_verdict_whatever_was_found() {
        let blind = skipped("a", Silence::Blind(Hidden::Lives));
        let found = vec![Finding::of("no-stacks", Group::Input, Severity::Error)];
        let mut report = Report {
            recordings: vec![Recording::default()],
            skipped: vec![blind],
            findings: found,
            ..Report::default()
        };
        assert_eq!(outcome(&mut report, false), Outcome::NoVerdict(Why::Unjudged));
        report.skipped.clear();
        assert_eq!(
            outcome(&mut report, false),
            Outcome::Closed,
            "nothing but the recording was to be judged"
        );
    }

    #[test]
    fn what_is_bad_enough_and_open_closes_it() {
        let finding = |severity| Finding::of("rule", Group::Leak, severity);
        let ignored = Standing::Ignored { reason: "meant".to_owned(), by: "a.py:1".to_owned() };
        let notice = Notice {
            kind: Matter::UnusedIgnore,
            severity: Severity::Warning,
            message: String::new(),
            help: String::new(),
            location: None,
        };
        let mut report = Report {
            findings: vec![
                Finding { standing: ignored, ..finding(Severity::Error) },
                finding(Severity::Warning),
                finding(Severity::Info),
            ],
            notices: vec![notice],
            ..Report::default()
        };
        assert_eq!(failing(&mut report, Some(Severity::Error)), 0);
        assert_eq!(failing(&mut report, Some(Severity::Warning)), 2);
        assert_eq!(failing(&mut report, Some(Severity::Info)), 3);
        assert_eq!(failing(&mut report, None), 0);
        report.findings.push(finding(Severity::Error));
        assert_eq!(failing(&mut report, Some(Severity::Error)), 1);
    }
}
