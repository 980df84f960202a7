//! How snapshots are read, and where sources are found.

use std::path::PathBuf;

use clap::Args;

use crate::source::PathMap;
use crate::unit::Bytes;
use crate::{input, pickle};

/// How snapshots are read and sources are found.
#[derive(Debug, Args)]
pub(in crate::cli) struct Reading {
    #[command(flatten)]
    pub(in crate::cli) sources: Sources,

    #[command(flatten)]
    pub(in crate::cli) limits: Limits,
}

/// Where sources are found.
#[derive(Debug, Default, Args)]
pub(in crate::cli) struct Sources {
    /// A folder that holds the program's source; nothing outside is opened; may be given several times [default: the
    /// current folder, the snapshot's, and src, scripts and examples, as far as they lie in the working copy].
    #[arg(long, value_name = "DIR")]
    pub(in crate::cli) source_root: Vec<PathBuf>,

    /// What stands for a prefix of the recorded paths, such as /opt/job=.; may be given several times.
    #[arg(long, value_name = "FROM=TO")]
    pub(in crate::cli) path_map: Vec<PathMap>,
}

/// How much a file may hold: a guard against damaged and hostile ones.
#[derive(Debug, Args)]
#[command(next_help_heading = "Limits")]
#[expect(clippy::struct_field_names, reason = "the fields are named like their flags")]
pub(in crate::cli) struct Limits {
    /// Bytes of a snapshot after decompression, such as 20GiB.
    #[arg(long, value_name = "SIZE", default_value = "16GiB")]
    max_bytes: Bytes,

    /// Containers and memoised values of the pickle.
    #[arg(long, value_name = "COUNT", default_value_t = pickle::PickleLimits::default().nodes,
          value_parser = clap::value_parser!(u64).range(..=pickle::PickleLimits::MOST_NODES))]
    max_nodes: u64,

    /// Values on the pickle's stack at a time.
    #[arg(long, value_name = "COUNT", default_value_t = pickle::PickleLimits::default().stack,
          value_parser = clap::value_parser!(u64).range(..=pickle::PickleLimits::MOST_STACK))]
    max_stack: u64,

    /// Bytes of distinct text in the pickle.
    #[arg(long, value_name = "SIZE", default_value = "1GiB")]
    max_text: Bytes,
}

impl Limits {
    pub(in crate::cli) fn of_input(&self) -> input::Limits {
        input::Limits { bytes: self.max_bytes.get(), ..input::Limits::default() }
    }

    pub(in crate::cli) fn of_pickle(&self) -> pickle::PickleLimits {
        pickle::PickleLimits { nodes: self.max_nodes, stack: self.max_stack, text: self.max_text.get() }
    }
}
