//! Logs in, verdicts out; hostile logs; the same answer however a log is split.

use super::direct::{self, Direct};
use super::transport::Transport;
use super::*;
use crate::result::CheckVerdict;
use proptest::prelude::*;

pub(super) fn of(text: &str) -> NcclLog {
    let mut decoder = NcclLogDecoder::default();
    decoder.feed(text.as_bytes());
    decoder.finish()
}

pub(super) fn expected() -> NcclExpectations {
    NcclExpectations {
        source: "--expect-gbps".into(),
        ..NcclExpectations::of("job.log", "--log job.log")
    }
}

/// Each aspect that is not passed or without meaning, with its code, and all together.
pub(super) fn told(
    text: &str,
    expected: &NcclExpectations,
) -> (JobVerdict, Vec<(&'static str, CheckVerdict, &'static str)>) {
    let proof = check_nccl_log(&of(text), expected);
    let found = proof.aspects.iter().filter_map(|(aspect, evaluation)| {
        Some((aspect.word(), evaluation.verdict, evaluation.code?))
    });
    (proof.verdict, found.collect())
}

#[test]
fn a_good_job_is_proven_and_all_of_it_is_known() {
    let log = of(&samples::render_job_log());
    assert_eq!(log.versions.iter().collect::<Vec<_>>(), ["2.21.5+cuda12.4"]);
    assert_eq!(
        (log.world, log.processes.len(), log.hosts().len()),
        (Some(4), 4, 2)
    );
    assert_eq!(
        devices::group_hosts_by_devices(&log)
            .iter()
            .map(|g| (g.hosts.as_str(), devices::format_device_names(&g.devices)))
            .collect::<Vec<_>>(),
        [("gpu-[01-02]", "mlx5_[0-1]".to_owned())]
    );
    assert_eq!(
        (transport::of_log(&log), direct::of_log(&log)),
        (Transport::Roce, Direct::On)
    );
    assert_eq!((log.channels().rdma_direct, log.channels().peer), (8, 4));
    assert_eq!(
        told(&samples::render_job_log(), &expected()),
        (JobVerdict::Passed, vec![])
    );
    let carried = NcclExpectations {
        node_gbps: Some(240.0),
        ..expected()
    };
    assert_eq!(
        told(&samples::render_job_log(), &carried),
        (JobVerdict::Passed, vec![]),
        "26.56 of 30 GB/s"
    );
    let more = NcclExpectations {
        node_gbps: Some(400.0),
        ..expected()
    };
    assert_eq!(
        told(&samples::render_job_log(), &more),
        (
            JobVerdict::Failed,
            vec![("bandwidth", CheckVerdict::Failed, "RW1209")]
        )
    );
}

/// Lines after which a job is broken, whatever its channels were.
#[test]
fn a_job_that_broke_is_not_proven() {
    for line in [
        "RuntimeError: NCCL error: unhandled system error (run with NCCL_DEBUG=INFO for details)",
        "[E ProcessGroupNCCL.cpp:460] To avoid data inconsistency, we are taking the entire \
         process down.",
        "[rank14]:[E ProcessGroupNCCL.cpp:1537] [PG 1 Rank 14] Timeout at NCCL work: 15734, last \
         enqueued NCCL work: 15734",
        "gpu-01:7:7 [0] NCCL WARN NET/IB : mlx5_0:1 Got async event : local catastrophic error",
        "gpu-01:7:7 [0] NCCL WARN NET/IB : req 0/1 tag 0 peer 10.0.0.2<1> collective mismatch \
         error, local size 496640 remote size 65536",
        "Cuda failure common.cu:510 'an illegal memory access was encountered'",
        "RuntimeError: CUDA error: an illegal memory access was encountered",
        "[gpu-01:03212] *** Process received signal ***",
        "srun: error: gpu-1-7: task 3: Killed",
        "slurmstepd: error: *** STEP 1.0 ON gpu-1-7 CANCELLED AT 2026-01-01T00:00:00 DUE TO TIME \
         LIMIT ***",
        "gpu-01:7:7 [0] transport/net_ib.cc:139 NCCL WARN communicator encountered a fatal error \
         (detected in ncclIbTest)",
        "torch.distributed.DistStoreError: Timed out after 901 seconds waiting for clients. 2/4 \
         clients joined.",
        "gpu-01:7:7 [0] process_err_completion:1723 NCCL WARN NET/OFI Operation with NULL context \
         completed with error",
        "ray.exceptions.RayActorError: The actor died unexpectedly before finishing this task.",
    ] {
        let (verdict, doubts) = told(
            &format!("{}{line}\n", samples::render_job_log()),
            &expected(),
        );
        assert!(
            verdict == JobVerdict::Failed
                && doubts.contains(&("progress", CheckVerdict::Failed, "RW1211")),
            "{line}: {doubts:?}"
        );
    }
}

