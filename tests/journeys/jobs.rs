//! `job prove` and `doctor`: what the log of a job proves, and why one did not go, as a user sees
//! it.

use crate::support::Place;
use std::process::Stdio;

/// What NCCL says of one rank of a job of two, from NVIDIA/nccl 2.21; hosts and addresses are made
/// up.
fn rank(host: &str, rank: u32) -> String {
    let me = format!("{host}:7:42 [0] NCCL INFO");
    let other = 1 - rank;
    format!(
        "{me} NCCL_SOCKET_IFNAME set by environment to eth0\n\
         {me} NET/IB : Using [0]erdma_0:1/RoCE [RO]; OOB eth0:10.0.0.{rank}<0>\n\
         {me} Using network IB\n\
         {me} GPU Direct RDMA Enabled for GPU 0 / HCA 0 (distance 4 <= 5), read 0 mode Default\n\
         {me} Channel 00/0 : {other}[0] -> {rank}[0] [receive] via NET/IB/0/GDRDMA\n\
         {me} ncclCommInitRank comm 0x5581 rank {rank} nranks 2 cudaDev 0 nvmlDev 0 busId 1b000 \
         commId 0x9 - Init COMPLETE\n"
    )
}

const TABLE: &str = "\
# nThread 1 nGpus 1 minBytes 8 maxBytes 8589934592 step: 2(factor) warmup iters: 5 iters: 20 agg iters: 1 validation: 1 graph: 0
#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong
           8             2     float     sum      -1    35.21    0.00    0.00      0    34.80    0.00    0.00      0
  8589934592    2147483648     float     sum      -1   600000   14.32   14.32      0   600100   14.31   14.31      0
# Out of bounds values : 0 OK
# Avg bus bandwidth    : 7.1575
";

fn job() -> String {
    format!(
        "NCCL version 2.21.5+cuda12.4\n{}{}{TABLE}",
        rank("nccl-worker-0", 0),
        rank("nccl-worker-1", 1)
    )
}

