//! How much of what a place makes backward passes let go of.

use crate::unit::Bytes;

/// What a place made, and how much of it a backward pass let go of.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct ReleasedShare {
    made: Bytes,
    released: Bytes,
}

impl ReleasedShare {
    /// One more tensor.
    pub(super) fn note(&mut self, bytes: Bytes, is_released: bool) {
        self.made += bytes;
        self.released += if is_released { bytes } else { Bytes::ZERO };
    }

    /// Whether that is most of it: the place saves what it makes.
    pub(super) fn saves(&self) -> bool {
        self.released.times(2) > self.made
    }
}
