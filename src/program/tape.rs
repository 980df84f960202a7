//! Traces of programs, for tests: the loops, and what PyTorch's own frames look like.

use super::Program;
use crate::frames::Frames;
use crate::snapshot::{Action, Annotation, Event, Snapshot};
use crate::testing::{self, Recorder};
use crate::unit::{Bytes, FrameId, Micros, StackId};

/// A recording in the making. Frames are written outermost first, `function:line`, in the user's file; a few words stand for
/// PyTorch's own frames.
#[derive(Default)]
pub(super) struct Tape {
    pub(super) recorder: Recorder,
    next: u64,
}

impl Tape {
    pub(super) fn frame(&mut self, text: &str) -> FrameId {
        let (file, name, line) = match text {
            "@module" => ("/v/site-packages/torch/nn/modules/module.py", "_call_impl", 1790),
            "@backward" => ("/v/site-packages/torch/_tensor.py", "backward", 631),
            "@adam" => ("/v/site-packages/torch/optim/adam.py", "_init_group", 182),
            "@hook" => ("/v/site-packages/torch/optim/optimizer.py", "wrapper", 526),
            "@zero" => ("/v/site-packages/torch/optim/optimizer.py", "zero_grad", 1066),
            "@decorator" => ("/v/site-packages/torch/utils/_contextlib.py", "decorate_context", 124),
            "@thread" => ("/usr/lib/python3.11/threading.py", "_bootstrap", 1002),
            "@launcher" => ("/tmp/job/run.py", "<module>", 53),
            "@collector" => ("??", "gc_collect_main", 0),
            "@empties" => ("python_variable.cpp", "THPVariable_clear(THPVariable*)", 0),
            "@dies" => ("python_variable.cpp", "THPVariable_dealloc(_object*)", 0),
            "@recompute" => ("/v/site-packages/torch/utils/checkpoint.py", "unpack_hook", 1100),
            _ => {
                let (name, line) = text.split_once(':').unwrap();
                let trainer = name == "@trainer";
                let file =
                    if trainer { "/v/site-packages/transformers/trainer.py" } else { "/home/me/train.py" };
                (file, if trainer { "evaluation_loop" } else { name }, line.parse().unwrap())
            }
        };
        self.recorder.frame(file, name, line)
    }

    pub(super) fn event(&mut self, action: Action, stack: &str, size: u64) -> usize {
        let frames: Vec<FrameId> = stack.split_whitespace().rev().map(|text| self.frame(text)).collect();
        let stack = self.recorder.snapshot.stacks.intern(&frames);
        self.push(action, stack, size)
    }

    pub(super) fn push(&mut self, action: Action, stack: Option<StackId>, size: u64) -> usize {
        self.next += 512;
        let time = Micros(1_000_000 + 10 * i64::try_from(self.recorder.events.len()).unwrap());
        self.recorder.push(Event { time, stack, ..testing::event(action, self.next, Bytes(size)) })
    }

    pub(super) fn alloc(&mut self, stack: &str) -> usize {
        self.event(Action::Alloc, stack, 4096)
    }

    pub(super) fn free(&mut self, stack: &str) -> usize {
        self.event(Action::FreeRequested, stack, 4096)
    }

    /// A range from the event that comes next to the one before the call of `end`.
    pub(super) fn annotate(&mut self, name: &str, start: bool) {
        let name = self.recorder.snapshot.strings.intern(name).unwrap();
        let time = Micros(1_000_000 + 10 * i64::try_from(self.recorder.events.len()).unwrap() - 5);
        self.recorder.snapshot.annotations.push(Annotation { name, start, time, device: 0 });
    }

    /// A forward, a backward on the engine's thread and a step, at lines of `function` counted from `line`.
    pub(super) fn train(&mut self, outer: &str, function: &str, line: u32) {
        self.alloc(&format!("{outer} {function}:{line}"));
        self.alloc(&format!("{outer} {function}:{} @module forward:5", line + 1));
        self.alloc(&format!("{outer} {function}:{} @backward", line + 2));
        self.alloc("");
        self.step(&format!("{outer} {function}:{}", line + 3));
        self.free(&format!("{outer} {function}:{} @zero", line + 4));
    }

    pub(super) fn step(&mut self, caller: &str) {
        self.annotate("Optimizer.step#Adam.step", true);
        self.alloc(&format!("{caller} @hook @adam"));
        self.annotate("Optimizer.step#Adam.step", false);
    }

    pub(super) fn read(self) -> (Program, Snapshot) {
        let (snapshot, timeline) = self.recorder.ended();
        (Program::of(&snapshot, &timeline, &Frames::of(&snapshot)), snapshot)
    }

    pub(super) fn program(self) -> Program {
        self.read().0
    }
}
