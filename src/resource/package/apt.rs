//! The calls of apt, as POSIX sh.
//!
//! A name is a name: a pattern that stands for many packages is not looked for (apt-get(8)).
//! Nothing is asked, recommended packages stay out, configuration files that were changed stay as
//! they are, and needrestart restarts nothing behind our back. The script comes on stdin, so every
//! program gets `</dev/null`, or it would eat the rest.

use crate::action::PackageVersion;
use crate::complaint::{KILLED, LOCKED, MISSING, NOT_TRUSTED, SAY};
use crate::package::release::{self, UNLOCKED};
use railwright_base::quote::{quote_for_shell, sh_words};

/// Shell functions: `apt WORDS` runs apt-get, which waits for no lock, and keeps its stderr;
/// `verdict` turns its failure into a sentence; `taken WORDS` names what apt-get would take away,
/// and `going NAMES` what it would with these. What it does not say it fails for: its caches are
/// replaced by every update beside it.
fn render_apt_functions() -> String {
    format!(
        r#"{SAY}{UNLOCKED}set -u
DEBIAN_FRONTEND=noninteractive; NEEDRESTART_SUSPEND=1; APT_LISTCHANGES_FRONTEND=none; UCF_FORCE_CONFFOLD=1
export DEBIAN_FRONTEND NEEDRESTART_SUSPEND APT_LISTCHANGES_FRONTEND UCF_FORCE_CONFFOLD
native=$(dpkg --print-architecture 2>/dev/null)
e=$(mktemp); trap 'rm -f "$e"' EXIT
apt() {{
 apt-get -y -q -o DPkg::Lock::Timeout=0 -o Dpkg::Options::=--force-confold -o APT::Cmd::Pattern-Only=true -o APT::Install-Recommends=false -o APT::Get::AutomaticRemove=false "$@" </dev/null 2>"$e"; rc=$?
 cat "$e" >&2; return "$rc"
}}
is_locked() {{ grep -q -e 'Could not get lock' -e 'Unable to acquire' -e 'Unable to lock' "$e"; }}
taken() {{
 n=0
 until t=$(LC_ALL=C apt-get -s -q -o APT::Cmd::Pattern-Only=true -o APT::Install-Recommends=false -o APT::Get::AutomaticRemove=false "$@" </dev/null 2>"$e"); do
  rc=$?
  [ "$n" -lt 5 ] && ! grep -q -e 'Unable to locate' -e 'was not found' -e 'no installation candidate' "$e" || return "$rc"
  n=$((n+1)); sleep 1
 done
 printf '%s\n' "$t" | sed -n -e 's/^Remv \([^ ]*\).*/\1/p' -e 's/^Purg \([^ ]*\).*/\1/p'
}}
going() {{ taken remove "$@"; }}
verdict() {{
 if is_locked; then
  h=$(sed -n 's/.*held by process \([0-9]*\) (\([^)]*\)).*/pid \1 (\2)/p' "$e" | head -n 1)
  [ -n "$h" ] || h="another program ($(sed -n 's/^E: //p' "$e" | head -n 1))"
  say {LOCKED} "the package manager is locked by $h; nothing was changed"
 fi
 m=$(sed -n -e 's/^E: Unable to locate package \(.*\)/no package \1 in the repositories of this host/p' \
  -e "s/^E: Version '\(.*\)' for '\(.*\)' was not found/no version \1 of package \2 in the repositories of this host/p" \
  -e "s/^E: Package '\(.*\)' has no installation candidate/no version of package \1 can be installed from the repositories of this host/p" "$e" | head -n 1)
 [ -z "$m" ] || say {MISSING} "$m"
 m=$(sed -n -e 's/^[EW]: \(.*is not signed.*\)/\1/p' -e 's/^[EW]: \(.*\(NO_PUBKEY\|EXPKEYSIG\|BADSIG\|REVKEYSIG\).*\)/\1/p' "$e" | head -n 1)
 [ -z "$m" ] || say {NOT_TRUSTED} "$m"
 # 128 and more is a signal, of which the shell tells by the status alone
 [ "$rc" -le 128 ] || say {KILLED} "apt-get was killed by signal $((rc-128)) before its end; what it left half installed is fixed first when the step is done again (dpkg --configure -a)"
 m=$(sed -n 's/^E: //p' "$e" | head -n 1)
 say "$rc" "${{m:-apt-get ended with status $rc}}"
}}
[ -z "$(dpkg --audit 2>/dev/null)" ] || dpkg --configure -a --force-confold </dev/null || true
"#
    )
}

fn format_apt_package(package: &PackageVersion) -> String {
    match &package.version {
        Some(version) => format!("{}={version}", package.name),
        None => package.name.clone(),
    }
}

