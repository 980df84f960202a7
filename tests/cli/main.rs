//! The binary as a person or a pipeline meets it: exit codes, messages, and what goes where.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod action;
mod against;
mod asked;
mod bad_input;
mod baseline;
mod crowd;
mod device_memory;
mod diff;
mod fix;
mod folders;
mod formats;
mod holders;
mod judged;
mod many;
mod outputs;
mod packaging;
mod parts;
mod profiler;
mod record;
mod refused;
mod report;
mod rules;
mod settings;
mod sources;
mod unread;
mod view;
mod whatif;
mod writing;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// The repository's root.
pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// A recording of the corpus, named from the root.
pub(crate) fn recording(case: &str) -> String {
    format!("snapshots/{case}/snapshot.pickle.zst")
}

/// A fresh folder for a test's files.
pub(crate) fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

/// Runs the binary in a folder, without a terminal and without what the environment says of colours.
pub(crate) fn memlint_in(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_memlint"));
    for variable in ["NO_COLOR", "FORCE_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "CI", "COLUMNS"] {
        command.env_remove(variable);
    }
    for variable in std::env::vars_os().map(|(name, _)| name) {
        if variable.to_string_lossy().starts_with("MEMLINT_") {
            command.env_remove(variable);
        }
    }
    command.current_dir(folder).args(arguments).output().unwrap()
}

pub(crate) fn memlint(arguments: &[&str]) -> Output {
    memlint_in(root(), arguments)
}

pub(crate) fn stdout(output: &Output) -> &str {
    str::from_utf8(&output.stdout).unwrap()
}

pub(crate) fn stderr(output: &Output) -> &str {
    str::from_utf8(&output.stderr).unwrap()
}

/// Compares with a golden file of `tests/expected/`.
pub(crate) fn golden(name: &str, text: &str) {
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path("../expected");
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| insta::assert_snapshot!(name, text));
}
