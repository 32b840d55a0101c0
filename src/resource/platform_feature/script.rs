//! What the kernel reports of the virtual functions of a NIC, as POSIX sh.

use railwright_base::quote::quote_for_shell;

/// How many virtual functions the NIC offers, and where their memory is: lines 8 to 13 of
/// `resource`, one for each of their BARs (Source: Linux, drivers/pci/pci-sysfs.c, `resource_show`,
/// and include/linux/pci.h, `PCI_IOV_RESOURCES`).
pub fn read_script(netdev: &str) -> String {
    format!(
        r#"n={netdev}; d="$R/sys/class/net/$n/device"
[ -d "$R/sys/class/net/$n" ] || exit 1
printf '\n== functions\n'
v=; {{ read -r v <"$d/sriov_totalvfs"; }} 2>/dev/null && printf '|total=%s\n' "$v"
sed -n '8,13s/^/|bar=/p' "$d/resource" 2>/dev/null
echo; echo '== end'
"#,
        netdev = quote_for_shell(netdev),
    )
}
