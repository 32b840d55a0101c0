//! What a read may need root for, as data: where a host keeps something for root alone, a user
//! without rights either has a line in sudoers for the exact command, or the answer is unknown and
//! says what is missing. It is never `absent`.

use super::Read;
use super::answers::{AnswerStatus, ReadResult};
use railwright_base::text::one_line;
use std::collections::BTreeSet;

/// Something that a read looks at and that a host may keep for root.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum RootAccessNeed {
    /// The content of this file.
    Content(String),
    /// Content, mode and owner of this file.
    File(String),
    /// A file that may hold a secret: no line of sudoers gives it away.
    Secret(String),
    /// The names in a folder and the files in it that end so. Nobody knows the names beforehand, so
    /// there is no exact line.
    Folder(&'static str, &'static str),
    /// Whether there is anything at this path.
    Sight(String),
    /// What a program says. The places where it may lie, and its words.
    Program(&'static [&'static str], Vec<String>),
    /// Something of which only its author knows what it needs.
    Root(String),
}

/// What `stat` is asked of a file as root: no character in it needs a backslash in sudoers, and no
/// name can hold a slash.
pub const STAT_FORMAT: &str = "%a/%U/%G/%u/%g/%s/%F";

/// Folders in which root alone makes names, and all below them (hier(7), file-hierarchy(7),
/// sysfs(5), proc_sys(5)): a link that somebody else made would lead `cat` to any file of the host.
/// Everything else is left out: below /var, /opt, /srv and /mnt folders belong to the services and
/// users that keep their data there, most of /run is the services' too, and /proc/self/root is
/// another name of every file. `/usr/tmp` is `/var/tmp` on RHEL and its kin (package `filesystem`),
/// and `/usr/local` is open to a group on Debian (policy 9.1.2).
const OF_ROOT: [&str; 13] = [
    "/boot/",
    "/etc/",
    "/lib/",
    "/proc/sys/",
    "/root/",
    "/run/systemd/network/",
    "/sys/",
    "/usr/bin/",
    "/usr/lib/",
    "/usr/lib64/",
    "/usr/sbin/",
    "/usr/share/",
    "/usr/src/",
];

impl RootAccessNeed {
    /// The exact commands that a line of sudoers may name for it.
    pub fn commands(&self) -> Vec<Vec<String>> {
        let mut commands: Vec<Vec<String>> = Vec::new();
        match self {
            RootAccessNeed::Content(path) => {
                commands.push(["/usr/bin/cat", path.as_str()].map(str::to_owned).into());
            }
            RootAccessNeed::File(path) => {
                commands.push(["/usr/bin/cat", path.as_str()].map(str::to_owned).into());
                let stat = ["/usr/bin/stat", "-c", STAT_FORMAT, path.as_str()];
                commands.push(stat.map(str::to_owned).into());
            }
            RootAccessNeed::Program(places, arguments) => {
                for place in *places {
                    let mut command = vec![(*place).to_owned()];
                    command.extend_from_slice(arguments);
                    commands.push(command);
                }
            }
            RootAccessNeed::Secret(_)
            | RootAccessNeed::Folder(..)
            | RootAccessNeed::Sight(_)
            | RootAccessNeed::Root(_) => {}
        }
        commands.retain(|command| is_exact(command));
        commands
    }

    /// Says so before the section begins, where what it looks at cannot be seen at all.
    fn look(&self) -> String {
        use railwright_base::quote::quote_for_shell;
        match self {
            RootAccessNeed::Folder(path, suffix) => format!(
                "look \"$R\"{} {}\n",
                quote_for_shell(path),
                quote_for_shell(suffix)
            ),
            RootAccessNeed::Sight(path) => {
                format!("! hid \"$R\"{0} || lack reads {0}\n", quote_for_shell(path))
            }
            RootAccessNeed::Secret(_) => "may() { return 1; }; secret=1\n".to_owned(),
            RootAccessNeed::Root(what) => format!("lack runs {}\n", quote_for_shell(what)),
            RootAccessNeed::Content(_) | RootAccessNeed::File(_) | RootAccessNeed::Program(..) => {
                String::new()
            }
        }
    }
}

/// sudo compares words joined by spaces, with wildcards: only a word in which nothing has a meaning
/// of its own is exact.
fn is_exact(command: &[String]) -> bool {
    for (at, word) in command.iter().enumerate() {
        let is_plain = word
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "/._-+@%:".contains(c));
        let is_safe = at == 0 || !word.starts_with('/') || is_in_folder_of_root(word);
        if word.is_empty() || !is_plain || !is_safe {
            return false;
        }
    }
    true
}

