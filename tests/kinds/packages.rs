//! `package` and `package_repository` with the real apt and dnf.

use crate::repositories::repositories;
use crate::rig::{Host, live, resource};
use railwright_resource::action::PackageManager;
use railwright_resource::complaint::find_failure_message;
use railwright_resource::{Action, DesiredResource, Reading};
use serde_json::{Value, json};
use std::io::{BufRead as _, BufReader};

fn apt_host(story: &str) -> Option<Host> {
    let host = Host::start(story, &[(&repositories().deb, "srv/deb")])?;
    // what the image came from cannot be reached from here
    host.must("rm -rf /etc/apt/sources.list /etc/apt/sources.list.d/*");
    Some(host)
}

fn apt_repository(key: &str) -> DesiredResource {
    let body = json!({ "name": "lab", "manager": "apt", "url": "file:/srv/deb", "suite": "stable", "components": ["main"], "key": key, "priority": 700 });
    resource("package_repository", body)
}

fn with_repository(host: &Host) {
    host.perform(&host.diff(&apt_repository(&repositories().key)).actions);
}

fn package(body: Value) -> DesiredResource {
    resource("package", body)
}

#[test]
fn apt_takes_a_signed_repository_and_forgets_it() {
    let Some(host) = apt_host("package_repository apt") else {
        return;
    };
    live(&host, &apt_repository(&repositories().key));
}

#[test]
fn apt_does_not_take_a_repository_with_another_key_and_plans_it_again() {
    let Some(host) = apt_host("package_repository wrong key") else {
        return;
    };
    let resource = apt_repository(&repositories().other_key);
    let fresh = host.diff(&resource);
    let (refresh, files) = fresh.actions.split_last().unwrap();
    host.perform(files);
    let (code, _, err) = host.sh(&refresh.script());
    assert_eq!(code, 77, "{err}");
    assert!(
        find_failure_message(&err).unwrap().contains("NO_PUBKEY"),
        "{err}"
    );
    let after = host.diff(&resource);
    assert_eq!(
        after.attributes["lists"].actual.running,
        Some(Reading::Absent)
    );
    assert_eq!(
        &after.actions[..],
        std::slice::from_ref(refresh),
        "the failed refresh is pending"
    );
}

/// As where a vendor's package named it before us.
#[test]
fn a_repository_that_apt_knows_with_another_key_does_not_stop_apt() {
    let Some(host) = apt_host("package_repository of somebody") else {
        return;
    };
    let key = &repositories().key;
    host.must(&format!(
        "mkdir -p /usr/share/keyrings; cat >/usr/share/keyrings/somebody.asc <<E\n\
         {key}\n\
         E\n\
         echo 'deb [signed-by=/usr/share/keyrings/somebody.asc] file:/srv/deb stable main' \
         >/etc/apt/sources.list.d/somebody.list\n\
         apt-get -q update </dev/null"
    ));
    let diff = host.diff(&apt_repository(key));
    let (refresh, files) = diff.actions.split_last().unwrap();
    host.perform(files);
    let (code, _, err) = host.sh(&refresh.script());
    assert!(
        code != 0
            && find_failure_message(&err)
                .unwrap()
                .contains("another file names this repository to apt, with another key"),
        "{code} {err}"
    );
    host.must("apt-get -q update </dev/null && apt-get -q -s install rw-alpha </dev/null");
}

