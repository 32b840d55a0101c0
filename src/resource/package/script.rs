//! What `package` reads, as POSIX sh. No lock is taken and no cache is written.

use super::release::left_path;
use crate::rights::{OPEN, RootAccessNeed};
use railwright_base::quote::sh_words;

/// The databases of dpkg and rpm are the world's to read, unless somebody closed them.
pub fn list_package_access_needs() -> Vec<RootAccessNeed> {
    ["/var/lib/dpkg/status", "/var/lib/rpm/x"]
        .map(|path| RootAccessNeed::Sight(path.to_owned()))
        .into_iter()
        .chain(LOCKS.map(|path| RootAccessNeed::Content(path.to_owned())))
        .collect()
}

/// Where versionlock keeps its list.
const LOCKS: [&str; 2] = [
    "/etc/dnf/plugins/versionlock.list",
    "/etc/yum/pluginconf.d/versionlock.list",
];

/// One line of dpkg for each package that it knows of, and where one of another architecture
/// (`libc6:i386`) is asked for, one with each package's own architecture.
fn dpkg_script(names: &str) -> String {
    let mut forms = vec!["${Package}"];
    if names.contains(':') {
        forms.push("${Package}:${Architecture}");
    }
    let mut lines = String::new();
    for name in forms {
        lines.push_str(&format!(
            "dpkg\\t${{db:Status-Abbrev}}\\t{name}\\t${{Version}}\\n"
        ));
    }
    format!("dpkg-query --admindir=\"$R/var/lib/dpkg\" -W -f '{lines}' {names}")
}

/// What the reads of all these packages ask dpkg once, in `$dpkg_said`.
pub fn shared_script(names: &[&str]) -> String {
    let names = sh_words(names.iter().copied());
    format!(
        "! command -v dpkg-query >/dev/null || {{ dpkg_said=$({} 2>/dev/null); dpkg_rc=$?; }}\n",
        dpkg_script(&names)
    )
}

/// `manager apt|dnf|none`, a line for each version that is known of each package, and one for each
/// that was left as a dependency; `unread` where the database does not say. dpkg-query ends with 1
/// where it knows one of the names not at all. rpm calls a package of a database that it cannot
/// read `not installed` too, beside an error.
pub fn read_script(names: &[String]) -> String {
    let names = sh_words(names.iter().map(String::as_str));
    format!(
        "{OPEN}if [ -d \"$R/var/lib/dpkg\" ] && command -v dpkg-query >/dev/null; then printf \
         'manager\\tapt\\n'\n\
         if [ -z \"${{dpkg_said+x}}\" ]; then {dpkg}; dpkg_rc=$?\n\
         else set -f; IFS='\n\
         '; for p in {names}; do for l in $dpkg_said; do case $l in *\"\t$p\t\"*) printf '%s\\n' \
         \"$l\" ;; esac; done; done; fi\n\
         [ \"$dpkg_rc\" -le 1 ] || printf 'unread\\tdpkg-query ended with status %s\\n' \"$dpkg_rc\"\n\
         elif command -v rpm >/dev/null && {{ command -v dnf || command -v yum; }} >/dev/null; \
         then printf 'manager\\tdnf\\n'\n\
         s=$(rpm ${{R:+--root}} ${{R:+\"$R\"}} -q --qf \
         'rpm\\t%{{NAME}}\\t%{{EPOCH}}:%{{VERSION}}-%{{RELEASE}}\\n' {names} 2>&1); printf \
         '%s\\n' \"$s\" | sed -n -e '/^rpm\t/p' -e 's/^error: /unread\trpm: /p'\n\
         case $s in *rpm'\t'* | *' is not installed'*) ;; *) printf 'unread\\trpm said nothing of \
         it\\n' ;; esac\n\
         for f in \"$R/etc/dnf/plugins/versionlock.list\" \
         \"$R/etc/yum/pluginconf.d/versionlock.list\"; do\n\
         ! has \"$f\" || get \"$f\" | sed -n 's/^\\([^#!]..*\\)$/lock\\t\\1/p'\n\
         done\n\
         else printf 'manager\\tnone\\n'; fi\n\
         [ ! -r \"$R{left}\" ] || sed 's/^/left\t/' \"$R{left}\"\n\
         exit 0\n",
        dpkg = dpkg_script(&names),
        left = left_path(),
    )
}
