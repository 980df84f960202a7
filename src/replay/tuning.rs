//! The allocator's settings, as far as they decide how much it reserves.
//!
//! In: what a snapshot says of its settings, and changes to them, written as in `PYTORCH_CUDA_ALLOC_CONF`. Out: what the
//! model goes by. Names, bounds and defaults are PyTorch's (`c10/core/AllocatorConfig.cpp`, 2.15); a value that PyTorch
//! would refuse is refused here, too.

use std::fmt;

use super::error::TuningError;
use crate::snapshot::{Action, DeviceTrace, Snapshot};
use crate::unit::{Bytes, suggestion};

/// The size of a segment of the small pool, and of the pages of its expandable segments (`kSmallBuffer`).
pub(super) const SMALL_SEGMENT: u64 = 2 << 20;
/// The size of a large segment where nothing else is set (`kLargeBuffer`).
const LARGE_SEGMENT: Bytes = Bytes(20 << 20);
/// A large segment has to hold every request that gets one (`kMinLargeAlloc`), in MiB.
const LEAST_LARGE_SEGMENT: u64 = 10;
/// The least `max_split_size_mb` and `max_non_split_rounding_mb` that PyTorch takes.
const LEAST_SPLIT: u64 = 20;
/// More MiB than any device has; keeps sums of sizes far from where they would wrap.
const MOST_MIB: u64 = 1 << 30;

/// The settings that bear on device memory, in the order of the documentation.
const KNOWN: [&str; 7] = [
    "expandable_segments",
    "max_split_size_mb",
    "roundup_power2_divisions",
    "garbage_collection_threshold",
    "per_process_memory_fraction",
    "max_non_split_rounding_mb",
    "large_segment_size_mb",
];

/// Settings of PyTorch that bear on speed or on pinned memory alone, as their names begin.
const WITHOUT_BEARING: [&str; 4] =
    ["pinned_", "release_lock_on_", "graph_capture_record_stream_reuse", "throw_on_cudamalloc_oom"];

/// How the allocator is set.
#[derive(Debug, Clone, PartialEq)]
pub struct Tuning {
    /// Blocks from this size on are never split; `None` is unlimited.
    pub max_split_size: Option<Bytes>,
    /// How much larger than the request an unsplit block may be; `None` is as much as a large segment.
    pub max_non_split_rounding: Option<Bytes>,
    /// Divisions between powers of two to which sizes are rounded, for sizes from 1 MiB, 2 MiB, ... 32 GiB; 0 is off.
    pub roundup_power2_divisions: [u32; 16],
    /// The share of the limit from which free blocks are collected; 0 is off.
    pub garbage_collection_threshold: f64,
    /// Whether segments grow in place.
    pub expandable_segments: bool,
    /// The segment for requests below 10 MiB, and the page of large expandable segments.
    pub large_segment: Bytes,
    /// The share of the device that the process may reserve; 1 is no limit.
    pub memory_fraction: f64,
}

impl Default for Tuning {
    fn default() -> Tuning {
        Tuning {
            max_split_size: None,
            max_non_split_rounding: None,
            roundup_power2_divisions: [0; 16],
            garbage_collection_threshold: 0.0,
            expandable_segments: false,
            large_segment: LARGE_SEGMENT,
            memory_fraction: 1.0,
        }
    }
}

/// One setting, changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SettingChange {
    /// PyTorch's name for it.
    pub name: String,
    /// The value as it was written.
    pub value: String,
}

impl fmt::Display for SettingChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.name, self.value)
    }
}

impl Tuning {
    /// What a snapshot was recorded with. What it does not list, its configuration string may say; where that is not
    /// understood, the default holds. Before PyTorch 2.3 no settings are in the file: that segments grow in place, its
    /// events show.
    pub fn recorded(snapshot: &Snapshot) -> Tuning {
        let settings = &snapshot.settings;
        let grows = |trace: &DeviceTrace| trace.events.iter().any(|event| event.action == Action::SegmentMap);
        let expandable = || settings.conf.is_none() && snapshot.devices.iter().any(grows);
        let mut tuning = Tuning {
            max_split_size: settings.max_split_size,
            roundup_power2_divisions: settings.roundup_power2_divisions,
            garbage_collection_threshold: settings.garbage_collection_threshold,
            expandable_segments: settings.expandable_segments || expandable(),
            ..Tuning::default()
        };
        let unlisted = ["max_non_split_rounding_mb", "large_segment_size_mb", "per_process_memory_fraction"];
        for change in changes(settings.conf.as_deref().unwrap_or_default()).into_iter().flatten() {
            if unlisted.contains(&change.name.as_str())
                && let Ok(changed) = tuning.with(&change)
            {
                tuning = changed;
            }
        }
        tuning
    }

