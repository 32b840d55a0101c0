//! Each symptom checked by its own case; logs with several symptoms; hostile logs; files that are
//! not sound.

use super::*;
use proptest::prelude::*;
use railwright_verify::CheckVerdict;
use railwright_verify::nccl::{AcsNic, JobVerdict, NcclExpectations, NcclLog, samples};

fn symptoms() -> Vec<Symptom> {
    load_symptoms().unwrap_or_else(|(problems, _)| panic!("{problems:#?}"))
}

fn held(text: &str, against: &SymptomCaseExpectations) -> Diagnosis {
    let mut doctor = Doctor::new(symptoms());
    doctor.feed(text.as_bytes());
    let acs = against.acs.then_some(AcsNic::Unsaid);
    doctor.finish(|_| NcclExpectations {
        node_gbps: against.gbps,
        acs,
        ..NcclExpectations::of("job.log", "--log job.log")
    })
}

fn of(text: &str) -> Diagnosis {
    held(text, &SymptomCaseExpectations::default())
}

fn ids(text: &str) -> Vec<String> {
    of(text)
        .found
        .into_iter()
        .map(|found| found.symptom.id)
        .collect()
}

#[test]
fn each_symptom_is_the_first_cause_of_its_own_case() {
    let all = symptoms();
    let wrong: Vec<String> = all
        .iter()
        .filter_map(|symptom| {
            let found: Vec<String> = held(&symptom.case, &symptom.against)
                .found
                .into_iter()
                .map(|found| found.symptom.id)
                .collect();
            (found.first() != Some(&symptom.id)).then(|| format!("{}: {found:?}", symptom.id))
        })
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(all.len() >= 60, "{}", all.len());
}

#[test]
fn every_layer_has_symptoms_and_codes_are_of_one_block() {
    let all = symptoms();
    for layer in Layer::ALL {
        assert!(
            all.iter().any(|symptom| symptom.layer == layer),
            "{layer:?}"
        );
    }
    assert!(all.is_sorted_by_key(|symptom| symptom.layer));
    for symptom in &all {
        assert!(
            ["RW129", "RW13", "RW14"]
                .iter()
                .any(|block| symptom.code.starts_with(block)),
            "{}",
            symptom.code
        );
    }
    let evaluated: Vec<&String> = all
        .iter()
        .flat_map(|symptom| symptom.verdict.iter().chain(&symptom.failed))
        .collect();
    assert!(
        evaluated.iter().all(|code| code.starts_with("RW12")),
        "{evaluated:?}"
    );
}

