//! Why a request has no answer, and whether the server may have taken it. What a kubeconfig or a
//! plugin holds back never becomes part of a message.

use super::identity::IdentityDescription;
use super::server::KubernetesServer;
use crate::{ExecutionOutcome, TransportError};
use hyper_util::client::legacy::Error as ClientError;
use kube::client::AuthError;
use railwright_base::Reason;
use railwright_base::text::one_line;
use std::error::Error;

/// No answer.
#[derive(Debug, Clone)]
pub enum KubernetesRequestError {
    /// The server has certainly not taken the request.
    NotSent(TransportError),
    /// The connection ended before the answer.
    Lost(Reason),
    /// No answer in time.
    TimedOut { limit_s: u64 },
}

impl KubernetesRequestError {
    /// For a request that changes nothing.
    pub fn error(self, server: &KubernetesServer) -> TransportError {
        match self {
            KubernetesRequestError::NotSent(error) => error,
            KubernetesRequestError::Lost(_) | KubernetesRequestError::TimedOut { .. } => {
                server.unreachable(self.reason())
            }
        }
    }

    /// For a request that may have changed something.
    pub fn performed(self) -> Result<ExecutionOutcome, TransportError> {
        match self {
            KubernetesRequestError::NotSent(error) => Err(error),
            KubernetesRequestError::Lost(_) | KubernetesRequestError::TimedOut { .. } => {
                Ok(ExecutionOutcome::Unknown {
                    reason: self.reason(),
                })
            }
        }
    }

    /// In words.
    pub fn reason(&self) -> Reason {
        match self {
            KubernetesRequestError::NotSent(error) => error.one_line().into(),
            KubernetesRequestError::Lost(reason) => {
                format!("the connection ended: {reason}").into()
            }
            KubernetesRequestError::TimedOut { limit_s } => {
                format!("no answer within {limit_s} s").into()
            }
        }
    }
}

/// What the client says of a request without an answer.
pub fn of_request(error: &kube::Error, server: &KubernetesServer) -> KubernetesRequestError {
    if let Some(error) = list_error_sources(error).find_map(|link| link.downcast_ref::<AuthError>())
    {
        return KubernetesRequestError::NotSent(TransportError::Local {
            reason: describe_auth_error(error, &server.words).into(),
        });
    }
    let reason = describe_root_cause(error);
    let never_sent = list_error_sources(error)
        .filter_map(|link| link.downcast_ref::<ClientError>())
        .any(ClientError::is_connect);
    if !never_sent {
        return KubernetesRequestError::Lost(reason.into());
    }
    // As rustls words it; its own type comes wrapped in an `io::Error`, which hides it.
    match reason.split_once("invalid peer certificate: ") {
        Some((_, what)) => {
            let (cluster, address) = (server.cluster.clone(), server.address.clone());
            KubernetesRequestError::NotSent(TransportError::ServerNotTrusted {
                cluster,
                address,
                reason: describe_certificate_error(what).into(),
            })
        }
        None => KubernetesRequestError::NotSent(server.unreachable(reason.into())),
    }
}

/// The innermost cause, in one line.
pub fn describe_root_cause(error: &(dyn Error + 'static)) -> String {
    let said = list_error_sources(error)
        .map(ToString::to_string)
        .filter(|text| !text.is_empty())
        .last();
    one_line(&said.unwrap_or_default(), 200)
}

fn list_error_sources<'e>(
    error: &'e (dyn Error + 'static),
) -> impl Iterator<Item = &'e (dyn Error + 'static)> {
    std::iter::successors(Some(error), |link: &&'e (dyn Error + 'static)| {
        (**link).source()
    })
    .take(20)
}

fn describe_certificate_error(what: &str) -> String {
    match what {
        "UnknownIssuer" => {
            "its certificate is of an authority that the kubeconfig does not name".to_owned()
        }
        what if what.starts_with("Expired") || what.contains("expired") => {
            "its certificate has expired".to_owned()
        }
        what if what.starts_with("NotValidForName") || what.contains("not valid for name") => {
            format!("its certificate is for another name: {what}")
        }
        what => format!("its certificate is refused: {what}"),
    }
}

/// What is wrong with how we prove who we are. Of what a plugin prints only the end of its
/// complaint is told.
pub fn describe_auth_error(error: &AuthError, words: &IdentityDescription) -> String {
    let plugin = &words.plugin;
    match error {
        AuthError::AuthExecStart(error) => {
            format!("the exec plugin {plugin} does not start: {error}")
        }
        AuthError::AuthExecRun { out, .. } => {
            let said = String::from_utf8_lossy(&out.stderr);
            let last = said
                .lines()
                .rev()
                .find(|line| !line.trim().is_empty())
                .unwrap_or("it says nothing");
            format!(
                "the exec plugin {plugin} failed ({}): {}",
                out.status,
                one_line(&words.credentials.redaction().apply(last), 300)
            )
        }
        AuthError::AuthExecParse(_) | AuthError::ExecPluginFailed => {
            format!("the exec plugin {plugin} printed no ExecCredential with a status")
        }
        AuthError::MalformedTokenExpirationDate(_) => {
            format!("the exec plugin {plugin} says in no known way when its token expires")
        }
        AuthError::UnrefreshableTokenResponse => {
            format!("the exec plugin {plugin} gave no new token for one that expires")
        }
        AuthError::MissingCommand => {
            "the kubeconfig names an exec plugin without a command".to_owned()
        }
        AuthError::ReadTokenFile(error, path) => {
            format!("the token file {}: {error}", path.display())
        }
        AuthError::InvalidBearerToken(_) | AuthError::InvalidBasicAuth(_) => {
            "the token or password holds characters that cannot be sent".to_owned()
        }
        AuthError::AuthExec(what) => one_line(&words.credentials.redaction().apply(what), 300),
        _ => "what the kubeconfig says of the user cannot be used".to_owned(),
    }
}
