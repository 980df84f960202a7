//! How much of something there is at each moment: bytes that come at one event and go at another, summed up.
//!
//! In: spans of bytes. Out: the most at once, the first moment of it, and the level at any of some moments. Takes time by the
//! spans, not by the events.

use crate::unit::Bytes;

/// A curve in the making. Moments are positions in the trace; what comes and goes at one and the same counts as there.
#[derive(Debug, Clone, Default)]
pub struct Curve {
    /// Moment, whether bytes come (and do not go), how many.
    steps: Vec<(usize, bool, u64)>,
}

impl Curve {
    /// Bytes from one moment on, and until another where there is one.
    pub fn add(&mut self, from: usize, until: Option<usize>, bytes: Bytes) {
        self.steps.push((from, true, bytes.get()));
        self.steps.extend(until.map(|until| (until, false, bytes.get())));
    }

    /// The most at once, and the first moment of it; nothing where nothing was added.
    pub fn highest(mut self) -> (Bytes, usize) {
        // Coming stands before going at the same moment: nothing is freed before its successor is made.
        self.steps.sort_unstable_by_key(|(at, comes, _)| (*at, !comes));
        let (mut level, mut best) = (0_u128, (0_u128, 0));
        for (at, comes, bytes) in self.steps {
            let bytes = u128::from(bytes);
            level = if comes { level + bytes } else { level.saturating_sub(bytes) };
            if level > best.0 {
                best = (level, at);
            }
        }
        (Bytes(u64::try_from(best.0).unwrap_or(u64::MAX)), best.1)
    }

    /// What is left at the end.
    pub fn rest(&self) -> Bytes {
        let sum = |comes: bool| -> u128 {
            self.steps.iter().filter(|(_, of, _)| *of == comes).map(|(.., bytes)| u128::from(*bytes)).sum()
        };
        Bytes(u64::try_from(sum(true).saturating_sub(sum(false))).unwrap_or(u64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_at_once_and_what_is_left() {
        let mut curve = Curve::default();
        curve.add(0, Some(5), Bytes(10));
        curve.add(5, Some(9), Bytes(4));
        curve.add(9, None, Bytes(3));
        assert_eq!(curve.rest(), Bytes(3));
        assert_eq!(curve.highest(), (Bytes(14), 5), "the old one goes when the new one is there");
        assert_eq!(Curve::default().highest(), (Bytes::ZERO, 0));
    }

    #[test]
    fn bytes_beyond_64_bits_do_not_wrap() {
        let mut curve = Curve::default();
        curve.add(0, None, Bytes(u64::MAX));
        curve.add(1, None, Bytes(u64::MAX));
        assert_eq!(curve.highest(), (Bytes(u64::MAX), 1));
    }
}
