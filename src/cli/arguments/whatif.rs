//! What is asked of a recording under other settings.

use std::path::PathBuf;

use clap::Args;

use super::{Limits, PlainFormat};
use crate::replay::{SettingChange, TuningError, changes};
use crate::unit::Bytes;
use crate::whatif::{BatchScale, Without};

#[derive(Debug, Args)]
#[command(
    after_help = "The recorded requests and frees are played on a model of PyTorch's caching allocator, and first under the \
                        recorded settings: where the model does all that the recorded allocator did, its replay is called exact.\n\n\
                        Exit status: 0 answered, 2 not answered."
)]
pub(in crate::cli) struct WhatIf {
    /// The snapshot, or a folder or a quoted pattern for an answer about each; `-` is standard input.
    #[arg(value_name = "SNAPSHOT")]
    pub(in crate::cli) path: PathBuf,

    /// Settings to change, as in `PYTORCH_CUDA_ALLOC_CONF`: `expandable_segments:True`, `max_split_size_mb:64`; may be given
    /// several times, for settings that are tried together [default: those worth trying, one by one, best first].
    #[arg(long, value_name = "SETTINGS", value_parser = changes_in)]
    pub(in crate::cli) set: Vec<Changes>,

    /// The memory that PyTorch can have on the device, such as 40GiB: says which request runs out of it. The CUDA context
    /// and other libraries need some hundred MiB beside it.
    #[arg(long, value_name = "SIZE")]
    pub(in crate::cli) device_memory: Option<Bytes>,

    /// Multiply what grows with the batch: inputs, activations and temporaries of the passes through the model.
    #[arg(long, value_name = "FACTOR", allow_hyphen_values = true)]
    pub(in crate::cli) batch_scale: Option<BatchScale>,

    /// Imagine a finding mended: the beginning of its fingerprint, or a rule for all of its findings. What the finding is about is
    /// left out, or ends sooner, as its remedy has it; may be given several times.
    #[arg(long, value_name = "FINDING")]
    pub(in crate::cli) without: Vec<Without>,

    /// How to write it.
    #[arg(long, alias = "format", value_enum, default_value_t = PlainFormat::Text, value_name = "FORMAT")]
    pub(in crate::cli) output_format: PlainFormat,

    /// List all lines whose requests grow with the batch.
    #[arg(short, long)]
    pub(in crate::cli) verbose: bool,

    #[command(flatten)]
    pub(in crate::cli) limits: Limits,
}

/// What one `--set` says.
#[derive(Debug, Clone)]
pub(in crate::cli) struct Changes(pub(in crate::cli) Vec<SettingChange>);

/// Settings whose names and values PyTorch knows; what the recording was made with makes no difference to that.
fn changes_in(text: &str) -> Result<Changes, TuningError> {
    changes(text).map(Changes)
}
