//! The edit that mends a finding, where it is certain.
//!
//! In: findings, and the sources they stand in. Out: for each finding an edit of its file, or the reason why there is none.
//! Always: only a file that is the recorded one, unchanged, is edited; an edit is offered only where the code has exactly a form
//! that is understood; what comes out still parses. Nothing is written here.

mod autograd;
mod bounded;
mod cache;
mod calls;
mod case;
mod caught;
mod clear;
mod flow;
mod holder;
mod keep;
mod keeper;
mod keepers;
mod optimizer;
mod overlap;
mod patch;
mod regrowth;
mod residence;
mod script;
mod tensor;
#[cfg(test)]
mod tests;
mod tree;
mod watch;
mod weights;
mod widen;

use std::borrow::Cow;

pub use holder::tell_holders;
pub use patch::{Patch, Patched};
pub use script::Edit;

use self::case::Case;
use self::script::Reason;
use crate::engine::Report;
use crate::finding::{Finding, Severity};
use crate::source::{SourceMap, Spot};
use crate::unit::Bytes;

/// Whether an edit may be made without somebody looking at it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Applicability {
    /// The program computes the same as before.
    Safe,
    /// It computes something else, or elsewhere: the sentence beside says what.
    Unsafe,
}

impl Applicability {
    /// `safe`, `unsafe`.
    pub const fn name(self) -> &'static str {
        match self {
            Applicability::Safe => "safe",
            Applicability::Unsafe => "unsafe",
        }
    }
}

/// How much of what a finding promises an edit brings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Saves {
    /// All of it.
    All,
    /// No more than it, and how much hangs on the program.
    Part,
}

/// What mends a finding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fix {
    /// What it does, in the imperative: "call `optimizer.zero_grad()` after the step".
    pub title: String,
    /// Whether it may be made without a look.
    pub applicability: Applicability,
    /// Why that is so: one sentence without a final stop.
    pub why: String,
    /// How much of the finding's saving it brings.
    pub saves: Saves,
    /// The local file, as messages name it.
    pub file: String,
    /// The changes, in the order of the file; none meets another.
    pub edits: Vec<Edit>,
}

/// What became of a finding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Proposal {
    /// Which of the report's findings.
    pub finding: usize,
    /// The edit, or why there is none: lower-case start, no final stop.
    pub outcome: Result<Fix, String>,
}

/// The rules for whose findings there may be edits.
pub const RULES: [&str; 9] = [
    "missing-zero-grad",
    "late-zero-grad",
    "retained-graph",
    "growing-residency",
    "activations-without-backward",
    "duplicate-weights",
    "overlapping-iterations",
    "allocator-thrash",
    "optimizer-state-regrowth",
];

/// What mends the findings of a report that count and are no mere notes, in their order.
pub fn propose(report: &Report, sources: &SourceMap) -> Vec<Proposal> {
    let findings = report.findings.iter().enumerate();
    let one =
        |(position, finding)| Some(Proposal { finding: position, outcome: of(report, finding, sources)? });
    findings.filter_map(one).collect()
}

/// What mends one finding of a report, or why there is no edit; `None` where it does not count, or is a mere note.
pub fn of(report: &Report, finding: &Finding, sources: &SourceMap) -> Option<Result<Fix, String>> {
    if !finding.is_open() || finding.severity < Severity::Warning {
        return None;
    }
    let devices = report.recording(finding).map_or(&[][..], |recording| &recording.devices);
    let device = devices.iter().find(|one| Some(one.device) == finding.device);
    let whole = device.and_then(|device| device.peak_requested);
    Some(mend(finding, whole, sources))
}

/// What mends one finding; `whole` is the peak of the device.
fn mend(finding: &Finding, whole: Option<Bytes>, sources: &SourceMap) -> Result<Fix, Reason> {
    if !RULES.contains(&&*finding.rule) {
        return Err(format!("memlint writes no edits for {}", finding.rule));
    }
    let spot = case::spot(finding, sources)?;
    mend_at(finding, whole, &spot, sources)
}

/// What mends a finding whose line is known.
fn mend_at(finding: &Finding, whole: Option<Bytes>, spot: &Spot, sources: &SourceMap) -> Result<Fix, Reason> {
    let case = Case::of(finding, whole, spot, sources)?;
    let draft = match &*finding.rule {
        "missing-zero-grad" => clear::missing(&case),
        "late-zero-grad" => clear::late(&case),
        "retained-graph" => autograd::evaluation(&case).or_else(|_| keep::graphs(&case)),
        "growing-residency" => keep::tensors(&case),
        "activations-without-backward" => autograd::unused(&case),
        "duplicate-weights" => weights::duplicate(&case),
        "overlapping-iterations" => overlap::drop_names(&case),
        "allocator-thrash" => cache::leave_alone(&case),
        _ => regrowth::make_once(&case),
    }?;
    let mut edits = draft.edits;
    edits.sort();
    edits.dedup();
    let fix = Fix {
        title: draft.title,
        applicability: draft.applicability,
        why: draft.why.into_owned(),
        saves: draft.saves,
        file: spot.file.name().to_owned(),
        edits,
    };
    patch::holds(&fix, spot.file.text())?;
    Ok(fix)
}

/// What a kind of edit comes to.
struct Draft {
    title: String,
    applicability: Applicability,
    saves: Saves,
    why: Cow<'static, str>,
    edits: Vec<Edit>,
}