#[test]
fn a_training_that_ends_in_a_crash_is_broken() {
    let going = samples::render_job_log() + "Train Epoch: 1 [0/60000 (0%)]\tloss=2.3000\n";
    assert_eq!(told(&going, &expected()), (JobVerdict::Passed, vec![]));
    for end in [
        "[rank3]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.",
        "torch.distributed.elastic.multiprocessing.errors.ChildFailedError:",
        "gpu-02:1301:1301 [0] transport.cc:188 NCCL WARN Cuda failure 719 'unspecified launch \
         failure'",
        "RuntimeError: NCCL communicator was aborted on rank 3.",
        "RuntimeError: NCCL Error 2: unhandled system error",
        "RuntimeError: [gloo/transport/tcp/pair.cc:534] Connection closed by peer [10.0.0.2]:38498",
        "mpirun noticed that process rank 3 with PID 0 on node gpu-02 exited on signal 11 \
         (Segmentation fault).",
        "mpirun detected that one or more processes exited with non-zero status, thus causing the \
         job to be terminated.",
    ] {
        let broken = (
            JobVerdict::Failed,
            vec![("progress", CheckVerdict::Failed, "RW1211")],
        );
        assert_eq!(
            told(&format!("{going}{end}\n"), &expected()),
            broken,
            "{end}"
        );
    }
}

#[test]
fn a_ring_proves_the_fabric_and_nothing_of_gpus() {
    let log = of(&samples::render_ring_log("IB"));
    assert!(
        log.is_of_ring() && !of(&samples::render_job_log()).is_of_ring() && !of("").is_of_ring()
    );
    assert!(
        !of(&format!(
            "{}{}",
            samples::render_job_log(),
            samples::render_ring_log("IB")
        ))
        .is_of_ring(),
        "NCCL spoke as well"
    );
    assert_eq!(
        (log.world, log.hosts().len(), log.channels().rdma),
        (Some(2), 2, 2)
    );
    assert_eq!(
        (transport::of_log(&log), direct::of_log(&log)),
        (Transport::Roce, Direct::Unknown)
    );
    let can = NcclExpectations {
        node_gbps: Some(0.4),
        ..expected()
    };
    assert_eq!(
        told(&samples::render_ring_log("IB"), &can),
        (JobVerdict::Passed, vec![]),
        "0.0417 of 0.05 GB/s"
    );
    let strict = NcclExpectations {
        needs_gpudirect: true,
        ..can.clone()
    };
    assert_eq!(
        told(&samples::render_ring_log("IB"), &strict),
        (
            JobVerdict::Inconclusive,
            vec![("gpudirect", CheckVerdict::Unknown, "RW1206")]
        )
    );
    assert_eq!(
        told(&samples::render_ring_log("Socket"), &can).1[0],
        ("transport", CheckVerdict::Failed, "RW1201")
    );
    // Its own words of what broke are those of NCCL.
    let lost = "node1:31:31 [0] RING WARN NET/IB : Got completion with status=12 opcode=1 len=0 \
                vendor err 0 (x)\n";
    let broken = told(&format!("{}{lost}", samples::render_ring_log("IB")), &can);
    assert_eq!(
        broken,
        (
            JobVerdict::Failed,
            vec![("progress", CheckVerdict::Failed, "RW1211")]
        )
    );
}

