//! systemd-networkd: which file it applied to a netdev, the file with its drop-ins, and a drop-in
//! of ours.

use super::owner::{
    self, DesiredLinkSettings, HEAD, Handle, ManagedLinkView, PersistedLinkSettings,
    PriorLinkSettings,
};
use crate::Action;
use crate::action::NetworkManagerKind;
use crate::sections::{Section, find_section};
use ipnet::IpNet;
use railwright_base::Reason;
use railwright_base::text::one_line;
use std::collections::BTreeSet;

/// networkd writes what it did to `/run/systemd/netif/links/<ifindex>`; reading that starts
/// nothing, while `networkctl` asks over D-Bus, which would start a networkd that is installed but
/// not meant to run. Drop-ins count in the order of their names, the first folder wins, and a link
/// to /dev/null switches one off (systemd.network(5)).
pub const READ: &str = r#"st="$R/run/systemd/netif"; w=
if [ -f "$st/state" ]; then text networkd-state "$st/state"; text networkd "$st/links/$i"
{ while IFS= read -r l; do case $l in NETWORK_FILE=*) w=${l#*=};; esac; done <"$st/links/$i"; } 2>/dev/null
if [ -n "$w" ]; then text network-file "$R$w"; b=${w##*/}
printf '\n== physical\n'; for o in "$R"/sys/class/net/*; do [ ! -e "$o/device" ] || printf '|%s\n' "${o##*/}"; done
z=; for D in /etc /run /usr/local/lib /usr/lib /lib; do [ ! -d "$R$D/systemd/network/$b.d" ] || z=1; done
[ -z "$z" ] || for D in /etc /run /usr/local/lib /usr/lib /lib; do ls "$R$D/systemd/network/$b.d" 2>/dev/null; done | grep '\.conf$' | sort -u | while IFS= read -r k; do
for D in /etc /run /usr/local/lib /usr/lib /lib; do p="$R$D/systemd/network/$b.d/$k"; [ -e "$p" ] || [ -L "$p" ] || continue; text network-drop-in "$p"; break; done
done; fi; fi
"#;

/// Reads all files again and waits until no link is being configured any more. networkd 252 takes
/// the addresses of a link whose files changed away and sets them anew, so that RDMA GIDs go and
/// come again.
pub const RELOAD: &str = r#"if [ -f /run/systemd/netif/state ]; then
networkctl reload || exit 1
sleep 1; t=0
while grep -qE '^ADMIN_STATE=(pending|initialized|configuring)$' /run/systemd/netif/links/* 2>/dev/null; do
t=$((t + 1)); [ "$t" -le 30 ] || break; sleep 1; done
if grep -q '^ADMIN_STATE=failed$' /run/systemd/netif/links/* 2>/dev/null; then echo 'systemd-networkd says "failed" of a link: networkctl status' >&2; fi
fi
exit 0
"#;

const OWN_DROP_IN: &str = "90-railwright.conf";

/// The netplan definition behind the file that networkd applied.
pub fn rendered_by_netplan(sections: &[Section<'_>]) -> Option<String> {
    let path = applied_file(sections)?;
    let name = path
        .strip_prefix("/run/systemd/network/")?
        .strip_prefix("10-netplan-")?;
    Some(name.strip_suffix(".network")?.to_owned())
}

fn applied_file<'a>(sections: &'a [Section<'_>]) -> Option<&'a str> {
    let link = find_section(sections, "networkd")?;
    let managed = !matches!(link.value("ADMIN_STATE"), None | Some("unmanaged" | ""));
    link.value("NETWORK_FILE")
        .filter(|path| managed && path.starts_with('/'))
}

/// The netdev as networkd's files have it, when networkd owns it.
pub fn parse_networkd_view(netdev: &str, sections: &[Section<'_>]) -> Option<ManagedLinkView> {
    let file = applied_file(sections)?;
    let adopted = file == adopted_path(netdev);
    let path = match adopted {
        true => file.to_owned(),
        false => format!(
            "/etc/systemd/network/{}.d/{OWN_DROP_IN}",
            file.rsplit('/').next().unwrap_or(file)
        ),
    };
    let parts: Vec<_> = sections
        .iter()
        .filter(|part| is_network_file(part))
        .collect();
    let own = parts
        .iter()
        .find(|part| part.path() == path)
        .map(|part| part.text());
    let merged = merge_network_files(parts.iter().copied());
    let others = merge_network_files(parts.iter().copied().filter(|part| part.path() != path));
    let shared = (!adopted).then(|| shared_with(netdev, sections)).flatten();
    Some(ManagedLinkView {
        manager: NetworkManagerKind::Networkd,
        merged,
        others,
        own,
        handle: Handle::Networkd {
            path,
            adopted,
            shared,
        },
    })
}

/// Why nothing may be added to the file that networkd applied: other NICs of this host match it,
/// and would get it too.
pub fn shared_with(netdev: &str, sections: &[Section<'_>]) -> Option<String> {
    let file = find_section(sections, "network-file")?;
    for key in ["MACAddress", "PermanentMACAddress", "Path"] {
        for value in list_key_values([file], "[Match]", key) {
            if value.split_whitespace().count() == 1 && !value.contains(['*', '?', '[']) {
                return None;
            }
        }
    }
    let physical = find_section(sections, "physical")?;
    let others: Vec<&str> = physical
        .lines
        .iter()
        .copied()
        .filter(|other| *other != netdev && is_matched_by_networkd(other, sections))
        .collect();
    let first = others.first()?;
    let more = if others.len() > 1 {
        format!(" and {} more", others.len() - 1)
    } else {
        String::new()
    };
    Some(format!(
        "{} is also for {}{more}, and what is added to it would reach them: give {netdev} a file \
         of its own that sorts before it",
        file.path(),
        one_line(first, 40),
    ))
}

/// The file that networkd applied, or one that adds to it.
pub fn is_network_file(section: &Section<'_>) -> bool {
    matches!(section.word, "network-file" | "network-drop-in")
}

/// The values of a key below a heading of a file in the form of systemd's.
pub fn list_key_values<'a>(
    parts: impl IntoIterator<Item = &'a Section<'a>>,
    heading: &str,
    key: &str,
) -> Vec<&'a str> {
    let mut found = Vec::new();
    for part in parts {
        let mut here = "";
        for line in part.lines.iter().map(|line| line.trim()) {
            match line.split_once('=') {
                None if line.starts_with('[') => here = line,
                Some((name, value)) if here == heading && name.trim() == key => {
                    found.push(value.trim())
                }
                _ => {}
            }
        }
    }
    found
}

/// True where the file that networkd applied finds its netdev under this name too: by something
/// else, or by a pattern that fits (systemd.network(5), section [Match]).
pub fn is_matched_by_networkd(name: &str, sections: &[Section<'_>]) -> bool {
    let named = list_key_values(
        sections.iter().filter(|part| is_network_file(part)),
        "[Match]",
        "Name",
    );
    if named.is_empty() {
        return true;
    }
    let patterns: Vec<&str> = named
        .iter()
        .flat_map(|value| value.split_whitespace())
        .collect();
    let without = patterns
        .iter()
        .filter(|pattern| pattern.starts_with('!'))
        .count();
    let fits = patterns
        .iter()
        .any(|pattern| is_glob_match(pattern.trim_start_matches('!'), name));
    // of a list with both, releases of systemd make different things
    without == 0 && fits || without == patterns.len() && !fits
}

/// A pattern of a shell with `*` and `?`; one with brackets fits nothing, because nobody is to rely
/// on a guess.
pub fn is_glob_match(pattern: &str, name: &str) -> bool {
    let name: Vec<char> = name.chars().collect();
    let mut reached: BTreeSet<usize> = [0].into();
    for desired in pattern.chars() {
        reached = match desired {
            '*' => reached
                .first()
                .map(|first| (*first..=name.len()).collect())
                .unwrap_or_default(),
            '?' => reached
                .iter()
                .map(|at| at + 1)
                .filter(|at| *at <= name.len())
                .collect(),
            letter => reached
                .iter()
                .filter(|at| name.get(**at) == Some(&letter))
                .map(|at| at + 1)
                .collect(),
        };
    }
    reached.contains(&name.len())
}

/// The values of several files, later ones over earlier ones. Addresses only add up: networkd 252
/// does not take an empty `Address=` as "none of those before".
fn merge_network_files<'a, 's: 'a>(
    parts: impl Iterator<Item = &'a Section<'s>>,
) -> PersistedLinkSettings {
    let mut all = PersistedLinkSettings {
        up: Some(true),
        ..PersistedLinkSettings::default()
    };
    for part in parts {
        let mut heading = "";
        for line in part.lines.iter().map(|line| line.trim()) {
            if line.starts_with('[') {
                heading = line;
            } else if let Some((key, value)) = line.split_once('=') {
                apply_network_setting(&mut all, heading, key.trim(), value.trim());
            }
        }
    }
    all
}

fn apply_network_setting(all: &mut PersistedLinkSettings, heading: &str, key: &str, value: &str) {
    match (heading, key) {
        ("[Link]", "MTUBytes") => all.mtu = parse_mtu_bytes(value),
        ("[Link]", "ActivationPolicy") => {
            all.up = Some(!matches!(value, "down" | "always-down" | "manual"))
        }
        ("[Network]" | "[Address]", "Address") => {
            all.addresses.extend(parse_network_address(value))
        }
        _ => {}
    }
}

fn parse_mtu_bytes(value: &str) -> Option<u32> {
    let (digits, factor) = match value.as_bytes().last() {
        Some(b'K') => (&value[..value.len() - 1], 1 << 10),
        Some(b'M') => (&value[..value.len() - 1], 1 << 20),
        _ => (value, 1),
    };
    digits.trim().parse::<u32>().ok()?.checked_mul(factor)
}

fn parse_network_address(value: &str) -> Option<IpNet> {
    value
        .parse()
        .ok()
        .or_else(|| value.parse::<std::net::IpAddr>().ok().map(IpNet::from))
}

fn adopted_path(netdev: &str) -> String {
    format!("/etc/systemd/network/90-railwright-{netdev}.network")
}

/// A drop-in of ours beside the file that networkd applied (or the whole file, where the netdev is
/// ours alone).
pub fn plan_networkd_settings(
    netdev: &str,
    view: &ManagedLinkView,
    path: &str,
    adopted: bool,
    intent: &DesiredLinkSettings,
) -> Result<Vec<Action>, Reason> {
    owner::refuse_extra(
        intent,
        &view.others,
        "the file that systemd-networkd applies",
    )?;
    let body = render_network_settings(intent, &owner::list_unset_addresses(intent, &view.others));
    let content = if adopted {
        format!("{}{body}", adopted_head(netdev))
    } else {
        format!("{HEAD}{body}")
    };
    if view.own.as_ref() == Some(&content) {
        return Err(format!(
            "{path} says so already, but a drop-in that comes after it says otherwise; fix that \
             one"
        )
        .into());
    }
    Ok(vec![owner::own_file(path, "0644", content)])
}

fn render_network_settings(intent: &DesiredLinkSettings, addresses: &[IpNet]) -> String {
    let mut out = String::new();
    if intent.mtu.is_some() || intent.up.is_some() {
        out.push_str("[Link]\n");
    }
    if let Some(mtu) = intent.mtu {
        out.push_str(&format!("MTUBytes={mtu}\n"));
    }
    if let Some(up) = intent.up {
        out.push_str(&format!(
            "ActivationPolicy={}\n",
            if up { "up" } else { "down" }
        ));
    }
    if !addresses.is_empty() {
        out.push_str("[Network]\n");
    }
    for address in addresses {
        out.push_str(&format!("Address={address}\n"));
    }
    out
}

/// The addresses that a netdev without owner has by hand stay (`KeepConfiguration`), and no boot
/// waits for it.
fn adopted_head(netdev: &str) -> String {
    format!(
        "{HEAD}[Match]\nName={netdev}\n[Link]\nRequiredForOnline=no\n[Network]\nKeepConfiguration=yes\nLinkLocalAddressing=ipv6\n"
    )
}

/// A file of our own for a netdev that no file matches.
pub fn plan_networkd_adoption(netdev: &str, intent: &DesiredLinkSettings) -> Vec<Action> {
    let content = format!(
        "{}{}",
        adopted_head(netdev),
        render_network_settings(intent, &intent.addresses)
    );
    vec![owner::own_file(&adopted_path(netdev), "0644", content)]
}

/// Our file goes, or becomes what it was.
pub fn plan_networkd_restore(
    view: &ManagedLinkView,
    path: &str,
    before: &PriorLinkSettings,
) -> Vec<Action> {
    owner::restore_file(path, "0644", view, before)
        .into_iter()
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sections::parse_sections;

    const ANSWER: &str = "== networkd 644 systemd-network systemd-network \
                          /run/systemd/netif/links/3\n\
                          |ADMIN_STATE=configured\n\
                          |NETWORK_FILE=/etc/systemd/network/10-ens1.network\n\
                          \n\
                          == network-file 644 root root /etc/systemd/network/10-ens1.network\n\
                          |[Match]\n\
                          |Name=ens1\n\
                          |[Network]\n\
                          |Address=10.0.0.1/24\n\
                          \n\
                          == network-drop-in 644 root root \
                          /etc/systemd/network/10-ens1.network.d/90-railwright.conf\n\
                          |[Link]\n\
                          |MTUBytes=9000\n";

    #[test]
    fn a_later_drop_in_wins_and_ours_is_told_apart() {
        let text = format!(
            "{ANSWER}\n\
             == network-drop-in 644 root root /etc/systemd/network/10-ens1.network.d/99-hand.conf\n\
             |[Link]\n\
             |MTUBytes=4K\n\
             |[Network]\n\
             |Address=10.0.0.9\n"
        );
        let view = parse_networkd_view("ens1", &parse_sections(&text)).unwrap();
        assert_eq!(
            (
                view.merged.mtu,
                view.others.mtu,
                view.merged.addresses.len()
            ),
            (Some(4096), Some(4096), 2)
        );
        assert!(view.own.is_some());
    }

    #[test]
    fn a_file_for_several_netdevs_is_not_added_to() {
        let with = |matched: &str, physical: &str| {
            let text = format!(
                "{}\n== physical\n{physical}",
                ANSWER.replace("|Name=ens1\n", matched)
            );
            shared_with("ens1", &parse_sections(&text))
        };
        let both = "|ens1\n|ens2\n";
        for own in [
            "|Name=ens1\n",
            "|Name=ens1 rail0\n",
            "|MACAddress=02:00:00:00:00:01\n",
            "|Type=ether\n|Path=pci-0000:12:00.0\n",
        ] {
            assert_eq!(with(own, both), None, "{own}");
        }
        for shared in ["|Name=ens*\n", "|Name=ens1 ens2\n", "|Type=ether\n", ""] {
            assert!(
                with(shared, both)
                    .unwrap()
                    .contains(" is also for ens2, and what is added"),
                "{shared}"
            );
            assert_eq!(
                with(shared, "|ens1\n"),
                None,
                "{shared}: nobody else is there"
            );
        }
        assert!(
            with("|Name=e*\n", "|ens1\n|ens2\n|eno1\n")
                .unwrap()
                .contains("ens2 and 1 more")
        );
    }

    #[test]
    fn an_unmanaged_link_is_not_networkds() {
        assert!(
            parse_networkd_view(
                "ens1",
                &parse_sections(&ANSWER.replace("ADMIN_STATE=configured", "ADMIN_STATE=unmanaged"))
            )
            .is_none()
        );
    }
}
