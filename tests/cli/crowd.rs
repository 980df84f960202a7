//! A job of many ranks: each command says of those that are alike once what it has to say, and names those that are not.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::{folder, memlint_in, recording, root, stderr, stdout};

/// Ranks: enough that a page a rank would be thousands of lines, and that a page does not draw all of them.
const RANKS: usize = 120;

/// A job in which all ranks are `like`, but for some.
fn job(folder: &Path, name: &str, like: &str, others: &[(usize, &str)]) -> PathBuf {
    let job = folder.join(name);
    fs::create_dir_all(&job).unwrap();
    for rank in 0..RANKS {
        let case = others.iter().find(|(other, _)| *other == rank).map_or(like, |(_, case)| case);
        fs::copy(root().join(recording(case)), job.join(format!("rank{rank}.pickle.zst"))).unwrap();
    }
    job
}

fn lines(folder: &Path, arguments: &[&str]) -> String {
    let output = memlint_in(folder, &[arguments, &["--isolated"]].concat());
    assert_eq!(output.status.code(), Some(0), "{arguments:?}: {}", stderr(&output));
    stdout(&output).to_owned()
}

#[test]
fn stats_of_like_ranks_are_a_screen_and_outliers_have_names() {
    let folder = folder("crowd-stats");
    job(&folder, "out", "seed-linear", &[]);
    let alike = lines(&folder, &["stats", "out"]);
    assert!(alike.lines().count() <= 60, "{alike}");
    assert!(alike.starts_with("ranks 0-119 of out/rank*.pickle.zst: "), "{alike}");
    assert!(
        alike.contains("below: out/rank60.pickle.zst, in the middle of 120 ranks that are alike"),
        "{alike}"
    );
    assert_eq!(alike.matches("\ndevice 0\n").count(), 1, "one page");
    job(&folder, "out", "seed-linear", &[(7, "seed-leak-list")]);
    let others = lines(&folder, &["stats", "out"]);
    assert!(others.starts_with("ranks 0-6, 8-119 of out/rank*.pickle.zst: "), "{others}");
    assert!(others.contains("\nout/rank7.pickle.zst:\n8 iterations"), "{others}");
    assert!(others.lines().count() <= 70, "{others}");
    let each = lines(&folder, &["stats", "-v", "out"]);
    assert_eq!(each.matches("\ndevice 0\n").count(), RANKS);
    let documents: Value =
        serde_json::from_str(&lines(&folder, &["stats", "out", "--output-format", "json"])).unwrap();
    assert_eq!(documents.as_array().map(Vec::len), Some(RANKS), "json stays complete");
}

#[test]
fn a_comparison_of_like_ranks_is_a_screen_and_outliers_say_what_is_new() {
    let folder = folder("crowd-diff");
    job(&folder, "base", "seed-linear", &[]);
    job(&folder, "head", "seed-linear", &[(7, "seed-leak-list")]);
    let alike = lines(&folder, &["diff", "base", "base"]);
    assert!(alike.lines().count() <= 60, "{alike}");
    assert!(alike.starts_with("ranks 0-119 of base/rank*.pickle.zst: peak unchanged at "), "{alike}");
    let others = lines(&folder, &["diff", "base", "head"]);
    assert!(others.starts_with("ranks 0-6, 8-119 of head/rank*.pickle.zst: peak unchanged at "), "{others}");
    let named = others.lines().position(|line| line.starts_with("head/rank7.pickle.zst: ")).unwrap();
    let new = others.lines().position(|line| line.starts_with("  new: memory grows by")).unwrap();
    let below = others.lines().position(|line| line.starts_with("below: head/rank")).unwrap();
    assert!(named < new && new < below, "{others}");
    assert!(others.lines().count() <= 60, "{others}");
    let each = lines(&folder, &["diff", "-v", "base", "head"]);
    assert_eq!(each.matches("\n  head        head/rank").count(), RANKS);
    let one = lines(&folder, &["diff", "base/rank3.pickle.zst", "head"]);
    assert!(
        one.starts_with("ranks 0-6, 8-119 of head/rank*.pickle.zst: peak unchanged at "),
        "one stands for all: {one}"
    );
    let documents: Value =
        serde_json::from_str(&lines(&folder, &["diff", "base", "head", "--output-format", "json"])).unwrap();
    assert_eq!(documents.as_array().map(Vec::len), Some(RANKS), "json stays complete");
}

#[test]
fn what_many_ranks_lack_is_told_of_a_few() {
    let folder = folder("crowd-lack");
    let base = job(&folder, "base", "seed-linear", &[]);
    let head = job(&folder, "head", "seed-linear", &[]);
    for rank in 0..20 {
        fs::remove_file(base.join(format!("rank{rank}.pickle.zst"))).unwrap();
        fs::remove_file(head.join(format!("rank{}.pickle.zst", rank + 40))).unwrap();
    }
    let output = memlint_in(&folder, &["diff", "base", "head", "--isolated"]);
    assert_eq!(output.status.code(), Some(2));
    let said = stderr(&output);
    assert_eq!(said.matches("warning: nothing was compared with `base/rank4").count(), 8, "{said}");
    assert!(said.contains("warning: nor with 12 more snapshots of the base; -v names them"), "{said}");
    assert_eq!(said.matches("has no snapshot to hold `head/rank").count(), 8, "{said}");
    assert!(said.contains("error: 12 more snapshots could not be shown"), "{said}");
}

#[test]
fn a_page_of_many_ranks_draws_some_and_is_that_of_their_parts() {
    let folder = folder("crowd-page");
    job(&folder, "out", "seed-linear", &[(7, "seed-leak-list")]);
    lines(&folder, &["report", "out", "-o", "page.html"]);
    let page = fs::read_to_string(folder.join("page.html")).unwrap();
    assert!(page.len() < 1 << 20, "{} bytes", page.len());
    fs::create_dir(folder.join("parts")).unwrap();
    for rank in 0..RANKS {
        let (snapshot, part) = (format!("out/rank{rank}.pickle.zst"), format!("parts/rank{rank}.memlint"));
        lines(&folder, &["examine", &snapshot, "-o", &part, "--page", &RANKS.to_string()]);
    }
    lines(&folder, &["conclude", "parts", "--exit-zero", "--output-file", "html=concluded.html"]);
    assert!(fs::read_to_string(folder.join("concluded.html")).unwrap() == page, "byte for byte");
}
