//! SARIF 2.1.0, as code scanning services read it.
//!
//! A finding that points at no line is a result at the program's main loop, and a notification where the stacks show none:
//! GitHub refuses results without a place. Notes are left out unless they are asked for. What was ignored is a suppressed result, what the baseline knows an unchanged one;
//! skipped rules, gaps and notices are notifications. Files are named from the root of the working copy.

mod log;
mod mending;
mod uri;

use std::collections::BTreeMap;
use std::io;

use self::log::{
    AutomationDetails, BaseId, CodeFlow, Configuration, Driver, FlowLocation, Help, Invocation, Log,
    LogicalLocation, Message, Notification, PhysicalLocation, Properties, Reference, Region, Rule, Run,
    SarifResult, Spot, Suppression, Tags, ThreadFlow, Tool,
};
use super::headline::Headline;
use super::look::Detail;
use super::place::SourceLine;
use super::{VerdictFailure, gap, json, page, words};
use crate::engine::{Outcome, Report};
use crate::finding::{self, Finding, Severity, Standing};
use crate::rules;
use crate::source::SourceMap;
use crate::unit::{Bytes, Index};

const SCHEMA: &str = "https://json.schemastore.org/sarif-2.1.0.json";
/// The key of our fingerprints; their version follows the name.
const FINGERPRINT: &str = "memlint/v1";
/// The key by which code scanning tells findings from one run to the next; it reads no other. It would hash the text around the
/// line, so that every edit beside it would open a new alert.
const LINE_HASH: &str = "primaryLocationLineHash";
/// Where the tool is described.
const INFORMATION: &str = env!("CARGO_PKG_REPOSITORY");

/// Writes the report of a check.
pub(super) fn check(
    report: &Report,
    sources: &SourceMap,
    detail: Detail,
    out: &mut dyn io::Write,
) -> io::Result<()> {
    let rules = rules(report);
    let writer = LogWriter { report, sources, detail, rules: &rules };
    let invocation = Invocation {
        execution_successful: !matches!(report.verdict.outcome(), Outcome::NoVerdict(_)),
        tool_execution_notifications: writer.notifications(),
    };
    json::write(&log(rules.iter().map(|rule| describe(rule)).collect(), invocation, writer.results()), out)
}

/// Writes that there is no verdict.
pub(super) fn failure(failure: &VerdictFailure, out: &mut dyn io::Write) -> io::Result<()> {
    let notification = notification("no-verdict", Severity::Error, &failure.sentence());
    let invocation =
        Invocation { execution_successful: false, tool_execution_notifications: vec![notification] };
    json::write(&log(Vec::new(), invocation, Vec::new()), out)
}

fn log(rules: Vec<Rule>, invocation: Invocation, results: Vec<SarifResult>) -> Log {
    let root = Message { text: "the root of the repository".to_owned() };
    let driver = Driver {
        name: "memlint",
        version: env!("CARGO_PKG_VERSION"),
        semantic_version: env!("CARGO_PKG_VERSION"),
        information_uri: INFORMATION,
        rules,
    };
    Log {
        schema: SCHEMA,
        version: "2.1.0",
        runs: vec![Run {
            tool: Tool { driver },
            automation_details: AutomationDetails { id: "memlint/" },
            invocations: vec![invocation],
            original_uri_base_ids: BTreeMap::from([(uri::BASE, BaseId { description: root })]),
            column_kind: "unicodeCodePoints",
            results,
        }],
    }
}

/// The rules that were asked or found something, in their order.
fn rules(report: &Report) -> Vec<&str> {
    let asked = report.recordings.iter().flat_map(|one| &one.rules);
    let mut rules: Vec<&str> = Vec::new();
    for rule in asked.chain(report.findings.iter().map(|one| &one.rule)) {
        if !rules.contains(&&**rule) {
            rules.push(rule);
        }
    }
    rules
}

fn describe(name: &str) -> Rule {
    let meta = rules::metas().find(|meta| meta.name == name);
    Rule {
        id: name.to_owned(),
        name: words_joined(name),
        short_description: meta.map(|meta| Message { text: meta.summary.to_owned() }),
        full_description: meta.map(|meta| Message { text: lead(meta.page).replace('\n', " ") }),
        help: meta.map(|meta| {
            let page = page::guide(meta.page);
            Help { text: page.to_owned(), markdown: page.to_owned() }
        }),
        help_uri: match meta {
            Some(meta) => format!("{INFORMATION}/blob/main/rules/{}.md", meta.name),
            // A budget of the project's own.
            None => format!("{INFORMATION}/blob/main/docs/src/configuration.md"),
        },
        default_configuration: meta.map(|meta| Configuration { level: level(meta.level) }),
        properties: Tags {
            tags: meta.map(|meta| meta.group.name()).into_iter().collect(),
            precision: meta.map(|meta| precision(meta.level)),
        },
    }
}

