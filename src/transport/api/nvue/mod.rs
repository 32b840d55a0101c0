//! Cumulus Linux over the REST API of NVUE, behind the same trait as SSH: there is no shell behind
//! it, so that each read and each action is asked for in NVUE's own words.
//!
//! `tell` is what it tells, `change` how a revision is made, applied and saved, `rollback_timer` how one
//! that nobody confirms is rolled back: by NVUE itself.

mod change;
mod rollback_timer;
mod tell;

use super::https::{SwitchApiClient, SwitchApiFailure, SwitchApiReply, SwitchApiServer};
use crate::{BoxFuture, ExecutionOutcome, Fence, HostLink, TransportError, Upkeep};
use http::Method;
use railwright_base::bounded_json;
use railwright_base::text::one_line;
use railwright_knowledge::spec::model::ApiKind;
use railwright_resource::complaint::UNAVAILABLE;
use railwright_resource::probe::Probe;
use railwright_resource::{Action, Read, ReadResults};
pub(super) use rollback_timer::NvueRollbacks;
use serde_json::{Map, Value};
use std::sync::Arc;

const API: &str = ApiKind::Nvue.name();
/// Where the API begins (CumulusNetworks/docs, NVUE-API.md).
const ROOT: &str = "/nvue_v1";

/// A link to one switch.
struct NvueLink {
    client: SwitchApiClient,
    read_only: bool,
    rollbacks: NvueRollbacks,
}

/// A new connection to a switch, which has to be one with NVUE and to let us in.
pub(super) async fn open_nvue_link(
    server: SwitchApiServer,
    read_only: bool,
    rollbacks: NvueRollbacks,
) -> Result<Arc<dyn HostLink>, TransportError> {
    let link = NvueLink {
        client: SwitchApiClient::open(server, API).await?,
        read_only,
        rollbacks,
    };
    let reply = link.ask(Method::GET, "/system", String::new()).await?;
    match (reply.status, parse_object(&reply)) {
        // Whoever says so.
        (404, _) | (_, Got::Nothing) => Err(link
            .client
            .none_here(format!("it answers 404 for {ROOT}/system").into())),
        // Every switch has something to tell of its system.
        (_, Got::Tree(tree)) if tree.as_object().is_none_or(Map::is_empty) => {
            Err(link.client.server.unreachable(
                format!("what answers for {ROOT}/system tells nothing of a system").into(),
            ))
        }
        (_, Got::Tree(_)) => Ok(Arc::new(link)),
        (_, Got::Refused(why)) => Err(link.client.server.unreachable(why.into())),
    }
}

/// What came of a request.
enum Got {
    Tree(Value),
    /// There is no such place, or nothing at it.
    Nothing,
    /// Something else, and what.
    Refused(String),
}

impl NvueLink {
    /// What stands at a path.
    async fn get(&self, path: &str) -> Result<Got, TransportError> {
        let reply = self.ask(Method::GET, path, String::new()).await?;
        Ok(parse_object(&reply))
    }

    /// Asks for a change. Whoever may log in may not do that by it (groups `nvshow`, `nvapply`:
    /// NVUE-API.md, API-only User).
    async fn send(&self, method: Method, path: &str, body: &Value) -> Result<Got, TransportError> {
        match self.ask(method, path, body.to_string()).await {
            Err(TransportError::LoginRefused {
                switch: host, user, ..
            }) => Err(TransportError::ReadOnly { host, user }),
            reply => Ok(parse_reply(&reply?)),
        }
    }

    async fn ask(
        &self,
        method: Method,
        path: &str,
        body: String,
    ) -> Result<SwitchApiReply, TransportError> {
        let path = format!("{ROOT}{path}");
        let reason = match self.client.ask(method, &path, body).await {
            Ok(reply) => return Ok(reply),
            Err(SwitchApiFailure::NotTaken(error)) => return Err(error),
            Err(SwitchApiFailure::Lost(reason)) => reason,
            Err(SwitchApiFailure::TooMuch) => "it sent more than what is taken".to_owned(),
        };
        Err(TransportError::Lost {
            host: self.switch().to_owned(),
            reason: reason.into(),
        })
    }

    fn switch(&self) -> &str {
        &self.client.server.switch
    }

    /// A user of the spec who may only read asks for no change.
    fn may_change(&self) -> Result<(), TransportError> {
        match self.read_only {
            true => Err(TransportError::ReadOnly {
                host: self.switch().to_owned(),
                user: self.client.server.user.clone(),
            }),
            false => Ok(()),
        }
    }
}

/// What stands at a path: an object, wherever NVUE has anything. What is none says nothing of what
/// is there.
fn parse_object(reply: &SwitchApiReply) -> Got {
    match parse_reply(reply) {
        Got::Tree(tree) if !tree.is_object() => Got::Refused("NVUE sent no object".to_owned()),
        other => other,
    }
}

