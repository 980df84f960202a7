//! `slice` and `anonymize`: what they refuse, what they write, and that they can be joined by a pipe.

use std::fs;
use std::process::{Command, Stdio};

use crate::{folder, memlint, memlint_in, recording, root, stderr, stdout};

fn sliced(output: &str, more: &[&str]) -> std::process::Output {
    let input = recording("seed-linear");
    memlint(&[&["slice", &input, "-o", output][..], more].concat())
}

#[test]
fn what_exists_is_kept_unless_it_is_given_up() {
    let folder = folder("slice-exists");
    let path = folder.join("out.pickle");
    let name = path.to_str().unwrap();
    fs::write(&path, "mine").unwrap();
    let refused = sliced(name, &["--iterations", "2..3"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(stderr(&refused).contains("exists") && stderr(&refused).contains("--force"));
    assert_eq!(fs::read(&path).unwrap(), b"mine");
    let forced = sliced(name, &["--iterations", "2..3", "--force"]);
    assert_eq!((forced.status.code(), stdout(&forced), stderr(&forced)), (Some(0), "", ""));
    let stats = memlint(&["stats", name, "--output-format", "json"]);
    let stats: serde_json::Value = serde_json::from_slice(&stats.stdout).unwrap();
    assert_eq!(stats["devices"][0]["iterations"].as_array().map(Vec::len), Some(2));
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 1, "nothing else is left in the folder");
}

#[cfg(unix)]
#[test]
fn what_somebody_laid_beside_the_output_is_not_written_through() {
    let folder = folder("slice-laid");
    let (path, mine) = (folder.join("out.pickle"), folder.join("mine"));
    fs::write(&mine, "mine").unwrap();
    std::os::unix::fs::symlink(&mine, folder.join(".out.pickle.partial")).unwrap();
    let written = sliced(path.to_str().unwrap(), &["--iterations", "2..3"]);
    assert_eq!((written.status.code(), stderr(&written)), (Some(0), ""));
    assert_eq!(fs::read(&mine).unwrap(), b"mine");
    assert!(fs::symlink_metadata(&path).unwrap().is_file());
}

#[test]
fn the_input_is_never_replaced() {
    let folder = folder("anonymize-itself");
    let path = folder.join("in.pickle.zst");
    fs::copy(root().join(recording("seed-linear")), &path).unwrap();
    let before = fs::read(&path).unwrap();
    let refused = memlint_in(&folder, &["anonymize", "in.pickle.zst", "-o", "./in.pickle.zst", "--force"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(stderr(&refused).contains("the snapshot itself"));
    assert_eq!(fs::read(&path).unwrap(), before);
}

#[test]
fn iterations_that_are_not_there_are_refused() {
    let folder = folder("slice-nothing");
    let path = folder.join("out.pickle");
    let name = path.to_str().unwrap();
    let outside = sliced(name, &["--iterations", "2..999"]);
    assert_eq!(outside.status.code(), Some(2));
    assert!(stderr(&outside).contains("2..999") && stderr(&outside).contains("there are only"));
    let input = recording("noiter-single-forward-bug");
    let none = memlint(&["slice", &input, "--iterations", "1..2", "-o", name]);
    assert_eq!(none.status.code(), Some(2));
    let words: Vec<&str> = stderr(&none).split_whitespace().collect();
    assert!(words.join(" ").contains("no iterations were found"));
    let misspelt = sliced(name, &["--iterations", "3-5"]);
    assert_eq!(misspelt.status.code(), Some(2));
    assert!(stderr(&misspelt).contains("3..5"));
    assert!(!path.exists());
    let nowhere = sliced("no/such/folder/out.pickle", &["--iterations", "2..3"]);
    assert_eq!(nowhere.status.code(), Some(2));
    assert!(stderr(&nowhere).contains("cannot be written"));
}

#[test]
fn slices_can_be_piped_into_anonymize() {
    let program = env!("CARGO_BIN_EXE_memlint");
    let mut first = Command::new(program)
        .current_dir(root())
        .args(["slice", &recording("seed-linear"), "--iterations", "..3", "-o", "-"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let second = Command::new(program)
        .args(["anonymize", "-", "-o", "-"])
        .stdin(first.stdout.take().unwrap())
        .output()
        .unwrap();
    assert!(first.wait().unwrap().success() && second.status.success());
    let text = String::from_utf8_lossy(&second.stdout);
    assert!(second.stdout.starts_with(b"\x80\x04") && second.stdout.ends_with(b"."));
    assert!(text.contains("file1.py") && !text.contains("train.py"));
}
