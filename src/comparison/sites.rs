//! Which call sites of two recordings are the same, though files were moved and lines have shifted.
//!
//! In: the sites of both. Out: pairs. A site is known by the functions on its stack, each with its file, and by the
//! phase; files are those whose paths end alike, and what was renamed is known by its lines. Within one such chain the sites are told apart by their lines, and paired
//! in the order of these, those that are alike in size and number first. What is left (a function was wrapped in another, a phase was
//! read otherwise) is paired in the same way by its innermost function alone. Always: each site is in one pair at most.

use std::collections::BTreeMap;

use super::measured::AllocationSite;
use super::names::{NameMatches, PlacesByFile};
use crate::finding::{Location, as_written};
use crate::program::Phase;

/// More pairs than this are not weighed one by one; sites are then paired by their lines' order alone.
const MOST_WEIGHED: usize = 1 << 20;

/// Positions of the base and of the head; one is missing where a site is new or gone.
pub(super) type SitePair = (Option<usize>, Option<usize>);

/// Pairs the sites of two recordings; every site is in exactly one pair.
pub(super) fn pair(base: &[AllocationSite], head: &[AllocationSite]) -> Vec<SitePair> {
    let names = NameMatches::of(&PlacesByFile::of(base), &PlacesByFile::of(head));
    let chain = |site: &AllocationSite, of_head: bool| {
        let as_it_is = |at: &Location| (at.file.clone(), as_written(&at.function).to_owned());
        let frame = |at: &Location| if of_head { names.in_base(at) } else { as_it_is(at) };
        (site.frames.iter().map(frame).collect::<Vec<_>>(), Some(site.phase))
    };
    let innermost = |site: &AllocationSite, of_head: bool| {
        let (frames, _) = chain(site, of_head);
        (frames.into_iter().take(1).collect::<Vec<_>>(), None)
    };
    let mut left: (Vec<usize>, Vec<usize>) = ((0..base.len()).collect(), (0..head.len()).collect());
    let mut pairs = Vec::new();
    for key in [&chain as &Keying, &innermost] {
        let mut groups: BTreeMap<Key, (Vec<usize>, Vec<usize>)> = BTreeMap::new();
        for at in left.0.drain(..) {
            if let Some(site) = base.get(at) {
                groups.entry(key(site, false)).or_default().0.push(at);
            }
        }
        for at in left.1.drain(..) {
            if let Some(site) = head.get(at) {
                groups.entry(key(site, true)).or_default().1.push(at);
            }
        }
        for (mut old, mut now) in groups.into_values() {
            old.sort_by_key(|&at| base.get(at).map(lines));
            now.sort_by_key(|&at| head.get(at).map(lines));
            for (one, other) in aligned(&of(base, &old), &of(head, &now)) {
                match (one.and_then(|at| old.get(at)), other.and_then(|at| now.get(at))) {
                    (Some(&one), Some(&other)) => pairs.push((Some(one), Some(other))),
                    (Some(&one), None) => left.0.push(one),
                    (None, Some(&other)) => left.1.push(other),
                    (None, None) => {}
                }
            }
        }
    }
    pairs.extend(left.0.into_iter().map(|at| (Some(at), None)));
    pairs.extend(left.1.into_iter().map(|at| (None, Some(at))));
    pairs.sort_unstable();
    pairs
}

/// Functions with their files, innermost first, and the phase where it counts.
type Key = (Vec<(String, String)>, Option<Phase>);
type Keying<'a> = dyn Fn(&AllocationSite, bool) -> Key + 'a;

fn of<'a>(sites: &'a [AllocationSite], places: &[usize]) -> Vec<&'a AllocationSite> {
    places.iter().filter_map(|&at| sites.get(at)).collect()
}

/// The lines of a stack, outermost first.
fn lines(site: &AllocationSite) -> Vec<u32> {
    site.frames.iter().rev().map(|frame| frame.line).collect()
}

