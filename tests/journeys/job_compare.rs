//! `job render compare` and `job compare`: the same job with RDMA and without, as a user sees it.
//! The logs are written after the sources of NCCL, nccl-tests and PyTorch's examples; hosts,
//! addresses and times are made up.

use crate::documents::holds;
use crate::support::Place;
use serde_json::{Value, json};

const ROCE: &str = "cluster: jobs
fabric: { kind: rocev2, mtu: 9000, lossless: { priority: 3, dscp: 26, cnp: { priority: 6, dscp: 48 } } }
ssh: { user: root, host_keys: known_hosts }
nodes:
  - name: \"gpu[1-2]\"
    os: ubuntu-22.04
    rdma_stack: { flavour: doca, version: 3.2.1 }
    gpu: { model: H800-SXM5, count: 8 }
    nics: { model: ConnectX-7, rails: 2, netdev: \"ens{rail}f0np0\", address: \"10.40.{rail}.{index}/24\" }
kubernetes: { rdma: { plugin: shared, resources: { rdma_shared_device_a: rail 0-1 } } }
";

fn place() -> Place {
    let place = Place::new();
    place
        .write("inv/cluster.yaml", ROCE)
        .write("inv/known_hosts", "");
    place
}

/// What NCCL says of two ranks on two hosts.
fn nccl(over_rdma: bool) -> String {
    let rank = |rank: u32| {
        let me = format!("train-{rank}:7:42 [0] NCCL INFO");
        let (found, name, way) = match over_rdma {
            true => (
                "NET/IB : Using [0]mlx5_0:1/RoCE [RO]; OOB eth0:10.0.0.1<0>",
                "IB",
                "NET/IB/0/GDRDMA",
            ),
            false => (
                "NET/Socket : Using [0]eth0:10.0.0.1<0>",
                "Socket",
                "NET/Socket/0",
            ),
        };
        format!(
            "{me} {found}\n\
             {me} Using network {name}\n\
             {me} Channel 00/0 : 1[0] -> 0[0] [receive] via {way}\n\
             {me} ncclCommInitRank comm 0x5581 rank {rank} nranks 2 cudaDev 0 nvmlDev 0 busId \
             1b000 commId 0x9 - Init COMPLETE\n"
        )
    };
    format!("NCCL version 2.21.5+cuda12.4\n{}{}", rank(0), rank(1))
}

/// With the kubelet's time before each line, a step of so many milliseconds.
fn training(over_rdma: bool, step_ms: u64) -> String {
    let at = |ms: u64| {
        format!(
            "2026-01-01T00:{:02}:{:02}.{:03}Z",
            ms / 60_000,
            ms / 1000 % 60,
            ms % 1000
        )
    };
    let start: String = nccl(over_rdma)
        .lines()
        .map(|line| format!("{} {line}\n", at(0)))
        .collect();
    let line = |step: u64| {
        format!(
            "{} Train Epoch: 1 [{}/60000 ({step}%)]\tloss=2.3000\n",
            at(5000 + step * step_ms),
            step * 640
        )
    };
    start + &(0..9).map(line).collect::<String>()
}

fn table(over_rdma: bool, slower: f64) -> String {
    let row = |bytes: u64, us: f64, busbw: f64| {
        let (us, busbw) = (us * slower, busbw / slower);
        format!(
            "  {bytes}  {}  float  sum  -1  {us:.2} {busbw:.2} {busbw:.2} 0  {us:.2} {busbw:.2} \
             {busbw:.2} 0\n",
            bytes / 4
        )
    };
    format!(
        "{}# Collective test starting: all_reduce_perf\n\
         # nThread 1 nGpus 1 minBytes 8 maxBytes 8589934592 step: 2(factor) warmup iters: 5 iters: \
         20 agg iters: 1 validation: 1 graph: 0\n\
         #       size         count      type   redop    root     time   algbw   busbw #wrong     \
         time   algbw   busbw #wrong\n\
         {}{}# Out of bounds values : 0 OK\n\
         # Avg bus bandwidth    : 7.1575\n",
        nccl(over_rdma),
        row(8, 35.2, 0.0),
        row(8 << 30, 600_000.0, 14.32)
    )
}

const PYTORCH: [&str; 11] = [
    "pytorch",
    "--name",
    "train",
    "--workers",
    "2",
    "-i",
    "inv",
    "--image",
    "own/train:1",
    "--on",
    "gpu[1-2]",
];

#[test]
fn a_pair_differs_in_devices_and_transport_alone() {
    let place = place();
    let words = [
        &["job", "render", "compare"],
        &PYTORCH[..],
        &["--explain", "torchrun train.py"],
    ]
    .concat();
    insta::assert_snapshot!(place.run(&words), @r#"
    $ railwright job render compare pytorch --name train --workers 2 -i inv --image own/train:1 --on gpu[1-2] --explain torchrun train.py
    pytorch default/train-rdma and train-tcp, identical but for what is below

    THE DIFFERENCE ----------------------------------------------------------------------------------
     rdma/rdma_shared_device_a
       rdma     1
       tcp      (not there)
       why      a pod without the resource gets no RDMA device
     NCCL_IB_ADDR_FAMILY
       rdma     AF_INET
       tcp      (not there)
       why      it is about RDMA alone: the rails have IPv4 addresses; the address is found by its
                family, as its index differs from host to host
     NCCL_IB_DISABLE
       rdma     (not there)
       tcp      1
       why      this is the half over TCP: also a plugin that is asked before NCCL_NET leaves verbs
                alone
     NCCL_IB_HCA
       rdma     =mlx5_0,mlx5_1
       tcp      (not there)
       why      it is about RDMA alone: the pools that the pods ask for hand out rails 0, 1; DOCA and
                MLNX_OFED keep the driver's names, so rail k is mlx5_k, unless another NIC of this
                driver comes before the rails on the bus; `=` stands for whole names, as mlx5_1 is also
                the beginning of mlx5_10
     NCCL_IB_ROCE_VERSION_NUM
       rdma     2
       tcp      (not there)
       why      it is about RDMA alone: `fabric.kind` (inv/cluster.yaml:2) has RoCE version 2
     NCCL_IB_TC
       rdma     104
       tcp      (not there)
       why      it is about RDMA alone: `fabric.lossless.dscp` (inv/cluster.yaml:2) is 26, and a traffic
                class is four times its DSCP
     NCCL_NET
       rdma     (not there)
       tcp      Socket
       why      this is the half over TCP: NCCL takes its sockets even where a pod sees RDMA devices,
                and says so in its log

    RUN ONE AFTER THE OTHER -------------------------------------------------------------------------
       railwright job render compare --only rdma pytorch --name train --workers 2 -i inv --image own/train:1 --on 'gpu[1-2]' 'torchrun train.py' | railwright job submit -i inv -n default --watch -
       railwright job render compare --only tcp pytorch --name train --workers 2 -i inv --image own/train:1 --on 'gpu[1-2]' 'torchrun train.py' | railwright job submit -i inv -n default --watch -
       railwright job compare train -i inv -n default
    --- stderr ---
    warning RW3007: the pods ask for RDMA devices, and have neither the network of their host nor a
              further one
       ╭─[command line:1:31]
     1 │ railwright job render compare pytorch --name=train --image=own/train:1
       ·                               ───┬───
       ·                                  ╰── pods that cannot reach the rails
       ╰────
      effect: RoCE takes its addresses from the netdev of the rail; where that is not in the pod's own
              network namespace, the device is there and has no GID, and connections fail
      next:   add `--host-network`, or `--network NAME` (in the spec `host_network: true`, or `network:
              NAME`) of a network on the rails; nothing where your network plugin puts rails into pods
      source: Mellanox/k8s-rdma-shared-dev-plugin#86, #101; projectcalico/calico#8482
    --- exit 0 ---
    "#);
    let json_of = |words: &[&str]| {
        let output = place.command(words).output().unwrap();
        serde_json::from_slice::<Value>(&output.stdout)
            .unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&output.stderr)))
    };
    let both = json_of(
        &[
            &["job", "render", "compare"],
            &PYTORCH[..],
            &["--rdma", "--json", "torchrun train.py"],
        ]
        .concat(),
    );
    holds("job-pair", &both);
    // With what is named taken away, the two are the same but for their names.
    let differing: Vec<&str> = both["differences"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["name"].as_str().unwrap())
        .collect();
    let bare = |half: &str| {
        let mut object = both[half]["objects"][0].clone();
        strip(&mut object, &differing);
        serde_json::to_string(&object)
            .unwrap()
            .replace(&format!("train-{half}"), "train")
    };
    assert!(
        differing.contains(&"rdma/hca") && differing.contains(&"NCCL_NET"),
        "{differing:?}"
    );
    assert_eq!(bare("rdma"), bare("tcp"));
    // One half alone is what the pair has of it.
    let one = place.run(
        &[
            &["job", "render", "compare", "--only", "tcp"],
            &PYTORCH[..],
            &["torchrun train.py"],
        ]
        .concat(),
    );
    assert!(
        one.contains("name: train-tcp")
            && !one.contains("train-rdma")
            && one.ends_with("--- exit 0 ---\n"),
        "{one}"
    );
    let both = place.run(
        &[
            &["job", "render", "compare"],
            &PYTORCH[..],
            &["torchrun train.py"],
        ]
        .concat(),
    );
    assert!(
        both.contains("name: train-rdma")
            && both.contains("\n---\n")
            && both.contains("name: train-tcp"),
        "{both}"
    );
    let next = "  railwright job render compare --only tcp pytorch --name train --workers 2 -i inv \
                --image own/train:1 --on 'gpu[1-2]' 'torchrun train.py' | railwright job submit -i \
                inv -n default --watch -\n  railwright job compare train -i inv -n default\n";
    assert!(both.contains(next), "{both}");
}

