//! What `file` reads and does, as POSIX sh.

use super::found::CONTENT_LIMIT_BYTES;
use crate::complaint::{NOT_ROOTS, SAY};
use crate::read::quote_rooted_path;
use crate::rights::STAT_FORMAT;
use crate::shared::HERE;
use railwright_base::quote::quote_for_shell;

/// What `stat` printed with `STAT_FORMAT`, as the words `$1` to `$7` and as the first line of an
/// answer. An owner without a name is shown by number.
const TAKE_APART: &str = "set -f; IFS=/; set -- $s; unset IFS; set +f\n\
                          [ \"$#\" = 7 ] || exit 2\n\
                          u=$2; g=$3; [ \"$u\" != UNKNOWN ] || u=$4; [ \"$g\" != UNKNOWN ] || \
                          g=$5\n\
                          printf '%s %s %s %s %s' \"$1\" \"$u\" \"$g\" \"$6\" \"$7\"\n";

/// Bytes that travel as they are, in the words of tr: tab, line feed, carriage return, and what
/// ASCII prints.
const PLAIN: &str = r"\11\12\15\40-\176";

/// What the reads of all these files ask once: what they are in `$file_stats`, and which hold plain
/// text in `$file_plain`. Only GNU's grep is asked, which takes a file with NUL in it for what it
/// is, and leaves pipes and devices alone.
pub fn shared_script(paths: &[&str]) -> String {
    let paths: String = paths
        .iter()
        .map(|path| format!(" {}", quote_rooted_path(path)))
        .collect();
    format!(
        "file_stats=$(stat -c '{STAT_FORMAT}|%n' --{paths} 2>/dev/null)\n\
         case $(grep --version 2>/dev/null) in *GNU*) file_plain=$(grep -aLs -D skip -d skip \
         '[^\t\r -~]' --{paths}) ;; esac\n"
    )
}

/// A line `mode owner group size type[, encoding]`, then the content; exit 1 when there is nothing
/// at the path, with the deepest folder that is there. A link is not followed; what is not plain
/// ASCII comes as base64.
pub fn read_script(path: &str) -> String {
    format!(
        "{HERE}\n\
         f={path}\n\
         if [ ! -e \"$f\" ] && [ ! -L \"$f\" ]; then\n\
         d=${{f%/*}}; while [ -n \"$d\" ] && [ \"$d\" != \"$R\" ] && [ ! -d \"$d\" ]; do \
         d=${{d%/*}}; done\n\
         d=${{d#\"$R\"}}; printf 'folder %s\\n' \"${{d:-/}}\"; false\n\
         else (\n\
         l='\n\
         '; w=$l${{file_stats-}}$l\n\
         case $w in *\"|$f$l\"*) s=${{w%%\"|$f$l\"*}}; s=${{s##*\"$l\"}} ;; *) s=$(stat -c \
         {STAT_FORMAT} \"$f\") || exit 2 ;; esac\n\
         plain() {{ case $l${{file_plain-}}$l in *\"$l$f$l\"*) ;; *) [ \"$(tr -d '{PLAIN}' <\"$f\" \
         | wc -c)\" -eq 0 ] ;; esac; }}\n\
         {TAKE_APART}if [ -L \"$f\" ] || [ ! -f \"$f\" ]; then echo\n\
         elif [ \"$6\" -gt {CONTENT_LIMIT_BYTES} ]; then echo ', sha256'; sha256sum <\"$f\" | cut \
         -d' ' -f1\n\
         elif plain; then echo; cat \"$f\" || exit 3\n\
         else echo ', base64'; base64 <\"$f\" || exit 3\n\
         fi\n\
         ) fi\n",
        path = quote_rooted_path(path)
    )
}