/// One of ours that another file stops from being read gives way to the one that was read.
#[test]
fn the_earlier_source_comes_back_where_apt_does_not_read_the_new_one() {
    let Some(host) = apt_host("package_repository again") else {
        return;
    };
    with_repository(&host);
    host.must(
        "cp -r /srv/deb /srv/other; echo 'deb [signed-by=/usr/share/keyrings/somebody.asc] \
         file:/srv/other stable main' >/etc/apt/sources.list.d/somebody.list",
    );
    let mut body = apt_repository(&repositories().key).body.clone();
    body["url"] = json!("file:/srv/other");
    let other = resource("package_repository", body);
    let diff = host.diff(&other);
    let (refresh, files) = diff.actions.split_last().unwrap();
    host.perform(files);
    let (code, _, err) = host.sh(&refresh.script());
    assert!(
        code != 0 && err.contains("ours of before was put back"),
        "{code} {err}"
    );
    host.must(
        "cd /etc/apt/sources.list.d; grep -qx 'URIs: file:/srv/deb' railwright-lab.sources; rm \
         somebody.list; apt-get -q update </dev/null && apt-get -q -s install rw-alpha </dev/null",
    );
}

#[test]
fn apt_brings_a_package_and_takes_it_away() {
    let Some(host) = apt_host("package apt") else {
        return;
    };
    with_repository(&host);
    let fresh = live(&host, &package(json!({ "name": "rw-alpha" })));
    assert!(fresh.is_absent());
    live(
        &host,
        &package(json!({ "name": "rw-alpha", "version": "1.0", "hold": true })),
    );
}

#[test]
fn apt_pins_holds_and_goes_back_to_what_was_there() {
    let Some(host) = apt_host("package pin") else {
        return;
    };
    with_repository(&host);
    host.perform(&host.diff(&package(json!({ "name": "rw-alpha" }))).actions);
    live(
        &host,
        &package(json!({ "name": "rw-alpha", "version": "1.0", "hold": true })),
    );
    assert!(
        host.diff(&package(json!({ "name": "rw-alpha", "version": "2.0" })))
            .is_met()
    );
    host.must("echo changed >/etc/rw-alpha.conf");
    host.perform(
        &host
            .diff(&package(json!({ "name": "rw-alpha", "version": "1.0" })))
            .actions,
    );
    assert_eq!(
        host.must("cat /etc/rw-alpha.conf"),
        "changed\n",
        "a configuration file that was changed stays"
    );
}

#[test]
fn packages_of_one_host_go_in_one_run() {
    let Some(host) = apt_host("package together") else {
        return;
    };
    with_repository(&host);
    let (alpha, beta) = (
        package(json!({ "name": "rw-alpha", "version": "1.0" })),
        package(json!({ "name": "rw-beta" })),
    );
    let mut action = host.diff(&alpha).actions.remove(0);
    assert!(action.join(&host.diff(&beta).actions[0]));
    host.perform(&[action]);
    assert!(host.diff(&alpha).is_met() && host.diff(&beta).is_met());
}

/// The host's record of `rw-alpha` and `rw-beta`, and how they stood before us.
fn write_record(host: &Host, manager: &str, before: &str) {
    let entry = |name: &str| {
        let before = json!({ "manager": manager, "state": { before: {} }, "held": false });
        format!(
            "\"host/h/package/{name}\":{{\"kind\":\"package\",\"body\":{{}},\"before\":{before},\"adopted\":false}}"
        )
    };
    let record = format!("{{{},{}}}", entry("rw-alpha"), entry("rw-beta"));
    host.must(&format!(
        "mkdir -p /var/lib/railwright; printf '%s\\n' '{record}' >/var/lib/railwright/record.json"
    ));
}

