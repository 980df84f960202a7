//! cuFFT: how much room a transform takes, by what was measured.
//!
//! 7,330 transforms of one to three dimensions, complex and real, in 32 and 64 bits, each in a recorded history of its own, on an H100 with PyTorch
//! 2.11 (CUDA 13.0). Those of several dimensions, with sides to 256, take none, nor do complex ones to 16,384 numbers: they are computed where
//! they lie. What lies outside of what was measured gets none, and is noted.

use crate::place::{In, Out};
use crate::unmodelled::note_size;
use crate::{DONE, calls};

/// The largest side of a transform of several dimensions that was measured.
const MOST_OF_SEVERAL: i64 = 256;
/// Up to here a complex transform of one dimension takes no room, and a real one of 32 bits.
const MOST_IN_PLACE: i64 = 1 << 14;
/// The same for a real one of 64 bits.
const MOST_REAL_OF_64_BITS: i64 = 1 << 12;
/// An odd length up to which real numbers take no room.
const MOST_ODD: i64 = 243;
/// The largest prime factor that was measured; beyond, another way is taken, which needs some times the data's room.
const MOST_PRIME: i64 = 1009;

/// A transform of one dimension.
#[derive(Clone, Copy)]
struct Transform {
    length: i64,
    batch: i64,
    is_real: bool,
    /// Bytes of a complex number.
    width: i64,
}

/// `cudaDataType`: the width of a complex number of this kind, and whether it is one.
fn kind(kind: i32) -> Option<(i64, bool)> {
    match kind {
        0 => Some((8, false)),
        1 => Some((16, false)),
        4 => Some((8, true)),
        5 => Some((16, true)),
        _ => None,
    }
}

fn largest_prime_factor(mut length: i64) -> i64 {
    let mut largest = 1;
    let mut factor = 2;
    while factor * factor <= length {
        while length % factor == 0 {
            largest = factor;
            length /= factor;
        }
        factor += 1;
    }
    largest.max(length)
}

/// The room for a transform of one dimension; nothing where that was not measured.
fn of_one(transform: Transform) -> Option<i64> {
    let Transform { length, batch, is_real, width } = transform;
    if largest_prime_factor(length) > MOST_PRIME {
        return None;
    }
    let in_place = if is_real && width == 16 { MOST_REAL_OF_64_BITS } else { MOST_IN_PLACE };
    Some(match (is_real, length % 2 == 0) {
        (false, _) | (true, true) if length <= in_place => 0,
        (false, _) => batch * length * width,
        // Of real numbers half of what a complex transform has comes out.
        (true, true) if length <= MOST_IN_PLACE => batch * length / 2 * width,
        (true, true) => batch * (length / 2 + 1) * width,
        (true, false) if length <= MOST_ODD => 0,
        // Two at a time, as the halves of complex ones.
        (true, false) => (batch + batch % 2) * length * width,
    })
}

/// The room for a transform; nothing where that was not measured.
fn of(sides: &[i64], batch: i64, from: i32, to: i32) -> Option<i64> {
    let ((width, is_complex), (_, gives_complex)) = (kind(from)?, kind(to)?);
    match sides {
        [length] => {
            of_one(Transform { length: *length, batch, is_real: !(is_complex && gives_complex), width })
        }
        _ => sides.iter().all(|side| *side <= MOST_OF_SEVERAL).then_some(0),
    }
}

calls! {
    // The one handle that is a number.
    "cufftCreate"(place: Out<i32>) { place.set(1); DONE }
    "cufftXtMakePlanMany"(
        _plan: i32, rank: i32, sides: In<i64>, _embedded: usize, _stride: i64, _distance: i64, from: i32, _out_embedded: usize, _out_stride: i64,
        _out_distance: i64, to: i32, batch: i64, work: Out<usize>, _computed_as: i32,
    ) {
        let sides: Vec<i64> = (0..usize::try_from(rank).unwrap_or(0)).filter_map(|at| sides.get(at)).collect();
        let bytes = of(&sides, batch, from, to).unwrap_or_else(|| {
            note_size("cufftXtMakePlanMany");
            0
        });
        work.set(usize::try_from(bytes).unwrap_or(0));
        DONE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transforms_take_what_they_were_seen_to_take() {
        let complex = |length, batch, kind| of(&[length], batch, kind, kind);
        assert_eq!(complex(16_384, 100, 4), Some(0));
        assert_eq!(complex(1009, 32, 5), Some(0));
        assert_eq!(complex(65_536, 32, 4), Some(16_777_216));
        assert_eq!(complex(100_000, 1, 5), Some(1_600_000));
        let real = |length, batch, from, to| of(&[length], batch, from, to);
        assert_eq!(real(8192, 8, 0, 4), Some(0));
        assert_eq!(real(16_384, 100, 5, 1), Some(13_107_200));
        assert_eq!(real(65_536, 32, 4, 0), Some(8_388_864));
        assert_eq!(real(243, 8, 0, 4), Some(0));
        assert_eq!(of(&[32, 37, 20], 100, 0, 4), Some(0));
    }

    #[test]
    fn what_was_not_measured_is_not_made_up() {
        assert_eq!(of(&[10_007], 1, 4, 4), None);
        assert_eq!(of(&[512, 512], 1, 4, 4), None);
        // Half precision.
        assert_eq!(of(&[64], 1, 2, 6), None);
    }
}
