//! What Cumulus Linux counts: `nv show interface PORT counters qos -o json`, which was `... qos
//! counters` up to 5.4, and `... qos pfc-watchdog status` from 5.6 on (CumulusNetworks/docs:
//! content/nvue-reference/Show-Commands/QoS.md).

use crate::counters::PRINT_UPTIME;
use crate::counters::names::{Meter, VendorCounter, new_64_bit_counter};
use railwright_base::quote::{quote_for_shell, sh_words};
use railwright_base::text::one_line;
use serde_json::Value;

/// `nv show interface PORT counters qos` and `... qos pfc-watchdog status`: the words are the
/// columns of the tables in CumulusNetworks/docs, content/nvue-reference/Show-Commands/QoS.md. The
/// manual shows no JSON of them; that a row is keyed by its first column is what NVUE does with all
/// its collections. Discards of a buffer are in bytes there.
pub const COUNTERS: &[VendorCounter] = &[
    new_64_bit_counter("rx-pause-frames/{p}", Meter::PauseReceived),
    new_64_bit_counter("tx-pause-frames/{p}", Meter::PauseSent),
    new_64_bit_counter("rx-buffer-discards/{p}", Meter::Lost),
    new_64_bit_counter("tx-uc-buffer-discards/{p}", Meter::Lost),
    new_64_bit_counter("wred-discards/{p}", Meter::Lost),
    new_64_bit_counter("ecn-marked-frames/{p}", Meter::Marked),
    new_64_bit_counter("deadlock-count/{p}", Meter::Storms),
];

/// The columns that mean something (`COUNTERS`).
const KEPT: [&str; 8] = [
    "rx-pause-frames",
    "tx-pause-frames",
    "rx-buffer-discards",
    "tx-uc-buffer-discards",
    "wred-discards",
    "ecn-marked-frames",
    "status",
    "deadlock-count",
];

/// Asks for several ports at a time, because `nv` takes a second or so to start.
const PROGRAM: &str = include_str!("nvue_counters.py");

/// The section. Exit 69 where the host has no NVUE.
pub fn render_cumulus_counters_script(ports: &[String]) -> String {
    format!(
        "command -v nv >/dev/null || exit 69\n\
         {PRINT_UPTIME}\n\
         python3 -c {} {}\n",
        quote_for_shell(PROGRAM),
        sh_words(ports.iter().map(String::as_str))
    )
}

/// What is asked of the REST API for a port, below `/nvue_v1`: counters of QoS by their new name
/// and their old one, and the watchdog.
pub fn rest_paths(port: &str) -> [String; 3] {
    ["counters/qos", "qos/counters", "qos/pfc-watchdog/status"]
        .map(|place| format!("/interface/{port}/{place}"))
}

/// The lines that the program prints for a port, made from what the REST API gave for it; where it
/// gave no counters, a line that says so.
pub fn rest_lines(port: &str, counters: Option<&Value>, watchdog: Option<&Value>) -> String {
    let Some(counters) = counters else {
        return format!("port {port}\nunread NVUE tells no counters of the port\n");
    };
    let mut lines = Vec::new();
    let watchdog = watchdog.unwrap_or(&Value::Null);
    for tree in [counters, watchdog] {
        collect_numbered_rows(tree, &mut lines);
    }
    format!("port {port}\n{}", lines.concat())
}

/// Tables of rows by their number, below each other or not.
fn collect_numbered_rows(tree: &Value, lines: &mut Vec<String>) {
    for (key, row) in tree
        .as_object()
        .into_iter()
        .flatten()
        .filter(|(_, row)| row.is_object())
    {
        if key.bytes().all(|byte| byte.is_ascii_digit()) {
            let told = KEPT.iter().filter_map(|name| Some((name, row.get(name)?)));
            lines.extend(
                told.map(|(name, value)| format!("{name}/{key} {}\n", format_counter_value(value))),
            );
        } else {
            collect_numbered_rows(row, lines);
        }
    }
}

fn format_counter_value(value: &Value) -> String {
    one_line(
        value
            .as_str()
            .map_or_else(|| value.to_string(), str::to_owned)
            .as_str(),
        80,
    )
}
