//! Faults of memlint itself: a panic becomes an error like any other, and so exit code 2.

use std::panic::{self, AssertUnwindSafe};
use std::sync::{Arc, Mutex, PoisonError};

use super::error::CliError;

/// Characters of a panic's message that are shown.
const SHOWN: usize = 300;

/// Does `work`; where it panics, in whichever thread, says so once and does nothing else.
pub(super) fn caught<T>(work: impl FnOnce() -> Result<T, CliError>) -> Result<T, CliError> {
    let first = Arc::new(Mutex::new(None));
    let told = Arc::clone(&first);
    let usual = panic::take_hook();
    panic::set_hook(Box::new(move |panic| {
        told.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert_with(|| shown(&panic.to_string()));
    }));
    let outcome = panic::catch_unwind(AssertUnwindSafe(work));
    panic::set_hook(usual);
    outcome.unwrap_or_else(|_| {
        let what = first.lock().unwrap_or_else(PoisonError::into_inner).take();
        Err(CliError::Fault { what: what.unwrap_or_else(|| "panicked".to_owned()) })
    })
}

/// A message on one line, without what a terminal would obey.
fn shown(message: &str) -> String {
    let one_line = message.chars().map(|letter| if letter.is_control() { ' ' } else { letter });
    one_line.take(SHOWN).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_becomes_one_error() {
        let outcome: Result<(), CliError> = caught(|| panic!("two\nlines \u{1b}[2J"));
        let message = outcome.unwrap_err().to_string();
        assert!(message.starts_with("this is a bug in memlint: panicked at "), "{message}");
        assert!(message.ends_with("two lines  [2J"), "{message}");
        assert!(caught(|| Ok(1)).is_ok_and(|one| one == 1));
    }
}
