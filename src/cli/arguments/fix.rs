//! What can be said about edits.

use std::ffi::OsString;

use clap::Args;

use super::Judged;
use crate::unit::Bytes;

#[derive(Debug, Args)]
#[command(
    override_usage = "memlint fix [OPTIONS] <SNAPSHOT>...\n       memlint fix [OPTIONS] --verify <SNAPSHOT>... -- <COMMAND>...",
    after_help = "The difference goes to standard output, for `git apply` or `patch -p1`; what each edit does, and why there is \
                        none for other findings, to standard error.\n\n\
                        Exit status: 0 shown or made, also where there is no edit; 2 not shown, not made, or not run."
)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
pub(in crate::cli) struct Fix {
    /// Show the edits as a difference; this is what is done where nothing else is said.
    #[arg(long, conflicts_with = "write")]
    pub(in crate::cli) diff: bool,

    /// Make the edits: each file is replaced as a whole, and keeps its permissions.
    #[arg(long)]
    pub(in crate::cli) write: bool,

    /// Only for findings of these rules.
    #[arg(long, value_name = "RULE", value_delimiter = ',')]
    pub(in crate::cli) only: Vec<String>,

    /// Take edits, too, after which the program computes something else, or elsewhere.
    #[arg(long = "unsafe")]
    pub(in crate::cli) unsafe_too: bool,

    /// Run the program as it is and with the edits, each in a copy of the current folder, record both, and leave out the
    /// edits that do not help.
    #[arg(long, requires = "command")]
    pub(in crate::cli) verify: bool,

    /// Run it without a GPU, as `memlint record --no-gpu` does.
    #[arg(long, requires = "verify")]
    pub(in crate::cli) no_gpu: bool,

    /// The memory of the device that is modelled.
    #[arg(long = "model-memory", value_name = "SIZE", default_value = "80GiB", requires = "no_gpu")]
    pub(in crate::cli) model_memory: Bytes,

    #[command(flatten)]
    pub(in crate::cli) judged: Judged,

    /// The program and its arguments, run from the current folder.
    #[arg(last = true, requires = "verify", value_name = "COMMAND")]
    pub(in crate::cli) command: Vec<OsString>,
}
