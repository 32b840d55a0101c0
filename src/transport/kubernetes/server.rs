//! Requests to one API server, each bounded in time and size, and tried again where the server is
//! busy.

use super::fault::{self, KubernetesRequestError};
use super::identity::IdentityDescription;
use super::kinds::Kinds;
use crate::TransportError;
use futures_util::{Stream, StreamExt as _};
use http::{HeaderMap, Method, Request};
use http_body_util::{BodyExt as _, Limited};
use jiff::Timestamp;
use kube::client::Body;
use railwright_base::redaction::ROOM_BYTES;
use railwright_base::text::one_line;
use railwright_base::{Reason, Redaction, bounded_json};
use railwright_system::clock;
use serde_json::Value;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Requests under way at a time, at most.
pub const AT_ONCE: usize = 16;
/// What is taken of the answer about one object.
pub const OBJECT_LIMIT_BYTES: usize = 1 << 20;
/// A request that has no whole answer by then is given up.
const REQUEST_LIMIT: Duration = Duration::from_secs(60);
/// How often a busy server is asked, all in all.
const TRIES: u32 = 4;
/// Before the second try; doubled with each. A server that names a time of its own is believed up
/// to the longest.
const FIRST_PAUSE: Duration = Duration::from_millis(500);
const LONGEST_PAUSE: Duration = Duration::from_secs(10);
/// A server that refuses says why in far less.
const SAID_LIMIT: usize = 2000;
/// This much of a refusal is kept: its Status may quote an object, in the message and in a cause.
const REFUSAL_LIMIT_BYTES: usize = 256 << 10;
/// So many pings and the like are taken over a WebSocket, which lives for minutes.
const MOST_OTHER_MESSAGES: u32 = 1000;

/// One API server, and us as it knows us.
pub struct KubernetesServer {
    /// The cluster's name in the spec.
    pub cluster: String,
    /// Host and port, for messages.
    pub address: String,
    /// How messages speak of the identity.
    pub words: IdentityDescription,
    /// What it calls objects.
    pub kinds: Kinds,
    /// It did not know us, or did not answer.
    is_stranger: AtomicBool,
    client: kube::Client,
}

/// A request.
pub struct KubernetesRequest {
    pub method: Method,
    /// Path and query.
    pub path: String,
    /// The content type, and the document.
    pub body: Option<(&'static str, String)>,
    /// Bytes of the answer that are kept, where the server does not refuse.
    pub limit: usize,
}

/// Messages of a WebSocket; an error ends them. The library holds each to 64 MiB.
pub type Messages = Pin<Box<dyn Stream<Item = Result<Vec<u8>, Reason>> + Send>>;

/// What came of a request that changes something.
#[derive(Debug)]
pub enum WriteRequestOutcome {
    /// The server says what it made of it.
    Answered(KubernetesReply),
    Unsure(UnsureWrite),
}

/// A request of which nobody knows whether it was done.
#[derive(Debug)]
pub struct UnsureWrite {
    pub reason: Reason,
    /// It may still be done: the server has not given it up.
    pub may_come: bool,
    /// When to ask again.
    pub again_after: Duration,
}

/// What came of asking for a WebSocket.
pub enum Upgrade {
    Done(Messages),
    /// An answer instead.
    Refused(KubernetesReply),
}

/// An answer.
#[derive(Debug)]
pub struct KubernetesReply {
    pub status: u16,
    /// The document, up to the limit.
    pub body: Vec<u8>,
    /// There was more.
    pub cut: bool,
    /// The server's clock.
    pub now: Timestamp,
    /// What it warns of.
    pub warnings: Vec<String>,
    retry_after: Option<Duration>,
    /// What the request showed, and the server may quote with any status.
    shown: Arc<Redaction>,
}

impl KubernetesRequest {
    /// A request without a document.
    pub fn get(path: String) -> Self {
        KubernetesRequest {
            method: Method::GET,
            path,
            body: None,
            limit: OBJECT_LIMIT_BYTES,
        }
    }

    /// One with a JSON document.
    pub fn with(method: Method, path: String, content_type: &'static str, body: String) -> Self {
        KubernetesRequest {
            method,
            path,
            body: Some((content_type, body)),
            limit: OBJECT_LIMIT_BYTES,
        }
    }

