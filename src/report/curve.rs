//! The bytes in use over the recording as a small picture for a terminal: columns of blocks, or of signs where that is all there is.

use std::fmt::Write;

use super::look::{Ink, Look};
use crate::unit::Bytes;

/// How high it is.
const ROWS: u128 = 6;
/// Steps within a row.
const STEPS: u128 = 8;
/// Columns before it: the labels.
const MARGIN: usize = 13;

/// Draws the highest bytes of some equal parts of the recording, as wide as there is room. Nothing where nothing was in use.
pub(super) fn draw(out: &mut String, curve: &[Bytes], look: &Look) {
    let highest = curve.iter().copied().max().unwrap_or_default();
    if highest == Bytes::ZERO {
        return;
    }
    let width = look.width.saturating_sub(MARGIN).clamp(10, curve.len().max(10)).min(curve.len());
    let column = |at: usize| {
        let (from, until) = (at * curve.len() / width, (at + 1) * curve.len() / width);
        curve.get(from..until).and_then(|part| part.iter().max()).copied().unwrap_or_default()
    };
    let heights: Vec<u128> = (0..width).map(|at| height(column(at), highest)).collect();
    let key = format!("  {:>9}  over the events, each column its highest", "in use");
    let _ = writeln!(out, "{}", look.paint(Ink::Faint, &key));
    for row in (0..ROWS).rev() {
        let label = match row {
            _ if row == ROWS - 1 => highest.to_string(),
            0 => "0 B".to_owned(),
            _ => String::new(),
        };
        let cells: String =
            heights.iter().map(|height| cell(height.saturating_sub(row * STEPS), look)).collect();
        let _ = writeln!(out, "{}", format!("  {label:>9}  {cells}").trim_end());
    }
}

/// How many steps stand for some bytes: at least one where there are any, all of them for the highest.
fn height(bytes: Bytes, highest: Bytes) -> u128 {
    let highest = u128::from(highest.get()).max(1);
    (u128::from(bytes.get()) * ROWS * STEPS).div_ceil(highest)
}

/// A cell of which so many steps are filled.
fn cell(steps: u128, look: &Look) -> char {
    match (steps, look.unicode) {
        (0, _) => ' ',
        (1, true) => '▁',
        (2, true) => '▂',
        (3, true) => '▃',
        (4, true) => '▄',
        (5, true) => '▅',
        (6, true) => '▆',
        (7, true) => '▇',
        (_, true) => '█',
        (1..4, false) => '.',
        // Not `:`, two of which begin a command of GitHub's.
        (4..8, false) => '=',
        (_, false) => '#',
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(curve: &[u64], look: &Look) -> String {
        let mut out = String::new();
        let curve: Vec<Bytes> = curve.iter().map(|bytes| Bytes(*bytes)).collect();
        draw(&mut out, &curve, look);
        out
    }

    #[test]
    fn the_highest_fills_its_column_and_the_least_is_seen() {
        let expected = "
     in use  over the events, each column its highest
       48 B    #
               #
               #
              ##
              ##
        0 B  .##";
        assert_eq!(drawn(&[1, 24, 48, 0], &Look::PLAIN).trim_end(), expected.trim_start_matches('\n'));
        let unicode = Look { unicode: true, ..Look::PLAIN };
        assert!(drawn(&[1, 20, 48], &unicode).contains("▁██"));
        assert_eq!(drawn(&[0, 0], &Look::PLAIN), "");
    }

    #[test]
    fn what_is_wider_than_the_terminal_keeps_its_peaks() {
        let mut curve = vec![1; 1000];
        curve[511] = 100;
        let narrow = Look { width: 33, ..Look::PLAIN };
        let text = drawn(&curve, &narrow);
        assert_eq!(text.lines().nth(1).map(|line| line.matches('#').count()), Some(1));
        assert!(text.lines().skip(1).all(|line| line.chars().count() <= 33), "{text}");
    }
}
