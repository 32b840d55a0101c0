//! Every rule with a spec that breaks it: the code, and what stands under the caret.

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
fn names() {
    check("nodes: [{ name: 'n[1-2],n[5-4]' }]", &[("RW0110", "5-4")]);
    check("nodes: [{ name: \"n[1-\" }]", &[("RW0110", "[1-")]);
    check(
        "nodes: [{ name: 'n[1-3]' }, { name: n2 }]",
        &[("RW0111", "n2")],
    );
    check(
        "nodes: [{ name: 'a[1-60000]' }, { name: 'b[1-60000]' }]",
        &[("RW0104", "'b[1-60000]'")],
    );
    check(
        "nodes: [{ name: 'gpu01-16' }, { name: 'n1, m1-4' }]",
        &[("RW0135", "'gpu01-16'"), ("RW0135", "'n1, m1-4'")],
    );
    check(
        "nodes: [{ name: 'r1-1,r1-16' }, { name: 'gpu[01-16]' }]",
        &[],
    );
    let (found, text) = (
        load_spec(vec![SourceFile {
            name: "c.yaml".into(),
            text: "cluster: a b".into(),
        }])
        .unwrap_err()
        .diagnostics,
        "cluster: a b",
    );
    assert_eq!(
        (&*found[0].code, &text[found[0].labels[0].span.clone()]),
        ("RW0121", "a b")
    );
}

#[test]
fn hardware() {
    let group = |keys: &str| format!("nodes: [{{ name: n1, {keys} }}]");
    for (keys, expected) in [
        ("os: debian-12", &[][..]),
        ("os: opensuse-leap-15.6", &[]),
        ("os: myown-1", &[]),
        ("os: debian", &[("RW0120", "debian")]),
        (
            "gpu: { model: ' ', count: 0 }",
            &[("RW0122", "' '"), ("RW0122", "0")],
        ),
        (
            "gpu: { model: A, count: 8, driver: v535 }",
            &[("RW0122", "v535")],
        ),
        (
            "gpu: { model: A, count: 8, driver: '' }",
            &[("RW0122", "''")],
        ),
        (
            "gpu: { model: A, count: 8, driver: 535.54.03-1, cuda: '12.4' }",
            &[],
        ),
        (
            "gpu: { model: A, count: 8, driver: '535', cuda: cuda-12-4 }",
            &[("RW0122", "cuda-12-4")],
        ),
        (
            "gpu: { model: A, count: 8, driver: '535', cuda: 12.4.1 }",
            &[("RW0122", "12.4.1")],
        ),
        (
            "gpu: { model: A, count: 8, direct: { path: dmabuf, version: '1' } }",
            &[("RW0122", "'1'")],
        ),
        (
            "gpu: { model: A, count: 8, direct: { path: nv-peer-mem, source: 'https://x/y.git' } }",
            &[("RW0122", "'https://x/y.git'")],
        ),
        (
            "gpu: { model: A, count: 8, direct: \
             { path: nv-peer-mem, source: 'https://x/y.git#1.0-9' } }",
            &[],
        ),
        (
            "gpu: { model: A, count: 8, direct: { path: nv-peer-mem, source: /x.tgz } }",
            &[("RW0122", "/x.tgz")],
        ),
        (
            "gpu: { model: A, count: 8, direct: { path: nv-peer-mem, source: /x.tgz, sha256: abc } \
             }",
            &[("RW0122", "abc")],
        ),
        (
            "gpu: { model: A, count: 8, direct: { path: nv-peer-mem, source: -x } }",
            &[("RW0122", "-x")],
        ),
        (
            "nics: { model: C, rails: 0, netdev: e }",
            &[("RW0123", "0")],
        ),
        (
            "nics: { model: C, rails: 4000000000, netdev: 'e{rail}' }",
            &[("RW0123", "4000000000")],
        ),
        ("nics: { model: '', netdev: e }", &[("RW0123", "''")]),
        (
            "nics: { model: C, netdev: 'e{port}' }",
            &[("RW0123", "'e{port}'")],
        ),
        (
            "nics: { model: C, rails: 2, netdev: ens1 }",
            &[("RW0123", "ens1")],
        ),
        (
            "nics: { model: C, rails: 11, netdev: 'sixteen-letters{rail}' }",
            &[("RW0123", "'sixteen-letters{rail}'")],
        ),
        ("nics: { model: C, netdev: 'a/b' }", &[("RW0123", "'a/b'")]),
        (
            "nics: { model: C, netdev: e, firmware: { settings: { SRIOV_EN: 1 }, may_lack: \
             [UCTX_EN] } }",
            &[("RW0123", "may_lack")],
        ),
        (
            "nics: { model: C, netdev: e, firmware: { settings: {} } }",
            &[("RW0123", "settings")],
        ),
        (
            "nics: { model: C, netdev: e, firmware: { settings: { sriov_en: 1 } } }",
            &[("RW0123", "settings")],
        ),
        (
            "nics: { model: C, netdev: e, firmware: { settings: { SRIOV_EN: 1 x } } }",
            &[("RW0123", "1 x")],
        ),
        (
            "nics: { model: C, netdev: e, firmware: { settings: \
             { SRIOV_EN: 1, LINK_TYPE_P1: ETH, UCTX_EN: true } } }",
            &[],
        ),
        (
            "nics: { model: C, netdev: e, naming: {} }",
            &[("RW0123", "naming")],
        ),
        (
            "nics: { model: C, netdev: e, naming: { rdma: kernel } }",
            &[],
        ),
        (
            "nics: { model: C, netdev: e, naming: { pci: ['0000:3B:00.0'] } }",
            &[],
        ),
        (
            "nics: { model: C, netdev: e, naming: { pci: ['3b:00.0'] } }",
            &[("RW0123", "pci")],
        ),
        (
            "nics: { model: C, netdev: e, naming: { pci: ['b8:ce:f6:00:00:01'] } }",
            &[("RW0123", "pci")],
        ),
        (
            "nics: { model: C, netdev: eth7, naming: { pci: ['0000:3b:00.0'] } }",
            &[("RW0123", "pci")],
        ),
        (
            "nics: { model: C, rails: 2, netdev: 'e{rail}', naming: { pci: ['0000:3b:00.0'] } }",
            &[("RW0123", "pci")],
        ),
        (
            "nics: { model: C, rails: 2, netdev: 'e{rail}', naming: \
             { pci: ['0000:3b:00.0', '0000:3B:00.0'] } }",
            &[("RW0123", "pci")],
        ),
        (
            "nics: { model: C, netdev: e, naming: { mac: { nobody: ['b8:ce:f6:00:00:01'] } } }",
            &[("RW0123", "mac"), ("RW0123", "nobody")],
        ),
        (
            "nics: { model: C, netdev: e, naming: { pci: ['0000:3b:00.0'], mac: \
             { nobody: ['b8:ce:f6:00:00:01'] } } }",
            &[("RW0123", "mac")],
        ),
    ] {
        check(&group(keys), expected);
    }
}

