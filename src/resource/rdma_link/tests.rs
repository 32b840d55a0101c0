//! `rdma_link` by tables: read results in, diff out.

use super::*;
use crate::{AnswerStatus, ReadResult};
use railwright_base::Address;
use serde_json::json;

/// Soft-RoCE on the lab's make-believe ConnectX, after udev renamed it (Debian 12, kernel 6.1,
/// rdma-core 44).
const SOFT: &str = include_str!("tests/soft-roce.txt");

fn resource(body: Value) -> DesiredResource {
    assert_eq!(RdmaLink.check(&body), [], "{body}");
    let name = RdmaLink.address_name(&body).unwrap();
    DesiredResource::of(Address::host("n1", "rdma_link", &name), "rdma_link", body)
}

/// Answers with these RDMA devices (none where empty), a netdev or not, and no files.
fn answers(resource: &DesiredResource, devices: &str, has_netdev: bool) -> ReadResults {
    let mut answers = ReadResults::default();
    for read in RdmaLink.reads_to_undo(resource) {
        let (code, out) = match &read {
            Read::RdmaLinks => (i32::from(devices.is_empty()), devices),
            Read::Link { .. } if has_netdev => (0, "mtu=9000\n"),
            Read::Link { .. } => (1, "netdev=eth0\nnetdev=lo\n"),
            _ => (1, ""),
        };
        answers.insert(
            read.key(),
            ReadResult {
                status: AnswerStatus::Exit(code),
                out: out.to_owned(),
            },
        );
    }
    answers
}

#[test]
fn a_renamed_device_is_found_by_its_netdev() {
    let resource = resource(json!({ "netdev": "ens1f0np0", "type": "rxe", "name": "rxe0" }));
    let answers = answers(&resource, SOFT, true);
    let devices = rdma_devices(&answers).unwrap();
    let device = device_on(&devices, "ens1f0np0").unwrap();
    assert_eq!(
        (
            device.name.as_str(),
            device.is_soft_roce,
            device.ports[0].state.as_str(),
            device.ports[0].active_mtu
        ),
        ("rocep193s0", true, "ACTIVE", Some(1024))
    );
    let gid = &device.ports[0].gids[1];
    assert_eq!(
        (
            gid.index,
            gid.address.to_string().as_str(),
            gid.kind.as_str(),
            gid.netdev.as_deref()
        ),
        (1, "192.168.77.1", "RoCE v2", Some("ens1f0np0"))
    );
    let found = RdmaLink.diff(&resource, &answers);
    assert!(found.attributes["device"].differences().is_empty());
    assert_eq!(
        found.actions.iter().map(Action::word).collect::<Vec<_>>(),
        ["write_file", "write_file", "write_file", "reload_systemd"]
    );
    assert_eq!(
        found.before,
        json!({ "device": "rocep193s0", "kept": false })
    );
    assert!(RdmaLink.can_read_before(&found.before));
}

#[test]
fn undo_spares_a_device_that_was_there_before() {
    let resource = resource(json!({ "netdev": "ens1f0np0", "type": "rxe" }));
    let answers = answers(&resource, SOFT, true);
    let brought = RdmaLink.undo(
        &resource,
        &json!({ "device": null, "kept": false }),
        &answers,
    );
    assert_eq!(
        brought.actions,
        [Action::RemoveRdmaLink {
            name: "rocep193s0".to_owned()
        }]
    );
    let found = RdmaLink.undo(
        &resource,
        &json!({ "device": "rxe0", "kept": false }),
        &answers,
    );
    assert!(found.is_met() && found.actions.is_empty());
}

