//! Every rule about nodes with a spec that breaks it: their names, hardware, addresses, access,
//! management interfaces, VLANs, labels and taints.

use super::tests::{check, problems};
use crate::spec::{SourceFile, load_spec};

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
