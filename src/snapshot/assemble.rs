//! From the folded tables to the [`Snapshot`]: which run is which device's trace, which blocks are whose.

use std::collections::BTreeMap;
use std::io::Read;

use super::collections::Collections;
use super::ended::Ended;
use super::excerpt::Excerpt;
use super::listed::{Rows, overlap, take};
use super::modelled::Modelled;
use super::records::{Records, RowRun, SegmentRow, table};
use super::{
    AllocatorSettings, Annotation, Block, DeviceTrace, Event, Gap, Segment, Snapshot, SnapshotError,
};
use super::{gaps, profile, words};
use crate::pickle::{self, Heap, PickleLimits, TableRow, Value};
use crate::unit::{Bytes, StringId, StringInterner};

/// More devices than one process can have; a file that lists more is hostile.
const MOST_DEVICES: usize = 1024;
/// The ordinal that PyTorch gives to pinned host memory.
const HOST: i32 = -1;

pub(super) fn read(source: impl Read, limits: &PickleLimits) -> Result<Snapshot, SnapshotError> {
    let mut records = Records::default();
    let loaded = pickle::load(source, words::interner(), &mut records, limits);
    let loaded = loaded.map_err(|error| match records.overfull() {
        Some(what) => SnapshotError::TooMany { what, limit: TableRow::MOST },
        None => SnapshotError::Pickle(error),
    })?;
    let parts = Parts::of(loaded.top, &loaded.heap, &loaded.strings, &records)?;
    parts.check_shapes()?;
    let traces = parts.traces()?;
    let blocks = parts.block_runs()?;
    let homes = parts.homes();
    let host_events = parts.host_trace.map_or(0, |trace| parts.count(trace));
    let annotations = parts.annotations();
    let settings = parts.settings();
    let has_traces = parts.traces.is_some();
    let Ours { excerpt, modelled, ended, collections } = parts.ours;
    let mut known = Vec::new();
    if !has_traces {
        known.push(Gap::NoTraces);
    }
    let mut unknown = parts.unknown_keys;
    for (&key, &count) in &records.unknown_keys {
        *unknown.entry(key).or_insert(0) += count;
    }
    gaps::list_unknown(&mut known, &loaded.strings, unknown, Gap::UnknownKeys);
    gaps::list_unknown(&mut known, &loaded.strings, records.unknown_actions, Gap::UnknownActions);
    gaps::list_unknown(&mut known, &loaded.strings, records.unknown_states, Gap::UnknownStates);
    let categorised = records.categorised;
    let segments = fill_segments(records.segments, &records.blocks, &blocks, &homes);
    known.extend(gaps::host_memory(&segments, host_events));
    let devices = distribute(records.events, &traces);
    let mut snapshot = Snapshot {
        strings: loaded.strings,
        stacks: records.stacks,
        devices,
        segments,
        annotations: if annotations.is_empty() { records.inline_annotations } else { annotations },
        settings,
        streams: records.stream_pointers,
        particulars: records.particulars,
        excerpt,
        modelled,
        ended,
        collections,
        gaps: known,
    };
    if categorised {
        profile::settle(&mut snapshot);
    }
    add_devices_of_segments(&mut snapshot);
    gaps::find(&mut snapshot);
    Ok(snapshot)
}

/// The parts of the top-level object, found but not yet taken apart.
struct Parts<'a> {
    heap: &'a Heap,
    records: &'a Records,
    strings: &'a StringInterner,
    segments: Option<Value>,
    traces: Option<Value>,
    annotations: Option<Value>,
    settings: Option<Value>,
    host_segments: Option<Value>,
    host_trace: Option<Value>,
    ours: Ours,
    unknown_keys: BTreeMap<StringId, usize>,
}

/// What memlint itself wrote into the file.
#[derive(Default)]
struct Ours {
    excerpt: Option<Excerpt>,
    modelled: Option<Modelled>,
    ended: Option<Ended>,
    collections: Option<Collections>,
}

