//! What is refused before anything is judged: misspelt variables, folders that are not there, sizes without a unit, reports
//! over inputs; and what becomes of the verdict where a report cannot be written.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::{folder, memlint_in, recording, root, stderr, stdout};

const BUG: &str = "seed-resnet50-bug";

#[test]
fn a_variable_that_sets_nothing_is_an_error_with_the_nearest_name() {
    let with = |name: &str, arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_memlint"));
        command.current_dir(root()).env(name, "true").args(arguments).output().unwrap()
    };
    let linear = recording("seed-linear");
    for arguments in [&["check", &linear][..], &["stats", &linear], &["config"]] {
        let output = with("MEMLINT_STRCIT", arguments);
        assert_eq!((output.status.code(), stdout(&output)), (Some(2), ""), "{arguments:?}");
        let expected = "error: there is no variable `MEMLINT_STRCIT`\nhelp: did you mean `MEMLINT_STRICT`?";
        assert!(
            stderr(&output).trim_end().replace("  help", "help").contains(expected),
            "{}",
            stderr(&output)
        );
    }
    assert_eq!(with("MEMLINT_STRICT", &["check", &linear]).status.code(), Some(0));
    assert_eq!(with("MEMLINTER", &["check", &linear]).status.code(), Some(0), "another program's");
}

#[test]
fn a_source_root_that_is_not_there_is_an_error() {
    let folder = folder("refused-root");
    let snapshot = root().join(recording("seed-linear"));
    let snapshot = snapshot.to_str().unwrap();
    for arguments in [&["check", snapshot][..], &["stats", snapshot], &["diff", snapshot, snapshot]] {
        let output = memlint_in(&folder, &[arguments, &["--source-root", "srcs"]].concat());
        assert_eq!((output.status.code(), stdout(&output)), (Some(2), ""), "{arguments:?}");
        assert!(stderr(&output).contains("`srcs` (--source-root) is no folder"), "{}", stderr(&output));
    }
    fs::write(folder.join("memlint.toml"), "[source]\nroots = [\"srcs\"]\n").unwrap();
    let output = memlint_in(&folder, &["check", snapshot]);
    assert!(stderr(&output).contains("`srcs` (memlint.toml:2) is no folder"), "{}", stderr(&output));
}

#[test]
fn a_size_without_a_unit_is_an_error() {
    let linear = recording("seed-linear");
    for (flag, size) in [("--device-memory", "80"), ("--max-bytes", "16"), ("--baseline-tolerance", "20")] {
        let output = memlint_in(root(), &["check", &linear, flag, size]);
        assert_eq!(output.status.code(), Some(2), "{flag}");
        let expected = format!("a size needs a unit: {size}GiB, or {size}B for bytes");
        assert!(stderr(&output).contains(&expected), "{}", stderr(&output));
    }
    assert_eq!(memlint_in(root(), &["check", &linear, "--device-memory", "80GiB"]).status.code(), Some(0));
}

fn refuses(folder: &Path, arguments: &[&str], output: &str, why: &str) {
    let before = fs::read(folder.join(output)).unwrap();
    let target = format!("json={output}");
    let checked = memlint_in(folder, &[&["check"], arguments, &["--output-file", &target]].concat());
    assert_eq!((checked.status.code(), stdout(&checked)), (Some(2), ""), "{arguments:?}");
    let said = stderr(&checked).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(said.contains(why), "{arguments:?}: {said}");
    assert!(fs::read(folder.join(output)).unwrap() == before, "{arguments:?} {output}");
}

#[test]
fn no_input_is_replaced_by_a_report_however_it_was_reached() {
    let folder = folder("refused-outputs");
    for name in ["run/a.zst", "run/b.zst", "run/.c.pickle", "base/a.zst"] {
        fs::create_dir_all(folder.join(name).parent().unwrap()).unwrap();
        fs::copy(root().join(recording("seed-linear")), folder.join(name)).unwrap();
    }
    for (name, text) in [("own.toml", ""), ("broken.toml", "["), ("base.json", "{}")] {
        fs::write(folder.join(name), text).unwrap();
    }
    let snapshot = "it is a snapshot to be checked";
    refuses(&folder, &["run"], "run/a.zst", snapshot);
    refuses(&folder, &["run"], "run/../run/b.zst", snapshot);
    refuses(&folder, &["run"], "run/.c.pickle", snapshot);
    refuses(&folder, &["run/*.zst"], "run/b.zst", snapshot);
    refuses(&folder, &["run", "--config", "broken.toml"], "run/a.zst", snapshot);
    refuses(&folder, &["run", "--config", "own.toml"], "own.toml", "it is a configuration");
    refuses(&folder, &["run", "--config", "broken.toml"], "broken.toml", "it is a configuration");
    refuses(&folder, &["run/a.zst", "--against", "base"], "base/a.zst", "held against");
    refuses(&folder, &["run/a.zst", "--baseline", "base.json"], "base.json", "held against");
    fs::write(folder.join("memlint.toml"), "[baseline]\nfile = \"base.json\"\n").unwrap();
    refuses(&folder, &["run"], "memlint.toml", "it is a configuration");
    refuses(&folder, &["run"], "base.json", "held against");
}

#[cfg(unix)]
#[test]
fn a_reader_that_left_keeps_the_verdict_and_a_full_disk_does_not() {
    let shell = |script: &str| {
        let script = script.replace("memlint", concat!("'", env!("CARGO_BIN_EXE_memlint"), "'"));
        let mut command = Command::new("bash");
        for variable in std::env::vars_os().map(|(name, _)| name) {
            if variable.to_string_lossy().starts_with("MEMLINT_") {
                command.env_remove(variable);
            }
        }
        let status = command.args(["-c", &script]).current_dir(root()).stderr(Stdio::null()).status();
        status.unwrap().code()
    };
    let (bug, fixed) = (recording(BUG), recording("seed-resnet50-fixed"));
    for (snapshot, verdict) in [(&bug, Some(1)), (&fixed, Some(0))] {
        let left = format!("memlint check {snapshot} -v | true; exit ${{PIPESTATUS[0]}}");
        assert_eq!(shell(&left), verdict, "{left}");
        let copied = format!(
            "memlint check {snapshot} --output-file json=/dev/stdout | true; exit ${{PIPESTATUS[0]}}"
        );
        assert_eq!(shell(&copied), verdict, "{copied}");
        assert_eq!(shell(&format!("memlint check {snapshot} > /dev/full")), Some(2));
        assert_eq!(shell(&format!("memlint check {snapshot} 1< /dev/null")), Some(2), "not open for writing");
        assert_eq!(shell(&format!("memlint check {snapshot} > /dev/null")), verdict);
    }
}
