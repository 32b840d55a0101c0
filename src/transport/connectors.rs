//! The connector that the product uses: SSH, this machine where the inventory says `address:
//! local`, the API of a switch, or an API server where it is no host at all.

use super::api::ApiConnector;
use super::{
    BoxFuture, Connector, HostAccess, HostLink, KubernetesConnector, LocalConnector, SshConnector,
    TargetContact, TransportError,
};
use std::sync::Arc;

/// Every way to reach a target.
pub struct Connectors {
    contact: TargetContact,
    ssh: SshConnector,
    local: LocalConnector,
    kubernetes: KubernetesConnector,
    api: ApiConnector,
}

/// The product's connector: one for a run, since jump connections and `ssh -G` answers are shared
/// within it.
pub fn new_connector(contact: TargetContact) -> Arc<dyn Connector> {
    Arc::new(Connectors {
        contact,
        ssh: Default::default(),
        local: Default::default(),
        kubernetes: Default::default(),
        api: Default::default(),
    })
}

impl Connector for Connectors {
    fn connect<'a>(
        &'a self,
        access: &'a HostAccess,
    ) -> BoxFuture<'a, Result<Arc<dyn HostLink>, TransportError>> {
        self.contact.lift_ceiling();
        match access {
            HostAccess {
                cluster: Some(_), ..
            } => self.kubernetes.connect(access),
            HostAccess { api: Some(_), .. } => self.api.connect(access),
            HostAccess { local: true, .. } => self.local.connect(access),
            _ => self.ssh.connect(access),
        }
    }
}
