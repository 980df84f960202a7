//! Keys that move through time or through the tree, and the moment in words.

use std::fmt::Write;

use super::fitted::Consequence;
use super::key::Keystroke;
use super::strip::{Card, Strip};
use super::window::Window;
use crate::picture::Turn;
use crate::program::Phase;
use crate::unit::{Bytes, grouped, shown_line};

/// Moves through time; whether the key is one of those. The timeline has so many columns.
pub(super) fn moves(strip: &mut Strip, key: Keystroke, columns: usize) -> bool {
    let last = strip.picture.bins.len().saturating_sub(1);
    match key {
        Keystroke::Left | Keystroke::Letter('h') => strip.step(false, columns),
        Keystroke::Right | Keystroke::Letter('l') => strip.step(true, columns),
        Keystroke::Letter(',') => strip.go_to(strip.cursor.saturating_sub(1)),
        Keystroke::Letter('.') => strip.go_to(strip.cursor + 1),
        Keystroke::Home => strip.go_to(0),
        Keystroke::End => strip.go_to(last),
        Keystroke::Letter('+' | '=') => strip.window = strip.window.zoomed(true, strip.cursor),
        Keystroke::Letter('-') => strip.window = strip.window.zoomed(false, strip.cursor),
        Keystroke::Letter('0') => strip.window = Window::whole(last + 1),
        Keystroke::Letter('p') => strip.go_to_peak(),
        _ => return false,
    }
    true
}

/// What to say of a device without a finding.
pub(super) const NOTHING_FOUND: &str = "nothing was found on this device";

/// Goes on to an iteration, a failure, a finding, or through the tree, which has so many rows on the screen. What to say where
/// a key does nothing.
pub(super) fn walks(strip: &mut Strip, key: Keystroke, rows: usize) -> &'static str {
    let page = isize::try_from(rows).unwrap_or(1).max(1);
    match key {
        Keystroke::Letter('[') if !strip.turn(false) => return "no iteration ends before this",
        Keystroke::Letter(']') if !strip.turn(true) => return "no iteration ends after this",
        Keystroke::Letter('o') if !strip.fail() => return "no request failed in this recording",
        Keystroke::Letter('f' | 'F') if strip.cards.is_empty() => return NOTHING_FOUND,
        Keystroke::Letter('f') => strip.choose(true),
        Keystroke::Letter('F') => strip.choose(false),
        Keystroke::Letter('w') if strip.card().is_none() => return "choose a finding first: f",
        Keystroke::Letter('w') if !strip.mend() => return "nothing else would be alive without it",
        Keystroke::Escape => strip.choose_none(),
        Keystroke::Up | Keystroke::Letter('k') => strip.walk(-1),
        Keystroke::Down | Keystroke::Letter('j') => strip.walk(1),
        Keystroke::PageUp => strip.walk(-page),
        Keystroke::PageDown => strip.walk(page),
        Keystroke::Enter | Keystroke::Letter(' ') => {
            let rows = strip.rows(&strip.held());
            strip.outline.toggle(&rows);
        }
        Keystroke::Letter('x') => strip.follow_largest(),
        Keystroke::Tab => strip.group_by(strip.grouping.next()),
        _ => {}
    }
    ""
}

impl Strip<'_> {
    /// To the fullest bin of the next column, or of the one before.
    fn step(&mut self, forward: bool, columns: usize) {
        let column = self.window.column_of(self.cursor, columns);
        let here = self.window.column(column, columns);
        let beside = if forward { column + 1 } else { column.wrapping_sub(1) };
        let bins = if here.len() > 1 && beside < columns {
            self.window.column(beside, columns)
        } else if forward {
            here.end..here.end + 1
        } else {
            here.start.saturating_sub(1)..here.start.max(1)
        };
        let to = self.fullest(bins);
        self.go_to(to);
    }

    fn go_to_peak(&mut self) {
        let all = 0..self.picture.bins.len();
        let to = if self.is_mended() { self.fullest(all) } else { self.bin_of(self.picture.peak) };
        self.go_to(to);
    }

    /// To the end of the next iteration, or of one before; whether there is one.
    fn turn(&mut self, forward: bool) -> bool {
        let here = self.cursor;
        let mut ends = self.picture.turns.iter().map(|turn| self.bin_of(turn.end));
        let to = if forward { ends.find(|end| *end > here) } else { ends.rfind(|end| *end < here) };
        to.map(|to| self.go_to(to)).is_some()
    }

    /// To the next request that failed, and after the last to the first; whether there is one.
    fn fail(&mut self) -> bool {
        let bins: Vec<usize> = self.picture.failures.iter().map(|one| self.bin_of(one.moment)).collect();
        let next = bins.iter().find(|bin| **bin > self.cursor).or(bins.first()).copied();
        next.map(|to| self.go_to(to)).is_some()
    }

    fn walk(&mut self, by: isize) {
        let rows = self.rows(&self.held());
        self.outline.step(&rows, by);
    }

    /// The moment under the cursor: what is in use, and when it is.
    pub(super) fn moment(&self) -> String {
        let bins = &self.picture.bins;
        let of = |all: &[Bytes]| all.get(self.cursor).copied().unwrap_or_default();
        let mut text = format!("{} in use", of(self.requested()));
        if self.is_mended() {
            text.push_str(" without the finding");
        } else {
            let _ = write!(text, ", {} reserved", of(&bins.reserved));
        }
        let moment = bins.shown.get(self.cursor).copied().unwrap_or(0);
        let inside = |turn: &Turn| turn.start < moment && moment <= turn.end;
        let turn = self.picture.turns.iter().position(inside);
        let phase = self.phase(self.cursor);
        if let Some(at) = turn {
            let _ = write!(text, "; iteration {}", at + 1);
        }
        if phase != Phase::Other {
            let _ =
                write!(text, "{} {}", if turn.is_some() { "," } else { ";" }, phase.name().replace('-', " "));
        }
        let _ = write!(text, "; event {} of {}", grouped(moment), grouped(self.picture.events));
        if bins.width > 1 {
            let _ = write!(text, ", the fullest of {}", bins.width);
        }
        let span = self.picture.annotations.iter().rfind(|one| one.start <= moment && moment <= one.end);
        if let Some(span) = span {
            let _ = write!(text, "; {}", shown_line(&span.name));
        }
        text
    }

    /// Where a finding is, and what it costs or what is left of it, in so many columns.
    pub(super) fn consequence(&self, card: &Card, columns: usize, dots: &str) -> String {
        let highest = self.requested().iter().max().copied().unwrap_or_default();
        let without = format!("peak {highest} without it (w: with it again)");
        let impact = if self.is_mended() { without.as_str() } else { card.impact.as_str() };
        let Card { place, line, rule, .. } = card;
        Consequence { place, line, rule, impact }.fitted(columns, dots)
    }

    /// What the program was doing in a bin.
    pub(super) fn phase(&self, bin: usize) -> Phase {
        let runs = &self.picture.phases;
        let after = runs.partition_point(|run| run.bin <= bin);
        after.checked_sub(1).and_then(|at| runs.get(at)).map(|run| run.phase).unwrap_or_default()
    }
}
