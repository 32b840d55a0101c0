//! What `netdev_name` reads and does, as POSIX sh.

use crate::complaint::{SAY, UNAVAILABLE};
use crate::link::owner;
use crate::rights::RootAccessNeed;
use crate::sections::SHELL;
use railwright_base::quote::quote_for_shell;

/// The place of our file. It sorts before all that distributions and netplan write: of the files
/// that match a NIC, udev applies the first one by name, and only that (systemd.link(5)).
pub fn build_link_file_path(name: &str) -> String {
    format!("{OWN}{name}.link")
}

/// How the paths of our files begin.
pub const OWN: &str = "/etc/systemd/network/00-railwright-";

/// Every netdev with its PCI function and MAC addresses; of the one that is meant what udev knows
/// of it, the file that udev applied to it (its other settings by name only: one of them is a
/// password), rules of others that name it, and who configures it by which name; our own file, and
/// whether initial RAM disks are newer than it.
///
/// A member of a bond shows the bond's MAC address, and keeps its own in `perm_hwaddr`.
pub fn read_script(device: &str, name: &str) -> String {
    format!(
        r#"{SHELL}d={device}; N={name}; n=; i=
for o in "$R"/sys/class/net/*; do [ -d "$o" ] || continue
a=; {{ read -r a <"$o/address"; }} 2>/dev/null
q=; {{ read -r q <"$o/bonding_slave/perm_hwaddr"; }} 2>/dev/null
p=$(cd -P "$o/device" 2>/dev/null && pwd -P)
while [ -n "$p" ]; do case ${{p##*/}} in *:??:??.?) break;; esac; p=${{p%/*}}; done; p=${{p##*/}}
printf 'netdev %s %s %s %s\n' "${{o##*/}}" "${{p:--}}" "${{a:--}}" "${{q:--}}"
[ -z "$p" ] || case $d in "$p"|"$a"|"$q") n=${{o##*/}}; m=${{q:-$a}};; esac
done
text own-link "$R{own}$N.link"
for k in "$R"/lib/modules/*; do for b in "$R/boot/initrd.img-${{k##*/}}" "$R/boot/initramfs-${{k##*/}}.img"; do [ -e "$b" ] || continue
command -v update-initramfs >/dev/null || command -v dracut >/dev/null || continue
s=older; [ "$b" -nt "$R{own}$N.link" ] && s=newer; printf '\n== ram-disk %s %s\n' "$s" "${{b#"$R"}}"; done; done
[ -n "$n" ] || exit 0
{{ read -r i <"$R/sys/class/net/$n/ifindex"; }} 2>/dev/null; u="$R/run/udev/data/n$i"
[ ! -f "$u" ] || {{ printf '\n== udev\n'; sed -n 's/^E:\(ID_PATH=\|ID_NET_LINK_FILE=\)/|\1/p' "$u"; }}
l=$(sed -n 's/^E:ID_NET_LINK_FILE=//p' "$u" 2>/dev/null)
[ -z "$l" ] || [ ! -f "$R$l" ] || {{ printf '\n== link-file %s\n' "$l"
sed -nE -e '/^[[:space:]]*Name=/{{' -e 's/^[[:space:]]*/|/p' -e d -e '}}' -e 's/^[[:space:]]*(\[[A-Za-z]+\]|[A-Za-z]+=).*$/|\1/p' "$R$l"; }}
printf '\n== rules\n'
grep -E '(^|[,[:space:]])NAME:?="' "$R"/etc/udev/rules.d/*.rules "$R"/run/udev/rules.d/*.rules /dev/null 2>/dev/null | grep -iF -e "$d" -e "$m" | sed 's/^/|/'
{managers}exit 0
"#,
        device = quote_for_shell(device),
        name = quote_for_shell(name),
        own = OWN,
        managers = owner::render_manager_reads(),
    )
}

/// Who configures a netdev is partly for root to see, and which netdev it is is not known
/// beforehand.
pub fn list_naming_access_needs() -> Vec<RootAccessNeed> {
    vec![
        RootAccessNeed::Folder("/etc/systemd/network", ".link"),
        RootAccessNeed::Folder("/run/systemd/network", ".network"),
        RootAccessNeed::Folder("/etc/netplan", ".yaml"),
        RootAccessNeed::Program(&["/usr/sbin/netplan"], vec!["get".to_owned()]),
        RootAccessNeed::Folder("/etc/network/interfaces.d", ""),
        RootAccessNeed::Sight("/etc/network/interfaces".to_owned()),
        RootAccessNeed::Folder("/run/NetworkManager/devices", ""),
        RootAccessNeed::Folder("/run/systemd/netif/links", ""),
    ]
}

/// Makes the initial RAM disks of all kernels anew: the next boot may be another kernel's.
pub fn update_script() -> String {
    format!(
        "{SAY}if command -v update-initramfs >/dev/null; then update-initramfs -u -k all \
         </dev/null\n\
         elif command -v dracut >/dev/null; then dracut --force --regenerate-all </dev/null\n\
         else say {UNAVAILABLE} 'neither update-initramfs nor dracut is on this host'; fi\n"
    )
}
