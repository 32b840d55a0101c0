//! `vlan` by tables: read results in, diff out.

use super::*;
use crate::{Action, AnswerStatus, ReadResult};
use railwright_base::Address;

const PARENT: &str =
    "ifindex=3\nmtu=1500\nflags=0x1003\nip=1\naddr=3: ens1 inet 10.0.0.1/24 scope global ens1\n";
const NETWORKD: &str = "== networkd-state 644 a a /run/systemd/netif/state\n\
                        |OPER_STATE=routable\n\
                        \n\
                        == networkd 644 a a /run/systemd/netif/links/3\n\
                        |ADMIN_STATE=configured\n\
                        |NETWORK_FILE=/etc/systemd/network/10-ens1.network\n\
                        \n\
                        == network-file 644 root root /etc/systemd/network/10-ens1.network\n\
                        |[Match]\n\
                        |Name=ens1\n";
const NETDEV_FILE: &str = "\n\
                           == netdev-file 644 root root \
                           /etc/systemd/network/90-railwright-ens1.100.netdev\n\
                           |[NetDev]\n\
                           |Name=ens1.100\n\
                           |Kind=vlan\n\
                           |[VLAN]\n\
                           |Id=100\n";
const RUNNING: &str = "\n== netdev 0\n|kind=vlan\n|lower=ens1\n|id=100\n";

fn resource() -> DesiredResource {
    let body = json!({ "netdev": "ens1.100", "parent": "ens1", "id": 100 });
    assert_eq!(Vlan.check(&body), []);
    DesiredResource::of(Address::host("n1", "vlan", "ens1.100"), "vlan", body)
}

