//! Every rule about the cluster as a whole with a spec that breaks it: the code, and what stands
//! under the caret.

use crate::spec::{Problems, SourceFile, load_spec};
use railwright_base::Diagnostic;

pub(super) fn problems(text: &str) -> (Vec<Diagnostic>, String) {
    let text = format!("cluster: lab\n{text}");
    let found = match load_spec(vec![SourceFile {
        name: "c.yaml".into(),
        text: text.clone(),
    }]) {
        Ok(loaded) => loaded.warnings,
        Err(Problems { diagnostics, .. }) => diagnostics,
    };
    (found, text)
}

/// `CODE caret` of each finding.
pub(super) fn check(text: &str, expected: &[(&str, &str)]) {
    let (found, text) = problems(text);
    let found: Vec<(&str, &str)> = found
        .iter()
        .map(|d| {
            (
                &*d.code,
                d.labels.first().map_or("", |l| &text[l.span.clone()]),
            )
        })
        .collect();
    assert_eq!(found, expected, "{text}");
    // Whoever reads this at night must learn what to do.
    assert!(
        problems(text.strip_prefix("cluster: lab\n").unwrap())
            .0
            .iter()
            .all(|d| !d.next.is_empty() || d.code == "RW0106"),
        "{text}"
    );
}

#[test]
fn fabric() {
    check(
        "fabric: { mtu: 9000, kind: rocev2, lossless: { priority: 3, dscp: 26, cnp: \
         { priority: 6, dscp: 48 } } }",
        &[],
    );
    check("fabric: { mtu: 67 }", &[("RW0112", "67")]);
    check("fabric: { mtu: 9979 }", &[("RW0112", "9979")]);
    check(
        "fabric: { kind: infiniband, lossless: { priority: 3, dscp: 26 } }",
        &[("RW0113", "lossless")],
    );
    check(
        "fabric: { kind: rocev2, lossless: { priority: 8, dscp: 64 } }",
        &[("RW0113", "8"), ("RW0113", "64")],
    );
    check(
        "fabric: { kind: rocev2, lossless: { priority: 3, dscp: 26, bandwidth_percent: 100 } }",
        &[("RW0113", "100")],
    );
    check(
        "fabric: { kind: rocev2, lossless: { priority: 3, dscp: 26, cable_length_m: 40 } }",
        &[],
    );
    check(
        "fabric: { kind: rocev2, lossless: { priority: 3, dscp: 26, cable_length_m: 1000 } }",
        &[("RW0113", "1000")],
    );
    check(
        "fabric: { kind: rocev2, lossless: { priority: 3, dscp: 26, cnp: { priority: 3, dscp: 26 } \
         } }",
        &[("RW0113", "3"), ("RW0113", "26")],
    );
}

#[test]
fn supply() {
    let repository = |keys: &str| format!("repositories: [{{ name: lab, key: k.asc, {keys} }}]");
    for (keys, expected) in [
        ("url: 'https://x/', suite: ./", &[][..]),
        (
            "url: 'https://x/', suite: bookworm, components: [main]",
            &[],
        ),
        ("url: 'https://x/'", &[]),
        ("url: 'ftp://x/'", &[("RW0118", "'ftp://x/'")]),
        ("url: 'https://x/ evil'", &[("RW0118", "'https://x/ evil'")]),
        (
            "url: 'https://x/', suite: bookworm",
            &[("RW0118", "bookworm")],
        ),
        (
            "url: 'https://x/', suite: 'a b', components: [main]",
            &[("RW0118", "'a b'")],
        ),
        (
            "url: 'https://x/', suite: ./, components: [main]",
            &[("RW0118", "components")],
        ),
        (
            "url: 'https://x/', components: [main]",
            &[("RW0118", "components")],
        ),
        (
            "url: 'https://x/', suite: s, components: [main, '']",
            &[("RW0118", "''")],
        ),
        ("url: 'https://x/', priority: 0", &[("RW0118", "0")]),
    ] {
        check(&repository(keys), expected);
    }
    check(
        "repositories: [{ name: a/b, key: '', url: 'https://x/' }]",
        &[("RW0118", "a/b"), ("RW0118", "''")],
    );
    check(
        "repositories: [{ name: a, key: k, url: 'https://x/' }, \
         { name: a, key: k, url: 'https://y/' }]",
        &[("RW0118", "a")],
    );
    for (secret, expected) in [
        ("t: { env: TOKEN }", &[][..]),
        ("t: {}", &[("RW0117", "t")]),
        ("t: { env: A, file: b }", &[("RW0117", "t")]),
        ("t: { env: 1A }", &[("RW0117", "1A")]),
        ("t: { file: '' }", &[("RW0117", "''")]),
        ("t: { command: [] }", &[("RW0117", "command")]),
        ("a.b: { env: A }", &[("RW0117", "a.b")]),
    ] {
        check(&format!("secrets:\n  {secret}"), expected);
    }
}

