//! What `memlint view` shows: the timeline of a device, and what is alive at any moment of it.
//!
//! In: a report with pictures, and the keys that somebody presses. Out: the cells of a screen. Always: what is shown follows
//! from these alone, and no terminal is read or written here; whoever runs it does that. Text out of a recording commands
//! nothing: it is put into cells.

mod account;
mod fitted;
mod grove;
mod help;
mod key;
mod moment;
mod outline;
mod pen;
mod strip;
mod table;
mod timeline;
mod window;

use std::cmp::Reverse;

use ratatui_core::buffer::Buffer;
use ratatui_core::layout::{Constraint, Layout, Rect};
use textwrap::core::display_width;

pub use self::key::{Keystroke, Next};
use self::pen::{Pen, ScreenInk};
use self::strip::Strip;
use self::timeline::{DeviceTimeline, MARGIN};
use super::headline::Headline;
use super::look::Look;
use super::tally::Tally;
use crate::engine::Report;
use crate::source::SourceMap;

/// The smallest screen on which there is something to see.
const LEAST: (u16, u16) = (40, 14);
/// The keys that a newcomer needs, as many as there is room for.
const HINT: &str = "q quit  ? help  arrows  [ ] iteration  p peak  f finding  e in full  / search";

/// What is on the screen.
pub struct View<'a> {
    /// At least one.
    strips: Vec<Strip<'a>>,
    /// Which of them is shown.
    at: usize,
    pen: Pen,
    mode: Mode,
    /// What is searched for.
    wanted: String,
    /// What a key that did nothing should say.
    said: String,
    /// What was found in all.
    headline: String,
    /// The columns of the timeline and the rows of the tree when it was drawn last.
    room: (usize, usize),
}

/// What keys are taken for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    Looking,
    Searching,
    Helping,
    Reading,
}

