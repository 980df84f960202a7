//! The model of the allocator against the recorded allocators, and what it foretells against what was measured.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::fs;
use std::path::Path;

use memlint::engine::{self, Input};
use memlint::finding::Quantity;
use memlint::input::{Limits, Source};
use memlint::pickle;
use memlint::replay::changes;
use memlint::snapshot::{Action, Snapshot};
use memlint::unit::Bytes;
use memlint::verdict::Told;
use memlint::whatif::{Answer, Question, ask};

use crate::case;

fn input(path: &Path) -> Input {
    let stream = Source::File(path.to_owned()).open(&Limits::default()).unwrap();
    Input::of(path.display().to_string(), Snapshot::read(stream, &pickle::PickleLimits::default()).unwrap())
}

fn answer(input: &Input, question: &Question) -> Answer {
    ask(input, question).unwrap().remove(0)
}

fn of_case(name: &str) -> Input {
    input(&Path::new(env!("CARGO_MANIFEST_DIR")).join("snapshots").join(name).join("snapshot.pickle.zst"))
}

/// The recordings that began late are among them: the model takes over what was held then.
#[test]
fn the_model_does_all_that_the_recorded_allocators_did() {
    let (mut seen, mut differing) = (0, String::new());
    for case in case::all() {
        let input = &case.input;
        for device in &input.devices {
            let Some(proof) = device.proof(&input.snapshot) else { continue };
            seen += 1;
            if let Some(difference) = proof.difference {
                let _ = writeln!(differing, "{}: {difference:?}", case.name);
            }
        }
    }
    assert_eq!(differing, "");
    assert!(seen >= 150, "only {seen} devices were replayed");
}

#[test]
fn a_damaged_recording_is_not_called_exact() {
    let mut input = of_case("seed-fragmentation");
    let mut events = input.snapshot.devices[0].events.iter_mut();
    events.find(|event| event.action == Action::SegmentAlloc).unwrap().size += Bytes::MIB;
    let input = Input::of("damaged".to_owned(), input.snapshot);
    let proof = input.devices[0].proof(&input.snapshot).unwrap();
    assert!(proof.difference.unwrap().event.is_some());
}

/// `reserved_bytes.all.peak`, `allocated_bytes.all.peak` and the calls of `cudaMalloc` and `cudaFree` (of `cuMemMap`, where
/// segments grow) of runs under these settings, foretold from the recording under the default ones.
#[test]
fn other_settings_reserve_what_they_reserved() {
    let runs: [(&str, &str, [u64; 3]); 10] = [
        ("kv-2.11", "expandable_segments:True", [377_487_360, 273_678_336, 27]),
        ("kv-2.11", "garbage_collection_threshold:0.6", [358_612_992, 287_309_824, 28]),
        ("kv-2.11", "max_split_size_mb:32,roundup_power2_divisions:8", [358_612_992, 287_309_824, 28]),
        ("kv-2.11", "max_split_size_mb:64", [358_612_992, 287_309_824, 28]),
        ("kv-2.11", "roundup_power2_divisions:4", [343_932_928, 288_358_400, 27]),
        ("kv-2.15", "expandable_segments:True", [377_487_360, 273_678_336, 27]),
        ("kv-2.15", "garbage_collection_threshold:0.6", [379_584_512, 279_969_792, 30]),
        ("kv-2.15", "max_split_size_mb:32,roundup_power2_divisions:8", [379_584_512, 279_969_792, 30]),
        ("kv-2.15", "max_split_size_mb:64", [379_584_512, 279_969_792, 30]),
        ("kv-2.15", "roundup_power2_divisions:4", [352_321_536, 286_261_248, 29]),
    ];
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/whatif");
    for (name, settings, measured) in runs {
        let input = input(&data.join(format!("{name}.pickle.zst")));
        let question = Question { set: changes(settings).unwrap(), ..Question::default() };
        let answer = answer(&input, &question);
        let played = &answer.scenarios[0];
        let forecast = &played.forecast;
        let foretold = [
            forecast.peak_reserved.bytes.get(),
            forecast.peak_allocated.bytes.get(),
            forecast.driver_calls as u64,
        ];
        assert_eq!(foretold, measured, "{name} under {settings}");
        assert!(played.exact, "{name} under {settings}");
    }
    assert_eq!(fs::read_dir(data).unwrap().count(), 2);
}

