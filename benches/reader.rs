//! What reading and understanding a snapshot costs, stage by stage, on the largest recording of the corpus.
//!
//! `walk` is the floor: stepping over every opcode without building anything. Compare the medians of one run: machines
//! differ and drift, ratios stay.

#![expect(clippy::unwrap_used, reason = "a benchmark fails by panicking")]

use std::io::Read;
use std::path::Path;

use divan::Bencher;
use memlint::engine::{Input, check};
use memlint::frames::Frames;
use memlint::input::{self, Source};
use memlint::pickle::{PickleLimits, walk};
use memlint::program::Program;
use memlint::replay::Replay;
use memlint::role::Roles;
use memlint::snapshot::Snapshot;
use memlint::timeline::Timeline;

fn main() {
    divan::main();
}

fn recording() -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("snapshots/seed-many-all/snapshot.pickle.zst");
    let mut pickle = Vec::new();
    Source::File(path).open(&input::Limits::default()).unwrap().read_to_end(&mut pickle).unwrap();
    pickle
}

fn snapshot() -> Snapshot {
    Snapshot::read(recording().as_slice(), &PickleLimits::default()).unwrap()
}

fn timeline(snapshot: &Snapshot) -> Timeline {
    let (device, _) = snapshot.active_devices().next().unwrap();
    Timeline::of(snapshot, device)
}

#[divan::bench]
fn a_walk(bencher: Bencher) {
    let pickle = recording();
    bencher.bench(|| walk(pickle.as_slice()).unwrap());
}

#[divan::bench]
fn b_decode(bencher: Bencher) {
    let pickle = recording();
    bencher.bench(|| Snapshot::read(pickle.as_slice(), &PickleLimits::default()).unwrap());
}

#[divan::bench]
fn c_timeline(bencher: Bencher) {
    let snapshot = snapshot();
    bencher.bench(|| timeline(&snapshot));
}

#[divan::bench]
fn d_replay(bencher: Bencher) {
    let snapshot = snapshot();
    let timeline = timeline(&snapshot);
    bencher.bench(|| Replay::of(&snapshot, &timeline));
}

#[divan::bench]
fn e_frames(bencher: Bencher) {
    let snapshot = snapshot();
    bencher.bench(|| Frames::of(&snapshot));
}

#[divan::bench]
fn f_program(bencher: Bencher) {
    let snapshot = snapshot();
    let timeline = timeline(&snapshot);
    let frames = Frames::of(&snapshot);
    bencher.bench(|| Program::of(&snapshot, &timeline, &frames));
}

#[divan::bench]
fn g_roles(bencher: Bencher) {
    let snapshot = snapshot();
    let timeline = timeline(&snapshot);
    let frames = Frames::of(&snapshot);
    let program = Program::of(&snapshot, &timeline, &frames);
    bencher.bench(|| Roles::infer(&snapshot, &timeline, &program, &frames));
}

#[divan::bench]
fn h_rules(bencher: Bencher) {
    bencher.with_inputs(|| vec![Input::of("bench".to_owned(), snapshot())]).bench_values(check);
}
