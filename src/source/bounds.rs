//! Which files may be opened: those below the folders that the user named, or else those of the working copy.
//!
//! In: a folder and a path that goes on from it. Out: where that really leads, if it is inside. Always: links are read before
//! they are followed, so that nothing outside is opened, looked at or waited for, whatever a recording or a link says.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::fs;
use std::path::{Component, Path, PathBuf};

use super::checkout::plain;
use super::folders::{FolderEntry, Folders};

/// As many links as Linux follows in one path (`MAXSYMLINKS`).
const MOST_LINKS: usize = 40;

/// Folders and files with all that lies below them, links in their own paths resolved.
#[derive(Debug, Default)]
pub(super) struct Bounds {
    folders: Vec<PathBuf>,
}

/// Where a path leads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Leads {
    /// To something that is there: its real path, without links.
    Inside(PathBuf),
    /// To something outside, by a link: where that is by its words.
    Outside(PathBuf),
    /// Nowhere.
    Nowhere,
}

impl Bounds {
    /// Real paths and all below them.
    pub(super) fn of(folders: impl Iterator<Item = PathBuf>) -> Bounds {
        Bounds { folders: folders.collect() }
    }

    /// Whether a real path lies inside.
    pub(super) fn contain(&self, real: &Path) -> bool {
        self.folders.iter().any(|folder| real.starts_with(folder))
    }

    /// A path by its words alone as one of the folders and what goes on from there; `None` where it lies outside.
    pub(super) fn split(&self, path: &Path) -> Option<(PathBuf, PathBuf)> {
        self.folders.iter().find_map(|folder| {
            let ending = path.strip_prefix(folder).ok()?;
            Some((folder.clone(), ending.to_owned()))
        })
    }

    /// Where a path leads: `folder` is real, `ending` goes on from there. No link is followed that leaves the bounds. Only the
    /// last thing that a path names is asked for by itself: of all others `folders` knows what they hold.
    pub(super) fn follow(&self, folders: &Folders, folder: &Path, ending: &Path) -> Leads {
        let mut here = folder.to_owned();
        let mut ahead: VecDeque<OsString> = names(ending);
        let mut links = 0;
        while let Some(name) = ahead.pop_front() {
            match folders.entry(&here, &name) {
                None => return Leads::Nowhere,
                Some(FolderEntry::Itself) => {
                    here.push(&name);
                    continue;
                }
                Some(FolderEntry::Link) => {}
            }
            let Ok(target) = fs::read_link(here.join(&name)) else { return Leads::Nowhere };
            let target = plain(&here.join(target));
            let Some((inside, rest)) = self.split(&target) else {
                return Leads::Outside(ahead.into_iter().fold(target, |path, name| path.join(name)));
            };
            links += 1;
            if links > MOST_LINKS {
                return Leads::Nowhere;
            }
            here = inside;
            ahead = names(&rest).into_iter().chain(ahead).collect();
        }
        if fs::symlink_metadata(&here).is_ok() { Leads::Inside(here) } else { Leads::Nowhere }
    }
}

/// The names in a path; what leads upward is none.
fn names(path: &Path) -> VecDeque<OsString> {
    let name = |part: Component<'_>| match part {
        Component::Normal(name) => Some(name.to_owned()),
        _ => None,
    };
    path.components().filter_map(name).collect()
}

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn folder(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("memlint-bounds-{}-{name}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(folder.join("in/deep")).unwrap();
        fs::create_dir_all(folder.join("out")).unwrap();
        for file in ["in/a.py", "in/deep/b.py", "out/c.py"] {
            fs::write(folder.join(file), "").unwrap();
        }
        fs::canonicalize(folder).unwrap()
    }

    #[test]
    fn links_are_followed_inside_and_nowhere_else() {
        let all = folder("links");
        let inside = all.join("in");
        let link = |name: &str, to: &Path| symlink(to, inside.join(name)).unwrap();
        link("near.py", Path::new("deep/b.py"));
        link("up.py", Path::new("deep/../a.py"));
        link("folder", &inside.join("deep"));
        link("far.py", &all.join("out/c.py"));
        link("upward.py", Path::new("../out/c.py"));
        link("away", Path::new("../out"));
        link("loop.py", Path::new("loop.py"));
        link("root", Path::new("/proc/self/root"));
        let bounds = Bounds::of([inside.clone()].into_iter());
        let folders = Folders::default();
        let leads = |ending: &str| bounds.follow(&folders, &inside, Path::new(ending));
        let real = |path: &str| Leads::Inside(inside.join(path));
        assert_eq!(leads("a.py"), real("a.py"));
        assert_eq!(leads("near.py"), real("deep/b.py"));
        assert_eq!(leads("up.py"), real("a.py"));
        assert_eq!(leads("folder/b.py"), real("deep/b.py"));
        assert_eq!(leads("loop.py"), Leads::Nowhere);
        assert_eq!(leads("missing.py"), Leads::Nowhere);
        assert_eq!(leads("a.py/b.py"), Leads::Nowhere);
        let out = all.join("out/c.py");
        let through_root = format!("root{}", out.display());
        for outside in ["far.py", "upward.py", "away/c.py"] {
            assert_eq!(leads(outside), Leads::Outside(out.clone()), "{outside}");
        }
        assert!(matches!(leads(&through_root), Leads::Outside(_)));
        assert!(bounds.contain(&inside.join("x")) && !bounds.contain(&out));
        assert_eq!(bounds.split(&out), None);
        fs::remove_dir_all(all).unwrap();
    }
}
