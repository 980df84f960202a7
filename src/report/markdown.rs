//! A job summary for GitHub and GitLab: the verdict, a table, memory per iteration, and each finding folded away.
//!
//! Nothing out of a recording is markup: all punctuation of a text is escaped, HTML is escaped as HTML, and code stands in
//! fences longer than any that it holds.

use std::fmt::Write;

use super::headline::Headline;
use super::look::{Detail, Look};
use super::place::SourceLine;
use super::tally::Tally;
use super::{VerdictFailure, chart, closing, gap, words};
use crate::engine::{Outcome, Recording, Report, Why};
use crate::finding::{Finding, Location, Severity, Standing};
use crate::source::SourceMap;
use crate::unit::{Bytes, Index, count, shown_line, shown_page};

/// The findings that are listed: the services cut summaries off at some size.
const MOST_FINDINGS: usize = 50;
/// The devices whose memory is drawn.
const MOST_CHARTS: usize = 4;
/// The rows of a chart.
const CHART_ROWS: usize = 8;
/// How charts look: services draw Unicode.
const CHART: Look = Look { width: 72, unicode: true, color: false, detail: Detail::Normal };

/// Writes the report of a check.
pub(super) fn render(report: &Report, sources: &SourceMap) -> String {
    let first = Headline::of(report).map_or_else(|| Tally::of(report).words(), |headline| headline.text);
    let mut out = format!("## memlint: {}\n\n{}\n", text(&first), verdict(report));
    for unread in &report.unread {
        let _ = writeln!(
            out,
            "- **{}**: {}",
            text(&unread.name),
            text(&VerdictFailure::of_file(unread).sentence())
        );
    }
    table(&mut out, report, sources);
    for finding in report.open().take(MOST_FINDINGS) {
        details(&mut out, report, finding, sources);
    }
    notices(&mut out, report);
    charts(&mut out, report, sources);
    not_counted(&mut out, report, sources);
    not_judged(&mut out, report);
    shown_page(&out, false)
}

/// Says that there is no verdict.
pub(super) fn failure(failure: &VerdictFailure) -> String {
    shown_page(&format!("## memlint: no verdict\n\n{}\n", text(&failure.sentence())), false)
}

/// What the gate makes of it, in Markdown.
pub(super) fn verdict(report: &Report) -> String {
    let least = report.verdict.fail_on.map(Severity::name);
    match (report.verdict.outcome(), least) {
        (Outcome::NoVerdict(Why::Unread), _) => {
            "**There is no verdict**: not all files could be read.".to_owned()
        }
        (Outcome::NoVerdict(Why::Unjudged), _) => {
            "**There is no verdict**: there is a recording whose program no rule could judge.".to_owned()
        }
        (Outcome::NoVerdict(Why::Strict), _) => {
            "**There is no verdict**: not all was judged, and --strict was given.".to_owned()
        }
        (Outcome::Closed, Some(least)) => {
            let failing = count(report.verdict.failing, "finding");
            format!("**The gate closes**: {failing} at or above {least}.")
        }
        (Outcome::Open, Some(least)) => format!("**The gate is open**: nothing at or above {least}."),
        (Outcome::Open | Outcome::Closed, None) => "Nothing closes the gate.".to_owned(),
    }
}

/// The open findings, a row each.
fn table(out: &mut String, report: &Report, sources: &SourceMap) {
    let findings: Vec<&Finding> = report.open().collect();
    if findings.is_empty() {
        return;
    }
    out.push_str("\n| level | rule | what | where | saves |\n|---|---|---|---|---|\n");
    for finding in findings.iter().take(MOST_FINDINGS) {
        let place = words::anchor(report, finding).map_or_else(String::new, |at| place(at, sources));
        let _ = writeln!(
            out,
            "| {} | {} | {} | {place} | {} |",
            finding.severity.name(),
            text(&finding.rule),
            text(&finding.message),
            saving(finding),
        );
    }
    if findings.len() > MOST_FINDINGS {
        let _ = writeln!(out, "\n{} left out here.", count(findings.len() - MOST_FINDINGS, "more finding"));
    }
}

