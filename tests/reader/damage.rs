//! Every recording of the corpus, cut off and with flipped bytes: a result or a clean error, never a panic.

use std::fs;
use std::io::Read;
use std::path::Path;
use std::thread;

use memlint::input::{self, Source};
use memlint::replay::Replay;
use memlint::timeline::Timeline;

use crate::opcodes::read;

/// Damages of each kind for each recording: a sample for every run (over two thousand in all), and what CI takes (over twenty thousand; the fuzz
/// targets go on for as long as one lets them).
const SAMPLE: usize = 8;
const MANY: usize = 50;

/// `SplitMix64` (Steele, Lea, Flood 2014): the same damages in every run.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((mixed ^ (mixed >> 31)) % bound as u64).unwrap()
    }
}

#[test]
fn damaged_recordings_never_panic() {
    damage_all(SAMPLE);
}

#[test]
#[ignore = "takes minutes; CI runs it"]
fn many_damaged_recordings_never_panic() {
    damage_all(MANY);
}

fn damage_all(damages: usize) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("snapshots");
    let mut files: Vec<_> = fs::read_dir(root)
        .unwrap()
        .map(|folder| folder.unwrap().path().join("snapshot.pickle.zst"))
        .filter(|file| file.exists())
        .collect();
    files.sort();
    assert!(files.len() >= 78);
    let (even, odd): (Vec<_>, Vec<_>) = files.iter().enumerate().partition(|(at, _)| at % 2 == 0);
    thread::scope(|scope| {
        for half in [even, odd] {
            scope.spawn(move || {
                for (seed, file) in half {
                    damage(file, seed as u64, damages);
                }
            });
        }
    });
}

fn damage(file: &Path, seed: u64, damages: usize) {
    let mut whole = Vec::new();
    Source::File(file.to_owned()).open(&input::Limits::default()).unwrap().read_to_end(&mut whole).unwrap();
    let mut random = Random(seed);
    for _ in 0..damages {
        let cut = random.below(whole.len());
        assert!(read(&whole[..cut]).is_err(), "{}: cut at {cut} it must not pass for whole", file.display());
    }
    for _ in 0..damages {
        let mut flipped = whole.clone();
        for _ in 0..=random.below(3) {
            let at = random.below(flipped.len());
            flipped[at] ^= 1 << random.below(8);
        }
        if let Ok(snapshot) = read(&flipped) {
            for (device, _) in snapshot.active_devices() {
                let timeline = Timeline::of(&snapshot, device);
                let replay = Replay::of(&snapshot, &timeline);
                assert_eq!(replay.block_sizes.len(), timeline.allocations.len());
            }
        }
    }
}
