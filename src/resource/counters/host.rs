//! What a host counts: the statistics of its netdevs, and `hw_counters` of the RDMA devices on
//! them. The world may read both.

use super::PRINT_UPTIME;
use super::names::HW_COUNTERS;
use railwright_base::quote::sh_words;

/// `ethtool -S` has thousands of lines on a ConnectX: filtered on the host. A device is found by
/// its netdev; a soft one says it in `parent`.
pub fn render_host_counters_script(netdevs: &[String]) -> String {
    let files: Vec<&str> = HW_COUNTERS.iter().map(|row| row.name).collect();
    format!(
        r#"{PRINT_UPTIME}
for n in {netdevs}; do printf 'port %s\n' "$n"
[ -d "$R/sys/class/net/$n" ] || {{ echo absent; continue; }}
command -v ethtool >/dev/null 2>&1 && ethtool -S "$n" 2>/dev/null | grep -E 'pause|discard|pfc_ena|xoff' | sed 's/^ *//; s/: / /'
for d in "$R"/sys/class/infiniband/*; do p=; {{ read -r p <"$d/parent"; }} 2>/dev/null
[ -e "$d/device/net/$n" ] || [ "$p" = "$n" ] || continue
for c in "$d"/ports/*/hw_counters; do for f in {files}; do v=; {{ read -r v <"$c/$f"; }} 2>/dev/null; [ -z "$v" ] || printf '%s %s\n' "$f" "$v"; done; done
done; done
exit 0
"#,
        netdevs = sh_words(netdevs.iter().map(String::as_str)),
        files = files.join(" ")
    )
}
