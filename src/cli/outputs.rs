//! Which files a report may replace: none that the run itself reads.

use std::fs;
use std::path::{Path, PathBuf};

use super::arguments::{Configuring, Known};
use super::error::CliError;
use super::reading;
use crate::config::{self, Settings};
use crate::input::{Expansion, Source};

const CHECKED: &str = "it is a snapshot to be checked";
const KNOWN: &str = "it is what the check is held against";
const CONFIGURATION: &str = "it is a configuration";

/// What a run reads.
pub(super) struct NamedInputs<'a> {
    /// What is named to be judged.
    pub(super) paths: &'a [PathBuf],
    pub(super) known: &'a Known,
    pub(super) configuring: &'a Configuring,
}

/// Refuses, before anything is written, what would lose an input or one of two reports. `found` is what the arguments stand
/// for, where that is known: a recording that a folder or a pattern names is one of them.
pub(super) fn permit(
    read: &NamedInputs,
    written: &[&Path],
    found: Option<&Expansion>,
) -> Result<(), CliError> {
    let NamedInputs { paths: named, known, configuring } = read;
    let is_here = |path: &&PathBuf| !matches!(Source::named(path), Source::Remote(_));
    let base: &[PathBuf] = known.against.as_ref().filter(is_here).map_or(&[], std::slice::from_ref);
    // Where the base is wrong, reading it tells so.
    let base_found = reading::sources(base).ok();
    let inputs = named.iter().cloned().chain(found.into_iter().flat_map(paths));
    let known = known.paths().map(Path::to_owned).chain(base_found.iter().flat_map(paths));
    let configuration = configuring.locating.config.iter().cloned();
    let taken: Vec<(PathBuf, &'static str)> = inputs
        .map(|path| (path, CHECKED))
        .chain(known.map(|path| (path, KNOWN)))
        .chain(configuration.map(|path| (path, CONFIGURATION)))
        .collect();
    for (position, path) in written.iter().enumerate() {
        if let Some((_, why)) = taken.iter().find(|(other, _)| is_same(path, other)) {
            return refuse(path, why);
        }
        // One that is looked for lies in a folder above, maybe, and may be broken.
        if path.exists() && config::is_named_like_one(path) {
            return refuse(path, CONFIGURATION);
        }
        if written.iter().take(position).any(|other| is_same(path, other)) {
            return refuse(path, "it is given twice");
        }
    }
    Ok(())
}

/// Refuses what would lose the baseline that the configuration names.
pub(super) fn permit_beside(written: &[&Path], settings: &Settings) -> Result<(), CliError> {
    let Some(baseline) = &settings.baseline else { return Ok(()) };
    match written.iter().find(|path| is_same(path, &baseline.value)) {
        Some(path) => refuse(path, KNOWN),
        None => Ok(()),
    }
}

fn refuse(path: &Path, why: &'static str) -> Result<(), CliError> {
    Err(CliError::OutputTaken { name: path.display().to_string(), why })
}

/// The files that an argument stands for, and those that it leaves out: none of them is a report.
fn paths(found: &Expansion) -> Vec<PathBuf> {
    let read = found.sources.iter().filter_map(|source| match source {
        Source::File(path) => Some(path.clone()),
        Source::Stdin | Source::Remote(_) => None,
    });
    read.chain(found.left_out.iter().map(|one| one.path.clone())).collect()
}

/// Whether two paths name one regular file; devices such as `/dev/stderr` may be written more than once.
fn is_same(one: &Path, other: &Path) -> bool {
    let file = |path: &Path| fs::canonicalize(path).ok().filter(|path| path.is_file());
    one == other || file(one).is_some_and(|one| Some(one) == file(other))
}