fn is_in_folder_of_root(path: &str) -> bool {
    OF_ROOT.iter().any(|folder| path.starts_with(folder))
        && path.split('/').all(|part| part != "..")
}

/// What reads may need root for, each once.
pub fn collect_root_access_needs<'r>(
    reads: impl IntoIterator<Item = &'r Read>,
) -> BTreeSet<RootAccessNeed> {
    reads.into_iter().flat_map(Read::needs).collect()
}

/// The section of a read for a user without rights: what cannot be read is reported first, and ends
/// it.
pub fn render_unprivileged_section(read: &Read) -> String {
    let looks: String = read.needs().iter().map(RootAccessNeed::look).collect();
    format!(
        "exec 5>&1; eval \"$RAILWRIGHT_READ_ONLY\"\n{looks}[ -z \"$lacks\" ] || exit 1\n{}",
        read.script_for_others()
    )
}

macro_rules! open_functions {
    () => {
        "[ -n \"${RAILWRIGHT_READ_ONLY-}\" ] || { has() { [ -f \"$1\" ]; }; get() { cat \"$1\"; }; \
         lined() { sed 's/^/|/' \"$1\"; }; as() { \"$@\"; }; only() { \"$@\"; }; open() { :; }; \
         mine() { :; }; }\n"
    };
}
pub(super) use open_functions;

/// In a script that may run without rights: `has FILE` is true when it is there, `get FILE` is its
/// content, `lined FILE` the same with `|` before each line, `as PROGRAM WORDS...` what a program
/// says, `only PROGRAM WORDS...` what one says that means nothing to others, `mine FILE` is true
/// when `get` would give it, and `open FILES...` when all can be read. For root these are what they
/// look like; `WITHOUT_RIGHTS` has the other ones.
pub const OPEN: &str = open_functions!();

