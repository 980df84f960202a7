//! `examine` and `conclude`: the report of `check`, byte for byte, and what parts are refused.

use std::fs;
use std::path::Path;

use crate::{folder, memlint_in, recording, root, stderr, stdout};

/// Examines the snapshots of a folder, each by itself, into `parts`.
fn examine(folder: &Path, names: &[&str], more: &[&str]) {
    fs::create_dir_all(folder.join("parts")).unwrap();
    for (number, name) in names.iter().enumerate() {
        // What a part is called says nothing.
        let part = format!("parts/{}.memlint", names.len() - number);
        let output = memlint_in(folder, &[&["examine", name, "-o", &part], more].concat());
        assert_eq!((output.status.code(), stdout(&output)), (Some(0), ""), "{}", stderr(&output));
    }
}

fn job(name: &str) -> std::path::PathBuf {
    let folder = folder(name);
    fs::create_dir_all(folder.join("run")).unwrap();
    let cases = [
        ("seed-leak-list", 0),
        ("seed-leak-list", 1),
        ("seed-linear", 2),
        ("seed-linear", 3),
        ("seed-leak-list", 10),
    ];
    for (case, rank) in cases {
        fs::copy(root().join(recording(case)), folder.join(format!("run/rank{rank}.pickle"))).unwrap();
    }
    folder
}

const RANKS: [&str; 5] =
    ["run/rank10.pickle", "run/rank0.pickle", "run/rank2.pickle", "run/rank1.pickle", "run/rank3.pickle"];

#[test]
fn a_conclusion_is_the_check_of_all_in_every_format() {
    let folder = job("parts_equal");
    examine(&folder, &RANKS, &["--page", "5"]);
    let formats =
        ["text", "concise", "json", "jsonl", "sarif", "github", "gitlab", "junit", "markdown", "html"];
    for format in formats {
        for more in [&[][..], &["-v"], &["--fail-on", "warning"]] {
            let run = |command: &str, path: &str| {
                memlint_in(&folder, &[&[command, path, "--output-format", format], more].concat())
            };
            let (checked, concluded) = (run("check", "run"), run("conclude", "parts/*.memlint"));
            assert!(stdout(&checked) == stdout(&concluded), "{format} {more:?}");
            assert_eq!(checked.status.code(), concluded.status.code(), "{format} {more:?}");
            assert_eq!(run("conclude", "parts").stdout, concluded.stdout, "a folder of parts");
        }
    }
}

#[test]
fn ranks_of_several_devices_conclude_as_they_check() {
    let folder = folder("parts_imbalance");
    let ranks = ["rank0", "rank1"]
        .map(|rank| format!("snapshots/ranks/fsdp-imbalance/{rank}_memory_snapshot.pickle.zst"));
    for (number, rank) in ranks.iter().enumerate() {
        let part = folder.join(format!("{number}.memlint"));
        let output = memlint_in(root(), &["examine", rank, "-o", part.to_str().unwrap(), "--isolated"]);
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        let (part, whole) =
            (fs::metadata(part).unwrap().len(), fs::metadata(root().join(rank)).unwrap().len());
        assert!(part < whole / 2, "a part of {part} bytes of a compressed snapshot of {whole}");
    }
    let checked = memlint_in(root(), &["check", "snapshots/ranks/fsdp-imbalance", "--isolated"]);
    let concluded = memlint_in(root(), &["conclude", folder.to_str().unwrap(), "--isolated"]);
    assert!(stdout(&checked).contains("[rank-imbalance]"), "{}", stdout(&checked));
    assert_eq!(stdout(&checked), stdout(&concluded));
}

#[test]
fn parts_that_do_not_belong_together_are_refused_by_name() {
    let folder = job("parts_refused");
    examine(&folder, &RANKS, &[]);
    let refused = |arguments: &[&str], expected: &str| {
        let output = memlint_in(&folder, &[&["conclude"], arguments].concat());
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        let error = stderr(&output).split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(error.contains(expected), "{arguments:?}: {error}");
    };
    refused(&["run"], "no file matches `run/*.memlint`");
    refused(
        &["run/rank0.pickle"],
        "`run/rank0.pickle` cannot be concluded: it is not what `memlint examine` writes",
    );
    refused(&["-"], "standard input");
    refused(&["parts", "--device-memory", "8GiB"], "was examined by other rules");
    refused(&["parts", "--ignore", "oom"], "was examined by other rules");
    refused(&["parts", "--output-format", "html"], "was not drawn for a page of 5");
    refused(&["parts", "--against", "run"], "cannot be held against a base");
    let part = |name: &str| folder.join("parts").join(name);
    fs::copy(part("4.memlint"), part("6.memlint")).unwrap();
    refused(&["parts"], "are both of the snapshot `run/rank0.pickle`");
    fs::remove_file(part("6.memlint")).unwrap();
    let whole = fs::read(part("2.memlint")).unwrap();
    fs::write(part("2.memlint"), &whole[..whole.len() / 2]).unwrap();
    refused(&["parts"], "`parts/2.memlint` cannot be concluded: it is damaged");
    fs::write(part("2.memlint"), whole).unwrap();
    assert_eq!(memlint_in(&folder, &["conclude", "parts"]).status.code(), Some(1));
    refused(&["parts/[134].memlint", "--exit-zero"], "rank 1 has no snapshot in `run/rank*.pickle`");
    // What is not seen may be the leak: no format says that the job passed.
    let output = memlint_in(
        &folder,
        &["conclude", "parts/[134].memlint", "--fail-on", "never", "--output-format", "json"],
    );
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["verdict"]["outcome"], "no-verdict", "{report}");
}

#[test]
fn names_tell_the_ranks_where_every_host_has_the_same_path() {
    let folder = job("parts_names");
    for rank in ["0", "1"] {
        let (name, part) = (format!("run/rank{rank}.pickle"), format!("{rank}.memlint"));
        let arguments = ["examine", "run/rank0.pickle", "-o", &part, "--name", &name];
        assert_eq!(memlint_in(&folder, &arguments).status.code(), Some(0));
    }
    let output = memlint_in(&folder, &["conclude", "0.memlint", "1.memlint"]);
    assert!(stdout(&output).contains("  ranks       2 of 2 alike"), "{}", stdout(&output));
    let over = memlint_in(&folder, &["examine", "run/rank0.pickle", "-o", "run/rank0.pickle"]);
    assert_eq!(over.status.code(), Some(2));
    let none = memlint_in(&folder, &["examine", "run/rank7.pickle", "-o", "7.memlint"]);
    assert!(none.status.code() == Some(2) && !folder.join("7.memlint").exists());
}
