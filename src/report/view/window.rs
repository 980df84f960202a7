//! Which part of a timeline is on the screen, and which bins a column shows.

use std::ops::Range;

/// Some bins, next to each other; at least one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Window {
    start: usize,
    end: usize,
    /// How many there are in all.
    all: usize,
}

impl Window {
    /// Everything.
    pub(super) fn whole(all: usize) -> Window {
        Window { start: 0, end: all.max(1), all: all.max(1) }
    }

    fn len(self) -> usize {
        self.end - self.start
    }

    /// The bins that a column of `columns` shows: at least one, and where there are more columns than bins, some twice.
    pub(super) fn column(self, column: usize, columns: usize) -> Range<usize> {
        let at = |column: usize| self.start + column * self.len() / columns.max(1);
        let start = at(column).min(self.end - 1);
        start..at(column + 1).clamp(start + 1, self.end)
    }

    /// The column that shows a bin.
    pub(super) fn column_of(self, bin: usize, columns: usize) -> usize {
        let within = bin.clamp(self.start, self.end - 1) - self.start;
        // The last column that begins no later than the bin.
        (((within + 1) * columns).div_ceil(self.len()).max(1) - 1).min(columns.saturating_sub(1))
    }

    /// Half as much, or twice as much, around a bin.
    #[must_use]
    pub(super) fn zoomed(self, closer: bool, around: usize) -> Window {
        let length = if closer { self.len() / 2 } else { self.len() * 2 };
        self.around(length, around)
    }

    /// The same length, so that a bin lies in it.
    #[must_use]
    pub(super) fn holding(self, bin: usize) -> Window {
        if (self.start..self.end).contains(&bin) { self } else { self.around(self.len(), bin) }
    }

    fn around(self, length: usize, bin: usize) -> Window {
        let length = length.clamp(8.min(self.all), self.all);
        let start = bin.saturating_sub(length / 2).min(self.all - length);
        Window { start, end: start + length, ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_bin_is_in_the_column_that_is_said_to_show_it() {
        for all in [1, 7, 60, 61, 1000] {
            for window in [Window::whole(all), Window::whole(all).zoomed(true, all / 3)] {
                for bin in window.start..window.end {
                    let column = window.column_of(bin, 60);
                    assert!(column < 60 && window.column(column, 60).contains(&bin), "{window:?} {bin}");
                }
                let seen: Vec<usize> = (0..60).flat_map(|column| window.column(column, 60)).collect();
                assert!((window.start..window.end).all(|bin| seen.contains(&bin)), "{window:?}");
            }
        }
    }

    #[test]
    fn a_window_stays_within_the_recording() {
        let mut window = Window::whole(1000);
        for _ in 0..20 {
            window = window.zoomed(true, 999);
        }
        assert_eq!((window.start, window.end), (992, 1000));
        window = window.holding(3);
        assert_eq!((window.start, window.end), (0, 8));
        for _ in 0..20 {
            window = window.zoomed(false, 3);
        }
        assert_eq!(window, Window::whole(1000));
    }
}
