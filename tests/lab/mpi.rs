//! A job of MPI on the real nodes: the real mpi-operator makes its pods, Open MPI starts its ranks
//! by the line that `job render` writes, and they move their data over Soft-RoCE by verbs. The
//! program is the lab's own ring: no GPU and no NCCL. It obeys the variables by which a job tells
//! NCCL its devices, so what `job render` derives is compared with what a real device has.

use crate::rig::Rig;
use serde_json::Value;
use std::fs::File;
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const LAB: &str = "inventories/lab-kubernetes";
const MANIFEST: &str = "deploy/v2beta1/mpi-operator.yaml";

/// What nccl-tests is asked for, of a program that needs no GPU. The machines have one network, the
/// rail: ranks meet on it too.
const JOB: &str = "nccl-test -i inventories/lab-kubernetes --name ring --image \
                   lab.railwright.invalid/mpi:1 --program ring_all_reduce --gpus 0 --workers 2 \
                   --host-network --share-memory 16Mi --from 64K --to 4M --turns 3 --env \
                   NCCL_SOCKET_IFNAME==ens1f0np0";

/// mpi-operator as a process of this computer, in the place of the pod that its manifest asks for:
/// pods of the lab do not reach the API server.
pub struct Operator(Child);

impl Drop for Operator {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Its folder in the rig `operators`; nothing, and a line that says so, where it is not built and
/// need not be.
fn built() -> Option<PathBuf> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/target/rigs/operators");
    let script = |word: &str| {
        let mut command = Command::new("sh");
        command
            .args([
                concat!(env!("CARGO_MANIFEST_DIR"), "/tests/operators/build.sh"),
                word,
                folder,
                "mpi",
            ])
            .output()
            .unwrap()
    };
    if std::env::var("RAILWRIGHT_REQUIRE_RIGS").is_ok_and(|value| value == "1") {
        assert!(
            script("build").status.success(),
            "rig `operators`: mpi could not be built"
        );
    }
    let found = script("find");
    if !found.status.success() {
        eprintln!(
            "skipped: an MPIJob on the lab needs `sh tests/operators/build.sh build \
             target/rigs/operators mpi`"
        );
        return None;
    }
    Some(String::from_utf8(found.stdout).unwrap().trim_end().into())
}

fn kubectl(rig: &Rig, words: &[&str]) -> String {
    rig.done(&[&["kubectl"], words].concat())
}

/// With the rights that its manifest gives it, and no others.
pub fn the_operator_is_there(rig: &Rig) -> Option<Operator> {
    let folder = built()?;
    let path = |name: &str| folder.join(name).to_str().unwrap().to_owned();
    kubectl(rig, &["apply", "--server-side", "-f", &path(MANIFEST)]);
    // It ends where its kind is not served yet. A definition that is a moment old has no
    // conditions, and `--for=condition` takes that for an error.
    kubectl(
        rig,
        &[
            "wait",
            "crd/mpijobs.kubeflow.org",
            r#"--for=jsonpath={.status.conditions[?(@.type=="Established")].status}=True"#,
            "--timeout=60s",
        ],
    );
    kubectl(
        rig,
        &[
            "-n",
            "mpi-operator",
            "scale",
            "deployment",
            "mpi-operator",
            "--replicas=0",
        ],
    );
    let token = kubectl(
        rig,
        &[
            "-n",
            "mpi-operator",
            "create",
            "token",
            "mpi-operator",
            "--duration=2h",
        ],
    );
    let cluster = rig.lab_folder().join("kubernetes");
    let own = std::fs::read_to_string(cluster.join("kubeconfig")).unwrap();
    let user = format!("user: {{token: \"{}\"}}", token.trim());
    let kubeconfig = own.replace(
        "user: {client-certificate: admin.crt, client-key: admin.key}",
        &user,
    );
    assert_ne!(own, kubeconfig);
    std::fs::write(cluster.join("mpi-operator.kubeconfig"), kubeconfig).unwrap();
    // Where it answers for its own health, whatever it is told.
    drop(TcpListener::bind(("0.0.0.0", 8080)).expect("mpi-operator needs port 8080"));
    let log = File::create(cluster.join("mpi-operator.log")).unwrap();
    let mut command = Command::new("setpriv");
    command
        .args(["--pdeathsig", "KILL"])
        .arg(folder.join("operator"));
    command
        .args([
            "--kubeConfig",
            "mpi-operator.kubeconfig",
            "--lock-namespace",
            "mpi-operator",
        ])
        .current_dir(cluster);
    command
        .env_remove("KUBECONFIG")
        .stdin(Stdio::null())
        .stdout(log.try_clone().unwrap())
        .stderr(log);
    Some(Operator(command.spawn().unwrap()))
}

