//! The connector that the product uses: SSH, this machine where the inventory says `address:
//! local`, the API of a switch, or an API server where it is no host at all.

use super::api::ApiConnector;
use super::kubernetes::KubernetesConnector;
use super::local::open_local_link;
use super::{
    BoxFuture, Connector, HostLink, SshConnector, TargetAccess, TargetContact, TargetReach,
    TransportError,
};
use std::sync::Arc;

/// Every way to reach a target.
pub struct Connectors {
    contact: TargetContact,
    ssh: SshConnector,
    kubernetes: KubernetesConnector,
    api: ApiConnector,
}

/// The product's connector: one for a run, since jump connections and `ssh -G` answers are shared
/// within it.
pub fn new_connector(contact: TargetContact) -> Arc<dyn Connector> {
    Arc::new(Connectors {
        contact,
        ssh: Default::default(),
        kubernetes: Default::default(),
        api: Default::default(),
    })
}

impl Connector for Connectors {
    fn connect<'a>(
        &'a self,
        access: &'a TargetAccess,
    ) -> BoxFuture<'a, Result<Arc<dyn HostLink>, TransportError>> {
        self.contact.lift_ceiling();
        let name = access.name.as_str();
        Box::pin(async move {
            match &access.reach {
                TargetReach::ThisMachine { read_only, .. } => open_local_link(name, *read_only),
                TargetReach::Host(ssh) | TargetReach::SwitchShell(ssh) => {
                    self.ssh.connect(name, ssh).await
                }
                TargetReach::SwitchApi(api) => self.api.connect(name, api).await,
                TargetReach::Cluster(cluster) => self.kubernetes.connect(name, cluster).await,
            }
        })
    }
}
