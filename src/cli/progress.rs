//! How far reading is, on a terminal's standard error, once it takes longer than a second.

use std::io::{self, Read};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::unit::shown_name;

/// Nobody wonders what happens before this.
const PATIENCE: Duration = Duration::from_secs(1);

/// Passes bytes on and counts them. The line vanishes when reading ends; indicatif draws none where standard error is no
/// terminal.
pub(super) struct Progress<R> {
    inner: R,
    bar: ProgressBar,
    begun: Instant,
    shown: bool,
}

impl<R> Progress<R> {
    pub(super) fn of(inner: R, name: &str) -> Self {
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::hidden());
        if let Ok(style) = ProgressStyle::with_template("reading {msg}: {bytes} ({bytes_per_sec})") {
            bar.set_style(style);
        }
        bar.set_message(shown_name(name));
        Progress { inner, bar, begun: Instant::now(), shown: false }
    }
}

impl<R: Read> Read for Progress<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buffer)?;
        self.bar.inc(read as u64);
        if !self.shown && self.begun.elapsed() > PATIENCE {
            self.shown = true;
            self.bar.set_draw_target(ProgressDrawTarget::stderr());
        }
        Ok(read)
    }
}

impl<R> Drop for Progress<R> {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
