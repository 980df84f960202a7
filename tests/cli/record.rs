//! `memlint record`: what a program keeps of itself, and what comes of its recording.
//!
//! The hook's own tests are in `python/tests`. Here a shell script plays the program, and tells what the hook would tell.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use crate::{folder, memlint, memlint_in, recording, root, stderr, stdout};

/// A process that writes the recording of a leak, as the hook does. `$1` is its name, the rest what it tells beside.
const PROCESS: &str = r#"
said() { printf '%s' "$MEMLINT_RECORDING" | sed "s|.*\"$1\":\"\([^\"]*\)\".*|\1|"; }
tell() { echo "{\"pid\": $$, \"event\": $2}" >> "$(said ledger)/$1.jsonl"; }
process() {
  tell $1 '"python"'; tell $1 '"torch"'; tell $1 '"recording", "stacks": "all", "max_entries": 1000'
  cp "$PLAIN" "$(said folder)/$1.1.pickle"
  tell $1 "\"written\", \"path\": \"$(said folder)/$1.1.pickle\", \"name\": \"$1\", \"reason\": \"${3:-end}\", \"steps\": 12, \
    \"seconds\": 0.25, \"rank\": ${2:-null}, \"torch\": \"2.11.0\", \"cuda\": \"13.0\", \"device\": \"Some GPU\""
}
end() { tell $1 '"end", "steps": 12, "recorded_seconds": 0.0505, "unrecorded_seconds": 0.05'; }
"#;

/// A snapshot of the corpus, plain as PyTorch writes it.
fn plain(place: &Path, case: &str) -> String {
    let packed = root().join(recording(case));
    let plain = place.join(case);
    let file = fs::File::create(&plain).unwrap();
    zstd::stream::copy_decode(fs::File::open(packed).unwrap(), file).unwrap();
    plain.display().to_string()
}

/// Records a shell script in a folder.
fn record(place: &Path, options: &[&str], script: &str) -> Output {
    let script = format!("PLAIN='{}'\n{PROCESS}{script}", plain(place, "seed-linear"));
    let arguments = [&["record"], options, &["--", "sh", "-c", &script]].concat();
    memlint_in(place, &arguments)
}

/// What went to standard error, as one line.
fn said(output: &Output) -> String {
    stderr(output).split_whitespace().collect::<Vec<_>>().join(" ")
}

