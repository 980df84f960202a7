//! Configuration, flags and environment, as the binary takes them.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::{folder, golden, memlint_in, recording, root, stderr, stdout};

/// A folder that is a repository of its own, with a configuration.
fn repository(name: &str, configuration: &str) -> std::path::PathBuf {
    let folder = folder(name);
    fs::create_dir(folder.join(".git")).unwrap();
    fs::write(folder.join("memlint.toml"), configuration).unwrap();
    folder
}

fn path(case: &str) -> String {
    root().join(recording(case)).display().to_string()
}

fn exit(folder: &Path, arguments: &[&str]) -> i32 {
    memlint_in(folder, arguments).status.code().unwrap()
}

#[test]
fn the_configuration_decides_and_flags_go_before_it() {
    let folder = repository("settings-precedence", "[lint]\nignore = [\"missing-zero-grad\"]\n");
    let buggy = path("seed-resnet50-bug");
    assert_eq!(exit(&folder, &["check", &buggy]), 0);
    assert_eq!(exit(&folder, &["check", &buggy, "--isolated"]), 1);
    assert_eq!(exit(&folder, &["check", &buggy, "--select", "leak"]), 1);
    assert_eq!(exit(&folder, &["check", &buggy, "--isolated", "--warn", "leak"]), 0);
    assert_eq!(exit(&folder, &["check", &buggy, "--isolated", "--warn", "leak", "--fail-on", "warning"]), 1);
    assert_eq!(
        exit(&folder, &["check", &buggy, "--isolated", "--warn", "leak", "--deny", "missing-zero-grad"]),
        1
    );
    fs::write(folder.join("other.toml"), "[rules.missing-zero-grad]\nlevel = \"warning\"\n").unwrap();
    assert_eq!(exit(&folder, &["check", &buggy, "--config", "other.toml"]), 0);
    assert_eq!(exit(&folder, &["check", &buggy, "--config", "other.toml", "--isolated"]), 2);
}

#[test]
fn a_group_raises_no_notes() {
    let folder = repository("settings-notes", "[lint]\ndeny = [\"all\"]\n");
    let clean = path("seed-resnet50-fixed");
    assert_eq!(exit(&folder, &["check", &clean]), 0, "what explains is no fault");
    assert_eq!(exit(&folder, &["check", &clean, "--deny", "lazy-optimizer-init"]), 1);
}

#[test]
fn the_environment_goes_before_the_file_and_after_flags() {
    let folder = repository("settings-environment", "[lint]\nfail-on = \"never\"\n");
    let buggy = path("seed-resnet50-bug");
    let with = |variables: &[(&str, &str)], arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_memlint"));
        command.current_dir(&folder).args(arguments).envs(variables.iter().copied()).output().unwrap()
    };
    let code = |variables: &[(&str, &str)], more: &[&str]| {
        with(variables, &[&["check", &buggy], more].concat()).status.code()
    };
    assert_eq!(code(&[], &[]), Some(0));
    assert_eq!(code(&[("MEMLINT_FAIL_ON", "error")], &[]), Some(1));
    assert_eq!(code(&[("MEMLINT_FAIL_ON", "error")], &["--fail-on", "never"]), Some(0));
    assert_eq!(code(&[("MEMLINT_FAIL_ON", "sometimes")], &[]), Some(2));
    assert_eq!(code(&[("MEMLINT_CONFIG", "missing.toml")], &[]), Some(2));
    assert_eq!(code(&[("MEMLINT_CONFIG", "missing.toml")], &["--isolated"]), Some(1));
    for name in [
        "MEMLINT_STRICT",
        "MEMLINT_FAIL_ON",
        "MEMLINT_BASELINE",
        "MEMLINT_CONFIG",
        "MEMLINT_COLOR",
        "MEMLINT_NOBODYS",
    ] {
        assert_eq!(code(&[(name, "")], &[]), Some(0), "{name}: set to nothing is not set");
    }
    let json = with(&[("MEMLINT_OUTPUT_FORMAT", "json")], &["check", &buggy]);
    assert!(stdout(&json).starts_with('{'));
    let shown = with(&[("MEMLINT_MIN_CONFIDENCE", "high"), ("MEMLINT_STRICT", "1")], &["config"]);
    assert!(stdout(&shown).contains("min-confidence  high   MEMLINT_MIN_CONFIDENCE"), "{}", stdout(&shown));
    assert!(stdout(&shown).contains("strict          true   MEMLINT_STRICT"), "{}", stdout(&shown));
}

