//! What an automatic rollback keeps by tables, what lies on the path, and both scripts with a real
//! shell on files and units.

use super::*;
use crate::test_support::resource;
use crate::{ResourceDiff, kind_named};
use railwright_base::{Digest, secret};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Command, Stdio};

pub(super) fn of(kind: &str, body: Value) -> DesiredResource {
    resource(kind_named(kind).unwrap(), body)
}

pub(super) fn set_link(netdev: &str) -> Action {
    adds(netdev, &[])
}

pub(super) fn adds(netdev: &str, addresses: &[&str]) -> Action {
    let add_addresses = addresses
        .iter()
        .map(|address| (*address).to_owned())
        .collect();
    Action::SetLink {
        netdev: netdev.into(),
        mtu: Some(9000),
        up: None,
        add_addresses,
        remove_addresses: vec![],
    }
}

fn write(path: &str, content: &str) -> Action {
    let root = || "root".to_owned();
    Action::WriteFile {
        path: path.into(),
        content: content.into(),
        mode: "0644".into(),
        owner: root(),
        group: root(),
    }
}

fn remove(path: &str) -> Action {
    Action::RemoveFile {
        path: path.into(),
        below: None,
    }
}

#[test]
fn each_action_is_kept_by_what_it_touches_or_refused_by_its_word() {
    let unit = || Action::Unit {
        name: "a.service".into(),
        verb: super::super::action::UnitVerb::Restart,
    };
    let reload = || Action::ReloadLink {
        netdev: "e0".into(),
        manager: NetworkManagerKind::Netplan,
    };
    let modify = Action::ModifyConnection {
        uuid: "u".into(),
        settings: [("ipv4.method".to_owned(), "auto".to_owned())].into(),
    };
    let all = [
        unit(),
        set_link("e0"),
        reload(),
        modify,
        Action::SetSysctl {
            key: "net.a".into(),
            value: "1".into(),
        },
        remove("/etc/a"),
    ];
    let scope = RollbackScope::over(&all, []).unwrap();
    insta::assert_debug_snapshot!(scope.keeps, @r#"
    [
        File {
            path: "/etc/a",
        },
        Connection {
            uuid: "u",
            settings: [
                "ipv4.method",
            ],
        },
        Sysctl {
            key: "net.a",
        },
        Link {
            netdev: "e0",
        },
        Unit {
            name: "a.service",
        },
    ]
    "#);
    assert_eq!(
        (scope.systemd, scope.reloads.clone()),
        (false, vec![("e0".to_owned(), NetworkManagerKind::Netplan)])
    );
    assert!(scope.covers(&RollbackScope::over(&[unit(), reload()], []).unwrap()));
    assert!(
        !scope.covers(&RollbackScope::over(&[set_link("e1")], []).unwrap())
            && !scope.covers(&RollbackScope::over(&[Action::ReloadSystemd], []).unwrap())
    );
    for action in [
        Action::Reboot,
        Action::UnloadModule {
            name: "mlx5_core".into(),
        },
        Action::SetPause {
            netdev: "e0".into(),
            on: true,
        },
        Action::RunCommand {
            script: "x".into(),
            limit_s: 1,
            environment: Default::default(),
            input: None,
        },
    ] {
        assert_eq!(
            RollbackScope::over(&[set_link("e0"), action.clone()], []),
            Err(NotRolledBack(action.word().to_owned()))
        );
    }
}

#[test]
fn what_the_resources_may_come_to_need_is_kept_as_well() {
    let unit = of(
        "systemd_unit",
        json!({ "name": "nftables.service", "active": true }),
    );
    let scope = RollbackScope::over(&[remove("/etc/nftables.conf")], [&unit]).unwrap();
    assert!(
        scope.covers(
            &RollbackScope::over(
                &[Action::Unit {
                    name: "nftables.service".into(),
                    verb: super::super::action::UnitVerb::Stop
                }],
                []
            )
            .unwrap()
        )
    );
    assert_eq!(
        RollbackScope::over(&[], [&of("package", json!({ "name": "openssh-server" }))]),
        Err(NotRolledBack("package".to_owned()))
    );
}

#[test]
fn what_lies_on_the_path_is_recognised_with_its_reason() {
    let ours: BTreeSet<String> = ["bond0".to_owned(), "ens1".to_owned()].into();
    let why = |kind: &str, body: Value| {
        find_rollback_reason(&of(kind, body), &ResourceDiff::default(), &ours)
    };
    let file = |path: &str| why("file", json!({ "path": path, "content": "x" }));
    for path in [
        "/etc/ssh/sshd_config.d/a.conf",
        "/etc/netplan/1.yaml",
        "/etc/nftables.conf",
        "/etc/sudoers.d/x",
        "/etc/pam.d/sshd",
    ] {
        assert!(file(path).unwrap().starts_with(path));
    }
    for path in [
        "/root/.ssh/authorized_keys",
        "/etc/systemd/system/NetworkManager.service.d/x.conf",
        "/etc/systemd/system/sshd.service",
    ] {
        assert!(file(path).unwrap().starts_with(path));
    }
    for path in [
        "/etc/security/limits.d/90-rdma.conf",
        "/etc/sysctl.d/1.conf",
        "/etc/sshx",
        "/etc/modprobe.d/a.conf",
        "/etc/systemd/system/a.service.d/ssh.conf",
    ] {
        assert_eq!(file(path), None, "{path}");
    }
    let unit = |name: &str| why("systemd_unit", json!({ "name": name, "active": true })).is_some();
    assert!(
        unit("ssh.socket")
            && unit("NetworkManager.service")
            && !unit("openibd.service")
            && !unit("ssh-agent.service")
    );
    let sysctl = |key: &str| why("sysctl", json!({ "key": key, "value": "1" })).is_some();
    assert!(
        sysctl("net.ipv6.conf.all.disable_ipv6")
            && sysctl("net.ipv4.conf.ens1.rp_filter")
            && sysctl("net/ipv4/conf/bond0/forwarding")
    );
    assert!(
        !sysctl("net.ipv4.conf.ens2.rp_filter")
            && !sysctl("net.core.rmem_max")
            && !sysctl("net.ipv4.conf.default.rp_filter")
    );
    let package =
        |name: &str, state: &str| why("package", json!({ "name": name, "state": state })).is_some();
    assert!(
        package("openssh-server", "absent")
            && !package("openssh-server", "present")
            && !package("wget", "absent")
    );
    let link = |netdev: &str| why("link", json!({ "netdev": netdev, "mtu": 9000 }));
    assert_eq!(
        (link("ens1").as_deref(), link("ens2")),
        (Some("ens1 carries our own connection"), None)
    );
    let interrupts = ResourceDiff {
        interrupts_netdevs: vec!["ens9".into(), "bond0".into()],
        ..ResourceDiff::default()
    };
    assert!(
        find_rollback_reason(
            &of(
                "kernel_module",
                json!({ "name": "mlx5_core", "loaded": true })
            ),
            &interrupts,
            &ours
        )
        .unwrap()
        .starts_with("bond0 ")
    );
    let asked = |asked: bool| {
        why(
            "sysctl",
            json!({ "key": "net.a", "value": "1", "rollback_timer": asked }),
        )
    };
    assert!(
        asked(true)
            .unwrap()
            .contains("asks for an automatic rollback")
            && asked(false).is_none()
    );
}

#[test]
fn what_the_change_puts_there_is_known_but_for_secrets() {
    let actions = [
        write("/etc/a", "new\n"),
        remove("/etc/b"),
        write("/etc/c", &secret::new_secret_mark("password")),
        adds("e0", &["10.0.0.3/24"]),
    ];
    let resources = [
        of("sysctl", json!({ "key": "net.a", "value": 2 })),
        of(
            "link",
            json!({ "netdev": "e0", "addresses": ["10.0.0.2/24", "FD00:0::2/64"] }),
        ),
    ];
    let scope = RollbackScope::over(&actions, &resources).unwrap();
    let known = |name: &str| {
        scope.ours.get(name).map(|ours| {
            ours.iter()
                .map(String::as_str)
                .collect::<Vec<_>>()
                .join(" ")
        })
    };
    assert_eq!(
        known("/etc/a"),
        Some(Digest::of_bytes(b"new\n").to_string())
    );
    assert_eq!(
        (
            known("/etc/b").as_deref(),
            known("/etc/c"),
            known("net.a").as_deref()
        ),
        (Some(""), None, Some("2"))
    );
    assert_eq!(
        known("e0").as_deref(),
        Some("10.0.0.2/24 10.0.0.3/24 fd00::2/64")
    );
    let covers = |action: Action| scope.covers(&RollbackScope::over(&[action], []).unwrap());
    assert!(
        covers(write("/etc/a", "new\n"))
            && covers(remove("/etc/b"))
            && covers(write("/etc/c", "x"))
            && covers(set_link("e0"))
    );
    assert!(
        !covers(write("/etc/a", "other\n"))
            && !covers(adds("e0", &["10.0.0.4/24"]))
            && !covers(write("/etc/a", &secret::new_secret_mark("a")))
    );
}

/// Keeps, does `between`, puts back all; what `look` says before and after.
pub(super) fn kept_and_put_back(
    scope: &RollbackScope,
    prefix: &str,
    between: &str,
    look: &str,
    boot: &str,
    shell: &[&str],
) -> (String, String) {
    let [before, after, failed] = put_back(scope, prefix, between, look, boot, shell);
    assert_eq!(failed.trim(), "", "{between}");
    (before, after)
}

/// Keeps, does `between`, puts back; what `look` says before and after, and what could not be put
/// back.
pub(super) fn put_back(
    scope: &RollbackScope,
    prefix: &str,
    between: &str,
    look: &str,
    boot: &str,
    shell: &[&str],
) -> [String; 3] {
    let folder = tempfile::tempdir().unwrap();
    let own = folder.path().display();
    let text = format!(
        "{prefix}\n\
         mkdir {own}/kept; k={own}/kept; boot={boot}\n\
         look() {{\n\
         {look}\n\
         }}\n\
         look >{own}/before\n\
         (\n\
         {}) || exit 9\n\
         (\n\
         {between}\n\
         ) || exit 8\n\
         look >{own}/between\n\
         {}echo \"$failed\" >{own}/failed; cat \"$k/../log\" >&2\n\
         look >{own}/after\n",
        script::keep_script(scope),
        script::restore_script(scope)
    );
    let output = Command::new(shell[0])
        .args(&shell[1..])
        .arg(&text)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{:?} {}",
        output.status,
        String::from_utf8_lossy(&output.stderr)
    );
    let read = |name: &str| std::fs::read_to_string(folder.path().join(name)).unwrap();
    assert_ne!(
        read("before"),
        read("between"),
        "the change changes something"
    );
    eprintln!("{}", String::from_utf8_lossy(&output.stderr));
    [read("before"), read("after"), read("failed")]
}