#[test]
fn apt_takes_nothing_away_that_somebody_asked_for() {
    let Some(host) = apt_host("package of others") else {
        return;
    };
    with_repository(&host);
    let (alpha, gamma) = (
        package(json!({ "name": "rw-alpha" })),
        package(json!({ "name": "rw-gamma" })),
    );
    let before = host.diff(&alpha).before;
    host.perform(&host.diff(&alpha).actions);
    host.must("apt-get -y -q install rw-beta </dev/null");
    let refused = |actions: &[Action], sentence: &str| {
        let (code, _, err) = host.sh(&actions[0].script());
        assert!(
            code == 78 && find_failure_message(&err).unwrap().contains(sentence),
            "{code} {err}"
        );
        assert!(host.diff(&package(json!({ "name": "rw-beta" }))).is_met());
    };
    let absent = |name: &str| {
        host.diff(&package(json!({ "name": name, "state": "absent" })))
            .actions
    };
    refused(
        &absent("rw-alpha"),
        "apt would take away rw-beta with it; nothing was changed",
    );
    refused(
        &host.diff(&gamma).actions,
        "apt would take away rw-beta rw-alpha",
    );
    // Nor does anything go that nobody asked for by its name, unless its absence is declared as
    // well.
    host.must("apt-mark auto rw-beta");
    refused(
        &absent("rw-alpha"),
        "(declare the absence of rw-beta as well",
    );
    // We ask for it no longer, and whoever needs it keeps it, also where nobody asked for that one
    // by its name.
    host.perform(&host.undo(&alpha, &before).actions);
    assert!(host.undo(&alpha, &before).is_met() && host.diff(&alpha).is_met());
    assert_eq!(
        host.must("apt-mark showauto rw-alpha rw-beta"),
        "rw-alpha\nrw-beta\n"
    );
    host.perform(
        &host
            .diff(&package(json!({ "name": "rw-alpha", "version": "1.0" })))
            .actions,
    );
    assert!(!host.undo(&alpha, &before).is_met(), "we ask for it again");
    // What we brought gives way to what takes its place: not what was there before us, nor what
    // came as a dependency.
    write_record(&host, "apt", "installed");
    refused(
        &host.diff(&gamma).actions,
        "apt would take away rw-beta rw-alpha, which was not brought by us; nothing was changed",
    );
    write_record(&host, "apt", "not_installed");
    host.perform(&host.diff(&gamma).actions);
    assert!(host.diff(&gamma).is_met() && host.diff(&alpha).is_absent());
    host.must("apt-get -y -q purge rw-gamma </dev/null; apt-get -y -q install rw-beta </dev/null");
    let mut both = absent("rw-alpha");
    assert!(both[0].join(&absent("rw-beta")[0]));
    host.perform(&both);
    assert!(host.diff(&alpha).is_absent());
}

#[test]
fn apt_leaves_what_others_need_as_their_dependency() {
    let Some(host) = apt_host("package left to others") else {
        return;
    };
    with_repository(&host);
    let (alpha, beta) = (
        package(json!({ "name": "rw-alpha" })),
        package(json!({ "name": "rw-beta" })),
    );
    let before = [&alpha, &beta].map(|resource| host.diff(resource).before);
    host.perform(&host.diff(&alpha).actions);
    host.perform(&host.diff(&beta).actions);
    host.perform(&host.undo(&alpha, &before[0]).actions);
    assert!(host.undo(&alpha, &before[0]).is_met() && host.diff(&beta).is_met());
    assert_eq!(
        host.must("apt-mark showmanual rw-alpha rw-beta"),
        "rw-beta\n"
    );
    host.perform(&host.undo(&beta, &before[1]).actions);
    host.must("apt-get -y -q autoremove </dev/null");
    assert!(host.diff(&alpha).is_absent() && host.diff(&beta).is_absent());
    // Asked for and undone once more, nobody needs it.
    host.perform(&host.diff(&alpha).actions);
    let undo = host.undo(&alpha, &before[0]);
    assert!(!undo.is_met());
    host.perform(&undo.actions);
    assert!(host.diff(&alpha).is_absent());
}

#[test]
fn a_package_left_half_configured_is_mended() {
    let Some(host) = apt_host("package half-configured") else {
        return;
    };
    with_repository(&host);
    let resource = package(json!({ "name": "rw-broken" }));
    host.must("touch /root/fail");
    let (code, ..) = host.sh(&host.diff(&resource).actions[0].script());
    assert_ne!(code, 0);
    let broken = host.diff(&resource);
    assert_eq!(
        broken.attributes["state"].actual.persisted,
        Some(Reading::is("half-configured"))
    );
    host.must("rm /root/fail");
    host.perform(&broken.actions);
    assert!(host.diff(&resource).is_met());
}

