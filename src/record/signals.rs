//! Signals that are meant for the program and sent to memlint.
//!
//! What a terminal sends (Ctrl-C) the whole group gets by itself, and passing it on would interrupt twice. What a process sends
//! (a scheduler, `kill`) is passed on to the program; a request for a snapshot to the recorded processes, because a launcher
//! between (`torchrun`) would die of it.

use std::fs;
use std::io;
use std::path::PathBuf;

use rustix::process::{Pid, Signal, kill_process};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2};
use signal_hook::iterator::SignalsInfo;
use signal_hook::iterator::exfiltrator::origin::WithOrigin;

/// The signals that a process gets and may outlive.
const PASSED_ON: [i32; 6] = [SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2];

/// Hears signals instead of dying of them.
pub(super) struct Signals {
    heard: SignalsInfo<WithOrigin>,
    /// The folder that processes of this job have in their environment.
    ledger: PathBuf,
}

impl Signals {
    pub(super) fn listen(ledger: PathBuf) -> io::Result<Signals> {
        Ok(Signals { heard: SignalsInfo::new(PASSED_ON)?, ledger })
    }

    /// Passes on what has come.
    pub(super) fn pass_on(&mut self, program: u32, recorded: &[u32]) {
        for origin in self.heard.pending() {
            // The kernel names no process as the sender of what a terminal sends.
            if origin.process.is_none() {
                continue;
            }
            let asks_for_snapshot = origin.signal == SIGUSR1 && !recorded.is_empty();
            if !asks_for_snapshot {
                send(program, origin.signal);
                continue;
            }
            for pid in recorded.iter().filter(|pid| self.is_of_job(**pid)) {
                send(*pid, origin.signal);
            }
        }
    }

    /// Whether a process is still the one that told of itself, and not another that got its number.
    fn is_of_job(&self, pid: u32) -> bool {
        let ledger = self.ledger.as_os_str().as_encoded_bytes();
        fs::read(format!("/proc/{pid}/environ"))
            .is_ok_and(|environment| environment.windows(ledger.len()).any(|part| part == ledger))
    }
}

fn send(pid: u32, signal: i32) {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    if let (Some(pid), Some(signal)) = (pid, Signal::from_named_raw(signal)) {
        // It may have ended just now.
        let _ = kill_process(pid, signal);
    }
}
