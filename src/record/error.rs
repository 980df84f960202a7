//! What keeps a program from being recorded.

use std::io;
use std::path::PathBuf;

use miette::Diagnostic;
use thiserror::Error;

/// Why there is no recording, or not all of it.
#[derive(Debug, Error, Diagnostic)]
pub enum RecordError {
    /// A program that is recorded already.
    #[error("this is run by `memlint record`, and what it records cannot be recorded again")]
    #[diagnostic(help("leave out one of the two"))]
    Nested,
    /// A file that would be lost.
    #[error("`{}` exists", name.display())]
    #[diagnostic(help("`--force` replaces it"))]
    Exists {
        /// The path as given.
        name: PathBuf,
    },
    /// A folder whose files would be taken for this recording's.
    #[error("the folder `{}` is not empty", name.display())]
    #[diagnostic(help(
        "name another one; `--force` removes the snapshots of the recording that is in it, as its manifest.json lists them"
    ))]
    NotEmpty {
        /// The path as given.
        name: PathBuf,
    },
    /// A format that memlint only reads.
    #[error("`{}` cannot be written: memlint writes no snapshots of this kind", name.display())]
    #[diagnostic(help("end the name in .pickle.zst, or in .pickle for a plain one"))]
    Ending {
        /// The path as given.
        name: PathBuf,
    },
    /// A place that does not take files.
    #[error("`{}` cannot be written: {error}", name.display())]
    #[diagnostic(help("name another place: `-o PATH`"))]
    Unwritable {
        /// The path.
        name: PathBuf,
        /// What the system says.
        error: io::Error,
    },
    /// No room for the hook.
    #[error("memlint's hook cannot be written to `{}`: {error}", folder.display())]
    #[diagnostic(help("name another folder for temporary files in TMPDIR"))]
    Hook {
        /// The folder of temporary files.
        folder: PathBuf,
        /// What the system says.
        error: io::Error,
    },
    /// An option that `record` does not have, where the program was to stand.
    #[error("`memlint record` has no option `{name}`")]
    #[diagnostic(help(
        "`memlint record --help` lists those that it has; what `check` is told beyond them is in the configuration or the environment \
         (MEMLINT_STRICT=true); the program stands behind `--`"
    ))]
    Option {
        /// As it was given.
        name: String,
    },
    /// A command that does not start.
    #[error("`{program}` cannot be started: {error}")]
    #[diagnostic(help(
        "what stands behind `--` is run as it is, without a shell: memlint record -- python train.py"
    ))]
    Start {
        /// Its name.
        program: String,
        /// What the system says.
        error: io::Error,
    },
    /// A program of which nothing more is known.
    #[error("the program cannot be waited for: {error}")]
    Wait {
        /// What the system says.
        error: io::Error,
    },
    /// No Python, or one that does not look for the hook.
    #[error("no Python of the program loaded memlint's hook, so nothing was recorded")]
    #[diagnostic(help(
        "`python -I`, `-E` and `-S`, frozen programs, containers, `sudo` and other machines (`srun`) do not see it: put \
         `memlint record --` where Python itself is started, as in `srun memlint record -- python train.py`"
    ))]
    NoPython,
    /// A program without PyTorch.
    #[error("the program did not import PyTorch, so nothing was recorded")]
    #[diagnostic(help("name the command that trains, and look whether it came as far as `import torch`"))]
    NoTorch,
    /// A program on the CPU.
    #[error("the program used no memory of a GPU, so nothing was recorded")]
    #[diagnostic(help(
        "look whether `torch.cuda.is_available()` holds where it runs, and whether it moves its model there"
    ))]
    NoMemory,
    /// A machine for which there is no stand-in.
    #[error(
        "this memlint cannot record without a GPU: that needs Linux on x86-64 with glibc, where PyTorch's CUDA wheels run"
    )]
    #[diagnostic(help("record with a GPU, or on such a machine; any runner of a CI service is one"))]
    NoStandIn,
    /// A PyTorch that is not what the stand-in is for.
    #[error("`{}` cannot be run without a GPU: {what}", path.display())]
    #[diagnostic(help(
        "install PyTorch's ordinary build for CUDA; the wheel alone is enough: `pip install --no-deps torch`"
    ))]
    Wheel {
        /// A library of it, or its folder.
        path: PathBuf,
        /// What is wrong with it.
        what: String,
    },
    /// A program that needs what only a GPU can do.
    #[error("the program failed, and asked for what nothing without a GPU can do: `{calls}`")]
    #[diagnostic(help("record it with a GPU, or leave out for the recording what calls this"))]
    Refused {
        /// The names.
        calls: String,
    },
    /// A process that could not even end.
    #[error("process {pid} was killed {}", if *wrote { "after its last snapshot" } else { "before it could write a snapshot" })]
    #[diagnostic(help(
        "a program cannot hear SIGKILL, which is also what the system sends where host memory runs out; `--every 50` \
         writes on the way"
    ))]
    Killed {
        /// Its number.
        pid: u32,
        /// Whether it wrote some before.
        wrote: bool,
    },
    /// A process that outlives the program.
    #[error("process {pid} still runs, and has not written its last snapshot")]
    #[diagnostic(help("have the program wait for what it starts: `wait` at the end of a shell script"))]
    Running {
        /// Its number.
        pid: u32,
    },
    /// What a process told.
    #[error("{what}")]
    Told {
        /// Its words.
        what: String,
    },
    /// A snapshot that is left as the process wrote it.
    #[error("`{}` cannot be written: {error}", path.display())]
    #[diagnostic(help("the snapshot is left as `{}`, which memlint reads as well", plain.display()))]
    Unpacked {
        /// The plain file.
        plain: PathBuf,
        /// The one that was to replace it.
        path: PathBuf,
        /// What the system says.
        error: io::Error,
    },
}