#[test]
fn addresses() {
    let group = |address: &str| {
        format!(
            "nodes: [{{ name: 'n[1-2]', nics: {{ model: C, rails: 2, netdev: 'e{{rail}}', address: \
             '{address}' }} }}]"
        )
    };
    for (address, code) in [
        ("10.{rail}.0.{index}/24", None),
        ("fd00:{rail}::{index}/64", None),
        ("10.{rail}.0.{index}", Some("RW0114")),
        ("10.{rail}.0.{host}/24", Some("RW0114")),
        ("10.{rail}.0.0/24", Some("RW0114")),
        ("10.{rail}.0.255/24", Some("RW0114")),
        ("10.{rail}.0.25{index}5/24", Some("RW0114")),
        ("127.{rail}.0.{index}/8", Some("RW0114")),
        ("10.{rail}.0.7/24", Some("RW0115")),
        ("10.0.0.{index}/24", Some("RW0115")),
    ] {
        let (found, _) = problems(&group(address));
        assert_eq!(
            found.iter().map(|d| &*d.code).collect::<Vec<_>>(),
            code.into_iter().collect::<Vec<_>>(),
            "{address}"
        );
    }
    let message = |address: &str| problems(&group(address)).0[0].message.clone();
    assert_eq!(
        message("10.{rail}.0.7/24"),
        "n1 and n2 both get 10.0.0.7 on rail 0"
    );
    assert_eq!(
        message("10.0.0.{index}/24"),
        "rails 0 and 1 of n1 both get 10.0.0.1"
    );
}

