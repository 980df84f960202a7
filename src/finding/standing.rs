//! Whether a finding counts.

use serde::{Deserialize, Serialize};

/// Whether a finding counts for the verdict.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Standing {
    /// It counts.
    #[default]
    Open,
    /// Somebody said that it is meant, and why.
    Ignored {
        /// The words of whoever did.
        reason: String,
        /// Where: `train.py:17`, `memlint.toml:9`.
        by: String,
    },
    /// The baseline knows it, no smaller than it is now.
    Baselined,
    /// The recording that this one is held against has it, too, no smaller than it is now.
    Inherited,
}
