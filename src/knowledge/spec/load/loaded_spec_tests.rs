//! What valid files become: one spec joined by top-level key, hosts with their rails and their
//! access, and a digest.

use super::tests::file;
use super::*;
use crate::spec::HostSsh;

#[test]
fn files_are_joined_by_top_level_key() {
    let loaded = load_spec(vec![
        file(
            "inv/b.yaml",
            "nodes: [{ name: 'b[1-2]' }]\n\
             modules: { y: { enabled: true } }\n\
             fabric: { kind: rocev2 }\n",
        ),
        file(
            "inv/a.yaml",
            "cluster: lab\n\
             nodes:\n  - name: a1\n    labels: { rack: 1, \"a.b\": x }\n\
             modules: { x: { enabled: false } }\n",
        ),
    ])
    .unwrap();
    assert_eq!(
        loaded
            .hosts
            .iter()
            .map(|host| (host.name.as_str(), host.index, host.group))
            .collect::<Vec<_>>(),
        [("a1", 1, 0), ("b1", 2, 1), ("b2", 3, 1)]
    );
    let place = |path: &str| {
        loaded
            .place(path)
            .map(|place| format!("{place}:{}", place.column))
    };
    for (path, expected) in [
        ("cluster", Some("inv/a.yaml:1:10")),
        ("nodes[0].name", Some("inv/a.yaml:3:11")),
        ("nodes[1].name", Some("inv/b.yaml:1:17")),
        ("nodes[0].labels", Some("inv/a.yaml:4:5")),
        ("nodes[0].labels[\"a.b\"]", Some("inv/a.yaml:4:31")),
        ("modules.y.enabled", Some("inv/b.yaml:2:26")),
        ("fabric.kind", Some("inv/b.yaml:3:17")),
        ("fabric.mtu", None),
        ("nodes[2].name", None),
        ("", None),
        ("nodes[x", None),
    ] {
        assert_eq!(place(path).as_deref(), expected, "{path}");
    }
    assert_eq!(
        loaded.nearest_place("fabric.mtu").unwrap().to_string(),
        "inv/b.yaml:3"
    );
    assert_eq!(loaded.host("b2").unwrap().index, 3);
    assert_eq!(loaded.group_of(&loaded.hosts[1]).name, "b[1-2]");
}

#[test]
fn a_host_is_the_node_that_its_kubelet_makes_of_its_name() {
    let loaded = load_spec(vec![file(
        "a.yaml",
        "cluster: lab\nnodes: [{ name: 'GPU-[1-2].Rack' }, { name: N3, kubernetes_node: cn-3 }]\n",
    )])
    .unwrap();
    let nodes: Vec<&str> = loaded.hosts.iter().map(|host| host.node.as_str()).collect();
    assert_eq!(nodes, ["gpu-1.rack", "gpu-2.rack", "cn-3"]);
}

