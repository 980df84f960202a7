//! A wheel's own libraries: what they ask others for.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use serde::Serialize;

use object::read::elf::{Dyn as _, ElfFile64, FileHeader as _};
use object::read::{ReadCache, ReadRef};
use object::{Endianness, Object as _, ObjectSymbol as _, elf};

use super::super::error::RecordError;

/// The versions of what a wheel was built for, as NVIDIA's headers write them.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(super) struct Versions {
    /// 12040 is 12.4.
    cuda: u32,
    /// 90100 is 9.1.0, 8907 is 8.9.7.
    cudnn: u32,
    /// 22105 is 2.21.5.
    nccl: u32,
}

/// Of a PyTorch that says nothing of them, for it comes from no wheel: those of PyTorch 2.11.
const USUAL_CUDNN: [u32; 3] = [9, 19, 0];
const USUAL_NCCL: [u32; 3] = [2, 28, 9];

/// What libraries ask for.
#[derive(Debug, Default)]
pub(super) struct Wants {
    /// Functions of CUDA that none of them has.
    pub(super) functions: BTreeSet<String>,
    /// Libraries of NVIDIA's that are none of them.
    pub(super) libraries: BTreeSet<String>,
}

/// How the names of NVIDIA's functions begin: the runtime's own, and those of `cu*`, `nccl*` and `nv*`.
const FUNCTIONS: [&str; 5] = ["__cuda", "cuda", "cu", "nccl", "nv"];
/// How the names of NVIDIA's libraries begin.
const LIBRARIES: [&str; 3] = ["libcu", "libnv", "libnccl"];

/// Packages that bring functions of CUDA's along with PyTorch: torchvision, torchaudio and others by that name.
const COMPANIONS: &str = "torch";
/// Other packages have kernels of their own, in libraries that ask for NVIDIA's or for these of PyTorch's.
const OF_CUDA: [&str; 2] = ["libtorch_cuda.so", "libc10_cuda.so"];
/// How deep in a package such libraries are looked for.
const DEPTH: usize = 3;

/// What a library has and asks for.
#[derive(Default)]
struct Symbols {
    wanted: Vec<String>,
    defined: Vec<String>,
    needed: Vec<String>,
}

/// Reads PyTorch's libraries and those of the packages beside it.
///
/// # Errors
/// Where PyTorch's cannot be read, or are not for this machine. Others are passed over.
pub(super) fn read(torch: &Path) -> Result<Wants, RecordError> {
    let failed = |path: &Path, what: String| RecordError::Wheel { path: path.to_owned(), what };
    let own = libraries_in(&torch.join("lib")).map_err(|error| failed(torch, error.to_string()))?;
    let mut all = Vec::new();
    for path in &own {
        all.push(symbols(path).map_err(|what| failed(path, what))?);
    }
    let companions = companions(torch);
    all.extend(companions.iter().filter_map(|path| symbols(path).ok()));
    let names: BTreeSet<String> = own.iter().chain(&companions).filter_map(|path| file_name(path)).collect();
    let defined: BTreeSet<&str> = all.iter().flat_map(|one| &one.defined).map(String::as_str).collect();
    // What other packages have stays theirs: PyTorch is not to find it.
    let extensions = extensions(torch);
    let wanted = all.iter().chain(&extensions).flat_map(|one| &one.wanted);
    let needed = all.iter().chain(&extensions).flat_map(|one| &one.needed);
    Ok(Wants {
        functions: wanted
            .filter(|name| begins(name, &FUNCTIONS) && !defined.contains(name.as_str()))
            .cloned()
            .collect(),
        libraries: needed
            .filter(|name| begins(name, &LIBRARIES) && !names.contains(*name))
            .cloned()
            .collect(),
    })
}

fn begins(name: &str, with: &[&str]) -> bool {
    with.iter().any(|beginning| name.starts_with(beginning))
}

fn file_name(path: &Path) -> Option<String> {
    Some(path.file_name()?.to_str()?.to_owned())
}

