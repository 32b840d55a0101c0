//! Cumulus Linux over the REST API of NVUE: what it tells is asked with GET, and nothing is ever changed. What of a switch it does not tell is
//! unknown, with the reason.

use super::https::{Client, Failure, Server};
use crate::base::text::one_line;
use crate::resource::counters::cumulus;
use crate::resource::probe::Probe;
use crate::resource::switch::cumulus::rest;
use crate::resource::switch::{SwitchRead, System};
use crate::resource::{Action, Answer, AnswerStatus, Answers, Read};
use crate::spec::model::ApiKind;
use crate::transport::{BoxFuture, HostLink, Performed, TransportError, Upkeep};
use futures_util::{StreamExt as _, stream};
use http::Method;
use serde_json::Value;
use std::sync::Arc;

const API: &str = ApiKind::Nvue.name();
/// Where the API begins (CumulusNetworks/docs, NVUE-API.md).
const ROOT: &str = "/nvue_v1";
/// Ports whose counters are asked for at a time, because NVUE takes its time for each answer.
const PORTS_AT_ONCE: usize = 4;

/// What one switch tells.
struct NvueLink(Client);

/// A new connection to a switch, which has to be one with NVUE and to let us in.
pub(super) async fn open(server: Server) -> Result<Arc<dyn HostLink>, TransportError> {
    let link = NvueLink(Client::open(server, API).await?);
    match link.get("/system").await? {
        Got::Tree(_) => Ok(Arc::new(link)),
        Got::Nothing => Err(link.0.none_here(format!("it answers 404 for {ROOT}/system"))),
        Got::Refused(why) => Err(link.0.server.unreachable(why)),
    }
}

/// What came of a GET.
enum Got {
    Tree(Value),
    /// There is no such place, or nothing at it.
    Nothing,
    /// Something else, and what.
    Refused(String),
}

impl NvueLink {
    async fn get(&self, path: &str) -> Result<Got, TransportError> {
        let lost = |reason: String| TransportError::Lost { host: self.0.server.switch.clone(), reason };
        let reply = match self.0.ask(Method::GET, &format!("{ROOT}{path}"), String::new()).await {
            Ok(reply) => reply,
            Err(Failure::NotTaken(error)) => return Err(error),
            Err(Failure::Lost(reason)) => return Err(lost(reason)),
            Err(Failure::TooMuch) => return Err(lost("it sent more than what is taken".to_owned())),
        };
        Ok(match reply.status {
            200 => match serde_json::from_slice(&reply.body) {
                Ok(tree) => Got::Tree(tree),
                Err(error) => Got::Refused(format!("NVUE sent no JSON: {}", one_line(&error.to_string(), 80))),
            },
            404 => Got::Nothing,
            status => Got::Refused(format!("NVUE answers {status}: {}", reply.said())),
        })
    }

    async fn answer(&self, read: &Read) -> Result<Answer, TransportError> {
        match read {
            Read::Switch { system: System::Cumulus, of } => self.configuration(*of).await,
            Read::SwitchCounters { system: System::Cumulus, ports, .. } => self.counters(ports).await,
            Read::SwitchNeighbours { .. } => Ok(untold("LLDP is asked of lldpd on the switch, over `ssh`")),
            _ => Ok(untold("a file or program of the switch is asked for it, over `ssh`")),
        }
    }

    /// The same text as over SSH. Exit 1 where nothing is saved.
    async fn configuration(&self, of: SwitchRead) -> Result<Answer, TransportError> {
        let revision = match of {
            SwitchRead::Running => "applied",
            SwitchRead::Saved => "startup",
        };
        let [interfaces, qos] = rest::paths(revision);
        let interfaces = match self.get(&interfaces).await? {
            Got::Tree(tree) => tree,
            Got::Nothing if of == SwitchRead::Saved => return Ok(ended(1, String::new())),
            Got::Nothing => Value::Null,
            Got::Refused(why) => return Ok(untold(&why)),
        };
        let qos = match self.get(&qos).await? {
            Got::Tree(tree) => tree,
            Got::Nothing => Value::Null,
            Got::Refused(why) => return Ok(untold(&why)),
        };
        let ports = match of {
            SwitchRead::Saved => None,
            SwitchRead::Running => match self.get(rest::PORTS).await? {
                Got::Tree(tree) => Some(tree),
                Got::Nothing => Some(Value::Null),
                Got::Refused(why) => return Ok(untold(&why)),
            },
        };
        Ok(ended(0, rest::text(&interfaces, &qos, ports.as_ref())))
    }

    /// The same lines as over SSH.
    async fn counters(&self, ports: &[String]) -> Result<Answer, TransportError> {
        let uptime = match self.get("/system").await? {
            Got::Tree(system) => system.get("uptime").map(Value::to_string).unwrap_or_default(),
            Got::Nothing | Got::Refused(_) => String::new(),
        };
        let asked: Vec<BoxFuture<'_, Result<String, TransportError>>> =
            ports.iter().map(|port| Box::pin(self.counters_of(port)) as BoxFuture<'_, _>).collect();
        let told: Vec<Result<String, TransportError>> = stream::iter(asked).buffered(PORTS_AT_ONCE).collect().await;
        let told: String = told.into_iter().collect::<Result<_, _>>()?;
        Ok(ended(0, format!("uptime {uptime}\n{told}")))
    }

    async fn counters_of(&self, port: &str) -> Result<String, TransportError> {
        // A port is named by the spec, and stands in a path.
        let plain = !port.is_empty() && port.chars().all(|c| c.is_ascii_alphanumeric());
        if !plain {
            return Ok(cumulus::rest_lines(&one_line(port, 40), None, None));
        }
        let [new, old, watchdog] = cumulus::rest_paths(port);
        let mut counters = None;
        for path in [new, old] {
            if counters.is_none()
                && let Got::Tree(tree) = self.get(&path).await?
            {
                counters = Some(tree);
            }
        }
        let watchdog = match self.get(&watchdog).await? {
            Got::Tree(tree) => Some(tree),
            Got::Nothing | Got::Refused(_) => None,
        };
        Ok(cumulus::rest_lines(port, counters.as_ref(), watchdog.as_ref()))
    }

    fn only_read<T>(&self) -> Result<T, TransportError> {
        Err(TransportError::OnlyRead { switch: self.0.server.switch.clone(), api: API })
    }
}

fn ended(code: i32, out: String) -> Answer {
    Answer { status: AnswerStatus::Exit(code), out }
}

fn untold(why: &str) -> Answer {
    Answer { status: AnswerStatus::NotOffered, out: format!("not told over the {API}: {why}\n") }
}

impl HostLink for NvueLink {
    fn read<'a>(&'a self, reads: &'a [Read]) -> BoxFuture<'a, Result<Answers, TransportError>> {
        Box::pin(async move {
            let mut answers = Answers::default();
            for read in reads {
                answers.insert(read.key(), self.answer(read).await?);
            }
            Ok(answers)
        })
    }

    fn perform<'a>(&'a self, _: &'a Action, _: &'a str) -> BoxFuture<'a, Result<Performed, TransportError>> {
        Box::pin(async { self.only_read() })
    }

    fn probe<'a>(&'a self, _: &'a Probe) -> BoxFuture<'a, Result<Performed, TransportError>> {
        Box::pin(async { self.only_read() })
    }

    fn upkeep<'a>(&'a self, _: &'a Upkeep) -> BoxFuture<'a, Result<Performed, TransportError>> {
        Box::pin(async { self.only_read() })
    }
}
