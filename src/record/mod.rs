//! A PyTorch program, run with its memory recorded and otherwise as it is.
//!
//! In: a command, and what is to be written when. Out: compressed snapshots, and what the processes of the job told. A small
//! hook in Python (`python/hook`) does the recording inside each process; it finds its [`Order`] in one environment variable and
//! tells of what it does in a ledger, a private folder. Always: the program's input, output, signals and exit status stay its own;
//! every file is there whole or not at all; a program that was not recorded is an error and not an empty success.

mod child;
mod destination;
mod error;
mod hook;
mod ledger;
mod manifest;
mod message;
mod order;
mod outcome;
mod pack;
mod partial;
mod secret;
#[cfg(unix)]
mod signals;
mod standin;

pub use destination::Destination;
pub use error::RecordError;
pub use order::{DeviceModel, StackFrames, VARIABLE, When};
pub use outcome::{PackedSnapshot, Process, Recorded};

use std::ffi::OsString;
use std::fs;
use std::num::NonZeroU64;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::sync::mpsc;
use std::thread;

use self::hook::Hook;
use self::ledger::Ledger;
use self::message::{Message, WATCH, Written};
use self::order::Order;
use self::standin::StandIns;

/// How to record.
#[derive(Debug)]
pub struct Wish {
    /// When snapshots are written.
    pub when: When,
    /// Which frames stacks have.
    pub stacks: StackFrames,
    /// The most events that are kept; `None` is what the machine can afford.
    pub max_entries: Option<NonZeroU64>,
    /// What stands in for the GPU; `None` is a real one.
    pub model: Option<DeviceModel>,
    /// Where else the program runs, with its output on standard error; `None` is where memlint does, as it is.
    pub elsewhere: Option<Elsewhere>,
}

/// Another place for a program to run at.
#[derive(Debug)]
pub struct Elsewhere {
    /// The folder.
    pub folder: PathBuf,
    /// What `PYTHONPATH` says there; `None` where it says nothing.
    pub searched: Option<OsString>,
}

/// Runs a program to its end. `seen` is called with each snapshot that shows the recording so far ([`When::watch`]), beside
/// the program.
///
/// # Errors
/// Where the program cannot be started or waited for. What went wrong inside it is in the outcome.
pub fn run(
    command: &[OsString],
    wish: &Wish,
    destination: &Destination,
    seen: impl Fn(&Path, usize) + Send,
) -> Result<(ExitStatus, Recorded), RecordError> {
    if wish.model.is_some() {
        standin::check()?;
    }
    let hook = Hook::install()?;
    let mut stand_ins = StandIns::in_folder(hook.stand_ins());
    let order = Order::of(wish, destination, hook.ledger());
    let mut ledger = Ledger::of(hook.ledger());
    let child = child::start(command, &hook, &order, wish.elsewhere.as_ref())?;
    let (sender, receiver) = mpsc::channel::<Written>();
    let stays = wish.when.every.is_none();
    let (status, snapshots) = thread::scope(|scope| {
        let packer = scope.spawn(move || pack_all(&receiver, destination, stays, &seen));
        let status = child.wait(|| {
            for message in ledger.news() {
                match message {
                    // The packer ends after the program.
                    Message::Written(written) => drop(sender.send(written)),
                    Message::Wheel { torch, answer } => stand_ins.answer(&torch, &answer),
                    _ => {}
                }
            }
            ledger.recorded_now()
        });
        drop(sender);
        (status, packer.join())
    });
    let snapshots = snapshots.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    let mut recorded = Recorded::of(ledger.into_processes(), snapshots, &destination.folder);
    recorded.put_first(stand_ins.into_trouble());
    let status = status?;
    // A single file has no manifest.
    if let Some(folder) = destination.own_folder().filter(|_| !recorded.snapshots.is_empty()) {
        manifest::write(folder, command, &recorded.snapshots)?;
    }
    Ok((status, recorded))
}

/// Compresses snapshots as they come. One that was only to be looked at `stays` where the program's last one takes its name.
fn pack_all(
    written: &mpsc::Receiver<Written>,
    destination: &Destination,
    stays: bool,
    seen: &impl Fn(&Path, usize),
) -> Vec<Result<PackedSnapshot, RecordError>> {
    let mut packed = Vec::new();
    for one in written {
        let snapshot = pack::pack(one, destination);
        if let Ok(snapshot) = &snapshot
            && snapshot.written.reason == WATCH
        {
            seen(&snapshot.path, snapshot.written.steps);
            // Where it cannot be removed it is one snapshot more.
            if !stays && fs::remove_file(&snapshot.path).is_ok() {
                continue;
            }
        }
        packed.push(snapshot);
    }
    packed
}
