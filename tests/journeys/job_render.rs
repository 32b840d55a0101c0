//! `job render` and `job from-arena`: jobs that use the fabric, as a user sees them. The manifests
//! of the pages that railwright was made from are compared field by field; where a value is derived
//! and differs from the one that a page copied, the difference and its reason stand here.

use crate::documents::holds;
use crate::support::Place;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// The line of the page on eRDMA with Arena, as it was copied: without its line ends.
const ARENA: &str = r#"arena submit pytorch \ --name=pytorch-mnist \ --namespace=default \ --workers=2 \ --gpus=1 \ --device=aliyun/erdma=1 \ --nproc-per-node=1 \ --env NCCL_NET_GDR_LEVEL=1 \ --env NCCL_P2P_LEVEL=5 \ --env NCCL_DEBUG=INFO \ --env NCCL_SOCKET_IFNAME=eth0 \ --env NCCL_ALGO=Ring \ --clean-task-policy=None \ --working-dir=/root \ --image=kube-ai-registry.cn-shanghai.cr.aliyuncs.com/kube-ai/pytorch:mnist-example \ --image-pull-policy=Always \ --tensorboard \ --logdir=/workspace/logs \ "torchrun /workspace/arena/examples/pytorch/mnist/main.py \ --epochs 10000 \ --backend nccl \ --data /workspace \ --dir /workspace/logs""#;

/// A cluster with eRDMA and a clean bill: nothing is waived and nothing is set.
const ERDMA: &str = "cluster: jobs
fabric: { kind: erdma }
ssh: none
nodes:
  - { name: \"gpu[1-2]\", os: alinux-3, instance: gn8is, gpu: { model: L20, count: 1 }, nics: { model: eRDMA, netdev: eth0 } }
kubernetes: { platform: ack-managed, erdma: { prefer_driver: ofed } }
";

const ROCE: &str = "cluster: jobs
fabric: { kind: rocev2, mtu: 9000, routed: false, lossless: { priority: 3, dscp: 26, cnp: { priority: 6, dscp: 48 } } }
ssh: { user: root, host_keys: known_hosts }
nodes:
  - name: \"gpu[1-2]\"
    os: ubuntu-22.04
    rdma_stack: { flavour: doca, version: 3.2.1 }
    gpu: { model: H800-SXM5, count: 8 }
    nics: { model: ConnectX-7, rails: 8, netdev: \"ens{rail}f0np0\", address: \"10.40.{rail}.{index}/24\" }
    management: { bond: { name: bond0, members: [eno1, eno2], mode: 802.3ad }, vlan: { id: 20 } }
kubernetes: { rdma: { plugin: shared, resources: { rdma_shared_device_a: rail 0-3, rdma_shared_device_b: rail 4-7 } } }
";

const ACS: &str = "cluster: acs\nfabric: { kind: acs }\n";

fn place(spec: &str) -> Place {
    let place = Place::new();
    place
        .write("inv/cluster.yaml", spec)
        .write("inv/known_hosts", "");
    place
}

fn inventory(name: &str) -> String {
    format!("{}/inventories/{name}", env!("CARGO_MANIFEST_DIR"))
}

/// What `--json` prints.
fn rendered(place: &Place, words: &[&str]) -> Value {
    // behind the name of the command: what follows a job's command is part of it
    let at = if words[1] == "render" { 3 } else { 2 };
    let words = [&words[..at], &["--json"], &words[at..]].concat();
    let output = place.command(&words).output().unwrap();
    let document = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&output.stderr)));
    holds("job", &document);
    document
}

/// The words of a job before its options: `with(&["job", "render", "ray"], "--gpus=8 --image=a")`.
fn with<'a>(start: &[&'a str], options: &'a str) -> Vec<&'a str> {
    start
        .iter()
        .copied()
        .chain(options.split_whitespace())
        .collect()
}

/// Every leaf with its pointer. A container's `env` is a map by name, and amounts are texts: `8`
/// and `"8"` are the same to Kubernetes.
fn leaves(value: &Value) -> BTreeMap<String, String> {
    fn walk(value: &Value, at: &str, out: &mut BTreeMap<String, String>) {
        match value {
            Value::Object(map) if !map.is_empty() => map
                .iter()
                .for_each(|(key, value)| walk(value, &format!("{at}/{key}"), out)),
            Value::Array(items) if at.ends_with("/env") => {
                for item in items {
                    out.insert(
                        format!("{at}/{}", item["name"].as_str().unwrap()),
                        item["value"].as_str().unwrap().to_owned(),
                    );
                }
            }
            Value::Array(items) if !items.is_empty() => {
                items
                    .iter()
                    .enumerate()
                    .for_each(|(index, value)| walk(value, &format!("{at}/{index}"), out));
            }
            other => drop(
                out.insert(
                    at.to_owned(),
                    other
                        .as_str()
                        .map_or_else(|| other.to_string(), str::to_owned),
                ),
            ),
        }
    }
    let mut out = BTreeMap::new();
    walk(value, "", &mut out);
    out
}

/// Each field in which an object differs from the page's, as `pointer: page -> ours`; `-` is a
/// field that is not there.
fn differences(page: &Value, ours: &Value) -> Vec<String> {
    let (page, ours) = (leaves(page), leaves(ours));
    let keys: BTreeSet<&String> = page.keys().chain(ours.keys()).collect();
    let said = |of: &BTreeMap<String, String>, key: &String| {
        of.get(key)
            .map_or("-".to_owned(), |text| format!("`{text}`"))
    };
    keys.into_iter()
        .filter(|key| page.get(*key) != ours.get(*key))
        .map(|key| format!("{key}: {} -> {}", said(&page, key), said(&ours, key)))
        .collect()
}

fn yaml(text: &str) -> Value {
    serde_yaml_archived::from_str(text).unwrap()
}

