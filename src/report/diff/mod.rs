//! `memlint diff`: two recordings side by side, for people.

mod crowd;
mod text;

use super::Look;
use crate::comparison::Comparison;

pub use crowd::Ranked;

/// Writes a comparison for people.
pub fn render(comparison: &Comparison, look: &Look) -> String {
    text::render(comparison, look)
}

/// Writes comparisons of several ranks for people, in pages: those that changed alike are told as one.
pub fn of_ranks(comparisons: &[Ranked], look: &Look) -> Vec<String> {
    crowd::render(comparisons, look)
}
