//! How the caching allocator rounds a request (`c10/cuda/CUDACachingAllocator.cpp`: `round_size`, `get_allocation_size`
//! and `should_split`).

use super::tuning::{SMALL_SEGMENT, Tuning};
use crate::unit::Bytes;

/// The unit of block sizes, and the smallest piece worth splitting off in the small pool.
pub(super) const MIN_BLOCK: u64 = 512;
/// Requests up to this come from the small pool.
pub(super) const SMALL_REQUEST: u64 = 1 << 20;
/// Requests from this size on get a segment of their own.
const OWN_SEGMENT: u64 = 10 << 20;
/// The unit of their segments.
const SEGMENT_UNIT: u64 = 2 << 20;

/// Whether a request is served by the small pool.
pub fn is_small_request(rounded: Bytes) -> bool {
    rounded.get() <= SMALL_REQUEST
}

/// The bytes that a request occupies at least.
pub(super) fn round(requested: Bytes, tuning: &Tuning) -> u64 {
    let size = requested.get();
    if size < MIN_BLOCK {
        return MIN_BLOCK;
    }
    // The table has one entry for each power of two from 1 MiB to 32 GiB; smaller sizes use the first.
    let interval = size.ilog2().saturating_sub(20) as usize;
    let divisions = tuning.roundup_power2_divisions.get(interval.min(15)).copied().map_or(0, u64::from);
    if divisions > 1 && size > MIN_BLOCK * divisions {
        return round_to_division(size, divisions);
    }
    size.checked_next_multiple_of(MIN_BLOCK).unwrap_or(size)
}

/// Up to a multiple of a power of two's `divisions`-th part.
fn round_to_division(size: u64, divisions: u64) -> u64 {
    if size.is_power_of_two() {
        return size;
    }
    let floor = 1_u64 << size.ilog2();
    match floor >> divisions.ilog2() {
        0 => floor.saturating_mul(2),
        step => size.checked_next_multiple_of(step).unwrap_or(size),
    }
}

/// The segment that the driver is asked for where no free block holds `rounded` bytes.
pub(super) fn segment(rounded: u64, tuning: &Tuning) -> u64 {
    match rounded {
        ..=SMALL_REQUEST => SMALL_SEGMENT,
        _ if rounded < OWN_SEGMENT => tuning.large_segment.get(),
        _ => rounded.checked_next_multiple_of(SEGMENT_UNIT).unwrap_or(rounded),
    }
}

/// Whether a piece of `remainder` bytes is split off a hole that is too large for a request of `rounded` bytes.
pub(super) fn splits(rounded: u64, remainder: u64, fine: bool, tuning: &Tuning) -> bool {
    if fine {
        return remainder >= MIN_BLOCK;
    }
    tuning.max_split_size.is_none_or(|limit| rounded < limit.get()) && remainder > SMALL_REQUEST
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_round_to_512_bytes() {
        let tuning = Tuning::default();
        let rounded = |size| round(Bytes(size), &tuning);
        assert_eq!([rounded(0), rounded(1), rounded(512), rounded(513)], [512, 512, 512, 1024]);
    }

    #[test]
    fn divisions_round_between_powers_of_two() {
        let tuning = Tuning { roundup_power2_divisions: [8; 16], ..Tuning::default() };
        // 5 MiB + 1 byte with 8 divisions: steps of 512 KiB from 4 MiB on.
        assert_eq!(round(Bytes((5 << 20) + 1), &tuning), 5_767_168);
        assert_eq!(round(Bytes(4 << 20), &tuning), 4 << 20);
        assert_eq!(round(Bytes(1200), &tuning), 1536, "small sizes keep the 512-byte rule");
    }

    #[test]
    fn segments_come_in_three_kinds() {
        let tuning = Tuning::default();
        let sizes = [512, 1 << 20, (1 << 20) + 512, (10 << 20) - 512, 10 << 20, (10 << 20) + 512];
        let mebibytes = sizes.map(|size| segment(size, &tuning) >> 20);
        assert_eq!(mebibytes, [2, 2, 20, 20, 10, 12]);
    }

    #[test]
    fn the_large_pool_keeps_remainders_up_to_a_mebibyte() {
        let tuning = Tuning { max_split_size: Some(Bytes(32 << 20)), ..Tuning::default() };
        assert!(!splits(3 << 20, 1 << 20, false, &tuning));
        assert!(splits(3 << 20, (1 << 20) + 512, false, &tuning));
        assert!(splits(3 << 20, 512, true, &tuning));
        assert!(!splits(32 << 20, 64 << 20, false, &tuning), "blocks beyond max_split_size stay whole");
    }
}
