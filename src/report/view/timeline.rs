//! The timeline: iterations, phases, bytes in use with what a finding is about, reserved bytes, the peak and failed requests.

use ratatui_core::buffer::Buffer;
use ratatui_core::layout::Rect;

use super::pen::{Pen, ScreenInk, letter};
use super::strip::Strip;
use crate::finding::Severity;
use crate::program::Phase;
use crate::unit::Bytes;

/// Columns before the timeline: the labels.
pub(super) const MARGIN: u16 = 11;
/// Rows around the curve: iterations, phases, marks.
const AROUND: u16 = 3;
/// Steps within a row.
const STEPS: u64 = 8;

/// A device on some part of the screen.
pub(super) struct DeviceTimeline<'a, 'b> {
    pub(super) strip: &'a Strip<'b>,
    pub(super) pen: Pen,
    pub(super) area: Rect,
}

/// What a column shows.
#[derive(Debug, Clone, Copy, Default)]
struct Column {
    used: u64,
    lit: u64,
    reserved: u64,
}

impl DeviceTimeline<'_, '_> {
    fn columns(&self) -> usize {
        usize::from(self.area.width.saturating_sub(MARGIN))
    }

    /// The place of a column on the screen.
    fn x(&self, column: usize) -> u16 {
        self.area.x + MARGIN + u16::try_from(column).unwrap_or(u16::MAX - MARGIN)
    }

    pub(super) fn draw(&self, screen: &mut Buffer) {
        let (top, bottom) = (self.area.y, self.area.bottom().saturating_sub(1));
        self.iterations(screen, top);
        self.phases(screen, top + 1);
        self.curve(screen, top + 2, self.area.height.saturating_sub(AROUND));
        self.marks(screen, bottom);
    }

    /// The column that shows a moment, where one on the screen does.
    fn column_of(&self, moment: usize) -> Option<usize> {
        let bin = self.strip.bin_of(moment);
        let column = self.strip.window.column_of(bin, self.columns());
        self.strip.window.column(column, self.columns()).contains(&bin).then_some(column)
    }

    /// Where iterations begin, with their numbers as far as there is room.
    fn iterations(&self, screen: &mut Buffer, y: u16) {
        let turns = &self.strip.picture.turns;
        self.label(screen, y, if turns.is_empty() { "" } else { "iteration" });
        let starts: Vec<(usize, usize)> = (1..)
            .zip(turns)
            .filter_map(|(number, turn)| Some((self.column_of(turn.start)?, number)))
            .collect();
        let ends = starts.iter().skip(1).map(|(column, _)| *column).chain([self.columns()]);
        for ((column, number), end) in starts.iter().zip(ends) {
            let sign = if self.pen.unicode { '│' } else { '|' };
            let (text, room) = (format!("{sign}{number}"), end.saturating_sub(*column));
            let shown = if text.chars().count() <= room { text } else { sign.to_string() };
            let room = u16::try_from(room.max(1)).unwrap_or(u16::MAX);
            self.pen.write(screen, (self.x(*column), y), room, &shown, ScreenInk::Plain);
        }
    }

    fn phases(&self, screen: &mut Buffer, y: u16) {
        self.label(screen, y, "phase");
        for column in 0..self.columns() {
            let bin = self.strip.window.column(column, self.columns()).start;
            let phase = self.strip.phase(bin);
            let ink = ScreenInk::Phase(phase);
            let sign = if phase == Phase::Other { ' ' } else { letter(phase) };
            self.pen.write(screen, (self.x(column), y), 1, &sign.to_string(), ink);
        }
    }

    /// The fullest bin of a column.
    fn column(&self, column: usize) -> Column {
        let bins = self.strip.window.column(column, self.columns());
        let of = |all: &[Bytes], bin: usize| all.get(bin).map_or(0, |bytes| bytes.get());
        let fullest = self.strip.fullest(bins.clone());
        let reserved = self.strip.picture.bins.reserved.get(bins);
        Column {
            used: of(self.strip.requested(), fullest),
            lit: of(self.strip.lit(), fullest),
            reserved: reserved.and_then(|all| all.iter().max()).map_or(0, |bytes| bytes.get()),
        }
    }

    fn curve(&self, screen: &mut Buffer, y: u16, rows: u16) {
        let columns: Vec<Column> = (0..self.columns()).map(|column| self.column(column)).collect();
        let highest = columns.iter().map(|one| one.used.max(one.reserved)).max().unwrap_or(0);
        if rows == 0 || highest == 0 {
            return;
        }
        self.label(screen, y, &Bytes(highest).to_string());
        self.label(screen, y + rows - 1, "0 B");
        let steps = u64::from(rows) * STEPS;
        let height = |bytes: u64| {
            let scaled = (u128::from(bytes) * u128::from(steps)).div_ceil(u128::from(highest));
            u64::try_from(scaled).unwrap_or(steps)
        };
        let under_cursor = self.strip.window.column_of(self.strip.cursor, self.columns());
        for (at, column) in columns.iter().enumerate() {
            let (used, reserved) = (height(column.used), height(column.reserved).div_ceil(STEPS));
            // What is gone without the finding is not drawn as a part of what is there.
            let lit = if self.strip.is_mended() { 0 } else { height(column.lit).min(used) };
            for row in 0..u64::from(rows) {
                let filled = used.saturating_sub(row * STEPS).min(STEPS);
                let guilty = lit >= (row * STEPS + STEPS / 2).min(used) && lit > row * STEPS;
                let (sign, ink) = match filled {
                    0 if at == under_cursor => (if self.pen.unicode { '┊' } else { '|' }, ScreenInk::Faint),
                    0 if row + 1 == reserved => (if self.pen.unicode { '┄' } else { '-' }, ScreenInk::Faint),
                    _ => (
                        self.pen.eighths(filled, guilty),
                        if guilty { ScreenInk::Guilty } else { ScreenInk::Use },
                    ),
                };
                let place = (self.x(at), y + rows - 1 - u16::try_from(row).unwrap_or(0));
                self.pen.write(screen, place, 1, &sign.to_string(), ink);
            }
        }
    }

    /// The peak, failed requests, and the cursor above all.
    fn marks(&self, screen: &mut Buffer, y: u16) {
        let picture = self.strip.picture;
        let mut mark = |column: usize, sign: &str, ink: ScreenInk| {
            self.pen.write(screen, (self.x(column), y), 1, sign, ink);
        };
        if let Some(column) = self.column_of(picture.peak) {
            mark(column, "P", ScreenInk::Strong);
        }
        for column in picture.failures.iter().filter_map(|one| self.column_of(one.moment)) {
            mark(column, "!", ScreenInk::Severity(Severity::Error));
        }
        let column = self.strip.window.column_of(self.strip.cursor, self.columns());
        mark(column, if self.pen.unicode { "▲" } else { "^" }, ScreenInk::Strong);
    }

    fn label(&self, screen: &mut Buffer, y: u16, text: &str) {
        let width = usize::from(MARGIN - 1);
        self.pen.write(screen, (self.area.x, y), MARGIN, &format!("{text:>width$}"), ScreenInk::Faint);
    }
}