#[test]
fn a_ring_is_compared_with_a_ring() {
    use compare::{ComparedLog, LogComparisonTopic};
    let compared = |texts: [&str; 2]| {
        let logs = texts.map(of);
        let proofs = [0, 1].map(|place| check_nccl_log(&logs[place], &expected()));
        let compared = compare::compare_nccl_logs([0, 1].map(|place| ComparedLog {
            name: "x",
            words: "x",
            log: &logs[place],
            proof: &proofs[place],
        }));
        let identical = compared
            .topics
            .iter()
            .find(|(topic, _)| *topic == LogComparisonTopic::Identical)
            .map(|(_, told)| told.measured.clone());
        (compared.verdict, identical.unwrap())
    };
    let (rdma, tcp) = (
        samples::render_ring_log("IB"),
        samples::render_ring_log("Socket"),
    );
    assert_eq!(
        compared([&tcp, &rdma]),
        (
            JobVerdict::Passed,
            "2 ranks, 2 hosts, a ring with no GPU and no NCCL".to_owned()
        )
    );
    let other = tcp.replace("RING", "NCCL");
    assert_eq!(
        compared([&rdma, &other]),
        (
            JobVerdict::Failed,
            "a ring without NCCL with RDMA, NCCL over TCP".to_owned()
        )
    );
}

#[test]
fn more_than_the_nics_carry_proves_nothing() {
    let of = |gbps: f64| {
        told(
            &samples::render_job_log(),
            &NcclExpectations {
                node_gbps: Some(gbps),
                ..expected()
            },
        )
    };
    assert_eq!(of(200.0), (JobVerdict::Passed, vec![]), "26.56 of 25 GB/s");
    assert_eq!(
        of(190.0),
        (
            JobVerdict::Inconclusive,
            vec![("bandwidth", CheckVerdict::Unknown, "RW1218")]
        ),
        "26.56 of 23.75 GB/s"
    );
}

#[test]
fn wrong_data_missing_ends_and_failures() {
    let wrong = samples::render_job_log().replace("26.56      0", "26.56      7");
    assert_eq!(
        told(&wrong, &expected()),
        (
            JobVerdict::Failed,
            vec![("data", CheckVerdict::Failed, "RW1207")]
        )
    );
    let cut = samples::render_job_log();
    let cut = &cut[..cut.find("  8589934592").unwrap()];
    assert_eq!(
        told(cut, &expected()),
        (
            JobVerdict::Inconclusive,
            vec![("progress", CheckVerdict::Unknown, "RW1212")]
        )
    );
    let lost = "gpu-02:1302:1400 [1] transport/net_ib.cc:1295 NCCL WARN NET/IB : Got completion \
                from peer 10.0.0.1<4791> with status=12 opcode=0 len=0 vendor err 129 (Send)\n";
    let broken = format!(
        "{cut}{lost}gpu-02: Test NCCL failure common.cu:958 'remote process exited or there was a \
         network error'\n"
    );
    let proof = check_nccl_log(&of(&broken), &expected());
    let (_, progress) = proof.aspects.last().unwrap();
    assert_eq!(
        (proof.verdict, progress.code),
        (JobVerdict::Failed, Some("RW1211"))
    );
    assert!(
        progress.measured.contains("on gpu-02") && progress.measured.ends_with("(and 1 line more)"),
        "{}",
        progress.measured
    );
    assert!(
        progress.effect.contains("retry counter"),
        "{}",
        progress.effect
    );
    let hung = samples::render_rank_log("gpu-01", 1, 0);
    let hung = &hung[..hung.find("Init START").unwrap() + 10];
    let nothing_came = vec![
        ("transport", CheckVerdict::Unknown, "RW1203"),
        ("progress", CheckVerdict::Unknown, "RW1212"),
    ];
    assert_eq!(
        told(hung, &expected()),
        (JobVerdict::Inconclusive, nothing_came)
    );
}

