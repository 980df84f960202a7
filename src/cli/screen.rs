//! The whole terminal, for as long as somebody looks at something: keys in, cells out.
//!
//! Always: however it ends, be it by a key, an error, a panic or a signal, the terminal is then as it was before.

use std::env;
use std::io::{self, IsTerminal, Stdout};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use ratatui_core::terminal::Terminal;
use ratatui_crossterm::CrosstermBackend;
use ratatui_crossterm::crossterm::cursor::{Hide, Show};
use ratatui_crossterm::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use ratatui_crossterm::crossterm::execute;
use ratatui_crossterm::crossterm::terminal::{
    EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};

use super::error::CliError;
use crate::report::view::{Keystroke, Next, View};

/// How long a signal waits at most until it is noticed (chosen: nobody sees it).
const NOTICED: Duration = Duration::from_millis(100);

/// The terminal while it is ours.
pub(super) struct Screen {
    terminal: Terminal<CrosstermBackend<Stdout>>,
    /// The signal that asked for the end; 0 is none.
    signal: Arc<AtomicUsize>,
}

/// Refuses where there is no terminal on which something could be shown.
pub(super) fn permit() -> Result<(), CliError> {
    let is_dumb = env::var_os("TERM").is_some_and(|term| term == "dumb");
    if io::stdout().is_terminal() && !is_dumb { Ok(()) } else { Err(CliError::NoTerminal) }
}

impl Screen {
    /// Takes the terminal.
    pub(super) fn open() -> Result<Screen, CliError> {
        let taken = || {
            let signal = Arc::default();
            hear(&signal)?;
            let terminal = Terminal::new(CrosstermBackend::new(io::stdout()))?;
            // From here on it is given back.
            let screen = Screen { terminal, signal };
            enter()?;
            Ok(screen)
        };
        taken().map_err(|error: io::Error| CliError::Terminal { error })
    }

    /// Shows a view until somebody leaves it; a signal that ended it does then what it would have done.
    pub(super) fn show(mut self, view: &mut View) -> Result<(), CliError> {
        let shown = self.run(view).map_err(|error| CliError::Terminal { error });
        let signal = self.signal.load(Ordering::Relaxed);
        drop(self);
        obey(signal);
        shown
    }

    fn run(&mut self, view: &mut View) -> io::Result<()> {
        loop {
            self.terminal.draw(|frame| view.draw(frame.buffer_mut()))?;
            let Some(event) = self.heard()? else { return Ok(()) };
            if let Event::Key(pressed) = event {
                if is_suspension(pressed) {
                    self.suspend()?;
                } else if key(pressed).is_some_and(|key| view.press(key) == Next::Leave) {
                    return Ok(());
                }
            }
        }
    }

    /// What the terminal says next; nothing where a signal came, or the terminal is gone.
    fn heard(&self) -> io::Result<Option<Event>> {
        // What was read already comes first.
        let mut patience = Duration::ZERO;
        loop {
            if self.signal.load(Ordering::Relaxed) != 0 || !is_there(patience)? {
                return Ok(None);
            }
            if event::poll(Duration::ZERO)? {
                return event::read().map(Some);
            }
            patience = NOTICED;
        }
    }

    /// Lets the shell have the terminal, until it lets us go on.
    fn suspend(&mut self) -> io::Result<()> {
        leave();
        stop();
        enter()?;
        self.terminal.clear()
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        leave();
    }
}

fn enter() -> io::Result<()> {
    enable_raw_mode()?;
    execute!(io::stdout(), EnterAlternateScreen, Hide)
}

/// Where the terminal is gone, there is nothing to give back.
fn leave() {
    let _ = execute!(io::stdout(), Show, LeaveAlternateScreen);
    let _ = disable_raw_mode();
}

/// Waits for the terminal to say something; false where it is gone (its window closed, its connection lost). crossterm reads the end of
/// a terminal again and again and never comes back, so it is not the one that waits.
#[cfg(unix)]
fn is_there(patience: Duration) -> io::Result<bool> {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let stdout = io::stdout();
    let mut terminal = [PollFd::new(&stdout, PollFlags::IN)];
    let patience = Timespec::try_from(patience).map_err(io::Error::other)?;
    match poll(&mut terminal, Some(&patience)) {
        Ok(_) => {
            let gone = PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL;
            Ok(terminal.iter().all(|one| !one.revents().intersects(gone)))
        }
        // A signal: it is looked at next.
        Err(rustix::io::Errno::INTR) => Ok(true),
        Err(error) => Err(error.into()),
    }
}

#[cfg(not(unix))]
fn is_there(patience: Duration) -> io::Result<bool> {
    event::poll(patience).map(|_| true)
}

fn is_suspension(pressed: KeyEvent) -> bool {
    pressed.kind == KeyEventKind::Press
        && pressed.code == KeyCode::Char('z')
        && pressed.modifiers.contains(KeyModifiers::CONTROL)
}

/// The key, where the view knows it.
fn key(pressed: KeyEvent) -> Option<Keystroke> {
    if pressed.kind == KeyEventKind::Release {
        return None;
    }
    if pressed.modifiers.contains(KeyModifiers::CONTROL) {
        return (pressed.code == KeyCode::Char('c')).then_some(Keystroke::Interrupt);
    }
    Some(match pressed.code {
        KeyCode::Char(letter) => Keystroke::Letter(letter),
        KeyCode::Left => Keystroke::Left,
        KeyCode::Right => Keystroke::Right,
        KeyCode::Up => Keystroke::Up,
        KeyCode::Down => Keystroke::Down,
        KeyCode::PageUp => Keystroke::PageUp,
        KeyCode::PageDown => Keystroke::PageDown,
        KeyCode::Home => Keystroke::Home,
        KeyCode::End => Keystroke::End,
        KeyCode::Enter => Keystroke::Enter,
        KeyCode::Tab => Keystroke::Tab,
        KeyCode::Backspace => Keystroke::Backspace,
        KeyCode::Esc => Keystroke::Escape,
        _ => return None,
    })
}

/// Notes the signals that end a program.
#[cfg(unix)]
fn hear(signal: &Arc<AtomicUsize>) -> io::Result<()> {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
    for one in [SIGHUP, SIGINT, SIGQUIT, SIGTERM] {
        let number = usize::try_from(one).unwrap_or(0);
        signal_hook::flag::register_usize(one, Arc::clone(signal), number)?;
    }
    Ok(())
}

#[cfg(not(unix))]
fn hear(_: &Arc<AtomicUsize>) -> io::Result<()> {
    Ok(())
}

/// Does what a signal does to a program that does not hear it.
#[cfg(unix)]
fn obey(signal: usize) {
    if let Some(signal) = i32::try_from(signal).ok().filter(|signal| *signal != 0) {
        // Where that cannot be done, the program ends all the same.
        let _ = signal_hook::low_level::emulate_default_handler(signal);
    }
}

#[cfg(not(unix))]
fn obey(_: usize) {}

#[cfg(unix)]
fn stop() {
    let _ = signal_hook::low_level::emulate_default_handler(signal_hook::consts::SIGTSTP);
}

#[cfg(not(unix))]
fn stop() {}