    /// These settings with one changed.
    ///
    /// # Errors
    /// Where PyTorch has no such setting, or refuses the value, or nothing here depends on it.
    pub fn with(&self, change: &SettingChange) -> Result<Tuning, TuningError> {
        let mut tuning = self.clone();
        let refused =
            |wanted| TuningError::Value { name: change.name.clone(), value: change.value.clone(), wanted };
        let value = change.value.as_str();
        let mebibytes = |least: u64, wanted| {
            let number = value.parse::<u64>().ok().filter(|number| (least..=MOST_MIB).contains(number));
            number.map(|number| Bytes::MIB.times(number)).ok_or_else(|| refused(wanted))
        };
        match change.name.as_str() {
            "expandable_segments" => {
                tuning.expandable_segments = match value {
                    "True" => true,
                    "False" => false,
                    _ => return Err(refused("True or False")),
                };
            }
            "max_split_size_mb" => {
                tuning.max_split_size = Some(mebibytes(LEAST_SPLIT, "a number of MiB, at least 20")?);
            }
            "max_non_split_rounding_mb" => {
                let size = mebibytes(LEAST_SPLIT, "a number of MiB, at least 20")?;
                tuning.max_non_split_rounding = Some(size);
            }
            "large_segment_size_mb" => {
                tuning.large_segment = mebibytes(LEAST_LARGE_SEGMENT, "a number of MiB, at least 10")?;
            }
            "garbage_collection_threshold" => {
                let share = value.parse::<f64>().ok().filter(|share| 0.0 < *share && *share < 1.0);
                tuning.garbage_collection_threshold =
                    share.ok_or_else(|| refused("a number between 0 and 1, both left out"))?;
            }
            "per_process_memory_fraction" => {
                let share = value.parse::<f64>().ok().filter(|share| 0.0 < *share && *share <= 1.0);
                tuning.memory_fraction = share.ok_or_else(|| refused("a number above 0, up to 1"))?;
            }
            "roundup_power2_divisions" => {
                let wanted = "a power of two, or a list such as [256:1,512:2,1024:4,>:8]";
                tuning.roundup_power2_divisions = divisions(value).ok_or_else(|| refused(wanted))?;
            }
            "backend" if value == "native" => {}
            "backend" => return Err(TuningError::Backend { backend: value.to_owned() }),
            name if WITHOUT_BEARING.iter().any(|begin| name.starts_with(begin)) => {
                return Err(TuningError::NoBearing { name: name.to_owned() });
            }
            name => {
                let hint = suggestion(name, "settings", KNOWN.into_iter());
                return Err(TuningError::Unknown { name: name.to_owned(), hint });
            }
        }
        Ok(tuning)
    }

    /// The page of expandable segments, and the segment for a request that needs no larger one.
    pub(super) fn page(&self, small: bool) -> u64 {
        if small { SMALL_SEGMENT } else { self.large_segment.get() }
    }
}