#[test]
fn few_devices_on_one_host_are_told() {
    let fewer = samples::render_rank_log("gpu-01", 1, 0)
        + &samples::render_rank_log("gpu-02", 2, 1).replace(" [1]mlx5_1:1/RoCE", "");
    let (verdict, found) = told(&fewer, &expected());
    assert_eq!(
        (verdict, found[0]),
        (
            JobVerdict::Passed,
            ("devices", CheckVerdict::Warning, "RW1204")
        )
    );
}

#[test]
fn on_acs_nothing_of_verbs_is_demanded_of_type_2() {
    let hpn = "hpn0      Link encap:Ethernet  HWaddr 00:16:3e:00:00:01\n          inet6 addr: fe80::1/64 Scope:Link\n          inet6 addr: 2408::1/128 Scope:Global\n          UP BROADCAST RUNNING MULTICAST  MTU:1500  Metric:1\n";
    let job = samples::render_job_log()
        .replace(
            "NET/IB : Using [0]mlx5_0:1/RoCE [1]mlx5_1:1/RoCE [RO]; OOB eth0:10.0.0.1<0>",
            "NCCL_IB_DISABLE set by environment to 1.",
        )
        .replace("Using network IB", "Using network Socket")
        .replace("via NET/IB/0/GDRDMA", "via NET/Socket/0");
    let acs = |acs| NcclExpectations {
        acs: Some(acs),
        node_gbps: Some(240.0),
        ..expected()
    };
    let whole = format!("{hpn}{job}");
    for nic in [AcsNic::Type2, AcsNic::Unsaid] {
        assert_eq!(told(&whole, &acs(nic)), (JobVerdict::Passed, vec![]));
        assert_eq!(
            told(&job, &acs(nic)),
            (
                JobVerdict::Inconclusive,
                vec![("hpn0", CheckVerdict::Unknown, "RW1213")]
            )
        );
        let down = whole.replace(" RUNNING", "");
        assert_eq!(
            told(&down, &acs(nic)),
            (
                JobVerdict::Failed,
                vec![("hpn0", CheckVerdict::Failed, "RW1213")]
            )
        );
    }
    let unstated = NcclExpectations {
        node_gbps: None,
        ..acs(AcsNic::Type2)
    };
    assert_eq!(
        told(&whole, &unstated),
        (
            JobVerdict::Inconclusive,
            vec![("bandwidth", CheckVerdict::Unknown, "RW1210")]
        ),
        "hpn0 alone carries nothing"
    );
    let alone = whole.replace("gpu-02", "gpu-01");
    let open = vec![("bandwidth", CheckVerdict::Unknown, "RW1210")];
    assert_eq!(
        told(&alone, &acs(AcsNic::Type2)),
        (JobVerdict::Inconclusive, open.clone()),
        "within one host no NIC was used"
    );
    let share = whole.replace(
        "# Out of",
        "# Collective test concluded: alltoall_perf\n# Out of",
    );
    assert_eq!(
        told(&share, &acs(AcsNic::Type2)),
        (JobVerdict::Inconclusive, open)
    );
    assert_eq!(told(&whole, &acs(AcsNic::Type1)).0, JobVerdict::Failed);
    assert_eq!(
        told(&samples::render_job_log(), &acs(AcsNic::Unsaid)),
        (JobVerdict::Passed, vec![])
    );
}

#[test]
fn nothing_is_known_of_a_log_that_says_nothing() {
    for text in ["", "hello\n", "\0\0\0"] {
        assert_eq!(
            told(text, &expected()),
            (
                JobVerdict::Inconclusive,
                vec![("transport", CheckVerdict::Unknown, "RW1203")]
            )
        );
    }
}

#[test]
fn hosts_of_any_name_are_told_quickly() {
    let many = "1-".repeat(100);
    let log: String = (0..20_000)
        .map(|n| {
            format!(
                "{many}{n}:{n}:1 [0] NCCL INFO NET/IB : Using [0]mlx5_0:1/RoCE\n\
                 [x{n},:1:1 [0] NCCL INFO Using network IB\n"
            )
        })
        .collect();
    let groups = devices::group_hosts_by_devices(&of(&log));
    assert_eq!(groups.len(), 1);
    assert!(groups[0].hosts.contains("1-1-1-"));
    assert_eq!(fold_log_names(["n2", "n1", "a[1]", "n3"]), "n[1-3],a[1]");
}

