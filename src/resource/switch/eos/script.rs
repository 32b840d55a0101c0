//! What is asked of EOS and done to it, as POSIX sh in the Linux below it. `FastCli -p 15 -c
//! COMMANDS` is its command line with all rights (so in event handlers of AVD's documentation, and
//! in arista-eosplus' scripts); what it refuses begins with `%` (Ansible's terminal plugin of
//! arista.eos), and its exit status says nothing.

use super::edit::{ANY_QUEUE, EosEdit, list_visible_line_prefixes, render_command_chunks};
use super::key::{OF_PORT, SHUTDOWN};
use crate::complaint::{SAY, UNAVAILABLE};
use crate::switch::{SwitchRead, links};
use railwright_base::quote::quote_for_shell;
use serde_json::json;
use std::collections::BTreeSet;

/// What a reload begins with (the EOS manual, Booting the Switch: flash:startup-config, which Linux
/// has below /mnt/flash).
pub const SAVED: &str = "/mnt/flash/startup-config";

/// Narrows, compares and puts back on the switch.
const PROGRAM: &str = include_str!("eos.py");

/// EOS is a Python program in good part; older releases have it as `python` alone.
fn render_eos_python_call(words: &str) -> String {
    format!(
        "$(command -v python3 || echo python) -c {} {words}",
        quote_for_shell(PROGRAM)
    )
}

/// What of a configuration is compared. Exit 69 where the host is no switch with EOS; 1 where nothing
/// is saved.
pub fn read_script(read: SwitchRead) -> String {
    let (is_saved, command) = match read {
        SwitchRead::Running => (String::new(), "show running-config"),
        SwitchRead::Saved => (
            format!("[ -s \"$R{SAVED}\" ] || exit 1\n"),
            "show startup-config",
        ),
    };
    format!(
        "command -v FastCli >/dev/null || exit 69\n\
         {is_saved}FastCli -p 15 -c {} </dev/null | {}\n",
        quote_for_shell(command),
        render_eos_python_call(&format!("read {}", read.word()))
    )
}

const CLI: &str = "cli() { timeout -k 5 540 FastCli -p 15 -c \"$1\" </dev/null 2>&1; }\n\
                   refused() \
                   { printf '%s\\n' \"$1\" | grep -q -e '^[> ]*%' -e '^! Interface does not exist'; }\n\
                   last() \
                   { printf '%s\\n' \"$1\" | grep -e '^[> ]*[%!]' | tail -n 3 | tr '\\n' ' '; }\n";