/// One program, recorded with batches of 2 and of 16.
#[test]
fn larger_batches_need_what_they_needed() {
    let (small, large) = (of_case("seed-qwen-b2"), of_case("seed-qwen-b16"));
    let foretold =
        answer(&small, &Question { batch_scale: Some("8".parse().unwrap()), ..Question::default() });
    let own = foretold.scenarios.iter().find(|played| played.set.is_empty()).unwrap();
    assert!(!own.exact);
    let measured = answer(&large, &Question::default()).recorded;
    assert_eq!(own.forecast.peak_reserved.bytes, measured.peak_reserved);
    let allocated = own.forecast.peak_allocated.bytes.share_of(measured.peak_allocated);
    assert!((allocated - 1.0).abs() < 0.001, "{allocated}");
    assert!(foretold.grown.iter().any(|line| line.location.is_some()));
}

/// What a finding says that mending it saves is what the replay without it comes to: the one is read off a curve, the other
/// played on the model of the allocator.
#[test]
fn findings_left_out_save_what_they_say() {
    let (mut seen, mut rules, mut differing) = (0, BTreeSet::new(), String::new());
    for case in case::all() {
        let input = &case.input;
        let mut told: Vec<Told> =
            input.devices.iter().flat_map(|device| engine::remedies(input, device)).collect();
        told.retain(|one| !one.lives.is_empty());
        for Told { finding, .. } in &told {
            let identity = finding.fingerprint;
            // Two findings of one identity are left out together; each alone is not what is asked for here.
            if told.iter().filter(|one| one.finding.fingerprint == identity).count() > 1 {
                continue;
            }
            // Settings make no difference to what is asked for; one set of them is played faster than all.
            let set = changes("roundup_power2_divisions:4").unwrap();
            // With memory enough a program that ran out of it is played to the end of its recording, too.
            let (capacity, without) =
                (Some("1TiB".parse().unwrap()), vec![identity.to_string().parse().unwrap()]);
            let question = Question { set, capacity, without, ..Question::default() };
            let answers = ask(input, &question).unwrap();
            let answer = answers.iter().find(|one| Some(one.device) == finding.device).unwrap();
            let played = answer.scenarios[0].forecast.peak_requested.bytes;
            let saved = answer.recorded.peak_requested - played;
            seen += 1;
            rules.insert(finding.rule.to_string());
            if Some(saved) != finding.impact.peak {
                let told = finding.impact.peak;
                let _ = writeln!(differing, "{} {}: {saved:?}, told {told:?}", case.name, finding.rule);
            }
        }
    }
    assert_eq!(differing, "");
    assert!(seen >= 50 && rules.len() >= 10, "{seen} findings of {rules:?}");
}

/// What `fragmentation` advises is what the replay shows to save most.
#[test]
fn advice_is_what_saves_most() {
    let input = of_case("seed-fragmentation");
    let answer = answer(&input, &Question::default());
    let best = &answer.scenarios[0];
    let saved = answer.recorded.peak_reserved - best.forecast.peak_reserved.bytes;
    let report = engine::check(vec![of_case("seed-fragmentation")]);
    let finding = report.findings.iter().find(|finding| finding.rule == "fragmentation").unwrap();
    let told = finding.evidence.iter().find(|one| one.name == "best-setting-saves").unwrap();
    assert_eq!(told.value, Quantity::Bytes(saved));
    assert!(finding.help.contains(&best.set[0].to_string()), "{}", finding.help);
}

/// A program that ran out of memory does so again with what it had, at the same request, and not with much more.
#[test]
fn memory_runs_out_where_it_ran_out() {
    for name in ["seed-oom", "ho-seq2seq-oom", "h2-bsfinder-oom", "oom-second-step-bug"] {
        let input = of_case(name);
        let failed = |question: &Question| {
            let answer = answer(&input, question);
            let own = answer.scenarios.into_iter().find(|played| played.set.is_empty()).unwrap();
            (
                answer.recorded.out_of_memory.map(|failure| failure.event),
                own.out_of_memory.map(|failure| failure.event),
            )
        };
        let (recorded, again) = failed(&Question::default());
        assert!(recorded.is_some(), "{name}");
        assert_eq!(recorded, again, "{name}");
        let plenty = Question { capacity: Some("200GiB".parse().unwrap()), ..Question::default() };
        assert_eq!(failed(&plenty), (recorded, None), "{name}");
    }
}
