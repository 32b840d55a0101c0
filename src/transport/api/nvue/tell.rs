//! What a switch tells: configurations and counters, asked with GET alone. What it does not tell is
//! unknown, with the reason.

use super::{API, Got, NvueLink};
use crate::{BoxFuture, TransportError};
use futures_util::{StreamExt as _, stream};
use railwright_base::text::one_line;
use railwright_resource::switch::cumulus::{counters, rest};
use railwright_resource::switch::{SwitchRead, SwitchSystem};
use railwright_resource::{AnswerStatus, Read, ReadResult};
use serde_json::Value;

/// Ports whose counters are asked for at a time, because NVUE takes its time for each answer.
const PORTS_AT_ONCE: usize = 4;

impl NvueLink {
    /// One answer.
    pub(super) async fn answer(&self, read: &Read) -> Result<ReadResult, TransportError> {
        match read {
            Read::Switch {
                system: SwitchSystem::Cumulus,
                of,
            } => self.configuration(*of).await,
            Read::SwitchCounters {
                system: SwitchSystem::Cumulus,
                ports,
                ..
            } => self.counters(ports).await,
            Read::SwitchNeighbours { .. } => Ok(new_not_offered_answer(
                "LLDP is asked of lldpd on the switch, over `ssh`",
            )),
            _ => Ok(new_not_offered_answer(
                "a file or program of the switch is asked for it, over `ssh`",
            )),
        }
    }

    /// Reads a configuration as the text that SSH would give. Exit 1 where nothing is saved.
    async fn configuration(&self, of: SwitchRead) -> Result<ReadResult, TransportError> {
        let revision = match of {
            SwitchRead::Running => "applied",
            SwitchRead::Saved => "startup",
        };
        let [interfaces, qos] = rest::list_revision_paths(revision);
        let interfaces = match self.get(&interfaces).await? {
            Got::Tree(tree) => tree,
            Got::Nothing if of == SwitchRead::Saved => {
                return Ok(new_exit_answer(1, String::new()));
            }
            Got::Nothing => Value::Null,
            Got::Refused(why) => return Ok(new_not_offered_answer(&why)),
        };
        let qos = match self.get(&qos).await? {
            Got::Tree(tree) => tree,
            Got::Nothing => Value::Null,
            Got::Refused(why) => return Ok(new_not_offered_answer(&why)),
        };
        let ports = match of {
            SwitchRead::Saved => None,
            SwitchRead::Running => match self.get(rest::PORTS).await? {
                // A switch has interfaces, its own loopback at least: none told is nothing known.
                Got::Tree(tree) if tree.as_object().is_some_and(|ports| !ports.is_empty()) => {
                    Some(tree)
                }
                Got::Tree(_) | Got::Nothing => {
                    return Ok(new_not_offered_answer("NVUE tells of no interface"));
                }
                Got::Refused(why) => return Ok(new_not_offered_answer(&why)),
            },
        };
        Ok(new_exit_answer(
            0,
            rest::render_revision_text(&interfaces, &qos, ports.as_ref()),
        ))
    }

    /// Reads the counters of ports, in the lines that SSH would give.
    async fn counters(&self, ports: &[String]) -> Result<ReadResult, TransportError> {
        let uptime = match self.get("/system").await? {
            Got::Tree(system) => system
                .get("uptime")
                .map(Value::to_string)
                .unwrap_or_default(),
            Got::Nothing | Got::Refused(_) => String::new(),
        };
        let asked: Vec<BoxFuture<'_, Result<String, TransportError>>> = ports
            .iter()
            .map(|port| Box::pin(self.counters_of(port)) as BoxFuture<'_, _>)
            .collect();
        let told: Vec<Result<String, TransportError>> =
            stream::iter(asked).buffered(PORTS_AT_ONCE).collect().await;
        let told: String = told.into_iter().collect::<Result<_, _>>()?;
        Ok(new_exit_answer(0, format!("uptime {uptime}\n{told}")))
    }

    async fn counters_of(&self, port: &str) -> Result<String, TransportError> {
        // A port is named by the spec, and stands in a path.
        let plain = !port.is_empty() && port.chars().all(|c| c.is_ascii_alphanumeric());
        if !plain {
            return Ok(counters::rest_lines(&one_line(port, 40), None, None));
        }
        let [new, old, watchdog] = counters::rest_paths(port);
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
        Ok(counters::rest_lines(
            port,
            counters.as_ref(),
            watchdog.as_ref(),
        ))
    }
}

fn new_exit_answer(code: i32, out: String) -> ReadResult {
    ReadResult {
        status: AnswerStatus::Exit(code),
        out,
    }
}

fn new_not_offered_answer(why: &str) -> ReadResult {
    ReadResult {
        status: AnswerStatus::NotOffered,
        out: format!("not told over the {API}: {why}\n"),
    }
}