fn files(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

#[test]
fn a_recording_is_compressed_and_described() {
    let place = folder("record-folder");
    let output = record(&place, &[], "process snapshot; end snapshot; echo own output; cat");
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert_eq!(stdout(&output), "own output\n", "standard output is the program's");
    assert_eq!(files(&place.join("recording-1")), ["manifest.json", "snapshot.pickle.zst"]);
    let said = stderr(&output);
    assert!(said.contains("memlint: recorded 1 process in recording-1/snapshot.pickle.zst"), "{said}");
    let cost = "stacks all, at most 1,000 events; 12 optimizer steps; 50.5 ms from step to step while recorded, 50.0 ms since (+1.0 \
                %); 0.2 s to write a snapshot";
    assert!(said.contains(cost), "{said}");
    let manifest = fs::read_to_string(place.join("recording-1/manifest.json")).unwrap();
    assert!(manifest.ends_with("}\n"), "a line like others: {manifest}");
    let manifest: serde_json::Value = serde_json::from_str(&manifest).unwrap();
    assert_eq!(manifest["schema"], "memlint-recording/1");
    assert_eq!(manifest["command"][0], "sh");
    assert_eq!(manifest["snapshots"][0]["file"], "snapshot.pickle.zst");
    assert_eq!(manifest["snapshots"][0]["device"], "Some GPU");
    let checked = memlint_in(&place, &["check", "recording-1", "--quiet"]);
    assert_eq!(checked.status.code(), Some(0), "{}", stderr(&checked));
    assert_eq!(record(&place, &[], "true").status.code(), Some(2));
    assert!(!place.join("recording-2").exists(), "an empty folder helps nobody");
}

#[test]
fn ranks_are_one_job() {
    let place = folder("record-ranks");
    let output = record(&place, &["-o", "out"], "process rank0 0; process rank1 1; end rank0; end rank1");
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert_eq!(files(&place.join("out")), ["manifest.json", "rank0.pickle.zst", "rank1.pickle.zst"]);
    let again = record(&place, &["-o", "out"], "process rank0 0; end rank0");
    assert_eq!(again.status.code(), Some(2));
    assert!(stderr(&again).contains("the folder `out` is not empty"), "{}", stderr(&again));
    let forced = record(&place, &["-o", "out", "--force"], "process rank0 0; end rank0");
    assert_eq!(forced.status.code(), Some(0), "{}", stderr(&forced));
    assert_eq!(
        files(&place.join("out")),
        ["manifest.json", "rank0.pickle.zst"],
        "nothing of the old job is left"
    );
}

#[test]
fn a_file_is_written_as_it_is_named() {
    let place = folder("record-file");
    let output = record(&place, &["-o", "mine.pickle"], "process mine; end mine");
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert_eq!(files(&place), ["mine.pickle", "seed-linear"]);
    assert_eq!(fs::read(place.join("mine.pickle")).unwrap(), fs::read(place.join("seed-linear")).unwrap());
    let again = record(&place, &["-o", "mine.pickle"], "touch ran");
    assert!(stderr(&again).starts_with("error: `mine.pickle` exists"), "{}", stderr(&again));
    assert!(!place.join("ran").exists(), "what cannot be written is told before the program starts");
    let other = record(&place, &["-o", "mine.pickle.gz"], "touch ran");
    assert!(said(&other).contains("memlint writes no snapshots of this kind"), "{}", stderr(&other));
}

#[test]
fn the_programs_own_failure_wins_and_then_the_gate() {
    let place = folder("record-status");
    let status = |options: &[&str], script: &str| record(&place, options, script).status.code();
    let recorded = "process snapshot; end snapshot;";
    let failed = record(&place, &["--gate"], &format!("{recorded} exit 7"));
    assert_eq!(failed.status.code(), Some(7));
    let last = stderr(&failed).lines().last().unwrap_or_default();
    assert!(last.contains("the program itself ended with status 7"), "{}", stderr(&failed));
    assert_eq!(status(&["--gate"], &format!("{recorded} kill -9 $$")), Some(137));
    assert_eq!(status(&[], "exit 3"), Some(3));
    let clean = record(&place, &["--gate"], recorded);
    assert_eq!(clean.status.code(), Some(0), "{}", stderr(&clean));
    assert!(stdout(&clean).contains("2 warnings"), "{}", stdout(&clean));
    let of_leak = format!("PLAIN='{}'; {recorded}", plain(&place, "seed-leak-list"));
    assert_eq!(status(&["--gate"], &of_leak), Some(1));
    let checked = record(&place, &["--check"], &of_leak);
    assert_eq!(checked.status.code(), Some(0), "only `--gate` makes findings a status");
    assert!(stdout(&checked).contains("failed: "), "{}", stdout(&checked));
}

#[test]
fn nothing_recorded_is_no_success() {
    let place = folder("record-nothing");
    for (script, expected) in [
        ("true", "no Python of the program loaded memlint's hook"),
        ("tell a '\"python\"'", "the program did not import PyTorch"),
        ("tell a '\"python\"'; tell a '\"torch\"'", "the program used no memory of a GPU"),
        ("process a; tell a '\"failed\", \"what\": \"the disk is full\"'; end a", "error: the disk is full"),
        ("process a", "was killed after its last snapshot"),
        (
            "tell a '\"recording\", \"stacks\": \"all\", \"max_entries\": 1'",
            "was killed before it could write a snapshot",
        ),
    ] {
        let output = record(&place, &[], script);
        assert_eq!(output.status.code(), Some(2), "{script}");
        assert!(said(&output).contains(expected), "{script}: {}", stderr(&output));
    }
    let left_behind = r#"sleep 3 >/dev/null 2>&1 &
        echo "{\"pid\": $!, \"event\": \"recording\", \"stacks\": \"all\", \"max_entries\": 1}" > "$(said ledger)/b.jsonl""#;
    let output = record(&place, &[], left_behind);
    assert_eq!(output.status.code(), Some(2));
    assert!(said(&output).contains("still runs, and has not written"), "{}", stderr(&output));
    let missing = memlint_in(&place, &["record", "--", "no-such-program"]);
    assert_eq!(missing.status.code(), Some(2));
    assert!(stderr(&missing).contains("`no-such-program` cannot be started"), "{}", stderr(&missing));
}

#[test]
fn what_a_killed_process_has_half_written_goes() {
    let place = folder("record-partial");
    let half = r#"tell a '"recording", "stacks": "all", "max_entries": 1'; touch "$(said folder)/.a.1.pickle.$$.partial""#;
    let output = record(&place, &["-o", "out"], half);
    assert_eq!(output.status.code(), Some(2));
    assert!(!place.join("out").exists(), "{:?}", files(&place));
}

#[test]
fn what_is_found_on_the_way_is_told() {
    let place = folder("record-watch");
    let script = "process snapshot null watch; sleep 2; end snapshot";
    let output = record(&place, &["--watch", "12"], script);
    assert!(stderr(&output).contains("memlint: after 12 optimizer steps:"), "{}", stderr(&output));
}

#[test]
fn what_was_only_looked_at_is_no_snapshot_beside_those_of_every_step() {
    let place = folder("record-watch-every");
    let script = "process snapshot null watch; sleep 2; process snapshot_step_12 null every; end snapshot";
    let output = record(&place, &["--watch", "12", "--every", "6", "-o", "out"], script);
    assert!(stderr(&output).contains("memlint: after 12 optimizer steps:"), "{}", stderr(&output));
    assert_eq!(files(&place.join("out")), ["manifest.json", "snapshot_step_12.pickle.zst"]);
}

#[test]
fn a_program_may_use_memlint_itself_but_not_record_again() {
    let place = folder("record-nested");
    let memlint = env!("CARGO_BIN_EXE_memlint");
    let inner =
        record(&place, &[], &format!("process snapshot; end snapshot; '{memlint}' check \"$PLAIN\" --quiet"));
    assert_eq!(inner.status.code(), Some(0), "{}", stderr(&inner));
    let nested = record(&place, &[], &format!("'{memlint}' record -- true"));
    assert!(said(&nested).contains("cannot be recorded again"), "{}", stderr(&nested));
}

#[test]
#[cfg(unix)]
fn signals_are_passed_on() {
    let place = folder("record-signal");
    let script = "trap 'echo heard; exit 5' TERM; echo ready > ready; while true; do sleep 0.05; done";
    let mut command = Command::new(env!("CARGO_BIN_EXE_memlint"));
    command
        .current_dir(&place)
        .args(["record", "--", "sh", "-c", script])
        .stdout(std::process::Stdio::piped());
    let child = command.spawn().unwrap();
    while !place.join("ready").exists() {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    let id = child.id().to_string();
    assert!(Command::new("kill").args(["-TERM", &id]).status().unwrap().success());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(5));
    assert_eq!(stdout(&output), "heard\n");
}

#[test]
#[cfg(unix)]
fn a_folder_that_takes_nothing_is_told_before_the_program_starts() {
    let place = folder("record-read-only");
    let output = record(&place, &["-o", "/proc/self"], "touch ran");
    assert_eq!(output.status.code(), Some(2));
    let output = record(&place, &["-o", "/proc/out.pickle"], "touch ran");
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("cannot be written"), "{}", stderr(&output));
    assert!(!place.join("ran").exists());
}

