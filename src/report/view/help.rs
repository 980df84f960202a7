//! What the keys do.

use ratatui_core::buffer::Buffer;

use super::pen::{Pen, ScreenInk, letter};
use crate::program::Phase;

/// Keys and what they do; what is empty stands between groups.
const KEYS: [(&str, &str); 17] = [
    ("left right, h l", "one column of the timeline; with , and . one moment"),
    ("+ - 0", "closer, further, the whole recording"),
    ("home end", "the beginning, the end"),
    ("[ ]", "the end of the iteration before, of the next: what stays"),
    ("p  o", "the peak; the next request that got no memory"),
    ("f F", "the next finding, the one before: where it holds most"),
    ("e", "the chosen finding in full: its evidence, and what to write"),
    ("w", "the timeline without the chosen finding, and with it again"),
    ("up down, k j", "a row of the tree; page up, page down"),
    ("enter, space", "open or close it"),
    ("x", "open the largest, down to who allocated it"),
    ("tab", "by calls; by file, line, role; by role, name, file, line"),
    ("/  n N", "search the tree; the next match, the one before"),
    ("d D", "the next device or snapshot, the one before"),
    ("?", "this"),
    ("esc", "no finding chosen"),
    ("q, ctrl-c", "leave"),
];

/// Draws the help over the whole screen.
pub(super) fn draw(screen: &mut Buffer, pen: Pen) {
    let area = screen.area;
    let mut y = area.y;
    pen.write(screen, (area.x, y), area.width, "memlint view: keys (any key goes back)", ScreenInk::Strong);
    y += 2;
    for (keys, what) in KEYS {
        let end = pen.write(screen, (area.x + 2, y), 16, &format!("{keys:<16}"), ScreenInk::Strong);
        pen.write(screen, (end, y), area.width.saturating_sub(18), what, ScreenInk::Plain);
        y += 1;
    }
    y += 1;
    let phases = Phase::ALL.into_iter().filter(|phase| *phase != Phase::Other);
    let words: Vec<String> = phases.map(|phase| format!("{} {}", letter(phase), phase.name())).collect();
    let marks = "in the timeline: P peak, ! no memory; the line above is what is reserved";
    let legend = format!("phases: {}\n{marks}", words.join(", "));
    for line in textwrap::wrap(&legend, usize::from(area.width.saturating_sub(3))) {
        pen.write(screen, (area.x + 2, y), area.width.saturating_sub(2), &line, ScreenInk::Faint);
        y += 1;
    }
}
