//! Finding the local file of a recorded path.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use super::{Checkout, SourceFile};

/// Files larger than this are not read: no program that a person wrote is.
const MOST_BYTES: u64 = 4 << 20;
/// At most so many files of a folder are read in search of a call.
const MOST_FILES: usize = 500;

/// Recorded paths longer than this many bytes are not looked for: no system opens them (`PATH_MAX` of Linux).
const LONGEST_PATH: usize = 4096;

/// How many of a recorded path's last components are tried below a root: more than any checkout is deep (chosen, not
/// measured), and few enough that a hostile path costs no more than an honest one.
const MOST_PARTS: usize = 32;

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

/// Folders of a checkout that commonly hold programs: looked into unasked, if the folder of the file agrees as well.
const COMMON_FOLDERS: [&str; 3] = ["src", "scripts", "examples"];

/// A folder to look in.
#[derive(Debug)]
struct Root {
    path: PathBuf,
    /// How many components of the recorded path must be found below it.
    least: usize,
}

/// Where sources are looked for, and those that were read.
#[derive(Debug, Default)]
pub struct SourceMap {
    roots: Vec<Root>,
    maps: Vec<PathMap>,
    /// What exists; what does not is asked for again, so that paths chosen by a file cost no memory.
    files: RefCell<BTreeMap<PathBuf, Rc<SourceFile>>>,
    checkout: Checkout,
}

impl SourceMap {
    /// Looks below `roots`, and where `maps` point first; the longest prefix wins.
    pub fn new(roots: impl IntoIterator<Item = PathBuf>, mut maps: Vec<PathMap>) -> SourceMap {
        maps.sort_by_key(|map| std::cmp::Reverse(map.from.len()));
        let roots = roots.into_iter().map(|path| Root { path, least: 1 }).collect();
        SourceMap { roots, maps, files: RefCell::default(), checkout: Checkout::default() }
    }

    /// The same, in a working copy from whose root [`SourceMap::checkout`] names files.
    #[must_use]
    pub fn within(self, checkout: Checkout) -> SourceMap {
        SourceMap { checkout, ..self }
    }

    /// The working copy that the sources lie in.
    pub fn checkout(&self) -> &Checkout {
        &self.checkout
    }

    /// Looks where nobody said to: in the current folder, beside the snapshots, and in `src`, `scripts` and `examples`.
    pub fn unasked(beside: impl IntoIterator<Item = PathBuf>, maps: Vec<PathMap>) -> SourceMap {
        let mut map = SourceMap::new(std::iter::once(PathBuf::from(".")).chain(beside), maps);
        map.roots.extend(COMMON_FOLDERS.map(|folder| Root { path: PathBuf::from(folder), least: 2 }));
        map
    }

    /// The local file of a recorded line.
    ///
    /// Tried in this order: mapped prefixes; the longest ending of the recorded path, of 32 components at most, that
    /// exists below a root (of several roots the first); the recorded path itself. Paths of more than 4096 bytes are not
    /// looked for.
    pub fn find(&self, recorded: &str, line: u32, function: &str) -> Option<Rc<SourceFile>> {
        self.search(recorded, |file| file.can_hold(line, function).then(|| Rc::clone(file)))
    }

    /// The line of the first call of `name` in the first local file of a recorded path that has one.
    pub fn line_of_call(&self, recorded: &str, name: &str) -> Option<u32> {
        self.search(recorded, |file| file.line_of_call(name))
    }

    /// The one file directly in the given folders that calls a function of this bare name, and the line; `None` where
    /// several do. For recordings that name no file.
    pub fn sole_caller(&self, name: &str) -> Option<(String, u32)> {
        let mut callers: BTreeMap<PathBuf, (String, u32)> = BTreeMap::new();
        for root in self.roots.iter().filter(|root| root.least == 1) {
            let folder = if root.path.as_os_str().is_empty() { Path::new(".") } else { &root.path };
            let Ok(entries) = fs::read_dir(folder) else { continue };
            for entry in entries.filter_map(Result::ok).take(MOST_FILES) {
                let path = below(&root.path, Path::new(&entry.file_name()));
                let Some(file) = self.read(&path) else { continue };
                if let (Some(line), Ok(real)) = (file.line_of_call(name), fs::canonicalize(&path)) {
                    callers.entry(real).or_insert_with(|| (file.name().to_owned(), line));
                }
            }
        }
        let mut callers = callers.into_values();
        callers.next().filter(|_| callers.next().is_none())
    }

    fn search<T>(&self, recorded: &str, fits: impl Fn(&Rc<SourceFile>) -> Option<T>) -> Option<T> {
        if recorded.len() > LONGEST_PATH || recorded.starts_with('<') {
            return None;
        }
        let parts = parts(recorded);
        if parts.is_empty() {
            return None;
        }
        let mapped = self.maps.iter().filter_map(|map| map.apply(&parts));
        let below_roots = (parts.len().saturating_sub(MOST_PARTS)..parts.len()).flat_map(|skipped| {
            let ending: PathBuf = parts.iter().skip(skipped).collect();
            let length = parts.len() - skipped;
            let fits = self.roots.iter().filter(move |root| root.least <= length);
            fits.map(move |root| below(&root.path, &ending))
        });
        let itself = Some(PathBuf::from(recorded)).filter(|path| path.is_absolute());
        mapped
            .chain(below_roots)
            .chain(itself)
            .filter_map(|path| self.read(&path))
            .find_map(|file| fits(&file))
    }

    fn read(&self, path: &Path) -> Option<Rc<SourceFile>> {
        if let Some(known) = self.files.borrow().get(path) {
            return Some(Rc::clone(known));
        }
        let file = Rc::new(read(path)?);
        self.files.borrow_mut().insert(path.to_owned(), Rc::clone(&file));
        Some(file)
    }
}

impl PathMap {
    fn apply(&self, recorded: &[&str]) -> Option<PathBuf> {
        let rest = recorded.strip_prefix(parts(&self.from).as_slice())?;
        let rest: PathBuf = rest.iter().collect();
        Some(if rest.as_os_str().is_empty() { self.to.clone() } else { below(&self.to, &rest) })
    }
}

/// The components of a recorded path of any system; empty where one of them leads upward.
fn parts(recorded: &str) -> Vec<&str> {
    let parts: Vec<&str> =
        recorded.split(['/', '\\']).filter(|part| !part.is_empty() && *part != ".").collect();
    if parts.contains(&"..") { Vec::new() } else { parts }
}

/// A path below a root, named without a `./` in front.
fn below(root: &Path, ending: &Path) -> PathBuf {
    if root == Path::new(".") || root == Path::new("") { ending.to_owned() } else { root.join(ending) }
}

/// A Python file's text; `None` where there is none, or none that a person wrote.
fn read(path: &Path) -> Option<SourceFile> {
    if path.extension()? != "py" {
        return None;
    }
    let metadata = fs::metadata(path).ok()?;
    if !metadata.is_file() || metadata.len() > MOST_BYTES {
        return None;
    }
    let text = String::from_utf8(fs::read(path).ok()?).ok()?;
    Some(SourceFile::new(path.display().to_string(), text))
}