impl Ours {
    /// Takes the text of a key; whether the key is memlint's, and the text as it should be.
    fn read(&mut self, key: &str, text: &str) -> bool {
        match key {
            "memlint_slice" => put(&mut self.excerpt, Excerpt::read(text)),
            "memlint_record" => put(&mut self.modelled, Modelled::read(text)),
            "memlint_end" => put(&mut self.ended, Ended::read(text)),
            "memlint_collections" => put(&mut self.collections, Collections::read(text)),
            _ => false,
        }
    }
}

fn put<T>(place: &mut Option<T>, read: Option<T>) -> bool {
    let is_read = read.is_some();
    if is_read {
        *place = read;
    }
    is_read
}

/// The list that a segment stands in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SegmentList {
    Device,
    Host,
    /// Below a key that memlint does not know.
    Nowhere,
}

impl<'a> Parts<'a> {
    fn of(
        top: Value,
        heap: &'a Heap,
        strings: &'a StringInterner,
        records: &'a Records,
    ) -> Result<Parts<'a>, SnapshotError> {
        let mut parts = Parts {
            heap,
            records,
            strings,
            segments: None,
            traces: None,
            annotations: None,
            settings: None,
            host_segments: None,
            host_trace: None,
            ours: Ours::default(),
            unknown_keys: BTreeMap::new(),
        };
        let Some(items) = heap.dict(top) else {
            // `torch.cuda.memory_snapshot()` returns the bare list of segments.
            let bare = parts.rows(top, table::SEGMENT).is_some() && heap.list(top) != Some(&[]);
            return if bare {
                parts.segments = Some(top);
                Ok(parts)
            } else {
                Err(SnapshotError::NotASnapshot { found: describe(top, heap, records) })
            };
        };
        for pair in items.as_chunks::<2>().0 {
            let [Value::Text(key), value] = *pair else { continue };
            match strings.get(key) {
                "segments" => parts.segments = Some(value),
                "device_traces" | "traces" => parts.traces = Some(value),
                "external_annotations" => parts.annotations = Some(value),
                "allocator_settings" => parts.settings = Some(value),
                "host_segments" => parts.host_segments = Some(value),
                "host_traces" => parts.host_trace = Some(value),
                name => {
                    let is_ours =
                        matches!(value, Value::Text(text) if parts.ours.read(name, strings.get(text)));
                    if !is_ours {
                        *parts.unknown_keys.entry(key).or_insert(0) += 1;
                    }
                }
            }
        }
        if parts.segments.is_none() && parts.traces.is_none() {
            return Err(SnapshotError::NotASnapshot { found: describe(top, heap, records) });
        }
        Ok(parts)
    }

    fn check_shapes(&self) -> Result<(), SnapshotError> {
        let wanted = [
            (self.segments, table::SEGMENT, "segments", "a list of segments"),
            (self.annotations, table::ANNOTATION, "external_annotations", "a list of annotations"),
            (self.host_segments, table::SEGMENT, "host_segments", "a list of segments"),
            (self.host_trace, table::EVENT, "host_traces", "a list of events"),
        ];
        for (value, table, path, wanted) in wanted {
            if value.is_some_and(|value| self.rows(value, table).is_none()) {
                return Err(SnapshotError::Shape { path: path.to_owned(), found: "something else", wanted });
            }
        }
        Ok(())
    }

    /// The rows of a list of rows of one table; `None` where it is something else.
    fn rows(&self, value: Value, table: u8) -> Option<Rows> {
        if let Some(row) = self.heap.row(value) {
            let run: &RowRun =
                (row.table() == table::RUN).then(|| self.records.runs.get(row.index())).flatten()?;
            return (run.table == table).then_some(Rows::Run { first: run.first, length: run.length });
        }
        let items = self.heap.list(value)?;
        let rows: Option<Vec<usize>> = items
            .iter()
            .map(|&item| self.heap.row(item).filter(|row| row.table() == table).map(TableRow::index))
            .collect();
        rows.map(Rows::Scattered)
    }

    /// How many events a trace has.
    fn count(&self, trace: Value) -> usize {
        self.rows(trace, table::EVENT).map_or(0, |rows| rows.len())
    }

    /// Where each segment of the segment table belongs.
    fn homes(&self) -> Vec<SegmentList> {
        let mut homes = vec![SegmentList::Nowhere; self.records.segments.len()];
        for (list, home) in [(self.segments, SegmentList::Device), (self.host_segments, SegmentList::Host)] {
            let places: Vec<usize> = match list.and_then(|list| self.rows(list, table::SEGMENT)) {
                Some(Rows::Run { first, length }) => (first..first + length).collect(),
                Some(Rows::Scattered(rows)) => rows,
                None => Vec::new(),
            };
            for place in places {
                if let Some(known) = homes.get_mut(place) {
                    *known = home;
                }
            }
        }
        homes
    }

    /// The rows of each device's trace.
    fn traces(&self) -> Result<Vec<Rows>, SnapshotError> {
        let Some(value) = self.traces else { return Ok(Vec::new()) };
        let shape = |path: String, found, wanted| SnapshotError::Shape { path, found, wanted };
        let Some(list) = self.heap.list(value).filter(|list| list.len() <= MOST_DEVICES) else {
            return Err(shape(
                "device_traces".to_owned(),
                "something else",
                "a list with one trace a device",
            ));
        };
        let mut traces = Vec::new();
        for (device, &trace) in list.iter().enumerate() {
            let rows = self.rows(trace, table::EVENT).ok_or_else(|| {
                shape(format!("device_traces[{device}]"), "something else", "a list of events")
            })?;
            traces.push(rows);
        }
        if overlap(&traces) {
            return Err(shape(
                "device_traces".to_owned(),
                "a list that holds an event twice",
                "one trace a device",
            ));
        }
        Ok(traces)
    }

    /// The rows of each segment's blocks, in the order of the segment table.
    fn block_runs(&self) -> Result<Vec<Rows>, SnapshotError> {
        let mut all = Vec::new();
        for (at, segment) in self.records.segments.iter().enumerate() {
            let rows = match segment.blocks {
                Some(blocks) => self.rows(blocks, table::BLOCK).ok_or_else(|| SnapshotError::Shape {
                    path: format!("segments[{at}].blocks"),
                    found: "something else",
                    wanted: "a list of blocks",
                })?,
                None => Rows::Scattered(Vec::new()),
            };
            all.push(rows);
        }
        if overlap(&all) {
            return Err(SnapshotError::Shape {
                path: "segments".to_owned(),
                found: "a list in which segments share blocks",
                wanted: "segments with blocks of their own",
            });
        }
        Ok(all)
    }

    fn annotations(&self) -> Vec<Annotation> {
        let rows = self.annotations.and_then(|value| self.rows(value, table::ANNOTATION));
        rows.map_or_else(Vec::new, |rows| take(&self.records.annotations, &rows))
    }

    fn settings(&self) -> AllocatorSettings {
        let mut settings = AllocatorSettings::default();
        let items = self.settings.and_then(|value| self.heap.dict(value)).unwrap_or_default();
        for pair in items.as_chunks::<2>().0 {
            let [Value::Text(key), value] = *pair else { continue };
            match (self.strings.get(key), value) {
                // CUDA and ROCm write the name with CUDA; other backends put theirs in its place.
                (key, Value::Text(conf)) if key.starts_with("PYTORCH_") && key.ends_with("ALLOC_CONF") => {
                    settings.conf = Some(self.strings.get(conf).to_owned());
                }
                ("max_split_size", Value::Int(size)) => {
                    settings.max_split_size = u64::try_from(size).ok().map(Bytes);
                }
                ("garbage_collection_threshold", Value::Float(share)) => {
                    settings.garbage_collection_threshold = share;
                }
                ("expandable_segments", Value::Bool(on)) => settings.expandable_segments = on,
                ("roundup_power2_divisions", divisions) => self.divisions(divisions, &mut settings),
                _ => {}
            }
        }
        settings
    }

    /// `{"1": 0, "2": 0, "4": 0, ..., "32768": 0}`: the key is the start of the interval in MiB.
    fn divisions(&self, value: Value, settings: &mut AllocatorSettings) {
        for pair in self.heap.dict(value).unwrap_or_default().as_chunks::<2>().0 {
            let [Value::Text(key), Value::Int(count)] = *pair else { continue };
            let Ok(start) = self.strings.get(key).parse::<u32>() else { continue };
            let place = settings.roundup_power2_divisions.get_mut(start.max(1).ilog2() as usize);
            if let (Some(place), Ok(count)) = (place, u32::try_from(count)) {
                *place = count;
            }
        }
    }
}

