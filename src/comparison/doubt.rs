//! What could not be compared, and whether a verdict can be trusted without it.
//!
//! In: two recordings and their comparison. Out: doubts, in words for a person. Always: what the base shows and the head does not
//! counts; what the head shows beyond the base is judged by the rules alone, and does not.

use std::collections::BTreeMap;

use super::device::{self, DeviceComparison};
use super::measured::MeasuredDevice;
use super::{Side, counterpart, shared_devices};
use crate::engine::Report;
use crate::unit::{Index, count, some_of};

/// Something that could not be compared.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Doubt {
    /// Whether the head may be worse there, unseen.
    pub counts: bool,
    /// What, in words for a person: lower-case start, no final stop.
    pub text: String,
    /// What to do, in the imperative.
    pub help: &'static str,
}

impl Doubt {
    fn of(text: String) -> Doubt {
        Doubt { counts: true, text, help: "record both in the same way, then compare again" }
    }
}

/// What keeps the two from being compared in full.
pub(super) fn all(base: Side, head: Side) -> Vec<Doubt> {
    let mut doubts = Vec::new();
    for (side, other, name) in [(base, head, "base"), (head, base, "head")] {
        for device in &side.measured.devices {
            if counterpart(device, side.measured, other.measured).is_none() {
                doubts.push(Doubt::of(format!("device {} is in the {name} alone", device.device.position())));
            }
            if device.iterations == 0 {
                doubts.push(Doubt::of(format!(
                    "no iterations were found on device {} of the {name}, so nothing is aligned",
                    device.device.position()
                )));
            }
        }
    }
    for (side, name) in [(base, "base"), (head, "head")] {
        let ended = side.report.recordings.iter().filter_map(|one| one.ended.as_ref());
        let gone_on = |ended| Doubt::of(format!("what the {name} would have gone on to do: {ended}"));
        doubts.extend(ended.map(gone_on));
    }
    for (side, other, name) in [(base, head, "base"), (head, base, "head")] {
        doubts.extend(unjudged(side.report, other.report).into_iter().map(|(reason, rules)| {
            Doubt::of(format!("{} could not look at the {name}: {reason}", some_of(&rules)))
        }));
    }
    doubts.extend(shared_devices(base.measured, head.measured).filter_map(unlike));
    doubts.extend(shared_devices(base.measured, head.measured).filter_map(stepless));
    doubts
}

/// Says that iterations are held against others, since these are slices, or one of them is.
pub(super) fn shifted((base, head): (usize, usize)) -> Doubt {
    Doubt {
        counts: true,
        text: format!(
            "the base begins with iteration {base} of its program and the head with iteration {head}: other iterations have the same number, and no difference \
             between them is a change of the program"
        ),
        help: "compare whole recordings, or slices of the same iterations: `memlint slice --iterations A..B`",
    }
}

/// Says that no call site is the same.
fn unlike((one, other): (&MeasuredDevice, &MeasuredDevice)) -> Option<Doubt> {
    device::are_strangers(one, other).then(|| Doubt {
        counts: true,
        text: format!(
            "no call site of device {} is the same in both: are they recordings of one program?",
            one.device.position()
        ),
        help: "name the right base; if the program's file or functions were renamed and edited, nothing tells them apart \
               from another program's: what is recorded once that is merged is the next base",
    })
}

/// Says that the head trains no more: what steps of an optimizer cost is then not compared.
fn stepless((one, other): (&MeasuredDevice, &MeasuredDevice)) -> Option<Doubt> {
    (one.steps > 0 && other.steps == 0).then(|| Doubt {
        counts: true,
        text: format!(
            "the base makes {} on device {} and the head none",
            count(one.steps, "optimizer step"),
            one.device.position()
        ),
        help: "record the program that trains; where it is not to train any more, what is recorded once that is merged is \
               the next base",
    })
}

/// Says that growth is not compared, where the longer recording alone would show it.
pub(super) fn too_short_for_growth(device: &DeviceComparison) -> Option<Doubt> {
    let (base, head) = device.iterations;
    let shows =
        base.min(head) > 0 && device::shows_growth(base.max(head)) && !device::shows_growth(device.aligned);
    shows.then(|| {
        Doubt::of(format!(
            "growth is not compared on device {}: the base holds {} and the head {}",
            device.device.position(),
            count(base, "iteration"),
            count(head, "iteration")
        ))
    })
}

/// The rules that could not look at one recording, and could at the other, by the reason.
fn unjudged<'a>(one: &'a Report, other: &Report) -> BTreeMap<&'static str, Vec<&'a str>> {
    let mut by_reason: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for skipped in &one.skipped {
        let looked = other.skipped.iter().all(|beside| beside.rule != skipped.rule);
        if let Some(hidden) = skipped.blind().filter(|_| looked) {
            by_reason.entry(hidden.reason()).or_default().push(&skipped.rule);
        }
    }
    for rules in by_reason.values_mut() {
        rules.dedup();
    }
    by_reason
}

/// Says that one of the two goes on beyond the other, where nothing is said of growth either way.
pub(super) fn unequal(device: &DeviceComparison) -> Option<Doubt> {
    let (base, head) = device.iterations;
    let told = device.aligned == 0 || base == head || too_short_for_growth(device).is_some();
    (!told).then(|| Doubt {
        counts: base > head,
        text: format!(
            "the base holds {} on device {} and the head {head}: only the first {} compared",
            count(base, "iteration"),
            device.device.position(),
            if device.aligned == 1 { "is".to_owned() } else { format!("{} are", device.aligned) }
        ),
        help: if base > head {
            "record as many iterations as the base has; where fewer are meant, what is recorded once that is merged is \
             the next base"
        } else {
            "what the rules find in the others counts; a higher peak there does not, until this is the base"
        },
    })
}
