//! `job run`: NCCL's tests and a training on two hosts behind real OpenSSH servers, each a Debian
//! root with namespaces of its own. No GPU is here: fakes have the part of PyTorch (`python3`),
//! of Open MPI with NCCL's tests (`mpirun`, `all_reduce_perf`, `ssh` between hosts) and of systemd.

use crate::rig::Host;
use crate::server::Server;
use crate::support::Place;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Two hosts, their servers, and a folder with an inventory of them.
pub struct Pair {
    pub place: Place,
    pub hosts: [Host; 2],
    servers: [Server; 2],
}

/// How an inventory of them begins: the names of its hosts follow.
pub fn head() -> &'static str {
    "cluster: bare\n\
     fabric: { kind: rocev2, mtu: 9000 }\n\
     ssh: { user: root, host_keys: known_hosts, identities: [id1, id2] }\n\
     nodes:\n"
}

fn fake(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/fakes")
        .join(path)
}

const PROGRAMS: [(&str, &str); 6] = [
    ("systemd-run", "usr/bin/systemd-run"),
    ("systemctl", "usr/bin/systemctl"),
    ("nccl/python3", "usr/bin/python3"),
    ("nccl/mpirun", "usr/bin/mpirun"),
    ("nccl/ssh", "usr/bin/ssh"),
    ("nccl/all_reduce_perf", "usr/bin/all_reduce_perf"),
];

fn host(name: &str) -> Option<(Host, Server)> {
    let programs = PROGRAMS.map(|(from, to)| (fake(from), to));
    let copies = programs.each_ref().map(|(from, to)| (from.as_path(), *to));
    let host = Host::start(&format!("jobs on hosts, {name}"), &copies)?;
    host.must(&format!("hostname {name}"));
    let server = Server::start(
        &["ed25519"],
        &[format!(
            "ForceCommand exec {} /bin/sh -c \"$SSH_ORIGINAL_COMMAND\"",
            host.entry()
        )],
    )?;
    Some((host, server))
}

impl Pair {
    pub fn start() -> Option<Pair> {
        let (one, other) = (host("gpu1")?, host("gpu2")?);
        let place = Place::new();
        let group = |name: &str, server: &Server| {
            format!(
                "  - name: {name}\n    os: debian-12\n    rdma_stack: {{ flavour: doca, version: 3.2.1 }}\n    gpu: {{ model: A100-SXM4-80GB, count: 2 }}\n    nics: {{ model: ConnectX-6, rails: 2, netdev: \"ens{{rail}}f0np0\" }}\n    ssh: {{ address: 127.0.0.1, port: {} }}\n",
                server.port
            )
        };
        place.write(
            "inv/cluster.yaml",
            format!(
                "{}{}{}",
                head(),
                group("gpu1", &one.1),
                group("gpu2", &other.1)
            ),
        );
        place.write(
            "inv/known_hosts",
            format!("{}\n{}\n", one.1.line("ed25519"), other.1.line("ed25519")),
        );
        place.write("inv/id1", std::fs::read(one.1.path("id")).unwrap());
        place.write("inv/id2", std::fs::read(other.1.path("id")).unwrap());
        Some(Pair {
            place,
            hosts: [one.0, other.0],
            servers: [one.1, other.1],
        })
    }

    /// The ports at which the hosts are reached.
    pub fn ports(&self) -> [u16; 2] {
        self.servers.each_ref().map(|server| server.port)
    }

    fn run(&self, words: &[&str]) -> String {
        self.place.run(&[&["job", "run"], words].concat())
    }

    /// Nothing of a job is on the hosts: no folder, no unit, no process.
    pub fn is_clean(&self) {
        for host in &self.hosts {
            let processes = "for p in /proc/[0-9]*/cmdline; do tr '\\0' ' ' <$p 2>/dev/null | grep \
                             -a '^sleep 300'; done";
            let left = host.must(&format!(
                "ls -d /run/railwright-* 2>/dev/null; ls /run/fakes/units 2>/dev/null; \
                 {processes}; true"
            ));
            assert_eq!(left, "");
        }
    }
}

