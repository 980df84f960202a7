//! A training program in the making: a loop with forward, backward and step, into which tests put what they like.

use memlint::snapshot::{
    Action, Annotation, Block, BlockState, DeviceTrace, Event, Frame, Segment, Snapshot,
};
use memlint::unit::{Bytes, FrameId, Micros, StackId};

/// `SplitMix64` (Steele, Lea, Flood 2014): the same programs in every run.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    pub(crate) fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.next() % bound.max(1) as u64).unwrap()
    }

    /// Between 0 and 1.
    pub(crate) fn share(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }
}

/// A block that the program holds.
#[derive(Clone, Copy)]
pub(crate) struct Held {
    address: u64,
    bytes: u64,
    stream: u16,
    stack: StackId,
}

const TRAIN: &str = "/home/user/project/train.py";
const MODEL: &str = "/home/user/project/model.py";
const TORCH: &str = "/opt/venv/lib/python3.12/site-packages/torch";

/// A recording in the making.
pub(crate) struct Recorder {
    snapshot: Snapshot,
    events: Vec<Event>,
    held: Vec<Held>,
    next: u64,
}

impl Recorder {
    pub(crate) fn new() -> Recorder {
        Recorder {
            snapshot: Snapshot::default(),
            events: Vec::new(),
            held: Vec::new(),
            next: 0x7f00_0000_0000,
        }
    }

    fn frame(&mut self, file: &str, name: &str, line: u32) -> FrameId {
        let file = self.snapshot.strings.intern(file).unwrap();
        let name = self.snapshot.strings.intern(name).unwrap();
        self.snapshot.stacks.intern_frame(Frame { name, file, line }).unwrap()
    }

    /// A line of the loop's body, and what it calls, outermost first.
    pub(crate) fn stack(&mut self, line: u32, calls: &[(&str, &str, u32)]) -> StackId {
        let mut frames = vec![self.frame(TRAIN, "<module>", 60), self.frame(TRAIN, "main", line)];
        for (file, name, line) in calls {
            let frame = self.frame(file, name, *line);
            frames.push(frame);
        }
        frames.reverse();
        self.snapshot.stacks.intern(&frames).unwrap()
    }

    /// A layer of the model, called from line 22.
    pub(crate) fn layer(&mut self, line: u32) -> StackId {
        let module = format!("{TORCH}/nn/modules/module.py");
        let linear = format!("{TORCH}/nn/modules/linear.py");
        let calls: [(&str, &str, u32); 4] = [
            (&module, "_call_impl", 1790),
            (MODEL, "forward", line),
            (&module, "_call_impl", 1790),
            (&linear, "forward", 134),
        ];
        self.stack(22, &calls)
    }

    fn event(&mut self, action: Action, held: Held) {
        let time = Micros(1_700_000_000_000_000 + 10 * i64::try_from(self.events.len()).unwrap());
        self.events.push(Event {
            time,
            address: held.address,
            size: Bytes(held.bytes),
            stack: Some(held.stack),
            metadata: None,
            stream: held.stream,
            action,
            compiled: false,
            particulars: 0,
        });
    }

    pub(crate) fn alloc(&mut self, stack: StackId, bytes: u64, stream: u16) -> Held {
        let held = Held { address: self.next, bytes, stream, stack };
        self.next += bytes.div_ceil(512) * 512;
        self.event(Action::Alloc, held);
        self.held.push(held);
        held
    }

    pub(crate) fn free(&mut self, held: Held, stack: StackId) {
        self.event(Action::FreeRequested, Held { stack, ..held });
        self.event(Action::FreeCompleted, Held { stack, ..held });
        self.held.retain(|one| one.address != held.address);
    }

    fn annotate(&mut self, name: &str, start: bool) {
        let name = self.snapshot.strings.intern(name).unwrap();
        let time = Micros(1_700_000_000_000_000 + 10 * i64::try_from(self.events.len()).unwrap() - 5);
        self.snapshot.annotations.push(Annotation { name, start, time, device: 0 });
    }

    /// The snapshot, with what is held in one segment.
    pub(crate) fn finish(mut self) -> Snapshot {
        let base = 0x7f00_0000_0000;
        let mut blocks = Vec::new();
        let mut end = base;
        for one in &self.held {
            let size = one.bytes.div_ceil(512) * 512;
            if one.address > end {
                let (address, size, requested) = (end, Bytes(one.address - end), Bytes::ZERO);
                blocks.push(Block { address, size, requested, stack: None, state: BlockState::Inactive });
            }
            let (address, size, requested) = (one.address, Bytes(size), Bytes(one.bytes));
            blocks.push(Block {
                address,
                size,
                requested,
                stack: Some(one.stack),
                state: BlockState::Allocated,
            });
            end = one.address + size.get();
        }
        self.snapshot.segments =
            vec![Segment { address: base, total_size: Bytes(end - base), blocks, ..Segment::default() }];
        self.snapshot.devices = vec![DeviceTrace { events: self.events }];
        self.snapshot
    }
}

/// Trains for some iterations; `also` is asked in each, between the step and the end of the body (lines 30 to 49 are its own).
pub(crate) fn train(iterations: usize, mut also: impl FnMut(usize, &mut Recorder)) -> Snapshot {
    const MIB: u64 = 1 << 20;
    let mut recorder = Recorder::new();
    let setup = recorder.stack(10, &[(&format!("{TORCH}/nn/modules/module.py"), "to", 1300)]);
    let weights: Vec<Held> = [12, 20, 28].iter().map(|size| recorder.alloc(setup, size * MIB, 0)).collect();
    let input = recorder.stack(21, &[]);
    let layers: Vec<StackId> = (0..4).map(|at| recorder.layer(40 + at)).collect();
    let enter = recorder.stack(24, &[(&format!("{TORCH}/_tensor.py"), "backward", 631)]);
    let engine = recorder.snapshot.stacks.intern(&[]).unwrap();
    let step = recorder.stack(
        25,
        &[
            (&format!("{TORCH}/optim/optimizer.py"), "wrapper", 526),
            (&format!("{TORCH}/optim/adam.py"), "_init_group", 182),
        ],
    );
    let zero = recorder.stack(26, &[(&format!("{TORCH}/optim/optimizer.py"), "zero_grad", 1066)]);
    for iteration in 0..iterations {
        let batch = recorder.alloc(input, 4 * MIB, 0);
        let saved: Vec<Held> = layers.iter().map(|layer| recorder.alloc(*layer, 24 * MIB, 0)).collect();
        let seed = recorder.alloc(enter, 512, 0);
        let gradients: Vec<Held> =
            weights.iter().map(|weight| recorder.alloc(engine, weight.bytes, 0)).collect();
        for one in saved.into_iter().rev() {
            recorder.free(one, engine);
        }
        recorder.free(seed, enter);
        recorder.annotate("Optimizer.step#Adam.step", true);
        if iteration == 0 {
            for weight in &weights {
                recorder.alloc(step, weight.bytes, 0);
                recorder.alloc(step, weight.bytes, 0);
            }
        }
        let scratch = recorder.alloc(step, 2 * MIB, 0);
        recorder.free(scratch, step);
        recorder.annotate("Optimizer.step#Adam.step", false);
        recorder.annotate("Optimizer.zero_grad#Adam.zero_grad", true);
        for one in gradients {
            recorder.free(one, zero);
        }
        recorder.annotate("Optimizer.zero_grad#Adam.zero_grad", false);
        also(iteration, &mut recorder);
        let again = recorder.stack(50, &[]);
        recorder.free(batch, again);
    }
    recorder.finish()
}
