//! Whatever is no snapshot: exit code 2, one error that says what was found and what to do, nothing on standard output.

use std::fmt::Write;
use std::fs;
use std::io::Read;
use std::path::Path;

use memlint::input::{Limits, Source};

use crate::{folder, golden, memlint, memlint_in, recording, root, stderr, stdout};

/// Files that are no snapshots, with what is wrong with each in its name.
fn files(folder: &Path) -> Vec<&'static str> {
    let mut whole = Vec::new();
    let mut stream = Source::File(root().join(recording("seed-linear"))).open(&Limits::default()).unwrap();
    stream.read_to_end(&mut whole).unwrap();
    let compressed = fs::read(root().join(recording("seed-linear"))).unwrap();
    let tar = [&[0; 257][..], b"ustar\x0000"].concat();
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    std::io::Write::write_all(&mut packed, &tar).unwrap();
    let tar_gz = packed.finish().unwrap();
    let files: [(&str, &[u8]); 19] = [
        ("text.txt", b"epoch 1, loss 0.31\nepoch 2, loss 0.28\n"),
        ("json.json", br#"{"peak": 4}"#),
        ("timeline.raw.json", b"[[-1, 1, 4096, 0], [1700000000000000000, 2, 512, 4]]"),
        ("empty.pickle", b""),
        ("list.pickle", b"\x80\x04]\x94(K\x01K\x02e."),
        ("state_dict.pickle", b"\x80\x04}\x94\x8c\x05model\x94K\x01s."),
        ("code.pickle", b"\x80\x04cposix\nsystem\n(\x8c\x04echot\x52."),
        (
            "no_history.pickle",
            b"\x80\x04}\x94(\x8c\x08segments\x94]\x94\x8c\x0ddevice_traces\x94]\x94]\x94au.",
        ),
        ("protocol_1.pickle", b"}q\x00U\x08segmentsq\x01]q\x02s."),
        ("weights.pt", b"PK\x03\x04\x14\x00\x00\x00archive/data.pkl"),
        ("snapshot.zip", b"PK\x03\x04\x14\x00\x00\x00snapshot.pickle"),
        ("runs.tar", &tar),
        ("runs.tar.gz", &tar_gz),
        ("not_fetched.pickle", b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n"),
        ("profile.nsys-rep", b"\x01\x00\x00\x00report"),
        ("profile.sqlite", b"SQLite format 3\0"),
        ("truncated.pickle", &whole[..whole.len() / 2]),
        ("truncated.pickle.zst", &compressed[..compressed.len() / 2]),
        ("not_a_pickle.gz", b"\x1f\x8b\x08\x00garbage"),
    ];
    for (name, content) in files {
        fs::write(folder.join(name), content).unwrap();
    }
    files.map(|(name, _)| name).to_vec()
}

#[test]
fn every_bad_file_gets_one_error_and_exit_code_2() {
    let folder = folder("bad-input");
    let mut told = String::new();
    for name in files(&folder) {
        let output = memlint_in(&folder, &["check", name]);
        assert_eq!(output.status.code(), Some(2), "{name}");
        assert_eq!(stdout(&output), "", "{name}");
        let message = stderr(&output);
        assert_eq!(message.matches("error: ").count(), 1, "{name}: {message}");
        assert!(message.contains(name) && message.contains("help: "), "{name}: {message}");
        let _ = writeln!(told, "$ memlint check {name}\n{message}");
    }
    golden("bad-input", &told);
}

#[test]
fn missing_files_and_folders_without_snapshots_are_told_apart() {
    let folder = folder("bad-paths");
    fs::create_dir(folder.join("runs")).unwrap();
    fs::write(folder.join("runs/train.log"), "loss 0.3").unwrap();
    let mut told = String::new();
    for arguments in [
        &["check", "missing.pickle"][..],
        &["check", "runs"],
        &["stats", "runs"],
        &["check", "runs/*.pickle"],
        &["check", "runs/a**.pickle"],
    ] {
        let output = memlint_in(&folder, arguments);
        assert_eq!((output.status.code(), stdout(&output)), (Some(2), ""), "{arguments:?}");
        let _ = writeln!(told, "$ memlint {}\n{}", arguments.join(" "), stderr(&output));
    }
    golden("bad-paths", &told);
}

#[cfg(unix)]
#[test]
fn what_leads_elsewhere_says_how_to_come_by_it() {
    let folder = folder("elsewhere");
    std::os::unix::fs::symlink("/there/rank0.pickle", folder.join("linked.pickle")).unwrap();
    let mut told = String::new();
    for path in [
        "linked.pickle",
        "s3://runs/rank0.pickle",
        "gs://runs/*.pickle",
        "https://host/snapshot.pickle?token=1",
        "hdfs://runs/rank0.pickle",
        "file:///tmp/rank0.pickle",
    ] {
        let output = memlint_in(&folder, &["check", path]);
        assert_eq!((output.status.code(), stdout(&output)), (Some(2), ""), "{path}");
        assert_eq!(stderr(&output).matches("error: ").count(), 1, "{path}");
        let _ = writeln!(told, "$ memlint check {path}\n{}", stderr(&output));
    }
    golden("bad-elsewhere", &told);
}

#[test]
fn a_path_in_place_of_a_command_is_checked() {
    let path = recording("seed-resnet50-bug");
    let checked = memlint(&["check", &path, "--isolated"]);
    let short = memlint(&[&path, "--isolated"]);
    assert_eq!((short.status.code(), stdout(&short)), (Some(1), stdout(&checked)));
    let missing = memlint(&["snapshot.pickle"]);
    assert_eq!(missing.status.code(), Some(2));
    assert!(stderr(&missing).contains("there is no file `snapshot.pickle`"), "{}", stderr(&missing));
    let misspelt = memlint(&["chek", &path]);
    assert!(stderr(&misspelt).contains("'check'"), "{}", stderr(&misspelt));
}

#[test]
fn a_rank_that_died_while_it_wrote_closes_the_gate() {
    let folder = folder("died-while-writing");
    fs::copy(root().join(recording("seed-resnet50-fixed")), folder.join("rank0.pickle.zst")).unwrap();
    fs::write(folder.join("rank1.pickle"), b"").unwrap();
    let output = memlint(&["check", folder.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(2), "{}", stdout(&output));
    assert!(stdout(&output).contains("rank1.pickle"), "{}", stdout(&output));
    assert!(stderr(&output).contains("1 of 2 files could not be read"), "{}", stderr(&output));
}

#[test]
fn one_bad_file_among_good_ones_closes_the_gate() {
    let folder = folder("bad-among-good");
    fs::copy(root().join(recording("seed-linear")), folder.join("good.pickle.zst")).unwrap();
    fs::write(folder.join("bad.pickle"), b"\x80\x04]\x94.").unwrap();
    for arguments in [&["check", "good.pickle.zst", "bad.pickle"][..], &["check", "--exit-zero", "."]] {
        let output = memlint_in(&folder, arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(stdout(&output).starts_with("no verdict: 1 of 2 files could not be read\n"), "{arguments:?}");
        assert!(stdout(&output).contains("bad.pickle"), "{}", stdout(&output));
    }
}

#[test]
fn code_in_a_pickle_is_never_run() {
    let folder = folder("code");
    fs::write(folder.join("evil.pickle"), b"\x80\x04cposix\nsystem\n(\x8c\x0ctouch hackedt\x52.").unwrap();
    let output = memlint_in(&folder, &["check", "evil.pickle"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("posix.system"), "{}", stderr(&output));
    assert!(!folder.join("hacked").exists());
}

#[test]
fn limits_name_the_flag_that_raises_them() {
    let linear = recording("seed-linear");
    for (flag, value) in
        [("--max-nodes", "10"), ("--max-stack", "1"), ("--max-text", "10B"), ("--max-bytes", "1KiB")]
    {
        let output = memlint(&["check", &linear, flag, value]);
        assert_eq!(output.status.code(), Some(2), "{flag}");
        assert!(stderr(&output).contains(&format!("`{flag}`")), "{}", stderr(&output));
    }
}

#[test]
fn usage_errors_exit_with_2_as_well() {
    for arguments in [&["check"][..], &["check", "a", "--output-format", "xml"], &["chek"], &[], &["explain"]]
    {
        let output = memlint(arguments);
        assert_eq!((output.status.code(), stdout(&output)), (Some(2), ""), "{arguments:?}");
        assert!(!stderr(&output).is_empty());
    }
    assert_eq!(memlint(&["--help"]).status.code(), Some(0));
    assert_eq!(memlint(&["--version"]).status.code(), Some(0));
}

#[test]
fn limits_beyond_what_can_be_numbered_are_refused() {
    for limit in ["--max-nodes=1073741825", "--max-stack=4294967296"] {
        let output = memlint(&["check", &recording("seed-linear"), limit]);
        assert_eq!(output.status.code(), Some(2), "{limit}");
        assert!(stderr(&output).contains("is not in"), "{limit}: {}", stderr(&output));
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_thread_that_cannot_start_is_done_without() {
    let input = recording("seed-linear");
    let usual = memlint(&["check", &input]);
    let mut starved = std::process::Command::new(env!("CARGO_BIN_EXE_memlint"));
    // More than any address space: no thread gets such a stack.
    starved.env("RUST_MIN_STACK", (1_u64 << 60).to_string()).current_dir(root()).args(["check", &input]);
    let starved = starved.output().unwrap();
    assert_eq!(starved.status.code(), usual.status.code(), "{}", stderr(&starved));
    assert_eq!(stdout(&starved), stdout(&usual));
}