#[test]
fn a_job_over_rdma_is_proven() {
    let place = Place::new();
    place.write("job.log", job());
    insta::assert_snapshot!(place.run(&["job", "prove", "--log", "job.log", "--expect-gbps", "118"]), @r#"
    $ railwright job prove --log job.log --expect-gbps 118
    job prove job.log   19 lines, 2 hosts, 2 ranks

    PASSED: RDMA was used ---------------------------------------------------------------------------
       transport    RoCE (2 hosts): 2 channels between hosts over verbs, none over TCP
       devices      erdma_0
       gpudirect    on in 2 channels between hosts
       data         #wrong is 0 in 2 sizes
       bandwidth    14.31 GB/s busbw at 8 GiB, 97 % of what the NICs carry
       progress     1 run of nccl-tests to the end

    THE JOB -----------------------------------------------------------------------------------------
       NCCL         2.21.5+cuda12.4
       devices      erdma_0 on nccl-worker-[0-1], 2 processes, rank 0-1
       channels     2 over verbs with GPUDirect
       environment  NCCL_SOCKET_IFNAME=eth0
    --- exit 0 ---
    "#);
}

#[test]
fn a_job_over_sockets_is_disproven_with_what_it_means() {
    let place = Place::new();
    let sockets = job()
        .replace(
            "NET/IB : Using [0]erdma_0:1/RoCE [RO]; OOB eth0",
            "NET/Socket : Using [0]eth0",
        )
        .replace("Using network IB", "Using network Socket")
        .replace("NET/IB/0/GDRDMA", "NET/Socket/0");
    place.write("job.log", sockets);
    insta::assert_snapshot!(place.run(&["job", "prove", "--log", "job.log", "--expect-gbps", "200"]), @r#"
    $ railwright job prove --log job.log --expect-gbps 200
    job prove job.log   19 lines, 2 hosts, 2 ranks

    FAILED: not as it must be -----------------------------------------------------------------------
     ! transport    RW1201
           actual  TCP sockets: NCCL says `NET/Socket` and nothing of RDMA devices, as with an image
                   that lacks libibverbs, or with NCCL_NET=Socket
           desired RDMA between hosts
           means   every byte between hosts goes through the kernel's TCP: a tenth of the bandwidth and
                   many times the latency
           next    railwright doctor --log job.log --expect-gbps 200
     - devices      no RDMA device is used
     - gpudirect    no RDMA, no GPUDirect
       data         #wrong is 0 in 2 sizes
     ! bandwidth    RW1209
           actual  14.31 GB/s busbw at 8 GiB, 57 % of what the NICs carry
           desired at least 20.0 GB/s: 80 % of 25.0 GB/s (200 Gb/s, --expect-gbps)
           means   jobs wait for the network for longer than its NICs make necessary
           next    railwright doctor --log job.log --expect-gbps 200; railwright verify INVENTORY
                   measures each rail by itself
       progress     1 run of nccl-tests to the end

    THE JOB -----------------------------------------------------------------------------------------
       NCCL         2.21.5+cuda12.4
       channels     2 over TCP
       environment  NCCL_SOCKET_IFNAME=eth0
    --- exit 1 ---
    "#);
}

#[test]
fn a_hung_job_a_silent_one_and_a_broken_one() {
    let place = Place::new();
    let hung = job();
    place.write("hung.log", &hung[..hung.find("  8589934592").unwrap()]);
    place.write("silent.log", "Train Epoch: 1 [0/60000 (0%)]\tloss=2.3\n");
    let lost = "nccl-worker-1:7:50 [0] transport/net_ib.cc:1295 NCCL WARN NET/IB : Got completion \
                from peer 10.0.0.1<4791> with status=12 opcode=0 len=0 vendor err 129 (Send) hca \
                erdma_0\n";
    place.write(
        "broken.log",
        format!(
            "{}\x1b[31m{lost}\x1b[0m\0\0\n",
            &hung[..hung.find("  8589934592").unwrap()]
        ),
    );
    let said = ["hung.log", "silent.log", "broken.log"]
        .map(|log| place.run(&["job", "prove", "--log", log]));
    insta::assert_snapshot!(said.join("\n"), @r#"
    $ railwright job prove --log hung.log
    job prove hung.log   16 lines, 2 hosts, 2 ranks

    INCONCLUSIVE: the log does not say enough -------------------------------------------------------
       transport    RoCE (2 hosts): 2 channels between hosts over verbs, none over TCP
       devices      erdma_0
       gpudirect    on in 2 channels between hosts
       data         #wrong is 0 in 1 size
     - bandwidth    0 GB/s busbw at 8 B; nothing to hold it against
     ? progress     RW1212
           actual  a run of nccl-tests has no last line: 1 size up to 8 B of 8 GiB
           desired `# Avg bus bandwidth` at its end
           means   it still runs, its log was cut off, or it hangs
           next    railwright doctor --log hung.log

    THE JOB -----------------------------------------------------------------------------------------
       NCCL         2.21.5+cuda12.4
       devices      erdma_0 on nccl-worker-[0-1], 2 processes, rank 0-1
       channels     2 over verbs with GPUDirect
       environment  NCCL_SOCKET_IFNAME=eth0
    --- exit 3 ---

    $ railwright job prove --log silent.log
    job prove silent.log   1 line

    INCONCLUSIVE: the log does not say enough -------------------------------------------------------
     ? transport    RW1203
           actual  NCCL says nothing of what carries the data, in 1 line
           desired RDMA between hosts
           means   nothing is proven
           next    run the job with NCCL_DEBUG=INFO and take the whole log of a rank; railwright doctor
                   --log silent.log
     - devices      the log names no RDMA device
     - gpudirect    the log does not tell; NCCL_DEBUG_SUBSYS=INIT,NET,GRAPH would
     - data         the log has no table of nccl-tests
     - bandwidth    the log has no table of nccl-tests
       progress     1 line of progress, epoch 1 to 1, 0 of 60000 samples of the last
    --- exit 3 ---

    $ railwright job prove --log broken.log
    job prove broken.log   18 lines, 2 hosts, 2 ranks

    FAILED: not as it must be -----------------------------------------------------------------------
       transport    RoCE (2 hosts): 2 channels between hosts over verbs, none over TCP
       devices      erdma_0
       gpudirect    on in 2 channels between hosts
       data         #wrong is 0 in 1 size
     - bandwidth    0 GB/s busbw at 8 B; nothing to hold it against
     ! progress     RW1211
           actual  line 17 on nccl-worker-1: NET/IB : Got completion from peer 10.0.0.1<4791> with
                   status=12 opcode=0 len=0 vendor err 129 (Send) hca erdma_0
           means   packets were sent again and again without an answer (transport retry counter
                   exceeded): the path loses them, or the other end is gone
           next    railwright doctor --log broken.log

    THE JOB -----------------------------------------------------------------------------------------
       NCCL         2.21.5+cuda12.4
       devices      erdma_0 on nccl-worker-[0-1], 2 processes, rank 0-1
       channels     2 over verbs with GPUDirect
       environment  NCCL_SOCKET_IFNAME=eth0
    --- exit 1 ---
    "#);
}

/// What `ifconfig` shows of a pod's high-performance NIC.
const HPN0: &str = "hpn0      Link encap:Ethernet  HWaddr 00:16:3e:00:00:01\n          inet6 addr: fe80::1/64 Scope:Link\n          inet6 addr: 2408::1/128 Scope:Global\n          UP BROADCAST RUNNING MULTICAST  MTU:1500  Metric:1\n";

#[test]
fn on_acs_hpn0_and_bandwidth_count() {
    let place = Place::new();
    let quiet = TABLE.to_owned() + HPN0;
    place.write("acs.log", &quiet);
    let proven = place.run(&[
        "job",
        "prove",
        "--log",
        "acs.log",
        "--acs=P16EN",
        "--expect-gbps",
        "118",
    ]);
    assert!(
        proven.contains("PASSED: RDMA was used") && proven.ends_with("--- exit 0 ---\n"),
        "{proven}"
    );
    assert!(
        place
            .run(&[
                "job",
                "prove",
                "--log",
                "acs.log",
                "--acs",
                "--expect-gbps",
                "118"
            ])
            .ends_with("--- exit 0 ---\n")
    );
    let unstated = place.run(&["job", "prove", "--log", "acs.log", "--acs=p16en"]);
    assert!(
        unstated.contains("RW1210") && unstated.ends_with("--- exit 3 ---\n"),
        "{unstated}"
    );
    let demanded = place.run(&["job", "prove", "--log", "acs.log", "--acs=GU8TF"]);
    assert!(
        demanded.contains("RW1203") && demanded.ends_with("--- exit 3 ---\n"),
        "{demanded}"
    );
    let unknown = place.run(&["job", "prove", "--log", "acs.log", "--acs=P16N"]);
    assert!(
        unknown.contains("RW1215")
            && unknown.contains("did you mean `P16EN`?")
            && unknown.ends_with("--- exit 1 ---\n"),
        "{unknown}"
    );
}

#[test]
fn the_inventory_says_which_pods_of_acs_they_are() {
    let place = Place::new();
    let off = "a:7:7 [0] NCCL INFO NCCL_IB_DISABLE set by environment to 1.\n\
               a:7:7 [0] NCCL INFO Using network Socket\n";
    place.write("acs.log", off.to_owned() + TABLE + HPN0).write("inv/cluster.yaml", "cluster: a\nfabric: { kind: acs }\njobs:\n  acs: { model: P16EN, compute_class: gpu-hpn, gpus: 16, rdma: true }\n  environment: { NCCL_IB_DISABLE: \"1\", NCCL_SOCKET_IFNAME: eth0, NCCL_IB_HCA: \"\" }\n");
    let without_name = |text: String| {
        let text = text.replace(" -i inv", "").replace(" --acs=P16EN", "");
        text.split_whitespace()
            .skip(8)
            .collect::<Vec<_>>()
            .join(" ")
    };
    let said = place.run(&["job", "prove", "--log", "acs.log", "--acs=P16EN"]);
    assert!(said.contains("hpn0"), "{said}");
    assert_eq!(
        without_name(place.run(&["job", "prove", "--log", "acs.log", "-i", "inv"])),
        without_name(said)
    );
    let doctor = |options: &[&str]| {
        without_name(place.run(&[&["doctor", "--log", "acs.log"], options].concat()))
    };
    assert_eq!(doctor(&["-i", "inv"]), doctor(&["--acs=P16EN"]));
    assert_ne!(
        doctor(&["-i", "inv"]),
        doctor(&[]),
        "without it, NCCL_IB_DISABLE looks wrong"
    );
}

#[test]
fn the_inventory_says_what_nics_carry() {
    let place = Place::new();
    place.write("job.log", job());
    let spec = "cluster: a\n\
                fabric: { kind: rocev2 }\n\
                ssh: { user: root }\n\
                nodes:\n  - name: nccl-worker-[0-1]\n    gpu: { model: A100-SXM4-80GB, count: 8 }\n    nics: { model: MODEL, netdev: ens1f0np0 }\n    os: ubuntu-22.04\n";
    place.write("inv/cluster.yaml", spec.replace("MODEL", "ConnectX-5"));
    let said = place.run(&["job", "prove", "--log", "job.log", "--inventory", "inv"]);
    assert!(
        said.contains("114 % of what the NICs carry")
            && said.contains("RW1218")
            && said.contains("exit 3"),
        "{said}"
    );
    place.write("inv/cluster.yaml", spec.replace("MODEL", "ConnectX-6"));
    let said = place.run(&[
        "job",
        "prove",
        "--log",
        "job.log",
        "--inventory",
        "inv",
        "--least-percent",
        "50",
    ]);
    assert!(
        said.contains("57 % of what the NICs carry") && said.contains("exit 0"),
        "{said}"
    );
    let said = place.run(&["job", "prove", "--log", "job.log", "--inventory", "inv"]);
    assert!(
        said.contains("the NICs of inv") && said.contains("RW1209") && said.contains("exit 1"),
        "{said}"
    );
    place.write(
        "inv/cluster.yaml",
        spec.replace("MODEL", "eRDMA").replace("rocev2", "erdma"),
    );
    let said = place.run(&["job", "prove", "--log", "job.log", "--inventory", "inv"]);
    assert!(said.contains("RW1216"), "{said}");
}

#[test]
fn standard_input_json_and_what_cannot_be_read() {
    let place = Place::new();
    place.write("job.log", job());
    let input = std::fs::File::open(place.path().join("job.log")).unwrap();
    let output = place
        .command(&["job", "prove", "--log", "-", "--json"])
        .stdin(Stdio::from(input))
        .output()
        .unwrap();
    let said: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(
        (output.status.code(), &said["verdict"], &said["transport"]),
        (Some(0), &"passed".into(), &"roce".into())
    );
    assert_eq!(said["devices"][0]["devices"][0]["port"], "erdma_0:1");
    let output = place
        .command(&["job", "prove", "--log", "-"])
        .output()
        .unwrap();
    let said_nothing = String::from_utf8(output.stdout).unwrap();
    assert!(
        said_nothing.contains("the log is empty") && said_nothing.contains("--log FILE"),
        "{said_nothing}"
    );
    crate::documents::holds("job-proof", &said);
    let said = place.run(&["job", "prove", "--log", "none.log"]);
    assert!(
        said.contains("RW1214") && said.ends_with("--- exit 1 ---\n"),
        "{said}"
    );
    assert!(
        place
            .run(&["job", "prove", "--log", "."])
            .contains("RW1214")
    );
    assert!(place.run(&["job", "prove"]).ends_with("--- exit 64 ---\n"));
    assert!(
        place
            .run(&["job", "prove", "--log", "job.log", "--expect-gbps", "nan"])
            .ends_with("--- exit 64 ---\n")
    );
}

#[test]
fn the_doctor_names_the_first_cause_and_the_next_command() {
    let place = Place::new();
    let log = "a:7:9 [0] NCCL INFO Failed to open libibverbs.so[.1]\n\
               a:7:9 [0] NCCL INFO NET/Socket : Using [0]eth0:10.0.0.1<0>\n\
               a:7:9 [0] NCCL INFO Using network Socket\n\
               [rank0]: Watchdog caught collective operation timeout: WorkNCCL(SeqNum=1)\x1b[0m \
               ran for 600081 milliseconds\n";
    place.write("job.log", log);
    place.write("good.log", job());
    place.write("silent.log", "nothing\n");
    insta::assert_snapshot!(place.run(&["doctor", "--log", "job.log"]), @r#"
    $ railwright doctor --log job.log
    doctor job.log   4 lines, transport TCP sockets

    FIRST CAUSE -------------------------------------------------------------------------------------
       layers host, driver, nic, plugin, node, pod: nothing in the log speaks against them
     ! image        RW1371   The image lacks the RDMA user space
           line 1    a:7:9 [0] NCCL INFO Failed to open libibverbs.so[.1]
           cause   libibverbs or librdmacm is not in the image
           means   NCCL goes on over TCP without a word
           next    railwright image check --pod POD -i INVENTORY -n NAMESPACE
           next    railwright image render --base IMAGE --suite SUITE -i INVENTORY writes the file of an
                   image with libibverbs1, ibverbs-providers, ibverbs-utils and librdmacm1; for eRDMA
                   from the vendor's repository, with --key
           source  NVIDIA/nccl src/misc/ibvsymbols.cc; NVIDIA/nvidia-container-toolkit#1877;
                   NVIDIA/nccl#451; Alibaba Cloud, accelerate Arena PyTorch jobs with eRDMA, questions

    FOLLOWS FROM IT, OR COMES AFTER IT --------------------------------------------------------------
     ~ fabric       RW1407   A collective ran out of time (line 4)
    --- exit 1 ---
    "#);
    let other = ["good.log", "silent.log"].map(|log| place.run(&["doctor", "--log", log]));
    insta::assert_snapshot!(other.join("\n"), @r#"
    $ railwright doctor --log good.log
    doctor good.log   19 lines, transport RoCE

    NOTHING WRONG: the log proves that RDMA was used ------------------------------------------------
       next     railwright job prove --log good.log tells more
    --- exit 0 ---

    $ railwright doctor --log silent.log
    doctor silent.log   1 line, transport unknown

    INCONCLUSIVE: no symptom that railwright knows is in the log ------------------------------------
       next     railwright job prove --log silent.log says what is missing; the log of another rank, of
                the operator or of the node may show it
    --- exit 3 ---
    "#);
    let output = place
        .command(&["doctor", "--log", "job.log", "--json"])
        .output()
        .unwrap();
    let said: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(
        (&said["found"][0]["id"], &said["found"][1]["layer"]),
        (&"no-libibverbs".into(), &"fabric".into())
    );
    crate::documents::holds("diagnosis", &said);
    assert!(
        place
            .run(&["doctor", "--log", "none.log"])
            .contains("RW1214")
    );
}

#[test]
fn a_symptom_is_explained_by_its_code() {
    let place = Place::new();
    insta::assert_snapshot!(place.run(&["explain", "rw1402"]), @r#"
    $ railwright explain rw1402
    RW1402: The fabric lost packets until the sender gave up

    Layer: fabric. No acknowledgement came for seven tries - loss without PFC or ECN on the priority of
    this traffic, a port that went down, a peer that is gone, an MTU that does not fit.

    What it means: the job breaks; the first host that says so names the path.

    What to do:

    - railwright verify fabric INVENTORY: both ends of every link and what they dropped
    - one DSCP everywhere: NCCL_IB_TC is the DSCP times 4, PFC on its priority at host and switch
    - NCCL_IB_TIMEOUT=23 outlasts short losses and fixes none; NCCL_IB_RETRY_CNT holds 7 at most, which
      is what it is unless set

    A log that shows it:

        b:7:9 [1] transport/net_ib.cc:1295 NCCL WARN NET/IB : Got completion from peer 10.0.0.1<4791>
        with status=12 opcode=0 len=0 vendor err 129 (Send)

    Source: NVIDIA/nccl#378, #306, #2383, #173; openucx/ucx#10325; Alibaba Cloud, accelerate Arena
    PyTorch jobs with eRDMA, questions (NCCL timeout)
    --- exit 0 ---
    "#);
    assert!(
        place
            .run(&["explain", "RW1402", "--json"])
            .contains("RW1032")
    );
    assert!(place.run(&["explain", "RW1492"]).contains("did you mean"));
}

/// What is suggested can be typed, whatever the file is called.
#[test]
fn a_command_that_is_suggested_quotes_the_names_of_files() {
    let place = Place::new();
    place.write("my job's.log", "nothing\n");
    for words in [&["job", "prove"][..], &["doctor"]] {
        let said = place.run(&[words, &["--log", "my job's.log"]].concat());
        assert!(
            said.split_whitespace()
                .collect::<Vec<_>>()
                .join(" ")
                .contains(r"--log 'my job'\''s.log'"),
            "{said}"
        );
    }
    let both = place.run(&[
        "job",
        "compare",
        "--log",
        "my job's.log",
        "--log",
        "my job's.log",
    ]);
    let both = both.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        both.contains(r"railwright job prove --log 'my job'\''s.log'"),
        "{both}"
    );
}

/// What `job prove` disproves and sends to `doctor`, `doctor` finds a cause of.
#[test]
fn the_doctor_has_a_cause_where_the_proof_has_a_failure() {
    let place = Place::new();
    let hpn = "a:7:7 [0] NCCL INFO NCCL_IB_DISABLE set by environment to 1.\n\
               hpn0: flags=4099<UP,BROADCAST>  mtu 1500\n";
    place.write("slow.log", job()).write("hpn.log", hpn).write(
        "broken.log",
        job() + "a: Test NCCL failure all_reduce.cu:44\n",
    );
    for (log, options, code, layer) in [
        (
            "slow.log",
            &["--expect-gbps", "400"][..],
            "RW1291",
            "fabric",
        ),
        ("hpn.log", &["--acs=P16EN"], "RW1292", "pod"),
        ("broken.log", &[], "RW1293", "fabric"),
    ] {
        let proven = place.run(&[&["job", "prove", "--log", log], options].concat());
        assert!(
            proven.contains("FAILED: not as it must be") && proven.ends_with("--- exit 1 ---\n"),
            "{proven}"
        );
        let words = [&["doctor", "--log", log], options].concat();
        // What the proof says to run next is what was evaluated here.
        let flat = proven.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(
            layer == "pod" || flat.contains(&format!("railwright {}", words.join(" "))),
            "{proven}"
        );
        let said = place.run(&words);
        assert!(
            said.contains(&format!(" ! {layer:<12} {code}")) && said.ends_with("--- exit 1 ---\n"),
            "{said}"
        );
    }
    let unheld = place.run(&["doctor", "--log", "slow.log"]);
    assert!(
        unheld.contains("NOTHING WRONG"),
        "nobody said what its NICs carry: {unheld}"
    );
}
