//! What is read from SONiC and done to it, as POSIX sh.

use super::edit::{SonicEdit, build_json_patch, takes_port_down};
use crate::complaint::{SAY, UNAVAILABLE};
use crate::switch::{SwitchRead, links};
use railwright_base::quote::quote_for_shell;
use std::collections::BTreeSet;

/// Where the configuration is saved.
pub const SAVED: &str = "/etc/sonic/config_db.json";

/// The tables that are compared. The others hold passwords of routing and login, which nobody needs
/// to see.
const TABLES: &str = "PORT PORT_QOS_MAP DSCP_TO_TC_MAP TC_TO_QUEUE_MAP TC_TO_PRIORITY_GROUP_MAP \
                      MAP_PFC_PRIORITY_TO_QUEUE PFC_PRIORITY_TO_PRIORITY_GROUP_MAP SCHEDULER \
                      WRED_PROFILE QUEUE CABLE_LENGTH PFC_WD BUFFER_PG BUFFER_PROFILE";

/// These tables of a configuration as one line of JSON. SONiC's own commands are Python programs,
/// so it is there. Exit 69 where the host is no SONiC; 1 where nothing that makes sense is saved.
pub fn read_script(read: SwitchRead) -> String {
    let source = match read {
        SwitchRead::Running => {
            "command -v sonic-cfggen >/dev/null || exit 69\nsonic-cfggen -d --print-data".to_owned()
        }
        SwitchRead::Saved => format!("[ -s \"$R{SAVED}\" ] || exit 1\ncat \"$R{SAVED}\""),
    };
    let narrow = "import json,sys; d = json.load(sys.stdin); \
                  print(json.dumps({t: d[t] for t in sys.argv[1].split() if t in d}, \
                  sort_keys=True))";
    format!(
        "{source} | python3 -c {} {}\n",
        quote_for_shell(narrow),
        quote_for_shell(TABLES)
    )
}

/// Makes a patch take a table where it would leave it without a row: SONiC takes no patch that does
/// (sonic-net/sonic-utilities: generic_config_updater/generic_updater.py, `PatchApplier.apply`).
/// Which rows there are is known when all edits of a step are together, and is as it is then.
const WHOLE_TABLES: &str = include_str!("whole_tables.py");

/// Applies one patch for all edits, after the switch has checked it. The patch lies in memory
/// while it is applied. Ports that were up before have to be up after it: the outcome of a port is
/// in APPL_DB (sonic-net/sonic-swss: orchagent/portsorch.cpp, `updateDbPortOperStatus`).
pub fn edit_script(edits: &[SonicEdit]) -> String {
    format!(
        "{SAY}command -v config >/dev/null || say {UNAVAILABLE} 'config of SONiC is not on this \
         host'\n\
         up_of() {{ for i do [ \"$(sonic-db-cli APPL_DB hget \"PORT_TABLE:$i\" oper_status \
         2>/dev/null)\" != up ] || printf '%s\\n' \"$i\"; done; }}\n\
         {}umask 077; p=/run/railwright-patch.$$; trap 'rm -f \"$p\"' EXIT\n\
         printf %s {patch} >\"$p\" || exit 74\n\
         sonic-cfggen -d --print-data | python3 -c {whole_tables} \"$p\" || say 65 'the \
         configuration that runs cannot be read, and nothing was changed'\n\
         o=$(config apply-patch --dry-run \"$p\" </dev/null 2>&1) || say 65 \"SONiC does not take \
         the patch, and nothing was changed: $(printf %s \"$o\" | tail -n 3 | tr '\\n' ' ')\"\n\
         o=$(timeout -k 5 540 config apply-patch \"$p\" </dev/null 2>&1) || say 1 \"config \
         apply-patch failed: $(printf %s \"$o\" | tail -n 3 | tr '\\n' ' ')\"\n\
         {}",
        links::render_link_state_capture(&ports_of(edits)),
        links::render_link_recovery_wait(),
        patch = quote_for_shell(&build_json_patch(edits).to_string()),
        whole_tables = quote_for_shell(WHOLE_TABLES),
    )
}

/// Ports that the edits take down, or whose own settings they change, and that are to be up
/// afterwards.
fn ports_of(edits: &[SonicEdit]) -> BTreeSet<&str> {
    let (mut ports, mut off) = (BTreeSet::new(), BTreeSet::from(["global"]));
    for edit in edits {
        let port = edit.key.split('|').next().unwrap_or_default();
        if takes_port_down(edit) || edit.table == "PORT" {
            ports.insert(port);
        }
        let is_status = edit.table == "PORT" && edit.field == "admin_status";
        if is_status && edit.value.as_deref() != Some("up") {
            off.insert(port);
        }
    }
    &ports - &off
}

/// Saves the configuration that runs.
pub fn save_script() -> String {
    format!(
        "{SAY}command -v config >/dev/null || say {UNAVAILABLE} 'config of SONiC is not on this \
         host'\n\
         o=$(config save -y </dev/null 2>&1) || say 1 \"config save failed: $(printf %s \"$o\" | \
         tail -n 3 | tr '\\n' ' ')\"\n"
    )
}

/// Keeps the configuration that runs, in the folder of an automatic rollback.
pub fn keep_script(name: &str) -> String {
    format!("sonic-cfggen -d --print-data >\"$k/{name}\" && [ -s \"$k/{name}\" ] || exit 74")
}

/// Puts rows back on the switch.
const PROGRAM: &str = include_str!("config_db.py");

/// Makes what of it is of these ports, or ours by its name, run again where it is otherwise: as a
/// checkpoint that is rolled back, and where the switch refuses that (it meets the same allow list
/// as a patch, sonic-net/sonic-buildimage#20664) or has no room for one, by a reload from that. It
/// starts the services anew, so it is left out where ours runs again: a rollback fails as well where
/// somebody else wrote anything meanwhile (sonic-net/sonic-utilities:
/// generic_config_updater/generic_updater.py, "there are still some parts not updated"), and what
/// they wrote stays. `ports` is one word of the shell.
pub fn restore_script(name: &str, ports: &str) -> String {
    format!(
        "look() {{ sonic-cfggen -d --print-data >\"$k/now\" && [ -s \"$k/now\" ] && \
         python3 -c {program} \"$k/now\" \"$k/{name}\" {tables} {ports} >\"$k/new\" && \
         mv \"$k/new\" \"$k/desired\"; }}\n\
         n=0; until look; do [ \"$n\" -lt 60 ] || exit 1; sleep 5; n=$((n + 1)); done\n\
         [ -s \"$k/desired\" ] || exit 0\n\
         c=railwright-rollback; d=/etc/sonic/checkpoints\n\
         mkdir -p \"$d\" && cp \"$k/desired\" \"$d/$c.cp.json\" && config rollback \"$c\" \
         </dev/null; s=$?\n\
         rm -f \"$d/$c.cp.json\"\n\
         [ \"$s\" -ne 0 ] || exit 0\n\
         look; [ ! -s \"$k/desired\" ] || config reload -y -f \"$k/desired\" </dev/null\n",
        program = quote_for_shell(PROGRAM),
        tables = quote_for_shell(TABLES),
    )
}