#[test]
fn files_come_back_with_all_that_they_had_and_new_ones_go_with_their_folders() {
    let tree = tempfile::tempdir().unwrap();
    let at = |name: &str| tree.path().join(name).display().to_string();
    std::fs::write(at("odd ' name"), b"\xff\0one\n").unwrap();
    std::os::unix::fs::symlink("target", at("link")).unwrap();
    let changes = [
        write(&at("odd ' name"), "two\n"),
        remove(&at("link")),
        write(&at("new/deep/file"), "x\n"),
    ];
    let scope = RollbackScope::over(&changes, []).unwrap();
    let root = railwright_base::quote::quote_for_shell(&tree.path().display().to_string());
    let look = format!(
        "cd {root} && find . -printf '%p %y %m %l\\n' | sort; sha256sum \"odd ' name\" 2>/dev/null"
    );
    let between = format!(
        "cd {root} && echo two >\"odd ' name\" && chmod 600 \"odd ' name\" && rm link && mkdir -p \
         new/deep && echo x >new/deep/file"
    );
    for shell in [&["sh", "-c"][..], &["bash", "-c"], &["busybox", "sh", "-c"]] {
        if !Path::new("/bin/busybox").exists() && shell[0] == "busybox" {
            continue;
        }
        let (before, after) = kept_and_put_back(&scope, "", &between, &look, "", shell);
        assert_eq!(before, after);
    }
}

