//! JSON, JSON lines and SARIF against their schemas.

use std::fs;
use std::path::Path;

use jsonschema::Validator;
use memlint::comparison::{Comparison, Measured, Side};
use memlint::engine::{Input, Plan, Report, conclude, examine};
use memlint::finding::Severity;
use memlint::input::{Limits, Source};
use memlint::pickle;
use memlint::replay::changes;
use memlint::report::{Detail, Format, Look, json};
use memlint::rules;
use memlint::snapshot::Snapshot;
use memlint::source::{Checkout, SourceMap};
use memlint::whatif::{Question, ask};
use serde_json::{Value, json};

use crate::fixture::{HOSTILE, PLAIN, blind, findings, hostile, none, nowhere, sources, suppressed};
use crate::matrix::{written, written_failure};

/// Set to anything, it makes the test below write the schema instead of comparing it.
const UPDATE: &str = "UPDATE_SCHEMAS";

fn in_repository(path: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

#[test]
fn the_committed_schema_is_the_one_of_the_types() {
    let schema = serde_json::to_string_pretty(&json::schema()).unwrap() + "\n";
    let path = in_repository("schemas/output.json");
    if std::env::var_os(UPDATE).is_some() {
        fs::write(&path, &schema).unwrap();
    }
    let committed = fs::read_to_string(&path).unwrap_or_default();
    assert!(
        committed == schema,
        "schemas/output.json is not what `memlint schema output` prints; {UPDATE}=1 updates it"
    );
}

/// The part of our schema that describes one kind of document.
fn part(name: &str) -> Validator {
    let mut schema = serde_json::to_value(json::schema()).unwrap();
    let whole = schema.as_object_mut().unwrap();
    whole.remove("anyOf").unwrap();
    whole.insert("$ref".to_owned(), json!(format!("#/$defs/{name}")));
    jsonschema::validator_for(&schema).unwrap()
}

fn sarif() -> Validator {
    let text = fs::read_to_string(in_repository("tests/data/sarif-schema-2.1.0.json")).unwrap();
    let mut schema: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(schema["definitions"].as_object().unwrap().len(), 52, "the schema is whole");
    // The standard's pattern for languages has a bracket too many to be a regular expression of JSON Schema; no report of ours
    // names a language.
    for definition in ["run", "toolComponent"] {
        let language = schema.pointer_mut(&format!("/definitions/{definition}/properties/language")).unwrap();
        assert!(language.as_object_mut().unwrap().remove("pattern").is_some());
    }
    jsonschema::validator_for(&schema).unwrap()
}

#[track_caller]
fn assert_valid(validator: &Validator, document: &Value) {
    let errors: Vec<String> =
        validator.iter_errors(document).map(|error| format!("{}: {error}", error.instance_path())).collect();
    assert!(errors.is_empty(), "{}\nin {document:#}", errors.join("\n"));
}

fn reports() -> [Report; 4] {
    [findings(), none(), suppressed(), hostile()]
}

fn parsed(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

#[test]
fn json_is_as_its_schema_says() {
    let schema = part("Report");
    for report in reports() {
        for sources in [sources(), nowhere()] {
            let document = parsed(&written(Format::Json, &report, &sources, &PLAIN));
            assert_valid(&schema, &document);
            let mut wrong = document;
            wrong["verdict"]["fails"] = "no".into();
            assert!(!schema.is_valid(&wrong), "the schema says something");
        }
    }
    let mut rules = Vec::new();
    json::rules(&mut rules).unwrap();
    assert_valid(&part("RuleList"), &serde_json::from_slice(&rules).unwrap());
    assert_valid(&part("NoVerdict"), &parsed(&written_failure(Format::Json)));
    assert!(!schema.is_valid(&parsed(&written_failure(Format::Json))), "no verdict is no report");
}

#[test]
fn json_lines_are_findings_and_last_a_summary() {
    let schema = part("Line");
    for report in reports() {
        let lines = written(Format::Jsonl, &report, &sources(), &PLAIN);
        let lines: Vec<Value> = lines.lines().map(parsed).collect();
        for line in &lines {
            assert_valid(&schema, line);
        }
        let kinds: Vec<&str> = lines.iter().map(|line| line["type"].as_str().unwrap()).collect();
        let expected =
            [vec!["finding"; report.findings.len()], vec!["notice"; report.notices.len()], vec!["summary"]];
        assert_eq!(kinds, expected.concat());
        let whole = parsed(&written(Format::Json, &report, &sources(), &PLAIN));
        assert_eq!(lines.last().unwrap()["summary"], whole["summary"]);
        for (line, finding) in lines.iter().zip(whole["findings"].as_array().unwrap()) {
            assert_eq!(line["fingerprint"], finding["fingerprint"]);
        }
    }
    assert_valid(&schema, &parsed(&written_failure(Format::Jsonl)));
}

#[test]
fn json_counts_what_is_open_apart_from_what_is_not() {
    let document = parsed(&written(Format::Json, &findings(), &sources(), &PLAIN));
    let counts = ["errors", "warnings", "infos", "ignored", "baselined", "skipped"];
    assert_eq!(counts.map(|key| document["summary"][key].as_u64().unwrap()), [1, 2, 1, 1, 1, 1]);
    let verdict = &document["verdict"];
    assert_eq!((&verdict["fails"], &verdict["outcome"]), (&json!(true), &json!("closed")));
    assert_eq!(
        (&verdict["fail_on"], &verdict["failing"], &verdict["blind"]),
        (&json!("error"), &json!(1), &json!(0))
    );
    let standing = |name: &str| {
        let of = |one: &&Value| one["name"] == name;
        document["findings"].as_array().unwrap().iter().find(of).unwrap()["standing"].clone()
    };
    assert_eq!(standing("missing-zero-grad"), "open");
    assert_eq!(standing("growing-residency"), "ignored");
    assert_eq!(standing("transient-spike"), "baselined");
    let found = document["findings"].as_array().unwrap();
    let also = &found.iter().find(|one| one["name"] == "missing-zero-grad").unwrap()["also"];
    assert_eq!((also[0]["rank"].as_u64(), also[0]["input"].as_str()), (Some(1), Some("rank1.pickle")));
}

#[test]
fn sarif_is_valid_whatever_is_in_it() {
    let schema = sarif();
    for report in reports() {
        for sources in [sources(), nowhere()] {
            assert_valid(&schema, &parsed(&written(Format::Sarif, &report, &sources, &PLAIN)));
        }
    }
    assert_valid(&schema, &parsed(&written_failure(Format::Sarif)));
    assert!(
        !schema.is_valid(&json!({"version": "2.1.0", "runs": [{"results": []}]})),
        "the schema says something"
    );
}

/// The one run of a log.
fn run(report: &Report, sources: &SourceMap) -> Value {
    parsed(&written(Format::Sarif, report, sources, &PLAIN))["runs"][0].clone()
}

fn result<'a>(run: &'a Value, rule: &str) -> &'a Value {
    run["results"].as_array().unwrap().iter().find(|one| one["ruleId"] == rule).unwrap()
}

