//! `bond` by tables: read results in, diff out.

use super::*;
use crate::{AnswerStatus, ReadResult};
use railwright_base::Address;

const RUNNING: &str = "\n\
                       == netdev 0\n\
                       |kind=bond\n\
                       |lower=eno1\n\
                       |lower=eno2\n\
                       |mode=802.3ad 4\n\
                       |miimon=100\n\
                       |lacp_rate=fast 1\n\
                       |xmit_hash_policy=layer3+4 1\n";
const NETPLAN: &str = "== networkd-state 644 a a /run/systemd/netif/state\n\
                       |OPER_STATE=routable\n\
                       \n\
                       == networkd 644 a a /run/systemd/netif/links/3\n\
                       |ADMIN_STATE=configured\n\
                       |NETWORK_FILE=/run/systemd/network/10-netplan-NAME.network\n\
                       \n\
                       == network-file 640 root systemd-network \
                       /run/systemd/network/10-netplan-NAME.network\n\
                       |[Match]\n\
                       |Name=NAME\n\
                       \n\
                       == netplan-get 0\n\
                       |network:\n\
                       |  version: 2\n\
                       |  ethernets:\n\
                       |    eno1: {}\n\
                       |    eno2: {}\n\
                       |  bonds:\n\
                       |    bond0:\n\
                       |      interfaces: [eno1, eno2]\n\
                       |      parameters: \
                       {mode: 802.3ad, mii-monitor-interval: 100, lacp-rate: fast, transmit-hash-policy: layer3+4}\n";

fn body() -> Value {
    json!({ "netdev": "bond0", "members": ["eno1", "eno2"], "mode": "802.3ad", "miimon": 100, "lacp_rate": "fast", "xmit_hash_policy": "layer3+4" })
}

fn resource(body: Value) -> DesiredResource {
    assert_eq!(Bond.check(&body), [], "{body}");
    DesiredResource::of(Address::host("n1", "bond", "bond0"), "bond", body)
}

fn diff(body: Value, layers: &str, managers: &str) -> ResourceDiff {
    let resource = resource(body);
    let mut answers = ReadResults::default();
    for read in Bond.reads(&resource) {
        let out = match &read {
            Read::LinkManager { netdev } => managers.replace("NAME", netdev),
            _ => layers.to_owned(),
        };
        answers.insert(
            read.key(),
            ReadResult {
                status: AnswerStatus::Exit(0),
                out,
            },
        );
    }
    Bond.diff(&resource, &answers)
}

fn differences(diff: &ResourceDiff) -> Vec<String> {
    let each = diff
        .attributes
        .iter()
        .flat_map(|(name, attribute)| attribute.differences().into_iter().map(move |d| (name, d)));
    each.map(|(name, (plane, _, found))| {
        format!("{name} {plane:?} {}", serde_json::to_string(found).unwrap())
    })
    .collect()
}

#[test]
fn a_bond_of_netplan_that_is_in_sync_is_met_in_both_planes() {
    let found = diff(body(), RUNNING, NETPLAN);
    assert!(
        found.is_met() && found.refusal.is_none(),
        "{:?}",
        differences(&found)
    );
    let found = diff(
        body(),
        RUNNING,
        &NETPLAN.replace("interval: 100", "interval: 100ms"),
    );
    assert!(
        found.is_met(),
        "a time with its unit: {:?}",
        differences(&found)
    );
}

#[test]
fn mode_members_and_rate_that_differ_are_told_by_plane_with_the_lines_to_write() {
    let found = diff(
        body(),
        &RUNNING
            .replace("802.3ad 4", "balance-rr 0")
            .replace("|lower=eno2\n", ""),
        NETPLAN,
    );
    assert_eq!(
        differences(&found),
        [
            r#"members Running {"is":["eno1"]}"#,
            r#"mode Running {"is":"balance-rr"}"#
        ]
    );
    let said = found.refusal.unwrap();
    assert!(
        found.actions.is_empty() && said.contains("goes down meanwhile"),
        "{said}"
    );
    assert!(
        said.contains(
            "bonds: { bond0: { interfaces: [eno1, eno2], parameters: { mode: 802.3ad, \
             mii-monitor-interval: 100,"
        ),
        "{said}"
    );
    let found = diff(
        body(),
        RUNNING,
        &NETPLAN
            .replace("lacp-rate: fast", "lacp-rate: slow")
            .replace("interval: 100", "interval: 250"),
    );
    assert_eq!(
        differences(&found),
        [
            r#"lacp_rate Persisted {"is":"slow"}"#,
            r#"miimon Persisted {"is":250}"#
        ]
    );
}

