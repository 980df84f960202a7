//! Streams, events and capture, and how far the device lags behind the program.
//!
//! Launching is asynchronous: a program is ahead of its device until it waits for it. What hangs on that is when an event is over, and with it
//! how long a block that another stream used stays pending. Nothing is computed here, so time is counted in launches: a stream has done all but
//! the last [`LAG`] of what was launched on it, and everything once somebody has waited for it.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::Instant;

use crate::place::Out;
use crate::table::{Handle, Table, lock};
use crate::{DONE, Status, calls, nothing};

/// How many launches a device is behind: what a small model's step makes, for in a loop that does not wait for Python the device is about a
/// step behind. Nobody can know it without the device: at most 1,024, which is what the driver's queue holds.
const LAG: u64 = 64;

/// `cudaErrorInvalidResourceHandle`, `cudaErrorNotReady`.
const INVALID: Status = 400;
const NOT_READY: Status = 600;

#[derive(Default)]
struct Stream {
    priority: i32,
    /// Launches so far, and how many of them are known to be done.
    launched: u64,
    done: u64,
    /// What it waits for before it goes on: streams and how far they have to be.
    waits: BTreeMap<Handle, u64>,
    /// The capture that it is part of.
    capture: Option<u64>,
}

impl Stream {
    fn has_done(&self) -> u64 {
        self.done.max(self.launched.saturating_sub(LAG))
    }
}

/// An event: where a stream was when it was recorded.
#[derive(Clone, Copy, Default)]
struct Event {
    at: Option<(Handle, u64)>,
    capture: Option<u64>,
    time: Option<Instant>,
}

struct State {
    streams: Table<Stream>,
    events: Table<Event>,
    graphs: Table<()>,
    captures: u64,
}

static STATE: Mutex<State> =
    Mutex::new(State { streams: Table::new(), events: Table::new(), graphs: Table::new(), captures: 0 });

impl State {
    /// A stream has done everything up to a launch, and so has what it waited for.
    fn catch_up(&mut self, on: Handle, until: u64) {
        let stream = self.streams.entry(on);
        stream.done = stream.done.max(until);
        // Taken out first: streams that wait for each other end here.
        for (other, its) in std::mem::take(&mut stream.waits) {
            self.catch_up(other, its);
        }
    }

    fn catch_up_all(&mut self) {
        for stream in self.streams.rows_mut() {
            stream.done = stream.launched;
            stream.waits.clear();
        }
    }

    /// Whether the device is past an event.
    fn is_over(&mut self, event: Handle) -> bool {
        let Some((on, until)) = self.events.get(event).and_then(|event| event.at) else { return true };
        let stream = self.streams.entry(on);
        let is_over = stream.has_done() >= until;
        // Time passes while a program asks: one that asks until it is over gets to its end.
        stream.done = (stream.has_done() + 1).min(stream.launched);
        is_over
    }

    fn record(&mut self, event: Handle, on: Handle) -> Status {
        let stream = self.streams.entry(on);
        let (launched, capture) = (stream.launched, stream.capture);
        let Some(event) = self.events.get_mut(event) else { return INVALID };
        *event = Event { at: Some((on, launched)), capture, time: Some(Instant::now()) };
        DONE
    }

