//! What each request shows to the server to prove who we are. It is known here before it is sent,
//! wherever it comes from (the kubeconfig, a file that changes, a plugin, a provider), so that it
//! can be taken out of whatever the server says.

use http::HeaderValue;
use http::header::AUTHORIZATION;
use kube::Client;
use kube::client::{AuthError, Body, ClientBuilder, ConfigExt as _};
use kube::config::{AuthInfo, Config};
use railwright_base::mutex::lock_ignoring_poison;
use railwright_base::redaction::SHORTEST_BYTES;
use railwright_base::{Reason, Redaction};
use railwright_resource::file::base64;
use railwright_system::clock::Deadline;
use railwright_system::files;
use std::collections::{BTreeMap, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tower::BoxError;

/// A token file is read again after this time; clusters give a new one long before the old one
/// ends.
const FRESH_FOR: Duration = Duration::from_secs(50);

/// So many of the latest are known: more than there are requests under way.
const MOST_KNOWN: usize = 32;

/// The longest file that is taken for a kubeconfig, a certificate or a token.
const LONGEST_BYTES: u64 = 16 << 20;

/// What is to be shown to nobody else than the server.
pub struct Credentials(Mutex<KnownCredentials>);

struct KnownCredentials {
    /// What the kubeconfig hands to its plugin, by name.
    handed: BTreeMap<String, String>,
    /// What was sent, the latest at the end.
    sent: VecDeque<HeaderValue>,
    redaction: Arc<Redaction>,
}

impl Credentials {
    /// Nothing was sent yet.
    pub fn new(handed: BTreeMap<String, String>) -> Self {
        let redaction = Arc::new(Redaction::of(&handed));
        Credentials(Mutex::new(KnownCredentials {
            handed,
            sent: VecDeque::new(),
            redaction,
        }))
    }

    /// Takes out what is known by now.
    pub fn redaction(&self) -> Arc<Redaction> {
        lock_ignoring_poison(&self.0).redaction.clone()
    }

    /// Before it is sent; the error says why it cannot be.
    fn learn(&self, header: &HeaderValue) -> Result<(), Reason> {
        let mut known = lock_ignoring_poison(&self.0);
        if known.sent.contains(header) {
            return Ok(());
        }
        if let Some((name, _)) = secrets_of(header)
            .iter()
            .find(|(_, secret)| (1..SHORTEST_BYTES).contains(&secret.trim().len()))
        {
            return Err(format!(
                "the {name} is shorter than {SHORTEST_BYTES} characters: it could not be told from \
                 other text and kept off screens, so it is not sent"
            )
            .into());
        }
        known.sent.push_back(header.clone());
        if known.sent.len() > MOST_KNOWN {
            known.sent.pop_front();
        }
        let sent: Vec<(&str, String)> = known.sent.iter().flat_map(secrets_of).collect();
        let handed = known
            .handed
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()));
        known.redaction = Arc::new(Redaction::of(
            handed.chain(sent.iter().map(|(name, value)| (*name, value.as_str()))),
        ));
        Ok(())
    }
}

/// What of a header is a secret (RFC 6750, section 2.1; RFC 7617, section 2).
fn secrets_of(header: &HeaderValue) -> Vec<(&'static str, String)> {
    let text = String::from_utf8_lossy(header.as_bytes());
    let (scheme, value) = text.split_once(' ').unwrap_or(("", &text));
    let is_basic = scheme.eq_ignore_ascii_case("basic");
    let pair = base64::decode_base64_text(value)
        .filter(|_| is_basic)
        .map(|pair| String::from_utf8_lossy(&pair).into_owned());
    match pair.as_deref().and_then(|pair| pair.split_once(':')) {
        Some((_, password)) => vec![
            ("basic password", password.to_owned()),
            ("name and password", value.to_owned()),
        ],
        None => vec![("bearer token", value.to_owned())],
    }
}

