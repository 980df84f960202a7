//! What is alive under the cursor, as a tree with bytes at each level.

use ratatui_core::buffer::Buffer;
use ratatui_core::layout::Rect;

use super::outline::{Opens, TreeRow};
use super::pen::{Pen, ScreenInk};
use super::strip::Strip;
use crate::unit::{Bytes, percent};

/// Columns of bytes, share and bar.
const FIGURES: u16 = 26;
/// Columns of a bar.
const BAR: u64 = 6;

/// Draws the tree; `rows` are those of the strip under the cursor, `held` and `guilty` what its nodes hold, and what of it the
/// chosen finding is about.
pub(super) fn draw(
    strip: &mut Strip,
    (rows, held, guilty): (&[TreeRow], &[u64], &[u64]),
    pen: Pen,
    (screen, area): (&mut Buffer, Rect),
) {
    let all = held.first().copied().unwrap_or(0);
    let mark = if guilty.is_empty() { "" } else { "  * of the finding" };
    let head = format!("    bytes share         by {}{mark}", strip.grouping.name());
    pen.write(screen, (area.x, area.y), area.width, &head, ScreenInk::Strong);
    if rows.is_empty() {
        let place = (area.x + 4, area.y + 1);
        pen.write(
            screen,
            place,
            area.width.saturating_sub(4),
            "nothing is in use at this moment",
            ScreenInk::Faint,
        );
    }
    let height = area.height.saturating_sub(1);
    let chosen = strip.outline.position(rows);
    let top = strip.outline.scroll(rows, usize::from(height));
    for (y, (at, row)) in (area.y + 1..area.bottom()).zip(rows.iter().enumerate().skip(top)) {
        let share = Bytes(row.bytes).share_of(Bytes(all));
        let columns = usize::try_from((row.bytes * BAR).div_ceil(all.max(1)).min(BAR)).unwrap_or(0);
        let is_guilty = guilty.get(row.node as usize).is_some_and(|bytes| *bytes > 0);
        let figures = format!("{:>9} {:>5} ", Bytes(row.bytes).to_string(), percent(share));
        let ink = if at == chosen { ScreenInk::Chosen } else { ScreenInk::Plain };
        let end = pen.write(screen, (area.x, y), FIGURES, &figures, ink);
        let bar = if is_guilty { ScreenInk::Guilty } else { ScreenInk::Use };
        pen.write(screen, (end + 1, y), FIGURES, &pen.bar(columns), bar);
        if is_guilty {
            pen.write(screen, (area.x + FIGURES - 2, y), 1, "*", ScreenInk::Guilty);
        }
        name(strip, row, pen, screen, (area, y, at == chosen));
    }
}

/// The name of a row, as deep as it stands.
fn name(strip: &Strip, row: &TreeRow, pen: Pen, screen: &mut Buffer, (area, y, chosen): (Rect, u16, bool)) {
    let room = area.width.saturating_sub(FIGURES);
    let sign = match (row.opens, pen.unicode) {
        (Opens::Leaf, _) => ' ',
        (Opens::Closed, true) => '▸',
        (Opens::Open, true) => '▾',
        (Opens::Closed, false) => '+',
        (Opens::Open, false) => '-',
    };
    let Some(name) = strip.grove().name(row.node) else { return };
    // However deep: what is called is seen.
    let depth = row.depth.min(usize::from(room / 3));
    let text = format!("{}{sign} {}", " ".repeat(depth), name.text);
    let ink = match (chosen, name.own) {
        (true, _) => ScreenInk::Chosen,
        (false, true) => ScreenInk::Strong,
        (false, false) => ScreenInk::Plain,
    };
    pen.write(screen, (area.x + FIGURES, y), room, &text, ink);
}
