//! `firmware_setting` by tables: read results in, diff out; and answers that no card would give.

use super::*;
use crate::Disruption;
use crate::test_support::{answered, resource};
use proptest::prelude::*;
use serde_json::json;

/// Rows as quoted in k8snetworkplumbingwg/sriov-network-operator#358 (ConnectX-6 Lx) and
/// Mellanox/nic-configuration-operator.
const TABLE: &str = "\
== device 0000:c1:00.0
== query 0 mlxconfig
|Device type:    ConnectX6LX
|Configurations:                              Default         Current         Next Boot
|         MEMIC_SIZE_LIMIT                    _256KB(1)       _256KB(1)       _256KB(1)
|*        SRIOV_EN                            False(0)        False(0)        True(1)
|         NUM_OF_VFS                          0               8               8
|         HOST_CHAINING_DESCRIPTORS           Array[0..7]     Array[0..7]     Array[0..7]
";

fn diff(settings: Value, further: &[(&str, Value)], out: &str) -> ResourceDiff {
    let mut body = json!({ "netdev": "ens1", "settings": settings });
    further
        .iter()
        .for_each(|(name, value)| body[*name] = value.clone());
    let resource = resource(&FirmwareSetting, body);
    let read = &FirmwareSetting.reads(&resource)[0];
    FirmwareSetting.diff(&resource, &answered(&[(read, 0, out)]))
}

#[test]
fn three_planes_ask_for_their_own_step() {
    let words = |settings: Value| {
        let found = diff(settings, &[], TABLE);
        let set = match found.actions.first() {
            Some(Action::SetFirmware { settings, .. }) => settings
                .iter()
                .map(|(name, value)| format!("{name}={value}"))
                .collect(),
            _ => String::new(),
        };
        (set, found.needs_reboot, found.pending)
    };
    let none = String::new;
    assert_eq!(
        words(json!({ "NUM_OF_VFS": 8 })),
        (none(), false, false),
        "in sync"
    );
    assert_eq!(
        words(json!({ "SRIOV_EN": 1 })),
        (none(), true, true),
        "written, and waits for its boot"
    );
    assert_eq!(
        words(json!({ "SRIOV_EN": 0 })),
        ("SRIOV_EN=0".to_owned(), false, false),
        "runs, and would be lost at the next boot"
    );
    assert_eq!(
        words(json!({ "NUM_OF_VFS": 16 })),
        ("NUM_OF_VFS=16".to_owned(), true, false)
    );
    for same in ["1", "_256KB", "_256kb", "_256KB(1)"] {
        let is = Cell("_256KB(1)".to_owned()).is(same);
        assert!(is, "{same}");
    }
    assert!(Cell("8".to_owned()).is("0x8") && Cell("8".to_owned()).is("08"));
    assert!(!Cell("True(1)".to_owned()).is("0") && !Cell("8".to_owned()).is("18"));
}

#[test]
fn a_power_cycle_is_named_and_only_where_something_waits_for_it() {
    let by_hand = [("takes_effect", json!("power_cycle"))];
    let waits = diff(json!({ "NUM_OF_VFS": 16 }), &by_hand, TABLE);
    assert!(FirmwareSetting.can_read_before(&waits.before));
    assert!(
        waits.needs_reboot && waits.needs_power_cycle && waits.disruption == Disruption::None,
        "writing it disturbs nobody"
    );
    assert!(!diff(json!({ "NUM_OF_VFS": 8 }), &by_hand, TABLE).needs_power_cycle);
}

#[test]
fn firmware_that_tells_only_the_next_boot_goes_by_that() {
    let out = "== device 0000:c1:00.0\n\
               == query 0 mstconfig\n\
               |Configurations:   Next Boot\n\
               |   SRIOV_EN   True(1)\n";
    assert!(diff(json!({ "SRIOV_EN": 1 }), &[], out).is_met());
    assert_eq!(diff(json!({ "SRIOV_EN": 0 }), &[], out).actions.len(), 1);
}

#[test]
fn what_is_wrong_in_a_body_is_said() {
    let errors = |body: Value| {
        FirmwareSetting
            .check(&body)
            .into_iter()
            .map(|error| error.pointer)
            .collect::<Vec<_>>()
    };
    assert_eq!(errors(json!({ "netdev": "ens1" })), [""]);
    assert_eq!(
        errors(json!({ "netdev": "ens1", "settings": {} })),
        ["/settings"]
    );
    assert_eq!(
        errors(json!({ "netdev": "ens1", "settings": { "sriov_en": 1 } })),
        ["/settings/sriov_en"]
    );
    assert_eq!(
        errors(json!({ "netdev": "ens1", "settings": { "SRIOV_EN": "1 NUM_OF_VFS=9" } })),
        ["/settings/SRIOV_EN"]
    );
    assert_eq!(
        errors(json!({ "netdev": "ens1", "settings": { "SRIOV_EN": [1] } })),
        ["/settings/SRIOV_EN"]
    );
    assert_eq!(
        errors(json!({ "netdev": "ens1", "settings": { "SRIOV_EN": 1 }, "takes_effect": "now" })),
        ["/takes_effect"]
    );
    assert_eq!(
        errors(json!({ "netdev": "ens1", "settings": { "SRIOV_EN": 1 }, "may_lack": "SRIOV_EN" })),
        ["/may_lack"]
    );
}

