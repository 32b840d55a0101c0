//! `link_ecn` by tables: read results in, diff out; and answers that no driver would give.

use super::*;
use crate::test_support::{answered, resource};
use proptest::prelude::*;

fn lossless() -> DesiredResource {
    resource(
        &LinkEcn,
        json!({ "netdev": "ens1", "priorities": [3], "cnp_dscp": 48, "cnp_priority": 6 }),
    )
}

/// A port with everything off but the notification point of priority 3.
const OFF: &str =
    "ecn\nroce_rp/enable/3 0\nroce_np/enable/3 1\nroce_np/cnp_dscp 0\nroce_np/cnp_802p_prio 6\n";

fn answers(resource: &DesiredResource, out: &str) -> ReadResults {
    let mut all = answered(&[(&LinkEcn.reads(resource)[0], 0, out)]);
    all.merge(keeper_files(resource, None));
    all
}

fn keeper_files(resource: &DesiredResource, text: Option<&[String]>) -> ReadResults {
    let mut all = ReadResults::default();
    for (n, read) in LinkEcn.reads(resource).iter().skip(1).enumerate() {
        let (code, out) = match text {
            Some(texts) => (
                0,
                format!(
                    "755 root root {} regular file\n{}",
                    texts[n].len(),
                    texts[n]
                ),
            ),
            None => (1, "folder /etc\n".to_owned()),
        };
        all.merge(answered(&[(read, code, &out)]));
    }
    all
}

#[test]
fn only_what_differs_is_written_and_what_was_there_comes_back() {
    let resource = lossless();
    let found = LinkEcn.diff(&resource, &answers(&resource, OFF));
    let words: Vec<String> = found.actions.iter().map(Action::word).collect();
    assert_eq!(
        words,
        [
            "write_file",
            "write_file",
            "write_file",
            "reload_systemd",
            "set_link_ecn"
        ]
    );
    let Some(Action::SetLinkEcn { settings, .. }) = found.actions.last() else {
        panic!("{found:?}")
    };
    let pair = |file: &str, value: &str| (file.to_owned(), value.to_owned());
    assert_eq!(
        *settings,
        BTreeMap::from([
            pair("roce_rp/enable/3", "1"),
            pair("roce_np/cnp_dscp", "48")
        ])
    );

    let texts: Vec<String> = found
        .actions
        .iter()
        .filter_map(|a| {
            if let Action::WriteFile { content, .. } = a {
                Some(content.clone())
            } else {
                None
            }
        })
        .collect();
    let on = OFF
        .replace("rp/enable/3 0", "rp/enable/3 1")
        .replace("cnp_dscp 0", "cnp_dscp 48");
    let mut after = answered(&[(&LinkEcn.reads(&resource)[0], 0, &on)]);
    after.merge(keeper_files(&resource, Some(&texts)));
    let done = LinkEcn.diff(&resource, &after);
    assert!(done.is_met() && done.actions.is_empty(), "{done:#?}");

    assert!(LinkEcn.can_read_before(&found.before));
    let undo = LinkEcn.undo(&resource, &found.before, &after);
    let Some(Action::SetLinkEcn { settings, .. }) = undo.actions.last() else {
        panic!("{undo:?}")
    };
    assert_eq!(
        *settings,
        BTreeMap::from([pair("roce_rp/enable/3", "0"), pair("roce_np/cnp_dscp", "0")])
    );
}

#[test]
fn files_that_cannot_be_read_are_not_taken_back() {
    let resource = lossless();
    let before = json!({ "running": { "roce_rp/enable/3": "0" } });
    let undo = LinkEcn.undo(&resource, &before, &answers(&resource, "nonsense\n"));
    assert_eq!(undo.attributes.len(), 1, "{undo:?}");
    assert!(undo.only_unknown() && undo.actions.is_empty(), "{undo:?}");
}

#[test]
fn a_driver_without_the_files_is_refused_or_waited_for() {
    let resource = lossless();
    for (out, why) in [
        ("", "its driver has no settings of ECN"),
        ("virtual-function\n", "virtual function"),
    ] {
        let found = LinkEcn.diff(&resource, &answers(&resource, out));
        assert!(
            found
                .refusal
                .as_ref()
                .is_some_and(|text| text.contains(why))
                && found.actions.is_empty(),
            "{found:?}"
        );
    }
    let body = json!({ "netdev": "ens1", "priorities": [3], "known_after": "systemd_unit/openibd.service" });
    let later = crate::test_support::resource(&LinkEcn, body);
    assert_eq!(
        LinkEcn
            .diff(&later, &answers(&later, ""))
            .known_after
            .as_deref(),
        Some("systemd_unit/openibd.service")
    );
    let odd = LinkEcn.diff(&resource, &answers(&resource, "something else\n"));
    assert!(odd.has_unknown() && odd.actions.is_empty());
}

#[test]
fn what_is_wrong_in_a_body_is_said() {
    let errors = |body: Value| {
        LinkEcn
            .check(&body)
            .into_iter()
            .map(|error| error.pointer)
            .collect::<Vec<_>>()
    };
    assert_eq!(errors(json!({ "netdev": "ens1" })), [""]);
    assert_eq!(
        errors(json!({ "netdev": "ens1", "priorities": [8] })),
        ["/priorities"]
    );
    assert_eq!(
        errors(json!({ "netdev": "ens1", "priorities": [3], "cnp_dscp": 64, "cnp_priority": 8 })),
        ["/cnp_dscp", "/cnp_priority"]
    );
}

proptest! {
    #[test]
    fn no_answer_panics_or_writes_another_file(out in "(ecn|virtual-function|\\PC{0,9})\n\
                                                       ((roce_[rn]p/(enable/[0-9]|cnp_dscp)|\\PC{0,9}) \
                                                       \\PC{0,9}\n\
                                                       ){0,6}") {
        let resource = lossless();
        for action in LinkEcn.diff(&resource, &answers(&resource, &out)).actions {
            if let Action::SetLinkEcn { settings, .. } = action {
                let ours = build_desired_ecn_files(&read_body(&resource.body));
                prop_assert!(settings.iter().all(|(file, value)| ours.get(file) == Some(value)));
            }
        }
    }
}
