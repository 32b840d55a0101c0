//! `systemd_unit` by tables: what systemd reports of a unit, and what may be declared.

use super::tests::{RUNS, words};
use super::*;
use crate::redacted_diff::diff_removal;
use crate::test_support::{answered, resource};

/// What a host reports of q.service, where some lines are others than while it runs.
fn said(changes: &[(&str, &str)]) -> String {
    changes.iter().fold(RUNS.to_owned(), |text, (line, other)| {
        assert!(text.contains(line), "{line}");
        text.replace(line, other)
    })
}

/// The diff of a resource without files, by what a host reports of q.service.
fn diff_state(body: &Value, show: &str) -> (ResourceDiff, DesiredResource, ReadResults) {
    let mut body = body.clone();
    body["name"] = json!("q.service");
    let resource = resource(&SystemdUnit, body);
    let answers = answered(&[(&SystemdUnit.reads(&resource)[0], 0, show)]);
    (SystemdUnit.diff(&resource, &answers), resource, answers)
}

#[test]
fn an_alias_of_another_unit_is_refused_and_not_rolled_back() {
    let off = json!({ "enabled": false, "active": false });
    let alias = format!("{RUNS}Id=real.service\n");
    for (show, is_refused) in [
        (RUNS, false),
        (&format!("{RUNS}Id=q.service\n"), false),
        (&alias, true),
    ] {
        let (diff, ..) = diff_state(&off, show);
        let refusal = diff.refusal.as_deref();
        let words = "q.service is another name of real.service on this host: give that as \
                     `name`";
        assert_eq!(refusal, is_refused.then_some(words), "{show}");
    }
    let before = diff_state(&off, RUNS).0.before;
    let (_, resource, as_before) = diff_state(&off, &alias);
    let undo = diff_removal(&SystemdUnit, &resource, &before, &as_before);
    assert!(undo.is_met() && undo.actions.is_empty(), "{undo:?}");
    let (_, resource, disabled) = diff_state(&off, &alias.replace("=enabled", "=disabled"));
    let undo = diff_removal(&SystemdUnit, &resource, &before, &disabled);
    assert!(undo.only_unknown() && undo.actions.is_empty(), "{undo:?}");
}

#[test]
fn a_unit_is_enabled_where_its_file_says_once_the_links_are_there() {
    let content = "[Unit]\nWantedBy=no\n[Install]\nWantedBy = a.target b%i.target\n\
                   RequiredBy=c.target\n";
    let both = Reading::is(true);
    for (links, found) in [
        ("", both.clone()),
        (
            "Links= a.target.wants c.target.requires d.target.wants\n",
            both,
        ),
        (
            "Links= c.target.requires\n",
            Reading::is("not in a.target.wants"),
        ),
        ("Links=\n", Reading::is("not in a.target.wants")),
    ] {
        let name = "q.service".to_owned();
        let answers = answered(&[(&Read::Unit { name }, 0, &format!("{RUNS}{links}"))]);
        let unit = FoundUnit::of("q.service", &answers).unwrap();
        assert_eq!(unit.enabled_by(Some(content)), found, "{links}");
        assert_eq!(unit.enabled_by(None), Reading::is(true));
    }
    let body = json!({ "name": "q.service", "content": content, "enabled": true });
    let resource = resource(&SystemdUnit, body);
    let show = format!("{RUNS}Links= old.target.wants\n");
    let file = format!("644 root root 9 regular file\n{content}");
    let [unit, own, times] = <[Read; 3]>::try_from(SystemdUnit.reads(&resource)).unwrap();
    let answers = answered(&[(&unit, 0, &show), (&own, 0, &file), (&times, 0, "")]);
    let diff = SystemdUnit.diff(&resource, &answers);
    assert_eq!(words(&diff), "disable enable", "{diff:?}");
}

/// `systemctl disable` takes every link to a unit file away.
#[test]
fn a_unit_that_is_a_link_to_a_file_elsewhere_keeps_its_link() {
    let link_to = |file: &str, state: &str| {
        let state = format!("UnitFileState={state}");
        said(&[("UnitFileState=enabled", &state)]) + &format!("LinkTo={file}\n")
    };
    let linked = link_to("/opt/app/q.service", "linked");
    let elsewhere = link_to("/opt/app/q.service", "enabled");
    for (desired, show, is_refused) in [
        (true, &linked, true),
        (false, &linked, false),
        (true, &elsewhere, false),
        (false, &elsewhere, true),
        (
            false,
            &link_to("/usr/lib/systemd/system/q.service", "enabled"),
            false,
        ),
        (true, &link_to("/dev/null", "disabled"), false),
    ] {
        let (diff, ..) = diff_state(&json!({ "enabled": desired }), show);
        assert_eq!(diff.refusal.is_some(), is_refused, "{desired} {show}");
    }
    let before = diff_state(&json!({ "enabled": true }), &linked).0.before;
    let (_, resource, answers) = diff_state(&json!({ "enabled": true }), &elsewhere);
    let undo = SystemdUnit.undo(&resource, &before, &answers);
    assert!(undo.only_unknown() && undo.actions.is_empty(), "{undo:?}");
}

