//! `memlint check`: the gate.

use std::process::ExitCode;

use super::arguments::{Check, Color};
use super::error::CliError;
use super::reading::{read_all, source_map, sources};
use super::{file, print, terminal};
use crate::engine::{self, Input, Report};
use crate::gate::Gate;
use crate::report::{Detail, Look};
use crate::rules;
use crate::snapshot::{Action, DeviceTrace, Gap, Snapshot};
use crate::source::{self, SourceMap};

pub(super) fn run(check: &Check, color: Color) -> Result<ExitCode, CliError> {
    let sources = sources(&check.paths)?;
    let rules = rules::by_default();
    let examinations = read_all(&sources, &check.reading, check.jobs, |input| {
        refuse_what_cannot_be_judged(input)?;
        Ok(engine::examine(input, &rules))
    })?;
    let mut report = engine::conclude(examinations, &rules);
    let files = source_map(&check.reading, &sources);
    source::settle(&mut report.findings, &files);
    Gate { fail_on: check.fail_on.severity() }.judge(&mut report);
    write(check, &report, &files, color)?;
    Ok(ExitCode::from(u8::from(report.verdict.fails() && !check.exit_zero)))
}

/// A snapshot in which nothing can be found wrong must not pass.
fn refuse_what_cannot_be_judged(input: &Input) -> Result<(), CliError> {
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
