//! How far reading is, on a terminal's standard error, once it takes longer than a second.

use std::io::{self, Read};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::unit::shown_name;

/// Nobody wonders what happens before this.
const PATIENCE: Duration = Duration::from_secs(1);

/// A line that counts the bytes read and, where there are several snapshots, those that are done. It vanishes in the end;
/// indicatif draws none where standard error is no terminal.
pub(super) struct Progress {
    bar: ProgressBar,
    begun: Instant,
    shown: AtomicBool,
    /// How many snapshots there are; for one, its name says more.
    snapshots: usize,
    done: Mutex<usize>,
}

impl Progress {
    /// One snapshot.
    pub(super) fn of_one(name: &str) -> Progress {
        Progress::with_message(1, format!("reading {}", shown_name(name)))
    }

    /// Those of some names, some of them at a time.
    pub(super) fn of_several<'a>(mut names: impl ExactSizeIterator<Item = &'a str>) -> Progress {
        match (names.len(), names.next()) {
            (1, Some(name)) => Progress::of_one(name),
            (snapshots, _) => Progress::with_message(snapshots, counted(0, snapshots)),
        }
    }

    fn with_message(snapshots: usize, message: String) -> Progress {
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::hidden());
        if let Ok(style) = ProgressStyle::with_template("{msg}: {bytes} ({bytes_per_sec})") {
            bar.set_style(style);
        }
        bar.set_message(message);
        Progress { bar, begun: Instant::now(), shown: AtomicBool::new(false), snapshots, done: Mutex::new(0) }
    }

    /// Passes bytes on and counts them.
    pub(super) fn of_bytes<R>(&self, inner: R) -> Counted<'_, R> {
        Counted { inner, progress: self }
    }

    /// One snapshot is done.
    pub(super) fn one_is_done(&self) {
        if self.snapshots > 1 {
            // Held while it is told: of two that end together the later number stays.
            let mut done = self.done.lock().unwrap_or_else(PoisonError::into_inner);
            *done += 1;
            self.bar.set_message(counted(*done, self.snapshots));
            drop(done);
            self.show_in_time();
        }
    }

    fn show_in_time(&self) {
        if self.begun.elapsed() > PATIENCE && !self.shown.swap(true, Ordering::Relaxed) {
            self.bar.set_draw_target(ProgressDrawTarget::stderr());
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

fn counted(done: usize, snapshots: usize) -> String {
    format!("checking, {done} of {snapshots} snapshots done")
}

/// A reader whose bytes are counted.
pub(super) struct Counted<'a, R> {
    inner: R,
    progress: &'a Progress,
}

impl<R: Read> Read for Counted<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buffer)?;
        self.progress.bar.inc(read as u64);
        self.progress.show_in_time();
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn several_readers_count_together() {
        let progress = Progress::of_several(["a", "b", "c"].into_iter());
        std::thread::scope(|scope| {
            for bytes in [&b"four"[..], b"sixsix"] {
                let progress = &progress;
                scope.spawn(move || {
                    io::copy(&mut progress.of_bytes(bytes), &mut io::sink()).unwrap();
                    progress.one_is_done();
                });
            }
        });
        assert_eq!(progress.bar.position(), 10);
        assert_eq!(progress.bar.message(), "checking, 2 of 3 snapshots done");
    }
}
