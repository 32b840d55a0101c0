//! Reads hosts into an observation.

use super::crowd;
use super::event::ObservationEvent;
use railwright_base::Reason;
use railwright_base::mutex::lock_ignoring_poison;
use railwright_resource::file::found::{FileContent, FileState, Regular, answer_of_private};
use railwright_resource::{
    AnswerStatus, Observation, Read, ReadResult, ReadResults, TargetObservation,
};
use railwright_state::host_record::HOST_RECORD_PATH;
use railwright_system::clock;
use railwright_transport::{
    BoxFuture, Connector, Reader, RecordReading, TargetAccess, TransportError,
};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use std::time::Duration;

/// Hosts that are read at the same time, unless the user says otherwise.
pub const DEFAULT_PARALLEL: usize = 64;

/// A host that is not through after this has hung in a way that no other limit caught.
const HOST_LIMIT_S: u32 = 600;

/// A host and what to ask it; `Read::Host` is always asked as well.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostRequest {
    /// How to reach it.
    pub access: TargetAccess,
    /// What to ask.
    pub reads: Vec<Read>,
}

/// Reads all hosts, `parallel` at a time. Never fails: what went wrong with a host is that host's
/// `problem`.
pub async fn observe_hosts(
    connector: &dyn Connector,
    requests: Vec<HostRequest>,
    parallel: usize,
    on_event: &(dyn Fn(ObservationEvent) + Sync),
) -> Observation {
    let recorded_at = clock::read_current_time();
    on_event(ObservationEvent::Began {
        hosts: requests.len(),
    });
    let hosts = Mutex::new(BTreeMap::new());
    let work = |request: HostRequest| -> BoxFuture<'_, ()> {
        let hosts = &hosts;
        Box::pin(async move {
            let target = request.access.target();
            let observed = observe_host(connector, &request, on_event).await;
            lock_ignoring_poison(hosts).insert(target, observed);
        })
    };
    crowd::run_each_bounded(requests, parallel, &work).await;
    on_event(ObservationEvent::Ended);
    let targets = std::mem::take(&mut *lock_ignoring_poison(&hosts));
    Observation {
        targets,
        ..Observation::at(recorded_at)
    }
}

/// Reads one host. Never fails: what went wrong is the host's `problem`.
pub async fn observe_host(
    connector: &dyn Connector,
    request: &HostRequest,
    on_event: &(dyn Fn(ObservationEvent) + Sync),
) -> TargetObservation {
    let host = request.access.name.clone();
    let limit = Duration::from_secs(HOST_LIMIT_S.into());
    let answers = match tokio::time::timeout(limit, read_host(connector, request, on_event)).await {
        Ok(answers) => answers,
        Err(_) => Err(TransportError::TimedOut {
            host: host.clone(),
            limit_s: HOST_LIMIT_S,
        }),
    };
    match answers {
        Ok(answers) => {
            on_event(ObservationEvent::Answered { host });
            TargetObservation {
                problem: None,
                answers,
            }
        }
        Err(error) => {
            let trouble = error.trouble();
            on_event(ObservationEvent::Failed {
                host,
                problem: trouble.message.clone(),
            });
            TargetObservation {
                problem: Some(trouble),
                ..TargetObservation::default()
            }
        }
    }
}

async fn read_host(
    connector: &dyn Connector,
    request: &HostRequest,
    on_event: &(dyn Fn(ObservationEvent) + Sync),
) -> Result<ReadResults, TransportError> {
    on_event(ObservationEvent::Connecting {
        host: request.access.name.clone(),
    });
    let reader = Reader::new(connector.connect(&request.access).await?);
    on_event(ObservationEvent::Reading {
        host: request.access.name.clone(),
    });
    // Sorted and each once, so that the program does not depend on the order of the resources.
    let mut reads: BTreeSet<Read> = request.reads.iter().cloned().collect();
    reads.insert(Read::Host);
    let mut answers = reader.read(&reads.into_iter().collect::<Vec<_>>()).await?;
    read_record(&request.access.name, &reader, &mut answers).await?;
    Ok(answers)
}

