//! Snapshots and sources, as the command line names them.

use std::env;
use std::path::Path;

use super::arguments::{Limits, Reading};
use super::error::CliError;
use super::progress::Progress;
use crate::engine::Input;
use crate::input::Source;
use crate::snapshot::Snapshot;
use crate::source::{Checkout, SourceMap};

/// Reads and understands one snapshot.
pub(super) fn read(source: &Source, reading: &Reading) -> Result<Input, CliError> {
    let input = Input::of(source.name(), read_snapshot(source, &reading.limits)?);
    Ok(Input { rank: source.rank(), ..input })
}

/// Reads one snapshot.
pub(super) fn read_snapshot(source: &Source, limits: &Limits) -> Result<Snapshot, CliError> {
    let mut stream = source.open(&limits.of_input())?;
    let read = Snapshot::read(Progress::of(&mut stream, &source.name()), &limits.of_pickle());
    read.map_err(|error| match stream.into_failure() {
        Some(failure) => CliError::Input(failure),
        None => CliError::Snapshot { name: source.name(), error },
    })
}

/// Where the program's source is looked for.
pub(super) fn source_map(reading: &Reading, snapshots: &[Source]) -> SourceMap {
    let maps = reading.path_map.clone();
    let checkout = env::current_dir().map(|folder| Checkout::around(&folder)).unwrap_or_default();
    if !reading.source_root.is_empty() {
        return SourceMap::new(reading.source_root.iter().cloned(), maps).within(checkout);
    }
    let folders = snapshots.iter().filter_map(|snapshot| match snapshot {
        Source::File(path) => path.parent().map(Path::to_owned),
        Source::Stdin => None,
    });
    SourceMap::unasked(folders, maps).within(checkout)
}
