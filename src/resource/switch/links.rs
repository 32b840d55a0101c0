//! Ports that had a link before a change have to have one after it, by what the switch itself says:
//! a change that leaves a port dark is not confirmed, and is rolled back. As sh; a system brings
//! the function `up_of`, which prints those of its arguments that have a link.

use railwright_base::quote::quote_for_shell;
use std::collections::BTreeSet;

/// How long ports that the change took down may take to come up again, in seconds: optics and link
/// training take their time.
pub const LINK_S: u32 = 60;

/// Notes which of these ports have a link. Where that cannot be read nothing is changed.
pub fn render_link_state_capture(ports: &BTreeSet<&str>) -> String {
    let ports: Vec<String> = ports.iter().map(|port| quote_for_shell(port)).collect();
    format!(
        "was=$(up_of {}) || say 65 'which ports have a link cannot be told, and nothing was \
         changed'\n",
        ports.join(" ")
    )
}

/// Waits until all of them have one again.
pub fn render_link_recovery_wait() -> String {
    format!(
        "t=$(cut -d. -f1 /proc/uptime)\n\
         while [ -n \"$was\" ]; do now=\" $(up_of $was | tr '\\n' ' ') \"; down=\n\
         for i in $was; do case $now in *\" $i \"*) ;; *) down=\"$down $i\" ;; esac; done; \
         was=$down; [ -n \"$was\" ] || break\n\
         [ $(($(cut -d. -f1 /proc/uptime) - t)) -lt {LINK_S} ] || say 1 \"up before the change, \
         and not up again {LINK_S} s after it:$was\"; sleep 1; done\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    /// What sh makes of it, with ports that are up by a file each.
    fn run(before: &str, after: &str) -> (Option<i32>, String) {
        let folder = tempfile::tempdir().unwrap();
        let script = format!(
            "cd {}; say() {{ printf '%s' \"$2\"; exit \"$1\"; }}; sleep() {{ : >after; touch \
             {after}; }}\n\
             cut() {{ if [ -e after ]; then echo 60; else echo 0; fi; }}\n\
             up_of() {{ for i do [ ! -e \"${{i##*/}}\" ] || printf '%s\\n' \"$i\"; done; }}\n\
             touch x {before}\n\
             {}rm -f {before}\n\
             {}",
            folder.path().display(),
            render_link_state_capture(&BTreeSet::from(["swp1", "swp2", "Ethernet3/1"])),
            render_link_recovery_wait()
        );
        let output = Command::new("sh").arg("-c").arg(script).output().unwrap();
        (
            output.status.code(),
            String::from_utf8(output.stdout).unwrap(),
        )
    }

    #[test]
    fn what_was_up_has_to_be_up_again_and_nothing_else() {
        assert_eq!(
            run("swp1 1", "swp1 1"),
            (Some(0), String::new()),
            "they come back while it waits"
        );
        assert_eq!(
            run("", ""),
            (Some(0), String::new()),
            "of nobody who had a link nothing is waited for"
        );
        let (code, said) = run("swp1 1", "swp1");
        assert_eq!(
            (code, said.as_str()),
            (
                Some(1),
                "up before the change, and not up again 60 s after it: Ethernet3/1"
            )
        );
    }
}
