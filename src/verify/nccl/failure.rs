//! Lines that say that a job broke: completions with an error, calls of verbs that were refused,
//! time that ran out.
//!
//! Sources: NVIDIA/nccl `src/transport/net_ib*` (completions and events) and `src/misc/ibvwrap.cc`
//! (calls); `enum ibv_wc_status` of rdma-core's `libibverbs/verbs.h`; NVIDIA/nccl-tests
//! `src/common.h` (`Test NCCL failure`); pytorch/pytorch `ProcessGroupNCCL.cpp`,
//! `c10/cuda/CUDACachingAllocator.cpp`, `torch/distributed/elastic/multiprocessing/errors`;
//! facebookincubator/gloo `gloo/transport/tcp/pair.cc`; open-mpi/ompi
//! `orte/tools/orterun/help-orterun.txt`.

use serde::Serialize;

/// What broke.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum NcclFailureCause {
    /// A transfer ended with an error (`ibv_wc_status`).
    Completion {
        /// The number of the status; 12 is the transport retry counter.
        status: u32,
        /// The NIC's own code.
        vendor: Option<u32>,
        /// The device, where the release says it.
        device: Option<String>,
    },
    /// A call of verbs was refused: its name, and the error in words.
    Verbs {
        /// `ibv_create_qp`.
        call: String,
        /// `Cannot allocate memory`; empty where the release does not say it.
        error: String,
    },
    /// The device itself reported that it cannot go on.
    Device,
    /// A collective did not end in its time.
    Timeout,
    /// The other end was gone.
    Remote,
    /// NCCL or a test gave up for another reason.
    Other,
}

/// A line of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NcclLogFailure {
    /// What broke.
    pub trouble: NcclFailureCause,
    /// The line.
    pub line: u64,
    /// The host that says it.
    pub host: Option<String>,
    /// The text.
    pub text: String,
}

/// Calls without which nothing can be sent. Others fail while NCCL looks around, and it goes on
/// without.
const NEEDED: [&str; 8] = [
    "ibv_create_qp",
    "ibv_modify_qp",
    "ibv_reg_mr",
    "ibv_create_cq",
    "ibv_alloc_pd",
    "ibv_post_send",
    "ibv_post_recv",
    "ibv_poll_cq",
];

/// Warnings after which there is no communicator: NCCL 2.28.9 ends with `ncclInvalidUsage` after
/// each (seen on a host with an H100).
const ENDS: [&str; 3] = [
    "Duplicate GPU detected",
    NO_NETWORK,
    "Bootstrap : no socket interface found",
];

/// Words of warnings after which nothing goes on: ranks that do not do the same
/// (src/transport/net_ib, src/transport/net_socket.cc; NVIDIA/nccl#969, #296, #268), a queue pair
/// that broke (ncclIbTest), no address of an interface that was named (NVIDIA/nccl-tests#294).
const BROKEN: [&str; 5] = [
    "collective mismatch error",
    "Mismatched collective detected",
    "message truncated",
    "communicator encountered a fatal error",
    "is neither AF_INET(2) nor AF_INET6(10)",
];

/// None of the networks that NCCL may use could be used (src/plugin/net.cc).
pub const NO_NETWORK: &str = "Failed to initialize any NET plugin";

/// What a warning of NCCL means, if it is the end.
pub fn of_warning(text: &str) -> Option<NcclFailureCause> {
    if let Some((_, rest)) = text.split_once("Got completion ") {
        return parse_completion_error(rest);
    }
    if let Some((_, rest)) = text.split_once("Call to ibv_") {
        let name = rest.split(' ').next().unwrap_or_default();
        let call = format!("ibv_{name}");
        // `failed with error Invalid argument`, and from 2.23 on `failed with 22 Invalid argument,
        // on dev mlx5_0:1, ...`
        let error = match rest.split_once("failed with ") {
            Some((_, error)) => error.strip_prefix("error ").unwrap_or(error),
            None => "",
        };
        if !NEEDED.iter().any(|needed| call.starts_with(needed)) {
            return None;
        }
        return Some(NcclFailureCause::Verbs {
            call: super::truncate_log_text(&call),
            error: super::truncate_log_text(error),
        });
    }
    if text.contains("async fatal event") || text.contains("local catastrophic error") {
        return Some(NcclFailureCause::Device);
    }
    let of_plugin = text.contains("NET/OFI ") && text.contains("completed with error");
    if of_plugin || BROKEN.iter().any(|word| text.contains(word)) {
        return Some(NcclFailureCause::Other);
    }
    let text = text.trim_start();
    // What NCCL passes over, it does not warn of (src/include/checks.h: CUDACHECK, and
    // CUDACHECKIGNORE, which informs).
    if text.starts_with("Cuda failure ") || ENDS.iter().any(|end| text.starts_with(end)) {
        return Some(NcclFailureCause::Other);
    }
    let remote = [
        "Connection closed by remote peer",
        "Connection reset by peer",
        "Broken pipe",
    ];
    let is_remote = remote.iter().any(|word| text.contains(word));
    is_remote.then_some(NcclFailureCause::Remote)
}