#[test]
fn sarif_says_where_and_what_counts() {
    let run = run(&findings(), &sources());
    let found = result(&run, "missing-zero-grad");
    let place = &found["locations"][0]["physicalLocation"];
    assert_eq!(
        place["artifactLocation"],
        json!({"uri": "examples/seed-resnet50-bug/train.py", "uriBaseId": "%SRCROOT%"})
    );
    assert!(run["originalUriBaseIds"].get("%SRCROOT%").is_some());
    assert_eq!(place["region"], json!({"startLine": 17, "startColumn": 9, "endLine": 17, "endColumn": 41}));
    let rules = run["tool"]["driver"]["rules"].as_array().unwrap();
    let position = rules.iter().position(|rule| rule["id"] == "missing-zero-grad");
    assert_eq!(found["ruleIndex"], json!(position));
    let fingerprint = found["partialFingerprints"]["memlint/v1"].as_str().unwrap();
    assert!(fingerprint.starts_with("v1:"));

    let flow = found["codeFlows"][0]["threadFlows"][0]["locations"].as_array().unwrap();
    let lines: Vec<u64> = flow
        .iter()
        .map(|one| one["location"]["physicalLocation"]["region"]["startLine"].as_u64().unwrap())
        .collect();
    assert_eq!(lines, [23, 17, 626, 824], "from the outermost frame to the allocation");
    assert_eq!(flow[0]["importance"], "essential");
    assert_eq!(flow[3]["importance"], "unimportant");

    assert_eq!(found["suppressions"], json!([]));
    assert_eq!(found["baselineState"], "new");
    let ignored = result(&run, "growing-residency");
    assert_eq!(ignored["suppressions"][0]["kind"], "inSource");
    assert!(ignored["suppressions"][0]["justification"].as_str().unwrap().contains("one epoch"));
    assert_eq!(result(&run, "transient-spike")["baselineState"], "unchanged");
    let elsewhere = &result(&run, "transient-spike")["locations"][0]["physicalLocation"]["artifactLocation"];
    assert_eq!(elsewhere, &json!({"uri": "file:///opt/job/lib/loop.py"}));
}

