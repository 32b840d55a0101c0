//! The `hardware` probe: what runs on a host and how its devices sit in it, read from sysfs without a tool of any vendor.

use crate::base::quote::sh_words;

/// `link DEVICE-FOLDER` says of a PCI function what `verify` judges; nothing where it is on no PCI bus. What the kernel does
/// not know of a link it calls `Unknown`.
const LINK: &str = r#"link() {
p=$(cd -P "$1" 2>/dev/null && pwd -P) || return 1
d=$p; while [ -n "$d" ]; do case ${d##*/} in *:*:*.[0-7]) break ;; esac; d=${d%/*}; done
[ -n "$d" ] || return 1
echo "path ${d#/sys/devices/}"
for k in numa_node current_link_speed max_link_speed current_link_width max_link_width; do
v=; { read -r v <"$d/$k"; } 2>/dev/null && echo "$k $v"
done
v=$(cd -P "$d/driver" 2>/dev/null && pwd -P) && echo "driver ${v##*/}"
}
"#;

/// A module that is built into the kernel has no `initstate`. Many kernels (Debian's) keep no srcversion: there the build id of
/// what runs, a note of 20 bytes behind a header of 16, is looked for in the installed file.
const MODULES: &str = r#"unpacked() {
case $1 in *.xz) t=xz ;; *.zst) t=zstd ;; *.gz) t=gzip ;; *) t= ;; esac
if [ -z "$t" ]; then cat "$1"; else command -v $t >/dev/null 2>&1 && $t -dc "$1"; fi
}
hex() { od -A n -v -t x1 | tr -d ' \n'; }
built() {
b=$(tail -c +17 "/sys/module/$1/notes/.note.gnu.build-id" 2>/dev/null | hex)
f=$(modinfo -n "$1" 2>/dev/null)
[ -n "$b" ] && [ -f "$f" ] || return 0
h=$(unpacked "$f" 2>/dev/null | head -c 4 | hex)
[ "$h" = 7f454c46 ] || return 0
echo "running build-id $b"
if unpacked "$f" 2>/dev/null | hex | grep -q "$b"; then echo "installed build-id $b"; else echo 'installed build-id another'; fi
}
"#;

const REST: &str = r#"for f in /sys/bus/pci/devices/*; do
v=; { read -r v <"$f/vendor"; } 2>/dev/null; [ "$v" = 0x10de ] || continue
c=; { read -r c <"$f/class"; } 2>/dev/null
case $c in 0x0300*|0x0302*) echo "@gpu ${f##*/}"; link "$f" ;; esac
done
echo @driver
v=; { read -r v <"/sys/module/nvidia/version"; } 2>/dev/null && echo "nvidia $v"
echo @routes
timeout 10 ip -j route show default 2>/dev/null
echo
exit 0
"#;

/// The script.
pub fn script(netdevs: &[String], modules: &[String]) -> String {
    let netdevs = sh_words(netdevs.iter().map(String::as_str));
    let modules = sh_words(modules.iter().map(String::as_str));
    format!(
        "{LINK}{MODULES}for m in {modules}; do\n\
         [ -e \"/sys/module/$m/initstate\" ] || continue\n\
         echo \"@module $m\"\n\
         for k in srcversion version; do\n\
         v=; {{ read -r v <\"/sys/module/$m/$k\"; }} 2>/dev/null && echo \"running $k $v\"\n\
         v=$(modinfo -F $k \"$m\" 2>/dev/null) && [ -n \"$v\" ] && echo \"installed $k $v\"\n\
         done\n\
         [ -e \"/sys/module/$m/srcversion\" ] || built \"$m\"\n\
         done\n\
         for n in {netdevs}; do\n\
         echo \"@nic $n\"; link \"/sys/class/net/$n/device\"\n\
         done\n{REST}"
    )
}
