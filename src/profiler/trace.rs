//! Chrome traces of PyTorch's profiler: what the allocator held whenever it was noted (`profile_memory=True`).
//!
//! In: the JSON of `export_chrome_trace`, as a stream. Out: a timeline of the GPU that held most, in bytes of the allocator's blocks; it knows
//! no categories. Always: of each event only a few numbers are kept, within a limit, and no text longer than [`MOST_TEXT`] is held.
//!
//! A moment is an instant event `[memory]` (`torch/csrc/profiler/kineto_shim.cpp`, PyTorch 2.0 to 2.15) with what is allocated and reserved from
//! then on; events stand in no order. Steps are `ProfilerStep#N` where the program called `prof.step()`, or else `Optimizer.step#...`.

use std::collections::BTreeMap;
use std::fmt;
use std::io::{self, BufReader, Read};

use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::levels::{CategoryBytes, RunningLevel, composition};
use super::{Category, Form, MemoryTrend, PassSign, ProfiledPass, ProfilerError, ProfilerTimeline};
use crate::unit::{Bytes, Confidence, Micros};

/// Numbers that one moment or step takes.
const NUMBERS: u64 = 4;
/// The longest text that is let through, in bytes: names of operators with their shapes and stacks are far shorter.
const MOST_TEXT: usize = 1 << 20;
/// The deepest that lists and objects lie in one another; shapes of tensors in the arguments of an event take seven.
const DEEPEST: usize = 64;

/// Reads a trace; `most` is how many numbers may be held.
pub(super) fn read(json: impl Read, most: u64) -> Result<ProfilerTimeline, ProfilerError> {
    let mut sane = Sane { inner: json, depth: 0, length: None, is_escaped: false, is_too_long: false };
    let mut trace = Trace { most, ..Trace::default() };
    let outcome = {
        let mut json = serde_json::Deserializer::from_reader(BufReader::new(&mut sane));
        json.deserialize_map(TraceDocument(&mut trace)).and_then(|()| json.end())
    };
    match outcome {
        _ if trace.held > most => Err(ProfilerError::Limit { limit: most }),
        _ if sane.is_too_long => Err(ProfilerError::LongText { limit: MOST_TEXT }),
        Err(error) => Err(ProfilerError::Damaged { what: error.to_string() }),
        Ok(()) => trace.finish().ok_or(ProfilerError::NoMemory),
    }
}

/// Lets no longer text pass than [`MOST_TEXT`], which would be held whole to be looked at, and no deeper lists than [`DEEPEST`].
struct Sane<R> {
    inner: R,
    depth: usize,
    /// The bytes of the text that is open.
    length: Option<usize>,
    is_escaped: bool,
    is_too_long: bool,
}

impl<R: Read> Read for Sane<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buffer)?;
        for byte in buffer.get(..read).unwrap_or_default() {
            match byte {
                b'[' | b'{' if self.length.is_none() => self.depth += 1,
                b']' | b'}' if self.length.is_none() => self.depth = self.depth.saturating_sub(1),
                _ => {}
            }
            if self.depth > DEEPEST {
                return Err(io::Error::other("lists in lists without end"));
            }
            self.length = match (self.length, byte) {
                (None, b'"') => Some(0),
                (None, _) => None,
                (Some(_), b'"') if !self.is_escaped => None,
                (Some(length), _) => Some(length + 1),
            };
            self.is_escaped = self.length.is_some() && *byte == b'\\' && !self.is_escaped;
            if self.length.is_some_and(|length| length > MOST_TEXT) {
                self.is_too_long = true;
                return Err(io::Error::other("a text without end"));
            }
        }
        Ok(read)
    }
}

/// What is kept of a trace.
#[derive(Debug, Default)]
struct Trace {
    most: u64,
    held: u64,
    /// By GPU: when, what was allocated and what reserved from then on.
    moments: BTreeMap<i64, Vec<(Micros, i64, i64)>>,
    /// The ends of `ProfilerStep#N`, and of the optimizer's steps.
    steps: Vec<Micros>,
    updates: Vec<Micros>,
}

impl Trace {
    fn note<E: Error>(&mut self, event: &Event) -> Result<(), E> {
        // What is marked on the CPU is drawn once more beside the kernels.
        if event.cat == Marked::OnGpu {
            return Ok(());
        }
        let end = || Some(Micros(event.ts.0?.saturating_add(event.dur.0.unwrap_or(0))));
        match (event.name, &event.args) {
            (Name::Memory, Args { allocated, reserved, device, kind }) => {
                let (Some(at), Some(allocated)) = (event.ts.0, allocated.0) else { return Ok(()) };
                // The CPU is device type 0 (`c10/core/DeviceType.h`), and its totals are not known.
                if kind.0.is_none_or(|kind| kind == 0) {
                    return Ok(());
                }
                let row = (Micros(at), allocated, reserved.0.unwrap_or(0));
                self.moments.entry(device.0.unwrap_or(0)).or_default().push(row);
            }
            (Name::Step, _) => self.steps.extend(end()),
            (Name::Update, _) => self.updates.extend(end()),
            (Name::Other, _) => return Ok(()),
        }
        self.held += NUMBERS;
        if self.held > self.most { Err(E::custom("too many numbers")) } else { Ok(()) }
    }

