//! The folders of one recording: where its PyTorch lies, its Python, and the program itself.
//!
//! In: the files that no name settles, and the stacks. Out: [`FolderMap`], which settle every file. PyTorch shows where packages
//! are installed, whatever the folder is called (`pip --target`, PYTHONPATH): its own files are known by their paths inside the
//! package, and what lies beside it was installed with it, unless the program lies there, too (a zip application, a checkout,
//! an archive that is unpacked). Python's library and checkouts of frameworks are known by their functions.

use std::collections::{BTreeMap, BTreeSet};

use super::evidence::{CHECKOUTS, STANDARD, TORCH_FILES, TORCH_FOLDERS};
use super::files::{File, Files};
use super::named::{FileStanding, is_standard};
use super::packages::is_public;
use super::signs::{Method, Owner};
use crate::snapshot::Snapshot;
use crate::unit::{FrameId, Index, StackId};

/// How many different functions must be seen before a folder is taken for a checkout of a framework.
const CHECKOUT_FUNCTIONS: usize = 2;

/// Where programs write files for themselves.
const TEMPORARY: [&str; 7] = [
    "/tmp/",
    "/var/tmp/",
    "/private/tmp/",
    "/private/var/tmp/",
    "/private/var/folders/",
    "/var/folders/",
    "/dev/shm/",
];

/// The same on Windows, below a drive or a user's folder.
const WINDOWS_TEMPORARY: [&str; 2] = ["/AppData/Local/Temp/", "/Windows/Temp/"];

/// What the recording shows of its folders. All end with a separator, or are empty: the root of relative paths.
#[derive(Debug, Default)]
pub(super) struct FolderMap {
    /// The folder that holds PyTorch, where no name tells it.
    packages: Option<String>,
    /// Folders that hold modules of the standard library.
    standard: BTreeSet<String>,
    /// Modules of it that were seen, with their whole paths.
    modules: BTreeSet<String>,
    /// Folders that hold a framework's package, with its name.
    checkouts: BTreeSet<(String, &'static str)>,
    /// The files in which the program begins.
    scripts: Vec<String>,
}

/// A distinct frame, as far as this module asks about it.
#[derive(Debug, Clone, Copy)]
pub(super) struct SeenFrame {
    /// The number of its file.
    pub(super) file: usize,
    /// What its name says.
    pub(super) method: Method,
}

/// What is known before the folders are.
pub(super) struct FolderHints<'a> {
    pub(super) snapshot: &'a Snapshot,
    pub(super) files: &'a Files,
    /// What names settle, by file.
    pub(super) named: &'a [Option<FileStanding>],
    /// The distinct frames.
    pub(super) seen: &'a [SeenFrame],
}

impl FolderMap {
    /// Looks at the files that no name settles.
    pub(super) fn of(known: &FolderHints<'_>) -> FolderMap {
        let mut places = FolderMap { scripts: known.scripts(), ..FolderMap::default() };
        places.packages = known.packages();
        places.note_functions(known);
        places
    }

    /// Whose a file is that no name settles.
    pub(super) fn standing(&self, file: &File) -> FileStanding {
        FileStanding { by_name: false, ..self.settle(file) }
    }

    fn settle(&self, file: &File) -> FileStanding {
        let path = file.path.as_str();
        if let Some(at) = self.package(path) {
            return FileStanding::packaged(path, at, at);
        }
        if let Some(folder) = self.standard_folder(path) {
            return FileStanding::standard(path, folder.len(), folder.len());
        }
        let checkout = self.checkouts.iter().find(|(folder, package)| is_in(path, folder, package));
        if let Some((folder, _)) = checkout {
            return FileStanding::packaged(path, folder.len(), folder.len());
        }
        let kept =
            self.scripts.iter().any(|script| shares_home(path, script)) || self.is_beside_packages(path);
        FileStanding::alone(if is_temporary(path) && !kept { Owner::Generated } else { Owner::User }, file)
    }

    /// Where the package begins that a file belongs to, if it lies where packages do.
    fn package(&self, path: &str) -> Option<usize> {
        if let Some(at) = self.other_runfiles(path) {
            return Some(at);
        }
        let folder = self.packages.as_deref()?;
        let module = path.strip_prefix(folder)?;
        let top = module.split_once('/').map_or(module, |(top, _)| top);
        let installed = top == "torch" || !self.is_shared_with_program(folder) || {
            let own = self.scripts.iter().filter_map(|script| script.strip_prefix(folder)?.split('/').next());
            top != module && is_public(top) && !own.into_iter().any(|own| own == top)
        };
        installed.then_some(folder.len())
    }

