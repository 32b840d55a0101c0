//! One SSH connection: socket or jump channel, key exchange, host key, login.

use super::auth;
use super::destination::Destination;
use super::host_key_check::{HostKeyPins, HostKeyVerdict};
use super::known_hosts::{Files, KnownHostNames};
use crate::TransportError;
use crate::access::format_endpoint;
use railwright_base::Reason;
use railwright_base::text::one_line;
use railwright_system::descriptors;
use russh::client::{self, Handler, Msg, Session};
use russh::keys::{HashAlg, PublicKeyOrCertificate};
use russh::{Channel, ChannelStream, cipher};
use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;

/// Sessions at a time on one connection; servers refuse more than MaxSessions, 10 unless changed.
const SESSIONS: usize = 8;
/// A connection is given up after three of these without an answer.
const KEEPALIVE: Duration = Duration::from_secs(15);

/// An open connection after login.
pub(super) struct SshConnection {
    pub(super) handle: client::Handle<HostKeyChecker>,
    pub(super) destination: Destination,
    pub(super) sessions: Semaphore,
    /// Keeps the jump connection open as long as this one.
    _through: Option<Arc<SshConnection>>,
}

/// Opens a connection and logs in.
pub(super) async fn open_ssh_connection(
    destination: &Destination,
    through: Option<Arc<SshConnection>>,
    files: &Files,
) -> Result<SshConnection, TransportError> {
    let names = KnownHostNames::new(
        &destination.name,
        &destination.address,
        destination.port,
        destination.key_alias.as_deref(),
    );
    let pins = files.pins(&destination.known_hosts, &names)?;
    let config = Arc::new(build_client_config(&pins));
    let checker = HostKeyChecker {
        host: destination.name.clone(),
        pins,
    };
    let meet = meet_server(destination, through.as_deref(), config, checker);
    let mut handle = match tokio::time::timeout(destination.timeout, meet).await {
        Err(_) => {
            let reason = format!("no answer within {} s", destination.timeout.as_secs());
            return Err(new_unreachable_error(destination, reason.into()));
        }
        Ok(Err(failure)) => return Err(error_from_failure(failure, destination)),
        Ok(Ok(handle)) => handle,
    };
    match tokio::time::timeout(destination.timeout, auth::log_in(&mut handle, destination)).await {
        Ok(done) => done?,
        Err(_) => {
            let limit_s = destination.timeout.as_secs();
            let reason = format!("the login did not end within {limit_s} s");
            return Err(new_unreachable_error(destination, reason.into()));
        }
    }
    Ok(SshConnection {
        handle,
        destination: destination.clone(),
        sessions: Semaphore::new(SESSIONS),
        _through: through,
    })
}

/// The socket, or a stream that a jump host makes, and the key exchange over it.
async fn meet_server(
    destination: &Destination,
    through: Option<&SshConnection>,
    config: Arc<client::Config>,
    checker: HostKeyChecker,
) -> Result<client::Handle<HostKeyChecker>, SshConnectFailure> {
    if let Some(jump) = through {
        return client::connect_stream(config, jump.tunnel(destination).await?, checker).await;
    }
    let socket = tokio::net::TcpStream::connect((destination.address.as_str(), destination.port))
        .await
        .map_err(io_failure)?;
    // russh sets this only on sockets that it opens itself; without it a small exchange takes
    // 48 ms, not 5.
    socket.set_nodelay(true).map_err(io_failure)?;
    client::connect_stream(config, socket, checker).await
}

fn error_from_failure(failure: SshConnectFailure, destination: &Destination) -> TransportError {
    match failure {
        SshConnectFailure::Refused(error) => error,
        SshConnectFailure::Ssh(russh::Error::IO(error)) if descriptors::are_used_up(&error) => {
            TransportError::NoDescriptors {
                host: destination.name.clone(),
                limit: descriptors::read_descriptor_limit(),
            }
        }
        SshConnectFailure::Ssh(error) => {
            new_unreachable_error(destination, describe_ssh_error(&error).into())
        }
    }
}

fn new_unreachable_error(destination: &Destination, reason: Reason) -> TransportError {
    TransportError::Unreachable {
        host: destination.name.clone(),
        address: format_endpoint(&destination.address, destination.port),
        reason,
    }
}

impl SshConnection {
    /// A stream to another server, made by this one.
    async fn tunnel(&self, to: &Destination) -> Result<ChannelStream<Msg>, SshConnectFailure> {
        let channel = self
            .handle
            .channel_open_direct_tcpip(to.address.clone(), to.port.into(), "127.0.0.1", 0)
            .await;
        match channel {
            Ok(channel) => Ok(channel.into_stream()),
            Err(error) => Err(SshConnectFailure::Refused(TransportError::Unreachable {
                host: to.name.clone(),
                address: format!(
                    "{}:{} through the jump host {}",
                    to.address, to.port, self.destination.name
                ),
                reason: describe_ssh_error(&error).into(),
            })),
        }
    }

    /// True while it can carry something.
    pub(super) fn is_open(&self) -> bool {
        !self.handle.is_closed()
    }
}

