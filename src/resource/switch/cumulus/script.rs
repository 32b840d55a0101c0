//! What is read from Cumulus Linux and done to it, as POSIX sh. Its own commands are Python
//! programs, so that Python is there.

use super::edit::{CumulusEdit, build_patch_documents, select_effective_edits};
use crate::complaint::{SAY, UNAVAILABLE};
use crate::switch::{SwitchRead, links};
use railwright_base::quote::quote_for_shell;
use serde_json::json;
use std::collections::BTreeSet;

/// What a boot begins with (CumulusNetworks/docs: content/nvue-reference/Config-Commands.md).
pub const SAVED: &str = "/etc/nvue.d/startup.yaml";

/// Narrows, compares and puts back on the switch.
const PROGRAM: &str = include_str!("nvue.py");

fn render_cumulus_python_call(words: &str) -> String {
    format!("python3 -c {} {words}", quote_for_shell(PROGRAM))
}

/// What of a revision is compared, as one line of JSON. `nv config show -r REVISION` and its `-o
/// json`: CumulusNetworks/docs, content/cumulus-linux-516/.../NVUE-CLI.md; that the keys of `nv
/// show interface -o json` are the ports: the driver napalm-cumulus (`get_facts`). Exit 69 where
/// the host is no switch with NVUE; 1 where nothing is saved.
pub fn read_script(read: SwitchRead) -> String {
    let question = match read {
        SwitchRead::Running => {
            "{ nv config show -r applied -o json && nv show interface -o json; }".to_owned()
        }
        SwitchRead::Saved => {
            format!("[ -s \"$R{SAVED}\" ] || exit 1\nnv config show -r startup -o json")
        }
    };
    format!(
        "command -v nv >/dev/null || exit 69\n\
         {question} | {}\n",
        render_cumulus_python_call("read")
    )
}

const LAST_LINES: &str = "last() { printf %s \"$1\" | tail -n 3 | tr '\\n' ' '; }\n";

/// Patches a revision of our own, looks at what is in it, and applies it. A revision that waits to
/// be applied is attached to the user, and `nv config patch` adds to it: one that holds anything of
/// somebody else's is left alone, one of ours that an earlier try left is dropped. `nv config diff`
/// ends with 1 where there is a difference (githedgehog/fabric: pkg/agent/cmls/cumulus.go), so that
/// its words count. What is applied says `applied [rev_id: 5]` or `applied_and_saved [rev_id: 5]`,
/// what is refused `Invalid config [rev_id: 5]` (CumulusNetworks/docs: content/knowledge-base,
/// breakout syntax after an upgrade). Ports are netdevs of the kernel, whose flags say whether
/// there is a carrier (`LOWER_UP`: netdevice(7); so does the manual look at ports, Monitoring and
/// Troubleshooting, `ip link`).
pub fn edit_script(edits: &[CumulusEdit]) -> String {
    let effective = select_effective_edits(edits);
    let places: Vec<&Vec<String>> = effective.iter().map(|edit| &edit.path).collect();
    let mut patches = String::new();
    for (n, document) in build_patch_documents(edits).iter().enumerate() {
        patches += &format!(
            "printf %s {document} >\"$d/{n}.yaml\" || exit 74\n\
             o=$(nv config patch \"$d/{n}.yaml\" </dev/null 2>&1) && case $o in *Error*) false ;; \
             esac || drop 65 \"Cumulus Linux does not take the change, and nothing was changed: \
             $(last \"$o\")\"\n",
            document = quote_for_shell(&document.to_string())
        );
    }
    format!(
        "{SAY}{LAST_LINES}command -v nv >/dev/null || say {UNAVAILABLE} 'nv of Cumulus Linux is \
         not on this host'\n\
         up_of() {{ for i do case $(ip -o link show dev \"$i\" 2>/dev/null) in \
         *[\\<,]LOWER_UP[\\>,]*) printf '%s\\n' \"$i\" ;; esac; done; }}\n\
         {was}umask 077; d=/run/railwright-nvue.$$; mkdir \"$d\" || exit 74; trap 'rm -rf \"$d\"' \
         EXIT\n\
         drop() {{ nv config detach </dev/null >/dev/null 2>&1; say \"$@\"; }}\n\
         waits() {{ nv config diff -o json </dev/null >\"$d/diff\" 2>\"$d/said\"; s=$?; {ours} \
         <\"$d/diff\" >\"$d/waits\" 2>/dev/null && [ \"$s\" -le 1 ] && [ -s \"$d/diff\" -o \"$s\" \
         -eq 0 ] || say 1 \"nv config diff failed: $(last \"$(cat \"$d/said\" \"$d/diff\")\")\"; \
         }}\n\
         waits\n\
         ! grep -q '^not ours' \"$d/waits\" || say 65 \"somebody's changes wait to be applied on \
         this switch, and nothing was changed: $(grep '^not ours' \"$d/waits\" | cut -c11- | tr \
         '\\n' ';') apply them or drop them first (nv config diff, nv config detach)\"\n\
         [ ! -s \"$d/waits\" ] || nv config detach </dev/null >/dev/null 2>&1\n\
         {patches}waits\n\
         ! grep -q '^not ours' \"$d/waits\" || drop 65 \"somebody else changes this switch at the \
         same time, and nothing was changed: $(grep '^not ours' \"$d/waits\" | cut -c11- | tr \
         '\\n' ';')\"\n\
         o=$(timeout -k 5 540 nv config apply --assume-yes </dev/null 2>&1); s=$?\n\
         case $o in\n\
         *'Invalid config'*) drop 65 \"Cumulus Linux does not take the change, and nothing was \
         changed: $(last \"$o\")\" ;;\n\
         *applied*|*'no config diff'*) [ \"$s\" -eq 0 ] || say 1 \"nv config apply failed: $(last \
         \"$o\")\" ;;\n\
         *) drop 1 \"nv config apply failed: $(last \"$o\")\" ;;\n\
         esac\n\
         {again}",
        was = links::render_link_state_capture(&ports_of(edits)),
        again = links::render_link_recovery_wait(),
        ours = render_cumulus_python_call(&format!(
            "ours {}",
            quote_for_shell(&json!(places).to_string())
        )),
    )
}