/// What holds neither its earlier content nor ours, somebody else has written.
#[test]
fn a_file_that_somebody_else_has_written_since_stays_and_is_named() {
    let tree = tempfile::tempdir().unwrap();
    let at = |name: &str| tree.path().join(name).display().to_string();
    for name in ["theirs", "gone", "ours"] {
        std::fs::write(at(name), "before\n").unwrap();
    }
    let scope = RollbackScope::over(
        &["theirs", "gone", "ours", "new", "new ours"].map(|name| write(&at(name), "ours\n")),
        [],
    )
    .unwrap();
    let root = railwright_base::quote::quote_for_shell(&tree.path().display().to_string());
    let between = format!(
        "cd {root}; echo theirs >theirs; echo theirs >new; rm gone; echo ours >ours; echo ours \
         >'new ours'"
    );
    let [_, after, failed] = put_back(
        &scope,
        "",
        &between,
        &format!("cd {root}; grep '' *"),
        "",
        &["sh", "-c"],
    );
    assert_eq!(
        after,
        "gone:before\nnew:theirs\nours:before\ntheirs:theirs\n"
    );
    assert_eq!(
        failed.split_whitespace().collect::<Vec<_>>(),
        [at("new"), at("theirs")]
    );
}

/// A systemctl that keeps the state of one unit in files, of which the first one counts.
const SYSTEMCTL: &str = r#"cat >systemctl <<'E' && chmod +x systemctl && PATH=$PWD:$PATH
#!/bin/sh
cd "${0%/*}"; case " $* " in *' --runtime '*) r=-runtime ;; *) r= ;; esac
case $1 in
enable) : >"enabled$r" ;; disable) [ ! -e file ] || rm -f "enabled$r" ;;
mask) : >"masked$r" ;; unmask) rm -f "masked$r" ;;
show) for s in masked masked-runtime enabled enabled-runtime disabled; do [ ! -e "$s" ] || break; done
[ -e file ] || [ -e masked ] || s=
case $3 in *,WantedBy,*) [ ! -e enabled ] || echo WantedBy=multi-user.target ;; esac; echo "UnitFileState=$s" ;;
esac
E"#;

