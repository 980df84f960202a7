//! A few iterations of a recording, as a recording of its own.
//!
//! In: a snapshot and a range of iterations. Out: a snapshot with the events of those iterations, the annotations of that
//! time, and the segments as they stood after its last event. Always: its sums agree with its segments, and at its end as
//! many bytes are requested and reserved as at that event of the original.
//!
//! Iterations are the ones of the device that has most of them; other devices are cut at the same moments. What was
//! allocated before the slice is there with its stack where the original knows it: as in a recording that began late,
//! or whose buffer ran over; the file says that it is a slice, so that nobody looks for a larger buffer, and whether the buffer of the
//! original did run over. It says what was found in the whole, too, which a part may not show. Pinned host memory is left out, because nothing tells how it stood at the cut.

use std::fmt;
use std::num::NonZeroUsize;
use std::ops::Range;
use std::str::FromStr;

use super::error::SliceError;
use crate::frames::Frames;
use crate::program::{Iteration, Program};
use crate::replay::{Homeless, Replay, segments_at};
use crate::snapshot::{Event, Excerpt, Gap, Inherited, Snapshot};
use crate::timeline::Timeline;
use crate::unit::{DeviceIndex, Index, Micros};

/// Some iterations in a row, counted from 1 as `memlint stats` shows them, both ends included: `3..5`, `3..`, `..5`, `4`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Iterations {
    first: NonZeroUsize,
    last: Option<NonZeroUsize>,
}

impl FromStr for Iterations {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Iterations, &'static str> {
        const WRITE: &str = "write 3..5 for the iterations 3, 4 and 5, or 3.. or ..5 or 4; the first is 1";
        let number = |text: &str| text.trim().parse::<NonZeroUsize>().map_err(|_| WRITE);
        let (first, last) = match text.split_once("..") {
            Some((first, last)) => {
                let given = |end: &str| (!end.trim().is_empty()).then(|| number(end)).transpose();
                let (first, last) = (given(first)?, given(last)?);
                if first.is_none() && last.is_none() {
                    return Err(WRITE);
                }
                (first.unwrap_or(NonZeroUsize::MIN), last)
            }
            None => (number(text)?, Some(number(text)?)),
        };
        if last.is_some_and(|last| last < first) {
            return Err("the last iteration comes before the first");
        }
        Ok(Iterations { first, last })
    }
}

impl fmt::Display for Iterations {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.last {
            Some(last) => write!(f, "{}..{last}", self.first),
            None => write!(f, "{}..", self.first),
        }
    }
}

impl Iterations {
    /// The same with its last iteration named, if a recording of `found` iterations has all of them.
    fn of(self, found: usize) -> Result<Iterations, SliceError> {
        let all = NonZeroUsize::new(found).ok_or(SliceError::NoIterations)?;
        let last = self.last.unwrap_or(all);
        if self.first > all || last > all {
            return Err(SliceError::OutOfRange { asked: self, found });
        }
        Ok(Iterations { last: Some(last), ..self })
    }

    /// The first and the last of them.
    fn ends(self, all: &[Iteration]) -> Option<(&Iteration, &Iteration)> {
        let last = self.last.map_or(all.len(), NonZeroUsize::get);
        all.get(self.first.get() - 1).zip(all.get(last.checked_sub(1)?))
    }
}

