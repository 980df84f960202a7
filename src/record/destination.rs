//! Where snapshots go: a file for one process, or a folder.
//!
//! Always: what cannot be written is told before the program starts, and nothing that exists is lost unless its owner says so.

use std::env;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::error::RecordError;
use super::{manifest, partial};

/// The endings of a snapshot's file, and of those of its other ranks.
const ENDINGS: [&str; 4] = [".pickle", ".pkl", ".pickle.zst", ".pkl.zst"];
/// Endings of snapshots that memlint reads and does not write.
const OTHERS: [&str; 4] = [".pickle.gz", ".pkl.gz", ".pickle.xz", ".pkl.xz"];
/// What a folder is called that nobody named, with a number.
const FOLDER: &str = "recording";
/// What the snapshot of a job with one process is called in a folder.
const NAME: &str = "snapshot";

/// How launchers tell a process its rank and the number of ranks: as the hook asks for them
/// (`python/memlint/_recorder/process.py`).
const LAUNCHERS: [(&str, &str); 5] = [
    ("RANK", "WORLD_SIZE"),
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
    ("SLURM_PROCID", "SLURM_NTASKS"),
    ("PMI_RANK", "PMI_SIZE"),
    ("LOCAL_RANK", "LOCAL_WORLD_SIZE"),
];

/// Where snapshots go.
#[derive(Debug, PartialEq, Eq)]
pub struct Destination {
    /// The folder, as an absolute path: a program may change its own.
    pub(super) folder: PathBuf,
    /// The name of a single process's snapshot.
    pub(super) name: String,
    /// How the names of files end.
    pub(super) ending: &'static str,
    /// Whether a file was named.
    pub(super) is_file: bool,
    /// Whether the folder was made for this.
    is_new: bool,
}

impl Destination {
    /// Prepares what was named, or a new folder where nothing was.
    ///
    /// # Errors
    /// Where something is in the way, or cannot be written.
    pub fn prepare(given: Option<&Path>, replaces: bool) -> Result<Destination, RecordError> {
        let destination = match given {
            None => Destination::new_folder(Path::new("."))?,
            Some(path) => Destination::named(path, replaces)?,
        };
        match partial::hidden_in(&destination.folder) {
            Ok(_) => Ok(destination),
            Err(error) => Err(destination.unwritable(error)),
        }
    }

    fn named(path: &Path, replaces: bool) -> Result<Destination, RecordError> {
        let file = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        if OTHERS.iter().any(|ending| file.ends_with(ending)) {
            return Err(RecordError::Ending { name: path.to_owned() });
        }
        // The longest that fits.
        let ending = ENDINGS.into_iter().rev().find(|ending| file.ends_with(ending) && file != *ending);
        match ending {
            Some(ending) if !path.is_dir() => Destination::file(path, &file, ending, replaces),
            _ => Destination::folder(path, replaces),
        }
    }

    fn file(
        path: &Path,
        file: &str,
        ending: &'static str,
        replaces: bool,
    ) -> Result<Destination, RecordError> {
        if path.exists() && !replaces {
            return Err(RecordError::Exists { name: path.to_owned() });
        }
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let unwritable = |error| RecordError::Unwritable { name: path.to_owned(), error };
        let is_new = !folder.exists();
        fs::create_dir_all(folder).map_err(unwritable)?;
        let folder = absolute(folder).map_err(unwritable)?;
        let name = file.strip_suffix(ending).unwrap_or(file).to_owned();
        let destination = Destination { folder, name, ending, is_file: true, is_new };
        match destination.earlier(rank_of_launcher()).map_err(unwritable)? {
            Some(earlier) if !replaces => Err(RecordError::Exists { name: path.with_file_name(earlier) }),
            _ => Ok(destination),
        }
    }

    /// The first snapshot that stands where one of this recording's would go, of a rank, a step or a process. Where a launcher started
    /// memlint itself, other ranks' files may be of this very job: only its own counts.
    fn earlier(&self, rank: Option<u32>) -> io::Result<Option<String>> {
        let beginnings: Vec<String> = match rank {
            Some(rank) => ["_", "."].map(|next| format!("{}_rank{rank}{next}", self.name)).into(),
            None => ["_rank", "_step_", "_pid"].map(|part| format!("{}{part}", self.name)).into(),
        };
        let mut found = Vec::new();
        for entry in fs::read_dir(&self.folder)? {
            let file = entry?.file_name().to_string_lossy().into_owned();
            let is_one = beginnings.iter().any(|beginning| file.starts_with(beginning.as_str()));
            found.extend((is_one && file.ends_with(self.ending)).then_some(file));
        }
        found.sort();
        Ok(found.into_iter().next())
    }

    fn folder(path: &Path, replaces: bool) -> Result<Destination, RecordError> {
        let failed = |error| RecordError::Unwritable { name: path.to_owned(), error };
        let is_new = !path.exists();
        fs::create_dir_all(path).map_err(failed)?;
        if !is_new && fs::read_dir(path).map_err(failed)?.next().is_some() {
            if !replaces {
                return Err(RecordError::NotEmpty { name: path.to_owned() });
            }
            manifest::remove_listed(path).map_err(failed)?;
        }
        Destination::in_folder(path, is_new).map_err(failed)
    }

