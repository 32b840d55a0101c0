//! The transport against real OpenSSH servers on loopback, which the tests start and end
//! themselves.
#![allow(clippy::unwrap_used, clippy::print_stdout)] // helpers of tests may panic, and name what they skip

mod commands;
mod hanging;
mod host_keys;
mod identities;
mod jumps;
mod read_only;
mod secrets;
mod server;
mod ssh_config;
mod user;

use railwright_resource::Read;
use railwright_transport::{HostLink, SshAccess, SshConnector, TransportError};
use std::sync::Arc;

/// Opens one connection.
async fn open(access: &SshAccess) -> Result<Arc<dyn HostLink>, TransportError> {
    SshConnector::new().connect("gpu-001", access).await
}

/// Opens one connection that must fail.
async fn refused(access: &SshAccess) -> TransportError {
    match open(access).await {
        Ok(_) => panic!("the connection was made"),
        Err(error) => error,
    }
}

/// A file read that every host answers.
fn a_read() -> Read {
    Read::File {
        path: "/etc/passwd".to_owned(),
    }
}

/// True when the host answers.
async fn answers(access: &SshAccess) -> bool {
    let link = open(access).await.unwrap();
    link.read(&[a_read()])
        .await
        .unwrap()
        .output(&a_read())
        .unwrap()
        .1
        .contains("root:")
}
