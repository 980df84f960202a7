//! Recordings of other versions of PyTorch, 2.1.2 to 2.15: what is found and where, and the sums, as for the rest of the corpus.

use memlint::timeline::Timeline;
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
        let snapshot = &case.input.snapshot;
        for (device, _) in snapshot.active_devices() {
            let theirs = case.statistic(device.position(), "requested_bytes.all.peak");
            if let Some(theirs) =
                theirs.filter(|_| !case.labels["name"].as_str().unwrap().starts_with("v15-skip"))
            {
                let ours = Timeline::of(snapshot, device).peak_requested.bytes;
                assert_eq!(ours, Bytes(theirs), "{}", case.name);
                compared += 1;
            }
        }
    }
    assert!(compared >= 100, "only {compared} peaks were compared");
}
