//! `memlint fix`: differences that tools take, files that are replaced whole, refusals, and proof.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use crate::{folder, memlint, memlint_in, recording, root, stderr, stdout};

/// A folder with a program of the corpus, and its recording.
fn program(name: &str, case: &str) -> PathBuf {
    let place = folder(name);
    fs::create_dir(place.join(".git")).unwrap();
    fs::copy(root().join("examples").join(case).join("train.py"), place.join("train.py")).unwrap();
    fs::copy(root().join(recording(case)), place.join("memory.pickle.zst")).unwrap();
    place
}

fn fix(place: &Path, options: &[&str]) -> Output {
    memlint_in(place, &[&["fix", "--isolated", "--source-root", ".", "memory.pickle.zst"], options].concat())
}

fn text(place: &Path) -> String {
    fs::read_to_string(place.join("train.py")).unwrap()
}

#[test]
fn the_difference_is_what_patch_takes_and_what_write_makes() {
    let (shown, written) = (program("fix-shown", "seed-leak-list"), program("fix-written", "seed-leak-list"));
    let before = text(&shown);
    let difference = fix(&shown, &["--unsafe"]);
    assert_eq!((difference.status.code(), text(&shown)), (Some(0), before), "{}", stderr(&difference));
    let mut git = Command::new("git");
    let mut apply = git.args(["apply", "-"]).current_dir(&shown).stdin(Stdio::piped()).spawn().unwrap();
    std::io::Write::write_all(&mut apply.stdin.take().unwrap(), &difference.stdout).unwrap();
    assert!(apply.wait().unwrap().success());
    let write = fix(&written, &["--unsafe", "--write"]);
    assert_eq!(write.status.code(), Some(0), "{}", stderr(&write));
    assert_eq!(stdout(&write), "");
    assert_eq!(text(&shown), text(&written));
    assert!(
        text(&written).contains("@torch.no_grad()\ndef evaluate")
            && text(&written).contains("history.append(out.detach().cpu())")
    );
    // A second time the file is no longer the recorded one.
    let again = fix(&written, &["--unsafe"]);
    assert_eq!((again.status.code(), stdout(&again)), (Some(0), ""), "{}", stderr(&again));
    assert!(stderr(&again).contains("has changed since the recording"), "{}", stderr(&again));
}

#[test]
fn safe_edits_are_taken_unasked_and_others_told() {
    let place = program("fix-safe", "seed-leak-list");
    let output = fix(&place, &[]);
    assert!(stdout(&output).contains("+@torch.no_grad()") && !stdout(&output).contains(".cpu()"));
    assert!(stderr(&output).contains("`--unsafe` takes it"), "{}", stderr(&output));
    let only = fix(&place, &["--unsafe", "--only", "growing-residency"]);
    assert!(!stdout(&only).contains("no_grad") && stdout(&only).contains(".cpu()"));
    let none = fix(&place, &["--only", "oom"]);
    assert_eq!(none.status.code(), Some(2));
    assert!(stderr(&none).contains("there are no edits for `oom`"), "{}", stderr(&none));
}

#[test]
fn a_file_keeps_its_permissions_and_line_ends() {
    let place = program("fix-mode", "seed-leak-list");
    fs::write(place.join("train.py"), text(&place).replace('\n', "\r\n")).unwrap();
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        fs::set_permissions(place.join("train.py"), fs::Permissions::from_mode(0o750)).unwrap();
    }
    let output = fix(&place, &["--write"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(text(&place).contains("@torch.no_grad()\r\n"));
    assert!(!text(&place).replace("\r\n", "").contains('\n'));
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        assert_eq!(fs::metadata(place.join("train.py")).unwrap().permissions().mode() & 0o777, 0o750);
    }
    assert_eq!(fs::read_dir(&place).unwrap().count(), 3, "nothing is left beside it");
}

#[test]
fn what_cannot_be_edited_is_refused() {
    let place = program("fix-read-only", "seed-leak-list");
    let before = text(&place);
    let file = place.join("train.py");
    let mut permissions = fs::metadata(&file).unwrap().permissions();
    permissions.set_readonly(true);
    fs::set_permissions(&file, permissions).unwrap();
    let output = fix(&place, &["--write"]);
    assert_eq!((output.status.code(), text(&place)), (Some(2), before.clone()));
    assert!(stderr(&output).contains("cannot be written: it is read-only"), "{}", stderr(&output));

    let place = program("fix-latin", "seed-leak-list");
    fs::write(place.join("train.py"), [before.as_bytes(), b"# caf\xe9\n"].concat()).unwrap();
    let output = fix(&place, &[]);
    assert_eq!((output.status.code(), stdout(&output)), (Some(0), ""));
    let said = stderr(&output);
    assert!(said.contains("train.py is no UTF-8: line ") && said.contains("byte 0xe9"), "{said}");
}

