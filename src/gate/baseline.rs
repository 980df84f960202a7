//! The baseline: findings that a team knows and lives with, written down in a file of its repository.
//!
//! In: the entries, and a report. Out: the report with the standing of what the entries cover, what has grown said on the
//! finding, and a notice for each entry that covers nothing. Always: an entry covers one finding; notes are never
//! entries; what a rule could not look at has not vanished.

mod document;
mod error;

use std::io;

pub use error::BaselineError;

use crate::engine::Report;
use crate::finding::{
    Difference, Finding, Fingerprint, Impact, Location, Mark, Matter, Measure, Notice, Pairing, Quantity,
    Severity, Standing, Tolerance, pair,
};

/// Known findings.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Baseline {
    /// By rule, then by fingerprint: their order does not change when lines move.
    entries: Vec<Entry>,
}

/// A known finding.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Entry {
    rule: String,
    severity: Severity,
    /// For people: `src/model.py:31 in forward`.
    place: String,
    /// For people: the finding's message.
    message: String,
    measure: Impact,
    fingerprint: Fingerprint,
    /// Why it is accepted, in the words of whoever did.
    reason: Option<String>,
    /// Where it stands in the file; 0 where it was not read from one.
    line: u32,
}

/// How a report is held against a baseline.
#[derive(Clone, Copy)]
pub struct Terms<'a> {
    /// What messages call the file.
    pub name: &'a str,
    /// By how much a finding may grow.
    pub tolerance: Tolerance,
    /// Whether a rule was selected. One that was not says nothing about its entries.
    pub selected: &'a dyn Fn(&str) -> bool,
}

/// How one baseline differs from another.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct BaselineChanges {
    /// How many entries it has.
    pub entries: usize,
    /// How many of them the other did not have.
    pub new: usize,
    /// How many of them have other figures.
    pub changed: usize,
    /// How many the other had besides.
    pub gone: usize,
}

impl Baseline {
    /// Reads a file's content.
    ///
    /// # Errors
    /// Where it is no baseline, one of a later version, or one whose entries cannot be meant so.
    pub fn read(text: &str) -> Result<Baseline, BaselineError> {
        document::read(text)
    }

    /// Writes it: the same entries give the same bytes.
    ///
    /// # Errors
    /// Where `out` fails.
    pub fn write(&self, out: &mut dyn io::Write) -> io::Result<()> {
        document::write(self, out)
    }

    /// Settles what of a report is known, says what has grown, and which entries have nothing left to cover.
    pub fn settle(&self, report: &mut Report, terms: &Terms) {
        let (places, pairing) = self.pairing(report, terms);
        for (entry, found) in &pairing.same {
            let entry = self.entries.get(*entry);
            let finding = places.get(*found).and_then(|&place| report.findings.get_mut(place));
            if let (Some(entry), Some(finding)) = (entry, finding) {
                entry.settle(finding, &terms.tolerance);
            }
        }
        for found in &pairing.new {
            let finding = places.get(*found).and_then(|&place| report.findings.get_mut(place));
            if let Some(finding) = finding {
                self.tell_from_its_like(finding);
            }
        }
        let vanished = pairing.gone.iter().filter_map(|&at| self.entries.get(at));
        let stale: Vec<Notice> = vanished
            .filter(|entry| is_judged(&entry.rule, report, terms))
            .map(|entry| entry.stale(terms))
            .collect();
        report.notices.extend(stale);
    }

    /// The baseline that covers a report: its findings with the reasons that are known, and the entries of rules that
    /// could not look.
    #[must_use]
    pub fn updated(&self, report: &Report, terms: &Terms) -> Baseline {
        let (places, pairing) = self.pairing(report, terms);
        let reason = |found: usize| {
            let known = pairing.same.iter().find(|(_, other)| *other == found);
            known.and_then(|(entry, _)| self.entries.get(*entry)).and_then(|entry| entry.reason.clone())
        };
        let counted = places.iter().enumerate().filter_map(|(found, &place)| {
            let finding = report.findings.get(place)?;
            (!matches!(finding.standing, Standing::Ignored { .. })).then(|| Entry::of(finding, reason(found)))
        });
        let gone = pairing.gone.iter().filter_map(|&at| self.entries.get(at));
        let unseen = gone.filter(|entry| !is_judged(&entry.rule, report, terms)).cloned();
        Baseline::of(counted.chain(unseen).collect())
    }

    /// The baseline without the entries that cover nothing; nothing is added, and nothing changed.
    #[must_use]
    pub fn pruned(&self, report: &Report, terms: &Terms) -> Baseline {
        let (_, pairing) = self.pairing(report, terms);
        let stays =
            |at: usize, entry: &Entry| !pairing.gone.contains(&at) || !is_judged(&entry.rule, report, terms);
        let kept = self.entries.iter().enumerate().filter(|(at, entry)| stays(*at, entry));
        Baseline { entries: kept.map(|(_, entry)| entry.clone()).collect() }
    }