#[test]
fn operation() {
    for (rollout, expected) in [
        ("max_unavailable: 2", &[][..]),
        ("max_unavailable: 25%", &[]),
        ("max_unavailable: 24%", &[("RW0116", "24%")]),
        ("max_unavailable: 0", &[("RW0116", "0")]),
        ("max_unavailable: 0%", &[("RW0116", "0%")]),
        ("max_unavailable: 101%", &[("RW0116", "101%")]),
        ("max_unavailable: -1", &[("RW0116", "-1")]),
        ("max_unavailable: 1.5", &[("RW0116", "1.5")]),
        ("max_unavailable: half", &[("RW0116", "half")]),
        ("canary: 0", &[("RW0116", "0")]),
        ("batches: [1, 25%, 2], max_unavailable: 2", &[]),
        ("batches: [1, 50%]", &[("RW0129", "50%")]),
        ("canary: 3, max_unavailable: 2", &[("RW0129", "3")]),
        (
            "batches: [1, 24%, 0, x]",
            &[("RW0116", "24%"), ("RW0116", "0"), ("RW0116", "x")],
        ),
        ("batches: 2", &[("RW0106", "2")]),
        ("failure_budget: 25%", &[]),
        ("failure_budget: 0", &[("RW0116", "0")]),
        ("failure_budget: 24%", &[("RW0116", "24%")]),
        ("failure_domain: rack", &[("RW0125", "rack")]),
        (
            "windows: [{ days: [sat, sun], from: 22:00, for: 6h, zone: Europe/Berlin }], \
             windows_for: reboot, deadline: 4h",
            &[],
        ),
        (
            "windows: [{ days: [sad], from: '22:00', for: 6h, zone: UTC }]",
            &[("RW0108", "sad")],
        ),
        (
            "windows: [{ from: 25:00, for: 6h, zone: UTC }]",
            &[("RW0126", "25:00")],
        ),
        (
            "windows: [{ from: '22:00', for: 6, zone: UTC }]",
            &[("RW0126", "6")],
        ),
        (
            "windows: [{ from: '22:00', for: six, zone: UTC }]",
            &[("RW0126", "six")],
        ),
        (
            "windows: [{ from: '22:00', for: 6h, zone: Berlin }]",
            &[("RW0126", "Berlin")],
        ),
        ("windows: [{ from: '22:00', for: 6h }]", &[("RW0107", "{")]),
        ("deadline: soon", &[("RW0126", "soon")]),
    ] {
        check(
            &format!("nodes: [{{ name: 'n[1-4]' }}]\nrollout: {{ {rollout} }}"),
            expected,
        );
    }
    let gpus = |count: u32| {
        format!(
            "nodes: [{{ name: 'n[1-2]', os: ubuntu-22.04, gpu: {{ model: H100-SXM5-80GB, count: \
             {count} }} }}]"
        )
    };
    for (nccl, expected) in [
        ("{}", &[][..]),
        (
            "{ program: /opt/nccl-tests/all_reduce_perf, from: 1M, to: 8G, turns: 5, least_percent: 85, within: 10m }",
            &[],
        ),
        (
            "{ program: ./all_reduce_perf }",
            &[("RW1300", "./all_reduce_perf")],
        ),
        (
            "{ from: 8T, to: 0M, turns: 0 }",
            &[("RW1300", "8T"), ("RW1300", "0M"), ("RW1300", "0")],
        ),
        ("{ from: 1G, to: 8M }", &[("RW1300", "1G")]),
        (
            "{ least_percent: 101, within: 1s }",
            &[("RW1300", "101"), ("RW1300", "1s")],
        ),
        ("{ size: 8G }", &[("RW0105", "size")]),
    ] {
        check(
            &format!("{}\nrollout: {{ gate: {{ nccl: {nccl} }} }}", gpus(8)),
            expected,
        );
    }
    check(
        "nodes: [{ name: 'n[1-2]' }]\nrollout: { gate: { nccl: {} } }",
        &[("RW1305", "nccl")],
    );
    let (found, _) = problems("rollout: { max_unavailable: 200% }");
    assert_eq!(
        (found[0].message.as_str(), found[0].labels[0].text.as_str()),
        ("200 % is more than all hosts", "at most 100%")
    );
    let racks = |labels: [&str; 2], label: &str| {
        let nodes = format!(
            "nodes: [{{ name: a, labels: {{ {} }} }}, {{ name: b, labels: {{ {} }} }}]",
            labels[0], labels[1]
        );
        format!("{nodes}\nrollout: {{ failure_domain: {label} }}")
    };
    check(&racks(["rack: r1", "rack: r2"], "rack"), &[]);
    check(&racks(["rack: r1", "leaf: l2"], "rack"), &[("RW0125", "b")]);
    check(
        &racks(["rack: r1", "rack: r2"], "rak"),
        &[("RW0125", "rak")],
    );
    check(
        "verify: \
         { write_bandwidth_gbps: 0, gpu_bandwidth_gbps: 20000, read_latency_us: -1.5, duration_s: 0 }",
        &[
            ("RW0124", "0"),
            ("RW0124", "20000"),
            ("RW0124", "-1.5"),
            ("RW0124", "0"),
        ],
    );
}

