//! The PCI bus of a simulated host: functions with the two registers that a kind sets, and the
//! interrupts of NICs. A boot gives each what the firmware and the kernel give it; then the units
//! of ours that are on the disk set what their scripts say.

use super::disk::Disk;
use super::host::{Answered, Done};
use railwright_resource::complaint::{MISSING, UNAVAILABLE};
use railwright_resource::interrupt_affinity::found::{self, Interrupt, Interrupts};
use railwright_resource::interrupt_affinity::script::InterruptBinding;
use railwright_resource::pci_setting::config::{
    ACS_ALL, ACS_REDIRECT, PciConfigSpace, READ_REQUEST_MASK, build_simulated_config_space,
    read_request_field,
};
use railwright_resource::pci_setting::script::{PciRegister, PciWrite};
use std::collections::BTreeMap;

/// Registers of a function.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Registers {
    /// Device control.
    pub control: u16,
    /// ACS control; none without the capability.
    pub acs: Option<u16>,
}

/// One function.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SimulatedPciFunction {
    /// Class, as sysfs has it: `0x060400`.
    pub class: String,
    /// Vendor: `0x10de`.
    pub vendor: String,
    /// The bridges above it, from the root.
    pub below: Vec<String>,
    /// The netdev on it.
    pub netdev: Option<String>,
    /// What runs.
    pub now: Registers,
    /// What a boot gives it.
    pub firmware: Registers,
}

/// The bus.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Pci {
    /// By address.
    pub functions: BTreeMap<String, SimulatedPciFunction>,
    /// Interrupts by netdev, each with what a boot gives it.
    pub interrupts: BTreeMap<String, BTreeMap<u32, (Interrupt, String)>>,
    /// pciutils is there.
    pub setpci: bool,
    /// The kernel is locked down.
    pub locked: bool,
    /// Functions that are passed through.
    pub passed: Vec<String>,
}

/// The CPUs of the host, and those near its NICs.
const ONLINE: &str = "0-7";
const LOCAL: &str = "0-3";

impl Pci {
    /// A NIC and a GPU below a port each of a switch whose ports redirect, as a server comes from
    /// its vendor. The NIC has three interrupts that can be bound and one that cannot.
    pub fn server(netdev: &str) -> Self {
        let root = "0000:38:00.0";
        let mut nic = new_function("0x020000", "0x15b3", &[root, "0000:39:00.0"], None);
        nic.netdev = Some(netdev.to_owned());
        let functions = [
            (root, new_function("0x060400", "0x8086", &[], None)),
            (
                "0000:39:00.0",
                new_function("0x060400", "0x1000", &[root], Some(0x1d)),
            ),
            (
                "0000:39:01.0",
                new_function("0x060400", "0x1000", &[root], Some(0x1d)),
            ),
            ("0000:3a:00.0", nic),
            (
                "0000:3b:00.0",
                new_function("0x030200", "0x10de", &[root, "0000:39:01.0"], None),
            ),
        ];
        Pci {
            functions: functions
                .map(|(address, function)| (address.to_owned(), function))
                .into(),
            interrupts: [(netdev.to_owned(), (40..44).map(new_nic_interrupt).collect())].into(),
            setpci: true,
            locked: false,
            passed: Vec::new(),
        }
    }

    fn means(&self) -> String {
        let setpci = if self.setpci { "setpci\n" } else { "" };
        let modes = if self.locked {
            "none [integrity] confidentiality"
        } else {
            "[none] integrity confidentiality"
        };
        format!("{setpci}lockdown {modes}\n")
    }

    fn section(address: &str, function: &SimulatedPciFunction) -> String {
        let dump: String = PciConfigSpace::dump(&build_simulated_config_space(
            function.now.control,
            function.now.acs,
        ))
        .lines()
        .map(|line| format!("|{line}\n"))
        .collect();
        format!("\n== config {address}\n{dump}")
    }

    /// The answer to `Read::PciDevice`.
    pub fn read(&self, device: &str) -> Answered {
        for (address, function) in &self.functions {
            if address == device || function.netdev.as_deref() == Some(device) {
                let (means, section) = (self.means(), Self::section(address, function));
                return (0, format!("{means}address {address}\n{section}"));
            }
        }
        (1, String::new())
    }

