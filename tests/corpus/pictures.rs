//! Pictures are exact: whatever room there is, what is drawn adds up to the bytes in use, at the peak, too; findings light up what
//! they are about; and without a finding the peak is the one that its saving was computed with.

use memlint::engine::{self, Input, Plan};
use memlint::picture::{Guilty, Picture, Room};
use memlint::rules;
use memlint::unit::Bytes;

use crate::case;

/// Room for next to nothing: wide bins, few lifetimes, clouds by role.
const NARROW: Room = Room { bins: 300, lives: 40, steps: 60 };
/// Room for every event, but for few lifetimes.
const MERGED: Room = Room { bins: 1 << 18, lives: 40, steps: 2000 };

/// Every device of every eighth recording with its picture.
fn pictures(room: Room, each: impl Fn(&str, &engine::Device, &Picture)) {
    let mut seen = 0;
    for case in case::all().iter().step_by(8) {
        let input = Input::of(case.name.clone(), case.snapshot());
        let plan = Plan::of_rules(rules::RULES).drawing(room);
        let examination = engine::examine(&input, &plan);
        for device in &input.devices {
            if let Some(picture) = examination.recording.picture(device.device) {
                each(&case.name, device, picture);
                seen += 1;
            }
        }
    }
    assert!(seen > 15, "only {seen} pictures");
}

/// The sums of the bins with the ends that a finding's mending gives.
fn peak_without(picture: &Picture, guilty: &Guilty) -> Bytes {
    let without = guilty.without.as_ref().unwrap();
    let mut mended = picture.clone();
    for (at, end) in &without.ends {
        let life = &mut mended.lives.each[*at as usize];
        // What never was is taken for a life that holds nothing.
        if *end <= life.start {
            life.bytes = Bytes::ZERO;
        } else {
            life.end = Some(*end);
        }
    }
    for (at, steps) in &without.clouds {
        mended.lives.clouds[*at as usize].steps.clone_from(steps);
    }
    mended.sums().into_iter().max().unwrap()
}

#[test]
fn what_is_drawn_adds_up_in_every_bin() {
    for room in [Room::PAGE, NARROW, MERGED] {
        pictures(room, |name, device, picture| {
            let levels = &device.timeline.levels;
            let shown = picture.bins.shown.iter().map(|moment| levels.before(*moment));
            assert!(picture.sums().into_iter().eq(shown), "{name}: {room:?}");
            assert!(picture.bins.len() <= room.bins && picture.lives.each.len() <= room.lives, "{name}");
            let highest = picture.bins.requested.iter().max().copied();
            assert_eq!(highest, Some(device.timeline.peak_requested.bytes), "{name}: {room:?}");
            let reserved = picture.bins.reserved.iter().max().copied();
            assert_eq!(reserved, Some(device.timeline.peak_reserved.bytes), "{name}: {room:?}");
        });
    }
}

#[test]
fn a_picture_of_every_event_holds_every_lifetime() {
    pictures(Room::PAGE, |name, device, picture| {
        let all = &device.timeline.allocations;
        let lives = all.iter().filter(|one| {
            one.bytes > Bytes::ZERO && one.alloc.is_none_or(|at| Some(at) < one.free || one.free.is_none())
        });
        assert_eq!((picture.bins.width, picture.lives.each.len()), (1, lives.count()), "{name}");
        assert!(picture.lives.clouds.is_empty(), "{name}");
    });
}

#[test]
fn without_a_finding_the_peak_is_the_one_of_its_saving() {
    let mut mended = std::cell::Cell::new(0);
    for room in [Room::PAGE, MERGED] {
        pictures(room, |name, _, picture| {
            for guilty in picture.guilty.iter().filter(|one| one.without.is_some()) {
                let expected = guilty.without.as_ref().unwrap().peak;
                assert_eq!(peak_without(picture, guilty), expected, "{name}: {}", guilty.rule);
                mended.set(mended.get() + 1);
            }
        });
    }
    assert!(*mended.get_mut() > 20, "{mended:?} findings");
}

#[test]
fn findings_light_up_the_same_bytes_however_much_is_merged() {
    let lit = |picture: &Picture| -> Vec<(String, usize)> {
        let count = |one: &Guilty| {
            let merged = one.clouds.iter().map(|at| picture.lives.clouds[*at as usize].count);
            one.each.len() + merged.sum::<usize>()
        };
        picture.guilty.iter().map(|one| (one.rule.clone(), count(one))).collect()
    };
    let all = std::cell::RefCell::new(std::collections::BTreeMap::new());
    pictures(Room::PAGE, |name, device, picture| {
        all.borrow_mut().insert((name.to_owned(), device.device), lit(picture));
    });
    pictures(MERGED, |name, device, picture| {
        let whole = all.borrow()[&(name.to_owned(), device.device)].clone();
        for ((rule, merged), (_, alone)) in lit(picture).into_iter().zip(whole) {
            // A cloud belongs to the same findings, but mending one may change more than it is about.
            assert!(merged >= alone, "{name}: {rule} lights up {merged} of {alone}");
        }
    });
}
