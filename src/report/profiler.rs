//! `memlint stats` of a profiler's memory timeline, for people.

use std::fmt::Write;

use super::chart;
use super::look::{Ink, Look};
use crate::engine::IterationMemory;
use crate::profiler::{Category, Composition, Form, MemoryTrend, PassSign, ProfilerTimeline};
use crate::unit::{Bytes, Micros, count, shown_name, shown_page};

/// The most rows that the chart of passes may take.
const MOST_ROWS: usize = 16;

/// Writes what is known of one timeline.
pub fn render(name: &str, timeline: &ProfilerTimeline, look: &Look) -> String {
    let mut out = String::new();
    let _ = writeln!(out, "{}", look.paint(Ink::Strong, &shown_name(name)));
    look.attribute(&mut out, "file", &file(timeline));
    for (_, words) in gaps(timeline) {
        look.attribute(&mut out, "not known", &words);
    }
    out.push('\n');
    if timeline.rows == 0 {
        look.attribute(&mut out, "empty", EMPTY);
        return shown_page(&out, look.color);
    }
    look.attribute(&mut out, "program", &program(timeline));
    look.attribute(&mut out, "peak", &peak(timeline));
    if let Some(reserved) = timeline.reserved {
        look.attribute(&mut out, "reserved", &format!("{reserved} at most"));
    }
    if timeline.form != Form::Trace {
        look.attribute(&mut out, "made of", &composition(&timeline.peak));
    }
    look.attribute(&mut out, "growth", &growth(timeline));
    if let Some(older) = timeline.older.filter(|older| older.total() > Bytes::ZERO) {
        look.attribute(
            &mut out,
            "before",
            &format!("{} older than the recording: {}", older.total(), composition(&older)),
        );
    }
    let parts = match timeline.form {
        Form::Events | Form::Levels => format!(": {}", composition(&timeline.at_end)),
        Form::Trace => String::new(),
    };
    look.attribute(&mut out, "at the end", &format!("{}{parts}", timeline.at_end.total()));
    let passes: Vec<IterationMemory> = timeline
        .passes
        .iter()
        .map(|pass| IterationMemory { peak: pass.peak, resident: pass.resident.total() })
        .collect();
    let mut bars = String::new();
    chart::draw(&mut bars, passes_are(timeline.found_by), &passes, MOST_ROWS, look);
    if !bars.is_empty() {
        out.push('\n');
        out.push_str(&bars);
    }
    shown_page(&out, look.color)
}

const EMPTY: &str = "no tensor was made or freed on this device while the profiler recorded; was the timeline exported for \
                     another one? `cuda:0` and `cuda` are different names to `export_memory_timeline`";

fn file(timeline: &ProfilerTimeline) -> String {
    let form = match timeline.form {
        Form::Events => "changes of tensors",
        Form::Levels => "levels by category",
        Form::Trace => return format!("a trace of PyTorch's profiler: {}", count(timeline.rows, "moment")),
    };
    format!("a memory timeline of PyTorch's profiler, {form}: {}", count(timeline.rows, "row"))
}

/// What such a file does not tell: kinds and words.
pub(super) fn gaps(timeline: &ProfilerTimeline) -> Vec<(&'static str, String)> {
    let mut gaps = vec![
        ("no-stacks", "lines: the file has no stacks, so `memlint check` cannot judge it".to_owned()),
        match timeline.form {
            Form::Events | Form::Levels => (
                "no-allocator",
                "the allocator: sizes are those of tensors, and nothing is said of reserved memory"
                    .to_owned(),
            ),
            Form::Trace => (
                "no-categories",
                "what it holds: of each moment only the allocator's totals are noted".to_owned(),
            ),
        },
    ];
    if timeline.below_zero > Bytes::ZERO {
        gaps.push((
            "below-zero",
            format!("where {} came from that are freed but never made", timeline.below_zero),
        ));
    }
    if timeline.backwards > 0 {
        let by = timeline.backwards;
        gaps.push(("times-out-of-order", format!("times run backwards, by {by} microseconds at most")));
    }
    gaps
}