#[test]
fn sarif_holds_what_code_scanning_asks_for() {
    let of = |report: &Report, look: &Look| {
        parsed(&written(Format::Sarif, report, &sources(), look))["runs"][0].clone()
    };
    let mut report = findings();
    report.findings.push(report.findings[0].clone());
    let run = of(&report, &PLAIN);
    let driver = &run["tool"]["driver"];
    assert_eq!(driver["version"], env!("CARGO_PKG_VERSION"));
    assert!(driver["informationUri"].as_str().unwrap().starts_with("https://"));
    let rules = driver["rules"].as_array().unwrap();
    let known = rules.iter().find(|rule| rule["id"] == "missing-zero-grad").unwrap();
    let help = known["help"]["markdown"].as_str().unwrap();
    assert!(help.contains("## How to fix it") && !help.contains("```trace"), "the tests are no help: {help}");
    assert_eq!(
        (&known["name"], &known["properties"]["precision"]),
        (&json!("MissingZeroGrad"), &json!("high"))
    );
    let described = known["fullDescription"]["text"].as_str().unwrap();
    assert!(described.len() > 20 && !described.contains(['#', '\n']), "{described}");
    let results = run["results"].as_array().unwrap();
    assert!(results.iter().all(|one| one["level"] != "note"), "notes are left out");
    let hashes: Vec<&str> = results
        .iter()
        .map(|one| {
            let [own, hash] = ["memlint/v1", "primaryLocationLineHash"]
                .map(|key| one["partialFingerprints"][key].as_str().unwrap());
            assert!(hash.strip_prefix(own).is_some_and(|number| number.starts_with(':')));
            hash
        })
        .collect();
    let distinct: std::collections::BTreeSet<&&str> = hashes.iter().collect();
    assert_eq!(distinct.len(), hashes.len(), "findings that are alike are told apart");
    let verbose = of(&report, &Look { detail: Detail::Verbose, ..PLAIN });
    assert!(verbose["results"].as_array().unwrap().iter().any(|one| one["level"] == "note"));
    report.verdict.fail_on = Some(Severity::Info);
    let closing = of(&report, &PLAIN);
    assert!(closing["results"].as_array().unwrap().iter().any(|one| one["level"] == "note"));
}

#[test]
fn sarif_has_a_word_for_everything_that_is_no_result() {
    let run = run(&findings(), &sources());
    assert_eq!(run["invocations"][0]["executionSuccessful"], true);
    let told = run["invocations"][0]["toolExecutionNotifications"].as_array().unwrap();
    let of = |kind: &str| told.iter().find(|one| one["descriptor"]["id"] == kind).unwrap();
    assert_eq!(of("rule-skipped")["associatedRule"]["id"], "oom");
    assert_eq!(of("rule-skipped")["level"], "note", "a rule that is not applicable");
    let place = &of("unused-ignore")["locations"][0]["physicalLocation"];
    let artifact = json!({"uri": "memlint.toml", "uriBaseId": "%SRCROOT%"});
    assert_eq!((&place["artifactLocation"], &place["region"]["startLine"]), (&artifact, &json!(9)));
    assert!(of("no-times")["message"]["text"].as_str().unwrap().contains("rank1.pickle"));

    let mut blind = blind();
    let told = &self::run(&blind, &sources())["invocations"][0]["toolExecutionNotifications"];
    assert_eq!(told[0]["descriptor"]["id"], "not-judged");
    assert_eq!(
        (&told[1]["descriptor"]["id"], &told[1]["level"]),
        (&json!("rule-skipped"), &json!("warning"))
    );
    blind.verdict.blind = 1;
    assert_eq!(self::run(&blind, &sources())["invocations"][0]["executionSuccessful"], false, "--strict");

    let failed = parsed(&written_failure(Format::Sarif))["runs"][0].clone();
    assert_eq!(failed["invocations"][0]["executionSuccessful"], false);
    let message = &failed["invocations"][0]["toolExecutionNotifications"][0]["message"]["text"];
    assert!(message.as_str().unwrap().contains("rank1.pickle"));
}

