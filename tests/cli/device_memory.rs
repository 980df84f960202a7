//! `memlint check --device-memory`: whether what was recorded fits.

use serde_json::Value;

use crate::{memlint, recording, stdout};

fn check(memory: &str, arguments: &[&str]) -> (Option<i32>, String) {
    // 448.4 MiB requested, 472 MiB reserved.
    let path = recording("seed-resnet50-fixed");
    let output = memlint(&[&["check", &path, "--isolated", "--device-memory", memory], arguments].concat());
    (output.status.code(), stdout(&output).to_owned())
}

#[test]
fn what_fits_is_said_to_fit() {
    let (code, text) = check("80GiB", &[]);
    assert_eq!(code, Some(0));
    assert!(
        text.contains("device memory: at most 456 MiB of 80 GiB were held, so what was recorded fits\n"),
        "{text}"
    );
    assert!(!check("80GiB", &["--quiet"]).1.contains("device memory"));
    let plain = memlint(&["check", &recording("seed-resnet50-fixed"), "--isolated"]);
    assert!(!stdout(&plain).contains("device memory"), "nobody asked");
}

#[test]
fn what_does_not_fit_is_a_warning() {
    let (code, text) = check("400MiB", &[]);
    let told = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert_eq!(code, Some(0), "a warning, as others");
    assert!(told.contains("warning: the recorded program does not fit 400 MiB: device 0 of"), "{told}");
    assert!(
        told.contains("`memlint whatif SNAPSHOT --device-memory 400MiB` replays it with so much"),
        "{told}"
    );
    assert!(!text.contains("so what was recorded fits"));
    assert_eq!(check("400MiB", &["--fail-on", "warning"]).0, Some(1));
    let (_, text) = check("440MiB", &[]);
    assert!(text.contains("the allocator held more than 440 MiB, though less was in use"), "{text}");
    let json: Value = serde_json::from_str(&check("400MiB", &["--output-format", "json"]).1).unwrap();
    assert_eq!(json["notices"][0]["kind"], "does-not-fit");
}