fn build_client_config(pins: &HostKeyPins) -> client::Config {
    let mut config = client::Config {
        nodelay: true,
        keepalive_interval: Some(KEEPALIVE),
        keepalive_max: 3,
        ..client::Config::default()
    };
    config.preferred.key = Cow::Owned(pins.algorithms());
    config.preferred.host_key_certificates = Cow::Owned(pins.certificate_algorithms());
    // AES-GCM runs in hardware and is half again as fast as ChaCha20 on both ends.
    config.preferred.cipher = Cow::Borrowed(&[
        cipher::AES_256_GCM,
        cipher::CHACHA20_POLY1305,
        cipher::AES_256_CTR,
        cipher::AES_192_CTR,
        cipher::AES_128_CTR,
    ]);
    config
}

/// Why there is no connection.
#[derive(Debug)]
pub(super) enum SshConnectFailure {
    /// We refused the server, or a jump host refused us.
    Refused(TransportError),
    /// The protocol or the socket.
    Ssh(russh::Error),
}

impl From<russh::Error> for SshConnectFailure {
    fn from(error: russh::Error) -> Self {
        SshConnectFailure::Ssh(error)
    }
}

fn io_failure(error: std::io::Error) -> SshConnectFailure {
    SshConnectFailure::Ssh(russh::Error::IO(error))
}

/// The error in words for a person: bounded and clean.
pub(super) fn describe_ssh_error(error: &russh::Error) -> String {
    match error {
        russh::Error::HUP
        | russh::Error::Disconnect
        | russh::Error::SendError
        | russh::Error::RecvError => "the server closed the connection".to_owned(),
        // Reset, because what we had sent was still unread there.
        russh::Error::IO(error)
            if matches!(
                error.kind(),
                std::io::ErrorKind::ConnectionReset | std::io::ErrorKind::BrokenPipe
            ) =>
        {
            "the server closed the connection".to_owned()
        }
        russh::Error::KeepaliveTimeout => "the server stopped answering".to_owned(),
        russh::Error::NoCommonAlgo { kind, theirs, .. } => one_line(
            &format!(
                "no common {kind:?} algorithm; the server offers {}",
                theirs.join(", ")
            ),
            200,
        ),
        other => one_line(&other.to_string(), 200),
    }
}

/// Methods of a `Handler` that refuse a channel: a dropped reply does. russh's own accept.
macro_rules! refuse_channels {
    ($($method:ident($($argument:ty),*);)*) => { $(
        async fn $method(
            &mut self,
            _: Channel<Msg>,
            $(_: $argument,)*
            _: client::ChannelOpenHandle,
            _: &mut Session,
        ) -> Result<(), SshConnectFailure> {
            Ok(())
        }
    )* };
}

/// Checks the server's key, and refuses every channel that a server opens to us.
pub(super) struct HostKeyChecker {
    host: String,
    pins: HostKeyPins,
}

impl HostKeyChecker {
    fn verdict(&self, shown: &PublicKeyOrCertificate) -> Result<(), TransportError> {
        let host = self.host.clone();
        let fingerprint = format!(
            "{} {}",
            shown.public_key().algorithm(),
            shown.public_key().fingerprint(HashAlg::Sha256)
        );
        let known_hosts = self.pins.file.clone();
        match self.pins.check_key(shown) {
            HostKeyVerdict::Trusted => Ok(()),
            HostKeyVerdict::Unknown => {
                let line = self.pins.line_for(&shown.public_key());
                Err(TransportError::HostKeyUnknown {
                    host,
                    fingerprint,
                    known_hosts,
                    line,
                    malformed: self.pins.malformed.clone(),
                })
            }
            HostKeyVerdict::Changed { file, line } => Err(TransportError::HostKeyChanged {
                host,
                fingerprint,
                known_hosts: file,
                line,
            }),
            HostKeyVerdict::Revoked { file, line } => Err(TransportError::HostKeyRevoked {
                host,
                fingerprint,
                known_hosts: file,
                line,
            }),
            HostKeyVerdict::BadCertificate { reason } => {
                Err(TransportError::HostCertificateRefused {
                    host,
                    fingerprint,
                    known_hosts,
                    reason: reason.into(),
                })
            }
        }
    }
}

impl Handler for HostKeyChecker {
    type Error = SshConnectFailure;

    async fn check_server_key(
        &mut self,
        shown: &PublicKeyOrCertificate,
    ) -> Result<bool, SshConnectFailure> {
        self.verdict(shown)
            .map(|()| true)
            .map_err(SshConnectFailure::Refused)
    }

    refuse_channels! {
        server_channel_open_agent_forward();
        server_channel_open_direct_streamlocal(&str);
        server_channel_open_direct_tcpip(&str, u32, &str, u32);
        server_channel_open_forwarded_streamlocal(&str);
        server_channel_open_forwarded_tcpip(&str, u32, &str, u32);
        server_channel_open_session();
        server_channel_open_x11(&str, u32);
    }
}

#[cfg(test)]
mod tests;
