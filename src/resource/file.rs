//! `file`: a whole file with its content, mode and owner.

use crate::base::quote::sh;
use crate::resource::read::rooted;

/// A line `mode owner group size type`, then the content; exit 1 when there is nothing at the path.
pub fn read_script(path: &str) -> String {
    format!(
        "f={path}; [ -e \"$f\" ] || [ -L \"$f\" ] || exit 1\nstat -c '%a %U %G %s %F' \"$f\" || exit 2\nif [ -f \"$f\" ]; then cat \"$f\" || exit 3; fi\n",
        path = rooted(path)
    )
}

/// Temporary file in the same folder, mode and owner set before the name appears, synced, renamed.
pub fn write_script(path: &str, content: &str, mode: &str, owner: &str, group: &str) -> String {
    let folder = path.rsplit_once('/').map_or("/", |(folder, _)| if folder.is_empty() { "/" } else { folder });
    format!(
        "set -eu\nf={path}\nmkdir -p {folder}\nt=$(mktemp \"$f.rwXXXXXX\")\ntrap 'rm -f \"$t\"' EXIT\nprintf %s {content} >\"$t\"\nchmod {mode} \"$t\"\nchown {owner} \"$t\"\nsync \"$t\" 2>/dev/null || sync\nmv -f \"$t\" \"$f\"\ntrap - EXIT\n",
        path = sh(path),
        folder = sh(folder),
        content = sh(content),
        mode = sh(mode),
        owner = sh(&format!("{owner}:{group}")),
    )
}

/// Mode and owner of a file that is there.
pub fn mode_script(path: &str, mode: &str, owner: &str, group: &str) -> String {
    format!("set -eu\nchmod {} {path}\nchown {} {path}\n", sh(mode), sh(&format!("{owner}:{group}")), path = sh(path))
}

/// Removes the file; absent is fine.
pub fn remove_script(path: &str) -> String {
    format!("rm -f {}\n", sh(path))
}
