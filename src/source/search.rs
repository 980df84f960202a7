//! Local files for recorded paths.
//!
//! In: where to look, and a recorded path. Out: the files that it may stand for, the likeliest first. Always: only paths that
//! end like the recorded one are tried, nothing is walked, and nothing is opened that [`Bounds`] do not contain.

use std::cell::{OnceCell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use super::bounds::{Bounds, Leads};
use super::checkout::plain;
use super::folders::Folders;
use super::open::{Unopened, may_be_source, open};
use super::{Checkout, SourceFile};
use crate::finding::Seek;

/// At most so many Python files of a folder are read in search of a call.
const MOST_FILES: usize = 500;

/// Recorded paths longer than this many bytes are not looked for: no system opens them (`PATH_MAX` of Linux).
const LONGEST_PATH: usize = 4096;

/// How many of a recorded path's last components are tried below a root: more than any checkout is deep (chosen, not
/// measured), and few enough that a hostile path costs no more than an honest one.
const MOST_PARTS: usize = 32;

/// Folders of a checkout that commonly hold programs: looked into unasked, if the folder of the file agrees as well.
const COMMON_FOLDERS: [&str; 3] = ["src", "scripts", "examples"];

/// A prefix of recorded paths and what stands for it here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathMap {
    /// The recorded prefix: `/opt/job`.
    pub from: String,
    /// The local one: `.`.
    pub to: PathBuf,
}

impl std::str::FromStr for PathMap {
    type Err = String;

    fn from_str(text: &str) -> Result<PathMap, String> {
        match text.split_once('=') {
            Some((from, to)) if !from.is_empty() && !to.is_empty() => {
                Ok(PathMap { from: from.to_owned(), to: PathBuf::from(to) })
            }
            _ => Err("write it as FROM=TO, such as /opt/job=.".to_owned()),
        }
    }
}

/// A folder to look in, or the file that a map names.
#[derive(Debug, Clone)]
struct SearchRoot {
    /// As messages name it.
    shown: PathBuf,
    /// Where it lies; `None` where it does not exist.
    real: Option<PathBuf>,
}

impl SearchRoot {
    fn of(shown: PathBuf) -> SearchRoot {
        let real = fs::canonicalize(if shown.as_os_str().is_empty() { Path::new(".") } else { &shown }).ok();
        SearchRoot { shown, real }
    }

    /// A path below it; nothing where it does not exist.
    fn below(&self, ending: PathBuf) -> Option<TriedPath> {
        let folder = self.real.clone()?;
        let here = self.shown == Path::new(".") || self.shown == Path::new("");
        let shown = match ending.as_os_str().is_empty() {
            true => self.shown.clone(),
            false if here => ending.clone(),
            false => self.shown.join(&ending),
        };
        Some(TriedPath { shown, folder, ending, mapped: false })
    }
}

/// A path to be tried: as messages name it, and as a real folder with what goes on from there.
struct TriedPath {
    shown: PathBuf,
    folder: PathBuf,
    ending: PathBuf,
    mapped: bool,
}

/// A local file for a recorded path.
#[derive(Debug, Clone)]
pub(super) struct Candidate {
    pub(super) file: Rc<SourceFile>,
    /// Whether the paths say that it is the recorded file, and not just one of the same name.
    pub(super) sure: bool,
    /// Whether nothing but its name is the recorded one's.
    pub(super) by_name: bool,
}

/// Where local files are looked for, and those that were read.
#[derive(Debug, Default)]
pub(super) struct SourceSearch {
    /// Folders, each with how many components of a recorded path must be found below it.
    roots: Vec<(SearchRoot, usize)>,
    /// Recorded prefixes, the longest first.
    maps: Vec<(String, SearchRoot)>,
    bounds: Bounds,
    /// Folders in which the program's own files lie as they were recorded.
    projects: Vec<PathBuf>,
    folders: Folders,
    /// Of the names directly in roots: in which of them they are.
    holders: OnceCell<Holders>,
    /// What exists, as far as it is a source; what does not is in no folder.
    files: RefCell<BTreeMap<PathBuf, Option<Rc<SourceFile>>>>,
    /// Where a call stands, for those that were asked for.
    callers: RefCell<BTreeMap<Seek, Option<(String, u32)>>>,
    /// Files that were not opened because they lie outside, as far as they are known to exist.
    outside: RefCell<BTreeSet<PathBuf>>,
}