/// Ports whose own settings change, and that are to be up afterwards.
pub fn ports_of(edits: &[CumulusEdit]) -> BTreeSet<&str> {
    let effective = select_effective_edits(edits);
    let mut ports = BTreeSet::from_iter(effective.iter().filter_map(|edit| edit.port()));
    for edit in &effective {
        if let Some(port) = edit.port()
            && takes_link_down(edit)
        {
            ports.remove(port);
        }
    }
    ports
}

fn takes_link_down(edit: &CumulusEdit) -> bool {
    let path = Vec::from_iter(edit.path.iter().map(String::as_str));
    match (path.as_slice(), &edit.value) {
        (["interface", _, "link", "state", "down"], value) => value.is_some(),
        (["interface", _, "link", "state"], Some(leaf)) => leaf.word() == "down",
        _ => false,
    }
}

/// Saves the applied revision.
pub fn save_script() -> String {
    format!(
        "{SAY}{LAST_LINES}command -v nv >/dev/null || say {UNAVAILABLE} 'nv of Cumulus Linux is \
         not on this host'\n\
         o=$(nv config save </dev/null 2>&1) && case $o in *Error*) false ;; esac || say 1 \"nv \
         config save failed: $(last \"$o\")\"\n"
    )
}

/// Keeps what of the applied revision we may come to change, in the folder of an automatic
/// rollback, and the whole revision where all of it is saved.
pub fn keep_script(name: &str) -> String {
    format!(
        "nv config show -r applied -o json | {} >\"$k/{name}\" && [ -s \"$k/{name}\" ] || exit 74\n\
         a=$(nv config show -r applied -o json); [ \"$a\" != \"$(nv config show -r startup -o \
         json)\" ] || printf '%s\\n' \"$a\" >\"$k/{name}.saved\" || exit 74",
        render_cumulus_python_call("read")
    )
}

/// Makes it so again, where it is not. The revision from before is not applied again: it holds all
/// of the switch, what others applied elsewhere since included, and NVUE drops old ones. Where that
/// fails, twice, what was saved is applied, but not where others had not saved what they applied,
/// or have changed anything since. `ports` is one word of the shell.
pub fn restore_script(name: &str, ports: &str) -> String {
    format!(
        "is_so() {{ nv config show -r applied -o json | {read} >\"$k/now\" && {back} && [ ! -s \
         \"$k/unset.yaml\" ] && [ ! -s \"$k/set.yaml\" ]; }}\n\
         others() {{ {others}; }}\n\
         n=0; until nv config show -r applied -o json >/dev/null 2>&1 || [ \"$n\" = 60 ]; do sleep \
         5; n=$((n + 1)); done\n\
         ! is_so || exit 0\n\
         again() {{ nv config detach </dev/null\n\
         for f in unset set; do [ ! -s \"$k/$f.yaml\" ] || nv config patch \"$k/$f.yaml\" \
         </dev/null || return; done\n\
         nv config apply --assume-yes </dev/null; }}\n\
         again; ! is_so || exit 0\n\
         sleep 5; again; ! is_so || exit 0\n\
         nv config detach </dev/null\n\
         [ -e \"$k/{name}.saved\" ] && w=$(others <\"$k/{name}.saved\") || exit 1\n\
         for r in applied startup; do [ \"$(nv config show -r $r -o json | others)\" = \"$w\" ] || \
         exit 1; done\n\
         cp -a \"$k/{name}.file\" {SAVED}.new && mv -f {SAVED}.new {SAVED} || exit 1\n\
         nv config apply startup --assume-yes </dev/null; is_so\n",
        read = render_cumulus_python_call("read"),
        back = render_cumulus_python_call(&format!(
            "back \"$k/now\" \"$k/{name}\" \"$k/unset.yaml\" \"$k/set.yaml\" {ports}"
        )),
        others = render_cumulus_python_call(&format!("others {ports}")),
    )
}
