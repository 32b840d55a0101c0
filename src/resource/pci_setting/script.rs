//! What `pci_setting` reads and does, as POSIX sh.

use super::found::PciFunctionSelector;
use crate::complaint::{MISSING, SAY, UNAVAILABLE};
use crate::rights::{OPEN, RootAccessNeed};
use railwright_base::quote::{quote_for_shell, sh_words};
use serde::{Deserialize, Serialize};

/// A register of the configuration space, by its capability.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    schemars::JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum PciRegister {
    /// Device control of the PCI Express capability: it holds the maximum read request.
    DeviceControl,
    /// The control word of the ACS capability.
    AcsControl,
}

impl PciRegister {
    /// As setpci(8) names it.
    fn word(self) -> &'static str {
        match self {
            PciRegister::DeviceControl => "CAP_EXP+8.w",
            PciRegister::AcsControl => "ECAP_ACS+6.w",
        }
    }
}

/// Bits of one register of one function.
#[derive(
    Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, schemars::JsonSchema,
)]
pub struct PciWrite {
    /// The function's address, `0000:3b:00.0`.
    pub address: String,
    /// The register.
    pub register: PciRegister,
    /// What the bits become.
    pub value: u16,
    /// The bits that are written; the others stay.
    pub mask: u16,
}

/// `config WORD FILE` sends a configuration space in a section of its own; `up FOLDER` finds the
/// PCI function of a device. Holes of a space are many, and `od` says them in one line.
const SHELL: &str = "config() \
                     { printf '\\n== config %s\\n' \"$1\"; only cat \"$2\" | od -A x -t x1 | sed 's/^/|/'; }\n\
                     up() { d=$(cd -P \"$1\" 2>/dev/null && pwd -P); while [ -n \"$d\" ]; do case \
                     ${d##*/} in *:*:*.[0-7]) return 0 ;; esac; d=${d%/*}; done; return 1; }\n\
                     command -v setpci >/dev/null 2>&1 && echo setpci\n\
                     l=; { read -r l <\"$R/sys/kernel/security/lockdown\"; } 2>/dev/null && printf \
                     'lockdown %s\\n' \"$l\"\n";

/// One function: `setpci` and `lockdown` as they are, its address, and its space. Exit 1 where
/// there is no such device, `none` where it is on no PCI bus.
pub fn device_script(device: &str) -> String {
    let folder = build_sysfs_path(device);
    format!(
        "{OPEN}f=\"$R\"{}; [ -e \"$f\" ] || exit 1\n\
         {SHELL}up \"$f\"{} || {{ echo none; exit 0; }}\n\
         echo \"address ${{d##*/}}\"\n\
         [ -e \"$d/physfn\" ] && echo virtual-function\n\
         c=\"$f\"{}; [ -e \"$c\" ] || c=$d/config\n\
         config \"${{d##*/}}\" \"$c\"\n\
         exit 0\n",
        quote_for_shell(&folder),
        if PciFunctionSelector::of(device).is_netdev() {
            "/device"
        } else {
            ""
        },
        if PciFunctionSelector::of(device).is_netdev() {
            "/device/config"
        } else {
            "/config"
        },
    )
}

fn build_sysfs_path(device: &str) -> String {
    match PciFunctionSelector::of(device) {
        PciFunctionSelector::Netdev(netdev) => format!("/sys/class/net/{netdev}"),
        PciFunctionSelector::Address(address) => format!("/sys/bus/pci/devices/{address}"),
    }
}

/// Everything above the first 64 bytes of a configuration space is root's.
pub fn device_needs(device: &str) -> Vec<RootAccessNeed> {
    let tail = if PciFunctionSelector::of(device).is_netdev() {
        "/device/config"
    } else {
        "/config"
    };
    vec![RootAccessNeed::Content(format!(
        "{}{tail}",
        build_sysfs_path(device)
    ))]
}

/// NICs, display devices and bridges with their places in the tree, those that are passed through
/// to somebody, the netdevs, and the space of each bridge.
pub fn bridges_script() -> String {
    format!(
        "{OPEN}{SHELL}for f in \"$R\"/sys/bus/pci/devices/*; do\n\
         c=; {{ read -r c <\"$f/class\"; }} 2>/dev/null || continue\n\
         case $c in 0x0604*|0x02*|0x03*) ;; *) continue ;; esac\n\
         v=; {{ read -r v <\"$f/vendor\"; }} 2>/dev/null\n\
         p=$(cd -P \"$f\" 2>/dev/null && pwd -P) && printf 'device %s %s %s\\n' \"$c\" \"$v\" \
         \"${{p#*/sys/devices/}}\"\n\
         done\n\
         for f in \"$R\"/sys/bus/pci/drivers/*vfio*/*:*:*.*; do [ -e \"$f\" ] && p=$(cd -P \"$f\" \
         && pwd -P) && printf 'passed %s\\n' \"${{p#*/sys/devices/}}\"; done\n\
         for f in \"$R\"/sys/class/net/*; do up \"$f/device\" && printf 'netdev %s %s\\n' \
         \"${{f##*/}}\" \"${{d##*/}}\"; done\n\
         for f in \"$R\"/sys/bus/pci/devices/*; do\n\
         c=; {{ read -r c <\"$f/class\"; }} 2>/dev/null || continue\n\
         case $c in 0x0604*) config \"${{f##*/}}\" \"$f/config\" ;; esac\n\
         done\n\
         exit 0\n"
    )
}

