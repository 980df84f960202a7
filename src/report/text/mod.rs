//! The report for people: each finding with its lines of source, then how far to trust it all.

mod clip;
mod excerpt;

use std::cmp::Reverse;
use std::fmt::Write;

use self::excerpt::Underline;
use super::headline::Headline;
use super::look::{Detail, Ink, Look};
use super::paths::{Root, package_path};
use super::place::SourceLine;
use super::{VerdictFailure, closing, ending, sightings, words};
use crate::engine::{Outcome, Report};
use crate::finding::{Finding, Location, Notice, Related, Severity, Stood};
use crate::source::SourceMap;
use crate::unit::{Index, count, shown_line, shown_name, shown_page};

/// Lines this far apart are drawn in one frame; others follow the finding's own.
const NEAR: u32 = 3;
/// A folder that stands in so many paths is not worth a line of its own.
const SELDOM: usize = 2;

/// Files that could not be read, as far as they are named where not all is asked for.
const MOST_UNREAD: usize = 10;

/// Writes the report of a check.
pub fn render(report: &Report, sources: &SourceMap, look: &Look) -> String {
    let mut out = String::new();
    // Where the gate closes, what closes it is what somebody needs. Where it stays open, what could not be judged is.
    let is_first = matches!(report.verdict.outcome(), Outcome::Open | Outcome::NoVerdict(_));
    if is_first {
        render_headline(&mut out, report, look);
    }
    let root = root(report, sources, look);
    let mut unknown_files = Vec::new();
    for finding in words::shown(report, look.detail) {
        Entry { report, sources, look, finding, root: &root }.render(&mut out, &mut unknown_files);
        out.push('\n');
    }
    for notice in words::shown_notices(report, look.detail) {
        render_notice(&mut out, notice, look);
        out.push('\n');
    }
    // The last lines say what could not be judged, but not that a GPU was modelled.
    let is_modelled = report.recordings.iter().any(|one| one.modelled.is_some());
    if !is_first && (is_modelled || look.detail == Detail::Quiet) {
        render_headline(&mut out, report, look);
    }
    if !root.folder().is_empty() {
        let _ = writeln!(
            out,
            "{}",
            look.wrap(&format!("files that are not here lie below {}", shown_name(root.folder())), 2)
        );
    }
    if look.detail > Detail::Quiet {
        closing::render(&mut out, report, sources, look);
        ending::render(&mut out, report, sources, look);
    }
    shown_page(&out, look.color)
}

/// The folder that holds all of the program's files that are not here, where it would be named more often than it is worth.
fn root(report: &Report, sources: &SourceMap, look: &Look) -> Root {
    let findings = || words::shown(report, look.detail);
    let related = findings().flat_map(|one| &one.related).map(|one| &one.location);
    let stacks =
        findings().flat_map(|one| &one.stack).filter(|frame| frame.user).map(|frame| &frame.location);
    let all = findings().filter_map(|one| one.location.as_ref()).chain(related).chain(stacks);
    let missing: Vec<&str> = all.filter(|at| sources.find(at).is_none()).map(|at| at.file.as_str()).collect();
    if missing.len() > SELDOM { Root::of(missing.into_iter()) } else { Root::default() }
}

/// That not all was judged, and which files could not be read.
fn render_headline(out: &mut String, report: &Report, look: &Look) {
    let Some(Headline { severity, text }) = Headline::of(report) else { return };
    // Not wrapped: whoever looks for it in a log finds it on one line.
    let _ = writeln!(out, "{}", look.paint(Ink::Severity(severity), &text));
    let most = if look.detail == Detail::Verbose { usize::MAX } else { MOST_UNREAD };
    for unread in report.unread.iter().take(most) {
        let _ = writeln!(
            out,
            "{}",
            look.wrap(&format!("  {}", shown_line(&VerdictFailure::of_file(unread).sentence())), 4)
        );
    }
    if report.unread.len() > most {
        let _ = writeln!(out, "  and {} more; -v names them", report.unread.len() - most);
    }
    out.push('\n');
}

