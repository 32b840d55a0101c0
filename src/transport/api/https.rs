//! One connection to the API of a switch: a socket, TLS with a pinned certificate, and one HTTP/1.1
//! request after the other, each bounded in time and size.

use super::ApiAccess;
use super::pin::Verifier;
use crate::TransportError;
use crate::access::CONNECT_TIMEOUT_S;
use crate::access::format_endpoint;
use http::header::{AUTHORIZATION, CONTENT_TYPE, HOST};
use http::{HeaderValue, Method, Request};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use railwright_base::mutex::lock_ignoring_poison;
use railwright_base::redaction::ROOM_BYTES;
use railwright_base::text::one_line;
use railwright_base::{Reason, Redaction};
use railwright_resource::file::base64;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use std::io::ErrorKind;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

/// More than this of one answer is not taken.
const ANSWER_LIMIT: usize = 8 << 20;
/// This much of a refusal is kept; it is only shown.
const REFUSAL_KEPT: usize = 64 << 10;
/// A request that has no answer by then is given up.
const REQUEST_LIMIT: Duration = Duration::from_secs(45);
/// A connection that nobody used for longer may be one that the server is about to close.
const IDLE_LIMIT: Duration = Duration::from_secs(15);

/// The API of one switch, and us as it knows us.
pub(super) struct SwitchApiServer {
    /// The switch's name in the spec.
    pub switch: String,
    /// Host and port, for messages.
    pub address: String,
    /// Who we are there.
    pub user: String,
    /// What is connected to: a name or an address.
    to: String,
    port: u16,
    timeout: Duration,
    tls: Arc<ClientConfig>,
    verifier: Arc<Verifier>,
    authorization: HeaderValue,
    /// What it holds, taken out of whatever the server says.
    credentials: Redaction,
}

/// An open connection.
struct HttpsSession(SendRequest<String>);

/// A server with the connections to it that nobody uses at the moment. It begins with one, so that
/// a client is a proof of a way there.
pub(super) struct SwitchApiClient {
    /// The server.
    pub server: SwitchApiServer,
    api: &'static str,
    idle: Mutex<Vec<(HttpsSession, Instant)>>,
}

/// An answer.
#[derive(Debug)]
pub(super) struct SwitchApiReply {
    pub status: u16,
    pub body: Vec<u8>,
}

/// Why there is no answer.
pub(super) enum SwitchApiFailure {
    /// The request was certainly not taken.
    NotTaken(TransportError),
    /// The connection ended; whether the request was taken nobody knows.
    Lost(String),
    /// The answer was longer than what is taken.
    TooMuch,
}

fn new_local_error(switch: &str, reason: &str) -> TransportError {
    TransportError::Local {
        reason: format!("{switch}: {reason}").into(),
    }
}

