//! Whether the model does what the recorded allocator did.
//!
//! In: a recording and its script. Out: a [`Proof`]: under the recorded settings the model makes the same calls of the
//! driver, in the same order and with the same sizes, puts every allocation at the same address, and ends with the same
//! segments and blocks, or where it first does not. From the recording the model gets nothing but the requests, the
//! frees and the driver's answers: at which addresses segments were put, and when there was no memory left.

use std::cmp::Ordering;

use super::allocator::{Allocator, FitOrder};
use super::driver::Driver;
use super::player::{OperationOutcome, Player, RecordedTrace, as_recorded};
use super::script::Operation;
use super::tuning::Tuning;
use crate::snapshot::{Action, Block, BlockState, Event, Snapshot};
use crate::unit::{Bytes, EventIndex, Index};

/// How the model of the allocator agrees with the recorded one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Proof {
    /// The order of free blocks that reproduces the recording, or most of it.
    pub order: FitOrder,
    /// Where they first differ; `None` where the replay is exact.
    pub difference: Option<Divergence>,
}

/// The first difference between the model and a recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Divergence {
    /// The event; `None` for the state at the end.
    pub event: Option<EventIndex>,
    /// What differs.
    pub kind: DifferenceKind,
}

/// A call of the driver.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DriverCall {
    /// [`Action::SegmentAlloc`], [`Action::SegmentFree`], [`Action::SegmentMap`] or [`Action::SegmentUnmap`].
    pub action: Action,
    /// Where.
    pub address: u64,
    /// How much.
    pub size: Bytes,
}

/// What can differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DifferenceKind {
    /// The model makes a call where the recording has another one, or none.
    Call {
        /// What the model does.
        modelled: DriverCall,
        /// What was recorded.
        recorded: Option<DriverCall>,
    },
    /// The recording has a call that the model does not make.
    NoCall {
        /// What was recorded.
        recorded: DriverCall,
    },
    /// An allocation lies elsewhere.
    Place {
        /// Where the model put it.
        modelled: u64,
        /// Where it was.
        recorded: u64,
    },
    /// A request that was refused gets memory.
    Served,
    /// The segments and blocks at the end are others.
    End,
    /// The recording contradicts itself, or asks for more than the model may spend on it.
    GivenUp,
}

impl Proof {
    /// Plays a recording under its own settings, in both orders of free blocks; the one that gets further counts, and of
    /// equals the one that fits the version of the file.
    pub fn of(recorded: RecordedTrace) -> Proof {
        let difference = |order| first_difference(recorded, order);
        let (by_address, by_age) = (difference(FitOrder::Address), difference(FitOrder::Age));
        let reach = |difference: Option<Divergence>| match difference {
            None => (2, None),
            Some(Divergence { event: None, .. }) => (1, None),
            Some(Divergence { event, .. }) => (0, event),
        };
        let order = match reach(by_age).cmp(&reach(by_address)) {
            Ordering::Greater => FitOrder::Age,
            Ordering::Less => FitOrder::Address,
            Ordering::Equal => order_of_version(recorded.snapshot),
        };
        let difference = if order == FitOrder::Age { by_age } else { by_address };
        Proof { order, difference }
    }

    /// Whether the model does all that the recorded allocator did.
    pub fn is_exact(&self) -> bool {
        self.difference.is_none()
    }
}

/// Recordings of 2.8 have the one order, those of 2.13 the other; events name their pool from 2.12 on.
fn order_of_version(snapshot: &Snapshot) -> FitOrder {
    let names_pools = snapshot.particulars.iter().any(|one| one.pool.is_some());
    if names_pools { FitOrder::Age } else { FitOrder::Address }
}

fn first_difference(recorded: RecordedTrace, order: FitOrder) -> Option<Divergence> {
    let tuning = Tuning::recorded(recorded.snapshot);
    let mut player = Player::new(recorded, tuning, order, Oracle::of(recorded));
    for (at, step) in &recorded.script.steps {
        player.allocator.driver.now = Some(*at);
        player.allocator.driver.refuses = *step == Operation::Refused;
        let outcome = player.step(*at, *step, as_recorded);
        let found = difference(&mut player.allocator, recorded, outcome);
        if let Some(kind) = found {
            return Some(Divergence { event: Some(*at), kind });
        }
    }
    let driver = &player.allocator.driver;
    if let Some((event, recorded)) = driver.calls.get(driver.next) {
        return Some(Divergence {
            event: Some(*event),
            kind: DifferenceKind::NoCall { recorded: *recorded },
        });
    }
    let ends_alike = ends_alike(&player.allocator, recorded);
    (!ends_alike).then_some(Divergence { event: None, kind: DifferenceKind::End })
}