/// The functions of `OPEN` without rights. Each tries as itself first, then by a line of sudoers
/// that says exactly this; what neither can read is reported on descriptor 5, behind the nonce of
/// the program.
///
/// `hid PATH`: some folder above it may not be looked into, so that nothing can be said of what is
/// there.
pub const WITHOUT_RIGHTS: &str = r#"lacks= secret=
hid() {
case $1 in /*) ;; *) return 1 ;; esac
h_=; r_=${1#/}
while :; do
case $r_ in */*) h_=$h_/${r_%%/*}; r_=${r_#*/} ;; *) return 1 ;; esac
if [ -d "$h_" ]; then [ -x "$h_" ] || return 0
elif [ -L "$h_" ] && [ ! -e "$h_" ]; then return 0
else return 1; fi
done
}
lack() { printf '\n@%s denied %s %s\t%s\n' "$RAILWRIGHT_NONCE" "$1" "$2" "$3" >&5; lacks=1; return 1; }
may() { [ -n "$RAILWRIGHT_SUDO" ] || return 1; p_=$(command -v "$1") || return 1; shift; sudo -n -l -- "$p_" "$@" >/dev/null 2>&1; }
root() { p_=$(command -v "$1"); shift; sudo -n -- "$p_" "$@"; }
line() { p_=$(command -v "$1" || echo "$1"); shift; printf %s "$p_"; [ "$#" = 0 ] || printf ' %s' "$@"; }
shut() { hid "$1" || { [ -f "$1" ] && [ ! -r "$1" ]; } || { [ -L "$1" ] && [ ! -e "$1" ] && hid "$(readlink "$1")"; }; }
has() {
shut "$1" || { [ -f "$1" ]; return; }
may cat "$1" || { lack reads "$1" "$(line cat "$1")"; return 1; }
root cat "$1" >/dev/null 2>&1
}
get() {
shut "$1" || { cat "$1"; return; }
if may cat "$1"; then root cat "$1"; else lack reads "$1" "$(line cat "$1")"; fi
}
lined() { get "$1" | sed 's/^/|/'; }
as() {
o_=$("$@" 2>&1); c_=$?
if [ "$c_" -ne 0 ]; then
if may "$@"; then root "$@"; return; fi
case $o_ in *ermission*|*'not permitted'*|*uperuser*|*'be root'*|*'as root'*|*uthoriz*) lack runs "$*" "$(line "$@")" ;; esac
fi
[ -z "$o_" ] || printf '%s\n' "$o_"
return "$c_"
}
only() { if may "$@"; then root "$@"; else lack runs "$*" "$(line "$@")"; fi; }
mine() { ! shut "$1" || may cat "$1"; }
open() { for f_ in "$@"; do ! shut "$f_" || return 1; done; }
look() {
if hid "$1/x" || { [ -d "$1" ] && [ ! -r "$1" ]; }; then lack reads "$1"; return; fi
for f_ in "$1"/*"$2"; do ! shut "$f_" || lack reads "$f_"; done
}
"#;

/// The answer of a section that reported lacking rights.
pub fn build_denied_answer(told: &[String]) -> ReadResult {
    ReadResult {
        status: AnswerStatus::Denied,
        out: told.iter().map(|line| format!("{line}\n")).collect(),
    }
}

/// What an API server refuses, in words; its answer is the rule that is missing.
pub fn of_role(out: &str) -> String {
    format!("no role of ours allows it: {}", one_line(out, 200))
}

/// What is missing, in words that fit after "unknown:".
pub fn describe_denied_access(out: &str) -> String {
    let told: BTreeSet<&str> = out.lines().filter(|line| !line.trim().is_empty()).collect();
    let mut words: Vec<String> = told
        .iter()
        .take(3)
        .map(|told| match told.split_once('\t') {
            Some((what, line)) if !line.is_empty() => format!("{what} (line for sudoers: {line})"),
            Some((what, _)) => what.to_owned(),
            None => (*told).to_owned(),
        })
        .map(|told| format!("only root {}", one_line(&told, 300)))
        .collect();
    if told.len() > words.len() {
        words.push(format!("and {} more", told.len() - words.len()));
    }
    if words.is_empty() {
        "only root reads it".to_owned()
    } else {
        words.join("; ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn has_a_line(path: &str) -> bool {
        !RootAccessNeed::Content(path.to_owned())
            .commands()
            .is_empty()
    }

    #[test]
    fn a_line_of_sudoers_names_a_file_only_where_root_alone_makes_names() {
        for path in [
            "/boot/grub/grub.cfg",
            "/etc/a.conf",
            "/lib/systemd/system/a.service",
            "/proc/sys/net/core/bpf_jit_harden",
            "/root/.profile",
            "/run/systemd/network/10-netplan-eth0.network",
            "/sys/class/net/eth0/device/config",
            "/usr/lib/a",
        ] {
            assert!(has_a_line(path), "{path}");
        }
        for path in [
            "/dev/shm/a",
            "/etc",
            "/etc/../tmp/a",
            "/etcetera/a",
            "/home/a/b",
            "/mnt/a",
            "/opt/a/b",
            "/proc/self/root/tmp/c",
            "/proc/sys/../self/root/tmp/c",
            "/run/lock/a",
            "/run/systemd/resolve/a",
            "/run/user/1000/b",
            "/srv/a",
            "/tmp/a",
            "/usr/local/etc/a",
            "/usr/tmp/a",
            "/var/lib/a/b",
            "/var/lock/a",
            "/var/run/user/1000/b",
            "/var/spool/a",
            "/var/tmp/a",
            "//tmp/a",
        ] {
            assert!(!has_a_line(path), "{path}");
        }
    }

    #[test]
    fn every_file_that_a_read_of_our_own_may_need_root_for_has_a_line() {
        let device = Read::PciDevice {
            device: "eth0".to_owned(),
        };
        let manager = Read::LinkManager {
            netdev: "eth0".to_owned(),
        };
        let layers = Read::LinkLayers {
            netdev: "eth0".to_owned(),
        };
        let sysctl = Read::Sysctl {
            key: "net.core.rmem_max".to_owned(),
        };
        let packages = Read::Packages {
            names: vec!["a".to_owned()],
        };
        let all = collect_root_access_needs([
            &Read::Boot,
            &device,
            &manager,
            &layers,
            &sysctl,
            &packages,
        ]);
        let files: Vec<&RootAccessNeed> = all
            .iter()
            .filter(|need| matches!(need, RootAccessNeed::Content(_) | RootAccessNeed::File(_)))
            .collect();
        assert!(files.len() >= 11, "positive control: {files:?}");
        for need in files {
            assert!(!need.commands().is_empty(), "{need:?}");
        }
    }
}
