//! Streams, events and capture, and how far the device lags behind the program.
//!
//! Launching is asynchronous: a program is ahead of its device until it waits for it. What hangs on that is when an event is over, and with it
//! how long a block that another stream used stays pending. Nothing is computed here, so both sides have clocks of their own: each launch
//! takes the program's time, and the device's by what it would have to do there ([`Work`]). No real clock is asked, so that a program is
//! recorded the same whatever else its machine does.

use std::collections::VecDeque;
use std::sync::Mutex;
use std::time::Instant;

use crate::place::Out;
use crate::table::{Handle, Table, lock};
use crate::{DONE, Status, calls, nothing};

/// Nanoseconds of one of the two clocks, which begin together.
type Time = u64;

/// What a program takes for a launch: an operator of PyTorch's called from Python takes some 10 microseconds.
const OF_PROGRAM: Time = 10_000;
/// What it takes to ask for an event.
const OF_QUESTION: Time = 1_000;
/// What a kernel takes at the least, however little it has to do.
const OF_KERNEL: Time = 3_000;
/// Launches that the driver's queue holds: with more, the program waits.
const QUEUE: usize = 1024;

/// Work for a device, by what it is bound by. What an H100 does in a nanosecond is what its data sheet says, less what programs reach: two
/// thirds of the arithmetic, four fifths of the bandwidth.
#[derive(Clone, Copy)]
pub(crate) enum Work {
    /// Threads of a kernel that has four elements of 32 bits for each, which it reads twice and writes once: 3.35 TB/s.
    Threads(u64),
    /// Floating-point operations in 16 bits, on tensor cores: 989 TFLOP/s.
    Half(u64),
    /// The same in 32 bits, without: 67 TFLOP/s.
    Single(u64),
    /// Bytes over the bus to the host: 64 GB/s, as the fifth generation of PCI Express has.
    Bus(u64),
    /// Bytes that are moved within the device.
    Bytes(u64),
}

impl Work {
    fn time(self) -> Time {
        match self {
            Work::Threads(threads) => threads * 48 / 2_680,
            Work::Half(operations) => operations / 660_000,
            Work::Single(operations) => operations / 45_000,
            Work::Bus(bytes) => bytes / 51,
            Work::Bytes(bytes) => bytes * 2 / 2_680,
        }
    }
}

/// `cudaErrorInvalidResourceHandle`, `cudaErrorNotReady`.
const INVALID: Status = 400;
const NOT_READY: Status = 600;

#[derive(Default)]
struct Stream {
    priority: i32,
    /// When the device is done with what was launched.
    done: Time,
    /// When it is done with each of the last launches.
    queue: VecDeque<Time>,
    /// The capture that it is part of.
    capture: Option<u64>,
}

/// An event: when the device gets to where it was recorded.
#[derive(Clone, Copy, Default)]
struct Event {
    at: Time,
    capture: Option<u64>,
    time: Option<Instant>,
}

struct State {
    /// The program's clock.
    now: Time,
    streams: Table<Stream>,
    events: Table<Event>,
    graphs: Table<()>,
    captures: u64,
}

impl State {
    const fn new() -> State {
        State { now: 0, streams: Table::new(), events: Table::new(), graphs: Table::new(), captures: 0 }
    }
}

static STATE: Mutex<State> = Mutex::new(State::new());

impl State {
    fn launch(&mut self, on: Handle, work: Work) {
        self.now += OF_PROGRAM;
        let stream = self.streams.entry(on);
        if stream.queue.len() == QUEUE
            && let Some(oldest) = stream.queue.pop_front()
        {
            self.now = self.now.max(oldest);
        }
        stream.done = stream.done.max(self.now).saturating_add(OF_KERNEL.max(work.time()));
        stream.queue.push_back(stream.done);
    }

    /// The program waits for a moment of the device's.
    fn catch_up(&mut self, until: Time) {
        self.now = self.now.max(until);
    }

    fn catch_up_all(&mut self) {
        let last = self.streams.rows_mut().map(|stream| stream.done).max();
        self.catch_up(last.unwrap_or(0));
    }

    /// Whether the device is past a moment. Time passes while a program asks: one that asks until it is over gets to its end.
    fn is_over(&mut self, moment: Time) -> bool {
        let is_over = self.now >= moment;
        self.now += OF_QUESTION;
        is_over
    }

    fn record(&mut self, event: Handle, on: Handle) -> Status {
        let stream = self.streams.entry(on);
        let (at, capture) = (stream.done, stream.capture);
        let Some(event) = self.events.get_mut(event) else { return INVALID };
        *event = Event { at, capture, time: Some(Instant::now()) };
        DONE
    }

