//! `memlint check`: the gate.

use std::path::Path;
use std::process::ExitCode;

use super::against::Base;
use super::arguments::{Check, Color};
use super::error::CliError;
use super::reading::{read, source_map};
use super::{file, print, terminal};
use crate::comparison::Measured;
use crate::engine::{self, Input, Report};
use crate::gate::Gate;
use crate::input::Source;
use crate::report::{Detail, Look};
use crate::snapshot::{Action, DeviceTrace, Gap, Snapshot};
use crate::source::{self, SourceMap};

pub(super) fn run(check: &Check, color: Color) -> Result<ExitCode, CliError> {
    let known = check.known.read()?;
    let mut sources = Vec::new();
    for path in &check.paths {
        sources.extend(Source::named(path).expand()?);
    }
    let files = source_map(&check.reading, &sources);
    let reads_stdin = |source: &Source| matches!(source, Source::Stdin);
    if sources.iter().any(reads_stdin) && check.known.against.as_deref() == Some(Path::new("-")) {
        return Err(CliError::StdinTwice);
    }
    let base =
        check.known.against.as_deref().map(|path| Base::read(path, &check.reading, &files)).transpose()?;
    let mut inputs = Vec::new();
    for source in &sources {
        let input = read(source, &check.reading)?;
        refuse_what_cannot_be_judged(&input)?;
        inputs.push(input);
    }
    let measured: Vec<Measured> = base.iter().flat_map(|_| inputs.iter().map(Measured::of)).collect();
    let mut report = engine::check(inputs);
    source::settle(&mut report.findings, &files);
    known.settle(&mut report, check.quiet)?;
    if let Some(base) = &base {
        base.settle(&mut report, &measured)?;
    }
    Gate { fail_on: check.fail_on.severity() }.judge(&mut report);
    write(check, &report, &files, color)?;
    Ok(ExitCode::from(u8::from(report.verdict.fails() && !check.exit_zero)))
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

fn detail(check: &Check) -> Detail {
    match (check.quiet, check.verbose) {
        (true, _) => Detail::Quiet,
        (_, true) => Detail::Verbose,
        _ => Detail::Normal,
    }
}
