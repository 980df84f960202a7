//! The source that reports show: only of the program that was recorded, and only where it may be looked for.

use std::fs;
use std::path::{Path, PathBuf};

use crate::{folder, memlint_in, recording, root, stdout};

/// A program that keeps what it computes, and a line of it that findings blame.
const CASE: &str = "seed-leak-list";
const LINE: &str = "total += criterion(model(x), y)";

/// A working copy of its own with the recording, and what its program is.
fn working_copy(name: &str, program: &str) -> PathBuf {
    let folder = folder(name).join("work");
    fs::create_dir_all(folder.join(".git")).unwrap();
    fs::copy(root().join(recording(CASE)), folder.join("s.zst")).unwrap();
    fs::write(folder.join("train.py"), program).unwrap();
    folder
}

fn program() -> String {
    fs::read_to_string(root().join("examples").join(CASE).join("train.py")).unwrap()
}

fn words(folder: &Path, arguments: &[&str]) -> String {
    let output = memlint_in(folder, &[&["check", "s.zst", "--isolated"], arguments].concat());
    assert_eq!(output.status.code(), Some(1));
    stdout(&output).split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn a_program_that_has_changed_is_not_shown() {
    let same = words(&working_copy("source-same", &program()), &[]);
    assert!(same.contains(LINE), "the excerpt is drawn");
    assert!(!same.contains("has changed since"));
    let changed =
        working_copy("source-changed", &format!("import os\nimport sys\nimport json\n{}", program()));
    let told = "train.py has changed since the recording";
    for (format, told) in
        [("text", told), ("markdown", told), ("json", "\"changed-source\": \"as-recorded\"")]
    {
        let seen = words(&changed, &["--output-format", format]);
        assert!(seen.contains(told), "{format}: {seen}");
        assert!(!seen.contains(LINE), "{format}: {seen}");
    }
    let statistics = memlint_in(&changed, &["stats", "s.zst"]);
    let statistics = stdout(&statistics).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(statistics.contains("train.py has changed since the recording"), "{statistics}");
}

#[cfg(unix)]
#[test]
fn nothing_outside_the_working_copy_or_the_named_folders_is_opened() {
    use std::os::unix::fs::symlink;

    let work = working_copy("source-outside", "");
    let elsewhere = work.parent().unwrap().join("elsewhere");
    fs::create_dir_all(&elsewhere).unwrap();
    fs::write(elsewhere.join("train.py"), program()).unwrap();
    fs::remove_file(work.join("train.py")).unwrap();
    symlink("../elsewhere/train.py", work.join("train.py")).unwrap();
    let excerpt = |text: &str| text.contains(LINE);
    let unasked = memlint_in(&work, &["check", "s.zst", "--isolated", "-v"]);
    assert!(!excerpt(stdout(&unasked)), "{}", stdout(&unasked));
    let told = stdout(&unasked).split_whitespace().collect::<Vec<_>>().join(" ");
    assert_eq!(told.matches("1 source file outside").count(), 1, "{told}");
    let folder = fs::canonicalize(&elsewhere).unwrap();
    let asked = told.replace(' ', "").contains(&format!("--source-root{}", folder.display()));
    assert!(asked, "{told}");
    let named = memlint_in(&work, &["check", "s.zst", "--isolated", "--source-root", "."]);
    assert!(!excerpt(stdout(&named)), "a link out of the named folder");
    let right = memlint_in(&work, &["check", "s.zst", "--isolated", "--source-root", "../elsewhere"]);
    assert!(excerpt(stdout(&right)), "{}", stdout(&right));
}

#[test]
fn of_another_file_of_the_name_no_more_is_said_than_is_known() {
    let work = working_copy("source-other", "print('another program')\n");
    let told = words(&work, &["--source-root", "."]);
    assert!(
        told.contains("train.py has changed since the recording, or is another file of that name"),
        "{told}"
    );
    fs::create_dir(work.join(CASE)).unwrap();
    fs::rename(work.join("train.py"), work.join(CASE).join("train.py")).unwrap();
    let told = words(&work, &["--source-root", "."]);
    assert!(
        told.contains("train.py has changed since the recording: line"),
        "its folder is the same: {told}"
    );
}

#[test]
fn a_map_of_paths_that_maps_nothing_is_told() {
    let work = working_copy("source-map", &program());
    let told = words(&work, &["--path-map", "/nowhere/at/all=."]);
    let unused = "the path map `/nowhere/at/all=.` (--path-map) maps nothing: no recorded path begins so";
    assert!(told.contains(unused), "{told}");
    let prefix = format!("/home/user/runs/xxxxxxxxx/{CASE}");
    let told = words(&work, &["--path-map", &format!("{prefix}=.")]);
    assert!(!told.contains("maps nothing") && told.contains(LINE), "{told}");
    let told = words(&work, &["--path-map", &format!("{prefix}=not-there")]);
    assert!(told.contains("maps nothing: its folder is not there"), "{told}");
}