#[test]
fn a_configuration_that_is_not_understood_closes_the_gate() {
    let folder = repository("settings-wrong", "[lint]\nselect = [\"leak\"]\ndney = [\"peak\"]\n");
    for command in ["check", "stats"] {
        let output = memlint_in(&folder, &[command, &path("seed-linear")]);
        assert_eq!((output.status.code(), stdout(&output)), (Some(2), ""), "{command}");
        golden("configuration-wrong", stderr(&output));
    }
    assert_eq!(exit(&folder, &["check", &path("seed-linear"), "--isolated"]), 0);
    assert_eq!(exit(&folder, &["explain", "oom"]), 2, "when a rule counts depends on it");
    assert_eq!(exit(&folder, &["explain", "oom", "--isolated"]), 0);
}

#[test]
fn strict_takes_no_silence_for_a_verdict() {
    let folder = repository("settings-strict", "");
    let blind = path("nostacks-bug");
    assert_eq!(exit(&folder, &["check", &blind]), 0);
    let strict = memlint_in(&folder, &["check", &blind, "--strict"]);
    assert_eq!(strict.status.code(), Some(2));
    assert!(stdout(&strict).contains("[no-stacks]"), "the report is there all the same");
    assert!(stderr(&strict).contains("12 of 25 rules ("), "{}", stderr(&strict));
    assert_eq!(exit(&folder, &["check", &blind, "--strict", "--exit-zero"]), 0);
    assert_eq!(
        exit(&folder, &["check", &blind, "--strict", "--fail-on", "warning"]),
        1,
        "what was found is certain"
    );
    assert_eq!(exit(&folder, &["check", &path("seed-resnet50-fixed"), "--strict"]), 0);
    fs::write(folder.join("memlint.toml"), "[lint]\nstrict = true\n").unwrap();
    assert_eq!(exit(&folder, &["check", &blind]), 2);
}

#[test]
fn selecting_nothing_is_an_error() {
    let folder = repository("settings-nothing", "");
    let clean = path("seed-linear");
    for arguments in
        [&["--ignore", "all"][..], &["--select", "budget"], &["--select", "oom", "--ignore", "oom"]]
    {
        let output = memlint_in(&folder, &[&["check", &clean], arguments].concat());
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(stderr(&output).contains("no rule is selected"), "{}", stderr(&output));
    }
    let misspelt = memlint_in(&folder, &["check", &clean, "--ignore", "leek,oom"]);
    assert!(stderr(&misspelt).contains("did you mean `leak`?"), "{}", stderr(&misspelt));
}

#[test]
fn a_comment_with_a_reason_opens_the_gate() {
    let folder = repository("settings-comment", "");
    let source = fs::read_to_string(root().join("examples/seed-resnet50-bug/train.py")).unwrap();
    let buggy = path("seed-resnet50-bug");
    let with = |comment: &str| {
        let line = "loss_fn(pred, labels).backward()";
        assert!(source.contains(line));
        fs::write(folder.join("train.py"), source.replace(line, &format!("{line}{comment}"))).unwrap();
        exit(&folder, &["check", &buggy])
    };
    assert_eq!(with(""), 1);
    assert_eq!(with("  # memlint: ignore[missing-zero-grad] the loop is five steps long"), 0);
    let shown = memlint_in(&folder, &["check", &buggy]);
    assert!(
        stdout(&shown).contains("no open findings, ") && stdout(&shown).contains("1 ignored"),
        "{}",
        stdout(&shown)
    );
    let unsure = memlint_in(&folder, &["check", &path("seed-linear"), "--min-confidence", "high"]);
    assert!(
        stdout(&unsure).contains("1 not sure enough"),
        "what is left out is counted: {}",
        stdout(&unsure)
    );
    assert_eq!(with("  # memlint: ignore[missing-zero-grad]"), 1);
    assert_eq!(with("  # memlint: ignore"), 1);
    assert_eq!(with("  # memlint: ignore[late-zero-grad] another rule"), 1);
}

