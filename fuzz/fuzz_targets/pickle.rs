//! Any bytes as a pickled snapshot: a snapshot or an error, within the limits.

#![no_main]

use libfuzzer_sys::fuzz_target;
use memlint::pickle::PickleLimits;
use memlint::snapshot::Snapshot;

fuzz_target!(|bytes: &[u8]| {
    let limits = PickleLimits { nodes: 1 << 16, stack: 1 << 16, text: 1 << 20 };
    let _ = Snapshot::read(bytes, &limits);
});