const BOTH: [&str; 4] = ["-i", "inv", "--on", "gpu[1-2]"];

#[test]
fn a_job_on_hosts_without_kubernetes_is_run_proven_and_gone() {
    let Some(pair) = Pair::start() else { return };
    let said = pair.run(&[&["pytorch", "--steps", "4", "-o", "rdma.log"], &BOTH[..]].concat());
    assert!(
        said.ends_with("--- exit 0 ---\n") && said.contains("PASSED: RDMA was used"),
        "{said}"
    );
    for line in [
        "gpu1 |  iteration        4/       4 | elapsed time per iteration (ms): 12.500 |\n",
        "gpu1 | no line end\n",
        "gpu2 | gpu2:103:103 [1] NCCL INFO NCCL_IB_HCA set to =mlx5_0,mlx5_1\n",
        "gpu2 | gpu2:103:103 [1] NCCL INFO NCCL_IB_ROCE_VERSION_NUM set by environment to 2\n",
        "NCCL_SOCKET_IFNAME=^=lo,docker0,cni0,flannel.1,tunl0,vxlan.calico,cilium_host,\n                \
         cilium_net,cilium_vxlan,kube-ipvs0,nodelocaldns,virbr0,ens0f0np0,ens1f0np0\n",
        "gpu[1-2] with 2 ranks each, for 15 min at most",
    ] {
        assert!(said.contains(line), "{line}: {said}");
    }
    pair.is_clean();
    // The job over TCP, and what RDMA gained.
    let tcp = pair.run(
        &[
            &["pytorch", "--steps", "4", "-o", "tcp.log", "--without-rdma"],
            &BOTH[..],
        ]
        .concat(),
    );
    assert!(
        tcp.contains("RW1201") && tcp.ends_with("--- exit 1 ---\n") && !tcp.contains("NCCL_IB_HCA"),
        "{tcp}"
    );
    let compared = pair
        .place
        .run(&["job", "compare", "--log", "rdma.log", "--log", "tcp.log"]);
    assert!(
        compared.contains("COMPARED: 8.00 times as fast with RDMA")
            && compared.contains("4 ranks, 2 hosts"),
        "{compared}"
    );

    let tests = pair.run(&[&["nccl-test", "--env", "NCCL_IB_TC=104"], &BOTH[..]].concat());
    assert!(
        tests.ends_with("--- exit 0 ---\n") && tests.contains("99 % of what the NICs carry"),
        "{tests}"
    );
    let words = pair.hosts[0].must("cat /root/mpirun.txt");
    for part in [
        "-H 127.0.0.1:2,127.0.0.1:2 ",
        "-np 4 ",
        "-mca coll_hcoll_enable 0 ",
        "-x NCCL_IB_HCA==mlx5_0,mlx5_1 ",
        "-x NCCL_IB_TC=104 ",
        " all_reduce_perf -b 8 -e 8G ",
    ] {
        assert!(words.contains(part), "{part}: {words}");
    }
    assert_eq!(
        pair.hosts[1].sh("cat /root/mpirun.txt").0,
        1,
        "mpirun reaches the second host by itself"
    );
    pair.is_clean();
}

#[test]
fn what_a_host_lacks_is_said_before_anything_is_started() {
    let Some(pair) = Pair::start() else { return };
    pair.hosts[1].must("touch /etc/no-torch");
    pair.hosts[0].must("echo 1 >/etc/gpus");
    let said = pair.run(&[&["pytorch"], &BOTH[..]].concat());
    assert!(
        said.contains("RW1266: GPUs: PyTorch sees 1 is not on gpu1")
            && said.contains("PyTorch (the Python module torch) is not on gpu2"),
        "{said}"
    );
    assert!(
        said.contains("pip install torch")
            && said.contains("nothing was started")
            && said.ends_with("--- exit 1 ---\n"),
        "{said}"
    );
    pair.hosts[0].must("rm /usr/bin/mpirun; touch /etc/no-login");
    pair.hosts[1].must("rm /usr/bin/all_reduce_perf");
    let said = pair.run(&[&["nccl-test"], &BOTH[..]].concat());
    for what in [
        "mpirun (Open MPI) is not on gpu1",
        "openmpi-bin",
        "all_reduce_perf (NVIDIA/nccl-tests) is not on gpu2",
        "a login of root to 127.0.0.1 without a password is not on gpu1",
    ] {
        assert!(said.contains(what), "{what}: {said}");
    }
    let stranger = pair.run(&["pytorch", "-i", "inv", "--on", "gpu[2-3]"]);
    assert!(
        stranger.contains("RW1265") && stranger.contains("`gpu3` is not in the spec"),
        "{stranger}"
    );
    pair.is_clean();
}