/// `from peer 10.0.0.2<4791> with status=12 opcode=0 len=0 vendor err 129`, `with error 12, opcode
/// 0, len 0, vendor err 129`, `with status=IBV_WC_RETRY_EXC_ERR(12) opcode=IBV_WC_SEND(0)
/// vendor_err=129`.
fn parse_completion_error(text: &str) -> Option<NcclFailureCause> {
    let status =
        parse_number_after(text, "status=").or_else(|| parse_number_after(text, "with error "))?;
    let vendor =
        parse_number_after(text, "vendor err ").or_else(|| parse_number_after(text, "vendor_err="));
    let mut device = None;
    if let Some((_, rest)) = text.split_once(" hca ") {
        let name = rest.split_whitespace().next().unwrap_or_default();
        device = Some(super::truncate_log_text(name));
    }
    Some(NcclFailureCause::Completion {
        status,
        vendor,
        device,
    })
}

/// The number behind a mark, which may stand in parentheses behind its name.
fn parse_number_after(text: &str, mark: &str) -> Option<u32> {
    let (_, rest) = text.split_once(mark)?;
    let word = rest.split([' ', ',']).next()?;
    let digits = match word.rsplit_once('(') {
        Some((_, inside)) => inside.trim_end_matches(')'),
        None => word,
    };
    digits.parse().ok()
}

/// Words of other programs that say the same, and what they mean.
pub const WORDS: [(&str, NcclFailureCause); 38] = [
    ("Test NCCL failure", NcclFailureCause::Other),
    ("Test CUDA failure", NcclFailureCause::Other),
    (": Test failure ", NcclFailureCause::Other),
    (
        "Watchdog caught collective operation timeout",
        NcclFailureCause::Timeout,
    ),
    ("Timeout at NCCL work", NcclFailureCause::Timeout),
    ("watchdog got stuck for ", NcclFailureCause::Timeout),
    ("taking the entire process down", NcclFailureCause::Other),
    ("DistStoreError", NcclFailureCause::Timeout),
    ("DistNetworkError", NcclFailureCause::Other),
    ("NCCL timeout", NcclFailureCause::Timeout),
    ("ncclRemoteError", NcclFailureCause::Remote),
    ("ncclSystemError", NcclFailureCause::Other),
    ("ncclInternalError", NcclFailureCause::Other),
    ("ncclInvalidUsage", NcclFailureCause::Other),
    ("NCCL error in: ", NcclFailureCause::Other),
    // of vLLM and SGLang, which call NCCL themselves (pynccl.py)
    ("NCCL error: ", NcclFailureCause::Other),
    ("DistBackendError", NcclFailureCause::Other),
    ("ncclUnhandledCudaError", NcclFailureCause::Other),
    ("NCCL communicator was aborted", NcclFailureCause::Other),
    ("NCCL Error ", NcclFailureCause::Other),
    ("OutOfMemoryError: CUDA", NcclFailureCause::Other),
    ("ChildFailedError", NcclFailureCause::Other),
    (" exited on signal ", NcclFailureCause::Other),
    ("CUDA error: ", NcclFailureCause::Other),
    ("Cuda failure ", NcclFailureCause::Other),
    ("*** Process received signal ***", NcclFailureCause::Other),
    ("Fatal Python error: ", NcclFailureCause::Other),
    ("(core dumped)", NcclFailureCause::Other),
    ("Signal: Segmentation fault", NcclFailureCause::Other),
    ("failed (exitcode: ", NcclFailureCause::Other),
    ("exitcode  : -", NcclFailureCause::Other),
    // of Slurm, Ray and JAX
    ("srun: error: ", NcclFailureCause::Other),
    (" CANCELLED AT ", NcclFailureCause::Other),
    ("DUE TO TIME LIMIT", NcclFailureCause::Timeout),
    ("RayActorError", NcclFailureCause::Remote),
    ("XlaRuntimeError", NcclFailureCause::Other),
    (
        "processes exited with non-zero status",
        NcclFailureCause::Other,
    ),
    // of gloo, which PyTorch takes for what goes over the host's memory
    ("] Connection closed by peer", NcclFailureCause::Remote),
];

