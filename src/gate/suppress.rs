//! Findings that somebody said are meant: in the configuration, or in a comment at the blamed line.
//!
//! In: a settled report, the sources, the configuration's ignores and today's date. Out: the standing of what is ignored,
//! and a notice of every suppression that does not do what it says: malformed, of no rule, past its day, or of nothing.

use std::collections::BTreeMap;
use std::rc::Rc;

use crate::config::{Date, Ignore, Selection, SetBy};
use crate::engine::{RecordedFile, Report};
use crate::finding::{Finding, Location, Matter, Notice, Severity, Standing};
use crate::source::{EXAMPLE, IgnoreComment, Malformed, SourceFile, SourceMap, Spot};
use crate::unit::{shown_name, suggestion};

/// What is to be ignored, beside what the sources say.
#[derive(Debug, Clone, Copy)]
pub struct Suppressions<'a> {
    /// The configuration's.
    pub ignores: &'a [Ignore],
    /// Which rules there are, and which run.
    pub selection: &'a Selection,
    /// For those that end.
    pub today: Date,
}

impl Suppressions<'_> {
    /// Decides the standing of the findings that are open.
    pub fn apply(&self, report: &mut Report, sources: &SourceMap) {
        let mut comments = Comments::of(report, sources);
        let mut doubtful = Vec::new();
        let mut used = vec![false; self.ignores.len()];
        for finding in &mut report.findings {
            let configured = self.configured(finding, &mut used);
            let commented = comments.ignore(finding, sources, &mut doubtful);
            if let Some(standing) = configured.or(commented).filter(|_| finding.is_open()) {
                finding.standing = standing;
            }
        }
        let mut notices = self.of_configuration(report, &used);
        notices.extend(comments.notices(|rule| self.about(rule, report)));
        doubtful.dedup();
        notices.extend(doubtful);
        report.notices.extend(notices);
    }

    /// What the configuration says of a finding; every entry that speaks of it is of use.
    fn configured(&self, finding: &Finding, used: &mut [bool]) -> Option<Standing> {
        let location = finding.location.as_ref()?;
        let mut standing = None;
        for (ignore, used) in self.ignores.iter().zip(used) {
            if !ignore.is_expired(self.today) && ignore.covers(&finding.rule, location) {
                *used = true;
                let by = ignore.origin.to_string();
                standing = standing.or(Some(Standing::Ignored { reason: ignore.reason.clone(), by }));
            }
        }
        standing
    }

    fn of_configuration(&self, report: &Report, used: &[bool]) -> Vec<Notice> {
        let one = |(ignore, used): (&Ignore, &bool)| {
            let until = ignore.until.filter(|_| ignore.is_expired(self.today));
            let (kind, severity, message, help) = match until {
                Some(until) => (
                    Matter::ExpiredIgnore,
                    Severity::Warning,
                    format!("the ignore of `{}` ended on {until} and is not applied", ignore.rule),
                    "mend what it hid, or give it another day",
                ),
                None if *used || self.about(&ignore.rule, report) != About::Judged => return None,
                None => (
                    Matter::UnusedIgnore,
                    Severity::Info,
                    format!("the ignore of `{}` hides nothing", ignore.rule),
                    "remove it if that is so for all of your snapshots",
                ),
            };
            let elsewhere = until.is_none().then(|| found_elsewhere(ignore, report)).flatten();
            let help = elsewhere.unwrap_or_else(|| help.to_owned());
            Some(Notice { kind, severity, message, help, location: place(&ignore.origin) })
        };
        self.ignores.iter().zip(used).filter_map(one).collect()
    }

    /// What is known of a rule that a suppression names.
    fn about(&self, rule: &str, report: &Report) -> About {
        if !self.selection.knows(rule) {
            let known = self.selection.decisions().iter().map(|decision| decision.rule.name.as_str());
            return About::Unknown { hint: suggestion(rule, "rules", known) };
        }
        let skipped = report.skipped.iter().any(|skipped| skipped.rule == rule);
        let unseen = skipped || !report.saw_all();
        if unseen || !self.selection.runs(rule) { About::NotJudged } else { About::Judged }
    }
}

/// What is known of a rule that a suppression names.
#[derive(Debug, PartialEq, Eq)]
enum About {
    /// It ran on everything, so that what it did not find is not there.
    Judged,
    /// It did not run, or not everywhere.
    NotJudged,
    /// There is no such rule.
    Unknown { hint: String },
}

/// The comments of all of the user's files that are here.
struct Comments {
    files: BTreeMap<String, CommentedFile>,
}

/// A file's comments.
struct CommentedFile {
    file: Rc<SourceFile>,
    /// For each comment the rules that hid something.
    used: Vec<Vec<String>>,
}

impl Comments {
    /// Looks through the files that the recordings name.
    fn of(report: &Report, sources: &SourceMap) -> Comments {
        let recorded = report.recordings.iter().flat_map(|recording| &recording.files);
        let blamed = report.findings.iter().filter_map(|finding| finding.location.clone());
        let mut files = BTreeMap::new();
        for location in recorded.map(RecordedFile::place).chain(blamed) {
            let Some(Spot { file, .. }) = sources.find(&location) else { continue };
            if !file.ignores().is_empty() {
                let used = vec![Vec::new(); file.ignores().len()];
                files.entry(file.name().to_owned()).or_insert(CommentedFile { file, used });
            }
        }
        Comments { files }
    }