    /// The timeline of the GPU that held most; `None` where none has a moment.
    fn finish(self) -> Option<ProfilerTimeline> {
        let highest = |rows: &[(Micros, i64, i64)]| rows.iter().map(|row| row.1).max();
        let busiest = self.moments.into_values().max_by_key(|rows| highest(rows));
        let mut rows = busiest?;
        rows.sort_by_key(|row| row.0);
        let mut ends = if self.steps.is_empty() { self.updates } else { self.steps };
        ends.sort_unstable();
        let mut ends = ends.into_iter().peekable();
        let mut levels = RunningLevel::default();
        let mut passes: Vec<ProfiledPass> = Vec::new();
        for (time, allocated, _) in &rows {
            while let Some(end) = ends.next_if(|end| end < time) {
                passes.extend((levels.rows > 0).then(|| levels.end_pass(Some(end))));
            }
            levels.set(Some(*time), level(*allocated));
        }
        passes.extend(ends.map(|end| levels.end_pass(Some(end))));
        let reserved = rows.iter().map(|row| row.2).max().unwrap_or(0);
        Some(ProfilerTimeline {
            form: Form::Trace,
            rows: levels.rows,
            times: levels.times,
            older: None,
            peak_time: levels.peak_time,
            peak: composition(&levels.peak),
            reserved: Some(Bytes(u64::try_from(reserved).unwrap_or(0))),
            at_end: composition(&levels.now),
            growth: MemoryTrend::of(&passes),
            found_by: if passes.is_empty() { PassSign::Nothing } else { PassSign::Annotations },
            confidence: if passes.is_empty() { Confidence::Low } else { Confidence::High },
            passes,
            below_zero: levels.below_zero,
            backwards: levels.backwards,
        })
    }
}

fn level(allocated: i64) -> CategoryBytes {
    let mut level = CategoryBytes::default();
    if let Some(all) = level.get_mut(Category::Unknown as usize) {
        *all = allocated;
    }
    level
}

/// The whole file: an object of which one entry counts.
struct TraceDocument<'a>(&'a mut Trace);

impl<'de> Visitor<'de> for TraceDocument<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a trace")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(key) = map.next_key::<String>()? {
            if key == "traceEvents" {
                map.next_value_seed(Events(&mut *self.0))?;
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(())
    }
}

/// The events, one after the other.
struct Events<'a>(&'a mut Trace);

impl<'de> DeserializeSeed<'de> for Events<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for Events<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of events")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        while let Some(event) = seq.next_element::<Event>()? {
            self.0.note(&event)?;
        }
        Ok(())
    }
}

#[derive(Deserialize)]
struct Event {
    #[serde(default)]
    name: Name,
    #[serde(default)]
    cat: Marked,
    #[serde(default)]
    ts: Number,
    #[serde(default)]
    dur: Number,
    #[serde(default)]
    args: Args,
}

#[derive(Default, Deserialize)]
struct Args {
    #[serde(default, rename = "Total Allocated")]
    allocated: Number,
    #[serde(default, rename = "Total Reserved")]
    reserved: Number,
    #[serde(default, rename = "Device Id")]
    device: Number,
    #[serde(default, rename = "Device Type")]
    kind: Number,
}

/// Which events count.
#[derive(Debug, Clone, Copy, Default)]
enum Name {
    Memory,
    Step,
    Update,
    #[default]
    Other,
}

impl<'de> Deserialize<'de> for Name {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Name, D::Error> {
        struct TextSeed;
        impl Visitor<'_> for TextSeed {
            type Value = Name;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("the name of an event")
            }
            fn visit_str<E: Error>(self, name: &str) -> Result<Name, E> {
                Ok(match name {
                    "[memory]" => Name::Memory,
                    _ if name.starts_with("ProfilerStep#") => Name::Step,
                    _ if name.starts_with("Optimizer.step#") => Name::Update,
                    _ => Name::Other,
                })
            }
        }
        deserializer.deserialize_str(TextSeed)
    }
}

/// Where a range was marked.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
enum Marked {
    #[serde(rename = "gpu_user_annotation")]
    OnGpu,
    #[default]
    #[serde(other)]
    Elsewhere,
}

