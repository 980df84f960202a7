//! Writing: what is written reads back the same, slices add up, and without names nothing of the user is left.

use std::collections::HashSet;
use std::fs;
use std::path::Path;
use std::process::Command;

use memlint::edit::{anonymize, slice};
use memlint::engine::{Input, check};
use memlint::frames::Frames;
use memlint::pickle::PickleLimits;
use memlint::program::Program;
use memlint::replay::Replay;
use memlint::snapshot::{Action, Annotation, BlockState, DeviceTrace, Gap, Particulars, Snapshot};
use memlint::timeline::Timeline;
use memlint::unit::{Bytes, Index, StackId, StringId};

use crate::case::{self, Case};

/// A sample of the corpus: every seventh recording, and some with a trait of their own: expandable segments, streams, a
/// trace that has lost its beginning, driver calls in every iteration, a profiler's annotations, compiled code.
fn sample() -> Vec<&'static Case> {
    const TRAITS: [&str; 6] = [
        "frag-curriculum-fixed",
        "xstream-record-bug",
        "trunc-ring-bug",
        "thrash-empty-cache-bug",
        "clean-profiler-lstm",
        "clean-compile-warmup",
    ];
    let all = case::all().iter().enumerate();
    all.filter(|(at, case)| at % 7 == 0 || TRAITS.contains(&case.name.as_str()))
        .map(|(_, case)| case)
        .collect()
}

fn written(snapshot: &Snapshot) -> Vec<u8> {
    let mut pickle = Vec::new();
    snapshot.write(&mut pickle).unwrap();
    pickle
}

fn read(pickle: &[u8]) -> Snapshot {
    Snapshot::read(pickle, &PickleLimits::default()).unwrap()
}

/// Compares two snapshots whose ids may differ.
struct Same<'a> {
    one: &'a Snapshot,
    other: &'a Snapshot,
    stacks: HashSet<(StackId, StackId)>,
}

impl Same<'_> {
    fn stacks(&mut self, one: Option<StackId>, other: Option<StackId>) {
        assert_eq!(one.is_some(), other.is_some());
        let Some(pair) = one.zip(other).filter(|pair| self.stacks.insert(*pair)) else { return };
        let frames = |snapshot: &Snapshot, stack| -> Vec<(String, String, u32)> {
            let frames = snapshot.stacks.get(stack).iter().filter_map(|&frame| snapshot.stacks.frame(frame));
            let text = |id| snapshot.text(id).to_owned();
            frames.map(|frame| (text(frame.name), text(frame.file), frame.line)).collect()
        };
        assert_eq!(frames(self.one, pair.0), frames(self.other, pair.1));
    }

    fn traces(&mut self, one: &DeviceTrace, other: &DeviceTrace) {
        assert_eq!(one.events.len(), other.events.len());
        let (first, second) = (self.one, self.other);
        for (a, b) in one.events.iter().zip(&other.events) {
            self.stacks(a.stack, b.stack);
            assert_eq!((a.time, a.address, a.size, a.action), (b.time, b.address, b.size, b.action));
            assert_eq!(a.compiled, b.compiled);
            assert_eq!(first.stream_pointer(a.stream), second.stream_pointer(b.stream));
            assert_eq!(a.metadata.map(|id| first.text(id)), b.metadata.map(|id| second.text(id)));
            let (mine, theirs) = (first.particulars_of(a), second.particulars_of(b));
            assert_eq!(
                (mine.pool, mine.has_metadata, mine.timed),
                (theirs.pool, theirs.has_metadata, theirs.timed)
            );
            let (mine, theirs) = (mine.compile_context, theirs.compile_context);
            assert_eq!(mine.map(|id| first.text(id)), theirs.map(|id| second.text(id)));
        }
    }

    fn segments(&mut self) {
        assert_eq!(self.one.segments.len(), self.other.segments.len());
        for (a, b) in self.one.segments.iter().zip(&self.other.segments) {
            self.stacks(a.stack, b.stack);
            assert_eq!((a.device, a.address, a.total_size), (b.device, b.address, b.total_size));
            assert_eq!((a.pool, a.small_pool, a.expandable), (b.pool, b.small_pool, b.expandable));
            assert_eq!(self.one.stream_pointer(a.stream), self.other.stream_pointer(b.stream));
            assert_eq!(a.blocks.len(), b.blocks.len());
            for (a, b) in a.blocks.iter().zip(&b.blocks) {
                self.stacks(a.stack, b.stack);
                assert_eq!(
                    (a.address, a.size, a.requested, a.state),
                    (b.address, b.size, b.requested, b.state)
                );
            }
        }
    }
}

