//! What the kernel says about a netdev now: one section of sh, and its decoder.

use crate::{Read, ReadResults};
use ipnet::IpNet;
use railwright_base::Reason;
use railwright_base::quote::quote_for_shell;

/// A netdev above or below another one: a VLAN's parent, a bond's members.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AdjacentNetdev {
    /// Its name.
    pub netdev: String,
    /// Its MTU in bytes, where the kernel reported it.
    pub mtu: Option<u32>,
}

/// One address of a netdev.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinkAddress {
    /// Address and prefix.
    pub address: IpNet,
    /// `global`, `link`, `host`.
    pub scope: String,
}

/// A netdev as it runs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LinkState {
    /// Its name.
    pub netdev: String,
    /// The kernel's number of it.
    pub index: Option<u32>,
    /// MTU in bytes.
    pub mtu: Option<u32>,
    /// Administratively up (`IFF_UP`); a link that is up can still have no carrier.
    pub up: Option<bool>,
    /// `up`, `down`, `lowerlayerdown`, `unknown` ...
    pub operstate: Option<String>,
    /// A cable with somebody at its other end; unreadable while the link is down.
    pub carrier: Option<bool>,
    /// Megabits per second; unreadable while the link is down.
    pub speed_mbps: Option<u32>,
    /// The MAC address.
    pub mac: Option<String>,
    /// The driver: `mlx5_core`.
    pub driver: Option<String>,
    /// The device below: a PCI address such as `0000:c1:00.0`.
    pub device: Option<String>,
    /// `vlan`, `bond`, `bridge` ...; nothing for a plain NIC.
    pub kind: Option<String>,
    /// A virtual function of an SR-IOV card.
    pub is_virtual_function: bool,
    /// The largest MTU that the driver takes, where iproute2 reported it.
    pub max_mtu: Option<u32>,
    /// The netdevs that this one sits on.
    pub lower: Vec<AdjacentNetdev>,
    /// The netdevs that sit on this one.
    pub upper: Vec<AdjacentNetdev>,
    /// Its addresses; nothing when `ip` gave no answer.
    pub addresses: Option<Vec<LinkAddress>>,
}

/// `key=value` lines; exit 1 with the names of the other netdevs when this one is not there. `ip
/// -o` is used and not `ip -j`, because busybox has only the former.
pub fn read_script(netdev: &str) -> String {
    format!(
        r#"n={netdev}; d="$R/sys/class/net/$n"
if [ ! -d "$d" ]; then
for o in "$R"/sys/class/net/*; do [ -d "$o" ] && printf 'netdev=%s\n' "${{o##*/}}"; done
exit 1
fi
for a in ifindex mtu flags operstate carrier speed address; do v=; {{ read -r v <"$d/$a"; }} 2>/dev/null; [ -n "$v" ] && printf '%s=%s\n' "$a" "$v"; done
(cd -P "$d/device" && printf 'device=%s\n' "${{PWD##*/}}" && cd -P driver && printf 'driver=%s\n' "${{PWD##*/}}") 2>/dev/null
[ -e "$d/device/physfn" ] && printf 'virtual_function=1\n'
{{ while read -r v; do case $v in DEVTYPE=*) printf 'kind=%s\n' "${{v#*=}}" ;; esac; done <"$d/uevent"; }} 2>/dev/null
for o in "$d"/lower_* "$d"/upper_*; do [ -e "$o" ] || continue
m=; {{ read -r m <"$o/mtu"; }} 2>/dev/null; w=${{o##*/}}; printf '%s=%s %s\n' "${{w%%_*}}" "${{w#*_}}" "$m"; done
[ -n "${{ip_said+x}}" ] || {{ ip_addresses=$(ip -o addr show dev "$n" 2>/dev/null) && ip_said=1; ip_links=$(ip -d -o link show dev "$n" 2>/dev/null); }}
set -f; IFS='
'
[ -z "${{ip_said-}}" ] || printf 'ip=1\n'
for v in $ip_addresses; do case $v in [0-9]*": $n "*) printf 'addr=%s\n' "$v" ;; esac; done
for v in $ip_links; do case $v in [0-9]*": $n: "*' maxmtu '*|[0-9]*": $n@"*' maxmtu '*) v=${{v##* maxmtu }}; printf 'max_mtu=%s\n' "${{v%%[!0-9]*}}" ;; esac; done
exit 0
"#,
        netdev = quote_for_shell(netdev)
    )
}

