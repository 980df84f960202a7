//! A baseline as a file: JSON that is read in reviews and merged by version control.
//!
//! One entry a finding, its human part first; unknown keys, missing keys and repeated entries are errors, because what is
//! not understood would be lost, or would cover what nobody meant.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::{Baseline, BaselineError, Entry};
use crate::finding::{Impact, Severity};
use crate::rules::metas;
use crate::unit::{Bytes, suggestion};

/// What the names of budgets begin with.
const BUDGET: &str = "budget.";
/// The version of the file's shape.
const VERSION: u64 = 1;

/// What every version has.
#[derive(Deserialize)]
#[serde(expecting = "an object with `version` and `entries`")]
struct Head {
    version: u64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Document<'a> {
    #[serde(rename = "version")]
    _version: u64,
    #[serde(rename = "tool", default)]
    _tool: Option<String>,
    #[serde(borrow)]
    entries: Vec<&'a RawValue>,
}

#[derive(Serialize)]
struct Written<'a> {
    version: u64,
    tool: &'static str,
    entries: Vec<EntryDocument<'a>>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields, expecting = "an object")]
struct EntryDocument<'a> {
    rule: Cow<'a, str>,
    severity: Level,
    #[serde(rename = "where")]
    place: Cow<'a, str>,
    #[serde(default)]
    message: Cow<'a, str>,
    measure: Measure,
    fingerprint: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    reason: Option<Cow<'a, str>>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Level {
    Info,
    Warning,
    Error,
}

/// Bytes; a number that a finding does not have is left out.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Measure {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    bytes_per_iteration: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    peak_bytes: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    reserved_bytes: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    resident_bytes: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    bytes_at_once: Option<u64>,
}

pub(super) fn read(text: &str) -> Result<Baseline, BaselineError> {
    let malformed = |error: &serde_json::Error| BaselineError::Malformed {
        line: error.line().max(1),
        problem: without_place(error),
    };
    let head: Head = serde_json::from_str(text).map_err(|error| malformed(&error))?;
    if head.version > VERSION {
        return Err(BaselineError::Newer { version: head.version, known: VERSION });
    }
    if head.version == 0 {
        return Err(BaselineError::Malformed { line: 1, problem: "there is no version 0".to_owned() });
    }
    let document: Document = serde_json::from_str(text).map_err(|error| malformed(&error))?;
    let mut entries: Vec<Entry> = Vec::new();
    let mut seen = BTreeMap::new();
    let mut reached = (0, 1);
    for (at, raw) in document.entries.iter().enumerate() {
        reached = place_of(text, raw.get(), reached);
        let (_, line) = reached;
        let read: EntryDocument = serde_json::from_str(raw.get()).map_err(|error| BaselineError::Entry {
            entry: at + 1,
            line: line + error.line().saturating_sub(1),
            problem: without_place(&error),
        })?;
        let entry = entry(read, line).map_err(|problem| BaselineError::Entry {
            entry: at + 1,
            line,
            problem: problem.to_owned(),
        })?;
        if !is_known(&entry.rule) {
            let hint = suggestion(&entry.rule, "rules", metas().map(|meta| meta.name));
            return Err(BaselineError::UnknownRule { entry: at + 1, line, rule: entry.rule, hint });
        }
        let identity = (entry.rule.clone(), entry.fingerprint, entry.place.clone());
        if let Some(first) = seen.insert(identity, at) {
            return Err(BaselineError::Repeated { entry: at + 1, line, first: first + 1 });
        }
        entries.push(entry);
    }
    Ok(Baseline { entries })
}

/// Whether there is such a rule, or may be such a budget: those are the project's own, and go when its configuration says so.
fn is_known(rule: &str) -> bool {
    rule.starts_with(BUDGET) || metas().any(|meta| meta.name == rule)
}

fn entry(read: EntryDocument, line: usize) -> Result<Entry, &'static str> {
    let EntryDocument { rule, severity, place, message, measure, fingerprint, reason } = read;
    let bytes = |bytes: Option<u64>| bytes.map(Bytes);
    Ok(Entry {
        rule: rule.into_owned(),
        severity: match severity {
            Level::Info => Severity::Info,
            Level::Warning => Severity::Warning,
            Level::Error => Severity::Error,
        },
        place: place.into_owned(),
        message: message.into_owned(),
        measure: Impact {
            peak: bytes(measure.peak_bytes),
            reserved: bytes(measure.reserved_bytes),
            resident: bytes(measure.resident_bytes),
            per_iteration: bytes(measure.bytes_per_iteration),
            at_once: bytes(measure.bytes_at_once),
        },
        fingerprint: fingerprint.parse()?,
        reason: reason.map(Cow::into_owned),
        line: u32::try_from(line).unwrap_or(u32::MAX),
    })
}

/// The byte of the text at which a part of it begins, and its line, counted from 1; the part lies behind the one at which
/// `before` is.
fn place_of(text: &str, part: &str, before: (usize, usize)) -> (usize, usize) {
    let offset = (part.as_ptr() as usize).saturating_sub(text.as_ptr() as usize);
    let between = text.get(before.0..offset).unwrap_or_default();
    (offset, before.1 + between.matches('\n').count())
}

/// What the parser says, but for the place, which the error names on its own.
fn without_place(error: &serde_json::Error) -> String {
    let said = error.to_string();
    said.rsplit_once(" at line ").map_or(said.clone(), |(problem, _)| problem.to_owned())
}

pub(super) fn write(baseline: &Baseline, out: &mut dyn io::Write) -> io::Result<()> {
    let entries = baseline.entries.iter().map(written).collect();
    let tool = concat!("memlint ", env!("CARGO_PKG_VERSION"));
    serde_json::to_writer_pretty(&mut *out, &Written { version: VERSION, tool, entries })?;
    out.write_all(b"\n")
}

fn written(entry: &Entry) -> EntryDocument<'_> {
    let bytes = |bytes: Option<Bytes>| bytes.map(Bytes::get);
    EntryDocument {
        rule: entry.rule.as_str().into(),
        severity: match entry.severity {
            Severity::Info => Level::Info,
            Severity::Warning => Level::Warning,
            Severity::Error => Level::Error,
        },
        place: entry.place.as_str().into(),
        message: entry.message.as_str().into(),
        measure: Measure {
            bytes_per_iteration: bytes(entry.measure.per_iteration),
            peak_bytes: bytes(entry.measure.peak),
            reserved_bytes: bytes(entry.measure.reserved),
            resident_bytes: bytes(entry.measure.resident),
            bytes_at_once: bytes(entry.measure.at_once),
        },
        fingerprint: entry.fingerprint.to_string(),
        reason: entry.reason.as_deref().map(Into::into),
    }
}