/// The device with the gravest finding, the first of such.
fn gravest(strips: &[Strip<'_>]) -> usize {
    let severity =
        |at: &usize| strips.get(*at).and_then(|strip| strip.cards.first()).map(|card| card.severity);
    (0..strips.len()).max_by_key(|at| (severity(at), Reverse(*at))).unwrap_or(0)
}

impl<'a> View<'a> {
    /// A view of all devices of which there is a picture; nothing where there is none.
    pub fn of(report: &'a Report, sources: &SourceMap, look: &Look) -> Option<View<'a>> {
        let recordings = report.recordings.iter().enumerate();
        let devices =
            recordings.flat_map(|(input, one)| one.devices.iter().map(move |device| ((input, one), device)));
        let strips: Vec<Strip> =
            devices.filter_map(|(recording, device)| Strip::of(report, recording, device, sources)).collect();
        let headline =
            Headline::of(report).map_or_else(|| Tally::of(report).found(), |headline| headline.text);
        (!strips.is_empty()).then(|| View {
            at: gravest(&strips),
            strips,
            pen: Pen::of(look),
            mode: Mode::Looking,
            wanted: String::new(),
            said: String::new(),
            headline,
            room: (1, 1),
        })
    }

    /// Does what a key says.
    pub fn press(&mut self, key: Keystroke) -> Next {
        if key == Keystroke::Interrupt {
            return Next::Leave;
        }
        self.said.clear();
        match self.mode {
            Mode::Helping | Mode::Reading => self.mode = Mode::Looking,
            Mode::Searching => self.spell(key),
            Mode::Looking => return self.look(key),
        }
        Next::Stay
    }

    fn look(&mut self, key: Keystroke) -> Next {
        match key {
            Keystroke::Letter('q') => return Next::Leave,
            Keystroke::Letter('?') => self.mode = Mode::Helping,
            Keystroke::Letter('/') => {
                self.mode = Mode::Searching;
                self.wanted.clear();
            }
            Keystroke::Letter('e') => self.read(),
            Keystroke::Letter('n') => self.search(true),
            Keystroke::Letter('N') => self.search(false),
            Keystroke::Letter('d') => self.at = (self.at + 1) % self.strips.len(),
            Keystroke::Letter('D') => self.at = (self.at + self.strips.len() - 1) % self.strips.len(),
            _ => {
                let room = self.room;
                if let Some(strip) = self.strips.get_mut(self.at) {
                    let said = if moment::moves(strip, key, room.0) {
                        ""
                    } else {
                        moment::walks(strip, key, room.1)
                    };
                    self.say(said);
                }
            }
        }
        Next::Stay
    }

    /// Shows the chosen finding in full, the first where none is chosen.
    fn read(&mut self) {
        let Some(strip) = self.strips.get_mut(self.at) else { return };
        if strip.card().is_none() {
            strip.choose(true);
        }
        if strip.card().is_some() {
            self.mode = Mode::Reading;
        } else {
            self.say(moment::NOTHING_FOUND);
        }
    }

    /// Says why a key did nothing; where another device may have what this one lacks, how to get there.
    fn say(&mut self, said: &str) {
        let elsewhere = said == moment::NOTHING_FOUND && self.strips.len() > 1;
        self.said = format!("{said}{}", if elsewhere { "; d shows the next" } else { "" });
    }

    /// A letter of what is searched for.
    fn spell(&mut self, key: Keystroke) {
        match key {
            Keystroke::Letter(letter) => self.wanted.push(letter),
            Keystroke::Backspace => {
                self.wanted.pop();
            }
            Keystroke::Enter => {
                self.mode = Mode::Looking;
                self.search(true);
            }
            Keystroke::Escape => {
                self.mode = Mode::Looking;
                self.wanted.clear();
            }
            _ => {}
        }
    }

    fn search(&mut self, forward: bool) {
        if self.wanted.is_empty() {
            "nothing is searched for: press /".clone_into(&mut self.said);
        } else if !self.strips.get_mut(self.at).is_some_and(|strip| strip.search(&self.wanted, forward)) {
            self.said = format!("nothing alive here is called `{}`", self.wanted);
        }
    }

    /// Draws everything, and remembers how much room there was.
    pub fn draw(&mut self, screen: &mut Buffer) {
        let area = screen.area;
        if area.width < LEAST.0 || area.height < LEAST.1 {
            let text = format!("too small: {} columns and {} lines at least", LEAST.0, LEAST.1);
            self.pen.write(screen, (area.x, area.y), area.width, &text, ScreenInk::Plain);
            return;
        }
        if self.mode == Mode::Helping {
            help::draw(screen, self.pen);
            return;
        }
        if let (Mode::Reading, Some(card)) = (self.mode, self.strips.get(self.at).and_then(Strip::card)) {
            account::draw(screen, self.pen, card);
            return;
        }
        let curve = (area.height / 3).clamp(5, 20);
        let rows = [1, 1, curve, 1].map(Constraint::Length).into_iter();
        let rows = rows.chain([Constraint::Min(3), Constraint::Length(2), Constraint::Length(1)]);
        let parts: [Rect; 7] = Layout::vertical(rows).areas(area);
        self.room =
            (usize::from(area.width.saturating_sub(MARGIN)), usize::from(parts[4].height.saturating_sub(1)));
        self.draw_parts(screen, parts);
    }

    fn draw_parts(
        &mut self,
        screen: &mut Buffer,
        [title, summary, curve, moment, tree, finding, last]: [Rect; 7],
    ) {
        let (count, pen) = (self.strips.len(), self.pen);
        let hint = self.hint();
        let Some(strip) = self.strips.get_mut(self.at) else { return };
        let of = if count > 1 { format!("  ({} of {count}: d)", self.at + 1) } else { String::new() };
        let write = |screen: &mut Buffer, at: Rect, text: &str, ink: ScreenInk| {
            pen.write(screen, (at.x, at.y), at.width, text, ink);
        };
        let name = usize::from(title.width).saturating_sub(of.len());
        let name = fitted::from_the_end(&strip.name, name, pen.dots());
        write(screen, title, &format!("{name}{of}"), ScreenInk::Strong);
        let fits = display_width(&strip.summary) <= usize::from(summary.width);
        let told = if fits { &strip.summary } else { &strip.brief };
        write(screen, summary, told, ScreenInk::Plain);
        DeviceTimeline { strip, pen, area: curve }.draw(screen);
        write(screen, moment, &strip.moment(), ScreenInk::Strong);
        let (held, guilty) = (strip.held(), strip.guilty_held());
        let rows = strip.rows(&held);
        table::draw(strip, (&rows, &held, &guilty), pen, (screen, tree));
        let below = Rect { y: finding.y + 1, height: 1, ..finding };
        if let (Some(card), Some(at)) = (strip.card(), strip.chosen) {
            let head = format!("finding {} of {}: {}: ", at + 1, strip.cards.len(), card.level);
            let ink = ScreenInk::Severity(card.severity);
            let end = pen.write(screen, (finding.x, finding.y), finding.width, &head, ink);
            pen.write(
                screen,
                (end, finding.y),
                finding.width.saturating_sub(end),
                &card.message,
                ScreenInk::Strong,
            );
            let consequence = strip.consequence(card, usize::from(below.width), pen.dots());
            write(screen, below, &consequence, ScreenInk::Plain);
        } else {
            write(screen, finding, &self.headline, ScreenInk::Strong);
            let more =
                if strip.cards.is_empty() { "" } else { "press f for the first finding of this device" };
            write(screen, below, more, ScreenInk::Faint);
        }
        write(screen, last, &hint, ScreenInk::Faint);
    }

    /// The last line: what is being typed, what the last key came to, or which keys there are.
    fn hint(&self) -> String {
        match (self.mode, self.said.is_empty()) {
            (Mode::Searching, _) => format!("/{}_", self.wanted),
            (_, false) => self.said.clone(),
            _ => HINT.to_owned(),
        }
    }
}