/// Pairs two sequences in their order so that as many as can be have a partner, and the pairs are as alike as can be: the
/// alignment of Needleman and Wunsch (1970, J. Mol. Biol. 48).
fn aligned(base: &[&AllocationSite], head: &[&AllocationSite]) -> Vec<SitePair> {
    let (rows, columns) = (base.len(), head.len());
    if rows.saturating_mul(columns) > MOST_WEIGHED || rows.min(columns) == 0 {
        return (0..rows.max(columns))
            .map(|at| ((at < rows).then_some(at), (at < columns).then_some(at)))
            .collect();
    }
    let width = columns + 1;
    let mut best = vec![0.0_f64; (rows + 1) * width];
    let likeness: Vec<f64> = base.iter().flat_map(|one| head.iter().map(|other| alike(one, other))).collect();
    let score =
        |best: &[f64], row: usize, column: usize| best.get(row * width + column).copied().unwrap_or(0.0);
    let like = |row: usize, column: usize| likeness.get(row * columns + column).copied().unwrap_or(0.0);
    for row in (0..rows).rev() {
        for column in (0..columns).rev() {
            let together = score(&best, row + 1, column + 1) + like(row, column);
            let apart = score(&best, row + 1, column).max(score(&best, row, column + 1));
            if let Some(place) = best.get_mut(row * width + column) {
                *place = together.max(apart);
            }
        }
    }
    let (mut row, mut column) = (0, 0);
    let mut pairs = Vec::new();
    while row < rows && column < columns {
        let together = score(&best, row + 1, column + 1) + like(row, column);
        if together >= score(&best, row, column) {
            pairs.push((Some(row), Some(column)));
            (row, column) = (row + 1, column + 1);
        } else if score(&best, row + 1, column) >= score(&best, row, column + 1) {
            pairs.push((Some(row), None));
            row += 1;
        } else {
            pairs.push((None, Some(column)));
            column += 1;
        }
    }
    pairs.extend((row..rows).map(|row| (Some(row), None)));
    pairs.extend((column..columns).map(|column| (None, Some(column))));
    pairs
}

/// How alike two sites of one function are: above 1, so that any pair is better than none; 4 for equal ones.
fn alike(one: &AllocationSite, other: &AllocationSite) -> f64 {
    let ratio = |a: f64, b: f64| if a.max(b) > 0.0 { a.min(b) / a.max(b) } else { 1.0 };
    let bytes = ratio(one.bytes.get() as f64, other.bytes.get() as f64);
    let number = ratio(one.allocations as f64, other.allocations as f64);
    let same_lines = if lines(one) == lines(other) { 0.9 } else { 0.0 };
    1.1 + bytes + number + same_lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::comparison::measured::SumSeries;
    use crate::finding::Location;
    use crate::unit::Bytes;

    fn site(stack: &[(&str, &str, u32)], mib: u64, allocations: usize) -> AllocationSite {
        let frame = |(file, function, line): &(&str, &str, u32)| Location {
            file: (*file).to_owned(),
            line: *line,
            function: (*function).to_owned(),
        };
        AllocationSite {
            frames: stack.iter().map(frame).collect(),
            phase: Phase::Forward,
            alive: SumSeries::default(),
            resident: SumSeries::default(),
            allocations,
            bytes: Bytes(mib << 20),
        }
    }

    fn in_main(line: u32, mib: u64) -> AllocationSite {
        site(&[("/a/train.py", "main", line)], mib, 10)
    }

    #[test]
    fn moved_lines_are_followed() {
        let base = [in_main(10, 5), in_main(12, 80), in_main(20, 7)];
        let head = [in_main(43, 5), in_main(45, 81), in_main(46, 300), in_main(53, 7)];
        let pairs = pair(&base, &head);
        assert_eq!(
            pairs,
            [(None, Some(2)), (Some(0), Some(0)), (Some(1), Some(1)), (Some(2), Some(3))],
            "the line that was added has no partner"
        );
    }

    #[test]
    fn a_line_that_needs_more_is_the_same_line() {
        let pairs = pair(&[in_main(10, 5), in_main(12, 80)], &[in_main(10, 500), in_main(12, 80)]);
        assert_eq!(pairs, [(Some(0), Some(0)), (Some(1), Some(1))]);
    }

    #[test]
    fn another_checkout_is_the_same_program() {
        let base = [site(&[("/a/lib/model.py", "forward", 3), ("/a/train.py", "main", 9)], 5, 1)];
        let head = [site(&[("C:\\b\\lib\\model.py", "forward", 4), ("C:\\b\\train.py", "main", 9)], 5, 1)];
        assert_eq!(pair(&base, &head), [(Some(0), Some(0))]);
    }

    #[test]
    fn a_file_that_was_renamed_is_known_by_its_lines() {
        let named = |file: &'static str, line| site(&[(file, "forward", line), (file, "main", 9)], 5, 1);
        let pairs = |head| pair(&[named("/a/train.py", 3)], &[head]);
        assert_eq!(pairs(named("/b/trainer.py", 3)), [(Some(0), Some(0))]);
        assert_eq!(pairs(named("/b/trainer.py", 4)).len(), 2, "it may be another program");
    }

    #[test]
    fn a_function_that_was_wrapped_is_found_by_its_name() {
        let base = [site(&[("/a/t.py", "forward", 3), ("/a/t.py", "<module>", 9)], 5, 1)];
        let head = [site(&[("/a/t.py", "forward", 5), ("/a/t.py", "main", 20)], 5, 1)];
        assert_eq!(pair(&base, &head), [(Some(0), Some(0))]);
        let other = [site(&[("/a/t.py", "backward", 5), ("/a/t.py", "main", 20)], 5, 1)];
        assert_eq!(pair(&base, &other), [(None, Some(0)), (Some(0), None)]);
    }
}
