//! What a claim has to be worth for a level, measured and in words.

use crate::rules::Worth;
use crate::unit::{Bytes, count, exact_percent};

/// What a claim has to be worth.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Bound {
    /// Nothing: that it is so is enough.
    Always,
    /// Off the peak of requested bytes: at least this share of it, and as many bytes.
    Peak(f64, Bytes),
    /// Standing where it need not: at least this share of the peak, and as many bytes.
    Held(f64, Bytes),
    /// Off what is held from the driver: at least this share of its peak, and as many bytes.
    Reserved(f64, Bytes),
    /// The device is full within so many turns.
    Full(u64),
}

/// The scale on which shares are taken.
#[derive(Debug, Clone, Copy)]
pub struct Scale {
    /// What held bytes are a share of.
    pub held: Bytes,
    /// What reserved bytes are a share of.
    pub reserved: Bytes,
}

impl Bound {
    /// Whether a worth reaches it.
    pub fn is_met(&self, worth: &Worth, scale: &Scale) -> bool {
        let reaches = |bytes: Option<Bytes>, whole: Bytes, share: f64, least: Bytes| {
            bytes.is_some_and(|bytes| bytes >= least && bytes > Bytes::ZERO && bytes.share_of(whole) >= share)
        };
        match *self {
            Bound::Always => true,
            Bound::Peak(share, least) => {
                worth.share >= share && worth.share > 0.0 && worth.peak.is_some_and(|saved| saved >= least)
            }
            Bound::Held(share, least) => reaches(worth.held, scale.held, share, least),
            Bound::Reserved(share, least) => reaches(worth.reserved, scale.reserved, share, least),
            Bound::Full(turns) => worth.turns_left.is_some_and(|left| left <= turns),
        }
    }

    /// In words: `5 % of the peak saved`.
    pub fn words(&self) -> String {
        let both = |share: f64, bytes: Bytes, of: &str| match (share > 0.0, bytes > Bytes::ZERO) {
            (true, true) => format!("{} and {} {of}", exact_percent(share), bytes.exact()),
            (true, false) => format!("{} {of}", exact_percent(share)),
            (false, true) => format!("{} {of}", bytes.exact()),
            (false, false) => format!("any bytes {of}"),
        };
        match *self {
            Bound::Always => "always".to_owned(),
            Bound::Peak(share, bytes) => both(share, bytes, "of the peak saved"),
            Bound::Held(share, bytes) => both(share, bytes, "of the peak held"),
            Bound::Reserved(share, bytes) => both(share, bytes, "of reserved memory saved"),
            Bound::Full(turns) => {
                format!(
                    "the device full within {}",
                    count(usize::try_from(turns).unwrap_or(usize::MAX), "iteration")
                )
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_name_the_measure_and_no_rounded_number() {
        assert_eq!(Bound::Peak(0.025, Bytes(300)).words(), "2.5 % and 300 B of the peak saved");
        assert_eq!(Bound::Held(0.0, Bytes::ZERO).words(), "any bytes of the peak held");
        assert_eq!(Bound::Reserved(0.0, Bytes(256 << 20)).words(), "256 MiB of reserved memory saved");
        assert_eq!(Bound::Full(100_000).words(), "the device full within 100,000 iterations");
    }
}
