//! NCCL's tests between hosts as checks of them: for the gate of a rollout, and for `verify`. They
//! run as `job run` runs them, and what `job prove` says of their output is what the checks say.

use super::host_job::{self, HostJobOutcome, HostJobStartError};
use super::nccl::transport::Transport;
use super::nccl::{self, NcclExpectations, NcclLog, NcclLogDecoder};
use super::result::{CheckOutcome, CheckResult, CheckVerdict, VerifyCheck};
use railwright_base::nodeset;
use railwright_base::text::{format_count, format_duration, one_line};
use railwright_transport::{Connector, TargetAccess};
use railwright_workload::{HostPart, describe_missing_requirement};
use serde::Serialize;
use std::future::Future;

/// A run between hosts.
pub struct NcclRun {
    /// The hosts and what each of them does; the first starts the others' processes.
    pub parts: Vec<(TargetAccess, HostPart)>,
    /// Processes of all hosts together.
    pub ranks: u32,
    /// It is ended after so many seconds.
    pub limit_s: u32,
    /// What its output is compared with.
    pub expected: NcclExpectations,
}

/// What is to be done of hosts that run together.
pub enum NcclWork {
    /// A run.
    Run(Box<NcclRun>),
    /// Nothing: the host, and why it has nobody to run with.
    Alone {
        /// The host.
        host: String,
        /// Why.
        why: String,
    },
}

/// What a run reached.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct NcclFigure {
    /// The hosts.
    pub hosts: Vec<String>,
    /// Processes of all of them together.
    pub ranks: u32,
    /// What carried the data between them.
    pub transport: Transport,
    /// The size of the largest message, in bytes.
    pub bytes: Option<u64>,
    /// The bus bandwidth at that size, of the slower placement, in GB/s (10^9 bytes).
    pub busbw: Option<f64>,
}

/// Who runs together of a wave: hosts of one sort, and where there are fewer than two of it one
/// that is through, as with pairs over RDMA. The only host that is through had nobody to run with,
/// and comes along.
pub fn group_wave_hosts(
    sorts: &[Vec<String>],
    wave: &[String],
    done: &[String],
) -> Vec<Vec<String>> {
    let mut groups = Vec::new();
    for sort in sorts {
        let mut hosts = wave.to_vec();
        hosts.retain(|host| sort.contains(host));
        if hosts.is_empty() {
            continue;
        }
        let mut earlier = done
            .iter()
            .filter(|host| sort.contains(host) && !wave.contains(host));
        let first = earlier.next();
        if hosts.len() == 1 || earlier.next().is_none() {
            hosts.extend(first.cloned());
        }
        groups.push(hosts);
    }
    groups
}

/// Runs and checks; `begins` is called for each run, and `stop` ends the one that goes on and
/// begins no other.
pub async fn run_nccl_checks(
    connector: &dyn Connector,
    inventory: &str,
    works: Vec<NcclWork>,
    begins: &(dyn Fn(&[String]) + Sync),
    stop: impl Future<Output = ()> + Send,
) -> (Vec<CheckResult>, Vec<NcclFigure>) {
    let mut stop = std::pin::pin!(stop);
    let (mut results, mut figures, mut is_stopped) = (Vec::new(), Vec::new(), false);
    for work in works {
        let run = match work {
            NcclWork::Run(run) => run,
            NcclWork::Alone { host, why } => {
                results.push(outcome_of_single_host(&why).on(
                    inventory,
                    &[&host],
                    None,
                    VerifyCheck::Nccl(""),
                ));
                continue;
            }
        };
        let hosts: Vec<String> = run
            .parts
            .iter()
            .map(|(_, part)| part.host.clone())
            .collect();
        begins(&hosts);
        let mut decoder = NcclLogDecoder::default();
        let ended = match is_stopped {
            true => Ok(HostJobOutcome::Stopped),
            false => {
                host_job::run_host_job(
                    connector,
                    &run.parts,
                    run.limit_s,
                    &mut |_: &str, text: &str| decoder.feed(text.as_bytes()),
                    &mut stop,
                )
                .await
            }
        };
        is_stopped |= matches!(ended, Ok(HostJobOutcome::Stopped));
        let log = decoder.finish();
        for (aspect, outcome) in evaluate_nccl_run(ended, &log, &run.expected, run.limit_s) {
            results.push(bind_nccl_outcome(outcome, aspect, inventory, &hosts));
        }
        figures.extend(build_nccl_figure(hosts, run.ranks, &log));
    }
    (results, figures)
}

fn bind_nccl_outcome(
    outcome: CheckOutcome,
    aspect: &'static str,
    inventory: &str,
    hosts: &[String],
) -> CheckResult {
    let names: Vec<&str> = hosts.iter().map(String::as_str).collect();
    let next = outcome
        .next
        .replace("{host}", &nodeset::fold_node_set(hosts));
    outcome
        .next(next)
        .on(inventory, &names, None, VerifyCheck::Nccl(aspect))
}

