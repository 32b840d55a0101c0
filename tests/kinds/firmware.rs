//! `firmware_setting` on a host whose `mlxconfig` is a fake: no such card is here. It answers
//! and refuses as the real one does, and what it was told comes into effect only with a boot.

use crate::rig::{Host, changes, resource};
use railwright_resource::{Action, Plane, Reading};
use serde_json::{Value, json};
use std::path::Path;

const CARD: &str = "0000:c1:00.0";

/// A host with a card below `ens1`, a virtual function `ens1v0` and `veth0`, which is no card. Its
/// sysfs is a folder.
fn host(story: &str) -> Option<Host> {
    let fake = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fakes/mlxconfig");
    let host = Host::start(story, &[(&fake, "usr/bin/mlxconfig")])?;
    host.must(&format!(
        "mkdir -p /sys/class/net/ens1 /sys/class/net/ens1v0 /sys/class/net/veth0 \
         /sys/devices/{CARD} /sys/devices/0000:c1:00.2 /var/opt/nvconfig\n\
         ln -s ../../../devices/{CARD} /sys/class/net/ens1/device; ln -s \
         ../../../devices/0000:c1:00.2 /sys/class/net/ens1v0/device\n\
         mkdir /sys/devices/0000:c1:00.2/physfn\n\
         cat >/var/opt/nvconfig/{CARD} <<'EOF'\n\
         SRIOV_EN False(0) False(0) False(0)\n\
         NUM_OF_VFS 0 0 0\n\
         LINK_TYPE_P1 IB(1) ETH(2) ETH(2)\n\
         ADVANCED_PCI_SETTINGS False(0) False(0) False(0)\n\
         MAX_ACC_OUT_READ 0 0 0\n\
         BOARD_ID 7 7 7\n\
         HOST_CHAINING_DESCRIPTORS Array[0..7] Array[0..7] Array[0..7]\n\
         EOF\n"
    ));
    Some(host)
}

fn settings(settings: Value) -> Value {
    json!({ "netdev": "ens1", "settings": settings })
}

#[test]
fn a_setting_is_written_at_once_and_in_effect_after_a_boot() {
    let Some(host) = host("firmware") else { return };
    let resource = resource(
        "firmware_setting",
        settings(json!({ "SRIOV_EN": true, "NUM_OF_VFS": 8, "LINK_TYPE_P1": "ETH" })),
    );
    let tree = host.tree();
    let fresh = host.diff(&resource);
    assert_eq!(
        changes(&tree, &host.tree()),
        [] as [&str; 0],
        "reading changed the host"
    );
    let set = |pairs: &[(&str, &str)]| Action::SetFirmware {
        device: CARD.to_owned(),
        settings: pairs
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect(),
    };
    assert_eq!(
        fresh.actions,
        [set(&[("NUM_OF_VFS", "8"), ("SRIOV_EN", "1")])],
        "what is in sync is not written again"
    );
    assert!(fresh.needs_reboot && !fresh.needs_power_cycle);
    assert_eq!(fresh.before["default"]["LINK_TYPE_P1"], "IB(1)");
}

#[test]
fn what_was_set_waits_for_the_boot_and_comes_back_with_undo() {
    let Some(host) = host("firmware undo") else {
        return;
    };
    let before = host.must("cat /var/opt/nvconfig/*");
    let resource = resource(
        "firmware_setting",
        settings(json!({ "SRIOV_EN": 1, "NUM_OF_VFS": 8 })),
    );
    let fresh = host.diff(&resource);
    host.perform(&fresh.actions);
    let waits = host.diff(&resource);
    let planes: Vec<Plane> = waits.attributes["SRIOV_EN"]
        .differences()
        .into_iter()
        .map(|(plane, ..)| plane)
        .collect();
    assert_eq!(
        (planes, &waits.actions, waits.needs_reboot, waits.pending),
        (vec![Plane::Running], &vec![], true, true)
    );
    host.must("mlxconfig boot");
    assert!(host.diff(&resource).is_met());

    let undo = host.undo(&resource, &fresh.before);
    assert!(undo.needs_reboot && !undo.pending);
    host.perform(&undo.actions);
    host.must("mlxconfig boot");
    assert_eq!(host.must("cat /var/opt/nvconfig/*"), before);
    assert!(host.undo(&resource, &fresh.before).is_met());
}

