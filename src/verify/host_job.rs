//! A job that runs on hosts over SSH: what it needs is looked at on all of them first, then it is
//! started under transient units, its output taken as it comes, and everything ended. What we start
//! has a lease: the host itself ends it even if we die.

use super::session::{ProbeOutput, run_probe};
use super::together::run_concurrently;
use railwright_base::Reason;
use railwright_base::text::one_line;
use railwright_resource::probe::Probe;
use railwright_resource::probe_job::CHUNK_BYTES;
use railwright_system::clock::{self, Deadline};
use railwright_transport::{BoxFuture, Connector, Prober, TargetAccess, TransportError};
use railwright_workload::HostPart;
use std::future::Future;
use std::time::Duration;

/// Between two looks at the output.
const LOOK: Duration = Duration::from_millis(500);
/// Looks that may fail one after the other.
const FAILURES: u32 = 5;
/// Ranks whose peer has broken are left so long to say so.
const GRACE: Duration = Duration::from_secs(30);
/// A line without an end is passed on in pieces of about this size, in bytes, so that what is kept
/// of it does not grow. Lines of NCCL are far below it, and the decoder looks at the first 16 KiB
/// of a line alone.
const OPEN_MAX: usize = 64 << 10;
/// The host ends a job by itself so long after our own limit.
const LEASE_SLACK_S: u32 = 60;

/// Why nothing was started.
#[derive(Debug)]
pub enum HostJobStartError {
    /// A host could not be reached.
    Unreached(TransportError),
    /// A host could not be asked.
    Unasked {
        /// The host.
        host: String,
        /// Why.
        why: String,
    },
    /// Hosts lack something: each with what.
    Missing(Vec<(String, String)>),
    /// It did not start on a host; what was started before it was ended.
    NotStarted {
        /// The host.
        host: String,
        /// In the host's words.
        why: String,
    },
}

/// How it ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HostJobOutcome {
    /// With these exit statuses, by host.
    Exited(Vec<(String, i32)>),
    /// Somebody asked to stop.
    Stopped,
    /// The time was over.
    Late,
    /// A host was lost, or its unit ended without a status.
    Lost {
        /// The host.
        host: String,
        /// Why.
        why: String,
    },
}

/// One host of it.
struct Seat<'a> {
    part: &'a HostPart,
    prober: Prober,
    taken: u64,
    /// What stands behind the last line end.
    open: String,
    status: Option<i32>,
    failures: u32,
}

/// Runs it to its end. `lines` is given whole lines of a host as they come; `stop` ends it.
pub async fn run_host_job(
    connector: &dyn Connector,
    parts: &[(TargetAccess, HostPart)],
    limit_s: u32,
    lines: &mut (dyn FnMut(&str, &str) + Send),
    stop: impl Future<Output = ()>,
) -> Result<HostJobOutcome, HostJobStartError> {
    let connected = parts
        .iter()
        .map(|(access, _)| connector.connect(access))
        .collect();
    let mut seats = Vec::new();
    for (link, (_, part)) in run_concurrently(connected).await.into_iter().zip(parts) {
        let prober = Prober::new(link.map_err(HostJobStartError::Unreached)?);
        seats.push(Seat {
            part,
            prober,
            taken: 0,
            open: String::new(),
            status: None,
            failures: 0,
        });
    }
    check_job_needs(&seats).await?;
    let token: String = clock::generate_nonce()
        .unwrap_or_default()
        .chars()
        .take(12)
        .collect();
    seats.retain(|seat| seat.part.start.is_some());
    let ended = match start_job(&seats, &token, limit_s).await {
        Ok(()) => Ok(watch_job(&mut seats, &token, limit_s, lines, stop).await),
        Err(refused) => Err(refused),
    };
    let mut ends = Vec::new();
    for seat in &seats {
        let token = token.clone();
        ends.push(probe_host(&seat.prober, Probe::EndJob { token }));
    }
    // A host that does not hear it ends the job by its lease.
    run_concurrently(ends).await;
    ended
}

fn probe_host(prober: &Prober, probe: Probe) -> BoxFuture<'_, Result<ProbeOutput, Reason>> {
    Box::pin(async move { run_probe(prober, &probe).await })
}