    fn request(&self) -> Result<Request<Body>, Reason> {
        let mut builder = Request::builder()
            .method(&self.method)
            .uri(&self.path)
            .header("accept", "application/json");
        if let Some((content_type, _)) = &self.body {
            builder = builder.header("content-type", *content_type);
        }
        let body = self.body.as_ref().map_or_else(Body::empty, |(_, text)| {
            Body::from(text.clone().into_bytes())
        });
        builder
            .body(body)
            .map_err(|error| format!("{}: {error}", one_line(&self.path, 200)).into())
    }
}

impl KubernetesServer {
    /// A server behind this client.
    pub fn new(
        cluster: String,
        address: String,
        words: IdentityDescription,
        client: kube::Client,
    ) -> Self {
        KubernetesServer {
            cluster,
            address,
            words,
            kinds: Kinds::default(),
            is_stranger: AtomicBool::new(false),
            client,
        }
    }

    /// Asks who answers there: whether it can be reached, trusted, and takes us.
    pub async fn greet(&self) -> Result<(), TransportError> {
        let reply = self
            .ask(&KubernetesRequest::get("/version".to_owned()))
            .await
            .map_err(|trouble| trouble.error(self))?;
        self.is_stranger
            .store(reply.status == 401, Ordering::Relaxed);
        match reply.status {
            // A hardened server keeps its version to itself, from somebody whom it knows.
            200 | 403 => Ok(()),
            status if status >= 500 => {
                Err(self.unreachable(format!("it answers {status}: {}", reply.message()).into()))
            }
            status => Err(self.unreachable(
                format!("what answers there is no API server (status {status} for /version)")
                    .into(),
            )),
        }
    }

    /// Whether something went wrong since it was greeted that another greeting would tell of.
    pub fn is_stranger(&self) -> bool {
        self.is_stranger.load(Ordering::Relaxed)
    }

    /// The version of Kubernetes that it is of, where it says so: `v1.34.4`.
    pub async fn version(&self) -> Option<String> {
        let reply = self
            .ask(&KubernetesRequest::get("/version".to_owned()))
            .await
            .ok()
            .filter(|reply| reply.status == 200)?;
        let version = reply.json()?.get("gitVersion")?.as_str()?.to_owned();
        Some(version).filter(|version| {
            version
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || ".-+".contains(c))
        })
    }

    /// One request that changes something. It is sent again only where the server says that it has
    /// not taken it: an error of its own may come after the change, and so may one of what stands
    /// between us.
    pub async fn send(
        &self,
        call: &KubernetesRequest,
    ) -> Result<WriteRequestOutcome, KubernetesRequestError> {
        self.send_while(call, || std::future::ready(Ok(()))).await
    }

    /// Sends a request, and asks right before each attempt whether what has to hold still does.
    pub async fn send_while<E: From<KubernetesRequestError>, F>(
        &self,
        call: &KubernetesRequest,
        holds: impl Fn() -> F,
    ) -> Result<WriteRequestOutcome, E>
    where
        F: Future<Output = Result<(), E>>,
    {
        let mut pause = FIRST_PAUSE;
        for turn in 1..=TRIES {
            holds().await?;
            let reply = match self.once(call).await {
                Ok(reply) => reply,
                Err(KubernetesRequestError::NotSent(error)) => {
                    return Err(KubernetesRequestError::NotSent(error).into());
                }
                Err(trouble) => {
                    return Ok(WriteRequestOutcome::Unsure(UnsureWrite {
                        reason: trouble.reason(),
                        may_come: true,
                        again_after: FIRST_PAUSE,
                    }));
                }
            };
            let again_after = reply.retry_after.unwrap_or(pause).min(LONGEST_PAUSE);
            match reply.status {
                429 if turn < TRIES && !reply.is_about_budget() => {
                    clock::sleep_for(again_after).await
                }
                500.. if !reply.is_about_schema() => {
                    return Ok(WriteRequestOutcome::Unsure(UnsureWrite {
                        reason: reply.message().into(),
                        may_come: reply.status == 504,
                        again_after,
                    }));
                }
                _ if reply.is_of_api_server() => {
                    return self
                        .known(reply)
                        .map(WriteRequestOutcome::Answered)
                        .map_err(E::from);
                }
                _ => {
                    return Ok(WriteRequestOutcome::Unsure(UnsureWrite {
                        reason: format!("what answers there is no API server: {}", reply.message())
                            .into(),
                        may_come: false,
                        again_after,
                    }));
                }
            }
            pause *= 2;
        }
        Ok(WriteRequestOutcome::Unsure(UnsureWrite {
            reason: "the server is too busy".into(),
            may_come: false,
            again_after: pause,
        }))
    }