/// By systemd 252: `Result` and the time of the exit stay after `stop`, as long as something
/// keeps the unit loaded.
#[test]
fn a_oneshot_that_has_run_is_stopped_and_is_not_taken_back() {
    let fresh = said(&[("simple", "oneshot"), ("=active", "=inactive")]);
    let exited = "ExecMainExitTimestamp=Thu 1970-01-01 00:16:44 UTC\n";
    let has_run = format!("{fresh}{exited}");
    let runs = fresh.replace("=inactive", "=activating");
    let (on, off) = (json!({ "active": true }), json!({ "active": false }));
    let before = [&fresh, &has_run].map(|show| diff_state(&on, show).0.before);
    for (show, met, undone) in [
        (&fresh, [false, true], ["", ""]),
        (&has_run, [true, true], ["", ""]),
        (&runs, [false, false], ["stop", ""]),
    ] {
        let (is_on, resource, answers) = diff_state(&on, show);
        let (is_off, ..) = diff_state(&off, show);
        assert_eq!([is_on.is_met(), is_off.is_met()], met, "{show}");
        let undo = |before| SystemdUnit.undo(&resource, before, &answers);
        let actions = [undo(&before[0]), undo(&before[1])].map(|undo| words(&undo));
        assert_eq!(actions, undone, "{show}");
    }
}

#[test]
fn a_oneshot_whose_run_systemd_forgets_is_refused() {
    let let_go = said(&[("simple", "oneshot"), ("=active", "=inactive")]) + "InMemory=no\n";
    let missing = let_go
        .replace("=loaded", "=not-found")
        .replace("Type=oneshot", "Type=");
    let content = |more: &str| format!("[Service]\nType=oneshot\nExecStart=/x\n{more}");
    let ran = format!("{let_go}ExecMainExitTimestamp=Thu 1970-01-01 00:16:44 UTC\n");
    let remains = json!({ "a": "[Service]\nRemainAfterExit = yes\n" });
    for (body, show, is_refused) in [
        (json!({ "active": true }), &let_go, true),
        (json!({ "active": true, "enabled": false }), &let_go, true),
        (json!({ "active": true, "enabled": true }), &let_go, false),
        (json!({ "active": false }), &let_go, false),
        (
            json!({ "active": true }),
            &let_go.replace("=no\n", "=yes\n"),
            false,
        ),
        (
            json!({ "active": true }),
            &let_go.replace("InMemory", "x"),
            false,
        ),
        (json!({ "active": true }), &ran, false),
        (json!({ "active": true }), &missing, false),
        (
            json!({ "active": true, "content": content("") }),
            &missing,
            true,
        ),
        (
            json!({ "active": true, "content": "[Service]\nExecStart=/x\n" }),
            &let_go,
            false,
        ),
        (
            json!({ "active": true, "content": content("RemainAfterExit=yes\n") }),
            &missing,
            false,
        ),
        (
            json!({ "active": true, "dropins": remains }),
            &let_go,
            false,
        ),
    ] {
        let mut body = body;
        body["name"] = json!("q.service");
        let resource = resource(&SystemdUnit, body);
        let answers: Vec<(Read, i32, &str)> = SystemdUnit
            .reads(&resource)
            .into_iter()
            .map(|read| match read {
                Read::Unit { .. } => (read, 0, show.as_str()),
                Read::File { .. } => (read, 1, "folder /etc/systemd/system\n"),
                _ => (read, 0, ""),
            })
            .collect();
        let answers: Vec<_> = answers
            .iter()
            .map(|(r, code, out)| (r, *code, *out))
            .collect();
        let refusal = SystemdUnit.diff(&resource, &answered(&answers)).refusal;
        let words = "systemd forgets that q.service has run";
        let is_so = refusal.is_some_and(|refusal| refusal.starts_with(words));
        assert_eq!(is_so, is_refused, "{}\n{show}", resource.body);
    }
}

#[test]
fn a_mask_that_the_next_boot_loses_is_none_there() {
    let mask = |state: &str| {
        let state = format!("UnitFileState={state}");
        said(&[
            ("LoadState=loaded", "LoadState=masked"),
            ("UnitFileState=enabled", &state),
        ])
    };
    let (runtime, for_good) = (mask("masked-runtime"), mask("masked"));
    let desired = format!("{runtime}WantedBy=multi-user.target\n");
    let in_etc = format!("{RUNS}FragmentPath=/etc/systemd/system/q.service\n");
    let mask_and_disable = json!({ "masked": true, "enabled": false });
    for (body, show, actions, is_refused) in [
        (json!({ "masked": true }), RUNS, "mask", false),
        (json!({ "masked": true }), &runtime, "mask", false),
        (json!({ "masked": true }), &for_good, "", false),
        (json!({ "masked": true }), &in_etc, "mask", true),
        (json!({ "masked": false }), RUNS, "", false),
        (
            json!({ "masked": false }),
            &runtime,
            "unmask unmaskruntime",
            false,
        ),
        (
            json!({ "masked": false }),
            &for_good,
            "unmask unmaskruntime",
            false,
        ),
        (json!({ "enabled": false }), &runtime, "", false),
        (json!({ "enabled": false }), &desired, "disable", true),
        (mask_and_disable, &desired, "mask disable", false),
    ] {
        let (diff, ..) = diff_state(&body, show);
        assert_eq!(words(&diff), actions, "{body} {show}");
        assert_eq!(diff.refusal.is_some(), is_refused, "{body} {show}");
    }
    let (diff, resource, as_before) = diff_state(&json!({ "masked": true }), &runtime);
    assert!(diff.differs_in(Plane::NextBoot) && !diff.differs_in(Plane::Running));
    let before = diff.before;
    assert!(SystemdUnit.undo(&resource, &before, &as_before).is_met());
    // What was there before us stays: the mask in /run.
    let (_, resource, masked) = diff_state(&json!({ "masked": true }), &for_good);
    let undo = SystemdUnit.undo(&resource, &before, &masked);
    assert_eq!(words(&undo), "unmask");
}
