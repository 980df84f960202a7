//! Snapshots made from snapshots, to be handed to somebody else: a few iterations, or one without its owner's names.
//!
//! In: a snapshot. Out: another one, for [`Snapshot::write`](crate::snapshot::Snapshot::write). Always: what is kept is
//! as it was (bytes, addresses, times, lines, the shape of stacks), so that what memlint says of it still holds.

mod anonymize;
mod error;
mod labels;
mod methods;
mod native;
mod public;
mod slice;

pub use anonymize::anonymize;
pub use error::SliceError;
pub use slice::{Iterations, slice};