#[test]
fn nothing_is_blamed_for_what_did_not_decode() {
    // The kind is mistyped, so that it is not RoCEv2 says nothing yet; the node-set is wrong for
    // itself.
    check(
        "fabric: { kind: rocev3, lossless: { priority: 3, dscp: 26 } }\n\
         nodes: [{ name: 'n[2-1]', oss: x }]",
        &[("RW0108", "rocev3"), ("RW0110", "2-1"), ("RW0105", "oss")],
    );
    check(
        "secrets: { t: { env: [] } }\n\
         repositories: [{ name: a, key: k, url: 'https://x/', suite: [], components: [main] }]",
        &[("RW0106", "["), ("RW0106", "[")],
    );
}

#[test]
fn kubernetes() {
    check(
        "kubernetes: \
         { name: prod, kubeconfig: ~/.kube/config, context: admin@prod, platform: ack-managed }\n\
         nodes: [{ name: n1 }]",
        &[],
    );
    check("kubernetes: {}\nnodes: [{ name: n1 }]", &[]);
    check("kubernetes: { name: 'a b' }", &[("RW0138", "'a b'")]);
    check("kubernetes: { context: '' }", &[("RW0138", "''")]);
    check(
        "kubernetes: { name: n1 }\nnodes: [{ name: n1 }]",
        &[("RW0138", "n1")],
    );
    check(
        "kubernetes: {}\nnodes: [{ name: lab }]",
        &[("RW0138", "kubernetes")],
    );
    check(
        "kubernetes: { name: leaf1 }\nnodes: [{ name: n1 }]\nswitches: [{ name: 'leaf[1-2]' }]",
        &[("RW0138", "leaf1")],
    );
    check("kubernetes: { platform: eks }", &[("RW0108", "eks")]);
    check(
        "kubernetes: {}\nnodes: [{ name: N1 }, { name: n1 }]",
        &[("RW0138", "n1")],
    );
    check(
        "kubernetes: {}\nnodes: [{ name: N1 }, { name: n2, kubernetes_node: n1 }]",
        &[("RW0138", "n1")],
    );
    check("nodes: [{ name: N1 }, { name: n1 }]", &[]);
    check(
        "kubernetes: {}\nnodes: [{ name: gpu_1 }]",
        &[("RW0138", "gpu_1")],
    );
    check(
        "kubernetes: {}\nnodes: [{ name: gpu_1, kubernetes_node: gpu-1 }]",
        &[],
    );
    check("nodes: [{ name: gpu_1 }]", &[]);
}