#[test]
fn the_pages_line_of_arena_becomes_its_pytorchjob() {
    let place = Place::new();
    let document = rendered(
        &place,
        &[
            "job",
            "from-arena",
            ARENA,
            "-i",
            &inventory("ack-erdma-pods"),
        ],
    );
    let pod = json!({
        "volumes": [
            { "name": "training-logs-volume", "hostPath": { "path": "/arena_logs/training-pytorch-mnist" } },
            { "name": "dshm", "emptyDir": { "medium": "Memory", "sizeLimit": "2Gi" } },
        ],
        "containers": [{
            "name": "pytorch",
            "image": "kube-ai-registry.cn-shanghai.cr.aliyuncs.com/kube-ai/pytorch:mnist-example",
            "imagePullPolicy": "Always",
            "workingDir": "/root",
            "command": ["sh", "-c", "torchrun /workspace/arena/examples/pytorch/mnist/main.py  \
                                     --epochs 10000  --backend nccl  --data /workspace  --dir \
                                     /workspace/logs"],
            "resources": {
                "requests": { "nvidia.com/gpu": "1", "aliyun/erdma": "1" },
                "limits": { "nvidia.com/gpu": "1", "aliyun/erdma": "1" },
            },
            "env": [
                { "name": "NCCL_NET_GDR_LEVEL", "value": "1" }, { "name": "NCCL_P2P_LEVEL", "value": "5" },
                { "name": "NCCL_DEBUG", "value": "INFO" }, { "name": "NCCL_SOCKET_IFNAME", "value": "eth0" },
                { "name": "NCCL_ALGO", "value": "Ring" }, { "name": "PET_NPROC_PER_NODE", "value": "1" },
                { "name": "workers", "value": "2" }, { "name": "gpus", "value": "1" },
            ],
            "volumeMounts": [{ "name": "training-logs-volume", "mountPath": "/workspace/logs" }, { "name": "dshm", "mountPath": "/dev/shm" }],
        }],
    });
    let labels = json!({ "app": "pytorchjob", "chart": "pytorchjob-0.5.2", "release": "pytorch-mnist", "heritage": "Helm", "createdBy": "PyTorchJob" });
    let annotations = json!({ "requestGPUsOfJobOwner": "2" });
    let mut master = labels.clone();
    master["master-pod-name"] = json!("pytorch-mnist-master-0");
    let template = |labels: &Value| json!({ "metadata": { "name": "pytorch-mnist", "labels": labels, "annotations": annotations }, "spec": pod });
    let page = json!({
        "apiVersion": "kubeflow.org/v1",
        "kind": "PyTorchJob",
        "metadata": { "name": "pytorch-mnist", "namespace": "default", "labels": labels, "annotations": annotations },
        "spec": {
            "runPolicy": { "cleanPodPolicy": "None" },
            "pytorchReplicaSpecs": {
                "Master": { "replicas": 1, "restartPolicy": "Never", "template": template(&master) },
                "Worker": { "replicas": 1, "restartPolicy": "OnFailure", "template": template(&labels) },
            },
        },
    });
    // What the page leaves to NCCL follows from the inventory: its hosts have one or two eRDMA
    // devices, found by whole names; the address of RoCE is found by family and version, because
    // its index differs from NIC to NIC.
    let derived = |pod: &str| {
        [
            ("NCCL_IB_ADDR_FAMILY", "AF_INET"),
            ("NCCL_IB_HCA", "=erdma_0,erdma_1"),
            ("NCCL_IB_ROCE_VERSION_NUM", "2"),
        ]
        .map(|(name, value)| {
            format!(
                "/spec/pytorchReplicaSpecs/{pod}/template/spec/containers/0/env/{name}: - -> \
                 `{value}`"
            )
        })
    };
    assert_eq!(
        differences(&page, &document["objects"][0]),
        [derived("Master"), derived("Worker")].concat()
    );
    // Without an inventory nothing follows from anything, and the job is the line's to the letter.
    let alone = rendered(&place, &["job", "from-arena", ARENA]);
    assert_eq!(
        differences(&page, &alone["objects"][0]),
        Vec::<String>::new()
    );

    let kinds: Vec<&str> = document["objects"]
        .as_array()
        .unwrap()
        .iter()
        .map(|object| object["kind"].as_str().unwrap())
        .collect();
    assert_eq!(
        kinds,
        ["PyTorchJob", "Service", "Deployment"],
        "TensorBoard is beside it"
    );
    let board = &document["objects"][2];
    assert_eq!(board["metadata"]["name"], "pytorch-mnist-tensorboard");
    assert_eq!(
        board["spec"]["template"]["spec"]["volumes"][0]["hostPath"]["path"],
        "/arena_logs/training-pytorch-mnist"
    );
}

#[test]
fn the_pages_deployment_on_container_compute_service() {
    let page = yaml(
        r#"
apiVersion: apps/v1
kind: Deployment
metadata: { name: dep-demo-hpn-gpu, labels: { app: demo-hpn-gpu } }
spec:
  replicas: 1
  selector: { matchLabels: { app: demo-hpn-gpu } }
  template:
    metadata:
      labels:
        app: demo-hpn-gpu
        alibabacloud.com/compute-class: gpu
        alibabacloud.com/compute-qos: default
        alibabacloud.com/gpu-model-series: "GU8TF"
        alibabacloud.com/hpn-type: "rdma"
    spec:
      containers:
      - name: demo
        image: registry-cn-wulanchabu.ack.aliyuncs.com/acs/stress:v1.0.4
        command: ["sleep", "1000h"]
        env:
        - { name: NCCL_SOCKET_IFNAME, value: "eth0" }
        - { name: NCCL_IB_HCA, value: "mlx5" }
        - { name: NCCL_DEBUG, value: "INFO" }
        resources:
          requests: { cpu: 128, memory: 512Gi, nvidia.com/gpu: 8 }
          limits: { cpu: 128, memory: 512Gi, nvidia.com/gpu: 8 }
"#,
    );
    let place = place(ACS);
    let options = "-i inv --name dep-demo-hpn-gpu --app demo-hpn-gpu --container demo --model \
                   GU8TF --gpus 8 --cpu 128 --memory 512Gi --trial --image \
                   registry-cn-wulanchabu.ack.aliyuncs.com/acs/stress:v1.0.4 -- sleep 1000h";
    let document = rendered(&place, &with(&["job", "render", "acs"], options));
    // The page leaves the namespace to whoever applies it.
    assert_eq!(
        differences(&page, &document["objects"][0]),
        ["/metadata/namespace: - -> `default`"]
    );
    assert_eq!(
        document["findings"],
        json!([]),
        "a trial may have the image of a demonstration"
    );
}