#[cfg(unix)]
#[test]
fn a_link_out_of_the_folder_is_called_one() {
    let (place, other) = (program("fix-link", "seed-leak-list"), folder("fix-link-outside"));
    fs::rename(place.join("train.py"), other.join("train.py")).unwrap();
    std::os::unix::fs::symlink(other.join("train.py"), place.join("train.py")).unwrap();
    let output = fix(&place, &[]);
    assert_eq!((output.status.code(), stdout(&output)), (Some(0), ""));
    let said = stderr(&output);
    assert!(said.contains("train.py is a link out of the folders that are searched, to "), "{said}");
}

#[test]
fn the_difference_is_named_from_the_current_folder() {
    let place = program("fix-named", "seed-leak-list");
    let below = place.join("my job");
    fs::create_dir(&below).unwrap();
    fs::rename(place.join("train.py"), below.join("train.py")).unwrap();
    let (below, name) = (fs::canonicalize(&below).unwrap(), "my job/train.py\t");
    for (root, here, name) in
        [(&below, &place, name), (&below, &below, "train.py"), (&place.join("my job"), &place, name)]
    {
        let snapshot = place.join("memory.pickle.zst");
        let options = ["fix", "--isolated", "--unsafe", "--source-root"];
        let output =
            memlint_in(here, &[&options[..], &[root.to_str().unwrap(), snapshot.to_str().unwrap()]].concat());
        assert!(
            stdout(&output).starts_with(&format!("--- a/{name}\n+++ b/{name}\n")),
            "{}{}",
            stdout(&output),
            stderr(&output)
        );
        let mut git = Command::new("git");
        let mut apply =
            git.args(["apply", "--check"]).current_dir(here).stdin(Stdio::piped()).spawn().unwrap();
        std::io::Write::write_all(&mut apply.stdin.take().unwrap(), &output.stdout).unwrap();
        assert!(apply.wait().unwrap().success());
    }
}

#[cfg(unix)]
#[test]
fn a_file_elsewhere_is_named_from_the_root() {
    let (place, here) = (program("fix-elsewhere", "seed-leak-list"), folder("fix-elsewhere-from"));
    let options =
        ["fix", "--isolated", "--source-root", "../fix-elsewhere", "../fix-elsewhere/memory.pickle.zst"];
    let output = memlint_in(&here, &options);
    let whole = fs::canonicalize(place.join("train.py")).unwrap();
    let name = whole.to_str().unwrap();
    assert!(stdout(&output).starts_with(&format!("--- a{name}\n+++ b{name}\n")), "{}", stdout(&output));
    assert!(stderr(&output).contains("`patch -p1 -d /` finds it"), "{}", stderr(&output));
}

#[test]
fn edits_that_nobody_allowed_are_not_proved() {
    let place = program("fix-unproved", "seed-resnet50-bug");
    let output = fix(&place, &["--verify", "--", "sh", "-c", "exit 0"]);
    assert_eq!((output.status.code(), stdout(&output)), (Some(2), ""));
    assert!(stderr(&output).contains("the edits are unsafe, so none was run"), "{}", stderr(&output));
}

#[test]
fn a_clean_program_stays_as_it_is() {
    let output = memlint(&["fix", "--isolated", &recording("seed-resnet50-fixed"), "--unsafe"]);
    assert_eq!((output.status.code(), stdout(&output)), (Some(0), ""));
    assert!(stderr(&output).contains("nothing to mend"), "{}", stderr(&output));
}

/// A shell script that plays the program: it writes the recording of the fault, or of the mended twin where the edit is there.
const PLAYED: &str = r#"
said() { printf '%s' "$MEMLINT_RECORDING" | sed "s|.*\"$1\":\"\([^\"]*\)\".*|\1|"; }
tell() { echo "{\"pid\": $$, \"event\": $1}" >> "$(said ledger)/one.jsonl"; }
tell '"python"'; tell '"torch"'; tell '"recording", "stacks": "all", "max_entries": 1000'
if grep -q "$MARK" train.py; then cp "$AFTER" "$(said folder)/one.1.pickle"; else cp "$BEFORE" "$(said folder)/one.1.pickle"; fi
touch written-here
tell "\"written\", \"path\": \"$(said folder)/one.1.pickle\", \"name\": \"one\", \"reason\": \"end\", \"steps\": 5, \"seconds\": 0.25, \
  \"rank\": null, \"torch\": \"2.11.0\", \"cuda\": \"13.0\", \"device\": \"Some GPU\""