fn difference(
    allocator: &mut Allocator<Oracle>,
    recorded: RecordedTrace,
    outcome: OperationOutcome,
) -> Option<DifferenceKind> {
    if allocator.is_exhausted() {
        return Some(DifferenceKind::GivenUp);
    }
    if let Some(kind) = allocator.driver.difference {
        return Some(kind);
    }
    if let Some(recorded) = allocator.driver.due() {
        return Some(DifferenceKind::NoCall { recorded });
    }
    match outcome {
        OperationOutcome::Got(id, block) => {
            let recorded = recorded.timeline.allocation(id)?.address;
            let (modelled, _) = allocator.extent(block);
            (modelled != recorded).then_some(DifferenceKind::Place { modelled, recorded })
        }
        OperationOutcome::Served => Some(DifferenceKind::Served),
        OperationOutcome::Done | OperationOutcome::Failed(_) => None,
    }
}

/// Whether the segments and blocks of the model are those of the file.
fn ends_alike(allocator: &Allocator<Oracle>, recorded: RecordedTrace) -> bool {
    let ordinal = recorded.timeline.device.position();
    let mut expected: Vec<(u64, u64, bool)> = Vec::new();
    for segment in recorded.snapshot.segments_of(ordinal) {
        let tile = |block: &Block| (block.address, block.size.get(), block.state != BlockState::Inactive);
        expected.extend(segment.blocks.iter().map(tile));
    }
    expected.sort_unstable();
    allocator.tiles() == expected
}

/// The driver of a recording: gives the answers that were given then, and notes the first call that is another.
#[derive(Debug)]
struct Oracle {
    calls: Vec<(EventIndex, DriverCall)>,
    next: usize,
    /// The event of the step under way: calls before it are answers to it.
    now: Option<EventIndex>,
    /// Whether the step is a request that got no memory in the end.
    refuses: bool,
    difference: Option<DifferenceKind>,
}

impl Oracle {
    fn of(recorded: RecordedTrace) -> Oracle {
        let call = |(position, event): (usize, &Event)| {
            let call = DriverCall { action: event.action, address: event.address, size: event.size };
            Some((EventIndex::at(position)?, call)).filter(|_| is_call(event.action))
        };
        let calls: Vec<_> = recorded.events().iter().enumerate().filter_map(call).collect();
        Oracle { calls, next: 0, now: None, refuses: false, difference: None }
    }

    /// The next call of the recording, if it belongs to the step under way.
    fn due(&self) -> Option<DriverCall> {
        let (event, call) = self.calls.get(self.next)?;
        (Some(*event) <= self.now).then_some(*call)
    }

    /// Goes on where the recording has the same call; notes where it has not.
    fn expect(&mut self, modelled: DriverCall) -> bool {
        let recorded = self.due();
        let same = recorded == Some(modelled);
        if same {
            self.next += 1;
        } else if self.difference.is_none() {
            self.difference = Some(DifferenceKind::Call { modelled, recorded });
        }
        same
    }

    /// Whether the recorded driver had no memory for what is asked now: memory was given back first, or the request was
    /// refused.
    fn had_none(&self) -> bool {
        match self.due() {
            Some(call) => gives_back(call.action),
            None => self.refuses,
        }
    }
}

fn is_call(action: Action) -> bool {
    gives_back(action) || matches!(action, Action::SegmentAlloc | Action::SegmentMap)
}

fn gives_back(action: Action) -> bool {
    matches!(action, Action::SegmentFree | Action::SegmentUnmap)
}

impl Driver for Oracle {
    fn allows(&mut self, _: u64, _: u64) -> bool {
        true
    }

    fn obtain(&mut self, size: u64, _: u64) -> Option<u64> {
        if self.had_none() {
            return None;
        }
        let address = self.due().map_or(0, |call| call.address);
        let call = DriverCall { action: Action::SegmentAlloc, address, size: Bytes(size) };
        self.expect(call).then_some(address)
    }

    fn release(&mut self, address: u64, size: u64) {
        self.expect(DriverCall { action: Action::SegmentFree, address, size: Bytes(size) });
    }

    fn reserve(&mut self) -> u64 {
        self.due().map_or(0, |call| call.address)
    }

    fn map(&mut self, address: u64, size: u64, _: u64) -> bool {
        !self.had_none() && self.expect(DriverCall { action: Action::SegmentMap, address, size: Bytes(size) })
    }

    fn unmap(&mut self, address: u64, size: u64) {
        self.expect(DriverCall { action: Action::SegmentUnmap, address, size: Bytes(size) });
    }

    /// What was collected is known, and not by how much it had to be.
    fn excess(&mut self, _: u64, _: f64) -> u64 {
        let due = self
            .calls
            .iter()
            .skip(self.next)
            .take_while(|(event, call)| Some(*event) <= self.now && gives_back(call.action));
        due.map(|(_, call)| call.size.get()).sum()
    }
}