    /// The bridges above a function and the function itself, as sysfs links to it.
    fn format_sysfs_path(&self, address: &str) -> String {
        let mut parts = Vec::new();
        if let Some(function) = self.functions.get(address) {
            parts.extend(function.below.iter().map(String::as_str));
        }
        parts.push(address);
        format!("pci0000:38/{}", parts.join("/"))
    }

    /// The answer to `Read::PciBridges`.
    pub fn read_bridges(&self) -> Answered {
        let mut out = self.means();
        for (address, function) in &self.functions {
            out.push_str(&format!(
                "device {} {} {}\n",
                function.class,
                function.vendor,
                self.format_sysfs_path(address)
            ));
        }
        for address in &self.passed {
            out.push_str(&format!("passed {}\n", self.format_sysfs_path(address)));
        }
        for (address, function) in &self.functions {
            if let Some(netdev) = &function.netdev {
                out.push_str(&format!("netdev {netdev} {address}\n"));
            }
        }
        for (address, function) in &self.functions {
            if function.class.starts_with("0x0604") {
                out.push_str(&Self::section(address, function));
            }
        }
        (0, out)
    }

    /// `setpci`.
    pub fn set(&mut self, writes: &[PciWrite]) -> Done {
        if !self.setpci {
            return Err((
                UNAVAILABLE,
                "railwright: setpci (package pciutils) is not on the host".to_owned(),
            ));
        }
        for write in writes {
            let function = self.functions.get_mut(&write.address);
            let register = match write.register {
                PciRegister::DeviceControl => function.map(|function| &mut function.now.control),
                PciRegister::AcsControl => function.and_then(|function| function.now.acs.as_mut()),
            };
            let Some(register) = register else {
                return Err((
                    MISSING,
                    format!("railwright: {} has no such register", write.address),
                ));
            };
            if self.locked {
                return Err((
                    1,
                    format!(
                        "railwright: a locked kernel keeps the registers of {}",
                        write.address
                    ),
                ));
            }
            *register = *register & !write.mask | write.value & write.mask;
        }
        Ok(())
    }

    /// The answer to `Read::Interrupts`.
    pub fn read_interrupts(&self, netdev: &str) -> Answered {
        let Some(all) = self.interrupts.get(netdev) else {
            return (1, String::new());
        };
        let mut out = format!("local_cpulist {LOCAL}\nonline {ONLINE}\n");
        for (number, (interrupt, _)) in all {
            out.push_str(&format!(
                "irq\t{number}\t{}\t{}\n",
                interrupt.list, interrupt.name
            ));
        }
        for (number, (interrupt, _)) in all {
            if interrupt.is_managed {
                out.push_str(&format!("mode 444 /proc/irq/{number}/smp_affinity_list\n"));
            }
        }
        (0, out)
    }

    /// Writes below /proc/irq.
    pub fn bind(&mut self, interrupts: &[InterruptBinding]) -> Done {
        let online = found::parse_cpu_list(ONLINE).unwrap_or_default();
        for InterruptBinding { number, cpus: list } in interrupts {
            let mut netdevs = self.interrupts.values_mut();
            let Some((interrupt, _)) = netdevs.find_map(|all| all.get_mut(number)) else {
                return Err((
                    MISSING,
                    format!("railwright: there is no interrupt {number} any more"),
                ));
            };
            let cpus = found::parse_cpu_list(list).unwrap_or_default();
            if interrupt.is_managed || !cpus.iter().any(|cpu| online.contains(cpu)) {
                return Err((
                    1,
                    format!("railwright: the kernel does not bind interrupt {number} to {list}"),
                ));
            }
            interrupt.list.clone_from(list);
        }
        Ok(())
    }

    /// What a boot gives it, and then our units.
    pub fn boot(&mut self, disk: &Disk) {
        for function in self.functions.values_mut() {
            function.now = function.firmware;
        }
        for (interrupt, first) in self.interrupts.values_mut().flat_map(BTreeMap::values_mut) {
            interrupt.list.clone_from(first);
        }
        for script in list_unit_scripts("pci-setting", disk) {
            self.keep(&script);
        }
        for script in list_unit_scripts("interrupt-affinity", disk) {
            self.bind_by_script(&script);
        }
    }