fn program(timeline: &ProfilerTimeline) -> String {
    let mut text = match timeline.found_by {
        PassSign::OptimizerSteps => {
            format!(
                "{}, told by parameters that change in place",
                count(timeline.passes.len(), "optimizer step")
            )
        }
        PassSign::Activations => format!(
            "{}, told by activations that come and go",
            count(timeline.passes.len(), "forward and backward pass")
        ),
        PassSign::Annotations => format!("{}, told by annotations", count(timeline.passes.len(), "step")),
        PassSign::Nothing => return "no iterations found".to_owned(),
    };
    let _ = write!(text, " ({} confidence)", timeline.confidence.name());
    text
}

fn peak(timeline: &ProfilerTimeline) -> String {
    let peak = timeline.peak.total();
    let Some((at, (first, last))) = timeline.peak_time.zip(timeline.times) else {
        return format!("{peak} before the recording");
    };
    let passed = timeline.passes.iter().filter(|pass| pass.end.is_some_and(|end| end < at)).count();
    let place = if timeline.passes.is_empty() {
        String::new()
    } else if passed == timeline.passes.len() {
        format!(", after the last {}", passes_are(timeline.found_by))
    } else {
        format!(", in {} {}", passes_are(timeline.found_by), passed + 1)
    };
    format!("{peak}, {:.3} s after the first of {:.3} s{place}", since(first, at), since(first, last))
}

fn growth(timeline: &ProfilerTimeline) -> String {
    let unit = passes_are(timeline.found_by);
    match &timeline.growth {
        MemoryTrend::TooShort if timeline.passes.is_empty() => "cannot be told without iterations".to_owned(),
        MemoryTrend::TooShort => {
            format!("cannot be told: too few to compare ({})", count(timeline.passes.len(), unit))
        }
        MemoryTrend::Grows { per_pass, rises, mostly, passes } => {
            let rises = count(*rises, "rise");
            let mut text =
                format!("{per_pass} from each {unit} to the next, over the last {passes} ({rises})");
            if let Some((category, bytes)) = mostly.as_ref().filter(|_| timeline.form != Form::Trace) {
                let _ = write!(text, ", mostly {} ({bytes} in all)", plural(*category));
            }
            text
        }
        MemoryTrend::Steady { between: (least, most), passes } if least == most => {
            format!("none: {most} at the end of each of the last {}", count(*passes, unit))
        }
        MemoryTrend::Steady { between: (least, most), passes } => {
            format!("none that is steady: {least} to {most} at the end of the last {}", count(*passes, unit))
        }
    }
}

/// Seconds from one moment to another.
fn since(first: Micros, then: Micros) -> f64 {
    then.0.saturating_sub(first.0) as f64 / 1e6
}

/// What a pass is called.
const fn passes_are(found_by: PassSign) -> &'static str {
    match found_by {
        PassSign::OptimizerSteps | PassSign::Annotations => "step",
        PassSign::Activations | PassSign::Nothing => "pass",
    }
}

/// `activations 208.1 MiB + parameters 97.5 MiB`: adds up, largest first.
fn composition(composition: &Composition) -> String {
    let mut parts: Vec<(Category, Bytes)> =
        composition.iter().filter(|(_, bytes)| *bytes > Bytes::ZERO).collect();
    parts.sort_by_key(|(_, bytes)| std::cmp::Reverse(*bytes));
    let parts: Vec<String> =
        parts.iter().map(|(category, bytes)| format!("{} {bytes}", plural(*category))).collect();
    if parts.is_empty() { "nothing".to_owned() } else { parts.join(" + ") }
}

const fn plural(category: Category) -> &'static str {
    match category {
        Category::Parameter => "parameters",
        Category::OptimizerState => "optimizer state",
        Category::Input => "inputs",
        Category::Temporary => "temporaries",
        Category::Activation => "activations",
        Category::Gradient => "gradients",
        Category::AutogradDetail => "autograd details",
        Category::Unknown => "unknown",
    }
}