/// What there is of layers and of the parent's manager, and what the parent reports of itself.
fn answers(layers: &str, manager: &str, parent: &str) -> ReadResults {
    let mut answers = ReadResults::default();
    for read in Vlan.reads(&resource()) {
        let (code, out) = match &read {
            Read::LinkManager { netdev } => (0, if netdev == "ens1" { manager } else { "" }),
            Read::Link { .. } => (i32::from(parent.starts_with("netdev=")), parent),
            _ => (0, layers),
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

fn diff(layers: &str, manager: &str) -> ResourceDiff {
    Vlan.diff(&resource(), &answers(layers, manager, PARENT))
}

fn joined(manager: &str) -> String {
    format!(
        "{manager}\n\
         == network-drop-in 644 root root \
         /etc/systemd/network/10-ens1.network.d/91-railwright-ens1.100.conf\n\
         |[Network]\n\
         |VLAN=ens1.100\n"
    )
}

#[test]
fn one_that_is_not_there_is_made_by_the_manager_of_its_parent() {
    let found = diff("", NETWORKD);
    insta::assert_json_snapshot!((&found.actions, found.disruption, &found.interrupts_netdevs), @r##"
    [
      [
        {
          "action": "write_file",
          "path": "/etc/systemd/network/90-railwright-ens1.100.netdev",
          "content": "# Written by railwright; changes made here are overwritten.\n[NetDev]\nName=ens1.100\nKind=vlan\n[VLAN]\nId=100\n",
          "mode": "0644",
          "owner": "root",
          "group": "root"
        },
        {
          "action": "write_file",
          "path": "/etc/systemd/network/10-ens1.network.d/91-railwright-ens1.100.conf",
          "content": "# Written by railwright; changes made here are overwritten.\n[Network]\nVLAN=ens1.100\n",
          "mode": "0644",
          "owner": "root",
          "group": "root"
        },
        {
          "action": "reload_link",
          "netdev": "ens1",
          "manager": "networkd"
        }
      ],
      "link_blip",
      [
        "ens1"
      ]
    ]
    "##);
}

#[test]
fn only_the_plane_that_differs_is_touched() {
    let found = diff(NETDEV_FILE, &joined(NETWORKD));
    assert_eq!(
        found.actions,
        [Action::AddVlan {
            netdev: "ens1.100".to_owned(),
            parent: "ens1".to_owned(),
            id: 100
        }]
    );
    let found = diff(RUNNING, NETWORKD);
    assert_eq!(
        found.actions.iter().map(Action::word).collect::<Vec<_>>(),
        ["write_file", "write_file", "reload_link"]
    );
    assert!(diff(&format!("{RUNNING}{NETDEV_FILE}"), &joined(NETWORKD)).is_met());
}

#[test]
fn what_means_something_else_is_never_torn_down() {
    let found = diff(
        &format!("{}{NETDEV_FILE}", RUNNING.replace("id=100", "id=7")),
        &joined(NETWORKD),
    );
    let said = found.refusal.unwrap();
    assert!(
        found.actions.is_empty() && said.contains("is there as VLAN 7 on ens1"),
        "{said}"
    );
    let found = diff(
        &format!("{RUNNING}{}", NETDEV_FILE.replace("Id=100", "Id=7")),
        &joined(NETWORKD),
    );
    assert!(
        found
            .refusal
            .unwrap()
            .contains("is on disk as VLAN 7 on ens1, and VLAN 100 on ens1 is desired")
    );
    assert!(
        diff("\n== netdev 0\n|kind=bond\n", NETWORKD)
            .refusal
            .unwrap()
            .contains("is there as a bond")
    );
}

/// Only one of the two files is there: nothing is in the way of the other.
#[test]
fn what_was_written_by_half_is_finished() {
    let found = diff(NETDEV_FILE, NETWORKD);
    assert_eq!(
        found.actions.iter().map(Action::word).collect::<Vec<_>>(),
        ["write_file", "write_file", "reload_link"],
        "{:?}",
        found.refusal
    );
}

#[test]
fn a_file_of_several_netdevs_is_not_added_to() {
    let found = diff(
        "",
        &(NETWORKD.replace("|Name=ens1\n", "|Name=ens*\n") + "\n== physical\n|ens1\n|ens2\n"),
    );
    assert!(
        found.actions.is_empty()
            && found
                .refusal
                .unwrap()
                .contains("is also for ens2, and what is added")
    );
}

#[test]
fn without_details_of_ip_it_is_unknown_and_not_absent() {
    let found = diff(
        &format!("{}{NETDEV_FILE}", RUNNING.replace("|id=100\n", "")),
        &joined(NETWORKD),
    );
    assert!(found.has_unknown() && found.refusal.is_none() && found.actions.is_empty());
}

#[test]
fn it_waits_for_its_parent_and_for_the_one_who_manages_that() {
    let mut late = resource();
    late.after.push(Address::host("n1", "bond", "ens1"));
    let gone = answers("", "", "netdev=lo\n");
    assert_eq!(
        Vlan.diff(&late, &gone).known_after.as_deref(),
        Some("bond/ens1")
    );
    assert!(
        Vlan.diff(&resource(), &gone)
            .refusal
            .unwrap()
            .contains("there is no netdev ens1")
    );
    let mut after = resource();
    after.after.push(Address::host("n1", "link", "ens1"));
    let nobodys = answers(
        "",
        "== networkd-state 644 a a /run/systemd/netif/state\n",
        PARENT,
    );
    assert_eq!(
        Vlan.diff(&after, &nobodys).known_after.as_deref(),
        Some("link/ens1")
    );
    assert!(
        Vlan.diff(&resource(), &nobodys)
            .refusal
            .unwrap()
            .contains("nmcli connection add type vlan con-name ens1.100")
    );
}

#[test]
fn netplan_and_ifupdown_get_files_of_ours() {
    let netplan = NETWORKD.replace(
        "/etc/systemd/network/10-ens1",
        "/run/systemd/network/10-netplan-rail0",
    ) + "\n\
         == netplan-get 0\n\
         |network:\n\
         |  version: 2\n\
         |  ethernets:\n\
         |    rail0:\n\
         |      match: {name: ens1}\n";
    let text = |found: ResourceDiff| match found.actions.first() {
        Some(Action::WriteFile { path, content, .. }) => format!("{path}\n{content}"),
        other => panic!("{other:?} {:?}", found.refusal),
    };
    assert!(
        text(diff("", &netplan))
            .ends_with("  vlans:\n    \"ens1.100\":\n      id: 100\n      link: \"rail0\"\n")
    );
    let interfaces = "== ifquery 0\n\
                      |address: 10.0.0.1\n\
                      \n\
                      == interfaces /etc/network/interfaces\n\
                      |source /etc/network/interfaces.d/*\n\
                      |auto ens1\n\
                      |iface ens1 inet static\n";
    let found = diff("", interfaces);
    assert_eq!(
        found.actions.iter().map(Action::word).collect::<Vec<_>>(),
        ["write_file", "add_vlan"]
    );
    assert!(text(found).contains("/89-railwright-ens1_100\n"));
    let unread = interfaces.replace("|source /etc/network/interfaces.d/*\n", "");
    assert!(
        diff("", &unread)
            .refusal
            .unwrap()
            .contains("does not read /etc/network/interfaces.d")
    );
}

#[test]
fn undo_takes_away_what_we_brought_and_nothing_else() {
    let before = diff("", NETWORKD).before;
    let now = answers(
        &format!("{RUNNING}{NETDEV_FILE}"),
        &joined(NETWORKD),
        PARENT,
    );
    assert!(Vlan.can_read_before(&before));
    let undo = Vlan.undo(&resource(), &before, &now);
    assert_eq!(
        undo.actions.iter().map(Action::word).collect::<Vec<_>>(),
        ["remove_file", "remove_file", "reload_link", "remove_vlan"]
    );
    assert!(
        Vlan.undo(&resource(), &before, &answers("", NETWORKD, PARENT))
            .is_met()
    );
    let kept = diff(RUNNING, NETWORKD).before;
    assert!(
        !Vlan
            .undo(&resource(), &kept, &now)
            .actions
            .iter()
            .any(|action| action.word() == "remove_vlan")
    );
}

#[test]
fn one_without_details_is_not_taken_back() {
    let before = diff("", NETWORKD).before;
    let bare = answers(&RUNNING.replace("|id=100\n", ""), NETWORKD, PARENT);
    let undo = Vlan.undo(&resource(), &before, &bare);
    assert!(undo.only_unknown() && undo.actions.is_empty(), "{undo:?}");
}

#[test]
fn bad_bodies_are_told_apart() {
    for (body, pointer) in [
        (json!({ "netdev": "ens1.100", "parent": "ens1" }), ""),
        (
            json!({ "netdev": "ens1.100", "parent": "ens1", "id": 0 }),
            "/id",
        ),
        (
            json!({ "netdev": "ens1.100", "parent": "ens1", "id": 4095 }),
            "/id",
        ),
        (
            json!({ "netdev": "ens1.100", "parent": "a b", "id": 1 }),
            "/parent",
        ),
        (
            json!({ "netdev": "ens1", "parent": "ens1", "id": 1 }),
            "/parent",
        ),
        (
            json!({ "netdev": "longer-than-15-b", "parent": "ens1", "id": 1 }),
            "/netdev",
        ),
        (
            json!({ "netdev": "ens1.100", "parent": "ens1", "id": 1, "mtu": 9000 }),
            "/mtu",
        ),
    ] {
        assert_eq!(
            Vlan.check(&body)
                .first()
                .map(|error| error.pointer.as_str()),
            Some(pointer),
            "{body}"
        );
    }
}