/// The lab has no name service: a pod in the network of its host gets the names that stand in the
/// host's file, from its kubelet. Which of the two workers is where does not matter, as they are
/// identical.
pub fn workers_have_names(rig: &Rig) {
    let names: String = ["ring-rdma", "ring-tcp", "long"]
        .iter()
        .flat_map(|job| {
            [1, 2].map(|n| format!("192.168.77.{n} {job}-worker-{}.{job}.default.svc\\n", n - 1))
        })
        .collect();
    for machine in ["node1", "node2"] {
        rig.done(&[
            "ssh",
            machine,
            "--",
            &format!("printf '{names}' >>/etc/hosts"),
        ]);
    }
}

/// What the device and the NIC of each machine have sent: packets of RDMA, and packets of the
/// lossless class.
fn sent(rig: &Rig) -> [[u64; 2]; 2] {
    let script = "cat /sys/class/infiniband/*/ports/1/hw_counters/sent_pkts; ethtool -S ens1f0np0 \
                  | sed -n 's/^ *tx_prio3_packets: //p'";
    ["node1", "node2"].map(|machine| {
        let said = rig.said(machine, script);
        let numbers: Vec<u64> = said
            .lines()
            .map(|line| line.trim().parse().unwrap())
            .collect();
        numbers.try_into().unwrap_or_else(|_| panic!("{said}"))
    })
}

fn more(before: [[u64; 2]; 2], after: [[u64; 2]; 2]) -> [[u64; 2]; 2] {
    [0, 1].map(|machine| [0, 1].map(|counter| after[machine][counter] - before[machine][counter]))
}

/// Rendered, submitted and watched to its end.
fn run(rig: &Rig, half: &str) -> String {
    // udev names it by the place of its NIC on the bus.
    let device = format!(
        "NCCL_IB_HCA=={}",
        rig.said("node1", "ls /sys/class/infiniband")
    );
    let rendered = rig
        .told(
            0,
            &[
                &["job", "render", "compare", "--only", half],
                &words(JOB)[..],
                &["--env", &device],
            ]
            .concat(),
        )
        .0;
    for line in ["coll_hcoll_enable", "tcp,self", "if_base_do_not_resolve"] {
        assert!(rendered.contains(line), "{line} not in {rendered}");
    }
    let file = format!("{half}.yaml");
    std::fs::write(rig.folder().join(&file), &rendered).unwrap();
    // An emulated machine with one processor takes a minute to start sshd and Open MPI.
    rig.told(
        0,
        &[
            "job",
            "submit",
            &file,
            "-i",
            LAB,
            "--watch",
            "--for",
            "30m",
            "--stuck-after",
            "30m",
        ],
    );
    // Its workers are ended by the operator. Until they are, their port is taken.
    let workers =
        format!("training.kubeflow.org/job-name=ring-{half},training.kubeflow.org/job-role=worker");
    kubectl(
        rig,
        &[
            "wait",
            "pods",
            "-l",
            &workers,
            "--for=delete",
            "--timeout=600s",
        ],
    );
    rendered
}

fn words(text: &str) -> Vec<&str> {
    text.split_whitespace().collect()
}

