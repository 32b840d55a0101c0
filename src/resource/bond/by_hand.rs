//! What a person writes for a bond, in the words of the manager of the host.

use super::BondBody;
use crate::action::NetworkManagerKind;

/// Why it is left to a person, and the lines.
pub(super) fn render_manual_bond_steps(
    body: &BondBody,
    is_there: bool,
    manager: Option<NetworkManagerKind>,
) -> String {
    let why = match is_there {
        true => format!(
            "the bond {} is changed by hand, because it goes down meanwhile with all that it \
             carries",
            body.netdev
        ),
        false => format!(
            "the bond {} is made by hand, because its members lose their addresses when they join",
            body.netdev
        ),
    };
    let how = match manager {
        Some(NetworkManagerKind::Netplan) => {
            format!(
                "in /etc/netplan write {}, then `netplan try` over a console",
                render_netplan_lines(body)
            )
        }
        Some(NetworkManagerKind::NetworkManager) => network_manager(body),
        Some(NetworkManagerKind::Ifupdown) => {
            format!(
                "in /etc/network/interfaces write {}, then `systemctl restart networking` over a \
                 console",
                render_ifupdown_lines(body)
            )
        }
        Some(NetworkManagerKind::Networkd) | None => format!(
            "in /etc/systemd/network write {}, and `Bond={}` below [Network] of the file of each \
             of {}; then `networkctl reload` over a console",
            render_networkd_lines(body),
            body.netdev,
            body.members.join(", ")
        ),
    };
    format!(
        "{why}: {how}. Addresses, routes and dhcp4 of the ports move to {0}, or to the VLAN on it, \
         in the same step: a port of a bond has none",
        body.netdev
    )
}

fn format_bond_options<'a>(
    body: &'a BondBody,
    words: [&'a str; 5],
    of: impl Fn(&str, &str) -> String,
) -> Vec<String> {
    let miimon = body.miimon.map(|miimon| miimon.0.to_string());
    let values = [
        Some(&body.mode),
        miimon.as_ref(),
        body.lacp_rate.as_ref(),
        body.xmit_hash_policy.as_ref(),
        body.primary.as_ref(),
    ];
    words
        .iter()
        .zip(values)
        .filter_map(|(word, value)| Some(of(word, value.filter(|_| !word.is_empty())?)))
        .collect()
}

/// netplan(5)
fn render_netplan_lines(body: &BondBody) -> String {
    let words = [
        "mode",
        "mii-monitor-interval",
        "lacp-rate",
        "transmit-hash-policy",
        "primary",
    ];
    let parameters =
        format_bond_options(body, words, |word, value| format!("{word}: {value}")).join(", ");
    let members = body.members.join(", ");
    let ports = body
        .members
        .iter()
        .map(|member| format!("{member}: {{}}"))
        .collect::<Vec<_>>()
        .join(", ");
    format!(
        "`ethernets: {{ {ports} }}` and `bonds: {{ {}: {{ interfaces: [{members}], parameters: {{ \
         {parameters} }} }} }}`",
        body.netdev
    )
}

/// systemd.netdev(5); the primary is set in the file of that member.
fn render_networkd_lines(body: &BondBody) -> String {
    let words = [
        "Mode",
        "MIIMonitorSec",
        "LACPTransmitRate",
        "TransmitHashPolicy",
        "",
    ];
    let parameters = format_bond_options(body, words, |word, value| match word {
        "MIIMonitorSec" => format!("{word}={value}ms"),
        _ => format!("{word}={value}"),
    })
    .join(" ");
    let primary = body
        .primary
        .as_ref()
        .map(|primary| format!(", `PrimarySlave=true` beside it for {primary}"))
        .unwrap_or_default();
    format!(
        "a .netdev file with `[NetDev] Name={} Kind=bond` and `[Bond] {parameters}`{primary}",
        body.netdev
    )
}

/// nmcli-examples(7)
fn network_manager(body: &BondBody) -> String {
    let words = ["mode", "miimon", "lacp_rate", "xmit_hash_policy", "primary"];
    let parameters =
        format_bond_options(body, words, |word, value| format!("{word}={value}")).join(",");
    let bond = &body.netdev;
    let members = body.members.iter().map(|member| {
        format!("`nmcli connection add type ethernet ifname {member} master {bond}`")
    });
    let members = members.collect::<Vec<_>>().join(", ");
    format!(
        "over a console `nmcli connection add type bond con-name {bond} ifname {bond} bond.options \
         {parameters}`, then {members}"
    )
}

/// Debian's ifenslave: README.Debian
fn render_ifupdown_lines(body: &BondBody) -> String {
    let words = [
        "bond-mode",
        "bond-miimon",
        "bond-lacp-rate",
        "bond-xmit-hash-policy",
        "bond-primary",
    ];
    let parameters =
        format_bond_options(body, words, |word, value| format!("{word} {value}")).join("`, `");
    format!(
        "below `iface {}` the lines `bond-slaves {}`, `{parameters}`",
        body.netdev,
        body.members.join(" ")
    )
}
