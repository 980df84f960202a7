//! What a recording tells of the user's source: in which function each recorded line stands, and what it called.
//!
//! In: a snapshot and whose code its frames are. Out: for each of the user's files its recorded lines with what was seen
//! further in. Always: bounded, each distinct line and call once, in order. The source itself is not looked at here; whoever
//! has it can tell by these lines whether it is still the one that ran.

use std::collections::{BTreeMap, BTreeSet};

use rustc_hash::FxHashSet;
use serde::{Deserialize, Serialize};

use crate::finding::Location;
use crate::frames::{Frames, Owner, PhaseSign};
use crate::snapshot::{Action, Snapshot};
use crate::unit::{FrameId, Index, StackId};

/// At most so many of the user's files are kept of a recording: each is looked for on the disk (chosen, not measured).
const MOST_FILES: usize = 2000;
/// At most so many lines and calls are kept of a recording; the largest of the corpus has 140 (chosen).
const MOST_CALLS: usize = 50_000;
/// A decorator may be decorated; so many are looked through.
const DEEPEST: usize = 4;

/// What functions are called that decorators put around others: `functools.wraps` changes a function's `__name__`, but
/// frames show the name of its code.
#[rustfmt::skip]
const DECORATORS: [&str; 17] = [
    "__call__", "_fn", "_no_grad_wrapper", "_use_grad", "_use_grad_for_differentiable", "_wrapped", "call_wrapped",
    "decorate_autocast", "decorate_context", "decorated", "fn", "func_wrapper", "inner", "new_func",
    "nonrecursive_disable_wrapper", "wrapped", "wrapper",
];

/// One of the user's files as the stacks show it.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordedFile {
    /// The path as recorded.
    pub path: String,
    /// Its lines, in order; a line that called several things stands several times.
    pub lines: Vec<RecordedLine>,
}

/// A line of the user's that stood on a stack.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct RecordedLine {
    /// 1-based.
    pub line: u32,
    /// The bare name of the function around it.
    pub function: String,
    /// What it had called.
    pub called: Called,
}

/// What a line had called when the allocator was.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Called {
    /// Nothing of Python.
    Native {
        /// Whether memory was asked for; freeing needs no more than an assignment.
        allocates: bool,
    },
    /// A module of `torch.nn`, under whichever name the program has for it.
    Module,
    /// A Python function: the one that was entered first, and behind decorators those that they lead to.
    Function(Vec<Callee>),
    /// Something of which no name can be expected in the source: code that a compiler or a library made up.
    Unknown,
}

/// The name of a function that was called.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Callee {
    /// Its bare name.
    pub name: String,
    /// Whether it is the very function that the line called, and no helper of a decorator.
    pub certain: bool,
}

impl RecordedFile {
    /// Its first line as a place.
    pub fn place(&self) -> Location {
        let first = self.lines.first();
        Location {
            file: self.path.clone(),
            line: first.map_or(0, |first| first.line),
            function: first.map(|first| first.function.clone()).unwrap_or_default(),
        }
    }
}

/// The user's files in the stacks of a snapshot, in the order of their names.
pub(super) fn files(snapshot: &Snapshot, frames: &Frames) -> Vec<RecordedFile> {
    let mut files: BTreeMap<String, BTreeMap<Key, BTreeSet<Callee>>> = BTreeMap::new();
    for call in calls(snapshot, frames) {
        let Some(Location { file, line, function }) = Location::of(snapshot, call.line) else { continue };
        // While an exception unwinds a comprehension Python has no line to tell: such a frame says nothing about the file.
        if line == 0 {
            continue;
        }
        let (kind, names) = called(snapshot, frames, &call);
        let first = names.first().map_or("", |callee| callee.name.as_str()).to_owned();
        let key = Key { line, function, kind, first };
        files.entry(file).or_default().entry(key).or_default().extend(names);
    }
    let of_file = |(path, lines): (String, BTreeMap<Key, BTreeSet<Callee>>)| RecordedFile {
        path,
        lines: lines.into_iter().map(|(key, names)| key.recorded(names)).collect(),
    };
    files.into_iter().take(MOST_FILES).map(of_file).collect()
}

