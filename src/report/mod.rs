//! What a report looks like: one file a format.
//!
//! In: the engine's report, the sources, and how the terminal looks. Out: text or data. Always: formats only read what the
//! engine and the gate decided, their data types are their own, equal reports give equal bytes, and nothing out of a
//! recording is taken for markup or a command.

mod alike;
mod chart;
mod closing;
mod concise;
pub mod crowd;
mod curve;
pub mod diff;
mod ending;
mod failure;
pub mod fix;
mod format;
mod gap;
mod github;
mod gitlab;
mod headline;
pub mod html;
pub mod json;
mod junit;
mod look;
mod markdown;
pub mod page;
mod paths;
mod place;
pub mod profiler;
mod replayed;
pub mod rules;
mod sarif;
pub mod settings;
mod sightings;
pub mod stats;
mod tally;
pub mod text;
pub mod view;
pub mod whatif;
mod words;

pub use failure::VerdictFailure;
pub use format::Format;
pub use look::{Detail, Look};