#[test]
fn a_finding_without_a_line_stands_at_the_loop_or_becomes_a_notification() {
    let mut report = findings();
    let at_loop = run(&report, &sources());
    let region = &result(&at_loop, "fragmentation")["locations"][0]["physicalLocation"]["region"];
    assert_eq!(region["startLine"], 16);
    for recording in &mut report.recordings {
        recording.devices[0].main_loop = None;
    }
    let nowhere = run(&report, &sources());
    assert!(nowhere["results"].as_array().unwrap().iter().all(|one| one["ruleId"] != "fragmentation"));
    let told = nowhere["invocations"][0]["toolExecutionNotifications"].as_array().unwrap();
    let lost = told.iter().find(|one| one["associatedRule"]["id"] == "fragmentation").unwrap();
    assert_eq!(lost["level"], "warning");
    assert!(lost["message"]["text"].as_str().unwrap().contains("51.2 MiB of 472 MiB"));
}

#[test]
fn files_are_named_from_the_root_of_the_working_copy() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("formats-checkout");
    let _ = fs::remove_dir_all(&folder);
    let code = folder.join("jobs/resnet");
    fs::create_dir_all(folder.join(".git")).unwrap();
    fs::create_dir_all(&code).unwrap();
    fs::copy(in_repository("examples/seed-resnet50-bug/train.py"), code.join("train.py")).unwrap();
    let inside = |current: &Path| {
        let sources = SourceMap::new([code.clone()], Vec::new()).within(Checkout::around(current));
        let run = run(&findings(), &sources);
        result(&run, "missing-zero-grad")["locations"][0]["physicalLocation"]["artifactLocation"].clone()
    };
    let expected = json!({"uri": "jobs/resnet/train.py", "uriBaseId": "%SRCROOT%"});
    assert_eq!(inside(&folder), expected);
    assert_eq!(inside(&folder.join("jobs")), expected, "wherever in it memlint was started");
}

#[test]
fn sarif_makes_no_links_out_of_names() {
    let run = run(&hostile(), &sources());
    for found in run["results"].as_array().unwrap() {
        let text = found["message"]["text"].as_str().unwrap();
        assert!(text.contains("\\[d\\](e)") && !text.contains("[d](e)"), "{text}");
    }
    assert!(HOSTILE.contains("[d](e)"));
}

#[test]
fn answers_are_as_their_schema_says() {
    let path = in_repository("snapshots/seed-oom/snapshot.pickle.zst");
    let stream = Source::File(path).open(&Limits::default()).unwrap();
    let snapshot = Snapshot::read(stream, &pickle::PickleLimits::default()).unwrap();
    let input = Input::of("seed-oom".to_owned(), snapshot);
    let scale = Some("0.5".parse().unwrap());
    let question =
        Question { set: changes("max_split_size_mb:64").unwrap(), batch_scale: scale, ..Question::default() };
    let mut out = Vec::new();
    json::whatif("seed-oom", &question, &ask(&input, &question).unwrap(), &mut out).unwrap();
    let document = serde_json::from_slice::<Value>(&out).unwrap();
    assert_valid(&part("WhatIf"), &document);
    assert_eq!(document["devices"][0]["scenarios"][0]["set"], json!({"max_split_size_mb": "64"}));
    assert!(document["devices"][0]["recorded"]["out_of_memory"]["wanted_bytes"].is_u64());
}

#[test]
fn a_comparison_is_as_its_schema_says() {
    let side = |name: &str| {
        let path = in_repository("snapshots").join(name).join("snapshot.pickle.zst");
        let stream = Source::File(path).open(&Limits::default()).unwrap();
        let input =
            Input::of(name.to_owned(), Snapshot::read(stream, &pickle::PickleLimits::default()).unwrap());
        let plan = Plan::of_rules(&rules::by_default());
        (Measured::of(&input), conclude(vec![examine(&input, &plan)], Vec::new(), &plan))
    };
    let (base, head) = (side("seed-resnet50-fixed"), side("seed-resnet50-bug"));
    let compared = Comparison::of(
        Side { measured: &base.0, report: &base.1 },
        Side { measured: &head.0, report: &head.1 },
    );
    let mut bytes = Vec::new();
    json::diff(&compared, &mut bytes).unwrap();
    let document: Value = serde_json::from_slice(&bytes).unwrap();
    assert_valid(&part("Diff"), &document);
    assert_eq!(document["findings"][0]["turn"], "new");
    assert!(document["devices"][0]["call_sites"][0]["peak_bytes"]["noise"].is_u64());
}
