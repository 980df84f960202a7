//! The median of all slopes between the values of a series, and its bounds.
//!
//! Sen 1968, "Estimates of the regression coefficient based on Kendall's tau", JASA 63: no distribution is assumed, and up to a
//! quarter of odd values move it little. The bounds are the slopes at the ranks that Kendall's score would leave at the level
//! asked for.

use statrs::distribution::{ContinuousCDF, Normal};

/// The values between which slopes are taken: all pairs take the square of it.
const MOST_VALUES: usize = 300;

/// The median slope a step, and its lower and upper bound at a one-sided level; zero for fewer than two values. Of a long
/// series evenly chosen values are asked.
pub fn slope(values: &[f64], level: f64) -> (f64, (f64, f64)) {
    let stride = values.len().div_ceil(MOST_VALUES).max(1);
    let values: Vec<f64> = values.iter().copied().step_by(stride).collect();
    let mut slopes = Vec::with_capacity(values.len() * values.len() / 2);
    for (at, early) in values.iter().enumerate() {
        for (apart, late) in values.iter().skip(at + 1).enumerate() {
            slopes.push((late - early) / ((apart + 1) * stride) as f64);
        }
    }
    slopes.sort_unstable_by(f64::total_cmp);
    let pairs = slopes.len();
    let at = |rank: f64| {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "such casts saturate")]
        let rank = rank.max(0.0) as usize;
        slopes.get(rank.min(pairs.saturating_sub(1))).copied().unwrap_or(0.0)
    };
    let count = values.len() as f64;
    let spread = (count * (count - 1.0) * (2.0 * count + 5.0) / 18.0).max(0.0).sqrt();
    let reach = spread * Normal::new(0.0, 1.0).map_or(0.0, |normal| normal.inverse_cdf(1.0 - level));
    let middle = f64::midpoint(at((pairs as f64 - 1.0) / 2.0), at(pairs as f64 / 2.0));
    let whole = pairs as f64;
    (middle, (at(((whole - reach) / 2.0).floor()), at(f64::midpoint(whole, reach).ceil())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_one_slope_and_an_odd_value_does_not_move_it() {
        let (middle, bounds) = slope(&[0.0, 2.0, 4.0, 6.0, 8.0, 10.0], 0.05);
        assert!(
            (middle - 2.0).abs() < 1e-12 && (bounds.0 - 2.0).abs() < 1e-12 && (bounds.1 - 2.0).abs() < 1e-12
        );
        let (middle, bounds) = slope(&[0.0, 10.0, 20.0, 900.0, 40.0, 50.0, 60.0], 0.05);
        assert!(
            (middle - 10.0).abs() < 0.5 && bounds.0 <= middle && middle <= bounds.1,
            "{middle} {bounds:?}"
        );
    }

    #[test]
    fn few_values_have_none() {
        assert_eq!(slope(&[], 0.05), (0.0, (0.0, 0.0)));
        assert_eq!(slope(&[3.0], 0.05), (0.0, (0.0, 0.0)));
    }
}
