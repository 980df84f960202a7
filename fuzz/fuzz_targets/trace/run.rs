//! Runs a script: the snapshot that PyTorch would have written.

use std::collections::{BTreeMap, VecDeque};

use memlint::snapshot::{
    Action, Annotation, Block, BlockState, DeviceTrace, Event, Particulars, Segment, Snapshot,
};
use memlint::unit::{Bytes, Micros, StackId, StringId};

use crate::allocator::{Allocator, State};
use crate::script::{Clock, Ending, Phase, Place, Recording, Script, Size, Step};
use crate::stack::{SECRET, stack};

const DEVICES: usize = 3;
/// The pointers of the streams behind the default one.
const STREAMS: [i64; 3] = [0x5500_1000, -9, i64::MAX];
/// What a long recording may hold, and any other.
const MOST_LONG: usize = 20_000;
const MOST: usize = 1_000;
/// Statements that may run, whether they record anything or not.
const MOST_STATEMENTS: usize = 40_000;

struct Live {
    device: usize,
    address: u64,
    bytes: u64,
    stream: u16,
    pool: u64,
    stack: Option<StackId>,
    requested: bool,
}

struct Machine<'a> {
    recording: &'a Recording,
    snapshot: Snapshot,
    allocator: Allocator,
    /// By slot and the iteration that filled it.
    live: BTreeMap<(u8, u32), VecDeque<Live>>,
    now: i64,
    turn: u32,
    outer: u32,
    phase: Phase,
    device: usize,
    stream: u16,
    pool: u64,
    metadata: Option<StringId>,
    statements: usize,
    room: usize,
    most: usize,
}

/// The snapshot that the script's program leaves behind.
pub(crate) fn snapshot(script: &Script) -> Snapshot {
    let most = if script.recording.length == u8::MAX { MOST_LONG } else { MOST };
    let mut snapshot = Snapshot { streams: STREAMS.to_vec(), ..Snapshot::default() };
    snapshot.devices.resize_with(DEVICES, DeviceTrace::default);
    let odd = snapshot.strings.intern("newer_action");
    snapshot.particulars = vec![
        Particulars { timed: true, ..Particulars::default() },
        Particulars { action: odd, timed: true, ..Particulars::default() },
    ];
    let mut machine = Machine {
        recording: &script.recording,
        snapshot,
        allocator: Allocator::default(),
        live: BTreeMap::new(),
        now: 1_700_000_000_000_000,
        turn: 0,
        outer: 1,
        phase: Phase::Plain,
        device: 0,
        stream: 0,
        pool: 0,
        metadata: None,
        statements: MOST_STATEMENTS,
        room: most,
        most,
    };
    machine.run(&script.setup, 10);
    for turn in 1..=u32::from(script.turns).max(1) {
        machine.turn = turn;
        machine.run(&script.body, 100);
    }
    machine.turn += 1;
    machine.run(&script.ending, 200);
    machine.finish()
}

