//! `netdev_name` by tables: read results in, diff out.

use super::*;
use crate::{AnswerStatus, ReadResult};
use railwright_base::Address;
use serde_json::json;

const NICS: &str = "netdev eno1 0000:01:00.0 3c:ec:ef:00:00:01 -\n\
                    netdev ens1 0000:19:00.0 b8:ce:f6:00:00:01 -\n\
                    netdev ens1.100 - b8:ce:f6:00:00:01 -\n\
                    netdev ens2 0000:3b:00.0 b8:ce:f6:00:00:01 b8:ce:f6:00:00:02\n\
                    netdev bond0 - b8:ce:f6:00:00:01 -\n";
const UDEV: &str = "\n== udev\n|ID_PATH=pci-0000:19:00.0\n\n== rules\n";
const OWN: &str = "\n\
                   == own-link 644 root root /etc/systemd/network/00-railwright-rail0.link\n\
                   |# Written by railwright; a change by hand is drift.\n\
                   |[Match]\n\
                   |Path=pci-0000:19:00.0\n\
                   |[Link]\n\
                   |Name=rail0\n";
const DISK: &str = "\n== ram-disk older /boot/initrd.img-6.1\n";

fn resource(body: Value) -> DesiredResource {
    assert_eq!(NetdevName.check(&body), [], "{body}");
    DesiredResource::of(
        Address::host("n1", "netdev_name", "rail0"),
        "netdev_name",
        body,
    )
}

fn rail() -> DesiredResource {
    resource(json!({ "name": "rail0", "device": "0000:19:00.0" }))
}

fn answers(resource: &DesiredResource, out: &str) -> ReadResults {
    let mut answers = ReadResults::default();
    answers.insert(
        NetdevName.reads(resource)[0].key(),
        ReadResult {
            status: AnswerStatus::Exit(0),
            out: out.to_owned(),
        },
    );
    answers
}

fn diff(resource: &DesiredResource, out: &str) -> ResourceDiff {
    NetdevName.diff(resource, &answers(resource, out))
}

fn words(diff: &ResourceDiff) -> Vec<String> {
    diff.actions.iter().map(Action::word).collect()
}

fn netdev(file: &str) -> String {
    format!(
        "\n\
         == networkd 644 a a /run/systemd/netif/links/3\n\
         |ADMIN_STATE=configured\n\
         |NETWORK_FILE=/etc/systemd/network/10-a.network\n\
         \n\
         == network-file 644 root root /etc/systemd/network/10-a.network\n\
         {file}"
    )
}

#[test]
fn the_file_is_written_and_the_name_waits_for_the_boot() {
    let fresh = diff(&rail(), &format!("{NICS}{DISK}{UDEV}"));
    assert_eq!(
        (words(&fresh), fresh.needs_reboot, fresh.pending),
        (
            vec!["write_file".into(), "update_initial_ram_disks".into()],
            true,
            false
        )
    );
    let Action::WriteFile { path, content, .. } = &fresh.actions[0] else {
        panic!()
    };
    assert_eq!(path, "/etc/systemd/network/00-railwright-rail0.link");
    assert_eq!(
        content.lines().skip(1).collect::<Vec<_>>(),
        ["[Match]", "Path=pci-0000:19:00.0", "[Link]", "Name=rail0"]
    );

    let stale = diff(&rail(), &format!("{NICS}{OWN}{DISK}{UDEV}"));
    assert_eq!(
        words(&stale),
        ["update_initial_ram_disks"],
        "a file that no initial RAM disk holds gives no name"
    );
    let waits = diff(
        &rail(),
        &format!("{NICS}{OWN}{}{UDEV}", DISK.replace("older", "newer")),
    );
    let planes: Vec<Plane> = waits.attributes["name"]
        .differences()
        .into_iter()
        .map(|(plane, ..)| plane)
        .collect();
    assert_eq!(
        (
            planes,
            words(&waits).len(),
            waits.needs_reboot,
            waits.pending
        ),
        (vec![Plane::Running], 0, true, true)
    );
    let named = NICS.replace("ens1 ", "rail0 ");
    assert!(diff(&rail(), &format!("{named}{OWN}{UDEV}")).is_met());
    assert_eq!(
        words(&diff(&rail(), &format!("{named}{OWN}{DISK}{UDEV}"))),
        ["update_initial_ram_disks"]
    );
}

