//! `manifest.json`, which says of a folder of snapshots what they do not: which program wrote them, and on what.
//!
//! Always: nothing of the environment, and of the command nothing that looks like a secret.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;
use std::process::Command;

use serde::{Deserialize, Serialize};

use super::error::RecordError;
use super::outcome::PackedSnapshot;
use super::{partial, secret};

const NAME: &str = "manifest.json";
const SCHEMA: &str = "memlint-recording/1";
/// No manifest is longer: some 300 bytes a snapshot.
const MOST_BYTES: u64 = 64 << 20;

#[derive(Serialize)]
struct Manifest<'a> {
    schema: &'static str,
    memlint: &'static str,
    /// What was run.
    command: Vec<String>,
    /// The commit of the working copy, with `-dirty` behind it where files differ from it.
    revision: Option<String>,
    snapshots: Vec<Entry<'a>>,
}

#[derive(Serialize)]
struct Entry<'a> {
    file: String,
    rank: Option<u32>,
    reason: &'a str,
    optimizer_steps: usize,
    torch: &'a str,
    cuda: Option<&'a str>,
    device: &'a str,
}

/// What is read of a manifest.
#[derive(Deserialize)]
struct Listed {
    schema: String,
    snapshots: Vec<ListedFile>,
}

#[derive(Deserialize)]
struct ListedFile {
    file: String,
}

/// Writes the manifest of a folder.
pub(super) fn write(
    folder: &Path,
    command: &[OsString],
    snapshots: &[PackedSnapshot],
) -> Result<(), RecordError> {
    let words: Vec<String> = command.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let manifest = Manifest {
        schema: SCHEMA,
        memlint: env!("CARGO_PKG_VERSION"),
        command: secret::without_secrets(words.iter().map(String::as_str)),
        revision: revision(),
        snapshots: snapshots.iter().map(Entry::of).collect(),
    };
    let path = folder.join(NAME);
    let written = partial::replace(&path, |out| {
        serde_json::to_writer_pretty(&mut *out, &manifest)?;
        out.write_all(b"\n")
    });
    written.map_err(|error| RecordError::Unwritable { name: path, error })
}

impl Entry<'_> {
    fn of(snapshot: &PackedSnapshot) -> Entry<'_> {
        let written = &snapshot.written;
        Entry {
            file: snapshot.path.file_name().unwrap_or_default().to_string_lossy().into_owned(),
            rank: written.rank,
            reason: &written.reason,
            optimizer_steps: written.steps,
            torch: &written.torch,
            cuda: written.cuda.as_deref(),
            device: &written.device,
        }
    }
}

/// The commit of the working copy in which memlint runs, if there is one and a git.
fn revision() -> Option<String> {
    let git =
        Command::new("git").args(["describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"]).output();
    let said = git.ok().filter(|git| git.status.success())?.stdout;
    String::from_utf8(said).ok().map(|said| said.trim().to_owned())
}

/// Removes the snapshots that a folder's manifest lists, and the manifest. A folder without one stays as it is.
pub(super) fn remove_listed(folder: &Path) -> io::Result<()> {
    let path = folder.join(NAME);
    let file = match File::open(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        file => file?,
    };
    let listed: Listed = serde_json::from_reader(io::Read::take(file, MOST_BYTES))?;
    if listed.schema != SCHEMA {
        return Err(io::Error::other(format!("{NAME} is of another schema, {}", listed.schema)));
    }
    for ListedFile { file } in listed.snapshots {
        // Nothing outside the folder, whoever wrote this.
        if Path::new(&file).file_name().is_some_and(|name| *name == *file) {
            match fs::remove_file(folder.join(&file)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
    }
    fs::remove_file(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_listed_goes_and_nothing_else() {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().join("in");
        fs::create_dir(&folder).unwrap();
        for name in ["outside", "in/listed.pickle.zst", "in/other.pickle.zst"] {
            fs::write(place.path().join(name), "").unwrap();
        }
        let manifest = |schema: &str| {
            let text = format!(
                r#"{{"schema": "{schema}", "snapshots": [{{"file": "listed.pickle.zst"}}, {{"file": "../outside"}}, {{"file": "gone"}}]}}"#
            );
            fs::write(folder.join(NAME), text).unwrap();
        };
        manifest("another/9");
        assert!(remove_listed(&folder).is_err());
        manifest(SCHEMA);
        remove_listed(&folder).unwrap();
        let left: Vec<_> = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(left, ["other.pickle.zst"]);
        assert!(place.path().join("outside").exists());
        remove_listed(&folder).unwrap();
    }
}
