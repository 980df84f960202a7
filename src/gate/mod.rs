//! The gate: which findings count, and whether they close it.
//!
//! In: the engine's report, settled with the sources. Out: the same report with the standing of every finding and a
//! verdict. Always: a finding that does not count stays in the report and says why.

mod against;
mod baseline;

pub use against::inherit;
pub use baseline::{Baseline, BaselineError, Changes, Terms};

use crate::engine::{Report, Verdict};
use crate::finding::Severity;

/// What closes the gate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Gate {
    /// The least severity that does; `None` where nothing does.
    pub fail_on: Option<Severity>,
}

impl Gate {
    /// Decides the verdict.
    pub fn judge(&self, report: &mut Report) {
        let closes = |severity: Severity| self.fail_on.is_some_and(|least| severity >= least);
        let findings = report.open().filter(|finding| closes(finding.severity)).count();
        let notices = report.notices.iter().filter(|notice| closes(notice.severity)).count();
        report.verdict = Verdict { fail_on: self.fail_on, failing: findings + notices };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::finding::{Finding, Group, Notice, Standing};

    fn failing(report: &mut Report, fail_on: Option<Severity>) -> usize {
        Gate { fail_on }.judge(report);
        report.verdict.failing
    }

    #[test]
    fn what_is_bad_enough_and_open_closes_it() {
        let finding = |severity| Finding::of("rule", Group::Leak, severity);
        let ignored = Standing::Ignored { reason: "meant".to_owned(), by: "a.py:1".to_owned() };
        let notice = Notice {
            kind: "unused-ignore",
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
