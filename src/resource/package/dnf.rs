//! The calls of dnf, as POSIX sh.

use crate::action::PackageVersion;
use crate::complaint::{KILLED, LOCKED, MISSING, NOT_TRUSTED, SAY, UNAVAILABLE};
use crate::package::release::{self, UNLOCKED};
use railwright_base::quote::{quote_for_shell, sh_words};

/// Shell functions: `d WORDS` runs dnf, which waits for no lock, and keeps its stderr; `verdict`
/// turns its failure into a sentence; `going NAMES` names what would go with these, however far
/// away it needs them. dnf ends with 200 when the lock is held by another.
fn render_dnf_functions() -> String {
    format!(
        r#"{SAY}{UNLOCKED}set -u
e=$(mktemp); trap 'rm -f "$e"' EXIT
d() {{
 dnf -y -q --setopt=install_weak_deps=False --setopt=exit_on_lock=True "$@" </dev/null 2>"$e"; rc=$?
 cat "$e" >&2; return "$rc"
}}
is_locked() {{ [ "$rc" = 200 ]; }}
going() {{
 # rpm looks at no dependency where one of the names is not installed
 for t; do shift; ! rpm -q "$t" >/dev/null 2>&1 || set -- "$@" "$t"; done
 while [ "$#" -gt 0 ]; do
  t=$(LC_ALL=C rpm -e --test --allmatches "$@" 2>&1) && return 0
  printf 'Error: %s\n' "$t" >"$e"
  t=$(printf '%s\n' "$t" | sed -n 's/.* is needed by (installed) \(.*\)/\1/p' | sort -u)
  [ -n "$t" ] || return 1
  for t in $t; do set -- "$@" "$t"; rpm -q --qf '%{{NAME}}\n' "$t"; done
 done
}}
verdict() {{
 if is_locked; then
  p=$(cat /var/cache/dnf/*_lock.pid /var/lib/dnf/*_lock.pid /run/dnf/*_lock.pid 2>/dev/null | head -n 1)
  h='another program'; [ -z "$p" ] || h="pid $p ($(cat "/proc/$p/comm" 2>/dev/null))"
  say {LOCKED} "the package manager is locked by $h; nothing was changed"
 fi
 m=$(sed -n -e 's/.*No match for argument: \(.*\)/no package \1 in the repositories of this host/p' -e 's/.*Unable to find a match: \(.*\)/no package \1 in the repositories of this host/p' "$e" | head -n 1)
 [ -z "$m" ] || say {MISSING} "$m"
 m=$(grep -i -e 'GPG check FAILED' -e 'is not signed' -e 'not correct for this package' "$e" | head -n 1)
 [ -z "$m" ] || say {NOT_TRUSTED} "$m"
 # 128 and more is a signal, of which the shell tells by the status alone
 [ "$rc" -le 128 ] || say {KILLED} "dnf was killed by signal $((rc-128)) before its end; dnf check and dnf history on the host tell what it left half done"
 m=$(sed -n 's/^Error: //p' "$e" | head -n 1)
 say "$rc" "${{m:-dnf ended with status $rc}}"
}}
"#
    )
}

fn format_dnf_package(package: &PackageVersion) -> String {
    match &package.version {
        Some(version) => format!("{}-{version}", package.name),
        None => package.name.clone(),
    }
}

/// Installs; an exact version replaces a newer one too. It leaves before anything is done where a
/// package would take the place of one that we did not bring (dnf lists it as replaced), or where a
/// name is none of a package and would bring another one, which provides or replaces it.
pub fn install_script(packages: &[PackageVersion]) -> String {
    let words: Vec<_> = packages.iter().map(format_dnf_package).collect();
    let words = sh_words(words.iter().map(String::as_str));
    let names = packages.iter().map(|package| package.name.as_str());
    format!(
        r#"{}{}line() {{ printf '%s\n' "$plan" | grep -q "$1"; }}
{}i() {{
 plan=$(LC_ALL=C dnf --assumeno --setopt=install_weak_deps=False --setopt=exit_on_lock=True install {words} </dev/null 2>"$e"); rc=$?
 # what is not to be done ends with 1 as well
 [ "$rc" = 0 ] || line '^Transaction Summary' || return "$rc"
 for p in {}; do
  ! line '^Install' || rpm -q "$p" >/dev/null 2>&1 || line "^ $p\( \|\$\)" || say {MISSING} "no package $p in the repositories of this host, but one that provides or replaces it; nothing was changed (declare that one by its name)"
 done
 spare && d install {words}
}}
unlocked i || verdict
"#,
        render_dnf_functions(),
        release::ask_again_script(names.clone()),
        release::replace_only_ours(
            "dnf",
            r#"printf '%s\n' "$plan" | sed -n 's/^ *replacing  *\([^ ]*\)\.[^. ]* .*/\1/p'"#
        ),
        sh_words(names),
    )
}

/// Removes these packages, of those that we brought, that nothing else needs, and nothing beside
/// them. The others become dependencies.
pub fn release_script(names: &[String]) -> String {
    // dnf 5 says `dependency` for what dnf 4 calls `remove`
    format!(
        r#"{}mark() {{ d mark dependency "$1" >/dev/null 2>&1 || {{ ! is_locked && d mark remove "$1"; }}; }}
{}"#,
        render_dnf_functions(),
        release::release_unneeded_script(names, "d remove --noautoremove")
    )
}

/// Removes these packages, and not what came as their dependencies. It leaves before anything is
/// done where a package beside these would go.
pub fn remove_script(names: &[String]) -> String {
    let remove = release::remove_alone_script("dnf", names, "d remove --noautoremove");
    render_dnf_functions() + &remove
}

/// Reads the metadata anew, of one of our repositories or of all.
pub fn refresh_script(repository: Option<&str>) -> String {
    let only = repository.map(|name| {
        format!(
            " --disablerepo='*' --enablerepo={}",
            quote_for_shell(&format!("railwright-{name}"))
        )
    });
    format!(
        "{}unlocked d makecache --refresh{} || verdict\n",
        render_dnf_functions(),
        only.unwrap_or_default()
    )
}

/// Holds packages, or lets them go, by the versionlock plugin.
pub fn hold_script(names: &[String], hold: bool) -> String {
    let verb = if hold { "add" } else { "delete" };
    format!(
        "{}dnf versionlock --help </dev/null >/dev/null 2>&1 || say {UNAVAILABLE} 'the versionlock \
         plugin of dnf is not on this host; add the package python3-dnf-plugin-versionlock \
         to the spec (on Debian dnf-plugins-core)'\n\
         unlocked d versionlock {verb} {} || verdict\n",
        render_dnf_functions(),
        sh_words(names.iter().map(String::as_str))
    )
}
