//! Handles: numbers that look like pointers, because callers keep them as such and look into none of them.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A handle as callers keep it.
pub(crate) type Handle = usize;

/// Where handles begin, and how far they lie apart: nobody's memory, for no process maps this page.
const FIRST: Handle = 0x100;
const STEP: Handle = 0x10;

/// What is known of the things behind handles.
pub(crate) struct Table<T> {
    next: Handle,
    rows: BTreeMap<Handle, T>,
}

impl<T> Table<T> {
    pub(crate) const fn new() -> Table<T> {
        Table { next: FIRST, rows: BTreeMap::new() }
    }

    /// A new handle.
    pub(crate) fn add(&mut self, row: T) -> Handle {
        self.next += STEP;
        self.rows.insert(self.next, row);
        self.next
    }

    pub(crate) fn get(&self, handle: Handle) -> Option<&T> {
        self.rows.get(&handle)
    }

    pub(crate) fn get_mut(&mut self, handle: Handle) -> Option<&mut T> {
        self.rows.get_mut(&handle)
    }

    pub(crate) fn remove(&mut self, handle: Handle) -> Option<T> {
        self.rows.remove(&handle)
    }

    pub(crate) fn rows_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.rows.values_mut()
    }
}

impl<T: Default> Table<T> {
    /// What stands behind a handle, also behind one that was never given out (CUDA's null stream).
    pub(crate) fn entry(&mut self, handle: Handle) -> &mut T {
        self.rows.entry(handle).or_default()
    }
}

/// Locks. A panic elsewhere is an abort in here, so no lock is poisoned.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
