//! Recordings of other versions of PyTorch, 2.1.2 to 2.15: what is found and where, and the sums, as for the rest of the corpus.

use memlint::engine::Device;
use memlint::unit::{Bytes, Index};

use crate::case;
use crate::findings::{missed, unexpected};

#[test]
fn other_versions_tell_what_the_labels_expect() {
    let missed = missed(case::versions());
    assert!(missed.is_empty(), "\n{}", missed.join("\n"));
}

#[test]
fn other_versions_tell_nothing_that_an_expert_would_not_report() {
    let wrong = unexpected(case::versions());
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

#[test]
fn their_peaks_equal_pytorchs_statistics_to_the_byte() {
    let mut compared = 0;
    for case in case::versions().iter().filter(|case| case.is_whole()) {
        // Some were told to leave events out, or to keep one.
        let whole =
            |device: &&Device| device.evidence.levels().is_ok() && device.evidence.beginning().is_ok();
        for device in case.input.devices.iter().filter(whole) {
            let theirs = case.statistic(device.device.position(), "requested_bytes.all.peak");
            let ours = device.timeline.peak_requested.bytes;
            assert_eq!(Some(ours), theirs.map(Bytes), "{}", case.name);
            compared += 1;
        }
    }
    assert!(compared >= 110, "only {compared} peaks were compared");
}