#[test]
fn advice_is_given_where_it_is_asked_for() {
    let folder = repository("settings-advice", "");
    let level = |arguments: &[&str]| {
        let shown = memlint_in(&folder, &[&["config"], arguments].concat());
        let line = stdout(&shown).lines().find(|line| line.contains("unchunked-loss")).unwrap_or_default();
        line.split_whitespace().nth(1).unwrap_or_default().to_owned()
    };
    assert_eq!((level(&[]).as_str(), level(&["--advice"]).as_str()), ("off", "info"));
    assert_eq!(level(&["--select", "advice"]), "info");
}

#[test]
fn the_settings_in_effect_are_shown_with_who_set_them() {
    let folder = repository(
        "settings-shown",
        "[lint]\nfail-on = \"warning\"\ndeny = [\"peak\"]\n\n[rules.oom]\nlevel = \"off\"\n\n\
         [[rules.late-zero-grad.ignore]]\npath = \"src/*.py\"\nreason = \"measured\"\nuntil = 2027-01-31\n\n\
         [materiality.fragmentation]\nwarning = { reserved = \"30%\", bytes = \"2GiB\" }\n\n\
         [budget.gpu]\nmetric = \"peak-reserved\"\nlimit = \"90%\"\n\n[source]\npath-map = { \"/opt/job\" = \".\" }\n\n\
         [device]\nmemory = \"80GiB\"\n",
    );
    fs::write(folder.join(".memlint.toml"), "").unwrap();
    let shown = memlint_in(&folder, &["config", "--min-confidence", "medium"]);
    // New rules do not change what this is about.
    let set = |line: &&str| !(line.starts_with("  ") && line.ends_with("  default"));
    golden("settings", &stdout(&shown).lines().filter(set).collect::<Vec<_>>().join("\n"));
    let json = memlint_in(&folder, &["config", "--output-format", "json"]);
    let json: serde_json::Value = serde_json::from_slice(&json.stdout).unwrap();
    assert_eq!(json["schema"], "memlint-config/1");
    assert_eq!(json["settings"][0]["origin"], "memlint.toml:2");
    let explained = memlint_in(&folder, &["explain", "budget.gpu"]);
    golden("explain-budget", stdout(&explained));
    let unknown = memlint_in(&folder, &["explain", "budget.gqu"]);
    assert_eq!(unknown.status.code(), Some(2));
    assert!(stderr(&unknown).contains("did you mean `budget.gpu`?"), "{}", stderr(&unknown));
}

#[test]
fn a_rules_page_ends_with_when_it_counts() {
    let configuration = "[materiality.retained-graph]\nerror = \"never\"\nwarning = { saved = \"2.5%\" }\n";
    let folder = repository("settings-explained", configuration);
    let section = |arguments: &[&str]| {
        let output = memlint_in(&folder, &[&["explain"], arguments].concat());
        stdout(&output).split_once("\n## When it counts\n").map(|(_, section)| section.to_owned())
    };
    golden("explain-counts", &section(&["retained-graph"]).unwrap());
    golden("explain-counts-default", &section(&["retained-graph", "--isolated"]).unwrap());
    assert_eq!(section(&["rank-imbalance"]), None, "it has a measure of its own");
    let all = memlint_in(&folder, &["explain", "--all"]);
    let table = memlint::verdict::Materiality::default();
    assert_eq!(stdout(&all).matches("\n## When it counts\n").count(), table.rows().count());
    let on_one_line = stdout(&all).split_whitespace().collect::<Vec<_>>().join(" ");
    for why in table.rows().map(|row| row.why) {
        assert!(on_one_line.contains(why), "{why}");
    }
}

