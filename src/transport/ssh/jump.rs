//! Jump connections: one to each jump host, shared by all targets behind it, open as long as one of
//! them is.

use super::connect::{self, SshConnection};
use super::destination::Destination;
use super::known_hosts::Files;
use crate::TransportError;
use railwright_base::mutex::lock_ignoring_poison;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, Weak};

type Slot = Arc<tokio::sync::Mutex<Weak<SshConnection>>>;

/// The jump connections that are open now, by all that led to each: whoever pins other keys for the
/// same server, or logs in with others, shares none.
#[derive(Default)]
pub(super) struct Jumps {
    open: Mutex<BTreeMap<Vec<Destination>, Slot>>,
}

impl Jumps {
    /// The connection to the last of these hops; None when there are none. Every hop is checked
    /// like a target.
    pub async fn reach(
        &self,
        hops: &[Destination],
        files: &Files,
    ) -> Result<Option<Arc<SshConnection>>, TransportError> {
        let mut through = None;
        for (n, hop) in hops.iter().enumerate() {
            let slot = self.slot(&hops[..=n]);
            // Held while connecting: the others wait for this one connection instead of each
            // opening its own.
            let mut held = slot.lock().await;
            let alive = held.upgrade().filter(|connection| connection.is_open());
            let connection = match alive {
                Some(connection) => connection,
                None => {
                    let fresh = Arc::new(connect::open_ssh_connection(hop, through, files).await?);
                    *held = Arc::downgrade(&fresh);
                    fresh
                }
            };
            through = Some(connection);
        }
        Ok(through)
    }

    fn slot(&self, way: &[Destination]) -> Slot {
        lock_ignoring_poison(&self.open)
            .entry(way.to_vec())
            .or_default()
            .clone()
    }
}
