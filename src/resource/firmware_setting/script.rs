//! `mlxconfig` of NVIDIA's firmware tools, or `mstconfig` of the package mstflint, which is the
//! same program: queries and settings. Both take the PCI address; the name of an RDMA device is
//! refused by many versions (Mellanox/mstflint#1930).

use crate::rights::RootAccessNeed;
use crate::sections::SHELL;
use railwright_base::quote::{quote_for_shell, sh_words};
use std::collections::BTreeMap;

/// Asks once for all settings, which takes seconds a card, and lets only those through that were
/// asked for: a ConnectX-6 has some 200 of them.
pub fn read_script(netdev: &str, settings: &[String]) -> String {
    let rows = format!("^[*RO[:space:]]*({})[[:space:]]", settings.join("|"));
    format!(
        r#"{SHELL}n={netdev}; [ -d "$R/sys/class/net/$n" ] || exit 1
d=$(readlink "$R/sys/class/net/$n/device") || exit 0
d=${{d##*/}}; printf '\n== device %s\n' "$d"
[ -e "$R/sys/class/net/$n/device/physfn" ] && {{ printf '\n== virtual-function\n'; exit 0; }}
for t in mlxconfig mstconfig; do command -v "$t" >/dev/null 2>&1 || continue
o=$("$t" -d "$d" -e q 2>&1); printf '\n== query %s %s\n' "$?" "$t"
printf '%s\n' "$o" | grep -E -e '^(Device type|Configurations):' -e '^-E-' -e {rows} | sed 's/^/|/'
break; done
exit 0
"#,
        netdev = quote_for_shell(netdev),
        rows = quote_for_shell(&rows),
    )
}

/// The program opens the card's configuration space and its registers.
pub fn list_firmware_access_needs() -> Vec<RootAccessNeed> {
    vec![RootAccessNeed::Root(
        "the firmware settings of a NIC (mlxconfig)".to_owned(),
    )]
}

/// Writes settings for the next boot of the card. The program asks to reboot whether anything
/// changed or not (Mellanox/mstflint#551), so what it prints says nothing: the settings are read
/// again.
pub fn set_script(device: &str, settings: &BTreeMap<String, String>) -> String {
    let words: Vec<String> = settings
        .iter()
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    format!(
        "for t in mlxconfig mstconfig; do command -v \"$t\" >/dev/null 2>&1 && exec \"$t\" -d {} \
         --yes set {}; done\n\
         echo 'railwright: neither mlxconfig nor mstconfig is installed' >&2\n\
         exit 127\n",
        quote_for_shell(device),
        sh_words(words.iter().map(String::as_str)),
    )
}