/// The largest thing that mending saves, in few words.
fn saving(finding: &Finding) -> String {
    let impact = &finding.impact;
    let known = |bytes: Option<Bytes>| bytes.filter(|bytes| *bytes > Bytes::ZERO);
    let savings = [
        (impact.peak, "of the peak"),
        (impact.reserved, "of what is reserved"),
        (impact.resident, "between iterations"),
        (impact.per_iteration, "an iteration"),
    ];
    let first = savings.into_iter().find_map(|(bytes, what)| Some(format!("{} {what}", known(bytes)?)));
    first.filter(|_| finding.severity != Severity::Info).unwrap_or_default()
}

/// One finding, folded away.
fn details(out: &mut String, report: &Report, finding: &Finding, sources: &SourceMap) {
    let head = format!("{}: {} [{}]", finding.severity.name(), finding.message, finding.rule);
    let _ = writeln!(out, "\n<details>\n<summary>{}</summary>\n", html(&head));
    let label = &finding.label;
    let at = words::anchor(report, finding).map(|location| {
        let place = text(&SourceLine::of(location, sources).line_and_function());
        let colon = if label.is_empty() { "" } else { ": " };
        format!("{place}{colon}{}", text(label))
    });
    for (name, what) in [
        ("where", at.unwrap_or_default()),
        ("evidence", text(&words::evidence(finding))),
        ("impact", text(&words::impact(report, finding))),
        ("seen on", text(&words::places(report, finding).unwrap_or_default())),
        ("snapshot", text(&words::snapshot(report, finding).unwrap_or_default())),
        ("confidence", finding.confidence.name().to_owned()),
    ] {
        if !what.is_empty() {
            let _ = writeln!(out, "- **{name}**: {what}");
        }
    }
    for related in &finding.related {
        let _ = writeln!(out, "- **also** {}: {}", place(&related.location, sources), text(&related.message));
    }
    help(out, &finding.help);
    let stack: Vec<String> = finding
        .stack
        .iter()
        .filter(|frame| frame.user)
        .map(|frame| SourceLine::of(&frame.location, sources).line_and_function())
        .collect();
    fence(out, "", &stack);
    out.push_str("\n</details>\n");
}

/// The remedy: prose, and code in a fence.
fn help(out: &mut String, help: &str) {
    let (code, prose): (Vec<&str>, Vec<&str>) = help.lines().partition(|line| line.starts_with(' '));
    if !prose.is_empty() {
        let _ = writeln!(out, "- **help**: {}", text(&prose.join(" ")));
    }
    let indent = code.iter().map(|line| line.len() - line.trim_start().len()).min().unwrap_or(0);
    let code: Vec<String> =
        code.iter().map(|line| line.get(indent..).unwrap_or_default().to_owned()).collect();
    fence(out, "python", &code);
}

/// What a person should know of the judging itself.
fn notices(out: &mut String, report: &Report) {
    if report.notices.is_empty() {
        return;
    }
    out.push('\n');
    for notice in &report.notices {
        let at = notice.location.as_ref().map(|at| format!(" at {}", text(&SourceLine::here(at).line())));
        let _ = writeln!(
            out,
            "- **{}**{}: {}; {}",
            notice.severity.name(),
            at.unwrap_or_default(),
            text(&notice.message),
            text(&words::help_line(&notice.help)),
        );
    }
}

/// Memory per iteration of the first devices.
fn charts(out: &mut String, report: &Report, sources: &SourceMap) {
    let devices =
        report.recordings.iter().flat_map(|one| one.devices.iter().map(move |device| (one, device)));
    for (recording, device) in devices.clone().take(MOST_CHARTS) {
        let line = closing::iterations(recording, device, sources);
        let _ = writeln!(out, "\n**{}**: {}", text(&recording.name), text(&line));
        let mut bars = String::new();
        chart::draw(&mut bars, "iteration", &device.profile.iterations, CHART_ROWS, &CHART);
        fence(out, "", &bars.lines().map(str::to_owned).collect::<Vec<_>>());
    }
    let more = devices.count().saturating_sub(MOST_CHARTS);
    if more > 0 {
        let _ = writeln!(out, "\n{} not drawn.", count(more, "more device"));
    }
}

