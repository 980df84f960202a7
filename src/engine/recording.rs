//! What a report shows of one snapshot, whatever the rules say: small enough to keep for many.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use super::witness::{self, RecordedFile};
use super::{Device, Input, Profile};
use crate::facts::RecordingKind;
use crate::finding::{Hidden, Location};
use crate::picture::Picture;
use crate::program::FoundBy;
use crate::snapshot::{DeviceTrace, Ended, Excerpt, Gap, Modelled};
use crate::timeline::Agreement;
use crate::unit::{Bytes, Confidence, DeviceIndex, Index, Micros};

/// One snapshot.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Recording {
    /// What messages call it: the path as given, or `<stdin>`.
    pub name: String,
    /// The rank of the process that wrote it, where that is known.
    pub rank: Option<u32>,
    /// What the names of all snapshots of its job have in common, where that is known.
    pub job: Option<String>,
    /// When in the course of the job it was written; compares as time does.
    pub moment: Vec<u64>,
    /// Which part of a longer recording it is, where memlint cut it out.
    pub excerpt: Option<Excerpt>,
    /// What stood in for the GPU, where there was none.
    pub modelled: Option<Modelled>,
    /// How the program ended, where it did not come to its own end.
    pub ended: Option<Ended>,
    /// What the file lacks.
    pub gaps: Vec<Gap>,
    /// The user's own files that stand in its stacks.
    pub files: Vec<RecordedFile>,
    /// Every device that did something, by ordinal.
    pub devices: Vec<RecordedDevice>,
    /// The rules that were asked of it, in their order, whether they could judge or not.
    pub rules: Vec<Cow<'static, str>>,
    /// How many of them judged the program, on one device at least. Rules of the group `input` judge the recording.
    pub judged: usize,
    /// What can be drawn of its devices, where that was asked for and levels are known.
    pub pictures: Vec<(DeviceIndex, Picture)>,
}

/// One device of a snapshot.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordedDevice {
    /// Its ordinal.
    pub device: DeviceIndex,
    /// What kind of recording it is.
    pub kind: RecordingKind,
    /// How many events were recorded.
    pub events: usize,
    /// How many allocations they are.
    pub allocations: usize,
    /// How long the recording took, where events have times.
    pub duration: Option<Micros>,
    /// The program's main loop, where the stacks show it.
    pub main_loop: Option<MainLoop>,
    /// The evidence by which the iterations were told apart.
    pub found_by: FoundBy,
    /// How sure that is.
    pub confidence: Confidence,
    /// How many iterations there are.
    pub iterations: usize,
    /// What keeps the levels below from being known, where something does.
    pub hidden: Option<Hidden>,
    /// The highest requested bytes, where the recording shows them.
    pub peak_requested: Option<Bytes>,
    /// The highest bytes of blocks in use, where the recording shows them.
    pub peak_allocated: Option<Bytes>,
    /// The highest bytes held from the driver, where the recording shows them.
    pub peak_reserved: Option<Bytes>,
    /// Requested bytes when the recording ends.
    pub requested_at_end: Bytes,
    /// Reserved bytes when the recording ends.
    pub reserved_at_end: Bytes,
    /// What the peak consists of, and what each iteration needed; nothing where levels are not known.
    pub profile: Profile,
    /// What the history and the final segments do not agree on.
    pub agreement: Agreement,
}

/// A program's main loop as the stacks show it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MainLoop {
    /// The line that iterates, or the first of the body that allocates.
    pub location: Location,
    /// The last line of the body that was seen.
    pub last_line: u32,
}

impl Recording {
    pub(super) fn of(input: &Input) -> Recording {
        Recording {
            name: input.name.clone(),
            rank: input.origin.rank,
            job: input.origin.job.clone(),
            moment: input.origin.moment.clone(),
            excerpt: input.snapshot.excerpt.clone(),
            modelled: input.snapshot.modelled.clone(),
            ended: input.snapshot.ended.clone(),
            gaps: input.snapshot.gaps.clone(),
            files: witness::files(&input.snapshot, &input.frames),
            devices: input.devices.iter().map(|device| RecordedDevice::of(input, device)).collect(),
            rules: Vec::new(),
            judged: 0,
            pictures: Vec::new(),
        }
    }

    /// What can be drawn of a device.
    pub fn picture(&self, ordinal: DeviceIndex) -> Option<&Picture> {
        self.pictures.iter().find(|(device, _)| *device == ordinal).map(|(_, picture)| picture)
    }

    /// The device of an ordinal.
    pub fn device(&self, ordinal: DeviceIndex) -> Option<&RecordedDevice> {
        self.devices.iter().find(|device| device.device == ordinal)
    }
}

impl RecordedDevice {
    /// A device of which nothing was recorded.
    pub fn of_ordinal(device: DeviceIndex) -> RecordedDevice {
        RecordedDevice {
            device,
            kind: RecordingKind::State,
            events: 0,
            allocations: 0,
            duration: None,
            main_loop: None,
            found_by: FoundBy::Nothing,
            confidence: Confidence::Low,
            iterations: 0,
            hidden: None,
            peak_requested: Some(Bytes::ZERO),
            peak_allocated: Some(Bytes::ZERO),
            peak_reserved: Some(Bytes::ZERO),
            requested_at_end: Bytes::ZERO,
            reserved_at_end: Bytes::ZERO,
            profile: Profile::default(),
            agreement: Agreement::default(),
        }
    }

    fn of(input: &Input, device: &Device) -> RecordedDevice {
        let Device { timeline, program, replay, profile, evidence, .. } = device;
        let hidden = evidence.levels().err();
        let of_driver = evidence.events().and(evidence.segments());
        let trace = input.snapshot.devices.get(device.device.position());
        RecordedDevice {
            device: device.device,
            kind: evidence.kind,
            events: trace.map_or(0, |trace| trace.events.len()),
            allocations: timeline.allocations.len(),
            duration: trace.and_then(duration),
            main_loop: main_loop(input, device),
            found_by: program.found_by,
            confidence: program.confidence,
            iterations: program.iterations.len(),
            hidden,
            peak_requested: hidden.is_none().then_some(timeline.peak_requested.bytes),
            peak_allocated: hidden.is_none().then_some(replay.peak_allocated.bytes),
            peak_reserved: of_driver.is_ok().then_some(timeline.peak_reserved.bytes),
            requested_at_end: timeline.requested_at_end,
            reserved_at_end: timeline.reserved_at_end,
            profile: if hidden.is_none() { profile.clone() } else { Profile::default() },
            agreement: timeline.agreement,
        }
    }
}

/// From the first event to the last; events without a time do not count.
fn duration(trace: &DeviceTrace) -> Option<Micros> {
    let times = trace.events.iter().map(|event| event.time).filter(|time| time.0 > 0);
    let (first, last) = (times.clone().min()?, times.max()?);
    Some(Micros(last.0 - first.0))
}

fn main_loop(input: &Input, device: &Device) -> Option<MainLoop> {
    let recorded = device.program.main_loop?;
    let location = Location { line: recorded.line, ..Location::of(&input.snapshot, recorded.frame)? };
    Some(MainLoop { location, last_line: recorded.last_line })
}