/// Shared libraries of a folder, in order, without NVIDIA's: some wheels bring those along, and they are not to be loaded.
fn libraries_in(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let is_wanted = |name: String| name.contains(".so") && !begins(&name, &LIBRARIES);
        if path.is_file() && file_name(&path).is_some_and(is_wanted) {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

/// The libraries of the packages beside PyTorch that are made for it: those next to their modules, and those they bring along.
fn companions(torch: &Path) -> Vec<PathBuf> {
    let Some(entries) = torch.parent().and_then(|packages| fs::read_dir(packages).ok()) else {
        return Vec::new();
    };
    let mut folders: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    folders.retain(|path| path != torch && file_name(path).is_some_and(|name| name.starts_with(COMPANIONS)));
    folders.sort();
    let inner = folders.iter().map(|folder| folder.join("lib"));
    let both: Vec<PathBuf> = folders.iter().cloned().chain(inner).collect();
    both.iter().filter_map(|folder| libraries_in(folder).ok()).flatten().collect()
}

/// What the libraries of all other packages ask for that have kernels of their own, and have not themselves.
fn extensions(torch: &Path) -> Vec<Symbols> {
    let mut found = Vec::new();
    if let Some(packages) = torch.parent() {
        collect(packages, DEPTH, &is_other, &mut found);
    }
    let read = found.iter().filter_map(|path| symbols(path).ok());
    read.filter(|one| one.needed.iter().any(|name| begins(name, &LIBRARIES) || begins(name, &OF_CUDA)))
        .map(|mut one| {
            let own: BTreeSet<String> = one.defined.drain(..).collect();
            one.wanted.retain(|name| !own.contains(name));
            one
        })
        .collect()
}

/// Whether a package is neither PyTorch, nor one that is read with it, nor NVIDIA's.
fn is_other(package: &str) -> bool {
    !package.starts_with(COMPANIONS) && !package.starts_with("nvidia")
}

/// The libraries of a folder and those below it, without NVIDIA's and without folders of certain names.
fn collect(folder: &Path, depth: usize, is_wanted: &dyn Fn(&str) -> bool, found: &mut Vec<PathBuf>) {
    found.extend(libraries_in(folder).unwrap_or_default());
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    for entry in entries.filter(|_| depth > 0) {
        // A link is not followed, and may lead back.
        let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
        if is_folder && entry.file_name().to_str().is_some_and(is_wanted) {
            collect(&entry.path(), depth - 1, is_wanted, found);
        }
    }
}

/// Reads one library; an error is a sentence.
fn symbols(path: &Path) -> Result<Symbols, String> {
    let file = File::open(path).map_err(|error| error.to_string())?;
    // Of a gigabyte a few megabytes are read.
    let cache = ReadCache::new(file);
    let library = ElfFile64::<Endianness, _>::parse(&cache).map_err(|error| error.to_string())?;
    if library.elf_header().e_machine(library.endian()) != elf::EM_X86_64 {
        return Err("it is not for x86-64".to_owned());
    }
    let mut symbols = Symbols { needed: needed(&library)?, ..Symbols::default() };
    for symbol in library.dynamic_symbols() {
        let Ok(name) = symbol.name() else { continue };
        let list = if symbol.is_undefined() { &mut symbols.wanted } else { &mut symbols.defined };
        list.push(name.to_owned());
    }
    Ok(symbols)
}

/// The libraries that a library asks for.
fn needed<'data, R: ReadRef<'data>>(
    library: &ElfFile64<'data, Endianness, R>,
) -> Result<Vec<String>, String> {
    let table = library.elf_section_table();
    let read = || -> object::read::Result<Vec<String>> {
        let Some((entries, strings)) = table.dynamic(library.endian(), library.data())? else {
            return Ok(Vec::new());
        };
        let strings = table.strings(library.endian(), library.data(), strings)?;
        let mut needed = Vec::new();
        for entry in entries.iter().filter(|entry| entry.tag(library.endian()) == elf::DT_NEEDED) {
            let name = entry.string(library.endian(), strings)?;
            needed.push(String::from_utf8_lossy(name).into_owned());
        }
        Ok(needed)
    };
    read().map_err(|error| error.to_string())
}

/// The functions of a library.
pub(super) fn defined_by(path: &Path) -> Result<Vec<String>, RecordError> {
    let symbols = symbols(path).map_err(|what| RecordError::Wheel { path: path.to_owned(), what })?;
    Ok(symbols.defined)
}

/// The versions that a PyTorch was built for.
///
/// # Errors
/// Where it was not built for CUDA.
pub(super) fn versions(torch: &Path) -> Result<Versions, RecordError> {
    let failed = |what: &str| RecordError::Wheel { path: torch.to_owned(), what: what.to_owned() };
    let text = fs::read_to_string(torch.join("version.py")).map_err(|error| failed(&error.to_string()))?;
    let cuda = cuda_of(&text).ok_or_else(|| failed("it is built without CUDA"))?;
    let metadata = metadata(torch).unwrap_or_default();
    let cudnn = required(&metadata, "nvidia-cudnn").unwrap_or(USUAL_CUDNN);
    let nccl = required(&metadata, "nvidia-nccl").unwrap_or(USUAL_NCCL);
    let number = |[major, minor, patch]: [u32; 3], factor: u32| major * factor + minor * 100 + patch;
    Ok(Versions {
        cuda: cuda[0] * 1000 + cuda[1] * 10,
        cudnn: number(cudnn, if cudnn[0] < 9 { 1000 } else { 10_000 }),
        nccl: number(nccl, 10_000),
    })
}

/// The version of CUDA in `version.py`: `cuda: Optional[str] = '13.0'`.
fn cuda_of(text: &str) -> Option<[u32; 3]> {
    let line = text.lines().find(|line| line.starts_with("cuda"))?;
    let (_, value) = line.split_once('=')?;
    numbers(value.trim().trim_matches(['\'', '"']))
}

/// The three first numbers of a version, as far as there are any.
fn numbers(version: &str) -> Option<[u32; 3]> {
    let mut parts = version.split('.').map(str::parse);
    let major = parts.next()?.ok()?;
    let mut next = || parts.next().and_then(Result::ok).unwrap_or(0);
    Some([major, next(), next()])
}

/// What the wheel says of itself.
fn metadata(torch: &Path) -> Option<String> {
    let entries = fs::read_dir(torch.parent()?).ok()?;
    let mut folders = entries.flatten().map(|entry| entry.path());
    let folder = folders.find(|path| {
        file_name(path).is_some_and(|name| name.starts_with("torch-") && name.ends_with(".dist-info"))
    })?;
    fs::read_to_string(folder.join("METADATA")).ok()
}

/// The version that a wheel requires of a package whose name begins like this: `nvidia-cudnn-cu13==9.19.0.56; ...`, in brackets in older ones.
fn required(metadata: &str, package: &str) -> Option<[u32; 3]> {
    let requirements = metadata.lines().filter_map(|line| line.strip_prefix("Requires-Dist: "));
    let requirement = requirements.into_iter().find(|requirement| requirement.starts_with(package))?;
    let (_, version) = requirement.split_once("==")?;
    numbers(version.split([';', ')', ' ', ',']).next()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_as_wheels_write_them() {
        assert_eq!(
            cuda_of("__version__ = '2.11.0+cu130'\ncuda: Optional[str] = '13.0'\nhip = None"),
            Some([13, 0, 0])
        );
        assert_eq!(cuda_of("cuda = '12.4'"), Some([12, 4, 0]));
        assert_eq!(cuda_of("cuda: Optional[str] = None"), None);
        let metadata = "Name: torch\nRequires-Dist: nvidia-cudnn-cu12 (==9.1.0.70) ; platform_system == \"Linux\"\n\
                        Requires-Dist: nvidia-nccl-cu13==2.28.9; platform_system == \"Linux\"\n";
        assert_eq!(required(metadata, "nvidia-cudnn"), Some([9, 1, 0]));
        assert_eq!(required(metadata, "nvidia-nccl"), Some([2, 28, 9]));
        assert_eq!(required(metadata, "nvidia-cublas"), None);
    }

    #[test]
    fn other_packages_are_looked_through() {
        let packages = tempfile::tempdir().unwrap();
        let write = |path: &str| {
            let path = packages.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "no library").unwrap();
        };
        let wanted = ["kernels.cpython-312-x86_64-linux-gnu.so", "package/_C.so", "package/cuda/ops.so"];
        wanted.iter().copied().for_each(&write);
        // PyTorch's own, NVIDIA's, one by the name of NVIDIA's, and none.
        let others = [
            "torch/lib/libtorch_cuda.so",
            "nvidia/cufft/lib/extra.so",
            "package/libcudart.so.13",
            "package/__init__.py",
        ];
        others.iter().copied().for_each(&write);
        let mut found = Vec::new();
        collect(packages.path(), DEPTH, &is_other, &mut found);
        assert_eq!(found, wanted.map(|path| packages.path().join(path)));
        // What cannot be read is passed over.
        assert!(extensions(&packages.path().join("torch")).is_empty());
    }

    #[test]
    fn a_pytorch_without_cuda_is_told() {
        let packages = tempfile::tempdir().unwrap();
        let torch = packages.path().join("torch");
        fs::create_dir(&torch).unwrap();
        fs::write(torch.join("version.py"), "cuda: Optional[str] = None\n").unwrap();
        let error = versions(&torch).unwrap_err().to_string();
        assert!(error.ends_with("it is built without CUDA"), "{error}");
        fs::write(torch.join("version.py"), "cuda: Optional[str] = '12.1'\n").unwrap();
        assert_eq!(versions(&torch).unwrap(), Versions { cuda: 12_010, cudnn: 91_900, nccl: 22_809 });
    }
}
