//! A stand-in for CUDA, made to measure for the PyTorch that a program uses.
//!
//! In: the folder of a PyTorch. Out: shared libraries to be loaded before it. One of them is memlint's own (`standin/`), compiled with it; one
//! has every other function that the wheel asks for and that only says it was called; and each of NVIDIA's libraries has an empty one of
//! its name, so that PyTorch's wheel alone is enough and no real one is loaded.

mod library;
mod wheel;

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::Serialize;

use self::library::Library;
use self::wheel::Versions;
use super::error::RecordError;
use super::partial;

/// The compiled stand-in; empty where there is none.
const COMPILED: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/libmemlint-standin.so"));

/// The names of the two libraries that have functions.
const CORE: &str = "libmemlint-standin.so";
const STUBS: &str = "libmemlint-stubs.so";
/// Libraries that PyTorch looks for by itself and no wheel lists: the driver, and NVIDIA's management library.
const OF_DRIVER: [&str; 2] = ["libcuda.so.1", "libnvidia-ml.so.1"];

/// Fails where this memlint has no stand-in.
pub(super) fn check() -> Result<(), RecordError> {
    if COMPILED.is_empty() { Err(RecordError::NoStandIn) } else { Ok(()) }
}

/// What a program is told that is about to load PyTorch.
#[derive(Debug, Serialize)]
struct WheelAnswer {
    /// In the order in which they are to be loaded; the first is the one that is configured.
    libraries: Vec<PathBuf>,
    versions: Versions,
}

/// The stand-ins of a job: one for each PyTorch in it.
pub(super) struct StandIns {
    folder: PathBuf,
    answers: BTreeMap<PathBuf, Option<WheelAnswer>>,
    /// Why there are none for some.
    trouble: Vec<RecordError>,
}

impl StandIns {
    /// None yet, in a folder that need not be there.
    pub(super) fn in_folder(folder: PathBuf) -> StandIns {
        StandIns { folder, answers: BTreeMap::new(), trouble: Vec::new() }
    }

    /// Answers a process that found a PyTorch in a folder and waits for a file.
    pub(super) fn answer(&mut self, torch: &Path, file: &Path) {
        if !self.answers.contains_key(torch) {
            let folder = self.folder.join(self.answers.len().to_string());
            let answer = prepare(torch, &folder).map_err(|error| self.trouble.push(error)).ok();
            self.answers.insert(torch.to_owned(), answer);
        }
        let answer = self.answers.get(torch);
        let written = partial::replace(file, |out| serde_json::to_writer(out, &answer).map_err(Into::into));
        if let Err(error) = written {
            self.trouble.push(RecordError::Hook { folder: file.to_owned(), error });
        }
    }

    /// What went wrong.
    pub(super) fn into_trouble(self) -> Vec<RecordError> {
        self.trouble
    }
}

/// Writes the libraries that a PyTorch needs into a folder.
fn prepare(torch: &Path, folder: &Path) -> Result<WheelAnswer, RecordError> {
    let versions = wheel::versions(torch)?;
    let failed = |error| RecordError::Hook { folder: folder.to_owned(), error };
    fs::create_dir_all(folder).map_err(failed)?;
    let core = folder.join(CORE);
    fs::write(&core, COMPILED).map_err(failed)?;
    let mut wants = wheel::read(torch)?;
    for known in wheel::defined_by(&core)? {
        wants.functions.remove(&known);
    }
    wants.libraries.extend(OF_DRIVER.map(str::to_owned));
    let functions: Vec<&str> = wants.functions.iter().map(String::as_str).collect();
    let mut libraries = vec![core];
    let mut write = |name: &str, library: &Library<'_>| -> io::Result<()> {
        let path = folder.join(name);
        fs::write(&path, library.write().map_err(io::Error::other)?)?;
        libraries.push(path);
        Ok(())
    };
    write(STUBS, &Library { soname: STUBS, needed: &[CORE], functions: &functions }).map_err(failed)?;
    for (number, soname) in wants.libraries.iter().enumerate() {
        // Found by the name inside. PyTorch looks for files of the usual names, too, and then loads what else there is of NVIDIA's.
        let library = Library { soname, needed: &[CORE, STUBS], functions: &[] };
        write(&format!("{number}.so"), &library).map_err(failed)?;
    }
    Ok(WheelAnswer { libraries, versions })
}
