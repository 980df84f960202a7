//! Runs a script on a small model of PyTorch's allocator and writes the snapshot that PyTorch would have written.
//!
//! In: a [`Script`]. Out: the bytes of a pickle. The stacks are those of real recordings: module calls around a forward
//! pass, no Python frames on the autograd engine's thread, `torch/optim` frames and annotations around a step.

use std::collections::{BTreeMap, HashMap};
use std::iter;

use serde_json::json;

use crate::frames::{FORWARD, SETUP, STEP, TORCH, UNSCALE, calls_the_engine, torch_frame, user_frame};
use crate::language::{Phase, Place, Script, Stacks, Statement};
use crate::pool::Pool;
use crate::shape::{Annotation, Block, Event, Frame, Segment, Settings, Snapshot};

/// Microseconds from one event to the next.
const TICK: i64 = 10;

/// A block in use.
struct Live {
    address: u64,
    bytes: u64,
    frames: Vec<Frame>,
    /// Given back, but not yet completed.
    released: bool,
}

struct Machine {
    stacks: Stacks,
    annotations_on: bool,
    recording: bool,
    now: i64,
    phase: Phase,
    place: Vec<Place>,
    pools: BTreeMap<u64, Pool>,
    /// The number of the pool in use.
    pool: u64,
    live: HashMap<String, Live>,
    events: Vec<Event>,
    annotations: Vec<Annotation>,
    /// When the garbage collector began and ended.
    collections: Vec<(i64, i64)>,
}

/// The pickle of the snapshot that the script's program leaves behind.
pub(crate) fn pickle(script: &Script) -> Result<Vec<u8>, String> {
    let mut machine = Machine {
        stacks: script.stacks,
        annotations_on: script.annotations,
        recording: !contains_record(&script.statements),
        now: 1_700_000_000_000_000,
        phase: Phase::Setup,
        place: Vec::new(),
        pools: BTreeMap::new(),
        pool: 0,
        live: HashMap::new(),
        events: Vec::new(),
        annotations: Vec::new(),
        collections: Vec::new(),
    };
    machine.run(&script.statements, 0)?;
    machine.leave();
    let snapshot = machine.snapshot();
    serde_pickle::to_vec(&snapshot, serde_pickle::SerOptions::new()).map_err(|error| error.to_string())
}

fn contains_record(statements: &[Statement]) -> bool {
    statements.iter().any(|statement| match statement {
        Statement::Record => true,
        Statement::Loop(_, body) => contains_record(body),
        _ => false,
    })
}

impl Machine {
    fn run(&mut self, statements: &[Statement], iteration: u32) -> Result<(), String> {
        for (position, statement) in statements.iter().enumerate() {
            match statement {
                Statement::Loop(times, body) => {
                    for turn in 1..=*times {
                        self.run(body, turn)?;
                    }
                }
                Statement::Phase { phase, place, when } if when.holds(iteration) => self.enter(*phase, place),
                Statement::Alloc { name, bytes, when } if when.holds(iteration) => {
                    let kept = self.phase != Phase::Step || is_kept(name, &statements[position + 1..]);
                    self.alloc(&numbered(name, iteration), *bytes, kept)?;
                }
                Statement::Free { name, when } if when.holds(iteration) => {
                    self.free(&numbered(name, iteration))?;
                }
                Statement::Collect { name, when } if when.holds(iteration) => {
                    let begun = self.now + 1;
                    self.free(&numbered(name, iteration))?;
                    self.collections.push((begun, self.now + 1));
                }
                Statement::EmptyCache { when } if when.holds(iteration) => self.empty_cache(),
                Statement::Release { name, when } if when.holds(iteration) => {
                    self.release(&numbered(name, iteration))?;
                }
                Statement::Oom { bytes, when } if when.holds(iteration) => self.fail(*bytes),
                Statement::Alloc { .. }
                | Statement::Free { .. }
                | Statement::Collect { .. }
                | Statement::Release { .. }
                | Statement::EmptyCache { .. }
                | Statement::Oom { .. }
                | Statement::Phase { .. } => {}
                Statement::Pool(number) => self.pool = *number,
                Statement::Record => self.recording = true,
                Statement::Lose(count) => drop(self.events.drain(..(*count).min(self.events.len()))),
            }
        }
        Ok(())
    }

