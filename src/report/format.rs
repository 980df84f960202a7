//! The formats by name, and the one way to write a report in any of them.

use std::io;
use std::str::FromStr;

use super::{Look, json, text};
use crate::engine::Report;
use crate::source::SourceMap;

/// A format of the report of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Format {
    /// For people.
    Text,
    /// For machines: memlint/1.
    Json,
}

impl Format {
    /// Every format, in the order of the help.
    pub const ALL: [Format; 2] = [Format::Text, Format::Json];

    /// What it is called on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Format::Text => "text",
            Format::Json => "json",
        }
    }

    /// One line for the help.
    pub const fn summary(self) -> &'static str {
        match self {
            Format::Text => "for people",
            Format::Json => "for machines: memlint/1",
        }
    }

    /// Writes a report; only text has a look.
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
            Format::Json => json::check(report, sources, out),
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