#[test]
fn an_answer_that_makes_no_sense_is_unknown_and_sets_nothing() {
    for out in [
        "== device 0000:c1:00.0\n== query 3 mlxconfig\n|-E- Failed to open device: 0000:c1:00.0\n",
        "== device 0000:c1:00.0\n== query 0 mlxconfig\n",
        "== device 0000:c1:00.0\n\
         == query 0 mlxconfig\n\
         |Configurations: Default Current Next Boot\n\
         |  SRIOV_EN True(1) True(1)\n",
    ] {
        let found = diff(json!({ "SRIOV_EN": 1 }), &[], out);
        assert!(
            found.has_unknown() && found.actions.is_empty(),
            "{out}: {found:?}"
        );
    }
    let hostile = diff(
        json!({ "SRIOV_EN": 0 }),
        &[],
        &TABLE.replace("0000:c1:00.0", "x; reboot"),
    );
    assert!(hostile.actions.is_empty() && hostile.refusal.is_some());
}

fn undone(settings: &[&str], before: &Value, answer: (i32, &str)) -> ResourceDiff {
    let settings: BTreeMap<_, _> = settings.iter().map(|name| (*name, 1)).collect();
    let resource = resource(
        &FirmwareSetting,
        json!({ "netdev": "ens1", "settings": settings }),
    );
    let read = &FirmwareSetting.reads(&resource)[0];
    FirmwareSetting.undo(&resource, before, &answered(&[(read, answer.0, answer.1)]))
}

#[test]
fn a_card_that_cannot_be_asked_is_not_taken_back() {
    let before = json!({
        "default": {}, "running": {},
        "next_boot": { "SRIOV_EN": "False(0)", "NUM_OF_VFS": "0" },
    });
    let failed = "== device 0000:c1:00.0\n== query 3 mlxconfig\n|-E- Failed to open device\n";
    let hidden = TABLE.replace("NUM_OF_VFS", "PF_BAR2_SIZE");
    for answer in [
        (1, ""),
        (0, "== device virtio0\n"),
        (0, "== device 0000:c1:00.0\n== virtual-function\n"),
        (0, "== device 0000:c1:00.0\n"),
        (0, failed),
        (0, &hidden),
    ] {
        let undo = undone(&["SRIOV_EN", "NUM_OF_VFS"], &before, answer);
        assert!(
            undo.has_unknown() && undo.actions.is_empty(),
            "{answer:?}: {undo:?}"
        );
    }
}

#[test]
fn a_setting_that_came_later_is_taken_back_too() {
    let without = TABLE.replace(
        "|         NUM_OF_VFS                          0",
        "|         SPARE 0",
    );
    let first = diff(json!({ "SRIOV_EN": 1 }), &[], &without).before;
    let now = diff(json!({ "NUM_OF_VFS": 8 }), &[], TABLE).before;
    let both = ["SRIOV_EN", "NUM_OF_VFS"];
    let table = TABLE.replace(
        "0               8               8",
        "0               8               9",
    );
    let undo = undone(
        &both,
        &FirmwareSetting.remembered(&first, &now),
        (0, &table),
    );
    let [Action::SetFirmware { settings, .. }] = &undo.actions[..] else {
        panic!("{undo:?}")
    };
    assert_eq!(settings["NUM_OF_VFS"], "8");
    let undo = undone(&both, &first, (0, &table));
    assert!(
        undo.residue == ["NUM_OF_VFS stays as it is: what was there before was not recorded"],
        "{undo:?}"
    );
}

/// The gate of ours is closed again by its own undo, and hides what it showed.
#[test]
fn what_is_hidden_with_its_gate_is_told() {
    let before = json!({
        "default": {}, "running": {},
        "next_boot": { "ADVANCED_PCI_SETTINGS": "False(0)", "MAX_ACC_OUT_READ": "0" },
    });
    let closed = "== device 0000:c1:00.0\n\
                  == query 0 mlxconfig\n\
                  |Configurations: Default Current Next Boot\n\
                  |  ADVANCED_PCI_SETTINGS False(0) False(0) False(0)\n";
    let gate = ["ADVANCED_PCI_SETTINGS", "MAX_ACC_OUT_READ"];
    let undo = undone(&gate, &before, (0, closed));
    assert!(
        undo.is_met() && undo.residue[0].contains("hidden"),
        "{undo:?}"
    );
    assert!(undone(&gate[1..], &before, (0, closed)).only_unknown());
}

proptest! {
    #[test]
    fn no_answer_panics_or_sets_what_was_not_desired(out in "(== (device|query|virtual-function)?[ \
                                                            0-9a-f:.]{0,14}\n\
                                                            |\\|[*RO \
                                                            ]{0,4}(SRIOV_EN|Configurations:| )[ \
                                                            A-Za-z0-9()\\[\\].]{0,30}\n\
                                                            |\\PC{0,20}\n\
                                                            ){0,8}") {
        let found = diff(json!({ "SRIOV_EN": 1 }), &[], &out);
        for action in found.actions {
            let Action::SetFirmware { device, settings } = action else { panic!("another action") };
            prop_assert!(device.chars().all(|c| c.is_ascii_hexdigit() || ":.".contains(c)));
            prop_assert_eq!(settings, BTreeMap::from([("SRIOV_EN".to_owned(), "1".to_owned())]));
        }
    }
}