/// What was found and does not count, and why.
fn not_counted(out: &mut String, report: &Report, sources: &SourceMap) {
    let Some(aside) = Tally::of(report).aside() else { return };
    let _ = writeln!(out, "\n<details>\n<summary>{aside}</summary>\n");
    for finding in report.findings.iter().filter(|finding| finding.standing != Standing::Open) {
        let why = words::standing(&finding.standing).unwrap_or_default();
        let at = words::anchor(report, finding).map(|at| format!(" at {}", place(at, sources)));
        let (rule, at) = (text(&finding.rule), at.unwrap_or_default());
        let _ = writeln!(out, "- {rule}{at}: {} ({})", text(&finding.message), text(&why));
    }
    out.push_str("\n</details>\n");
}

/// Rules that did not judge, and what the snapshots lack.
fn not_judged(out: &mut String, report: &Report) {
    let mut lines = Vec::new();
    for (reason, rules) in words::silences(report) {
        lines.push(format!("- {}: {}", text(&reason), text(&rules.join(", "))));
    }
    let gaps_of = |recording: &Recording| {
        let of_file = gap::all(recording, Detail::Normal);
        let of_traces = recording.devices.iter().flat_map(|device| {
            let ordinal = device.device.position();
            let gaps = gap::disagreements(&device.agreement).into_iter();
            gaps.map(move |(kind, what)| (kind, format!("device {ordinal}: {what}")))
        });
        of_file.into_iter().chain(of_traces).map(|(_, what)| what).collect::<Vec<_>>()
    };
    for recording in &report.recordings {
        let name = text(&recording.name);
        lines.extend(gaps_of(recording).iter().map(|what| format!("- {name}: not known: {}", text(what))));
    }
    lines.dedup();
    if !lines.is_empty() {
        let lines = lines.join("\n");
        let _ = writeln!(
            out,
            "\n<details>\n<summary>what could not be judged</summary>\n\n{lines}\n\n</details>"
        );
    }
}

fn place(location: &Location, sources: &SourceMap) -> String {
    text(&SourceLine::of(location, sources).line())
}

/// A fenced block; nothing where there are no lines.
fn fence(out: &mut String, language: &str, lines: &[String]) {
    if lines.is_empty() {
        return;
    }
    let lines: Vec<String> = lines.iter().map(|line| shown_line(line)).collect();
    let longest = lines.iter().flat_map(|line| line.split(|one| one != '`')).map(str::len).max();
    let marks = "`".repeat(longest.unwrap_or(0).max(2) + 1);
    let _ = writeln!(out, "\n{marks}{language}\n{}\n{marks}", lines.join("\n"));
}

/// Plain text: all that Markdown or HTML could take for markup is escaped, and it stays on its line.
fn text(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for one in shown_line(text).chars() {
        match one {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '@' => out.push_str("&#64;"),
            '\\' | '`' | '*' | '_' | '[' | ']' | '|' | '#' | '~' | '!' | '$' => {
                out.push('\\');
                out.push(one);
            }
            one => out.push(one),
        }
    }
    out
}

/// Text within an HTML element.
pub(super) fn html(text: &str) -> String {
    shown_line(text).replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_in_a_text_is_markup() {
        let hostile = "a|b `c` <img src=x> **d** [e](f)\n# @g";
        let written = text(hostile);
        assert_eq!(written, "a\\|b \\`c\\` &lt;img src=x&gt; \\*\\*d\\*\\* \\[e\\](f)\u{fffd}\\# &#64;g");
        assert_eq!(html("</summary>\n\n<b>"), "&lt;/summary&gt;\u{fffd}\u{fffd}&lt;b&gt;");
    }

    #[test]
    fn fences_are_longer_than_what_they_hold() {
        let mut out = String::new();
        fence(&mut out, "", &["a".to_owned(), "````b".to_owned()]);
        assert_eq!(out, "\n`````\na\n````b\n`````\n");
    }
}