/// `missing-zero-grad` as `MissingZeroGrad`, which is how readers of SARIF write names.
fn words_joined(name: &str) -> String {
    let capital = |word: &str| {
        let mut letters = word.chars();
        letters.next().map(|first| first.to_uppercase().chain(letters).collect::<String>())
    };
    name.split(|letter: char| !letter.is_alphanumeric()).filter_map(capital).collect()
}

/// What a rule's page says first, below its title.
fn lead(page: &str) -> &str {
    let below = page.split_once("\n\n").map_or(page, |(_, below)| below);
    below.split("\n\n").next().unwrap_or_default().trim()
}

/// How sure the findings of a rule are: a rule stops a merge by itself only where it can tell from what was recorded alone that
/// memory is wasted.
const fn precision(severity: Severity) -> &'static str {
    match severity {
        Severity::Error => "high",
        Severity::Warning => "medium",
        Severity::Info => "low",
    }
}

const fn level(severity: Severity) -> &'static str {
    match severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Info => "note",
    }
}

fn notification(kind: &str, severity: Severity, text: &str) -> Notification {
    Notification {
        descriptor: Reference { id: kind.to_owned() },
        associated_rule: None,
        level: level(severity),
        message: message(text),
        locations: Vec::new(),
    }
}

/// A plain message. What would be read as a link is none.
fn message(text: &str) -> Message {
    let linked = text.contains("](");
    let text = if linked { text.replace('[', "\\[").replace(']', "\\]") } else { text.to_owned() };
    Message { text }
}

struct LogWriter<'a> {
    report: &'a Report,
    sources: &'a SourceMap,
    detail: Detail,
    rules: &'a [&'a str],
}

