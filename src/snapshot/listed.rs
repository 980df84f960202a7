//! Which rows of a table a list of the file holds.
//!
//! In: the lists that the file names. Out: the rows that each holds. Mostly they follow one another, as the file was written; a file
//! by a stranger may name them in any order, and twice.

/// Where the rows of a list stand in their table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Rows {
    Run { first: usize, length: usize },
    Scattered(Vec<usize>),
}

impl Rows {
    /// How many there are.
    pub(super) fn len(&self) -> usize {
        match self {
            Rows::Run { length, .. } => *length,
            Rows::Scattered(rows) => rows.len(),
        }
    }
}

/// Whether a row stands in two of the lists, or twice in one. Shared rows would let a small file demand much work.
pub(super) fn overlap(lists: &[Rows]) -> bool {
    let mut spans: Vec<(usize, usize)> = Vec::new();
    for rows in lists {
        match rows {
            Rows::Run { first, length } => spans.push((*first, first + length)),
            Rows::Scattered(rows) => spans.extend(rows.iter().map(|&row| (row, row + 1))),
        }
    }
    spans.sort_unstable();
    spans.iter().zip(spans.iter().skip(1)).any(|(one, next)| next.0 < one.1)
}

/// Copies the rows of a list out of their table.
pub(super) fn take<T: Copy>(table: &[T], rows: &Rows) -> Vec<T> {
    match rows {
        Rows::Run { first, length } => table.get(*first..first + length).unwrap_or_default().to_vec(),
        Rows::Scattered(rows) => rows.iter().filter_map(|&row| table.get(row).copied()).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_that_stand_twice_are_seen() {
        let run = |first, length| Rows::Run { first, length };
        assert!(!overlap(&[run(3, 2), run(0, 3), Rows::Scattered(vec![7, 5])]));
        assert!(overlap(&[run(0, 3), run(2, 2)]));
        assert!(overlap(&[Rows::Scattered(vec![7, 7])]));
        assert!(!overlap(&[run(0, 0), run(0, 3)]));
    }
}
