//! `memlint check --against`: what is worse fails, what the base has, too, does not.

use std::fs;
use std::path::Path;

use crate::{folder, memlint, memlint_in, recording, root, stderr, stdout};

/// Exit status and report of a check against a base.
fn against(head: &str, base: &str) -> (Option<i32>, String) {
    let output = memlint(&["check", &recording(head), "--against", &recording(base)]);
    (output.status.code(), format!("{}{}", stderr(&output), stdout(&output)))
}

#[test]
fn what_the_base_has_too_passes() {
    for case in
        ["seed-resnet50-bug", "grow-replay-bug", "graph-vae-retain-bug", "seed-oom", "cycle-gc-off-bug"]
    {
        let (code, report) = against(case, case);
        assert_eq!(code, Some(0), "{report}");
        assert!(!report.contains("-regression]"), "{report}");
        let said = report.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(
            said.contains(", as before; `memlint diff` shows all of it"),
            "what passed is shown: {report}"
        );
    }
}

#[test]
fn what_is_new_fails_and_its_removal_passes() {
    for case in ["seed-resnet50", "grow-replay", "mzg-gan-disc"] {
        let [bug, fixed] = ["bug", "fixed"].map(|twin| format!("{case}-{twin}"));
        let (code, report) = against(&bug, &fixed);
        assert_eq!(code, Some(1), "{report}");
        assert!(!report.contains("-regression]"), "the rule says it: {report}");
        assert_eq!(against(&fixed, &bug).0, Some(0));
    }
}

#[test]
fn a_higher_peak_fails_where_the_growth_behind_it_is_not_asked_for() {
    let [bug, fixed] = [recording("grow-replay-bug"), recording("grow-replay-fixed")];
    for only in [&["--select", "peak-regression"][..], &["--ignore", "leak"]] {
        let output = memlint(&[&["check", &bug, "--against", &fixed, "--isolated"], only].concat());
        assert_eq!(output.status.code(), Some(1), "{}", stdout(&output));
        assert!(stdout(&output).contains("[peak-regression]"), "{}", stdout(&output));
    }
}

#[test]
fn a_higher_peak_fails_where_its_reason_is_but_a_warning() {
    let (code, report) = against("latezero-vit-bug", "latezero-vit-fixed");
    assert_eq!(code, Some(1), "{report}");
    for part in [
        "peak 2.2 GiB before,",
        "[peak-regression]",
        "the peak is 297.4 MiB higher than in the base (13 %)",
        "late-zero-grad accounts",
    ] {
        assert!(report.contains(part), "{part} is not in {report}");
    }
    assert_eq!(against("latezero-vit-fixed", "latezero-vit-bug").0, Some(0));
    let (code, report) = against("frag-curriculum-bug", "frag-curriculum-fixed");
    assert_eq!(code, Some(1), "{report}");
    assert!(report.contains("the reserved peak is"), "{report}");
}

#[test]
fn two_parts_of_one_run_are_no_worse_than_each_other() {
    let folder = folder("against-parts");
    for case in [
        "clean-ddpm-last-batch",
        "seed-many-python",
        "cycle-closure-bug",
        "varying-padding-bug",
        "amp-skipped-bug",
    ] {
        fs::copy(root().join(recording(case)), folder.join("whole.zst")).unwrap();
        for (name, iterations) in [("early.pickle", "2..6"), ("late.pickle", "7..11")] {
            let cut = ["slice", "whole.zst", "--iterations", iterations, "-o", name, "--force"];
            assert_eq!(memlint_in(&folder, &cut).status.code(), Some(0), "{case}");
        }
        for (head, base) in [("late.pickle", "early.pickle"), ("early.pickle", "late.pickle")] {
            let output = memlint_in(&folder, &["check", head, "--against", base]);
            assert!(!stdout(&output).contains("-regression]"), "{case}: {}", stdout(&output));
            let strict = memlint_in(
                &folder,
                &["check", head, "--against", base, "--strict", "--ignore", "all", "--extend-select", "oom"],
            );
            assert_eq!(strict.status.code(), Some(2), "{case}: {}", stdout(&strict));
            let diff = memlint_in(&folder, &["diff", base, head]);
            let (one, other) = if base == "early.pickle" { (2, 7) } else { (7, 2) };
            let first =
                format!("other iterations (the base begins with iteration {one}, the head with {other})");
            let said = stdout(&diff).split_whitespace().collect::<Vec<_>>().join(" ");
            assert!(said.starts_with(&first), "{case}: {}", stdout(&diff));
        }
        // A late slice needs more than an early one, and is no worse.
        let late = memlint_in(&folder, &["check", "late.pickle", "--against", "whole.zst"]);
        assert!(stdout(&late).contains("not-compared"), "{case}: {}", stdout(&late));
    }
}