#[test]
fn what_is_written_reads_back_the_same() {
    for case in sample() {
        let snapshot = case.snapshot();
        let pickle = written(&snapshot);
        let again = read(&pickle);
        let mut same = Same { one: &snapshot, other: &again, stacks: HashSet::new() };
        assert_eq!(snapshot.devices.len(), again.devices.len(), "{}", case.name);
        for (one, other) in snapshot.devices.iter().zip(&again.devices) {
            same.traces(one, other);
        }
        same.segments();
        let annotations = |snapshot: &Snapshot| -> Vec<_> {
            let all = snapshot.annotations.iter();
            all.map(|one| (snapshot.text(one.name).to_owned(), one.start, one.time, one.device)).collect()
        };
        assert_eq!(annotations(&snapshot), annotations(&again), "{}", case.name);
        assert_eq!(snapshot.settings, again.settings, "{}", case.name);
        assert_eq!(snapshot.gaps, again.gaps, "{}", case.name);
        assert!(written(&again) == pickle, "{}: writing again gives other bytes", case.name);
    }
}

/// Requested and reserved bytes of the final segments.
fn held(snapshot: &Snapshot, device: usize) -> (Bytes, Bytes) {
    let (mut requested, mut reserved) = (Bytes::ZERO, Bytes::ZERO);
    for segment in snapshot.segments_of(device) {
        reserved += segment.total_size;
        let active = segment.blocks.iter().filter(|block| block.state != BlockState::Inactive);
        requested += active.map(|block| block.requested).sum::<Bytes>();
    }
    (requested, reserved)
}

/// Requested and reserved bytes after some events, summed from the first on.
fn sums(timeline: &Timeline, trace: &DeviceTrace, events: usize) -> (Bytes, Bytes) {
    let (mut requested, mut reserved) = (timeline.requested_at_start, timeline.reserved_at_start);
    for event in &trace.events[..events] {
        match event.action {
            Action::Alloc => requested += event.size,
            Action::FreeCompleted => requested -= event.size,
            Action::SegmentAlloc | Action::SegmentMap => reserved += event.size,
            Action::SegmentFree | Action::SegmentUnmap => reserved -= event.size,
            _ => {}
        }
    }
    (requested, reserved)
}

#[test]
fn a_slice_adds_up_and_ends_where_the_original_stood() {
    let mut sliced = 0;
    for case in sample() {
        let (whole, name) = (case.snapshot(), &case.name);
        let devices: Vec<_> = whole.active_devices().map(|(device, _)| device).collect();
        let [device] = devices[..] else { panic!("{name}: the corpus has one device a recording") };
        let timeline = Timeline::of(&whole, device);
        let program = Program::of(&whole, &timeline, &Frames::of(&whole));
        if program.iterations.len() < 3 {
            assert!(slice(whole, "2..3".parse().unwrap(), Vec::new()).is_err(), "{name}");
            continue;
        }
        let (start, end) = (program.iterations[1].start.position(), program.iterations[2].end.position());
        let trace = &whole.devices[device.position()];
        let expected = sums(&timeline, trace, end);
        let sizes = Replay::of(&whole, &timeline).block_sizes;

        let part = read(&written(&slice(case.snapshot(), "2..3".parse().unwrap(), Vec::new()).unwrap()));
        let after = Timeline::of(&part, device);
        assert_eq!(part.devices[device.position()].events.len(), end - start, "{name}");
        assert_eq!(held(&part, device.position()), expected, "{name}: the segments");
        assert_eq!((after.requested_at_end, after.reserved_at_end), expected, "{name}: the sums");
        let before = sums(&timeline, trace, start);
        assert_eq!((after.requested_at_start, after.reserved_at_start), before, "{name}: the start");
        assert!(part.gaps.iter().all(|gap| *gap == Gap::NoStacks), "{name}: {:?}", part.gaps);
        assert_eq!(after.agreement.lost_frees, 0, "{name}");
        // A slice of a recording that lost its beginning has lost it, too, and says so.
        let lost = timeline.agreement.blocks_evicted > 0;
        assert_eq!(
            (after.agreement.blocks_evicted > 0, part.excerpt.as_ref().unwrap().lost),
            (lost, lost),
            "{name}"
        );
        assert_eq!(after.agreement.allocations_without_block, 0, "{name}");
        // The allocator can be replayed from there: every block born in the slice is as large as it was.
        let replayed = Replay::of(&part, &after).block_sizes;
        for (id, one) in after.iter() {
            let Some(born) = one.alloc else { continue };
            let then = timeline.allocation_of[born.position() + start].unwrap();
            assert_eq!(replayed[id.position()], sizes[then.position()], "{name}: a block's size");
        }
        sliced += 1;
    }
    assert!(sliced >= 10, "only {sliced} recordings were sliced");
}

