//! Indices as types: an `EventIndex` cannot be used where an `AllocationId` is wanted.

use std::fmt;
use std::num::NonZeroU32;

/// A position in a table. All kinds of index share this; the kinds themselves are made by the macro below.
pub trait Index: Copy {
    /// The index of position `position`, counted from zero, or `None` beyond the 2^32 - 2 that a table may hold.
    fn at(position: usize) -> Option<Self>;
    /// The position, counted from zero.
    fn position(self) -> usize;
}

macro_rules! index {
    ($($(#[$doc:meta])* $name:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
        pub struct $name(NonZeroU32);

        impl Index for $name {
            fn at(position: usize) -> Option<Self> {
                u32::try_from(position).ok()?.checked_add(1).and_then(NonZeroU32::new).map(Self)
            }

            fn position(self) -> usize {
                self.0.get() as usize - 1
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}({})", stringify!($name), self.position())
            }
        }
    )*};
}

index! {
    /// An interned string.
    StringId;
    /// A distinct stack frame: name, file and line.
    FrameId;
    /// A distinct function: a name in a file.
    FunctionId;
    /// A distinct stack: a sequence of frames, innermost first.
    StackId;
    /// An event of one device's trace, in the order of the file.
    EventIndex;
    /// An allocation of one device: a lifetime, not an address.
    AllocationId;
    /// An iteration of one device's main loop.
    IterationIndex;
    /// A device ordinal as PyTorch counts them (after `CUDA_VISIBLE_DEVICES`).
    DeviceIndex;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_come_back_and_options_stay_small() {
        assert_eq!(EventIndex::at(7).map(Index::position), Some(7));
        assert_eq!(EventIndex::at(u32::MAX as usize), None);
        assert_eq!(size_of::<Option<StackId>>(), 4);
    }
}
