//! GitLab's code quality report: a JSON array that a merge request shows beside its lines.
//!
//! GitLab shows the description alone, so the rule stands in it. Fingerprints are unique within a report, as GitLab wants
//! them. What does not count for the verdict is left out: GitLab has no word for it.

use std::collections::BTreeMap;
use std::io;

use serde::Serialize;
use xxhash_rust::xxh3::xxh3_128;

use super::headline::Headline;
use super::place::SourceLine;
use super::{VerdictFailure, json, words};
use crate::engine::{Report, Unread};
use crate::finding::{Finding, Notice, Severity};
use crate::source::SourceMap;
use crate::unit::Confidence;

#[derive(Serialize)]
struct Issue {
    description: String,
    check_name: String,
    fingerprint: String,
    severity: &'static str,
    location: Spot,
}

#[derive(Serialize)]
struct Spot {
    path: String,
    lines: Lines,
}

#[derive(Serialize)]
struct Lines {
    begin: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    end: Option<u32>,
}

/// Writes the report of a check.
pub(super) fn check(report: &Report, sources: &SourceMap, out: &mut dyn io::Write) -> io::Result<()> {
    let unjudged = Headline::of(report).map(|headline| Issue::of_headline(&headline));
    let unread = report.unread.iter().map(Issue::of_unread);
    let findings = report.open().map(|finding| Issue::of_finding(finding, report, sources));
    let notices = report.notices.iter().map(|notice| Issue::of_notice(notice, sources));
    let mut issues: Vec<Issue> = unjudged.into_iter().chain(unread).chain(findings).chain(notices).collect();
    number(&mut issues);
    json::write(&issues, out)
}

/// Writes that there is no verdict: an empty list would be a clean one.
pub(super) fn failure(failure: &VerdictFailure, out: &mut dyn io::Write) -> io::Result<()> {
    let issue = Issue {
        description: format!("memlint has no verdict: {}", failure.sentence()),
        check_name: "no-verdict".to_owned(),
        fingerprint: hash(&["no-verdict", &failure.message]),
        severity: "blocker",
        location: Spot::whole("."),
    };
    json::write(&[issue], out)
}

impl Issue {
    /// That not all was judged, or what of it is modelled: an empty list would say the opposite.
    fn of_headline(headline: &Headline) -> Issue {
        Issue {
            description: format!("memlint: {}", headline.text),
            check_name: "not-judged".to_owned(),
            fingerprint: hash(&["not-judged"]),
            severity: match headline.severity {
                Severity::Error => "blocker",
                Severity::Warning => "minor",
                Severity::Info => "info",
            },
            location: Spot::whole("."),
        }
    }

    fn of_unread(unread: &Unread) -> Issue {
        Issue {
            description: VerdictFailure::of_file(unread).sentence(),
            check_name: "unreadable".to_owned(),
            fingerprint: hash(&["unreadable", &unread.name]),
            severity: "blocker",
            location: Spot::whole(&unread.name),
        }
    }

    fn of_finding(finding: &Finding, report: &Report, sources: &SourceMap) -> Issue {
        let sentence = words::sentence(report, finding);
        let snapshot = report.recording(finding).map(|recording| recording.name.as_str());
        Issue {
            description: description(&finding.rule, &sentence, &finding.help),
            check_name: finding.rule.to_string(),
            fingerprint: finding.fingerprint.to_string(),
            severity: match (finding.severity, finding.confidence) {
                (Severity::Error, _) => "critical",
                (Severity::Warning, Confidence::High) => "major",
                (Severity::Warning, _) => "minor",
                (Severity::Info, _) => "info",
            },
            location: match words::anchor(report, finding) {
                Some(location) => Spot::of(&SourceLine::of(location, sources), sources),
                None => Spot::whole(snapshot.unwrap_or(".")),
            },
        }
    }

    fn of_notice(notice: &Notice, sources: &SourceMap) -> Issue {
        Issue {
            description: description(notice.kind.name(), &notice.message, &notice.help),
            check_name: notice.kind.name().to_owned(),
            fingerprint: hash(&[notice.kind.name(), &notice.message]),
            severity: match notice.severity {
                Severity::Error => "critical",
                Severity::Warning => "minor",
                Severity::Info => "info",
            },
            location: match &notice.location {
                Some(location) => Spot::of(&SourceLine::here(location), sources),
                None => Spot::whole("."),
            },
        }
    }
}

impl Spot {
    fn of(place: &SourceLine<'_>, sources: &SourceMap) -> Spot {
        let end = place.region().map(|region| region.end_line);
        let begin = place.number.max(1);
        Spot { path: place.address(sources).into_path(), lines: Lines { begin, end } }
    }

    /// A path is demanded: where there is no line in the program it is the snapshot's.
    fn whole(path: &str) -> Spot {
        Spot { path: path.to_owned(), lines: Lines { begin: 1, end: None } }
    }
}

fn description(rule: &str, sentence: &str, help: &str) -> String {
    let help = words::help_line(help);
    if help.is_empty() { format!("{rule}: {sentence}") } else { format!("{rule}: {sentence}. Help: {help}") }
}

fn hash(parts: &[&str]) -> String {
    format!("{:032x}", xxh3_128(parts.join("\n").as_bytes()))
}

/// Tells equal fingerprints apart, in the order of the report: the same finding in several snapshots.
fn number(issues: &mut [Issue]) {
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    for issue in issues {
        let times = seen.entry(issue.fingerprint.clone()).or_default();
        *times += 1;
        if *times > 1 {
            issue.fingerprint = format!("{}-{times}", issue.fingerprint);
        }
    }
}
