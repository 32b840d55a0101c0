//! `link` by tables: read results in, diff out.

use super::*;
use crate::{AnswerStatus, ReadResult};
use railwright_base::Address;

const NETWORKD: &str = "== networkd-state 644 a a /run/systemd/netif/state\n\
                        |OPER_STATE=routable\n\
                        \n\
                        == networkd 644 a a /run/systemd/netif/links/3\n\
                        |ADMIN_STATE=configured\n\
                        |NETWORK_FILE=/etc/systemd/network/10-ens1.network\n\
                        \n\
                        == network-file 644 root root /etc/systemd/network/10-ens1.network\n\
                        |[Match]\n\
                        |Name=ens1\n\
                        |[Network]\n\
                        |Address=10.0.0.1/24\n";

fn answers(link: &str, manager: &str) -> ReadResults {
    let mut answers = ReadResults::default();
    let mut put = |read: Read, out: &str| {
        let code = i32::from(out.starts_with("netdev="));
        answers.insert(
            read.key(),
            ReadResult {
                status: AnswerStatus::Exit(code),
                out: out.to_owned(),
            },
        );
    };
    put(
        Read::Link {
            netdev: "ens1".to_owned(),
        },
        link,
    );
    put(
        Read::LinkManager {
            netdev: "ens1".to_owned(),
        },
        manager,
    );
    answers
}

fn resource(body: Value) -> DesiredResource {
    assert_eq!(Link.check(&body), [], "{body}");
    DesiredResource::of(Address::host("n1", "link", "ens1"), "link", body)
}

fn diff(body: Value, link: &str, manager: &str) -> ResourceDiff {
    Link.diff(&resource(body), &answers(link, manager))
}

const PLAIN: &str =
    "ifindex=3\nmtu=1500\nflags=0x1003\nip=1\naddr=3: ens1 inet 10.0.0.1/24 scope global ens1\n";

