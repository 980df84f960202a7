//! What was recorded, in the last lines of a report: how the iterations were found, and what the peak consists of.

use std::cmp::Reverse;
use std::fmt::Write;

use super::alike::{self, AlikeGroup, Member};
use super::gap;
use super::look::{Detail, Ink, Look};
use super::place::PlacedLoop;
use crate::engine::{RecordedDevice, Recording, Report};
use crate::familiar::Familiar;
use crate::finding::Finding;
use crate::program::{FoundBy, Phase};
use crate::role::Role;
use crate::source::{SourceMap, ZeroGrad};
use crate::unit::{Bytes, Confidence, Index, count, shown_name};

/// Roles below this share of the peak are summed up.
const SMALL_SHARE: f64 = 0.01;
/// What recordings that are alike lack, at most so much of it.
const MOST_GAPS: usize = 3;

/// What was recorded: each by itself, or what is alike as one.
pub(super) fn render(out: &mut String, report: &Report, sources: &SourceMap, look: &Look) {
    if look.detail == Detail::Verbose {
        each(out, report, sources, look);
    } else {
        grouped(out, report, &alike::groups(&report.recordings), sources, look);
    }
}

/// Every recording by itself, with all that is not known of it.
fn each(out: &mut String, report: &Report, sources: &SourceMap, look: &Look) {
    for recording in &report.recordings {
        if report.recordings.len() > 1 {
            name(out, &recording.name, look);
        }
        for device in &recording.devices {
            summary(out, (report, recording, device), sources, look);
        }
        let of_traces = recording.devices.iter().flat_map(|device| gap::disagreements(&device.agreement));
        let gaps = gap::all(recording, look.detail).into_iter().chain(of_traces);
        unknown(out, gaps.map(|(_, words)| words), look);
    }
}

/// Recordings that are alike as one; the others by name.
pub(super) fn grouped<'a: 'b, 'b>(
    out: &mut String,
    report: &Report,
    groups: impl IntoIterator<Item = &'b AlikeGroup<Member<'a>>>,
    sources: &SourceMap,
    look: &Look,
) {
    let mut named = None;
    for group in groups {
        let Member { recording, device } = group.middle;
        // The devices of one recording stand below its name.
        let own = group.is_of_one_process().then(|| std::ptr::from_ref(recording));
        if own.is_some() && own != named && report.recordings.len() > 1 {
            name(out, &recording.name, look);
        }
        named = own;
        if let [_] = group.members.as_slice() {
            summary(out, (report, recording, device), sources, look);
        } else {
            let peaks = group.peaks();
            let line = if group.rest {
                format!(
                    "no two alike, peak {}; -v shows each",
                    peaks.unwrap_or_else(|| "not known".to_owned())
                )
            } else {
                told_of(device, peaks.as_deref(), sources)
            };
            let _ = writeln!(out, "{}", look.wrap(&format!("{}: {line}", shown_name(&group.label())), 2));
            if !group.rest {
                let mut members = group.members.iter();
                let clears = members.find_map(|one| clearing(report, one.recording, one.device, sources));
                details(out, device, clears, look);
            }
        }
        if group.has_last_devices() {
            let words =
                |one: &Recording| gap::all(one, look.detail).into_iter().map(|(_, words)| words).collect();
            let lines = group.common(words);
            let more = lines.len().saturating_sub(MOST_GAPS);
            let more = (more > 0 && group.members.len() > 1).then(|| format!("{more} more; -v shows them"));
            let most = if more.is_some() { MOST_GAPS } else { lines.len() };
            unknown(out, lines.into_iter().take(most).chain(more), look);
        }
    }
}

fn name(out: &mut String, name: &str, look: &Look) {
    let _ = writeln!(out, "{}", look.paint(Ink::Strong, &format!("{}:", shown_name(name))));
}

