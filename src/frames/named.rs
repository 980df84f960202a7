//! Whose a file is by its name alone: by the folders that installers use, and by the names of what is no file.
//!
//! In: a file. Out: its [`FileStanding`], or nothing where the name does not tell. Folders count as whole components of the path,
//! and the innermost one decides: an environment may lie in a folder called `torch`.

use super::files::{File, FunctionsSeen};
use super::packages::is_framework;
use super::signs::Owner;
use super::standard::MODULES;

/// Where a file belongs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FileStanding {
    /// Whose it is.
    pub(super) owner: Owner,
    /// Its module by the name under which the table knows it: `torch/optim/adam`, `python/copy`; the whole path where it
    /// belongs to no package.
    pub(super) module: String,
    /// Where the part of the path begins that is the same on every machine.
    pub(super) shared: Option<usize>,
    /// Whether the name alone told.
    pub(super) by_name: bool,
}

impl FileStanding {
    /// A file that belongs to no package.
    pub(super) fn alone(owner: Owner, file: &File) -> FileStanding {
        FileStanding { owner, module: file.path.clone(), shared: None, by_name: true }
    }

    /// A file of a package that lies at `package` of the path; what is the same everywhere begins at `shared`.
    pub(super) fn packaged(path: &str, package: usize, shared: usize) -> FileStanding {
        let module = path.get(package..).unwrap_or_default();
        let owner = match module.split('/').next().unwrap_or_default() {
            "torch" => Owner::Torch,
            name if is_framework(name) => Owner::Framework,
            _ => Owner::Library,
        };
        FileStanding { owner, module: module.to_owned(), shared: Some(shared), by_name: true }
    }

    /// A module of Python's own library that lies at `module` of the path.
    pub(super) fn standard(path: &str, module: usize, shared: usize) -> FileStanding {
        let name = path.get(module..).unwrap_or_default();
        let module = format!("python/{name}");
        FileStanding { owner: Owner::Python, module, shared: Some(shared), by_name: true }
    }
}

/// Code that is no file and that programs made: by the beginning of its name.
#[rustfmt::skip]
pub(super) const MADE: [&str; 10] = [
    "<__array_function__", "<__autograph", "<attrs generated", "<boltons.", "<decorator-gen", "<eval_with_key>",
    "<generated", "<lambdifygenerated", "<makefun-gen", "<template>",
];

/// What the name of a file says of its owner.
pub(super) fn standing(file: &File) -> Option<FileStanding> {
    if file.is_native {
        let alone = FileStanding::alone(Owner::Native, file);
        return Some(installed(&file.path).map_or(alone, |one| FileStanding { owner: Owner::Native, ..one }));
    }
    if file.path.starts_with('<') {
        return Some(unreal(file));
    }
    if is_generated(file) {
        return Some(FileStanding::alone(Owner::Generated, file));
    }
    // The bootstrap of a PEX.
    if file.path.contains("/.bootstrap/") || is_launcher(file) {
        return Some(FileStanding::alone(Owner::Python, file));
    }
    installed(&file.path)
}

/// `<frozen runpy>`, `<string>`, `<stdin>` and the like. What is run from a text is the user's; Python makes only special
/// methods so (of data classes and named tuples).
fn unreal(file: &File) -> FileStanding {
    if let Some(module) = file.path.strip_prefix("<frozen ") {
        let module = format!("python/{}", module.trim_end_matches('>').replace('.', "/"));
        return FileStanding { owner: Owner::Python, module, shared: Some(0), by_name: true };
    }
    let made = MADE.iter().any(|beginning| file.path.starts_with(beginning));
    let methods = file.path == "<string>" && file.functions == FunctionsSeen::Special;
    if made || (methods && file.module_lines.is_empty()) {
        return FileStanding::alone(Owner::Generated, file);
    }
    FileStanding::alone(if is_launcher(file) { Owner::Python } else { Owner::User }, file)
}

/// What only calls another program: a console script; `python -c "import train; train.main()"`, which is also how
/// `multiprocessing` starts its children.
pub(super) fn is_launcher(file: &File) -> bool {
    let starts = file.path == "<string>" && file.module_lines == [1] && file.functions == FunctionsSeen::None;
    starts || is_console_script(file)
}

/// What pip writes into an environment's `bin` for every entry point: a script without functions, and with one or two lines
/// at its head that run.
fn is_console_script(file: &File) -> bool {
    let folder = file.folder().trim_end_matches('/');
    let in_programs = |folder: &str| matches!(folder.rsplit('/').next(), Some("bin" | "Scripts"));
    // Windows has executables with a zip file in them.
    let zipped =
        file.name() == "__main__" && folder.rsplit_once('/').is_some_and(|(outer, _)| in_programs(outer));
    let brief = file.module_lines.len() <= 2 && file.module_lines.iter().all(|line| *line <= LONGEST_SCRIPT);
    let bare = !file.has_ending || file.name().ends_with("-script");
    ((in_programs(folder) && bare) || zipped) && file.functions == FunctionsSeen::None && brief
}

/// The longest script that an installer writes: that of setuptools with its search for an entry point.
const LONGEST_SCRIPT: u32 = 40;

/// Code that compilers and template engines write into files. Inductor names a file by the hash of its text and its folder
/// by the hash's beginning (`get_path` in `torch/_inductor/codecache.py`).
fn is_generated(file: &File) -> bool {
    let name = file.name();
    let folder = file.folder().trim_end_matches('/').rsplit('/').next().unwrap_or_default();
    let hashed = name.len() >= 40 && name.starts_with('c') && name.get(1..3) == Some(folder);
    hashed
        || name.starts_with("fx_generated_")
        || name.starts_with("torch_geometric.")
        || folder.ends_with("_pyg")
        || file.path.contains("/torchinductor_")
}

/// A file in a folder to which packages are installed, or in Python's own.
fn installed(path: &str) -> Option<FileStanding> {
    let mut found = None;
    let mut start = 0;
    let mut outer = "";
    for folder in path.split('/') {
        let after = start + folder.len() + 1;
        let module = path.get(after..).unwrap_or_default();
        if module.is_empty() {
            break;
        }
        if matches!(folder, "site-packages" | "dist-packages") {
            found = Some(FileStanding::packaged(path, after, start));
        } else if folder.rsplit_once('.').is_some_and(|(_, kind)| matches!(kind, "whl" | "egg")) {
            found = Some(FileStanding::packaged(path, after, after));
        } else if is_python_folder(outer, folder) {
            let above = if matches!(outer, "lib" | "lib64") { outer.len() + 1 } else { 0 };
            found = Some(if is_standard(module) {
                FileStanding::standard(path, after, start - above)
            } else {
                FileStanding::packaged(path, after, after)
            });
        }
        (start, outer) = (after, folder);
    }
    found
}

/// `lib/python3.12`, `lib64/python3`, `python312.zip`.
fn is_python_folder(outer: &str, folder: &str) -> bool {
    let version = |text: &str| text.chars().all(|one| one.is_ascii_digit() || one == '.');
    let Some(rest) = folder.strip_prefix("python3") else { return false };
    let zipped = rest.strip_suffix(".zip").is_some_and(version);
    zipped || (matches!(outer, "lib" | "lib64") && version(rest))
}

/// Whether a path below Python's own folder is a module of the standard library.
pub(super) fn is_standard(module: &str) -> bool {
    MODULES.contains(&module.split('/').next().unwrap_or_default())
}