/// What the reads of several netdevs ask once: addresses and links of all.
pub const SHARED: &str = "ip_addresses=$(ip -o addr show 2>/dev/null) && ip_said=1 || ip_said=\n\
                          ip_links=$(ip -d -o link show 2>/dev/null)\n";

/// The netdev by the read results; `None` when the host has none of this name.
pub fn link_state(answers: &ReadResults, netdev: &str) -> Result<Option<LinkState>, Reason> {
    match answers.output(&Read::Link {
        netdev: netdev.to_owned(),
    })? {
        (0, out) => Ok(Some(parse_link_state(netdev, out))),
        (1, _) => Ok(None),
        (code, _) => Err(format!("the read of {netdev} ended with status {code}").into()),
    }
}

/// The netdevs that the host has instead, when the one asked for is not there.
pub fn other_netdevs(answers: &ReadResults, netdev: &str) -> Vec<String> {
    match answers.output(&Read::Link {
        netdev: netdev.to_owned(),
    }) {
        Ok((1, out)) => out
            .lines()
            .filter_map(|line| line.strip_prefix("netdev="))
            .map(str::to_owned)
            .take(64)
            .collect(),
        _ => Vec::new(),
    }
}

fn parse_link_state(netdev: &str, out: &str) -> LinkState {
    let mut state = LinkState {
        netdev: netdev.to_owned(),
        ..LinkState::default()
    };
    for line in out.lines() {
        let Some((key, value)) = line.split_once('=') else {
            continue;
        };
        match key {
            "ifindex" => state.index = value.parse().ok(),
            "mtu" => state.mtu = value.parse().ok(),
            "flags" => {
                state.up = value
                    .strip_prefix("0x")
                    .and_then(|hex| u32::from_str_radix(hex, 16).ok())
                    .map(|flags| flags & 1 == 1)
            }
            "operstate" => state.operstate = Some(value.to_owned()),
            "carrier" => state.carrier = Some(value == "1"),
            "speed" => state.speed_mbps = value.parse().ok(),
            "address" => state.mac = Some(value.to_owned()),
            "driver" => state.driver = Some(value.to_owned()),
            "device" => state.device = Some(value.to_owned()),
            "kind" => state.kind = Some(value.to_owned()),
            "virtual_function" => state.is_virtual_function = true,
            "max_mtu" => state.max_mtu = value.parse().ok().filter(|mtu| *mtu > 0),
            "lower" => state.lower.push(parse_adjacent_netdev(value)),
            "upper" => state.upper.push(parse_adjacent_netdev(value)),
            "ip" => state.addresses = Some(state.addresses.unwrap_or_default()),
            "addr" => state
                .addresses
                .get_or_insert_default()
                .extend(parse_address_line(value)),
            _ => {}
        }
    }
    state
}

fn parse_adjacent_netdev(value: &str) -> AdjacentNetdev {
    let (name, mtu) = value.split_once(' ').unwrap_or((value, ""));
    AdjacentNetdev {
        netdev: name.to_owned(),
        mtu: mtu.trim().parse().ok(),
    }
}

/// One line of `ip -o addr`: `3: ens1    inet 10.0.0.1/24 brd 10.0.0.255 scope global ens1\
/// valid_lft ...`; with a peer the address stands before it and the prefix behind it (`inet
/// 10.0.0.1 peer 10.0.0.2/32`).
fn parse_address_line(line: &str) -> Option<LinkAddress> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let at = words
        .iter()
        .position(|word| matches!(*word, "inet" | "inet6"))?;
    let local = *words.get(at + 1)?;
    let text = match (local.contains('/'), words.get(at + 2), words.get(at + 3)) {
        (false, Some(&"peer"), Some(peer)) => format!("{local}/{}", peer.split_once('/')?.1),
        (false, ..) => format!("{local}/{}", if local.contains(':') { 128 } else { 32 }),
        (true, ..) => local.to_owned(),
    };
    let scope = words
        .iter()
        .position(|word| *word == "scope")
        .and_then(|at| words.get(at + 1))
        .map_or("global", |word| word);
    Some(LinkAddress {
        address: text.parse().ok()?,
        scope: scope.to_owned(),
    })
}

