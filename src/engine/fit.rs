//! Whether what was recorded fits a device of a named capacity.
//!
//! In: recordings, the capacity. Out: the device on which most was reserved, and whether that fits: reserved memory is what a device has to
//! give, but PyTorch gives back of it what is not allocated before it fails, so that only allocated memory is sure not to fit. What PyTorch
//! does not manage (the CUDA context, NCCL) needs memory besides and is not known, so what fits barely may not.

use super::Recording;
use crate::finding::{Matter, Notice, Severity};
use crate::unit::{Bytes, DeviceIndex, Index, count, shown_name, told_apart};

/// The device that needs most of all that were recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fit {
    /// What the device is to have.
    pub capacity: Bytes,
    /// The peak of reserved memory, or, where that is not known, of allocated memory.
    pub most: Bytes,
    /// Whether it is reserved memory.
    pub is_reserved: bool,
    /// The peak of allocated memory.
    allocated: Bytes,
    /// How many devices of all recordings reserved more than there is.
    pub over: usize,
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
            let allocated = device.peak_allocated.or(device.peak_requested)?;
            Some(Fit {
                capacity,
                most: device.peak_reserved.unwrap_or(allocated),
                is_reserved: device.peak_reserved.is_some(),
                allocated,
                over: 0,
                name: one.name.clone(),
                device: device.device,
            })
        });
        let all: Vec<Fit> = known.collect();
        let over = all.iter().filter(|one| one.most > capacity).count();
        let worst = all.into_iter().rev().max_by_key(|one| (one.is_impossible(), one.most, one.allocated))?;
        Some(Fit { over, ..worst })
    }

    /// Whether all of it fits.
    pub const fn fits(&self) -> bool {
        self.over == 0
    }

    /// Whether PyTorch could not have gone on with so little, whatever it gave back.
    fn is_impossible(&self) -> bool {
        self.allocated > self.capacity
    }

    /// That it does not fit, where it does not: an error where that is certain.
    pub(super) fn notice(&self) -> Option<Notice> {
        let name = shown_name(&self.name);
        (!self.fits()).then(|| Notice {
            kind: Matter::DoesNotFit,
            severity: if self.is_impossible() { Severity::Error } else { Severity::Warning },
            message: self.excess(&name),
            help: format!(
                "`memlint whatif {name} --device-memory {}` replays the recording with that much",
                self.capacity.exact().replace(' ', "")
            ),
            location: None,
        })
    }

    /// By which peak it does not fit: allocated memory cannot, reserved memory may.
    fn excess(&self, name: &str) -> String {
        let place = format!("on device {} of {name}", self.device.position());
        let more = match self.over {
            0 | 1 => String::new(),
            over => format!("; {} in all reserved more", count(over, "device")),
        };
        if self.is_impossible() {
            let [capacity, allocated] = told_apart([self.capacity, self.allocated]);
            format!(
                "what was recorded does not fit {capacity}: up to {allocated} were allocated {place}{more}"
            )
        } else {
            let [capacity, most, allocated] = told_apart([self.capacity, self.most, self.allocated]);
            format!(
                "what was recorded may not fit {capacity}: up to {most} were reserved {place}, though no more than {allocated} \
                 allocated{more}"
            )
        }
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
            "what was recorded does not fit 100 MiB: up to 170 MiB were allocated on device 0 of a; 2 devices in all reserved more"
        );
        assert_eq!(
            told(&[recording("a", Some(120), 90)]),
            "what was recorded may not fit 100 MiB: up to 120 MiB were reserved on device 0 of a, though no more than 90 MiB allocated"
        );
        assert_eq!(told(&[recording("a", None, 90)]), "90 MiB fit", "reserved is not known");
        assert_eq!(Fit::of(&[], Bytes::MIB), None);
    }
}
