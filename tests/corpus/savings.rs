//! Predicted savings against real ones: where a case has a twin, the same program without the fault, the impact that a
//! finding states has to be what the twin saves. The book shows all of them.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::Path;

use memlint::engine::Report;
use memlint::finding::Finding;
use memlint::rules;
use memlint::unit::Bytes;

use crate::case::{self, Case};

/// How far a prediction may be off, as a share of what the twin saves. What grows may also be off by one iteration's growth:
/// whether the repaired program still holds the newest tensor at its peak is a matter of a variable's name.
const TOLERANCE: f64 = 0.1;

/// Twins that differ in more than the fault, so that their peaks say nothing about the prediction.
const OTHER_REMEDY: [(&str, &str, &str); 12] = [
    (
        "cat-eval-bug",
        "growing-reallocation",
        "the twin collects nothing on the device; the prediction only spares the copies",
    ),
    (
        "cat-kv-cache-bug",
        "growing-reallocation",
        "the twin holds the whole cache from the start; the prediction grows it",
    ),
    ("cat-eval-bug", "fragmentation", "the twin collects nothing on the device: what was in use goes, too"),
    (
        "grow-replay-bug",
        "growing-residency",
        "the twin keeps the last eight observations, the prediction none",
    ),
    ("mzg-frozen-head-bug", "missing-zero-grad", "the twin freezes the backbone: its activations go, too"),
    (
        "ho-dqn-targetgrad",
        "missing-zero-grad",
        "the twin makes no such gradients; the prediction clears them",
    ),
    ("ho-hftrainer-preds", "growing-reallocation", "the twin collects predictions instead of logits"),
    ("ho-hftrainer-preds", "fragmentation", "the twin collects predictions instead of logits"),
    (
        "ho-lightning-valouts",
        "growing-residency",
        "the twin clears the outputs of the sanity check before the loop, too",
    ),
    ("ho-serving-noevict", "growing-residency", "the twin keeps the newest sessions, the prediction none"),
    (
        "ho-tagger-longest",
        "varying-shapes",
        "the twin sorts by length, which leaves other holes; the prediction none",
    ),
    (
        "ho-tagger-longest",
        "fragmentation",
        "the twin sorts by length, which leaves other holes; the prediction none",
    ),
];

/// A finding's prediction, and what the twin really saves.
struct Row {
    case: String,
    rule: String,
    predicted: Bytes,
    real: Bytes,
    /// By how much an iteration grows.
    growth: Bytes,
    /// What else the twin does, where that makes it no measure.
    other_remedy: Option<&'static str>,
}

impl Row {
    /// How far off the prediction is, as a share of what the twin saves: not at all, where that and the prediction are nothing,
    /// and beyond all measure, where only the prediction is something.
    fn off(&self) -> f64 {
        let off = self.predicted.get() as f64 - self.real.get() as f64;
        if off == 0.0 { 0.0 } else { off / self.real.get() as f64 }
    }

    fn holds(&self) -> bool {
        let off = self.predicted.get().abs_diff(self.real.get());
        off as f64 <= TOLERANCE * self.real.get() as f64 || off <= self.growth.get()
    }
}

fn rows() -> Vec<Row> {
    let cases = case::all();
    let named: BTreeMap<&str, &Case> = cases.iter().map(|case| (case.name.as_str(), case)).collect();
    let mut rows = Vec::new();
    for case in cases {
        let Some(twin) = case.labels["twin"].as_str().and_then(|name| named.get(name)) else { continue };
        let faults = |finding: &Finding| case.expects(&finding.rule) && !twin.expects(&finding.rule);
        let (mistaken, healthy) = (case.report(), twin.report());
        for finding in mistaken.findings.iter().filter(|finding| faults(finding)) {
            let Some(predicted) = finding.impact.off_a_peak() else { continue };
            let peak = |report: &Report| peak(report, finding.impact.reserved.is_some());
            let (real, case) = (peak(&mistaken) - peak(&healthy), case.name.clone());
            let growth = finding.impact.per_iteration.unwrap_or_default();
            let other = OTHER_REMEDY.iter().find(|(name, rule, _)| *name == case && finding.rule == *rule);
            let other_remedy = other.map(|(.., reason)| *reason);
            let rule = finding.rule.to_string();
            rows.push(Row { case, rule, predicted, real, growth, other_remedy });
        }
    }
    rows
}

