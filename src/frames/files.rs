//! The distinct files of a recording, read the same on every system, and which of them are C++.
//!
//! In: the distinct frames. Out: a [`File`] each, with what its frames show of it. PyTorch writes Python and C++ frames into
//! one list, and no key tells them apart (`torch/csrc/profiler/combined_traceback.cpp`). A file's ending does, where it has
//! one; a console script, a notebook's cell and an executable have none. Then the frames do: a C++ name is a declaration
//! and no identifier, and a frame without symbols has line 0 (`torch/csrc/profiler/unwind/unwind.cpp`), which Python
//! counts from 1.

use rustc_hash::FxHashMap;

use super::signs::Method;
use crate::snapshot::Snapshot;
use crate::unit::StringId;

/// How the sources of Python and what is compiled from them end. (Cython's own frames look like Python's.)
const PYTHON: [&str; 5] = ["py", "pyc", "pyo", "pyw", "pyx"];

/// How sources and libraries of C, C++ and CUDA end, numbers of versions apart (`libc.so.6`).
#[rustfmt::skip]
const NATIVE: [&str; 24] = [
    "a", "asm", "c", "cc", "cpp", "cu", "cuh", "cxx", "dll", "dylib", "exe", "h", "hh", "hpp", "hxx", "inc", "inl",
    "ipp", "o", "pyd", "rs", "s", "so", "tcc",
];

/// More different lines of a file's own code than this are not told apart.
const LINES: usize = 3;

/// One distinct file.
#[derive(Debug, Default)]
pub(super) struct File {
    /// With `/` between folders and without the ending of Python's sources. What stands in front of the file's own name has
    /// the bytes that it has in the recording.
    pub(super) path: String,
    /// Whether its frames are C++.
    pub(super) is_native: bool,
    /// Lines of its own code, outside every function; the first few.
    pub(super) module_lines: Vec<u32>,
    /// What functions of it frames show.
    pub(super) functions: FunctionsSeen,
    /// Whether the recorded name says that it is Python.
    pub(super) has_ending: bool,
}

/// Which functions of a file frames show.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum FunctionsSeen {
    /// None.
    #[default]
    None,
    /// Only such as Python calls by itself (`__init__`), or that have no names.
    Special,
    /// Others.
    Plain,
}

impl File {
    /// The file's own name.
    pub(super) fn name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or_default()
    }

    /// Its folder with the last separator; empty where it has none.
    pub(super) fn folder(&self) -> &str {
        self.path.rfind('/').and_then(|at| self.path.get(..=at)).unwrap_or_default()
    }
}

/// All distinct files, and each one's number.
#[derive(Debug, Default)]
pub(super) struct Files {
    numbers: FxHashMap<StringId, usize>,
    pub(super) all: Vec<File>,
}

/// What a file's frames have shown before all are seen.
#[derive(Default)]
struct ShownFunctions {
    /// A name that Python cannot give.
    foreign: bool,
    /// A line that is counted.
    counted: bool,
}

impl Files {
    /// Looks at every distinct frame once.
    pub(super) fn of(snapshot: &Snapshot) -> Files {
        let mut files = Files::default();
        let mut shown: Vec<(StringId, ShownFunctions)> = Vec::new();
        for frame in snapshot.stacks.frame_ids().filter_map(|id| snapshot.stacks.frame(id)) {
            let next = files.all.len();
            let number = *files.numbers.entry(frame.file).or_insert(next);
            if number == next {
                files.all.push(read(snapshot.text(frame.file)));
                shown.push((frame.file, ShownFunctions::default()));
            }
            let pair = files.all.get_mut(number).zip(shown.get_mut(number));
            let Some((file, (_, shown))) = pair else { continue };
            let name = snapshot.text(frame.name);
            shown.foreign |= !is_python_name(name);
            shown.counted |= frame.line > 0;
            if Method::of(name) != Method::Module {
                let special = name.starts_with("__") || name.starts_with('<');
                file.functions =
                    file.functions.max(if special { FunctionsSeen::Special } else { FunctionsSeen::Plain });
            } else if file.module_lines.len() < LINES && !file.module_lines.contains(&frame.line) {
                file.module_lines.push(frame.line);
            }
        }
        for (file, (text, shown)) in files.all.iter_mut().zip(shown) {
            file.is_native = is_native(snapshot.text(text), &shown);
        }
        files
    }

    /// The number of a file.
    pub(super) fn number(&self, file: StringId) -> Option<usize> {
        self.numbers.get(&file).copied()
    }
}

fn read(text: &str) -> File {
    let mut path = text.replace('\\', "/");
    let ending = ending(text).filter(|ending| !path.starts_with('<') && PYTHON.contains(&ending.as_str()));
    if let Some(ending) = &ending {
        path.truncate(path.len() - ending.len() - 1);
        // `__pycache__/model.cpython-312.pyc`.
        if let Some((folder, name)) = path.rsplit_once("__pycache__/") {
            path = format!("{folder}{}", name.split('.').next().unwrap_or(name));
        }
    }
    File { path, has_ending: ending.is_some(), ..File::default() }
}