/// The whole way, with the hook in a real Python and a torch that is not one.
/// Where there is a stand-in for a GPU.
const STANDS_IN: bool = cfg!(all(target_os = "linux", target_arch = "x86_64", target_env = "gnu"));

/// A process that has found a PyTorch in a folder, and waits for what is to be loaded before it.
const FINDS_TORCH: &str = r#"
tell snapshot '"python"'
answer="$(said ledger)/1.answer"
tell snapshot "\"wheel\", \"torch\": \"$PWD/site/torch\", \"answer\": \"$answer\""
while [ ! -e "$answer" ]; do sleep 0.02; done
"#;

#[test]
fn a_pytorch_without_cuda_has_no_stand_in() {
    let place = folder("record-cpu");
    let torch = place.join("site/torch");
    fs::create_dir_all(&torch).unwrap();
    fs::write(torch.join("version.py"), "cuda: Optional[str] = None\n").unwrap();
    let output = record(&place, &["--no-gpu"], &format!("{FINDS_TORCH} cat \"$answer\"; exit 2"));
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    let said = said(&output);
    if STANDS_IN {
        assert_eq!(stdout(&output), "null");
        assert!(said.contains("cannot be run without a GPU: it is built without CUDA"), "{said}");
        assert!(!said.contains("did not import PyTorch"), "one reason is enough: {said}");
    } else {
        assert!(said.contains("this memlint cannot record without a GPU"), "{said}");
    }
}

