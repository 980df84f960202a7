//! Where the time of a check goes: every stage and every rule by itself, one after another on one thread.
//!
//! `cargo bench --bench stages -- FILE...`, or `STAGES=5 cargo bench ...` for the best of five. In the columns beside: the
//! processor's time of this thread (files of some size are read on it and taken apart on another), also of an event: that
//! stays the same where the work is linear. A rule pays for the facts that it is the first to ask.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a benchmark fails by panicking and prints a table"
)]

use std::path::Path;
use std::time::{Duration, Instant};

use memlint::engine::{Device, Profile};
use memlint::facts::Evidence;
use memlint::frames::Frames;
use memlint::input::{self, Source};
use memlint::pickle::{PickleLimits, walk};
use memlint::program::Program;
use memlint::replay::Replay;
use memlint::role::Roles;
use memlint::rules::{Need, RULES};
use memlint::snapshot::Snapshot;
use memlint::timeline::Timeline;

/// The stages in their order, with what each took on the clock and of this thread's processor.
#[derive(Default)]
struct Laps(Vec<(&'static str, Duration, Duration)>);

impl Laps {
    /// Does a stage and notes its time.
    fn lap<T>(&mut self, stage: &'static str, work: impl FnOnce() -> T) -> T {
        let (start, busy) = (Instant::now(), busy());
        let made = work();
        let elapsed = start.elapsed();
        let spent = busy.zip(self::busy()).map_or(elapsed, |(before, after)| after.saturating_sub(before));
        self.0.push((stage, elapsed, spent));
        made
    }

    /// Keeps the better time of each stage.
    fn best(&mut self, other: Laps) {
        if self.0.is_empty() {
            *self = other;
            return;
        }
        for ((_, best, least), (_, time, spent)) in self.0.iter_mut().zip(other.0) {
            (*best, *least) = (time.min(*best), spent.min(*least));
        }
    }
}

/// The processor's time that this thread has had so far, where the system tells (Linux): others cannot disturb it much.
fn busy() -> Option<Duration> {
    let told = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    Some(Duration::from_nanos(told.split(' ').next()?.parse().ok()?))
}

fn main() {
    let turns = std::env::var("STAGES").ok().and_then(|turns| turns.parse().ok()).unwrap_or(1);
    for path in std::env::args().skip(1).filter(|argument| !argument.starts_with("--")) {
        let (mut best, mut events) = (Laps::default(), 0);
        for _ in 0..turns {
            let mut laps = Laps::default();
            events = check(Path::new(&path), &mut laps);
            best.best(laps);
        }
        show(&path, events, &best);
    }
}

/// Checks a file stage by stage; how many events it has.
fn check(path: &Path, laps: &mut Laps) -> usize {
    let open = || Source::File(path.to_owned()).open(&input::Limits::default()).unwrap();
    laps.lap("walking the opcodes", || walk(open()).unwrap());
    let snapshot = laps.lap("read", || Snapshot::read(open(), &PickleLimits::default()).unwrap());
    let (device, trace) = snapshot.active_devices().next().unwrap();
    let timeline = laps.lap("timeline", || Timeline::of(&snapshot, device));
    let replay = laps.lap("replay", || Replay::of(&snapshot, &timeline));
    let frames = laps.lap("frames", || Frames::of(&snapshot));
    let program = laps.lap("program", || Program::of(&snapshot, &timeline, &frames));
    let roles = laps.lap("roles", || Roles::infer(&snapshot, &timeline, &program, &frames));
    let profile = laps.lap("profile", || Profile::of(&snapshot, &timeline, &program, &roles));
    let evidence = laps.lap("evidence", || Evidence::of((&snapshot, &frames), &timeline, &program, &roles));
    let device = Device { device, timeline, replay, program, roles, evidence, profile };
    // The requests are played on the model twice: once for each order of free blocks that PyTorch has had.
    laps.lap("proof of the model", || device.proof(&snapshot).is_some());
    let facts = laps.lap("facts", || device.facts(&snapshot, &frames).unwrap());
    for rule in RULES {
        let met = Need::all_met(rule.meta().needs, facts.evidence).is_ok();
        laps.lap(rule.meta().name, || if met { rule.claims(&facts).len() } else { 0 });
    }
    trace.events.len()
}

fn show(path: &str, events: usize, laps: &Laps) {
    println!("{path}: {events} events");
    println!("| stage | ms | of this thread's processor | ns an event |\n|---|---:|---:|---:|");
    let show = |stage: &str, time: Duration, spent: Duration| {
        let [time, spent] = [time, spent].map(|time| time.as_secs_f64() * 1e3);
        println!("| {stage} | {time:.1} | {spent:.1} | {:.1} |", spent * 1e6 / events.max(1) as f64);
    };
    laps.0.iter().for_each(|(stage, time, spent)| show(stage, *time, *spent));
    let after_walk = || laps.0.iter().skip(1);
    let spent = after_walk().map(|(_, _, spent)| *spent).sum();
    show("all after the walk", after_walk().map(|(_, time, _)| *time).sum(), spent);
}