/// What a person should know of the judging itself.
fn render_notice(out: &mut String, notice: &Notice, look: &Look) {
    headline(out, look, notice.severity, notice.severity.name(), &notice.message, notice.kind.name());
    if let Some(location) = &notice.location {
        look.attribute(out, "at", &SourceLine::here(location).line());
    }
    look.attribute(out, "help", &notice.help);
}

/// `error: message  [rule]`.
fn headline(out: &mut String, look: &Look, severity: Severity, level: &str, message: &str, rule: &str) {
    let text = format!(
        "{} {}  {}",
        look.paint(Ink::Severity(severity), &format!("{level}:")),
        look.paint(Ink::Strong, message),
        look.paint(Ink::Faint, &format!("[{rule}]")),
    );
    let _ = writeln!(out, "{}", look.wrap(&text, level.len() + 2));
}

/// One finding to be drawn.
struct Entry<'a> {
    report: &'a Report,
    sources: &'a SourceMap,
    look: &'a Look,
    finding: &'a Finding,
    /// What the paths of files that are not here are told from.
    root: &'a Root,
}

impl<'a> Entry<'a> {
    fn render(&self, out: &mut String, unknown_files: &mut Vec<String>) {
        let Entry { look, finding, .. } = *self;
        let level = words::level(finding);
        headline(out, look, finding.severity, &level, &finding.message, &finding.rule);
        let drawn = self.excerpt(out);
        if !drawn {
            self.stack(out, unknown_files);
        } else if look.detail == Detail::Verbose {
            self.frames(out);
        }
        self.stood(out);
        for (name, text) in [
            ("evidence", words::evidence(finding)),
            ("impact", words::impact(self.report, finding)),
            ("help", finding.help.clone()),
            ("confidence", finding.confidence.name().to_owned()),
            ("standing", words::standing(&finding.standing).unwrap_or_default()),
        ] {
            look.attribute(out, name, &text);
        }
        for related in self.elsewhere(drawn).into_iter().filter(|related| related.stood.is_none()) {
            let place = SourceLine::of(&related.location, self.sources);
            look.attribute(out, "also", &format!("{}: {}", place.line_from(self.root), related.message));
        }
        self.origin(out);
    }

    /// The source lines of the finding and of what is related in the same file; whether they could be drawn.
    fn excerpt(&self, out: &mut String) -> bool {
        let Some(location) = &self.finding.location else { return false };
        let SourceLine { number, file: Some(file), .. } = SourceLine::of(location, self.sources) else {
            return false;
        };
        let marks = self.beside().map(|(line, related)| Underline { line, message: &related.message });
        let (near, far): (Vec<_>, Vec<_>) = marks.partition(|mark| mark.line.abs_diff(number) <= NEAR);
        let primary = Underline { line: number, message: &self.finding.label };
        let first: Vec<Underline> = std::iter::once(primary).chain(near).collect();
        let Some(drawn) = excerpt::draw(&file, &first, self.look) else { return false };
        out.push_str(&drawn);
        for mark in far {
            out.push_str(&excerpt::draw(&file, &[mark], self.look).unwrap_or_default());
        }
        true
    }

    /// What is related on other lines of the same file, each line once, and the line: these become labels.
    fn beside(&self) -> impl Iterator<Item = (u32, &'a Related)> {
        let Entry { finding, sources, .. } = *self;
        let primary = finding.location.as_ref();
        let mut taken: Vec<u32> =
            primary.map(|one| SourceLine::of(one, sources).number).into_iter().collect();
        finding.related.iter().filter_map(move |related| {
            let location = &related.location;
            let SourceLine { number, file: Some(file), .. } = SourceLine::of(location, sources) else {
                return None;
            };
            let drawable = related.stood.is_none()
                && primary.is_some_and(|primary| primary.file == location.file)
                && !taken.contains(&number)
                && excerpt::on_one_line(&file, number).is_some();
            if !drawable {
                return None;
            }
            taken.push(number);
            Some((number, related))
        })
    }

