//! `memlint report`: the page as a file or on standard output, and what keeps it from being written.

use std::fs;

use crate::{folder, memlint_in, recording, root, stderr, stdout};

/// The beginning of a page about a recording with one error and one note.
const TITLE: &str = "<title>memlint: 1 error, 1 note</title>";

#[test]
fn a_page_is_written_whatever_was_found() {
    let folder = folder("report-page");
    let bug = root().join(recording("seed-resnet50-bug"));
    let bug = bug.to_str().unwrap();
    let output = memlint_in(&folder, &["report", bug, "-o", "page.html"]);
    assert_eq!((output.status.code(), stdout(&output)), (Some(0), ""));
    assert!(stderr(&output).starts_with("page.html: 2 findings"), "{}", stderr(&output));
    let page = fs::read_to_string(folder.join("page.html")).unwrap();
    assert!(page.contains(TITLE));
    let printed = memlint_in(&folder, &["report", bug, "-o", "-"]);
    assert_eq!((printed.status.code(), stdout(&printed)), (Some(0), page.as_str()));
    let checked = memlint_in(&folder, &["check", bug, "--output-file", "html=same.html", "-q"]);
    assert_eq!(checked.status.code(), Some(1));
    assert_eq!(fs::read_to_string(folder.join("same.html")).unwrap(), page);
}

#[test]
fn a_page_without_a_name_is_written_where_one_is() {
    let folder = folder("report-default");
    let linear = root().join(recording("seed-linear"));
    let output = memlint_in(&folder, &["report", linear.to_str().unwrap()]);
    assert_eq!((output.status.code(), stdout(&output)), (Some(0), ""));
    assert!(stderr(&output).starts_with("memlint-report.html: "), "{}", stderr(&output));
    assert!(fs::read_to_string(folder.join("memlint-report.html")).unwrap().contains("<title>memlint: "));
}

#[test]
fn a_page_of_every_event_of_a_large_recording_is_small() {
    let folder = folder("report-large");
    let large = root().join(recording("seed-many-all"));
    let output = memlint_in(&folder, &["report", large.to_str().unwrap(), "-o", "page.html"]);
    assert_eq!(output.status.code(), Some(0));
    let bytes = fs::metadata(folder.join("page.html")).unwrap().len();
    assert!(bytes < 5 << 20, "{bytes} bytes for 137 thousand events");
}

#[test]
fn a_snapshot_is_not_replaced_and_a_bad_one_is_told() {
    let folder = folder("report-refused");
    fs::copy(root().join(recording("seed-linear")), folder.join("s.zst")).unwrap();
    let before = fs::read(folder.join("s.zst")).unwrap();
    let itself = memlint_in(&folder, &["report", "s.zst", "-o", "s.zst"]);
    assert_eq!(itself.status.code(), Some(2));
    assert!(stderr(&itself).contains("it is a snapshot"), "{}", stderr(&itself));
    assert_eq!(fs::read(folder.join("s.zst")).unwrap(), before);
    fs::write(folder.join("bad.pickle"), "no pickle").unwrap();
    let alone = memlint_in(&folder, &["report", "bad.pickle", "-o", "page.html"]);
    assert_eq!(alone.status.code(), Some(2));
    assert!(!folder.join("page.html").exists());
    let beside = memlint_in(&folder, &["report", "s.zst", "bad.pickle", "-o", "page.html"]);
    assert_eq!(beside.status.code(), Some(2), "one of two could not be read");
    assert!(fs::read_to_string(folder.join("page.html")).unwrap().contains("1 of 2 files could not be read"));
}

#[test]
fn a_page_against_a_base_holds_both() {
    let folder = folder("report-against");
    let (bug, fixed) =
        (root().join(recording("seed-resnet50-bug")), root().join(recording("seed-resnet50-fixed")));
    let arguments =
        ["report", bug.to_str().unwrap(), "--against", fixed.to_str().unwrap(), "-o", "page.html"];
    let output = memlint_in(&folder, &arguments);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let alone = memlint_in(&folder, &["report", bug.to_str().unwrap(), "-o", "alone.html"]);
    assert_eq!(alone.status.code(), Some(0));
    let size = |name: &str| fs::metadata(folder.join(name)).unwrap().len();
    assert!(size("page.html") > size("alone.html") + 5000, "the base is drawn, too");
}