#[test]
fn access() {
    for (keys, expected) in [
        (
            "user: deploy, port: 2222, address: '{name}.mgmt', jump: ['root@j1:22', \
             '[fd00::1]:22', j2]",
            &[][..],
        ),
        ("port: 0", &[("RW0119", "0")]),
        ("user: 'a b'", &[("RW0119", "'a b'")]),
        ("user: -oProxyCommand=x", &[("RW0119", "-oProxyCommand=x")]),
        ("user: $(id)", &[("RW0119", "$(id)")]),
        ("user: 'CORP\\alice'", &[]),
        ("address: '$(id)'", &[("RW0119", "'$(id)'")]),
        ("address: '{name};id'", &[("RW0119", "'{name};id'")]),
        ("address: '{name}%h'", &[("RW0119", "'{name}%h'")]),
        ("address: 'fe80::{index}%eth0'", &[]),
        (
            "jump: ['$(id)', 'a|b@c']",
            &[("RW0119", "'$(id)'"), ("RW0119", "'a|b@c'")],
        ),
        ("address: '-x{name}'", &[("RW0119", "'-x{name}'")]),
        ("address: '{host}.mgmt'", &[("RW0119", "'{host}.mgmt'")]),
        ("address: 10.0.0.1", &[("RW0119", "10.0.0.1")]),
        ("address: local", &[("RW0119", "local")]),
        (
            "jump: [a, 'b:0', 'x@']",
            &[("RW0119", "'b:0'"), ("RW0119", "'x@'")],
        ),
        ("host_keys: ''", &[("RW0119", "''")]),
        ("identities: [id, '']", &[("RW0119", "''")]),
    ] {
        check(
            &format!("nodes: [{{ name: 'n[1-2]' }}]\nssh: {{ {keys} }}"),
            expected,
        );
        check(
            &format!("nodes: [{{ name: 'n[1-2]', ssh: {{ {keys} }} }}]"),
            expected,
        );
    }
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
        "fabric: { kind: rocev3, lossless: { priority: 3, dscp: 26 } }\nnodes: \
         [{ name: 'n[2-1]', oss: x }]",
        &[("RW0108", "rocev3"), ("RW0110", "2-1"), ("RW0105", "oss")],
    );
    check(
        "secrets: { t: { env: [] } }\nrepositories: \
         [{ name: a, key: k, url: 'https://x/', suite: [], components: [main] }]",
        &[("RW0106", "["), ("RW0106", "[")],
    );
}

#[test]
fn management_and_vlans() {
    let group = |keys: &str| format!("nodes: [{{ name: n1, {keys} }}]");
    let bond = |keys: &str| {
        group(&format!(
            "management: {{ bond: {{ name: bond0, members: [eno1, eno2], {keys} }} }}"
        ))
    };
    for (keys, expected) in [
        (
            "mode: 802.3ad, miimon: 100, lacp_rate: fast, xmit_hash_policy: layer3+4",
            &[][..],
        ),
        ("mode: active-backup, primary: eno2", &[]),
        (
            "mode: active-backup, lacp_rate: fast",
            &[("RW0137", "fast")],
        ),
        (
            "mode: balance-rr, xmit_hash_policy: layer2",
            &[("RW0137", "layer2")],
        ),
        ("mode: 802.3ad, primary: eno1", &[("RW0137", "eno1")]),
        ("mode: active-backup, primary: eno3", &[("RW0137", "eno3")]),
        ("mode: 802.3ad, miimon: 0", &[("RW0137", "0")]),
        ("mode: lacp", &[("RW0108", "lacp")]),
        ("mode: 802.3ad, colour: 1", &[("RW0105", "colour")]),
    ] {
        check(&bond(keys), expected);
    }
    let rails = "nics: { model: C, rails: 2, netdev: 'ens{rail}', vlan: 100 }";
    for (keys, expected) in [
        (rails.to_owned(), &[][..]),
        (
            "nics: { model: C, netdev: ens1, vlan: 4095 }".to_owned(),
            &[("RW0137", "4095")],
        ),
        (
            "nics: { model: C, netdev: ens1.5, vlan: 6 }".to_owned(),
            &[("RW0123", "ens1.5")],
        ),
        (
            "nics: { model: C, netdev: ens1f0np0abc, vlan: 100 }".to_owned(),
            &[("RW0123", "ens1f0np0abc")],
        ),
        ("management: {}".to_owned(), &[("RW0137", "management")]),
        (
            "management: { vlan: { id: 20 } }".to_owned(),
            &[("RW0137", "vlan")],
        ),
        (
            "management: { vlan: { id: 0, parent: eno1 } }".to_owned(),
            &[("RW0137", "0")],
        ),
        (
            "management: { vlan: { id: 20, parent: eno1, name: a-name-of-16-let } }".to_owned(),
            &[("RW0137", "a-name-of-16-let")],
        ),
        (
            format!("management: {{ vlan: {{ id: 100, parent: ens1 }} }}, {rails}"),
            &[("RW0137", "vlan")],
        ),
        (
            format!("management: {{ vlan: {{ id: 7, parent: eno1, name: ens0.100 }} }}, {rails}"),
            &[("RW0137", "vlan")],
        ),
        (
            format!(
                "management: {{ bond: {{ name: b0, members: [eno1, ens1], mode: 802.3ad }} }}, \
                 {rails}"
            ),
            &[("RW0137", "ens1")],
        ),
        (
            "management: { bond: { name: b0, members: [eno1, eno1, b0], mode: 802.3ad } }"
                .to_owned(),
            &[("RW0137", "eno1"), ("RW0137", "b0")],
        ),
        (
            "management: { bond: { name: b0, members: [], mode: 802.3ad } }".to_owned(),
            &[("RW0137", "members")],
        ),
        (
            "management: { bond: { name: b0, members: [e1], mode: 802.3ad }, vlan: \
             { id: 5, parent: e1 } }"
                .to_owned(),
            &[("RW0137", "e1")],
        ),
    ] {
        check(&group(&keys), expected);
    }
}

