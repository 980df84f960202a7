//! What a report looks like: one file a format.
//!
//! In: the engine's report, the sources, and how the terminal looks. Out: text or JSON. Always: formats only read what
//! the engine decided, their data types are their own, and equal reports give equal bytes.

mod closing;
mod format;
mod gap;
pub mod json;
mod look;
mod place;
pub mod profiler;
pub mod stats;
pub mod text;

pub use format::Format;
pub use look::{Detail, Look};