#[test]
fn the_pages_raycluster_with_both_pools() {
    let resources = r#"{ memory: "1600G", cpu: "144", nvidia.com/gpu-h800: 8, rdma/rdma_shared_device_a: 1, rdma/rdma_shared_device_b: 1 }"#;
    let container = |name: &str| {
        format!(
            "{{ name: {name}, image: \
             \"registry.hd-01.alayanew.com:8443/vc-app_market/ray-ml-vllm:0.7.1\", resources: {{ \
             requests: {resources}, limits: {resources} }} }}"
        )
    };
    let page = yaml(&format!(
        "apiVersion: ray.io/v1
kind: RayCluster
metadata: {{ name: raycluster-kuberay }}
spec:
  rayVersion: '2.40.0'
  headGroupSpec: {{ rayStartParams: {{}}, template: {{ spec: {{ containers: [{}] }} }} }}
  workerGroupSpecs:
  - replicas: 3
    groupName: workergroup
    rayStartParams: {{}}
    template: {{ spec: {{ containers: [{}] }} }}
",
        container("ray-head"),
        container("ray-worker")
    ));
    let place = Place::new();
    let shared = inventory("ray-shared-rdma");
    let options = "--replicas 3 --gpu-resource nvidia.com/gpu-h800 --cpu 144 --memory 1600G \
                   --image registry.hd-01.alayanew.com:8443/vc-app_market/ray-ml-vllm:0.7.1";
    let document = rendered(
        &place,
        &with(&["job", "render", "ray", "-i", &shared], options),
    );
    // The page sets no environment: NCCL then takes every device, no traffic class and the first
    // interface. What is derived marks the traffic for the lossless class of the fabric and names
    // the devices of both pools.
    let derived = |at: &str| {
        [
            ("NCCL_DEBUG", "INFO"),
            ("NCCL_IB_ADDR_FAMILY", "AF_INET"),
            (
                "NCCL_IB_HCA",
                "=mlx5_0,mlx5_1,mlx5_2,mlx5_3,mlx5_4,mlx5_5,mlx5_6,mlx5_7",
            ),
            ("NCCL_IB_ROCE_VERSION_NUM", "2"),
            ("NCCL_IB_TC", "104"),
            ("NCCL_SOCKET_IFNAME", "=eth0"),
        ]
        .map(|(name, value)| format!("{at}/template/spec/containers/0/env/{name}: - -> `{value}`"))
    };
    let namespace = ["/metadata/namespace: - -> `default`".to_owned()];
    let expected = [
        &namespace[..],
        &derived("/spec/headGroupSpec"),
        &derived("/spec/workerGroupSpecs/0"),
    ]
    .concat();
    assert_eq!(differences(&page, &document["objects"][0]), expected);
    // One pool has the devices of its rails, and no others.
    let one = rendered(
        &place,
        &with(
            &["job", "render", "ray", "-i", &shared],
            "--image rayproject/ray:2.9.0 --device rdma/rdma_shared_device_b=1",
        ),
    );
    assert_eq!(
        value_of(&one, "NCCL_IB_HCA"),
        Some("=mlx5_4,mlx5_5,mlx5_6,mlx5_7")
    );
}

fn value_of<'a>(document: &'a Value, name: &str) -> Option<&'a str> {
    document["environment"]
        .as_array()?
        .iter()
        .find(|one| one["name"] == name)?["value"]
        .as_str()
}

