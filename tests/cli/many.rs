//! Jobs of several processes: folders, patterns, ranks; and what `stats` says of unknown parts.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::{folder, memlint_in, recording, root, stderr, stdout};

/// Copies one small recording to several places of a folder.
fn place(folder: &Path, names: &[&str]) {
    for name in names {
        let path = folder.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::copy(root().join(recording("seed-linear")), path).unwrap();
    }
}

/// The names and ranks of what a check read.
fn read(folder: &Path, argument: &str) -> Vec<(String, Option<u64>)> {
    let arguments = ["check", argument, "--output-format", "json", "--exit-zero"];
    let output = memlint_in(folder, &arguments);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let report: Value = serde_json::from_str(stdout(&output)).unwrap();
    let inputs = report["inputs"].as_array().unwrap();
    for finding in report["findings"].as_array().unwrap() {
        let input = inputs.iter().find(|input| input["path"] == finding["input"]).unwrap();
        assert_eq!(finding["rank"], input["rank"]);
    }
    inputs.iter().map(|one| (one["path"].as_str().unwrap().to_owned(), one["rank"].as_u64())).collect()
}

#[test]
fn subfolders_are_read_and_ranks_inferred() {
    let folder = folder("ranks");
    let (zero, one) =
        ("out/iteration_10/rank0_memory_snapshot.pickle", "out/iteration_10/rank1_memory_snapshot.pickle");
    place(&folder, &[one, zero, "out/last.pickle", "out/.cache/rank9.pickle", "out/a/b/c/d/e/rank8.pickle"]);
    fs::write(folder.join("out/iteration_10/train.log"), "loss 0.3").unwrap();
    fs::write(folder.join("out/weights.pt"), b"\x80\x02\x8a\x0al\xfc\x9cF\xf9 j\xa8P\x19.").unwrap();
    let ranks = [(zero.to_owned(), Some(0)), (one.to_owned(), Some(1))];
    let all = [&ranks[..], &[("out/last.pickle".to_owned(), None)]].concat();
    assert_eq!(read(&folder, "out"), all, "sorted, without hidden files, deeper folders and other files");
    assert_eq!(read(&folder, "out/**/rank[01]*.pickle"), ranks);
    assert_eq!(read(&folder, "out/*.pickle"), all[2..]);
}

#[cfg(unix)]
#[test]
fn links_to_folders_are_not_followed() {
    let folder = folder("links");
    place(&folder, &["out/rank2.pickle"]);
    std::os::unix::fs::symlink("..", folder.join("out/up")).unwrap();
    std::os::unix::fs::symlink("rank2.pickle", folder.join("out/rank3.pickle")).unwrap();
    let ranks: Vec<_> = read(&folder, "out").into_iter().map(|(_, rank)| rank).collect();
    assert_eq!(ranks, [Some(2), Some(3)], "a link to a file is a file");
}

#[test]
fn a_file_whose_name_looks_like_a_pattern_is_that_file() {
    let folder = folder("brackets");
    place(&folder, &["run[1].pickle", "run1.pickle"]);
    assert_eq!(read(&folder, "run[1].pickle"), [("run[1].pickle".to_owned(), None)]);
}

#[test]
fn stats_lists_every_unknown_key_where_asked() {
    let folder = folder("unknown");
    let mut pickle = b"\x80\x04}(\x8c\x08segments]\x8c\x0ddevice_traces]".to_vec();
    for key in b'a'..=b'g' {
        pickle.extend([b"\x8c\x02x".as_slice(), &[key], b"K\x00"].concat());
    }
    pickle.extend(b"u.");
    fs::write(folder.join("it.pickle"), pickle).unwrap();
    let brief = memlint_in(&folder, &["stats", "it.pickle"]);
    assert!(stdout(&brief).contains("2 more") && !stdout(&brief).contains("`xg`"), "{}", stdout(&brief));
    let full = memlint_in(&folder, &["stats", "-v", "it.pickle"]);
    assert!(stdout(&full).contains("`xg` (1x)") && !stdout(&full).contains("more"), "{}", stdout(&full));
}
