//! What dnf is told, as POSIX sh.

use crate::base::quote::{sh, sh_words};
use crate::resource::action::PackageVersion;
use crate::resource::complaint::{KILLED, LOCKED, MISSING, NOT_TRUSTED, OF_OTHERS, SAY, UNAVAILABLE};

/// Shell functions: `d WORDS` runs dnf, waiting up to a minute for its lock (dnf itself would wait for ever), and keeps its
/// stderr; `verdict` turns its failure into a sentence. dnf ends with 200 when the lock is held by another.
fn prelude() -> String {
    format!(
        r#"{SAY}set -u
e=$(mktemp); trap 'rm -f "$e"' EXIT
d() {{
 n=0
 while :; do
  dnf -y -q --setopt=install_weak_deps=False --setopt=exit_on_lock=True "$@" </dev/null 2>"$e"; rc=$?
  if [ "$rc" = 200 ] && [ "$n" -lt 12 ]; then n=$((n+1)); sleep 5; continue; fi
  cat "$e" >&2; return "$rc"
 done
}}
verdict() {{
 if [ "$rc" = 200 ]; then
  p=$(cat /var/cache/dnf/*_lock.pid /var/lib/dnf/*_lock.pid /run/dnf/*_lock.pid 2>/dev/null | head -n 1)
  c=; [ -z "$p" ] || c=$(cat "/proc/$p/comm" 2>/dev/null)
  say {LOCKED} "the package manager is locked by ${{p:+pid $p}} ${{c:+($c)}}${{p:-another program}}; nothing was changed"
 fi
 m=$(sed -n -e 's/.*No match for argument: \(.*\)/no package \1 in the repositories of this host/p' -e 's/.*Unable to find a match: \(.*\)/no package \1 in the repositories of this host/p' "$e" | head -n 1)
 [ -z "$m" ] || say {MISSING} "$m"
 m=$(grep -i -e 'GPG check FAILED' -e 'is not signed' -e 'not correct for this package' "$e" | head -n 1)
 [ -z "$m" ] || say {NOT_TRUSTED} "$m"
 # 128 and more is a signal, of which the shell tells by the status alone
 [ "$rc" -le 128 ] || say {KILLED} "dnf was killed by signal $((rc-128)) before its end; `dnf check` and `dnf history` on the host tell what it left half done"
 m=$(sed -n 's/^Error: //p' "$e" | head -n 1)
 say "$rc" "${{m:-dnf ended with status $rc}}"
}}
"#
    )
}

fn specification(package: &PackageVersion) -> String {
    match &package.version {
        Some(version) => format!("{}-{version}", package.name),
        None => package.name.clone(),
    }
}

/// Installs; an exact version replaces a newer one too.
pub fn install_script(packages: &[PackageVersion]) -> String {
    let words: Vec<_> = packages.iter().map(specification).collect();
    format!("{}d install {} || verdict\n", prelude(), sh_words(words.iter().map(String::as_str)))
}

/// Removes these packages, and not what came as their dependencies. It leaves before anything is done where dnf would take away what
/// somebody asked for and is not among the names.
pub fn remove_script(names: &[String]) -> String {
    let words = sh_words(names.iter().map(String::as_str));
    format!(
        r#"{}others=
asked=$(dnf -q repoquery --userinstalled --qf '%{{name}}\n' </dev/null 2>/dev/null)
for p in $(LC_ALL=C rpm -e --test {words} 2>&1 | sed -n 's/.* is needed by (installed) \(.*\)/\1/p' | sort -u); do
 n=$(rpm -q --qf '%{{NAME}}' "$p")
 if [ -z "$asked" ] || printf '%s\n' "$asked" | grep -qxF "$n"; then others="$others $n"; fi
done
[ -z "$others" ] || say {OF_OTHERS} "dnf would take away$others, which somebody installed; nothing was changed (once it is not needed: dnf mark remove$others)"
d remove --noautoremove {words} || verdict
"#,
        prelude()
    )
}

/// Reads the metadata anew, of one of our repositories or of all.
pub fn refresh_script(repository: Option<&str>) -> String {
    let only = repository.map(|name| format!(" --disablerepo='*' --enablerepo={}", sh(&format!("railwright-{name}"))));
    format!("{}d makecache --refresh{} || verdict\n", prelude(), only.unwrap_or_default())
}

/// Holds packages, or lets them go, by the versionlock plugin.
pub fn hold_script(names: &[String], hold: bool) -> String {
    let verb = if hold { "add" } else { "delete" };
    format!(
        "{}dnf versionlock --help </dev/null >/dev/null 2>&1 || say {UNAVAILABLE} 'the versionlock plugin of dnf is not on this host; wish the package python3-dnf-plugin-versionlock (on Debian dnf-plugins-core)'\n\
         d versionlock {verb} {} || verdict\n",
        prelude(),
        sh_words(names.iter().map(String::as_str))
    )
}