/// Which roots may hold a path, by the name that it begins with: a folder for each of a thousand ranks is not asked for
/// each of the files that they recorded.
#[derive(Debug, Default)]
struct Holders {
    by_name: BTreeMap<OsString, Vec<usize>>,
    /// Roots of which only asking tells.
    unlisted: Vec<usize>,
}

impl Holders {
    fn of(roots: &[(SearchRoot, usize)], folders: &Folders) -> Holders {
        let mut holders = Holders::default();
        for (position, (root, _)) in roots.iter().enumerate() {
            let Some(folder) = &root.real else { continue };
            match &*folders.names(folder) {
                Some(names) => {
                    for name in names.keys() {
                        holders.by_name.entry(name.clone()).or_default().push(position);
                    }
                }
                None => holders.unlisted.push(position),
            }
        }
        holders
    }

    /// The roots that may hold a name, in their order.
    fn with(&self, name: &OsStr) -> Vec<usize> {
        let mut roots: Vec<usize> = self.by_name.get(name).into_iter().flatten().copied().collect();
        if !self.unlisted.is_empty() {
            roots.extend(&self.unlisted);
            roots.sort_unstable();
        }
        roots
    }
}

impl SourceSearch {
    /// Below folders that the user named, and where maps point; nowhere else.
    pub(super) fn below(roots: impl IntoIterator<Item = PathBuf>, maps: Vec<PathMap>) -> SourceSearch {
        let roots: Vec<(SearchRoot, usize)> =
            roots.into_iter().map(|path| (SearchRoot::of(path), 1)).collect();
        let projects: Vec<PathBuf> = roots.iter().filter_map(|(root, _)| root.real.clone()).collect();
        SourceSearch::of(roots, maps, projects)
    }

    /// In the current folder, beside the snapshots, and in `src`, `scripts` and `examples`, as far as these lie in the working
    /// copy, and where maps point.
    pub(super) fn within(
        checkout: &Checkout,
        beside: impl IntoIterator<Item = PathBuf>,
        maps: Vec<PathMap>,
    ) -> SourceSearch {
        // Many snapshots lie in one folder.
        let mut known = BTreeSet::new();
        let beside = beside.into_iter().filter(|folder| known.insert(folder.clone()));
        let likely = std::iter::once(PathBuf::from(".")).chain(beside).map(|path| (SearchRoot::of(path), 1));
        let common = COMMON_FOLDERS.map(|folder| (SearchRoot::of(PathBuf::from(folder)), 2));
        let project = fs::canonicalize(checkout.root()).ok();
        SourceSearch::of(likely.chain(common).collect(), maps, project.into_iter().collect())
    }

    fn of(roots: Vec<(SearchRoot, usize)>, mut maps: Vec<PathMap>, projects: Vec<PathBuf>) -> SourceSearch {
        maps.sort_by_key(|map| std::cmp::Reverse(map.from.len()));
        let maps: Vec<(String, SearchRoot)> =
            maps.into_iter().map(|map| (map.from, SearchRoot::of(map.to))).collect();
        let mapped = maps.iter().filter_map(|(_, to)| to.real.clone());
        let bounds = Bounds::of(projects.iter().cloned().chain(mapped));
        SourceSearch { roots, maps, bounds, projects, ..SourceSearch::default() }
    }