impl Machine<'_> {
    fn run(&mut self, steps: &[Step], first_line: u32) {
        for (line, step) in (first_line..).zip(steps) {
            if self.statements == 0 || self.room == 0 {
                return;
            }
            self.statements -= 1;
            self.outer = if self.recording.lines_advance { line } else { first_line };
            self.step(step, line);
        }
    }

    fn step(&mut self, step: &Step, line: u32) {
        match step {
            Step::Train(training) => self.run(&training.steps(self.turn), line),
            Step::Alloc { slot, size, place } => self.alloc(*slot, *size, *place),
            Step::Free { slot, back, place } => {
                if let Some(mut block) = self.give_back(*slot, *back, *place) {
                    block.requested = true;
                    self.complete(&block, *place);
                }
            }
            Step::Request { slot, back } => {
                if let Some(block) = self.give_back(*slot, *back, PLACE) {
                    let key = (*slot, self.turn.saturating_sub(u32::from(back % 4)));
                    self.live.entry(key).or_default().push_front(block);
                }
            }
            Step::Complete { slot, back } => {
                if let Some(block) = self.find(*slot, *back) {
                    self.complete(&block, PLACE);
                }
            }
            Step::Enter(phase) => self.enter(*phase),
            Step::Annotate { name, start } => {
                let names = ["ProfilerStep#", "epoch ", "## forward ##", "FSDP::all_gather"];
                let name = format!("{}{}", names[usize::from(name % 4)], self.turn);
                self.annotate(&name, *start);
            }
            Step::OutOfMemory(size) => {
                let stack = self.stack(PLACE, false);
                self.event(Action::OutOfMemory, 1 << 20, self.bytes(*size), stack, 0);
            }
            Step::EmptyCache => self.empty_cache(),
            Step::Device(number) => self.device = usize::from(*number) % DEVICES,
            Step::Stream(number) => self.stream = u16::from(number % 4),
            Step::Pool(number) => self.pool = u64::from(number % 3),
            Step::Metadata(number) => {
                let name = format!("{SECRET}{}", number % 4);
                self.metadata = (number % 2 == 0).then(|| self.snapshot.strings.intern(&name)).flatten();
            }
            Step::Stray { action, address, size } => {
                let stack = self.stack(PLACE, false);
                let address = 0x7f04_0000_0000 + u64::from(*address) * 512;
                self.event(stray(*action), address, self.bytes(*size), stack, 0);
            }
            Step::Repeat { times, steps } => (0..*times).for_each(|_| self.run(steps, line + 1)),
            Step::Sometimes { period, offset, steps } => {
                if self.turn % (u32::from(*period) + 1) == u32::from(*offset) {
                    self.run(steps, line + 1);
                }
            }
        }
    }

    fn bytes(&self, size: Size) -> u64 {
        match size {
            Size::Tiny(bytes) => u64::from(bytes),
            Size::Small(bytes) => u64::from(bytes),
            Size::Large(kibibytes) => u64::from(kibibytes) << 10,
            Size::Growing(mebibytes) => (u64::from(mebibytes) * u64::from(self.turn)) << 20,
            // Sums of all events stay far below 2^64, as on a device of any size.
            Size::Any(bytes) => bytes >> 24,
        }
    }

    fn alloc(&mut self, slot: u8, size: Size, place: Place) {
        let bytes = self.bytes(size).min(1 << 33);
        let stack = self.stack(place, false);
        let home = (self.device, usize::from(self.stream), self.pool);
        let (address, made) = self.allocator.take(home, bytes);
        if let Some((address, size)) = made {
            let action = if self.recording.expandable { Action::SegmentMap } else { Action::SegmentAlloc };
            self.event(action, address, size, stack, 0);
        }
        self.event(Action::Alloc, address, bytes, stack, 0);
        let (device, stream, pool) = (self.device, self.stream, self.pool);
        let block = Live { device, address, bytes, stream, pool, stack, requested: false };
        self.live.entry((slot, self.turn)).or_default().push_back(block);
    }

    fn find(&mut self, slot: u8, back: u8) -> Option<Live> {
        let key = (slot, self.turn.saturating_sub(u32::from(back % 4)));
        self.live.get_mut(&key)?.pop_front()
    }

    /// Records that the program gives a block back, unless it has done so.
    fn give_back(&mut self, slot: u8, back: u8, place: Place) -> Option<Live> {
        let mut block = self.find(slot, back)?;
        if !block.requested {
            block.requested = true;
            self.allocator.request_free(block.address);
            self.freed(Action::FreeRequested, &block, place);
        }
        Some(block)
    }

    fn complete(&mut self, block: &Live, place: Place) {
        self.allocator.complete_free(block.address);
        self.freed(Action::FreeCompleted, block, place);
    }

    fn freed(&mut self, action: Action, block: &Live, place: Place) {
        let own = self.stack(place, true);
        let stack = if self.recording.frees_have_stacks { own } else { block.stack };
        let here = (self.device, self.stream, self.pool);
        (self.device, self.stream, self.pool) = (block.device, block.stream, block.pool);
        self.event(action, block.address, block.bytes, stack, 0);
        (self.device, self.stream, self.pool) = here;
    }

    fn enter(&mut self, phase: Phase) {
        let name = |phase| match phase {
            Phase::OptimizerStep | Phase::StateOfOptimizer => Some("Optimizer.step#Adam.step"),
            Phase::ZeroGrad => Some("Optimizer.zero_grad#Adam.zero_grad"),
            Phase::Input => Some("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"),
            _ => None,
        };
        if let Some(name) = name(self.phase) {
            self.annotate(name, false);
        }
        if let Some(name) = name(phase) {
            self.annotate(name, true);
        }
        self.phase = phase;
    }

    fn annotate(&mut self, name: &str, start: bool) {
        if self.recording.annotations && self.snapshot.annotations.len() < self.most {
            let time = self.tick();
            let device = i32::try_from(self.device).unwrap_or(0);
            let name = self.snapshot.strings.intern(name);
            self.snapshot.annotations.extend(name.map(|name| Annotation { name, start, time, device }));
        }
    }

    fn empty_cache(&mut self) {
        let stack = self.stack(PLACE, false);
        let here = (self.stream, self.pool);
        for (address, segment) in self.allocator.release(self.device) {
            (self.stream, self.pool) = (u16::try_from(segment.home.1).unwrap_or(0), segment.home.2);
            let action = if self.recording.expandable { Action::SegmentUnmap } else { Action::SegmentFree };
            self.event(action, address, segment.size, stack, 0);
        }
        (self.stream, self.pool) = here;
    }

    fn stack(&mut self, place: Place, releases: bool) -> Option<StackId> {
        stack(&mut self.snapshot, self.recording.stacks, self.phase, place, self.outer, releases)
    }

    fn tick(&mut self) -> Micros {
        self.now += match self.recording.clock {
            Clock::Steady => 10,
            Clock::Tied => i64::from(self.statements.is_multiple_of(4)),
            Clock::Backwards if self.statements.is_multiple_of(16) => -500,
            Clock::Backwards => 10,
            Clock::Absent => return Micros(0),
        };
        Micros(self.now)
    }

    fn event(&mut self, action: Action, address: u64, bytes: u64, stack: Option<StackId>, particulars: u16) {
        let time = self.tick();
        self.room = self.room.saturating_sub(1);
        let particulars = if action == Action::Other { 1 } else { particulars };
        let event = Event {
            time,
            address,
            size: Bytes(bytes),
            stack,
            metadata: self.metadata,
            stream: self.stream,
            action,
            compiled: false,
            particulars,
        };
        if let Some(trace) = self.snapshot.devices.get_mut(self.device) {
            trace.events.push(event);
        }
    }

    fn finish(mut self) -> Snapshot {
        let owners: BTreeMap<u64, Option<StackId>> =
            self.live.values().flatten().map(|live| (live.address, live.stack)).collect();
        if self.recording.ending != Ending::Absent {
            for (&address, segment) in &self.allocator.segments {
                let blocks = segment.blocks.iter().map(|(&at, block)| Block {
                    address: at,
                    size: Bytes(block.size),
                    requested: Bytes(block.requested),
                    stack: owners.get(&at).copied().flatten(),
                    state: match block.state {
                        State::Allocated => BlockState::Allocated,
                        State::Pending => BlockState::PendingFree,
                        State::Free => BlockState::Inactive,
                    },
                });
                self.snapshot.segments.push(Segment {
                    device: i32::try_from(segment.home.0).unwrap_or(0),
                    address,
                    total_size: Bytes(segment.size),
                    stream: u16::try_from(segment.home.1).unwrap_or(0),
                    small_pool: segment.size <= 2 << 20,
                    pool: (0, segment.home.2),
                    expandable: self.recording.expandable,
                    stack: None,
                    blocks: blocks.collect(),
                });
            }
        }
        if let Ending::Torn(seed) = self.recording.ending {
            tear(&mut self.snapshot.segments, usize::from(seed));
        }
        self.snapshot.segments.sort_by_key(|segment| (segment.device, segment.address));
        for trace in &mut self.snapshot.devices {
            trace.events.drain(..usize::from(self.recording.lost).min(trace.events.len()));
        }
        self.snapshot
    }
}

/// A place of no importance.
const PLACE: Place = Place { line: 3, function: 3, file: 0, depth: 0 };

fn stray(number: u8) -> Action {
    match number % 10 {
        0 => Action::Alloc,
        1 => Action::FreeRequested,
        2 => Action::FreeCompleted,
        3 => Action::SegmentAlloc,
        4 => Action::SegmentFree,
        5 => Action::SegmentMap,
        6 => Action::SegmentUnmap,
        7 => Action::Snapshot,
        8 => Action::OutOfMemory,
        _ => Action::Other,
    }
}

/// Makes some segments contradict themselves.
fn tear(segments: &mut [Segment], seed: usize) {
    for (number, segment) in segments.iter_mut().enumerate() {
        match (number + seed) % 5 {
            0 => segment.total_size = Bytes(segment.total_size.get() / 2),
            1 => drop(segment.blocks.pop()),
            2 => {
                if let Some(block) = segment.blocks.first_mut() {
                    block.size = block.size.times(3);
                }
            }
            3 => segment.blocks.extend(segment.blocks.first().copied()),
            _ => {}
        }
    }
}
