//! What all inputs together say, and whether that is good enough.

use std::cmp::{Ordering, Reverse};
use std::collections::{BTreeMap, BTreeSet};

use super::forecast::forecast;
use super::{Examination, Fit, Recording, merged};
use crate::finding::{Absent, Finding, Hidden, Matter, Notice, Severity, Silence, Skipped};
use crate::picture::Guilty;
use crate::unit::{Bytes, DeviceIndex};

/// Everything that a format may show.
#[derive(Debug, Default)]
pub struct Report {
    /// The snapshots, in the order of the command line.
    pub recordings: Vec<Recording>,
    /// What the rules found: the worst first, and what saves most first among equals.
    pub findings: Vec<Finding>,
    /// Rules that did not judge a device.
    pub skipped: Vec<Skipped>,
    /// Files that could not be read, in the order of the command line.
    pub unread: Vec<Unread>,
    /// Findings that were left out because they are less sure than was asked for.
    pub unsure: usize,
    /// What a person should know of the judging itself.
    pub notices: Vec<Notice>,
    /// Whether the gate closes.
    pub verdict: Verdict,
    /// Whether what was recorded fits the device, where somebody named its memory.
    pub fit: Option<Fit>,
    /// The recordings that these are held against, where they are.
    pub base: Vec<Recording>,
    /// What differs from the base, one for each recording.
    pub differences: Vec<FromBase>,
}

/// How a recording differs from the one of the base that it was held against.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FromBase {
    /// What messages call the one of the base.
    pub base: String,
    /// The peaks of requested bytes in the base and here, of the device where it rose most.
    pub peaks: Option<(Bytes, Bytes)>,
    /// All of it, in words for people.
    pub text: String,
}

/// A file that could not be read, or holds nothing that could be judged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unread {
    /// What messages call it.
    pub name: String,
    /// The rank of the process that wrote it, where that is known.
    pub rank: Option<u32>,
    /// What the names of all snapshots of its job have in common, where that is known.
    pub job: Option<String>,
    /// What is wrong with it: lower-case start, no final stop.
    pub message: String,
    /// What to do, where that is known.
    pub help: Option<String>,
}

/// What the gate makes of a report.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Verdict {
    /// The least severity that closes it; `None` where nothing does.
    pub fail_on: Option<Severity>,
    /// How many findings and notices do.
    pub failing: usize,
    /// How many files could not be read.
    pub unread: usize,
    /// How many recordings no rule could judge.
    pub unjudged: usize,
    /// How many rules could not judge a recording, where that is not to be passed over.
    pub blind: usize,
    /// How much that belongs to the input was not looked at, where that is not to be passed over.
    pub left_out: usize,
}

/// Whether the gate closes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// It stays open.
    Open,
    /// What was found closes it.
    Closed,
    /// There is no verdict: what was not seen may be worse than what was found.
    NoVerdict(Why),
}

/// Why there is no verdict.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Why {
    /// A file could not be read.
    Unread,
    /// No rule could judge the program.
    Unjudged,
    /// Some rule could not, or something was not looked at, and all of it was to be.
    Strict,
}

impl Verdict {
    /// Whether findings close it.
    pub const fn fails(self) -> bool {
        self.failing > 0
    }

    /// What comes of it. What is found is certain, and so goes before rules that could not judge; not before a file of which
    /// nothing is known.
    pub const fn outcome(self) -> Outcome {
        if self.unread > 0 {
            Outcome::NoVerdict(Why::Unread)
        } else if self.unjudged > 0 {
            Outcome::NoVerdict(Why::Unjudged)
        } else if self.fails() {
            Outcome::Closed
        } else if self.blind + self.left_out > 0 {
            Outcome::NoVerdict(Why::Strict)
        } else {
            Outcome::Open
        }
    }
}

impl Report {
    /// Which finding is drawn as this one in the picture of a device. Nothing where it was left out.
    pub fn position_of(&self, guilty: &Guilty, input: usize, device: DeviceIndex) -> Option<usize> {
        let is_here = |one: &Finding| {
            let own = one.input == input && one.device == Some(device);
            own || one.also.iter().any(|other| other.input == input && other.device == Some(device))
        };
        let same =
            |one: &Finding| one.rule == guilty.rule && one.fingerprint == guilty.fingerprint && is_here(one);
        let findings = || self.findings.iter().enumerate().filter(|(_, one)| same(one));
        let found = findings().find(|(_, one)| one.message == guilty.message).or_else(|| findings().next());
        found.map(|(position, _)| position)
    }

    /// Puts what was found in the inputs together; the order of the inputs is theirs. What several ranks, devices or moments
    /// of one job show becomes one finding.
    pub fn of(examinations: Vec<Examination>) -> Report {
        let mut report = Report::default();
        for (position, examination) in examinations.into_iter().enumerate() {
            let Examination { recording, findings, skipped } = examination;
            report.recordings.push(recording);
            report.findings.extend(findings.into_iter().map(|one| Finding { input: position, ..one }));
            report.skipped.extend(skipped.into_iter().map(|one| Skipped { input: position, ..one }));
        }
        report.findings = merged::merge(report.findings, &report.recordings);
        report.findings.sort_by(worst_first);
        report.skipped.sort_by(|a, b| {
            (&a.rule, a.input, a.device, a.silence).cmp(&(&b.rule, b.input, b.device, b.silence))
        });
        report
    }