/// What one device did, and what its peak consists of.
fn summary(
    out: &mut String,
    (report, recording, device): (&Report, &Recording, &RecordedDevice),
    sources: &SourceMap,
    look: &Look,
) {
    let _ = writeln!(out, "{}", look.wrap(&iterations(recording, device, sources), 2));
    details(out, device, clearing(report, recording, device, sources), look);
}

/// The lines below it: what kind of recording it is, how the loop clears gradients where that matters, and the peak's parts.
fn details(out: &mut String, device: &RecordedDevice, clears: Option<String>, look: &Look) {
    if device.kind.hides() {
        let _ = writeln!(out, "{}", look.wrap(&format!("  recording: {}", device.kind.words()), 4));
    }
    if let Some(text) = clears {
        let _ = writeln!(out, "{}", look.wrap(&format!("  loop: {text}"), 4));
    }
    let parts = composition(device);
    if !parts.is_empty() {
        let _ = writeln!(out, "{}", look.wrap(&format!("  at the peak: {parts}"), 4));
    }
}

fn unknown(out: &mut String, lines: impl Iterator<Item = String>, look: &Look) {
    for line in lines {
        let _ = writeln!(out, "{}", look.wrap(&format!("  not known: {line}"), 4));
    }
}

/// How the loop's body clears gradients, where a finding says that it does not.
fn clearing(
    report: &Report,
    recording: &Recording,
    device: &RecordedDevice,
    sources: &SourceMap,
) -> Option<String> {
    let is_told = |finding: &Finding| {
        let here = report.recording(finding).is_some_and(|one| one.name == recording.name);
        here && finding.rule == UNCLEARED && finding.device == Some(device.device)
    };
    report.open().any(is_told).then(|| header(device, sources))?
}

/// The rule of gradients that are never cleared.
const UNCLEARED: &str = "missing-zero-grad";

/// The loop's header as it stands in the source, and how its body clears gradients.
pub(super) fn header(device: &RecordedDevice, sources: &SourceMap) -> Option<String> {
    let (file, found) = PlacedLoop::of(device, sources)?.found?;
    let code = file.text().get(found.header.start..found.header.end)?.lines().next()?;
    let clears = match found.zero_grad {
        ZeroGrad::Absent => "no call of zero_grad stands in it",
        ZeroGrad::FillsWithZeros => "it calls zero_grad(set_to_none=False)",
        ZeroGrad::Releases => "it calls zero_grad",
    };
    Some(format!("`{code}`; {clears}"))
}

/// `5 iterations of train.py:15 (found by loop and optimizer steps), peak 448.4 MiB in the backward pass`.
pub(super) fn iterations(recording: &Recording, device: &RecordedDevice, sources: &SourceMap) -> String {
    let peak = device.peak_requested.map(|peak| peak.to_string());
    format!("{}{}", which_device(recording, device), told_of(device, peak.as_deref(), sources))
}

/// The same without how the iterations were found, for where there is little room.
pub(super) fn iterations_briefly(
    recording: &Recording,
    device: &RecordedDevice,
    sources: &SourceMap,
) -> String {
    let peak = device.peak_requested.map(|peak| peak.to_string());
    let (found, peaks) = (iterations_of(device, sources), peaks(device, peak.as_deref()));
    format!("{}{found}, {peaks}", which_device(recording, device))
}

/// `device 1: `; nothing where there is one alone.
fn which_device(recording: &Recording, device: &RecordedDevice) -> String {
    match recording.devices.len() {
        0 | 1 => String::new(),
        _ => format!("device {}: ", device.device.position()),
    }
}

/// The same for one that stands for others, with its peak and theirs in words.
fn told_of(device: &RecordedDevice, peak: Option<&str>, sources: &SourceMap) -> String {
    let mut line = iterations_of(device, sources);
    if device.iterations > 0 {
        let _ = write!(line, " (found by {}", found_by(device.found_by));
        if device.confidence < Confidence::High {
            let _ = write!(line, ", {} confidence", device.confidence.name());
        }
        line.push(')');
    }
    format!("{line}, {}", peaks(device, peak))
}

