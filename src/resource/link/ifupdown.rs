//! ifupdown: stanzas of `/etc/network/interfaces` and the files it reads; several stanzas of one
//! netdev add up, and of an option that stands in several the last one counts.

use super::owner::{
    self, DesiredLinkSettings, HEAD, Handle, ManagedLinkView, PersistedLinkSettings,
    PriorLinkSettings,
};
use crate::Action;
use crate::action::NetworkManagerKind;
use crate::sections::{Section, find_section};
use ipnet::{IpNet, Ipv4Net};
use railwright_base::Reason;
use railwright_base::quote::quote_for_shell;
use std::net::{IpAddr, Ipv4Addr};

/// ifquery's merged view; of the files only lines that say which stanza is where (others can hold
/// secrets), and our own.
pub const READ: &str = r#"if has "$R/etc/network/interfaces" && command -v ifquery >/dev/null 2>&1; then
o=$(ifquery -i "$R/etc/network/interfaces" "$n" 2>/dev/null); printf '\n== ifquery %s\n' $?; printf '%s\n' "$o" | grep -E '^(mtu|address|netmask|bond[-_][a-z_-]+|vlan[-_][a-z_-]+): ' | sed 's/^/|/'
for q in "$R/etc/network/interfaces" "$R"/etc/network/interfaces.d/*; do [ -f "$q" ] || continue; printf '\n== interfaces %s\n' "${q#"$R"}"
grep -E '^[[:space:]]*(auto|allow-[a-z]+|no-auto-down|no-scripts|iface|mapping|source|source-directory|mtu)[[:space:]]' "$q" | sed 's/^/|/'; done
text interfaces-own "$R/etc/network/interfaces.d/90-railwright-$n"; fi
"#;

/// Where stanzas of a netdev are.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Stanzas {
    /// Files other than ours with an `mtu` in a stanza of the netdev, with its value.
    pub mtu_at: Vec<(String, u32)>,
    /// `/etc/network/interfaces` reads `interfaces.d`.
    pub reads_folder: bool,
    /// Every netdev that has a stanza in some file.
    pub names: Vec<String>,
    /// A line other than ours sets it up at boot or hot-plug.
    pub set_up_elsewhere: bool,
}

fn format_own_stanza_path(netdev: &str) -> String {
    format!("/etc/network/interfaces.d/90-railwright-{netdev}")
}

/// The netdev as ifupdown has it, when a stanza names it.
pub fn parse_ifupdown_view(netdev: &str, sections: &[Section<'_>]) -> Option<ManagedLinkView> {
    let query = find_section(sections, "ifquery").filter(|section| section.code() == Some(0))?;
    let own = find_section(sections, "interfaces-own").map(Section::text);
    let (stanzas, set_up) = parse_stanzas(netdev, sections);
    let merged = PersistedLinkSettings {
        up: Some(set_up),
        ..parse_ifquery_output(query)
    };
    let ours: Vec<IpNet> = own
        .iter()
        .flat_map(|text| text.lines())
        .filter_map(|line| line.trim().strip_prefix("address ")?.trim().parse().ok())
        .collect();
    let others = PersistedLinkSettings {
        mtu: stanzas.mtu_at.last().map(|(_, mtu)| *mtu),
        up: Some(stanzas.set_up_elsewhere),
        addresses: owner::subtract_addresses(&merged.addresses, &ours),
    };
    Some(ManagedLinkView {
        manager: NetworkManagerKind::Ifupdown,
        merged,
        others,
        own,
        handle: Handle::Ifupdown(stanzas),
    })
}

/// The stanzas of all files, and whether any line, ours included, sets the netdev up at boot.
fn parse_stanzas(netdev: &str, sections: &[Section<'_>]) -> (Stanzas, bool) {
    let own_path = format_own_stanza_path(netdev);
    let mut stanzas = Stanzas::default();
    let mut set_up = false;
    for section in sections.iter().filter(|part| part.word == "interfaces") {
        let is_ours = section.rest == own_path;
        let mut inside = false;
        for line in &section.lines {
            let words: Vec<&str> = line.split_whitespace().collect();
            let word = words.first().copied().unwrap_or_default();
            let rest = words.get(1..).unwrap_or_default();
            if word != "mtu" {
                inside = word == "iface" && rest.first() == Some(&netdev);
            }
            match word {
                "mtu" if inside && !is_ours => {
                    let mtu = rest.first().and_then(|mtu| mtu.parse().ok());
                    let at = mtu.map(|mtu| (section.rest.to_owned(), mtu));
                    stanzas.mtu_at.extend(at);
                }
                "mtu" => {}
                "iface" => {
                    let name = rest.first().map(|name| (*name).to_owned());
                    stanzas.names.extend(name);
                }
                "source" | "source-directory" => {
                    stanzas.reads_folder |= rest.iter().any(|word| reads_folder(word, netdev));
                }
                word => {
                    let sets_up =
                        (word == "auto" || word.starts_with("allow-")) && rest.contains(&netdev);
                    set_up |= sets_up;
                    stanzas.set_up_elsewhere |= sets_up && !is_ours;
                }
            }
        }
    }
    (stanzas, set_up)
}

/// `source` takes a pattern, `source-directory` only names of letters, digits, `_` and `-`
/// (interfaces(5)).
fn reads_folder(word: &str, netdev: &str) -> bool {
    match word.trim_end_matches('/') {
        "/etc/network/interfaces.d" | "interfaces.d" => !netdev.contains(['.', '@']),
        "/etc/network/interfaces.d/*" | "interfaces.d/*" => true,
        _ => false,
    }
}

/// `address: 10.0.0.1` with `netmask: 255.255.255.0` somewhere behind it; the last `mtu:` counts.
fn parse_ifquery_output(section: &Section<'_>) -> PersistedLinkSettings {
    let mut all = PersistedLinkSettings::default();
    let mut pending: Option<IpAddr> = None;
    for line in &section.lines {
        let Some((key, value)) = line.split_once(": ") else {
            continue;
        };
        match key {
            "mtu" => all.mtu = value.trim().parse().ok(),
            "address" => {
                all.addresses.extend(pending.take().map(IpNet::from));
                pending = value
                    .split('/')
                    .next()
                    .and_then(|text| text.trim().parse().ok());
            }
            "netmask" => all.addresses.extend(
                pending
                    .take()
                    .and_then(|address| with_mask(address, value.trim())),
            ),
            _ => {}
        }
    }
    all.addresses.extend(pending.map(IpNet::from));
    all
}

fn with_mask(address: IpAddr, mask: &str) -> Option<IpNet> {
    if let (IpAddr::V4(address), Ok(mask)) = (address, mask.parse::<Ipv4Addr>()) {
        return Ipv4Net::with_netmask(address, mask).ok().map(IpNet::V4);
    }
    IpNet::new(address, mask.parse().ok()?).ok()
}

/// A stanza of our own for what no other one says; an `mtu` that stands in another stanza is
/// changed where it stands, because which of two counts depends on the order in which the files are
/// read.
pub fn plan_ifupdown_settings(
    netdev: &str,
    view: &ManagedLinkView,
    stanzas: &Stanzas,
    intent: &DesiredLinkSettings,
) -> Result<Vec<Action>, Reason> {
    owner::refuse_extra(intent, &view.others, "another stanza")?;
    if intent.up == Some(false) && stanzas.set_up_elsewhere {
        return Err(format!(
            "an `auto` or `allow-` line sets {netdev} up at boot; remove it from \
             /etc/network/interfaces"
        )
        .into());
    }
    let mut actions = Vec::new();
    let elsewhere = intent.mtu.filter(|_| !stanzas.mtu_at.is_empty());
    if let Some(mtu) = elsewhere {
        actions.extend(plan_mtu_changes(netdev, stanzas, |_| mtu));
    }
    let content = own_stanza(netdev, view, intent, elsewhere.is_some());
    let says_something = content.lines().count() > 1;
    if (says_something || view.own.is_some()) && view.own.as_ref() != Some(&content) {
        if !stanzas.reads_folder {
            return Err(
                "/etc/network/interfaces does not read /etc/network/interfaces.d; add the line \
                 `source /etc/network/interfaces.d/*`"
                    .into(),
            );
        }
        actions.push(owner::own_file(
            &format_own_stanza_path(netdev),
            "0644",
            content,
        ));
    }
    if actions.is_empty() {
        Err("our stanza says so already, but ifquery says otherwise".into())
    } else {
        Ok(actions)
    }
}

fn plan_mtu_changes(netdev: &str, stanzas: &Stanzas, desired: impl Fn(u32) -> u32) -> Vec<Action> {
    let mut actions = Vec::new();
    for (path, from) in &stanzas.mtu_at {
        let to = desired(*from);
        if to != *from {
            actions.push(Action::SetInterfacesMtu {
                path: path.clone(),
                netdev: netdev.to_owned(),
                from: *from,
                to,
            });
        }
    }
    actions
}

fn own_stanza(
    netdev: &str,
    view: &ManagedLinkView,
    intent: &DesiredLinkSettings,
    mtu_elsewhere: bool,
) -> String {
    let mut out = HEAD.to_owned();
    if intent.up == Some(true) && view.others.up == Some(false) {
        out.push_str(&format!("auto {netdev}\n"));
    }
    if let Some(mtu) = intent.mtu.filter(|_| !mtu_elsewhere) {
        out.push_str(&format!("iface {netdev} inet manual\n    mtu {mtu}\n"));
    }
    for address in owner::list_unset_addresses(intent, &view.others) {
        let family = if matches!(address, IpNet::V4(_)) {
            "inet"
        } else {
            "inet6"
        };
        out.push_str(&format!(
            "iface {netdev} {family} static\n    address {address}\n"
        ));
    }
    out
}

/// Our file goes, and an `mtu` that we changed in another stanza becomes what it was.
pub fn plan_ifupdown_restore(
    netdev: &str,
    view: &ManagedLinkView,
    stanzas: &Stanzas,
    before: &PriorLinkSettings,
) -> Vec<Action> {
    let mut actions: Vec<Action> =
        owner::restore_file(&format_own_stanza_path(netdev), "0644", view, before)
            .into_iter()
            .collect();
    if let Some(old) = before.values.mtu {
        actions.extend(plan_mtu_changes(netdev, stanzas, |_| old));
    }
    actions
}

/// Changes the value of `mtu` in the stanzas of one netdev, and nothing else of the file; exit 3
/// when it is not there.
pub fn mtu_script(path: &str, netdev: &str, from: u32, to: u32) -> String {
    format!(
        r#"set -eu
f={path}; t=$(mktemp "$f.rwXXXXXX"); trap 'rm -f "$t"' EXIT; cp -p "$f" "$t"
n={netdev} awk '$1 ~ /^(iface|auto|allow-.*|mapping|source|source-directory|no-auto-down|no-scripts)$/ {{ inside = ($1 == "iface" && $2 == ENVIRON["n"]) }}
inside && $1 == "mtu" && ($2 == {from} || $2 == {to}) {{ sub(/mtu[ \t]+[0-9]+/, "mtu {to}"); done = 1 }}
{{ print }}
END {{ exit done ? 0 : 3 }}' "$f" >"$t"
sync "$t" 2>/dev/null || sync
mv -f "$t" "$f"; trap - EXIT
"#,
        path = quote_for_shell(path),
        netdev = quote_for_shell(netdev),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sections::parse_sections;

    /// ifquery and grep of Debian 12 on a file with an `mtu` of its own.
    const ANSWER: &str = "== ifquery 0\n\
                          |mtu: 9000\n\
                          |address: 10.0.0.2\n\
                          |netmask: 255.255.255.0\n\
                          |address: 10.0.0.1\n\
                          |mtu: 1500\n\
                          |netmask: 255.255.255.0\n\
                          |address: fd00::1\n\
                          |netmask: 64\n\
                          \n\
                          == interfaces /etc/network/interfaces\n\
                          |source /etc/network/interfaces.d/*\n\
                          |auto ens1\n\
                          |iface ens1 inet static\n\
                          |    mtu 1500\n\
                          |iface ens10 inet static\n\
                          |    mtu 1400\n\
                          \n\
                          == interfaces /etc/network/interfaces.d/90-railwright-ens1\n\
                          |iface ens1 inet manual\n\
                          |    mtu 9000\n";

    #[test]
    fn an_mtu_in_another_stanza_is_changed_where_it_stands() {
        let view = parse_ifupdown_view("ens1", &parse_sections(ANSWER)).unwrap();
        assert_eq!(
            (view.merged.mtu, view.others.mtu, view.merged.up),
            (Some(1500), Some(1500), Some(true))
        );
        let shown: Vec<_> = view
            .merged
            .addresses
            .iter()
            .map(ToString::to_string)
            .collect();
        assert_eq!(shown, ["10.0.0.2/24", "10.0.0.1/24", "fd00::1/64"]);
        let Handle::Ifupdown(stanzas) = &view.handle else {
            panic!()
        };
        let actions = plan_ifupdown_settings(
            "ens1",
            &view,
            stanzas,
            &DesiredLinkSettings {
                mtu: Some(9000),
                ..DesiredLinkSettings::default()
            },
        )
        .unwrap();
        assert_eq!(
            actions,
            [Action::SetInterfacesMtu {
                path: "/etc/network/interfaces".to_owned(),
                netdev: "ens1".to_owned(),
                from: 1500,
                to: 9000
            }]
        );
    }
}
