//! netplan: definitions of several files merged by name; a file of ours that sorts late adds to the
//! definition.

use super::networkd;
use super::owner::{
    self, DesiredLinkSettings, HEAD, Handle, ManagedLinkView, PersistedLinkSettings,
    PriorLinkSettings,
};
use crate::Action;
use crate::action::NetworkManagerKind;
use crate::json_fields::read_text_field;
use crate::sections::{Section, find_section};
use ipnet::IpNet;
use railwright_base::Reason;
use serde_json::{Map, Value};

macro_rules! get {
    () => {
        r#"said netplan-get netplan get ${R:+--root-dir "$R"} | sed -E 's/^(\|[[:space:]]*[a-z-]*(password|psk|secret|private|key|token)[a-z-]*:).*/\1 hidden/'"#
    };
}

/// netplan's merged view and our own file; only where netplan rendered what the netdev runs on,
/// because `netplan get` takes a third of a second. Secrets (of Wi-Fi and 802.1X) never leave the
/// host.
pub const READ: &str = concat!(
    r#"case "$w$p" in *netplan-*)
open "$R"/etc/netplan/*.yaml "$R"/run/netplan/*.yaml "$R"/lib/netplan/*.yaml || W=only
[ -n "${netplan_said+x}" ] || netplan_said=$("#,
    get!(),
    r#")
printf '\n%s\n' "$netplan_said"
W=; text netplan-own "$R/etc/netplan/90-railwright-$n.yaml";; esac
"#
);

/// What the reads of several netdevs ask once: the merged view, if networkd runs one of `$netdevs`
/// as netplan rendered it.
pub const SHARED: &str = concat!(
    r#"for n in $netdevs; do i=; { read -r i <"$R/sys/class/net/$n/ifindex"
while IFS= read -r l; do case $l in NETWORK_FILE=*netplan-*) netplan_runs=1;; esac; done <"$R/run/systemd/netif/links/$i"; } 2>/dev/null; done
[ -z "${netplan_runs-}" ] || netplan_said=$("#,
    get!(),
    ")\n"
);

/// The definition of this name in netplan's merged view.
pub fn parse_netplan_view(id: &str, sections: &[Section<'_>]) -> Result<ManagedLinkView, Reason> {
    let shown = find_section(sections, "netplan-get").filter(|section| section.code() == Some(0));
    let text = shown
        .ok_or_else(|| {
            format!("netplan rendered the definition `{id}`, but `netplan get` gave no answer")
        })?
        .text();
    let merged = parse_netplan_definitions(&text)?;
    let found = merged
        .iter()
        .find_map(|(section, all)| all.get(id).map(|definition| (section.clone(), definition)));
    let (section, definition) = found.ok_or_else(|| {
        format!(
            "netplan rendered the definition `{id}`, but no file in /etc/netplan has it any more"
        )
    })?;
    let own = find_section(sections, "netplan-own").map(Section::text);
    let mut ours = PersistedLinkSettings::default();
    if let Some(own) = &own {
        let definitions = parse_netplan_definitions(own)?;
        if let Some(definition) = definitions.get(&section).and_then(|all| all.get(id)) {
            ours = parse_persisted_settings(definition);
        }
    }
    let merged = parse_persisted_settings(definition);
    let others = PersistedLinkSettings {
        addresses: owner::subtract_addresses(&merged.addresses, &ours.addresses),
        ..merged.clone()
    };
    let handle = Handle::Netplan {
        id: id.to_owned(),
        section,
    };
    Ok(ManagedLinkView {
        manager: NetworkManagerKind::Netplan,
        merged,
        others,
        own,
        handle,
    })
}

/// True where the definition finds its netdev under this name too, or another one does.
pub fn is_matched_by_netplan(
    id: &str,
    section: &str,
    name: &str,
    sections: &[Section<'_>],
) -> bool {
    let text = find_section(sections, "netplan-get")
        .map(Section::text)
        .unwrap_or_default();
    let merged = parse_netplan_definitions(&text).unwrap_or_default();
    let all = merged.get(section).and_then(Value::as_object);
    all.into_iter().flatten().any(|(other, definition)| {
        if let Some(set) = read_text_field(definition, "set-name") {
            return set == name;
        }
        match definition.get("match") {
            None | Some(Value::Null) => other == name,
            Some(by) => match read_text_field(by, "name") {
                Some(pattern) => networkd::is_glob_match(pattern, name),
                None => other == id,
            },
        }
    })
}

/// All definitions of netplan's merged view, by section; nothing where netplan was not asked or
/// gave no answer.
pub fn definitions_in(sections: &[Section<'_>]) -> Option<Result<Map<String, Value>, Reason>> {
    find_section(sections, "netplan-get")
        .filter(|section| section.code() == Some(0))
        .map(|section| parse_netplan_definitions(&section.text()))
}

fn parse_netplan_definitions(text: &str) -> Result<Map<String, Value>, Reason> {
    let value: Value = serde_yaml::from_str(text)
        .map_err(|_| "netplan's configuration could not be read as YAML".to_owned())?;
    Ok(value
        .get("network")
        .and_then(Value::as_object)
        .cloned()
        .unwrap_or_default())
}

fn parse_persisted_settings(definition: &Value) -> PersistedLinkSettings {
    PersistedLinkSettings {
        mtu: definition
            .get("mtu")
            .and_then(Value::as_u64)
            .and_then(|mtu| u32::try_from(mtu).ok()),
        up: Some(definition.get("activation-mode").is_none()),
        addresses: definition
            .get("addresses")
            .and_then(Value::as_array)
            .map(|list| list.iter().filter_map(parse_address_entry).collect())
            .unwrap_or_default(),
    }
}

/// An entry can be a mapping of the address to its label and lifetime.
fn parse_address_entry(entry: &Value) -> Option<IpNet> {
    match entry {
        Value::String(text) => text.parse().ok(),
        entry => entry.as_object()?.keys().next()?.parse().ok(),
    }
}

fn format_own_netplan_path(netdev: &str) -> String {
    format!("/etc/netplan/90-railwright-{netdev}.yaml")
}

/// A file of ours that adds to the definition. netplan merges by name: a scalar of a later file
/// wins, lists grow.
pub fn plan_netplan_settings(
    netdev: &str,
    view: &ManagedLinkView,
    id: &str,
    section: &str,
    intent: &DesiredLinkSettings,
) -> Result<Vec<Action>, Reason> {
    owner::refuse_extra(intent, &view.others, "another file in /etc/netplan")?;
    if intent.up == Some(true) && view.others.up == Some(false) && view.own.is_none() {
        return Err(
            "a file in /etc/netplan gives it an activation-mode, which no later file can take \
             back; remove it there"
                .into(),
        );
    }
    let mut lines = format!(
        "{HEAD}network:\n  version: 2\n  {section}:\n    {}:\n",
        quote_yaml_text(id)
    );
    if let Some(mtu) = intent.mtu {
        lines.push_str(&format!("      mtu: {mtu}\n"));
    }
    if intent.up == Some(false) {
        lines.push_str("      activation-mode: \"off\"\n");
    }
    let addresses = owner::list_unset_addresses(intent, &view.others);
    let says_something = intent.mtu.is_some() || intent.up == Some(false) || !addresses.is_empty();
    if !says_something && view.own.is_some() {
        // a definition without a key would be no mapping
        return Ok(vec![Action::RemoveFile {
            path: format_own_netplan_path(netdev),
            below: None,
        }]);
    }
    if !addresses.is_empty() {
        lines.push_str("      addresses:\n");
    }
    for address in addresses {
        lines.push_str(&format!("      - \"{address}\"\n"));
    }
    if view.own.as_ref() == Some(&lines) {
        return Err(format!(
            "{} says so already, but a file that comes after it says otherwise; fix that one",
            format_own_netplan_path(netdev)
        )
        .into());
    }
    Ok(vec![owner::own_file(
        &format_own_netplan_path(netdev),
        "0600",
        lines,
    )])
}

/// JSON's string form is a YAML double-quoted scalar.
fn quote_yaml_text(text: &str) -> String {
    Value::String(text.to_owned()).to_string()
}

/// Our file goes, or becomes what it was.
pub fn plan_netplan_restore(
    netdev: &str,
    view: &ManagedLinkView,
    before: &PriorLinkSettings,
) -> Vec<Action> {
    owner::restore_file(&format_own_netplan_path(netdev), "0600", view, before)
        .into_iter()
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sections::parse_sections;

    #[test]
    fn our_file_is_told_apart_from_the_merged_view() {
        let answer = "== netplan-get 0\n\
                      |network:\n\
                      |  version: 2\n\
                      |  ethernets:\n\
                      |    rail0:\n\
                      |      mtu: 9000\n\
                      |      addresses:\n\
                      |      - \"10.0.0.1/24\"\n\
                      |      - \"10.0.0.2/24\":\n\
                      |          label: x\n\
                      \n\
                      == netplan-own 600 root root /etc/netplan/90-railwright-ens1.yaml\n\
                      |network:\n\
                      |  ethernets:\n\
                      |    \"rail0\":\n\
                      |      mtu: 9000\n\
                      |      addresses:\n\
                      |      - \"10.0.0.2/24\"\n";
        let view = parse_netplan_view("rail0", &parse_sections(answer)).unwrap();
        assert_eq!(
            (
                view.merged.mtu,
                view.merged.addresses.len(),
                view.others.addresses.len()
            ),
            (Some(9000), 2, 1)
        );
        let exclusive = DesiredLinkSettings {
            addresses: vec!["10.0.0.2/24".parse().unwrap()],
            exclusive: true,
            ..DesiredLinkSettings::default()
        };
        assert!(
            plan_netplan_settings("ens1", &view, "rail0", "ethernets", &exclusive)
                .unwrap_err()
                .as_words()
                .contains("10.0.0.1/24")
        );
    }
}