    fn wait(&mut self, on: Handle, event: Handle) -> Status {
        let Some(Event { at, capture, .. }) = self.events.get(event).copied() else { return INVALID };
        let stream = self.streams.entry(on);
        stream.done = stream.done.max(at);
        if capture.is_some() {
            stream.capture = capture;
        }
        DONE
    }

    fn create(&mut self, place: &Out<Handle>, priority: i32) -> Status {
        place.set(self.streams.add(Stream { priority, ..Stream::default() }));
        DONE
    }

    fn begin_capture(&mut self, on: Handle) -> Status {
        self.captures += 1;
        self.streams.entry(on).capture = Some(self.captures);
        DONE
    }

    fn end_capture(&mut self, on: Handle, graph: &Out<Handle>) -> Status {
        let capture = self.streams.entry(on).capture;
        for stream in self.streams.rows_mut().filter(|stream| stream.capture == capture) {
            stream.capture = None;
        }
        graph.set(self.graphs.add(()));
        DONE
    }
}

/// Something was launched.
pub(crate) fn launch(on: Handle, work: Work) {
    lock(&STATE).launch(on, work);
}

/// The program waits for a stream.
pub(crate) fn catch_up(on: Handle) {
    let mut state = lock(&STATE);
    let done = state.streams.entry(on).done;
    state.catch_up(done);
}

/// The program waits for the device.
pub(crate) fn catch_up_all() {
    lock(&STATE).catch_up_all();
}

/// `cudaStreamCaptureStatusActive`, and what its place holds.
fn capture_of(on: Handle, status: &Out<i32>, id: Option<&Out<u64>>) -> Status {
    let capture = lock(&STATE).streams.get(on).and_then(|stream| stream.capture);
    status.set(i32::from(capture.is_some()));
    if let Some(id) = id {
        id.set(capture.unwrap_or(0));
    }
    DONE
}

calls! {
    "cudaStreamCreate"(place: Out<Handle>) { lock(&STATE).create(&place, 0) }
    "cudaStreamCreateWithFlags"(place: Out<Handle>, _flags: u32) { lock(&STATE).create(&place, 0) }
    "cudaStreamCreateWithPriority"(place: Out<Handle>, _flags: u32, priority: i32) { lock(&STATE).create(&place, priority) }
    "cudaStreamDestroy"(on: Handle) { lock(&STATE).streams.remove(on).map_or(INVALID, |_| DONE) }
    "cudaStreamGetPriority"(on: Handle, priority: Out<i32>) {
        priority.set(lock(&STATE).streams.get(on).map_or(0, |stream| stream.priority));
        DONE
    }
    "cudaStreamQuery"(on: Handle) {
        let mut state = lock(&STATE);
        let done = state.streams.entry(on).done;
        if state.is_over(done) { DONE } else { NOT_READY }
    }
    "cudaStreamSynchronize"(on: Handle) { catch_up(on); DONE }
    "cudaDeviceSynchronize"() { catch_up_all(); DONE }
    "cudaStreamWaitEvent"(on: Handle, event: Handle, _flags: u32) { lock(&STATE).wait(on, event) }
    "cudaStreamAddCallback"(on: Handle, call: extern "C" fn(Handle, Status, usize), data: usize, _flags: u32) {
        call(on, DONE, data);
        DONE
    }
    "cudaLaunchHostFunc"(on: Handle, call: extern "C" fn(usize), data: usize) {
        launch(on, Work::Threads(0));
        call(data);
        DONE
    }

    "cudaEventCreate"(place: Out<Handle>) { place.set(lock(&STATE).events.add(Event::default())); DONE }
    "cudaEventCreateWithFlags"(place: Out<Handle>, _flags: u32) { place.set(lock(&STATE).events.add(Event::default())); DONE }
    "cudaEventDestroy"(event: Handle) { lock(&STATE).events.remove(event).map_or(INVALID, |_| DONE) }
    "cudaEventRecord"(event: Handle, on: Handle) { lock(&STATE).record(event, on) }
    "cudaEventRecordWithFlags"(event: Handle, on: Handle, _flags: u32) { lock(&STATE).record(event, on) }
    "cudaEventQuery"(event: Handle) {
        let mut state = lock(&STATE);
        let at = state.events.get(event).map_or(0, |event| event.at);
        if state.is_over(at) { DONE } else { NOT_READY }
    }
    "cudaEventSynchronize"(event: Handle) {
        let mut state = lock(&STATE);
        let at = state.events.get(event).map_or(0, |event| event.at);
        state.catch_up(at);
        DONE
    }
    // The time that the program took; the device takes none.
    "cudaEventElapsedTime"(place: Out<f32>, from: Handle, to: Handle) {
        let state = lock(&STATE);
        let time = |event| state.events.get(event).and_then(|event| event.time);
        let between = time(from).zip(time(to)).map(|(from, to)| to.saturating_duration_since(from));
        place.set(between.map_or(0.0, |between| between.as_secs_f32() * 1e3));
        DONE
    }

    "cudaStreamBeginCapture"(on: Handle, _mode: i32) { lock(&STATE).begin_capture(on) }
    "cudaStreamEndCapture"(on: Handle, graph: Out<Handle>) { lock(&STATE).end_capture(on, &graph) }
    "cudaStreamIsCapturing"(on: Handle, status: Out<i32>) { capture_of(on, &status, None) }
    // Of CUDA 12 and 13 the same as far as PyTorch asks: behind the number of the capture it passes null.
    "cudaStreamGetCaptureInfo"(on: Handle, status: Out<i32>, id: Out<u64>) { capture_of(on, &status, Some(&id)) }
    "cudaStreamGetCaptureInfo_v2"(on: Handle, status: Out<i32>, id: Out<u64>, graph: Out<Handle>, nodes: Out<Handle>, count: Out<usize>) {
        graph.set(0);
        nodes.set(0);
        count.set(0);
        capture_of(on, &status, Some(&id))
    }
    // A graph of something: one without nodes PyTorch warns of.
    "cudaGraphGetNodes"(_graph: Handle, _nodes: Out<Handle>, count: Out<usize>) { count.set(1); DONE }
    // With edges' data between (CUDA 13) or without (CUDA 12): nothing depends on anything.
    "cudaGraphNodeGetDependencies"(_node: Handle, _nodes: Out<Handle>, third: Out<usize>, fourth: Out<usize>) {
        if crate::device::model().cuda >= 13_000 { fourth.set(0) } else { third.set(0) }
        DONE
    }
    "cudaGraphInstantiate"(place: Out<Handle>) { place.set(lock(&STATE).graphs.add(())); DONE }
    "cudaGraphInstantiateWithFlags"(place: Out<Handle>) { place.set(lock(&STATE).graphs.add(())); DONE }
    "cudaGraphLaunch"(_graph: Handle, on: Handle) { launch(on, Work::Threads(0)); DONE }
    "cudaGraphDestroy"(graph: Handle) { lock(&STATE).graphs.remove(graph); DONE }
    "cudaGraphExecDestroy"(graph: Handle) { lock(&STATE).graphs.remove(graph); DONE }
}