fn flat(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

pub fn ranks_of_mpi_move_data_by_verbs(rig: &Rig) {
    let before = sent(rig);
    let rendered = run(rig, "rdma");
    assert!(rendered.contains("rdma/rdma_shared_device_a"), "{rendered}");
    let more = more(before, sent(rig));
    // Each rank sends all sizes four times, 32 MB in packets of 4 KiB.
    assert!(
        more.iter().flatten().all(|packets| *packets > 7_000),
        "{more:?}"
    );

    let prove = [
        "job",
        "prove",
        "ring-rdma",
        "-i",
        LAB,
        "--expect-gbps",
        "1",
        "--least-percent",
        "1",
    ];
    let (screen, _) = rig.told(0, &prove);
    let screen = flat(&screen);
    for part in [
        "PASSED: RDMA was used",
        "transport RoCE (2 hosts): 2 channels between hosts over verbs, none over TCP",
        "gpudirect a ring without GPUs: memory of the hosts was sent",
        "data #wrong is 0 in 7 sizes",
        "busbw at 4 MiB",
        "progress 1 run of nccl-tests to the end",
        "program a ring of MPI's ranks, with no GPU and no NCCL: it tests fabric, pods and MPI only",
    ] {
        assert!(screen.contains(part), "{part} not in {screen}");
    }
    let proof: Value = rig.json(0, &[&prove[..], &["--json"]].concat());
    assert_eq!(
        (&proof["is_of_ring"], &proof["hosts"]),
        (&true.into(), &serde_json::json!(["node1", "node2"])),
        "{proof:#}"
    );
}

/// This job without the device.
pub fn the_same_goes_over_tcp_without_the_device(rig: &Rig) {
    let before = sent(rig);
    let rendered = run(rig, "tcp");
    assert!(
        !rendered.contains("rdma/rdma_shared_device_a"),
        "{rendered}"
    );
    let more = more(before, sent(rig));
    assert!(more.iter().all(|[rdma, _]| *rdma == 0), "{more:?}");
    let (screen, _) = rig.told(1, &["job", "prove", "ring-tcp", "-i", LAB]);
    assert!(
        flat(&screen).contains("TCP sockets: NCCL_IB_DISABLE=1 switches RDMA off"),
        "{screen}"
    );
}

/// A longer one, whose rails are looked at while it runs.
pub fn its_rails_carry_data_while_it_runs(rig: &Rig) {
    let device = format!(
        "NCCL_IB_HCA=={}",
        rig.said("node1", "ls /sys/class/infiniband")
    );
    let longer = JOB
        .replace("--name ring", "--name long")
        .replace("--from 64K", "--from 4M")
        .replace("--turns 3", "--turns 3000");
    let rendered = rig
        .told(
            0,
            &[&["job", "render"], &words(&longer)[..], &["--env", &device]].concat(),
        )
        .0;
    std::fs::write(rig.folder().join("long.yaml"), &rendered).unwrap();
    let before = sent(rig);
    rig.told(0, &["job", "submit", "long.yaml", "-i", LAB]);
    let began = Instant::now();
    while more(before, sent(rig))
        .iter()
        .any(|[packets, _]| *packets < 1_000)
    {
        assert!(
            began.elapsed() < Duration::from_secs(600),
            "{}",
            kubectl(rig, &["get", "pods", "-o", "wide"])
        );
        std::thread::sleep(Duration::from_secs(2));
    }
    // Its table has no end yet.
    let (screen, _) = rig.told(3, &["job", "prove", "long", "-i", LAB, "--traffic", "10"]);
    let screen = flat(&screen);
    for part in [
        "transport RoCE (2 hosts): 2 channels between hosts over verbs",
        "traffic 2 rails carried data in both directions",
        "RW1212",
    ] {
        assert!(screen.contains(part), "{part} not in {screen}");
    }
    rig.told(0, &["job", "delete", "long", "-i", LAB, "--yes"]);
}

pub fn both_are_compared_and_taken_away(rig: &Rig) {
    let (screen, _) = rig.told(0, &["job", "compare", "ring", "-i", LAB]);
    let screen = flat(&screen);
    for part in [
        "ring-rdma: RoCE; ring-tcp: TCP sockets",
        "2 ranks, 2 hosts, a ring with no GPU and no NCCL",
        "times as fast",
    ] {
        assert!(screen.contains(part), "{part} not in {screen}");
    }
    for job in ["ring-rdma", "ring-tcp"] {
        rig.told(0, &["job", "delete", job, "-i", LAB, "--yes"]);
    }
    let kinds = "pods,services,configmaps,secrets,jobs";
    let left = kubectl(
        rig,
        &[
            "get",
            kinds,
            "-l",
            "training.kubeflow.org/operator-name=mpi-operator",
            "-o",
            "name",
        ],
    );
    assert_eq!(left.trim(), "");
}
