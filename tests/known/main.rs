//! Findings that are known from an earlier run: they are the same after edits elsewhere, on another machine, with another
//! PyTorch; and another function's finding is not.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod altered;
mod baseline;
mod comparison;

use std::path::Path;

use memlint::engine::{Input, Report, check};
use memlint::input::{self, Source};
use memlint::pickle;
use memlint::snapshot::Snapshot;

/// A recording of the corpus.
pub(crate) fn snapshot(case: &str) -> Snapshot {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("snapshots").join(case).join("snapshot.pickle.zst");
    let stream = Source::File(path).open(&input::Limits::default()).unwrap();
    Snapshot::read(stream, &pickle::PickleLimits::default()).unwrap()
}

/// What a check says of a snapshot.
pub(crate) fn report(snapshot: Snapshot) -> Report {
    check(vec![Input::of("snapshot".to_owned(), snapshot)])
}