#[test]
fn a_slice_to_the_end_has_the_segments_of_the_original() {
    for case in sample().into_iter().filter(|case| case.is_whole()) {
        let whole = case.snapshot();
        let (device, trace) = whole.active_devices().next().unwrap();
        let program = Program::of(&whole, &Timeline::of(&whole, device), &Frames::of(&whole));
        let last = program.iterations.last().map(|iteration| iteration.end.position());
        if last != Some(trace.events.len()) {
            continue;
        }
        let part = slice(case.snapshot(), "2..".parse().unwrap(), Vec::new()).unwrap();
        let layout = |snapshot: &Snapshot| -> Vec<_> {
            let blocks = |segment: &memlint::snapshot::Segment| -> Vec<_> {
                segment.blocks.iter().map(|block| (block.address, block.size, block.state)).collect()
            };
            snapshot.segments.iter().map(|one| (one.address, one.total_size, blocks(one))).collect()
        };
        assert_eq!(layout(&part), layout(&whole), "{}", case.name);
    }
}

/// What the user of the corpus wrote: folders, file names, functions. Names that are in public code, too, do not count.
fn user_names(snapshot: &Snapshot) -> HashSet<String> {
    // The format's own words are public, and the methods that PyTorch and Lightning call by name.
    let mut own = HashSet::new();
    let mut public =
        "user_metadata external_annotations garbage_collection_threshold forward zero_grad training_step validation_step <module> <lambda>"
            .to_owned();
    for id in snapshot.stacks.frame_ids() {
        let Some(frame) = snapshot.stacks.frame(id) else { continue };
        let (name, file) = (snapshot.text(frame.name), snapshot.text(frame.file));
        if file.starts_with("/home/") && !file.contains("-packages/") {
            own.insert(name.to_owned());
            own.insert(file.to_owned());
            own.extend(file.split(['/', '.']).map(str::to_owned));
        } else {
            public.push_str(name);
            public.push_str(file);
        }
    }
    own.retain(|name| name.len() > 3 && !public.contains(name.as_str()));
    own.retain(|name| !(name.starts_with("__") && name.ends_with("__")) && name != "home");
    // Names that Python gives: `<listcomp>`.
    own.retain(|name| !(name.starts_with('<') && name.ends_with('>')));
    own
}

#[test]
fn without_names_the_findings_are_the_same_and_the_names_are_gone() {
    let (mut names_seen, mut found) = (0, 0);
    for case in sample() {
        let snapshot = case.snapshot();
        let names = user_names(&snapshot);
        let mut secrets: Vec<&[u8]> = names.iter().map(String::as_bytes).collect();
        let frames = (snapshot.stacks.frame_count(), snapshot.stacks.len());
        let pickle = written(&anonymize(case.snapshot()));
        secrets.sort_unstable();
        for secret in secrets {
            let there = pickle.windows(secret.len()).any(|bytes| bytes == secret);
            assert!(!there, "{}: `{}` is still there", case.name, String::from_utf8_lossy(secret));
            names_seen += 1;
        }
        let anonymous = read(&pickle);
        assert_eq!((anonymous.stacks.frame_count(), anonymous.stacks.len()), frames, "{}", case.name);
        let findings = |snapshot: Snapshot| -> Vec<String> {
            let report = check(vec![Input::of("it".to_owned(), snapshot)]);
            let line = |one: &memlint::finding::Finding| one.location.as_ref().map(|place| place.line);
            let findings = report.findings.iter();
            let mut all: Vec<String> = findings
                .map(|one| format!("{} {:?} {:?} {:?}", one.rule, one.severity, one.impact, line(one)))
                .collect();
            all.sort();
            all
        };
        let before = findings(snapshot);
        found += before.len();
        assert_eq!(findings(anonymous), before, "{}", case.name);
    }
    assert!(names_seen >= 60 && found >= 10, "{names_seen} names and {found} findings were compared");
}