#[test]
fn a_unit_is_enabled_and_masked_for_as_long_as_it_was() {
    for (was, between) in [
        (": >file; systemctl enable", "systemctl disable"),
        (": >file; systemctl enable --runtime", "systemctl enable"),
        (": >file; systemctl mask", "systemctl unmask"),
        (
            ": >file; systemctl mask --runtime",
            "systemctl unmask --runtime",
        ),
        (": >file; systemctl unmask", "systemctl enable"),
        (": >file; systemctl unmask", "systemctl mask"),
        // A unit whose file comes with the change.
        (":", ": >file; systemctl enable"),
        (
            "systemctl mask",
            ": >file; systemctl unmask; systemctl enable",
        ),
        // Its links were there before, and stay.
        ("systemctl enable", ": >file; systemctl enable"),
        (
            "systemctl enable; systemctl mask",
            ": >file; systemctl unmask; systemctl enable",
        ),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let own = folder.path().display();
        let scope = RollbackScope::over(
            &[
                write(&format!("{own}/file"), ""),
                Action::Unit {
                    name: "a.service".into(),
                    verb: super::super::action::UnitVerb::Restart,
                },
            ],
            [],
        )
        .unwrap();
        let (before, after) = kept_and_put_back(
            &scope,
            &format!("cd {own}\n{SYSTEMCTL}\n{was} a.service"),
            &format!("{between} a.service"),
            "systemctl show -p UnitFileState -- a.service; ls",
            "",
            &["sh", "-c"],
        );
        assert_eq!(before, after, "{was}, {between}");
    }
}

/// `systemctl` and `ip` end with 0 whatever becomes of what they print.
#[test]
fn what_a_full_disk_does_not_take_was_not_kept() {
    let restart = Action::Unit {
        name: "a.service".into(),
        verb: super::super::action::UnitVerb::Restart,
    };
    let scope = RollbackScope::over(&[restart], []).unwrap();
    let folder = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink("/dev/full", folder.path().join("0")).unwrap();
    let script = format!(
        "k={}; systemctl() {{ echo UnitFileState=enabled || :; }}\n{}",
        folder.path().display(),
        script::keep_script(&scope)
    );
    let kept = Command::new("sh").args(["-c", &script]).output().unwrap();
    assert_eq!(kept.status.code(), Some(74));
}
