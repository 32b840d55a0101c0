//! One section of sh: the netdevs with their carriers, and what lldpd reports. Where a system keeps
//! lldpctl for a group of users (Debian: mode 4750), its place is named, so that it is not taken
//! for absent.

use crate::rights::RootAccessNeed;
use crate::sections::SHELL;

/// The script for a host.
pub fn read_script() -> String {
    render_lldpctl_script(
        r#"p=lldpctl; command -v lldpctl >/dev/null 2>&1 || for d in /usr/sbin /usr/bin; do [ ! -e "$d/lldpctl" ] || p=$d/lldpctl; done
if [ "$p" = lldpctl ] && ! command -v lldpctl >/dev/null 2>&1; then p=; fi
"#,
        r#""$p""#,
    )
}

/// Whether `find` left a program in `$p`, and what the words print then. A carrier can be read only
/// while the netdev is up. The time before a complaint of lldpctl is left out: it is another one on
/// each host, and each time.
pub(crate) fn render_lldpctl_script(find: &str, words: &str) -> String {
    format!(
        r#"{SHELL}for f in "$R"/sys/class/net/*; do [ -e "$f/operstate" ] || continue
printf '\n== netdev %s\n' "${{f##*/}}"
c=; {{ read -r c <"$f/carrier"; }} 2>/dev/null; [ -z "$c" ] || printf '|carrier=%s\n' "$c"
done
{find}if [ -z "$p" ]; then printf '\n== lldpctl 127\n'; else
o=$(as {words} -f json0 2>&1); printf '\n== lldpctl %s\n' $?
printf '%s\n' "$o" | sed 's/^[0-9T:-]* \[[A-Z]*[^]]*\] //; s/^/|/'
fi
echo; echo '== end'
"#
    )
}

/// lldpd's socket is of root and of its own user.
pub fn list_lldp_access_needs() -> Vec<RootAccessNeed> {
    let words = ["-f", "json0"].map(str::to_owned).to_vec();
    vec![RootAccessNeed::Program(
        &["/usr/bin/lldpctl", "/usr/sbin/lldpctl"],
        words,
    )]
}