    /// Ends the phase that was under way and begins another.
    fn enter(&mut self, phase: Phase, place: &[Place]) {
        self.leave();
        self.phase = phase;
        self.place = place.to_vec();
        self.annotate("START");
        if let Some(caller) = calls_the_engine(phase) {
            // The gradient of the loss itself: made on the calling thread, before the engine's thread starts.
            let mut entry = vec![("autograd/__init__.py", 150, "_make_grads")];
            entry.extend(caller);
            let entry = self.frames(&entry);
            let (address, segment) = self.take(4);
            self.segment(segment, &entry);
            self.event("alloc", address, 4, &entry);
            self.live.insert(LOSS.to_owned(), Live { address, bytes: 4, frames: entry, released: false });
        }
    }

    fn leave(&mut self) {
        if let Some(loss) = self.live.remove(LOSS) {
            let frames = self.frames(calls_the_engine(self.phase).unwrap_or_default());
            self.event("free_requested", loss.address, loss.bytes, &frames);
            self.event("free_completed", loss.address, loss.bytes, &frames);
            self.give_back(loss.address);
        }
        self.annotate("END");
        self.phase = Phase::Setup;
    }

    fn annotate(&mut self, stage: &'static str) {
        let name = match self.phase {
            Phase::Step => "Optimizer.step#Adam.step",
            Phase::ZeroGrad => "Optimizer.zero_grad#Adam.zero_grad",
            _ => return,
        };
        self.now += TICK;
        if self.annotations_on && self.recording {
            self.annotations.push(Annotation { stage, name, device: 0, time_us: self.now });
        }
    }

    fn alloc(&mut self, name: &str, bytes: u64, kept: bool) -> Result<(), String> {
        let frames = self.stack(kept);
        let (address, segment) = self.take(bytes);
        self.segment(segment, &frames);
        self.event("alloc", address, bytes, &frames);
        let frames = if self.recording { frames } else { Vec::new() };
        match self.live.insert(name.to_owned(), Live { address, bytes, frames, released: false }) {
            Some(_) => Err(format!("{name} is in use already")),
            None => Ok(()),
        }
    }

    fn free(&mut self, name: &str) -> Result<(), String> {
        self.release(name)?;
        let block = self.live.remove(name).ok_or(format!("{name} is not in use"))?;
        let frames = self.freed_under(&block);
        self.event("free_completed", block.address, block.bytes, &frames);
        self.give_back(block.address);
        Ok(())
    }

    fn empty_cache(&mut self) {
        let frames = self.frames(&[("cuda/memory.py", 224, "empty_cache")]);
        let unused: Vec<(u64, u64)> = self.pools.values_mut().flat_map(Pool::release).collect();
        for (address, size) in unused {
            self.event("segment_free", address, size, &frames);
        }
    }

    /// The program gives a block back, if it has not yet.
    fn release(&mut self, name: &str) -> Result<(), String> {
        let frames = self.live.get(name).map(|block| self.freed_under(block)).unwrap_or_default();
        let block = self.live.get_mut(name).ok_or(format!("{name} is not in use"))?;
        if !std::mem::replace(&mut block.released, true) {
            let (address, bytes) = (block.address, block.bytes);
            self.event("free_requested", address, bytes, &frames);
        }
        Ok(())
    }

    /// The frames of a free: those of the present phase, or a copy of the allocation's.
    fn freed_under(&self, block: &Live) -> Vec<Frame> {
        if self.stacks == Stacks::Alloc { block.frames.clone() } else { self.stack(false) }
    }

    /// A request fails; where other events have an address, this one has the device's free bytes.
    fn fail(&mut self, bytes: u64) {
        let frames = self.stack(false);
        self.event("oom", 1 << 20, bytes, &frames);
    }

    fn take(&mut self, bytes: u64) -> (u64, Option<(u64, u64)>) {
        let number = self.pool;
        self.pools.entry(number).or_insert_with(|| Pool::numbered(number)).take(bytes)
    }

    fn give_back(&mut self, address: u64) {
        if let Some(pool) = self.pools.get_mut(&Pool::number_of(address)) {
            pool.give_back(address);
        }
    }

    fn segment(&mut self, segment: Option<(u64, u64)>, frames: &[Frame]) {
        if let Some((address, size)) = segment {
            self.event("segment_alloc", address, size, frames);
        }
    }

    fn event(&mut self, action: &'static str, addr: u64, size: u64, frames: &[Frame]) {
        self.now += TICK;
        if self.recording {
            let frames = (self.stacks != Stacks::None).then(|| frames.to_vec());
            self.events.push(Event { action, addr, size, stream: 0, time_us: self.now, frames });
        }
    }

