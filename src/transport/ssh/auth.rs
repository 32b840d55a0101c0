//! Who we are: keys of the agent that the inventory names, key files, then the agent's other keys.
//!
//! Servers close the connection after a few refused keys (MaxAuthTries, 6 unless changed), so what
//! the inventory names comes first, and the rest is not offered without end. A private key that is
//! encrypted needs the agent: nothing here ever asks for a passphrase.

use super::connect::{HostKeyChecker, describe_ssh_error};
use super::destination::Destination;
use super::identity::{self, Identity, Secret};
use super::signer::KeySigner;
use crate::TransportError;
use railwright_base::Reason;
use railwright_base::text::one_line;
use railwright_system::{descriptors, environment};
use russh::client::{AuthResult, Handle};
use russh::keys::agent::AgentIdentity;
use russh::keys::agent::client::AgentClient;
use russh::keys::{Certificate, HashAlg, PrivateKey, PrivateKeyWithHashAlg, PublicKey};
use std::sync::Arc;
use tokio::net::UnixStream;

/// Offers after which we stop by ourselves.
const OFFERS: usize = 6;

/// Logs in, or says what was tried.
pub(super) async fn log_in(
    handle: &mut Handle<HostKeyChecker>,
    destination: &Destination,
) -> Result<(), TransportError> {
    let mut login = Login {
        handle,
        destination,
        agent: None,
        tried: Vec::new(),
        offers: 0,
        rsa: None,
        lacks_descriptors: false,
    };
    let identities = login.identities();
    let held = login.ask_agent().await;
    if login.try_all(&identities, &held).await {
        return Ok(());
    }
    let (host, user) = (destination.name.clone(), destination.user.clone());
    if login.lacks_descriptors {
        return Err(TransportError::NoDescriptors {
            host,
            limit: descriptors::read_descriptor_limit(),
        });
    }
    Err(TransportError::AuthenticationFailed {
        host,
        user,
        tried: login.tried,
    })
}

struct Login<'a> {
    handle: &'a mut Handle<HostKeyChecker>,
    destination: &'a Destination,
    agent: Option<AgentClient<UnixStream>>,
    tried: Vec<String>,
    offers: usize,
    rsa: Option<Option<HashAlg>>,
    /// Some key or the agent could not be opened for want of a descriptor: that none was accepted
    /// says nothing.
    lacks_descriptors: bool,
}

