//! Roles against what each recorded process knew of its own tensors, by bytes.

use std::collections::BTreeMap;

use memlint::engine::Input;
use memlint::role::Role;
use memlint::timeline::Allocation;
use memlint::unit::Index;

use crate::case;

/// The share of bytes whose role has to be right, over all recordings and in the mean of them.
const RIGHT: f64 = 0.99;

/// The same without events, by the stacks of the blocks that are left.
const RIGHT_STILL: f64 = 0.95;

/// No recording tells a buffer from a frozen parameter.
fn same(role: Role, truth: &str) -> bool {
    let weight = |name: &str| name == "parameter" || name == "buffer";
    role.name() == truth || (weight(role.name()) && weight(truth))
}

/// Bytes whose role is right, and bytes whose true role is known, of the allocations that were born in the recording.
fn compared(case: &case::Case) -> (f64, f64) {
    let input = &case.input;
    let (mut right, mut known) = (0.0, 0.0);
    for device in &input.devices {
        let events = &input.snapshot.devices[device.device.position()].events;
        let mut at: BTreeMap<u64, Vec<(&Allocation, i64, Role)>> = BTreeMap::new();
        for (id, one) in device.timeline.iter() {
            let Some(born) = one.alloc else { continue };
            let role = device.roles.of[id.position()];
            at.entry(one.address).or_default().push((one, events[born.position()].time.0, role));
        }
        for sample in case.truth["samples"].as_array().into_iter().flatten() {
            let moment = sample["time_us"].as_i64().unwrap();
            for tensor in sample["roles"].as_array().unwrap() {
                if tensor[3].as_u64().unwrap_or(0) != device.device.position() as u64 {
                    continue;
                }
                let alive = |(one, born, _): &&(&Allocation, i64, Role)| {
                    *born <= moment && one.free.is_none_or(|free| events[free.position()].time.0 > moment)
                };
                let there = at.get(&tensor[0].as_u64().unwrap()).and_then(|all| all.iter().find(alive));
                let Some((.., role)) = there else { continue };
                let (bytes, truth) = (tensor[2].as_f64().unwrap(), tensor[1].as_str().unwrap());
                known += bytes;
                right += if same(*role, truth) { bytes } else { 0.0 };
            }
        }
    }
    (right, known)
}

#[test]
fn roles_are_what_the_process_knew() {
    let shares: Vec<(String, f64, f64)> = case::all()
        .iter()
        .map(|case| {
            let (right, known) = compared(case);
            (case.name.clone(), right, known)
        })
        .filter(|(.., known)| *known > 0.0)
        .collect();
    assert!(shares.len() >= 60, "only {} recordings know roles", shares.len());
    let wrong: Vec<&(String, f64, f64)> = shares.iter().filter(|(_, right, known)| right < known).collect();
    let (right, known) = shares.iter().fold((0.0, 0.0), |sum, one| (sum.0 + one.1, sum.1 + one.2));
    let mean = shares.iter().map(|(_, right, known)| right / known).sum::<f64>() / shares.len() as f64;
    assert!(
        right / known >= RIGHT && mean >= RIGHT,
        "{} in all, {mean} in the mean: {wrong:?}",
        right / known
    );
}

/// The same of what is held at the end, where all events are lost.
fn compared_still(case: &case::Case) -> (f64, f64) {
    let mut snapshot = case.snapshot();
    for trace in &mut snapshot.devices {
        trace.events.clear();
    }
    let input = Input::of(case.name.clone(), snapshot);
    let (mut right, mut known) = (0.0, 0.0);
    let samples = case.truth["samples"].as_array().into_iter().flatten();
    for tensor in samples.filter(|one| one["at"] == "dump").flat_map(|one| one["roles"].as_array().unwrap()) {
        let ordinal = tensor[3].as_u64().unwrap_or(0);
        let device = input.devices.iter().find(|one| one.device.position() as u64 == ordinal);
        let held = device.and_then(|device| {
            let mut all = device.timeline.iter();
            let (id, _) = all.find(|(_, one)| Some(one.address) == tensor[0].as_u64())?;
            Some(device.roles.get(id))
        });
        let Some(role) = held else { continue };
        let (bytes, truth) = (tensor[2].as_f64().unwrap(), tensor[1].as_str().unwrap());
        known += bytes;
        right += if same(role, truth) { bytes } else { 0.0 };
    }
    (right, known)
}

#[test]
fn without_events_the_stacks_of_blocks_tell_roles() {
    let whole = case::all().iter().filter(|case| case.is_whole());
    let (right, known) =
        whole.map(compared_still).fold((0.0, 0.0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
    assert!(known > 0.0 && right / known >= RIGHT_STILL, "{} in all", right / known);
}