/// Logs as they come, with more than one thing in them: the first cause, and what else is reported.
#[test]
fn the_lowest_layer_has_the_first_cause_and_the_rest_comes_after_it() {
    let cases: &[(&str, &[&str])] = &[
        (
            // an image without libibverbs, seen by its end: slow, and out of time
            "a:7:9 [0] NCCL INFO Failed to open libibverbs.so[.1]\n\
             a:7:9 [0] NCCL INFO Using network Socket\n\
             [rank0]: Watchdog caught collective operation timeout: WorkNCCL(SeqNum=1) ran for \
             600081 milliseconds\n",
            &["no-libibverbs", "timeout"],
        ),
        (
            // a port that went down under the job
            "a:7:9 [0] NCCL WARN NET/IB : mlx5_0:1 Got async error event: port error\n\
             a:7:9 [0] NCCL WARN NET/IB : Got completion from peer 10.0.0.2<4791> with status=12 \
             opcode=0 len=0 vendor err 129\n\
             b:7:9 [0] NCCL WARN NET/IB : Got completion from peer 10.0.0.1<4791> with status=5 \
             opcode=0 len=0 vendor err 244\n\
             b:7:9 [0] NCCL WARN socketProgress: Connection closed by remote peer a<41234>\n",
            &["port-down", "packets-lost", "flushed", "peer-gone"],
        ),
        (
            // the shared device plugin has wrong selectors, so nothing can be placed
            "Warning: no devices in device pool, creating empty resource server for \
             rdma_shared_device_a\n\
             0/3 nodes are available: 3 Insufficient rdma/rdma_shared_device_a.\n\
             waiting for master\n",
            &[
                "no-device-in-pool",
                "insufficient-rdma",
                "waits-for-the-master",
            ],
        ),
        (
            // the stack was replaced below the GPU driver
            "nvidia_peermem: Unknown symbol ib_register_peer_memory_client (err -2)\n\
             a:7:9 [0] NCCL INFO NET/IB : GPU Direct RDMA Disabled for HCA 0 'mlx5_0'\n",
            &["peermem-of-another-stack", "gpudirect-module-missing"],
        ),
        (
            // a GPU that died is the cause of what the others say
            "NVRM: Xid (PCI:0000:1b:00): 79, pid=1, GPU has fallen off the bus.\n\
             Test NCCL failure common.cu:1005 'remote process exited or there was a network \
             error'\n\
             ncclRemoteError: A call failed\n",
            &["gpu-fell-off", "peer-gone"],
        ),
        // the environment is asked before the pod is blamed, and the other way round
        (
            "a:7:9 [0] NCCL INFO NCCL_IB_HCA set by environment to mlx5_10\n\
             a:7:9 [0] NCCL INFO NET/IB : No device found.\n\
             a:7:9 [0] NCCL INFO Using network Socket\n",
            &["no-hca-of-this-name"],
        ),
        (
            "a:7:9 [0] NCCL INFO NCCL_IB_HCA set by environment to \n\
             a:7:9 [0] NCCL INFO NET/IB : No device found.\n\
             a:7:9 [0] NCCL INFO Using network Socket\n",
            &["no-rdma-device-in-the-pod"],
        ),
        // a hang is not HCOLL's where HCOLL is off
        (
            "+ /opt/kube/kubectl exec w-0 -- orted\n\
             + mpirun -mca coll_hcoll_enable 0 all_reduce_perf\n",
            &[],
        ),
        // a good job has nothing
        (
            "a:7:9 [0] NCCL INFO NET/IB : Using [0]erdma_0:1/RoCE [RO]; OOB eth0:10.0.0.1<0>\n\
             a:7:9 [0] NCCL INFO Using network IB\n\
             a:7:9 [0] NCCL INFO ncclCommInitRank comm 0x1 rank 0 nranks 2 cudaDev 0 - Init \
             COMPLETE\n\
             Train Epoch: 1 [0/60000 (0%)]\n",
            &[],
        ),
        ("", &[]),
    ];
    for (log, desired) in cases {
        assert_eq!(ids(log), *desired, "{log}");
    }
}

/// Whatever disproves a job has a cause here, so that `doctor` has an answer where `job prove`
/// sends for it.
#[test]
fn what_disproves_a_job_is_a_symptom() {
    let (tcp, acs) = (
        SymptomCaseExpectations::default(),
        SymptomCaseExpectations {
            acs: true,
            gbps: None,
        },
    );
    let slow = SymptomCaseExpectations {
        gbps: Some(400.0),
        acs: false,
    };
    let socket = "a:7:9 [0] NCCL INFO NET/Socket : Using [0]eth0:10.0.0.1<0>\n\
                  a:7:9 [0] NCCL INFO Using network Socket\n";
    let mixed = format!(
        "{socket}b:7:9 [0] NCCL INFO NET/IB : Using [0]mlx5_0:1/RoCE [RO]; OOB eth0:10.0.0.1<0>\n\
         b:7:9 [0] NCCL INFO Using network IB\n"
    );
    let off = "a:7:9 [0] NCCL INFO NCCL_IB_DISABLE set by environment to 1.\n";
    let hpn = format!(
        "{off}hpn0: flags=4163<UP,BROADCAST,MULTICAST>  mtu 1500\n        inet6 fe80::1  prefixlen 64  scopeid 0x20<link>\n"
    );
    let broken = |line: &str| format!("{}{line}\n", samples::render_job_log());
    let wrong = samples::render_job_log().replace("26.57      0", "26.57      7");
    for (log, against, code, first) in [
        (socket.to_owned(), &tcp, "RW1201", "over-tcp"),
        (mixed, &tcp, "RW1202", "mixed-devices"),
        (wrong, &slow, "RW1207", "wrong-data"),
        (samples::render_job_log(), &slow, "RW1209", "slow"),
        (hpn, &acs, "RW1213", "hpn0-not-ready"),
        (
            broken("Test NCCL failure all_reduce.cu:44 'unhandled system error'"),
            &tcp,
            "RW1211",
            "job-broke",
        ),
        (
            broken("gpu-02: Test CUDA failure common.cu:1005 'invalid argument'"),
            &tcp,
            "RW1211",
            "job-broke",
        ),
        (
            broken("a: Test failure common.cu:1005"),
            &tcp,
            "RW1211",
            "job-broke",
        ),
        (
            broken("RuntimeError: NCCL error: ncclSystemError: System call failed"),
            &tcp,
            "RW1211",
            "job-broke",
        ),
        (
            broken("gpu-01:1:2 [0] NCCL WARN Call to ibv_poll_cq failed"),
            &tcp,
            "RW1211",
            "job-broke",
        ),
        (
            broken("gpu-01:1:2 [0] NCCL WARN NET/IB : mlx5_0:1 async fatal event on QP (0x7f)"),
            &tcp,
            "RW1211",
            "device-fatal",
        ),
    ] {
        let diagnosis = held(&log, against);
        let failed = diagnosis
            .proof
            .aspects
            .iter()
            .any(|(_, told)| told.verdict == CheckVerdict::Failed && told.code == Some(code));
        assert!(
            failed && diagnosis.proof.verdict == JobVerdict::Failed,
            "{code}: {:?}",
            diagnosis.proof
        );
        assert_eq!(
            diagnosis
                .found
                .first()
                .map(|found| found.symptom.id.as_str()),
            Some(first),
            "{code}"
        );
    }
    // What is not known disproves nothing.
    assert!(held(off, &acs).found.is_empty());
}