/// What follows the last dot of a file's own name, in lower case.
fn ending(text: &str) -> Option<String> {
    let name = text.rsplit(['/', '\\']).next()?;
    let (stem, ending) = name.rsplit_once('.')?;
    (!stem.is_empty()).then(|| ending.to_ascii_lowercase())
}

/// Whether a name can be a Python function's: an identifier, or what the compiler calls code without a name (`<lambda>`).
fn is_python_name(name: &str) -> bool {
    let made = name.starts_with('<') && name.ends_with('>') && !name.starts_with("<unwind");
    // TorchScript writes the names of its functions with their modules in front.
    made || (!name.is_empty() && name.chars().all(|one| one.is_alphanumeric() || one == '_' || one == '.'))
}

fn is_native(text: &str, shown: &ShownFunctions) -> bool {
    if text.is_empty() || text == "??" {
        return true;
    }
    let own = text.rsplit(['/', '\\']).next().unwrap_or(text);
    match ending(versionless(own)) {
        _ if text.starts_with('<') => false,
        Some(ending) if PYTHON.contains(&ending.as_str()) => false,
        Some(ending) if NATIVE.contains(&ending.as_str()) => true,
        // Python's own executable, whose frames may have symbols and offsets for lines.
        _ if versionless(own).trim_end_matches(|one: char| one.is_ascii_digit()) == "python" => true,
        _ => shown.foreign || !shown.counted,
    }
}

/// A file's name without the numbers behind its ending.
fn versionless(name: &str) -> &str {
    match name.rsplit_once('.') {
        Some((rest, number)) if number.chars().all(|one| one.is_ascii_digit()) => versionless(rest),
        _ => name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::snapshot::Frame;

    /// Whether a file is taken for C++ by its name and one frame.
    fn native(file: &str, name: &str, line: u32) -> bool {
        let mut snapshot = Snapshot::default();
        let id = snapshot.strings.intern(file).unwrap();
        let name = snapshot.strings.intern(name).unwrap();
        snapshot.stacks.intern_frame(Frame { name, file: id, line }).unwrap();
        let files = Files::of(&snapshot);
        files.all[files.number(id).unwrap()].is_native
    }

    #[test]
    fn cpp_is_told_by_ending_name_or_line() {
        for (file, name, line) in [
            ("??", "PyNumber_Add", 0),
            ("", "at::empty(c10::ArrayRef<long>)", 0),
            ("/lib/x86_64-linux-gnu/libc.so.6", "??", 172_489),
            ("/v/torch/lib/libtorch_cpu.so", "at::TensorBase::contiguous() const", 290_254),
            ("C:\\v\\torch\\lib\\torch_cuda.DLL", "at_empty", 7),
            ("RegisterCUDA_0.cpp", "at::(anonymous namespace)::wrapper(int)", 0),
            ("./csu/../sysdeps/x86/libc-start.c", "__libc_start_main_impl", 360),
            ("/usr/bin/python3.12", "PyEval_EvalCode", 6_116_842),
            ("/usr/bin/python", "_start", 0),
            ("/opt/app/server", "acme::serve(int)", 12),
            ("/opt/app/server", "main", 0),
            ("thread48.o", "execute_native_thread_routine", 0),
        ] {
            assert!(native(file, name, line), "{file} {name}");
        }
    }

    #[test]
    fn python_needs_no_ending() {
        for (file, name) in [
            ("/home/me/train.py", "main"),
            ("C:\\Users\\me\\train.PY", "main"),
            ("/home/me/train", "<module>"),
            ("/home/me/exp.2/run.v3", "forward"),
            ("/app/__pycache__/net.cpython-312.pyc", "forward"),
            ("/root/.ipykernel/1234/command-5678-90", "<module>"),
            ("<command-5678>", "<module>"),
            ("<string>", "train"),
            ("/home/me/net.pyx", "forward"),
            ("/home/me/train", "größe"),
            ("/home/me/train", "<cell line: 3>"),
            ("/srv/app.pyz/model", "__torch__.net.forward"),
        ] {
            assert!(!native(file, name, 3), "{file} {name}");
        }
    }

    #[test]
    fn paths_are_read_the_same_on_every_system() {
        assert_eq!(read("C:\\Users\\me\\net.PY").path, "C:/Users/me/net");
        assert_eq!(read("/app/__pycache__/net.cpython-312.pyc").path, "/app/net");
        assert_eq!(read("/home/me/v1.5/train").path, "/home/me/v1.5/train");
        assert_eq!(read("<ipython-input-3-0.py>").path, "<ipython-input-3-0.py>");
    }
}