    /// What a comment at its line says of a finding. One that would apply if its file were surely the recorded one, and as
    /// it was, is not applied but told.
    fn ignore(
        &mut self,
        finding: &Finding,
        sources: &SourceMap,
        doubtful: &mut Vec<Notice>,
    ) -> Option<Standing> {
        let location = finding.location.as_ref()?;
        let Some(Spot { file, line, sure }) = sources.find(location) else {
            doubtful.extend(out_of_place(finding, location, sources));
            return None;
        };
        let commented = self.files.get_mut(file.name())?;
        let lines = file.statement_lines(line);
        let mut standing = None;
        for (comment, used) in file.ignores().iter().zip(&mut commented.used) {
            let here = lines.contains(&comment.line) || lines.contains(&comment.stands_for);
            let Some(asked) = comment.asks.as_ref().ok().filter(|_| here) else { continue };
            if asked.rules.iter().any(|rule| *rule == finding.rule) {
                used.push(finding.rule.to_string());
                if !sure {
                    doubtful.push(by_name_alone(finding, location, &file, comment.line));
                    continue;
                }
                let by = format!("{}:{}", file.name(), comment.line);
                standing = standing.or(Some(Standing::Ignored { reason: asked.reason.clone(), by }));
            }
        }
        standing
    }

    /// What is to be said of comments that do not do what they say.
    fn notices(&self, about: impl Fn(&str) -> About) -> Vec<Notice> {
        let mut notices = Vec::new();
        for CommentedFile { file, used } in self.files.values() {
            for (comment, used) in file.ignores().iter().zip(used) {
                let location =
                    Location { file: file.name().to_owned(), line: comment.line, function: String::new() };
                notices.extend(of_comment(comment, used, &about).into_iter().map(
                    |(kind, severity, message, help)| Notice {
                        kind,
                        severity,
                        message,
                        help,
                        location: Some(location.clone()),
                    },
                ));
            }
        }
        notices
    }
}

/// An ignore in a file that has changed since the recording, in the blamed function.
fn out_of_place(finding: &Finding, location: &Location, sources: &SourceMap) -> Option<Notice> {
    let file = sources.changed(&location.file)?.file;
    let speaks = |comment: &&IgnoreComment| {
        let asks =
            comment.asks.as_ref().is_ok_and(|asked| asked.rules.iter().any(|rule| *rule == finding.rule));
        asks && file.function_at(comment.stands_for) == Some(location.function.as_str())
    };
    let line = file.ignores().iter().find(speaks)?.line;
    Some(Notice {
        kind: Matter::IgnoreOutOfPlace,
        severity: Severity::Warning,
        message: format!(
            "the ignore of `{}` is not applied: the file has changed since the recording, and nothing tells its line",
            finding.rule
        ),
        help: "record again".to_owned(),
        location: Some(Location { file: file.name().to_owned(), line, function: String::new() }),
    })
}

/// An ignore in a file of which only the name is the recorded one's.
fn by_name_alone(finding: &Finding, location: &Location, file: &SourceFile, line: u32) -> Notice {
    Notice {
        kind: Matter::IgnoreByName,
        severity: Severity::Warning,
        message: format!(
            "the ignore of `{}` is not applied: of `{}` only the file's name is the same",
            finding.rule,
            shown_name(&location.file)
        ),
        help: "if it is the recorded file, say so: --source-root with the folder that holds the program, or --path-map"
            .to_owned(),
        location: Some(Location { file: file.name().to_owned(), line, function: String::new() }),
    }
}

/// Kind, severity, message and help of what is to be said.
type Remark = (Matter, Severity, String, String);

fn of_comment(comment: &IgnoreComment, used: &[String], about: impl Fn(&str) -> About) -> Vec<Remark> {
    let asked = match &comment.asks {
        Ok(asked) => asked,
        Err(malformed) => {
            let message = match malformed {
                Malformed::NoRule => "this comment names no rule and is not applied",
                Malformed::NoReason => "this comment gives no reason and is not applied",
                Malformed::NotIgnore => "this comment asks for nothing that memlint knows",
            };
            return vec![(
                Matter::MalformedIgnore,
                Severity::Warning,
                message.to_owned(),
                format!("write it as\n  {EXAMPLE}"),
            )];
        }
    };
    let one = |rule: &String| match about(rule) {
        About::Unknown { hint } => Some((
            Matter::UnknownRule,
            Severity::Warning,
            format!("there is no rule `{rule}` to ignore"),
            hint,
        )),
        About::Judged if !used.contains(rule) => Some((
            Matter::UnusedIgnore,
            Severity::Info,
            format!("the ignore of `{rule}` hides nothing"),
            "remove it if that is so for all of your snapshots".to_owned(),
        )),
        About::Judged | About::NotJudged => None,
    };
    asked.rules.iter().filter_map(one).collect()
}

/// Where else an ignore's rule found something: a path may be written in another way than it was recorded.
fn found_elsewhere(ignore: &Ignore, report: &Report) -> Option<String> {
    let mut of_rule = report.findings.iter().filter(|finding| finding.rule == ignore.rule);
    let Location { file, function, .. } = of_rule.find_map(|finding| finding.location.as_ref())?;
    Some(format!(
        "`path` and `function` are held against what was recorded: this rule found something in {} of {}",
        shown_name(function),
        shown_name(file)
    ))
}

/// The line of a configuration.
fn place(origin: &SetBy) -> Option<Location> {
    match origin {
        SetBy::File { name, line } => {
            Some(Location { file: name.to_string(), line: *line, function: String::new() })
        }
        _ => None,
    }
}