/// NVUE says itself what it does not have; what stands before it says so of all that it does not let
/// through (the errors of both: CumulusNetworks/docs, NVUE-API.md).
fn is_error_document(reply: &SwitchApiReply) -> bool {
    let document = bounded_json::parse_bounded_json(&reply.body);
    document.is_some_and(|document| {
        document["status"] == reply.status
            && document["title"].is_string()
            && document["detail"].is_string()
    })
}

/// What a reply means.
fn parse_reply(reply: &SwitchApiReply) -> Got {
    match reply.status {
        200..=299 if reply.body.is_empty() => Got::Tree(Value::Null),
        200..=299 => match bounded_json::parse_bounded_json(&reply.body) {
            Some(tree) => Got::Tree(tree),
            None => Got::Refused("NVUE sent no JSON, or too many values".to_owned()),
        },
        404 if is_error_document(reply) => Got::Nothing,
        404 => Got::Refused("what answers 404 there is not NVUE".to_owned()),
        status => Got::Refused(format!(
            "NVUE answers {status}: {}",
            describe_nvue_refusal(reply)
        )),
    }
}

/// What a refusal says: its sentence, where it is an error document of NVUE.
fn describe_nvue_refusal(reply: &SwitchApiReply) -> String {
    let document = bounded_json::parse_bounded_json(&reply.body);
    let sentence = document.as_ref().and_then(|document| {
        ["detail", "title"]
            .into_iter()
            .find_map(|word| document.get(word)?.as_str())
    });
    sentence.map_or_else(|| reply.said(), |sentence| one_line(sentence, 300))
}

/// An ending of its own, with what it prints.
fn new_exit_with_output(code: i32, stdout: &str) -> ExecutionOutcome {
    let stdout = if stdout.is_empty() {
        String::new()
    } else {
        format!("{stdout}\n")
    };
    ExecutionOutcome::Ended {
        code,
        stdout,
        stderr: String::new(),
    }
}

/// An ending that says why, as an action on a host does.
fn new_exit_with_reason(code: i32, sentence: &str) -> ExecutionOutcome {
    ExecutionOutcome::Ended {
        code,
        stdout: String::new(),
        stderr: format!("railwright: {sentence}\n"),
    }
}

impl HostLink for NvueLink {
    fn read<'a>(&'a self, reads: &'a [Read]) -> BoxFuture<'a, Result<ReadResults, TransportError>> {
        Box::pin(async move {
            let mut answers = ReadResults::default();
            for read in reads {
                answers.insert(read.key(), self.answer(read).await?);
            }
            Ok(answers)
        })
    }

    fn perform<'a>(
        &'a self,
        action: &'a Action,
        _: &'a str,
        _: Option<&'a Fence>,
    ) -> BoxFuture<'a, Result<ExecutionOutcome, TransportError>> {
        Box::pin(self.change(action))
    }

    fn probe<'a>(
        &'a self,
        _: &'a Probe,
    ) -> BoxFuture<'a, Result<ExecutionOutcome, TransportError>> {
        Box::pin(async {
            Ok(new_exit_with_reason(
                UNAVAILABLE,
                "a switch carries no test traffic of its own",
            ))
        })
    }

    fn upkeep<'a>(
        &'a self,
        upkeep: &'a Upkeep,
    ) -> BoxFuture<'a, Result<ExecutionOutcome, TransportError>> {
        Box::pin(self.keep(upkeep))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 30 MB of them took 13 GB of memory.
    #[test]
    fn what_nvue_answers_is_bounded_in_values() {
        let answer = |count: usize| {
            let body = format!(r#"{{"x":[{}1]}}"#, r#"{"a":1},"#.repeat(count)).into_bytes();
            parse_reply(&SwitchApiReply { status: 200, body })
        };
        assert!(matches!(answer(1000), Got::Tree(_)));
        assert!(matches!(answer(500_000), Got::Refused(_)));
    }

    /// A gateway that lets single places through hides what is configured at the others.
    #[test]
    fn nothing_is_there_only_where_nvue_says_so() {
        let answer = |body: &str| {
            let (status, body) = (404, body.as_bytes().to_vec());
            parse_reply(&SwitchApiReply { status, body })
        };
        let own = r#"{"status": 404, "title": "Not Found", "detail": "The requested item does not exist."}"#;
        assert!(matches!(answer(own), Got::Nothing));
        let kong = r#"{"message": "no Route matched with those values"}"#;
        for other in ["<html>404 Not Found</html>", "", "null", "{}", kong] {
            assert!(matches!(answer(other), Got::Refused(_)), "{other}");
        }
    }
}