    /// One request that may be repeated whatever became of it, and again while the server is too
    /// busy for it or has a trouble of its own.
    pub async fn ask(
        &self,
        call: &KubernetesRequest,
    ) -> Result<KubernetesReply, KubernetesRequestError> {
        let mut pause = FIRST_PAUSE;
        for _ in 1..TRIES {
            let reply = self.once(call).await?;
            if !reply.is_busy() {
                return self.known(reply);
            }
            clock::sleep_for(reply.retry_after.unwrap_or(pause).min(LONGEST_PAUSE)).await;
            pause *= 2;
        }
        self.known(self.once(call).await?)
    }

    /// A server that does not know us did nothing.
    fn known(&self, reply: KubernetesReply) -> Result<KubernetesReply, KubernetesRequestError> {
        if reply.status != 401 {
            return Ok(reply);
        }
        self.is_stranger.store(true, Ordering::Relaxed);
        let reason = self.words.identity.clone();
        Err(KubernetesRequestError::NotSent(
            TransportError::IdentityRefused {
                cluster: self.cluster.clone(),
                address: self.address.clone(),
                reason: reason.into(),
            },
        ))
    }

    async fn once(
        &self,
        call: &KubernetesRequest,
    ) -> Result<KubernetesReply, KubernetesRequestError> {
        let request = call
            .request()
            .map_err(|reason| KubernetesRequestError::NotSent(TransportError::Local { reason }))?;
        let asked = async {
            let response = self
                .client
                .send(request)
                .await
                .map_err(|error| fault::of_request(&error, self))?;
            let (head, body) = response.into_parts();
            let (status, redaction) = (head.status.as_u16(), self.words.credentials.redaction());
            // An object is compared as it is; whatever else is said may come onto a screen.
            let kept = match status {
                200 | 201 => read_limited_body(body, call.limit).await,
                _ => take_refusal(body, &redaction).await,
            };
            let (body, cut) = kept.map_err(KubernetesRequestError::Lost)?;
            Ok(KubernetesReply {
                status,
                body,
                cut,
                now: parse_date_header(&head.headers),
                warnings: parse_warning_headers(&head.headers)
                    .iter()
                    .map(|warning| redaction.apply(warning))
                    .collect(),
                retry_after: find_header(&head.headers, "retry-after")
                    .and_then(|text| text.parse().ok())
                    .map(Duration::from_secs),
                shown: redaction,
            })
        };
        let asked = clock::await_with_timeout(REQUEST_LIMIT, asked)
            .await
            .unwrap_or(Err(KubernetesRequestError::TimedOut {
                limit_s: REQUEST_LIMIT.as_secs(),
            }));
        if asked.is_err() {
            self.is_stranger.store(true, Ordering::Relaxed);
        }
        asked
    }

    /// Asks for a WebSocket. It is asked once: what is behind the server may have begun.
    pub async fn upgrade(&self, path: String) -> Result<Upgrade, KubernetesRequestError> {
        let request = Request::get(&path).body(Vec::new()).map_err(|error| {
            let reason = format!("{}: {error}", one_line(&path, 200));
            KubernetesRequestError::NotSent(TransportError::Local {
                reason: reason.into(),
            })
        })?;
        let client = self.client.clone();
        // The library takes all that a refusal says.
        let bounded = tower::service_fn(move |request: Request<Body>| {
            let client = client.clone();
            async move {
                client
                    .send(request)
                    .await
                    .map(|response| response.map(|body| Limited::new(body, REFUSAL_LIMIT_BYTES)))
            }
        });
        match kube::Client::new(bounded, "default").connect(request).await {
            Ok(connection) => {
                // Each ping is answered, and the answers wait until the server takes them.
                let mut others = 0;
                let messages = connection.into_stream().filter_map(move |message| {
                    others += u32::from(message.as_ref().is_ok_and(|message| !message.is_binary()));
                    std::future::ready(match message {
                        Ok(message) if message.is_binary() => {
                            Some(Ok(message.into_data().to_vec()))
                        }
                        Ok(_) if others > MOST_OTHER_MESSAGES => Some(Err(format!(
                            "more than {MOST_OTHER_MESSAGES} messages that say nothing"
                        )
                        .into())),
                        Ok(_) => None,
                        Err(error) => Some(Err(fault::describe_root_cause(&error).into())),
                    })
                });
                Ok(Upgrade::Done(Box::pin(messages)))
            }
            Err(kube::Error::Api(status)) => {
                let document = serde_json::to_vec(&status).unwrap_or_default();
                let reply = self.build_upgrade_refusal(status.code, &document);
                self.known(reply).map(Upgrade::Refused)
            }
            Err(kube::Error::UpgradeConnection(error)) => Err(KubernetesRequestError::Lost(
                format!(
                    "no WebSocket was opened: {}",
                    fault::describe_root_cause(&error)
                )
                .into(),
            )),
            Err(error) => Err(fault::of_request(&error, self)),
        }
    }

