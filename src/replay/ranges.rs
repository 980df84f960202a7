//! Ranges of addresses that do not touch: where each ends, by its start.

use std::collections::BTreeMap;

/// Takes the middle out of a range.
pub(super) fn cut(ranges: &mut BTreeMap<u64, u64>, start: u64, end: u64, from: u64, to: u64) {
    ranges.remove(&start);
    for (start, end) in [(start, from), (to, end)] {
        if start < end {
            ranges.insert(start, end);
        }
    }
}

/// Adds a range and joins it with those that it touches, within limits.
pub(super) fn join(ranges: &mut BTreeMap<u64, u64>, start: u64, end: u64, limits: (u64, u64)) {
    let (mut start, mut end) = (start, end);
    if end < limits.1
        && let Some(after) = ranges.remove(&end)
    {
        end = after;
    }
    if start > limits.0
        && let Some((&before, &until)) = ranges.range(..start).next_back()
        && until == start
    {
        start = before;
    }
    ranges.insert(start, end);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_cut_out_and_put_back_leaves_one_range() {
        let mut ranges = BTreeMap::from([(10, 50)]);
        cut(&mut ranges, 10, 50, 20, 30);
        assert_eq!(ranges, BTreeMap::from([(10, 20), (30, 50)]));
        join(&mut ranges, 20, 30, (0, u64::MAX));
        assert_eq!(ranges, BTreeMap::from([(10, 50)]));
    }

    #[test]
    fn ranges_are_not_joined_beyond_their_limits() {
        let mut ranges = BTreeMap::from([(0, 10), (20, 30)]);
        join(&mut ranges, 10, 20, (10, 20));
        assert_eq!(ranges, BTreeMap::from([(0, 10), (10, 20), (20, 30)]));
    }
}