#[test]
fn the_table_of_materiality_is_shown_where_it_is_set_and_else_when_asked_for() {
    let folder = repository("settings-materiality-shown", "[materiality.oom]\nwarning = \"always\"\n");
    let shown = |arguments: &[&str]| {
        let output = memlint_in(&folder, &[&["config"], arguments].concat());
        let page = stdout(&output).split_once("\nmateriality:\n").map_or("", |(_, rows)| rows).to_owned();
        page.lines().map_while(|line| line.strip_prefix("  ").map(str::to_owned)).collect::<Vec<_>>()
    };
    assert_eq!(shown(&[]), ["oom.warning  \"always\"  memlint.toml:2"]);
    assert!(shown(&["--isolated"]).is_empty());
    let table = memlint::verdict::Materiality::default();
    assert_eq!(shown(&["-v"]).len(), 3 * table.rows().count());
    let json = memlint_in(&folder, &["config", "--output-format", "json"]);
    let json: serde_json::Value = serde_json::from_slice(&json.stdout).unwrap();
    assert_eq!(json["materiality"].as_array().unwrap().len(), 3 * table.rows().count());
    assert_eq!(json["materiality"][1]["origin"], "memlint.toml:2");
}

#[test]
fn a_bound_that_is_set_changes_a_findings_level() {
    let folder = repository("settings-materiality", "");
    let case = path("latezero-mlp-bug");
    let level = |configuration: &str| {
        fs::write(folder.join("memlint.toml"), configuration).unwrap();
        let output = memlint_in(&folder, &["check", &case, "--output-format", "json"]);
        let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        let findings = report["findings"].as_array().unwrap();
        let found = findings.iter().find(|one| one["name"] == "late-zero-grad");
        found.map(|one| one["severity"].as_str().unwrap().to_owned())
    };
    let with = |bounds: &str| level(&format!("[materiality.late-zero-grad]\n{bounds}\n"));
    assert_eq!(level("").as_deref(), Some("warning"));
    assert_eq!(with("warning = { saved = \"60%\" }"), None, "not worth as much");
    assert_eq!(with("warning = { saved = \"1GiB\" }"), None, "nor so many bytes");
    assert_eq!(with("warning = \"never\"\nnote = \"always\"").as_deref(), Some("info"));
    assert_eq!(with("error = { saved = \"5%\", bytes = \"200MiB\" }").as_deref(), Some("error"));
    assert_eq!(with("error = { saved = \"5%\", bytes = \"210MiB\" }").as_deref(), Some("warning"));
    assert_eq!(with("error = [{ full-within = 5 }, \"always\"]").as_deref(), Some("error"));
    assert_eq!(exit(&folder, &["check", &case]), 1);
}

#[test]
fn rules_that_are_switched_off_are_a_note_that_says_by_whom() {
    let folder = repository("settings-off", "[lint]\nselect = [\"retained-graph\"]\n");
    let leaks = path("grow-replay-bug");
    let said = |arguments: &[&str]| {
        let output = memlint_in(&folder, &[&["check", &leaks][..], arguments].concat());
        (output.status.code(), stdout(&output).split_whitespace().collect::<Vec<_>>().join(" "))
    };
    let (code, text) = said(&["--strict"]);
    assert_eq!(code, Some(0));
    assert!(text.ends_with("no findings, 1 note (rules-off; -v shows it)"), "{text}");
    let (_, text) = said(&["-v"]);
    assert!(text.contains(" rules are switched off by the configuration: growing-residency"), "{text}");
    let (_, text) = said(&["--isolated", "--ignore", "growing-residency", "-v"]);
    assert!(text.contains("1 rule is switched off by --ignore: growing-residency [rules-off]"), "{text}");
    assert!(!said(&["--isolated"]).1.contains("rules-off"), "where all run there is nothing to say");
}
