//! What holds the tensors of a finding: one name for it in every format, and a remedy for its kind.

use serde_json::Value;

use crate::{memlint, recording, stdout};

/// The report with single blanks, however it was wrapped.
fn told(case: &str) -> String {
    let output = memlint(&["check", &recording(case), "--isolated", "--source-root", "examples"]);
    stdout(&output).split_whitespace().collect::<Vec<_>>().join(" ")
}

fn finding(case: &str, name: &str) -> Value {
    let json = ["--isolated", "--source-root", "examples", "--output-format", "json"];
    let output = memlint(&[&["check", &recording(case)], &json[..]].concat());
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    let mut findings = document["findings"].as_array().unwrap().iter();
    findings.find(|one| one["name"] == name).unwrap().clone()
}

#[test]
fn what_holds_the_tensors_has_one_name_in_text_and_json() {
    let text = told("grow-replay-bug");
    assert!(text.contains("held by `self.storage` (line 72)"), "{text}");
    assert!(text.contains("`-- held by `self.storage`"), "{text}");
    assert!(!text.contains("does not name it"), "the source does: {text}");
    assert!(!text.contains("also examples"), "once is enough: {text}");
    let finding = finding("grow-replay-bug", "growing-residency");
    assert_eq!(finding["evidence"]["held-by"], "held by `self.storage` (line 72)");
    let related = finding["related"].as_array().unwrap();
    let holders: Vec<&Value> =
        related.iter().filter(|one| one["message"] == "held by `self.storage`").collect();
    let [holder] = holders.as_slice() else { panic!("{related:?}") };
    assert_eq!(holder["location"]["line"], 72);
}

#[test]
fn of_callbacks_of_one_name_it_is_the_one_that_keeps() {
    let folder = tempfile::tempdir().unwrap();
    let source = std::fs::read_to_string("examples/grow-replay-bug/train.py").unwrap();
    let held_by = |more: &str| {
        let file = folder.path().join("grow-replay-bug/train.py");
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, format!("{source}\n\n{more}")).unwrap();
        let root = folder.path().to_str().unwrap();
        let args = ["--isolated", "--source-root", root, "--output-format", "json"];
        let output = memlint(&[&["check", &recording("grow-replay-bug")], &args[..]].concat());
        let document: Value = serde_json::from_slice(&output.stdout).unwrap();
        let findings = document["findings"].as_array().unwrap();
        let growing = findings.iter().find(|one| one["name"] == "growing-residency").unwrap();
        growing["evidence"]["held-by"].as_str().unwrap().to_owned()
    };
    let another = |body: &str| {
        format!("class Log:\n    def push(self, obs, action, reward, next_obs):\n        {body}\n")
    };
    assert_eq!(
        held_by(&another("print(obs.shape)")),
        "held by `self.storage` (line 18)",
        "the call names neither"
    );
    let either = held_by(&another("self.seen.append((obs, next_obs))"));
    assert!(either.contains("does not name it"), "{either}");
}

#[test]
fn a_holder_at_the_findings_own_line_is_named_and_so_is_what_holds_a_graph() {
    let finding = finding("seed-leak-list", "retained-graph");
    assert_eq!(
        finding["evidence"]["held-by"],
        "held by the autograd graph, through `total` (line 17): no backward pass lets go of them"
    );
}

#[test]
fn what_holds_values_under_keys_gets_no_remedy_for_lists() {
    let help = |case| finding(case, "growing-residency")["help"].as_str().unwrap().to_owned();
    let dict = help("ho-serving-noevict");
    assert!(dict.starts_with("bound `self.items`: let go of old entries as new ones come"), "{dict}");
    assert!(!dict.contains("deque"), "{dict}");
    assert!(help("seed-leak-list").starts_with("give `history` a limit: deque(maxlen=n)"));
}

/// What is said first of a recording whose graphs hold the tensors; its source lies in a folder.
fn held_by_graph(case: &str, sources: &str) -> Value {
    let snapshot = format!("tests/data/held-by-graph/{case}/snapshot.pickle.zst");
    let output =
        memlint(&["check", &snapshot, "--isolated", "--source-root", sources, "--output-format", "json"]);
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    document["findings"][0].clone()
}

#[test]
fn where_a_number_or_a_copy_on_the_host_is_kept_its_graph_holds_the_tensors() {
    let poster = held_by_graph("poster", "examples/wild-siren-poster-bug");
    assert_eq!(poster["name"], "growing-residency");
    let held_by = poster["evidence"]["held-by"].as_str().unwrap();
    assert!(
        held_by.starts_with("perhaps held by the autograd graph, through `poster` (line 49)"),
        "{held_by}"
    );
    let help = poster["help"].as_str().unwrap();
    assert!(help.contains("x.detach()") && !help.contains("deque"), "{help}");
    // The line makes more than it hands on, so that nothing but its graph can hold the rest.
    let mean = held_by_graph("running-mean", "tests/data/held-by-graph/running-mean");
    assert_eq!(mean["name"], "retained-graph");
    let held_by = mean["evidence"]["held-by"].as_str().unwrap();
    assert!(held_by.starts_with("held by the autograd graph, through `self.avg_kl` (line 54)"), "{held_by}");
}