/// Which bridges there are, nobody knows beforehand.
pub fn bridges_needs() -> Vec<RootAccessNeed> {
    vec![RootAccessNeed::Root(
        "the configuration space of PCI bridges".to_owned(),
    )]
}

/// Writes, and reads each register again: a kernel that is locked down refuses the write, and
/// setpci ends with 0 all the same.
pub fn set_script(writes: &[PciWrite]) -> String {
    let lines: String = writes
        .iter()
        .map(|write| {
            format!(
                "w {} {} {:04x} {:04x}\n",
                quote_for_shell(&write.address),
                write.register.word(),
                write.value,
                write.mask
            )
        })
        .collect();
    format!(
        "{SAY}command -v setpci >/dev/null 2>&1 || say {UNAVAILABLE} \"setpci (package pciutils) \
         is not on the host\"\n\
         r() {{ setpci -s \"$1\" \"$2\" 2>/dev/null; }}\n\
         w() {{\n\
         [ -n \"$(r \"$1\" \"$2\")\" ] || say {MISSING} \"$1 has no register $2\"\n\
         setpci -s \"$1\" \"$2=$3:$4\" || say 1 \"setpci could not write $2 of $1\"\n\
         g=$(r \"$1\" \"$2\"); [ $((0x${{g:-0}} & 0x$4)) -eq $((0x$3 & 0x$4)) ] || say 1 \"$2 of \
         $1 is $g after the write of $3: the device or a locked kernel (Secure Boot) keeps it\"\n\
         }}\n\
         {lines}"
    )
}

/// What the unit runs for a maximum read request: the function is found anew, because its address
/// may change with the hardware.
pub fn keep_read_request(device: &str, bytes: u64, field: u16) -> String {
    let (name, start) = match PciFunctionSelector::of(device) {
        PciFunctionSelector::Netdev(netdev) => {
            ("netdev", format!("/sys/class/net/{netdev}/device"))
        }
        PciFunctionSelector::Address(address) => {
            ("address", format!("/sys/bus/pci/devices/{address}"))
        }
    };
    format!(
        "{name}={}\n\
         max_read_request={bytes}\n\
         d=$(cd -P {} 2>/dev/null && pwd -P)\n\
         while [ -n \"$d\" ]; do case ${{d##*/}} in *:*:*.[0-7]) break ;; esac; d=${{d%/*}}; done\n\
         [ -n \"$d\" ] || exit 0\n\
         exec setpci -s \"${{d##*/}}\" CAP_EXP+8.w={field:04x}:7000\n",
        quote_for_shell(device),
        quote_for_shell(&start),
    )
}

/// What the unit runs for ACS: every bridge on the way from a GPU of NVIDIA and from the netdevs to
/// the root, or the bridges that the resource names. Nothing where a device is passed through then.
pub fn keep_acs(mode: &str, mask: u16, netdevs: &[String], bridges: &[String]) -> String {
    let off = format!(
        "off() {{ setpci -s \"$1\" ECAP_ACS+6.w >/dev/null 2>&1 && setpci -s \"$1\" \
         ECAP_ACS+6.w=0000:{mask:04x}; }}\n"
    );
    let head = format!(
        "acs={}\n\
         for f in /sys/bus/pci/drivers/*vfio*/*:*:*.*; do [ ! -e \"$f\" ] || exit 0; done\n\
         {off}",
        quote_for_shell(mode)
    );
    if !bridges.is_empty() {
        return format!(
            "{head}bridges={}\nfor b in $bridges; do off \"$b\"; done\nexit 0\n",
            quote_for_shell(&bridges.join(" "))
        );
    }
    format!(
        "{head}way() {{ d=$(cd -P \"$1\" 2>/dev/null && pwd -P); while [ -n \"$d\" ]; do c=; {{ \
         read -r c <\"$d/class\"; }} 2>/dev/null\n\
         case $c in 0x0604*) off \"${{d##*/}}\" ;; esac; d=${{d%/*}}; done; }}\n\
         for f in /sys/bus/pci/devices/*; do c=; v=; {{ read -r c <\"$f/class\"; read -r v \
         <\"$f/vendor\"; }} 2>/dev/null\n\
         case $c$v in 0x03????0x10de) way \"$f\" ;; esac; done\n\
         for n in {}; do way \"/sys/class/net/$n/device\"; done\n\
         exit 0\n",
        sh_words(netdevs.iter().map(String::as_str)),
    )
}