#[test]
fn a_bond_of_networkd_is_read_from_the_netdev_file_and_those_of_its_members() {
    let networkd = NETPLAN.split("\n== netplan-get").next().unwrap().replace(
        "/run/systemd/network/10-netplan-",
        "/etc/systemd/network/20-",
    );
    let networkd = format!("{networkd}|[Network]\n|Bond=bond0\n");
    let layers = format!(
        "{RUNNING}\n\
         == netdev-file 644 root root /etc/systemd/network/b.netdev\n\
         |[NetDev]\n\
         |Name=bond0\n\
         |Kind=bond\n\
         |[Bond]\n\
         |Mode=802.3ad\n\
         |MIIMonitorSec=0.1s\n\
         |LACPTransmitRate=fast\n\
         |TransmitHashPolicy=layer3+4\n"
    );
    let found = diff(body(), &layers, &networkd);
    assert!(found.is_met(), "{:?}", differences(&found));
    let found = diff(
        body(),
        &layers.replace("=0.1s", "=1"),
        &networkd.replace("Bond=bond0", "Bond=bond1"),
    );
    assert_eq!(
        differences(&found),
        [
            r#"members Persisted {"is":[]}"#,
            r#"miimon Persisted {"is":1000}"#
        ]
    );
    assert!(
        found
            .refusal
            .unwrap()
            .contains("[Bond] Mode=802.3ad MIIMonitorSec=100ms LACPTransmitRate=fast")
    );
}

#[test]
fn a_bond_of_network_manager_and_one_of_ifupdown() {
    let manager = "== nm-device 644 root root /run/NetworkManager/devices/3\n\
                   |[device]\n\
                   |managed=true\n\
                   |connection-uuid=u-NAME\n\
                   \n\
                   == nm-connection 0\n\
                   |connection.uuid:u-NAME\n\
                   |connection.type:bond\n\
                   |connection.master:u-bond0\n\
                   |bond.options:mode=802.3ad,miimon=100,lacp_rate=1,xmit_hash_policy=layer3+4\n\
                   \n\
                   == nm-file /etc/NetworkManager/system-connections/x.nmconnection\n";
    let found = diff(body(), RUNNING, manager);
    assert!(found.is_met(), "{:?}", differences(&found));
    let found = diff(
        body(),
        RUNNING,
        &manager.replace("master:u-bond0", "master:"),
    );
    assert_eq!(differences(&found), [r#"members Persisted {"is":[]}"#]);
    assert!(
        found.refusal.unwrap().contains(
            "bond.options mode=802.3ad,miimon=100,lacp_rate=fast,xmit_hash_policy=layer3+4"
        )
    );
    let interfaces = "== ifquery 0\n\
                      |bond-slaves: eno1 eno2\n\
                      |bond-mode: 4\n\
                      |bond_miimon: 100\n\
                      |bond-lacp-rate: fast\n\
                      |bond-xmit-hash-policy: layer3+4\n";
    let found = diff(body(), RUNNING, interfaces);
    assert!(found.is_met(), "{:?}", differences(&found));
}

#[test]
fn one_that_is_not_there_is_made_by_hand_and_a_name_in_use_is_told() {
    let found = diff(body(), "", "");
    assert!(
        found.is_absent()
            && found
                .refusal
                .unwrap()
                .contains("lose their addresses when they join")
    );
    let found = diff(
        body(),
        "\n== netdev 0\n|kind=vlan\n|lower=eno1\n|id=5\n",
        "",
    );
    assert!(found.refusal.unwrap().contains("is there and is no bond"));
}

#[test]
fn bad_bodies_are_told_apart() {
    let with = |field: &str, value: Value| {
        let mut body = body();
        body[field] = value;
        Bond.check(&body).first().map(|error| error.pointer.clone())
    };
    for (field, value) in [
        ("netdev", json!("a name of 16 xx")),
        ("members", json!([])),
        ("members", json!(["eno1", "eno1"])),
        ("members", json!(["bond0"])),
        ("mode", json!("lacp")),
        ("miimon", json!("100ms")),
        ("lacp_rate", json!("quick")),
        ("xmit_hash_policy", json!("layer5")),
        ("primary", json!("eno3")),
        ("colour", json!(1)),
    ] {
        assert_eq!(with(field, value), Some(format!("/{field}")));
    }
}