/// `5 iterations of train.py:15`.
fn iterations_of(device: &RecordedDevice, sources: &SourceMap) -> String {
    if device.iterations == 0 {
        return "no iterations found".to_owned();
    }
    let mut line = count(device.iterations, "iteration");
    if let Some(found) = PlacedLoop::of(device, sources) {
        let _ = write!(line, " of {}:{}", shown_name(&found.file), found.line);
    }
    line
}

/// `peak 448.4 MiB in the backward pass of iteration 2`.
fn peaks(device: &RecordedDevice, peak: Option<&str>) -> String {
    let Some(peak) = peak else { return unknown_peak(device) };
    let iteration =
        device.profile.peak_iteration.map(|iteration| format!("iteration {}", iteration.position() + 1));
    match (phase(device.profile.peak_phase), iteration) {
        (Some(phase), Some(iteration)) => format!("peak {peak} in {phase} of {iteration}"),
        (Some(phase), None) => format!("peak {peak} in {phase}"),
        (None, Some(iteration)) => format!("peak {peak} in {iteration}"),
        (None, None) => format!("peak {peak}"),
    }
}

/// `peak not known: no allocation is among the events`.
pub(super) fn unknown_peak(device: &RecordedDevice) -> String {
    let reason = device.hidden.map(|hidden| format!(": {}", hidden.reason())).unwrap_or_default();
    format!("peak not known{reason}")
}

/// `growing activations 110.6 MiB + parameters 97.5 MiB + activations 97.5 MiB + ...`: adds up to the peak, what grows and what waits for the
/// garbage collector by themselves; empty where the peak is not known.
pub(super) fn composition(device: &RecordedDevice) -> String {
    let Some(peak) = device.peak_requested else { return String::new() };
    let (growing, garbage) = (&device.profile.growing_at_peak, &device.profile.garbage_at_peak);
    let faulty = |role: Role| -> Bytes {
        growing.iter().chain(garbage).filter(|(one, _)| *one == role).map(|(_, bytes)| *bytes).sum()
    };
    let steady = device.profile.peak_by_role.iter();
    let mut rows: Vec<(String, Bytes)> =
        steady.map(|(role, bytes)| (role.plural().to_owned(), *bytes - faulty(*role))).collect();
    rows.extend(growing.iter().map(|(role, bytes)| (format!("growing {}", role.plural()), *bytes)));
    rows.push(("uncollected garbage".to_owned(), garbage.iter().map(|(_, bytes)| *bytes).sum()));
    rows.sort_by_key(|(_, bytes)| Reverse(*bytes));
    let (large, small): (Vec<_>, Vec<_>) =
        rows.into_iter().partition(|(_, bytes)| bytes.share_of(peak) >= SMALL_SHARE);
    let mut parts: Vec<String> = large.iter().map(|(what, bytes)| format!("{what} {bytes}")).collect();
    let rest: Bytes = small.iter().map(|(_, bytes)| *bytes).sum();
    if rest > Bytes::ZERO {
        parts.push(format!("other {rest}"));
    }
    parts.join(" + ")
}

/// `logits 785.3 MiB, inside cross entropy (upcast, log-softmax) 1.5 GiB`: what of the peak people know by a name, as far as that is more
/// than a small share of it.
pub(super) fn familiar(device: &RecordedDevice, parts: &[(Familiar, Bytes)]) -> String {
    let Some(peak) = device.peak_requested else { return String::new() };
    let large = parts.iter().filter(|(_, bytes)| bytes.share_of(peak) >= SMALL_SHARE);
    let part = |(familiar, bytes): &(Familiar, Bytes)| format!("{} {bytes}", familiar.words());
    large.map(part).collect::<Vec<_>>().join(", ")
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