fn build_nccl_figure(hosts: Vec<String>, ranks: u32, log: &NcclLog) -> Option<NcclFigure> {
    let largest = log.runs.iter().rev().find_map(|run| run.largest)?;
    let transport = nccl::transport::of_log(log);
    Some(NcclFigure {
        hosts,
        ranks,
        transport,
        bytes: Some(largest.bytes),
        busbw: largest.busbw(),
    })
}

fn outcome_of_single_host(why: &str) -> CheckOutcome {
    CheckOutcome::not_run("RW1307", why)
        .expected("NCCL's tests between two hosts at least")
        .effect(
            "nothing of NCCL is proven on it by itself: what runs on one host alone crosses no \
             network",
        )
        .next(
            "railwright verify {inventory} --nccl proves it between all hosts that can run \
             together",
        )
}

/// What a run says, aspect by aspect; how it ended comes first where that was no good end, and then
/// only what it disproves besides.
fn evaluate_nccl_run(
    ended: Result<HostJobOutcome, HostJobStartError>,
    log: &NcclLog,
    expected: &NcclExpectations,
    limit_s: u32,
) -> Vec<(&'static str, CheckOutcome)> {
    let bad = match ended {
        Ok(ended) => check_run_end(&ended, log, limit_s),
        Err(refused) => Some(report_unstarted_run(refused)),
    };
    let is_bad = bad.is_some();
    let mut outcomes = Vec::new();
    if let Some(bad) = bad {
        outcomes.push(("", bad));
    }
    for (aspect, outcome) in nccl::check_nccl_log(log, expected).aspects {
        if !is_bad || outcome.verdict == CheckVerdict::Failed {
            outcomes.push((aspect.word(), outcome));
        }
    }
    outcomes
}

const TO_ITS_END: &str = "a run to its end";
const UNPROVEN: &str = "nothing is proven of the path from GPU to GPU";

/// It did not come to a good end.
fn check_run_end(ended: &HostJobOutcome, log: &NcclLog, limit_s: u32) -> Option<CheckOutcome> {
    let (outcome, effect) = match ended {
        HostJobOutcome::Exited(all) => {
            let (host, code) = all.iter().find(|(_, code)| *code != 0)?;
            let said = match log.failures.first() {
                Some(failure) => format!(": {}", failure.text),
                None => String::new(),
            };
            let host = one_line(host, 60);
            let found = format!("it ended with exit status {code} on {host}{said}");
            (
                CheckOutcome::failed("RW1306", found),
                "jobs of NCCL break between these hosts",
            )
        }
        HostJobOutcome::Late => {
            let sizes: u64 = log.runs.iter().map(|run| run.sizes).sum();
            let found = format!(
                "it had not ended after {} ({} measured), and was ended",
                format_duration(limit_s.into()),
                format_count(sizes as usize, "size")
            );
            (
                CheckOutcome::failed("RW1306", found),
                "jobs of NCCL hang between these hosts, or are too slow for the time that they \
                 were given",
            )
        }
        HostJobOutcome::Lost { host, why } => (
            CheckOutcome::unknown("RW1306", format!("{host} was lost: {why}")),
            UNPROVEN,
        ),
        HostJobOutcome::Stopped => (CheckOutcome::unknown("RW1306", "it was stopped"), UNPROVEN),
    };
    let outcome = outcome
        .expected(TO_ITS_END)
        .effect(effect)
        .next("railwright job run nccl-test -i {inventory} --on {host} shows all that it says");
    Some(outcome)
}

/// The first thing that hosts lack, on which it is missing, and what brings it.
fn describe_missing_things(all: &[(String, String)]) -> (String, String) {
    let first = match all.first() {
        Some((_, what)) => what.as_str(),
        None => "",
    };
    let mut hosts = Vec::new();
    for (host, what) in all {
        if what == first {
            hosts.push(host);
        }
    }
    let (what, brings) = describe_missing_requirement(first);
    let more = match all.len() - hosts.len() {
        0 => String::new(),
        others => format!(", and {} more", format_count(others, "thing")),
    };
    let hosts = nodeset::fold_node_set(&hosts);
    (format!("{what} is not on {hosts}{more}"), brings)
}