#[test]
fn what_only_a_gpu_can_do_is_no_verdict() {
    if !STANDS_IN {
        return;
    }
    let place = folder("record-refused");
    let refused =
        r#"process snapshot; tell snapshot '"refused", "calls": ["cudaIpcGetMemHandle"]'; end snapshot"#;
    let failed = record(&place, &["--no-gpu", "--gate"], &format!("{refused}; exit 1"));
    assert_eq!(failed.status.code(), Some(2), "{}", stderr(&failed));
    assert!(said(&failed).contains("asked for what nothing without a GPU can do: `cudaIpcGetMemHandle`"));
    let went_on = record(&place, &["--no-gpu", "-o", "other"], refused);
    assert_eq!(went_on.status.code(), Some(0), "{}", stderr(&went_on));
}

#[test]
fn what_is_modelled_is_said_only_where_something_is() {
    let place = folder("record-model");
    for option in ["--device-memory=40GiB", "--devices=2"] {
        let output = memlint_in(&place, &["record", option, "--", "true"]);
        assert_eq!(output.status.code(), Some(2));
        assert!(stderr(&output).contains("--no-gpu"), "{}", stderr(&output));
    }
}

/// A few steps of PyTorch 2.13 that ended in a request for too much, recorded with `--no-gpu`, its names replaced.
#[test]
fn every_format_says_what_was_modelled() {
    let path = "tests/data/modelled.pickle.zst";
    let formats = ["text", "concise", "json", "jsonl", "sarif", "github", "gitlab", "junit", "markdown"];
    for format in formats {
        let output = memlint(&["check", path, "--output-format", format, "--isolated"]);
        assert_eq!(output.status.code(), Some(1), "{format}: {}", stderr(&output));
        assert!(stdout(&output).contains("modelled without a GPU"), "{format}: {}", stdout(&output));
    }
    let output = memlint(&["check", path, "--isolated"]);
    let lines: Vec<&str> = stdout(&output).lines().collect();
    assert!(lines.contains(&"1 error, 1 note, but modelled without a GPU"), "{}", stdout(&output));
}

/// `tests/no_gpu/hesitates.py`: it trains where its loss is high, which nothing computed, and what is left looks like a model that only evaluates.
#[test]
fn a_program_that_left_its_steps_out_for_want_of_values_has_no_verdict() {
    let path = "tests/data/hesitates.pickle.zst";
    for strict in [&[][..], &["--strict"]] {
        let output = memlint(&[&["check", path, "--isolated"], strict].concat());
        assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
        let words: Vec<&str> = stdout(&output).split_whitespace().collect();
        let words = words.join(" ");
        assert!(words.contains("file1.py:23, and took no step of its optimizer"), "{words}");
        assert!(words.contains("confidence low") && !words.contains("passed"), "{words}");
    }
}

/// What the missing steps would hold comes on top: it cannot bring a peak below a limit that it passes, and may bring one above.
#[test]
fn a_limit_is_judged_without_steps_only_where_it_is_passed_already() {
    let place = folder("record-hesitates");
    let path = root().join("tests/data/hesitates.pickle.zst");
    for (limit, status) in [("1MiB", 1), ("1GiB", 2)] {
        let budget = format!("[budget.peak]\nmetric = \"peak-requested\"\nlimit = \"{limit}\"\n");
        fs::write(place.join("memlint.toml"), budget).unwrap();
        let output = memlint_in(&place, &["check", path.to_str().unwrap()]);
        assert_eq!(output.status.code(), Some(status), "{limit}: {}", stdout(&output));
    }
}

#[test]
#[ignore = "needs Python: .ci/run runs it"]
fn a_python_program_is_recorded() {
    let place = folder("record-python");
    fs::write(
        place.join("train.py"),
        "import torch\nfrom torch.optim.optimizer import Optimizer\noptimizer = Optimizer()\n\
         for step in range(8):\n    torch.cuda.allocate(1 << 20)\n    optimizer.step()\nprint('done')\n",
    )
    .unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_memlint"));
    command.current_dir(&place).env("PYTHONPATH", root().join("python/tests/fake"));
    let output = command.args(["record", "-n", "5", "--", "python3", "train.py"]).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert_eq!(stdout(&output), "done\n");
    assert!(stderr(&output).contains("8 optimizer steps"), "{}", stderr(&output));
    let stats = memlint_in(&place, &["stats", "recording-1/snapshot.pickle.zst", "--output-format", "json"]);
    let stats: serde_json::Value = serde_json::from_str(stdout(&stats)).unwrap();
    assert_eq!(stats["devices"][0]["peak_requested_bytes"], 5 << 20);
}