#[test]
fn perftest_between_the_lines_is_read() {
    let log = of(&format!(
        "{}\nnoise\n{}",
        crate::samples::WRITE_BW_GBITS,
        crate::samples::WRITE_BW_GBITS.replace("0.30", "0.50")
    ));
    assert_eq!(log.perftest, Some((2, 0.30, 0.50)));
}

#[test]
fn memory_does_not_grow_with_the_log() {
    let mut decoder = NcclLogDecoder::default();
    for n in 0..200_000 {
        let host = format!(
            "h{n}:{n}:1 [0] NCCL INFO NET/IB : Using [0]d{n}:1/RoCE\n\
             h:1:1 [0] NCCL INFO NCCL_{n} set by environment to {n}\n"
        );
        decoder.feed(host.as_bytes());
        decoder.feed(
            format!("x: Test NCCL failure {n}\n# nThread 1\n#  Rank 0 Pid 1 on h{n} device\n")
                .as_bytes(),
        );
    }
    let log = decoder.finish();
    assert_eq!(
        (log.processes.len(), log.untold, log.failed),
        (65_536, 200_000 - 65_536, 200_000)
    );
    assert!(log.environment.len() <= 256 && log.failures.len() <= 32 && log.runs.len() <= 64);
}

fn fragment() -> impl Strategy<Value = Vec<u8>> {
    let words = [
        "NCCL INFO ",
        "NCCL WARN ",
        "gpu-1:1:2 [0] ",
        "NET/IB : Using ",
        "[0]mlx5_0:1/RoCE ",
        "; OOB",
        "Channel 00 : 0[0] -> 1[0] via ",
        "NET/IB/0/GDRDMA",
        "NET/Socket/0",
        "Got completion from peer ",
        "with status=12 ",
        "Call to ibv_reg_mr failed with error ",
        "# nThread 1 maxBytes 8\n",
        "#  size count type redop root time algbw busbw #wrong time algbw busbw #wrong\n",
        "8 2 float sum -1 1 2 3 0 1 2 3 0\n",
        "# Avg bus bandwidth : 3",
        "hpn0: <UP>",
        "Train Epoch: 3 [1/2 ",
        "\n",
        "\r\n",
        "\0",
        "\x1b[1m",
        "é",
        "rank 0 nranks 4 ",
        "comm 0x1 ",
        "NCCL_X set by environment to ",
        "[1,0]<stdout>:",
        " #bytes #iterations BW average[Gb/sec]\n",
        "65536 5000 96.9\n",
        "GPU Direct RDMA Disabled for GPU 0 / HCA 0 (distance 8 > 5)",
        "NCCL version 2.",
        "Out of bounds values : 1 FAILED\n",
        "  ",
    ];
    prop_oneof![8 => prop::sample::select(words.to_vec()).prop_map(|word| word.as_bytes().to_vec()), 1 => prop::collection::vec(any::<u8>(), 0..8)]
}

proptest! {
    #[test]
    fn no_log_panics_and_how_it_is_split_changes_nothing(
        parts in prop::collection::vec(fragment(), 0..60),
        places in prop::collection::vec(any::<prop::sample::Index>(), 0..8),
    ) {
        let bytes = parts.concat();
        let mut whole = NcclLogDecoder::default();
        whole.feed(&bytes);
        let whole = whole.finish();
        let mut places: Vec<usize> = places.iter().map(|place| place.index(bytes.len() + 1)).collect();
        places.sort_unstable();
        let (mut split, mut from) = (NcclLogDecoder::default(), 0);
        for place in places {
            split.feed(&bytes[from..place]);
            from = place;
        }
        split.feed(&bytes[from..]);
        prop_assert_eq!(&split.finish(), &whole);
        for acs in [None, Some(AcsNic::Unsaid), Some(AcsNic::Type2)] {
            check_nccl_log(&whole, &NcclExpectations { node_gbps: Some(200.0), acs, needs_gpudirect: true, ..expected() });
        }
    }
}
