//! The last lines of a report: how the iterations were found, what the peak consists of, what was counted, and what was
//! not looked at.

use std::fmt::Write;

use super::gap;
use super::look::{Detail, Ink, Look};
use super::place::MainLoop;
use crate::engine::{RecordedDevice, Recording, Report};
use crate::finding::{Finding, Severity, Skipped};
use crate::program::{FoundBy, Phase};
use crate::role::Role;
use crate::source::SourceMap;
use crate::unit::{Bytes, Confidence, Index, count, shown_line, shown_name};

/// Roles below this share of the peak are summed up.
const SMALL_SHARE: f64 = 0.01;

pub(super) fn render(out: &mut String, report: &Report, sources: &SourceMap, look: &Look) {
    for recording in &report.recordings {
        if report.recordings.len() > 1 {
            let _ =
                writeln!(out, "{}", look.paint(Ink::Strong, &format!("{}:", shown_name(&recording.name))));
        }
        for device in &recording.devices {
            let _ = writeln!(out, "{}", look.wrap(&iterations(recording, device, sources), 2));
            let _ = writeln!(out, "{}", look.wrap(&format!("  at the peak: {}", composition(device)), 4));
        }
        gaps(out, recording, look);
    }
    let _ = writeln!(out, "{}", look.wrap(&verdict(report, look), 2));
    skipped(out, report, look);
    if let Some(worst) = worst(report) {
        let advice = format!("`memlint explain {}` says more.", worst.rule);
        let _ = writeln!(out, "{}", look.paint(Ink::Faint, &advice));
    }
}

/// `5 iterations of train.py:15 (found by loop and optimizer steps), peak 448.4 MiB in the backward pass`.
pub(super) fn iterations(recording: &Recording, device: &RecordedDevice, sources: &SourceMap) -> String {
    let mut line = String::new();
    if recording.devices.len() > 1 {
        let _ = write!(line, "device {}: ", device.device.position());
    }
    if device.profile.iterations.is_empty() {
        line.push_str("no iterations found");
    } else {
        line.push_str(&count(device.profile.iterations.len(), "iteration"));
        if let Some(found) = MainLoop::of(device, sources) {
            let _ = write!(line, " of {}:{}", shown_name(&found.file), found.line);
        }
        let _ = write!(line, " (found by {}", found_by(device.found_by));
        if device.confidence < Confidence::High {
            let _ = write!(line, ", {} confidence", device.confidence.name());
        }
        line.push(')');
    }
    let _ = write!(line, ", peak {}", device.peak_requested);
    let iteration =
        device.profile.peak_iteration.map(|iteration| format!("iteration {}", iteration.position() + 1));
    match (phase(device.profile.peak_phase), iteration) {
        (Some(phase), Some(iteration)) => {
            let _ = write!(line, " in {phase} of {iteration}");
        }
        (Some(phase), None) => {
            let _ = write!(line, " in {phase}");
        }
        (None, Some(iteration)) => {
            let _ = write!(line, " in {iteration}");
        }
        (None, None) => {}
    }
    line
}

/// `activations 208.1 MiB + parameters 97.5 MiB + ...`: adds up to the peak.
pub(super) fn composition(device: &RecordedDevice) -> String {
    let peak = device.peak_requested;
    let (large, small): (Vec<_>, Vec<_>) =
        device.profile.peak_by_role.iter().partition(|(_, bytes)| bytes.share_of(peak) >= SMALL_SHARE);
    let mut parts: Vec<String> =
        large.iter().map(|(role, bytes)| format!("{} {bytes}", roles(*role))).collect();
    let rest: Bytes = small.iter().map(|(_, bytes)| *bytes).sum();
    if rest > Bytes::ZERO {
        parts.push(format!("other {rest}"));
    }
    parts.join(" + ")
}

/// What a snapshot lacks: one line, or all of it where that is asked for.
fn gaps(out: &mut String, recording: &Recording, look: &Look) {
    let mut lines: Vec<String> =
        gap::all(recording, look.detail).into_iter().map(|(_, words)| words).collect();
    if look.detail == Detail::Verbose {
        let of_traces = recording.devices.iter().flat_map(|device| gap::disagreements(&device.agreement));
        lines.extend(of_traces.map(|(_, words)| words));
    }
    for line in lines {
        let _ = writeln!(out, "{}", look.wrap(&format!("  not known: {line}"), 4));
    }
}