    fn wait(&mut self, on: Handle, event: Handle) -> Status {
        let Some(Event { at: Some((other, until)), capture, .. }) = self.events.get(event).copied() else {
            return DONE;
        };
        let stream = self.streams.entry(on);
        if capture.is_some() {
            stream.capture = capture;
        }
        if other != on {
            let known = stream.waits.entry(other).or_default();
            *known = until.max(*known);
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
pub(crate) fn work(on: Handle) {
    lock(&STATE).streams.entry(on).launched += 1;
}

/// The program waits for a stream.
pub(crate) fn catch_up(on: Handle) {
    let mut state = lock(&STATE);
    let launched = state.streams.entry(on).launched;
    state.catch_up(on, launched);
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
        let stream = state.streams.entry(on);
        let is_done = stream.has_done() >= stream.launched;
        stream.done = (stream.has_done() + 1).min(stream.launched);
        if is_done { DONE } else { NOT_READY }
    }
    "cudaStreamSynchronize"(on: Handle) { catch_up(on); DONE }
    "cudaDeviceSynchronize"() { catch_up_all(); DONE }
    "cudaStreamWaitEvent"(on: Handle, event: Handle, _flags: u32) { lock(&STATE).wait(on, event) }
    "cudaStreamAddCallback"(on: Handle, call: extern "C" fn(Handle, Status, usize), data: usize, _flags: u32) {
        call(on, DONE, data);
        DONE
    }
    "cudaLaunchHostFunc"(on: Handle, call: extern "C" fn(usize), data: usize) {
        work(on);
        call(data);
        DONE
    }

    "cudaEventCreate"(place: Out<Handle>) { place.set(lock(&STATE).events.add(Event::default())); DONE }
    "cudaEventCreateWithFlags"(place: Out<Handle>, _flags: u32) { place.set(lock(&STATE).events.add(Event::default())); DONE }
    "cudaEventDestroy"(event: Handle) { lock(&STATE).events.remove(event).map_or(INVALID, |_| DONE) }
    "cudaEventRecord"(event: Handle, on: Handle) { lock(&STATE).record(event, on) }
    "cudaEventRecordWithFlags"(event: Handle, on: Handle, _flags: u32) { lock(&STATE).record(event, on) }
    "cudaEventQuery"(event: Handle) { if lock(&STATE).is_over(event) { DONE } else { NOT_READY } }
    "cudaEventSynchronize"(event: Handle) {
        let mut state = lock(&STATE);
        if let Some((on, until)) = state.events.get(event).and_then(|event| event.at) {
            state.catch_up(on, until);
        }
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
    "cudaGraphLaunch"(_graph: Handle, on: Handle) { work(on); DONE }
    "cudaGraphDestroy"(graph: Handle) { lock(&STATE).graphs.remove(graph); DONE }
    "cudaGraphExecDestroy"(graph: Handle) { lock(&STATE).graphs.remove(graph); DONE }
}

nothing! { "cudaThreadExchangeStreamCaptureMode" "cudaGraphDebugDotPrint" "cudaProfilerStart" "cudaProfilerStop" }

#[cfg(test)]
mod tests {
    use super::*;

    fn event(state: &mut State, on: Handle) -> Handle {
        let event = state.events.add(Event::default());
        state.record(event, on);
        event
    }

    fn fresh() -> State {
        State { streams: Table::new(), events: Table::new(), graphs: Table::new(), captures: 0 }
    }

    #[test]
    fn an_event_is_over_when_the_stream_is_past_it() {
        let mut state = fresh();
        let idle = event(&mut state, 0);
        assert!(state.is_over(idle), "nothing was launched");
        state.streams.entry(0).launched += 1;
        let busy = event(&mut state, 0);
        assert!(!state.is_over(busy));
        state.streams.entry(0).launched += LAG;
        assert!(state.is_over(busy));
    }

    #[test]
    fn waiting_for_a_stream_is_waiting_for_what_it_waits_for() {
        let mut state = fresh();
        state.streams.entry(1).launched = 5;
        let of_other = event(&mut state, 1);
        state.wait(2, of_other);
        state.catch_up(2, 0);
        assert!(state.is_over(of_other));
    }

    #[test]
    fn asking_again_and_again_ends() {
        let mut state = fresh();
        state.streams.entry(3).launched = 1000;
        let event = event(&mut state, 3);
        assert!((0..=LAG).any(|_| state.is_over(event)));
    }

    #[test]
    fn what_waits_for_a_capture_is_part_of_it() {
        let mut state = fresh();
        state.begin_capture(1);
        let event = event(&mut state, 1);
        state.wait(2, event);
        assert_eq!(state.streams.entry(2).capture, Some(1));
        state.end_capture(1, &Out::none());
        assert_eq!(state.streams.entry(2).capture, None);
    }
}