/// Plants a word wherever a program or a PyTorch of its own can put text.
fn planted(mut snapshot: Snapshot, word: &str) -> Snapshot {
    let mut text = |text: &str| snapshot.strings.intern(&text.replace('@', word)).unwrap();
    let ranges = [
        "@",
        "FSDP::@",
        "FSDP::all_gather (@.layer)",
        "FullyShardedDataParallel.@",
        "Optimizer.step#@.step",
        "## @ ##",
    ];
    let ranges: Vec<StringId> = ranges.iter().map(|name| text(name)).collect();
    let (metadata, internal, action, context) =
        (text("{\"run\":\"@\"}"), text("@"), text("segment_@"), text("Torch-Compiled Region: @"));
    let first = snapshot.annotations[0];
    snapshot.annotations.extend(ranges.iter().map(|&name| Annotation { name, ..first }));
    snapshot.settings.conf = Some(format!("expandable_segments:False,{word}:1,backend:{word}"));
    snapshot.particulars.push(Particulars {
        action: Some(action),
        compile_context: Some(context),
        internal_metadata: Some(internal),
        ..snapshot.particulars[0]
    });
    let particulars = u16::try_from(snapshot.particulars.len() - 1).unwrap();
    let event = &mut snapshot.devices[0].events[0];
    (event.action, event.metadata, event.particulars) = (Action::Other, Some(metadata), particulars);
    snapshot
}

#[test]
fn without_names_no_text_of_the_users_is_left_anywhere() {
    let case = case::all().iter().find(|case| case.name == "mzg-gan-disc-bug").unwrap();
    let planted = planted(case.snapshot(), "acmesecret");
    let holds = |pickle: &[u8]| pickle.windows(10).filter(|bytes| bytes == b"acmesecret").count();
    assert!(holds(&written(&planted)) >= 10, "it is planted");
    assert_eq!(holds(&written(&anonymize(planted))), 0);
}

/// Counts what `pickle.load` finds: events, their frames, blocks, bytes reserved, annotations.
const COUNT: &str = "
import pickle, sys
for name in sys.argv[1:]:
    with open(name, 'rb') as file:
        top = pickle.load(file)
    events = [event for trace in top['device_traces'] for event in trace]
    blocks = [block for segment in top['segments'] for block in segment['blocks']]
    frames = [frame for event in events for frame in event.get('frames', [])]
    assert all(type(frame['name']) is str and frame['line'] >= 0 for frame in frames)
    assert all(block['state'] in ('active_allocated', 'active_pending_free', 'inactive') for block in blocks)
    assert all(type(segment['segment_pool_id']) is tuple for segment in top['segments'])
    assert top['allocator_settings']['max_split_size'] == -1
    print(len(events), len(frames), len(blocks), sum(s['total_size'] for s in top['segments']),
          len(top['external_annotations']))
";

fn counted(snapshot: &Snapshot) -> String {
    let events = snapshot.devices.iter().flat_map(|trace| &trace.events);
    let frames: usize =
        events.clone().filter_map(|event| event.stack).map(|id| snapshot.stacks.get(id).len()).sum();
    let blocks: usize = snapshot.segments.iter().map(|segment| segment.blocks.len()).sum();
    let reserved: Bytes = snapshot.segments.iter().map(|segment| segment.total_size).sum();
    format!("{} {frames} {blocks} {} {}\n", events.count(), reserved.get(), snapshot.annotations.len())
}

#[test]
#[expect(clippy::print_stderr, reason = "says why nothing was tested")]
fn cpython_loads_what_is_written() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let case = case::all().iter().find(|case| case.name == "mzg-gan-disc-bug").unwrap();
    let sliced = slice(case.snapshot(), "2..3".parse().unwrap(), Vec::new()).unwrap();
    let anonymous = anonymize(case.snapshot());
    let (one, other) = (folder.join("sliced.pickle"), folder.join("anonymous.pickle"));
    fs::write(&one, written(&sliced)).unwrap();
    fs::write(&other, written(&anonymous)).unwrap();
    let Ok(output) = Command::new("python3").args(["-c", COUNT]).args([&one, &other]).output() else {
        eprintln!("skipped: there is no python3 here to load the files with");
        return;
    };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let expected = counted(&sliced) + &counted(&anonymous);
    assert_eq!(String::from_utf8_lossy(&output.stdout), expected);
}
