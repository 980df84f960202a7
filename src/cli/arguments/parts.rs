//! One input at a time, and all of them together.

use std::num::{NonZeroU32, NonZeroUsize};
use std::path::PathBuf;

use clap::Args;

use super::{Configuring, Known, Limits, Reporting, Sources};
use crate::unit::Bytes;

#[derive(Debug, Args)]
#[command(
    after_help = "The rules, levels and budgets are those of the configuration here: conclude with the same.\n\n\
                        Exit status: 0 written, whatever is found; 2 not written."
)]
pub(in crate::cli) struct Examine {
    /// The snapshot, or its address (s3, gs, az, https); `-` is standard input.
    #[arg(value_name = "SNAPSHOT")]
    pub(in crate::cli) path: PathBuf,

    /// The file to write, small: rank3.memlint.
    #[arg(short, long, value_name = "OUT")]
    pub(in crate::cli) output: PathBuf,

    /// What the report calls the snapshot, such as out/rank3.pickle: names tell the ranks of a job [default: its path].
    #[arg(long, value_name = "NAME")]
    pub(in crate::cli) name: Option<PathBuf>,

    /// Draw what a page (html) shows, as one of so many snapshots.
    #[arg(long, value_name = "SNAPSHOTS")]
    pub(in crate::cli) page: Option<NonZeroUsize>,

    #[command(flatten)]
    pub(in crate::cli) configuring: Configuring,

    #[command(flatten)]
    pub(in crate::cli) limits: Limits,
}

#[derive(Debug, Args)]
#[command(
    after_help = "Exit status: 0 clean, 1 findings at or above --fail-on, 2 no trustworthy verdict: also where a part is \
                        damaged, of another version, examined by other settings or there twice, or where a rank is missing."
)]
pub(in crate::cli) struct Conclude {
    /// Files that `memlint examine` wrote, folders that hold some (`*.memlint`), or quoted patterns such as
    /// 'out/*.memlint'.
    #[arg(required = true, value_name = "PART")]
    pub(in crate::cli) paths: Vec<PathBuf>,

    /// How many ranks the job has: that one of 0 to N-1 has no part is no verdict. Without it only gaps between ranks are seen.
    #[arg(long, value_name = "N")]
    pub(in crate::cli) ranks: Option<NonZeroU32>,

    #[command(flatten)]
    pub(in crate::cli) known: Known,

    #[command(flatten)]
    pub(in crate::cli) configuring: Configuring,

    #[command(flatten)]
    pub(in crate::cli) sources: Sources,

    /// Bytes of a part after decompression, such as 2GiB: a guard against damaged and hostile ones.
    #[arg(long, value_name = "SIZE", default_value = "1GiB")]
    pub(in crate::cli) max_bytes: Bytes,

    #[command(flatten)]
    pub(in crate::cli) reporting: Reporting,
}