    /// The rules that could not see what they look for in some recording, by name.
    pub fn blind_rules(&self) -> Vec<&str> {
        let mut rules: Vec<&str> =
            self.skipped.iter().filter(|one| one.blind().is_some()).map(|one| &*one.rule).collect();
        rules.sort_unstable();
        rules.dedup();
        rules
    }

    /// How many rules were asked.
    pub fn asked(&self) -> usize {
        self.recordings.iter().flat_map(|one| &one.rules).collect::<BTreeSet<_>>().len()
    }

    /// What hides most from the rules: what most of them lack, and of equals what is to be mended first.
    pub fn most_hidden(&self) -> Option<Hidden> {
        let mut rules: BTreeMap<Hidden, BTreeSet<&str>> = BTreeMap::new();
        for skipped in &self.skipped {
            if let Some(hidden) = skipped.blind() {
                rules.entry(hidden).or_default().insert(&skipped.rule);
            }
        }
        rules
            .into_iter()
            .min_by_key(|(hidden, rules)| (Reverse(rules.len()), *hidden))
            .map(|(hidden, _)| hidden)
    }

    /// The recordings that no rule could judge although some were asked: what these look for is hidden, or was to be told by
    /// other recordings alone.
    pub fn unjudged(&self) -> impl Iterator<Item = &Recording> {
        let silences =
            |input: usize| self.skipped.iter().filter(move |one| one.input == input).map(|one| one.silence);
        let lacks_others = |silence| silence == Silence::NotApplicable(Absent::Ranks);
        let is_hidden = move |input: usize| {
            silences(input).any(|silence| matches!(silence, Silence::Blind(_)))
                || silences(input).next().is_some() && silences(input).all(lacks_others)
        };
        let unjudged = move |(input, one): &(usize, &Recording)| one.judged == 0 && is_hidden(*input);
        self.recordings.iter().enumerate().filter(unjudged).map(|(_, recording)| recording)
    }

    /// Whether all that belongs to the input was looked at: only then what is not found any more has gone.
    pub fn saw_all(&self) -> bool {
        let is_unseen = |notice: &Notice| {
            matches!(notice.kind, Matter::LeftOut | Matter::MissingRank | Matter::EndedEarly)
        };
        self.unread.is_empty() && !self.notices.iter().any(is_unseen)
    }

    /// Adds findings that were not made by examining one input, in their place.
    pub fn add(&mut self, findings: Vec<Finding>) {
        if !findings.is_empty() {
            self.findings.extend(merged::merge(findings, &self.recordings));
            self.findings.sort_by(worst_first);
        }
    }

    /// Adds to every finding that grows in which iteration a device of this capacity is full; where nobody named it, of what was
    /// modelled, or of
    /// [`USUAL_DEVICE`](crate::verdict::USUAL_DEVICE). Of a named one also, whether what was recorded fits.
    pub fn forecast(&mut self, capacity: Option<Bytes>) {
        forecast(&mut self.findings, &self.recordings, capacity);
        self.fit = capacity.and_then(|capacity| Fit::of(&self.recordings, capacity));
        self.notices.extend(self.fit.as_ref().and_then(Fit::notice));
    }

    /// The findings that count for the verdict.
    pub fn open(&self) -> impl Iterator<Item = &Finding> {
        self.findings.iter().filter(|finding| finding.is_open())
    }

    /// The recording in which a finding is worst.
    pub fn recording(&self, finding: &Finding) -> Option<&Recording> {
        self.recordings.get(finding.input)
    }

    /// The recordings of the job in which a finding was made: one, where it belongs to none.
    pub fn job(&self, finding: &Finding) -> impl Iterator<Item = &Recording> {
        let own = finding.input;
        let job = self.recording(finding).and_then(|recording| recording.job.as_deref());
        let belongs =
            move |input: usize, one: &Recording| input == own || job.is_some() && one.job.as_deref() == job;
        self.recordings
            .iter()
            .enumerate()
            .filter(move |(input, one)| belongs(*input, one))
            .map(|(_, one)| one)
    }
}

/// By severity, then by what mending saves (the peak, then what stays), then by rule, place and input.
fn worst_first(a: &Finding, b: &Finding) -> Ordering {
    let saves = |finding: &Finding| {
        (finding.impact.off_a_peak(), finding.impact.resident, finding.impact.per_iteration)
    };
    let place = |one: &Finding| (one.rule.clone(), one.location.clone(), one.input, one.device);
    b.severity.cmp(&a.severity).then_with(|| saves(b).cmp(&saves(a))).then_with(|| place(a).cmp(&place(b)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::finding::{Group, Impact};

    fn finding(rule: &'static str, severity: Severity, peak: Option<u64>) -> Finding {
        let impact = Impact { peak: peak.map(Bytes), ..Impact::default() };
        Finding { impact, ..Finding::of(rule, Group::Leak, severity) }
    }

    #[test]
    fn the_worst_comes_first_and_then_what_saves_most() {
        let mut findings = [
            finding("note", Severity::Info, Some(9)),
            finding("unknown", Severity::Error, None),
            finding("small", Severity::Error, Some(1)),
            finding("large", Severity::Error, Some(5)),
            finding("warning", Severity::Warning, Some(7)),
        ];
        findings.sort_by(worst_first);
        let order: Vec<&str> = findings.iter().map(|finding| &*finding.rule).collect();
        assert_eq!(order, ["large", "small", "unknown", "warning", "note"]);
    }
}
