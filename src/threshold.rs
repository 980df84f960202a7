//! The numbers that decide a verdict. Each stands beside the judge that asks it, with its evidence, and has a name, so that
//! a test can vary one at a time and print which verdicts hang on it (`tests/sensitivity`). Numbers that turn a claim into a
//! level are not here but in the table of materiality, which users may change.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, RwLock};

/// A number that decides a verdict.
#[derive(Debug)]
pub struct Threshold<T> {
    name: &'static str,
    value: T,
}

/// A number that can be a little larger or smaller.
pub trait Vary: Copy {
    /// The number times `factor`; a count moves by one at least.
    #[must_use]
    fn times(self, factor: f64) -> Self;
}

impl Vary for f64 {
    fn times(self, factor: f64) -> Self {
        self * factor
    }
}

/// A count or a part, moved away from where it was.
fn moved(value: u64, factor: f64) -> u64 {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_precision_loss,
        clippy::cast_sign_loss,
        reason = "thresholds that count are small"
    )]
    let scaled = (value as f64 * factor).round() as u64;
    match (scaled == value, factor > 1.0) {
        (true, true) => value + 1,
        (true, false) => value.saturating_sub(1),
        (false, _) => scaled,
    }
}

impl Vary for u64 {
    fn times(self, factor: f64) -> Self {
        moved(self, factor)
    }
}

impl Vary for usize {
    fn times(self, factor: f64) -> Self {
        Self::try_from(moved(self as u64, factor)).unwrap_or(self)
    }
}

impl<T: Vary> Threshold<T> {
    /// A number, under the name of its module and its own.
    pub(crate) const fn new(name: &'static str, value: T) -> Self {
        Self { name, value }
    }

    /// The number.
    pub(crate) fn get(&self) -> T {
        if VARIES.load(Ordering::Relaxed) { self.varied() } else { self.value }
    }

    #[cold]
    fn varied(&self) -> T {
        if let Some(asked) = asked().as_mut() {
            asked.insert(self.name);
        }
        match VARIED.read().as_deref() {
            Ok(Some((name, factor))) if name == self.name => self.value.times(*factor),
            _ => self.value,
        }
    }
}

/// Whether a number is varied, or somebody wants to know which are asked: no more than this is looked at in earnest.
static VARIES: AtomicBool = AtomicBool::new(false);
/// Which number is varied, and by what.
static VARIED: RwLock<Option<(String, f64)>> = RwLock::new(None);

/// Which numbers were asked for, where somebody wants to know.
static ASKED: Mutex<Option<BTreeSet<&'static str>>> = Mutex::new(None);

fn asked() -> MutexGuard<'static, Option<BTreeSet<&'static str>>> {
    ASKED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Does something, and says which thresholds the whole process asked for meanwhile: a test need not vary the others.
pub fn asked_by<T>(work: impl FnOnce() -> T) -> (T, BTreeSet<&'static str>) {
    *asked() = Some(BTreeSet::new());
    VARIES.store(true, Ordering::Relaxed);
    let result = work();
    VARIES.store(false, Ordering::Relaxed);
    (result, asked().take().unwrap_or_default())
}

/// Until it is dropped, one number of the whole process is larger or smaller than it should be.
#[derive(Debug)]
pub struct Varied(());

/// Multiplies the threshold of this name by `factor`, for the whole process: for tests of how much hangs on it, one at a time.
#[must_use]
pub fn vary(name: &str, factor: f64) -> Varied {
    set(Some((name.to_owned(), factor)));
    Varied(())
}

impl Drop for Varied {
    fn drop(&mut self) {
        set(None);
    }
}

fn set(varied: Option<(String, f64)>) {
    VARIES.store(varied.is_some(), Ordering::Relaxed);
    match VARIED.write() {
        Ok(mut held) => *held = varied,
        Err(poisoned) => *poisoned.into_inner() = varied,
    }
}

#[cfg(test)]
mod tests {
    use super::Vary;

    #[test]
    fn a_count_moves_by_one_at_least() {
        assert_eq!((3_usize.times(1.2), 3_usize.times(0.8), 1_usize.times(0.8)), (4, 2, 0));
        assert_eq!((10_u64.times(1.2), 10_u64.times(0.8), 100_u64.times(1.2)), (12, 8, 120));
    }
}
