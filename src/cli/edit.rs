//! `memlint slice` and `memlint anonymize`: a snapshot in, another one out.
//!
//! Always: the input stays as it is, and the output is there whole or not at all.

use std::fs;
use std::path::Path;
use std::process::ExitCode;

use super::arguments::{Anonymize, Slice, Writing};
use super::error::CliError;
use super::reading::read_snapshot;
use super::{file, print};
use crate::edit;
use crate::engine::{self, Input, Plan};
use crate::input::Source;
use crate::rules;
use crate::snapshot::Snapshot;

pub(super) fn run_slice(slice: &Slice) -> Result<ExitCode, CliError> {
    let source = Source::named(&slice.path);
    permit(&source, &slice.writing)?;
    let snapshot = read_snapshot(&source, &slice.limits)?;
    let input = Input::of(source.name(), snapshot);
    let plan = Plan::of_rules(&rules::by_default());
    let report = engine::conclude(vec![engine::examine(&input, &plan)], Vec::new(), &plan);
    let sliced = edit::slice(input.snapshot, slice.iterations, engine::inherited(&report))
        .map_err(|error| CliError::Slice { name: source.name(), error })?;
    write(&sliced, &slice.writing)
}

pub(super) fn run_anonymize(anonymize: &Anonymize) -> Result<ExitCode, CliError> {
    let source = Source::named(&anonymize.path);
    permit(&source, &anonymize.writing)?;
    let mut snapshot = read_snapshot(&source, &anonymize.limits)?;
    // Whatever somebody else wrote in place of a rule's name is no name to be kept.
    if let Some(excerpt) = &mut snapshot.excerpt {
        excerpt.findings.retain(|one| rules::named(&one.rule).is_some());
    }
    write(&edit::anonymize(snapshot), &anonymize.writing)
}

fn is_stdout(output: &Path) -> bool {
    output.as_os_str() == "-"
}

/// Refuses, before anything is read, to write over the input or over what nobody gave up.
fn permit(source: &Source, writing: &Writing) -> Result<(), CliError> {
    let output = &writing.output;
    if is_stdout(output) || !output.exists() {
        return Ok(());
    }
    let name = output.display().to_string();
    let same = |input: &Path| fs::canonicalize(input).ok() == fs::canonicalize(output).ok();
    if matches!(source, Source::File(input) if same(input)) {
        return Err(CliError::SameFile { name });
    }
    if writing.force { Ok(()) } else { Err(CliError::Exists { name }) }
}

fn write(snapshot: &Snapshot, writing: &Writing) -> Result<ExitCode, CliError> {
    let output = &writing.output;
    if is_stdout(output) {
        print(|out| snapshot.write(out))?;
    } else {
        file::replace(output, |out| snapshot.write(out))?;
    }
    Ok(ExitCode::SUCCESS)
}