    /// What stood at the moment that the finding is about, the largest first.
    fn stood(&self, out: &mut String) {
        let parts = self.finding.related.iter().filter_map(|one| Some((one.stood.as_ref()?, &one.location)));
        let mut parts: Vec<_> = parts.collect();
        parts.sort_by_key(|(stood, _)| Reverse(stood.bytes));
        let row = |(stood, at): &(&Stood, &Location)| {
            let place = SourceLine::of(at, self.sources).line_from(self.root);
            let share = stood.share().before();
            let before = format!("{:>9}  {:<16}  {share}", stood.bytes.to_string(), stood.what);
            self.look.row(&before, &place)
        };
        self.look.listing(out, "stood there", &parts.iter().map(row).collect::<Vec<_>>());
    }

    /// What is related and has no label.
    fn elsewhere(&self, drawn: bool) -> Vec<&'a Related> {
        let beside: Vec<&Related> =
            if drawn { self.beside().map(|(_, related)| related).collect() } else { Vec::new() };
        self.finding
            .related
            .iter()
            .filter(|related| !beside.iter().any(|label| std::ptr::eq(*label, *related)))
            .collect()
    }

    /// In place of an excerpt: where, the recorded stack, and how to make the source known.
    fn stack(&self, out: &mut String, unknown_files: &mut Vec<String>) {
        let Some(location) = &self.finding.location else { return };
        let place = SourceLine::of(location, self.sources);
        let label = &self.finding.label;
        let colon = if label.is_empty() { "" } else { ": " };
        self.look.attribute(out, "at", &format!("{}{colon}{label}", place.line_and_function_from(self.root)));
        self.frames(out);
        let missing = place.file.is_none() && self.sources.changed(&location.file).is_none();
        if missing && !unknown_files.contains(&location.file) {
            unknown_files.push(location.file.clone());
            self.look.attribute(out, "source", &how_to_find(&location.file));
        }
    }

    /// The recorded stack, innermost first: the user's frames, and how many of libraries stand between them.
    fn frames(&self, out: &mut String) {
        let mut lines = Vec::new();
        let mut folded = 0;
        for frame in &self.finding.stack {
            let place = SourceLine::of(&frame.location, self.sources);
            if frame.user {
                lines.push(place.line_and_function_from(self.root));
            } else if self.look.detail == Detail::Verbose {
                lines.push(self.look.paint(Ink::Faint, package_path(&place.line_and_function())));
            } else {
                folded += 1;
            }
        }
        if folded > 0 && !lines.is_empty() {
            let frames = format!("({} of libraries left out; -v shows them)", count(folded, "frame"));
            lines.push(self.look.paint(Ink::Faint, &frames));
        }
        self.look.listing(out, "stack", &lines);
    }

    /// In how many places of the job; which snapshot and which device, where there is more than one.
    fn origin(&self, out: &mut String) {
        let Some(recording) = self.report.recording(self.finding) else { return };
        if let Some((what, counted)) = sightings::describe(self.report, self.finding) {
            self.look.attribute(out, what, &counted);
        }
        self.look.attribute(out, "snapshot", &words::snapshot(self.report, self.finding).unwrap_or_default());
        if let Some(device) = self.finding.device.filter(|_| recording.devices.len() > 1) {
            self.look.attribute(out, "device", &device.position().to_string());
        }
    }
}

/// Which option makes a source known.
fn how_to_find(file: &str) -> String {
    let folder = file.rfind(['/', '\\']).map_or("", |end| &file[..end]);
    let map = if folder.is_empty() { file } else { folder };
    format!(
        "{file} is not here; name the folder that holds it with --source-root DIR, or say what replaces the recorded \
         path with --path-map {map}=DIR"
    )
}