/// Cuts a range of iterations out of a recording; `found` was found in the whole.
///
/// # Errors
/// Where there are no such iterations, or the snapshot contradicts itself.
pub fn slice(
    mut snapshot: Snapshot,
    iterations: Iterations,
    found: Vec<Inherited>,
) -> Result<Snapshot, SliceError> {
    let devices: Vec<DeviceIndex> = snapshot.active_devices().map(|(device, _)| device).collect();
    let timelines: Vec<Timeline> = devices.iter().map(|&device| Timeline::of(&snapshot, device)).collect();
    let window = Cutout::find(&snapshot, &timelines, iterations)?;
    if devices.len() > 1 && snapshot.gaps.contains(&Gap::NoTimes) {
        return Err(SliceError::NoTimes);
    }
    let mut segments = Vec::new();
    let mut kept: Vec<Vec<Event>> = snapshot.devices.iter().map(|_| Vec::new()).collect();
    for timeline in &timelines {
        let position = timeline.device.position();
        let events = snapshot.devices.get(position).map_or(&[][..], |trace| &trace.events);
        let span = window.on(timeline.device, events);
        let replay = Replay::of(&snapshot, timeline);
        let at_end = segments_at(&snapshot, timeline, &replay, span.end);
        segments.extend(at_end.map_err(|Homeless(homeless)| SliceError::Inconsistent { homeless })?);
        if let Some(place) = kept.get_mut(position) {
            *place = events.get(span).unwrap_or_default().to_vec();
        }
    }
    for (trace, events) in snapshot.devices.iter_mut().zip(kept) {
        trace.events = events;
    }
    // What the original has lost is lost in its slice, too, and there nothing else tells it from what was cut off.
    let lost = timelines.iter().any(|timeline| timeline.agreement.blocks_evicted > 0);
    let mut excerpt = window.part;
    (excerpt.lost, excerpt.findings) = (lost, found);
    snapshot.excerpt = Some(excerpt);
    snapshot.segments = segments;
    snapshot.annotations.retain(|annotation| window.times.contains(&annotation.time));
    snapshot.gaps.retain(|gap| !matches!(gap, Gap::InconsistentSegments(_) | Gap::HostMemory { .. }));
    Ok(snapshot)
}

/// What is cut out: positions of events on one device, times on the others.
struct Cutout {
    device: DeviceIndex,
    events: Range<usize>,
    times: Range<Micros>,
    /// The same by number.
    part: Excerpt,
}

impl Cutout {
    fn find(
        snapshot: &Snapshot,
        timelines: &[Timeline],
        iterations: Iterations,
    ) -> Result<Cutout, SliceError> {
        let frames = Frames::of(snapshot);
        let program = |timeline: &Timeline| Program::of(snapshot, timeline, &frames);
        let programs = timelines.iter().map(|timeline| (timeline.device, program(timeline)));
        // Of several with equally many the first.
        let most = programs
            .reduce(|best, next| if next.1.iterations.len() > best.1.iterations.len() { next } else { best });
        let (device, program) = most.ok_or(SliceError::NoIterations)?;
        let found = program.iterations.len();
        let iterations = iterations.of(found)?;
        let (first, last) = iterations.ends(&program.iterations).ok_or(SliceError::NoIterations)?;
        Ok(Cutout {
            device,
            events: first.start.position()..last.end.position(),
            times: first.start_time..last.end_time,
            part: Excerpt::of(
                iterations.first.get(),
                iterations.last.map_or(found, NonZeroUsize::get),
                found,
            ),
        })
    }

    /// The events of a device that lie in the window.
    fn on(&self, device: DeviceIndex, events: &[Event]) -> Range<usize> {
        if device == self.device {
            return self.events.clone();
        }
        let position = |moment: Micros| events.partition_point(|event| event.time < moment);
        position(self.times.start)..position(self.times.end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> Result<String, &'static str> {
        text.parse::<Iterations>().map(|iterations| iterations.to_string())
    }

    #[test]
    fn ranges_of_iterations_are_read_as_written() {
        assert_eq!(shown("3..5").as_deref(), Ok("3..5"));
        assert_eq!(shown("3..").as_deref(), Ok("3.."));
        assert_eq!(shown("..5").as_deref(), Ok("1..5"));
        assert_eq!(shown("4").as_deref(), Ok("4..4"));
        for wrong in ["", "..", "0..2", "a..b", "3...5", "-1..2", "5..3"] {
            assert!(shown(wrong).is_err(), "{wrong}");
        }
    }
}
