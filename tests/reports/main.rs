//! The formats of a report over hand-made findings: against golden files, against schemas, and read back.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod documents;
mod fixture;
mod matrix;
mod obeyed;
mod page;
mod services;
mod text;
mod view;
