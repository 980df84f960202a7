//! Every format over the same five outcomes: findings, none, all of them suppressed, none where not all was judged, no
//! verdict.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::read::GzDecoder;
use memlint::engine::Report;
use memlint::report::{Detail, Format, Look};
use memlint::source::SourceMap;
use serde_json::Value;

use crate::fixture::{PLAIN, blind, failure, findings, golden, hostile, none, sources, suppressed};

/// What a format writes of a report.
pub(crate) fn written(format: Format, report: &Report, sources: &SourceMap, look: &Look) -> String {
    let mut out = Vec::new();
    format.write(report, sources, look, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

/// What a format writes where there is no verdict.
pub(crate) fn written_failure(format: Format) -> String {
    let mut out = Vec::new();
    format.write_failure(&failure(), &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

/// What a page holds beside its own code.
pub(crate) fn page_document(page: &str) -> Value {
    let (_, rest) = page.split_once("type=\"application/octet-stream\">").unwrap();
    let (packed, _) = rest.split_once("</script>").unwrap();
    let packed = STANDARD.decode(packed).unwrap();
    serde_json::from_reader(GzDecoder::new(&packed[..])).unwrap()
}

/// Without what changes for reasons of its own: this package's version, and the rules' pages.
fn settled(format: Format, text: &str) -> String {
    let version = env!("CARGO_PKG_VERSION");
    if format == Format::Html {
        let mut document = page_document(text);
        document["version"] = "[version]".into();
        for finding in document["findings"].as_array_mut().unwrap() {
            assert!(finding["explained"].as_str().is_some_and(|page| page.len() > 500), "{finding}");
            finding["explained"] = "[page]".into();
        }
        return serde_json::to_string_pretty(&document).unwrap() + "\n";
    }
    if format != Format::Sarif {
        let compact = text.replace(&format!("\"version\":\"{version}\""), "\"version\":\"[version]\"");
        return compact.replace(&format!("\"version\": \"{version}\""), "\"version\": \"[version]\"");
    }
    let mut log: Value = serde_json::from_str(text).unwrap();
    let driver = &mut log["runs"][0]["tool"]["driver"];
    driver["semanticVersion"] = "[version]".into();
    for rule in driver["rules"].as_array_mut().unwrap() {
        for key in ["text", "markdown"] {
            assert!(rule["help"][key].as_str().is_some_and(|page| page.len() > 500), "{rule}");
            rule["help"][key] = "[page]".into();
        }
        rule["shortDescription"]["text"] = "[summary]".into();
    }
    serde_json::to_string_pretty(&log).unwrap() + "\n"
}

#[test]
fn every_format_writes_every_outcome() {
    for format in Format::ALL {
        let mut all = String::new();
        for (name, report) in
            [("findings", findings()), ("none", none()), ("suppressed", suppressed()), ("blind", blind())]
        {
            let text = written(format, &report, &sources(), &PLAIN);
            all.extend(["==== ", name, "\n", &settled(format, &text)]);
        }
        all.extend(["==== no verdict\n", &settled(format, &written_failure(format))]);
        golden(&format!("format-{}", format.name()), &all);
    }
}

#[test]
fn equal_reports_give_equal_bytes() {
    for format in Format::ALL {
        let once = || written(format, &hostile(), &sources(), &PLAIN);
        assert_eq!(once(), once(), "{}", format.name());
    }
}

#[test]
fn what_closes_the_gate_is_always_shown() {
    let mut report = none();
    report.findings = vec![crate::fixture::note()];
    let shows = |report: &Report, format| {
        let text = written(format, report, &sources(), &Look { detail: Detail::Quiet, ..PLAIN });
        text.contains("appears in the first step")
    };
    let brief = [Format::Text, Format::Concise, Format::Github];
    for format in brief {
        assert!(!shows(&report, format), "{}: a note is only counted", format.name());
    }
    report.verdict.fail_on = Some(memlint::finding::Severity::Info);
    report.verdict.failing = 1;
    for format in brief {
        assert!(shows(&report, format), "{}: unless it closes the gate", format.name());
    }
}

#[test]
fn what_does_not_count_is_shown_in_full_only_where_asked_for() {
    for format in [Format::Text, Format::Concise, Format::Github] {
        let brief = written(format, &suppressed(), &sources(), &PLAIN);
        assert!(!brief.contains("2 MiB more") && brief.contains("1 ignored, 1 in the baseline"), "{brief}");
        let full = written(format, &suppressed(), &sources(), &Look { detail: Detail::Verbose, ..PLAIN });
        assert!(full.contains("2 MiB more") && full.contains("one epoch of history is meant"), "{full}");
    }
}