#[test]
fn kubernetes() {
    check(
        "kubernetes: \
         { name: prod, kubeconfig: ~/.kube/config, context: admin@prod, platform: ack-managed }\nnodes: \
         [{ name: n1 }]",
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
            "kubernetes: {{ rdma: {{ {rdma} }} }}\nnodes: [{{ name: 'n[1-2]', nics: {{ model: C, \
             rails: 4, netdev: 'ens{{rail}}' }} }}]"
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
fn labels_and_taints_of_nodes() {
    let spec = |group: &str| format!("kubernetes: {{}}\nnodes: [{{ name: n1, {group} }}]");
    let long = "a".repeat(64);
    let too_long = format!("kubernetes_labels: {{ a: {long} }}");
    for (group, expected) in [
        (
            "kubernetes_labels: { railwright.io/rdma: \"true\", plain: '' }",
            &[][..],
        ),
        ("kubernetes_labels: { a b: x }", &[("RW0147", "x")]),
        ("kubernetes_labels: { Rails.io/a: x }", &[("RW0147", "x")]),
        ("kubernetes_labels: { a: -x }", &[("RW0147", "-x")]),
        (
            "kubernetes_labels: { kubernetes.io/hostname: n9 }",
            &[("RW0147", "n9")],
        ),
        ("kubernetes_labels: { a: true, b: 1 }", &[]),
        (&too_long, &[("RW0147", &long)]),
        (
            "kubernetes_taints: [{ key: nvidia.com/gpu, effect: NoSchedule }, \
             { key: nvidia.com/gpu, value: present, effect: NoExecute }]",
            &[],
        ),
        (
            "kubernetes_taints: [{ key: a/b/c, value: x, effect: NoSchedule }]",
            &[("RW0147", "a/b/c")],
        ),
        (
            "kubernetes_taints: [{ key: a, value: x., effect: NoSchedule }]",
            &[("RW0147", "x.")],
        ),
        (
            "kubernetes_taints: [{ key: a, effect: NoRun }]",
            &[("RW0108", "NoRun")],
        ),
        ("kubernetes_taints: [{ key: a }]", &[("RW0107", "{")]),
        (
            "kubernetes_taints: [{ key: a, effect: NoExecute }, \
             { key: a, value: x, effect: NoExecute }]",
            &[("RW0147", "{")],
        ),
    ] {
        check(&spec(group), expected);
    }
    check(
        "nodes: [{ name: n1, kubernetes_labels: { a: x } }]",
        &[("RW0147", "kubernetes_labels")],
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
            "fabric: {{ kind: erdma }}\nkubernetes: {{ platform: ack-managed, erdma: {{}} \
             }}\nnodes: [{{ name: n1{group} }}]{more}"
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
    let (found, text) = problems(&spec(", erdma: { mode: compat }", ""));
    let places: Vec<usize> = found[0]
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
            "fabric: {{ kind: rocev2 }}\nkubernetes: {{}}\nnodes: [{{ name: n1{group} \
             }}]\nmodules: {{ {module}, enabled: true }} }}"
        )
    };
    let (network, gpu) = (
        "nvidia-network-operator: { parameters: { ofed_driver: { version: x } }",
        "nvidia-gpu-operator: { parameters: { driver: true }",
    );
    for (group, module, wanted) in [
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
        check(&operator(group, module), wanted);
    }
    let (found, text) = problems(&operator(", rdma_stack: { flavour: doca }", network));
    let places: Vec<&str> = found[0]
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
            "fabric: {{ kind: erdma{fabric} }}\nkubernetes: {{ platform: ack-managed, erdma: {{ \
             {agent} }} }}\nnodes: [{{ name: n1, nics: {{ model: eRDMA, netdev: eth1 }} }}]"
        )
    };
    check(
        &mtus(", mtu: 1500", "jumbo_mtu: 8500"),
        &[("RW0146", "8500")],
    );
    check(&mtus(", mtu: 8500", "jumbo_mtu: 8500"), &[]);
    check(&mtus("", "jumbo_mtu: 8500"), &[]);
    let both = "fabric: { kind: erdma }\nkubernetes: { platform: ack-managed, erdma: {}, rdma: { \
                resources: { a: rail 0 } } }\nnodes: [{ name: n1, nics: \
                { model: eRDMA, netdev: eth1 } }]";
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
