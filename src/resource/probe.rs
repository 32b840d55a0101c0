//! Probes: short-lived test traffic that `verify` starts on hosts. A probe leaves nothing behind:
//! what outlives the call runs under a transient unit with a deadline, so the host itself ends it
//! and clears up even if we die.
//!
//! Each is a typed value; `probe_script` renders it for a shell, and a simulator can answer the
//! value itself. Output is sections that begin with `@word`, then `key value` lines; `verify`
//! decodes it.

use core::net::IpAddr;
use serde::{Deserialize, Serialize};

/// The perftest program of a traffic run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TrafficTest {
    /// `ib_write_bw`: bandwidth in Gb/s.
    WriteBandwidth,
    /// `ib_read_lat`: latency in microseconds.
    ReadLatency,
}

impl TrafficTest {
    /// The program's name.
    pub fn program(self) -> &'static str {
        match self {
            TrafficTest::WriteBandwidth => "ib_write_bw",
            TrafficTest::ReadLatency => "ib_read_lat",
        }
    }
}

/// One end of a traffic run. Both ends must be given the same test, port, length and connection
/// manager: perftest does not negotiate them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrafficEnd {
    /// The program.
    pub test: TrafficTest,
    /// The RDMA device of this end.
    pub device: String,
    /// Its port.
    pub device_port: u8,
    /// The GID that the packets leave with; `None` lets rdma_cm take the one of the address.
    pub gid_index: Option<u32>,
    /// The TCP (or rdma_cm) port on which the two ends meet.
    pub port: u16,
    /// Seconds of a bandwidth run; a latency run has a fixed number of turns.
    pub seconds: u32,
    /// Connect through rdma_cm, which is what takes the marks of its configfs defaults.
    pub rdma_cm: bool,
    /// How a bandwidth run loads the path; `None` is perftest's own choice.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub load: Option<TrafficLoad>,
    /// The GPU whose memory is sent or written to; `None` is memory of the host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpu: Option<GpuBuffer>,
}

/// How a bandwidth run loads the path. A number holds for the load that it was measured with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrafficLoad {
    /// Bytes of a message.
    pub message_bytes: u32,
    /// Queue pairs.
    pub queue_pairs: u32,
}

/// GPU memory as one end of a traffic run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GpuBuffer {
    /// The GPU's PCI address. Its CUDA number would not do: CUDA counts the fastest GPU first
    /// unless told otherwise.
    pub bus_id: String,
    /// Registered through DMA-BUF, and not through a peer memory module.
    pub dmabuf: bool,
}

/// Counters of one port.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct CounterPort {
    /// The RDMA device.
    pub device: String,
    /// Its port.
    pub device_port: u8,
    /// The netdev below it.
    pub netdev: String,
}

