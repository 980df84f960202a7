//! What is known already: a baseline, or the recording that is held against.

use std::path::{Path, PathBuf};

use clap::Args;

use crate::config::Amount;

/// Which baseline, and how it is read.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Known findings")]
pub(in crate::cli) struct Naming {
    /// Findings that this file knows do not count, unless they have grown; entries that match nothing are reported.
    #[arg(long, value_name = "FILE", env = "MEMLINT_BASELINE")]
    pub(in crate::cli) baseline: Option<PathBuf>,

    /// By how much a finding of the baseline may grow, such as 5% (1 MiB, or 64 KiB an iteration, is always allowed) or
    /// 20MiB [default: 10%].
    #[arg(long, value_name = "AMOUNT")]
    pub(in crate::cli) baseline_tolerance: Option<Amount>,
}

/// Findings that do not count because they are known.
#[derive(Debug, Args)]
#[command(next_help_heading = "Known findings")]
pub(in crate::cli) struct Known {
    #[command(flatten)]
    pub(in crate::cli) naming: Naming,

    /// Write what is found now to the baseline; reasons stay. Notes and ignored findings are left out.
    #[arg(long, conflicts_with = "prune_baseline")]
    pub(in crate::cli) update_baseline: bool,

    /// Take entries that match nothing out of the baseline; nothing is added.
    #[arg(long)]
    pub(in crate::cli) prune_baseline: bool,

    /// Fail on what is worse than in this snapshot (or folder, one for each rank): findings that it does not have, or
    /// smaller, a higher peak, faster growth. What it has, too, does not count.
    #[arg(long, value_name = "BASE", conflicts_with_all = ["baseline", "update_baseline", "prune_baseline"])]
    pub(in crate::cli) against: Option<PathBuf>,
}

impl Known {
    /// The files that are named, whatever for.
    pub(in crate::cli) fn paths(&self) -> impl Iterator<Item = &Path> {
        self.naming.baseline.iter().chain(&self.against).map(PathBuf::as_path)
    }
}
