//! The rules that need two recordings. Their detection is `comparison`'s; here is what they are.

use super::Meta;
use crate::finding::{Group, Severity};

/// The peak is higher than in the base recording.
pub static PEAK_REGRESSION: Meta = Meta {
    name: "peak-regression",
    group: Group::Peak,
    level: Severity::Error,
    summary: "the peak is higher than in the base recording",
    needs: &[],
    in_part: &[],
    between_ranks: false,
    page: include_str!("../../rules/peak-regression.md"),
};

/// Memory grows faster than in the base recording.
pub static GROWTH_REGRESSION: Meta = Meta {
    name: "growth-regression",
    group: Group::Leak,
    level: Severity::Error,
    summary: "memory grows faster than in the base recording",
    needs: &[],
    in_part: &[],
    between_ranks: false,
    page: include_str!("../../rules/growth-regression.md"),
};