/// What a package made since is nobody's to delete but of whoever says `purge`.
#[test]
fn a_package_that_is_taken_back_leaves_its_data() {
    let Some(host) = apt_host("package with data") else {
        return;
    };
    with_repository(&host);
    let (data, alpha) = (
        package(json!({ "name": "rw-data" })),
        package(json!({ "name": "rw-alpha" })),
    );
    let before = host.diff(&data).before;
    let both = |mut first: Vec<Action>, second: Vec<Action>| {
        assert!(first[0].join(&second[0]));
        host.perform(&first);
    };
    both(host.diff(&data).actions, host.diff(&alpha).actions);
    host.must("echo kept >/var/lib/rw-data/db");
    both(
        host.undo(&data, &before).actions,
        host.undo(&alpha, &before).actions,
    );
    assert!(host.diff(&data).is_absent() && host.diff(&alpha).is_absent());
    assert_eq!(
        host.must("cat /var/lib/rw-data/db; ls /etc | grep rw-"),
        "kept\nrw-data.conf\n"
    );
}

#[test]
fn removed_but_configured_is_not_installed() {
    let Some(host) = apt_host("package rc") else {
        return;
    };
    with_repository(&host);
    host.perform(&host.diff(&package(json!({ "name": "rw-alpha" }))).actions);
    live(
        &host,
        &package(json!({ "name": "rw-alpha", "state": "absent" })),
    );
    host.perform(
        &host
            .diff(&package(json!({ "name": "rw-alpha", "state": "absent" })))
            .actions,
    );
    assert!(
        host.must("dpkg-query -W -f '${db:Status-Abbrev}' rw-alpha")
            .starts_with("rc")
    );
    let again = host.diff(&package(json!({ "name": "rw-alpha" })));
    assert_eq!(
        again.attributes["state"].actual.persisted,
        Some(Reading::Absent)
    );
}

#[test]
fn a_package_of_a_named_architecture_is_found() {
    let Some(host) = apt_host("package architecture") else {
        return;
    };
    let own = host.must("dpkg --print-architecture");
    assert!(
        host.diff(&package(json!({ "name": format!("dash:{}", own.trim()) })))
            .is_met()
    );
    assert!(!host.diff(&package(json!({ "name": "dash:sh4" }))).is_met());
}

#[test]
fn a_package_of_a_named_architecture_goes_alone_too() {
    let Some(host) = apt_host("package architecture away") else {
        return;
    };
    with_repository(&host);
    let named = format!("rw-alpha:{}", host.must("dpkg --print-architecture").trim());
    let alpha = live(&host, &package(json!({ "name": named })));
    host.perform(&alpha.actions);
    host.perform(
        &host
            .diff(&package(json!({ "name": named, "state": "absent" })))
            .actions,
    );
    assert!(
        host.diff(&package(json!({ "name": "rw-alpha" })))
            .is_absent()
    );
}

#[test]
fn a_package_that_nobody_has_is_named() {
    let Some(host) = apt_host("package missing") else {
        return;
    };
    with_repository(&host);
    for (body, sentence) in [
        (
            json!({ "name": "no-such-thing" }),
            "no package no-such-thing in the repositories of this host",
        ),
        // A pattern of apt's, as "rdma.core" or "linux-headers-6.1" would be.
        (
            json!({ "name": "rw.alpha" }),
            "no package rw.alpha in the repositories of this host",
        ),
        // With a plus at its end apt takes a name for the order to install the one without.
        (
            json!({ "name": "rw-alpha+" }),
            "no package rw-alpha+ in the repositories of this host",
        ),
        // One that provides it would come.
        (
            json!({ "name": "rw-virtual" }),
            "no version of package rw-virtual can be installed from the repositories of this host",
        ),
        (
            json!({ "name": "rw-alpha", "version": "9" }),
            "no version 9 of package rw-alpha in the repositories of this host",
        ),
    ] {
        let fresh = host.diff(&package(body));
        assert!(fresh.refusal.is_none(), "a repository may still come");
        let (code, _, err) = host.sh(&fresh.actions[0].script());
        assert_eq!(
            (code, find_failure_message(&err).as_deref()),
            (66, Some(sentence)),
            "{err}"
        );
    }
}

