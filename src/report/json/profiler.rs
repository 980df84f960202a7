//! `memlint stats --output-format json` of a profiler's memory timeline: tensors by category, and no devices.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

use super::{Gap, SCHEMA, TOOL, Tool};
use crate::profiler::{Composition, Form, MemoryTrend, ProfiledPass, ProfilerTimeline};
use crate::report::profiler::gaps;
use crate::unit::{Bytes, Micros};

/// What is known of one memory timeline of PyTorch's profiler.
#[derive(Serialize, JsonSchema)]
pub(super) struct Profiled {
    schema: &'static str,
    tool: Tool,
    input: String,
    rank: Option<u32>,
    profiler_timeline: TimelineStats,
    gaps: Vec<Gap>,
}

/// What the timeline tells.
#[derive(Serialize, JsonSchema)]
struct TimelineStats {
    form: &'static str,
    rows: usize,
    start_us: Option<i64>,
    end_us: Option<i64>,
    peak_bytes: u64,
    peak_us: Option<i64>,
    /// The most that the allocator had from the driver, where the form tells.
    peak_reserved_bytes: Option<u64>,
    categories_at_peak: BTreeMap<&'static str, u64>,
    bytes_at_end: u64,
    categories_at_end: BTreeMap<&'static str, u64>,
    /// What is older than the recording; unknown where the form does not tell.
    bytes_before: Option<u64>,
    passes_found_by: &'static str,
    passes_confidence: &'static str,
    passes: Vec<PassStats>,
    growth: GrowthStats,
}

/// One optimizer step, or one forward and backward pass.
#[derive(Serialize, JsonSchema)]
struct PassStats {
    index: usize,
    end_us: Option<i64>,
    peak_bytes: u64,
    resident_bytes: u64,
}

/// `verdict` is `grows`, `steady` or `unknown`; the rest is null but where it grows.
#[derive(Serialize, JsonSchema)]
struct GrowthStats {
    verdict: &'static str,
    passes_compared: usize,
    bytes_per_pass: Option<u64>,
    rises: Option<usize>,
    category: Option<&'static str>,
}

impl Profiled {
    pub(super) fn of(name: &str, rank: Option<u32>, timeline: &ProfilerTimeline) -> Profiled {
        let gap = |(kind, message)| Gap { input: name.to_owned(), device: None, kind, message };
        Profiled {
            schema: SCHEMA,
            tool: TOOL,
            input: name.to_owned(),
            rank,
            profiler_timeline: TimelineStats::of(timeline),
            gaps: gaps(timeline).into_iter().map(gap).collect(),
        }
    }
}

impl TimelineStats {
    fn of(timeline: &ProfilerTimeline) -> TimelineStats {
        let passes = timeline.passes.iter().enumerate();
        TimelineStats {
            form: match timeline.form {
                Form::Events => "events",
                Form::Levels => "levels",
                Form::Trace => "trace",
            },
            rows: timeline.rows,
            start_us: timeline.times.map(|(first, _)| first.0),
            end_us: timeline.times.map(|(_, last)| last.0),
            peak_bytes: timeline.peak.total().get(),
            peak_us: micros(timeline.peak_time),
            peak_reserved_bytes: timeline.reserved.map(Bytes::get),
            categories_at_peak: categories(&timeline.peak),
            bytes_at_end: timeline.at_end.total().get(),
            categories_at_end: categories(&timeline.at_end),
            bytes_before: timeline.older.map(|older| older.total().get()),
            passes_found_by: timeline.found_by.name(),
            passes_confidence: timeline.confidence.name(),
            passes: passes.map(|(index, pass)| PassStats::of(index, pass)).collect(),
            growth: GrowthStats::of(&timeline.growth),
        }
    }
}

impl PassStats {
    fn of(index: usize, pass: &ProfiledPass) -> PassStats {
        PassStats {
            index,
            end_us: micros(pass.end),
            peak_bytes: pass.peak.get(),
            resident_bytes: pass.resident.total().get(),
        }
    }
}

impl GrowthStats {
    fn of(growth: &MemoryTrend) -> GrowthStats {
        let none = GrowthStats {
            verdict: "unknown",
            passes_compared: 0,
            bytes_per_pass: None,
            rises: None,
            category: None,
        };
        match growth {
            MemoryTrend::TooShort => none,
            MemoryTrend::Steady { passes, .. } => {
                GrowthStats { verdict: "steady", passes_compared: *passes, ..none }
            }
            MemoryTrend::Grows { per_pass, rises, mostly, passes } => GrowthStats {
                verdict: "grows",
                passes_compared: *passes,
                bytes_per_pass: Some(per_pass.get()),
                rises: Some(*rises),
                category: mostly.map(|(category, _)| category.name()),
            },
        }
    }
}

fn micros(time: Option<Micros>) -> Option<i64> {
    time.map(|time| time.0)
}

fn categories(composition: &Composition) -> BTreeMap<&'static str, u64> {
    composition.iter().map(|(category, bytes)| (category.name(), bytes.get())).collect()
}