    /// How it differs from an earlier one.
    pub fn changes_since(&self, earlier: &Baseline) -> BaselineChanges {
        let marks = |one: &Baseline| one.entries.iter().map(Entry::mark).collect::<Vec<Mark>>();
        let (old, now) = (marks(earlier), marks(self));
        let exact = Tolerance { share: 0.0, ..Tolerance::default() };
        let Pairing { same, gone, new } = pair(&old, &now, &exact);
        let changed = same.iter().filter(|(before, after)| old.get(*before) != now.get(*after)).count();
        BaselineChanges { entries: now.len(), new: new.len(), changed, gone: gone.len() }
    }

    /// Sorted, and those that would read the same told apart by a number.
    fn of(mut entries: Vec<Entry>) -> Baseline {
        entries.sort_by(|a, b| {
            (&a.rule, a.fingerprint, &a.place)
                .cmp(&(&b.rule, b.fingerprint, &b.place))
                .then_with(|| b.by_size(a))
        });
        let same =
            |a: &Entry, b: &Entry| (&a.rule, a.fingerprint, &a.place) == (&b.rule, b.fingerprint, &b.place);
        for group in entries.chunk_by_mut(same) {
            for (number, entry) in group.iter_mut().enumerate().skip(1) {
                entry.place = format!("{} ({})", entry.place, number + 1);
            }
        }
        Baseline { entries }
    }

    /// The places in the report of the findings that may be known, and how they pair with the entries.
    fn pairing(&self, report: &Report, terms: &Terms) -> (Vec<usize>, Pairing) {
        let known: Vec<Mark> = self.entries.iter().map(Entry::mark).collect();
        let (places, found): (Vec<usize>, Vec<Mark>) = report
            .findings
            .iter()
            .enumerate()
            .filter(|(_, finding)| finding.severity > Severity::Info)
            .map(|(place, finding)| (place, Mark::of(finding)))
            .unzip();
        let pairing = pair(&known, &found, &terms.tolerance);
        (places, pairing)
    }

    /// Says on a finding without an entry how many entries its like has.
    fn tell_from_its_like(&self, finding: &mut Finding) {
        let alike = self.entries.iter().filter(|entry| entry.fingerprint == finding.fingerprint).count();
        if alike == 0 {
            return;
        }
        let known = crate::unit::count(alike, "finding");
        finding.evidence.push(Measure {
            name: "baseline-entries".into(),
            value: Quantity::Count(alike as u64),
            text: format!("the baseline has {known} of this kind here; this is one more"),
        });
    }
}

/// Whether the absence of a rule's findings means something: it was selected, and ran on every input; none was unreadable, left out or missing.
fn is_judged(rule: &str, report: &Report, terms: &Terms) -> bool {
    let skipped = report.skipped.iter().any(|skipped| skipped.rule == rule);
    (terms.selected)(rule) && !skipped && report.saw_all()
}

/// Says of a finding that no number can tell whether it has grown.
fn without_size() -> Measure {
    Measure {
        name: "in-baseline".into(),
        value: Quantity::Text("no size".to_owned()),
        text: "it has no size by which it could grow: the baseline covers it whatever it hides".to_owned(),
    }
}

impl Entry {
    fn of(finding: &Finding, reason: Option<String>) -> Entry {
        Entry {
            rule: finding.rule.to_string(),
            severity: finding.severity,
            place: finding.whereabouts(),
            message: finding.message.clone(),
            measure: finding.impact,
            fingerprint: finding.fingerprint,
            reason,
            line: 0,
        }
    }

    fn mark(&self) -> Mark {
        Mark { fingerprint: self.fingerprint, severity: self.severity, impact: self.measure }
    }

    fn by_size(&self, other: &Entry) -> std::cmp::Ordering {
        let sizes = |entry: &Entry| {
            let Impact { peak, reserved, resident, per_iteration, at_once } = entry.measure;
            (per_iteration, at_once, peak, reserved, resident)
        };
        sizes(self).cmp(&sizes(other))
    }

    /// Covers a finding, unless that has grown; an ignored one stays ignored.
    fn settle(&self, finding: &mut Finding, tolerance: &Tolerance) {
        if !finding.is_open() {
            return;
        }
        let mark = Mark::of(finding);
        if let Some(growth) = mark.worse_than(&self.mark(), tolerance) {
            let mut measure = growth.evidence("in-baseline", "in the baseline");
            if matches!(growth, Difference::Unmeasured { .. }) {
                measure.text.push_str(" (`--update-baseline` writes it down)");
            }
            finding.evidence.push(measure);
            return;
        }
        finding.standing = Standing::Baselined;
        if mark.has_no_size() {
            finding.evidence.push(without_size());
        }
        if let Some(less) = mark.better_than(&self.mark(), tolerance) {
            let mut measure = less.evidence("in-baseline", "in the baseline");
            measure.text.push_str(" (`--update-baseline` holds it to that)");
            finding.evidence.push(measure);
        }
    }

    fn stale(&self, terms: &Terms) -> Notice {
        let Entry { rule, place, line, .. } = self;
        Notice {
            kind: Matter::StaleBaselineEntry,
            severity: Severity::Warning,
            message: format!("the baseline knows {rule} at {place}, which is not found any more"),
            help: "remove the entry, or let `--prune-baseline` do it, so that it cannot come back unseen"
                .to_owned(),
            location: Some(Location { file: terms.name.to_owned(), line: *line, function: String::new() }),
        }
    }
}