/// One probe on one host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "probe", rename_all = "snake_case")]
pub enum Probe {
    /// State, MTU and addresses of netdevs; every RDMA port with its GIDs; the test programs that
    /// are there.
    Rails {
        /// The netdevs.
        netdevs: Vec<String>,
    },
    /// Three packets of exactly `mtu` bytes that no hop may split.
    PathMtu {
        /// Our address.
        source: IpAddr,
        /// The peer's address.
        destination: IpAddr,
        /// Bytes of each packet, headers included.
        mtu: u32,
    },
    /// A script that a module's manifest declares as its check, in a fresh login.
    ModuleCheck {
        /// The script.
        script: String,
    },
    /// Starts the serving end of a traffic run in a transient unit and waits until it listens.
    ServeTraffic {
        /// Names the unit `railwright-<token>`; letters and digits.
        token: String,
        /// This end.
        end: TrafficEnd,
        /// After this many seconds the host ends the server.
        lease_s: u32,
    },
    /// The sending end, to its end.
    SendTraffic {
        /// This end.
        end: TrafficEnd,
        /// The serving end's address.
        server: IpAddr,
        /// After this many seconds the host ends it.
        lease_s: u32,
    },
    /// Ends the serving end and says what it printed.
    EndTraffic {
        /// The token it was started with.
        token: String,
    },
    /// Starts to count arriving RoCE packets of one sender by DSCP, in an nftables table that a
    /// transient unit removes; answers with the NIC's own counters per priority.
    CountMarks {
        /// Names the table `railwright_<token>`.
        token: String,
        /// The sender.
        sender: IpAddr,
        /// The receiving netdev.
        netdev: String,
        /// After this many seconds the host removes the table.
        lease_s: u32,
    },
    /// The marks counted so far, the NIC's counters, and the table removed.
    ReadMarks {
        /// The token it was started with.
        token: String,
        /// The receiving netdev.
        netdev: String,
    },
    /// Which of these kernel modules run and whether they are the installed ones; the default
    /// routes.
    Machine {
        /// The kernel modules.
        modules: Vec<String>,
    },
    /// What Alibaba's `eadm` sees pass over an eRDMA device, second by second.
    LiveTraffic {
        /// The device.
        device: String,
        /// For so long.
        seconds: u32,
    },
    /// Error counters of ports.
    Counters {
        /// The ports.
        ports: Vec<CounterPort>,
    },
    /// Whether what a job needs is there: a script that prints `@missing WHAT` for each that is
    /// not.
    JobNeeds {
        /// In sh.
        script: String,
    },
    /// Starts a job in a transient unit whose folder below /run goes with it.
    StartJob {
        /// Names the unit `railwright-<token>`; letters and digits.
        token: String,
        /// Files of its folder, in which it runs: name and text.
        files: Vec<(String, String)>,
        /// What it runs, in sh.
        script: String,
        /// After this many seconds the host ends it.
        lease_s: u32,
    },
    /// What a job has printed from a byte on, and whether it has ended.
    JobOutput {
        /// The token it was started with.
        token: String,
        /// Bytes that were taken before.
        from: u64,
    },
    /// Ends a job, and takes its folder away.
    EndJob {
        /// The token it was started with.
        token: String,
    },
    /// A script in a pod of a cluster, to its end: the only one that is asked of an API server.
    InPod {
        /// The namespace.
        namespace: String,
        /// The pod.
        pod: String,
        /// The container.
        container: String,
        /// In sh. It may start nothing that outlives it.
        script: String,
        /// After this many seconds the container itself ends it.
        lease_s: u32,
    },
}

/// Traffic ends at the latest this many seconds after its own length: connecting may be slow on a
/// loaded host.
pub const TRAFFIC_SLACK_S: u32 = 30;

impl Probe {
    /// A word for the journal of the host and for messages.
    pub fn name(&self) -> &'static str {
        match self {
            Probe::Rails { .. } => "rails",
            Probe::PathMtu { .. } => "path-mtu",
            Probe::ModuleCheck { .. } => "module-check",
            Probe::ServeTraffic { .. } => "serve-traffic",
            Probe::SendTraffic { .. } => "send-traffic",
            Probe::EndTraffic { .. } => "end-traffic",
            Probe::CountMarks { .. } => "count-marks",
            Probe::ReadMarks { .. } => "read-marks",
            Probe::Machine { .. } => "machine",
            Probe::LiveTraffic { .. } => "live-traffic",
            Probe::Counters { .. } => "counters",
            Probe::JobNeeds { .. } => "job-needs",
            Probe::StartJob { .. } => "start-job",
            Probe::JobOutput { .. } => "job-output",
            Probe::EndJob { .. } => "end-job",
            Probe::InPod { .. } => "in-pod",
        }
    }

    /// After this many seconds the host ends the probe's own script (what it left running has its
    /// own lease).
    pub fn limit_s(&self) -> u32 {
        match self {
            Probe::SendTraffic { lease_s, .. } | Probe::InPod { lease_s, .. } => *lease_s,
            Probe::LiveTraffic { seconds, .. } => seconds + 5,
            // Torch takes half a minute to be loaded from a slow disk.
            Probe::JobNeeds { .. } => 120,
            Probe::ModuleCheck { .. } | Probe::Rails { .. } | Probe::Machine { .. } => 60,
            _ => 30,
        }
    }

    /// True for what must run in the login itself and not through sudo, because the login is what
    /// is checked.
    pub fn as_login_user(&self) -> bool {
        matches!(self, Probe::ModuleCheck { .. })
    }

    /// The POSIX sh script, fed to `sh -s`.
    pub fn script(&self) -> String {
        super::probe_script::render_probe_script(self)
    }
}
