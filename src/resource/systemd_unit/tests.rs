//! `systemd_unit` by tables: its files, its verbs and its undo.

use super::*;
use crate::redacted_diff::diff_removal;
use crate::test_support::{answered, resource};

pub(super) const RUNS: &str = "Type=simple\n\
                    RemainAfterExit=no\n\
                    Result=success\n\
                    LoadState=loaded\n\
                    ActiveState=active\n\
                    SubState=running\n\
                    UnitFileState=enabled\n\
                    NeedDaemonReload=no\n\
                    ActiveEnterTimestamp=Thu 1970-01-01 00:16:45 UTC\n";

fn unit() -> DesiredResource {
    let content = "[Service]\nExecStart=/x\n[Install]\nWantedBy=multi-user.target\n";
    resource(
        &SystemdUnit,
        json!({ "name": "q.service", "content": content, "enabled": true, "active": true, "restart_on": ["/etc/q.conf"] }),
    )
}

fn answers(show: &str, file: (i32, &str), times: &str) -> ReadResults {
    let reads = SystemdUnit.reads(&unit());
    answered(&[
        (&reads[0], 0, show),
        (&reads[1], file.0, file.1),
        (&reads[2], 0, times),
    ])
}

fn there() -> String {
    format!(
        "644 root root 50 regular file\n{}",
        unit().text("content").unwrap()
    )
}

pub(super) fn words(diff: &ResourceDiff) -> String {
    let word = |action: &Action| match action {
        Action::Unit { verb, .. } => format!("{verb:?}").to_lowercase(),
        other => other.word(),
    };
    diff.actions.iter().map(word).collect::<Vec<_>>().join(" ")
}

#[test]
fn a_restart_is_pending_until_it_has_happened() {
    let file = there();
    let pending = SystemdUnit.diff(
        &unit(),
        &answers(
            RUNS,
            (0, &file),
            "900 /etc/systemd/system/q.service\n1006 /etc/q.conf\n",
        ),
    );
    assert_eq!(
        (words(&pending).as_str(), pending.disruption),
        ("restart", Disruption::Restart)
    );
    let found = pending.attributes["restarted"].actual.running.clone();
    assert_eq!(
        found,
        Some(Reading::is("/etc/q.conf changed since it started"))
    );
    let paid = RUNS.replace("00:16:45", "00:16:46");
    assert!(
        SystemdUnit
            .diff(&unit(), &answers(&paid, (0, &file), "1006 /etc/q.conf\n"))
            .is_met()
    );
}

#[test]
fn each_difference_asks_for_its_verbs() {
    let file = there();
    for (changes, file, actions) in [
        (
            vec![
                ("LoadState=loaded", "LoadState=not-found"),
                ("UnitFileState=enabled", "UnitFileState="),
            ],
            (1, "folder /etc/systemd/system\n"),
            "write_file reload_systemd enable start",
        ),
        (
            vec![],
            (0, "644 root root 2 regular file\nx\n"),
            "write_file reload_systemd restart",
        ),
        (
            vec![("Reload=no", "Reload=yes")],
            (0, file.as_str()),
            "reload_systemd",
        ),
        (
            vec![("ActiveState=active", "ActiveState=failed")],
            (0, &file),
            "start",
        ),
        (
            vec![("UnitFileState=enabled", "UnitFileState=disabled")],
            (0, &file),
            "enable",
        ),
        (vec![], (0, &file), ""),
    ] {
        let show = changes
            .iter()
            .fold(RUNS.to_owned(), |text, (from, to)| text.replace(from, to));
        assert_eq!(
            words(&SystemdUnit.diff(&unit(), &answers(&show, file, ""))),
            actions,
            "{changes:?}"
        );
    }
}

#[test]
fn a_link_in_the_place_of_a_file_is_left_alone() {
    let link = (0, "777 root root 9 symbolic link\n");
    let masked = RUNS
        .replace("LoadState=loaded", "LoadState=masked")
        .replace("UnitFileState=enabled", "UnitFileState=masked");
    for show in [RUNS, &masked] {
        let refused = SystemdUnit
            .diff(&unit(), &answers(show, link, ""))
            .refusal
            .unwrap();
        assert!(
            refused.starts_with("there is a symbolic link at /etc/systemd/system/q.service"),
            "{refused}"
        );
    }
    let mut body = unit().body.clone();
    body["masked"] = json!(false);
    let lifted = SystemdUnit.diff(&resource(&SystemdUnit, body), &answers(&masked, link, ""));
    assert!(
        lifted.refusal.is_none() && words(&lifted).starts_with("write_file reload_systemd unmask"),
        "{lifted:?}"
    );
}

#[test]
fn what_runs_with_a_drop_in_is_restarted_without_it() {
    let undone = |active: bool| {
        let mut body = json!({ "name": "q.service", "dropins": { "a": "[Service]\nLimitMEMLOCK=infinity\n" } });
        body.as_object_mut()
            .unwrap()
            .extend(active.then(|| ("active".to_owned(), json!(true))));
        let resource = resource(&SystemdUnit, body);
        let reads = SystemdUnit.reads(&resource);
        let asked = |file: (i32, &str)| {
            answered(&[
                (&reads[0], 0, RUNS),
                (&reads[1], file.0, file.1),
                (&reads[2], 0, ""),
            ])
        };
        let before = SystemdUnit
            .diff(&resource, &asked((1, "folder /etc/systemd/system\n")))
            .before;
        SystemdUnit.undo(
            &resource,
            &before,
            &asked((0, "644 root root 2 regular file\nx\n")),
        )
    };
    let (ours, theirs) = (undone(true), undone(false));
    assert_eq!(
        (words(&ours).as_str(), ours.disruption),
        ("remove_file reload_systemd restart", Disruption::Restart)
    );
    assert_eq!(words(&theirs), "remove_file reload_systemd");
    assert!(
        theirs.residue[0].contains("until it is restarted"),
        "{theirs:?}"
    );
}

