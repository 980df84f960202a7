//! Pictures of random programs add up at every moment that they show, in any room, and lose no peak; also where the recording began
//! late and events are missing, as long as the levels are known.

use memlint::engine::{Input, Plan, examine};
use memlint::picture::Room;
use memlint::rules;
use memlint::snapshot::Snapshot;

use crate::program::{Random, train};

/// A program that keeps, frees and replaces things of many sizes at random.
fn random(seed: u64) -> Snapshot {
    let mut random = Random(seed);
    let mut held = Vec::new();
    train(3 + random.below(20), |iteration, recorder| {
        for turn in 0..random.below(40) {
            let line = 30 + u32::try_from((turn + iteration) % 19).unwrap();
            let stack = recorder.stack(line, &[]);
            if held.is_empty() || random.share() < 0.6 {
                let bytes = 1 + random.next() % (1 << (4 + random.below(24)));
                held.push(recorder.alloc(stack, bytes, 0));
            } else {
                let one = held.swap_remove(random.below(held.len()));
                recorder.free(one, stack);
            }
        }
    })
}

fn room(random: &mut Random) -> Room {
    Room { bins: 1 + random.below(3000), lives: random.below(200), steps: random.below(400) }
}

#[test]
fn random_programs_add_up_in_any_room() {
    for seed in 0..60 {
        let mut chance = Random(1000 + seed);
        let mut snapshot = random(seed);
        if seed % 3 == 0 {
            // What the ring buffer has pushed out.
            let lost = chance.below(snapshot.devices[0].events.len() / 2);
            snapshot.devices[0].events.drain(..lost);
        }
        let input = Input::of(format!("seed {seed}"), snapshot);
        let room = room(&mut chance);
        let recording = examine(&input, &Plan::of_rules(rules::RULES).drawing(room)).recording;
        let device = &input.devices[0];
        let Some(picture) = recording.picture(device.device) else {
            assert!(device.evidence.levels().is_err(), "seed {seed}");
            continue;
        };
        let levels = &device.timeline.levels;
        let shown = picture.bins.shown.iter().map(|moment| levels.before(*moment));
        assert!(picture.sums().into_iter().eq(shown), "seed {seed}, {room:?}");
        let highest = picture.bins.requested.iter().max().copied();
        assert_eq!(highest, Some(device.timeline.peak_requested.bytes), "seed {seed}, {room:?}");
        assert!(picture.lives.each.len() <= room.lives, "seed {seed}, {room:?}");
        let ascends = picture.bins.shown.windows(2).all(|pair| pair[0] < pair[1]);
        assert!(ascends && picture.bins.len() <= room.bins.next_power_of_two(), "seed {seed}, {room:?}");
    }
}