    /// What a script of `interrupt_affinity` does.
    fn bind_by_script(&mut self, script: &str) {
        let Some(netdev) = find_script_value(script, "netdev") else {
            return;
        };
        let cpus = match find_script_value(script, "cpus") {
            Some("numa-local") => LOCAL,
            Some(list) => list,
            None => return,
        };
        let Some(own) = self.interrupts.get(netdev) else {
            return;
        };
        let mut interrupts = Interrupts::default();
        for (number, (interrupt, _)) in own {
            interrupts.all.insert(*number, interrupt.clone());
        }
        let mut bindings = Vec::new();
        for (number, cpu) in interrupts.spread(&found::parse_cpu_list(cpus).unwrap_or_default()) {
            let cpus = cpu.to_string();
            bindings.push(InterruptBinding { number, cpus });
        }
        let _ = self.bind(&bindings);
    }

    /// The function that a script names by its address or by its netdev.
    fn find_function_of_script(&self, script: &str) -> Option<String> {
        let address = find_script_value(script, "address");
        let netdev = find_script_value(script, "netdev");
        let mut functions = self.functions.iter();
        let (found, _) = functions.find(|(own, function)| {
            address == Some(own.as_str())
                || netdev.is_some() && function.netdev.as_deref() == netdev
        })?;
        Some(found.clone())
    }

    /// What a script of `pci_setting` does.
    fn keep(&mut self, script: &str) {
        let mut writes = Vec::new();
        let read_request = find_script_value(script, "max_read_request")
            .and_then(|bytes| read_request_field(bytes.parse().ok()?));
        if let Some(value) = read_request
            && let Some(address) = self.find_function_of_script(script)
        {
            writes.push(PciWrite {
                address,
                register: PciRegister::DeviceControl,
                value,
                mask: READ_REQUEST_MASK,
            });
        }
        if let Some(mode) = find_script_value(script, "acs")
            && self.passed.is_empty()
        {
            let mask = if mode == "off" { ACS_ALL } else { ACS_REDIRECT };
            for (address, function) in &self.functions {
                if function.now.acs.is_some() {
                    writes.push(PciWrite {
                        address: address.clone(),
                        register: PciRegister::AcsControl,
                        value: 0,
                        mask,
                    });
                }
            }
        }
        let _ = self.set(&writes);
    }
}

/// A function that runs with what the firmware gave it.
fn new_function(
    class: &str,
    vendor: &str,
    below: &[&str],
    acs: Option<u16>,
) -> SimulatedPciFunction {
    let control = 0x2000;
    let registers = Registers { control, acs };
    SimulatedPciFunction {
        class: class.to_owned(),
        vendor: vendor.to_owned(),
        below: below.iter().map(ToString::to_string).collect(),
        netdev: None,
        now: registers,
        firmware: registers,
    }
}

/// An interrupt of the NIC, with what a boot gives it; the kernel manages number 43 itself.
fn new_nic_interrupt(number: u32) -> (u32, (Interrupt, String)) {
    let interrupt = Interrupt {
        list: ONLINE.to_owned(),
        name: format!("mlx5_comp{}@pci:0000:3a:00.0", number - 40),
        is_managed: number == 43,
    };
    (number, (interrupt, ONLINE.to_owned()))
}

/// The scripts of our units that udev and systemd know of.
fn list_unit_scripts(kind: &str, disk: &Disk) -> Vec<String> {
    let mut scripts = Vec::new();
    for (path, text) in disk.below(&format!("/etc/railwright/{kind}"), ".sh") {
        let file = path.rsplit('/').next().unwrap_or_default();
        let name = file.trim_end_matches(".sh");
        let unit = format!("/etc/systemd/system/railwright-{kind}@{name}.service");
        let rule = format!("/etc/udev/rules.d/90-railwright-{kind}-{name}.rules");
        if disk.files.contains_key(&unit) && disk.files.contains_key(&rule) {
            scripts.push(text);
        }
    }
    scripts
}

/// The value of a line `name=value` or `name='value'`.
fn find_script_value<'a>(script: &'a str, name: &str) -> Option<&'a str> {
    script
        .lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix('='))
        .map(|value| value.trim_matches('\''))
}