/// Without these resources and variables.
fn strip(value: &mut Value, names: &[&str]) {
    match value {
        Value::Object(map) => {
            names.iter().for_each(|name| drop(map.remove(*name)));
            map.values_mut().for_each(|below| strip(below, names));
        }
        Value::Array(items) => {
            items.retain(|item| {
                !item["name"]
                    .as_str()
                    .is_some_and(|name| names.contains(&name))
            });
            items.iter_mut().for_each(|item| strip(item, names));
        }
        _ => {}
    }
}

#[test]
fn what_gains_nothing_is_said_before_a_gpu_is_taken() {
    let place = place();
    let told = |kind: &[&str], options: &[&str]| {
        let words = [&["job", "render", "compare"], options, kind].concat();
        let said = place.run(&words);
        assert!(said.ends_with("--- exit 0 ---\n"), "{said}");
        let flat = said
            .split("--- stderr ---")
            .nth(1)
            .unwrap()
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" ");
        flat.contains("RW1250").then(|| {
            flat.split("no gain is to be expected of RDMA: ")
                .nth(1)
                .unwrap()
                .split(" --> ")
                .next()
                .unwrap()
                .to_owned()
        })
    };
    let pytorch = |image: &'static str, workers: &'static str, command: &'static str| {
        vec![
            "pytorch",
            "--name",
            "a",
            "--image",
            image,
            "--workers",
            workers,
            "-i",
            "inv",
            "--trial",
            "--nproc-per-node",
            "8",
            command,
        ]
    };
    assert_eq!(told(&pytorch("own/a:1", "2", "train.py"), &[]), None);
    assert_eq!(
        told(
            &pytorch("own/a:1", "2", "train.py"),
            &["--parameters", "7B"]
        ),
        None
    );
    let cases = [
        (
            pytorch("own/a:1", "1", "train.py"),
            &[][..],
            "all ranks are in one pod",
        ),
        (
            pytorch("own/a:1", "2", "train.py"),
            &["--parameters", "350M"],
            "a model of 350000000 parameters sends little",
        ),
        (
            pytorch("own/a:1", "2", "python mnist/main.py"),
            &[],
            "the model of the MNIST example",
        ),
        (
            pytorch(
                "kube-ai-registry.cn-shanghai.cr.aliyuncs.com/kube-ai/pytorch:mnist-example",
                "2",
                "train.py",
            ),
            &[],
            "is an image of a demonstration",
        ),
        (
            vec![
                "nccl-test",
                "--image",
                "own/n:1",
                "-i",
                "inv",
                "--on",
                "gpu1",
            ],
            &[],
            "all ranks are in one pod",
        ),
        (
            vec![
                "nccl-test",
                "--image",
                "own/n:1",
                "-i",
                "inv",
                "--on",
                "gpu1",
                "--workers",
                "2",
                "--gpus",
                "4",
            ],
            &[],
            "all pods are on one host",
        ),
    ];
    for (kind, options, why) in cases {
        let said = told(&kind, options);
        assert!(
            said.as_ref().is_some_and(|said| said.contains(why)),
            "{kind:?}: {said:?}"
        );
    }
    let nothing = place.run(&[
        "job",
        "render",
        "compare",
        "nccl-test",
        "--image",
        "own/n:1",
        "-i",
        "inv",
        "--without-rdma",
    ]);
    assert!(
        nothing.contains("RW1251") && nothing.ends_with("--- exit 1 ---\n"),
        "{nothing}"
    );
    assert!(
        place
            .run(&[
                "job",
                "render",
                "compare",
                "--parameters",
                "many",
                "nccl-test"
            ])
            .ends_with("--- exit 64 ---\n")
    );
}

