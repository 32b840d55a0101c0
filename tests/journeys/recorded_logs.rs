//! What `job prove` and `doctor` say of logs that NCCL and PyTorch wrote on a host with a GPU
//! (`logs/README.md`).

use crate::support::Place;

/// What is said of one.
struct Said {
    log: &'static str,
    /// By `job prove`, each somewhere on its screen.
    prove: &'static [&'static str],
    /// By `doctor`, as the first cause and as what comes after it.
    doctor: &'static [&'static str],
}

const ALL: [Said; 9] = [
    Said {
        log: "tcp",
        prove: &[
            "TCP sockets: NCCL found no RDMA device",
            "20 steps, the median 37.2 ms",
            "8 over TCP",
            "NCCL 2.28.9+cuda13.0",
        ],
        doctor: &["! pod RW1361"],
    },
    // "NET/Socket : GPU Direct RDMA Disabled for HCA 0 'eth0'" is no driver that lacks something
    Said {
        log: "all-subsystems",
        prove: &["TCP sockets: NCCL found no RDMA device", "8 over TCP"],
        doctor: &["! pod RW1361"],
    },
    Said {
        log: "no-such-hca",
        prove: &["2 hosts, 2 ranks", "NCCL_IB_HCA==mlx5_0"],
        doctor: &["! environment RW1383"],
    },
    // NCCL_NET=Socket is not printed
    Said {
        log: "held-to-tcp",
        prove: &["lacks libibverbs, or with NCCL_NET=Socket", "10 steps"],
        doctor: &["! environment RW1294"],
    },
    Said {
        log: "no-network",
        prove: &[
            "nothing: NCCL found no RDMA device",
            "RW1211 actual line 11 on gpu01: Failed to initialize any NET plugin (and 5 lines more)",
        ],
        doctor: &["! pod RW1361"],
    },
    Said {
        log: "no-interface",
        prove: &[
            "NCCL says nothing of what carries the data",
            "RW1211 actual line 4 on gpu01: Bootstrap : no socket interface found",
        ],
        doctor: &["! environment RW1384"],
    },
    Said {
        log: "shared-gpu",
        prove: &[
            "RW1211 actual line 19 on gpu01: Duplicate GPU detected : rank 0 and rank 1 both on \
             CUDA device 60",
            "NCCL 2.28.9+cuda13.0 env",
        ],
        doctor: &["! environment RW1390"],
    },
    Said {
        log: "rank-killed",
        prove: &[
            "RW1211 actual line 420 on gpu01: socketProgress: Connection closed by remote peer",
            "another rank was gone",
        ],
        doctor: &["! pod RW1361", "~ fabric RW1410"],
    },
    Said {
        log: "out-of-memory",
        prove: &["RW1211 actual line 98: torch.OutOfMemoryError: CUDA out of memory"],
        doctor: &["! pod RW1295"],
    },
];

#[test]
fn recorded_logs_are_evaluated() {
    let place = Place::new();
    let flat = |said: String| said.split_whitespace().collect::<Vec<_>>().join(" ");
    for Said { log, prove, doctor } in &ALL {
        let text = std::fs::read(format!("tests/journeys/logs/{log}.log")).unwrap();
        place.write("job.log", text);
        let proof = flat(place.run(&["job", "prove", "--log", "job.log"]));
        let cause = flat(place.run(&["doctor", "--log", "job.log"]));
        assert!(
            proof.ends_with("--- exit 1 ---") && cause.ends_with("--- exit 1 ---"),
            "{log}: {proof}\n{cause}"
        );
        let missing = |said: &str, words: &[&str]| {
            words
                .iter()
                .find(|words| !said.contains(*words))
                .map(|words| format!("{log}: {words}\nin {said}"))
        };
        assert_eq!(
            (missing(&proof, prove), missing(&cause, doctor)),
            (None, None)
        );
    }
}
