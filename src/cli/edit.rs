//! `memlint slice` and `memlint anonymize`: a snapshot in, another one out.
//!
//! Always: the input stays as it is, and the output is there whole or not at all.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::process::ExitCode;

use super::arguments::{Anonymize, Slice, Writing};
use super::error::CliError;
use super::{print, read_snapshot};
use crate::edit;
use crate::input::Source;
use crate::snapshot::Snapshot;

pub(super) fn run_slice(slice: &Slice) -> Result<ExitCode, CliError> {
    let source = Source::named(&slice.path);
    permit(&source, &slice.writing)?;
    let snapshot = read_snapshot(&source, &slice.limits)?;
    let sliced = edit::slice(snapshot, slice.iterations)
        .map_err(|error| CliError::Slice { name: source.name(), error })?;
    write(&sliced, &slice.writing)
}

pub(super) fn run_anonymize(anonymize: &Anonymize) -> Result<ExitCode, CliError> {
    let source = Source::named(&anonymize.path);
    permit(&source, &anonymize.writing)?;
    let snapshot = read_snapshot(&source, &anonymize.limits)?;
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
        write_file(snapshot, output)
            .map_err(|error| CliError::Unwritable { name: output.display().to_string(), error })?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Writes beside the file first and puts it into place when it is whole.
fn write_file(snapshot: &Snapshot, output: &Path) -> io::Result<()> {
    let is_device = fs::metadata(output).is_ok_and(|about| !about.is_file());
    let Some(name) = output.file_name().filter(|_| !is_device) else {
        return write_to(snapshot, File::create(output)?);
    };
    let mut partial = OsString::from(".");
    partial.push(name);
    partial.push(format!(".{}.partial", std::process::id()));
    let partial = output.with_file_name(partial);
    // Two runs do not meet, and a link that somebody laid there is not followed.
    let file = File::create_new(&partial)?;
    let written = write_to(snapshot, file).and_then(|()| fs::rename(&partial, output));
    if written.is_err() {
        // What is left of it helps nobody; the first error is the one to report.
        let _ = fs::remove_file(&partial);
    }
    written
}

fn write_to(snapshot: &Snapshot, file: File) -> io::Result<()> {
    let mut out = BufWriter::new(file);
    snapshot.write(&mut out)?;
    out.flush()
}