#[test]
fn a_locked_apt_names_who_holds_it() {
    let Some(host) = apt_host("package locked") else {
        return;
    };
    with_repository(&host);
    // fcntl locks, as apt takes them
    let perl = "use Fcntl; open(F,'+>','/var/lib/dpkg/lock-frontend'); my $l=pack('s s l! l! \
                i',F_WRLCK,0,0,0,0); fcntl(F,F_SETLK,$l) or die; print qq(locked\\n); $|=1; print \
                ''; sleep 300";
    let mut holder = host.start_shell(&format!("exec perl -e \"{}\"", perl.replace('$', "\\$")));
    let mut line = String::new();
    BufReader::new(holder.stdout.take().unwrap())
        .read_line(&mut line)
        .unwrap();
    assert_eq!(line, "locked\n");
    let resource = package(json!({ "name": "rw-alpha" }));
    let script = host.diff(&resource).actions[0]
        .script()
        .replace("sleep 5", "sleep 0");
    let (code, _, err) = host.sh(&script);
    holder.kill().unwrap();
    holder.wait().unwrap();
    let sentence = find_failure_message(&err).unwrap();
    assert!(
        code == 75
            && sentence.starts_with("the package manager is locked by pid ")
            && sentence.contains("(perl)"),
        "{code} {err}"
    );
    assert!(host.diff(&resource).is_absent());
}

/// What the script of an action answers that begins while an installation of somebody else holds
/// the lock, which goes on when our script waits for it.
fn answer_beside(host: &Host, installation: &str, action: &Action) -> (i32, String) {
    host.must("rm -f /root/held /root/done; touch /root/hold");
    let mut other = host.start_shell(&format!(
        "{installation} </dev/null >/root/other 2>&1; echo $? >/root/done"
    ));
    host.must("until [ -e /root/held ] || [ -e /root/done ]; do sleep 0.1; done");
    let script = action.script().replace(
        "sleep 5",
        "rm -f /root/hold; until [ -e /root/done ]; do sleep 0.1; done",
    );
    let (code, _, err) = host.sh(&script);
    let has_waited = host.sh("[ ! -e /root/hold ]").0 == 0;
    host.must("rm -f /root/hold");
    other.wait().unwrap();
    let other = host.must("cat /root/done /root/other");
    assert!(has_waited && other.starts_with("0\n"), "{err}{other}");
    (code, err)
}

/// Removes, replaces and undoes beside installations that need what would go: nothing of it may
/// happen that is not to happen after them.
fn act_beside_installations(host: &Host, [beta, alpha]: [&str; 2], purge: &str) {
    let resources = ["rw-alpha", "rw-beta"].map(|name| package(json!({ "name": name })));
    let [resource, dependant] = &resources;
    let before = host.diff(resource).before;
    host.perform(&host.diff(resource).actions);
    let absent = host.diff(&package(json!({ "name": "rw-alpha", "state": "absent" })));
    let (code, err) = answer_beside(host, beta, &absent.actions[0]);
    let sentence = find_failure_message(&err).unwrap();
    assert!(
        code == 78 && sentence.contains("would take away rw-beta with it; nothing was changed"),
        "{code} {err}"
    );
    assert!(host.diff(resource).is_met() && host.diff(dependant).is_met());
    host.must(&format!("{purge} rw-beta </dev/null"));
    let (code, err) = answer_beside(host, beta, &host.undo(resource, &before).actions[0]);
    assert_eq!(code, 0, "{err}");
    assert!(host.undo(resource, &before).is_met() && host.diff(dependant).is_met());
    host.must(&format!("{purge} rw-beta rw-alpha </dev/null"));
    let gamma = package(json!({ "name": "rw-gamma" }));
    let (code, err) = answer_beside(host, alpha, &host.diff(&gamma).actions[0]);
    let sentence = find_failure_message(&err).unwrap();
    assert!(
        code == 78 && sentence.contains("rw-alpha, which was not brought by us"),
        "{code} {err}"
    );
    assert!(!host.diff(resource).is_absent() && host.diff(&gamma).is_absent());
}