/// Stages a session of our own, looks at what it differs in, and commits it. A session begins as a
/// copy of what runs, and what is committed takes the place of all that runs, what came since
/// included (https://www.arista.com/um-eos/eos-configure-session): where a session of somebody else
/// waits, or the timer of one runs, nothing is done, and neither where other ports are set otherwise
/// by the end than before the session began. One of ours that an earlier try left is dropped. Whether a port has a link is what `show interfaces description` says of its line
/// protocol (aristanetworks/anta, anta/tests/interfaces.py, `VerifyInterfacesStatus`).
pub fn edit_script(edits: &[EosEdit]) -> String {
    let texts = render_command_chunks(edits);
    let word = render_queue_word_question(edits);
    let all: BTreeSet<&str> = edits.iter().filter_map(EosEdit::port).collect();
    let all: Vec<&str> = all.into_iter().collect();
    let stage: String = texts
        .iter()
        .map(|text| format!("stage {}\n", quote_for_shell(text)))
        .collect();
    format!(
        "{SAY}{CLI}command -v FastCli >/dev/null || say {UNAVAILABLE} 'FastCli of EOS is not on \
         this host'\n\
         n=railwright-$$; q=\n\
         up_of() {{ cli 'show interfaces description | json' | {up} \"$@\" 2>/dev/null; }}\n\
         {was}abort() {{ cli \"configure session $1 abort\" >/dev/null; }}\n\
         drop() {{ abort \"$n\"; say \"$@\"; }}\n\
         stage() {{ t=$(printf %s \"$1\" | sed \"s/^\\[uc-\\]tx-queue /$q /\"); o=$(cli \
         \"configure session $n\n\
         $t\"); ! refused \"$o\" || drop 65 \"EOS does not take the change, and nothing was \
         changed: $(last \"$o\")\"; }}\n\
         o=$(cli 'show configuration sessions detail | json'); w=$(printf '%s\\n' \"$o\" | \
         {sessions} 2>/dev/null) || say 1 \"show configuration sessions failed: $(printf %s \"$o\" \
         | head -n 3 | tr '\\n' ' ')\"\n\
         theirs=$(printf '%s\\n' \"$w\" | sed -n 's/^theirs //p' | tr '\\n' ' ')\n\
         [ -z \"$theirs\" ] || say 65 \"somebody's configuration session waits on this switch, and \
         nothing was changed: ${{theirs% }}; when it is committed or its timer is over, it takes \
         back what came since it began: commit or abort it first (configure session NAME \
         abort)\"\n\
         for i in $(printf '%s\\n' \"$w\" | sed -n 's/^ours //p'); do abort \"$i\"; done\n\
         others() {{ r=$(cli 'show running-config'); [ \"$(printf '%s\\n' \"$r\" | tail -n 1 | tr -d \
         '\\r')\" = end ] && printf '%s\\n' \"$r\" | {others}; }}\n\
         b=$(others) || say 1 'show running-config gave no whole configuration'\n\
         {word}{stage}d=$(cli \"show session-config named $n diffs\"); ! refused \"$d\" || drop 1 \
         \"show session-config failed: $(last \"$d\")\"\n\
         f=$(printf '%s\\n' \"$d\" | {diffs}) || drop 1 'what the session changes cannot be told'\n\
         [ -n \"$f\" ] || {{ abort \"$n\"; exit 0; }}\n\
         o=$(printf '%s\\n' \"$f\" | sed -n 's/^not ours: //p' | head -n 3 | tr '\\n' ';')\n\
         [ -z \"$o\" ] || drop 65 \"somebody else changes this switch at the same time, and \
         nothing was changed: $o\"\n\
         [ \"$(others)\" = \"$b\" ] || drop 65 'somebody else changes other ports of this switch at the \
         same time, and nothing was changed'\n\
         o=$(cli \"configure session $n\n\
         commit\"); s=$?\n\
         ! refused \"$o\" || drop 1 \"commit of the configure session failed: $(last \"$o\")\"\n\
         [ \"$s\" -ne 124 ] && [ \"$s\" -ne 137 ] || say 1 'commit of the configure session did \
         not end'\n\
         {again}",
        up = render_eos_python_call("up"),
        was = links::render_link_state_capture(&ports_of(edits)),
        again = links::render_link_recovery_wait(),
        sessions = render_eos_python_call("sessions"),
        others = render_eos_python_call(&format!("others {}", quote_for_shell(&all.join(" ")))),
        diffs = render_eos_python_call(&format!(
            "diffs {}",
            quote_for_shell(&json!(list_visible_line_prefixes(edits)).to_string())
        )),
    )
}

/// Asks the switch which word it takes for a queue, by entering the section in a session that is
/// not committed.
fn render_queue_word_question(edits: &[EosEdit]) -> String {
    for edit in edits {
        let [interface, queue, ..] = edit.section.as_slice() else {
            continue;
        };
        if let Some(queue) = queue.strip_prefix(ANY_QUEUE) {
            let enter = quote_for_shell(&format!("{interface}\nuc-tx-queue{queue}\n"));
            return format!(
                "q=tx-queue; o=$(cli \"configure session $n\n\
                 \"{enter}); refused \"$o\" || q=uc-tx-queue\n"
            );
        }
    }
    String::new()
}

