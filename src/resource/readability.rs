//! Whether this version may go by what is written of a resource, and what is unknown where it may
//! not: nothing is read about what no spec could declare, and nothing is undone blind.

use super::{Attribute, DesiredResource, Plane, Read, Reading, ResourceDiff, ResourceKind};
use crate::file::sealed::{is_sealed, without_seals};
use std::borrow::Cow;

/// Why nothing is known of what was applied.
pub const UNREADABLE_BODY: &str =
    "another version of railwright applied it, with a body that this one cannot read";

/// What has to be read to compare a resource.
pub fn list_reads(kind: &dyn ResourceKind, resource: &DesiredResource) -> Vec<Read> {
    if is_readable(kind, resource) {
        kind.reads(resource)
    } else {
        Vec::new()
    }
}

/// What has to be read to take a resource back.
pub fn list_reads_to_undo(kind: &dyn ResourceKind, applied: &DesiredResource) -> Vec<Read> {
    if is_readable(kind, applied) {
        kind.reads_to_undo(applied)
    } else {
        Vec::new()
    }
}

/// Whether this version may go by what is written of a resource. The record of a target and a state
/// file say of an applied one what another version wrote, with fields that this one does not know,
/// or what anybody wrote, of values that no resource may have.
pub fn is_readable(kind: &dyn ResourceKind, resource: &DesiredResource) -> bool {
    // The seals of a file are put in where no module may write.
    let body = match is_sealed(resource) {
        true => Cow::Owned(without_seals(&resource.body)),
        false => Cow::Borrowed(&resource.body),
    };
    let is_own_address = |path: Vec<String>| {
        kind.target_kind() == resource.address.target.kind && *path == *resource.address.path
    };
    kind.check(&body).is_empty() && kind.address_path(&body).is_none_or(is_own_address)
}

/// Nothing is known of a resource of which cannot be read what it is, and nothing is done to it.
pub(super) fn where_readable(
    kind: &dyn ResourceKind,
    resource: &DesiredResource,
    compare: impl FnOnce() -> ResourceDiff,
) -> ResourceDiff {
    if is_readable(kind, resource) {
        return compare();
    }
    build_unreadable_diff("body", "its body")
}

pub(super) fn build_unreadable_diff(name: &str, what: &str) -> ResourceDiff {
    let why =
        format!("another version of railwright wrote {what} in a form that this one cannot read");
    let unknown = Reading::Unknown(why.into());
    let unreadable = Attribute::in_plane(Plane::Running, Reading::Absent, unknown);
    ResourceDiff {
        attributes: [(name.to_owned(), unreadable)].into(),
        ..ResourceDiff::default()
    }
}