/// Nobody of Container Compute Service has a device plugin to ask.
#[test]
fn on_acs_its_own_way_to_rdma_is_told() {
    let log =
        "a:7:9 [0] NCCL INFO NET/IB : No device found.\na:7:9 [0] NCCL INFO Using network Socket\n";
    let said = |acs| {
        let first = held(log, &SymptomCaseExpectations { acs, gbps: None })
            .found
            .remove(0)
            .symptom;
        assert_eq!(first.id, "no-rdma-device-in-the-pod");
        format!("{} {}", first.cause, first.next.join(" "))
    };
    let (on_acs, elsewhere) = (said(true), said(false));
    assert!(
        on_acs.contains("alibabacloud.com/hpn-type") && !on_acs.contains("aliyun/erdma"),
        "{on_acs}"
    );
    assert!(
        elsewhere.contains("aliyun/erdma") && !elsewhere.contains("hpn-type"),
        "{elsewhere}"
    );
}

#[test]
fn the_line_and_how_often_are_told() {
    let lost = "b:7:9 [1] NCCL WARN NET/IB : Got completion with error 12, opcode 0, len 0, vendor \
                err 129\n";
    let diagnosis = of(&format!("noise\n\n{lost}\n\x1b[31m{lost}"));
    let seen = &diagnosis.found[0].lines[0];
    assert_eq!(
        (seen.line, seen.lines, diagnosis.sound_layers().count()),
        (3, 2, 8)
    );
}

#[test]
fn files_that_are_not_sound_are_told_with_their_place() {
    let file = |more: &str| {
        let text = format!(
            "layer: pod\n\
             summary: s\n\
             symptoms:\n  - {{ id: a, code: RW1399, title: t, cause: c, means: m, next: [n], source: s, case: \
             x, {more} }}\n"
        );
        vec![("a.yaml".to_owned(), text)]
    };
    assert!(load::parse_symptom_files(file("seen: [[words]]")).is_ok());
    for more in [
        "seen: [[ab]]",
        "verdict: []",
        "seen: [[]]",
        "seen: [['*words']]",
        "sen: [[words]]",
    ] {
        assert!(load::parse_symptom_files(file(more)).is_err(), "{more}");
    }
    let twice = [file("seen: [[words]]"), file("seen: [[words]]")].concat();
    let (problems, _) = load::parse_symptom_files(twice).unwrap_err();
    assert_eq!(
        (&*problems[0].code, problems[0].labels[0].text.as_str()),
        ("RW1217", "two symptoms have this id or code")
    );
}

proptest! {
    #[test]
    fn no_log_panics_and_how_it_is_split_changes_nothing(
        parts in prop::collection::vec(prop_oneof![
            prop::sample::select(symptoms()).prop_map(|symptom| symptom.case.into_bytes()),
            prop::sample::select(symptoms()).prop_map(|symptom| symptom.seen.concat().join("\n").into_bytes()),
            prop::collection::vec(any::<u8>(), 0..20),
        ], 0..6),
        place in any::<prop::sample::Index>(),
    ) {
        let bytes = parts.concat();
        let (one, other) = bytes.split_at(place.index(bytes.len() + 1));
        let mut whole = Doctor::new(symptoms());
        whole.feed(&bytes);
        let mut split = Doctor::new(symptoms());
        split.feed(one);
        split.feed(other);
        let expected = |_: &NcclLog| NcclExpectations::of("job.log", "--log job.log");
        prop_assert_eq!(whole.finish(expected), split.finish(expected));
    }
}
