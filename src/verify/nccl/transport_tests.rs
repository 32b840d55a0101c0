//! Which transport carried a job between its hosts, with GPUDirect or without: what proves it, what
//! disproves it and what leaves it open.

use super::direct::{self, Direct};
use super::tests::{expected, of, told};
use super::transport::Transport;
use super::*;
use crate::result::CheckVerdict;

#[test]
fn the_line_of_alibaba_clouds_page_is_enough_from_one_pod_of_two() {
    let pod = "pytorch-mnist-master-0:7:7 [0] NCCL INFO NET/IB : Using [0]erdma_0:1/RoCE ; OOB \
               eth0:10.0.0.1<0>\n\
               pytorch-mnist-master-0:7:7 [0] NCCL INFO comm 0x1 rank 0 nranks 2 cudaDev 0 busId \
               70 - Init COMPLETE\n\
               Train Epoch: 1 [0/60000 (0%)]\tloss=2.3000\n\
               Train Epoch: 2 [640/60000 (1%)]\tloss=2.2\n";
    assert_eq!(told(pod, &expected()), (JobVerdict::Passed, vec![]));
    let alone = pod.replace("nranks 2", "nranks 1");
    assert_eq!(
        told(&alone, &expected()),
        (
            JobVerdict::Inconclusive,
            vec![("transport", CheckVerdict::Unknown, "RW1203")]
        )
    );
    let strict = NcclExpectations {
        needs_gpudirect: true,
        ..expected()
    };
    assert_eq!(
        told(pod, &strict),
        (
            JobVerdict::Inconclusive,
            vec![("gpudirect", CheckVerdict::Unknown, "RW1206")]
        )
    );
}

#[test]
fn a_network_that_was_chosen_proves_nothing_until_something_went_over_it() {
    let chosen =
        "gpu-01:7:7 [0] NCCL INFO NET/IB : Using [0]mlx5_0:1/RoCE ; OOB eth0:10.0.0.1<0>\n";
    let nothing_came = (
        JobVerdict::Inconclusive,
        vec![("transport", CheckVerdict::Unknown, "RW1203")],
    );
    assert_eq!(told(chosen, &expected()), nothing_came);
    let met = format!(
        "{chosen}gpu-01:7:7 [0] NCCL INFO comm 0x1 rank 0 nranks 2 cudaDev 0 busId 70 - Init \
         COMPLETE\n"
    );
    assert_eq!(told(&met, &expected()), nothing_came, "ranks meet over TCP");
    let to_be = format!(
        "{chosen}gpu-01:7:7 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[0] [send] via NET/IB/0\n"
    );
    let (verdict, doubts) = told(&to_be, &expected());
    assert_eq!(
        (verdict, doubts.last()),
        (
            JobVerdict::Inconclusive,
            Some(&("progress", CheckVerdict::Warning, "RW1212"))
        ),
        "it may hang (NVIDIA/nccl#899)"
    );
    for after in [
        "Connected all rings",
        "ncclCommInitRank comm 0x1 rank 0 nranks 2 cudaDev 0 busId 70 - Init COMPLETE",
    ] {
        let (verdict, doubts) = told(
            &format!("{to_be}gpu-01:7:7 [0] NCCL INFO {after}\n"),
            &expected(),
        );
        assert!(
            verdict == JobVerdict::Passed && doubts.iter().all(|doubt| doubt.0 != "progress"),
            "{after}: {doubts:?}"
        );
    }
    let aborted =
        "gpu-01:7:7 [0] NCCL INFO comm 0x1 rank 0 nranks 2 cudaDev 0 busId 70 - Abort COMPLETE\n";
    assert_eq!(
        told(&format!("{to_be}{aborted}"), &expected()).0,
        JobVerdict::Inconclusive
    );
    let epoch = "Train Epoch: 1 [0/60000 (0%)]\tloss=2.3000\n";
    assert_eq!(
        told(&format!("{met}{epoch}"), &expected()).0,
        JobVerdict::Passed
    );
    let steps = " iteration 1/ 4 | elapsed time per iteration (ms): 12.5 |\n";
    assert_eq!(
        told(&format!("{met}{steps}"), &expected()).0,
        JobVerdict::Passed,
        "a step is progress as well"
    );
    // NCCL chooses a network on one host, too.
    assert_eq!(
        told(&format!("{chosen}{epoch}"), &expected()),
        nothing_came,
        "who else was there is not said"
    );
    let within = "gpu-01:7:7 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[1] via P2P/CUMEM\n";
    assert_eq!(
        told(&format!("{met}{within}{epoch}"), &expected()),
        nothing_came,
        "all channels are within the host"
    );
    let perftest = "#bytes #iterations BW peak[Gb/sec] BW average[Gb/sec] MsgRate[Mpps]\n 65536 9000 96.9 96.9 0.18\n";
    assert!(of(perftest).perftest.is_some());
    assert_eq!(
        told(&format!("{met}{perftest}"), &expected()),
        nothing_came,
        "that was not the ranks' traffic"
    );
}