/// What a status means, in words for the person on call.
pub fn describe_completion_status(status: u32) -> &'static str {
    match status {
        4 => {
            "the other end answered with an error of protection: memory that is not registered any \
             more (local protection error)"
        }
        5 => {
            "the connection was torn down under way, most often because the other end broke first \
             (flushed)"
        }
        9 => "the other end refused the request (remote invalid request)",
        10 => "the other end refused the access (remote access error)",
        11 => "the other end could not carry out the request (remote operation error)",
        12 => {
            "packets were sent again and again without an answer (transport retry counter \
             exceeded): the path loses them, or the other end is gone"
        }
        13 => "the receiver was never ready (receiver-not-ready retry counter exceeded)",
        _ => "a transfer ended with an error",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn completions_of_every_release() {
        let lost = |vendor, device: Option<&str>| {
            Some(NcclFailureCause::Completion {
                status: 12,
                vendor,
                device: device.map(str::to_owned),
            })
        };
        for (text, trouble) in [
            (
                "NET/IB : Got completion with error 12, opcode 0, len 0, vendor err 129",
                lost(Some(129), None),
            ),
            (
                "NET/IB : Got completion from peer 10.0.0.2<4791> with error 12, opcode 0, len 0, \
                 vendor err 129",
                lost(Some(129), None),
            ),
            (
                "NET/IB: Got completion from peer 10.0.0.2<4791> with status=12 opcode=0 len=0 \
                 vendor err 129 (Send) localGid ::ffff:10.0.0.1 remoteGids::ffff:10.0.0.2 hca \
                 mlx5_0",
                lost(Some(129), Some("mlx5_0")),
            ),
            (
                "NET/IB: Got completion from peer 10.0.0.2<4791> with \
                 status=IBV_WC_RETRY_EXC_ERR(12) opcode=IBV_WC_SEND(0) vendor_err=129  hca mlx5_0",
                lost(Some(129), Some("mlx5_0")),
            ),
        ] {
            assert_eq!(of_warning(text), trouble, "{text}");
        }
        assert!(describe_completion_status(12).contains("retry counter"));
    }

    #[test]
    fn refused_calls_and_warnings_that_are_none() {
        let refused =
            of_warning("Call to ibv_reg_mr_iova2 failed with error Cannot allocate memory");
        assert_eq!(
            refused,
            Some(NcclFailureCause::Verbs {
                call: "ibv_reg_mr_iova2".into(),
                error: "Cannot allocate memory".into()
            })
        );
        assert_eq!(
            of_warning("Call to ibv_create_qp failed"),
            Some(NcclFailureCause::Verbs {
                call: "ibv_create_qp".into(),
                error: String::new()
            })
        );
        assert_eq!(of_warning("Call to ibv_open_device failed"), None);
        assert_eq!(
            of_warning("NET/IB : mlx5_0:1 Got async error event: GID table change"),
            None
        );
        for end in [
            "Cuda failure 719 'unspecified launch failure'",
            "Duplicate GPU detected : rank 0 and rank 1 both on CUDA device 60",
        ] {
            assert_eq!(of_warning(end), Some(NcclFailureCause::Other), "{end}");
        }
        let broken =
            "NET/IB : mlx5_0:1 async fatal event on QP (0x7f): local work queue catastrophic error";
        assert_eq!(of_warning(broken), Some(NcclFailureCause::Device));
    }
}