#[test]
fn pools_of_rdma_devices() {
    let spec = |rdma: &str| {
        format!(
            "kubernetes: {{ rdma: {{ {rdma} }} }}\n\
             nodes: [{{ name: 'n[1-2]', nics: {{ model: C, rails: 4, netdev: 'ens{{rail}}' }} }}]"
        )
    };
    check(
        &spec("resources: { rdma_a: rail 0-1, rdma_b: 'rail 2,3' }, max: 1000"),
        &[],
    );
    check(&spec("plugin: shared"), &[("RW0139", "rdma")]);
    check(
        &spec("resources: { rdma-a: rail 0 }"),
        &[("RW0139", "rail 0")],
    );
    check(
        &spec("resources: { rdma_: rail 0 }"),
        &[("RW0139", "rail 0")],
    );
    check(
        &spec("resources: { _rdma: rail 0 }"),
        &[("RW0139", "rail 0")],
    );
    check(&spec("resources: { rdma_a: all }"), &[("RW0139", "all")]);
    check(
        &spec("resources: { rdma_a: rail 0-4 }"),
        &[("RW0139", "rail 0-4")],
    );
    check(
        &spec("resources: { rdma_a: rail 0-2, rdma_b: rail 2-3 }"),
        &[("RW0139", "rail 2-3")],
    );
    check(
        &spec("resources: { rdma_a: rail 0 }, max: 0"),
        &[("RW0139", "0")],
    );
    check(
        &spec("plugin: sriov, resources: { rdma_a: rail 0 }"),
        &[("RW0139", "rdma")],
    );
    check(
        &spec("plugin: sriov, resources: { rdma_a: rail 0 }, max: 8"),
        &[],
    );
}

#[test]
fn platforms() {
    check(
        "kubernetes: { platform: acs }\njobs: { acs: { model: GU8TF, gpus: 8 } }",
        &[],
    );
    check(
        "kubernetes: { platform: acs }\nnodes: [{ name: n1 }]",
        &[("RW0145", "nodes")],
    );
    check(
        "fabric: { kind: acs }\nnodes: [{ name: n1 }]",
        &[("RW0145", "nodes")],
    );
    check(
        "kubernetes: { platform: acs, terway: {} }",
        &[("RW0145", "terway")],
    );
    check(
        "kubernetes: { platform: acs, erdma: {} }",
        &[("RW0145", "erdma")],
    );
    check(
        "kubernetes: { platform: ack-managed, erdma: {}, terway: { whitelist: built-in } }",
        &[],
    );
    check("kubernetes: { erdma: {} }", &[("RW0145", "erdma")]);
    let (found, text) = problems("kubernetes: { platform: generic, erdma: {} }");
    let places: Vec<&str> = found[0]
        .labels
        .iter()
        .map(|label| &text[label.span.clone()])
        .collect();
    assert_eq!(places, ["erdma", "generic"], "both places are shown");
}