    /// Whether the program lies where packages do.
    fn is_shared_with_program(&self, folder: &str) -> bool {
        let is_inside = |script: &String| {
            if folder.is_empty() { is_relative(script) } else { script.starts_with(folder) }
        };
        self.scripts.iter().any(is_inside)
    }

    fn is_beside_packages(&self, path: &str) -> bool {
        self.packages.as_deref().is_some_and(|folder| !folder.is_empty() && path.starts_with(folder))
    }

    /// Bazel lays the program and each repository it needs beside each other, in one folder.
    fn other_runfiles(&self, path: &str) -> Option<usize> {
        let repository = |path: &str| {
            let start = path.rfind(".runfiles/")? + ".runfiles/".len();
            let end = start + path.get(start..)?.find('/')?;
            Some((start, end))
        };
        let (start, end) = repository(path)?;
        let own = self.scripts.iter().filter_map(|script| {
            let (start, end) = repository(script)?;
            script.get(start..end)
        });
        let mut own = own.peekable();
        own.peek()?;
        (!own.any(|own| path.get(start..end) == Some(own))).then_some(end + 1)
    }

    fn standard_folder(&self, path: &str) -> Option<&str> {
        let holds = |folder: &&String| path.strip_prefix(folder.as_str()).is_some_and(is_standard);
        let folder = self.standard.iter().rev().find(holds)?;
        let shared = self.scripts.iter().any(|script| script.starts_with(folder.as_str()));
        (!shared || self.modules.contains(path)).then_some(folder)
    }

    /// What functions show: where Python's library lies, and checkouts of frameworks.
    fn note_functions(&mut self, known: &FolderHints<'_>) {
        let mut found: BTreeMap<(String, &'static str), BTreeSet<(String, String)>> = BTreeMap::new();
        for (id, seen) in known.snapshot.stacks.frame_ids().zip(known.seen) {
            let Some(file) = known.undecided(seen.file) else { continue };
            let Some(frame) = known.snapshot.stacks.frame(id) else { continue };
            let name = known.snapshot.text(frame.name);
            for (module, functions) in STANDARD {
                if let Some(folder) = folder_of(&file.path, module).filter(|_| functions.contains(&name)) {
                    self.standard.insert(folder.to_owned());
                    self.modules.insert(file.path.clone());
                }
            }
            for (module, functions) in CHECKOUTS {
                let package = module.split('/').next().unwrap_or_default();
                if let Some(folder) = folder_of(&file.path, module).filter(|_| functions.contains(&name)) {
                    let function = (file.path.clone(), name.to_owned());
                    found.entry((folder.to_owned(), package)).or_default().insert(function);
                }
            }
        }
        let is_own = |(folder, package): &(String, &str)| {
            self.scripts.iter().any(|script| is_in(script, folder, package))
        };
        let enough = found.into_iter().filter(|(_, functions)| functions.len() >= CHECKOUT_FUNCTIONS);
        let checkouts = enough.map(|(package, _)| package).filter(|package| !is_own(package)).collect();
        self.checkouts = checkouts;
    }
}

impl FolderHints<'_> {
    /// A file that no name settles.
    fn undecided(&self, file: usize) -> Option<&File> {
        self.files.all.get(file).filter(|_| matches!(self.named.get(file), Some(None)))
    }

    fn owner(&self, file: usize) -> Option<Owner> {
        self.named.get(file)?.as_ref().map(|standing| standing.owner)
    }

    /// The folder that holds PyTorch: the one in which most of its files lie, if none lies where a name tells.
    fn packages(&self) -> Option<String> {
        if self.named.iter().flatten().any(|standing| standing.owner == Owner::Torch) {
            return None;
        }
        let mut found: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
        for file in (0..self.files.all.len()).filter_map(|file| self.undecided(file)) {
            let folders = file.path.match_indices("torch/").filter(|(at, _)| is_component(&file.path, *at));
            for (at, _) in folders {
                let (Some(folder), Some(module)) = (file.path.get(..at), file.path.get(at..)) else {
                    continue;
                };
                let whole = TORCH_FILES.contains(&module);
                if whole || TORCH_FOLDERS.iter().any(|folder| module.starts_with(folder)) {
                    let (files, folders) = found.entry(folder).or_default();
                    *(if whole { files } else { folders }) += 1;
                }
            }
        }
        let most = found.into_iter().max_by_key(|&(folder, counts)| (counts, std::cmp::Reverse(folder)));
        most.map(|(folder, _)| folder.to_owned())
    }