/// What a pickle holds instead of a snapshot, in words.
fn describe(value: Value, heap: &Heap, records: &Records) -> String {
    match value {
        Value::None => "None".to_owned(),
        Value::Bool(_) => "a truth value".to_owned(),
        Value::Int(_) | Value::Unsigned(_) | Value::Float(_) => "a number".to_owned(),
        Value::Text(_) => "text".to_owned(),
        Value::Opaque => "bytes".to_owned(),
        Value::TypeTag | Value::Row(_) => "something else".to_owned(),
        Value::Container(_) => {
            if let Some(items) = heap.dict(value) {
                return if items.is_empty() {
                    "an empty dict"
                } else {
                    "a dict without `segments` and `device_traces`"
                }
                .to_owned();
            }
            if heap.list(value).is_some_and(<[Value]>::is_empty) {
                return "an empty list".to_owned();
            }
            match heap.row(value).and_then(|row| records.runs.get(row.index())) {
                Some(run) if run.table == table::EVENT => "the events of one device only".to_owned(),
                _ if heap.tuple(value).is_some() => "a tuple".to_owned(),
                _ if heap.row(value).is_some() => "a part of a snapshot".to_owned(),
                _ => "a list".to_owned(),
            }
        }
    }
}

/// Gives each device its events; the one device of most files gets the table itself.
fn distribute(events: Vec<Event>, traces: &[Rows]) -> Vec<DeviceTrace> {
    let whole = Rows::Run { first: 0, length: events.len() };
    if traces.contains(&whole) && !events.is_empty() {
        let mut events = Some(events);
        return traces
            .iter()
            .map(|rows| DeviceTrace {
                events: if *rows == whole { events.take().unwrap_or_default() } else { Vec::new() },
            })
            .collect();
    }
    traces.iter().map(|rows| DeviceTrace { events: take(&events, rows) }).collect()
}

