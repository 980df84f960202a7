//! `memlint stats` for people: what the snapshot tells, without a verdict.

use std::fmt::Write;

use super::look::{Ink, Look};
use super::place::SourceLine;
use super::{chart, closing, curve, gap, replayed};
use crate::engine::{Closer, RecordedDevice, Recording};
use crate::source::SourceMap;
use crate::unit::{Index, count, percent, shown_name, shown_page};

/// The most lines that are listed.
const MOST_LINES: usize = 5;
/// The most rows that the chart of iterations may take.
const MOST_ROWS: usize = 16;

/// Writes what is known of one snapshot; `closer` is what a closer look at its devices finds, in their order.
pub fn render(recording: &Recording, closer: &[Closer], sources: &SourceMap, look: &Look) -> String {
    let mut out = String::new();
    let _ = writeln!(out, "{}", look.paint(Ink::Strong, &shown_name(&recording.name)));
    if recording.devices.is_empty() {
        out.push_str("  no device has a history or memory in this snapshot\n");
    }
    for (_, words) in gap::all(recording, look.detail) {
        look.attribute(&mut out, "not known", &words);
    }
    if let Some(ended) = &recording.ended {
        look.attribute(&mut out, "not known", &format!("what the program would have gone on to do: {ended}"));
    }
    for changed in
        recording.files.iter().filter_map(|file| Some(sources.changed(&file.path)?.words(&file.path)))
    {
        look.attribute(&mut out, "not known", &format!("lines of the source: {changed}"));
    }
    for (position, device) in recording.devices.iter().enumerate() {
        render_device(&mut out, (recording, device), closer.get(position), sources, look);
    }
    out.push('\n');
    let unmanaged =
        "memory that PyTorch's allocator does not manage: the CUDA context, NCCL, other libraries";
    look.attribute(&mut out, "left out", unmanaged);
    shown_page(&out, look.color)
}

fn render_device(
    out: &mut String,
    (recording, device): (&Recording, &RecordedDevice),
    closer: Option<&Closer>,
    sources: &SourceMap,
    look: &Look,
) {
    out.push('\n');
    let head = format!("device {}", device.device.position());
    let _ = writeln!(out, "{}", look.paint(Ink::Strong, &head));
    look.attribute(out, "recording", device.kind.words());
    look.attribute(out, "events", &events(device));
    look.attribute(out, "program", &closing::iterations(recording, device, sources));
    if let Some(text) = closing::header(device, sources) {
        look.attribute(out, "loop", &text);
    }
    look.attribute(out, "peak", &peak(device));
    look.attribute(out, "made of", &closing::composition(device));
    let familiar = closer.map_or(&[][..], |closer| &closer.familiar_at_peak);
    look.attribute(out, "of that", &closing::familiar(device, familiar));
    top_lines(out, device, sources, look);
    look.attribute(
        out,
        "at the end",
        &format!("{} requested, {} reserved", device.requested_at_end, device.reserved_at_end),
    );
    if let Some(proof) = closer.and_then(|closer| closer.proof.as_ref()) {
        look.attribute(out, "replay", &replayed::proof(proof));
    }
    for (_, words) in gap::disagreements(&device.agreement) {
        look.attribute(out, "not known", &words);
    }
    let mut drawn = String::new();
    curve::draw(&mut drawn, &device.profile.curve, look);
    if !drawn.is_empty() {
        out.push('\n');
        out.push_str(&drawn);
    }
    let mut bars = String::new();
    chart::draw(&mut bars, "iteration", &device.profile.iterations, MOST_ROWS, look);
    if !bars.is_empty() {
        out.push('\n');
        out.push_str(&bars);
    }
}

/// `411.2 MiB requested, 468 MiB reserved (56.8 MiB apart, 12 % of reserved)`, as far as it is known.
fn peak(device: &RecordedDevice) -> String {
    match (device.peak_requested, device.peak_reserved) {
        (Some(requested), Some(reserved)) => {
            let holes = reserved - requested;
            let share = percent(holes.share_of(reserved));
            format!("{requested} requested, {reserved} reserved ({holes} apart, {share} of reserved)")
        }
        (Some(requested), None) => format!("{requested} requested; reserved is not known"),
        (None, Some(reserved)) => format!("requested is not known; {reserved} reserved"),
        (None, None) => "not known".to_owned(),
    }
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

/// The user's lines that allocated most of the peak.
fn top_lines(out: &mut String, device: &RecordedDevice, sources: &SourceMap, look: &Look) {
    let lines = &device.profile.lines_at_peak;
    let listed: Vec<String> = lines
        .iter()
        .take(MOST_LINES)
        .map(|line| {
            let place = SourceLine::of(&line.location, sources).line_and_function();
            let before = format!("{:>10}  {:>5}x  ", line.bytes.to_string(), line.allocations);
            look.row(&before, &place)
        })
        .collect();
    look.listing(out, "by line", &listed);
}