/// A token that a file holds, which others rewrite.
struct TokenFile {
    path: PathBuf,
    header: HeaderValue,
    fresh: Deadline,
}

impl TokenFile {
    fn open(path: PathBuf) -> Result<Self, Reason> {
        let header = header_of(&path)?;
        Ok(TokenFile {
            path,
            header,
            fresh: Deadline::after(FRESH_FOR),
        })
    }

    /// The token of now. Where it cannot be read any more the last one goes on: some take the file
    /// away once it was read.
    fn header(&mut self) -> HeaderValue {
        if self.fresh.left().is_zero() {
            self.header = header_of(&self.path).unwrap_or_else(|_| self.header.clone());
            self.fresh = Deadline::after(FRESH_FOR);
        }
        self.header.clone()
    }
}

fn header_of(path: &Path) -> Result<HeaderValue, Reason> {
    let token = String::from_utf8(read_credential_file(path)?).ok();
    let header =
        token.and_then(|token| HeaderValue::try_from(format!("Bearer {}", token.trim())).ok());
    let Some(mut header) = header else {
        return Err(format!("{} holds no token", path.display()).into());
    };
    header.set_sensitive(true);
    Ok(header)
}

/// A file that a kubeconfig names, or one itself. What is no file may give nothing for ever, or
/// never end.
pub fn read_credential_file(path: &Path) -> Result<Vec<u8>, Reason> {
    files::read_ordinary(path, LONGEST_BYTES).map_err(|error| {
        let file = path.display();
        let why = match error.kind() {
            std::io::ErrorKind::FileTooLarge => {
                format!(
                    "{file} has more than {} MiB, which no kubeconfig, certificate or token has",
                    LONGEST_BYTES >> 20
                )
            }
            std::io::ErrorKind::InvalidInput if error.raw_os_error().is_none() => {
                format!("{file} is no file")
            }
            _ => format!("{file}: {error}"),
        };
        why.into()
    })
}

/// Where a client's credentials come from.
pub enum CredentialSource {
    /// This file.
    File(PathBuf),
    /// Whatever the library makes of the kubeconfig.
    Library,
}

/// A client that shows nothing which is not known before. The inner error is the library's.
pub fn build_kube_client(
    mut config: Config,
    source: CredentialSource,
    known: Arc<Credentials>,
) -> Result<kube::Result<Client>, Reason> {
    let file = match source {
        CredentialSource::File(path) => Some(Arc::new(Mutex::new(
            TokenFile::open(path).map_err(|error| format!("the token file {error}"))?,
        ))),
        CredentialSource::Library => None,
    };
    Ok(config.auth_layer().and_then(|layer| {
        if layer.is_some() {
            // It is put around what is sent below, and not put into it.
            config.auth_info = without_tokens(config.auth_info);
        }
        let namespace = config.default_namespace.clone();
        let inner = ClientBuilder::try_from(config)?.build();
        let seen = tower::service_fn(move |mut request: http::Request<Body>| {
            let (inner, known, file) = (inner.clone(), known.clone(), file.clone());
            async move {
                if let Some(file) = file {
                    request
                        .headers_mut()
                        .insert(AUTHORIZATION, lock_ignoring_poison(&file).header());
                }
                if let Some(header) = request.headers().get(AUTHORIZATION) {
                    known
                        .learn(header)
                        .map_err(|why| kube::Error::Auth(AuthError::AuthExec(why.to_string())))?;
                }
                inner.send(request).await.map_err(BoxError::from)
            }
        });
        let builder = ClientBuilder::new(seen, namespace);
        Ok(match layer {
            Some(layer) => builder.with_layer(&layer).build(),
            None => builder.build(),
        })
    }))
}

/// What is left are the certificate of TLS and the headers that say for whom we ask.
fn without_tokens(auth: AuthInfo) -> AuthInfo {
    AuthInfo {
        username: None,
        password: None,
        token: None,
        token_file: None,
        auth_provider: None,
        exec: None,
        ..auth
    }
}