/// Reads a file as [`read_script`] does, without rights: by lines of sudoers for `stat` and `cat`
/// of exactly this path, where it is root's alone. What stands above an absent file is not known
/// then.
pub fn read_script_for_others(path: &str) -> String {
    format!(
        "f={path}\n\
         if hid \"$f\" || {{ [ -f \"$f\" ] && [ ! -L \"$f\" ] && [ ! -r \"$f\" ]; }}; then\n\
         may cat \"$f\" && may stat -c {STAT_FORMAT} \"$f\" || {{ [ -z \"$secret\" ] || {{ lack \
         reads \"$f\"; exit 1; }}; lack reads \"$f\" \"$(line cat \"$f\")\"; exit 1; }}\n\
         s=$(root stat -c {STAT_FORMAT} \"$f\") || case $(root stat -c {STAT_FORMAT} \"$f\" 2>&1) \
         in *'No such file'*) exit 1 ;; *) exit 2 ;; esac\n\
         {TAKE_APART}case $7 in regular*) ;; *) echo; exit 0 ;; esac\n\
         if [ \"$6\" -gt {CONTENT_LIMIT_BYTES} ]; then echo ', sha256'; root cat \"$f\" | \
         sha256sum | cut -d' ' -f1\n\
         elif [ \"$(root cat \"$f\" | tr -d '\\11\\12\\15\\40-\\176' | head -c 1 | wc -c)\" -eq 0 \
         ]; then echo; root cat \"$f\" || exit 3\n\
         else echo ', base64'; root cat \"$f\" | base64 || exit 3\n\
         fi\n\
         exit 0\n\
         fi\n\
         {open}",
        path = quote_rooted_path(path),
        open = read_script(path),
    )
}

/// Temporary file in a folder of its own beside it, mode and owner set before the name appears,
/// synced, renamed. A file that is so already is left alone, and one of which only mode or owner
/// differ keeps its time ([`CONTENT_TIME`]): a new one would make services that watch it owe a
/// restart. `cat` writes, because dash's own `printf` calls a full disk an `I/O error`.
pub fn write_script(path: &str, content: &str, mode: &str, owner: &str, group: &str) -> String {
    replace_script(
        path,
        &format!("printf %s {} | cat", quote_for_shell(content)),
        mode,
        owner,
        group,
    )
}

/// Writes content that is no text, given as base64, as [`write_script`] does.
pub fn write_binary_script(
    path: &str,
    base64: &str,
    mode: &str,
    owner: &str,
    group: &str,
) -> String {
    replace_script(
        path,
        &format!("printf %s {} | base64 -d", quote_for_shell(base64)),
        mode,
        owner,
        group,
    )
}

/// `content_time FILE`: since when it has its content, in seconds since 1970. That is when it was
/// written or, if that is later, when the file came: what a package, rsync or tar brings is a new
/// file with an earlier time. The time of its last change of any sort (ctime) says less: a `chmod`
/// and the hard link of a backup set it. A file that is new by its mode or owner alone has one
/// nanosecond as the part of a second in its time, and is as old as that says.
pub const CONTENT_TIME: &str = r#"content_time() {
s=$(stat -L -c '%Y %W %y' "$1"); t=${s%% *}; s=${s#* }; b=${s%% *}
case $s in [!0-9]* | *".000000001 "*) ;; *) [ "$b" -le "$t" ] || t=$b ;; esac
echo "$t"
}
"#;

/// The content is a word of `printf`: where that is a program of its own and not part of the shell,
/// the content would show in the host's process list, and long ones would not fit.
pub const BUILT_IN: &str = "case $(command -v printf) in /*) echo 'the shell of this host has no \
                            printf of its own' >&2; exit 69 ;; esac\n";

/// Shell functions for folders in which others than root may make names, and so links to anywhere.
/// `into FOLDER` goes there part by part and makes what is missing, `into FOLDER stays` ends with
/// status 0 where something is; a link is followed only where root alone can have made it. `inside`
/// goes into a new folder of root's below, where nobody else exchanges a name, and takes it away at
/// the end. `roots NAME`: root alone makes this name here, or has made it where others make names
/// and exchange only their own (sticky): one that is not there can be anybody's in the next moment,
/// and a second name of a file of root's can be anybody's work. `foreign SENTENCE` leaves because
/// it is otherwise. `emptied FOLDER STOP` takes away this folder and those above it, up to and not
/// with the other, as long as they are empty.
pub fn folder_functions() -> String {
    format!("{SAY}foreign() {{ say {NOT_ROOTS} \"$*; nothing was changed\"; }}\n{INTO}")
}