/// Nothing of a resource is undone while something of it cannot be read: what is done blind may be
/// somebody's by now, and what cannot be seen would be forgotten.
pub(super) fn withhold_where_unknown(undo: ResourceDiff) -> ResourceDiff {
    if !undo.has_unknown() {
        return undo;
    }
    let is_unknown = |attribute: &Attribute| {
        let mut differences = attribute.differences().into_iter();
        differences.any(|(_, _, found)| found.is_unknown())
    };
    let attributes = undo.attributes.into_iter();
    ResourceDiff {
        attributes: attributes.filter(|(_, one)| is_unknown(one)).collect(),
        before: undo.before,
        ..ResourceDiff::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file::File;
    use crate::redacted_diff::diff_removal;
    use crate::{AnswerStatus, ReadResult, ReadResults, ResourceDeclaration, kind_named};
    use railwright_base::{Address, Target};
    use serde_json::{Value, json};
    use std::sync::Arc;

    /// A kind, a body, and what was there before us as a later version may write it: with other
    /// names, fields or types.
    const WRITTEN_BY_A_LATER_VERSION: &str = r#"
file {"path": "/etc/a", "content": "x"} {"was_absent": {"folder": null}}
file {"path": "/etc/a", "content": "x"} {"absent": {"folder": null, "links": 0}}
sysctl {"key": "net.a", "value": 2} {"running": "1", "persisted": null, "file": {"absent": {"folder": null}}}
link {"netdev": "en1", "mtu": 1400} {"running": {"mtu": 1500, "up": true, "addresses": [{"address": "192.0.2.7/24"}]}, "persisted": {"manager": null, "values": {"addresses": []}, "own": null, "settings": {}}}
link {"netdev": "en1", "mtu": 1400} {"now": {"mtu": 1500, "up": true, "addresses": []}, "on_disk": {"manager": null, "values": {"addresses": []}, "own": null, "settings": {}}}
vlan {"netdev": "en1.5", "parent": "en1", "id": 5} {"was_running": true, "persisted": true}
package {"name": "jq"} {"manager": "apt", "state": {"gone": {}}, "held": false}
package_repository {"name": "r", "manager": "dnf", "url": "file:/r", "key": "-----BEGIN PGP PUBLIC KEY BLOCK-----\nmDME\n-----END PGP PUBLIC KEY BLOCK-----"} {"/etc/yum.repos.d/r.repo": "plain"}
systemd_unit {"name": "q.service", "active": true} {"state": {"there": true, "masked": false, "enabled": true, "active": true}, "files": {}}
kernel_parameter {"parameter": "iommu", "value": "pt"} {"persisted": "absent", "next_boot": "absent", "running": "absent"}
kernel_module {"name": "a", "loaded": true} {"was_loaded": false, "files": {}}
kernel_module {"name": "a", "loaded": true} {"loaded": false, "files": {"/etc/modprobe.d/zz-railwright-a.conf": "plain"}}
kernel_module_build {"name": "a", "version": "1", "source": {"git": "https://h/a.git", "revision": "1"}} {"tree": false, "installed": null, "kernel": "6.1"}
link_qos {"netdev": "en1", "pfc": [3]} {"running": {"pfc": [], "buffers": {}}}
link_qos {"netdev": "en1", "pfc": [3]} {"settings": {"pfc": []}}
link_ecn {"netdev": "en1", "priorities": [3]} {"files": {"roce_rp/enable/3": "0"}}
interrupt_affinity {"netdev": "en1", "cpus": "numa-local"} {"interrupts": {"40": {"name": "a", "cpus": "0"}}}
pci_setting {"netdev": "en1", "max_read_request": 4096} {"max_read_request": 512}
pci_setting {"acs": "off", "bridges": ["0000:3a:00.0"]} {"bridges": {"0000:3a:00.0": "001d"}}
netdev_name {"name": "rail0", "device": "0000:3b:00.0"} {"running": "ens1", "link_file": null}
firmware_setting {"netdev": "en1", "settings": {"SRIOV_EN": 1}} {"default": {}, "running": {}, "next": {"SRIOV_EN": "False(0)"}}
configfs_value {"netdev": "en1", "attribute": "default_roce_tos", "value": 104} {"running": {"value": 0}}
configfs_value {"netdev": "en1", "attribute": "default_roce_tos", "value": 104} {"value": 0}
rdma_link {"netdev": "en1", "type": "rxe"} {"device": {"name": "rxe0"}, "kept": false}
helm_release {"cluster": "lab", "name": "r", "namespace": "n", "chart": "c"} {"was_there": false}
kubernetes_object {"cluster": "lab", "manifest": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", "namespace": "n"}}} {"existed": false, "uid": "u1"}
json_in_configmap {"name": "c", "namespace": "n", "key": "k", "edits": [{"pointer": "/a", "value": 1}]} {"parts": [{"part": "range", "pointer": "/a"}], "uid": null}
json_in_configmap {"name": "c", "namespace": "n", "key": "k", "edits": [{"pointer": "/a", "value": 1}]} {"parts": [{"part": "value", "pointer": "/a", "held": "absent", "owner": "x"}], "uid": null}
switch_port {"system": "sonic", "port": "Ethernet0", "mtu": 9000} {"PORT|Ethernet0": {"mtu": 9100}}
switch_port {"system": "sonic", "port": "Ethernet0", "mtu": 9000} {"PORT": {"mtu": "9100"}}
switch_port {"system": "eos", "port": "Ethernet1", "mtu": 9000} {"mtu": null, "l2 mtu": null}
switch_qos {"system": "eos", "port": "Ethernet1", "priority": 3, "dscp": 26} {"qos trust": ["qos trust dscp"], "shared": {}}
switch_qos {"system": "eos", "port": "Ethernet1", "priority": 3, "dscp": 26} {"qos trust": null, "shared": {"26": 3}}
switch_qos {"system": "cumulus", "port": "swp1", "priority": 3, "dscp": 26} {"interface swp1 qos mapping profile": ["a", "b"]}
switch_ecn {"system": "cumulus", "port": "swp1", "priority": 3, "min_bytes": 1, "max_bytes": 2, "probability_percent": 5} {"port swp1 congestion-control": null}
switch_buffer {"system": "cumulus", "port": "swp1", "cable_m": 40, "priority": 3} {"qos pfc railwright_swp1 cable-length": true}"#;

    /// A resource as it was applied, under its own address.
    fn applied(kind: &dyn ResourceKind, body: Value) -> DesiredResource {
        let target = Target {
            kind: kind.target_kind(),
            name: "t".into(),
        };
        let path = kind.address_path(&body).unwrap();
        let declaration = ResourceDeclaration {
            body,
            kind: kind.name().into(),
            module: "m/r".into(),
            places: vec![],
        };
        DesiredResource {
            declaration: Arc::new(declaration),
            address: Address {
                target,
                path: path.into(),
                attribute: None,
            },
            after: vec![],
        }
    }

    #[test]
    fn nothing_is_taken_back_while_its_present_state_is_unknown() {
        let absent = json!({ "absent": { "folder": null } });
        let planes = json!({ "persisted": "absent", "next_boot": "absent", "running": "absent", "drop_in": absent });
        let unit = json!({ "unit": { "there": true, "masked": false, "enabled": false, "active": false }, "files": {} });
        for (kind, body, before) in [
            (
                "file",
                json!({ "path": "/etc/a", "content": "x", "mode": "0644" }),
                absent.clone(),
            ),
            (
                "sysctl",
                json!({ "key": "net.a", "value": 2 }),
                json!({ "running": "1", "persisted": null, "drop_in": absent }),
            ),
            (
                "kernel_parameter",
                json!({ "parameter": "iommu", "value": "pt" }),
                planes,
            ),
            (
                "systemd_unit",
                json!({ "name": "q.service", "active": true }),
                unit,
            ),
        ] {
            let kind = kind_named(kind).unwrap();
            let applied = applied(kind, body);
            let mut answers = ReadResults::default();
            for read in kind.reads_to_undo(&applied) {
                let (status, out) = (AnswerStatus::TimedOut, String::new());
                answers.insert(read.key(), ReadResult { status, out });
            }
            let back = diff_removal(kind, &applied, &before, &answers);
            assert!(back.only_unknown(), "{}: {back:?}", kind.name());
            assert!(
                back.actions.is_empty() && back.residue.is_empty(),
                "{back:?}"
            );
        }
    }

    /// A record says what its writer likes, and may name things to programs of this machine.
    #[test]
    fn what_no_spec_could_declare_is_not_asked_about() {
        let chart = json!({ "cluster": "lab", "name": "r", "namespace": "n", "chart": "c" });
        let helm = |name: &str, value: &str| {
            let mut body = chart.clone();
            body[name] = json!(value);
            applied(kind_named("helm_release").unwrap(), body)
        };
        let file = |path: &str| {
            applied(
                &File,
                json!({ "path": path, "content": "x", "mode": "0644" }),
            )
        };
        let elsewhere = DesiredResource {
            address: Address::host("n1", "file", "/etc/b"),
            ..file("/etc/a")
        };
        let on_host = DesiredResource {
            address: Address {
                target: Target::host("n1"),
                ..helm("name", "r").address
            },
            ..helm("name", "r")
        };
        for (applied, is_asked_about) in [
            (helm("name", "r"), true),
            (helm("name", "-gf/root/.kube/config"), false),
            (helm("chart", "--post-renderer=/bin/sh"), false),
            (helm("repository", "http://h/c"), false),
            (on_host, false),
            (file("/etc/a"), true),
            (file("etc/a"), false),
            (elsewhere, false),
        ] {
            let kind = kind_named(&applied.kind).unwrap();
            for reads in [
                list_reads(kind, &applied),
                list_reads_to_undo(kind, &applied),
            ] {
                assert_eq!(!reads.is_empty(), is_asked_about, "{applied:?}");
            }
            let back = diff_removal(kind, &applied, &Value::Null, &ReadResults::default());
            assert_eq!(
                back.attributes.keys().eq(["body"]),
                !is_asked_about,
                "{back:?}"
            );
            assert!(back.actions.is_empty() && (is_asked_about || back.has_unknown()));
        }
    }

    /// `null` was not recorded.
    #[test]
    fn what_another_version_wrote_of_the_time_before_us_is_unknown() {
        for case in WRITTEN_BY_A_LATER_VERSION.lines().skip(1) {
            let (kind, values) = case.split_once(' ').unwrap();
            let kind = kind_named(kind).unwrap();
            let mut values = serde_json::Deserializer::from_str(values).into_iter();
            let [body, before]: [Value; 2] =
                std::array::from_fn(|_| values.next().unwrap().unwrap());
            let applied = applied(kind, body);
            assert!(
                is_readable(kind, &applied),
                "{case}: {:?}",
                kind.check(&applied.body)
            );
            let back =
                |before: &Value| diff_removal(kind, &applied, before, &ReadResults::default());
            let unknown = back(&before);
            assert!(
                unknown.attributes.keys().eq(["before"]) && unknown.has_unknown(),
                "{case}: {unknown:?}"
            );
            assert!(unknown.actions.is_empty() && unknown.residue.is_empty());
            let unrecorded = back(&Value::Null);
            assert!(
                !unrecorded.attributes.contains_key("before"),
                "{case}: {unrecorded:?}"
            );
        }
    }
}
