//! What Cumulus Linux counts: `nv show interface PORT counters qos -o json`, which was `... qos counters` up to 5.4, and `... qos pfc-watchdog
//! status` from 5.6 on (CumulusNetworks/docs: content/nvue-reference/Show-Commands/QoS.md).

use crate::base::quote::{sh, sh_words};

/// Asks for several ports at a time, because `nv` takes a second or so to start.
const PROGRAM: &str = include_str!("nvue_counters.py");

/// The section. Exit 69 where the host has no NVUE.
pub fn script(ports: &[String]) -> String {
    format!(
        "command -v nv >/dev/null || exit 69\n\
         u=; {{ read -r u _ <\"$R/proc/uptime\"; }} 2>/dev/null; printf 'uptime %s\\n' \"$u\"\n\
         python3 -c {} {}\n",
        sh(PROGRAM),
        sh_words(ports.iter().map(String::as_str))
    )
}