#[test]
fn both_planes_are_compared_and_fixed() {
    let found = diff(json!({ "netdev": "ens1", "mtu": 9000 }), PLAIN, NETWORKD);
    insta::assert_json_snapshot!((&found.attributes["mtu"], found.actions.iter().map(Action::word).collect::<Vec<_>>(), found.disruption, &found.interrupts), @r#"
    [
      {
        "desired": {
          "persisted": {
            "is": 9000
          },
          "running": {
            "is": 9000
          }
        },
        "actual": {
          "persisted": "absent",
          "running": {
            "is": 1500
          }
        }
      },
      [
        "write_file",
        "set_link",
        "reload_link"
      ],
      "link_blip",
      [
        "RDMA traffic on ens1 stops for about 1 s",
        "systemd-networkd sets the addresses of ens1 anew, and its RDMA GIDs with them"
      ]
    ]
    "#);
}

#[test]
fn only_the_plane_that_differs_is_touched() {
    let persisted = format!("{NETWORKD}|[Link]\n|MTUBytes=9000\n");
    let found = diff(json!({ "netdev": "ens1", "mtu": 9000 }), PLAIN, &persisted);
    let set = Action::SetLink {
        netdev: "ens1".to_owned(),
        mtu: Some(9000),
        up: None,
        add_addresses: Vec::new(),
        remove_addresses: Vec::new(),
    };
    assert_eq!(found.actions, [set]);
    let found = diff(
        json!({ "netdev": "ens1", "mtu": 9000, "addresses": ["10.0.0.1/24"] }),
        &PLAIN.replace("mtu=1500", "mtu=9000"),
        &persisted,
    );
    assert!(found.is_met() && found.actions.is_empty());
}

#[test]
fn a_netdev_that_nobody_manages_is_refused_unless_networkd_can_take_it() {
    let found = diff(json!({ "netdev": "ens1", "mtu": 9000 }), PLAIN, "");
    assert!(found.refusal.unwrap().contains("nobody manages ens1"));
    let found = diff(
        json!({ "netdev": "ens1", "mtu": 9000 }),
        PLAIN,
        "== networkd-state 644 a a /run/systemd/netif/state\n",
    );
    assert!(
        found.refusal.is_none() && found.interrupts[0].contains("takes over ens1"),
        "{found:?}"
    );
}

#[test]
fn an_absent_netdev_is_refused_with_what_there_is_or_waits_for_its_step() {
    let found = diff(
        json!({ "netdev": "ens1", "mtu": 9000 }),
        "netdev=eth0\nnetdev=lo\n",
        "",
    );
    assert_eq!(
        found.attributes["mtu"].actual.get(Plane::Running),
        Some(&Reading::Absent)
    );
    assert!(found.refusal.unwrap().contains("eth0, lo"));
    let found = diff(
        json!({ "netdev": "ens1", "mtu": 9000, "known_after": "kernel_module/mlx5_core" }),
        "netdev=eth0\n",
        "",
    );
    assert_eq!(
        (found.known_after.as_deref(), found.refusal),
        (Some("kernel_module/mlx5_core"), None)
    );
}

#[test]
fn a_vlan_waits_for_its_parent_or_is_refused() {
    let vlan = format!("{PLAIN}kind=vlan\nlower=ens9 1500\n");
    let body = json!({ "netdev": "ens1", "mtu": 9000 });
    assert!(
        diff(body.clone(), &vlan, NETWORKD)
            .refusal
            .unwrap()
            .contains("declare 9000 on ens9 first")
    );
    let mut after = resource(body);
    after.after.push(Address::host("n1", "link", "ens9"));
    assert_eq!(
        Link.diff(&after, &answers(&vlan, NETWORKD))
            .known_after
            .as_deref(),
        Some("link/ens9")
    );
}

#[test]
fn lowering_a_parent_disturbs_its_vlans_and_the_driver_has_the_last_word() {
    let link = format!(
        "{}upper=ens1.5 9000\nmax_mtu=9000\n",
        PLAIN.replace("mtu=1500", "mtu=9000")
    );
    assert_eq!(
        diff(json!({ "netdev": "ens1", "mtu": 1500 }), &link, NETWORKD).disturbs,
        ["link/ens1.5"]
    );
    assert!(
        diff(json!({ "netdev": "ens1", "mtu": 9100 }), &link, NETWORKD)
            .refusal
            .unwrap()
            .contains("at most 9000")
    );
}

#[test]
fn bad_bodies_are_told_apart() {
    for (body, pointer) in [
        (json!({ "netdev": "ens1" }), ""),
        (json!({ "netdev": "a/b", "mtu": 9000 }), "/netdev"),
        (json!({ "netdev": "ens1", "mtu": "9000" }), "/mtu"),
        (
            json!({ "netdev": "ens1", "addresses": ["10.0.0.1"] }),
            "/addresses/0",
        ),
        (json!({ "netdev": "ens1", "up": 1 }), "/up"),
        (
            json!({ "netdev": "ens1", "mtu": 9000, "colour": 1 }),
            "/colour",
        ),
    ] {
        assert_eq!(
            Link.check(&body).first().map(|e| e.pointer.as_str()),
            Some(pointer),
            "{body}"
        );
    }
}

#[test]
fn undo_brings_back_what_was_there_before_and_spares_the_rest() {
    let body = json!({ "netdev": "ens1", "mtu": 9000, "addresses": ["10.0.0.2/24"] });
    let first = diff(body.clone(), PLAIN, NETWORKD);
    let link = format!(
        "{}addr=3: ens1 inet 10.0.0.2/24 scope global ens1\n\
         addr=3: ens1 inet 10.0.0.7/24 scope global ens1\n",
        PLAIN.replace("mtu=1500", "mtu=9000")
    );
    let manager = format!(
        "{NETWORKD}\n\
         == network-drop-in 644 root root \
         /etc/systemd/network/10-ens1.network.d/90-railwright.conf\n\
         |[Link]\n\
         |MTUBytes=9000\n\
         |[Network]\n\
         |Address=10.0.0.2/24\n"
    );
    assert!(diff(body.clone(), &link, &manager).is_met());
    assert!(Link.can_read_before(&first.before));
    let undo = Link.undo(&resource(body), &first.before, &answers(&link, &manager));
    insta::assert_json_snapshot!(undo.actions, @r#"
    [
      {
        "action": "remove_file",
        "path": "/etc/systemd/network/10-ens1.network.d/90-railwright.conf"
      },
      {
        "action": "set_link",
        "netdev": "ens1",
        "mtu": 1500,
        "up": null,
        "add_addresses": [],
        "remove_addresses": []
      },
      {
        "action": "reload_link",
        "netdev": "ens1",
        "manager": "networkd"
      },
      {
        "action": "set_link",
        "netdev": "ens1",
        "mtu": null,
        "up": null,
        "add_addresses": [],
        "remove_addresses": [
          "10.0.0.2/24"
        ]
      }
    ]
    "#);
    let json: Vec<_> = undo
        .attributes
        .iter()
        .map(|(name, a)| (name.as_str(), a.differences().len()))
        .collect();
    assert_eq!(json, [("addresses", 2), ("mtu", 2)]);
}

/// The diff after an earlier desired state that was applied, and its undo then.
fn diff_after(
    bodies: [Value; 2],
    before: &Value,
    link: &str,
    manager: &str,
) -> (ResourceDiff, ResourceDiff) {
    let ([earlier, now], answers) = (bodies.map(resource), answers(link, manager));
    let diff = Link.diff_after(&now, &earlier, before, &answers);
    let kept = Link.remembered(before, &diff.before);
    assert!(before.is_null() || Link.can_read_before(&kept), "{kept}");
    let undo = Link.undo(&now, &kept, &answers);
    (diff, undo)
}

fn removed_addresses(diff: &ResourceDiff) -> Vec<&str> {
    let removed = diff.actions.iter().map(|action| match action {
        Action::SetLink {
            remove_addresses, ..
        } => remove_addresses.iter().map(String::as_str).collect(),
        _ => Vec::new(),
    });
    removed.flatten().collect()
}

const IFUPDOWN: &str = "== ifquery 0\n\
                        |address: 10.0.0.1\n\
                        |netmask: 24\n\
                        |address: 10.1.0.1\n\
                        |netmask: 24\n\
                        \n\
                        == interfaces /etc/network/interfaces\n\
                        |source /etc/network/interfaces.d/*\n\
                        |auto ens1\n\
                        |iface ens1 inet static\n\
                        \n\
                        == interfaces-own 644 root root /etc/network/interfaces.d/90-railwright-ens1\n\
                        |iface ens1 inet static\n\
                        |    address 10.1.0.1/24\n";

const NETPLAN: &str = "== networkd 644 a a /run/systemd/netif/links/3\n\
                       |ADMIN_STATE=configured\n\
                       |NETWORK_FILE=/run/systemd/network/10-netplan-ens1.network\n\
                       \n\
                       == netplan-get 0\n\
                       |network:\n\
                       |  ethernets:\n\
                       |    ens1:\n\
                       |      addresses:\n\
                       |      - \"10.0.0.1/24\"\n\
                       |      - \"10.1.0.1/24\"\n\
                       \n\
                       == netplan-own 600 root root /etc/netplan/90-railwright-ens1.yaml\n\
                       |network:\n\
                       |  ethernets:\n\
                       |    ens1:\n\
                       |      addresses:\n\
                       |      - \"10.1.0.1/24\"\n";

const NETWORK_MANAGER: &str = "== nm-device 644 root root /run/NetworkManager/devices/3\n\
                               |managed=true\n\
                               |connection-uuid=a9\n\
                               \n\
                               == nm-connection 0\n\
                               |connection.type:802-3-ethernet\n\
                               |connection.autoconnect:yes\n\
                               |ipv4.method:manual\n\
                               |ipv4.addresses:10.0.0.1/24, 10.1.0.1/24\n\
                               |ipv6.method:link-local\n\
                               |ipv6.addresses:\n\
                               \n\
                               == nm-file /etc/NetworkManager/system-connections/ens1.nmconnection\n";

/// A rail that got another number. 10.0.0.1 was there before us.
#[test]
fn an_address_of_an_earlier_resource_goes_with_every_manager() {
    let networkd = format!(
        "{NETWORKD}\n\
         == network-drop-in 644 root root \
         /etc/systemd/network/10-ens1.network.d/90-railwright.conf\n\
         |[Network]\n\
         |Address=10.1.0.1/24\n"
    );
    let link = format!("{PLAIN}addr=3: ens1 inet 10.1.0.1/24 scope global ens1\n");
    let body = |addresses: &[&str]| json!({ "netdev": "ens1", "addresses": addresses });
    let before = json!({
        "running": { "mtu": 1500, "up": true, "addresses": ["10.0.0.1/24"] },
        "persisted": {
            "manager": null,
            "values": { "mtu": null, "up": true, "addresses": ["10.0.0.1/24"] },
            "own": null,
            "settings": {},
        },
    });
    let of_manager = [&*networkd, IFUPDOWN, NETPLAN, NETWORK_MANAGER];
    for manager in of_manager {
        let earlier = body(&["10.0.0.1/24", "10.1.0.1/24"]);
        for desired in [&["10.2.0.1/24"][..], &["10.0.0.1/24"], &["fd00::1/64"]] {
            let bodies = [earlier.clone(), body(desired)];
            let (actual, _) = diff_after(bodies, &before, &link, manager);
            assert_eq!(removed_addresses(&actual), ["10.1.0.1/24"], "{manager}");
            let written = match &actual.actions[0] {
                Action::WriteFile { content, .. } => content.contains("10.1."),
                Action::ModifyConnection { settings, .. } => {
                    settings["ipv4.addresses"].contains("10.1.")
                }
                Action::RemoveFile { .. } => false,
                other => panic!("{other:?}"),
            };
            assert!(!written, "{manager}: {actual:?}");
            let addresses = &actual.attributes["addresses"];
            for plane in [Plane::Persisted, Plane::Running] {
                let text = format!("{:?}", addresses.actual.get(plane));
                assert!(text.contains("10.1.0.1/24"), "{manager}: {text}");
            }
        }
        // All addresses leave the resource: that is named once, and left; ours go with the rest.
        let bodies = [earlier, json!({ "netdev": "ens1", "mtu": 1500 })];
        let (actual, undo) = diff_after(bodies, &before, &link, manager);
        assert!(!actual.attributes.contains_key("addresses"), "{manager}");
        assert_eq!(removed_addresses(&undo), ["10.1.0.1/24"], "{manager}");
    }
    let earlier = body(&["10.1.0.1/24"]);
    let theirs = NETPLAN.split("\n== netplan-own").next().unwrap();
    for (before, manager) in [(&Value::Null, NETWORK_MANAGER), (&before, theirs)] {
        let bodies = [earlier.clone(), body(&["10.0.0.1/24"])];
        let (actual, _) = diff_after(bodies, before, &link, manager);
        assert!(actual.is_met(), "{manager}: {actual:?}");
    }
}

/// `manual` without an address is refused.
#[test]
fn a_family_without_addresses_gets_the_method_of_before() {
    let body = |address: &str| json!({ "netdev": "ens1", "addresses": [address] });
    for (prior, then) in [("auto", "auto"), ("manual", "disabled"), ("", "disabled")] {
        let before = json!({
            "running": { "addresses": [] },
            "persisted": {
                "values": { "addresses": [] },
                "settings": { "ipv4.method": prior },
            },
        });
        let manager = NETWORK_MANAGER.replace("10.0.0.1/24, ", "");
        let bodies = [body("10.1.0.1/24"), body("fd00::1/64")];
        let (found, _) = diff_after(bodies, &before, PLAIN, &manager);
        let Action::ModifyConnection { settings, .. } = &found.actions[0] else {
            panic!("{found:?}")
        };
        assert_eq!(settings["ipv4.method"], then);
    }
}
