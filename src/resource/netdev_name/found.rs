//! The answer of `Read::NetdevName`, decoded.

use super::script::OWN;
use crate::sections::{Section, find_section, parse_sections};

/// A netdev of the host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NetdevIdentity {
    /// Its name now.
    pub name: String,
    /// The PCI function below it; nothing for a VLAN, a bond, a bridge.
    pub pci: Option<String>,
    /// Its MAC addresses: the one in use, and that of the card where a bond lent it another.
    pub macs: Vec<String>,
}

impl NetdevIdentity {
    /// True where a PCI address or MAC address means this one. VLANs and bonds bear the MAC address
    /// of a NIC, and are none.
    pub fn is(&self, device: &str) -> bool {
        self.pci
            .as_ref()
            .is_some_and(|pci| pci == device || self.macs.iter().any(|mac| mac == device))
    }

    fn of(line: &str) -> Option<Self> {
        let words: Vec<&str> = line.strip_prefix("netdev ")?.split_whitespace().collect();
        let [name, pci, mac, permanent_mac, ..] = words.as_slice() else {
            return None;
        };
        let macs = [mac, permanent_mac].into_iter().filter(|mac| **mac != "-");
        Some(NetdevIdentity {
            name: (*name).to_owned(),
            pci: (*pci != "-").then(|| (*pci).to_owned()),
            macs: macs.map(|mac| (*mac).to_owned()).collect(),
        })
    }
}

/// All that the host reports about names.
#[derive(Debug, Clone, Default)]
pub struct NetdevNameFacts<'a> {
    /// Every netdev.
    pub netdevs: Vec<NetdevIdentity>,
    /// What has a border of its own.
    pub sections: Vec<Section<'a>>,
}

/// The answer, decoded.
pub fn parse_netdev_name_facts(out: &str) -> NetdevNameFacts<'_> {
    NetdevNameFacts {
        netdevs: out.lines().filter_map(NetdevIdentity::of).collect(),
        sections: parse_sections(out),
    }
}

impl NetdevNameFacts<'_> {
    /// The text of our own file.
    pub fn own(&self) -> Option<String> {
        find_section(&self.sections, "own-link").map(Section::text)
    }

    /// The initial RAM disks, and whether each is newer than our file.
    pub fn ram_disks(&self) -> impl Iterator<Item = (&str, bool)> {
        let disks = self
            .sections
            .iter()
            .filter(|section| section.word == "ram-disk");
        disks
            .filter_map(|disk| disk.rest.split_once(' '))
            .map(|(age, path)| (path, age == "newer"))
    }

    /// What udev calls the place of the NIC, in letters that mean nothing else in a file of
    /// systemd.
    pub fn id_path(&self) -> Option<&str> {
        let path = find_section(&self.sections, "udev")?.value("ID_PATH")?;
        let is_plain = path
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, ':' | '.' | '_' | '-'));
        (!path.is_empty() && is_plain).then_some(path)
    }

    /// Nobody would give it a name.
    pub fn is_without_udev(&self) -> bool {
        find_section(&self.sections, "udev").is_none()
    }

    /// A file or rule of somebody else that names the NIC, with the name. A rule goes before every
    /// file: udev looks into them only for a NIC that no rule has named
    /// (rules.d/80-net-setup-link.rules of systemd).
    pub fn named_elsewhere(&self) -> Option<(String, String)> {
        let rules = find_section(&self.sections, "rules")
            .map(|rules| rules.lines.as_slice())
            .unwrap_or_default();
        if let Some((path, name)) = rules.iter().find_map(|line| parse_naming_rule(line)) {
            return Some((path.to_owned(), name.to_owned()));
        }
        let file = self.applied()?;
        Some((file.rest.to_owned(), file.value("Name")?.to_owned()))
    }

    /// The names of settings in the file of somebody else that udev applies to the NIC, and will
    /// not with ours before it.
    pub fn lost_settings(&self) -> Option<(&str, Vec<&str>)> {
        let file = self.applied()?;
        let mut is_link = false;
        let mut settings = Vec::new();
        for line in &file.lines {
            match line.split_once('=') {
                None => is_link = *line == "[Link]",
                Some((key, _)) if is_link && !key.contains("Name") => settings.push(key),
                Some(_) => {}
            }
        }
        (!settings.is_empty()).then_some((file.rest, settings))
    }

    /// The file that udev applied, where it is neither ours nor what systemd brings for NICs that
    /// nobody has configured.
    fn applied(&self) -> Option<&Section<'_>> {
        let file = find_section(&self.sections, "link-file")?;
        let is_usual = file.rest.ends_with("/99-default.link") || file.rest.starts_with(OWN);
        (!is_usual).then_some(file)
    }
}

/// `PATH:..., NAME="rail0"`: the path, and the name that the rule gives.
fn parse_naming_rule(line: &str) -> Option<(&str, &str)> {
    let (path, rule) = line.split_once(':')?;
    if rule.trim_start().starts_with('#') {
        return None;
    }
    for part in rule.split(',') {
        if let Some(value) = part.trim().strip_prefix("NAME")
            && let Some(name) = value.trim_start_matches(':').strip_prefix("=\"")
        {
            return Some((path, name.trim_end_matches('"')));
        }
    }
    None
}
