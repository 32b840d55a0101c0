//! NCCL's tests between hosts as checks of them: for the gate of a rollout, and for `verify`. They run as `job run` runs them, and what `job prove`
//! says of their output is what the checks say.

use super::host_job::{self, Ended, Refused};
use super::nccl::transport::Transport;
use super::nccl::{self, Decoder, Expected, Log};
use super::result::{Check, CheckResult, Judgement, Verdict};
use railwright_base::nodeset;
use railwright_base::text::{counted, duration, one_line};
use railwright_transport::{Connector, HostAccess};
use railwright_workload::{HostPart, missing};
use serde::Serialize;
use std::future::Future;

/// A run between hosts.
pub struct NcclRun {
    /// The hosts and what each of them does; the first starts the others' processes.
    pub parts: Vec<(HostAccess, HostPart)>,
    /// Processes of all hosts together.
    pub ranks: u32,
    /// It is ended after so many seconds.
    pub limit_s: u32,
    /// What its output is held against.
    pub expected: Expected,
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

/// Who runs together of a wave: hosts of one sort, and where there are fewer than two of it one that is through, as with pairs over RDMA. The only
/// host that is through had nobody to run with, and comes along.
pub fn together(sorts: &[Vec<String>], wave: &[String], done: &[String]) -> Vec<Vec<String>> {
    let of = |sort: &Vec<String>| {
        let mut hosts: Vec<String> = wave.iter().filter(|host| sort.contains(host)).cloned().collect();
        let mut earlier = done.iter().filter(|host| sort.contains(host) && !wave.contains(host)).peekable();
        let first = earlier.next();
        let wants = hosts.len() == 1 || earlier.peek().is_none();
        if !hosts.is_empty() && wants {
            hosts.extend(first.cloned());
        }
        hosts
    };
    sorts.iter().map(of).filter(|hosts| !hosts.is_empty()).collect()
}

/// Runs and judges; `begins` is told of each run, and `stop` ends the one that goes on and begins no other.
pub async fn prove(
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
                results.push(alone(&why).on(inventory, &[&host], None, Check::Nccl("")));
                continue;
            }
        };
        let hosts: Vec<String> = run.parts.iter().map(|(_, part)| part.host.clone()).collect();
        begins(&hosts);
        let mut decoder = Decoder::default();
        let mut lines = |_: &str, text: &str| decoder.feed(text.as_bytes());
        let ended = match is_stopped {
            true => Ok(Ended::Stopped),
            false => host_job::run(connector, &run.parts, run.limit_s, &mut lines, &mut stop).await,
        };
        is_stopped |= matches!(ended, Ok(Ended::Stopped));
        let log = decoder.finish();
        let names: Vec<&str> = hosts.iter().map(String::as_str).collect();
        let shown = nodeset::fold(&hosts);
        let on = |(aspect, judgement): (&'static str, Judgement)| {
            let next = judgement.next.replace("{host}", &shown);
            judgement.next(next).on(inventory, &names, None, Check::Nccl(aspect))
        };
        results.extend(judged(ended, &log, &run.expected, run.limit_s).into_iter().map(on));
        figures.extend(figure(hosts, run.ranks, &log));
    }
    (results, figures)
}

fn figure(hosts: Vec<String>, ranks: u32, log: &Log) -> Option<NcclFigure> {
    let largest = log.runs.iter().rev().find_map(|run| run.largest)?;
    let transport = nccl::transport::of_log(log);
    Some(NcclFigure { hosts, ranks, transport, bytes: Some(largest.bytes), busbw: largest.busbw() })
}

fn alone(why: &str) -> Judgement {
    Judgement::not_run("RW1307", why)
        .expected("NCCL's tests between two hosts at least")
        .effect("nothing of NCCL is proven on it by itself: what runs on one host alone crosses no network")
        .next("railwright verify {inventory} --nccl proves it between all hosts that can run together")
}

/// What a run says, aspect by aspect; how it ended comes first where that was no good end, and then only what it disproves besides.
fn judged(ended: Result<Ended, Refused>, log: &Log, expected: &Expected, limit_s: u32) -> Vec<(&'static str, Judgement)> {
    let bad = match ended {
        Ok(ended) => end(&ended, log, limit_s),
        Err(refused) => Some(not_run(refused)),
    };
    let aspects = nccl::judge(log, expected).aspects.into_iter().map(|(aspect, judgement)| (aspect.word(), judgement));
    match bad {
        None => aspects.collect(),
        Some(bad) => std::iter::once(("", bad)).chain(aspects.filter(|(_, judgement)| judgement.verdict == Verdict::Failed)).collect(),
    }
}

const TO_ITS_END: &str = "a run to its end";
const UNPROVEN: &str = "nothing is proven of the path from GPU to GPU";

/// It did not come to a good end.
fn end(ended: &Ended, log: &Log, limit_s: u32) -> Option<Judgement> {
    let said = log.failures.first().map(|failure| format!(": {}", failure.text)).unwrap_or_default();
    let ran = |judgement: Judgement, effect: &str| {
        judgement.expected(TO_ITS_END).effect(effect).next("railwright job run nccl-test -i {inventory} --on {host} shows all that it says")
    };
    match ended {
        Ended::Exited(all) => {
            let bad: Vec<&(String, i32)> = all.iter().filter(|(_, code)| *code != 0).collect();
            let (host, code) = bad.first()?;
            let found = format!("it ended with exit status {code} on {}{said}", one_line(host, 60));
            Some(ran(Judgement::failed("RW1306", found), "jobs of NCCL break between these hosts"))
        }
        Ended::Late => {
            let sizes: u64 = log.runs.iter().map(|run| run.sizes).sum();
            let found = format!(
                "it had not ended after {} ({} measured), and was ended",
                duration(limit_s.into()),
                counted(sizes as usize, "size")
            );
            Some(ran(
                Judgement::failed("RW1306", found),
                "jobs of NCCL hang between these hosts, or are too slow for the time that they were given",
            ))
        }
        Ended::Lost { host, why } => Some(ran(Judgement::unknown("RW1306", format!("{host} was lost: {why}")), UNPROVEN)),
        Ended::Stopped => Some(ran(Judgement::unknown("RW1306", "it was stopped"), UNPROVEN)),
    }
}

