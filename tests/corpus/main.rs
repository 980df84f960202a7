//! The recordings of `snapshots/`, each with its labels and with the truth that was taken inside the recorded process:
//! every one must read, add up, and agree with PyTorch's own statistics.

#![expect(clippy::panic, clippy::unwrap_used, reason = "a test fails by panicking")]

mod advice;
mod case;
mod familiar;
mod findings;
mod fixes;
mod judged;
mod layouts;
mod parts;
mod pictures;
mod programs;
mod reading;
mod replayed;
mod roles;
mod savings;
mod slices;
mod sources;
mod told;
mod versions;
mod writing;
