//! The same program's recording as another run would give it.

use std::path::Path;

use memlint::edit::slice;
use memlint::engine::Input;
use memlint::snapshot::{Frame, Snapshot, Stacks};
use memlint::unit::{Bytes, FrameId, Index, Micros, StackId};

/// A frame in words.
#[derive(Clone)]
pub(crate) struct Words {
    pub(crate) name: String,
    pub(crate) file: String,
    pub(crate) line: u32,
}

impl Words {
    /// Whether it is the program's own: the corpus has nothing else under this folder.
    pub(crate) fn is_user(&self) -> bool {
        self.file.ends_with("train.py")
    }

    /// Whether it is Python's, made code and frozen modules included: the corpus has no other endings.
    pub(crate) fn is_python(&self) -> bool {
        self.file.starts_with('<') || Path::new(&self.file).extension().is_some_and(|ending| ending == "py")
    }
}

/// A snapshot whose stacks were rewritten, each one as a whole, innermost frame first.
pub(crate) fn with_stacks(mut snapshot: Snapshot, rewrite: impl Fn(Vec<Words>) -> Vec<Words>) -> Snapshot {
    let old = std::mem::take(&mut snapshot.stacks);
    let mut stacks = Stacks::default();
    let mut moved: Vec<StackId> = Vec::new();
    for id in old.ids() {
        let words = old.get(id).iter().filter_map(|frame| old.frame(*frame)).map(|frame| Words {
            name: snapshot.text(frame.name).to_owned(),
            file: snapshot.text(frame.file).to_owned(),
            line: frame.line,
        });
        let words = rewrite(words.collect());
        let frames: Vec<FrameId> = words
            .into_iter()
            .map(|Words { name, file, line }| {
                let name = snapshot.strings.intern(&name).unwrap();
                let file = snapshot.strings.intern(&file).unwrap();
                stacks.intern_frame(Frame { name, file, line }).unwrap()
            })
            .collect();
        moved.push(stacks.intern(&frames).unwrap());
    }
    snapshot.stacks = stacks;
    let there = |stack: Option<StackId>| stack.map(|stack| moved[stack.position()]);
    for event in snapshot.devices.iter_mut().flat_map(|trace| &mut trace.events) {
        event.stack = there(event.stack);
    }
    for segment in &mut snapshot.segments {
        segment.stack = there(segment.stack);
        for block in &mut segment.blocks {
            block.stack = there(block.stack);
        }
    }
    snapshot
}

/// Somebody wrote 40 lines at the top of the program, and 3 more in its middle.
pub(crate) fn edited_elsewhere(snapshot: Snapshot) -> Snapshot {
    with_stacks(snapshot, |mut stack| {
        for frame in stack.iter_mut().filter(|frame| frame.is_user()) {
            frame.line += if frame.line > 20 { 43 } else { 40 };
        }
        stack
    })
}

/// The job ran from another folder of another machine.
pub(crate) fn elsewhere(snapshot: Snapshot) -> Snapshot {
    with_stacks(snapshot, |mut stack| {
        for frame in stack.iter_mut().filter(|frame| frame.is_user()) {
            "/mnt/cluster/job-4711/workspace/train.py".clone_into(&mut frame.file);
        }
        stack
    })
}

/// A PyTorch that has moved its lines and calls modules with one frame less, and with another one around.
pub(crate) fn newer_pytorch(snapshot: Snapshot) -> Snapshot {
    with_stacks(snapshot, |stack| {
        let mut out = Vec::new();
        for mut frame in stack {
            let library = frame.is_python() && !frame.is_user();
            if library && frame.name == "_wrapped_call_impl" {
                continue;
            }
            if library {
                frame.line += 1000;
            }
            let called = library && frame.name == "_call_impl";
            out.push(frame.clone());
            if called {
                out.push(Words { name: "_call_with_guard".to_owned(), line: 77, ..frame });
            }
        }
        out
    })
}

/// Other addresses, another day.
pub(crate) fn at_another_time(snapshot: Snapshot) -> Snapshot {
    const LATER: i64 = 86_400_000_000;
    at_times(farther(snapshot, 0x40_0000_0000), |time| time + LATER)
}

/// The driver gave out other addresses, so many bytes farther.
pub(crate) fn farther(mut snapshot: Snapshot, bytes: u64) -> Snapshot {
    for event in snapshot.devices.iter_mut().flat_map(|trace| &mut trace.events) {
        if event.action != memlint::snapshot::Action::OutOfMemory {
            event.address += bytes;
        }
    }
    for segment in &mut snapshot.segments {
        segment.address += bytes;
        for block in &mut segment.blocks {
            block.address += bytes;
        }
    }
    snapshot
}

/// Another clock, in microseconds; what has no time gets none.
pub(crate) fn at_times(mut snapshot: Snapshot, clock: impl Fn(i64) -> i64) -> Snapshot {
    let events = snapshot.devices.iter_mut().flat_map(|trace| &mut trace.events).map(|event| &mut event.time);
    let annotations = snapshot.annotations.iter_mut().map(|annotation| &mut annotation.time);
    for time in events.chain(annotations).filter(|time| time.0 > 0) {
        *time = Micros(clock(time.0));
    }
    snapshot
}

/// The innermost function of the program's own has another name, wherever it is called.
pub(crate) fn in_another_function(snapshot: Snapshot) -> Snapshot {
    with_stacks(snapshot, |mut stack| {
        if let Some(frame) = stack.iter_mut().find(|frame| frame.is_user()) {
            frame.name.push_str("_of_another_model");
        }
        stack
    })
}

/// Every tensor is so many times as large.
pub(crate) fn larger(mut snapshot: Snapshot, times: u64) -> Snapshot {
    for event in snapshot.devices.iter_mut().flat_map(|trace| &mut trace.events) {
        event.size = Bytes(event.size.get() * times);
    }
    for event in snapshot.devices.iter_mut().flat_map(|trace| &mut trace.events) {
        event.address *= times;
    }
    for segment in &mut snapshot.segments {
        segment.address *= times;
        segment.total_size = segment.total_size.times(times);
        for block in &mut segment.blocks {
            block.address *= times;
            block.size = block.size.times(times);
            block.requested = block.requested.times(times);
        }
    }
    snapshot
}

/// The first three quarters of the iterations.
pub(crate) fn shorter(snapshot: Snapshot) -> Snapshot {
    let input = Input::of("snapshot".to_owned(), snapshot);
    let iterations = input.devices[0].program.iterations.len();
    let range = format!("1..{}", (iterations * 3).div_ceil(4)).parse().unwrap();
    slice(input.snapshot, range, Vec::new()).unwrap()
}
