//! Signs for a certificate with a key file. russh's own way signs for every RSA certificate as
//! `ssh-rsa`, SHA-1, which OpenSSH 8.8 and newer refuse; here the hash is the one that the server
//! takes.

use russh::AgentAuthError;
use russh::keys::agent::AgentIdentity;
use russh::keys::signature::Signer as _;
use russh::keys::ssh_encoding::Encode as _;
use russh::keys::ssh_key::private::KeypairData;
use russh::keys::ssh_key::{self, Signature};
use russh::keys::{HashAlg, PrivateKey};
use std::sync::Arc;

/// A private key that signs by itself.
pub(super) struct KeySigner(pub Arc<PrivateKey>);

impl KeySigner {
    /// The data with the signature behind it, as the authentication request wants it.
    fn sign(&self, hash: Option<HashAlg>, mut data: Vec<u8>) -> Result<Vec<u8>, ssh_key::Error> {
        let signature: Signature = match self.0.key_data() {
            KeypairData::Rsa(pair) => (pair, hash).try_sign(&data)?,
            other => other.try_sign(&data)?,
        };
        let mut encoded = Vec::new();
        signature.encode(&mut encoded)?;
        encoded.as_slice().encode(&mut data)?;
        Ok(data)
    }
}

impl russh::Signer for KeySigner {
    type Error = AgentAuthError;

    async fn auth_sign(
        &mut self,
        _: &AgentIdentity,
        hash: Option<HashAlg>,
        data: Vec<u8>,
    ) -> Result<Vec<u8>, AgentAuthError> {
        self.sign(hash, data)
            .map_err(|error| AgentAuthError::Key(error.into()))
    }
}
