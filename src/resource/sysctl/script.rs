//! What `sysctl` reads and does, as POSIX sh.

use super::settings::{FOLDERS, key_path};
use crate::base::quote::sh;
use crate::resource::complaint::{MISSING, SAY};
use crate::resource::rights::{Need, OPEN};

/// Some settings are root's alone (`net.core.bpf_jit_harden` is 0600), and so may be a file of sysctl.d.
pub fn needs(key: &str) -> Vec<Need> {
    let running = Need::Content(format!("/proc/sys/{}", key_path(key)));
    FOLDERS.iter().map(|folder| Need::Folder(folder, ".conf")).chain([running]).collect()
}

/// `running <value>` or `none`, `unreadable`, or `denied <what> <line for sudoers>`; then every file of sysctl.d, and the lines that can concern the key.
/// One `grep` looks through all of them; `/lib` is most often another name of `/usr/lib`, and is not read twice then.
pub fn read_script(key: &str) -> String {
    let path = key_path(key);
    let last = path.rsplit('/').next().unwrap_or_default();
    let folders: Vec<_> = FOLDERS.iter().map(|folder| folder.trim_start_matches('/')).collect();
    format!(
        "{OPEN}f=\"$R\"/proc/sys/{path}\n\
         if [ ! -e \"$f\" ]; then echo none\n\
         elif ! mine \"$f\"; then printf 'denied\treads %s\t%s\n' \"$f\" \"$(line cat \"$f\")\"\n\
         elif v=$(get \"$f\"); then\n\
         case $v in *'\t'*|*'\n'*) v=$(printf %s \"$v\" | tr '\\t\\n' '  ') ;; esac\n\
         printf 'running\\t%s\\n' \"$v\"\n\
         else echo unreadable; fi\n\
         cd \"$R/\" || exit 2\n\
         set --\n\
         for d in {folders}; do\n\
         case $d in lib/*) [ \"$d\" -ef \"usr/$d\" ] 2>/dev/null && continue ;; esac\n\
         for f in \"$d\"/*.conf; do\n\
         if [ -e \"$f\" ] || [ -L \"$f\" ]; then printf 'file\\t/%s\\n' \"$f\"; set -- \"$@\" \"$f\"; fi\n\
         done; done\n\
         [ \"$#\" = 0 ] || grep -aHs -e {last} -e '[][*?]' \"$@\" | while IFS= read -r l; do printf 'line\\t/%s\\n' \"$l\"; done\n\
         exit 0\n",
        path = sh(&path),
        folders = folders.join(" "),
        last = sh(last),
    )
}

/// Writes the running value.
pub fn set_script(key: &str, value: &str) -> String {
    format!(
        "{SAY}f=/proc/sys/{path}\n\
         [ -e \"$f\" ] || say {MISSING} \"the kernel has no setting \"{key}\n\
         printf '%s\\n' {value} >\"$f\" || say 1 \"the kernel refused the value \"{value}\" for \"{key}\n",
        path = sh(&key_path(key)),
        key = sh(key),
        value = sh(value),
    )
}
