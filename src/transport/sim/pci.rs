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
        let acs = |word| Registers {
            control: 0x2000,
            acs: word,
        };
        let function = |class: &str, vendor: &str, below: &[&str], word| SimulatedPciFunction {
            class: class.to_owned(),
            vendor: vendor.to_owned(),
            below: below.iter().map(ToString::to_string).collect(),
            netdev: None,
            now: acs(word),
            firmware: acs(word),
        };
        let root = "0000:38:00.0";
        let mut nic = function("0x020000", "0x15b3", &[root, "0000:39:00.0"], None);
        nic.netdev = Some(netdev.to_owned());
        let functions = [
            (root, function("0x060400", "0x8086", &[], None)),
            (
                "0000:39:00.0",
                function("0x060400", "0x1000", &[root], Some(0x1d)),
            ),
            (
                "0000:39:01.0",
                function("0x060400", "0x1000", &[root], Some(0x1d)),
            ),
            ("0000:3a:00.0", nic),
            (
                "0000:3b:00.0",
                function("0x030200", "0x10de", &[root, "0000:39:01.0"], None),
            ),
        ];
        let interrupt = |number: u32| {
            let name = format!("mlx5_comp{}@pci:0000:3a:00.0", number - 40);
            let bound = Interrupt {
                list: ONLINE.to_owned(),
                name,
                is_managed: number == 43,
            };
            (number, (bound, ONLINE.to_owned()))
        };
        Pci {
            functions: functions
                .map(|(address, function)| (address.to_owned(), function))
                .into(),
            interrupts: [(netdev.to_owned(), (40..44).map(interrupt).collect())].into(),
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
        let is_it = |address: &str, function: &SimulatedPciFunction| {
            address == device || function.netdev.as_deref() == Some(device)
        };
        match self
            .functions
            .iter()
            .find(|(address, function)| is_it(address, function))
        {
            None => (1, String::new()),
            Some((address, function)) => (
                0,
                format!(
                    "{}address {address}\n{}",
                    self.means(),
                    Self::section(address, function)
                ),
            ),
        }
    }

    /// The answer to `Read::PciBridges`.
    pub fn read_bridges(&self) -> Answered {
        let way = |address: &String| {
            let above = self
                .functions
                .get(address)
                .map(|function| function.below.clone())
                .unwrap_or_default();
            format!(
                "pci0000:38/{}",
                above
                    .iter()
                    .chain([address])
                    .map(String::as_str)
                    .collect::<Vec<_>>()
                    .join("/")
            )
        };
        let mut out = self.means();
        for (address, function) in &self.functions {
            out.push_str(&format!(
                "device {} {} {}\n",
                function.class,
                function.vendor,
                way(address)
            ));
        }
        self.passed
            .iter()
            .for_each(|address| out.push_str(&format!("passed {}\n", way(address))));
        for (address, function) in &self.functions {
            function
                .netdev
                .iter()
                .for_each(|netdev| out.push_str(&format!("netdev {netdev} {address}\n")));
        }
        for (address, function) in self
            .functions
            .iter()
            .filter(|(_, function)| function.class.starts_with("0x0604"))
        {
            out.push_str(&Self::section(address, function));
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
        writes.iter().try_for_each(|write| {
            let missing = || {
                (
                    MISSING,
                    format!("railwright: {} has no such register", write.address),
                )
            };
            let function = self.functions.get_mut(&write.address).ok_or_else(missing)?;
            let register = match write.register {
                PciRegister::DeviceControl => &mut function.now.control,
                PciRegister::AcsControl => function.now.acs.as_mut().ok_or_else(missing)?,
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
            Ok(())
        })
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
        for (number, _) in all
            .iter()
            .filter(|(_, (interrupt, _))| interrupt.is_managed)
        {
            out.push_str(&format!("mode 444 /proc/irq/{number}/smp_affinity_list\n"));
        }
        (0, out)
    }

    /// Writes below /proc/irq.
    pub fn bind(&mut self, interrupts: &[InterruptBinding]) -> Done {
        interrupts
            .iter()
            .try_for_each(|InterruptBinding { number, cpus: list }| {
                let found = self
                    .interrupts
                    .values_mut()
                    .find_map(|all| all.get_mut(number));
                let (interrupt, _) = found.ok_or_else(|| {
                    (
                        MISSING,
                        format!("railwright: there is no interrupt {number} any more"),
                    )
                })?;
                let online = found::parse_cpu_list(ONLINE).unwrap_or_default();
                let fits = found::parse_cpu_list(list)
                    .is_some_and(|cpus| cpus.iter().any(|cpu| online.contains(cpu)));
                if interrupt.is_managed || !fits {
                    return Err((
                        1,
                        format!(
                            "railwright: the kernel does not bind interrupt {number} to {list}"
                        ),
                    ));
                }
                interrupt.list.clone_from(list);
                Ok(())
            })
    }

    /// What a boot gives it, and then our units.
    pub fn boot(&mut self, disk: &Disk) {
        self.functions
            .values_mut()
            .for_each(|function| function.now = function.firmware);
        for (interrupt, first) in self.interrupts.values_mut().flat_map(BTreeMap::values_mut) {
            interrupt.list.clone_from(first);
        }
        for script in list_unit_scripts("pci-setting", disk) {
            self.keep(&script);
        }
        for script in list_unit_scripts("interrupt-affinity", disk) {
            let value = |name: &str| find_script_value(&script, name);
            let (Some(netdev), Some(list)) = (value("netdev"), value("cpus")) else {
                continue;
            };
            let list = if list == "numa-local" { LOCAL } else { list };
            let Some(own) = self.interrupts.get(netdev) else {
                continue;
            };
            let all = own
                .iter()
                .map(|(number, (interrupt, _))| (*number, interrupt.clone()))
                .collect();
            let spread = Interrupts {
                all,
                ..Interrupts::default()
            }
            .spread(&found::parse_cpu_list(list).unwrap_or_default());
            let bindings: Vec<InterruptBinding> = spread
                .into_iter()
                .map(|(number, cpu)| InterruptBinding {
                    number,
                    cpus: cpu.to_string(),
                })
                .collect();
            let _ = self.bind(&bindings);
        }
    }

    /// What a script of `pci_setting` does.
    fn keep(&mut self, script: &str) {
        let mut writes = Vec::new();
        if let Some(field) = find_script_value(script, "max_read_request")
            .and_then(|bytes| read_request_field(bytes.parse().ok()?))
        {
            let is_it = |address: &String, function: &SimulatedPciFunction| {
                find_script_value(script, "address") == Some(address)
                    || function
                        .netdev
                        .as_deref()
                        .is_some_and(|own| find_script_value(script, "netdev") == Some(own))
            };
            let address = self
                .functions
                .iter()
                .find(|(address, function)| is_it(address, function))
                .map(|(address, _)| address.clone());
            let register = PciRegister::DeviceControl;
            writes.extend(address.map(|address| PciWrite {
                address,
                register,
                value: field,
                mask: READ_REQUEST_MASK,
            }));
        }
        if let Some(mode) = find_script_value(script, "acs").filter(|_| self.passed.is_empty()) {
            let mask = if mode == "off" { ACS_ALL } else { ACS_REDIRECT };
            let bridges = self
                .functions
                .iter()
                .filter(|(_, function)| function.now.acs.is_some())
                .map(|(address, _)| address.clone());
            writes.extend(bridges.map(|address| PciWrite {
                address,
                register: PciRegister::AcsControl,
                value: 0,
                mask,
            }));
        }
        let _ = self.set(&writes);
    }
}

/// The scripts of our units that udev and systemd know of.
fn list_unit_scripts(kind: &str, disk: &Disk) -> Vec<String> {
    let folder = format!("/etc/railwright/{kind}");
    let is_whole = |path: &str| {
        let name = path
            .rsplit('/')
            .next()
            .unwrap_or_default()
            .trim_end_matches(".sh");
        let unit = format!("/etc/systemd/system/railwright-{kind}@{name}.service");
        let rule = format!("/etc/udev/rules.d/90-railwright-{kind}-{name}.rules");
        disk.files.contains_key(&unit) && disk.files.contains_key(&rule)
    };
    let scripts = disk
        .below(&folder, ".sh")
        .filter(|(path, _)| is_whole(path))
        .map(|(_, text)| text);
    scripts.collect()
}

/// The value of a line `name=value` or `name='value'`.
fn find_script_value<'a>(script: &'a str, name: &str) -> Option<&'a str> {
    script
        .lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix('='))
        .map(|value| value.trim_matches('\''))
}