    /// The answer to a request for a WebSocket that was refused with this Status, of which the
    /// library keeps no header.
    fn build_upgrade_refusal(&self, status: u16, document: &[u8]) -> KubernetesReply {
        let shown = self.words.credentials.redaction();
        KubernetesReply {
            status,
            body: without_secrets(document, &shown),
            cut: false,
            now: parse_date_header(&HeaderMap::new()),
            warnings: Vec::new(),
            retry_after: None,
            shown,
        }
    }

    /// It could not be asked.
    pub fn unreachable(&self, reason: Reason) -> TransportError {
        TransportError::ServerUnreachable {
            cluster: self.cluster.clone(),
            address: self.address.clone(),
            reason,
        }
    }
}

impl KubernetesReply {
    /// The document.
    pub fn json(&self) -> Option<Value> {
        bounded_json::parse_bounded_json(&self.body)
    }

    /// The API server's own word that it does not have what was asked for; what stands between us
    /// says the same of what it does not know.
    pub fn is_not_found(&self) -> bool {
        self.status == 404
            && self
                .json()
                .is_some_and(|status| status["kind"] == "Status" && status["reason"] == "NotFound")
    }

    /// False for what a gateway says of a write, its page for a login included: an API server
    /// answers with the object, and refuses with a Status. One that was cut is known by its
    /// beginning. What stands between us may have passed the request on before, or may not.
    fn is_of_api_server(&self) -> bool {
        let is_well = (200..=299).contains(&self.status);
        let begins_so = match (self.cut, is_well) {
            (false, true) => self.json().is_some_and(|said| said["kind"].is_string()),
            (false, false) => self.json().is_some_and(|said| said["kind"] == "Status"),
            (true, true) => {
                self.body.starts_with(b"{\"kind\":\"")
                    || self.body.starts_with(b"{\"apiVersion\":\"")
            }
            (true, false) => self.body.starts_with(b"{\"kind\":\"Status\""),
        };
        self.status == 401 || begins_so
    }

    /// Whether it says how it stands with what was asked, whatever became of earlier tries: it is
    /// done, gone, or another one.
    pub fn settles(&self) -> bool {
        matches!(self.status, 200..=299 | 409) || self.is_not_found()
    }

    /// What the server says of a request that it did not do, in one line.
    pub fn message(&self) -> String {
        let said = self
            .json()
            .and_then(|status| Some(status.get("message")?.as_str()?.to_owned()));
        let said = said.unwrap_or_else(|| String::from_utf8_lossy(&self.body).into_owned());
        match one_line(
            &self.shown.apply_to_first(&said, REFUSAL_LIMIT_BYTES),
            SAID_LIMIT,
        ) {
            said if said.is_empty() => format!("status {}, and nothing said", self.status),
            said => said,
        }
    }

    /// An object that does not fit its schema is called an error of the server's own.
    pub fn is_about_schema(&self) -> bool {
        self.status == 500
            && self
                .message()
                .starts_with("failed to create typed patch object")
    }

    /// A pod's disruption budget has no room now. Asking again at once would only take its turn
    /// from others.
    pub fn is_about_budget(&self) -> bool {
        let status = self.json().filter(|_| self.status == 429);
        status
            .as_ref()
            .and_then(|status| status.pointer("/details/causes/0/reason"))
            .is_some_and(|reason| reason == "DisruptionBudget")
    }

    fn is_busy(&self) -> bool {
        (self.status == 429 && !self.is_about_budget())
            || (self.status >= 500 && !self.is_about_schema())
    }
}

