//! A body of every kind, for whatever has to hold of all of them.

use serde_json::{Value, json};

/// What a setup program offers.
fn feature(name: &str) -> Value {
    let mut body = json!({ "feature": name, "effect": "it is slow", "advice": [{ "says": "Switch it on", "source": "a page" }] });
    if name != "iommu" {
        body["netdev"] = "eth1".into();
    }
    body
}

/// A resource of every kind.
pub fn bodies() -> Vec<(&'static str, Value)> {
    vec![
        ("file", json!({ "path": "/etc/x", "content": "one\n" })),
        ("sysctl", json!({ "key": "net.a", "value": "7" })),
        (
            "kernel_module",
            json!({ "name": "m_two", "loaded": true, "at_boot": true, "options": { "size": "64" } }),
        ),
        (
            "kernel_parameter",
            json!({ "parameter": "iommu", "value": "pt" }),
        ),
        (
            "package",
            json!({ "name": "tool", "version": "2", "hold": true }),
        ),
        (
            "package_repository",
            json!({ "name": "own", "manager": "apt", "url": "http://x/deb", "key": "-----BEGIN PGP PUBLIC KEY BLOCK-----\n\nk\n-----END PGP PUBLIC KEY BLOCK-----" }),
        ),
        (
            "systemd_unit",
            json!({ "name": "svc.service", "enabled": true, "active": true, "restart_on": ["/etc/x"] }),
        ),
        (
            "link",
            json!({ "netdev": "eth1", "mtu": 9000, "addresses": ["10.0.0.1/24"] }),
        ),
        (
            "link_qos",
            json!({ "netdev": "eth1", "pfc": [3], "pause": false }),
        ),
        (
            "bond",
            json!({ "netdev": "bond0", "members": ["eth1", "eth2"], "mode": "802.3ad", "miimon": 100 }),
        ),
        (
            "vlan",
            json!({ "netdev": "eth1.100", "parent": "eth1", "id": 100 }),
        ),
        ("rdma_link", json!({ "netdev": "eth1", "type": "rxe" })),
        (
            "configfs_value",
            json!({ "netdev": "eth1", "attribute": "default_roce_tos", "value": 104 }),
        ),
        (
            "link_ecn",
            json!({ "netdev": "eth1", "priorities": [3], "cnp_dscp": 48 }),
        ),
        (
            "firmware_setting",
            json!({ "netdev": "eth1", "settings": { "SRIOV_EN": 1 }, "takes_effect": "power_cycle" }),
        ),
        (
            "pci_setting",
            json!({ "netdev": "eth1", "max_read_request": 4096 }),
        ),
        ("pci_setting", json!({ "netdevs": ["eth1"], "acs": "off" })),
        (
            "interrupt_affinity",
            json!({ "netdev": "eth1", "cpus": "numa-local" }),
        ),
        (
            "switch_port",
            json!({ "system": "sonic", "port": "Ethernet0", "mtu": 9216, "up": true }),
        ),
        (
            "switch_qos",
            json!({ "system": "sonic", "port": "Ethernet0", "priority": 3, "dscp": 26, "cnp_priority": 6, "cnp_dscp": 48 }),
        ),
        (
            "switch_ecn",
            json!({ "system": "sonic", "port": "Ethernet0", "priority": 3, "min_bytes": 1, "max_bytes": 2, "probability_percent": 3 }),
        ),
        (
            "switch_buffer",
            json!({ "system": "sonic", "port": "Ethernet0", "cable_m": 40, "priority": 3 }),
        ),
        (
            "switch_port",
            json!({ "system": "cumulus", "port": "swp1", "mtu": 9216, "up": true }),
        ),
        (
            "switch_qos",
            json!({ "system": "cumulus", "port": "swp1", "priority": 3, "dscp": 26, "cnp_priority": 6, "cnp_dscp": 48, "watchdog_detection_ms": 300 }),
        ),
        (
            "switch_ecn",
            json!({ "system": "cumulus", "port": "swp1", "priority": 3, "min_bytes": 1, "max_bytes": 2, "probability_percent": 3 }),
        ),
        (
            "switch_buffer",
            json!({ "system": "cumulus", "port": "swp1", "cable_m": 40, "priority": 3 }),
        ),
        (
            "switch_port",
            json!({ "system": "eos", "port": "Ethernet1/1", "mtu": 9214, "up": true }),
        ),
        (
            "switch_qos",
            json!({ "system": "eos", "port": "Ethernet1/1", "priority": 3, "dscp": 26, "cnp_priority": 6, "cnp_dscp": 48, "watchdog_detection_ms": 200 }),
        ),
        (
            "switch_ecn",
            json!({ "system": "eos", "port": "Ethernet1/1", "priority": 3, "min_bytes": 1, "max_bytes": 2, "probability_percent": 3 }),
        ),
        (
            "kubernetes_object",
            json!({ "manifest": { "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "a", "namespace": "n" }, "data": { "b": "c" } } }),
        ),
        (
            "kubernetes_state",
            json!({ "api_version": "a.b/v1", "kind": "C", "names": ["a"], "ready": { "each": [{ "list": "status.a", "field": "b", "equals": "c" }] } }),
        ),
        (
            "node_label",
            json!({ "label": "a", "value": "b", "nodes": ["n1"] }),
        ),
        (
            "node_taint",
            json!({ "key": "a", "effect": "NoExecute", "nodes": ["n1"] }),
        ),
        (
            "node_allocatable",
            json!({ "resource": "rdma/a", "nodes": ["n1"], "amount": 63 }),
        ),
        (
            "node_probe",
            json!({ "name": "a", "nodes": ["n1"], "pod": { "namespace": "n", "daemon_set": "d" }, "argv": ["ip"], "exits": { "1": "x" },
                    "lines": [{ "begin": "a" }], "rows": { "of": { "field": "dev", "begins": "e" }, "above": { "field": "metric", "within": "dst" } } }),
        ),
        (
            "json_in_configmap",
            json!({ "namespace": "n", "name": "a", "key": "b", "edits": [{ "pointer": "/c/d", "value": 1 }, { "pointer": "/e", "contains": 2 }],
                "restarts": { "kind": "DaemonSet", "name": "d" } }),
        ),
        (
            "helm_release",
            json!({ "name": "a", "namespace": "b", "chart": "charts/a", "values": { "c": "d" }, "keeps": ["e"], "disruptions": { "c": "drain" } }),
        ),
        (
            "console_step",
            json!({ "name": "a", "says": "b", "settings": { "c": "d" }, "proof": { "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": "e" } } }),
        ),
        ("platform_feature", feature("iommu")),
        ("platform_feature", feature("virtual_functions")),
        (
            "netdev_name",
            json!({ "name": "rail0", "device": "0000:3b:00.0", "with": ["b8:ce:f6:00:00:01"] }),
        ),
        (
            "command",
            json!({ "name": "x", "run": "x", "read": { "probe": "y", "expect": "1" } }),
        ),
    ]
}
