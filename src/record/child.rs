//! The program: started in the terminal and the process group of memlint, with the hook on its path, and waited for.

use std::env;
use std::ffi::{OsStr, OsString};
use std::io;
use std::process::{Child, Command, ExitStatus};
use std::thread;
use std::time::Duration;

use super::Elsewhere;
use super::error::RecordError;
use super::hook::Hook;
use super::order::{Order, VARIABLE};
#[cfg(unix)]
use super::signals::Signals;

/// Between two looks at the program: short for whoever waits, long for the machine.
const PAUSE: Duration = Duration::from_millis(20);

/// Where Python looks for modules first.
const SEARCHED: &str = "PYTHONPATH";

/// A program that runs.
pub(super) struct Running {
    child: Child,
    #[cfg(unix)]
    signals: Signals,
}

/// Starts a program, in another folder where one is named: its standard output is then ours for the errors.
pub(super) fn start(
    command: &[OsString],
    hook: &Hook,
    order: &Order<'_>,
    elsewhere: Option<&Elsewhere>,
) -> Result<Running, RecordError> {
    let (program, arguments) =
        command.split_first().map_or((OsStr::new(""), &[][..]), |(a, b)| (a.as_os_str(), b));
    let failed = |error: io::Error| {
        let name = program.to_string_lossy().into_owned();
        if error.kind() == io::ErrorKind::NotFound && name.starts_with('-') {
            return RecordError::Option { name };
        }
        RecordError::Start { program: name, error }
    };
    // Before the program is there: a signal in between would end memlint alone.
    #[cfg(unix)]
    let signals = Signals::listen(hook.ledger().to_owned()).map_err(failed)?;
    let order = serde_json::to_string(order).map_err(|error| failed(error.into()))?;
    let mut command = Command::new(program);
    command.args(arguments).env(VARIABLE, order).env(SEARCHED, path_with(hook, elsewhere));
    if let Some(Elsewhere { folder, .. }) = elsewhere {
        // Programs that ask for the name of their folder ask this variable, too.
        command.current_dir(folder).env("PWD", folder).stdout(io::stderr());
    }
    let child = command.spawn().map_err(failed)?;
    Ok(Running {
        child,
        #[cfg(unix)]
        signals,
    })
}

/// The path that Python searches, with the hook at its head. What is there already stays as it is: it may be no list of paths.
fn path_with(hook: &Hook, elsewhere: Option<&Elsewhere>) -> OsString {
    let mut path = hook.modules().as_os_str().to_owned();
    let rest = elsewhere.map_or_else(|| env::var_os(SEARCHED), |there| there.searched.clone());
    if let Some(rest) = rest.filter(|rest| !rest.is_empty()) {
        path.push(if cfg!(windows) { ";" } else { ":" });
        path.push(rest);
    }
    path
}

impl Running {
    /// Waits for the end. Meanwhile `look` looks after the rest, and says which processes are recorded.
    pub(super) fn wait(mut self, mut look: impl FnMut() -> Vec<u32>) -> Result<ExitStatus, RecordError> {
        loop {
            let status = self.child.try_wait().map_err(|error| RecordError::Wait { error })?;
            let recorded = look();
            match status {
                Some(status) => return Ok(status),
                None => self.pass_signals_on(&recorded),
            }
            thread::sleep(PAUSE);
        }
    }

    #[cfg(unix)]
    fn pass_signals_on(&mut self, recorded: &[u32]) {
        self.signals.pass_on(self.child.id(), recorded);
    }

    /// Elsewhere consoles tell every program in them by themselves.
    #[cfg(not(unix))]
    #[expect(clippy::unused_self, reason = "as elsewhere")]
    fn pass_signals_on(&mut self, _recorded: &[u32]) {}
}
