//! What many hold together, distinguished by where it lies.

use std::sync::Arc;

/// The place in memory of what is shared: equal for those that hold the same one, as long as one of
/// them does.
pub fn place_of<T: ?Sized>(shared: &Arc<T>) -> usize {
    Arc::as_ptr(shared).cast::<u8>() as usize
}
