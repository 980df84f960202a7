//! Two recordings to be laid side by side.

use std::path::PathBuf;

use clap::Args;

use super::{Locating, PlainFormat, Reading};

#[derive(Debug, Args)]
#[command(
    after_help = "Iterations are compared by their number, as far as both recordings go. A difference within what the \
                        iterations of one recording differ by is no change. Ranks are compared with the same ranks; those \
                        that changed alike are told as one, those unlike them by name, and a page is shown of one in the \
                        middle. json is an array of documents, one for each rank.\n\n\
                        Exit status: 0 compared, 2 not all compared."
)]
pub(in crate::cli) struct Diff {
    /// The snapshot to compare with; or a folder or a quoted pattern, for a snapshot of each rank. Any may be an address (s3, gs,
    /// az, https).
    #[arg(value_name = "BASE")]
    pub(in crate::cli) base: PathBuf,

    /// What to compare, likewise; one of the two may be `-`, standard input.
    #[arg(value_name = "HEAD")]
    pub(in crate::cli) head: PathBuf,

    /// How to write it.
    #[arg(long, alias = "format", value_enum, default_value_t = PlainFormat::Text, value_name = "FORMAT")]
    pub(in crate::cli) output_format: PlainFormat,

    /// Show all roles, all call sites, and every rank by itself.
    #[arg(short, long, conflicts_with = "quiet")]
    pub(in crate::cli) verbose: bool,

    /// Leave out the names of the snapshots.
    #[arg(short, long)]
    pub(in crate::cli) quiet: bool,

    #[command(flatten)]
    pub(in crate::cli) locating: Locating,

    #[command(flatten)]
    pub(in crate::cli) reading: Reading,
}
