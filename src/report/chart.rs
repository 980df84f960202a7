//! Memory of the iterations as bars: one an iteration, or a few together.

use std::fmt::Write;

use super::look::{Ink, Look};
use crate::engine::IterationMemory;
use crate::unit::Bytes;

/// Draws the bars in at most so many rows: resident bytes filled, the rest of the peak shaded. `unit` is what an iteration is
/// called.
pub(super) fn draw(
    out: &mut String,
    unit: &str,
    iterations: &[IterationMemory],
    most_rows: usize,
    look: &Look,
) {
    let highest = iterations.iter().map(|iteration| iteration.peak).max().unwrap_or_default();
    if highest == Bytes::ZERO {
        return;
    }
    let filled = look.bar(1, 1);
    let shaded = look.bar(0, 1);
    let together = iterations.len().div_ceil(most_rows.max(1));
    let widest = if together > 1 { 2 * iterations.len().to_string().len() + 1 } else { 0 };
    let names = widest.max(9);
    let key =
        format!("  {unit:>names$}        peak    resident  ({filled} resident at its end, {shaded} peak)");
    let _ = writeln!(out, "{}", look.paint(Ink::Faint, &key));
    let room = look.width.saturating_sub(names + 28).clamp(10, 60);
    for (row, group) in iterations.chunks(together).enumerate() {
        let first = row * together + 1;
        let last = first + group.len() - 1;
        let name = if first == last { first.to_string() } else { format!("{first}-{last}") };
        let peak = group.iter().map(|iteration| iteration.peak).max().unwrap_or_default();
        let resident = group.iter().map(|iteration| iteration.resident).max().unwrap_or_default();
        let columns = |bytes: Bytes| columns(bytes, highest, room);
        let bar = look.bar(columns(resident), columns(peak));
        let _ =
            writeln!(out, "  {name:>names$}  {:>10}  {:>10}  {bar}", peak.to_string(), resident.to_string());
    }
}

/// How many of `room` columns stand for `bytes`, where `highest` fills them all; rounded.
fn columns(bytes: Bytes, highest: Bytes, room: usize) -> usize {
    let highest = u128::from(highest.get()).max(1);
    let doubled = u128::from(bytes.get()) * room as u128 * 2;
    usize::try_from((doubled + highest) / (highest * 2)).unwrap_or(room).min(room)
}
