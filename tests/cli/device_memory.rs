//! `memlint check --device-memory`: whether what was recorded fits.

use serde_json::Value;

use crate::{memlint, recording, stdout};

/// The exit status and the report, with single blanks.
fn check(memory: &str, arguments: &[&str]) -> (Option<i32>, String) {
    // 423.2 MiB requested, 456 MiB reserved.
    let path = recording("seed-resnet50-fixed");
    let output = memlint(&[&["check", &path, "--isolated", "--device-memory", memory], arguments].concat());
    let text = stdout(&output).split_whitespace().collect::<Vec<_>>().join(" ");
    (output.status.code(), text)
}

#[test]
fn what_fits_is_said_to_fit() {
    let (code, text) = check("80GiB", &[]);
    assert_eq!(code, Some(0));
    assert!(
        text.contains("device memory: at most 456 MiB of 80 GiB were reserved, so what was recorded fits;"),
        "the peak of reserved memory is what a device has to give: {text}"
    );
    assert!(!check("80GiB", &["--quiet"]).1.contains("device memory"));
    let plain = memlint(&["check", &recording("seed-resnet50-fixed"), "--isolated"]);
    assert!(!stdout(&plain).contains("device memory"), "nobody asked");
}

#[test]
fn what_cannot_fit_is_an_error_and_what_may_not_a_warning() {
    let (code, text) = check("400MiB", &[]);
    assert_eq!(code, Some(1), "more was allocated than there is");
    assert!(
        text.contains(
            "error: what was recorded does not fit 400 MiB: up to 429 MiB were allocated on device 0 of"
        ),
        "{text}"
    );
    let whatif = format!("`memlint whatif {} --device-memory 400MiB`", recording("seed-resnet50-fixed"));
    assert!(text.contains(&whatif), "what it is about is named: {text}");
    assert!(!text.contains("so what was recorded fits"));
    let (code, text) = check("440MiB", &[]);
    assert_eq!((code, check("440MiB", &["--fail-on", "warning"]).0), (Some(0), Some(1)), "a warning");
    assert!(text.contains("may not fit 440 MiB: up to 456 MiB were reserved on device 0 of"), "{text}");
    let json: Value = serde_json::from_str(&check("400MiB", &["--output-format", "json"]).1).unwrap();
    assert_eq!(json["notices"][0]["kind"], "does-not-fit");
}