tell '"end", "steps": 5, "recorded_seconds": 0.05, "unrecorded_seconds": 0.05'
"#;

fn plain(place: &Path, case: &str) -> String {
    let plain = place.join(format!("{case}.pickle"));
    let file = fs::File::create(&plain).unwrap();
    zstd::stream::copy_decode(fs::File::open(root().join(recording(case))).unwrap(), file).unwrap();
    plain.display().to_string()
}

/// Verifies the edit of a program whose mended version gives the recording of `after`.
fn verify(name: &str, after: &str, end: &str) -> (PathBuf, Output) {
    let (place, recordings) = (program(name, "seed-resnet50-bug"), folder(&format!("{name}-recordings")));
    let (before, after) = (plain(&recordings, "seed-resnet50-bug"), plain(&recordings, after));
    let script = format!("MARK=zero_grad BEFORE='{before}' AFTER='{after}'\n{PLAYED}{end}");
    let output = fix(&place, &["--unsafe", "--verify", "--", "sh", "-c", &script]);
    (place, output)
}

#[test]
fn an_edit_that_helps_is_proved_in_copies() {
    let (place, output) = verify("fix-proved", "seed-resnet50-fixed", "");
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(stderr(&output).contains("proved: what was found is gone"), "{}", stderr(&output));
    assert!(stdout(&output).contains("+        optimizer.zero_grad(set_to_none=True)"));
    assert!(!place.join("written-here").exists(), "the program ran in the working copy");
}

#[test]
fn paths_within_words_and_searched_folders_lead_into_the_copy() {
    let (place, recordings) = (program("fix-led", "seed-resnet50-bug"), folder("fix-led-recordings"));
    fs::create_dir(place.join("lib")).unwrap();
    let (before, after) =
        (plain(&recordings, "seed-resnet50-bug"), plain(&recordings, "seed-resnet50-fixed"));
    let writes = "echo written > \"${1#--log=}\"; touch \"${PYTHONPATH##*:}/imported\"; ls lib";
    let script = format!("MARK=zero_grad BEFORE='{before}' AFTER='{after}'\n{PLAYED}{writes}");
    let log = format!("--log={}", place.join("log.txt").display());
    let output = Command::new(env!("CARGO_BIN_EXE_memlint"))
        .current_dir(&place)
        .env("PYTHONPATH", place.join("lib"))
        .args(["fix", "--isolated", "--source-root", ".", "memory.pickle.zst", "--unsafe", "--verify", "--"])
        .args(["sh", "-c", &script, "sh", &log])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let said = stderr(&output);
    assert!(said.contains("proved: what was found is gone") && said.contains("imported"), "{said}");
    let left: Vec<PathBuf> = ["log.txt", "lib/imported"].iter().map(|name| place.join(name)).collect();
    assert!(left.iter().all(|path| !path.exists()), "the program wrote into the working copy");
}

#[test]
fn a_byte_order_mark_is_no_part_of_the_program() {
    let place = program("fix-mark", "seed-leak-list");
    let marked = format!("\u{feff}{}", text(&place));
    fs::write(place.join("train.py"), &marked).unwrap();
    let output = fix(&place, &["--unsafe", "--write"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let after = text(&place);
    assert!(
        after.starts_with("\u{feff}import sys\n") && after.contains("@torch.no_grad()\ndef evaluate"),
        "{after}"
    );
}

#[test]
fn an_edit_that_does_not_help_or_breaks_the_program_is_withdrawn() {
    let (_, output) = verify("fix-useless", "seed-resnet50-bug", "");
    assert_eq!((output.status.code(), stdout(&output)), (Some(0), ""));
    assert!(stderr(&output).contains("withdrawn: missing-zero-grad is still there"), "{}", stderr(&output));
    let (_, output) =
        verify("fix-broken", "seed-resnet50-fixed", "grep -q zero_grad train.py && exit 3; exit 0");
    assert_eq!((output.status.code(), stdout(&output)), (Some(0), ""));
    assert!(stderr(&output).contains("withdrawn: the program fails"), "{}", stderr(&output));
    let (_, output) = verify("fix-worse", "seed-leak-list", "");
    assert_eq!((output.status.code(), stdout(&output)), (Some(0), ""));
    assert!(stderr(&output).contains("withdrawn: it adds "), "{}", stderr(&output));
}
