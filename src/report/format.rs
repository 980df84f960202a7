//! The formats by name, and the one way to write a report in any of them.

use std::io;
use std::str::FromStr;

use super::{Look, VerdictFailure, concise, github, gitlab, html, json, junit, markdown, sarif, text};
use crate::engine::Report;
use crate::source::SourceMap;

/// A format of the report of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Format {
    /// For people.
    Text,
    /// One line a finding.
    Concise,
    /// For machines: memlint/1.
    Json,
    /// The same, one line a finding.
    Jsonl,
    /// SARIF 2.1.0.
    Sarif,
    /// Annotations of GitHub Actions.
    Github,
    /// GitLab's code quality report.
    Gitlab,
    /// JUnit XML.
    Junit,
    /// A job summary.
    Markdown,
    /// A page to look at, with pictures.
    Html,
}

impl Format {
    /// Every format, in the order of the help.
    pub const ALL: [Format; 10] = [
        Format::Text,
        Format::Concise,
        Format::Json,
        Format::Jsonl,
        Format::Sarif,
        Format::Github,
        Format::Gitlab,
        Format::Junit,
        Format::Markdown,
        Format::Html,
    ];

    /// What it is called on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Format::Text => "text",
            Format::Concise => "concise",
            Format::Json => "json",
            Format::Jsonl => "jsonl",
            Format::Sarif => "sarif",
            Format::Github => "github",
            Format::Gitlab => "gitlab",
            Format::Junit => "junit",
            Format::Markdown => "markdown",
            Format::Html => "html",
        }
    }

    /// Whether it is lines for people, who read standard error as well.
    pub const fn is_read_beside_errors(self) -> bool {
        matches!(self, Format::Text | Format::Concise)
    }

    /// One line for the help.
    pub const fn summary(self) -> &'static str {
        match self {
            Format::Text => "for people",
            Format::Concise => "one line a finding, for editors, logs and coding agents",
            Format::Json => "for machines: memlint/1 (`memlint schema output`)",
            Format::Jsonl => "the same, one object a finding, and last a summary",
            Format::Sarif => "SARIF 2.1.0, for code scanning",
            Format::Github => "annotations of GitHub Actions, the ten worst",
            Format::Gitlab => "GitLab's code quality report",
            Format::Junit => "JUnit XML: a test case for each rule and snapshot",
            Format::Markdown => "a job summary: table, charts, findings folded away",
            Format::Html => {
                "a page to look at: timelines, findings, the peak explained; one file, no network"
            }
        }
    }

    /// Writes a report. Text has a look; of it, concise, github and sarif heed only how much to say, and the others nothing:
    /// they hold everything.
    ///
    /// # Errors
    /// Where the output cannot be written.
    pub fn write(
        self,
        report: &Report,
        sources: &SourceMap,
        look: &Look,
        out: &mut dyn io::Write,
    ) -> io::Result<()> {
        match self {
            Format::Text => out.write_all(text::render(report, sources, look).as_bytes()),
            Format::Concise => out.write_all(concise::render(report, sources, look).as_bytes()),
            Format::Json => json::check(report, sources, out),
            Format::Jsonl => json::lines(report, sources, out),
            Format::Sarif => sarif::check(report, sources, look.detail, out),
            Format::Github => out.write_all(github::render(report, sources, look).as_bytes()),
            Format::Gitlab => gitlab::check(report, sources, out),
            Format::Junit => out.write_all(junit::render(report, sources).as_bytes()),
            Format::Markdown => out.write_all(markdown::render(report, sources).as_bytes()),
            Format::Html => html::page(report, sources, out),
        }
    }

    /// Writes that there is no verdict, and why.
    ///
    /// # Errors
    /// Where the output cannot be written.
    pub fn write_failure(self, failure: &VerdictFailure, out: &mut dyn io::Write) -> io::Result<()> {
        match self {
            Format::Text | Format::Concise => out.write_all(concise::failure(failure).as_bytes()),
            Format::Json => json::failure(failure, out),
            Format::Jsonl => json::failure_line(failure, out),
            Format::Sarif => sarif::failure(failure, out),
            Format::Github => out.write_all(github::failure(failure).as_bytes()),
            Format::Gitlab => gitlab::failure(failure, out),
            Format::Junit => out.write_all(junit::failure(failure).as_bytes()),
            Format::Markdown => out.write_all(markdown::failure(failure).as_bytes()),
            Format::Html => html::failure(failure, out),
        }
    }
}

impl FromStr for Format {
    type Err = String;

    fn from_str(name: &str) -> Result<Format, String> {
        let names = || Format::ALL.map(Format::name).join(", ");
        let known = Format::ALL.into_iter().find(|format| format.name() == name);
        known.ok_or_else(|| format!("there is no format `{name}`; the formats are {}", names()))
    }
}