    /// The frames of an event in the present phase, innermost first.
    fn stack(&self, kept: bool) -> Vec<Frame> {
        match self.phase {
            Phase::Setup => self.frames(&SETUP),
            Phase::Empty if self.stacks == Stacks::All => {
                let mut frames = Machine::library(&["at::_ops::empty_like::call"]);
                frames.extend(self.frames(&[]));
                frames
            }
            Phase::Input | Phase::Operator | Phase::Empty => self.frames(&[]),
            Phase::Forward | Phase::Evaluation => self.frames(&FORWARD),
            Phase::Loss => self.frames(&[("nn/functional.py", 3494, "cross_entropy")]),
            Phase::Backward | Phase::PerSample if self.stacks == Stacks::All => Machine::engine(),
            Phase::Backward | Phase::PerSample => Vec::new(),
            Phase::Unscale => self.frames(&UNSCALE),
            Phase::Step if kept => self.frames(&[("optim/adam.py", 178, "_init_group"), STEP[1], STEP[2]]),
            Phase::Step => self.frames(&STEP),
            Phase::ZeroGrad => self.frames(&[("optim/optimizer.py", 1017, "zero_grad")]),
        }
    }

    fn frames(&self, torch: &[(&str, u32, &str)]) -> Vec<Frame> {
        let mut frames: Vec<Frame> = torch.iter().map(torch_frame).collect();
        for place in &self.place {
            frames.push(user_frame(place, &place.function, place.line));
            if place.function == "forward" {
                // A module's forward is called by `Module.__call__`.
                frames.extend(FORWARD.iter().skip(1).map(torch_frame));
            }
        }
        if let Some(outermost) = self.place.last().filter(|place| place.function != "<module>") {
            frames.push(user_frame(outermost, "<module>", 99));
        }
        frames
    }

    fn engine() -> Vec<Frame> {
        Machine::library(&["torch::autograd::AccumulateGrad::apply", "torch::autograd::Engine::thread_main"])
    }

    /// Frames of PyTorch's C++ functions, innermost first.
    fn library(names: &[&str]) -> Vec<Frame> {
        let library = format!("{TORCH}/lib/libtorch_cpu.so");
        names
            .iter()
            .map(|name| Frame { name: (*name).to_owned(), filename: library.clone(), line: 0 })
            .collect()
    }

    /// What `memlint record` tells of the garbage collector: of each time since the one before began, and how long it took.
    fn collections(&self) -> Option<String> {
        let begun = iter::once(0).chain(self.collections.iter().map(|(begun, _)| *begun));
        let spans = begun.zip(&self.collections).flat_map(|(before, (at, end))| [at - before, end - at]);
        let spans: Vec<i64> = spans.collect();
        (!spans.is_empty()).then(|| json!({"version": 1, "spans": spans}).to_string())
    }

    fn snapshot(mut self) -> Snapshot {
        let memlint_collections = self.collections();
        let used: HashMap<u64, Live> = self.live.drain().map(|(_, live)| (live.address, live)).collect();
        let keep_stacks = self.stacks != Stacks::None;
        let segments =
            self.pools.values().flat_map(Pool::segments).map(|(address, total_size, blocks)| Segment {
                device: 0,
                address,
                total_size,
                stream: 0,
                segment_type: if total_size == Pool::SMALL_SEGMENT { "small" } else { "large" },
                segment_pool_id: Pool::id_of(address),
                is_expandable: false,
                frames: Vec::new(),
                blocks: blocks
                    .map(|(address, size)| match used.get(&address) {
                        Some(live) => Block {
                            address,
                            size,
                            requested_size: live.bytes,
                            state: if live.released { "active_pending_free" } else { "active_allocated" },
                            frames: if keep_stacks { live.frames.clone() } else { Vec::new() },
                        },
                        None => {
                            Block { address, size, requested_size: 0, state: "inactive", frames: Vec::new() }
                        }
                    })
                    .collect(),
            });
        Snapshot {
            segments: segments.collect(),
            device_traces: vec![self.events],
            allocator_settings: Settings {
                PYTORCH_CUDA_ALLOC_CONF: String::new(),
                max_split_size: -1,
                expandable_segments: false,
            },
            external_annotations: self.annotations,
            memlint_collections,
        }
    }
}

const LOSS: &str = "the gradient of the loss";
/// Whether an allocation outlives the phase that makes it.
fn is_kept(name: &str, rest: &[Statement]) -> bool {
    for statement in rest {
        match statement {
            Statement::Phase { .. } => return true,
            Statement::Free { name: freed, .. } if freed == name => return false,
            _ => {}
        }
    }
    true
}

/// `out#-1` in iteration 3 is `out2`.
fn numbered(name: &str, iteration: u32) -> String {
    match name.split_once('#') {
        None => name.to_owned(),
        Some((stem, back)) => {
            let back = back.strip_prefix('-').and_then(|back| back.parse().ok()).unwrap_or(0);
            format!("{stem}{}", iteration.saturating_sub(back))
        }
    }
}
