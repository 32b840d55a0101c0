//! NetworkManager: the connection that is active on a netdev, as `nmcli` shows it, and changes to
//! it.

use super::LinkState;
use super::owner::{
    self, DesiredLinkSettings, Handle, ManagedLinkView, PersistedLinkSettings, PriorLinkSettings,
};
use crate::Action;
use crate::action::NetworkManagerKind;
use crate::sections::{Section, find_section};
use ipnet::IpNet;
use railwright_base::Reason;
use railwright_base::quote::quote_for_shell;
use std::collections::BTreeMap;

/// The device file names the connection without asking anybody; `nmcli` itself never starts
/// NetworkManager. A connection that NetworkManager made up for a link that somebody else
/// configured is marked `external=true` in its file. Of the file only these marks travel: it can
/// hold secrets.
pub const READ: &str = r#"nd="$R/run/NetworkManager/devices/$i"; p=
if [ -f "$nd" ]; then text nm-device "$nd"; u=$(sed -n 's/^connection-uuid=//p' "$nd"); case "$u" in *[!0-9a-fA-F-]*) u=;; esac
if [ -n "$u" ]; then
said nm-connection nmcli -t -f connection.uuid,connection.type,connection.autoconnect,connection.interface-name,802-3-ethernet.mtu,infiniband.mtu,ipv4.method,ipv4.addresses,ipv6.method,ipv6.addresses,connection.master,vlan.parent,vlan.id,bond.options connection show "$u"
[ -n "${nm_files+x}" ] || nm_files=$(nmcli -t -f UUID,FILENAME connection show 2>/dev/null)
p=$(printf '%s\n' "$nm_files" | sed -n "s/^$u://p" | sed 's/\\\(.\)/\1/g')
case $p in /etc/*|/usr/*) ;; *) has "$R$p";; esac
printf '\n== nm-file %s\n' "$p"; grep -E '^(external|nm-generated|volatile)=' "$R$p" 2>/dev/null | sed 's/^/|/'
else
grep -lsx -e "interface-name=$n" -e "DEVICE=\"\{0,1\}$n\"\{0,1\}" "$R"/etc/NetworkManager/system-connections/* "$R"/etc/sysconfig/network-scripts/ifcfg-* /dev/null | while IFS= read -r k; do printf '\n== nm-profile %s\n' "${k#"$R"}"; done
fi; fi
"#;

/// What the reads of several netdevs ask once: the files of all connections.
pub const SHARED: &str = "[ ! -d \"$R/run/NetworkManager/devices\" ] || nm_files=$(nmcli -t -f \
                          UUID,FILENAME connection show 2>/dev/null)\n";

/// An active connection, by NetworkManager's own names of its settings.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NetworkManagerConnection {
    /// Its UUID; names are not unique.
    pub uuid: String,
    /// `802-3-ethernet`, `infiniband`, `vlan`, `bond`.
    pub kind: String,
    /// The keyfile, below /run while the connection lives in memory only.
    pub file: String,
    values: BTreeMap<String, String>,
}

impl NetworkManagerConnection {
    fn value(&self, key: &str) -> &str {
        self.values.get(key).map_or("", String::as_str)
    }

    fn mtu_key(&self) -> &'static str {
        if self.kind == "infiniband" {
            "infiniband.mtu"
        } else {
            "802-3-ethernet.mtu"
        }
    }

    /// The settings that we may change, as they are.
    pub fn settings(&self) -> BTreeMap<String, String> {
        let keys = [
            self.mtu_key(),
            "connection.autoconnect",
            "ipv4.method",
            "ipv4.addresses",
            "ipv6.method",
            "ipv6.addresses",
        ];
        keys.iter()
            .map(|key| ((*key).to_owned(), self.value(key).to_owned()))
            .collect()
    }

    fn addresses(&self, family: &str) -> Vec<IpNet> {
        self.value(&format!("{family}.addresses"))
            .split(',')
            .filter_map(|text| text.trim().parse().ok())
            .collect()
    }
}

/// True where the connection also takes a netdev of this name.
pub fn is_matched_by_connection(connection: &NetworkManagerConnection, name: &str) -> bool {
    let bound = connection.value("connection.interface-name");
    bound.is_empty() || bound == name
}

/// The netplan definition behind the active connection.
pub fn rendered_by_netplan(sections: &[Section<'_>]) -> Option<String> {
    let file = find_section(sections, "nm-file")?.rest;
    let name = file.strip_prefix("/run/NetworkManager/system-connections/netplan-")?;
    Some(name.strip_suffix(".nmconnection")?.to_owned())
}

/// The netdev as its connection has it, when NetworkManager owns it.
pub fn parse_connection_view(sections: &[Section<'_>]) -> Result<Option<ManagedLinkView>, Reason> {
    let Some(device) = find_section(sections, "nm-device") else {
        return Ok(None);
    };
    let (Some("true"), Some(uuid)) = (device.value("managed"), device.value("connection-uuid"))
    else {
        return Ok(None);
    };
    let file = find_section(sections, "nm-file");
    if file.is_some_and(|file| file.value("external") == Some("true")) {
        return Ok(None);
    }
    let shown = find_section(sections, "nm-connection").filter(|section| section.code() == Some(0));
    let shown =
        shown.ok_or_else(|| "NetworkManager owns it, but nmcli gave no answer".to_owned())?;
    let values: BTreeMap<_, _> = shown
        .lines
        .iter()
        .filter_map(|line| parse_nmcli_setting(line))
        .collect();
    let kind = values.get("connection.type").cloned().unwrap_or_default();
    let path = file.map_or("", |file| file.rest).to_owned();
    let connection = NetworkManagerConnection {
        uuid: uuid.to_owned(),
        kind,
        file: path,
        values,
    };
    let merged = PersistedLinkSettings {
        mtu: connection
            .value(connection.mtu_key())
            .parse()
            .ok()
            .filter(|mtu| *mtu > 0),
        up: Some(connection.value("connection.autoconnect") != "no"),
        addresses: [connection.addresses("ipv4"), connection.addresses("ipv6")].concat(),
    };
    let handle = Handle::NetworkManager(connection);
    Ok(Some(ManagedLinkView {
        manager: NetworkManagerKind::NetworkManager,
        others: PersistedLinkSettings::default(),
        merged,
        own: None,
        handle,
    }))
}

/// True when NetworkManager manages the device and has no connection for it, as on a server of the
/// Red Hat family, where it makes none by itself. One that somebody set up by hand has a connection
/// that is made up for it: taking it over would take away what they set.
pub fn waits_for_a_connection(sections: &[Section<'_>]) -> bool {
    let Some(device) = find_section(sections, "nm-device") else {
        return false;
    };
    device.value("managed") == Some("true") && device.value("connection-uuid").is_none()
}

fn adopted_path(netdev: &str) -> String {
    format!("/etc/NetworkManager/system-connections/railwright-{netdev}.nmconnection")
}

/// The profile of somebody else that names a netdev which has no active connection: it would be in
/// the way of one of ours.
pub fn waiting_profile<'a>(netdev: &str, sections: &[Section<'a>]) -> Option<&'a str> {
    let mut profiles = sections
        .iter()
        .filter(|section| section.word == "nm-profile")
        .map(|section| section.rest);
    profiles.find(|path| *path != adopted_path(netdev))
}

/// A connection of our own that is not active, to be undone.
pub fn own_waiting(netdev: &str, sections: &[Section<'_>]) -> Option<String> {
    let ours = adopted_path(netdev);
    sections
        .iter()
        .any(|section| section.word == "nm-profile" && section.rest == ours)
        .then_some(ours)
}

/// A connection of our own for a netdev that has none. Without a `uuid` NetworkManager makes one of
/// the file's name (Source: nm-settings-keyfile(5)).
pub fn plan_new_connection(
    state: &LinkState,
    intent: &DesiredLinkSettings,
) -> Result<Vec<Action>, Reason> {
    let netdev = &state.netdev;
    if let Some(kind) = &state.kind {
        return Err(format!(
            "{netdev} is a {kind} that NetworkManager has no connection for: make one for it with \
             what lies below it"
        )
        .into());
    }
    if intent.up == Some(false) {
        return Err(format!(
            "NetworkManager has no connection for {netdev}, so it stays down by itself"
        )
        .into());
    }
    // the hardware address of IP over InfiniBand has twenty bytes, that of Ethernet six (Source:
    // RFC 4391, section 9.1.1)
    if state
        .mac
        .as_ref()
        .is_some_and(|mac| mac.split(':').count() == 20)
    {
        return Err(format!(
            "NetworkManager has no connection for {netdev}, and one for InfiniBand fixes its \
             transport mode as well: make one with the mode that you want (nmcli connection add \
             type infiniband ifname {netdev} transport-mode MODE)"
        )
        .into());
    }
    let mtu = intent
        .mtu
        .map(|mtu| format!("mtu={mtu}\n"))
        .unwrap_or_default();
    let text = format!(
        "# Written by railwright; a change by hand is drift.\n\
         [connection]\n\
         id=railwright-{netdev}\n\
         type=ethernet\n\
         interface-name={netdev}\n\
         \n\
         [ethernet]\n\
         {mtu}\n\
         [ipv4]\n\
         {}\n\
         [ipv6]\n\
         {}",
        render_address_family(intent, true),
        render_address_family(intent, false),
    );
    Ok(vec![owner::own_file(&adopted_path(netdev), "0600", text)])
}

fn render_address_family(intent: &DesiredLinkSettings, is_ipv4: bool) -> String {
    let mine: Vec<_> = intent
        .addresses
        .iter()
        .filter(|address| matches!(address, IpNet::V4(_)) == is_ipv4)
        .collect();
    let method = match (mine.is_empty(), is_ipv4) {
        (false, _) => "manual",
        (true, true) => "disabled",
        (true, false) => "link-local",
    };
    let addresses: String = mine
        .iter()
        .enumerate()
        .map(|(n, address)| format!("address{}={address}\n", n + 1))
        .collect();
    format!("method={method}\n{addresses}")
}

/// Reads its files again. A connection of our own is brought up where another one, or none, is
/// active; what is active is applied again.
pub fn reload_script(netdev: &str) -> String {
    format!(
        "set -eu\n\
         nmcli connection reload\n\
         c=$(nmcli -g GENERAL.CONNECTION device show {device} || :)\n\
         if [ -e {path} ] && [ \"$c\" != {ours} ]; then\n\
         nmcli --wait 30 connection up {ours} || [ \"$(cat /sys/class/net/{device}/carrier \
         2>/dev/null)\" != 1 ]\n\
         elif [ -n \"$c\" ] && [ \"$c\" != -- ]; then nmcli device reapply {device}; fi\n",
        device = quote_for_shell(netdev),
        path = quote_for_shell(&adopted_path(netdev)),
        ours = quote_for_shell(&format!("railwright-{netdev}")),
    )
}

/// A line of `nmcli -t`: `ipv6.addresses:fd00\:\:1/64`; colons and backslashes of the value are
/// escaped.
fn parse_nmcli_setting(line: &str) -> Option<(String, String)> {
    let (key, value) = line.split_once(':')?;
    let mut plain = String::with_capacity(value.len());
    let mut letters = value.chars();
    while let Some(letter) = letters.next() {
        plain.extend(if letter == '\\' {
            letters.next()
        } else {
            Some(letter)
        });
    }
    Some((key.to_owned(), plain))
}

/// Changes the connection; NetworkManager writes its file, and the device is not taken down.
pub fn plan_connection_change(
    connection: &NetworkManagerConnection,
    intent: &DesiredLinkSettings,
) -> Vec<Action> {
    let mut settings = BTreeMap::new();
    if let Some(mtu) = intent.mtu {
        settings.insert(connection.mtu_key().to_owned(), mtu.to_string());
    }
    if let Some(up) = intent.up {
        settings.insert(
            "connection.autoconnect".to_owned(),
            if up { "yes" } else { "no" }.to_owned(),
        );
    }
    for family in ["ipv4", "ipv6"] {
        add_address_settings(connection, family, intent, &mut settings);
    }
    settings.retain(|key, value| connection.value(key) != value);
    vec![Action::ModifyConnection {
        uuid: connection.uuid.clone(),
        settings,
    }]
}

/// A method that forbids addresses has to become `manual`; `auto` may have static addresses beside
/// the learnt ones.
fn add_address_settings(
    connection: &NetworkManagerConnection,
    family: &str,
    intent: &DesiredLinkSettings,
    settings: &mut BTreeMap<String, String>,
) {
    let now = connection.addresses(family);
    let mut old = now.clone();
    old.retain(|address| !intent.exclusive && !intent.dropped.contains(address));
    let mut list = old.clone();
    for address in &intent.addresses {
        let is_of_family = matches!(address, IpNet::V4(_)) == (family == "ipv4");
        if is_of_family && !old.contains(address) {
            list.push(*address);
        }
    }
    if list == now {
        return;
    }
    settings.insert(format!("{family}.addresses"), join_addresses(&list));
    let key = format!("{family}.method");
    match connection.value(&key) {
        "manual" if list.is_empty() => {
            let without = choose_method_without_addresses(family, &intent.prior_settings);
            settings.insert(key, without);
        }
        "auto" | "manual" | "dhcp" => {}
        _ if list.is_empty() => {}
        _ => drop(settings.insert(key, "manual".to_owned())),
    }
}

/// `manual` needs an address (Source: nm-settings-nmcli(5)): the method of before us, or none.
fn choose_method_without_addresses(
    family: &str,
    prior_settings: &BTreeMap<String, String>,
) -> String {
    let none = if family == "ipv4" {
        "disabled"
    } else {
        "link-local"
    };
    let prior = prior_settings.get(&format!("{family}.method"));
    let prior = prior.filter(|method| !matches!(method.as_str(), "" | "manual"));
    prior.map_or(none, String::as_str).to_owned()
}

fn join_addresses(list: &[IpNet]) -> String {
    list.iter()
        .map(ToString::to_string)
        .collect::<Vec<_>>()
        .join(", ")
}

/// The settings that we changed become what they were; addresses that others added meanwhile stay.
pub fn plan_connection_restore(
    netdev: &str,
    connection: &NetworkManagerConnection,
    before: &PriorLinkSettings,
    intent: &DesiredLinkSettings,
) -> Vec<Action> {
    if before.manager.is_none() && connection.file == adopted_path(netdev) {
        return vec![Action::RemoveFile {
            path: connection.file.clone(),
            below: None,
        }];
    }
    let mut keys = Vec::new();
    keys.extend(intent.mtu.map(|_| connection.mtu_key()));
    keys.extend(intent.up.map(|_| "connection.autoconnect"));
    let mut settings = BTreeMap::new();
    for key in keys {
        if let Some(value) = before.settings.get(key) {
            settings.insert(key.to_owned(), value.clone());
        }
    }
    for family in ["ipv4", "ipv6"] {
        let list = list_restored_addresses(family, connection, before, intent);
        let key = format!("{family}.method");
        if list.is_empty()
            && let Some(method) = before.settings.get(&key)
        {
            settings.insert(key, method.clone());
        }
        settings.insert(format!("{family}.addresses"), join_addresses(&list));
    }
    settings.retain(|key, value| connection.value(key) != value);
    if settings.is_empty() {
        Vec::new()
    } else {
        vec![Action::ModifyConnection {
            uuid: connection.uuid.clone(),
            settings,
        }]
    }
}

/// The addresses of the connection without those that we added. Where no others were allowed, those
/// of before us.
fn list_restored_addresses(
    family: &str,
    connection: &NetworkManagerConnection,
    before: &PriorLinkSettings,
    intent: &DesiredLinkSettings,
) -> Vec<IpNet> {
    if intent.exclusive
        && let Some(text) = before.settings.get(&format!("{family}.addresses"))
    {
        return text
            .split(',')
            .filter_map(|address| address.trim().parse().ok())
            .collect();
    }
    let mut list = connection.addresses(family);
    list.retain(|address| {
        !intent.addresses.contains(address) || before.values.addresses.contains(address)
    });
    list
}

/// `nmcli connection modify` with all settings in one call, so that they are checked together.
pub fn modify_script(uuid: &str, settings: &BTreeMap<String, String>) -> String {
    let words = settings
        .iter()
        .flat_map(|(key, value)| [key.as_str(), value.as_str()]);
    let words = ["nmcli", "connection", "modify", "uuid", uuid]
        .into_iter()
        .chain(words);
    format!("{}\n", railwright_base::quote::sh_words(words))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sections::parse_sections;

    const ANSWER: &str = "== nm-device 644 root root /run/NetworkManager/devices/3\n\
                          |[device]\n\
                          |managed=true\n\
                          |connection-uuid=a9a181c3-23e5\n\
                          \n\
                          == nm-connection 0\n\
                          |connection.uuid:a9a181c3-23e5\n\
                          |connection.type:802-3-ethernet\n\
                          |connection.autoconnect:yes\n\
                          |802-3-ethernet.mtu:auto\n\
                          |ipv4.method:manual\n\
                          |ipv4.addresses:10.0.0.1/24, 10.0.0.9/24\n\
                          |ipv6.method:link-local\n\
                          |ipv6.addresses:\n\
                          \n\
                          == nm-file /etc/NetworkManager/system-connections/rail: 0.nmconnection\n";

    #[test]
    fn a_connection_is_changed_only_where_it_differs() {
        let view = parse_connection_view(&parse_sections(ANSWER))
            .unwrap()
            .unwrap();
        let Handle::NetworkManager(connection) = &view.handle else {
            panic!()
        };
        let intent = DesiredLinkSettings {
            mtu: Some(9000),
            addresses: vec![
                "10.0.0.1/24".parse().unwrap(),
                "fd00::1/64".parse().unwrap(),
            ],
            ..DesiredLinkSettings::default()
        };
        let [Action::ModifyConnection { settings, .. }] =
            &plan_connection_change(connection, &intent)[..]
        else {
            panic!()
        };
        let shown: Vec<_> = settings.iter().map(|(k, v)| format!("{k}={v}")).collect();
        assert_eq!(
            shown,
            [
                "802-3-ethernet.mtu=9000",
                "ipv6.addresses=fd00::1/64",
                "ipv6.method=manual"
            ]
        );
    }

    #[test]
    fn a_connection_made_up_for_a_foreign_link_owns_nothing() {
        assert_eq!(
            parse_connection_view(&parse_sections(&format!("{ANSWER}|external=true\n"))).unwrap(),
            None
        );
        assert_eq!(
            parse_nmcli_setting(r"ipv6.addresses:fd00\:\:1/64")
                .unwrap()
                .1,
            "fd00::1/64"
        );
    }
}
