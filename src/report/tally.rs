//! How many findings and notices there are, by what they count for.

use crate::engine::Report;
use crate::finding::{Severity, Standing};
use crate::unit::count;

/// Counts; findings that somebody ignored or that the baseline or the base knows are not among the first three.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Tally {
    pub(super) errors: usize,
    pub(super) warnings: usize,
    pub(super) notes: usize,
    pub(super) ignored: usize,
    pub(super) baselined: usize,
    pub(super) inherited: usize,
    /// Left out because they are less sure than was asked for.
    pub(super) unsure: usize,
    /// Whether something could not be read or judged, so that nothing found would mean nothing.
    pub(super) is_without_verdict: bool,
}

impl Tally {
    pub(super) fn of(report: &Report) -> Tally {
        let is_without_verdict = report.verdict.unread + report.verdict.unjudged > 0;
        let mut tally = Tally { unsure: report.unsure, is_without_verdict, ..Tally::default() };
        for finding in &report.findings {
            match finding.standing {
                Standing::Open => tally.add(finding.severity),
                Standing::Ignored { .. } => tally.ignored += 1,
                Standing::Baselined => tally.baselined += 1,
                Standing::Inherited => tally.inherited += 1,
            }
        }
        for notice in &report.notices {
            tally.add(notice.severity);
        }
        tally
    }

    const fn add(&mut self, severity: Severity) {
        let number = match severity {
            Severity::Error => &mut self.errors,
            Severity::Warning => &mut self.warnings,
            Severity::Info => &mut self.notes,
        };
        *number += 1;
    }

    /// `2 errors, 1 note (1 ignored, 3 in the baseline)`.
    pub(super) fn words(&self) -> String {
        self.listed(self.notes == 0)
    }

    /// The same, but for notes alone `no findings, 1 note`.
    pub(super) fn found(&self) -> String {
        self.listed(true)
    }

    fn listed(&self, says_nothing: bool) -> String {
        let grave = [(self.errors, "error"), (self.warnings, "warning")];
        let counted = |(number, noun): (usize, &'static str)| (number > 0).then(|| count(number, noun));
        let mut parts: Vec<String> = grave.into_iter().filter_map(counted).collect();
        if parts.is_empty() && says_nothing {
            parts.push(self.nothing().to_owned());
        }
        parts.extend(counted((self.notes, "note")));
        let open = parts.join(", ");
        match self.aside() {
            None => open,
            Some(aside) => format!("{open} ({aside})"),
        }
    }

    /// What to call it that nothing is open.
    pub(super) const fn nothing(&self) -> &'static str {
        let aside = self.ignored + self.baselined + self.inherited + self.unsure;
        match aside {
            _ if self.is_without_verdict => "no verdict",
            0 => "no findings",
            _ => "no open findings",
        }
    }

    /// `not counted: 1 ignored, 3 in the baseline, 2 not sure enough`.
    pub(super) fn aside(&self) -> Option<String> {
        let counted = [
            (self.ignored, "ignored"),
            (self.baselined, "in the baseline"),
            (self.inherited, "in the base, too"),
            (self.unsure, "not sure enough"),
        ];
        let parts: Vec<String> = counted
            .into_iter()
            .filter(|(number, _)| *number > 0)
            .map(|(number, what)| format!("{number} {what}"))
            .collect();
        (!parts.is_empty()).then(|| format!("not counted: {}", parts.join(", ")))
    }
}
