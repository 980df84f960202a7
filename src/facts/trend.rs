//! Whether a series grows, and by how much a step.
//!
//! In: a few to a thousand values at even distances. Out: the Mann-Kendall test (Mann 1945, Econometrica 13; Kendall
//! 1975), one-sided for growth, and the Theil-Sen slope (Sen 1968, JASA 63). Neither assumes a distribution, and
//! neither is moved much by one odd value.

use statrs::distribution::{ContinuousCDF, Normal};

/// How a series moves.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Trend {
    /// The probability of a rise at least this steady in a series without trend.
    pub p_value: f64,
    /// The median of all pairwise slopes, a step.
    pub slope: f64,
    /// Last value less first.
    pub net: f64,
    /// Net growth as a share of all movement, up and down: 1 for a straight rise, near 0 for a saw (Kaufman's
    /// efficiency ratio).
    pub efficiency: f64,
    /// The deepest fall below an earlier value, as a share of net growth.
    pub drawdown: f64,
    /// Steps up of more than 2 % of net growth.
    pub rises: usize,
    /// Steps since the last such rise.
    pub steps_since_rise: usize,
    /// The longest distance between two such rises, in steps.
    pub longest_pause: usize,
    /// Growth in the second half of the steps, as a multiple of the average.
    pub tail: f64,
    /// The smallest step as a share of the largest.
    pub evenness: f64,
    /// The smallest step as a share of the average step.
    pub smallest: f64,
    /// How many values there are.
    pub values: usize,
}

/// The trend of a series; `None` for fewer than three values.
pub fn trend(series: &[f64]) -> Option<Trend> {
    let (&first, &last) = (series.first()?, series.last()?);
    if series.len() < 3 {
        return None;
    }
    let steps: Vec<f64> = series.windows(2).filter_map(|pair| Some(pair.get(1)? - pair.first()?)).collect();
    let net = last - first;
    let movement: f64 = steps.iter().map(|step| step.abs()).sum();
    let mean = net / steps.len() as f64;
    let rises: Vec<usize> =
        steps.iter().enumerate().filter(|(_, step)| **step > 0.02 * net.abs()).map(|(at, _)| at).collect();
    let pauses = rises.windows(2).filter_map(|pair| Some(pair.get(1)? - pair.first()?));
    let half = steps.len().div_ceil(2);
    let tail: f64 = steps.iter().rev().take(half).sum::<f64>() / half as f64;
    let (smallest, largest) = (fold(&steps, f64::min), fold(&steps, f64::max));
    Some(Trend {
        p_value: mann_kendall(series),
        slope: theil_sen(series),
        net,
        efficiency: ratio(net, movement),
        drawdown: ratio(deepest_fall(series), net),
        rises: rises.len(),
        steps_since_rise: rises.last().map_or(steps.len(), |last| steps.len() - 1 - last),
        longest_pause: pauses.max().unwrap_or(1),
        tail: ratio(tail, mean),
        evenness: ratio(smallest, largest),
        smallest: ratio(smallest, mean),
        values: series.len(),
    })
}

fn ratio(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { part / whole } else { 0.0 }
}

fn fold(values: &[f64], pick: fn(f64, f64) -> f64) -> f64 {
    values.iter().copied().reduce(pick).unwrap_or(0.0)
}

fn deepest_fall(series: &[f64]) -> f64 {
    let mut highest = f64::NEG_INFINITY;
    let mut deepest: f64 = 0.0;
    for &value in series {
        highest = highest.max(value);
        deepest = deepest.max(highest - value);
    }
    deepest
}

/// The one-sided p-value of the Mann-Kendall test for growth: exact up to ten values without ties, else the normal
/// approximation with corrections for ties and continuity.
fn mann_kendall(series: &[f64]) -> f64 {
    let count = series.len();
    let score = kendall_score(series);
    let ties = ties(series);
    if count <= 10 && ties.is_empty() {
        return exact(count, score);
    }
    let spread = |n: f64| n * (n - 1.0) * (2.0 * n + 5.0);
    let variance = (spread(count as f64) - ties.iter().map(|tie| spread(*tie as f64)).sum::<f64>()) / 18.0;
    if variance <= 0.0 {
        return 1.0;
    }
    let z = (score - score.signum()) as f64 / variance.sqrt();
    Normal::new(0.0, 1.0).map_or(1.0, |normal| normal.sf(z))
}

/// Pairs that rise less pairs that fall, counted in a Fenwick tree (1994, Software: Practice and Experience 24) over the
/// values' ranks.
fn kendall_score(series: &[f64]) -> i64 {
    let mut sorted = series.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.dedup_by(|a, b| a.total_cmp(b).is_eq());
    let mut tree = vec![0_i64; sorted.len() + 1];
    let below = |tree: &[i64], mut rank: usize| {
        let mut sum = 0;
        while rank > 0 {
            sum += tree.get(rank).copied().unwrap_or(0);
            rank &= rank - 1;
        }
        sum
    };
    let mut score = 0;
    for (before, value) in (0_i64..).zip(series) {
        let rank = sorted.partition_point(|other| other.total_cmp(value).is_lt());
        score += below(&tree, rank) - (before - below(&tree, rank + 1));
        let mut at = rank + 1;
        while let Some(slot) = tree.get_mut(at) {
            *slot += 1;
            at += at & at.wrapping_neg();
        }
    }
    score
}

