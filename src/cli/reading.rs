//! Snapshots and sources, as the command line names them.

use std::path::{Path, PathBuf};

use super::arguments::Limits;
use super::error::CliError;
use super::progress::Progress;
use crate::config::{PathMapping, Setting};
use crate::engine::Input;
use crate::input::Source;
use crate::snapshot::Snapshot;
use crate::source::{PathMap, SourceMap};

/// Reads and understands one snapshot.
pub(super) fn read(source: &Source, limits: &Limits) -> Result<Input, CliError> {
    let input = Input::of(source.name(), read_snapshot(source, limits)?);
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
pub(super) fn source_map(
    roots: &[Setting<PathBuf>],
    maps: &[Setting<PathMapping>],
    snapshots: &[Source],
) -> SourceMap {
    let map = |map: &Setting<PathMapping>| PathMap { from: map.value.from.clone(), to: map.value.to.clone() };
    let maps = maps.iter().map(map).collect();
    if !roots.is_empty() {
        return SourceMap::new(roots.iter().map(|root| root.value.clone()), maps);
    }
    let folders = snapshots.iter().filter_map(|snapshot| match snapshot {
        Source::File(path) => path.parent().map(Path::to_owned),
        Source::Stdin => None,
    });
    SourceMap::unasked(folders, maps)
}
