//! The connector that the product uses: SSH, or this machine where the inventory says `address: local`.

use super::{BoxFuture, Connector, HostAccess, HostLink, LocalConnector, SshConnector, TransportError};
use std::sync::Arc;

/// Both ways to reach a host.
#[derive(Default)]
pub struct Connectors {
    ssh: SshConnector,
    local: LocalConnector,
}

/// The product's connector: one for a run, since jump connections and `ssh -G` answers are shared within it.
pub fn connector() -> Arc<dyn Connector> {
    Arc::new(Connectors::default())
}

impl Connector for Connectors {
    fn connect<'a>(&'a self, access: &'a HostAccess) -> BoxFuture<'a, Result<Arc<dyn HostLink>, TransportError>> {
        if access.local { self.local.connect(access) } else { self.ssh.connect(access) }
    }
}
