//! Two recordings compared after edits elsewhere, on another machine, with another PyTorch.

use memlint::comparison::{Comparison, Direction, Measured, Side};
use memlint::engine::{Input, Report, check};
use memlint::snapshot::Snapshot;

use crate::altered;
use crate::snapshot;

fn measured(snapshot: Snapshot) -> (Measured, Report) {
    let input = Input::of("snapshot".to_owned(), snapshot);
    (Measured::of(&input), check(vec![input]))
}

fn compared(base: Snapshot, head: Snapshot) -> Comparison {
    let (base, head) = (measured(base), measured(head));
    Comparison::of(Side { measured: &base.0, report: &base.1 }, Side { measured: &head.0, report: &head.1 })
}

#[test]
fn nothing_changes_where_nothing_was_changed() {
    for case in ["grow-replay-bug", "latezero-vit-bug", "clean-gcn-cached"] {
        for (alteration, altered) in [
            ("lines moved", altered::edited_elsewhere(snapshot(case))),
            ("another checkout", altered::elsewhere(snapshot(case))),
            ("a newer PyTorch", altered::newer_pytorch(snapshot(case))),
            ("another time", altered::at_another_time(snapshot(case))),
        ] {
            let comparison = compared(snapshot(case), altered);
            assert!(comparison.findings.is_empty() && comparison.doubts.is_empty(), "{case}: {comparison:?}");
            let device = &comparison.devices[0];
            assert_eq!(device.peak.base, device.peak.head);
            for site in &device.sites {
                let same = site.bytes.base == site.bytes.head && site.growth.base == site.growth.head;
                assert!(same, "{case}, {alteration}: {site:?}");
            }
        }
    }
}

#[test]
fn a_function_that_was_renamed_is_new_and_the_old_one_gone() {
    let case = "latezero-vit-bug";
    let comparison = compared(snapshot(case), altered::in_another_function(snapshot(case)));
    let device = &comparison.devices[0];
    assert_eq!(device.peak.direction(), Direction::Same);
    assert!(device.grown().all(|site| site.lines.0.is_none()));
    assert!(device.shrunk().all(|site| site.lines.1.is_none()));
    assert!(device.grown().count() > 0);
}

#[test]
fn everything_four_times_as_large_is_up() {
    let case = "clean-gcn-cached";
    let comparison = compared(snapshot(case), altered::larger(snapshot(case), 4));
    let device = &comparison.devices[0];
    assert_eq!(device.peak.head, device.peak.base.times(4));
    assert_eq!(device.reserved.direction(), Direction::Up);
    assert!(device.roles.iter().all(|role| role.bytes.direction() != Direction::Down));
}