/// Two RDMA devices with their counters, as sysfs has them.
const RAILS: &str =
    "for n in 0 1; do d=/sys/class/infiniband/mlx5_$n; mkdir -p /sys/class/net/ens${n}f0np0 $d/device/net/ens${n}f0np0 $d/ports/1/counters
for c in port_rcv_data port_xmit_data; do echo 0 >$d/ports/1/counters/$c; done; done";

#[test]
fn quiet_rails_disprove_what_a_log_says() {
    let Some(pair) = Pair::start() else { return };
    pair.hosts
        .iter()
        .for_each(|host| drop(host.must(&format!("{RAILS}; echo mlx5_0 mlx5_1 >/etc/job-moves"))));
    let words = [&["pytorch", "--steps", "4", "--traffic"], &BOTH[..]].concat();
    let said = pair.run(&words);
    assert!(
        said.contains("   traffic      4 rails carried data in both directions, looked at for "),
        "{said}"
    );
    assert!(said.ends_with("--- exit 0 ---\n"), "{said}");
    pair.hosts[1].must("echo mlx5_0 >/etc/job-moves");
    let said = pair.run(&words);
    assert!(
        said.contains("RW1308") && said.contains(": nothing: ens1f0np0 of gpu2\n"),
        "{said}"
    );
    assert!(
        said.contains("transport    RoCE (2 hosts)") && said.ends_with("--- exit 1 ---\n"),
        "{said}"
    );
    let json = pair.run(
        &[
            &["pytorch", "--steps", "4", "--traffic", "--json"],
            &BOTH[..],
        ]
        .concat(),
    );
    assert!(
        json.contains("\"aspect\": \"traffic\"") && json.contains("\"code\": \"RW1308\""),
        "{json}"
    );
    pair.is_clean();
}

