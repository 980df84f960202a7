//! What the hook tells of its process, word by word as it writes them.

use std::path::PathBuf;

use serde::Deserialize;

/// Why a snapshot is written that shows the recording so far.
pub(super) const WATCH: &str = "watch";

/// What a process tells.
#[derive(Debug, Clone, Deserialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub(super) enum Message {
    /// Python has loaded the hook.
    Python,
    /// It has found PyTorch in a folder, and waits for a file that says what is to be loaded before.
    Wheel { torch: PathBuf, answer: PathBuf },
    /// It has imported PyTorch.
    Torch,
    /// It records.
    Recording { stacks: String, max_entries: usize },
    /// It has written a snapshot.
    Written(Written),
    /// Something went wrong.
    Failed { what: String },
    /// It ends, and has said all.
    End { steps: usize, recorded_seconds: Option<f64>, unrecorded_seconds: Option<f64> },
    /// Calls that nobody can do for a GPU, and without which the program may not go on.
    Refused { calls: Vec<String> },
}

/// A snapshot that is written and not yet compressed.
#[derive(Debug, Clone, Deserialize)]
pub struct Written {
    /// The file.
    pub(super) path: PathBuf,
    /// What it shall be called, without an ending.
    pub(super) name: String,
    /// Why it was written: `end`, `iterations`, `every`, `watch`, `signal`, `out-of-memory`.
    pub reason: String,
    /// Optimizer steps until then.
    pub steps: usize,
    /// How long the program waited for it.
    pub seconds: f64,
    /// The number of the process, where there are several.
    pub rank: Option<u32>,
    /// The version of PyTorch.
    pub torch: String,
    /// The version of CUDA, or of `ROCm`.
    pub cuda: Option<String>,
    /// The device that is current.
    pub device: String,
}