/// A line of the user's, and the frames that follow further in.
#[derive(Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct WitnessedCall {
    line: FrameId,
    callee: [Option<FrameId>; DEEPEST],
    allocates: bool,
}

/// What is one [`RecordedLine`]: what was seen behind one decorator in several stacks belongs together.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    line: u32,
    function: String,
    kind: Kind,
    first: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Native { allocates: bool },
    Module,
    Function,
    Unknown,
}

impl Key {
    fn recorded(self, names: BTreeSet<Callee>) -> RecordedLine {
        let called = match self.kind {
            Kind::Native { allocates } => Called::Native { allocates },
            Kind::Module => Called::Module,
            Kind::Unknown => Called::Unknown,
            Kind::Function => {
                let (first, others): (Vec<Callee>, Vec<Callee>) =
                    names.into_iter().partition(|callee| callee.name == self.first);
                Called::Function(first.into_iter().chain(others).collect())
            }
        };
        RecordedLine { line: self.line, function: self.function, called }
    }
}

/// The distinct calls of the user's lines.
fn calls(snapshot: &Snapshot, frames: &Frames) -> Vec<WitnessedCall> {
    let allocating = allocating(snapshot);
    let decorates: Vec<bool> = snapshot
        .stacks
        .frame_ids()
        .map(|id| Location::of(snapshot, id).is_some_and(|frame| is_decorator(&frame.function)))
        .collect();
    let decorates = |frame: &FrameId| decorates.get(frame.position()).copied().unwrap_or(false);
    let mut calls = FxHashSet::default();
    for stack in snapshot.stacks.ids() {
        let python = frames.python(stack);
        for (position, &line) in python.iter().enumerate().filter(|(_, frame)| frames.is_own(**frame)) {
            let mut further = python.get(position + 1..).unwrap_or_default().iter();
            let mut callee = [None; DEEPEST];
            for slot in &mut callee {
                *slot = further.next().copied();
                if !slot.as_ref().is_some_and(decorates) {
                    break;
                }
            }
            let allocates = allocating.contains(&stack);
            if calls.len() < MOST_CALLS {
                calls.insert(WitnessedCall { line, callee, allocates });
            }
        }
    }
    let mut calls: Vec<WitnessedCall> = calls.into_iter().collect();
    calls.sort_unstable();
    calls
}

fn is_decorator(name: &str) -> bool {
    DECORATORS.contains(&name)
}

/// The stacks on which memory was asked for.
fn allocating(snapshot: &Snapshot) -> FxHashSet<StackId> {
    let events = snapshot.devices.iter().flat_map(|trace| &trace.events);
    let asked = events
        .filter(|event| matches!(event.action, Action::Alloc | Action::SegmentAlloc | Action::SegmentMap))
        .filter_map(|event| event.stack);
    let blocks = snapshot.segments.iter().flat_map(|segment| &segment.blocks).filter_map(|block| block.stack);
    asked.chain(blocks).collect()
}

/// What a line called, and under which names.
fn called(snapshot: &Snapshot, frames: &Frames, call: &WitnessedCall) -> (Kind, Vec<Callee>) {
    let [Some(first), ..] = call.callee else {
        return (Kind::Native { allocates: call.allocates }, Vec::new());
    };
    let made_up = |id: FrameId| {
        let unreal = Location::of(snapshot, id).is_none_or(|frame| frame.file.starts_with('<'));
        unreal || frames.owner(id) == Owner::Generated
    };
    if made_up(first) {
        return (Kind::Unknown, Vec::new());
    }
    if frames.phase(first) == PhaseSign::ModuleCall {
        return (Kind::Module, Vec::new());
    }
    let callee = |(depth, id): (usize, FrameId)| {
        let name = Location::of(snapshot, id)?.function;
        // Between a decorator and what it wraps helpers of the decorator may stand, which the line does not name.
        let known = || matches!(frames.phase(id), PhaseSign::ZeroGrad | PhaseSign::Optimizer);
        let certain = !is_decorator(&name) && (depth == 0 || frames.is_own(id) || known());
        Some(Callee { name, certain })
    };
    (Kind::Function, call.callee.into_iter().flatten().enumerate().filter_map(callee).collect())
}