/// Between the look and the action there is no wait for a lock.
#[test]
fn apt_looks_again_when_an_installation_has_ended_that_held_the_lock() {
    let Some(host) = apt_host("package beside an installation") else {
        return;
    };
    with_repository(&host);
    let install = "apt-get -y -q -o 'DPkg::Pre-Invoke::=while [ -e /root/hold ]; do touch \
                   /root/held; sleep 0.1; done' install";
    act_beside_installations(
        &host,
        [
            &format!("{install} rw-beta"),
            &format!("{install} rw-alpha"),
        ],
        "apt-get -y -q purge",
    );
}

fn dnf_host(story: &str) -> Option<Host> {
    let host = Host::start(story, &[(&repositories().rpm, "srv/rpm")])?;
    // Debian has all plugins in one package; a host of RHEL has versionlock alone, and not `local`,
    // which copies packages
    host.must(
        "cd /usr/lib/python3/dist-packages/dnf-plugins && mv versionlock.py /root/ && rm -rf * && \
         mv /root/versionlock.py .",
    );
    host.must(
        "rm -rf /var/lib/dpkg /usr/bin/dpkg-query /usr/bin/apt-get /var/lib/apt; mkdir -p \
         /etc/yum.repos.d /etc/pki/rpm-gpg; printf '[main]\\ngpgcheck=1\\n' >/etc/dnf/dnf.conf",
    );
    Some(host)
}

fn dnf_repository(key: &str) -> DesiredResource {
    resource(
        "package_repository",
        json!({ "name": "lab", "manager": "dnf", "url": "file:///srv/rpm", "key": key }),
    )
}

#[test]
fn dnf_takes_a_signed_repository_and_forgets_it() {
    let Some(host) = dnf_host("package_repository dnf") else {
        return;
    };
    live(&host, &dnf_repository(&repositories().key));
}

#[test]
fn dnf_brings_packages_by_version_and_takes_them_away() {
    let Some(host) = dnf_host("package dnf") else {
        return;
    };
    host.perform(&host.diff(&dnf_repository(&repositories().key)).actions);
    let alpha = package(json!({ "name": "rw-alpha" }));
    let before = live(&host, &alpha).before;
    live(
        &host,
        &package(json!({ "name": "rw-alpha", "version": "1.0-1" })),
    );
    host.perform(&host.diff(&alpha).actions);
    live(
        &host,
        &package(json!({ "name": "rw-alpha", "version": "1.0-1" })),
    );
    let missing = host.diff(&package(json!({ "name": "no-such-thing" })));
    let (code, _, err) = host.sh(&missing.actions[0].script());
    assert_eq!(
        (code, find_failure_message(&err).as_deref()),
        (
            66,
            Some("no package no-such-thing in the repositories of this host")
        ),
        "{err}"
    );
    let absent = host.diff(&package(json!({ "name": "rw-alpha", "state": "absent" })));
    host.must("dnf -y -q install rw-beta </dev/null");
    let (code, _, err) = host.sh(&absent.actions[0].script());
    assert!(
        code == 78
            && find_failure_message(&err)
                .unwrap()
                .contains("dnf would take away rw-beta with it; nothing was changed"),
        "{code} {err}"
    );
    host.perform(&host.undo(&alpha, &before).actions);
    assert!(host.undo(&alpha, &before).is_met() && host.diff(&alpha).is_met());
    // Nor does anything go that nobody asked for by its name, unless its absence is declared as
    // well.
    host.must("dnf -y -q mark remove rw-beta </dev/null");
    assert_eq!(host.sh(&absent.actions[0].script()).0, 78);
    let mut both = absent.actions;
    assert!(
        both[0].join(
            &host
                .diff(&package(json!({ "name": "rw-beta", "state": "absent" })))
                .actions[0]
        )
    );
    host.perform(&both);
    assert_eq!(host.must("rpm -qa 'rw-*'"), "");
}