/// Ports whose own settings change, and that are to be up afterwards.
fn ports_of(edits: &[EosEdit]) -> BTreeSet<&str> {
    let all: BTreeSet<&str> = edits.iter().filter_map(EosEdit::port).collect();
    let shut = edits.iter().filter(|edit| edit.line == SHUTDOWN.words);
    let off: BTreeSet<&str> = shut.filter_map(EosEdit::port).collect();
    &all - &off
}

/// Saves the configuration that runs.
pub fn save_script() -> String {
    format!(
        "{SAY}{CLI}command -v FastCli >/dev/null || say {UNAVAILABLE} 'FastCli of EOS is not on \
         this host'\n\
         o=$(cli 'copy running-config startup-config')\n\
         case $o in *'Copy completed successfully'*) ;; *) say 1 \"copy running-config \
         startup-config failed: $(printf %s \"$o\" | tail -n 3 | tr '\\n' ' ')\" ;; esac\n"
    )
}

/// Keeps the running configuration in the folder of an automatic rollback, which only root reads.
pub fn keep_script(name: &str) -> String {
    format!(
        "FastCli -p 15 -c 'show running-config' </dev/null >\"$k/{name}\" && [ \"$(tail -n 1 \
         \"$k/{name}\" | tr -d '\\r')\" = end ] || exit 74"
    )
}

/// Makes it so again, where it is not: what of it is of these ports is set in a session, and what
/// came into the DSCP map in another one, so that what others changed elsewhere since stays; a
/// session is not committed where they changed anything while it was made. Where three tries do not
/// bring it back, all of it is replaced (`configure replace`,
/// https://www.arista.com/en/um-eos/eos-session-management-commands), but not where others changed
/// anything. `ports` is one word of the shell.
pub fn restore_script(name: &str, ports: &str) -> String {
    let keys = OF_PORT.map(|key| json!([key.words, key.opposite, key.without]));
    let keys = quote_for_shell(&json!(keys).to_string());
    format!(
        "{CLI}is_there() {{ cli 'show running-config' >\"$k/now\"; [ \"$(tail -n 1 \"$k/now\" | tr \
         -d '\\r')\" = end ]; }}\n\
         is_so() {{ is_there && c=$({back}) && [ -z \"$c\" ]; }}\n\
         others() {{ {others} <\"$1\"; }}\n\
         t=0; until is_there || [ \"$t\" = 60 ]; do sleep 5; t=$((t + 1)); done\n\
         ! is_so || exit 0\n\
         for i in $(cli 'show configuration sessions detail | json' | {sessions} | sed -n 's/^ours \
         //p'); do cli \"configure session $i abort\"; done\n\
         n=0; tell() {{ [ -n \"$1\" ] || return 0; is_there && b=$(others \"$k/now\") || return; n=$((n + \
         1)); i=railwright-rollback-$$-$n; o=$(cli \"configure session $i\n\
         $1\") && ! refused \"$o\" && is_there && [ \"$(others \"$k/now\")\" = \"$b\" ] && cli \
         \"configure session $i\n\
         commit\" || cli \"configure session $i abort\"; }}\n\
         lines() {{ printf '%s\\n' \"$c\" | grep \"$@\" '^no qos map'; }}\n\
         again() {{ tell \"$(lines -v)\"; tell \"$(lines)\"; }}\n\
         for t in 0 5 5; do sleep $t; again; ! is_so || exit 0; done\n\
         w=$(others \"$k/{name}\") && [ \"$(others \"$k/now\")\" = \"$w\" ] || exit 1\n\
         cli \"configure replace file:$k/{name}\"\n\
         is_so\n",
        back = render_eos_python_call(&format!("back \"$k/now\" \"$k/{name}\" {keys} {ports}")),
        others = render_eos_python_call(&format!("others {ports}")),
        sessions = render_eos_python_call("sessions"),
    )
}