impl SwitchApiServer {
    /// From what is known of the switch; no connection is made yet.
    pub fn new(switch: &str, access: &ApiAccess) -> Result<Self, TransportError> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let address = format_endpoint(&access.address, access.port);
        let verifier = Arc::new(Verifier::new(
            switch,
            address.clone(),
            &access.pin,
            provider.clone(),
        )?);
        let tls = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| new_local_error(switch, &error.to_string()))?
            .dangerous()
            .with_custom_certificate_verifier(verifier.clone())
            .with_no_client_auth();
        let credentials =
            base64::encode_base64_text(format!("{}:{}", access.user, access.password.0).as_bytes());
        let mut authorization = HeaderValue::from_str(&format!("Basic {credentials}"))
            .map_err(|error| new_local_error(switch, &error.to_string()))?;
        authorization.set_sensitive(true);
        let credentials = Redaction::of([("login", credentials)]);
        Ok(SwitchApiServer {
            switch: switch.to_owned(),
            address,
            user: access.user.clone(),
            to: access.address.clone(),
            port: access.port,
            timeout: Duration::from_secs(CONNECT_TIMEOUT_S.into()),
            tls: Arc::new(tls),
            verifier,
            authorization,
            credentials,
        })
    }

    /// Why it cannot be reached.
    pub fn unreachable(&self, reason: Reason) -> TransportError {
        TransportError::Unreachable {
            host: self.switch.clone(),
            address: self.address.clone(),
            reason,
        }
    }

    /// There is no such API at its address.
    fn new_missing_api_error(&self, api: &'static str, reason: &str) -> TransportError {
        TransportError::NoApi {
            switch: self.switch.clone(),
            address: self.address.clone(),
            api,
            reason: reason.to_owned().into(),
        }
    }

    /// A new connection; `api` is what should be there.
    async fn connect(&self, api: &'static str) -> Result<HttpsSession, TransportError> {
        match tokio::time::timeout(self.timeout, self.meet(api)).await {
            Ok(session) => session,
            Err(_) => {
                Err(self
                    .unreachable(format!("no answer within {} s", self.timeout.as_secs()).into()))
            }
        }
    }

    async fn meet(&self, api: &'static str) -> Result<HttpsSession, TransportError> {
        let name = ServerName::try_from(self.to.clone())
            .map_err(|_| self.unreachable("its address is no name of a host".into()))?;
        let socket = TcpStream::connect((self.to.as_str(), self.port))
            .await
            .map_err(|error| match error.kind() {
                ErrorKind::ConnectionRefused => {
                    self.new_missing_api_error(api, "nobody listens there")
                }
                _ => self.unreachable(one_line(&error.to_string(), 200).into()),
            })?;
        // A small exchange waits for nothing.
        socket
            .set_nodelay(true)
            .map_err(|error| self.unreachable(error.to_string().into()))?;
        let stream = TlsConnector::from(self.tls.clone())
            .connect(name, socket)
            .await
            .map_err(|error| {
                let speaks_no_tls = error
                    .get_ref()
                    .and_then(|inner| inner.downcast_ref::<rustls::Error>());
                match (self.verifier.refused(), speaks_no_tls) {
                    (Some(refused), _) => refused,
                    (None, Some(rustls::Error::InvalidMessage(_))) => {
                        self.new_missing_api_error(api, "what answers there does not speak TLS")
                    }
                    (None, _) => self
                        .unreachable(format!("TLS: {}", one_line(&error.to_string(), 200)).into()),
                }
            })?;
        let (sender, connection) = http1::handshake(TokioIo::new(stream))
            .await
            .map_err(|error| self.unreachable(one_line(&error.to_string(), 200).into()))?;
        // It ends with the sender.
        tokio::spawn(async move {
            let _ = connection.await;
        });
        Ok(HttpsSession(sender))
    }

    fn request(
        &self,
        method: Method,
        path: &str,
        body: String,
    ) -> Result<Request<String>, http::Error> {
        Request::builder()
            .method(method)
            .uri(path)
            .header(HOST, self.address.as_str())
            .header(CONTENT_TYPE, "application/json")
            .header(AUTHORIZATION, self.authorization.clone())
            .body(body)
    }

    async fn ask(
        &self,
        session: &mut HttpsSession,
        method: Method,
        path: &str,
        body: String,
    ) -> Result<SwitchApiReply, SwitchApiFailure> {
        let request = self.request(method, path, body).map_err(|error| {
            SwitchApiFailure::NotTaken(self.unreachable(error.to_string().into()))
        })?;
        session.0.ready().await.map_err(|error| {
            SwitchApiFailure::NotTaken(self.unreachable(describe_http_error(&error).into()))
        })?;
        let response =
            session
                .0
                .send_request(request)
                .await
                .map_err(|error| match error.is_canceled() {
                    true => SwitchApiFailure::NotTaken(
                        self.unreachable(describe_http_error(&error).into()),
                    ),
                    false => SwitchApiFailure::Lost(describe_http_error(&error)),
                })?;
        let status = response.status().as_u16();
        let (taken, kept) = match status {
            200..=299 => (ANSWER_LIMIT, usize::MAX),
            _ => (REFUSAL_KEPT + ROOM_BYTES, REFUSAL_KEPT),
        };
        let body = read_body_prefix(response.into_body(), taken).await?;
        let said = self
            .credentials
            .apply_to_first(&String::from_utf8_lossy(&body), kept);
        Ok(SwitchApiReply {
            status,
            body: said.into_bytes(),
        })
    }
}

impl SwitchApiClient {
    /// Connects; `api` is what should be there.
    pub async fn open(server: SwitchApiServer, api: &'static str) -> Result<Self, TransportError> {
        let session = server.connect(api).await?;
        Ok(SwitchApiClient {
            server,
            api,
            idle: Mutex::new(vec![(session, Instant::now())]),
        })
    }

    /// One request, and its answer, whatever it says.
    pub async fn ask(
        &self,
        method: Method,
        path: &str,
        body: String,
    ) -> Result<SwitchApiReply, SwitchApiFailure> {
        let mut session = match self.idle() {
            Some(session) => session,
            None => self
                .server
                .connect(self.api)
                .await
                .map_err(SwitchApiFailure::NotTaken)?,
        };
        let asked = self.server.ask(&mut session, method, path, body);
        let reply = match tokio::time::timeout(REQUEST_LIMIT, asked).await {
            Ok(reply) => reply?,
            Err(_) => {
                return Err(SwitchApiFailure::Lost(format!(
                    "no answer within {} s",
                    REQUEST_LIMIT.as_secs()
                )));
            }
        };
        lock_ignoring_poison(&self.idle).push((session, Instant::now()));
        match reply.status {
            401 | 403 => Err(SwitchApiFailure::NotTaken(TransportError::LoginRefused {
                switch: self.server.switch.clone(),
                user: self.server.user.clone(),
                reason: reply.said().into(),
            })),
            // Of a server before the API, which gave up waiting for it.
            502 | 504 => Err(SwitchApiFailure::Lost(format!(
                "the server before the {} answers {}",
                self.api, reply.status
            ))),
            _ => Ok(reply),
        }
    }

