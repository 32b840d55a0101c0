//! What `systemd_unit` reads and does, as POSIX sh.

use crate::action::UnitVerb;
use crate::complaint::{SAY, UNAVAILABLE};
use railwright_base::quote::{quote_for_shell, sh_words};

/// The properties that are asked for; systemd 239 has them all.
const PROPERTIES: &str = "Id,LoadState,ActiveState,SubState,UnitFileState,NeedDaemonReload,Type,RemainAfterExit,Result,FragmentPath,ActiveEnterTimestamp,ExecMainExitTimestamp";

/// `systemctl show`, with its times in UTC (they are in the zone of who asks). Exit 69 where
/// systemd does not run.
pub fn read_script(name: &str) -> String {
    format!(
        "[ -d \"$R/run/systemd/system\" ] && command -v systemctl >/dev/null || exit 69\n\
         TZ=UTC LC_ALL=C systemctl show -p {PROPERTIES} -- {}\n",
        quote_for_shell(name)
    )
}

/// A line `seconds path` for each of the paths that is there.
pub fn modified_script(paths: &[String]) -> String {
    format!(
        "for f in {}; do [ ! -e \"$R$f\" ] || printf '%s %s\\n' \"$(stat -L -c %Y \"$R$f\")\" \
         \"$f\"; done\n",
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