#[test]
fn hosts_get_their_rails_and_their_way_of_access() {
    let loaded = load_spec(vec![file(
        "a.yaml",
        "cluster: lab\n\
         ssh: { user: deploy, host_keys: keys, identities: [id], jump: [j] }\n\
         nodes:\n  - name: n[1-2]\n    nics: { model: C, rails: 2, netdev: 'e{rail}', address: '10.{rail}.0.{index}/24' }\n    kubernetes_node: 'cn-{name}.{index}'\n    ssh: { port: 2222, address: '{name}.mgmt', identities: [own] }\n  - { name: login }\n",
    )])
    .unwrap();
    insta::assert_debug_snapshot!((&loaded.hosts[1], &loaded.hosts[2].ssh), @r#"
    (
        Host {
            name: "n2",
            index: 2,
            group: 0,
            netdevs: [
                Rail {
                    rail: 0,
                    netdev: "e0",
                    port: "e0",
                    vlan: None,
                    address: Some(
                        "10.0.0.2/24",
                    ),
                    model: "C",
                    firmware: None,
                    device: None,
                },
                Rail {
                    rail: 1,
                    netdev: "e1",
                    port: "e1",
                    vlan: None,
                    address: Some(
                        "10.1.0.2/24",
                    ),
                    model: "C",
                    firmware: None,
                    device: None,
                },
            ],
            node: "cn-n2.2",
            ssh: Some(
                HostSsh {
                    user: Some(
                        "deploy",
                    ),
                    port: Some(
                        2222,
                    ),
                    address: "n2.mgmt",
                    host_keys: Some(
                        "keys",
                    ),
                    identities: [
                        "own",
                    ],
                    jump: [
                        "j",
                    ],
                    config: false,
                    read_only: false,
                },
            ),
        },
        Some(
            HostSsh {
                user: Some(
                    "deploy",
                ),
                port: None,
                address: "login",
                host_keys: Some(
                    "keys",
                ),
                identities: [
                    "id",
                ],
                jump: [
                    "j",
                ],
                config: false,
                read_only: false,
            },
        ),
    )
    "#);
}

#[test]
fn what_a_group_says_is_kept_once_for_all_its_names() {
    let loaded = load_spec(vec![file(
        "a.yaml",
        "cluster: lab\n\
         ssh: { user: root, identities: [i], jump: [j] }\n\
         nodes:\n  - name: n[1-2]\n    nics: { model: C, rails: 2, netdev: 'e{rail}', firmware: { settings: { SRIOV_EN: 1 } \
         } }\n\
         switches: [{ name: 'leaf[1-2]', os: sonic, ports: 'Ethernet[0-4/4]', ssh: {} }]\n",
    )])
    .unwrap();
    let of_hosts: Vec<&HostSsh> = loaded
        .hosts
        .iter()
        .filter_map(|host| host.ssh.as_ref())
        .collect();
    let of_switches = loaded
        .switches
        .iter()
        .filter_map(|switch| match &switch.reach {
            Some(SwitchReach::Ssh(ssh)) => Some(ssh),
            _ => None,
        });
    for ssh in [of_hosts, of_switches.collect()] {
        let [first, second] = ssh[..] else {
            panic!("two names: {ssh:?}")
        };
        assert_eq!(
            (&*first.identities, &*first.jump),
            (&["i".to_owned()][..], &["j".to_owned()][..])
        );
        assert!(
            Arc::ptr_eq(&first.identities, &second.identities)
                && Arc::ptr_eq(&first.jump, &second.jump)
        );
    }
    let firmware: Vec<_> = loaded
        .hosts
        .iter()
        .flat_map(|host| &host.netdevs)
        .map(|rail| rail.firmware.as_ref().unwrap())
        .collect();
    assert!(firmware.len() == 4 && firmware.iter().all(|other| Arc::ptr_eq(other, firmware[0])));
    let [leaf1, leaf2] = &loaded.switches[..] else {
        panic!("two switches: {:?}", loaded.switches)
    };
    assert!(leaf1.ports.len() == 2 && Arc::ptr_eq(&leaf1.ports, &leaf2.ports));
}

#[test]
fn the_budget_rounds_down() {
    let spec = |rollout: &str| {
        load_spec(vec![file(
            "a.yaml",
            &format!("cluster: a\nrollout: {{ {rollout} }}"),
        )])
        .unwrap()
        .spec
    };
    assert_eq!(spec("max_unavailable: 10%").rollout.max_unavailable(19), 1);
    assert_eq!(spec("max_unavailable: 3").rollout.max_unavailable(1), 3);
    assert_eq!(spec("canary: 2").rollout.max_unavailable(100), 1);
    assert_eq!(
        (
            spec("canary: 2").rollout.canary(),
            spec("").rollout.canary()
        ),
        (2, 1)
    );
    assert_eq!(
        spec("").rollout.max_disruption(),
        railwright_resource::Disruption::Reboot
    );
}

#[test]
fn the_digest_depends_on_names_and_bytes_only() {
    let digest = |files: &[(&str, &str)]| {
        load_spec(files.iter().map(|(n, t)| file(n, t)).collect())
            .unwrap()
            .digest
    };
    let there = digest(&[("inv/a.yaml", "cluster: a"), ("inv/b.yaml", "nodes: []")]);
    assert_eq!(
        there,
        digest(&[
            ("/x/inv/b.yaml", "nodes: []"),
            ("/x/inv/a.yaml", "cluster: a")
        ])
    );
    assert_ne!(
        there,
        digest(&[("inv/a.yaml", "cluster: a"), ("inv/b.yaml", "nodes:  []")])
    );
    assert_ne!(
        there,
        digest(&[("inv/a.yaml", "cluster: a"), ("inv/c.yaml", "nodes: []")])
    );
}
