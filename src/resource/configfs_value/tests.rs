//! `configfs_value` by tables: read results in, diff out.

use super::*;
use crate::{AnswerStatus, ReadResult};
use railwright_base::Address;
use serde_json::json;

const DEVICE: &str = "== device rocep193s0\n|parent=ens1\n\n== port 1\n|state:4: ACTIVE\n";

fn resource(body: Value) -> DesiredResource {
    assert_eq!(ConfigfsValue.check(&body), [], "{body}");
    let name = ConfigfsValue.address_name(&body).unwrap();
    assert_eq!(name, "ens1.default_roce_tos");
    DesiredResource::of(
        Address::host("n1", "configfs_value", &name),
        "configfs_value",
        body,
    )
}

/// Answers with this device, this tree of configfs, and our files as an earlier run left them, or
/// none.
fn answers(resource: &DesiredResource, device: &str, tree: &str, kept: bool) -> ReadResults {
    let mut answers = ReadResults::default();
    let ours =
        build_configfs_unit(&read_body(&resource.body)).write(&PersistenceUnitFiles::default());
    for read in ConfigfsValue.reads(resource) {
        let file = |path: &str| {
            ours.iter().find_map(|action| match action {
                Action::WriteFile {
                    path: other,
                    content,
                    ..
                } if kept && other == path => {
                    Some(format!("755 root root 1 regular file\n{content}"))
                }
                _ => None,
            })
        };
        let (code, out) = match &read {
            Read::RdmaLinks => (i32::from(device.is_empty()), device.to_owned()),
            Read::Configfs { .. } => (i32::from(tree.is_empty()), tree.to_owned()),
            Read::File { path } => file(path).map_or((1, String::new()), |text| (0, text)),
            _ => (1, String::new()),
        };
        answers.insert(
            read.key(),
            ReadResult {
                status: AnswerStatus::Exit(code),
                out,
            },
        );
    }
    answers
}

fn tos() -> DesiredResource {
    resource(json!({ "netdev": "ens1", "attribute": "default_roce_tos", "value": 104 }))
}

#[test]
fn a_directory_that_nobody_made_is_a_difference() {
    let resource = tos();
    let found = ConfigfsValue.diff(&resource, &answers(&resource, DEVICE, "", true));
    assert_eq!(
        found.attributes["value"].actual.get(Plane::Running),
        Some(&Reading::Absent)
    );
    let path = "/sys/kernel/config/rdma_cm/rocep193s0/ports/1/default_roce_tos".to_owned();
    assert_eq!(
        found.actions,
        [Action::SetConfigfs {
            path,
            value: "104".to_owned()
        }]
    );
    let met = ConfigfsValue.diff(
        &resource,
        &answers(
            &resource,
            DEVICE,
            "/sys/kernel/config/rdma_cm/rocep193s0/ports/1/default_roce_tos:104\n",
            true,
        ),
    );
    assert!(met.is_met() && met.actions.is_empty());
    for (diff, running) in [(found, json!(null)), (met, json!(104))] {
        assert_eq!(diff.before, json!({ "running": running }));
        assert!(ConfigfsValue.can_read_before(&diff.before));
    }
}

#[test]
fn without_a_device_it_is_known_after_the_rdma_link() {
    let resource = tos();
    let found = ConfigfsValue.diff(&resource, &answers(&resource, "", "", false));
    assert_eq!(
        (found.known_after.as_deref(), found.actions.len()),
        (Some("rdma_link/ens1"), 0)
    );
    assert_eq!(
        found.announced,
        ["reload_systemd", "set_configfs", "write_file"]
    );
}

#[test]
fn undo_sets_what_was_there_or_names_what_stays() {
    let resource = tos();
    let now = answers(
        &resource,
        DEVICE,
        "/sys/kernel/config/rdma_cm/rocep193s0/ports/1/default_roce_tos:104\n",
        true,
    );
    let back = ConfigfsValue.undo(&resource, &json!({ "running": 0 }), &now);
    assert!(
        matches!(back.actions.last(), Some(Action::SetConfigfs { value, .. }) if value == "0"),
        "{back:?}"
    );
    let stays = ConfigfsValue.undo(&resource, &json!({ "running": null }), &now);
    assert!(stays.residue[0].contains("until its driver is reloaded") && stays.actions.len() == 4);
}

#[test]
fn of_a_device_that_is_gone_the_files_alone_are_taken_back() {
    let resource = tos();
    let prior = json!({ "running": 0 });
    let gone = ConfigfsValue.undo(&resource, &prior, &answers(&resource, "", "", true));
    assert!(
        !gone.actions.is_empty() && !gone.attributes.contains_key("value"),
        "{gone:?}"
    );
    let over = ConfigfsValue.undo(&resource, &prior, &answers(&resource, "", "", false));
    assert!(over.is_met() && over.actions.is_empty(), "{over:?}");
}

#[test]
fn a_value_that_cannot_be_read_is_not_taken_back() {
    let resource = tos();
    let mut answers = answers(&resource, DEVICE, "", true);
    answers.insert(
        Read::RdmaLinks.key(),
        ReadResult {
            status: AnswerStatus::Exit(2),
            out: String::new(),
        },
    );
    let undo = ConfigfsValue.undo(&resource, &json!({ "running": 0 }), &answers);
    assert!(undo.only_unknown() && undo.actions.is_empty(), "{undo:?}");
}

#[test]
fn bad_bodies_are_told_apart() {
    for (body, pointer) in [
        (
            json!({ "netdev": "ens1", "attribute": "tos", "value": 1 }),
            "/attribute",
        ),
        (
            json!({ "netdev": "ens1", "attribute": "default_roce_tos", "value": 256 }),
            "/value",
        ),
        (
            json!({ "netdev": "ens1", "attribute": "default_roce_mode", "value": "v2" }),
            "/value",
        ),
    ] {
        assert_eq!(
            ConfigfsValue
                .check(&body)
                .first()
                .map(|e| e.pointer.as_str()),
            Some(pointer),
            "{body}"
        );
    }
}