#[test]
fn a_mac_address_means_the_nic_and_neither_its_vlan_nor_its_bond() {
    for (mac, old) in [("b8:ce:f6:00:00:02", "ens2"), ("3c:ec:ef:00:00:01", "eno1")] {
        let found = diff(
            &resource(json!({ "name": "rail0", "device": mac })),
            &format!("{NICS}{UDEV}"),
        );
        assert_eq!(
            found.attributes["name"].actual.get(Plane::Running),
            Some(&Reading::is(old))
        );
        assert!(
            matches!(&found.actions[0], Action::WriteFile { content, .. } if content.contains(&format!("MACAddress={mac}\nPath=*\n")))
        );
    }
    let several = diff(
        &resource(json!({ "name": "rail0", "device": "b8:ce:f6:00:00:01" })),
        &format!("{NICS}{UDEV}"),
    );
    assert!(
        several
            .refusal
            .unwrap()
            .starts_with("ens1 and ens2 are all at b8:ce"),
        "a bond lends its members one address"
    );
}

#[test]
fn a_configuration_that_goes_by_the_old_name_is_refused_before_anything_is_written() {
    let refusal = |manager: &str| {
        let found = diff(&rail(), &format!("{NICS}{UDEV}{manager}"));
        assert_eq!(
            found.refusal.is_some(),
            found.actions.is_empty(),
            "{found:?}"
        );
        found.refusal.unwrap_or_default()
    };
    assert!(
        refusal(&netdev(
            "|[Match]\n|Name=ens1\n|[Network]\n|Address=10.0.0.1/24\n"
        ))
        .contains("finds it by the name ens1")
    );
    for follows in [
        "Name=ens1 rail*",
        "MACAddress=b8:ce:f6:00:00:01",
        "Name=!eno*",
    ] {
        assert_eq!(
            refusal(&netdev(&format!(
                "|[Match]\n|{follows}\n|[Network]\n|Name=x\n"
            ))),
            "",
            "{follows}"
        );
    }
    for lost in ["!rail*", "!eno* ens1"] {
        assert!(
            refusal(&netdev(&format!("|[Match]\n|Name={lost}\n"))).contains("systemd-networkd"),
            "{lost}"
        );
    }
    let netplan = |definition: &str| {
        netdev("").replace(
            "/etc/systemd/network/10-a",
            "/run/systemd/network/10-netplan-ens1",
        ) + &format!(
            "\n\
             == netplan-get 0\n\
             |network:\n\
             |  ethernets:\n\
             |    ens1:\n\
             |      addresses: [10.0.0.1/24]\n\
             {definition}"
        )
    };
    assert!(refusal(&netplan("")).contains("netplan's definition `ens1`"));
    assert!(
        refusal(&netplan(
            "|      match: { macaddress: x }\n|      set-name: ens1\n"
        ))
        .contains("without `set-name`")
    );
    assert_eq!(refusal(&netplan("|      match: { macaddress: x }\n")), "");
    assert_eq!(
        refusal(&netplan("|    rail0: { addresses: [10.0.0.1/24] }\n")),
        ""
    );
    let connection = |name: &str| {
        format!(
            "\n\
             == nm-device 644 root root /run/NetworkManager/devices/3\n\
             |managed=true\n\
             |connection-uuid=a9\n\
             \n\
             == nm-connection 0\n\
             |connection.interface-name:{name}\n\
             \n\
             == nm-file /etc/NetworkManager/system-connections/a.nmconnection\n"
        )
    };
    assert!(
        refusal(&connection("ens1"))
            .contains("nmcli connection modify a9 connection.interface-name rail0")
    );
    assert_eq!(
        (refusal(&connection("")), refusal(&connection("rail0"))),
        (String::new(), String::new())
    );
    let stanzas = "\n\
                   == ifquery 0\n\
                   |address: 10.0.0.1\n\
                   \n\
                   == interfaces /etc/network/interfaces\n\
                   |auto ens1\n\
                   |iface ens1 inet static\n";
    assert!(refusal(stanzas).contains("write its stanzas for rail0 too"));
    assert_eq!(refusal(&format!("{stanzas}|iface rail0 inet static\n")), "");
}

#[test]
fn where_nobody_configures_it_the_rollback_timer_of_our_own_connection_decides() {
    assert_eq!(
        diff(&rail(), &format!("{NICS}{UDEV}")).interrupts_netdevs,
        ["ens1"]
    );
    let follows = diff(
        &rail(),
        &format!("{NICS}{UDEV}{}", netdev("|[Match]\n|Name=*\n")),
    );
    assert_eq!(
        (follows.interrupts_netdevs.len(), follows.needs_reboot),
        (0, true)
    );
}

