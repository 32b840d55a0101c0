//! What `sysctl` reads and does, as POSIX sh.

use super::settings::{FOLDERS, key_path};
use crate::complaint::{MISSING, SAY};
use crate::rights::{OPEN, RootAccessNeed};
use railwright_base::quote::quote_for_shell;

/// Some settings are root's alone (`net.core.bpf_jit_harden` is 0600), and so may be a file of
/// sysctl.d.
pub fn list_sysctl_access_needs(key: &str) -> Vec<RootAccessNeed> {
    let running = RootAccessNeed::Content(format!("/proc/sys/{}", key_path(key)));
    FOLDERS
        .iter()
        .map(|folder| RootAccessNeed::Folder(folder, ".conf"))
        .chain([running])
        .collect()
}

/// All files of sysctl.d, and their lines that are no comments, in `$sysctl_files`; `/lib` is most
/// often another name of `/usr/lib`, and is not read twice then.
fn files_script() -> String {
    let folders: Vec<_> = FOLDERS
        .iter()
        .map(|folder| folder.trim_start_matches('/'))
        .collect();
    format!(
        "[ -n \"${{sysctl_files+x}}\" ] || sysctl_files=$(\n\
         cd \"$R/\" || exit\n\
         set --\n\
         for d in {folders}; do\n\
         case $d in lib/*) [ \"$d\" -ef \"usr/$d\" ] 2>/dev/null && continue ;; esac\n\
         for f in \"$d\"/*.conf; do\n\
         if [ -e \"$f\" ] || [ -L \"$f\" ]; then printf 'file\t/%s\n\
         ' \"$f\"; set -- \"$@\" \"$f\"; fi\n\
         done; done\n\
         [ \"$#\" = 0 ] || grep -aHsv '^[[:space:]]*\\([#;]\\|$\\)' \"$@\" | sed 's|^|line\t/|'\n\
         )\n",
        folders = folders.join(" "),
    )
}

/// What the reads of all these keys ask once: the files, and the running values in
/// `$sysctl_values`. It takes a program: the shell itself would read one byte at a time, and many
/// settings answer the first read alone (Linux, kernel/sysctl.c: `*ppos && !write`).
pub fn shared_script(keys: &[&str]) -> String {
    let paths: Vec<String> = keys
        .iter()
        .map(|key| format!(" \"$R\"/proc/sys/{}", quote_for_shell(&key_path(key))))
        .collect();
    format!(
        "{}sysctl_values=$(grep -Hs ''{} /dev/null)\n",
        files_script(),
        paths.concat()
    )
}

/// `running <value>` or `none`, `unreadable`, or `denied <what> <line for sudoers>`; then every
/// file of sysctl.d, and the lines that can concern the key.
pub fn read_script(key: &str) -> String {
    let path = key_path(key);
    let last = path.rsplit('/').next().unwrap_or_default();
    format!(
        "{OPEN}{files}f=\"$R\"/proc/sys/{path}\n\
         l='\n\
         '\n\
         w=$l${{sysctl_values-}}\n\
         known() {{\n\
         case $w in *\"$l$f:\"*\"$l$f:\"*) return 1 ;; *\"$l$f:\"*) v=${{w#*\"$l$f:\"}}; \
         v=${{v%%\"$l\"*}} ;; *) return 1 ;; esac\n\
         }}\n\
         if [ ! -e \"$f\" ]; then echo none\n\
         elif ! mine \"$f\"; then printf 'denied\treads %s\t%s\n\
         ' \"$f\" \"$(line cat \"$f\")\"\n\
         elif known || v=$(get \"$f\"); then\n\
         case $v in *\"$l\"*) v=$(printf %s \"$v\" | tr '\\n' ' ') ;; esac\n\
         printf 'running\t%s\n\
         ' \"$v\"\n\
         else echo unreadable; fi\n\
         set -f; IFS=$l\n\
         for v in $sysctl_files; do\n\
         case $v in file*|line*{last}*|line*[][*?]*) printf '%s\n\
         ' \"$v\" ;; esac\n\
         done\n\
         exit 0\n",
        files = files_script(),
        path = quote_for_shell(&path),
        last = quote_for_shell(last),
    )
}

/// Writes the running value.
pub fn set_script(key: &str, value: &str) -> String {
    format!(
        "{SAY}f=/proc/sys/{path}\n\
         [ -e \"$f\" ] || say {MISSING} \"the kernel has no setting \"{key}\n\
         printf '%s\\n' {value} >\"$f\" || say 1 \"the kernel refused the value \"{value}\" for \
         \"{key}\n",
        path = quote_for_shell(&key_path(key)),
        key = quote_for_shell(key),
        value = quote_for_shell(value),
    )
}
