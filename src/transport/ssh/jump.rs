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

/// The jump connections that are open now.
#[derive(Default)]
pub(super) struct Jumps {
    open: Mutex<BTreeMap<String, Slot>>,
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
        let mut key = String::new();
        for hop in hops {
            key.push_str(&format!("{}@{}:{} ", hop.user, hop.address, hop.port));
            let slot = self.slot(&key);
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

    fn slot(&self, key: &str) -> Slot {
        lock_ignoring_poison(&self.open)
            .entry(key.to_owned())
            .or_default()
            .clone()
    }
}
