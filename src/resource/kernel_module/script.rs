//! What `kernel_module` reads and does, as POSIX sh. Reading never loads a module: only files are
//! looked at.

use crate::complaint::{MISSING, SAY};
use crate::rights::RootAccessNeed;
use railwright_base::quote::{quote_for_shell, sh_words};
use std::collections::BTreeMap;

/// Its configuration files are the world's to read, unless somebody closed them.
pub fn list_module_access_needs() -> Vec<RootAccessNeed> {
    FOLDERS
        .iter()
        .map(|folder| RootAccessNeed::Folder(folder, ".conf"))
        .collect()
}

const FOLDERS: [&str; 10] = [
    "/etc/modules-load.d",
    "/run/modules-load.d",
    "/usr/local/lib/modules-load.d",
    "/usr/lib/modules-load.d",
    "/lib/modules-load.d",
    "/etc/modprobe.d",
    "/run/modprobe.d",
    "/usr/local/lib/modprobe.d",
    "/usr/lib/modprobe.d",
    "/lib/modprobe.d",
];

/// Records `word <tab> text`. A module of a link type takes its netdevs along, which have no
/// device, but a DEVTYPE (`SET_NETDEV_DEVTYPE` in drivers/net and net/8021q; dummy, team and vrf
/// have none, and are not seen here). `name` has `_`, as the kernel writes it; file names may have
/// `-` in its place. The shell itself looks where it can, and one `grep` looks through all files: a
/// host has many modules and settings that are asked for, and each program that is started costs it
/// a millisecond.
pub fn read_script(name: &str) -> String {
    let loose = name.replace('_', "[_-]");
    format!(
        "m={name}\n\
         k=; read -r k 2>/dev/null <\"$R/proc/sys/kernel/osrelease\"; printf 'kernel\\t%s\\n' \
         \"$k\"\n\
         while read -r n rest; do [ \"$n\" != \"$m\" ] || printf 'loaded\\t%s %s\\n' \"$n\" \
         \"$rest\"; done <\"$R/proc/modules\"\n\
         d=\"$R/lib/modules/$k\"\n\
         if grep -qs '/'{loose}'\\.ko' \"$d/modules.builtin\"; then echo builtin; fi\n\
         if grep -qs '^[^:]*/'{loose}'\\.ko' \"$d/modules.dep\"; then echo disk; fi\n\
         for f in \"$R/sys/module/$m/parameters\"/*; do\n\
         if [ -r \"$f\" ]; then v=; {{ IFS= read -r v <\"$f\"; }} 2>/dev/null || [ -n \"$v\" ] || \
         cat \"$f\" >/dev/null 2>&1 || {{ printf 'hidden\\t%s\\n' \"${{f##*/}}\"; continue; }}\n\
         printf 'parameter\\t%s\\t%s\\n' \"${{f##*/}}\" \"$v\"\n\
         elif [ -e \"$f\" ]; then printf 'hidden\\t%s\\n' \"${{f##*/}}\"; fi\n\
         done\n\
         case $m in 8021q) v=vlan ;; bonding) v=bond ;; \
         bridge|geneve|ipvlan|macvlan|vxlan|wireguard) v=$m ;; *) v= ;; esac\n\
         for n in \"$R\"/sys/class/net/*; do {{ [ ! \"$n/device/driver/module\" -ef \
         \"$R/sys/module/$m\" ] && {{ [ -z \"$v\" ] || ! grep -qsx \"DEVTYPE=$v\" \"$n/uevent\"; \
         }}; }} || printf 'netdev\\t%s\\n' \"${{n##*/}}\"; done\n\
         ! command -v update-initramfs >/dev/null && ! command -v dracut >/dev/null || for f in \
         \"$R\"/boot/init*; do [ ! -f \"$f\" ] || {{ echo ram_disk; break; }}; done\n\
         set --\n\
         for d in etc run usr/local/lib usr/lib lib; do\n\
         [ \"$d\" != lib ] || [ ! \"$R/lib\" -ef \"$R/usr/lib\" ] || continue\n\
         for w in boot:modules-load.d modprobe:modprobe.d; do for f in \"$R/$d/${{w#*:}}\"/*.conf; \
         do\n\
         if [ -e \"$f\" ] || [ -L \"$f\" ]; then printf '%s\\t%s\\t\\n' \"${{w%%:*}}\" \
         \"${{f#\"$R\"}}\"; set -- \"$@\" \"$f\"; fi\n\
         done; done; done\n\
         [ \"$#\" = 0 ] || grep -aHs -e {loose} \"$@\" | while IFS= read -r l; do printf \
         'line\\t%s\\n' \"${{l#\"$R\"}}\"; done\n\
         exit 0\n",
        name = quote_for_shell(name),
        loose = quote_for_shell(&loose),
    )
}

/// Loads the module. modprobe itself takes the options of modprobe.d.
pub fn load_script(name: &str, parameters: &BTreeMap<String, String>) -> String {
    let words: Vec<_> = parameters
        .iter()
        .map(|(key, value)| format!("{key}={value}"))
        .collect();
    let name = quote_for_shell(name);
    format!(
        "{SAY}e=$(modprobe {name} {} </dev/null 2>&1) && exit 0\n\
         printf '%s\\n' \"$e\" >&2\n\
         case $e in *'not found'*) say {MISSING} \"the kernel $(uname -r) has no module \"{name} \
         ;; esac\n\
         say 1 \"the module \"{name}\" does not load: $(printf %s \"$e\" | tail -n 1)\"\n",
        sh_words(words.iter().map(String::as_str))
    )
}

/// Unloads this module alone; the kernel refuses while it is used. A use by udev, which looks at
/// each device that a module brought, is over in a moment (`EWOULDBLOCK`, delete_module(2)): that
/// is waited for, and tried once more.
pub fn unload_script(name: &str) -> String {
    let name = quote_for_shell(name);
    format!(
        "{SAY}[ -d /sys/module/{name} ] || exit 0\n\
         e=$(rmmod {name} </dev/null 2>&1) && exit 0\n\
         if udevadm settle --timeout=20 </dev/null >/dev/null 2>&1; then e=$(rmmod {name} \
         </dev/null 2>&1) && exit 0; fi\n\
         printf '%s\\n' \"$e\" >&2\n\
         say 1 \"the module \"{name}\" does not unload: $(printf %s \"$e\" | tail -n 1)\"\n"
    )
}