/// The body up to a limit, and whether there was more.
async fn read_limited_body(mut body: Body, limit: usize) -> Result<(Vec<u8>, bool), Reason> {
    let mut bytes = Vec::new();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| {
            format!(
                "the answer broke off: {}",
                fault::describe_root_cause(&error)
            )
        })?;
        let Some(data) = frame.data_ref() else {
            continue;
        };
        let room = limit - bytes.len();
        bytes.extend_from_slice(&data[..data.len().min(room)]);
        if data.len() > room {
            return Ok((bytes, true));
        }
    }
    Ok((bytes, false))
}

/// What is kept of the body of a refusal, without secrets, and whether there was more.
async fn take_refusal(body: Body, redaction: &Redaction) -> Result<(Vec<u8>, bool), Reason> {
    let (body, _) = read_limited_body(body, REFUSAL_LIMIT_BYTES + ROOM_BYTES).await?;
    Ok((
        without_secrets(&body, redaction),
        body.len() > REFUSAL_LIMIT_BYTES,
    ))
}

/// What a server complains of may quote what we are known by, and is shown.
fn without_secrets(body: &[u8], redaction: &Redaction) -> Vec<u8> {
    redaction
        .apply_to_first(&String::from_utf8_lossy(body), REFUSAL_LIMIT_BYTES)
        .into_bytes()
}

fn find_header<'h>(headers: &'h HeaderMap, name: &str) -> Option<&'h str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

/// RFC 9110, section 6.6.1; without it our own clock has to do.
fn parse_date_header(headers: &HeaderMap) -> Timestamp {
    let said = find_header(headers, "date")
        .and_then(|text| jiff::fmt::rfc2822::parse(text).ok())
        .map(|at| at.timestamp());
    said.unwrap_or_else(|| {
        Timestamp::from_second(clock::unix_seconds()).unwrap_or(Timestamp::UNIX_EPOCH)
    })
}

/// `299 - "text"` each (RFC 7234, section 5.5).
fn parse_warning_headers(headers: &HeaderMap) -> Vec<String> {
    let mut warnings = Vec::new();
    for value in headers.get_all("warning").iter().take(20) {
        let Ok(value) = value.to_str() else {
            continue;
        };
        let text = match (value.find('"'), value.rfind('"')) {
            (Some(from), Some(to)) if from < to => &value[from + 1..to],
            _ => value,
        };
        warnings.push(one_line(&text.replace("\\\"", "\""), 300));
    }
    warnings
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kubernetes::credentials::Credentials;
    use http::Response;
    use http_body_util::Full;
    use std::collections::BTreeMap;
    use std::convert::Infallible;

    /// What is left of an answer of a server that knows us by `SECRET-token`.
    async fn reply(status: u16, body: &str) -> KubernetesReply {
        let text = body.to_owned();
        let service = tower::service_fn(move |_: Request<Body>| {
            let body = Full::new(text.clone().into_bytes().into());
            std::future::ready(Ok::<_, Infallible>(
                Response::builder().status(status).body(body).unwrap(),
            ))
        });
        let handed = BTreeMap::from([("token".to_owned(), "SECRET-token".to_owned())]);
        let words = IdentityDescription {
            identity: String::new(),
            plugin: String::new(),
            credentials: Arc::new(Credentials::new(handed)),
        };
        let server = KubernetesServer::new(
            "prod".to_owned(),
            "api:6443".to_owned(),
            words,
            kube::Client::new(service, "default"),
        );
        let call = KubernetesRequest {
            limit: 64 << 20,
            ..KubernetesRequest::get("/api/v1/pods".to_owned())
        };
        server.ask(&call).await.unwrap()
    }

    /// 60 MB of it took 3 GB of memory, and minutes of a processor.
    #[tokio::test]
    async fn of_a_refusal_only_so_much_is_taken_and_nothing_of_what_we_are_known_by() {
        let before = "x".repeat(REFUSAL_LIMIT_BYTES - 8);
        let body = format!(r"{before}SECRET\u002dtoken{}", "y".repeat(4 << 20));
        let refused = reply(422, &body).await;
        assert!(refused.cut && refused.body == format!("{before}[secret token]").into_bytes());
        let listed = reply(200, &body).await;
        assert!(
            !listed.cut && listed.body == body.into_bytes(),
            "an object is compared as it is"
        );
    }
}
