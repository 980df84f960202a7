//! What the programs were doing: iterations as labelled, one optimizer step to each, phases that need no C++ frames.

use std::collections::BTreeMap;
use std::path::Path;

use memlint::engine::{Input, Plan, examine};
use memlint::frames::{Frames, Owner};
use memlint::program::{FoundBy, Phase, Program};
use memlint::rules::{Need, RULES};
use memlint::snapshot::{Action, Snapshot, Stacks};
use memlint::timeline::Timeline;
use memlint::unit::{DeviceIndex, Index, StackId};

use crate::case::{self, Case};

/// The device with the most iterations, and its program.
fn program(snapshot: &Snapshot) -> (DeviceIndex, Program) {
    let frames = Frames::of(snapshot);
    let programs = snapshot.active_devices().map(|(device, _)| {
        let program = Program::of(snapshot, &Timeline::of(snapshot, device), &frames);
        (device, program)
    });
    programs.max_by_key(|(_, program)| program.iterations.len()).unwrap()
}

/// Programs whose main loop a library runs: Lightning, transformers.
const LIBRARY_LOOPS: [&str; 13] = [
    "calibration-meter-bug",
    "clean-hf-trainer",
    "clean-lightning",
    "ho-generate",
    "ho-generate-dynamic",
    "ho-hftrainer",
    "ho-hftrainer-preds",
    "ho-lightning",
    "ho-lightning-valouts",
    "ho-litgan",
    "pl-sr-valpanels-bug",
    "vit-collator-panel-bug",
    "wild-penalty-curve-bug",
];

/// Programs whose labels count batches, where the recording shows updates only: transformers' trainer takes the two
/// batches of an update in a loop that stands in its own file; or rollouts, where each is followed by many updates. A benchmark that runs two loops for each setting has no label: what stands between
/// two of them counts with the turn before.
const UPDATES: [(&str, u64); 4] = [
    ("bench-attention-settings-bug", 75),
    ("ho-hftrainer", 6),
    ("ho-hftrainer-preds", 6),
    ("ppo-rollout-clean", 96),
];

/// The times of optimizer steps that really ran.
fn true_steps(case: &Case) -> Vec<i64> {
    let steps = case.truth["optimizer_steps_us"].as_array();
    steps.map(|all| all.iter().filter_map(serde_json::Value::as_i64).collect()).unwrap_or_default()
}

#[test]
fn iterations_are_as_many_as_labelled() {
    let mut told = 0;
    for case in case::all() {
        let snapshot = &case.input.snapshot;
        let (_, program) = program(snapshot);
        // Labels count updates or batches; a program that accumulates gradients has these as micro-batches.
        let counts = [program.iterations.len() as u64, program.micro_batches.len() as u64];
        let updates = UPDATES.iter().find(|(name, _)| *name == case.name).map(|(_, updates)| *updates);
        match updates.or(case.labels["iterations"].as_u64()) {
            // One pass, cut short by running out of memory: nothing repeats.
            Some(1) => assert_eq!(program.found_by, FoundBy::Nothing, "{}", case.name),
            // A ring buffer holds as many as it holds.
            None => {
                assert!(case.expects("truncated-history") || program.iterations.is_empty(), "{}", case.name);
            }
            Some(labelled) => {
                assert!(counts.contains(&labelled), "{}: {counts:?} instead of {labelled}", case.name);
                told += 1;
            }
        }
    }
    assert!(told >= 145, "only {told} recordings have iterations");
}

#[test]
fn optimizer_steps_fall_evenly_into_iterations() {
    let (mut even, mut all) = (0, 0);
    for case in case::all() {
        let steps = true_steps(case);
        let snapshot = &case.input.snapshot;
        let (_, program) = program(snapshot);
        let Some(begin) = program.iterations.first().map(|one| one.start_time.0) else { continue };
        // Steps before the recording, or before a captured graph takes over, cannot fall into any.
        let seen: Vec<i64> = steps.into_iter().filter(|&step| step >= begin).collect();
        let mut counts: BTreeMap<usize, usize> = BTreeMap::new();
        for &step in &seen {
            let holds = |one: &memlint::program::Iteration| one.start_time.0 <= step && step < one.end_time.0;
            let at = program.iterations.iter().position(holds);
            *counts.entry(at.unwrap_or(usize::MAX)).or_insert(0) += 1;
        }
        assert_eq!(counts.get(&usize::MAX), None, "{}: a step between iterations", case.name);
        let usual = counts.values().copied().max().unwrap_or(0);
        even += counts.values().filter(|&&count| count == usual).sum::<usize>();
        all += seen.len();
    }
    assert!(all > 600, "only {all} steps were compared");
    assert_eq!(even, all, "steps that share an iteration unevenly");
}