/// As people posted them: NVIDIA/nccl#707, NVIDIA/nccl-tests#29, NVIDIA/nccl#1320,
/// aws/aws-ofi-nccl#33, NVIDIA/nccl-tests#17; names are made up.
#[test]
fn logs_that_were_posted() {
    let one_host = (
        JobVerdict::Inconclusive,
        vec![("transport", CheckVerdict::Unknown, "RW1203")],
    );
    let loopback = "gpu-01:9:10 [0] NCCL INFO Channel 01 : 2[c7000] -> 0[87000] [receive] via \
                    NET/IB/5/GDRDMA\n\
                    gpu-01:9:12 [2] NCCL INFO Channel 01 : 2[c7000] -> 0[87000] [send] via \
                    NET/IB/2/GDRDMA\n\
                    gpu-01:9:12 [2] NCCL INFO Connected all rings\n";
    assert_eq!(
        told(loopback, &expected()).0,
        one_host.0,
        "both ends are on the host that speaks"
    );
    let elsewhere = loopback.replacen("gpu-01:9:12", "gpu-02:9:12", 1);
    assert_eq!(told(&elsewhere, &expected()).0, JobVerdict::Passed);

    // Releases before 2.5 tell interfaces whatever they choose.
    let old = "server3:15:15 [7] NCCL INFO NET/Socket : Using [0]enp41s0f1:<0> [1]virbr0:<0>\n\
               server3:15:15 [7] NCCL INFO NET/IB : Using [0]mlx5_0:1/IB ; OOB enp41s0f1:<0>\n";
    assert_eq!(
        check_nccl_log(&of(old), &expected()).transport,
        Transport::Infiniband
    );
    let plugin = "a:1:1 [0] NCCL INFO NET/Socket : Using [0]eth0:10.0.0.1<0>\n\
                  b:1:1 [0] NCCL INFO NET/Socket : Using [0]eth0:10.0.0.2<0>\n\
                  a:1:1 [0] NCCL INFO Ring 00 : 7 -> 8 [receive] via NET/AWS Libfabric/0\n";
    assert_eq!(
        check_nccl_log(&of(plugin), &expected()).transport,
        Transport::Plugin
    );

    let alone = "l20:3:9 [0] NCCL INFO NET/IB : No device found.\n\
                 l20:3:9 [0] NCCL INFO Using network Socket\n\
                 l20:3:9 [0] NCCL INFO comm 0x1 rank 0 nranks 1 cudaDev 0 busId 3000 - Init \
                 COMPLETE\n";
    assert_eq!(
        told(alone, &expected()),
        one_host,
        "nothing goes between hosts"
    );
    let listed = "# Using devices\n\
                  #  Rank  0 Group  0 Pid 390292 on        l20 device  0 [0000:03:00] NVIDIA L20\n\
                  #  Rank  1 Group  0 Pid 390292 on        l20 device  1 [0000:03:01] NVIDIA L20\n\
                  l20:390292:390298 [0] NCCL INFO NET/IB : No device found.\n\
                  l20:390292:390298 [0] NCCL INFO Using network Socket\n";
    assert_eq!(
        told(listed, &expected()).1[0],
        one_host.1[0],
        "the head of nccl-tests names one host"
    );

    let deviation = "#       size         count    type   redop     time   algbw   busbw  error     \
                     time   algbw   busbw  error\n\
                     1048576        262144   float     sum   1035.3    1.01    1.90  5e-07    \
                     643.4    1.63    3.06  5e-07\n";
    let run = |end: &str| {
        of(&format!(
            "{deviation} Out of bounds values : {end}\n Avg bus bandwidth    : 2.48\n"
        ))
        .runs[0]
            .clone()
    };
    assert_eq!(
        (
            run("0 OK").unchecked,
            run("0 OK").is_right,
            run("0 OK").is_over()
        ),
        (0, Some(true), true)
    );
    assert_eq!(run("248 FAILED").is_right, Some(false));
}

