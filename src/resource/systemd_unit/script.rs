//! What `systemd_unit` reads and does, as POSIX sh.

use super::found::STEADY_S;
use crate::action::UnitVerb;
use crate::complaint::{SAY, UNAVAILABLE};
use crate::file::script::CONTENT_TIME;
use railwright_base::quote::{quote_for_shell, sh_words};

/// The properties that are asked for; systemd 239 has them all.
const PROPERTIES: &str = "Id,LoadState,WantedBy,RequiredBy,ActiveState,SubState,UnitFileState,NeedDaemonReload,Type,RemainAfterExit,Result,FragmentPath,ActiveEnterTimestamp,ExecMainExitTimestamp,NRestarts";

/// `systemctl show`, with its times in UTC (they are in the zone of who asks), and a property of
/// ours, `InMemory`: whether systemd held the unit before `show` loaded it (systemctl(1),
/// `list-units`), another, `ActiveSeconds`: for how long it has been active, where that is not long, by
/// clocks that nobody sets, `Links`: the folders in which links of `enable` to it are, and
/// `LinkTo`: the file that its name is a link to. Exit 69 where systemd does not run.
pub fn read_script(name: &str) -> String {
    let name = quote_for_shell(name);
    format!(
        "[ -d \"$R/run/systemd/system\" ] && command -v systemctl >/dev/null || exit 69\n\
         if u=$(systemctl list-units --all --plain --no-legend -- {name} 2>/dev/null)\n\
         then u=${{u:+yes}}; u=${{u:-no}}; else u=; fi\n\
         TZ=UTC LC_ALL=C systemctl show -p {PROPERTIES} -- {name} && echo \"InMemory=$u\" \
         || exit\n\
         if read -r u _ 2>/dev/null <\"$R/proc/uptime\"\n\
         then f=$(systemctl show -p ActiveEnterTimestampMonotonic --value -- {name})\n\
         case $f in '' | *[!0-9]*) ;; *) u=$((${{u%.*}} - f / 1000000))\n\
         [ \"$u\" -lt 0 ] || [ \"$u\" -gt {STEADY_S} ] || echo \"ActiveSeconds=$u\" ;; esac; fi\n\
         u=; for f in \"$R\"/etc/systemd/system/*/{name}; do\n\
         [ ! -L \"$f\" ] || {{ f=${{f%/*}}; u=\"$u ${{f##*/}}\"; }}; done; echo \"Links=$u\"\n\
         ! u=$(readlink \"$R/etc/systemd/system/\"{name}) || echo \"LinkTo=$u\"\n"
    )
}

/// A line `seconds path` for each of the paths that is there: since when it has its content.
pub fn modified_script(paths: &[String]) -> String {
    format!(
        "{CONTENT_TIME}for f in {}; do [ ! -e \"$R$f\" ] || printf '%s %s\\n' \
         \"$(content_time \"$R$f\")\" \"$f\"; done\n",
        sh_words(paths.iter().map(String::as_str))
    )
}

/// Has systemd read the unit files again.
pub fn reload_script() -> String {
    format!(
        "{}systemctl daemon-reload </dev/null\n",
        render_systemd_check()
    )
}

/// Tells a unit something. A start that fails says what the unit logged last.
pub fn unit_script(name: &str, verb: UnitVerb) -> String {
    let word = match verb {
        UnitVerb::Enable => "enable",
        UnitVerb::Disable => "disable",
        UnitVerb::Start => "start",
        UnitVerb::Stop => "stop",
        UnitVerb::Restart => "restart",
        UnitVerb::Mask => "mask",
        UnitVerb::Unmask => "unmask",
        UnitVerb::UnmaskRuntime => "unmask --runtime",
    };
    let name = quote_for_shell(name);
    format!(
        "{}systemctl {word} -- {name} </dev/null && exit 0\n\
         rc=$?\n\
         systemctl status --no-pager -n 20 -- {name} </dev/null >&2\n\
         say \"$rc\" \"systemctl {word} \"{name}\" failed: $(systemctl show -p \
         LoadState,ActiveState,SubState,Result -- {name} </dev/null | tr '\\n' ' ')\"\n",
        render_systemd_check()
    )
}

fn render_systemd_check() -> String {
    format!(
        "{SAY}command -v systemctl >/dev/null || say {UNAVAILABLE} 'systemd is not on this host'\n"
    )
}