/// What a finding wants lower: the peak of reserved bytes, or that of requested ones.
fn peak(report: &Report, reserved: bool) -> Bytes {
    let devices = report.recordings.iter().flat_map(|recording| &recording.devices);
    let peaks = devices.map(|device| if reserved { device.peak_reserved } else { device.peak_requested });
    peaks.flatten().max().unwrap_or_default()
}

#[test]
fn predictions_are_what_the_twins_save() {
    let mut rows = rows();
    rows.retain(|row| row.other_remedy.is_none());
    let line = |row: &Row| {
        let mark = if row.holds() { "      " } else { "  OFF " };
        format!(
            "{mark}{:<24} {:<28} predicted {:>10}  real {:>10}",
            row.case, row.rule, row.predicted, row.real
        )
    };
    let table = rows.iter().map(line).collect::<Vec<_>>().join("\n");
    assert!(rows.iter().all(Row::holds), "\n{table}");
    for rule in ["late-zero-grad", "overlapping-iterations", "missing-zero-grad", "fragmentation"] {
        assert!(rows.iter().any(|row| row.rule == rule), "no twin tests {rule}:\n{table}");
    }
}

/// The page of the book.
fn page(rows: &[Row]) -> String {
    let (alike, other): (Vec<&Row>, Vec<&Row>) = rows.iter().partition(|row| row.other_remedy.is_none());
    let within = |rows: &[&Row]| {
        let holds = |row: &&&Row| row.off().abs() <= TOLERANCE;
        let (holding, all) = (rows.iter().filter(holds).count(), rows.len());
        format!("{holding} of {all} ({:.0} %)", 100.0 * holding as f64 / all.max(1) as f64)
    };
    let mut page = format!(
        "# Savings, predicted and measured\n\n\
         Some programs of the corpus were recorded twice: with a fault, and mended. What memlint says that mending would save is what\n\
         it computes from the first recording alone; what it did save is the difference of the two peaks: of reserved bytes for what\n\
         the allocator makes of requests, of requested bytes for everything else.\n\n\
         Where the two programs differ in the fault alone, {} predictions are within 10 %; of all pairs, {}.\n\
         Of the former, {} save nothing of the peak.\n\n",
        within(&alike),
        within(&rows.iter().collect::<Vec<_>>()),
        alike.iter().filter(|row| row.real == Bytes::ZERO).count(),
    );
    page.push_str("| recording | rule | predicted | measured | off by |\n|---|---|---:|---:|---:|\n");
    let cells = |row: &Row| {
        let tenths = (1000.0 * row.off()).round();
        let off = if tenths == 0.0 { "0".to_owned() } else { format!("{:+.1} %", tenths / 10.0) };
        format!("| `{}` | {} | {} | {} | {off} |", row.case, row.rule, row.predicted, row.real)
    };
    for row in alike {
        let _ = writeln!(page, "{}", cells(row));
    }
    page.push_str(
        "\nWhat grows may be off by one iteration's growth: whether the mended program still holds the newest tensor at its peak is a\n\
         matter of a variable's name.\n\n\
         ## Mended in another way\n\n\
         These were mended by more than the change that memlint proposes, so that the measured saving is no measure of the predicted one.\n\n\
         | recording | rule | predicted | measured | off by | the difference |\n|---|---|---:|---:|---:|---|\n",
    );
    for row in other {
        let _ = writeln!(page, "{} {} |", cells(row), row.other_remedy.unwrap_or_default());
    }
    page
}

#[test]
fn the_book_shows_every_prediction() {
    const UPDATE: &str = "UPDATE_BOOK";
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/src/savings.md");
    let computed = page(&rows());
    if std::env::var_os(UPDATE).is_some() {
        fs::write(&path, &computed).unwrap();
    }
    let shown = fs::read_to_string(&path).unwrap();
    assert_eq!(shown, computed, "{UPDATE}=1 cargo test --test corpus savings writes {} anew", path.display());
}

#[test]
fn exceptions_are_cases_of_existing_rules() {
    let cases = case::all();
    for (name, rule, reason) in OTHER_REMEDY {
        let case = cases.iter().find(|case| case.name == name);
        assert!(case.is_some_and(|case| case.expects(rule)), "{name} does not expect {rule}");
        assert!(rules::named(rule).is_some() && !reason.is_empty(), "{name}");
    }
}
