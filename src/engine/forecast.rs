//! When the device will be full, if memory goes on growing as it does.
//!
//! In: findings with a growth, their recordings, the device's capacity, if somebody named it. Out: one more measure a finding.
//! Where the device ran out of memory already, and nobody says how large it is, that says nothing. All growths of a
//! device count together, and reserved memory is what fills it, at its own pace where that is faster (the text says so then); what PyTorch does
//! not manage is not known, so the true moment comes no later. Where more than that was held already, `does-not-fit` says so.

use std::collections::{BTreeMap, BTreeSet};

use super::Recording;
use crate::finding::{Finding, Impact, Measure, Quantity, Severity};
use crate::rules;
use crate::snapshot::Modelled;
use crate::unit::{Bytes, DeviceIndex, grouped};
use crate::verdict::USUAL_DEVICE;

/// Adds to every finding that grows in which iteration a device of this capacity is full.
pub(super) fn forecast(findings: &mut [Finding], recordings: &[Recording], named: Option<Bytes>) {
    let mut growth: BTreeMap<(usize, DeviceIndex), Bytes> = BTreeMap::new();
    // A note often tells of tensors that a graver finding tells of, too, and must not hasten the date.
    let is_grave = |one: &Finding| one.severity > Severity::Info;
    let any_grave = findings.iter().any(|one| is_grave(one) && growing(one).is_some());
    for finding in findings.iter().filter(|one| is_grave(one) || !any_grave) {
        let elsewhere = finding.also.iter().filter_map(|one| grows(one.input, one.device, &one.impact));
        for (place, each) in growing(finding).into_iter().chain(elsewhere) {
            *growth.entry(place).or_default() += each;
        }
    }
    let failed: BTreeSet<(usize, Option<DeviceIndex>)> = findings
        .iter()
        .filter(|one| one.rule == rules::OUT_OF_MEMORY)
        .map(|one| (one.input, one.device))
        .collect();
    for finding in findings {
        let Some((place, _)) = growing(finding) else { continue };
        if named.is_none() && failed.contains(&(place.0, Some(place.1))) {
            continue;
        }
        let recording = recordings.get(place.0);
        let modelled = recording.and_then(|recording| recording.modelled.as_ref()).map(Modelled::memory);
        let capacity = named.or(modelled).unwrap_or(USUAL_DEVICE);
        let device = recording.and_then(|recording| recording.device(place.1));
        let Some(device) = device.filter(|device| device.iterations > 0) else { continue };
        let Some(reserved) = device.peak_reserved.filter(|reserved| *reserved < capacity) else { continue };
        // Holes grow along with what is kept.
        let (kept, held) = (growth.get(&place).copied().unwrap_or_default(), device.profile.reserved_growth);
        let each = kept.max(held);
        let left = capacity - reserved;
        let more = left.get().checked_div(each.get()).unwrap_or_default();
        let iteration = device.iterations as u64 + more + 1;
        let told = grouped(usize::try_from(iteration).unwrap_or(usize::MAX));
        let date = Measure {
            name: "full-in-iteration".into(),
            value: Quantity::Count(iteration),
            text: if held > kept {
                format!(
                    "reserved memory grows by {held} an iteration: {capacity} are full in iteration {told}"
                )
            } else {
                format!("at this rate {capacity} are full in iteration {told}")
            },
        };
        // What somebody who is called at night asks first.
        finding.evidence.insert(0, date);
    }
}

/// The device on which a finding grows, and by how much in each iteration.
fn growing(finding: &Finding) -> Option<((usize, DeviceIndex), Bytes)> {
    grows(finding.input, finding.device, &finding.impact)
}

fn grows(
    input: usize,
    device: Option<DeviceIndex>,
    impact: &Impact,
) -> Option<((usize, DeviceIndex), Bytes)> {
    let each = impact.per_iteration.filter(|each| *each > Bytes::ZERO)?;
    Some(((input, device?), each))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::RecordedDevice;
    use crate::finding::{Group, Impact};
    use crate::unit::Index;

    #[test]
    fn all_growths_of_a_device_fill_it_together() {
        let device = DeviceIndex::at(0).unwrap();
        let grows = |mib: u64| Finding {
            device: Some(device),
            impact: Impact { per_iteration: Some(Bytes::MIB.times(mib)), ..Impact::default() },
            ..Finding::of("growing-residency", Group::Leak, Severity::Error)
        };
        let mut recorded = RecordedDevice::of_ordinal(device);
        recorded.peak_reserved = Some(Bytes::GIB.times(4));
        recorded.iterations = 10;
        let recordings = [Recording { devices: vec![recorded], ..Recording::default() }];
        let mut findings = [grows(64), grows(192), grows(0)];
        forecast(&mut findings, &recordings, Some(Bytes::GIB.times(80)));
        let date = |finding: &Finding| finding.evidence.first().map(|one| one.value.clone());
        // 76 GiB left, 256 MiB an iteration: 304 more fit after the tenth, the next does not.
        assert_eq!(date(&findings[0]), Some(Quantity::Count(315)));
        assert_eq!(date(&findings[1]), Some(Quantity::Count(315)));
        assert_eq!(date(&findings[2]), None);
        // Holes grow along with what is kept.
        let mut faster = recordings.clone();
        if let Some(device) = faster.first_mut().and_then(|one| one.devices.first_mut()) {
            device.profile.reserved_growth = Bytes::MIB.times(512);
        }
        let mut findings = [grows(256)];
        forecast(&mut findings, &faster, Some(Bytes::GIB.times(80)));
        assert_eq!(date(&findings[0]), Some(Quantity::Count(163)));
        let told = findings[0].evidence.first().map(|one| one.text.as_str());
        assert_eq!(
            told,
            Some("reserved memory grows by 512 MiB an iteration: 80 GiB are full in iteration 163")
        );
        // What a note says again does not fill it sooner.
        let mut findings = [grows(256), Finding { severity: Severity::Info, ..grows(256) }];
        forecast(&mut findings, &recordings, Some(Bytes::GIB.times(80)));
        assert_eq!(date(&findings[0]), Some(Quantity::Count(315)));
        // Where memory ran out, a size that nobody named says nothing.
        let failed = Finding {
            device: Some(device),
            ..Finding::of(rules::OUT_OF_MEMORY, Group::Allocator, Severity::Error)
        };
        let mut findings = [grows(64), failed];
        forecast(&mut findings, &recordings, None);
        assert_eq!(date(&findings[0]), None);
        forecast(&mut findings[..1], &recordings, None);
        assert_eq!(date(&findings[0]), Some(Quantity::Count(10 + 1216 + 1)));
    }
}
