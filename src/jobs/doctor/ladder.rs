//! Trials of the same traffic, each with one thing more than the one before: between the last that
//! goes and the first that does not stands the cause. The steps are those by which a hang of NCCL's
//! tests in pods was narrowed down (NVIDIA/nccl#1564: it went on hosts, in containers with their
//! network, in pods without RDMA, and hung in pods with it).

use railwright_verify::CheckVerdict;
use railwright_verify::nccl::transport::Transport;
use railwright_verify::nccl::{Aspect, JobVerdict, NcclProof};
use railwright_verify::result::CheckOutcome;
use schemars::JsonSchema;
use serde::Serialize;

/// A trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Rung {
    /// RDMA between the hosts themselves.
    Hosts,
    /// NCCL's tests in pods that have the network of their host, with RDMA devices.
    HostNetwork,
    /// NCCL's tests in pods on the pod network, without RDMA.
    WithoutRdma,
    /// NCCL's tests in pods on the pod network, with RDMA devices.
    WithRdma,
}

/// How a trial went.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(tag = "outcome", content = "found", rename_all = "snake_case")]
pub enum TrialOutcome {
    /// It goes, in words.
    Goes(String),
    /// It does not: what was found.
    Fails(String),
    /// It could not be tried, or did not end: why.
    NotKnown(String),
}

impl Rung {
    /// All of them, the lowest first.
    pub const ALL: [Rung; 4] = [
        Rung::Hosts,
        Rung::HostNetwork,
        Rung::WithoutRdma,
        Rung::WithRdma,
    ];

    /// On the screen.
    pub fn word(self) -> &'static str {
        match self {
            Rung::Hosts => "hosts",
            Rung::HostNetwork => "pods, network of the host",
            Rung::WithoutRdma => "pods, without RDMA",
            Rung::WithRdma => "pods, with RDMA",
        }
    }

    /// The ending of its job's name; nothing where it is no job.
    pub fn job(self) -> Option<&'static str> {
        match self {
            Rung::Hosts => None,
            Rung::HostNetwork => Some("host-network"),
            Rung::WithoutRdma => Some("without-rdma"),
            Rung::WithRdma => Some("with-rdma"),
        }
    }

    /// What this trial has that the ones below it do not, where it is the first that fails.
    pub fn cause(self) -> &'static str {
        match self {
            Rung::Hosts => {
                "driver, NIC, switch or cabling: RDMA does not go between the hosts themselves, \
                 whatever is in a pod"
            }
            Rung::HostNetwork => {
                "the container: libraries of RDMA in the image, /dev/infiniband, the limit of \
                 locked memory (`ulimit -l`), IPC_LOCK, GPUs of the pod"
            }
            Rung::WithoutRdma => {
                "the pod network: launcher and workers do not meet there (`btl_tcp_if_include`, \
                 `NCCL_SOCKET_IFNAME`, network policies)"
            }
            Rung::WithRdma => {
                "RDMA on the pod network: the interface of the rail and its GID in the pod, a \
                 wrong `NCCL_IB_HCA`, or HCOLL and UCX of MPI, which take RDMA devices (`-mca \
                 coll_hcoll_enable 0`)"
            }
        }
    }

    /// What to run next, where it is the first that fails.
    pub fn next(self, inventory: &str) -> String {
        match self {
            Rung::Hosts => {
                format!("railwright verify {inventory} names the first check that fails")
            }
            Rung::HostNetwork | Rung::WithRdma => {
                let network = if self == Rung::HostNetwork {
                    " --host-network"
                } else {
                    ""
                };
                format!(
                    "submit that job by itself, and ask for its log and what keeps it: railwright \
                     job render nccl-test -i {inventory} --image IMAGE{network} | railwright job \
                     submit -i {inventory} -; railwright doctor nccl-test -i {inventory}"
                )
            }
            Rung::WithoutRdma => format!(
                "railwright job render nccl-test --explain -i {inventory} tells on which interface \
                 they meet"
            ),
        }
    }
}

/// How far the trials went.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Ladder {
    /// Every trial that was made, the lowest first.
    pub rungs: Vec<(Rung, TrialOutcome)>,
}

impl Ladder {
    /// The first that fails, with what was found.
    pub fn first_that_fails(&self) -> Option<(Rung, &str)> {
        self.rungs.iter().find_map(|(rung, outcome)| {
            if let TrialOutcome::Fails(found) = outcome {
                Some((*rung, found.as_str()))
            } else {
                None
            }
        })
    }