#[test]
fn a_setting_that_is_hidden_comes_with_the_second_plan() {
    let Some(host) = host("firmware gate") else {
        return;
    };
    let resource = resource(
        "firmware_setting",
        settings(json!({ "ADVANCED_PCI_SETTINGS": 1, "MAX_ACC_OUT_READ": 44 })),
    );
    for value in ["ADVANCED_PCI_SETTINGS", "MAX_ACC_OUT_READ"] {
        let found = host.diff(&resource);
        assert_eq!(found.refusal, None);
        let Action::SetFirmware { settings, .. } = &found.actions[0] else {
            panic!("{found:?}")
        };
        assert_eq!(settings.keys().collect::<Vec<_>>(), [value]);
        host.perform(&found.actions);
        host.must("mlxconfig boot");
    }
    assert!(host.diff(&resource).is_met());
}

#[test]
fn what_the_card_refuses_is_refused_before_it_is_asked() {
    let Some(host) = host("firmware refusals") else {
        return;
    };
    let refusal = |body: Value| {
        let found = host.diff(&resource("firmware_setting", body));
        assert!(found.actions.is_empty(), "{found:?}");
        found.refusal.unwrap_or_default()
    };
    let says = |body: Value, words: &str| {
        assert!(
            refusal(body.clone()).contains(words),
            "{body}: {}",
            refusal(body.clone())
        )
    };
    says(settings(json!({ "SRIOV_ENN": 1 })), "no setting SRIOV_ENN");
    says(
        settings(json!({ "MAX_ACC_OUT_READ": 44 })),
        "may be hidden until ADVANCED_PCI_SETTINGS is in effect",
    );
    says(
        settings(json!({ "BOARD_ID": 8 })),
        "does not let BOARD_ID be written",
    );
    says(
        settings(json!({ "HOST_CHAINING_DESCRIPTORS": 8 })),
        "is an array",
    );
    says(
        json!({ "netdev": "ens1v0", "settings": { "SRIOV_EN": 1 } }),
        "virtual function",
    );
    says(
        json!({ "netdev": "veth0", "settings": { "SRIOV_EN": 1 } }),
        "no PCI device",
    );
    says(
        json!({ "netdev": "ens9", "settings": { "SRIOV_EN": 1 } }),
        "there is no netdev ens9",
    );
    let lacks = host
        .diff(&resource("firmware_setting", json!({ "netdev": "ens1", "settings": { "LINK_TYPE_P2": 2 }, "may_lack": ["LINK_TYPE_P2"] })));
    assert!(lacks.is_met() && lacks.refusal.is_none());

    host.must(&format!("rm /var/opt/nvconfig/{CARD}"));
    let gone = host.diff(&resource(
        "firmware_setting",
        settings(json!({ "SRIOV_EN": 1 })),
    ));
    let Some((_, _, Reading::Unknown(reason))) =
        gone.attributes["SRIOV_EN"].differences().into_iter().next()
    else {
        panic!("{gone:?}")
    };
    assert!(
        reason.as_words().contains("Failed to open device"),
        "{reason}"
    );
    host.must("rm /usr/bin/mlxconfig");
    says(
        settings(json!({ "SRIOV_EN": 1 })),
        "neither mlxconfig nor mstconfig",
    );
    let body = json!({ "netdev": "ens1", "settings": { "SRIOV_EN": 1 }, "known_after": "package/mstflint" });
    assert_eq!(
        host.diff(&resource("firmware_setting", body))
            .known_after
            .as_deref(),
        Some("package/mstflint")
    );
}