nothing! { "cudaThreadExchangeStreamCaptureMode" "cudaGraphDebugDotPrint" "cudaProfilerStart" "cudaProfilerStop" }

#[cfg(test)]
mod tests {
    use super::*;

    impl State {
        fn is_over_of(&mut self, event: Handle) -> bool {
            let at = self.events.get(event).unwrap().at;
            self.is_over(at)
        }
    }

    fn event(state: &mut State, on: Handle) -> Handle {
        let event = state.events.add(Event::default());
        state.record(event, on);
        event
    }

    const LONG: Work = Work::Half(1 << 40);

    #[test]
    fn an_event_is_over_when_the_device_is_past_it() {
        let mut state = State::new();
        let idle = event(&mut state, 0);
        assert!(state.is_over_of(idle), "nothing was launched");
        state.launch(0, LONG);
        let busy = event(&mut state, 0);
        assert!(!state.is_over_of(busy));
        state.catch_up_all();
        assert!(state.is_over_of(busy));
    }

    #[test]
    fn a_program_that_is_slower_than_its_device_waits_for_nothing() {
        let mut state = State::new();
        (0..100).for_each(|_| state.launch(0, Work::Threads(1 << 10)));
        let event = event(&mut state, 0);
        state.launch(1, Work::Threads(0));
        assert!(state.is_over_of(event));
    }

    #[test]
    fn a_stream_waits_for_another() {
        let mut state = State::new();
        state.launch(1, LONG);
        let of_other = event(&mut state, 1);
        state.wait(2, of_other);
        let after = event(&mut state, 2);
        assert!(!state.is_over_of(after));
        let until = state.events.get(of_other).unwrap().at;
        state.catch_up(until);
        assert!(state.is_over_of(after));
    }

    #[test]
    fn a_full_queue_holds_the_program_up() {
        let mut state = State::new();
        state.launch(0, LONG);
        let first = event(&mut state, 0);
        (0..QUEUE).for_each(|_| state.launch(0, LONG));
        assert!(state.is_over_of(first));
    }

    #[test]
    fn asking_again_and_again_ends() {
        let mut state = State::new();
        state.launch(3, LONG);
        let event = event(&mut state, 3);
        assert!((0..1_000_000).any(|_| state.is_over_of(event)));
    }

    #[test]
    fn what_waits_for_a_capture_is_part_of_it() {
        let mut state = State::new();
        state.begin_capture(1);
        let event = event(&mut state, 1);
        state.wait(2, event);
        assert_eq!(state.streams.entry(2).capture, Some(1));
        state.end_capture(1, &Out::none());
        assert_eq!(state.streams.entry(2).capture, None);
    }
}
