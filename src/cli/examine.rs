//! `memlint examine`: one snapshot in, what it has to say out, for `memlint conclude`.

use std::fs;
use std::num::NonZeroUsize;
use std::path::Path;
use std::process::ExitCode;

use clap::ArgMatches;

use super::arguments::{Examine, Naming, Sources};
use super::check;
use super::error::CliError;
use super::file;
use super::reading::read;
use crate::engine::Plan;
use crate::input::Source;
use crate::part::Part;
use crate::picture::Room;

pub(super) fn run(arguments: &Examine, matches: &ArgMatches) -> Result<ExitCode, CliError> {
    let Examine { path, output, name, page, configuring, limits } = arguments;
    // Neither sources nor a baseline are asked for: what they say of findings is decided in the end.
    let settings = configuring.settings(&Sources::default(), &Naming::default(), matches)?;
    let plan = Plan::of(&settings);
    let plan = match page {
        Some(recordings) => plan.drawing(Room::PAGE.shared_by(recordings.get())),
        None => plan,
    };
    let source = Source::named(path);
    permit(&source, output)?;
    let mut input = read(&source, limits)?;
    if let Some(name) = name {
        input.name = name.display().to_string();
    }
    let examination = check::examine(&input, &plan)?;
    let part = Part { asked: plan.mark(), page: page.map(NonZeroUsize::get), examination };
    file::replace(output, |out| part.write(out))?;
    Ok(ExitCode::SUCCESS)
}

/// Refuses to write over the snapshot.
fn permit(source: &Source, output: &Path) -> Result<(), CliError> {
    let Source::File(input) = source else { return Ok(()) };
    let real = |path: &Path| fs::canonicalize(path).ok();
    if real(input).is_some_and(|input| Some(input) == real(output)) {
        return Err(CliError::SameFile { name: output.display().to_string() });
    }
    Ok(())
}