/// It was not started anywhere.
fn report_unstarted_run(refused: HostJobStartError) -> CheckOutcome {
    let (found, next) = match refused {
        HostJobStartError::Unreached(error) => {
            (error.one_line(), "railwright verify {inventory}".to_owned())
        }
        HostJobStartError::Unasked { host, why } => (
            format!("{host} could not be asked what is there: {why}"),
            "railwright verify {inventory}".to_owned(),
        ),
        HostJobStartError::NotStarted { host, why } => (
            format!("it did not start on {host}: {why}"),
            "`systemctl --failed` on that host".to_owned(),
        ),
        HostJobStartError::Missing(all) => describe_missing_things(&all),
    };
    CheckOutcome::unknown("RW1306", found)
        .expected(TO_ITS_END)
        .effect(UNPROVEN)
        .next(next)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nccl::samples;

    fn names(list: &[&str]) -> Vec<String> {
        list.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn hosts_of_one_sort_run_together_and_one_alone_takes_one_that_is_through() {
        let sorts = [names(&["a1", "a2", "a3", "a4"]), names(&["b1", "b2"])];
        let of =
            |wave: &[&str], done: &[&str]| group_wave_hosts(&sorts, &names(wave), &names(done));
        // A canary of each sort is alone; the next wave of a sort takes it along.
        assert_eq!(
            of(&["a1", "b1", "login"], &[]),
            [names(&["a1"]), names(&["b1"])]
        );
        assert_eq!(
            of(&["a2", "a3"], &["a1", "b1"]),
            [names(&["a2", "a3", "a1"])]
        );
        assert_eq!(of(&["b2"], &["a1", "b1"]), [names(&["b2", "b1"])]);
        // Later waves leave those that are through alone, unless somebody would be alone.
        assert_eq!(of(&["a3", "a4"], &["a1", "a2"]), [names(&["a3", "a4"])]);
        assert_eq!(of(&["a4"], &["a1", "a2", "a3"]), [names(&["a4", "a1"])]);
        assert_eq!(of(&["login"], &["a1"]), Vec::<Vec<String>>::new());
    }

    fn said(
        ended: Result<HostJobOutcome, HostJobStartError>,
        log: &str,
    ) -> Vec<(&'static str, CheckVerdict, String)> {
        let mut decoder = NcclLogDecoder::default();
        decoder.feed(log.as_bytes());
        let expected = NcclExpectations {
            node_gbps: Some(200.0),
            source: "the NICs".into(),
            ..NcclExpectations::of("x", "--log FILE")
        };
        let evaluated = evaluate_nccl_run(ended, &decoder.finish(), &expected, 60);
        evaluated
            .into_iter()
            .map(|(aspect, evaluation)| (aspect, evaluation.verdict, evaluation.measured))
            .collect()
    }

    #[test]
    fn a_good_end_is_known_by_its_output_and_a_bad_one_is_told_first() {
        let good = || Ok(HostJobOutcome::Exited(vec![("gpu1".to_owned(), 0)]));
        let proven = said(good(), &samples::render_job_log());
        assert!(
            proven.iter().all(|(aspect, verdict, _)| !aspect.is_empty()
                && !matches!(verdict, CheckVerdict::Failed | CheckVerdict::Unknown)),
            "{proven:?}"
        );
        let wrong = said(
            good(),
            &samples::render_job_log().replace("26.56      0", "26.56      7"),
        );
        assert!(
            wrong
                .iter()
                .any(|(aspect, verdict, found)| (*aspect, *verdict)
                    == ("data", CheckVerdict::Failed)
                    && found.contains('7')),
            "{wrong:?}"
        );
        let silent = said(good(), "");
        assert!(
            silent
                .iter()
                .any(|(aspect, verdict, _)| (*aspect, *verdict)
                    == ("transport", CheckVerdict::Unknown)),
            "{silent:?}"
        );

        let broke = said(
            Ok(HostJobOutcome::Exited(vec![("gpu1".to_owned(), 2)])),
            "gpu1: Test NCCL failure common.cu:958 'unhandled system error'\n",
        );
        assert_eq!((broke[0].0, broke[0].1), ("", CheckVerdict::Failed));
        assert!(
            broke[0]
                .2
                .starts_with("it ended with exit status 2 on gpu1"),
            "{broke:?}"
        );
        assert!(
            broke
                .iter()
                .skip(1)
                .all(|(_, verdict, _)| *verdict == CheckVerdict::Failed),
            "what is not known of a broken run is no finding: {broke:?}"
        );
        let hung = said(Ok(HostJobOutcome::Late), "");
        assert_eq!(
            hung,
            [(
                "",
                CheckVerdict::Failed,
                "it had not ended after 1 min (0 sizes measured), and was ended".to_owned()
            )]
        );
        let lost = said(
            Ok(HostJobOutcome::Lost {
                host: "gpu2".into(),
                why: "a reboot".into(),
            }),
            "",
        );
        assert_eq!(
            (lost.len(), lost[0].1, lost[0].2.as_str()),
            (1, CheckVerdict::Unknown, "gpu2 was lost: a reboot")
        );
    }

    #[test]
    fn what_hosts_lack_is_told_in_words() {
        let lacks = |all: &[(&str, &str)]| {
            let all = all
                .iter()
                .map(|(host, what)| ((*host).to_owned(), (*what).to_owned()))
                .collect();
            said(Err(HostJobStartError::Missing(all)), "").remove(0)
        };
        let (_, verdict, found) = lacks(&[
            ("gpu1", "program all_reduce_perf"),
            ("gpu2", "program all_reduce_perf"),
            ("gpu2", "mpirun"),
        ]);
        assert_eq!(
            (verdict, found.as_str()),
            (
                CheckVerdict::Unknown,
                "all_reduce_perf (NVIDIA/nccl-tests) is not on gpu[1-2], and 1 thing more"
            )
        );
    }
}
