//! Reading and replaying: nothing is lost, and the sums are PyTorch's.

use memlint::replay::Replay;
use memlint::snapshot::{Action, BlockState, Gap};
use memlint::timeline::Timeline;
use memlint::unit::{Bytes, DeviceIndex, Index};

use crate::case;

#[test]
fn peaks_equal_pytorchs_statistics_to_the_byte() {
    let mut compared = 0;
    for case in case::all().iter().filter(|case| case.is_whole()) {
        let snapshot = &case.input.snapshot;
        for (device, _) in snapshot.active_devices() {
            let timeline = Timeline::of(snapshot, device);
            let peaks = [
                ("requested_bytes.all.peak", timeline.peak_requested.bytes),
                ("reserved_bytes.all.peak", timeline.peak_reserved.bytes),
            ];
            for (name, ours) in peaks {
                let theirs = case.statistic(device.position(), name).expect("the truth holds it");
                assert_eq!(ours, Bytes(theirs), "{}: {name}", case.name);
                compared += 1;
            }
        }
    }
    assert!(compared >= 2 * 40, "only {compared} peaks were compared");
}

#[test]
fn block_sizes_give_pytorchs_allocated_and_active_peaks() {
    let mut compared = 0;
    for case in case::all().iter().filter(|case| case.is_whole()) {
        let snapshot = &case.input.snapshot;
        for (device, _) in snapshot.active_devices() {
            let timeline = Timeline::of(snapshot, device);
            let replay = Replay::of(snapshot, &timeline);
            let peaks = [
                ("allocated_bytes.all.peak", replay.peak_allocated.bytes),
                ("active_bytes.all.peak", replay.peak_active.bytes),
            ];
            for (name, ours) in peaks {
                let theirs = case.statistic(device.position(), name).expect("the truth holds it");
                assert_eq!(ours, Bytes(theirs), "{}: {name}", case.name);
                compared += 1;
            }
        }
    }
    assert!(compared >= 2 * 40, "only {compared} peaks were compared");
}

#[test]
fn the_curves_end_where_the_segments_stand() {
    for case in case::all() {
        let snapshot = &case.input.snapshot;
        for (device, _) in snapshot.active_devices() {
            let timeline = Timeline::of(snapshot, device);
            let (mut requested, mut reserved) = (Bytes::ZERO, Bytes::ZERO);
            for segment in snapshot.segments_of(device.position()) {
                reserved += segment.total_size;
                let active = segment.blocks.iter().filter(|block| block.state != BlockState::Inactive);
                requested += active.map(|block| block.requested).sum::<Bytes>();
            }
            assert_eq!(timeline.requested_at_end, requested, "{}: requested", case.name);
            assert_eq!(timeline.reserved_at_end, reserved, "{}: reserved", case.name);
        }
    }
}

#[test]
fn running_sums_are_never_negative() {
    for case in case::all() {
        let snapshot = &case.input.snapshot;
        for (device, trace) in snapshot.active_devices() {
            let timeline = Timeline::of(snapshot, device);
            let mut requested = i128::from(timeline.requested_at_start.get());
            let mut reserved = i128::from(timeline.reserved_at_start.get());
            for (at, event) in trace.events.iter().enumerate() {
                let size = i128::from(event.size.get());
                match event.action {
                    Action::Alloc => requested += size,
                    Action::FreeCompleted => requested -= size,
                    Action::SegmentAlloc | Action::SegmentMap => reserved += size,
                    Action::SegmentFree | Action::SegmentUnmap => reserved -= size,
                    _ => {}
                }
                assert!(requested >= 0 && reserved >= 0, "{}: below zero at event {at}", case.name);
                assert!(requested <= reserved, "{}: more in use than reserved at event {at}", case.name);
            }
        }
    }
}

#[test]
fn every_free_is_matched_or_accounted_for() {
    for case in case::all() {
        let snapshot = &case.input.snapshot;
        for (device, trace) in snapshot.active_devices() {
            let timeline = Timeline::of(snapshot, device);
            let name = &case.name;
            let agreement = timeline.agreement;
            assert_eq!((agreement.lost_frees, agreement.allocations_without_block), (0, 0), "{name}");
            if case.is_whole() {
                let unmatched = (agreement.frees_without_alloc, agreement.blocks_without_alloc);
                assert_eq!(unmatched, (0, 0), "{name}: recorded from the start");
            }
            let frees = trace.events.iter().filter(|event| event.action == Action::FreeCompleted).count();
            let ended = timeline.allocations.iter().filter(|one| one.free.is_some()).count();
            assert_eq!(frees, ended, "{name}: one lifetime ends at each completed free");
            let older = timeline.allocations.iter().filter(|one| one.alloc.is_none()).count();
            assert_eq!(older, agreement.frees_without_alloc + agreement.blocks_without_alloc, "{name}");
            for (at, id) in timeline.allocation_of.iter().enumerate() {
                let touches = matches!(
                    trace.events[at].action,
                    Action::Alloc | Action::FreeRequested | Action::FreeCompleted
                );
                assert_eq!(id.is_some(), touches, "{name}: event {at}");
                let address = id.and_then(|id| timeline.allocation(id)).map(|one| one.address);
                assert!(
                    address.is_none_or(|address| address == trace.events[at].address),
                    "{name}: event {at}"
                );
            }
        }
    }
}

#[test]
fn only_what_is_missing_is_reported_missing() {
    for case in case::all() {
        let snapshot = &case.input.snapshot;
        let expected: &[Gap] = if case.labels["stacks"] == "none" { &[Gap::NoStacks] } else { &[] };
        assert_eq!(snapshot.gaps, expected, "{}", case.name);
        assert!(snapshot.devices.len() == 1 && DeviceIndex::at(0).is_some(), "{}", case.name);
    }
}