/// Sets running attributes with `ip`. An address that is there already is left alone, so that
/// nobody who watches the link sees it come again; `brd +` gives the broadcast address that
/// systemd-networkd gives (with another one, networkd 252 sets the address over and over until its
/// link is "failed"). Without `promote_secondaries` the kernel takes every other address of a
/// subnet away with the first one.
pub fn set_script(
    netdev: &str,
    mtu: Option<u32>,
    up: Option<bool>,
    add: &[String],
    remove: &[String],
) -> String {
    let device = quote_for_shell(netdev);
    let mut out = "set -eu\n".to_owned();
    if let Some(mtu) = mtu {
        out.push_str(&format!("ip link set dev {device} mtu {mtu}\n"));
    }
    if let Some(up) = up {
        out.push_str(&format!(
            "ip link set dev {device} {}\n",
            if up { "up" } else { "down" }
        ));
    }
    for address in add {
        let broadcast = if address.contains(':') { "" } else { " brd +" };
        out.push_str(&format!(
            "ip -o addr show dev {device} | grep -qF {} || ip addr add {} dev \
             {device}{broadcast}\n",
            quote_for_shell(&format!(" {address} ")),
            quote_for_shell(address)
        ));
    }
    if !remove.is_empty() {
        out.push_str(&format!(
            "p=/proc/sys/net/ipv4/conf/{device}/promote_secondaries; o=$(cat \"$p\" 2>/dev/null || \
             :); echo 1 >\"$p\" 2>/dev/null || :\n"
        ));
    }
    for address in remove {
        out.push_str(&format!(
            "! ip -o addr show dev {device} | grep -qF {} || ip addr del {} dev {device}\n",
            quote_for_shell(&format!(" {address} ")),
            quote_for_shell(address)
        ));
    }
    if !remove.is_empty() {
        out.push_str("[ -z \"$o\" ] || echo \"$o\" >\"$p\"\n");
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{AnswerStatus, ReadResult};
    use proptest::prelude::*;

    #[test]
    fn decodes_what_a_host_said() {
        let out = "ifindex=5\n\
                   mtu=9000\n\
                   flags=0x1003\n\
                   operstate=up\n\
                   carrier=1\n\
                   speed=100000\n\
                   lower=eth0 9000\n\
                   upper=eth0.100.5 1500\n\
                   ip=1\n\
                   addr=5: eth0.100    inet 10.0.0.1/24 brd 10.0.0.255 scope global eth0.100\\       \
                   valid_lft forever\n\
                   addr=5: eth0.100    inet 10.9.0.1 peer 10.9.0.2/32 scope global eth0.100\n\
                   addr=5: eth0.100    inet6 fe80::1/64 scope link \\       valid_lft forever\n\
                   kind=vlan\n\
                   max_mtu=65535\n";
        let mut answers = ReadResults::default();
        let read = Read::Link {
            netdev: "eth0.100".to_owned(),
        };
        answers.insert(
            read.key(),
            ReadResult {
                status: AnswerStatus::Exit(0),
                out: out.to_owned(),
            },
        );
        let state = link_state(&answers, "eth0.100").unwrap().unwrap();
        assert_eq!(
            (state.mtu, state.up, state.kind.as_deref(), state.max_mtu),
            (Some(9000), Some(true), Some("vlan"), Some(65535))
        );
        let shown: Vec<_> = state
            .addresses
            .unwrap()
            .iter()
            .map(|a| format!("{} {}", a.address, a.scope))
            .collect();
        assert_eq!(
            shown,
            [
                "10.0.0.1/24 global",
                "10.9.0.1/32 global",
                "fe80::1/64 link"
            ]
        );
        assert_eq!(
            state.upper,
            [AdjacentNetdev {
                netdev: "eth0.100.5".to_owned(),
                mtu: Some(1500)
            }]
        );
    }

    proptest! {
        #[test]
        fn no_output_panics(out in "(addr=|mtu=|lower=|inet|peer|/| |[0-9:a-f.]|\n){0,60}") {
            parse_link_state("x", &out);
        }
    }
}