const INTO: &str = r#"roots() {
case $(stat -c '%u %A' .) in
"$(id -u) d"????-??-?) ;;
"$(id -u) d"????????[tT]) [ "$(stat -c '%u %h' "./$1" 2>/dev/null)" = "$(id -u) 1" ] ;;
*) false ;;
esac
}
is_here() { [ "$(pwd -P)" = "$1" ] || foreign "$1 was exchanged while it was used"; }
into() {
cd /; r=$1/; links=0
while [ -n "$r" ]; do
p=${r%%/*}; r=${r#*/}; w=$(pwd -P)
case $p in ''|.) continue ;; ..) cd ..; continue ;; esac
if [ -L "./$p" ]; then
roots "$p" || foreign "${w%/}/$p is a link that another user can have made, and root does not follow it"
links=$((links+1)); [ "$links" -lt 40 ] || foreign "the links of $1 go round in a circle"
p=$(readlink "./$p"); r=$p/$r; case $p in /*) cd / ;; esac
continue
fi
if [ ! -d "./$p" ]; then [ -z "${2-}" ] || exit 0; mkdir "./$p"; fi
cd -P "./$p"; is_here "${w%/}/$p"
done
}
inside() {
w=$(pwd -P); d=$(mktemp -d ./.rwXXXXXX); cd -P "$d"; is_here "${w%/}/${d#./}"
roots . || foreign "$w/$d is not of root alone"
trap 'rm -f ./new; cd ..; rmdir "$d" 2>/dev/null || :' EXIT
}
emptied() {
d=$1
while [ -n "$d" ] && [ "$d" != "$2" ]; do
(into "${d%/*}" stays; rmdir "./${d##*/}") 2>/dev/null || [ ! -e "$d" ] || return 0
d=${d%/*}
done
}
"#;

/// The folder and the name in it of an absolute path, as words of the shell.
fn split_shell_path(path: &str) -> (String, String) {
    let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
    (
        quote_for_shell(if folder.is_empty() { "/" } else { folder }),
        quote_for_shell(name),
    )
}

fn replace_script(path: &str, producer: &str, mode: &str, owner: &str, group: &str) -> String {
    let (folder, name) = split_shell_path(path);
    format!(
        "(set -eu\n\
         {BUILT_IN}{CONTENT_TIME}{functions}into {folder}; inside; f=../{name}\n\
         {producer} >./new\n\
         chown {owner} ./new\n\
         chmod {mode} ./new\n\
         is_so() {{ [ \"$(stat -c '%a %u:%g' ./new)\" = \"$(stat -c '%a %u:%g' \"$f\")\" ] || {{ \
         touch -d \"@$(content_time \"$f\").000000001\" ./new 2>/dev/null || touch -r \"$f\" ./new; \
         false; }}; }}\n\
         if [ -f \"$f\" ] && [ ! -L \"$f\" ] && cmp -s ./new \"$f\" && is_so\n\
         then :; else\n\
         sync ./new 2>/dev/null || sync\n\
         mv -fT ./new \"$f\"\n\
         fi\n\
         )\n",
        functions = folder_functions(),
        mode = quote_for_shell(mode),
        owner = quote_for_shell(&format!("{owner}:{group}")),
    )
}

/// Removes the file, absent is fine, and then the folders above it up to, not with, `below`, as
/// long as they are empty.
pub fn remove_script(path: &str, below: Option<&str>) -> String {
    let (folder, name) = split_shell_path(path);
    let above = below.map(|below| {
        format!(
            "emptied {folder} {}\n",
            quote_for_shell(below.trim_end_matches('/'))
        )
    });
    format!(
        "(set -eu\n{}(into {folder} stays; rm -f ./{name})\n{})\n",
        folder_functions(),
        above.unwrap_or_default()
    )
}
