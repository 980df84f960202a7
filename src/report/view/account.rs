//! A finding in full: what the two lines below the tree have no room for.

use ratatui_core::buffer::Buffer;

use super::pen::{Pen, ScreenInk};
use super::strip::Card;
use crate::report::look::at_blanks;

/// The columns before what is said.
const INDENT: u16 = 12;

/// Draws a finding over the whole screen.
pub(super) fn draw(screen: &mut Buffer, pen: Pen, card: &Card) {
    let area = screen.area;
    let head = format!("{}: {}  [{}]", card.level, card.message, card.rule);
    let mut y = write(screen, pen, (area.x, area.y), &head, ScreenInk::Severity(card.severity)) + 1;
    let parts =
        [("at", &card.place), ("evidence", &card.evidence), ("impact", &card.impact), ("help", &card.help)];
    for (name, text) in parts.into_iter().filter(|(_, text)| !text.is_empty()) {
        pen.write(screen, (area.x + 2, y), INDENT - 2, name, ScreenInk::Strong);
        y = write(screen, pen, (area.x + INDENT, y), text, ScreenInk::Plain);
    }
    write(
        screen,
        pen,
        (area.x, y.saturating_add(1)),
        &format!("memlint explain {} says more (any key goes back)", card.rule),
        ScreenInk::Faint,
    );
}

/// Writes text over as many lines as it takes, as far as the screen goes; the line behind it.
fn write(screen: &mut Buffer, pen: Pen, (x, mut y): (u16, u16), text: &str, ink: ScreenInk) -> u16 {
    let area = screen.area;
    let width = area.width.saturating_sub(x - area.x);
    for line in text.lines().flat_map(|line| textwrap::wrap(line, at_blanks(usize::from(width)))) {
        pen.write(screen, (x, y), width, &line, ink);
        y = y.saturating_add(1);
    }
    y
}
