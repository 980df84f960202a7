//! Where the configuration is looked for.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::error::ConfigError;

/// The names of a configuration of its own, in the order in which they are taken; as with ruff, the first that is there
/// wins and nothing is merged.
const OWN: [&str; 2] = ["memlint.toml", ".memlint.toml"];
/// The file that may hold one among other things, after the others.
const SHARED: &str = "pyproject.toml";

/// A configuration that was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Found {
    /// The path, relative to the folder where the search began.
    pub(super) path: PathBuf,
    /// What it holds.
    pub(super) text: String,
    /// Others in the same folder, which are not read.
    pub(super) passed_over: Vec<PathBuf>,
}

/// Looks in a folder and then in those above it, up to the root of the repository (a folder with `.git`) or of the file
/// system. The first folder that holds a configuration decides.
pub(super) fn discover(start: &Path) -> Result<Option<Found>, ConfigError> {
    let unreadable = |error| ConfigError::Unreadable { name: start.display().to_string(), error };
    let absolute = fs::canonicalize(start).map_err(unreadable)?;
    let mut here = start.to_owned();
    for folder in absolute.ancestors() {
        let mut held = Vec::new();
        for name in OWN.iter().chain([&SHARED]) {
            let path = if here == Path::new(".") { PathBuf::from(name) } else { here.join(name) };
            let text = read(&path)?.filter(|text| *name != SHARED || speaks_of_memlint(text));
            held.extend(text.map(|text| (path, text)));
        }
        let mut held = held.into_iter();
        if let Some((path, text)) = held.next() {
            return Ok(Some(Found { path, text, passed_over: held.map(|(path, _)| path).collect() }));
        }
        if folder.join(".git").exists() {
            return Ok(None);
        }
        here = if here == Path::new(".") { PathBuf::from("..") } else { here.join("..") };
    }
    Ok(None)
}

/// Whether a path ends in one of the names that a configuration goes by.
pub fn is_named_like_one(path: &Path) -> bool {
    path.file_name().is_some_and(|name| OWN.iter().chain([&SHARED]).any(|one| name == *one))
}

/// Whether a path is that of a file which holds other tools' settings, too.
pub(super) fn is_shared(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name == SHARED)
}

/// The file's text; `None` where there is no such file.
fn read(path: &Path) -> Result<Option<String>, ConfigError> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        // A link that leads nowhere is there, and so is a folder: somebody means it to be the configuration.
        Err(error) if error.kind() == io::ErrorKind::NotFound && fs::symlink_metadata(path).is_err() => {
            Ok(None)
        }
        Err(error) => Err(ConfigError::Unreadable { name: path.display().to_string(), error }),
    }
}

/// Whether a shared file has a table for memlint. One that is no TOML is taken, so that reading it tells what is wrong
/// instead of passing over a configuration.
fn speaks_of_memlint(text: &str) -> bool {
    match text.parse::<toml::Table>() {
        Ok(table) => table.get("tool").and_then(|tool| tool.get("memlint")).is_some(),
        Err(_) => text.contains("memlint"),
    }
}