    /// Whether a map's prefix is one of a recorded path, and what stands for it exists.
    pub(super) fn maps_any<'a>(&self, from: &str, mut recorded: impl Iterator<Item = &'a str>) -> bool {
        let prefix = parts(from);
        let is_there = self.maps.iter().any(|(map, to)| map == from && to.real.is_some());
        is_there && recorded.any(|path| parts(path).starts_with(&prefix))
    }

    /// The files that a recorded path may stand for.
    ///
    /// Tried in this order: mapped prefixes; the longest ending of the recorded path, of 32 components at most, that
    /// exists below a root (of several roots the first); the recorded path itself. `home` is the folder in which all of the
    /// program's files were recorded. Paths of more than 4096 bytes are not looked for.
    pub(super) fn candidates<'a>(
        &'a self,
        recorded: &'a str,
        home: &'a [String],
    ) -> impl Iterator<Item = Candidate> + 'a {
        let searchable = recorded.len() <= LONGEST_PATH && !recorded.starts_with('<');
        let parts = if searchable { parts(recorded) } else { Vec::new() };
        self.trials(recorded, &parts).into_iter().filter_map(move |trial| {
            let real = self.follow(&trial)?;
            let file = self.read(&trial.shown, &real)?;
            let agree = agreeing(&real, &parts);
            let sure = trial.mapped || agree >= 2 || self.is_recorded(&real, &parts, home);
            Some(Candidate { file, sure, by_name: !trial.mapped && agree < 2 })
        })
    }

    /// The one file directly in the given folders that has such a call, and the line; `None` where several do. For
    /// recordings that name no file.
    pub(super) fn sole_caller(&self, seek: &Seek) -> Option<(String, u32)> {
        if let Some(known) = self.callers.borrow().get(seek) {
            return known.clone();
        }
        let found = self.look_for_call(seek);
        self.callers.borrow_mut().insert(seek.clone(), found.clone());
        found
    }

    fn look_for_call(&self, seek: &Seek) -> Option<(String, u32)> {
        let mut callers: BTreeMap<PathBuf, (String, u32)> = BTreeMap::new();
        for (root, _) in self.roots.iter().filter(|(_, least)| *least == 1) {
            let Some(folder) = root.real.as_ref().filter(|folder| self.bounds.contain(folder)) else {
                continue;
            };
            let names = self.folders.names(folder);
            let sources = names.iter().flatten().map(|(name, _)| name);
            for name_of_file in sources.filter(|name| may_be_source(Path::new(name))).take(MOST_FILES) {
                let Some(trial) = root.below(PathBuf::from(name_of_file)) else { continue };
                let Leads::Inside(real) = self.bounds.follow(&self.folders, &trial.folder, &trial.ending)
                else {
                    continue;
                };
                let Some(file) = self.read(&trial.shown, &real) else { continue };
                if let Some(line) = file.line_of_call(seek) {
                    callers.entry(real).or_insert_with(|| (file.name().to_owned(), line));
                }
            }
        }
        let mut callers = callers.into_values();
        callers.next().filter(|_| callers.next().is_none())
    }

    /// Files that exist and were not opened, because they lie outside of what may be.
    pub(super) fn outside(&self) -> Vec<PathBuf> {
        self.outside.borrow().iter().cloned().collect()
    }

    /// What the likeliest file for a recorded path is, where one is there and is not taken for a program.
    pub(super) fn unopened(&self, recorded: &str) -> Option<(PathBuf, Unopened)> {
        let trials = self.trials(recorded, &parts(recorded)).into_iter();
        trials.filter(|trial| may_be_source(&trial.shown)).find_map(|trial| {
            let why = match self.bounds.follow(&self.folders, &trial.folder, &trial.ending) {
                Leads::Inside(real) if self.bounds.contain(&trial.folder) => {
                    open(&trial.shown, &real).err()?
                }
                Leads::Outside(target) => Unopened::LinkOutside(target),
                Leads::Inside(_) | Leads::Nowhere => return None,
            };
            Some((trial.shown, why))
        })
    }

    fn trials(&self, recorded: &str, parts: &[&str]) -> Vec<TriedPath> {
        if parts.is_empty() {
            return Vec::new();
        }
        let mapped = self.maps.iter().filter_map(|(from, to)| {
            let rest = parts.strip_prefix(self::parts(from).as_slice())?;
            Some(TriedPath { mapped: true, ..to.below(rest.iter().collect())? })
        });
        let below_roots = (parts.len().saturating_sub(MOST_PARTS)..parts.len()).flat_map(|skipped| {
            let ending: PathBuf = parts.iter().skip(skipped).collect();
            let length = parts.len() - skipped;
            let holders = self.holders.get_or_init(|| Holders::of(&self.roots, &self.folders));
            let first = parts.get(skipped).map(|first| holders.with(OsStr::new(first))).unwrap_or_default();
            let roots = first.into_iter().filter_map(|root| self.roots.get(root));
            let fits = roots.filter(move |(_, least)| *least <= length);
            fits.filter_map(move |(root, _)| root.below(ending.clone()))
        });
        let itself = Some(Path::new(recorded)).filter(|path| path.is_absolute()).and_then(|path| {
            let (folder, ending) = self.bounds.split(&plain(path))?;
            Some(TriedPath { shown: path.to_owned(), folder, ending, mapped: false })
        });
        mapped.chain(below_roots).chain(itself).collect()
    }

    /// Where a path leads, if it may be opened; what may not is noted.
    fn follow(&self, trial: &TriedPath) -> Option<PathBuf> {
        let inside = self.bounds.contain(&trial.folder);
        match self.bounds.follow(&self.folders, &trial.folder, &trial.ending) {
            Leads::Inside(real) if inside => return Some(real),
            Leads::Inside(_) if may_be_source(&trial.ending) => {
                self.outside.borrow_mut().insert(trial.shown.clone());
            }
            Leads::Outside(target) if may_be_source(&target) => {
                self.outside.borrow_mut().insert(target);
            }
            Leads::Inside(_) | Leads::Outside(_) | Leads::Nowhere => {}
        }
        None
    }

    /// Whether a file lies in its project as the recorded one lay among the program's files.
    fn is_recorded(&self, real: &Path, recorded: &[&str], home: &[String]) -> bool {
        let home: Vec<&str> = home.iter().map(String::as_str).collect();
        let in_program = recorded.strip_prefix(home.as_slice()).unwrap_or_default();
        self.projects.iter().any(|project| {
            let in_project = real.strip_prefix(project).ok();
            let in_program = in_program.iter().map(OsStr::new);
            in_project.is_some_and(|path| in_program.len() > 0 && path.iter().eq(in_program))
        })
    }

    fn read(&self, shown: &Path, real: &Path) -> Option<Rc<SourceFile>> {
        if let Some(known) = self.files.borrow().get(shown) {
            return known.clone();
        }
        let file = Some(shown).filter(|shown| may_be_source(shown)).and_then(|shown| open(shown, real).ok());
        let file = file.map(Rc::new);
        self.files.borrow_mut().insert(shown.to_owned(), file.clone());
        file
    }
}