#[test]
fn soft_roce_of_ours_goes_also_where_hardware_is_desired_by_now() {
    let hca = resource(json!({ "netdev": "ens1f0np0", "type": "hca" }));
    let mut answers = answers(&hca, SOFT, true);
    let before = json!({ "device": null, "kept": false });
    let theirs = RdmaLink.undo(&hca, &before, &answers);
    assert!(theirs.is_met() && theirs.actions.is_empty(), "{theirs:?}");
    let path = "/etc/railwright/rdma-link/ens1f0np0.sh".to_owned();
    answers.insert(
        Read::File { path }.key(),
        ReadResult {
            status: AnswerStatus::Exit(0),
            out: "755 root root 9 regular file\n#!/bin/sh\n".to_owned(),
        },
    );
    let ours = RdmaLink.undo(&hca, &before, &answers);
    let words: Vec<String> = ours.actions.iter().map(Action::word).collect();
    assert_eq!(words, ["remove_rdma_link", "remove_file"]);
    let never_soft = RdmaLink.undo(&hca, &Value::Null, &answers);
    assert_eq!(never_soft, ResourceDiff::default());
    let now = json!({ "device": "rxe0", "kept": false });
    assert_eq!(RdmaLink.remembered(&Value::Null, &now), now);
    assert_eq!(RdmaLink.remembered(&before, &now), before);
}

#[test]
fn devices_that_cannot_be_read_are_not_taken_back() {
    let resource = resource(json!({ "netdev": "ens1f0np0", "type": "rxe" }));
    let mut answers = answers(&resource, SOFT, true);
    answers.insert(
        Read::RdmaLinks.key(),
        ReadResult {
            status: AnswerStatus::Exit(2),
            out: String::new(),
        },
    );
    let undo = RdmaLink.undo(
        &resource,
        &json!({ "device": null, "kept": false }),
        &answers,
    );
    assert_eq!(undo.attributes.len(), 1, "{undo:?}");
    assert!(undo.only_unknown() && undo.actions.is_empty(), "{undo:?}");
}

#[test]
fn hardware_is_only_looked_for() {
    let hca = resource(json!({ "netdev": "ens1f0np0", "type": "hca" }));
    let hardware = SOFT.replace("|parent=ens1f0np0\n", "");
    let found = RdmaLink.diff(&hca, &answers(&hca, &hardware, true));
    assert!(found.is_met() && found.before.is_null());
    let soft = RdmaLink.diff(&hca, &answers(&hca, SOFT, true));
    assert!(
        !soft.is_met()
            && soft
                .refusal
                .unwrap()
                .contains("Soft-RoCE device rocep193s0")
    );
    let missing = RdmaLink.diff(&hca, &answers(&hca, "", true));
    assert!(missing.refusal.unwrap().contains("mlx5_ib"));
    let waiting = resource(
        json!({ "netdev": "ens1f0np0", "type": "hca", "known_after": "kernel_module/mlx5_ib" }),
    );
    assert_eq!(
        RdmaLink
            .diff(&waiting, &answers(&waiting, "", true))
            .known_after
            .as_deref(),
        Some("kernel_module/mlx5_ib")
    );
}

#[test]
fn soft_roce_is_not_put_above_hardware_or_nothing() {
    let rxe = resource(json!({ "netdev": "ens1f0np0", "type": "rxe" }));
    let hardware = SOFT.replace("|parent=ens1f0np0\n", "");
    assert!(
        RdmaLink
            .diff(&rxe, &answers(&rxe, &hardware, true))
            .refusal
            .unwrap()
            .contains("rocep193s0")
    );
    let absent = RdmaLink.diff(&rxe, &answers(&rxe, "", false));
    assert!(absent.refusal.unwrap().contains("eth0, lo") && absent.actions.is_empty());
}

#[test]
fn bad_bodies_are_told_apart() {
    for (body, pointer) in [
        (json!({ "netdev": "ens1" }), ""),
        (json!({ "netdev": "ens1", "type": "siw" }), "/type"),
        (
            json!({ "netdev": "ens1", "type": "rxe", "name": "a;b" }),
            "/name",
        ),
        (
            json!({ "netdev": "ens1", "type": "hca", "known_after": "mlx5" }),
            "/known_after",
        ),
    ] {
        assert_eq!(
            RdmaLink.check(&body).first().map(|e| e.pointer.as_str()),
            Some(pointer),
            "{body}"
        );
    }
}