#[test]
fn what_cannot_be_is_refused_at_its_word_before_any_host_is_asked() {
    let place = Place::new();
    let spec = |addresses: [&str; 2]| {
        let group = |name: &str, address: &str| {
            format!(
                "  - {{ name: {name}, os: debian-12, gpu: {{ model: A100-SXM4-80GB, count: 2 }}, \
                 ssh: {{ address: \"{address}\", port: 9 }} }}\n"
            )
        };
        format!(
            "{}{}{}",
            head(),
            group("gpu1", addresses[0]),
            group("gpu2", addresses[1])
        )
    };
    place.write("inv/cluster.yaml", spec(["127.0.0.1", "127.0.0.2"]));
    let run = |words: &[&str]| place.run(&[&["job", "run"], words, &["-i", "inv"]].concat());
    insta::assert_snapshot!(run(&["nccl-test", "--on", "gpu[1-2]", "--from", "8T", "--to", "0", "--turns", "0", "--program", "./all_reduce_perf"]), @r"
    $ railwright job run nccl-test --on gpu[1-2] --from 8T --to 0 --turns 0 --program ./all_reduce_perf -i inv
    --- stderr ---
    error RW1300: `./all_reduce_perf` is no path that is the same on every host
       ╭─[command line:1:34]
     1 │ railwright job run --on=gpu[1-2] --program=./all_reduce_perf --from=8T --to=0 --turns=0
       ·                                  ─────────────┬─────────────
       ·                                               ╰── a path from `/` on
       ╰────
      state:  nothing was started, and no host was asked
      next:   write the whole path: /opt/nccl-tests/build/all_reduce_perf

    error RW1300: `8T` is no size of a message
       ╭─[command line:1:62]
     1 │ railwright job run --on=gpu[1-2] --program=./all_reduce_perf --from=8T --to=0 --turns=0
       ·                                                              ────┬────
       ·                                                                  ╰── a number, and K, M or G of 1024
       ╰────
      state:  nothing was started, and no host was asked
      next:   write such as `8`, `256M` or `8G`; 4096G at most

    error RW1300: messages of 0 bytes never come to an end
       ╭─[command line:1:72]
     1 │ railwright job run --on=gpu[1-2] --program=./all_reduce_perf --from=8T --to=0 --turns=0
       ·                                                                        ───┬──
       ·                                                                           ╰── at least 1
       ╰────
      state:  nothing was started, and no host was asked
      next:   write such as `8`

    error RW1300: 0 iterations of each size measure nothing
       ╭─[command line:1:79]
     1 │ gram=./all_reduce_perf --from=8T --to=0 --turns=0
       ·                                         ────┬────
       ·                                             ╰── 1 to 1000000
       ╰────
      state:  nothing was started, and no host was asked
      next:   write such as `20`
    --- exit 1 ---
    ");
    insta::assert_snapshot!(run(&["nccl-test", "--on", "gpu1", "--gpus", "4"]), @r"
    $ railwright job run nccl-test --on gpu1 --gpus 4 -i inv
    --- stderr ---
    error RW1305: gpu1 alone proves nothing of the fabric
       ╭─[command line:1:20]
     1 │ railwright job run --on=gpu1 --gpus=4 --program=all_reduce_perf --from=8 --to=8G --turns=20
       ·                    ────┬────
       ·                        ╰── one host
       ╰────
      effect: all ranks would be on one host, and nothing would cross the network
      state:  nothing was started, and no host was asked
      next:   name at least two hosts

    error RW1305: gpu1 has 2 GPUs by the spec
       ╭─[command line:1:30]
     1 │ railwright job run --on=gpu1 --gpus=4 --program=all_reduce_perf --from=8 --to=8G --turns=20
       ·                              ────┬───
       ·                                  ╰── more than that
       ╰────
      effect: two ranks on one GPU break the job: NCCL takes each GPU once
      state:  nothing was started, and no host was asked
      next:   --gpus 2, or leave it out
    --- exit 1 ---
    ");
    for (words, found) in [
        (
            &[
                "nccl-test",
                "--on",
                "gpu[1-2]",
                "--from",
                "1G",
                "--to",
                "8M",
            ][..],
            "RW1300: the smallest message, 1G, is larger than the largest, 8M",
        ),
        (
            &["pytorch", "--on", "gpu2"],
            "RW1305: gpu2 alone proves nothing of the fabric",
        ),
        (
            &["pytorch", "--on", "gpu[2-3]"],
            "name hosts of the spec that are reached over SSH: --on gpu[1-2]",
        ),
        (
            &["pytorch", "--on", "gpu[2-"],
            "name hosts of the spec that are reached over SSH: --on gpu[1-2]",
        ),
        (&["pytorch", "--on", "gpu[1-2]", "--gpus", "0"], "--gpus"),
    ] {
        let said = run(words);
        assert!(
            said.contains(found) && !said.contains("RW0401"),
            "{found}: {said}"
        );
    }
    for (addresses, found) in [
        (
            ["127.0.0.1", "fd00::2"],
            "the other hosts do not reach gpu2: mpirun takes what follows the first colon of \
             fd00::2",
        ),
        (
            ["127.0.0.1", "local"],
            "the other hosts do not reach gpu2: the spec has `local` as its address",
        ),
    ] {
        place.write("inv/cluster.yaml", spec(addresses));
        let said = run(&["nccl-test", "--on", "gpu[1-2]"]);
        let unbroken = said.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(
            unbroken.contains(found) && unbroken.contains("no host was asked"),
            "{found}: {said}"
        );
    }
}

#[test]
fn a_job_that_breaks_hangs_or_is_left_stays_nowhere() {
    let Some(pair) = Pair::start() else { return };
    pair.hosts[0].must("touch /etc/job-fails");
    let broken = pair.run(&[&["pytorch"], &BOTH[..]].concat());
    assert!(
        broken.contains("gpu1 | RuntimeError: CUDA error: out of memory"),
        "{broken}"
    );
    assert!(
        broken.contains("RW1268: the job ended with exit status 1 on gpu1")
            && broken.ends_with("--- exit 1 ---\n"),
        "{broken}"
    );
    // How it ended is told before what its output says.
    let words = [&["job", "run", "pytorch"], &BOTH[..]].concat().join(" ");
    let (read, write) = std::io::pipe().unwrap();
    // The ends of the pipe go with the command.
    let mut told = {
        let mut command = pair.place.command(&words.split(' ').collect::<Vec<_>>());
        command
            .stdout(write.try_clone().unwrap())
            .stderr(write)
            .spawn()
            .unwrap()
    };
    let said = std::io::read_to_string(read).unwrap();
    told.wait().unwrap();
    assert!(
        said.find("RW1268").unwrap() < said.find("job prove gpu[1-2]").unwrap(),
        "{said}"
    );
    pair.is_clean();
    pair.hosts
        .iter()
        .for_each(|host| drop(host.must("rm -f /etc/job-fails; touch /etc/job-hangs")));
    let late = pair.run(&[&["pytorch", "--for", "2s"], &BOTH[..]].concat());
    assert!(
        late.contains("RW1268: the job had not ended after 2 s")
            && late.ends_with("--- exit 1 ---\n"),
        "{late}"
    );
    pair.is_clean();
    // Ctrl-C ends it on all hosts.
    let words = [&["job", "run", "pytorch", "--for", "60s"], &BOTH[..]].concat();
    let mut child = pair
        .place
        .command(&words)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    while !lines.next().unwrap().unwrap().contains("Init COMPLETE") {}
    let children = std::fs::read_to_string(format!("/proc/{0}/task/{0}/children", child.id()))
        .unwrap_or_default();
    // Where another run left something on this machine, the program is in a namespace of its own.
    let pid = children
        .split_whitespace()
        .next()
        .map_or(child.id().to_string(), str::to_owned);
    assert!(
        Command::new("kill")
            .args(["-INT", &pid])
            .status()
            .unwrap()
            .success()
    );
    assert_eq!(child.wait().unwrap().code(), Some(130));
    pair.is_clean();
}

#[test]
fn a_second_interrupt_leaves_at_once_and_says_what_ends_by_itself() {
    let Some(pair) = Pair::start() else { return };
    pair.hosts
        .iter()
        .for_each(|host| drop(host.must("touch /etc/job-hangs")));
    let words = [&["job", "run", "pytorch", "--for", "60s"], &BOTH[..]].concat();
    let mut child = pair
        .place
        .command(&words)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    while !lines.next().unwrap().unwrap().contains("Init COMPLETE") {}
    // A host that does not end the job keeps the first one waiting.
    pair.hosts.iter().for_each(|host| {
        drop(host.must(
            "printf '#!/bin/sh\\nsleep 30\\ntouch /run/was-waited-for\\n' >/usr/bin/systemctl",
        ))
    });
    let children = std::fs::read_to_string(format!("/proc/{0}/task/{0}/children", child.id()))
        .unwrap_or_default();
    let pid = children
        .split_whitespace()
        .next()
        .map_or(child.id().to_string(), str::to_owned);
    let interrupt = || {
        assert!(
            Command::new("kill")
                .args(["-INT", &pid])
                .status()
                .unwrap()
                .success()
        )
    };
    interrupt();
    std::thread::sleep(std::time::Duration::from_secs(2));
    assert!(
        child.try_wait().unwrap().is_none(),
        "the first one ends the job on its hosts"
    );
    interrupt();
    let output = child.wait_with_output().unwrap();
    pair.hosts
        .iter()
        .for_each(|host| drop(host.must("test ! -e /run/was-waited-for")));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        said.contains("left at once: what was started on hosts ends there by its lease"),
        "{said}"
    );
    assert_eq!(output.status.code(), Some(130));
}
