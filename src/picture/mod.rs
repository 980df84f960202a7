//! What can be drawn of a device: who held how much at every moment, small enough for a page.
//!
//! In: the facts of a device, the findings with what they are about, and how much a picture may hold. Out: a [`Picture`],
//! numbers and names alone. Always: exact. At each moment that is drawn the parts add up to the bytes in use: what is too
//! small, or too much, to be drawn one by one is merged with its like, and nothing is left out or scaled.
//!
//! A *moment* is a number of events that have happened: 0 is before the first. Moments are drawn in bins of equal width; a bin
//! shows its fullest moment, so that no peak is lost however wide it is ([`bins`]). Lifetimes are drawn one by one where there
//! is room ([`lives`]) and are merged by the line that made them where there is not; those that a finding is about come first.

mod bins;
mod guilty;
mod lives;
mod segments;
mod sites;
mod surroundings;
mod tree;

use serde::{Deserialize, Serialize};

pub use bins::Bins;
pub use guilty::{Counterfactual, Guilty};
pub use lives::{Born, Cloud, CloudStep, DrawnLife, Lives};
pub use segments::Piece;
pub use sites::Site;
pub use surroundings::{Annotated, MemoryRefusal, PhaseSpan, Turn};
pub use tree::{Label, Tree};

use crate::facts::Facts;
use crate::unit::{Bytes, Index};
use crate::verdict::Told;

/// How much a picture may hold. What goes beyond is merged, or drawn in wider bins; the sums stay exact.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Room {
    /// Moments that are drawn.
    pub bins: usize,
    /// Lifetimes that are drawn one by one, and pieces of segments.
    pub lives: usize,
    /// Steps of merged lifetimes by the lines that made them.
    pub steps: usize,
}

impl Room {
    /// What a page holds in all. A recording of 137 thousand events is drawn event by event; one of ten million takes less
    /// than 20 MB.
    pub const PAGE: Room = Room { bins: 1 << 18, lives: 200_000, steps: 400_000 };

    /// The room of one of several recordings on a page. The floor is some thousand columns and lifetimes: what a strip of one
    /// rank among many shows.
    #[must_use]
    pub fn shared_by(self, recordings: usize) -> Room {
        let part = |whole: usize| (whole / recordings.max(1)).max(4096);
        Room { bins: part(self.bins), lives: part(self.lives), steps: part(self.steps) }
    }
}

/// What can be drawn of a device.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Picture {
    /// How many events there are.
    pub events: usize,
    /// The moments that are drawn.
    pub bins: Bins,
    /// Who made what is drawn.
    pub tree: Tree,
    /// What is drawn.
    pub lives: Lives,
    /// The findings, with what they are about.
    pub guilty: Vec<Guilty>,
    /// The moment of the peak of requested bytes.
    pub peak: usize,
    /// The phases, one after the other.
    pub phases: Vec<PhaseSpan>,
    /// The iterations.
    pub turns: Vec<Turn>,
    /// Requests that got no memory.
    pub failures: Vec<MemoryRefusal>,
    /// What the program named: spans of `record_function`.
    pub annotations: Vec<Annotated>,
    /// What was held from the driver, piece by piece.
    pub pieces: Vec<Piece>,
    /// The address from which those of lifetimes and pieces count.
    pub base: u64,
    /// The lines that hold most at the peak, or grow.
    pub sites: Vec<Site>,
}

impl Picture {
    /// Draws a device. `told` are its findings.
    pub fn of(facts: &Facts, told: &[Told], room: Room) -> Picture {
        let bins = Bins::of(facts, room.bins);
        let base = segments::base(facts);
        let gathered = lives::gather(facts, told, &bins, (room, base));
        let (peak, failures) = (peak(facts), surroundings::failures(facts));
        Picture {
            events: facts.trace.events.len(),
            guilty: guilty::guilty(facts, told, (&bins, &failures), &gathered),
            tree: gathered.tree,
            lives: gathered.lives,
            peak,
            phases: surroundings::phases(facts, &bins),
            turns: surroundings::turns(facts),
            failures,
            annotations: surroundings::annotations(facts),
            pieces: segments::pieces(facts, &bins, base, room.lives),
            base,
            sites: sites::sites(facts, peak),
            bins,
        }
    }

    /// The bytes in use at the moments that are drawn, added up from what is drawn.
    pub fn sums(&self) -> Vec<Bytes> {
        self.lives.sums(self.bins.len())
    }

    /// What would be drawn were a finding mended; nothing where no other lifetimes mend it.
    pub fn without(&self, guilty: &Guilty) -> Option<Lives> {
        guilty.without.as_ref().map(|without| without.applied(&self.lives))
    }
}

/// The moment of the peak of requested bytes.
fn peak(facts: &Facts) -> usize {
    facts.timeline.peak_requested.event.map_or(0, |event| event.position() + 1)
}