/// Installs; when a package is not known or an archive is gone, the lists are read anew once. It
/// leaves before anything is done where apt would take away a package that we did not bring, by the
/// host's record: be it somebody's, a dependency, or one that was there before us.
pub fn install_script(packages: &[PackageVersion]) -> String {
    let words: Vec<_> = packages.iter().map(format_apt_package).collect();
    let words = sh_words(words.iter().map(String::as_str));
    // a pinned version may be older than what is there, and we take our own hold off before
    format!(
        r#"{prelude}{asked}{spare}unknown() {{ rc=100; echo "E: $1" >"$e"; }}
i() {{
 # a name that only others provide would bring one of them, and one of nobody with a plus at its end the one without
 for p in {bare}; do
  # apt-cache takes a name of nobody for a pattern, and leaves the architecture of the host out
  case $(LC_ALL=C apt-cache policy "$p" </dev/null 2>/dev/null | awk -v a="$p:" -v b="${{p%%:*}}:" '$0 == a || $0 == b {{ is = 1 }} is && $1 == "Candidate:" {{ print $2; exit }}') in
  '') unknown "Unable to locate package $p"; return 100 ;;
  '(none)') unknown "Package '$p' has no installation candidate"; return 100 ;;
  esac
 done
 spare || return 100; apt install --allow-downgrades {words}
}}
unlocked i || {{ grep -q -e 'Unable to locate' -e 'was not found' -e 'no installation candidate' -e '404 ' "$e" && unlocked apt update && unlocked i; }} || verdict
"#,
        prelude = render_apt_functions(),
        bare = sh_words(
            packages
                .iter()
                .filter(|package| package.version.is_none())
                .map(|package| package.name.as_str())
        ),
        asked = release::ask_again_script(packages.iter().map(|package| package.name.as_str())),
        spare =
            release::replace_only_ours("apt", &format!("taken install --allow-downgrades {words}")),
    )
}

/// Removes these packages, of those that we brought, that nothing else needs, and nothing beside
/// them. The others become dependencies. With `purge` the configuration goes too, unless it was
/// changed or the package has a script for that, which may delete more, as those of databases do.
pub fn release_script(names: &[String], purge: bool) -> String {
    let (clean, purge) = if purge { (CLEAN, PURGE) } else { ("", "") };
    format!(
        r#"{}mark() {{ apt-mark auto "$1" </dev/null >/dev/null || say 1 "apt-mark auto $1 ended with an error"; }}
release() {{
{clean} apt remove "$@"
}}
{}{purge}"#,
        render_apt_functions(),
        release::release_unneeded_script(names, "release")
    )
}

/// Those among `$@` of which purging takes away nothing but what came with them: no script of
/// theirs runs after it.
const CLEAN: &str = r#" clean=
 for p; do
  [ -n "$(dpkg-query --control-path "$p" postrm 2>/dev/null)" ] || [ -n "$(dpkg --verify "$p" 2>/dev/null)" ] || clean="$clean $p"
 done
"#;

/// Purges those of `$clean` that are still gone: one that somebody brought again since is theirs.
const PURGE: &str = r#"purge() {
 set --
 for p in ${clean:-}; do
  case $(dpkg-query -W -f '${db:Status-Abbrev}' "$p" 2>/dev/null) in ?c?) set -- "$@" "$p" ;; esac
 done
 [ "$#" = 0 ] || apt purge "$@"
}
unlocked purge || verdict
"#;

/// Removes. It leaves before anything is done where a package beside these would go.
pub fn remove_script(names: &[String]) -> String {
    let remove = release::remove_alone_script("apt", names, "apt remove");
    render_apt_functions() + &remove
}

/// Reads the lists anew, of one of our repositories (so that a stranger's broken one does not stop
/// us) or of all. One of ours beside which apt reads no list any more gives way to the one whose
/// lists were read last (`.save`, which apt passes over), or is taken away again: two files that
/// give one repository two keys stop apt as a whole. Which of them does, a folder of links tells,
/// so that whatever kills this leaves a source there.
pub fn refresh_script(repository: Option<&str>) -> String {
    let Some(name) = repository else {
        return format!("{}unlocked apt update || verdict\n", render_apt_functions());
    };
    let source = quote_for_shell(&crate::package_repository::apt_sources_path(name));
    format!(
        r#"{}f={source}
lists() {{ LC_ALL=C apt-get "$@" indextargets </dev/null 2>"$e" >/dev/null; }}
if [ -f "$f" ] && ! lists; then
 m=$(sed -n 's/^E: //p' "$e" | head -n 1)
 d=$(mktemp -d); trap 'rm -rf "$e" "$d"' EXIT
 for s in "${{f%/*}}"/*; do [ "$s" = "$f" ] || ln -s "$s" "$d"; done
 if lists -o Dir::Etc::sourceparts="$d"; then
  w='ours was taken away again'
  if [ -f "$f.save" ] && ln -s "$f.save" "$d/${{f##*/}}" && lists -o Dir::Etc::sourceparts="$d"; then
   w='ours of before was put back'; mv -f "$f.save" "$f"; cp -p "$f" "$f.save"
  else rm -f "$f"; fi
  say 1 "another file names this repository to apt, with another key; $w, since apt reads neither: $m"
 fi
fi
unlocked apt update -o Dir::Etc::sourcelist="$f" -o Dir::Etc::sourceparts=- -o APT::Get::List-Cleanup=0 || verdict
cp -p "$f" "$f.save" || say 1 "$f.save could not be written"
"#,
        render_apt_functions()
    )
}

/// Holds packages, or lets them go.
pub fn hold_script(names: &[String], hold: bool) -> String {
    let verb = if hold { "hold" } else { "unhold" };
    format!(
        "apt-mark {verb} {} </dev/null\n",
        sh_words(names.iter().map(String::as_str))
    )
}
