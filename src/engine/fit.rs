//! Whether what was recorded fits a device of a named capacity.
//!
//! In: recordings, the capacity. Out: the device that needs most, and whether that fits. What PyTorch does not manage (the CUDA
//! context, NCCL) needs memory besides and is not known, so what fits barely may not.

use super::Recording;
use crate::finding::{Matter, Notice, Severity};
use crate::unit::{Bytes, DeviceIndex, Index, count, shown_name};

/// The device that needs most of all that were recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fit {
    /// What the device is to have.
    pub capacity: Bytes,
    /// The most that was held from the driver, or, where that is not known, in use.
    pub most: Bytes,
    /// How many devices of all recordings need more than there is.
    pub over: usize,
    /// Whether blocks in use alone need more than there is; else the allocator held more than it needed.
    pub in_use: bool,
    /// Where that is.
    name: String,
    device: DeviceIndex,
}

impl Fit {
    /// Whether recordings fit; nothing where no level is known, or where memory ran out already: how much would have been needed
    /// then nobody knows.
    pub fn of(recordings: &[Recording], capacity: Bytes) -> Option<Fit> {
        let devices = recordings.iter().flat_map(|one| one.devices.iter().map(move |device| (one, device)));
        let known = devices.filter_map(|(one, device)| {
            let in_use = device.peak_allocated.or(device.peak_requested)?;
            Some((device.peak_reserved.unwrap_or(in_use), in_use, &one.name, device.device))
        });
        let all: Vec<_> = known.collect();
        let over = all.iter().filter(|(held, ..)| *held > capacity).count();
        let (most, in_use, name, device) =
            all.into_iter().rev().max_by_key(|(held, in_use, ..)| (*held, *in_use))?;
        Some(Fit { capacity, most, over, in_use: in_use > capacity, name: name.clone(), device })
    }

    /// Whether all of it fits.
    pub const fn fits(&self) -> bool {
        self.over == 0
    }

    /// That it does not fit, where it does not.
    pub(super) fn notice(&self) -> Option<Notice> {
        let Fit { capacity, most, name, device, .. } = self;
        let place = format!("device {} of {}", device.position(), shown_name(name));
        let more = match self.over {
            0 | 1 => String::new(),
            over => format!(", and {} in all", count(over, "device")),
        };
        let message = if self.in_use {
            format!("the recorded program does not fit {capacity}: {place} needs {most}{more}")
        } else {
            format!(
                "the allocator held more than {capacity}, though less was in use: {most} on {place}{more}"
            )
        };
        (!self.fits()).then(|| Notice {
            kind: Matter::DoesNotFit,
            severity: Severity::Warning,
            message,
            help: format!(
                "`memlint whatif SNAPSHOT --device-memory {}` replays it with so much",
                capacity.exact().replace(' ', "")
            ),
            location: None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::RecordedDevice;

    fn recording(name: &str, reserved: Option<u64>, allocated: u64) -> Recording {
        let mut device = RecordedDevice::of_ordinal(DeviceIndex::at(0).unwrap());
        device.peak_reserved = reserved.map(|mib| Bytes::MIB.times(mib));
        device.peak_allocated = Some(Bytes::MIB.times(allocated));
        Recording { name: name.to_owned(), devices: vec![device], ..Recording::default() }
    }

    fn told(recordings: &[Recording]) -> String {
        let fit = Fit::of(recordings, Bytes::MIB.times(100)).unwrap();
        fit.notice().map_or_else(|| format!("{} fit", fit.most), |notice| notice.message)
    }

    #[test]
    fn the_device_that_needs_most_decides() {
        assert_eq!(told(&[recording("a", Some(80), 70), recording("b", Some(100), 90)]), "100 MiB fit");
        assert_eq!(
            told(&[recording("a", Some(180), 170), recording("b", Some(120), 110)]),
            "the recorded program does not fit 100 MiB: device 0 of a needs 180 MiB, and 2 devices in all"
        );
        assert_eq!(
            told(&[recording("a", Some(120), 90)]),
            "the allocator held more than 100 MiB, though less was in use: 120 MiB on device 0 of a"
        );
        assert_eq!(told(&[recording("a", None, 90)]), "90 MiB fit", "reserved is not known");
        assert_eq!(Fit::of(&[], Bytes::MIB), None);
    }
}