#[test]
fn iterations_tile_and_every_event_has_a_phase() {
    for case in case::all() {
        let snapshot = &case.input.snapshot;
        let (device, program) = program(snapshot);
        let events = snapshot.devices[device.position()].events.len();
        assert_eq!(program.phases.len(), events, "{}", case.name);
        for pair in program.iterations.windows(2) {
            assert_eq!(pair[0].end, pair[1].start, "{}", case.name);
            assert!(pair[0].start < pair[0].end && pair[0].start_time <= pair[0].end_time, "{}", case.name);
        }
        assert!(program.iterations.iter().all(|one| one.end.position() <= events), "{}", case.name);
    }
}

#[test]
fn the_main_loop_is_at_the_users_line() {
    for case in case::all().iter().filter(|case| !case.expects("no-stacks")) {
        let snapshot = &case.input.snapshot;
        let (_, program) = program(snapshot);
        let Some(main) = program.main_loop else {
            assert!(program.iterations.is_empty(), "{}: iterations without a loop", case.name);
            continue;
        };
        assert_eq!(case.input.frames.owner(main.frame), Owner::User, "{}", case.name);
        let frame = snapshot.stacks.frame(main.frame).unwrap();
        let file = snapshot.text(frame.file);
        let name = Path::new(file).file_name().unwrap_or_default();
        let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples").join(&case.name).join(name);
        assert!(own.is_file(), "{}: {file}", case.name);
        let library = LIBRARY_LOOPS.contains(&case.name.as_str());
        assert_eq!(program.library_loop.is_some(), library, "{}: whose loop", case.name);
    }
}

/// The same recording with some of its frames: without C++ as `stacks="python"` would have made it, without Python as that of a
/// program in C++.
fn with_frames_of(snapshot: &mut Snapshot, is_kept: impl Fn(Owner) -> bool) {
    let frames = Frames::of(snapshot);
    let mut stacks = Stacks::default();
    for frame in snapshot.stacks.frame_ids() {
        stacks.intern_frame(snapshot.stacks.frame(frame).unwrap());
    }
    let strip = |stack: StackId| {
        let all = snapshot.stacks.get(stack).iter().copied();
        let kept: Vec<_> = all.filter(|frame| is_kept(frames.owner(*frame))).collect();
        stacks.intern(&kept)
    };
    let stripped: Vec<Option<StackId>> = snapshot.stacks.ids().map(strip).collect();
    let moved = |stack: &mut Option<StackId>| *stack = stack.and_then(|old| stripped[old.position()]);
    for segment in &mut snapshot.segments {
        moved(&mut segment.stack);
        segment.blocks.iter_mut().for_each(|block| moved(&mut block.stack));
    }
    for event in snapshot.devices.iter_mut().flat_map(|trace| &mut trace.events) {
        moved(&mut event.stack);
    }
    snapshot.stacks = stacks;
}

#[test]
fn python_frames_alone_tell_the_same_phases_as_native_ones() {
    let mut compared = 0;
    for case in case::all().iter().filter(|case| case.labels["stacks"] == "all") {
        let mut snapshot = case.snapshot();
        let (device, full) = program(&snapshot);
        with_frames_of(&mut snapshot, |owner| owner != Owner::Native);
        let stripped = Program::of(&snapshot, &Timeline::of(&snapshot, device), &Frames::of(&snapshot));
        assert_eq!(stripped.iterations, full.iterations, "{}", case.name);
        for (at, event) in snapshot.devices[device.position()].events.iter().enumerate() {
            if event.action == Action::Alloc {
                assert_eq!(stripped.phases[at], full.phases[at], "{}: event {at}", case.name);
                compared += usize::from(full.phases[at] == Phase::Backward);
            }
        }
    }
    assert!(compared > 50_000, "only {compared} allocations of a backward pass were compared");
}

#[test]
fn cpp_frames_alone_leave_rules_blind_and_not_silent() {
    let case = case::all().iter().find(|case| case.labels["stacks"] == "all").unwrap();
    let mut snapshot = case.snapshot();
    with_frames_of(&mut snapshot, |owner| owner == Owner::Native);
    assert!(snapshot.devices.iter().any(|trace| trace.has_stacks(&snapshot.stacks)), "{}", case.name);
    let report = examine(&Input::of(case.name.clone(), snapshot), &Plan::of_rules(RULES));
    assert!(report.findings.iter().any(|finding| finding.rule == "no-stacks"));
    for rule in RULES.iter().map(|rule| rule.meta()).filter(|meta| meta.needs.contains(&Need::Stacks)) {
        let is_told = report.skipped.iter().any(|one| one.rule == rule.name && one.blind().is_some());
        assert!(is_told, "{} passes without having seen anything", rule.name);
    }
}
