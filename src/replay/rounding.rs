//! How the caching allocator rounds a request (`c10/cuda/CUDACachingAllocator.cpp`, `round_size` and `should_split`).

use crate::snapshot::Settings;
use crate::unit::Bytes;

/// The unit of block sizes, and the smallest piece worth splitting off in the small pool.
pub(super) const MIN_BLOCK: u64 = 512;
/// Requests up to this come from the small pool.
pub(super) const SMALL_REQUEST: u64 = 1 << 20;
/// The size of a segment of the small pool.
pub(super) const SMALL_SEGMENT: u64 = 2 << 20;

/// The bytes that a request occupies at least.
pub(super) fn round(requested: Bytes, settings: &Settings) -> u64 {
    let size = requested.get();
    if size < MIN_BLOCK {
        return MIN_BLOCK;
    }
    // The table has one entry for each power of two from 1 MiB to 32 GiB; smaller sizes use the first.
    let interval = size.ilog2().saturating_sub(20) as usize;
    let divisions = settings.roundup_power2_divisions.get(interval.min(15)).copied().map_or(0, u64::from);
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

/// Whether a piece of `remainder` bytes is split off a hole that is too large for a request of `rounded` bytes.
pub(super) fn splits(rounded: u64, remainder: u64, fine: bool, settings: &Settings) -> bool {
    if fine {
        return remainder >= MIN_BLOCK;
    }
    settings.max_split_size.is_none_or(|limit| rounded < limit.get()) && remainder > SMALL_REQUEST
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_round_to_512_bytes() {
        let settings = Settings::default();
        let rounded = |size| round(Bytes(size), &settings);
        assert_eq!([rounded(0), rounded(1), rounded(512), rounded(513)], [512, 512, 512, 1024]);
    }

    #[test]
    fn divisions_round_between_powers_of_two() {
        let settings = Settings { roundup_power2_divisions: [8; 16], ..Settings::default() };
        // 5 MiB + 1 byte with 8 divisions: steps of 512 KiB from 4 MiB on.
        assert_eq!(round(Bytes((5 << 20) + 1), &settings), 5_767_168);
        assert_eq!(round(Bytes(4 << 20), &settings), 4 << 20);
        assert_eq!(round(Bytes(1200), &settings), 1536, "small sizes keep the 512-byte rule");
    }

    #[test]
    fn the_large_pool_keeps_remainders_up_to_a_mebibyte() {
        let settings = Settings { max_split_size: Some(Bytes(32 << 20)), ..Settings::default() };
        assert!(!splits(3 << 20, 1 << 20, false, &settings));
        assert!(splits(3 << 20, (1 << 20) + 512, false, &settings));
        assert!(splits(3 << 20, 512, true, &settings));
        assert!(!splits(32 << 20, 64 << 20, false, &settings), "blocks beyond max_split_size stay whole");
    }
}
