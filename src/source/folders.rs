//! What folders hold, each looked through once.
//!
//! In: a folder and a name. Out: whether the name is there, and whether it is a link. Always: a folder is listed at most once
//! in a run, whoever asks, so that what is not there costs nothing the second time: a thousand ranks ask for the same few
//! files, and on a network file system each question is a journey. Only names that exist are kept.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::rc::Rc;

/// Folders with more names are not listed but asked for each name: no person keeps so many programs in one (chosen).
const MOST_NAMES: usize = 10_000;

/// What stands behind a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FolderEntry {
    /// A link, to wherever.
    Link,
    /// A file, a folder, a pipe.
    Itself,
}

/// The names in a folder; `None` where they are too many, or may not be listed.
pub(super) type Listing = Option<BTreeMap<OsString, FolderEntry>>;

/// The folders that were looked through.
#[derive(Debug, Default)]
pub(super) struct Folders {
    known: RefCell<BTreeMap<PathBuf, Rc<Listing>>>,
}

impl Folders {
    /// The entry of a name in a folder, if it is there.
    pub(super) fn entry(&self, folder: &Path, name: &OsStr) -> Option<FolderEntry> {
        if let Some(names) = &*self.names(folder) {
            return names.get(name).copied();
        }
        let metadata = fs::symlink_metadata(folder.join(name)).ok()?;
        Some(if metadata.is_symlink() { FolderEntry::Link } else { FolderEntry::Itself })
    }

    /// The names in a folder: none where it is no folder.
    pub(super) fn names(&self, folder: &Path) -> Rc<Listing> {
        if let Some(known) = self.known.borrow().get(folder) {
            return Rc::clone(known);
        }
        let names = Rc::new(list(folder));
        self.known.borrow_mut().insert(folder.to_owned(), Rc::clone(&names));
        names
    }
}

#[cfg(test)]
impl Folders {
    /// How many folders were looked through.
    pub(super) fn looked_through(&self) -> usize {
        self.known.borrow().len()
    }
}

fn list(folder: &Path) -> Listing {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) => {
            let nothing = matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory);
            return nothing.then(BTreeMap::new);
        }
    };
    let mut names = BTreeMap::new();
    for entry in entries {
        let entry = entry.ok()?;
        let kind = if entry.file_type().ok()?.is_symlink() { FolderEntry::Link } else { FolderEntry::Itself };
        names.insert(entry.file_name(), kind);
        if names.len() > MOST_NAMES {
            return None;
        }
    }
    Some(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_looked_through_once_and_what_is_not_there_stays_so() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("train.py"), "").unwrap();
        let folders = Folders::default();
        let entry = |name: &str| folders.entry(folder.path(), OsStr::new(name));
        assert_eq!((entry("train.py"), entry("model.py")), (Some(FolderEntry::Itself), None));
        fs::write(folder.path().join("model.py"), "").unwrap();
        assert_eq!(entry("model.py"), None, "remembered");
        let file = folder.path().join("train.py");
        assert_eq!(folders.entry(&file, OsStr::new("x.py")), None, "a file holds nothing");
        assert_eq!(folders.entry(&folder.path().join("gone"), OsStr::new("x.py")), None);
    }

    #[test]
    fn a_folder_of_very_many_names_is_asked_for_each() {
        let folder = tempfile::tempdir().unwrap();
        for number in 0..=MOST_NAMES {
            fs::write(folder.path().join(number.to_string()), "").unwrap();
        }
        let folders = Folders::default();
        assert!(folders.names(folder.path()).is_none());
        assert_eq!(folders.entry(folder.path(), OsStr::new("7")), Some(FolderEntry::Itself));
        assert_eq!(folders.entry(folder.path(), OsStr::new("train.py")), None);
    }
}