#[test]
fn what_others_name_is_left_to_them() {
    let refusal = |more: &str| {
        diff(
            &rail(),
            &format!("{NICS}\n== udev\n|ID_PATH=pci-0000:19:00.0\n{more}"),
        )
        .refusal
        .unwrap_or_default()
    };
    let rule = "\n\
                == rules\n\
                |/etc/udev/rules.d/70-net.rules:SUBSYSTEM==\"net\", \
                ATTR{address}==\"b8:ce:f6:00:00:01\", NAME=\"fab0\"\n";
    assert!(refusal(rule).starts_with("/etc/udev/rules.d/70-net.rules names it fab0"));
    assert_eq!(refusal(&rule.replace(":SUBSYSTEM", ":# SUBSYSTEM")), "");
    let file = "\n\
                == link-file /run/systemd/network/10-netplan-r0.link\n\
                |[Match]\n\
                |Path=\n\
                |[Link]\n\
                |Name=fab0\n\
                |WakeOnLanPassword=\n";
    assert!(refusal(file).starts_with("/run/systemd/network/10-netplan-r0.link names it fab0"));
    let same = format!(
        "{}{UDEV}{}",
        NICS.replace("ens1 ", "rail0 "),
        file.replace("fab0", "rail0")
    );
    assert!(
        diff(&rail(), &same).is_met(),
        "named so by somebody else is named so"
    );
    let only_settings = diff(
        &rail(),
        &format!(
            "{NICS}{UDEV}{}",
            file.replace("|Name=fab0\n", "|NamePolicy=\n|MTUBytes=\n")
        ),
    );
    assert!(
        only_settings.interrupts[0].contains("does not set MTUBytes, WakeOnLanPassword of it"),
        "{:?}",
        only_settings.interrupts
    );
    assert!(
        diff(&rail(), NICS)
            .refusal
            .unwrap()
            .contains("udev knows nothing of ens1")
    );
}

#[test]
fn rails_may_trade_names_and_nobody_else_may_hold_one() {
    let held = format!("{}{UDEV}", NICS.replace("ens2 ", "rail0 "));
    assert!(
        diff(&rail(), &held)
            .refusal
            .unwrap()
            .contains("the netdev at 0000:3b:00.0 is named rail0 already")
    );
    let trade =
        resource(json!({ "name": "rail0", "device": "0000:19:00.0", "with": ["0000:3b:00.0"] }));
    assert_eq!(diff(&trade, &held).refusal, None);
}

#[test]
fn nobody_at_the_place_is_told_with_who_is_elsewhere() {
    let other = resource(json!({ "name": "rail0", "device": "0000:99:00.0" }));
    assert!(
        diff(&other, NICS)
            .refusal
            .unwrap()
            .contains("eno1 at 0000:01:00.0, ens1 at 0000:19:00.0")
    );
    let later = resource(
        json!({ "name": "rail0", "device": "0000:99:00.0", "known_after": "kernel_module/mlx5_core" }),
    );
    assert_eq!(
        diff(&later, NICS).known_after.as_deref(),
        Some("kernel_module/mlx5_core")
    );
}

#[test]
fn undo_brings_the_old_name_back_and_asks_the_same_of_the_configuration() {
    let before = diff(&rail(), &format!("{NICS}{UDEV}")).before;
    assert_eq!(before, json!({ "running": "ens1", "own": null }));
    assert!(NetdevName.can_read_before(&before));
    let named = NICS.replace("ens1 ", "rail0 ");
    let undo = |out: &str| NetdevName.undo(&rail(), &before, &answers(&rail(), out));
    let found = undo(&format!("{named}{OWN}{DISK}{UDEV}"));
    assert_eq!(
        (words(&found), found.needs_reboot),
        (
            vec![
                "remove_file".to_owned(),
                "update_initial_ram_disks".to_owned()
            ],
            true
        )
    );
    assert!(undo(&format!("{NICS}{UDEV}")).is_met());
    let lost = undo(&format!(
        "{named}{OWN}{UDEV}{}",
        netdev("|[Match]\n|Name=rail0\n")
    ));
    assert!(
        lost.refusal
            .unwrap()
            .starts_with("as ens1, rail0 would be without its configuration")
            && lost.actions.is_empty()
    );
    let never_booted = undo(&format!("{NICS}{OWN}{UDEV}"));
    assert_eq!(
        (words(&never_booted), never_booted.needs_reboot),
        (vec!["remove_file".to_owned()], false)
    );
}

#[test]
fn bad_bodies_are_told_apart() {
    let mac = "b8:ce:f6:00:00:01";
    for (body, pointer) in [
        (json!({ "device": mac }), ""),
        (json!({ "name": "eth0", "device": mac }), "/name"),
        (json!({ "name": "rail0.7", "device": mac }), "/name"),
        (json!({ "name": "7", "device": mac }), "/name"),
        (json!({ "name": "rail0", "device": "19:00.0" }), "/device"),
        (
            json!({ "name": "rail0", "device": "B8:CE:F6:00:00:01" }),
            "/device",
        ),
        (
            json!({ "name": "rail0", "device": mac, "with": ["x"] }),
            "/with",
        ),
    ] {
        assert_eq!(
            NetdevName.check(&body).first().map(|e| e.pointer.as_str()),
            Some(pointer),
            "{body}"
        );
    }
}