#[test]
fn owners() {
    let spec = |group: &str, more: &str| {
        format!(
            "fabric: {{ kind: erdma }}\n\
             kubernetes: {{ platform: ack-managed, erdma: {{}} }}\n\
             nodes: [{{ name: n1{group} }}]{more}"
        )
    };
    check(&spec("", ""), &[]);
    check(
        &spec(", erdma: { mode: compat }", ""),
        &[("RW0146", "erdma")],
    );
    check(
        &spec(
            ", erdma: { route_metric: 150 }",
            "\nmodules: { erdma-driver: { enabled: false } }",
        ),
        &[],
    );
    let (actual, text) = problems(&spec(", erdma: { mode: compat }", ""));
    let places: Vec<usize> = actual[0]
        .labels
        .iter()
        .map(|label| label.span.start)
        .collect();
    assert!(
        text[places[0]..].starts_with("erdma: { mode")
            && text[places[1]..].starts_with("erdma: {}"),
        "both places are shown: {places:?}"
    );
    let operator = |group: &str, module: &str| {
        format!(
            "fabric: {{ kind: rocev2 }}\n\
             kubernetes: {{}}\n\
             nodes: [{{ name: n1{group} }}]\n\
             modules: {{ {module}, enabled: true }} }}"
        )
    };
    let (network, gpu) = (
        "nvidia-network-operator: { parameters: { ofed_driver: { version: x } }",
        "nvidia-gpu-operator: { parameters: { driver: true }",
    );
    for (group, module, desired) in [
        (
            ", rdma_stack: { flavour: doca }",
            network,
            &[("RW0146", "rdma_stack")][..],
        ),
        (", rdma_stack: { flavour: inbox }", network, &[]),
        (
            ", rdma_stack: { flavour: mlnx-ofed }",
            "nvidia-network-operator: { parameters: {}",
            &[],
        ),
        (
            ", gpu: { model: H100, count: 8, driver: 550.90.07 }",
            gpu,
            &[("RW0146", "550.90.07")],
        ),
        (", gpu: { model: H100, count: 8 }", gpu, &[]),
        (
            ", gpu: { model: H100, count: 8, driver: 550.90.07 }",
            "nvidia-gpu-operator: { parameters: { driver: false }",
            &[],
        ),
    ] {
        check(&operator(group, module), desired);
    }
    let (actual, text) = problems(&operator(", rdma_stack: { flavour: doca }", network));
    let places: Vec<&str> = actual[0]
        .labels
        .iter()
        .map(|label| &text[label.span.start..])
        .collect();
    assert!(
        places[1].starts_with("ofed_driver") || places[1].starts_with("{ version"),
        "{places:?}"
    );
    let mtus = |fabric: &str, agent: &str| {
        format!(
            "fabric: {{ kind: erdma{fabric} }}\n\
             kubernetes: {{ platform: ack-managed, erdma: {{ {agent} }} }}\n\
             nodes: [{{ name: n1, nics: {{ model: eRDMA, netdev: eth1 }} }}]"
        )
    };
    check(
        &mtus(", mtu: 1500", "jumbo_mtu: 8500"),
        &[("RW0146", "8500")],
    );
    check(&mtus(", mtu: 8500", "jumbo_mtu: 8500"), &[]);
    check(&mtus("", "jumbo_mtu: 8500"), &[]);
    let both = "fabric: { kind: erdma }\n\
                kubernetes: { platform: ack-managed, erdma: {}, rdma: { resources: { a: rail 0 } } \
                }\n\
                nodes: [{ name: n1, nics: { model: eRDMA, netdev: eth1 } }]";
    check(both, &[("RW0146", "rdma")]);
}

#[test]
fn workloads() {
    let cluster = "kubernetes: {}\n";
    let acs = "{ name: a, kind: acs, image: x, command: [run] }";
    let ray = "{ name: a, kind: ray, image: x, cpu: 8, devices: { rdma/a: 1 }, environment: \
               { A: \"1\" } }";
    check(&format!("{cluster}workloads: [{acs}, {ray}]"), &[]);
    check(&format!("workloads: [{acs}]"), &[("RW0180", "workloads")]);
    check(
        &format!("{cluster}workloads: [{acs}, {acs}]"),
        &[("RW0182", "a")],
    );
    check(
        &format!(
            "{cluster}workloads: [{acs}, {}]",
            acs.replace("kind", "namespace: b, kind")
        ),
        &[],
    );
    // A Deployment knows its pods by their label.
    let (b, of_a) = (
        acs.replace("name: a", "name: b"),
        acs.replace("name: a", "name: c")
            .replace("kind", "app: a, kind"),
    );
    check(&format!("{cluster}workloads: [{acs}, {b}]"), &[]);
    check(
        &format!("{cluster}workloads: [{acs}, {b}, {of_a}]"),
        &[("RW0182", "a")],
    );
    check(
        &format!(
            "{cluster}workloads: [{acs}, {}]",
            of_a.replace("kind", "namespace: b, kind")
        ),
        &[],
    );
    for (more, expected) in [
        ("replica: 2", ("RW0105", "replica")),
        ("gpus: -1", ("RW0106", "-1")),
    ] {
        check(
            &format!(
                "{cluster}workloads: [{}]",
                acs.replace(" }", &format!(", {more} }}"))
            ),
            &[expected],
        );
    }
    check(
        &format!("{cluster}workloads: [{{ name: a, kind: job, image: x }}]"),
        &[("RW0108", "job")],
    );
}
