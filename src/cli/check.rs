//! `memlint check`: the gate.

use std::fs;
use std::path::Path;
use std::process::ExitCode;
use std::time::SystemTime;

use clap::ArgMatches;
use miette::Diagnostic;

use super::against::Base;
use super::arguments::{Check, Color};
use super::error::CliError;
use super::reading::{read_all, source_map, sources};
use super::{file, print, terminal};
use crate::comparison::Measured;
use crate::config::{Date, Settings};
use crate::engine::{self, Input, Plan, Report};
use crate::gate::{self, Gate, Suppressions};
use crate::report::{Detail, Failure, Look};
use crate::snapshot::{Action, DeviceTrace, Gap, Snapshot};
use crate::source::{self, SourceMap};
use crate::unit::count;

pub(super) fn run(check: &Check, matches: &ArgMatches, color: Color) -> Result<ExitCode, CliError> {
    permit_outputs(check)?;
    // What is wrong with the settings or the baseline is said before anything large is read.
    let settings = check.configuring.settings(&check.reading.sources, &check.known.naming, matches)?;
    let plan = Plan::of(&settings);
    let known = check.known.read(&settings)?;
    let sources = sources(&check.paths)?;
    let files = source_map(&settings.source_roots, &settings.path_map, &sources);
    let base = check.known.base(&sources)?;
    let limits = &check.reading.limits;
    let base =
        base.map(|(name, base)| Base::read(name, &base, limits, check.jobs, &files, &plan)).transpose()?;
    let seen = read_all(&sources, limits, check.jobs, |input| {
        refuse_what_cannot_be_judged(input)?;
        Ok((engine::examine(input, &plan), base.as_ref().map(|_| Measured::of(input))))
    })?;
    let (examinations, measured): (Vec<_>, Vec<_>) = seen.into_iter().unzip();
    let mut report = engine::conclude(examinations, &plan);
    let files = files.seen_by(&report.recordings);
    source::settle(&mut report, &files);
    if let Some(memory) = &settings.device_memory {
        report.forecast(memory.value);
    }
    if let Some(base) = &base {
        base.settle(&mut report, measured.iter().flatten(), &plan)?;
    }
    suppress(&mut report, &settings, &files);
    known.settle(&mut report, check.quiet)?;
    // Last of all: an entry of the baseline is not gone because its finding is not sure enough.
    gate::leave_out_unsure(&mut report, settings.min_confidence.value);
    Gate { fail_on: settings.fail_on.value.severity(), strict: settings.strict.value }.judge(&mut report);
    write(check, &report, &files, color)?;
    exit_code(check, &report)
}

/// Takes out of the verdict what somebody said is meant.
fn suppress(report: &mut Report, settings: &Settings, files: &SourceMap) {
    let Settings { ignores, selection, .. } = settings;
    Suppressions { ignores, selection, today: today() }.apply(report, files);
}

/// The day, in UTC; before 1970 no suppression has ended.
fn today() -> Date {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    Date::of_unix(now.as_secs())
}

/// What is found goes before what could not be judged: it is certain.
fn exit_code(check: &Check, report: &Report) -> Result<ExitCode, CliError> {
    if report.verdict.fails() && !check.exit_zero {
        return Ok(ExitCode::FAILURE);
    }
    if report.verdict.blind > 0 {
        let what = if report.recordings.len() > 1 { "all of the recordings" } else { "the recording" };
        return Err(CliError::Blind { rules: count(report.verdict.blind, "rule"), what });
    }
    Ok(ExitCode::SUCCESS)
}

/// Refuses, before anything is read or written, what would lose a snapshot or one of two reports.
fn permit_outputs(check: &Check) -> Result<(), CliError> {
    let taken = |path: &Path, why| Err(CliError::OutputTaken { name: path.display().to_string(), why });
    for (position, output) in check.output_file.iter().enumerate() {
        let path = &output.path;
        let same = |other: &Path| other == path || same_file(other, path);
        if check.paths.iter().any(|input| same(input)) {
            return taken(path, "it is a snapshot to be checked");
        }
        if check.known.paths().any(same) {
            return taken(path, "it is what the check is held against");
        }
        if check.output_file.iter().take(position).any(|other| same(&other.path)) {
            return taken(path, "it is given twice");
        }
    }
    Ok(())
}

/// Whether two paths name one regular file; devices such as `/dev/stderr` may be written more than once.
fn same_file(one: &Path, other: &Path) -> bool {
    let file = |path: &Path| fs::canonicalize(path).ok().filter(|path| path.is_file());
    file(one).is_some_and(|one| Some(one) == file(other))
}

/// A snapshot in which nothing can be found wrong must not pass.
pub(super) fn refuse_what_cannot_be_judged(input: &Input) -> Result<(), CliError> {
    let name = || input.name.clone();
    if !input.snapshot.devices.iter().any(DeviceTrace::has_history) {
        return Err(CliError::NoHistory { name: name() });
    }
    if is_unfamiliar(&input.snapshot) {
        return Err(CliError::Unfamiliar { name: name() });
    }
    Ok(())
}

/// Whether most events of a device are of kinds that this version does not know: then silence would mean nothing.
fn is_unfamiliar(snapshot: &Snapshot) -> bool {
    let told = snapshot.gaps.iter().any(|gap| matches!(gap, Gap::UnknownActions(_)));
    let unknown =
        |trace: &DeviceTrace| trace.events.iter().filter(|event| event.action == Action::Other).count();
    told && snapshot.devices.iter().any(|trace| 2 * unknown(trace) > trace.events.len())
}

/// Files first: whoever reads standard output until its end finds them complete.
fn write(check: &Check, report: &Report, files: &SourceMap, color: Color) -> Result<(), CliError> {
    let plain = Look { detail: detail(check), ..Look::PLAIN };
    for output in &check.output_file {
        file::replace(&output.path, |out| output.format.write(report, files, &plain, out))?;
    }
    let look = terminal::look(color, detail(check));
    print(|out| check.output_format.write(report, files, &look, out))
}

/// Tells whoever reads the files later that there is no verdict: an older report must not pass for this one's.
pub(super) fn write_failure(check: &Check, error: &CliError) {
    if matches!(error, CliError::OutputTaken { .. }) {
        return;
    }
    let help = error.help().map(|help| help.to_string());
    let failure = Failure { message: error.to_string(), help };
    for output in &check.output_file {
        // The error itself is being reported; that a file cannot even say so adds nothing to it.
        let _ = file::replace(&output.path, |out| output.format.write_failure(&failure, out));
    }
}

fn detail(check: &Check) -> Detail {
    match (check.quiet, check.verbose) {
        (true, _) => Detail::Quiet,
        (_, true) => Detail::Verbose,
        _ => Detail::Normal,
    }
}