    /// The first of `recording-1`, `recording-2`, ... that is not there.
    fn new_folder(within: &Path) -> Result<Destination, RecordError> {
        let mut number = 1_u32;
        loop {
            let path = within.join(format!("{FOLDER}-{number}"));
            match fs::create_dir(&path) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => number += 1,
                made => {
                    let made = made.and_then(|()| Destination::in_folder(&path, true));
                    return made.map_err(|error| RecordError::Unwritable { name: path, error });
                }
            }
        }
    }

    fn in_folder(path: &Path, is_new: bool) -> io::Result<Destination> {
        let folder = absolute(path)?;
        Ok(Destination { folder, name: NAME.to_owned(), ending: ".pickle.zst", is_file: false, is_new })
    }

    /// The folder of the snapshots, where it is theirs alone.
    pub fn own_folder(&self) -> Option<&Path> {
        (!self.is_file).then_some(&*self.folder)
    }

    pub(super) fn is_compressed(&self) -> bool {
        Path::new(self.ending).extension().is_some_and(|ending| ending == "zst")
    }

    fn unwritable(&self, error: io::Error) -> RecordError {
        self.give_up();
        RecordError::Unwritable { name: self.folder.clone(), error }
    }

    /// Leaves no empty folder behind that was made in vain.
    pub fn give_up(&self) {
        if self.is_new {
            // One that is not empty stays.
            let _ = fs::remove_dir(&self.folder);
        }
    }
}

/// The rank of memlint's own process, where a launcher started one for each rank.
fn rank_of_launcher() -> Option<u32> {
    let number = |name: &str| env::var(name).ok()?.parse::<u32>().ok();
    let told = LAUNCHERS.into_iter().find_map(|(rank, ranks)| number(rank).zip(number(ranks)));
    told.filter(|(_, ranks)| *ranks > 1).map(|(rank, _)| rank)
}

fn absolute(path: &Path) -> io::Result<PathBuf> {
    fs::canonicalize(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_tells_a_file_from_a_folder() {
        let place = tempfile::tempdir().unwrap();
        let prepared = |name: &str| Destination::prepare(Some(&place.path().join(name)), false);
        let file = prepared("a.pickle.zst").unwrap();
        assert_eq!((file.name.as_str(), file.ending, file.is_file), ("a", ".pickle.zst", true));
        let plain = prepared("a.b.pkl").unwrap();
        assert_eq!((plain.name.as_str(), plain.ending, plain.is_compressed()), ("a.b", ".pkl", false));
        let folder = prepared("runs/today").unwrap();
        assert!(folder.own_folder().is_some_and(|folder| folder.ends_with("runs/today")));
        assert!(matches!(prepared("a.pickle.gz"), Err(RecordError::Ending { .. })));
        let made = prepared("missing/a.pickle").unwrap();
        made.give_up();
        assert!(!place.path().join("missing").exists(), "nothing was recorded");
        fs::write(place.path().join("in-the-way"), "").unwrap();
        assert!(matches!(prepared("in-the-way/a.pickle"), Err(RecordError::Unwritable { .. })));
    }

    #[test]
    fn nothing_that_exists_is_lost() {
        let place = tempfile::tempdir().unwrap();
        let path = |name: &str| place.path().join(name);
        fs::write(path("a.pickle"), "1").unwrap();
        assert!(matches!(
            Destination::prepare(Some(&path("a.pickle")), false),
            Err(RecordError::Exists { .. })
        ));
        assert!(Destination::prepare(Some(&path("a.pickle")), true).is_ok());
        fs::write(path("b_rank3.pickle"), "1").unwrap();
        let several = Destination::prepare(Some(&path("b.pickle")), false);
        assert!(matches!(several, Err(RecordError::Exists { name }) if name.ends_with("b_rank3.pickle")));
        let destination = Destination::prepare(Some(&path("b.pickle")), true).unwrap();
        let own = |rank| destination.earlier(Some(rank)).unwrap();
        assert_eq!(
            (own(3), own(0)),
            (Some("b_rank3.pickle".to_owned()), None),
            "another rank's is of this job"
        );
        assert!(matches!(Destination::prepare(Some(place.path()), false), Err(RecordError::NotEmpty { .. })));
        assert!(Destination::prepare(Some(place.path()), true).is_ok());
        assert_eq!(fs::read(path("a.pickle")).unwrap(), b"1", "only what a manifest lists is replaced");
    }

    #[test]
    fn unnamed_folders_are_counted_and_go_if_they_stay_empty() {
        let place = tempfile::tempdir().unwrap();
        let first = Destination::new_folder(place.path()).unwrap();
        let second = Destination::new_folder(place.path()).unwrap();
        assert!(first.folder.ends_with("recording-1") && second.folder.ends_with("recording-2"));
        fs::write(first.folder.join("x"), "").unwrap();
        first.give_up();
        second.give_up();
        assert!(first.folder.exists() && !second.folder.exists());
    }
}