#[test]
fn the_pages_line_of_mpirun() {
    let place = place(ROCE);
    let document = rendered(
        &place,
        &with(
            &["job", "render", "nccl-test"],
            "-i inv --image own/nccl-tests:1 --program /opt/all_reduce_perf",
        ),
    );
    let launcher = &document["objects"][0]["spec"]["mpiReplicaSpecs"]["Launcher"]["template"]["spec"]
        ["containers"][0]["command"];
    let line = launcher
        .as_array()
        .unwrap()
        .iter()
        .map(|word| word.as_str().unwrap())
        .collect::<Vec<_>>()
        .join(" ");
    // HCOLL off, TCP for what is left to MPI, the management interface for both (NVIDIA/nccl#1564);
    // of the page's variables the HCAs are derived with `=` for whole names, and UCX keeps off the
    // RDMA devices.
    assert_eq!(
        line,
        "mpirun --allow-run-as-root -np 16 -bind-to none -mca coll_hcoll_enable 0 -mca btl \
         tcp,self -mca btl_tcp_if_include eth0 -mca oob_tcp_if_include eth0 -x NCCL_DEBUG=INFO -x \
         NCCL_SOCKET_IFNAME==eth0 -x UCX_NET_DEVICES=eth0 -x \
         NCCL_IB_HCA==mlx5_0,mlx5_1,mlx5_2,mlx5_3,mlx5_4,mlx5_5,mlx5_6,mlx5_7 -x \
         NCCL_IB_ADDR_FAMILY=AF_INET -x NCCL_IB_ROCE_VERSION_NUM=2 -x NCCL_IB_TC=104 -x \
         NCCL_CROSS_NIC=0 /opt/all_reduce_perf -b 8 -e 8G -f 2 -g 1 -c 1 -n 20"
    );
    for argument in document["arguments"].as_array().unwrap() {
        for key in ["reason", "cost", "source"] {
            assert!(
                argument[key].as_str().is_some_and(|text| !text.is_empty()),
                "{argument} has no {key}"
            );
        }
    }
    let hcoll = document["arguments"]
        .as_array()
        .unwrap()
        .iter()
        .find(|one| one["words"][1] == "coll_hcoll_enable")
        .unwrap();
    assert!(
        hcoll["cost"]
            .as_str()
            .unwrap()
            .contains("programs that are MPI alone may be slower; NCCL uses MPI to start only"),
        "{hcoll}"
    );
    // With the network of the host the management interface is the inventory's, and sshd has a port
    // of its own.
    let host = rendered(
        &place,
        &with(
            &["job", "render", "nccl-test"],
            "-i inv --image own/nccl-tests:1 --host-network",
        ),
    );
    let spec = &host["objects"][0]["spec"]["mpiReplicaSpecs"];
    let words = spec["Launcher"]["template"]["spec"]["containers"][0]["command"].to_string();
    assert!(
        words.contains(r#""btl_tcp_if_include","bond0.20""#)
            && words.contains(r#""plm_rsh_args","-o ConnectionAttempts=10 -p 2222""#),
        "{words}"
    );
    assert_eq!(
        spec["Worker"]["template"]["spec"]["containers"][0]["command"],
        json!(["/usr/sbin/sshd", "-De", "-p", "2222"])
    );
    assert_eq!(value_of(&host, "NCCL_SOCKET_IFNAME"), Some("=bond0.20"));
}

/// A program in the place of NCCL's test that needs no GPU: a process in each worker, and no GPU
/// asked for.
#[test]
fn a_program_without_gpus() {
    let place = place(ROCE);
    let words = with(
        &["job", "render", "nccl-test"],
        "-i inv --image own/ring:1 --gpus 0 --host-network",
    );
    let document = rendered(
        &place,
        &[&words[..], &["--program", "ring_all_reduce"]].concat(),
    );
    let spec = &document["objects"][0]["spec"];
    let launcher =
        spec["mpiReplicaSpecs"]["Launcher"]["template"]["spec"]["containers"][0]["command"]
            .to_string();
    assert!(
        launcher.contains(r#""-np","2""#)
            && launcher
                .ends_with(r#""ring_all_reduce","-b","8","-e","8G","-f","2","-c","1","-n","20"]"#)
    );
    assert_eq!(spec["slotsPerWorker"], 1);
    let worker = &spec["mpiReplicaSpecs"]["Worker"]["template"]["spec"];
    assert_eq!(
        worker["containers"][0]["resources"]["limits"],
        json!({ "rdma/rdma_shared_device_a": 1, "rdma/rdma_shared_device_b": 1 })
    );
    assert!(
        worker["affinity"]["podAntiAffinity"].is_object(),
        "nothing else keeps two of them off one host: {worker}"
    );
    let np = &document["arguments"]
        .as_array()
        .unwrap()
        .iter()
        .find(|one| one["words"][0] == "-np")
        .unwrap()["reason"];
    assert_eq!(
        np,
        "one process for each worker, as the program needs no GPU"
    );
    // NCCL's own tests are refused as before.
    let said = place.run(&words);
    assert!(
        said.contains("RW1229") && said.contains("--gpus 0 is for a --program that needs none"),
        "{said}"
    );
}

/// A launcher on the host of a worker takes that for itself, by its address: without the argument a
/// rank would run in its container.
#[test]
fn a_launcher_with_the_network_of_its_host_is_no_worker() {
    let place = place(ROCE);
    let launcher = |options: &str| {
        let document = rendered(&place, &with(&["job", "render", "nccl-test"], options));
        document["objects"][0]["spec"]["mpiReplicaSpecs"]["Launcher"]["template"]["spec"]["containers"][0]["command"].to_string()
    };
    let argument = r#""-mca","if_base_do_not_resolve","1""#;
    assert!(launcher("-i inv --image a/b:1 --host-network").contains(argument));
    assert!(!launcher("-i inv --image a/b:1").contains(argument));
}

/// Interfaces that the spec names take the place of those that are left out because it names none:
/// mpirun takes one of both.
#[test]
fn interfaces_of_the_spec_take_the_place_of_those_left_out() {
    let unnamed = ROCE
        .lines()
        .filter(|line| !line.contains("management:"))
        .collect::<Vec<_>>()
        .join("\n");
    let line = |spec: &str| {
        let document = rendered(
            &place(spec),
            &with(
                &["job", "render", "nccl-test"],
                "-i inv --image a/b:1 --host-network",
            ),
        );
        document["objects"][0]["spec"]["mpiReplicaSpecs"]["Launcher"]["template"]["spec"]["containers"][0]["command"].to_string()
    };
    assert!(line(&format!("{unnamed}\n")).contains("btl_tcp_if_exclude"));
    let options = "-mca coll_hcoll_enable 0 -mca btl tcp,self -mca btl_tcp_if_include eno9 -mca \
                   oob_tcp_if_include eno9";
    let named = line(&format!(
        "{unnamed}\njobs: {{ mpi_options: \"{options}\" }}\n"
    ));
    assert!(
        named.contains(r#""btl_tcp_if_include","eno9""#)
            && named.contains(r#""oob_tcp_if_include","eno9""#),
        "{named}"
    );
    assert!(!named.contains("if_exclude"), "{named}");
}

#[test]
fn what_is_printed_is_what_json_has() {
    let place = place(ROCE);
    for options in [
        "nccl-test --image a/b:1 --on gpu1",
        "perftest-pods --image a/b:1 --on gpu[1-2]",
        "pytorch --image a/b:1 --name a --tensorboard run",
    ] {
        let words = with(&["job", "render"], options);
        let words = [&words[..3], &["-i", "inv"], &words[3..]].concat();
        let text = String::from_utf8(place.command(&words).output().unwrap().stdout).unwrap();
        let document = rendered(&place, &words);
        let objects: Vec<Value> = text.split("\n---\n").map(yaml).collect();
        assert_eq!(Value::from(objects), document["objects"], "{text}");
    }
}

#[test]
fn traffic_between_two_pods_on_two_nodes() {
    let place = place(ROCE);
    let document = rendered(
        &place,
        &with(
            &["job", "render", "perftest-pods"],
            "-i inv --image own/perftest:1 --host-network --on gpu[1-2]",
        ),
    );
    let objects = document["objects"].as_array().unwrap();
    let script = |object: &Value| {
        object["spec"]["template"]["spec"]["containers"][0]["command"][2]
            .as_str()
            .unwrap()
            .to_owned()
    };
    // the class of the fabric, as in every other job
    assert_eq!(
        script(&objects[1]),
        "d='mlx5_0'\n\
         set -- -d \"$d\" '-F' '--report_gbits' '-D' '10' '-p' '18515' '--tclass=104'\n\
         ib_write_bw \"$@\""
    );
    assert!(
        script(&objects[2]).contains("ib_write_bw \"$@\" 'perftest.default'"),
        "the one that sends names the other"
    );
    let affinity = &objects[2]["spec"]["template"]["spec"]["affinity"];
    assert_eq!(
        affinity["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"][0]["topologyKey"],
        "kubernetes.io/hostname"
    );
    let terms = &affinity["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"];
    assert_eq!(terms[1]["matchFields"][0]["values"][0], "gpu2");
    for object in &objects[1..] {
        let checked = std::process::Command::new("sh")
            .args(["-n", "-c", &script(object)])
            .status()
            .unwrap();
        assert!(checked.success(), "{}", script(object));
    }
}

#[test]
fn reasons_and_costs() {
    let place = place(ROCE);
    let words = with(
        &["job", "render", "nccl-test"],
        "-i inv --image own/nccl-tests:1 --host-network --env NCCL_IB_TIMEOUT=23 --explain",
    );
    let said = place.run(&words);
    assert!(
        said.lines().skip(1).all(|line| line.chars().count() <= 100),
        "{said}"
    );
    insta::assert_snapshot!(said);
}

#[test]
fn what_you_set_wins_and_is_evaluated() {
    let place = place(ROCE);
    let options = "-i inv --image own/nccl-tests:1 --host-network --env NCCL_NET_GDR_LEVEL=1 --env \
                   NCCL_IB_TC=26 --env NCCL_IB_RETRY_CNT=10 --env NCCL_IB_TIMEOT=23 --env \
                   NCCL_CROSS_NIC=5";
    insta::assert_snapshot!(place.run(&with(&["job", "render", "nccl-test"], options)));
    let document = rendered(&place, &with(&["job", "render", "nccl-test"], options));
    assert_eq!(
        (
            document["lawful"].clone(),
            value_of(&document, "NCCL_IB_TC")
        ),
        (json!(false), Some("26"))
    );
}

#[test]
fn the_musts_of_p16en_need_a_waiver() {
    let words = "-i inv --image a/b:1 --name a --model P16EN --compute-class gpu-hpn --gpus 4 \
                 --env NCCL_IB_DISABLE=0 --env NCCL_IB_HCA=mlx5";
    let words = with(&["job", "render", "acs"], words)
        .into_iter()
        .chain(["--", "run"])
        .collect::<Vec<_>>();
    let found = |place: &Place| {
        let document = rendered(place, &words);
        let codes = |key: &str| {
            document[key]
                .as_array()
                .unwrap()
                .iter()
                .map(|one| one["code"].as_str().unwrap().to_owned())
                .collect::<Vec<_>>()
        };
        (
            codes("findings"),
            codes("waived"),
            document["lawful"].as_bool().unwrap(),
        )
    };
    let musts = ["RW2803", "RW2804"].map(str::to_owned).to_vec();
    assert_eq!(found(&place(ACS)), (musts.clone(), vec![], false));
    let waive =
        |code: &str| format!("{{ code: {code}, reason: a trial, owner: us, until: 2026-12-31 }}");
    let waived = format!(
        "{ACS}rules: {{ waive: [{}, {}] }}\n",
        waive("RW2803"),
        waive("RW2804")
    );
    assert_eq!(found(&place(&waived)), (vec![], musts, true));
}

#[test]
fn the_empty_value_of_the_table_is_kept() {
    let place = place(ACS);
    let words = with(
        &["job", "render", "acs"],
        "-i inv --image a/b:1 --name a --model P16EN -- run",
    );
    let document = rendered(&place, &words);
    let environment = &document["objects"][0]["spec"]["template"]["spec"]["containers"][0]["env"];
    assert!(
        environment
            .as_array()
            .unwrap()
            .contains(&json!({ "name": "NCCL_IB_HCA", "value": "" })),
        "{environment}"
    );
    // the one number of GPUs with which its pods have RDMA
    assert_eq!(
        document["objects"][0]["spec"]["template"]["spec"]["containers"][0]["resources"]["limits"]
            ["nvidia.com/gpu"],
        16
    );
    // reserved capacity is found by the label of its node
    let words = with(
        &["job", "render", "acs"],
        "-i inv --image a/b:1 --name a --model P16EN --compute-class gpu-hpn --gpus 2 -- run",
    );
    let document = rendered(&place, &words);
    let template = &document["objects"][0]["spec"]["template"];
    assert_eq!(
        template["spec"]["nodeSelector"],
        json!({ "alibabacloud.com/gpu-model-series": "P16EN" })
    );
    assert_eq!(
        template["metadata"]["labels"]["alibabacloud.com/gpu-model-series"],
        Value::Null
    );
}

#[test]
fn gpus_that_cannot_have_rdma_are_refused() {
    let place = place(ACS);
    let words = with(
        &["job", "render", "acs"],
        "-i inv --image a/b:1 --name a --model GU8TF --gpus 4 -- run",
    );
    insta::assert_snapshot!(place.run(&words));
}

/// Each rule about jobs, broken from the command line.
#[test]
fn rules_about_jobs_are_asked() {
    let ray = "--image rayproject/ray:2.40.0";
    let torch = "--image own/torch:1 --name a --nproc-per-node 2 --device aliyun/erdma=1";
    let cases = [
        (
            "RW3001",
            ERDMA,
            "pytorch",
            "--image kube-ai-registry.cn-shanghai.cr.aliyuncs.com/kube-ai/pytorch:mnist-example \
             --name a run"
                .to_owned(),
        ),
        (
            "RW3002",
            ERDMA,
            "pytorch",
            "--image own/torch:1 --name a --device aliyun/erdma=2 run".to_owned(),
        ),
        ("RW3003", ERDMA, "pytorch", format!("{torch} --gpus 1 run")),
        (
            "RW3004",
            ROCE,
            "ray",
            format!("{ray} --ray-version 2.9.0 --host-network"),
        ),
        (
            "RW3006",
            ERDMA,
            "pytorch",
            "--image own/torch:1 --name a --without-rdma run".to_owned(),
        ),
        ("RW3007", ROCE, "ray", ray.to_owned()),
        (
            "RW3009",
            ERDMA,
            "pytorch",
            "--image own/torch:1 --name a --env NCCL_SOCKET_IFNAME==bond0 run".to_owned(),
        ),
        (
            "RW3008",
            ERDMA,
            "pytorch",
            "--image own/torch:1 --name a --rdma run".to_owned(),
        ),
    ];
    for (code, spec, kind, options) in cases {
        let place = place(spec);
        let document = rendered(
            &place,
            &with(&["job", "render", kind, "-i", "inv"], &options),
        );
        let codes: Vec<&str> = document["findings"]
            .as_array()
            .unwrap()
            .iter()
            .map(|one| one["code"].as_str().unwrap())
            .collect();
        assert_eq!(codes, [code], "{kind} {options}");
    }
    // and kept: none of them is told
    let document = rendered(
        &place(ERDMA),
        &with(
            &["job", "render", "perftest-pods", "-i", "inv"],
            "--image own/perftest:1",
        ),
    );
    assert_eq!(document["findings"], json!([]));
}

#[test]
fn a_template_of_ones_own_is_held_to_the_rules() {
    let own = "apiVersion: v1\n\
               kind: Pod\n\
               metadata: { name: {{ pod.name | json }} }\n\
               spec:\n  containers:\n    - name: own\n      image: {{ pod.image | json }}\n      resources: { requests: { nvidia.com/gpu: 8, cpu: 4 }, limits: \
               { nvidia.com/gpu: 4, cpu: 4 } }\n";
    let place = place(ERDMA);
    place.write("inv/modules/jobs/perftest-pods.yaml.tera", own);
    let words = with(
        &["job", "render", "perftest-pods"],
        "-i inv --image a/b:1 --without-rdma --device aliyun/erdma=1",
    );
    assert!(
        place.run(&words).ends_with("--- exit 64 ---\n"),
        "both make no sense together"
    );
    insta::assert_snapshot!(
        "unequal",
        place.run(&with(
            &["job", "render", "perftest-pods"],
            "-i inv --image a/b:1"
        ))
    );
    place.write(
        "inv/modules/jobs/perftest-pods.yaml.tera",
        own.replace("pod.image", "pod.imag"),
    );
    insta::assert_snapshot!(
        "unknown_name",
        place.run(&with(
            &["job", "render", "perftest-pods"],
            "-i inv --image a/b:1"
        ))
    );
    place.write("inv/modules/jobs/perftest-pods.yaml.tera", "kind: Pod\n");
    insta::assert_snapshot!(
        "no_object",
        place.run(&with(
            &["job", "render", "perftest-pods"],
            "-i inv --image a/b:1"
        ))
    );
}

#[test]
fn a_line_of_arena_that_cannot_be_translated() {
    let place = Place::new();
    let said: Vec<String> = [
        "arena submit pytorch --name=a --image=b --devise=aliyun/erdma=1 run",
        "arena submit pytorch --name=a --image=b --sync-mode=git run",
        "arena submit pytorch --name=a --image=b --gpus=two run",
        "arena submit mpijob --name=a",
        "arena submit pytorch --name=a --image=$IMAGE run",
        "arena submit pytorch --name=A_b --image=b --env 1X=2 --device=aliyun/erdma=0 \"torchrun \
         x\"",
        "arena submit pytorch --name=a --image=b run\nrm -r data",
        "arena submit pytorch --name=a --image=b ru\u{7}n",
        "arena submit pytorch --name=a --image=b --label=team=a/b --selector=-x=1 \
         --annotation=y=a/b --data=A:/data --priority=high run",
    ]
    .iter()
    .map(|line| place.run(&["job", "from-arena", line]))
    .collect();
    insta::assert_snapshot!(said.join("\n"));
}

#[test]
fn what_does_not_go_with_the_fabric_is_refused_at_its_words() {
    let acs = place(ACS);
    let mut said: Vec<String> = [
        "ray -i inv --image rayproject/ray:2.40.0",
        "acs -i inv --name a --image own/torch:1 --model GU8TF --gpus 8 --host-network --network \
         rails --device rdma/hca=1 -- run",
    ]
    .iter()
    .map(|words| acs.run(&with(&["job", "render"], words)))
    .collect();
    let erdma = place(ERDMA);
    let asked =
        "pytorch -i inv --name a --image own/torch:1 --nproc-per-node 1 --env NCCL_IB_HCA=mlx4_0";
    said.extend(
        [asked, &format!("{asked} --env NCCL_IB_HCA=erdma_0")]
            .map(|words| erdma.run(&with(&["job", "render"], &format!("{words} run")))),
    );
    insta::assert_snapshot!(said.join("\n"));
    let without = with(
        &["job", "render", "ray", "-i", "inv"],
        "--image rayproject/ray:2.40.0 --gpus 1 --without-rdma",
    );
    assert!(acs.run(&without).ends_with("--- exit 0 ---\n"));
}

/// Words that the test does not take, objects that no API server takes, pods that find no room:
/// each is refused at its word.
#[test]
fn what_cannot_run_is_not_rendered() {
    let roce = place(ROCE);
    let nccl = "nccl-test -i inv --image own/nccl:1 --host-network";
    let pytorch = "pytorch -i inv --name a --image own/torch:1 --nproc-per-node 8";
    for (words, code, caret) in [
        (format!("{nccl} --from abc"), "RW1300", "--from=abc"),
        (format!("{nccl} --from 9G"), "RW1300", "--from=9G"),
        (format!("{nccl} --to 8X"), "RW1300", "--to=8X"),
        (format!("{nccl} --turns 0"), "RW1300", "--turns=0"),
        (
            format!("{nccl} --workers 4 --on gpu[1-2]"),
            "RW1232",
            "--workers=4",
        ),
        (
            "perftest-pods -i inv --image own/perftest:1 --on gpu1".to_owned(),
            "RW1229",
            "perftest-pods",
        ),
        (
            format!("{pytorch} -d data:/x -d more:/x run"),
            "RW1221",
            "two claims are mounted at /x",
        ),
        (
            format!("{pytorch} -d data:/x -d data:/y run"),
            "RW1221",
            "the claim data is mounted twice",
        ),
        (
            format!("{pytorch} --data-dir / run"),
            "RW1221",
            "hides the whole root",
        ),
        (
            "ray -i inv --image own/ray:1 --ray-version abc".to_owned(),
            "RW1221",
            "--ray-version=abc",
        ),
        (
            "ray -i inv --image “own/ray:1” --ray-version 2.40.0".to_owned(),
            "RW1221",
            "cannot be an image",
        ),
        (
            format!("{pytorch} --toleration gpu:Never run"),
            "RW1221",
            "--toleration=gpu:Never",
        ),
        (
            format!("{nccl} --network Fast_Net"),
            "RW1221",
            "--network=Fast_Net",
        ),
        (
            "perftest-pods -i inv --image own/perftest:1 --rdma-device mlx5/0".to_owned(),
            "RW1221",
            "--rdma-device=mlx5/0",
        ),
    ] {
        let said = roce.run(&with(&["job", "render"], &words));
        assert!(
            said.contains(&format!("error {code}"))
                && said.contains(caret)
                && said.ends_with("--- exit 1 ---\n"),
            "{words}: {said}"
        );
    }
    // A cluster may have nodes that the spec does not know.
    let open = rendered(
        &roce,
        &with(
            &["job", "render", "nccl-test"],
            "-i inv --image own/nccl:1 --host-network --workers 4",
        ),
    );
    assert_eq!(
        (
            &open["findings"][0]["code"],
            &open["findings"][0]["severity"]
        ),
        (&json!("RW1232"), &json!("warning"))
    );
    let dash = roce.run(&[
        "job",
        "from-arena",
        "arena submit pytorch –name=a --image=b run",
    ]);
    assert!(
        dash.contains("begins with a dash that is no hyphen"),
        "{dash}"
    );
}

/// A shell of the pod reads the command: a word that it would cut is put in quotes, and what it is
/// to read stays.
#[test]
fn several_words_are_one_command() {
    let place = place(ERDMA);
    let command = |words: &[&str]| {
        let start = with(
            &["job", "render", "pytorch"],
            "-i inv --name a --image own/torch:1 --nproc-per-node 1 --",
        );
        let document = rendered(&place, &[&start[..], words].concat());
        document["objects"][0]["spec"]["pytorchReplicaSpecs"]["Master"]["template"]["spec"]["containers"][0]["command"][2].clone()
    };
    assert_eq!(
        command(&["python", "-c", "print(\"a b\")"]),
        json!("python -c 'print(\"a b\")'")
    );
    assert_eq!(
        command(&["torchrun", "--master_addr=$MASTER_ADDR", "a.py"]),
        json!("torchrun --master_addr=$MASTER_ADDR a.py")
    );
    assert_eq!(
        command(&["cd /x && torchrun a.py"]),
        json!("cd /x && torchrun a.py")
    );
}

#[test]
fn a_refused_variable_of_the_command_line_has_its_caret_there() {
    let place = place(&format!(
        "{ERDMA}jobs: {{ environment: {{ NCCL_DEBUG: INFO }} }}\n"
    ));
    let words = with(
        &["job", "render", "pytorch", "-i", "inv"],
        "--name a --image own/torch:1 --nproc-per-node 1 --env NCCL_IB_DISABLE=1 run",
    );
    let said = place.run(&words);
    assert!(said.contains("command line:1:"), "{said}");
}

#[test]
fn workers_of_less_than_a_host_come_onto_hosts_of_their_own() {
    let place = place(ROCE);
    let affinity = |options: &str| {
        let document = rendered(
            &place,
            &with(
                &["job", "render", "nccl-test", "-i", "inv"],
                &format!("--image own/nccl-tests:1 {options}"),
            ),
        );
        document["objects"][0]
            .pointer("/spec/mpiReplicaSpecs/Worker/template/spec/affinity/podAntiAffinity")
            .cloned()
    };
    let term = json!({
        "labelSelector": { "matchLabels": { "training.kubeflow.org/job-name": "nccl-test", "training.kubeflow.org/job-role": "worker" } },
        "topologyKey": "kubernetes.io/hostname",
    });
    assert_eq!(
        affinity("--gpus 1"),
        Some(json!({ "requiredDuringSchedulingIgnoredDuringExecution": [term] }))
    );
    assert_eq!(
        [
            affinity("--gpus 8"),
            affinity("--gpus 1 --workers 1"),
            affinity("--gpus 1 --workers 3")
        ],
        [None, None, None]
    );
}

#[test]
fn what_the_spec_does_not_tell_is_said() {
    let pci = ROCE.replace(
        "rdma_stack: { flavour: doca, version: 3.2.1 }",
        "rdma_stack: { flavour: inbox }",
    );
    let words = with(
        &["job", "render", "nccl-test"],
        "-i inv --image own/nccl-tests:1 --host-network",
    );
    let document = rendered(&place(&pci), &words);
    assert_eq!(
        value_of(&document, "NCCL_IB_HCA"),
        None,
        "nothing is guessed"
    );
    assert_eq!(document["findings"][0]["code"], "RW1224");
    let named = rendered(
        &place(&pci),
        &[&words[..], &["--env", "NCCL_IB_HCA==rocep1s0,rocep2s0"]].concat(),
    );
    assert_eq!(
        (value_of(&named, "NCCL_IB_HCA"), named["findings"].clone()),
        (Some("=rocep1s0,rocep2s0"), json!([]))
    );
    // Soft-RoCE has the name of its netdev only where udev keeps it.
    let soft = "cluster: jobs\n\
                fabric: { kind: rocev2 }\n\
                ssh: none\n\
                nodes:\n  - { name: \"gpu[1-2]\", os: debian-12, gpu: { model: L20, count: 1 }, nics: { \
                model: soft-roce, rails: 2, netdev: \"ens{rail}f0np0\" NAMING } }\n\
                kubernetes: { rdma: { plugin: shared, resources: { rails: rail 0-1 } } }\n";
    let rendered_soft = |naming: &str| rendered(&place(&soft.replace("NAMING", naming)), &words);
    let (unknown, kept) = (
        rendered_soft(""),
        rendered_soft(", naming: { rdma: kernel }"),
    );
    assert_eq!(
        (
            value_of(&unknown, "NCCL_IB_HCA"),
            &unknown["findings"][0]["code"]
        ),
        (None, &json!("RW1224"))
    );
    assert_eq!(
        value_of(&kept, "NCCL_IB_HCA"),
        Some("=rxe_ens0f0np0,rxe_ens1f0np0")
    );
    // NCCL before 2.21 looks for no address by itself
    let old = place(&format!("{ROCE}jobs: {{ nccl: 2.18.3 }}\n"));
    let document = rendered(&old, &words);
    assert_eq!(
        (
            value_of(&document, "NCCL_IB_GID_INDEX"),
            value_of(&document, "NCCL_IB_ADDR_FAMILY")
        ),
        (Some("3"), None)
    );
    let unknown = rendered(
        &place(&ERDMA.replace("kubernetes:", "jobs: { nccl: 2.18.3 }\nkubernetes:")),
        &with(&["job", "render", "nccl-test"], "-i inv --image a/b:1"),
    );
    assert_eq!(unknown["findings"][0]["code"], "RW1225");
    let differs = place(&format!(
        "{}  - {{ name: big, os: alinux-3, gpu: {{ model: L20, count: 8 }} }}\n",
        ERDMA.split("kubernetes").next().unwrap()
    ));
    let said = differs.run(&words);
    assert!(
        said.contains("RW1229")
            && said.contains("--gpus N, or name identical hosts with --on HOSTS"),
        "{said}"
    );
}

#[test]
fn what_the_spec_says_of_mpirun_goes_before_what_is_ours() {
    let options = "jobs: \
                   { mpi_options: \"--mca coll_hcoll_enable 1 --mca btl_base_verbose -1 -x A=1 -x B=2 --bind-to numa\" }\n";
    let place = place(&format!("{ROCE}{options}"));
    let document = rendered(
        &place,
        &with(
            &["job", "render", "nccl-test"],
            "-i inv --image a/b:1 --host-network",
        ),
    );
    let words: Vec<String> = document["arguments"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| {
            one["words"]
                .as_array()
                .unwrap()
                .iter()
                .map(|word| word.as_str().unwrap())
                .collect::<Vec<_>>()
                .join(" ")
        })
        .collect();
    for word in [
        "--mca coll_hcoll_enable 1",
        "--mca btl_base_verbose -1",
        "-x A=1",
        "-x B=2",
        "--bind-to numa",
        "-mca btl tcp,self",
        "-np 16",
    ] {
        assert!(words.iter().any(|words| words == word), "{word}: {words:?}");
    }
    assert!(
        !words
            .iter()
            .any(|words| words == "-mca coll_hcoll_enable 0" || words == "-bind-to none"),
        "{words:?}"
    );
    let codes: Vec<&str> = document["findings"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["code"].as_str().unwrap())
        .collect();
    assert_eq!(codes, ["RW2710"], "and is judged");
    let open = self::place(&format!(
        "{ROCE}jobs: {{ mpi_options: \"--mca btl 'tcp\" }}\n"
    ));
    assert!(
        open.run(&with(
            &["job", "render", "nccl-test"],
            "-i inv --image a/b:1"
        ))
        .contains("error RW1222: a quote is not closed")
    );
}

#[test]
fn virtual_functions_have_names_that_nobody_knows_yet() {
    let place = place(&ROCE.replace(
        "plugin: shared, resources: \
         { rdma_shared_device_a: rail 0-3, rdma_shared_device_b: rail 4-7 }",
        "plugin: sriov, max: 8, resources: { rails: rail 0-7 }",
    ));
    let document = rendered(
        &place,
        &with(
            &["job", "render", "nccl-test"],
            "-i inv --image a/b:1 --network rails --device nvidia.com/rails=8",
        ),
    );
    assert_eq!(
        value_of(&document, "NCCL_IB_HCA"),
        None,
        "those of the ports are not in the pod"
    );
    let codes: Vec<&str> = document["findings"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["code"].as_str().unwrap())
        .collect();
    assert_eq!(
        codes,
        ["RW1224"],
        "eight functions are eight devices, and no finding"
    );
    let worker =
        &document["objects"][0]["spec"]["mpiReplicaSpecs"]["Worker"]["template"]["metadata"];
    assert_eq!(
        worker["annotations"]["k8s.v1.cni.cncf.io/networks"],
        "rails"
    );
}

#[test]
fn every_variable_of_a_job_is_in_the_catalogue() {
    let place = place(ROCE);
    let mut seen = BTreeSet::new();
    for options in [
        "nccl-test -i inv --image a/b:1",
        "pytorch -i inv --image a/b:1 --name a --nproc-per-node 8 run",
    ] {
        let document = rendered(&place, &with(&["job", "render"], options));
        for variable in document["environment"].as_array().unwrap() {
            assert!(
                variable["meaning"].is_string()
                    && variable["cost"].is_string()
                    && variable["source"].is_string(),
                "{variable}"
            );
            seen.insert(variable["name"].as_str().unwrap().to_owned());
        }
    }
    assert!(seen.contains("PET_NPROC_PER_NODE") && seen.contains("NCCL_IB_TC"));
    insta::assert_snapshot!(place.run(&["catalog", "variable", "NCCL_IB_TIMEOUT"]));
}

/// What comes by a pipe is read like an argument, and who asks for JSON gets it of a refusal as
/// well.
#[test]
fn a_line_of_arena_comes_by_a_pipe_and_a_refusal_is_json_too() {
    let place = place(ROCE);
    let piped = |text: &[u8], words: &[&str]| {
        place.write("line", text);
        let input = std::fs::File::open(place.path().join("line")).unwrap();
        place
            .command(words)
            .stdin(std::process::Stdio::from(input))
            .output()
            .unwrap()
    };
    let line = "arena submit pytorch --name=a --image=b/c:1 --workers=2 --device=aliyun/erdma=1 \
                \\\n  --gpus=1 'torchrun x'\n";
    let output = piped(line.as_bytes(), &["job", "from-arena", "-"]);
    let argument = place
        .command(&["job", "from-arena", line])
        .output()
        .unwrap();
    assert!(
        output.status.success() && !output.stdout.is_empty(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    assert_eq!(output.stdout, argument.stdout);
    for unread in [&b"\xff"[..], &[b'a'; (256 << 10) + 1]] {
        let output = piped(unread, &["job", "from-arena", "-"]);
        assert!(
            String::from_utf8_lossy(&output.stderr)
                .contains("RW1222: the standard input cannot be read as a line")
        );
    }

    let refused = |words: &[&str]| {
        let output = place.command(words).output().unwrap();
        let said: Value = serde_json::from_slice(&output.stdout)
            .unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&output.stderr)));
        holds("refused-job", &said);
        assert_eq!(
            (&said["lawful"], output.status.code(), output.stderr.len()),
            (&json!(false), Some(1), 0),
            "{said}"
        );
        let codes = said["findings"].as_array().unwrap().iter();
        codes
            .map(|one| one["code"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(
        refused(&[
            "job",
            "from-arena",
            "--json",
            "arena submit mpijob --name=a"
        ]),
        ["RW1223"]
    );
    let ray = |options: &'static str| {
        with(
            &[
                "job",
                "render",
                "ray",
                "--json",
                "-i",
                "inv",
                "--image",
                "rayproject/ray:2.40.0",
            ],
            options,
        )
    };
    assert_eq!(refused(&ray("--cpu x --memory 8GB")), ["RW1221", "RW1221"]);
    assert_eq!(refused(&ray("--gpus 9")), ["RW1221"]);
    assert_eq!(refused(&ray("--env A")), ["RW1221"]);
    assert_eq!(
        refused(&with(
            &[
                "job", "render", "ray", "--json", "-i", "none", "--image", "a"
            ],
            ""
        ))
        .len(),
        1
    );
    let pair = with(
        &["job", "render", "compare"],
        "nccl-test --json -i inv --image a/b:1 --without-rdma",
    );
    assert_eq!(refused(&pair), ["RW1251"]);
}

/// Of a host with eight GPUs no pod gets nine.
#[test]
fn no_pod_asks_for_more_gpus_than_a_host_has() {
    let place = place(ROCE);
    let said = place.run(&with(
        &["job", "render", "ray"],
        "-i inv --image rayproject/ray:2.40.0 --host-network --gpus 9",
    ));
    assert!(
        said.contains("a pod asks for 9 GPUs, and no host that it may run on has more than 8"),
        "{said}"
    );
    assert!(
        said.contains("RW1221") && said.contains("--gpus=9") && said.ends_with("--- exit 1 ---\n"),
        "{said}"
    );
    // Parts of a GPU have a resource of their own.
    let parts = "-i inv --image rayproject/ray:2.40.0 --host-network --gpus 9 --gpu-resource \
                 nvidia.com/mig-1g.10gb";
    assert!(
        place
            .run(&with(&["job", "render", "ray"], parts))
            .ends_with("--- exit 0 ---\n")
    );
}