/// The components of a recorded path of any system; empty where one of them leads upward.
pub(super) fn parts(recorded: &str) -> Vec<&str> {
    let parts: Vec<&str> =
        recorded.split(['/', '\\']).filter(|part| !part.is_empty() && *part != ".").collect();
    if parts.contains(&"..") { Vec::new() } else { parts }
}

/// How many of the last components of two paths agree.
fn agreeing(real: &Path, recorded: &[&str]) -> usize {
    let here: Vec<&str> = real.iter().filter_map(|part| part.to_str()).collect();
    here.iter().rev().zip(recorded.iter().rev()).take_while(|(one, other)| one == other).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The folder of each of so many ranks, which recorded so many files of their own that are not here.
    fn folders_looked_through(ranks: usize, files: usize) -> usize {
        let all = tempfile::tempdir().unwrap();
        let roots: Vec<PathBuf> = (0..ranks).map(|rank| all.path().join(format!("rank{rank}"))).collect();
        for root in &roots {
            fs::create_dir(root).unwrap();
            fs::write(root.join("snapshot.pickle"), "").unwrap();
        }
        fs::write(roots[ranks / 2].join("train.py"), "").unwrap();
        let search = SourceSearch::below(roots.iter().cloned(), Vec::new());
        for rank in 0..ranks {
            for file in 0..files {
                let recorded = format!("/tmp/worker{rank}/job/model{file}.py");
                assert_eq!(search.candidates(&recorded, &[]).count(), 0);
            }
        }
        let found: Vec<Candidate> = search.candidates("/tmp/worker0/job/train.py", &[]).collect();
        let shown = roots[ranks / 2].join("train.py");
        assert!(matches!(found.as_slice(), [one] if one.file.name() == shown.to_string_lossy()));
        search.folders.looked_through()
    }

    #[test]
    fn each_folder_is_looked_through_once_however_many_files_are_sought() {
        assert_eq!(folders_looked_through(8, 3), 8);
        assert_eq!(folders_looked_through(64, 50), 64);
    }
}