#[test]
fn dnf_looks_again_when_an_installation_has_ended_that_held_the_lock() {
    let Some(host) = dnf_host("package beside an installation dnf") else {
        return;
    };
    host.perform(&host.diff(&dnf_repository(&repositories().key)).actions);
    act_beside_installations(
        &host,
        ["dnf -y install rw-beta", "dnf -y install rw-alpha-1.0-1"],
        "dnf -y -q remove",
    );
}

#[test]
fn an_rpm_database_that_cannot_be_read_is_unknown() {
    let Some(host) = dnf_host("package of a broken database") else {
        return;
    };
    let (bash, absent) = (
        package(json!({ "name": "bash" })),
        package(json!({ "name": "rw-alpha", "state": "absent" })),
    );
    let before = host.diff(&bash).before;
    assert!(host.diff(&absent).is_met(), "a sound one without it");
    host.must("echo garbagegarbagegarbagegarbage | dd of=$(rpm --eval %_dbpath)/rpmdb.sqlite conv=notrunc");
    for diff in [host.diff(&absent), host.undo(&bash, &before)] {
        assert!(diff.has_unknown() && diff.actions.is_empty(), "{diff:#?}");
        assert!(format!("{diff:?}").contains("rpm: "), "{diff:?}");
    }
}

#[test]
fn dnf_takes_the_place_of_nothing_that_we_did_not_bring() {
    let Some(host) = dnf_host("package of others dnf") else {
        return;
    };
    host.perform(&host.diff(&dnf_repository(&repositories().key)).actions);
    let (alpha, gamma) = (
        package(json!({ "name": "rw-alpha", "version": "1.0-1" })),
        package(json!({ "name": "rw-gamma" })),
    );
    host.must("rpm -i /srv/rpm/rw-alpha-1.0-1.noarch.rpm");
    let install = host.diff(&gamma).actions;
    let (code, _, err) = host.sh(&install[0].script());
    assert!(
        code == 78
            && find_failure_message(&err)
                .unwrap()
                .contains("dnf would take away rw-alpha, which was not brought by us"),
        "{code} {err}"
    );
    assert!(host.diff(&alpha).is_met());
    write_record(&host, "dnf", "not_installed");
    host.perform(&install);
    assert!(host.diff(&gamma).is_met() && host.diff(&alpha).is_absent());
}

#[test]
fn dnf_brings_no_other_package_than_the_one_that_is_named() {
    let Some(host) = dnf_host("package of another name dnf") else {
        return;
    };
    host.perform(&host.diff(&dnf_repository(&repositories().key)).actions);
    for name in ["rw-virtual", "rw-older"] {
        let (code, _, err) =
            host.sh(&host.diff(&package(json!({ "name": name }))).actions[0].script());
        let sentence = format!(
            "no package {name} in the repositories of this host, but one that provides or replaces \
             it"
        );
        assert!(
            code == 66 && find_failure_message(&err).unwrap().starts_with(&sentence),
            "{code} {err}"
        );
        assert_eq!(host.must("rpm -qa 'rw-*'"), "");
    }
    // A version without its release, and one of several.
    let short = package(json!({ "name": "rw-alpha", "version": "1.0" }));
    live(&host, &short);
    host.perform(&host.diff(&short).actions);
    host.must("rpm -i --force /srv/rpm/rw-alpha-2.0-1.noarch.rpm");
    assert!(
        host.diff(&short).is_met()
            && host
                .diff(&package(json!({ "name": "rw-alpha", "version": "2.0-1" })))
                .is_met()
    );
    assert!(
        host.diff(&package(json!({ "name": "rw-alpha", "state": "absent" })))
            .refusal
            .unwrap()
            .contains("several versions")
    );
}

