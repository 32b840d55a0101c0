//! What `interrupt_affinity` reads and does, as POSIX sh.

use crate::complaint::{MISSING, SAY};
use railwright_base::quote::quote_for_shell;
use serde::{Deserialize, Serialize};

/// One interrupt and the CPUs that may handle it.
#[derive(
    Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, schemars::JsonSchema,
)]
pub struct InterruptBinding {
    /// Its number.
    pub number: u32,
    /// A list such as `0-3`.
    pub cpus: String,
}

/// The CPUs of the function's NUMA node, those that are online, and each interrupt of the function
/// that somebody has asked for (it has a folder of that name): a line `irq NUMBER LIST NAME`, and
/// `mode` for each file that its owner may not write. Exit 1 where there is no such netdev, `none`
/// where it has no interrupts of its own.
pub fn read_script(netdev: &str) -> String {
    format!(
        "f=\"$R\"/sys/class/net/{netdev}; [ -e \"$f\" ] || exit 1\n\
         d=$(cd -P \"$f/device\" 2>/dev/null && pwd -P)\n\
         while [ -n \"$d\" ] && [ ! -d \"$d/msi_irqs\" ]; do d=${{d%/*}}; done\n\
         [ -n \"$d\" ] || {{ echo none; exit 0; }}\n\
         v=; {{ read -r v <\"$d/local_cpulist\"; }} 2>/dev/null && printf 'local_cpulist %s\\n' \
         \"$v\"\n\
         v=; {{ read -r v <\"$R/sys/devices/system/cpu/online\"; }} 2>/dev/null && printf 'online \
         %s\\n' \"$v\"\n\
         for i in \"$d\"/msi_irqs/*; do i=${{i##*/}}; p=\"$R/proc/irq/$i\"\n\
         for n in \"$p\"/*/; do [ -d \"$n\" ] || continue; n=${{n%/}}; l=\n\
         {{ read -r l <\"$p/smp_affinity_list\"; }} 2>/dev/null && printf 'irq\\t%s\\t%s\\t%s\\n' \
         \"$i\" \"$l\" \"${{n##*/}}\"; break; done; done\n\
         stat -c 'mode %a %n' \"$R\"/proc/irq/*/smp_affinity_list 2>/dev/null | grep -v '^mode \
         [67]'\n\
         exit 0\n",
        netdev = quote_for_shell(netdev),
    )
}

/// Binds each; the kernel refuses one that it keeps for itself.
pub fn set_script(interrupts: &[InterruptBinding]) -> String {
    let lines: String = interrupts
        .iter()
        .map(|bound| format!("b {} {}\n", bound.number, quote_for_shell(&bound.cpus)))
        .collect();
    format!(
        "{SAY}b() {{\n\
         f=/proc/irq/$1/smp_affinity_list; [ -e \"$f\" ] || say {MISSING} \"there is no interrupt \
         $1 any more\"\n\
         e=$( {{ printf '%s\\n' \"$2\" >\"$f\"; }} 2>&1 ) || say 1 \"the kernel does not bind \
         interrupt $1 to $2${{e:+: $e}}\"\n\
         }}\n\
         {lines}"
    )
}

/// What the unit runs: one interrupt after the other to the next CPU of the list, as the kind does
/// it. Queues get their interrupts when the netdev is brought up, which is after it appears: until
/// then, and for a minute at the most, it looks again.
pub fn render_affinity_unit_script(netdev: &str, cpus: Option<&str>) -> String {
    format!(
        "netdev={netdev}\n\
         cpus={cpus}\n\
         n=/sys/class/net/$netdev; d=$(cd -P \"$n/device\" 2>/dev/null && pwd -P)\n\
         while [ -n \"$d\" ] && [ ! -d \"$d/msi_irqs\" ]; do d=${{d%/*}}; done\n\
         [ -n \"$d\" ] || exit 0\n\
         t=0; while [ \"$t\" -lt 30 ]; do case $(cat \"$n/flags\" 2>/dev/null) in *[13579bdf]) \
         break ;; esac; t=$((t + 1)); sleep 2; done\n\
         [ \"$cpus\" = numa-local ] && cpus=$(cat \"$d/local_cpulist\")\n\
         all() {{ for r in $(echo \"$1\" | tr , ' '); do a=${{r%-*}}; while [ \"$a\" -le \
         \"${{r#*-}}\" ]; do echo \"$a\"; a=$((a + 1)); done; done; }}\n\
         set -- $(all \"$cpus\"); [ \"$#\" -gt 0 ] || exit 0\n\
         for i in $(ls \"$d/msi_irqs\" | sort -n); do\n\
         [ -n \"$(find \"/proc/irq/$i\" -mindepth 1 -type d 2>/dev/null)\" ] || continue\n\
         case $(stat -c %a \"/proc/irq/$i/smp_affinity_list\") in 4*) continue ;; esac\n\
         echo \"$1\" >\"/proc/irq/$i/smp_affinity_list\" 2>/dev/null; c=$1; shift; set -- \"$@\" \
         \"$c\"\n\
         done\n\
         exit 0\n",
        netdev = quote_for_shell(netdev),
        cpus = quote_for_shell(cpus.unwrap_or("numa-local")),
    )
}
