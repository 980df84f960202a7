//! What can be said about a recording.

use std::ffi::OsString;
use std::num::{NonZeroU32, NonZeroU64};
use std::path::PathBuf;

use clap::{Args, ValueEnum};

use crate::record;
use crate::unit::Bytes;

#[derive(Debug, Args)]
#[command(
    override_usage = "memlint record [OPTIONS] -- <COMMAND>...",
    after_help = "A snapshot is written at the end of the program, when memory runs out, on SIGTERM, and on SIGUSR1 \
                        (after which the program goes on). Each process of a job writes its own.\n\n\
                        Exit status: that of the program where it is not 0 (128 + the signal's number where it was killed); \
                        else 2 where it was not recorded, or not all of it; else that of the check with --gate; else 0."
)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
pub(in crate::cli) struct Record {
    /// The file to write (NAME.pickle.zst, or .pickle for a plain one), with ranks in their names where several processes
    /// record; any other name is a folder's, which also gets a manifest.json [default: a new folder recording-N].
    #[arg(short, long, value_name = "PATH")]
    pub(in crate::cli) output: Option<PathBuf>,

    /// Replace the file if it exists; in a folder, the recording that its manifest.json lists.
    #[arg(long)]
    pub(in crate::cli) force: bool,

    /// Write after so many optimizer steps, and record nothing more: the program goes on at full speed.
    #[arg(short = 'n', long, value_name = "N")]
    pub(in crate::cli) iterations: Option<NonZeroU32>,

    /// End the program after these iterations.
    #[arg(long, requires = "iterations")]
    pub(in crate::cli) stop: bool,

    /// Write one more snapshot after every so many optimizer steps.
    #[arg(long, value_name = "N")]
    pub(in crate::cli) every: Option<NonZeroU32>,

    /// Write what is found so far into the program's output, after every so many optimizer steps.
    #[arg(long, value_name = "N", conflicts_with = "iterations")]
    pub(in crate::cli) watch: Option<NonZeroU32>,

    /// Which frames stacks have.
    #[arg(long, value_enum, default_value_t = Stacks::Python, value_name = "FRAMES")]
    pub(in crate::cli) stacks: Stacks,

    /// The most events that are kept for each device; then the oldest are forgotten [default: 1000000, and less where a
    /// twentieth of the free host memory does not hold them].
    #[arg(long, value_name = "COUNT")]
    pub(in crate::cli) max_entries: Option<NonZeroU64>,

    /// Record where there is no GPU: PyTorch's ordinary build for CUDA runs, its allocator works, and kernels compute nothing.
    /// Linux on x86-64; torch's wheel alone is enough.
    #[arg(long)]
    pub(in crate::cli) no_gpu: bool,

    /// The memory of each device that is modelled.
    #[arg(long, value_name = "SIZE", default_value = "80GiB", requires = "no_gpu")]
    pub(in crate::cli) device_memory: Bytes,

    /// How many devices are modelled.
    #[arg(long, value_name = "N", default_value = "1", requires = "no_gpu")]
    pub(in crate::cli) devices: NonZeroU32,

    /// Check what was recorded, and print the report [default: on a terminal].
    #[arg(long)]
    pub(in crate::cli) check: bool,

    /// Do not check it.
    #[arg(long, conflicts_with_all = ["check", "gate"])]
    pub(in crate::cli) no_check: bool,

    /// Check it, and exit with the status of the check where the program's own is 0.
    #[arg(long)]
    pub(in crate::cli) gate: bool,

    /// The program and its arguments: python train.py, torchrun, accelerate launch, a script.
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true, value_name = "COMMAND")]
    pub(in crate::cli) command: Vec<OsString>,
}

/// Which frames stacks have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(in crate::cli) enum Stacks {
    /// Python's: the findings are the same, short iterations cost half as much, and snapshots are written sooner.
    Python,
    /// Also C++'s, which name the operators.
    All,
}

impl From<Stacks> for record::StackFrames {
    fn from(stacks: Stacks) -> record::StackFrames {
        match stacks {
            Stacks::All => record::StackFrames::All,
            Stacks::Python => record::StackFrames::Python,
        }
    }
}
