//! Any bytes through the whole check, up to the reports.

#![no_main]

use std::path::PathBuf;

use libfuzzer_sys::fuzz_target;
use memlint::engine::{Input, check};
use memlint::pickle::PickleLimits;
use memlint::report::json;
use memlint::snapshot::Snapshot;
use memlint::source::SourceMap;

fuzz_target!(|bytes: &[u8]| {
    let limits = PickleLimits { nodes: 1 << 16, stack: 1 << 16, text: 1 << 20 };
    let Ok(snapshot) = Snapshot::read(bytes, &limits) else { return };
    let report = check(vec![Input::of("fuzz".to_owned(), snapshot)]);
    let files = SourceMap::new(vec![PathBuf::from("/nonexistent")], Vec::new());
    json::check(&report, &files, &mut std::io::sink()).expect("a sink takes everything");
});
