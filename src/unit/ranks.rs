//! How many of some ascending positions lie before another: the question "which iteration, which stretch, which turn is
//! this event in?", asked many times for every event, answered in constant time.

/// Ascending positions as a set of bits with a count every 64: 16 bytes for 64 events, where a binary search would look
/// at a dozen places (Jacobson 1989, "Space-efficient static trees and graphs").
#[derive(Debug, Clone, Default)]
pub struct Ranks {
    words: Vec<BitWord>,
    all: usize,
    /// The positions themselves, if some stand twice: bits cannot tell.
    repeated: Vec<usize>,
}

#[derive(Debug, Clone, Copy, Default)]
struct BitWord {
    bits: u64,
    before: usize,
}

impl Ranks {
    /// The ranks of some positions, which have to ascend; takes space by the last of them.
    pub fn of(positions: impl IntoIterator<Item = usize>) -> Ranks {
        let mut ranks = Ranks::default();
        let mut distinct = true;
        let mut seen = Vec::new();
        for position in positions {
            distinct &= seen.last() != Some(&position);
            seen.push(position);
        }
        ranks.all = seen.len();
        if !distinct {
            ranks.repeated = seen;
            return ranks;
        }
        for (before, position) in seen.into_iter().enumerate() {
            let word = position / 64;
            ranks.words.resize(ranks.words.len().max(word + 1), BitWord { bits: 0, before });
            if let Some(word) = ranks.words.last_mut() {
                word.bits |= 1 << (position % 64);
            }
        }
        ranks
    }

    /// How many lie before a position.
    #[inline]
    pub fn before(&self, position: usize) -> usize {
        if !self.repeated.is_empty() {
            return self.repeated.partition_point(|one| *one < position);
        }
        let below = (1 << (position % 64)) - 1;
        match self.words.get(position / 64) {
            Some(word) => word.before + (word.bits & below).count_ones() as usize,
            None => self.all,
        }
    }

    /// How many lie at a position or before it.
    #[inline]
    pub fn up_to(&self, position: usize) -> usize {
        self.before(position.saturating_add(1))
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.all
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.all == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_are_what_a_search_finds() {
        for positions in [vec![], vec![0], vec![63, 64, 65, 700], vec![5, 127, 128, 191, 192], vec![3, 3, 9]]
        {
            let ranks = Ranks::of(positions.iter().copied());
            for at in (0..800).chain([usize::MAX]) {
                assert_eq!(
                    ranks.before(at),
                    positions.partition_point(|one| *one < at),
                    "{positions:?} {at}"
                );
                assert_eq!(
                    ranks.up_to(at),
                    positions.partition_point(|one| *one <= at),
                    "{positions:?} {at}"
                );
            }
            assert_eq!(ranks.len(), positions.len());
        }
    }
}