async fn check_job_needs(seats: &[Seat<'_>]) -> Result<(), HostJobStartError> {
    let mut looks = Vec::new();
    for seat in seats {
        let script = seat.part.needs.clone();
        looks.push(probe_host(&seat.prober, Probe::JobNeeds { script }));
    }
    let mut missing = Vec::new();
    for (said, seat) in run_concurrently(looks).await.into_iter().zip(seats) {
        let host = seat.part.host.clone();
        let said = match said {
            Ok(said) => said,
            Err(why) => {
                return Err(HostJobStartError::Unasked {
                    host,
                    why: why.to_string(),
                });
            }
        };
        let mut lacks_something = false;
        for line in said.out.lines() {
            if let Some(what) = line.strip_prefix("@missing ") {
                lacks_something = true;
                missing.push((host.clone(), one_line(what, 120)));
            }
        }
        if !lacks_something && said.code != 0 {
            return Err(HostJobStartError::Unasked {
                host,
                why: format!("exit status {}: {}", said.code, one_line(&said.err, 120)),
            });
        }
    }
    if missing.is_empty() {
        Ok(())
    } else {
        Err(HostJobStartError::Missing(missing))
    }
}

async fn start_job(seats: &[Seat<'_>], token: &str, limit_s: u32) -> Result<(), HostJobStartError> {
    let mut starts = Vec::new();
    for seat in seats {
        let (files, script) = seat.part.start.clone().unwrap_or_default();
        let start = Probe::StartJob {
            token: token.to_owned(),
            files,
            script,
            lease_s: limit_s.saturating_add(LEASE_SLACK_S),
        };
        starts.push(probe_host(&seat.prober, start));
    }
    for (said, seat) in run_concurrently(starts).await.into_iter().zip(seats) {
        let why = match said {
            Ok(said) if said.code == 0 => continue,
            Ok(said) => one_line(&(said.out + &said.err), 200),
            Err(why) => why.to_string(),
        };
        return Err(HostJobStartError::NotStarted {
            host: seat.part.host.clone(),
            why,
        });
    }
    Ok(())
}

async fn watch_job(
    seats: &mut [Seat<'_>],
    token: &str,
    limit_s: u32,
    lines: &mut (dyn FnMut(&str, &str) + Send),
    stop: impl Future<Output = ()>,
) -> HostJobOutcome {
    let mut stop = std::pin::pin!(stop);
    let deadline = Deadline::after(Duration::from_secs(limit_s.into()));
    let mut grace: Option<Deadline> = None;
    loop {
        if let Some(lost) = collect_job_output(seats, token, lines).await {
            return lost;
        }
        if seats.iter().all(|seat| seat.status.is_some())
            || grace.as_ref().is_some_and(|grace| grace.left().is_zero())
        {
            return HostJobOutcome::Exited(
                seats
                    .iter()
                    .filter_map(|seat| Some((seat.part.host.clone(), seat.status?)))
                    .collect(),
            );
        }
        // One that ended well may be a while ahead of others.
        if grace.is_none()
            && seats
                .iter()
                .any(|seat| seat.status.is_some_and(|status| status != 0))
        {
            grace = Some(Deadline::after(GRACE));
        }
        if deadline.left().is_zero() {
            return HostJobOutcome::Late;
        }
        tokio::select! {
            () = &mut stop => return HostJobOutcome::Stopped,
            () = clock::sleep_for(LOOK) => {}
        }
    }
}

/// One look at all hosts; which was lost, if one was.
async fn collect_job_output(
    seats: &mut [Seat<'_>],
    token: &str,
    lines: &mut (dyn FnMut(&str, &str) + Send),
) -> Option<HostJobOutcome> {
    let mut looks = Vec::new();
    for seat in seats.iter().filter(|seat| seat.status.is_none()) {
        let look = Probe::JobOutput {
            token: token.to_owned(),
            from: seat.taken,
        };
        looks.push(probe_host(&seat.prober, look));
    }
    let said = run_concurrently(looks).await;
    let open = seats.iter_mut().filter(|seat| seat.status.is_none());
    for (said, seat) in said.into_iter().zip(open) {
        let lost = match said {
            Ok(said) => seat.take(&said.out, lines),
            Err(why) => {
                seat.failures += 1;
                (seat.failures >= FAILURES).then_some(why)
            }
        };
        if let Some(why) = lost {
            return Some(HostJobOutcome::Lost {
                host: seat.part.host.clone(),
                why: one_line(why.as_words(), 200),
            });
        }
    }
    None
}

impl Seat<'_> {
    /// What one look gave; why the host is lost, if it is.
    fn take(&mut self, said: &str, lines: &mut (dyn FnMut(&str, &str) + Send)) -> Option<Reason> {
        self.failures = 0;
        let (head, output) = said.split_once('\n').unwrap_or((said, ""));
        let mut words = head.split_whitespace().skip(1);
        let (state, size) = (
            words.next()?,
            words.next()?.parse::<u64>().unwrap_or_default(),
        );
        if state == "gone" {
            return Some(
                "its unit ended without an exit status: a reboot of the host, its lease, or \
                 somebody stopped it"
                    .into(),
            );
        }
        self.taken += size.saturating_sub(self.taken).min(CHUNK_BYTES);
        self.open.push_str(output);
        if let Some(end) = self.open.rfind('\n') {
            let rest = self.open.split_off(end + 1);
            lines(&self.part.host, &std::mem::replace(&mut self.open, rest));
        }
        if self.open.len() > OPEN_MAX {
            lines(
                &self.part.host,
                &format!("{}\n", std::mem::take(&mut self.open)),
            );
        }
        if state == "ended" && self.taken >= size {
            let code = words.next().unwrap_or_default();
            self.status = Some(code.parse().unwrap_or(-1));
            if !self.open.is_empty() {
                lines(
                    &self.part.host,
                    &format!("{}\n", std::mem::take(&mut self.open)),
                );
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use railwright_resource::{Action, Read, ReadResults};
    use railwright_transport::{ExecutionOutcome, Fence, HostLink, Upkeep};
    use std::sync::Arc;

    struct Nobody;

    impl HostLink for Nobody {
        fn read<'a>(&'a self, _: &'a [Read]) -> BoxFuture<'a, Result<ReadResults, TransportError>> {
            Box::pin(async { Ok(ReadResults::default()) })
        }
        fn perform<'a>(
            &'a self,
            _: &'a Action,
            _: &'a str,
            _: Option<&'a Fence>,
        ) -> BoxFuture<'a, Result<ExecutionOutcome, TransportError>> {
            Box::pin(async {
                Ok(ExecutionOutcome::Unknown {
                    reason: String::new().into(),
                })
            })
        }
        fn probe<'a>(
            &'a self,
            _: &'a Probe,
        ) -> BoxFuture<'a, Result<ExecutionOutcome, TransportError>> {
            Box::pin(async {
                Ok(ExecutionOutcome::Unknown {
                    reason: String::new().into(),
                })
            })
        }
        fn upkeep<'a>(
            &'a self,
            _: &'a Upkeep,
        ) -> BoxFuture<'a, Result<ExecutionOutcome, TransportError>> {
            Box::pin(async {
                Ok(ExecutionOutcome::Unknown {
                    reason: String::new().into(),
                })
            })
        }
    }

    #[test]
    fn lines_are_told_whole_and_an_end_only_once_all_is_taken() {
        let part = HostPart {
            host: "gpu1".to_owned(),
            needs: String::new(),
            start: None,
        };
        let prober = Prober::new(Arc::new(Nobody));
        let mut seat = Seat {
            part: &part,
            prober,
            taken: 0,
            open: String::new(),
            status: None,
            failures: 0,
        };
        let mut told = String::new();
        let mut take = |seat: &mut Seat<'_>, said: &str| {
            seat.take(said, &mut |_, lines| told.push_str(&format!("[{lines}]")))
        };
        assert_eq!(take(&mut seat, "@job running 5 \none\ntw"), None);
        let large = 5 + CHUNK_BYTES + 4;
        assert_eq!(take(&mut seat, &format!("@job ended {large} 0\no\n")), None);
        assert_eq!(
            (seat.taken, seat.status),
            (5 + CHUNK_BYTES, None),
            "there is more than one look takes"
        );
        assert_eq!(
            take(&mut seat, &format!("@job ended {large} 0\nlast")),
            None
        );
        assert_eq!((seat.taken, seat.status), (large, Some(0)));
        assert!(
            take(&mut seat, "@job gone 0\n")
                .is_some_and(|why| why.as_words().contains("without an exit status"))
        );
        assert_eq!(take(&mut seat, "noise"), None);
        assert_eq!(told, "[one\n][two\n][last\n]");
    }

    #[test]
    fn a_line_without_an_end_does_not_grow() {
        let part = HostPart {
            host: "gpu1".to_owned(),
            needs: String::new(),
            start: None,
        };
        let prober = Prober::new(Arc::new(Nobody));
        let mut seat = Seat {
            part: &part,
            prober,
            taken: 0,
            open: String::new(),
            status: None,
            failures: 0,
        };
        let (mut told, mut bytes) = (0, 0);
        let chunk = "x".repeat(CHUNK_BYTES as usize - 1);
        for look in 1..=64 {
            let size = look * CHUNK_BYTES;
            assert_eq!(
                seat.take(
                    &format!("@job running {size} \n{chunk}"),
                    &mut |_, lines| (told, bytes) = (told + 1, bytes + lines.len())
                ),
                None
            );
            assert!(seat.open.len() <= OPEN_MAX, "{}", seat.open.len());
        }
        assert_eq!(
            (told, bytes),
            (64, 64 * CHUNK_BYTES as usize),
            "nothing of it is lost"
        );
    }
}
