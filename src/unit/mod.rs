//! The vocabulary of quantities: bytes, moments and indices as types of their own, strings and sequences stored once,
//! and the one way in which numbers are shown to people and read from them.
//!
//! Nothing here knows about PyTorch. Every index is a `NonZeroU32` inside, so `Option<…>` of one costs four bytes; that
//! keeps an event at 40 bytes.

mod human;
mod index;
mod interner;
mod natural;
mod nearest;
mod ranks;
mod shown;
mod size;

pub use human::{count, exact_percent, grouped, lowered, percent, some_of, told_apart};
pub use index::{
    AllocationId, DeviceIndex, EventIndex, FrameId, FunctionId, Index, IterationIndex, StackId, StringId,
};
pub use interner::{SequenceInterner, StringInterner};
pub use natural::natural;
pub use nearest::suggestion;
pub use ranks::Ranks;
pub use shown::{shown_line, shown_name, shown_page, shown_source};
pub use size::SizeError;

use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign, Sub, SubAssign};

use serde::{Deserialize, Serialize};

/// A number of bytes. Subtraction saturates at zero: a difference of two sizes is never negative.
///
/// Displayed in binary units with at most one decimal: `97.5 MiB`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Bytes(pub u64);

impl Bytes {
    /// No bytes.
    pub const ZERO: Bytes = Bytes(0);
    /// 2^10 bytes.
    pub const KIB: Bytes = Bytes(1 << 10);
    /// 2^20 bytes.
    pub const MIB: Bytes = Bytes(1 << 20);
    /// 2^30 bytes.
    pub const GIB: Bytes = Bytes(1 << 30);

    /// The count itself.
    pub const fn get(self) -> u64 {
        self.0
    }

    /// This many times as much; saturates.
    #[must_use]
    pub const fn times(self, factor: u64) -> Bytes {
        Bytes(self.0.saturating_mul(factor))
    }

    /// A computed number of bytes, rounded; nothing where it is negative or undefined.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "such casts saturate")]
    pub fn rounded(value: f64) -> Bytes {
        Bytes(value.round() as u64)
    }

    /// This as a share of `whole`, from 0 upward; 0 where `whole` is nothing.
    pub fn share_of(self, whole: Bytes) -> f64 {
        if whole.0 == 0 { 0.0 } else { self.0 as f64 / whole.0 as f64 }
    }
}

impl Add for Bytes {
    type Output = Bytes;
    fn add(self, other: Bytes) -> Bytes {
        Bytes(self.0.saturating_add(other.0))
    }
}

impl AddAssign for Bytes {
    fn add_assign(&mut self, other: Bytes) {
        *self = *self + other;
    }
}

impl Sub for Bytes {
    type Output = Bytes;
    fn sub(self, other: Bytes) -> Bytes {
        Bytes(self.0.saturating_sub(other.0))
    }
}

impl SubAssign for Bytes {
    fn sub_assign(&mut self, other: Bytes) {
        *self = *self - other;
    }
}

impl Sum for Bytes {
    fn sum<I: Iterator<Item = Bytes>>(parts: I) -> Bytes {
        parts.fold(Bytes::ZERO, Add::add)
    }
}

impl<'a> Sum<&'a Bytes> for Bytes {
    fn sum<I: Iterator<Item = &'a Bytes>>(parts: I) -> Bytes {
        parts.copied().sum()
    }
}

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&human::bytes(self.0))
    }
}

/// A moment in microseconds since the Unix epoch, as PyTorch's `time_us`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Micros(pub i64);

/// How sure a conclusion is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Confidence {
    /// One weak sign, or a recording that lacks much.
    #[default]
    Low,
    /// The signs agree, but one that would settle it is missing.
    Medium,
    /// Independent signs agree.
    High,
}

impl Confidence {
    /// From the least to the most.
    pub const ALL: [Confidence; 3] = [Confidence::Low, Confidence::Medium, Confidence::High];

    /// `low`, `medium`, `high`.
    pub const fn name(self) -> &'static str {
        match self {
            Confidence::Low => "low",
            Confidence::Medium => "medium",
            Confidence::High => "high",
        }
    }
}