    /// Every trial went.
    pub fn goes(&self) -> bool {
        self.rungs.len() == Rung::ALL.len()
            && self
                .rungs
                .iter()
                .all(|(_, outcome)| matches!(outcome, TrialOutcome::Goes(_)))
    }
}

/// What the log of a job that came to its end says of its trial; it names so many hosts.
pub fn evaluate_trial(rung: Rung, hosts: usize, proof: &NcclProof) -> TrialOutcome {
    // Without RDMA the one thing that has to be different is the transport.
    if rung == Rung::WithoutRdma && proof.transport.is_rdma() {
        return TrialOutcome::Fails(format!(
            "it used {} without asking for a device",
            proof.transport.word()
        ));
    }
    if rung == Rung::WithoutRdma && proof.transport == Transport::Socket {
        return evaluate_tcp_trial(hosts, proof);
    }
    match proof.verdict {
        JobVerdict::Passed => {
            TrialOutcome::Goes(format!("over {}, to its end", proof.transport.word()))
        }
        JobVerdict::Failed => TrialOutcome::Fails(describe_first_finding(proof)),
        JobVerdict::Inconclusive => TrialOutcome::NotKnown(describe_first_finding(proof)),
    }
}

/// A trial over TCP, which is as it has to be: all other aspects count.
fn evaluate_tcp_trial(hosts: usize, proof: &NcclProof) -> TrialOutcome {
    let others = proof.aspects.get(1..).unwrap_or_default();
    if let Some(failed) = find_outcome(others, CheckVerdict::Failed) {
        return TrialOutcome::Fails(describe_finding(failed));
    }
    if hosts < 2 {
        return TrialOutcome::NotKnown(
            "the log names one host alone: nothing shows that pods of two reach each other"
                .to_owned(),
        );
    }
    match find_outcome(others, CheckVerdict::Unknown) {
        Some(unknown) => TrialOutcome::NotKnown(describe_finding(unknown)),
        None => TrialOutcome::Goes("over TCP, to its end".to_owned()),
    }
}

fn find_outcome(
    aspects: &[(Aspect, CheckOutcome)],
    verdict: CheckVerdict,
) -> Option<&CheckOutcome> {
    let mut outcomes = aspects.iter().map(|(_, outcome)| outcome);
    outcomes.find(|outcome| outcome.verdict == verdict)
}

/// The first outcome of a log that has a code; empty where none has one.
fn describe_first_finding(proof: &NcclProof) -> String {
    for (_, outcome) in &proof.aspects {
        if outcome.code.is_some() {
            return describe_finding(outcome);
        }
    }
    String::new()
}

fn describe_finding(outcome: &CheckOutcome) -> String {
    format!("{}: {}", outcome.code.unwrap_or_default(), outcome.measured)
}

#[cfg(test)]
mod tests {
    use super::*;
    use railwright_verify::nccl::{NcclExpectations, NcclLogDecoder, check_nccl_log, samples};

    fn of(rung: Rung, log: &str) -> TrialOutcome {
        let mut decoder = NcclLogDecoder::default();
        decoder.feed(log.as_bytes());
        let log = decoder.finish();
        evaluate_trial(
            rung,
            log.hosts().len(),
            &check_nccl_log(&log, &NcclExpectations::of("x", "--log x")),
        )
    }

    #[test]
    fn a_trial_goes_by_what_it_was_to_show() {
        let rdma = samples::render_job_log();
        let tcp = rdma
            .replace(
                "NET/IB : Using [0]mlx5_0:1/RoCE [1]mlx5_1:1/RoCE [RO]; OOB eth0:10.0.0.1<0>",
                "NET/IB : No device found.",
            )
            .replace("Using network IB", "Using network Socket")
            .replace("via NET/IB/0/GDRDMA", "via NET/Socket/0");
        assert_eq!(
            of(Rung::WithRdma, &rdma),
            TrialOutcome::Goes("over RoCE, to its end".into())
        );
        assert_eq!(
            of(Rung::WithoutRdma, &tcp),
            TrialOutcome::Goes("over TCP, to its end".into())
        );
        assert!(
            matches!(of(Rung::WithRdma, &tcp), TrialOutcome::Fails(why) if why.starts_with("RW1201"))
        );
        assert!(
            matches!(of(Rung::WithoutRdma, &rdma), TrialOutcome::Fails(why) if why.contains("without asking"))
        );
        assert!(matches!(of(Rung::WithRdma, ""), TrialOutcome::NotKnown(_)));
        let wrong = tcp.replace("26.56      0", "26.56      7");
        assert!(
            matches!(of(Rung::WithoutRdma, &wrong), TrialOutcome::Fails(why) if why.starts_with("RW1207"))
        );
    }
}