#[test]
fn undo_stops_and_disables_before_the_file_goes() {
    let missing = RUNS
        .replace("=loaded", "=not-found")
        .replace("=active", "=inactive")
        .replace("UnitFileState=enabled", "UnitFileState=");
    let before = SystemdUnit
        .diff(
            &unit(),
            &answers(&missing, (1, "folder /etc/systemd/system\n"), ""),
        )
        .before;
    assert!(SystemdUnit.can_read_before(&before));
    let undone = SystemdUnit.undo(&unit(), &before, &answers(RUNS, (0, &there()), ""));
    assert_eq!(words(&undone), "disable stop remove_file reload_systemd");
    let again = SystemdUnit.undo(
        &unit(),
        &before,
        &answers(&missing, (1, "folder /etc/systemd/system\n"), ""),
    );
    assert!(again.is_met() && again.actions.is_empty(), "{again:?}");
    let cut_short = missing
        .replace("=not-found", "=loaded")
        .replace("Reload=no", "Reload=yes");
    let rest = SystemdUnit.undo(
        &unit(),
        &before,
        &answers(&cut_short, (1, "folder /etc/systemd/system\n"), ""),
    );
    assert!(
        !rest.is_met() && words(&rest) == "reload_systemd",
        "{rest:?}"
    );
}

#[test]
fn a_unit_that_is_gone_since_is_not_brought_back() {
    let resource = resource(
        &SystemdUnit,
        json!({ "name": "q.service", "enabled": false, "active": false }),
    );
    let asked = |out: &str| answered(&[(&SystemdUnit.reads(&resource)[0], 0, out)]);
    let before = SystemdUnit.diff(&resource, &asked(RUNS)).before;
    let stopped = RUNS
        .replace("ActiveState=active", "ActiveState=inactive")
        .replace("=enabled", "=disabled");
    assert_eq!(
        words(&SystemdUnit.undo(&resource, &before, &asked(&stopped))),
        "enable start"
    );
    let gone = SystemdUnit.undo(
        &resource,
        &before,
        &asked(
            &stopped
                .replace("=loaded", "=not-found")
                .replace("=disabled", "="),
        ),
    );
    assert!(
        gone.is_met()
            && gone.actions.is_empty()
            && gone.residue[0].contains("its unit file is gone since"),
        "{gone:?}"
    );
}

#[test]
fn a_unit_of_which_too_little_is_known_is_not_taken_back() {
    let before = SystemdUnit
        .diff(&unit(), &answers(RUNS, (0, &there()), ""))
        .before;
    let reads = SystemdUnit.reads(&unit());
    let no_bus = answered(&[(&reads[0], 1, ""), (&reads[1], 0, &there())]);
    let odd = RUNS.replace("=enabled", "=bad");
    let odd = answers(&odd, (0, &there()), "");
    let not_recorded = json!({ "unit": null, "files": before["files"] });
    let runs = answers(RUNS, (0, &there()), "");
    for (before, answers) in [(&before, no_bus), (&before, odd), (&not_recorded, runs)] {
        let undo = diff_removal(&SystemdUnit, &unit(), before, &answers);
        assert!(undo.only_unknown() && undo.actions.is_empty(), "{undo:?}");
    }
}

#[test]
fn a_drop_in_that_came_later_is_taken_back_too() {
    let with = |file: &str| {
        let text = "[Service]\nLimitMEMLOCK=infinity\n";
        resource(
            &SystemdUnit,
            json!({ "name": "q.service", "dropins": { file: text } }),
        )
    };
    let answered = |resource: &DesiredResource, file: (i32, &str)| {
        let reads = SystemdUnit.reads(resource);
        answered(&[(&reads[0], 0, RUNS), (&reads[1], file.0, file.1)])
    };
    let (first, later) = (with("10-a"), with("20-b"));
    let [before, now] = [&first, &later].map(|resource| {
        let absent = (1, "folder /etc/systemd/system\n");
        SystemdUnit
            .diff(resource, &answered(resource, absent))
            .before
    });
    let before = SystemdUnit.remembered(&before, &now);
    let there = (0, "644 root root 2 regular file\nx\n");
    let undo = SystemdUnit.undo(&later, &before, &answered(&later, there));
    assert_eq!(words(&undo), "remove_file reload_systemd");
    let paths = ["10-a", "20-b"].map(|f| format!("/etc/systemd/system/q.service.d/{f}.conf"));
    assert!(paths.iter().all(|path| !before["files"][path].is_null()));
}

#[test]
fn a_unit_that_cannot_be_enabled_is_an_error_of_the_body() {
    let errors =
        SystemdUnit.check(&json!({ "name": "q", "content": "[Service]\n", "enabled": true }));
    assert_eq!(
        errors
            .iter()
            .map(|e| e.pointer.as_str())
            .collect::<Vec<_>>(),
        ["/name", "/content"]
    );
}