impl LogWriter<'_> {
    /// The findings that are more than a note or close the gate; all where all is asked for. One that does not count is among
    /// them: its result says so.
    fn findings(&self) -> impl Iterator<Item = &Finding> {
        let least = words::least(self.report, self.detail);
        self.report.findings.iter().filter(move |finding| finding.severity >= least)
    }

    /// Findings that have a place.
    fn results(&self) -> Vec<SarifResult> {
        let compared = self.report.findings.iter().any(|one| is_known(&one.standing));
        let placed = |finding| Some((finding, words::anchor(self.report, finding)?));
        let mut alike: BTreeMap<String, usize> = BTreeMap::new();
        let mut results = Vec::new();
        for (finding, anchor) in self.findings().filter_map(placed) {
            let mut result = self.result(finding, anchor, compared);
            // As code scanning numbers lines of the same text.
            let fingerprint = finding.fingerprint.to_string();
            let number = alike.entry(fingerprint.clone()).or_default();
            *number += 1;
            result.partial_fingerprints.insert(LINE_HASH, format!("{fingerprint}:{number}"));
            results.push(result);
        }
        results
    }

    fn result(&self, finding: &Finding, anchor: &finding::Location, compared: bool) -> SarifResult {
        let label = Some(&finding.label).filter(|label| !label.is_empty());
        let related = finding.related.iter().enumerate();
        let flow = |frame: &finding::StackFrame| FlowLocation {
            location: self.location(&frame.location, None),
            importance: if frame.user { "essential" } else { "unimportant" },
        };
        // Recorded innermost first; a flow runs the other way.
        let stack: Vec<FlowLocation> = finding.stack.iter().rev().map(flow).collect();
        let baseline_state = if is_known(&finding.standing) { "unchanged" } else { "new" };
        SarifResult {
            rule_id: finding.rule.to_string(),
            rule_index: self.rules.iter().position(|rule| *rule == finding.rule).unwrap_or(0),
            level: level(finding.severity),
            message: self.message(finding),
            locations: vec![self.location(anchor, label.map(String::as_str))],
            related_locations: related
                .map(|(id, one)| Spot { id: Some(id), ..self.location(&one.location, Some(&one.message)) })
                .collect(),
            code_flows: if stack.is_empty() {
                Vec::new()
            } else {
                vec![CodeFlow { thread_flows: vec![ThreadFlow { locations: stack }] }]
            },
            partial_fingerprints: BTreeMap::from([(FINGERPRINT, finding.fingerprint.to_string())]),
            suppressions: suppression(&finding.standing).into_iter().collect(),
            baseline_state: compared.then_some(baseline_state),
            fixes: mending::of(self.report, finding, self.sources).into_iter().collect(),
            properties: self.properties(finding),
        }
    }

    fn message(&self, finding: &Finding) -> Message {
        let sentence = words::sentence(self.report, finding);
        let help = words::help_line(&finding.help);
        message(&if help.is_empty() { sentence } else { format!("{sentence}. Help: {help}") })
    }

    fn properties(&self, finding: &Finding) -> Properties {
        let bytes = |bytes: Option<Bytes>| bytes.map(Bytes::get);
        Properties {
            confidence: finding.confidence.name(),
            snapshot: self.report.recording(finding).map(|one| one.name.clone()),
            device: finding.device.map(Index::position),
            seen_on: words::places(self.report, finding),
            peak_bytes: bytes(finding.impact.peak),
            reserved_bytes: bytes(finding.impact.reserved),
            resident_bytes: bytes(finding.impact.resident),
            bytes_per_iteration: bytes(finding.impact.per_iteration),
            evidence: json::evidence(finding),
        }
    }

    fn location(&self, location: &finding::Location, label: Option<&str>) -> Spot {
        self.place(&SourceLine::of(location, self.sources), label)
    }

    fn place(&self, place: &SourceLine<'_>, label: Option<&str>) -> Spot {
        let location = place.location;
        let region = place.region();
        let function = Some(&location.function).filter(|name| !name.is_empty());
        Spot {
            id: None,
            physical_location: PhysicalLocation {
                artifact_location: uri::of(place.address(self.sources)),
                region: Region {
                    start_line: place.number.max(1),
                    start_column: region.map(|region| region.column),
                    end_line: region.map(|region| region.end_line),
                    end_column: region.map(|region| region.end_column),
                },
            },
            logical_locations: function
                .map(|name| LogicalLocation { name: name.clone(), kind: "function" })
                .into_iter()
                .collect(),
            message: label.map(message),
        }
    }

    /// All that is no result: what could not be judged or read, findings without a place, notices, gaps.
    fn notifications(&self) -> Vec<Notification> {
        let headline =
            Headline::of(self.report).map(|one| notification("not-judged", one.severity, &one.text));
        let unread = self.report.unread.iter().map(|unread| {
            notification("unreadable", Severity::Error, &VerdictFailure::of_file(unread).sentence())
        });
        let unplaced = self.findings().filter(|finding| words::anchor(self.report, finding).is_none());
        let unplaced = unplaced.map(|finding| Notification {
            message: self.message(finding),
            associated_rule: Some(Reference { id: finding.rule.to_string() }),
            ..notification("finding-without-place", finding.severity, "")
        });
        let notices = self.report.notices.iter().map(|notice| Notification {
            locations: notice.location.iter().map(|at| self.place(&SourceLine::here(at), None)).collect(),
            ..notification(
                notice.kind.name(),
                notice.severity,
                &format!("{}; {}", notice.message, notice.help),
            )
        });
        let skipped = self.report.skipped.iter().map(|skipped| Notification {
            associated_rule: Some(Reference { id: skipped.rule.to_string() }),
            ..notification(
                "rule-skipped",
                if skipped.blind().is_some() { Severity::Warning } else { Severity::Info },
                &format!("{} did not judge: {}", skipped.rule, skipped.silence.reason()),
            )
        });
        let gaps = self.report.recordings.iter().flat_map(|recording| {
            let gaps = gap::all(recording, Detail::Verbose).into_iter();
            let more = recording.devices.iter().flat_map(|device| gap::disagreements(&device.agreement));
            gaps.chain(more).map(|(kind, what)| {
                notification(kind, Severity::Info, &format!("{}: not known: {what}", recording.name))
            })
        });
        headline.into_iter().chain(unread).chain(unplaced).chain(notices).chain(skipped).chain(gaps).collect()
    }
}

/// Whether an earlier run had it, too.
const fn is_known(standing: &Standing) -> bool {
    matches!(standing, Standing::Baselined | Standing::Inherited)
}

/// A finding that somebody ignored: in the program's source, or elsewhere.
fn suppression(standing: &Standing) -> Option<Suppression> {
    let Standing::Ignored { reason, by } = standing else { return None };
    let file = by.rsplit_once(':').map_or(by.as_str(), |(file, _)| file);
    let in_source = std::path::Path::new(file).extension().is_some_and(|ending| ending == "py");
    Some(Suppression {
        kind: if in_source { "inSource" } else { "external" },
        status: "accepted",
        justification: format!("{reason} ({by})"),
    })
}
