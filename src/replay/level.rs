//! A level of bytes, and the highest that it reached.

use crate::timeline::Peak;
use crate::unit::{Bytes, EventIndex};

/// A level and the highest that it reached.
#[derive(Debug, Default)]
pub(super) struct Watermark {
    pub(super) now: Bytes,
    pub(super) peak: Peak,
}

impl Watermark {
    /// Stands so high before the first event.
    pub(super) fn start(now: Bytes) -> Watermark {
        Watermark { now, peak: Peak { bytes: now, event: None } }
    }

    pub(super) fn rise(&mut self, by: u64, at: Option<EventIndex>) {
        self.now += Bytes(by);
        if self.now > self.peak.bytes {
            self.peak = Peak { bytes: self.now, event: at };
        }
    }

    pub(super) fn fall(&mut self, by: u64) {
        self.now -= Bytes(by);
    }
}
