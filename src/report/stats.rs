//! `memlint stats` for people: what the snapshot tells, without a verdict.

use std::fmt::Write;

use super::closing;
use super::gap;
use super::look::{Ink, Look};
use super::place::{MainLoop, Place};
use crate::engine::{IterationMemory, RecordedDevice, Recording};
use crate::source::{SourceMap, ZeroGrad};
use crate::unit::{Bytes, Index, count, percent, shown_name};

/// The most lines that are listed.
const MOST_LINES: usize = 5;
/// The most rows that the chart of iterations may take.
const MOST_ROWS: usize = 16;

/// Writes what is known of one snapshot.
pub fn render(recording: &Recording, sources: &SourceMap, look: &Look) -> String {
    let mut out = String::new();
    let _ = writeln!(out, "{}", look.paint(Ink::Strong, &shown_name(&recording.name)));
    if recording.devices.is_empty() {
        out.push_str("  no device has a history or memory in this snapshot\n");
    }
    for (_, words) in gap::all(recording, look.detail) {
        look.attribute(&mut out, "not known", &words);
    }
    for device in &recording.devices {
        render_device(&mut out, recording, device, sources, look);
    }
    out.push('\n');
    let unmanaged =
        "memory that PyTorch's allocator does not manage: the CUDA context, NCCL, other libraries";
    look.attribute(&mut out, "left out", unmanaged);
    out
}

fn render_device(
    out: &mut String,
    recording: &Recording,
    device: &RecordedDevice,
    sources: &SourceMap,
    look: &Look,
) {
    out.push('\n');
    let head = format!("device {}", device.device.position());
    let _ = writeln!(out, "{}", look.paint(Ink::Strong, &head));
    look.attribute(out, "events", &events(device));
    look.attribute(out, "program", &closing::iterations(recording, device, sources));
    if let Some(text) = header(device, sources) {
        look.attribute(out, "loop", &text);
    }
    let holes = device.peak_reserved - device.peak_requested;
    look.attribute(
        out,
        "peak",
        &format!(
            "{} requested, {} reserved ({} apart, {} of reserved)",
            device.peak_requested,
            device.peak_reserved,
            holes,
            percent(holes.share_of(device.peak_reserved)),
        ),
    );
    look.attribute(out, "made of", &closing::composition(device));
    top_lines(out, device, sources, look);
    look.attribute(
        out,
        "at the end",
        &format!("{} requested, {} reserved", device.requested_at_end, device.reserved_at_end),
    );
    for (_, words) in gap::disagreements(&device.agreement) {
        look.attribute(out, "not known", &words);
    }
    chart(out, "iteration", &device.profile.iterations, look);
}

/// How many events over which time.
fn events(device: &RecordedDevice) -> String {
    let mut text = count(device.events, "event");
    let _ = write!(text, ", {}", count(device.allocations, "allocation"));
    if let Some(duration) = device.duration {
        let _ = write!(text, ", {:.1} s", duration.0 as f64 / 1e6);
    }
    text
}

/// The loop's header as it stands in the source, and how its body clears gradients.
fn header(device: &RecordedDevice, sources: &SourceMap) -> Option<String> {
    let (file, found) = MainLoop::of(device, sources)?.found?;
    let code = file.text().get(found.header.start..found.header.end)?.lines().next()?;
    let clears = match found.zero_grad {
        ZeroGrad::Absent => "no call of zero_grad stands in it",
        ZeroGrad::FillsWithZeros => "it calls zero_grad(set_to_none=False)",
        ZeroGrad::Releases => "it calls zero_grad",
    };
    Some(format!("`{code}`; {clears}"))
}

/// The user's lines that allocated most of the peak.
fn top_lines(out: &mut String, device: &RecordedDevice, sources: &SourceMap, look: &Look) {
    let lines = &device.profile.lines_at_peak;
    let listed: Vec<String> = lines
        .iter()
        .take(MOST_LINES)
        .map(|line| {
            let place = Place::of(&line.location, sources).line_and_function();
            format!("{:>10}  {:>5}x  {place}", line.bytes.to_string(), line.allocations)
        })
        .collect();
    look.listing(out, "by line", &listed);
}

/// One bar an iteration (or a few): resident bytes filled, the rest of the peak shaded.
pub(super) fn chart(out: &mut String, unit: &str, iterations: &[IterationMemory], look: &Look) {
    let highest = iterations.iter().map(|iteration| iteration.peak).max().unwrap_or_default();
    if highest == Bytes::ZERO {
        return;
    }
    let filled = look.bar(1, 1);
    let shaded = look.bar(0, 1);
    let key = format!("  {unit:>9}        peak    resident  ({filled} resident at its end, {shaded} peak)");
    let _ = writeln!(out, "\n{}", look.paint(Ink::Faint, &key));
    let together = iterations.len().div_ceil(MOST_ROWS);
    let room = look.width.saturating_sub(36).clamp(10, 60);
    for (row, group) in iterations.chunks(together).enumerate() {
        let first = row * together + 1;
        let last = first + group.len() - 1;
        let name = if first == last { first.to_string() } else { format!("{first}-{last}") };
        let peak = group.iter().map(|iteration| iteration.peak).max().unwrap_or_default();
        let resident = group.iter().map(|iteration| iteration.resident).max().unwrap_or_default();
        let columns = |bytes: Bytes| columns(bytes, highest, room);
        let bar = look.bar(columns(resident), columns(peak));
        let _ = writeln!(out, "  {name:>9}  {:>10}  {:>10}  {bar}", peak.to_string(), resident.to_string());
    }
}

/// How many of `room` columns stand for `bytes`, where `highest` fills them all; rounded.
fn columns(bytes: Bytes, highest: Bytes, room: usize) -> usize {
    let highest = u128::from(highest.get()).max(1);
    let doubled = u128::from(bytes.get()) * room as u128 * 2;
    usize::try_from((doubled + highest) / (highest * 2)).unwrap_or(room).min(room)
}
