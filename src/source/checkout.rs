//! The working copy that the programs lie in: CI wants files named from its root.

use std::path::{Component, Path, PathBuf};

/// What marks the root of a working copy: a folder, or a file in further worktrees of git.
const MARKS: [&str; 4] = [".git", ".hg", ".jj", ".sl"];

/// A working copy, and where in it memlint was started.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Checkout {
    root: PathBuf,
    current: PathBuf,
}

impl Checkout {
    /// The innermost working copy around a folder; the folder itself where there is none.
    pub fn around(current: &Path) -> Checkout {
        let marked = |folder: &&Path| MARKS.iter().any(|mark| folder.join(mark).exists());
        let root = current.ancestors().find(marked).unwrap_or(current);
        Checkout { root: root.to_owned(), current: current.to_owned() }
    }

    /// The folder that is its root.
    pub(super) fn root(&self) -> &Path {
        &self.root
    }

    /// A file's path from the root, with `/` between its parts; `None` where the file lies elsewhere.
    pub fn path(&self, file: &str) -> Option<String> {
        let whole = plain(&self.current.join(file));
        let below = whole.strip_prefix(plain(&self.root)).ok()?;
        let mut parts = Vec::new();
        for part in below.components() {
            match part {
                Component::Normal(part) => parts.push(part.to_str()?),
                _ => return None,
            }
        }
        (!parts.is_empty()).then(|| parts.join("/"))
    }
}

/// A path without `.` and `..`, by its words alone.
pub fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir if plain.file_name().is_some() => {
                plain.pop();
            }
            part => plain.push(part),
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_named_from_the_root_wherever_memlint_was_started() {
        let checkout = Checkout { root: "/work/job".into(), current: "/work/job/scripts".into() };
        let path = |file| checkout.path(file);
        assert_eq!(path("train.py").as_deref(), Some("scripts/train.py"));
        assert_eq!(path("./../src/model.py").as_deref(), Some("src/model.py"));
        assert_eq!(path("/work/job/src/model.py").as_deref(), Some("src/model.py"));
        assert_eq!(path("/work/other/model.py"), None);
        assert_eq!(path("../../other/model.py"), None);
        assert_eq!(path(".."), None);
    }

    #[test]
    fn without_a_working_copy_names_stay_as_they_are() {
        assert_eq!(Checkout::default().path("src/a.py").as_deref(), Some("src/a.py"));
        assert_eq!(Checkout::default().path("/opt/job/a.py"), None);
        assert_eq!(Checkout::default().path("../a.py"), None);
    }
}
