//! The secrets of a loaded inventory: resolved once, sealed with the cluster's key, and carried by
//! connections that keep them out of what hosts report.

use super::secrets;
use super::session::Session;
use railwright_base::Diagnostic;
use railwright_base::mutex::lock_ignoring_poison;
use railwright_observe::sealed;
use railwright_plan::LastApplied;
use railwright_resource::redacted_diff;
use railwright_state::ClusterState;
use railwright_transport::{self as transport, Connector, Secrets, TargetContact};
use std::collections::BTreeSet;
use std::sync::{Arc, MutexGuard};

impl Session {
    /// The secrets that the resources name, asked for once.
    pub fn secrets(&self) -> Result<Arc<Secrets>, Diagnostic> {
        // On its own, so that the lock is let go before it is taken again below.
        let known = self.known_secrets().clone();
        match known {
            Some(secrets) => Ok(secrets),
            None => self.secrets_with(&ClusterState::load(&self.folder)?.last_applied),
        }
    }

    /// The secrets that the resources name, where the state was read already. Their key is made
    /// when there is something to seal; where no target is contacted, nothing is sealed.
    pub(crate) fn secrets_with(&self, last: &LastApplied) -> Result<Arc<Secrets>, Diagnostic> {
        let mut known = self.known_secrets();
        if let Some(secrets) = &*known {
            return Ok(secrets.clone());
        }
        let of_host = sealed::named_by_host(&self.desired.resources);
        let mut names: BTreeSet<String> = of_host.values().flatten().cloned().collect();
        let needed = !names.is_empty() || sealed::remembers_sealed(last);
        let key = match self.contact {
            Some(_) if needed => Some(self.folder.make_seal_key()?),
            Some(_) => self.folder.seal_key()?,
            // Whoever wrote the inventory may have brought the key along, and could guess a secret
            // by its seal.
            None => None,
        };
        names.extend(self.inventory.loaded.passwords());
        let desired: Vec<_> = self
            .desired
            .resources
            .iter()
            .flat_map(|resource| redacted_diff::collect_json_texts(&resource.body))
            .collect();
        let clear = self
            .inventory
            .loaded
            .sources
            .texts()
            .chain(desired.iter().map(AsRef::as_ref));
        let found = secrets::resolve_secrets(&self.inventory, &names, self.contact);
        let secrets = Arc::new(Secrets::new(key, found, of_host).beside_clear_text(clear));
        *known = Some(secrets.clone());
        Ok(secrets)
    }

    fn known_secrets(&self) -> MutexGuard<'_, Option<Arc<Secrets>>> {
        lock_ignoring_poison(&self.secrets)
    }

    /// The secrets with a key to read seals by, where only a host's own record shows that something
    /// of it is sealed and no secret is named here.
    pub(crate) fn secrets_with_key(&self) -> Result<Arc<Secrets>, Diagnostic> {
        if self.contact.is_some() {
            self.folder.make_seal_key()?;
        }
        *self.known_secrets() = None;
        self.secrets()
    }

    /// Opens connections that carry the secrets and keep them out of what hosts report.
    pub fn connector(&self, contact: TargetContact) -> Result<Arc<dyn Connector>, Diagnostic> {
        Ok(self
            .secrets()?
            .carried_by(transport::new_connector(contact)))
    }
}