/// It was not started anywhere.
fn not_run(refused: Refused) -> Judgement {
    let (found, next) = match refused {
        Refused::Unreached(error) => (error.one_line(), "railwright verify {inventory}".to_owned()),
        Refused::Unasked { host, why } => {
            (format!("{host} could not be asked what is there: {why}"), "railwright verify {inventory}".to_owned())
        }
        Refused::NotStarted { host, why } => (format!("it did not start on {host}: {why}"), "`systemctl --failed` on that host".to_owned()),
        Refused::Missing(all) => {
            let hosts: Vec<&String> =
                all.first().map_or(Vec::new(), |(_, what)| all.iter().filter(|(_, other)| other == what).map(|(host, _)| host).collect());
            let (what, brings) = missing(all.first().map_or("", |(_, what)| what));
            let others = all.len() - hosts.len();
            let more = if others > 0 { format!(", and {} more", counted(others, "thing")) } else { String::new() };
            (format!("{what} is not on {}{more}", nodeset::fold(&hosts)), brings)
        }
    };
    Judgement::unknown("RW1306", found).expected(TO_ITS_END).effect(UNPROVEN).next(next)
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
        let of = |wave: &[&str], done: &[&str]| together(&sorts, &names(wave), &names(done));
        // A canary of each sort is alone; the next wave of a sort takes it along.
        assert_eq!(of(&["a1", "b1", "login"], &[]), [names(&["a1"]), names(&["b1"])]);
        assert_eq!(of(&["a2", "a3"], &["a1", "b1"]), [names(&["a2", "a3", "a1"])]);
        assert_eq!(of(&["b2"], &["a1", "b1"]), [names(&["b2", "b1"])]);
        // Later waves leave those that are through alone, unless somebody would be alone.
        assert_eq!(of(&["a3", "a4"], &["a1", "a2"]), [names(&["a3", "a4"])]);
        assert_eq!(of(&["a4"], &["a1", "a2", "a3"]), [names(&["a4", "a1"])]);
        assert_eq!(of(&["login"], &["a1"]), Vec::<Vec<String>>::new());
    }

    fn said(ended: Result<Ended, Refused>, log: &str) -> Vec<(&'static str, Verdict, String)> {
        let mut decoder = Decoder::default();
        decoder.feed(log.as_bytes());
        let expected = Expected { node_gbps: Some(200.0), source: "the NICs".into(), ..Expected::of("x", "--log FILE") };
        let judged = judged(ended, &decoder.finish(), &expected, 60);
        judged.into_iter().map(|(aspect, judgement)| (aspect, judgement.verdict, judgement.measured)).collect()
    }

    #[test]
    fn a_good_end_is_judged_by_its_output_and_a_bad_one_is_told_first() {
        let good = || Ok(Ended::Exited(vec![("gpu1".to_owned(), 0)]));
        let proven = said(good(), &samples::job());
        assert!(
            proven.iter().all(|(aspect, verdict, _)| !aspect.is_empty() && !matches!(verdict, Verdict::Failed | Verdict::Unknown)),
            "{proven:?}"
        );
        let wrong = said(good(), &samples::job().replace("26.56      0", "26.56      7"));
        assert!(
            wrong.iter().any(|(aspect, verdict, found)| (*aspect, *verdict) == ("data", Verdict::Failed) && found.contains('7')),
            "{wrong:?}"
        );
        let silent = said(good(), "");
        assert!(silent.iter().any(|(aspect, verdict, _)| (*aspect, *verdict) == ("transport", Verdict::Unknown)), "{silent:?}");

        let broke =
            said(Ok(Ended::Exited(vec![("gpu1".to_owned(), 2)])), "gpu1: Test NCCL failure common.cu:958 'unhandled system error'\n");
        assert_eq!((broke[0].0, broke[0].1), ("", Verdict::Failed));
        assert!(broke[0].2.starts_with("it ended with exit status 2 on gpu1"), "{broke:?}");
        assert!(
            broke.iter().skip(1).all(|(_, verdict, _)| *verdict == Verdict::Failed),
            "what is not known of a broken run is no finding: {broke:?}"
        );
        let hung = said(Ok(Ended::Late), "");
        assert_eq!(hung, [("", Verdict::Failed, "it had not ended after 1 min (0 sizes measured), and was ended".to_owned())]);
        let lost = said(Ok(Ended::Lost { host: "gpu2".into(), why: "a reboot".into() }), "");
        assert_eq!((lost.len(), lost[0].1, lost[0].2.as_str()), (1, Verdict::Unknown, "gpu2 was lost: a reboot"));
    }

    #[test]
    fn what_hosts_lack_is_told_in_words() {
        let lacks = |all: &[(&str, &str)]| {
            let all = all.iter().map(|(host, what)| ((*host).to_owned(), (*what).to_owned())).collect();
            said(Err(Refused::Missing(all)), "").remove(0)
        };
        let (_, verdict, found) = lacks(&[("gpu1", "program all_reduce_perf"), ("gpu2", "program all_reduce_perf"), ("gpu2", "mpirun")]);
        assert_eq!(
            (verdict, found.as_str()),
            (Verdict::Unknown, "all_reduce_perf (NVIDIA/nccl-tests) is not on gpu[1-2], and 1 thing more")
        );
    }
}
