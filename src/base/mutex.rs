//! Values that several tasks share.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// The value, also where another task panicked while it had it: for what is whole between
/// statements.
pub fn lock_ignoring_poison<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