#[test]
fn two_trainings_are_compared_by_their_steps() {
    let place = place();
    place
        .write("a.log", training(false, 840))
        .write("b.log", training(true, 210));
    insta::assert_snapshot!(place.run(&["job", "compare", "--log", "a.log", "--log", "b.log"]), @r#"
    $ railwright job compare --log a.log --log b.log
    job compare a.log and b.log

    COMPARED: 4.00 times as fast with RDMA ----------------------------------------------------------
       pair         a.log: TCP sockets; b.log: RoCE
       identical    2 ranks, 2 hosts
       sound        neither broke
       gain         210 ms with RDMA, 840 ms over TCP for 640 samples, the median of 8 and 8: 4.00 times
                    as fast

    SECONDS -----------------------------------------------------------------------------------------
       of               rdma         tcp          gain      busbw rdma, tcp (GB/s)
       640 samples      210 ms       840 ms       4.00

    WHAT A STEP WAITS FOR ---------------------------------------------------------------------------
       torch.profiler
           shows   the share of a step in which ranks wait for NCCL's kernels, and in how far they
                   overlap with those of the model
           run     in the training: with torch.profiler.profile(schedule=torch.profiler.schedule(wait=1,
                   warmup=1, active=3), on_trace_ready=torch.profiler.tensorboard_trace_handler(FOLDER))
                   as profiler, and profiler.step() after each step
           source  pytorch/pytorch: docs/source/profiler.md, torch/profiler/profiler.py
       Nsight Systems
           shows   NCCL's kernels, CUDA's calls and gaps between them on one line of time, without a
                   change of the training
           run     nsys profile -t cuda,nvtx,osrt -o rank%q{RANK} COMMAND
           source  NVIDIA Nsight Systems User Guide: CLI profiling
       ACK AI Profiling
           shows   Python, system calls, CUDA's library and kernels of a pod that runs, without a change
                   of it or a new start
           run     kubectl prof deploy -h
           source  Alibaba Cloud, ACK documentation: use AI Profiling from the command line; example of
                   AI profiling, 26 June 2025
    --- exit 0 ---
    "#);
    let output = place
        .command(&[
            "job", "compare", "--log", "a.log", "--log", "b.log", "-i", "inv", "--json",
        ])
        .output()
        .unwrap();
    let said: Value = serde_json::from_slice(&output.stdout).unwrap();
    holds("job-comparison", &said);
    assert_eq!(
        (output.status.code(), &said["verdict"], &said["gain"]),
        (Some(0), &json!("passed"), &json!(4.0))
    );
    assert_eq!(
        (&said["logs"][0]["transport"], &said["logs"][1]["is_rdma"]),
        (&json!("socket"), &json!(true))
    );
    let profilers: Vec<&str> = said["profilers"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["name"].as_str().unwrap())
        .collect();
    assert_eq!(
        profilers,
        ["torch.profiler", "Nsight Systems"],
        "the cluster of the inventory is no ACK"
    );
    // No faster: it is said, and it is a comparison all the same.
    place.write("slow.log", training(true, 830));
    let same = place.run(&["job", "compare", "--log", "a.log", "--log", "slow.log"]);
    assert!(
        same.contains("RW1256")
            && same.contains("1.01 times as fast")
            && same.ends_with("--- exit 0 ---\n"),
        "{same}"
    );
    // What the log says of its steps goes before the times of its lines.
    let megatron = |over_rdma, ms| {
        let line = format!(
            " iteration        1/    10 | consumed samples:  64 | elapsed time per iteration (ms): \
             {ms:.1} | loss: 1.0 |\n"
        );
        nccl(over_rdma) + &line.repeat(4)
    };
    place
        .write("m1.log", megatron(true, 1500.0))
        .write("m2.log", megatron(false, 6000.0));
    let said = place.run(&["job", "compare", "--log", "m1.log", "--log", "m2.log"]);
    assert!(
        said.contains("a step           1.50 s       6.00 s       4.00"),
        "{said}"
    );
    let proven = place.run(&["job", "prove", "--log", "m1.log"]);
    assert!(
        proven.contains("progress     4 steps, the median 1.50 s"),
        "{proven}"
    );
}

#[test]
fn two_runs_of_nccl_tests_are_compared_size_by_size() {
    let place = place();
    place
        .write("rdma.log", table(true, 1.0))
        .write("tcp.log", table(false, 8.0));
    insta::assert_snapshot!(place.run(&["job", "compare", "--log", "rdma.log", "--log", "tcp.log"]), @r#"
    $ railwright job compare --log rdma.log --log tcp.log
    job compare rdma.log and tcp.log

    COMPARED: 8.00 times as fast with RDMA ----------------------------------------------------------
       pair         rdma.log: RoCE; tcp.log: TCP sockets
       identical    2 ranks, 2 hosts
       sound        neither broke
       gain         600 ms with RDMA, 4.80 s over TCP for a message of 8 GiB: 8.00 times as fast

    SECONDS -----------------------------------------------------------------------------------------
       of               rdma         tcp          gain      busbw rdma, tcp (GB/s)
       8 B              35.2 us      282 us       8.00      0, 0
       8 GiB            600 ms       4.80 s       8.00      14.32, 1.79
    --- exit 0 ---
    "#);
}

#[test]
fn what_is_no_pair_compares_nothing() {
    let place = place();
    let one_host = table(true, 1.0).replace("train-1:", "train-0:");
    let other_ranks = table(false, 8.0).replace("nranks 2", "nranks 16");
    let broken = training(false, 840)
        + "train-1:7:50 [0] transport/net_ib.cc:1295 NCCL WARN NET/IB : Got completion from peer \
           10.0.0.1<4791> with status=12 opcode=0 len=0 vendor err 129 (Send) hca mlx5_0\n";
    place
        .write("rdma.log", training(true, 210))
        .write("tcp.log", training(false, 840))
        .write("silent.log", "nothing\n");
    place
        .write("quiet.log", nccl(false))
        .write("ranks.log", other_ranks)
        .write("table.log", table(true, 1.0));
    place
        .write("host.log", one_host)
        .write("broken.log", broken)
        .write("wrong.log", table(false, 8.0).replace(" 0\n", " 7\n"));
    let (tcp, unnamed) = (
        table(false, 8.0),
        "# Collective test starting: all_reduce_perf\n",
    );
    place
        .write("half.log", tcp.replace(" float ", " half "))
        .write("max.log", tcp.replace(" sum ", " max "));
    place
        .write("scatter.log", tcp.replace("all_reduce", "reduce_scatter"))
        .write("unnamed.log", tcp.replace(unnamed, ""));
    place.write(
        "sizes.log",
        tcp.replace("  8  2  ", "  16  4  ")
            .replace("  8589934592  2147483648  ", "  4294967296  1073741824  "),
    );
    place
        .write("cpu.log", tcp.replace(" time ", " cputime "))
        .write("untyped.log", tcp.replace("  type ", "  sort "));
    let silent: Vec<String> = training(false, 840)
        .lines()
        .filter(|line| !line.contains("Init COMPLETE"))
        .map(str::to_owned)
        .collect();
    place.write("silent-ranks.log", silent.join("\n"));
    for (one, other, code, exit, why) in [
        (
            "table.log",
            "half.log",
            "RW1255",
            1,
            "float with RDMA, half over TCP",
        ),
        (
            "table.log",
            "max.log",
            "RW1255",
            1,
            "redop sum with RDMA, max over TCP",
        ),
        (
            "table.log",
            "scatter.log",
            "RW1255",
            1,
            "all_reduce with RDMA, reduce_scatter over TCP",
        ),
        (
            "table.log",
            "tcp.log",
            "RW1255",
            1,
            "nccl-tests with RDMA, a training over TCP",
        ),
        (
            "table.log",
            "unnamed.log",
            "RW1290",
            3,
            "which operation was measured is not told by the table of unnamed.log",
        ),
        (
            "table.log",
            "unnamed.log",
            "RW1254",
            3,
            "the two are not known to be of one test",
        ),
        (
            "table.log",
            "untyped.log",
            "RW1290",
            3,
            "what type the data has is not told by the table of untyped.log",
        ),
        (
            "rdma.log",
            "silent-ranks.log",
            "RW1290",
            3,
            "how many ranks there were is not said by silent-ranks.log",
        ),
        (
            "table.log",
            "sizes.log",
            "RW1254",
            3,
            "sizes.log has 2 sizes from 16 B to 4 GiB",
        ),
        (
            "table.log",
            "cpu.log",
            "RW1254",
            3,
            "the table of cpu.log has no column of time",
        ),
        ("rdma.log", "rdma.log", "RW1252", 1, "both used RDMA"),
        (
            "tcp.log",
            "tcp.log",
            "RW1252",
            1,
            "railwright doctor --log tcp.log",
        ),
        (
            "host.log",
            "tcp.log",
            "RW1252",
            1,
            "all ranks of host.log are on one host",
        ),
        (
            "silent.log",
            "tcp.log",
            "RW1253",
            3,
            "railwright job prove --log silent.log",
        ),
        (
            "rdma.log",
            "quiet.log",
            "RW1254",
            3,
            "quiet.log has neither steps of a training nor a table",
        ),
        (
            "table.log",
            "ranks.log",
            "RW1255",
            1,
            "2 ranks with RDMA, 16 ranks over TCP",
        ),
        (
            "rdma.log",
            "broken.log",
            "RW1211",
            3,
            "transport retry counter exceeded",
        ),
        (
            "table.log",
            "wrong.log",
            "RW1207",
            1,
            "elements arrived wrong",
        ),
    ] {
        let said = place.run(&["job", "compare", "--log", one, "--log", other]);
        let flat = said.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(
            flat.contains(code)
                && flat.contains(why)
                && said.ends_with(&format!("--- exit {exit} ---\n")),
            "{one} {other}: {said}"
        );
    }
    assert!(
        place
            .run(&["job", "compare", "--log", "rdma.log"])
            .contains("RW1257")
    );
    assert!(
        place
            .run(&["job", "compare", "--log", "rdma.log", "--log", "none.log"])
            .contains("RW1214")
    );
    assert!(
        place
            .run(&["job", "compare"])
            .ends_with("--- exit 64 ---\n")
    );
    assert!(
        place
            .run(&["job", "compare", "train"])
            .ends_with("--- exit 64 ---\n"),
        "a name alone names no cluster"
    );
}