/// The settings in a text such as `expandable_segments:True,max_split_size_mb:64`, in its order.
///
/// # Errors
/// Where a part of it is not a name and a value.
pub fn changes(text: &str) -> Result<Vec<SettingChange>, TuningError> {
    let mut depth = 0_usize;
    let outside = |letter: char| {
        match letter {
            '[' => depth += 1,
            ']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        letter == ',' && depth == 0
    };
    let parts = text.split(outside).map(str::trim).filter(|part| !part.is_empty());
    let change = |part: &str| {
        let shape = || TuningError::Shape { text: part.to_owned() };
        let (name, value) = part.split_once(':').ok_or_else(shape)?;
        let (name, value) = (name.trim(), value.trim());
        if name.is_empty() || value.is_empty() {
            return Err(shape());
        }
        Ok(SettingChange { name: name.to_owned(), value: value.to_owned() })
    };
    parts.map(change).collect()
}

/// The divisions of each interval. Of a list, the first value also holds for what is smaller, and `>` for what is larger
/// than the last; intervals between two that are named stay as they are: off.
fn divisions(value: &str) -> Option<[u32; 16]> {
    let count =
        |text: &str| text.trim().parse::<u32>().ok().filter(|count| *count == 0 || count.is_power_of_two());
    let Some(list) = value.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) else {
        return count(value).filter(|count| *count > 0).map(|count| [count; 16]);
    };
    let mut table = [0; 16];
    let mut next = 0;
    for (at, entry) in list.split(',').enumerate() {
        let (start, divisions) = entry.split_once(':')?;
        let divisions = count(divisions)?;
        if start.trim() == ">" {
            table.iter_mut().skip(next).for_each(|place| *place = divisions);
            continue;
        }
        let start = start.trim().parse::<u64>().ok().filter(|start| start.is_power_of_two())?;
        let index = (start.ilog2() as usize).min(table.len() - 1);
        let from = if at == 0 { 0 } else { index };
        table.iter_mut().take(index + 1).skip(from).for_each(|place| *place = divisions);
        next = index + 1;
    }
    Some(table)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::snapshot::AllocatorSettings;

    fn tuned(text: &str) -> Result<Tuning, TuningError> {
        changes(text)?.iter().try_fold(Tuning::default(), |tuning, change| tuning.with(change))
    }

    #[test]
    fn settings_are_read_as_pytorch_reads_them() {
        let text = "max_split_size_mb:40, max_non_split_rounding_mb:30,garbage_collection_threshold:0.5,\
                    roundup_power2_divisions:[64:8,128:2,256:4,512:2,1024:4,>:1],expandable_segments:True,";
        let tuning = tuned(text).unwrap();
        assert_eq!(tuning.max_split_size, Some(Bytes(40 << 20)));
        assert_eq!(tuning.max_non_split_rounding, Some(Bytes(30 << 20)));
        assert!(tuning.expandable_segments && (tuning.garbage_collection_threshold - 0.5).abs() < 1e-9);
        // The values that PyTorch's own test expects (`c10/test/core/AllocatorConfig_test.cpp`).
        assert_eq!(tuning.roundup_power2_divisions, [8, 8, 8, 8, 8, 8, 8, 2, 4, 2, 4, 1, 1, 1, 1, 1]);
        let gap = tuned("roundup_power2_divisions:[128:8,256:16,512:1,2048:8,>:2]").unwrap();
        assert_eq!(gap.roundup_power2_divisions, [8, 8, 8, 8, 8, 8, 8, 8, 16, 1, 0, 8, 2, 2, 2, 2]);
        assert_eq!(tuned("roundup_power2_divisions:4").unwrap().roundup_power2_divisions, [4; 16]);
    }

    #[test]
    fn what_pytorch_refuses_is_refused() {
        for wrong in [
            "max_split_size_mb:19",
            "max_split_size_mb:-1",
            "max_split_size_mb:99999999999999999999",
            "expandable_segments:true",
            "garbage_collection_threshold:1",
            "garbage_collection_threshold:nan",
            "roundup_power2_divisions:3",
            "roundup_power2_divisions:0",
            "roundup_power2_divisions:[]",
            "roundup_power2_divisions:[3:2]",
            "roundup_power2_divisions:[4:2",
            "large_segment_size_mb:9",
            "per_process_memory_fraction:0",
        ] {
            assert!(matches!(tuned(wrong), Err(TuningError::Value { .. })), "{wrong}: {:?}", tuned(wrong));
        }
        assert!(matches!(tuned("expandable_segments"), Err(TuningError::Shape { .. })));
        assert!(matches!(tuned(":True"), Err(TuningError::Shape { .. })));
        assert!(matches!(tuned("pinned_num_register_threads:2"), Err(TuningError::NoBearing { .. })));
        assert!(matches!(tuned("backend:cudaMallocAsync"), Err(TuningError::Backend { .. })));
        let Err(TuningError::Unknown { hint, .. }) = tuned("expandable_segment:True") else { panic!() };
        assert_eq!(hint, "did you mean `expandable_segments`?");
    }

    #[test]
    fn what_a_snapshot_does_not_list_its_configuration_may_say() {
        let conf = "large_segment_size_mb:12,expandable_segments:True,nonsense:1";
        let settings = AllocatorSettings { conf: Some(conf.to_owned()), ..AllocatorSettings::default() };
        let tuning = Tuning::recorded(&Snapshot { settings, ..Snapshot::default() });
        assert_eq!(tuning.large_segment, Bytes(12 << 20));
        assert!(!tuning.expandable_segments, "the list says so, and it is younger than the string");
    }
}
