//! How much a series varies by itself, and whether two differ by more than that.
//!
//! In: the values of some iterations. Out: their middle, their slope, and what these and their highest value may be off by.
//! The deviation of a value is the median absolute deviation from the trend line, scaled to a standard deviation of normal
//! values (1.4826; Rousseeuw and Croux 1993, JASA 88); a noise is three standard errors. The highest of values that come
//! back to the same height (a saw-tooth of the garbage collector) is as certain as the three highest lie close together.
//! Always: one odd iteration makes no noise, and neither does a steady rise.

use crate::lives::growth::LEVEL;
use crate::lives::slope;
use crate::unit::Bytes;

/// From a median absolute deviation to three standard deviations.
const NOISE: f64 = 3.0 * 1.4826;
/// A change below this share of the larger peak is none, whatever the noise: segments come and go in steps of that size.
const SMALLEST: f64 = 0.001;
/// From the distance between the highest and the third to what the highest may be off by.
const TOP: f64 = 5.0;

/// What a series is like.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Spread {
    pub(super) middle: f64,
    /// What the middle may be off by.
    pub(super) middle_noise: f64,
    /// What the highest value may be off by.
    pub(super) high_noise: f64,
    /// By how much it rises from one value to the next; nothing where that may be chance.
    pub(super) slope: f64,
    /// What the slope may be off by.
    pub(super) slope_noise: f64,
}

impl Spread {
    pub(super) fn of(series: &[Bytes]) -> Spread {
        if let Some((first, rest)) = series.split_first()
            && rest.iter().all(|value| value == first)
        {
            return Spread { middle: first.get() as f64, ..Spread::default() };
        }
        let values: Vec<f64> = series.iter().map(|bytes| bytes.get() as f64).collect();
        if values.len() < 3 {
            let middle = median(values.clone());
            let farthest = values.iter().map(|value| (value - middle).abs()).fold(0.0, f64::max);
            return Spread { middle, middle_noise: farthest, high_noise: farthest, ..Spread::default() };
        }
        let (steepness, (low, high)) = slope(&values, LEVEL.get());
        let slope = if low > 0.0 || high < 0.0 { steepness } else { 0.0 };
        let straightened: Vec<f64> =
            values.iter().enumerate().map(|(at, value)| value - steepness * at as f64).collect();
        let level = median(straightened.clone());
        let off = median(straightened.iter().map(|value| (value - level).abs()).collect());
        let noise = off * NOISE;
        let number = values.len() as f64;
        let mut highest = values.clone();
        highest.sort_by(|a, b| b.total_cmp(a));
        let apart = highest.first().zip(highest.get(2)).map_or(0.0, |(first, third)| first - third);
        Spread {
            middle: median(values),
            // The standard errors of a median, and of a slope over evenly spaced values: sigma * sqrt(pi / 2n) and
            // sigma * sqrt(12 / n^3).
            middle_noise: noise * (std::f64::consts::FRAC_PI_2 / number).sqrt(),
            high_noise: noise.min(TOP * apart),
            slope,
            slope_noise: noise * (12.0 / number.powi(3)).sqrt(),
        }
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let at = |place: usize| values.get(place).copied().unwrap_or(0.0);
    let half = values.len() / 2;
    if values.len() % 2 == 1 { at(half) } else { f64::midpoint(at(half.saturating_sub(1)), at(half)) }
}

/// Two sizes, and what they vary by on their own.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SizeChange {
    /// In the base.
    pub base: Bytes,
    /// In the head.
    pub head: Bytes,
    /// A difference up to this means nothing.
    pub noise: Bytes,
}

/// Which way something went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// More, beyond the noise.
    Up,
    /// No change beyond the noise.
    Same,
    /// Less, beyond the noise.
    Down,
}

impl SizeChange {
    /// Two sizes; `scale` is the larger peak, by which what is too small to matter is judged.
    pub(super) fn of(base: Bytes, head: Bytes, noise: f64, scale: Bytes) -> SizeChange {
        let least = scale.get() as f64 * SMALLEST;
        SizeChange { base, head, noise: Bytes::rounded(noise.max(least)) }
    }

    /// Which way it went.
    pub fn direction(&self) -> Direction {
        if self.head > self.base + self.noise {
            Direction::Up
        } else if self.base > self.head + self.noise {
            Direction::Down
        } else {
            Direction::Same
        }
    }

    /// Whether the two are as good as equal, whatever they vary by on their own.
    pub fn is_negligible(&self) -> bool {
        self.size().get() as f64 <= self.base.max(self.head).get() as f64 * SMALLEST
    }

    /// How far apart the two are.
    pub fn size(&self) -> Bytes {
        (self.head - self.base).max(self.base - self.head)
    }

    /// By how much it grew; nothing where it shrank.
    pub fn growth(&self) -> Bytes {
        self.head - self.base
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spread(values: &[u64]) -> Spread {
        Spread::of(&values.iter().map(|value| Bytes(*value)).collect::<Vec<_>>())
    }

    #[test]
    fn a_steady_rise_is_no_noise() {
        let rise = spread(&[100, 110, 120, 130, 140]);
        assert_eq!((rise.middle_noise, rise.high_noise, rise.slope), (0.0, 0.0, 10.0));
        let odd = spread(&[100, 100, 900, 100, 100]);
        assert_eq!((odd.middle, odd.middle_noise, odd.high_noise, odd.slope), (100.0, 0.0, 0.0, 0.0));
        let fall = spread(&[140, 130, 120, 110, 100]);
        assert_eq!((fall.high_noise, fall.slope), (0.0, -10.0));
    }

    #[test]
    fn what_varies_has_noise_and_no_slope() {
        let saw = spread(&[100, 140, 90, 150, 100, 130, 95]);
        assert!(saw.middle_noise > 20.0 && saw.high_noise > 50.0 && saw.slope == 0.0, "{saw:?}");
        assert!((spread(&[100, 130]).high_noise - 15.0).abs() < 1e-9);
    }

    #[test]
    fn a_height_that_comes_back_is_certain() {
        let teeth = spread(&[10, 40, 70, 100, 10, 40, 70, 100, 10, 40, 70, 100]);
        assert!(teeth.middle_noise > 0.0 && teeth.high_noise == 0.0, "{teeth:?}");
    }

    #[test]
    fn changes_within_the_noise_are_none() {
        let change = |base, head, noise| SizeChange::of(Bytes(base), Bytes(head), noise, Bytes(10_000));
        assert_eq!(change(1000, 1050, 60.0).direction(), Direction::Same);
        assert_eq!(change(1000, 1061, 60.0).direction(), Direction::Up);
        assert_eq!(change(1061, 1000, 60.0).direction(), Direction::Down);
        assert_eq!(change(1000, 1009, 0.0).direction(), Direction::Same, "a thousandth of the peak");
        assert!(change(1000, 1001, 60.0).is_negligible() && !change(1000, 1002, 60.0).is_negligible());
        assert_eq!(
            (change(1000, 900, 0.0).size(), change(1000, 900, 0.0).growth()),
            (Bytes(100), Bytes::ZERO)
        );
    }
}
