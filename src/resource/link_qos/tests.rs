//! `link_qos` by tables: read results in, diff out.

use super::*;
use crate::{AnswerStatus, ReadResult};
use proptest::prelude::*;
use railwright_base::Address;
use serde_json::json;

/// `dcb -j -N` (iproute2 6.1) and `ethtool -a` on the lab's make-believe ConnectX.
const DCB: &str = include_str!("tests/dcb.txt");
/// `mlnx_qos -i` as the scripts of att/netarbiter
/// (nvmf/OUTPUTSAMPLE.setup-nic-lossless-layer3.sh.md) recorded it on a ConnectX.
const MLNX: &str = include_str!("tests/mlnx_qos.txt");

fn resource(body: Value) -> DesiredResource {
    assert_eq!(LinkQos.check(&body), [], "{body}");
    DesiredResource::of(Address::host("n1", "link_qos", "ens1"), "link_qos", body)
}

fn answers(resource: &DesiredResource, code: i32, out: &str) -> ReadResults {
    let mut answers = ReadResults::default();
    for read in LinkQos.reads(resource) {
        let (code, out) = if matches!(read, Read::LinkQos { .. }) {
            (code, out)
        } else {
            (1, "")
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

fn lossless() -> Value {
    json!({ "netdev": "ens1", "pfc": [3], "dscp": { "26": 3, "48": 6 }, "ets": { "prio_tc": { "3": 3, "6": 6 }, "tsa": { "6": "strict" }, "bandwidth": { "0": 50, "3": 50 } } })
}

fn running(diff: &ResourceDiff) -> Vec<String> {
    let words = |action: &Action| match action {
        Action::SetDcb { commands } | Action::SetMlnxQos { commands } => commands
            .iter()
            .map(|words| words.join(" "))
            .collect::<Vec<_>>(),
        Action::SetPause { on, .. } => vec![format!("pause {on}")],
        _ => Vec::new(),
    };
    diff.actions.iter().flat_map(words).collect()
}

#[test]
fn only_what_differs_is_set_and_pause_goes_first() {
    let resource = resource(lossless());
    let found = LinkQos.diff(&resource, &answers(&resource, 0, DCB));
    assert_eq!(
        running(&found),
        ["pause false"],
        "dcb already says the rest"
    );
    let empty = DCB
        .replace("[[26,3],[48,6]]", "[[10,1]]")
        .replace(
            "false,true,false,false,false,false]",
            "false,false,false,false,false,false]",
        )
        .replace("[0,0,0,3,0,0,6,0]", "[0,1,2,3,4,5,6,7]");
    insta::assert_snapshot!(running(&LinkQos.diff(&resource, &answers(&resource, 0, &empty))).join("\n"), @r"
    pause false
    ets set dev ens1 prio-tc 0:0 1:0 2:0 3:3 4:0 5:0 6:6 7:0 tc-tsa 0:ets 1:ets 2:ets 3:ets 4:ets 5:ets 6:strict 7:ets tc-bw 0:50 1:0 2:0 3:50 4:0 5:0 6:0 7:0
    app replace dev ens1 dscp-prio 26:3 48:6
    app del dev ens1 dscp-prio 10:1
    pfc set dev ens1 prio-pfc all:off 3:on
    ");
}

#[test]
fn our_script_is_read_back_as_it_was_written() {
    let body = read_body::<LinkQosBody>(&lossless());
    for tool in [QosTool::Dcb, QosTool::Mlnx] {
        let [Action::WriteFile { content, .. }, ..] =
            &build_link_qos_unit(&body, tool).write(&PersistenceUnitFiles::default())[..]
        else {
            panic!()
        };
        let mut kept = PersistenceUnitFiles::default();
        kept.script = Some(format!("{content}# a line by hand\n"));
        let read = decode_persisted_qos(
            &Settings::default(),
            &build_link_qos_unit(&body, tool),
            tool,
            &Ok(kept),
        )
        .unwrap();
        assert_eq!(read, body.build_settings(), "{tool:?}");
    }
}

#[test]
fn mlnx_qos_stands_in_where_there_is_no_dcb() {
    let resource = resource(json!({ "netdev": "ens1", "pfc": [3], "dscp": { "26": 3, "48": 6 } }));
    assert!(running(&LinkQos.diff(&resource, &answers(&resource, 0, MLNX))).is_empty());
    let pcp = MLNX
        .replace("state: dscp", "state: pcp")
        .replace("0   0   0   1", "0   0   0   0");
    let found = LinkQos.diff(&resource, &answers(&resource, 0, &pcp));
    assert!(LinkQos.can_read_before(&found.before));
    assert_eq!(
        running(&found),
        [
            "-i ens1 --trust dscp",
            "-i ens1 --dscp2prio set,26,3",
            "-i ens1 --dscp2prio set,48,6",
            "-i ens1 --pfc 0,0,0,1,0,0,0,0"
        ]
    );
    assert_eq!(
        (found.disruption, &*found.interrupts_netdevs),
        (Disruption::LinkBlip, &["ens1".to_owned()][..])
    );
}

#[test]
fn a_nic_that_cannot_is_refused_and_a_virtual_function_is_not_asked() {
    let resource = resource(lossless());
    let plain = "== pfc 1\n|Attribute read: Operation not supported\n";
    assert!(
        LinkQos
            .diff(&resource, &answers(&resource, 0, plain))
            .refusal
            .unwrap()
            .contains("(`optional: true` accepts that)")
    );
    let mut optional = resource.clone();
    std::sync::Arc::make_mut(&mut optional.declaration).body["optional"] = json!(true);
    assert!(
        LinkQos
            .diff(&optional, &answers(&optional, 0, plain))
            .is_met()
    );
    let broken = LinkQos.diff(
        &resource,
        &answers(&resource, 0, "== pfc 1\n|Cannot talk to kernel\n"),
    );
    assert!(broken.has_unknown() && broken.refusal.is_none());
    assert!(
        LinkQos
            .diff(&resource, &answers(&resource, 1, ""))
            .refusal
            .unwrap()
            .contains("no netdev")
    );
}

#[test]
fn an_lldpad_that_disagrees_and_firmware_dcbx_are_seen() {
    let resource = resource(lossless());
    for (willing, enabled, refused) in [
        ("yes", "8", true),
        ("", "", true),
        ("no", "24", true),
        ("no", "8", false),
    ] {
        let lldpad = format!(
            "{DCB}\n== lldpad 0\n|willing={willing}\n\n== lldpad-pfc 0\n|enabled={enabled}\n"
        );
        let refusal = LinkQos
            .diff(&resource, &answers(&resource, 0, &lldpad))
            .refusal;
        assert_eq!(
            refusal.is_some_and(
                |text| text.contains("lldptool -T -i ens1 -V PFC willing=no enabled=3")
            ),
            refused,
            "{willing} {enabled}"
        );
    }
    let firmware = DCB.replace(
        "{\"host\":true,\"ieee\":true}",
        "{\"lld_managed\":true,\"ieee\":true}",
    );
    let found = LinkQos.diff(&resource, &answers(&resource, 0, &firmware));
    assert_eq!(
        running(&found),
        ["pause false", "dcbx set dev ens1 host ieee"]
    );
}

#[test]
fn a_class_waits_for_the_package_that_brings_ethtool() {
    let (rest, _) = DCB.split_at(DCB.find("== pause").unwrap());
    let broken = format!("{rest}== pause 1\n|No such device\n");
    // It brings `ethtool` alone, and no netdev.
    for (code, out, comes, waits) in [
        (0, rest, json!("package/ethtool"), true),
        (0, rest, Value::Null, false),
        (0, &broken, json!("package/ethtool"), false),
        (1, "", json!("package/ethtool"), false),
    ] {
        let resource = resource(json!({ "netdev": "ens1", "pfc": [4], "known_after": comes }));
        let found = LinkQos.diff(&resource, &answers(&resource, code, out));
        assert_eq!(found.known_after.is_some(), waits, "{out}: {found:?}");
        assert_eq!(found.refusal.is_none(), waits, "{out}: {found:?}");
    }
}

/// Debian 12 has no `ethtool` by default.
#[test]
fn a_pause_that_nobody_told_is_unknown_and_one_that_the_driver_has_not_is_none() {
    let resource = resource(json!({ "netdev": "ens1", "pfc": [3], "pause": false }));
    let before = json!({ "running": { "pfc": [], "pause": true } });
    let (rest, pause) = DCB.split_at(DCB.find("== pause").unwrap());
    for (pause, is_known, has_pause) in [
        (pause, true, true),
        (
            "== pause 76\n|netlink error: Operation not supported\n",
            true,
            false,
        ),
        ("", false, false),
        ("== pause 1\n|netlink error: No such device\n", false, false),
        ("== pause 0\n|Pause parameters for ens1:\n", false, false),
    ] {
        let answers = answers(&resource, 0, &format!("{rest}{pause}"));
        let found = LinkQos.diff(&resource, &answers);
        assert_eq!(!found.has_unknown(), is_known, "{pause}");
        assert_eq!(found.refusal.is_none(), is_known, "{pause}: {found:?}");
        assert_eq!(running(&found) == ["pause false"], has_pause, "{pause}");
        let undo = LinkQos.undo(&resource, &before, &answers);
        assert_eq!(!undo.has_unknown(), is_known, "{pause}: {undo:?}");
        assert_eq!(undo.actions.is_empty(), !is_known, "{pause}: {undo:?}");
    }
}

#[test]
fn undo_brings_back_what_ran() {
    let resource = resource(lossless());
    let before = json!({ "running": { "pfc": [], "dscp": {}, "pause": true, "ets": null } });
    let undo = LinkQos.undo(
        &resource,
        &before,
        &answers(
            &resource,
            0,
            &DCB.replace("RX:\t\ton", "RX:\t\toff")
                .replace("TX:\t\ton", "TX:\t\toff"),
        ),
    );
    assert_eq!(
        running(&undo),
        [
            "app del dev ens1 dscp-prio 26:3 48:6",
            "pfc set dev ens1 prio-pfc all:off",
            "pause true"
        ]
    );
}

#[test]
fn settings_that_cannot_be_read_are_not_taken_back() {
    let resource = resource(lossless());
    let before = json!({ "running": { "pfc": [], "dscp": {}, "pause": true, "ets": null } });
    let undo = |code, out: &str| LinkQos.undo(&resource, &before, &answers(&resource, code, out));
    for out in [
        "== pfc 255\n|dcb: Failed to read: Device or resource busy\n",
        "",
        "== mlnx_qos 1\n|no answer\n",
    ] {
        let unknown = undo(0, out);
        assert!(
            unknown.only_unknown() && unknown.actions.is_empty(),
            "{out}: {unknown:?}"
        );
    }
    let gone = undo(1, "");
    assert!(gone.is_met() && !gone.residue.is_empty(), "{gone:?}");
}

#[test]
fn bad_bodies_are_told_apart() {
    for (body, pointer) in [
        (json!({ "netdev": "ens1" }), ""),
        (json!({ "netdev": "ens1", "pfc": [8] }), "/pfc"),
        (json!({ "netdev": "ens1", "dscp": { "64": 3 } }), "/dscp"),
        (
            json!({ "netdev": "ens1", "pfc": [3], "pause": true }),
            "/pause",
        ),
        (
            json!({ "netdev": "ens1", "ets": { "bandwidth": { "0": 50 } } }),
            "/ets/bandwidth",
        ),
        (
            json!({ "netdev": "ens1", "ets": { "tsa": { "0": "strict" }, "bandwidth": { "0": 50, "1": 50 } } }),
            "/ets/bandwidth",
        ),
        (
            json!({ "netdev": "ens1", "ets": { "bw": [] , "bandwidth": { "0": 100 } } }),
            "/ets/bw",
        ),
    ] {
        assert_eq!(
            LinkQos.check(&body).first().map(|e| e.pointer.as_str()),
            Some(pointer),
            "{body}"
        );
    }
    let misspelt = json!({ "netdev": "ens1", "ets": { "bandwith": { "0": 100 } } });
    let error = &LinkQos.check(&misspelt)[0];
    assert_eq!(
        (error.message.as_str(), error.help.as_deref()),
        (
            "unknown field `bandwith`",
            Some("did you mean `bandwidth`?")
        )
    );
}

proptest! {
    #[test]
    fn no_output_panics(out in "(== pfc 0|== ets 0|== app 0|== mlnx_qos 0|\\||tc: |priority: \
                                |prio:|\\{|\\}|\\[|\"dscp_prio\":|[0-9,]|\n\
                                ){0,40}") {
        let resource = resource(lossless());
        LinkQos.diff(&resource, &answers(&resource, 0, &out));
    }
}

/// `mlnx_qos` with a length alone would switch PFC off (python/mlnx_qos: `pfc_en = 0` before the
/// list is read).
#[test]
fn the_length_of_the_cable_goes_by_either_tool_and_never_without_pfc() {
    let resource = resource(json!({ "netdev": "ens1", "cable_length_m": 40 }));
    let found = LinkQos.diff(&resource, &answers(&resource, 0, DCB));
    assert_eq!(running(&found), ["pfc set dev ens1 delay 40"]);
    assert_eq!(
        found.disruption,
        Disruption::Reload,
        "no priority is switched"
    );
    let by_mlnx = running(&LinkQos.diff(&resource, &answers(&resource, 0, MLNX)));
    let [set] = by_mlnx.as_slice() else {
        panic!("{by_mlnx:?}")
    };
    assert!(
        set.starts_with("-i ens1 --pfc ") && set.ends_with(" --cable_len 40"),
        "{set}"
    );
    for (script, decoded) in [
        (
            "dcb 'pfc' 'set' 'dev' 'ens1' 'delay' '40'\n",
            dcb::decode_script as fn(&str) -> Settings,
        ),
        (
            "mlnx_qos '-i' 'ens1' '--pfc' '0,0,0,1,0,0,0,0' '--cable_len' '40'\n",
            mlnx::decode_script,
        ),
    ] {
        assert_eq!(decoded(script).cable_length_m, Some(40), "{script}");
    }
    let both = Settings {
        pfc: Some([3].into()),
        cable_length_m: Some(7),
        ..Settings::default()
    };
    assert_eq!(
        mlnx::build_mlnx_qos_commands(
            "ens1",
            &both,
            &Settings {
                pfc: both.pfc.clone(),
                ..Settings::default()
            }
        ),
        [["-i", "ens1", "--pfc", "0,0,0,1,0,0,0,0", "--cable_len", "7"]]
    );
    for metres in [0, 1000] {
        assert_eq!(
            LinkQos.check(&json!({ "netdev": "ens1", "cable_length_m": metres }))[0].pointer,
            "/cable_length_m"
        );
    }
}

/// The driver takes the port down for it, however small the change.
#[test]
fn a_change_of_pfc_takes_the_link_down() {
    let resource = resource(json!({ "netdev": "ens1", "pfc": [3, 4] }));
    let found = LinkQos.diff(&resource, &answers(&resource, 0, DCB));
    assert_eq!(
        (found.disruption, found.interrupts_netdevs),
        (Disruption::LinkBlip, vec!["ens1".to_owned()])
    );
}