fn fill_segments(
    rows: Vec<SegmentRow>,
    table: &[Block],
    runs: &[Rows],
    homes: &[SegmentList],
) -> Vec<Segment> {
    let mut segments = Vec::with_capacity(rows.len());
    for ((row, blocks), home) in rows.into_iter().zip(runs).zip(homes) {
        let mut segment = row.segment;
        match home {
            SegmentList::Device => {}
            SegmentList::Host => segment.device = HOST,
            SegmentList::Nowhere => continue,
        }
        segment.blocks = take(table, blocks);
        locate_blocks(&mut segment);
        segments.push(segment);
    }
    segments.sort_by_key(|segment| (segment.device, segment.address));
    segments
}

/// Before PyTorch 2.1 blocks had no address: they follow one another from the segment's start.
fn locate_blocks(segment: &mut Segment) {
    let mut next = segment.address;
    for block in &mut segment.blocks {
        if block.address == 0 {
            block.address = next;
        }
        next = block.address.saturating_add(block.size.get());
    }
}

/// Gives a device that holds segments an empty trace where the file has none for it.
fn add_devices_of_segments(snapshot: &mut Snapshot) {
    let ordinals = snapshot.segments.iter().filter_map(|segment| usize::try_from(segment.device).ok());
    let most = ordinals.filter(|&ordinal| ordinal < MOST_DEVICES).max().map_or(0, |ordinal| ordinal + 1);
    let length = snapshot.devices.len().max(most);
    snapshot.devices.resize_with(length, DeviceTrace::default);
}