    /// A connection that surely stands, where there is one.
    fn idle(&self) -> Option<HttpsSession> {
        let mut idle = lock_ignoring_poison(&self.idle);
        idle.retain(|(session, since)| !session.0.is_closed() && since.elapsed() < IDLE_LIMIT);
        idle.pop().map(|(session, _)| session)
    }

    /// That there is no such API.
    pub fn none_here(&self, reason: Reason) -> TransportError {
        let (switch, address) = (self.server.switch.clone(), self.server.address.clone());
        TransportError::NoApi {
            switch,
            address,
            api: self.api,
            reason,
        }
    }
}

/// The first bytes of a body. The rest is read and dropped, so that the connection can be used
/// again.
async fn read_body_prefix(mut body: Incoming, limit: usize) -> Result<Vec<u8>, SwitchApiFailure> {
    let (mut taken, mut seen) = (Vec::new(), 0);
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| SwitchApiFailure::Lost(describe_http_error(&error)))?;
        let Ok(data) = frame.into_data() else {
            continue;
        };
        seen += data.len();
        if seen > ANSWER_LIMIT {
            return Err(SwitchApiFailure::TooMuch);
        }
        let room = limit - taken.len();
        taken.extend_from_slice(&data[..data.len().min(room)]);
    }
    Ok(taken)
}

/// The innermost cause, in one line.
fn describe_http_error(error: &hyper::Error) -> String {
    let mut innermost: &(dyn std::error::Error + 'static) = error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    let broke = innermost
        .downcast_ref::<std::io::Error>()
        .map(std::io::Error::kind);
    let is_gone = matches!(
        broke,
        Some(ErrorKind::UnexpectedEof | ErrorKind::ConnectionReset | ErrorKind::BrokenPipe)
    );
    if is_gone || error.is_incomplete_message() || error.is_closed() {
        return "the server closed the connection".to_owned();
    }
    one_line(&innermost.to_string(), 200)
}

impl SwitchApiReply {
    /// What a server says that refuses, in one line, without its HTML.
    pub fn said(&self) -> String {
        let text = String::from_utf8_lossy(&self.body[..self.body.len().min(2000)]).into_owned();
        let mut plain = String::new();
        let mut is_in_tag = false;
        for c in text.chars() {
            match c {
                '<' => is_in_tag = true,
                '>' => {
                    is_in_tag = false;
                    plain.push(' ');
                }
                c if !is_in_tag => plain.push(c),
                _ => {}
            }
        }
        one_line(&plain, 160)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::{CertificatePin, Password};
    use railwright_knowledge::spec::model::ApiKind;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    /// What is left of an answer of a switch that knows us as `root:poison-password`.
    async fn reply(status: &str, body: &str) -> Result<SwitchApiReply, SwitchApiFailure> {
        let pin = CertificatePin::File("/nonexistent/pin".into());
        let api = ApiAccess {
            kind: ApiKind::Nvue,
            address: "leaf1".to_owned(),
            port: 22,
            user: "root".to_owned(),
            pin,
            password: Password("poison-password".to_owned()),
            read_only: false,
        };
        let server = SwitchApiServer::new("leaf1", &api).unwrap();
        let (ours, mut theirs) = tokio::io::duplex(1 << 16);
        let (sender, connection) = http1::handshake(TokioIo::new(ours)).await.unwrap();
        tokio::spawn(connection);
        let answer = format!(
            "HTTP/1.1 {status}\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        tokio::spawn(async move {
            assert!(theirs.read(&mut [0; 1024]).await.unwrap() > 0);
            let _ = theirs.write_all(answer.as_bytes()).await;
        });
        server
            .ask(&mut HttpsSession(sender), Method::GET, "/", String::new())
            .await
    }

    #[tokio::test]
    async fn of_a_switch_that_refuses_only_so_much_is_kept_and_nothing_of_the_login() {
        let (before, after) = ("x".repeat(REFUSAL_KEPT - 8), "y".repeat(1 << 20));
        let body = format!(
            "{before}{}{after}",
            base64::encode_base64_text(b"root:poison-password")
        );
        let Ok(refused) = reply("404 Not Found", &body).await else {
            panic!("it is an answer")
        };
        assert!(refused.body == format!("{before}[secret login]").into_bytes());
        let Ok(well) = reply("200 OK", &body).await else {
            panic!("it is an answer")
        };
        assert!(well.body == format!("{before}[secret login]{after}").into_bytes());
        assert!(matches!(
            reply("404 Not Found", &"x".repeat(ANSWER_LIMIT + 1)).await,
            Err(SwitchApiFailure::TooMuch)
        ));
    }
}