#[test]
fn dnf_pins_through_an_upgrade_and_lets_go_again() {
    let Some(host) = dnf_host("package dnf pin") else {
        return;
    };
    host.perform(&host.diff(&dnf_repository(&repositories().key)).actions);
    let version = || host.must("rpm -q --qf '%{VERSION}' rw-alpha");
    let upgrade = || {
        host.must("dnf -y -q upgrade </dev/null");
        version()
    };
    // brought with its pin, and taken away with it
    let pinned = package(json!({ "name": "rw-alpha", "version": "1.0-1", "hold": true }));
    live(&host, &pinned);
    // one that is there is brought back to an older version and stays there, although the
    // repository has a newer one
    host.perform(&host.diff(&package(json!({ "name": "rw-alpha" }))).actions);
    assert_eq!(version(), "2.0");
    let fresh = live(&host, &pinned);
    assert_eq!(version(), "2.0", "what was there before comes back");
    host.perform(&fresh.actions);
    assert_eq!(upgrade(), "1.0");
    assert!(host.diff(&pinned).is_met());
    // another version, asked for without a word about the pin, is refused before anything is done
    let other = host.diff(&package(json!({ "name": "rw-alpha", "version": "2.0-1" })));
    assert!(
        other
            .refusal
            .unwrap()
            .contains("rw-alpha is held at 1.0-1 by somebody else")
    );
    // with the word, the pin moves along
    let moved = package(json!({ "name": "rw-alpha", "version": "2.0-1", "hold": true }));
    host.perform(&host.diff(&moved).actions);
    assert!(host.diff(&moved).is_met());
    host.perform(&host.diff(&pinned).actions);
    assert_eq!(upgrade(), "1.0");
    // the pin taken out, the next upgrade takes the newer one
    host.perform(
        &host
            .diff(&package(json!({ "name": "rw-alpha", "hold": false })))
            .actions,
    );
    assert_eq!(upgrade(), "2.0");
}

#[test]
fn dnf_refuses_packages_that_another_key_signed() {
    let Some(host) = dnf_host("package dnf wrong key") else {
        return;
    };
    host.perform(
        &host
            .diff(&dnf_repository(&repositories().other_key))
            .actions,
    );
    let resource = package(json!({ "name": "rw-alpha" }));
    let (code, _, err) = host.sh(&host.diff(&resource).actions[0].script());
    assert_eq!(code, 77, "{err}");
    assert!(host.diff(&resource).is_absent());
}

#[test]
fn a_manager_that_is_not_there_is_a_refusal_and_not_a_failure() {
    let Some(host) = dnf_host("package_repository refusal") else {
        return;
    };
    let refused = host.diff(&apt_repository(&repositories().key));
    assert!(
        refused
            .refusal
            .unwrap()
            .contains("apt does not keep the packages")
    );
    let action = Action::HoldPackages {
        manager: PackageManager::Dnf,
        names: vec!["rw-alpha".into()],
        hold: true,
    };
    host.must("rm /usr/lib/python3/dist-packages/dnf-plugins/versionlock.py");
    let (code, _, err) = host.sh(&action.script());
    assert!(
        code == 69 && find_failure_message(&err).unwrap().contains("versionlock"),
        "{code} {err}"
    );
}