#[test]
fn ranks_are_held_against_their_like() {
    let folder = folder("against-ranks");
    let place = |case: &str, name: &str| {
        let path = folder.join(name);
        fs::create_dir_all(path.parent().unwrap_or(Path::new("."))).unwrap();
        fs::copy(root().join(recording(case)), path).unwrap();
    };
    place("seed-resnet50-fixed", "base/rank0.pickle");
    place("latezero-vit-fixed", "base/rank1.pickle");
    place("latezero-vit-fixed", "head/rank1.pickle");
    place("seed-resnet50-fixed", "head/rank0.pickle");
    let code = |head: &str, base: &str| {
        let output = memlint_in(&folder, &["check", head, "--against", base]);
        (output.status.code(), format!("{}{}", stdout(&output), stderr(&output)))
    };
    assert_eq!(code("head", "base").0, Some(0));
    place("latezero-vit-bug", "head/rank1.pickle");
    let (status, report) = code("head", "base");
    assert_eq!(status, Some(1), "{report}");
    assert_eq!(report.matches("[peak-regression]").count(), 1, "rank 0 is as it was: {report}");
    place("seed-resnet50-fixed", "head/rank2.pickle");
    let (status, said) = code("head", "base");
    assert_eq!(status, Some(2), "{said}");
    assert!(said.contains("rank2.pickle") && said.contains("`base`"), "{said}");
}

#[test]
fn a_base_that_cannot_be_read_is_no_verdict() {
    let head = recording("seed-resnet50-fixed");
    for base in ["missing.pickle", "README.md", "rules"] {
        let output = memlint(&["check", &head, "--against", base]);
        assert_eq!((output.status.code(), stdout(&output)), (Some(2), ""), "{base}");
    }
    let output = memlint(&["check", "-", "--against", "-"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("cannot be both"), "{}", stderr(&output));
    let both = ["check", &head, "--against", &head, "--baseline", "b.json"];
    let output = memlint(&both);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("cannot be used with"), "{}", stderr(&output));
}

#[test]
fn iterations_that_one_of_the_two_lacks_are_told() {
    let folder = folder("against-fewer");
    fs::copy(root().join(recording("seed-many-python")), folder.join("whole.zst")).unwrap();
    let cut = ["slice", "whole.zst", "--iterations", "1..5", "-o", "few.pickle"];
    assert_eq!(memlint_in(&folder, &cut).status.code(), Some(0));
    let run = |head: &str, base: &str, more: &[&str]| {
        let output = memlint_in(&folder, &[&["check", head, "--against", base], more].concat());
        let said = format!("{}{}", stdout(&output), stderr(&output));
        (output.status.code(), said.split_whitespace().collect::<Vec<_>>().join(" "))
    };
    let (_, said) = run("few.pickle", "whole.zst", &[]);
    assert!(
        said.contains("warning: the base holds") && said.contains("only the first 5 are compared"),
        "{said}"
    );
    let (code, said) = run("few.pickle", "whole.zst", &["--strict", "--select", "oom"]);
    assert_eq!(code, Some(2), "{said}");
    let (code, said) = run("whole.zst", "few.pickle", &["--strict", "--select", "oom", "-v"]);
    assert_eq!(code, Some(0), "what goes on beyond the base is for the rules: {said}");
    assert!(said.contains("the first 5 are compared"), "{said}");
    let (code, said) = run("whole.zst", "whole.zst", &["--strict", "--select", "oom"]);
    assert_eq!((code, said.contains("are compared")), (Some(0), false), "{said}");
}

#[test]
fn a_base_that_trains_and_a_recording_that_does_not_are_not_the_same() {
    let [trains, does_not] = ["clean-ddpm-last-batch", "thrash-inference-bug"].map(recording);
    let output = memlint(&["check", &does_not, "--against", &trains, "--strict", "--select", "oom"]);
    assert_eq!(output.status.code(), Some(2));
    let said = stdout(&output).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(said.contains("optimizer steps on device 0 and the head none"), "{said}");
}

/// A recording of a program that leaks, as a plain pickle, and the same one with a name in it replaced by one that is as long.
fn renamed(folder: &Path, from: &str, to: &str) {
    fs::copy(root().join(recording("seed-resnet50-bug")), folder.join("whole.zst")).unwrap();
    let cut = ["slice", "whole.zst", "--iterations", "1..", "-o", "base.pickle", "--force"];
    assert_eq!(memlint_in(folder, &cut).status.code(), Some(0));
    let mut bytes = fs::read(folder.join("base.pickle")).unwrap();
    assert_eq!(from.len(), to.len());
    let places: Vec<usize> =
        (0..bytes.len()).filter(|at| bytes[*at..].starts_with(from.as_bytes())).collect();
    assert!(!places.is_empty(), "{from} is nowhere");
    for at in places {
        bytes[at..at + to.len()].copy_from_slice(to.as_bytes());
    }
    fs::write(folder.join("head.pickle"), bytes).unwrap();
}

#[test]
fn what_was_only_renamed_is_not_new() {
    let folder = folder("against-renamed");
    for (from, to) in [("train.py", "trial.py"), ("run_resnet50", "fit_resnet50")] {
        renamed(&folder, from, to);
        for more in [&["--strict"][..], &[]] {
            let output =
                memlint_in(&folder, &[&["check", "head.pickle", "--against", "base.pickle"], more].concat());
            let said = format!("{}{}", stdout(&output), stderr(&output));
            assert_eq!(output.status.code(), Some(0), "{from}: {said}");
        }
        let shown = memlint_in(&folder, &["diff", "base.pickle", "head.pickle"]);
        assert!(!stdout(&shown).contains("gone"), "{from}: {}", stdout(&shown));
    }
}