/// `1 error, 1 note (lazy-optimizer-init; -v shows it)`.
fn verdict(report: &Report, look: &Look) -> String {
    let of = |severity| report.findings.iter().filter(move |finding| finding.severity == severity);
    let (errors, warnings) = (of(Severity::Error).count(), of(Severity::Warning).count());
    let notes: Vec<&Finding> = of(Severity::Info).collect();
    let mut parts = Vec::new();
    if errors > 0 {
        parts.push(look.paint(Ink::Severity(Severity::Error), &count(errors, "error")));
    }
    if warnings > 0 {
        parts.push(look.paint(Ink::Severity(Severity::Warning), &count(warnings, "warning")));
    }
    if parts.is_empty() {
        parts.push(silence(report));
    }
    if !notes.is_empty() {
        let counted = look.paint(Ink::Severity(Severity::Info), &count(notes.len(), "note"));
        parts.push(match notes.as_slice() {
            _ if look.detail == Detail::Verbose => counted,
            [note] if errors + warnings == 0 => {
                let message = shown_line(&note.message);
                format!("{counted}: {message}  [{}; -v shows all of it]", note.rule)
            }
            [note] => format!("{counted} ({}; -v shows it)", note.rule),
            several => {
                let mut rules: Vec<&str> = several.iter().map(|note| &*note.rule).collect();
                rules.sort_unstable();
                rules.dedup();
                format!("{counted} ({}; -v shows them)", rules.join(", "))
            }
        });
    }
    parts.join(", ")
}

/// What it means that nothing was found: less, where rules could not see.
fn silence(report: &Report) -> String {
    match skipped_rules(report, |skipped| skipped.blind).len() {
        0 => "no findings".to_owned(),
        blind => format!("nothing found, but {} could not judge this recording", count(blind, "rule")),
    }
}

fn skipped_rules(report: &Report, counts: impl Fn(&Skipped) -> bool) -> Vec<&str> {
    let mut rules: Vec<&str> =
        report.skipped.iter().filter(|one| counts(one)).map(|one| &*one.rule).collect();
    rules.sort_unstable();
    rules.dedup();
    rules
}

/// Rules that could not run, and why.
fn skipped(out: &mut String, report: &Report, look: &Look) {
    if report.skipped.is_empty() {
        return;
    }
    if look.detail == Detail::Verbose {
        for skipped in &report.skipped {
            let line = format!("  skipped {}: {}", skipped.rule, shown_line(&skipped.reason));
            let _ = writeln!(out, "{}", look.wrap(&line, 4));
        }
        return;
    }
    let rules = skipped_rules(report, |_| true);
    let line = format!("{} skipped ({}; -v says why)", count(rules.len(), "rule"), rules.join(", "));
    let _ = writeln!(out, "{}", look.wrap(&line, 2));
}

/// The first finding that is more than a note.
fn worst(report: &Report) -> Option<&Finding> {
    report.findings.iter().find(|finding| finding.severity > Severity::Info)
}

/// The evidence for iterations, after "found by".
const fn found_by(found: FoundBy) -> &'static str {
    match found {
        FoundBy::ProfilerSteps => "ProfilerStep annotations",
        FoundBy::Annotations => "annotations that repeat",
        FoundBy::OptimizerSteps => "Optimizer.step",
        FoundBy::LoopBackEdges => "loop",
        FoundBy::LoopAndOptimizer => "loop and Optimizer.step",
        FoundBy::Periodicity => "sizes that repeat",
        FoundBy::Nothing => "nothing",
    }
}

/// A phase, after "in".
pub(super) const fn phase(phase: Phase) -> Option<&'static str> {
    Some(match phase {
        Phase::Setup => "the setup",
        Phase::Input => "the loading of a batch",
        Phase::Forward => "the forward pass",
        Phase::Recomputation => "the recomputation of a checkpoint",
        Phase::Backward => "the backward pass",
        Phase::Clipping => "gradient clipping",
        Phase::OptimizerStep => "the optimizer step",
        Phase::ZeroGrad => "zero_grad",
        Phase::Evaluation => "evaluation",
        Phase::Other => return None,
    })
}

/// A role in the plural.
pub(super) const fn roles(role: Role) -> &'static str {
    match role {
        Role::Parameter => "parameters",
        Role::Buffer => "buffers",
        Role::Gradient => "gradients",
        Role::OptimizerState => "optimizer state",
        Role::Activation => "activations",
        Role::Input => "inputs",
        Role::Temporary => "temporaries",
        Role::Workspace => "workspaces",
        Role::Communication => "communication",
        Role::Unknown => "unknown",
    }
}
