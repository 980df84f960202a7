//! Where the time of a check goes: every stage and every rule by itself, one after another on one thread.
//!
//! `cargo bench --bench stages -- FILE...`, or `STAGES=5 cargo bench ...` for the best of five. In a column beside: the
//! time of an event, which stays the same where the work is linear. A rule pays for the facts that it is the first to ask.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a benchmark fails by panicking and prints a table"
)]

use std::path::Path;
use std::time::{Duration, Instant};

use memlint::engine::{Device, Profile};
use memlint::facts::Code;
use memlint::input::{self, Source};
use memlint::pickle::{Limits, walk};
use memlint::program::Program;
use memlint::replay::Replay;
use memlint::role::Roles;
use memlint::rules::RULES;
use memlint::snapshot::Snapshot;
use memlint::timeline::Timeline;

/// The stages in their order, with what each took.
#[derive(Default)]
struct Laps(Vec<(&'static str, Duration)>);

impl Laps {
    /// Does a stage and notes its time.
    fn lap<T>(&mut self, stage: &'static str, work: impl FnOnce() -> T) -> T {
        let (start, busy) = (Instant::now(), busy());
        let made = work();
        let elapsed = start.elapsed();
        self.0.push((stage, busy.zip(self::busy()).map_or(elapsed, |(before, after)| after - before)));
        made
    }

    /// Keeps the better time of each stage.
    fn best(&mut self, other: Laps) {
        if self.0.is_empty() {
            *self = other;
            return;
        }
        for ((_, best), (_, time)) in self.0.iter_mut().zip(other.0) {
            *best = time.min(*best);
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
    let snapshot = laps.lap("read", || Snapshot::read(open(), &Limits::default()).unwrap());
    let (device, trace) = snapshot.active_devices().next().unwrap();
    let timeline = laps.lap("timeline", || Timeline::of(&snapshot, device));
    let replay = laps.lap("replay", || Replay::of(&snapshot, &timeline));
    let code = laps.lap("code", || Code::of(&snapshot));
    let program = laps.lap("program", || Program::with(&snapshot, &timeline, &code.vocabulary));
    let roles = laps.lap("roles", || Roles::infer(&snapshot, &timeline, &program));
    let profile = laps.lap("profile", || Profile::of((&snapshot, &code), &timeline, &program, &roles));
    let device = Device { device, timeline, replay, program, roles, profile };
    let facts = laps.lap("facts", || device.facts(&snapshot, &code).unwrap());
    for rule in RULES {
        let met = rule.meta().needs.iter().all(|need| need.unmet(&facts).is_none());
        laps.lap(rule.meta().name, || if met { rule.check(&facts).len() } else { 0 });
    }
    trace.events.len()
}

fn show(path: &str, events: usize, laps: &Laps) {
    println!("{path}: {events} events");
    println!("| stage | ms | ns an event |\n|---|---:|---:|");
    let each = |time: Duration| time.as_secs_f64() * 1e9 / events.max(1) as f64;
    for (stage, time) in &laps.0 {
        println!("| {stage} | {:.1} | {:.1} |", time.as_secs_f64() * 1e3, each(*time));
    }
    let total: Duration = laps.0.iter().skip(1).map(|(_, time)| *time).sum();
    println!("| all after the walk | {:.1} | {:.1} |", total.as_secs_f64() * 1e3, each(total));
}