    /// The files in which the program begins: their code runs by itself, and no import runs it. Where the stacks show none, the
    /// file that is outermost in most of them.
    fn scripts(&self) -> Vec<String> {
        let mut scripts: BTreeSet<usize> = BTreeSet::new();
        let mut outermost: BTreeMap<usize, usize> = BTreeMap::new();
        for stack in self.snapshot.stacks.ids() {
            match self.script(stack) {
                Some((file, Method::Module)) => _ = scripts.insert(file),
                Some((file, _)) => *outermost.entry(file).or_default() += 1,
                None => {}
            }
        }
        if scripts.is_empty() {
            let most = outermost.into_iter().max_by_key(|&(file, count)| (count, std::cmp::Reverse(file)));
            scripts.extend(most.map(|(file, _)| file));
        }
        scripts
            .into_iter()
            .filter_map(|file| self.files.all.get(file))
            .map(|file| file.path.clone())
            .collect()
    }

    /// A stack's innermost code of a file that may be the program's and that no import runs (what stands outside launches
    /// it); failing that, its outermost function.
    fn script(&self, stack: StackId) -> Option<(usize, Method)> {
        let (mut script, mut first) = (None, None);
        let mut caller = None;
        for frame in self.snapshot.stacks.get(stack).iter().rev() {
            let Some(seen) = self.seen.get(frame.position()).copied() else { continue };
            let owner = self.owner(seen.file);
            if owner == Some(Owner::Native) {
                continue;
            }
            if matches!(owner, None | Some(Owner::User)) {
                if seen.method == Method::Module && !caller.is_some_and(|frame| self.imports(frame)) {
                    script = Some((seen.file, Method::Module));
                }
                first = first.or(Some((seen.file, Method::Other)));
            }
            caller = Some(*frame);
        }
        script.or(first)
    }

    /// Whether a frame is one under which other files' code runs without being the program: imports, and PyTorch's
    /// compilers.
    fn imports(&self, frame: FrameId) -> bool {
        let standing = self.seen.get(frame.position()).and_then(|seen| self.named.get(seen.file)?.as_ref());
        standing.is_some_and(|one| one.owner == Owner::Torch || one.module.starts_with("python/importlib"))
    }
}

/// The folder of a module, where a path ends with it.
fn folder_of<'p>(path: &'p str, module: &str) -> Option<&'p str> {
    let folder = path.strip_suffix(module)?;
    (folder.is_empty() || folder.ends_with('/')).then_some(folder)
}

fn is_in(path: &str, folder: &str, package: &str) -> bool {
    path.strip_prefix(folder)
        .and_then(|rest| rest.strip_prefix(package))
        .is_some_and(|rest| rest.starts_with('/'))
}

fn is_component(path: &str, at: usize) -> bool {
    path.get(..at).is_some_and(|front| front.is_empty() || front.ends_with('/'))
}

fn is_relative(path: &str) -> bool {
    !path.starts_with('/') && !path.starts_with('<') && path.get(1..2) != Some(":")
}

/// Whether a file lies where programs write files for themselves. Cells of a notebook lie there, too, and are the user's.
fn is_temporary(path: &str) -> bool {
    let inside = TEMPORARY.iter().any(|folder| path.starts_with(folder))
        || WINDOWS_TEMPORARY.iter().any(|folder| path.contains(folder));
    let cell = ["ipykernel_", "ipython-input-", "/__marimo__"].iter().any(|mark| path.contains(mark));
    inside && !cell
}

/// Whether a file lies in the folder of a script that is run from a temporary one, or below it. A script that lies in the
/// temporary folder itself shares it with every program.
fn shares_home(path: &str, script: &str) -> bool {
    let folder = |path: &str| path.rfind('/').map_or(0, |at| at + 1);
    let home = script.get(..folder(script)).unwrap_or_default();
    let is_root = TEMPORARY.iter().chain(&WINDOWS_TEMPORARY).any(|root| home.ends_with(root));
    is_temporary(script) && path.starts_with(home) && (!is_root || folder(path) == home.len())
}
