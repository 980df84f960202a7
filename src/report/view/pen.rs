//! How things look on the screen: sixteen colours or none, Unicode or plain signs.

use ratatui_core::buffer::Buffer;
use ratatui_core::style::{Color, Modifier, Style};

use crate::finding::Severity;
use crate::program::Phase;
use crate::report::look::Look;

/// What a piece of the screen is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ScreenInk {
    Plain,
    Strong,
    Faint,
    /// What is in use.
    Use,
    /// What the chosen finding is about.
    Guilty,
    /// The row that is chosen.
    Chosen,
    Severity(Severity),
    Phase(Phase),
}

/// What draws.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pen {
    pub(super) color: bool,
    pub(super) unicode: bool,
}

impl Pen {
    pub(super) fn of(look: &Look) -> Pen {
        Pen { color: look.color, unicode: look.unicode }
    }

    /// Where colours are not wanted, only weight and reversal are left: no meaning is told by a colour alone.
    pub(super) fn style(self, ink: ScreenInk) -> Style {
        let plain = Style::new();
        let weight = match ink {
            ScreenInk::Strong | ScreenInk::Severity(_) => plain.add_modifier(Modifier::BOLD),
            ScreenInk::Faint => plain.add_modifier(Modifier::DIM),
            ScreenInk::Chosen => plain.add_modifier(Modifier::REVERSED),
            ScreenInk::Plain | ScreenInk::Use | ScreenInk::Guilty | ScreenInk::Phase(_) => plain,
        };
        match color(ink) {
            Some(color) if self.color => weight.fg(color),
            _ => weight,
        }
    }

    /// Writes a line of text into so many columns, and says where it ends. What does not fit is cut off.
    pub(super) fn write(
        self,
        screen: &mut Buffer,
        (x, y): (u16, u16),
        columns: u16,
        text: &str,
        ink: ScreenInk,
    ) -> u16 {
        let room = columns.min(screen.area.right().saturating_sub(x));
        if room == 0 || y >= screen.area.bottom() {
            return x;
        }
        let told = self.told(text);
        let fits = textwrap::core::display_width(&told) <= usize::from(room);
        let dots = self.dots();
        let kept = if fits { room } else { room.saturating_sub(if self.unicode { 1 } else { 3 }) };
        let (mut end, _) = screen.set_stringn(x, y, &told, usize::from(kept), self.style(ink));
        if !fits {
            let left = usize::from(room.saturating_sub(end - x));
            (end, _) = screen.set_stringn(end, y, dots, left, self.style(ink));
        }
        end
    }

    /// What stands for what was cut off.
    pub(super) const fn dots(self) -> &'static str {
        if self.unicode { "…" } else { "..." }
    }

    /// A text in the signs that there are.
    fn told(self, text: &str) -> String {
        let plain = |letter: char| if letter.is_ascii() { letter } else { '?' };
        if self.unicode { text.to_owned() } else { text.chars().map(plain).collect() }
    }

    /// A cell of which so many eighths are filled.
    pub(super) const fn eighths(self, eighths: u64, guilty: bool) -> char {
        match (eighths, self.unicode, guilty) {
            (0, _, _) => ' ',
            (8.., true, true) => '▓',
            (1, true, _) => '▁',
            (2, true, _) => '▂',
            (3, true, _) => '▃',
            (4, true, _) => '▄',
            (5, true, _) => '▅',
            (6, true, _) => '▆',
            (7, true, _) => '▇',
            (_, true, false) => '█',
            (8.., false, true) => '%',
            (1..4, false, _) => '.',
            (4..8, false, _) => ':',
            (_, false, _) => '#',
        }
    }

    /// A bar of so many columns.
    pub(super) fn bar(self, columns: usize) -> String {
        (if self.unicode { "█" } else { "#" }).repeat(columns)
    }
}

/// The letter of a phase.
pub(super) const fn letter(phase: Phase) -> char {
    match phase {
        Phase::Setup => 's',
        Phase::Input => 'i',
        Phase::Forward => 'F',
        Phase::Recomputation => 'R',
        Phase::Backward => 'B',
        Phase::Clipping => 'c',
        Phase::OptimizerStep => 'O',
        Phase::ZeroGrad => 'z',
        Phase::Evaluation => 'E',
        Phase::Other => '.',
    }
}

/// One of the sixteen colours that every terminal has, as its owner set them.
const fn color(ink: ScreenInk) -> Option<Color> {
    Some(match ink {
        ScreenInk::Severity(Severity::Error) | ScreenInk::Guilty => Color::Red,
        ScreenInk::Severity(Severity::Warning) | ScreenInk::Phase(Phase::OptimizerStep | Phase::Clipping) => {
            Color::Yellow
        }
        ScreenInk::Severity(Severity::Info) | ScreenInk::Phase(Phase::Input | Phase::ZeroGrad) => Color::Cyan,
        ScreenInk::Use | ScreenInk::Phase(Phase::Forward | Phase::Recomputation) => Color::Blue,
        ScreenInk::Phase(Phase::Backward) => Color::Magenta,
        ScreenInk::Phase(Phase::Evaluation) => Color::Green,
        ScreenInk::Plain
        | ScreenInk::Strong
        | ScreenInk::Faint
        | ScreenInk::Chosen
        | ScreenInk::Phase(Phase::Setup | Phase::Other) => {
            return None;
        }
    })
}
