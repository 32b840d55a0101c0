//! What a host is made of, read from sysfs and procfs: no vendor's tool, and hardly a program
//! beside the shell itself.

use crate::sections::SHELL;

/// How many GIDs of a port are looked at: new ones take the lowest free slot, and a ConnectX has
/// 255 of them a port.
const GIDS: u32 = 16;

/// Which machine it is, and what its setup program offers: the beginning of the section `platform`.
/// `say KEY FILE` sends the first line of a file.
const PLATFORM: &str = r#"say() { v=; { read -r v <"$R$2"; } 2>/dev/null; [ -z "$v" ] || printf '|%s=%s\n' "$1" "$v"; }
printf '\n== platform\n'
for a in sys_vendor product_name bios_vendor bios_version bios_date; do say "$a" "/sys/class/dmi/id/$a"; done
sed -n '/^$/q; s/^vendor_id[[:space:]]*: */|processor_vendor=/p' "$R/proc/cpuinfo" 2>/dev/null
[ -d "$R/sys/firmware/acpi/tables" ] && echo '|acpi=1'
for t in DMAR IVRS IORT; do [ -e "$R/sys/firmware/acpi/tables/$t" ] && printf '|iommu_table=%s\n' "$t"; done
[ -d "$R/sys/kernel/iommu_groups" ] && echo '|iommu_known=1'
[ -d "$R/sys/kernel/iommu_groups/0" ] && echo '|iommu_groups=1'
"#;

/// The platform alone.
pub fn platform_script() -> String {
    format!("{PLATFORM}echo; echo '== end'\n")
}

/// One section for the platform, one for each PCI function of a class that a fabric rests on, each
/// RDMA port, and for the GPUs as their driver reports them.
pub fn read_script() -> String {
    format!(
        r#"{PLATFORM}sed -n '/^$/q; s/^model name[[:space:]]*: */|processor=/p; s/^microcode[[:space:]]*: */|microcode=/p' "$R/proc/cpuinfo" 2>/dev/null
say processors_online /sys/devices/system/cpu/online; say smt /sys/devices/system/cpu/smt/control; say numa_nodes /sys/devices/system/node/online
say memory_block_bytes /sys/devices/system/memory/block_size_bytes
set -- "$R"/sys/devices/system/memory/memory[0-9]*; [ -d "$1" ] && printf '|memory_blocks=%s\n' $#
say nvidia_driver /sys/module/nvidia/version
for f in "$R"/sys/bus/pci/devices/*; do
c=; {{ read -r c <"$f/class"; }} 2>/dev/null || continue
w=; {{ read -r w <"$f/vendor"; }} 2>/dev/null
case $c$w in 0x02*|0x03*|0x0680*0x10de) ;; *) continue ;; esac
[ -e "$f/physfn" ] && continue
a=${{f##*/}}; d=/sys/bus/pci/devices/$a
printf '\n== pci %s\n|class=%s\n|vendor=%s\n' "$a" "$c" "$w"
for k in device numa_node current_link_speed current_link_width max_link_speed max_link_width sriov_totalvfs; do say "$k" "$d/$k"; done
p=$(cd -P "$f" 2>/dev/null && pwd -P); case $p in */sys/devices/*) printf '|path=%s\n' "${{p#*/sys/devices/}}" ;; esac
p=$(cd -P "$f/driver" 2>/dev/null && pwd -P) && printf '|driver=%s\n' "${{p##*/}}"
for n in "$f"/net/* "$f"/virtio*/net/*; do [ -d "$n" ] && printf '|netdev=%s\n' "${{n##*/}}"; done
for n in "$f"/virtfn*/net/*; do [ -d "$n" ] && printf '|virtual=%s\n' "${{n##*/}}"; done
done
for d in "$R"/sys/class/infiniband/*; do [ -d "$d/ports" ] || continue
n=/sys/class/infiniband/${{d##*/}}
printf '\n== rdma %s\n' "${{d##*/}}"
for k in fw_ver board_id; do say "$k" "$n/$k"; done
for q in "$d"/ports/*; do [ -d "$q" ] || continue
p=$n/ports/${{q##*/}}
printf '\n== port %s\n' "${{q##*/}}"
for k in state rate link_layer; do say "$k" "$p/$k"; done
i=0; while [ $i -lt {GIDS} ]; do
g=; {{ read -r g <"$q/gids/$i"; }} 2>/dev/null || break
case $g in 0000:0000:0000:0000:0000:ffff:*) t=; {{ read -r t <"$q/gid_attrs/types/$i"; }} 2>/dev/null; printf '|gid_ipv4=%s %s\n' $i "$t" ;; esac
i=$((i+1)); done
done; done
for f in "$R"/proc/driver/nvidia/gpus/*/information; do [ -r "$f" ] || continue
printf '\n== gpu\n'
sed -n 's/^Model:[[:space:]]*/|model=/p; s/^Video BIOS:[[:space:]]*/|video_bios=/p; s/^GPU Firmware:[[:space:]]*/|firmware=/p' "$f"
done
echo; echo '== end'
"#
    )
}

/// What the modules in the cages of the NICs say of themselves: of root alone, and the modules
/// answer slowly.
pub fn modules_script() -> String {
    format!(
        r#"{SHELL}[ -z "${{RAILWRIGHT_READ_ONLY-}}" ] || exit 0
command -v ethtool >/dev/null 2>&1 || exit 0
for f in "$R"/sys/class/net/*; do [ -e "$f/device" ] && [ ! -e "$f/device/physfn" ] || continue
printf '\n== module %s\n' "${{f##*/}}"
ethtool -m "${{f##*/}}" 2>/dev/null | sed -n 's/^[[:space:]]*\(Identifier\|Vendor name\|Vendor PN\)[[:space:]]*: */|\1=/p'
done
echo; echo '== end'
"#
    )
}
