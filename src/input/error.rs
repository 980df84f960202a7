//! What can be wrong with a path or a file before its pickle is read.

use std::fs;
use std::io;
use std::path::Path;

use miette::Diagnostic;
use thiserror::Error;

use super::address;
use super::remote::RemoteError;

/// An input that cannot be read.
#[derive(Debug, Error, Diagnostic)]
pub enum InputError {
    /// There is no such file.
    #[error("there is no file `{name}`")]
    #[diagnostic(help("check the path; paths are relative to the folder in which memlint was started"))]
    Missing {
        /// The path as given.
        name: String,
    },
    /// A link that leads nowhere.
    #[error("`{name}` is a link to `{target}`, which is not there")]
    #[diagnostic(help(
        "make the link anew, or name the file itself; a link into a container or another machine leads nowhere here"
    ))]
    BrokenLink {
        /// The path as given.
        name: String,
        /// Where the link leads, as it says itself.
        target: String,
    },
    /// A file or folder of somebody else's.
    #[error("`{name}` may not be read: permission denied")]
    #[diagnostic(help(
        "`ls -l` shows whose it is (what a container wrote is often root's): let its owner change that, as with `chmod a+r`, or \
         copy it"
    ))]
    Denied {
        /// The path as given.
        name: String,
    },
    /// An object of another machine that cannot be read.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Remote(#[from] RemoteError),
    /// An address of a kind that is not read.
    #[error("`{name}` is an address, and memlint reads files, and addresses of s3, gs, az and https alone")]
    #[diagnostic(help("{next}"))]
    Foreign {
        /// The address as given.
        name: String,
        /// How to come by it.
        next: String,
    },
    /// A folder that holds no snapshots.
    #[error("the folder `{name}` holds no snapshots")]
    #[diagnostic(help(
        "files are told by their content, down to {depth} folders deep, without hidden ones, links to folders and pipes; name \
         the snapshots themselves, or the folder that they are in"
    ))]
    NoSnapshots {
        /// The path as given.
        name: String,
        /// How deep subfolders were looked into.
        depth: usize,
    },
    /// A pattern for which there is no file.
    #[error("no file matches `{name}`")]
    #[diagnostic(help(
        "`*` and `?` stop at a folder's end and leave hidden files out; `**` stands for any number of folders"
    ))]
    NoMatch {
        /// The pattern as given.
        name: String,
    },
    /// A pattern that means nothing.
    #[error("there is no file `{name}`, and as a pattern it is wrong: {found}")]
    #[diagnostic(help("`*`, `?`, `[a-z]` and `**` have a meaning in patterns"))]
    Pattern {
        /// The pattern as given.
        name: String,
        /// What is wrong with it.
        found: &'static str,
    },
    /// A folder where one snapshot is wanted.
    #[error("`{name}` is a folder, not a snapshot")]
    #[diagnostic(help("name the snapshot file itself"))]
    Folder {
        /// The path as given.
        name: String,
    },
    /// The operating system refuses.
    #[error("`{name}` cannot be read: {source}")]
    Unreadable {
        /// The path as given.
        name: String,
        /// What the system says.
        source: io::Error,
    },
    /// Nothing in it.
    #[error("`{name}` is empty")]
    #[diagnostic(help(
        "was the program stopped before `_dump_snapshot` had written the file? Take the snapshot again"
    ))]
    Empty {
        /// The path as given.
        name: String,
    },
    /// Something else than a snapshot.
    #[error("`{name}` is {found}, not a memory snapshot")]
    #[diagnostic(help("{next}"))]
    NotASnapshot {
        /// The path as given.
        name: String,
        /// What it is, in words.
        found: String,
        /// What to do, in the imperative.
        next: String,
    },
    /// A memory timeline or a trace of PyTorch's profiler.
    #[error("`{name}` is a memory timeline or a trace of PyTorch's profiler, not a memory snapshot")]
    #[diagnostic(help(
        "`memlint stats` shows what it holds, but the profiler writes no stack beside what is allocated, so no line \
         can be named and nothing be judged; record a snapshot instead: `torch.cuda.memory._record_memory_history()`, and then \
         `torch.cuda.memory._dump_snapshot(\"snapshot.pickle\")`"
    ))]
    MemoryTimeline {
        /// The path as given.
        name: String,
    },
    /// A memory timeline of PyTorch's profiler as a picture.
    #[error("`{name}` is a picture of a memory timeline of PyTorch's profiler, without the numbers")]
    #[diagnostic(help(
        "`export_memory_timeline(\"timeline.raw.json.gz\")` writes the numbers, which `memlint stats` shows; `memlint check` \
         needs a snapshot: `torch.cuda.memory._record_memory_history()`, and then \
         `torch.cuda.memory._dump_snapshot(\"snapshot.pickle\")`"
    ))]
    DrawnTimeline {
        /// The path as given.
        name: String,
    },
    /// A web page that holds no snapshot.
    #[error("`{name}` is a web page without a snapshot inside")]
    #[diagnostic(help(
        "memlint reads the pages that `python -m torch.cuda._memory_viz trace_plot` writes; or name the snapshot itself"
    ))]
    PageWithoutSnapshot {
        /// The path as given.
        name: String,
    },
    /// A web page larger than any that shows a snapshot.
    #[error("`{name}` is a web page of more than {limit} bytes")]
    #[diagnostic(help("name the snapshot itself, from which the page was made: it is read piece by piece"))]
    PageTooLarge {
        /// The path as given.
        name: String,
        /// The limit in bytes.
        limit: u64,
    },
    /// A compressed file that breaks off or is damaged.
    #[error("`{name}` cannot be decompressed as {kind}: {source}")]
    #[diagnostic(help("the file is damaged or incomplete; copy or compress it again"))]
    Broken {
        /// The path as given.
        name: String,
        /// gzip, zstd or xz.
        kind: &'static str,
        /// What the decompressor says.
        source: io::Error,
    },
    /// More bytes than allowed.
    #[error("`{name}` holds more than {limit} bytes")]
    #[diagnostic(help("if you trust the file, raise the limit with `--max-bytes`"))]
    TooLarge {
        /// The path as given.
        name: String,
        /// The limit in bytes.
        limit: u64,
    },
    /// A small file that becomes enormous.
    #[error(
        "`{name}` grows more than {limit} times when decompressed ({kind}): it looks like a decompression bomb"
    )]
    #[diagnostic(help("if you trust the file, decompress it yourself and check the result"))]
    Bomb {
        /// The path as given.
        name: String,
        /// gzip, zstd or xz.
        kind: &'static str,
        /// The limit on the ratio.
        limit: u64,
    },
}

/// Why a file or a folder cannot be opened.
pub(super) fn opening(path: &Path, source: io::Error) -> InputError {
    let name = path.display().to_string();
    if let Some(next) = address::how_to_fetch(&name) {
        return InputError::Foreign { name, next };
    }
    match source.kind() {
        io::ErrorKind::NotFound => match fs::read_link(path) {
            Ok(target) => InputError::BrokenLink { name, target: target.display().to_string() },
            Err(_) => InputError::Missing { name },
        },
        io::ErrorKind::PermissionDenied => InputError::Denied { name },
        _ => InputError::Unreadable { name, source },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_not_be_read_says_whom_to_ask() {
        let denied = opening(Path::new("rank0.pickle"), io::ErrorKind::PermissionDenied.into());
        assert_eq!(denied.to_string(), "`rank0.pickle` may not be read: permission denied");
        assert!(denied.help().unwrap().to_string().contains("`chmod a+r`"));
        let other = opening(Path::new("rank0.pickle"), io::ErrorKind::TimedOut.into());
        assert!(matches!(other, InputError::Unreadable { .. }));
    }
}