/// A record that holds what stood in many files before is larger than what is carried of any other
/// file. An answer that did not come is no record that cannot be read: nobody should take a host
/// over for it.
async fn read_record(
    host: &str,
    reader: &Reader,
    answers: &mut ReadResults,
) -> Result<(), TransportError> {
    let record = Read::File {
        path: HOST_RECORD_PATH.to_owned(),
    };
    let lost = |reason: Reason| {
        Err(TransportError::Lost {
            host: host.to_owned(),
            reason,
        })
    };
    if let Some(AnswerStatus::CutOff | AnswerStatus::TimedOut) =
        answers.get(&record).map(|answer| &answer.status)
    {
        let why = answers.output(&record).err();
        return lost(
            format!(
                "of its record: {}",
                why.map_or_else(String::new, String::from)
            )
            .into(),
        );
    }
    if !matches!(
        FileState::by(&record, answers),
        FileState::Regular(Regular {
            content: FileContent::TooLarge { .. },
            ..
        })
    ) {
        return Ok(());
    }
    match reader.record().await? {
        RecordReading::Text(text) => answers.insert(
            record.key(),
            ReadResult {
                status: AnswerStatus::Exit(0),
                out: answer_of_private(&text),
            },
        ),
        RecordReading::Unknown(reason) => return lost(reason.into()),
        RecordReading::Absent | RecordReading::Unreadable(_) => {}
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use railwright_base::Target;
    use railwright_resource::Action;
    use railwright_resource::probe::Probe;
    use railwright_transport::{ExecutionOutcome, Fence, HostLink, Upkeep};
    use std::sync::Arc;

    /// A connector whose hosts behave as their names say.
    struct Behaving;

    struct Link(String);

    impl Connector for Behaving {
        fn connect<'a>(
            &'a self,
            access: &'a TargetAccess,
        ) -> BoxFuture<'a, Result<Arc<dyn HostLink>, TransportError>> {
            Box::pin(async move {
                let host = access.name.clone();
                match host.as_str() {
                    "down" => Err(TransportError::Unreachable {
                        host,
                        address: "x".to_owned(),
                        reason: "\u{1b}[31mno\nroute".into(),
                    }),
                    "hung" => std::future::pending().await,
                    _ => Ok(Arc::new(Link(host)) as Arc<dyn HostLink>),
                }
            })
        }
    }

    impl HostLink for Link {
        fn read<'a>(
            &'a self,
            reads: &'a [Read],
        ) -> BoxFuture<'a, Result<ReadResults, TransportError>> {
            Box::pin(async move {
                // The later host answers first.
                for _ in 0..(20 - self.0.len().min(20)) {
                    tokio::task::yield_now().await;
                }
                let mut answers = ReadResults::default();
                for read in reads {
                    answers.insert(
                        read.key(),
                        ReadResult {
                            status: AnswerStatus::Exit(0),
                            out: self.0.clone(),
                        },
                    );
                }
                if self.0 == "cut" {
                    Err(TransportError::Lost {
                        host: self.0.clone(),
                        reason: "gone".into(),
                    })
                } else {
                    Ok(answers)
                }
            })
        }
        fn perform<'a>(
            &'a self,
            _: &'a Action,
            _: &'a str,
            _: Option<&'a Fence>,
        ) -> BoxFuture<'a, Result<ExecutionOutcome, TransportError>> {
            panic!("a reader cannot act")
        }
        fn probe<'a>(
            &'a self,
            _: &'a Probe,
        ) -> BoxFuture<'a, Result<ExecutionOutcome, TransportError>> {
            panic!("a reader cannot probe")
        }
        fn upkeep<'a>(
            &'a self,
            _: &'a Upkeep,
        ) -> BoxFuture<'a, Result<ExecutionOutcome, TransportError>> {
            panic!("observing does no upkeep")
        }
    }

    fn requests(names: &[&str]) -> Vec<HostRequest> {
        let of = |name: &&str| {
            let ssh = Some(railwright_knowledge::spec::HostSsh {
                address: (*name).to_owned(),
                ..Default::default()
            });
            let host = railwright_knowledge::spec::Host {
                name: (*name).to_owned(),
                index: 1,
                group: 0,
                netdevs: Vec::new(),
                node: (*name).to_owned(),
                ssh,
            };
            let access =
                TargetAccess::of_host(&host, std::path::Path::new("/inventory"), None).unwrap();
            HostRequest {
                access,
                reads: vec![Read::Boot, Read::Boot],
            }
        };
        names.iter().map(of).collect()
    }

    #[tokio::test(start_paused = true)]
    async fn a_broken_host_costs_itself_only() {
        let events = Mutex::new(Vec::new());
        let note = |event: ObservationEvent| events.lock().unwrap().push(event);
        let observation = observe_hosts(
            &Behaving,
            requests(&["a", "down", "hung", "cut", "b"]),
            64,
            &note,
        )
        .await;
        let problem = |name: &str| {
            observation.targets[&Target::host(name)]
                .problem
                .as_ref()
                .map(|p| p.message.as_str())
        };
        assert_eq!((problem("a"), problem("b")), (None, None));
        assert_eq!(
            observation.targets[&Target::host("a")]
                .answers
                .keys()
                .collect::<Vec<_>>(),
            ["boot", "host"]
        );
        assert_eq!(
            problem("down"),
            Some("down is not reachable at x: \u{fffd}[31mno route")
        );
        assert_eq!(problem("hung"), Some("hung did not answer within 600 s"));
        assert_eq!(problem("cut"), Some("the connection to cut ended: gone"));
        let codes: Vec<_> = observation
            .targets
            .values()
            .filter_map(|t| t.problem.as_ref())
            .map(|p| p.code.as_str())
            .collect();
        assert_eq!(codes, ["RW0408", "RW0401", "RW0409"], "of cut, down, hung");
        let events = events.into_inner().unwrap();
        assert_eq!(
            (events.first(), events.last()),
            (
                Some(&ObservationEvent::Began { hosts: 5 }),
                Some(&ObservationEvent::Ended)
            )
        );
        assert_eq!(
            events
                .iter()
                .filter(|event| matches!(
                    event,
                    ObservationEvent::Answered { .. } | ObservationEvent::Failed { .. }
                ))
                .count(),
            5
        );
    }

    #[tokio::test(start_paused = true)]
    async fn the_result_does_not_depend_on_order_or_parallelism() {
        let names = ["a", "bb", "ccc", "dddd", "cut"];
        let mut backwards = names;
        backwards.reverse();
        let hosts = async |names: &[&str], parallel| {
            observe_hosts(&Behaving, requests(names), parallel, &|_| {})
                .await
                .targets
        };
        assert_eq!(hosts(&names, 1).await, hosts(&backwards, 64).await);
    }
}
