//! Pictures are exact: whatever room there is, what is drawn adds up to the bytes in use, at the peak, too; findings light up what
//! they are about; and without a finding the peak is the one that its saving was computed with.

use std::collections::BTreeMap;

use memlint::engine::{self, Input, Plan};
use memlint::picture::{Guilty, Label, Picture, Room};
use memlint::rules;
use memlint::unit::{self, Bytes};

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

/// How many lifetimes a finding lights up.
fn lit_by(picture: &Picture, one: &Guilty) -> usize {
    let merged = one.clouds.iter().map(|at| picture.lives.clouds[*at as usize].count);
    one.each.len() + merged.sum::<usize>()
}

#[test]
fn a_retained_graph_counts_the_tensors_that_it_lights_up() {
    for name in ["seed-leak-list", "graph-vae-retain-bug", "wild-validate-sum-bug"] {
        let all = case::all();
        let case = all.iter().find(|case| case.name == name).unwrap();
        let plan = Plan::of_rules(rules::RULES).drawing(Room::PAGE);
        let examination = engine::examine(&Input::of(name.to_owned(), case.snapshot()), &plan);
        let is_it = |rule: &str| rule == "retained-graph";
        let finding = examination.findings.iter().find(|one| is_it(&one.rule)).unwrap();
        let picture = examination.recording.picture(finding.device.unwrap()).unwrap();
        let lit = lit_by(picture, picture.guilty.iter().find(|one| is_it(&one.rule)).unwrap());
        let told = unit::count(lit, "tensor");
        assert!(finding.evidence.iter().any(|one| one.text.contains(&told)), "{name}: {told}: {finding:?}");
    }
}

/// What is in use by line at the peak, added up from what is drawn: positions among the labels of the tree.
fn by_line(picture: &Picture) -> BTreeMap<String, u64> {
    let bin = picture.bins.shown.iter().position(|moment| *moment == picture.peak).unwrap();
    let mut lines: BTreeMap<String, u64> = BTreeMap::new();
    let alive = |start: usize, end: Option<usize>| start <= bin && end.is_none_or(|end| end > bin);
    for life in picture.lives.each.iter().filter(|life| alive(life.start, life.end)) {
        let label = picture.tree.called[picture.tree.site(life.node) as usize];
        if let Label::Line(at, _) = &picture.tree.labels[label as usize] {
            *lines.entry(format!("{at:?}")).or_default() += life.bytes.get();
        }
    }
    lines
}

#[test]
fn every_table_of_lines_counts_bytes_for_the_same_lines() {
    let entered = std::cell::Cell::new(0);
    pictures(Room::PAGE, |name, device, picture| {
        let told = device.profile.lines_at_peak.iter();
        let told: BTreeMap<String, u64> =
            told.map(|line| (format!("{:?}", line.location), line.bytes.get())).collect();
        let sites = picture.sites.iter().filter(|site| site.count_at_peak > 0);
        let listed: Vec<(String, u64)> = sites
            .filter_map(|site| Some((format!("{:?}", site.location.as_ref()?), site.at_peak.get())))
            .collect();
        // The longest tables are cut off.
        assert!(listed.len() == told.len() || listed.len() > 150, "{name}: {listed:?} {told:?}");
        let drawn = by_line(picture);
        for (line, bytes) in &listed {
            assert_eq!(told.get(line), Some(bytes), "{name}: {line}");
            assert_eq!(drawn.get(line).copied().unwrap_or(0), *bytes, "{name}: {line}");
        }
        entered.set(entered.get() + picture.tree.labels.iter().filter(|one| **one == Label::Engine).count());
    });
    assert!(entered.get() > 5, "backward passes count for the lines that enter them");
}

#[test]
fn findings_light_up_the_same_bytes_however_much_is_merged() {
    let lit = |picture: &Picture| -> Vec<(String, usize)> {
        picture.guilty.iter().map(|one| (one.rule.clone(), lit_by(picture, one))).collect()
    };
    let all = std::cell::RefCell::new(BTreeMap::new());
    pictures(Room::PAGE, |name, device, picture| {
        all.borrow_mut().insert((name.to_owned(), device.device), lit(picture));
    });
    pictures(MERGED, |name, device, picture| {
        let whole = all.borrow()[&(name.to_owned(), device.device)].clone();
        for ((rule, merged), (_, alone)) in lit(picture).into_iter().zip(whole) {
            assert_eq!(merged, alone, "{name}: {rule}");
        }
    });
}