impl Login<'_> {
    /// The named key files, else the usual ones of the home folder.
    fn identities(&self) -> Vec<Identity> {
        if !self.destination.identities.is_empty() {
            return self
                .destination
                .identities
                .iter()
                .map(|path| identity::load_identity(path))
                .collect();
        }
        let usual = ["id_ed25519", "id_ecdsa", "id_rsa"];
        let home = environment::find_home_folder().map(|home| home.join(".ssh"));
        let all = home.iter().flat_map(|folder| {
            usual
                .iter()
                .map(move |name| identity::load_identity(&folder.join(name)))
        });
        all.filter(|identity| !matches!(identity.secret, Secret::Absent))
            .collect()
    }

    /// Connects to the agent and asks what it holds.
    async fn ask_agent(&mut self) -> Vec<AgentIdentity> {
        let Some(socket) = &self.destination.agent else {
            return Vec::new();
        };
        let mut agent = match AgentClient::connect_uds(socket).await {
            Ok(agent) => agent,
            Err(error) => {
                self.lacks_descriptors |= matches!(&error, russh::keys::Error::IO(error) if descriptors::are_used_up(error));
                self.tried.push(format!(
                    "agent at {}: {}",
                    socket.display(),
                    one_line(&error.to_string(), 100)
                ));
                return Vec::new();
            }
        };
        // Keys that the agent holds for certain hosts only are shown after this; older agents
        // refuse it, which is fine.
        if let Some(binding) = self.handle.agent_session_binding() {
            let _ = agent.bind_session(binding, false).await;
        }
        let held = match agent.request_identities().await {
            Ok(held) => held,
            Err(error) => {
                self.tried
                    .push(format!("agent: {}", one_line(&error.to_string(), 100)));
                Vec::new()
            }
        };
        self.agent = Some(agent);
        held
    }

    async fn try_all(&mut self, identities: &[Identity], held: &[AgentIdentity]) -> bool {
        let (named, others): (Vec<_>, Vec<_>) = held.iter().partition(|agent| {
            let key = agent.public_key();
            identities
                .iter()
                .any(|identity| is_same_key(identity.public.as_ref(), &key))
        });
        for agent in named {
            if self.offer_agent(agent).await {
                return true;
            }
        }
        for identity in identities {
            let in_agent = held
                .iter()
                .any(|agent| is_same_key(identity.public.as_ref(), &agent.public_key()));
            if self.offer_file(identity, in_agent).await {
                return true;
            }
        }
        if self.destination.identities_only {
            return false;
        }
        for agent in others {
            if self.offers >= OFFERS {
                self.tried.push(format!(
                    "no more than {OFFERS} keys were offered: name the right one under `identities`"
                ));
                return false;
            }
            if self.offer_agent(agent).await {
                return true;
            }
        }
        false
    }

    async fn offer_agent(&mut self, held: &AgentIdentity) -> bool {
        let what = format!(
            "agent key {} {}",
            one_line(held.comment(), 60),
            held.public_key().fingerprint(HashAlg::Sha256)
        );
        match held {
            AgentIdentity::PublicKey { key, .. } => {
                self.sign_with_agent(key.clone(), None, what).await
            }
            AgentIdentity::Certificate { certificate, .. } => {
                self.sign_with_agent(
                    held.public_key().into_owned(),
                    Some(certificate.clone()),
                    what,
                )
                .await
            }
        }
    }

    async fn offer_file(&mut self, identity: &Identity, in_agent: bool) -> bool {
        let path = identity.path.display();
        match (&identity.secret, &identity.certificate, &identity.public) {
            (Secret::Ready(key), Some(certificate), _) => {
                self.offer_certificate(
                    key.clone(),
                    certificate.clone(),
                    format!("{path} with its certificate"),
                )
                .await
                    || self.offer_key(key.clone(), path.to_string()).await
            }
            (Secret::Ready(key), None, _) => {
                in_agent || self.offer_key(key.clone(), path.to_string()).await
            }
            // The agent has the key, the certificate lies here.
            (_, Some(certificate), Some(public)) if in_agent => {
                self.sign_with_agent(
                    public.clone(),
                    Some(certificate.clone()),
                    format!("{path}-cert.pub signed by the agent"),
                )
                .await
            }
            (Secret::Encrypted, ..) if !in_agent => self.note(format!(
                "{path}: is encrypted, and the agent does not hold it"
            )),
            (Secret::Absent, ..) if !in_agent => {
                self.note(format!("{path}: there is no such file"))
            }
            (Secret::NoDescriptors, ..) => {
                self.lacks_descriptors = true;
                false
            }
            (Secret::Broken(reason), ..) => self.note(format!("{path}: {}", one_line(reason, 100))),
            _ => false,
        }
    }

    async fn offer_key(&mut self, key: Arc<PrivateKey>, path: String) -> bool {
        let hash = if key.algorithm().is_rsa() {
            self.rsa_hash().await
        } else {
            None
        };
        let offer = self
            .handle
            .authenticate_publickey(
                self.destination.user.clone(),
                PrivateKeyWithHashAlg::new(key, hash),
            )
            .await;
        self.record_offer_result(
            path,
            offer.map_err(|error| describe_ssh_error(&error).into()),
        )
    }

    async fn offer_certificate(
        &mut self,
        key: Arc<PrivateKey>,
        certificate: Certificate,
        what: String,
    ) -> bool {
        let hash = if key.algorithm().is_rsa() {
            self.rsa_hash().await
        } else {
            None
        };
        let user = self.destination.user.clone();
        let offer = self
            .handle
            .authenticate_certificate_with(user, certificate, hash, &mut KeySigner(key))
            .await;
        self.record_offer_result(
            what,
            offer.map_err(|error| one_line(&error.to_string(), 100).into()),
        )
    }

    async fn sign_with_agent(
        &mut self,
        key: PublicKey,
        certificate: Option<Certificate>,
        what: String,
    ) -> bool {
        let hash = if key.algorithm().is_rsa() {
            self.rsa_hash().await
        } else {
            None
        };
        let Some(agent) = &mut self.agent else {
            return false;
        };
        let user = self.destination.user.clone();
        let offer = match certificate {
            None => {
                self.handle
                    .authenticate_publickey_with(user, key, hash, agent)
                    .await
            }
            Some(certificate) => {
                self.handle
                    .authenticate_certificate_with(user, certificate, hash, agent)
                    .await
            }
        };
        self.record_offer_result(
            what,
            offer.map_err(|error| one_line(&error.to_string(), 100).into()),
        )
    }

    /// The best RSA signature that the server takes; SHA-512 where it does not say. Asked once,
    /// since it can take a second.
    async fn rsa_hash(&mut self) -> Option<HashAlg> {
        if let Some(known) = self.rsa {
            return known;
        }
        let best = self
            .handle
            .best_supported_rsa_hash()
            .await
            .ok()
            .flatten()
            .flatten()
            .or(Some(HashAlg::Sha512));
        self.rsa = Some(best);
        best
    }

    fn record_offer_result(&mut self, what: String, offer: Result<AuthResult, Reason>) -> bool {
        self.offers += 1;
        match offer {
            Ok(AuthResult::Success) => return true,
            Ok(AuthResult::Failure {
                partial_success: true,
                remaining_methods,
            }) => {
                self.tried.push(format!(
                    "{what}: accepted, but the server wants {remaining_methods:?} as well"
                ));
            }
            Ok(AuthResult::Failure { .. }) => self.tried.push(format!("{what}: not accepted")),
            Err(reason) => self.tried.push(format!("{what}: {reason}")),
        }
        false
    }

    fn note(&mut self, text: String) -> bool {
        self.tried.push(text);
        false
    }
}

fn is_same_key(one: Option<&PublicKey>, other: &PublicKey) -> bool {
    one.is_some_and(|one| one.key_data() == other.key_data())
}