/// The sizes of groups of equal values, where larger than one.
fn ties(series: &[f64]) -> Vec<usize> {
    let mut sorted = series.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.chunk_by(|a, b| a.total_cmp(b).is_eq()).map(<[f64]>::len).filter(|size| *size > 1).collect()
}

/// P(S >= score) over all orders of `count` distinct values, by counting inversions (Kendall's recurrence).
fn exact(count: usize, score: i64) -> f64 {
    let mut by_inversions = vec![1.0_f64];
    for size in 2..=count {
        let mut next = vec![0.0; by_inversions.len() + size - 1];
        for (inversions, ways) in by_inversions.iter().enumerate() {
            for place in next.iter_mut().skip(inversions).take(size) {
                *place += ways;
            }
        }
        by_inversions = next;
    }
    let pairs = (count * count.saturating_sub(1) / 2) as f64;
    let total: f64 = by_inversions.iter().sum();
    let at_least = by_inversions
        .iter()
        .enumerate()
        .filter(|(inversions, _)| pairs - 2.0 * *inversions as f64 >= score as f64);
    at_least.map(|(_, ways)| ways).sum::<f64>() / total
}

/// The median slope over all pairs; over pairs of at most 300 evenly chosen values in a long series.
fn theil_sen(series: &[f64]) -> f64 {
    let stride = series.len().div_ceil(300).max(1);
    let points: Vec<(usize, f64)> = series.iter().copied().enumerate().step_by(stride).collect();
    let mut slopes = Vec::with_capacity(points.len() * points.len() / 2);
    for (at, (x, y)) in points.iter().enumerate() {
        for (later_x, later_y) in points.iter().skip(at + 1) {
            slopes.push((later_y - y) / (later_x - x) as f64);
        }
    }
    let middle = slopes.len() / 2;
    if slopes.is_empty() {
        return 0.0;
    }
    let even = slopes.len().is_multiple_of(2);
    let (below, upper, _) = slopes.select_nth_unstable_by(middle, f64::total_cmp);
    let lower = below.iter().copied().max_by(f64::total_cmp).filter(|_| even).unwrap_or(*upper);
    f64::midpoint(lower, *upper)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn series(values: &[i32]) -> Vec<f64> {
        values.iter().map(|value| f64::from(*value)).collect()
    }

    #[test]
    fn small_series_are_tested_exactly() {
        // Four rising values: one order of 24; Kendall's tables.
        assert!((mann_kendall(&series(&[1, 2, 3, 4])) - 1.0 / 24.0).abs() < 1e-12);
        // S = 4 of n = 4: 4 of 24 orders have at most one inversion.
        assert!((mann_kendall(&series(&[1, 2, 4, 3])) - 4.0 / 24.0).abs() < 1e-12);
        assert!(mann_kendall(&series(&[5, 5, 5, 5])) > 0.99);
    }

    #[test]
    fn the_score_counts_every_pair() {
        let mixed: Vec<f64> = (0..200).map(|at| f64::from(at * 37 % 50 + at / 4)).collect();
        let mut pairs = 0;
        for (at, earlier) in mixed.iter().enumerate() {
            for later in mixed.iter().skip(at + 1) {
                pairs += i64::from(later > earlier) - i64::from(later < earlier);
            }
        }
        assert_eq!(kendall_score(&mixed), pairs);
    }

    #[test]
    fn a_long_rise_is_certain_and_a_saw_is_not() {
        let rise: Vec<f64> = (0..1000).map(f64::from).collect();
        let saw: Vec<f64> = (0..1000).map(|at| f64::from(at % 6)).collect();
        assert!(mann_kendall(&rise) < 1e-9);
        assert!(mann_kendall(&saw) > 0.2);
        assert!(trend(&saw).unwrap().efficiency < 0.01);
    }

    #[test]
    fn one_odd_value_does_not_move_the_slope() {
        let trend = trend(&series(&[0, 10, 20, 900, 40, 50, 60])).unwrap();
        assert!((trend.slope - 10.0).abs() < 0.5);
    }

    #[test]
    fn a_buffer_that_fills_up_has_no_tail() {
        let values: Vec<i32> = (0..20).map(|at| 10 * at.min(8)).collect();
        let trend = trend(&series(&values)).unwrap();
        assert!(trend.tail.abs() < 1e-9);
        assert_eq!((trend.steps_since_rise, trend.longest_pause, trend.rises), (11, 1, 8));
    }

    #[test]
    fn two_values_have_no_trend() {
        assert_eq!(trend(&series(&[1, 2])), None);
    }
}
