//! What is installed beside memlint.

use std::fs;

use super::{folder, memlint, memlint_in, stderr, stdout};

#[test]
fn shells_complete_the_arguments() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let output = memlint(&["completions", shell]);
        assert!(output.status.success(), "{shell}");
        assert!(stdout(&output).contains("update-baseline"), "{shell}");
    }
    assert_eq!(memlint(&["completions", "tcsh"]).status.code(), Some(2));
}

#[test]
fn every_command_has_a_manual_page() {
    let folder = folder("manual");
    assert!(stdout(&memlint(&["man"])).contains(".TH memlint 1"));
    assert!(memlint_in(&folder, &["man", "."]).status.success());
    for page in ["memlint.1", "memlint-check.1", "memlint-diff.1", "memlint-config.1"] {
        assert!(fs::read_to_string(folder.join(page)).unwrap().contains(".SH NAME"), "{page}");
    }
    let missing = memlint(&["man", "nowhere/at/all"]);
    assert_eq!(missing.status.code(), Some(2));
    assert!(stderr(&missing).contains("nowhere/at/all"));
}