#[test]
fn what_nccl_says_of_nodes_goes_before_what_is_concluded() {
    let log = |nodes: u32, channel: &str| {
        format!(
            "gpu-01:7:7 [0] NCCL INFO NET/IB : Using [0]mlx5_0:1/RoCE ; OOB eth0:10.0.0.1<0>\n\
             gpu-01:7:7 [0] NCCL INFO comm 0x1 rank 0 nRanks 8 nNodes {nodes} localRanks {} \
             localRank 0 MNNVL 0\n\
             {channel}gpu-01:7:7 [0] NCCL INFO ncclCommInitRank comm 0x1 rank 0 nranks 8 cudaDev 0 \
             busId 70 commId 0x9 - Init COMPLETE\n\
             Train Epoch: 1 [0/60000 (0%)]\tloss=2.3000\n",
            8 / nodes
        )
    };
    let of_one = (
        JobVerdict::Inconclusive,
        vec![("transport", CheckVerdict::Unknown, "RW1203")],
    );
    assert_eq!(
        told(&log(1, ""), &expected()),
        of_one,
        "one rank of eight on one host"
    );
    let channel =
        "gpu-01:7:7 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[1] [send] via NET/IB/0/GDRDMA\n";
    assert_eq!(
        (
            told(&log(1, channel), &expected()).0,
            told(&log(1, channel), &expected()).1[0]
        ),
        (of_one.0, of_one.1[0]),
        "from GPU to GPU of one host by way of its NIC"
    );
    assert_eq!(told(&log(2, ""), &expected()), (JobVerdict::Passed, vec![]));
    // Communicators within a host and one across: the widest counts.
    assert_eq!(
        told(&format!("{}{}", log(2, channel), log(1, "")), &expected()),
        (JobVerdict::Passed, vec![])
    );
}

#[test]
fn a_rank_that_found_no_device_has_tcp_alone() {
    let lost = "gpu-03:9:9 [0] NCCL INFO NET/IB : No device found.\n\
                gpu-03:9:9 [0] NCCL INFO ncclCommInitRank comm 0x1 rank 4 nranks 5 - Init START\n";
    let proof = check_nccl_log(
        &of(&format!("{}{lost}", samples::render_job_log())),
        &expected(),
    );
    assert_eq!(
        (proof.verdict, proof.aspects[0].1.measured.as_str()),
        (
            JobVerdict::Failed,
            "TCP sockets on gpu-03, RoCE on gpu-[01-02]"
        )
    );
    // A plugin that it takes instead is another matter.
    let plugin = format!("{lost}gpu-03:9:9 [0] NCCL INFO Using network AWS Libfabric\n");
    assert_eq!(transport::of_log(&of(&plugin)), Transport::Plugin);
}

#[test]
fn sockets_disprove_and_one_slow_host_disproves_too() {
    let tcp = samples::render_job_log()
        .replace(
            "NET/IB : Using [0]mlx5_0:1/RoCE [1]mlx5_1:1/RoCE [RO]; OOB eth0:10.0.0.1<0>",
            "NET/IB : No device found.",
        )
        .replace("Using network IB", "Using network Socket")
        .replace("via NET/IB/0/GDRDMA", "via NET/Socket/0");
    assert_eq!(
        told(&tcp, &expected()),
        (
            JobVerdict::Failed,
            vec![("transport", CheckVerdict::Failed, "RW1201")]
        )
    );
    let slow = samples::render_job_log().replace(
        "gpu-02:1301:1301 [0] NCCL INFO Using network IB",
        "gpu-02:1301:1301 [0] NCCL INFO Using network Socket",
    );
    assert_eq!(
        told(&slow, &expected()),
        (JobVerdict::Passed, vec![]),
        "its channels say better what it uses"
    );
    let slow = samples::render_rank_log("gpu-01", 1, 0)
        + &samples::render_rank_log("gpu-02", 2, 1).replace("NET/IB/0/GDRDMA", "NET/Socket/0");
    let proof = check_nccl_log(&of(&slow), &expected());
    assert_eq!(proof.verdict, JobVerdict::Failed);
    assert_eq!(
        proof.aspects[0].1.measured,
        "TCP sockets on gpu-02, RoCE on gpu-01"
    );
}

#[test]
fn gpudirect_that_is_off_says_why() {
    let off = samples::render_job_log().replace("/GDRDMA", "");
    assert_eq!(
        told(&off, &expected()),
        (
            JobVerdict::Passed,
            vec![("gpudirect", CheckVerdict::Warning, "RW1205")]
        )
    );
    let needed = NcclExpectations {
        needs_gpudirect: true,
        ..expected()
    };
    assert_eq!(
        told(&off, &needed),
        (
            JobVerdict::Failed,
            vec![("gpudirect", CheckVerdict::Failed, "RW1205")]
        )
    );
    let far = off.replace(
        "Enabled for GPU 0 / HCA 0 (distance 4 <= 5), read 0 mode Default",
        "Disabled for GPU 0 / HCA 0 (distance 8 > 5)",
    );
    assert_eq!(
        direct::explain_gpudirect_off(&of(&far)),
        "GPU and NIC are too far apart: distance 8, and NCCL's own level allows 5"
    );
    let no_module = off.replace(
        "GPU Direct RDMA Enabled for HCA",
        "GPU Direct RDMA Disabled for HCA",
    );
    assert!(direct::explain_gpudirect_off(&of(&no_module)).contains("nvidia_peermem"));
    let half = samples::render_job_log().replacen("/GDRDMA", "", 3);
    assert_eq!(direct::of_log(&of(&half)), Direct::Partly);
}