/// A whole number; none where something else stands.
#[derive(Debug, Clone, Copy, Default)]
struct Number(Option<i64>);

impl<'de> Deserialize<'de> for Number {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Number, D::Error> {
        struct Any;
        impl<'de> Visitor<'de> for Any {
            type Value = Number;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a value")
            }
            fn visit_bool<E: Error>(self, _: bool) -> Result<Number, E> {
                Ok(Number(None))
            }
            fn visit_i64<E: Error>(self, number: i64) -> Result<Number, E> {
                Ok(Number(Some(number)))
            }
            fn visit_u64<E: Error>(self, number: u64) -> Result<Number, E> {
                Ok(Number(i64::try_from(number).ok()))
            }
            #[expect(clippy::cast_possible_truncation, reason = "such casts saturate")]
            fn visit_f64<E: Error>(self, number: f64) -> Result<Number, E> {
                Ok(Number(Some(number as i64)))
            }
            fn visit_str<E: Error>(self, _: &str) -> Result<Number, E> {
                Ok(Number(None))
            }
            fn visit_unit<E: Error>(self) -> Result<Number, E> {
                Ok(Number(None))
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Number, A::Error> {
                while seq.next_element::<IgnoredAny>()?.is_some() {}
                Ok(Number(None))
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Number, A::Error> {
                while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
                Ok(Number(None))
            }
        }
        deserializer.deserialize_any(Any)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moment(ts: f64, allocated: i64, device: i64) -> String {
        format!(
            r#"{{"ph": "i", "name": "[memory]", "ts": {ts}, "args": {{"Total Allocated": {allocated}, "Total Reserved": 4096,
                "Device Id": {device}, "Device Type": 1, "Addr": 1}}}}"#
        )
    }

    fn step(ts: f64, number: i32) -> String {
        let one = |cat: &str| {
            format!(
                r#"{{"ph": "X", "cat": "{cat}", "name": "ProfilerStep#{number}", "ts": {ts}, "dur": 10, "args": {{"shapes": [[1], 2]}}}}"#
            )
        };
        format!("{}, {}", one("user_annotation"), one("gpu_user_annotation"))
    }

    fn trace(events: &[String]) -> String {
        format!(
            r#"{{"schemaVersion": 1, "deviceProperties": [{{"id": 0}}], "traceEvents": [{}], "traceName": "t"}}"#,
            events.join(", ")
        )
    }

    #[test]
    fn moments_are_put_in_order_and_parted_by_steps() {
        let mut events = vec![moment(95.5, 100, 0), moment(1.0, 50, 0), moment(5.0, 7, 1)];
        events.extend((0..6).flat_map(|at: i32| {
            let begin = 100.0 * f64::from(at + 1);
            [
                step(begin, at),
                moment(begin + 5.0, 500 + 100 * i64::from(at), 0),
                moment(begin + 9.5, 200 + 100 * i64::from(at), 0),
            ]
        }));
        let found = read(trace(&events).as_bytes(), 1_000).unwrap();
        assert_eq!((found.form, found.rows, found.found_by), (Form::Trace, 14, PassSign::Annotations));
        assert_eq!((found.peak.total(), found.reserved), (Bytes(1000), Some(Bytes(4096))));
        assert_eq!(
            found.passes.iter().map(|pass| pass.resident.total().get()).collect::<Vec<_>>(),
            [200, 300, 400, 500, 600, 700]
        );
        assert!(
            matches!(found.growth, MemoryTrend::Grows { per_pass: Bytes(100), .. }),
            "{:?}",
            found.growth
        );
    }

    #[test]
    fn a_trace_without_a_gpus_memory_is_refused() {
        let cpu = moment(1.0, 5, 0).replace(r#""Device Type": 1"#, r#""Device Type": 0"#);
        assert_eq!(read(trace(&[cpu, step(2.0, 1)]).as_bytes(), 1_000), Err(ProfilerError::NoMemory));
        assert_eq!(read(trace(&[]).as_bytes(), 1_000), Err(ProfilerError::NoMemory));
    }

    #[test]
    fn neither_a_text_nor_rows_without_end_are_held() {
        let endless = b"{\"traceEvents\": [{\"name\": \"".chain(io::repeat(b'a'));
        assert_eq!(read(endless, 1_000), Err(ProfilerError::LongText { limit: MOST_TEXT }));
        let rows: Vec<String> = (0..300).map(|at| moment(f64::from(at), 1, 0)).collect();
        assert_eq!(read(trace(&rows).as_bytes(), 1_000), Err(ProfilerError::Limit { limit: 1_000 }));
        let deep = io::repeat(b'[');
        assert!(matches!(read(b"{\"a\": ".chain(deep), 1_000), Err(ProfilerError::Damaged { .. })));
    }
}
