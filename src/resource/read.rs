//! The closed list of reads: what a kind may ask of a host. Each is a value; here it is also
//! rendered to the body of one section of POSIX sh (no Python, no bash, busybox is enough), below a
//! root prefix `$R` so that recorded trees can be read. No read changes anything: none loads a
//! module, takes a package lock or touches a file.

use super::action::PackageManager;
use super::counters::{self, CounterSampleOrdinal};
use super::helm_release::request::Release;
use super::kubernetes_object::request::KubernetesRead;
use super::rights::RootAccessNeed;
use super::switch::{SwitchRead, SwitchSystem};
use railwright_base::quote::quote_for_shell;
use serde::{Deserialize, Serialize};

/// One read of a host.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Read {
    /// Who the host is: os-release, kernel, boot id, tools present, network managers, our own
    /// connection's netdev.
    Host,
    /// What the host is made of: machine, BIOS, processors, NICs, GPUs, RDMA devices.
    Hardware,
    /// Which machine it is, and whether its setup program offers an IOMMU.
    Platform,
    /// How many virtual functions the NIC below a netdev offers, and whether they have a place on
    /// the PCI bus.
    VirtualFunctions { netdev: String },
    /// What the modules in the cages of its NICs report of themselves.
    CageModules,
    /// A file: a line `mode owner group size type`, then the content. Exit 1 when it does not
    /// exist.
    File { path: String },
    /// A file that may hold a secret. The host answers as to `File`; the content is replaced by its
    /// keyed digest before anybody sees or records it.
    SealedFile { path: String },
    /// A kernel setting below /proc/sys, by its dotted name.
    Sysctl { key: String },
    /// A kernel module: `loaded`, its parameters, what the disk has for it.
    KernelModule { name: String },
    /// Whether the package lists of one of our repositories have been fetched.
    RepositoryLists {
        manager: PackageManager,
        name: String,
        url: String,
        suite: String,
    },
    /// Installed versions and holds of packages, by the host's own package manager.
    Packages { names: Vec<String> },
    /// A systemd unit: `systemctl show` properties.
    Unit { name: String },
    /// When files were changed last: a line `seconds path` for each that is there.
    Modified { paths: Vec<String> },
    /// The kernel command line that runs, and the one that the boot loader's configuration holds.
    Boot,
    /// What a netdev is made of: the settings of a bond, the parent of a VLAN, and the files of
    /// networkd that make it.
    LinkLayers { netdev: String },
    /// A netdev: sysfs attributes and addresses.
    Link { netdev: String },
    /// Which network manager owns a netdev, and what its configuration says.
    LinkManager { netdev: String },
    /// The names of netdevs, and what gives the one at a PCI address or with a MAC address its
    /// name; `name` is the desired one.
    NetdevName { device: String, name: String },
    /// PFC, ETS and DSCP map of a netdev.
    LinkQos { netdev: String },
    /// Who reacts to ECN on a netdev: the driver's files below its `ecn`.
    LinkEcn { netdev: String },
    /// What netdevs and the RDMA devices on them have counted.
    LinkCounters {
        netdevs: Vec<String>,
        sample: CounterSampleOrdinal,
    },
    /// What has passed over the RDMA devices of netdevs.
    RailTraffic { netdevs: Vec<String> },
    /// Settings of the firmware of the NIC below a netdev, by their names, for the planes that the
    /// firmware tells.
    FirmwareSettings {
        netdev: String,
        settings: Vec<String>,
    },
    /// Who is heard on the netdevs (LLDP), and which of them have a link.
    LldpNeighbours,
    /// Who is heard on the ports of a switch (LLDP), and which of them have a link.
    SwitchNeighbours { system: SwitchSystem },
    /// Every RDMA device: ports, states, GIDs, netdevs.
    RdmaLinks,
    /// Every value below a directory of configfs, relative to `/sys/kernel/config`: lines
    /// `path:value`.
    Configfs { path: String },
    /// An out-of-tree kernel module: DKMS status, installed files, loaded version.
    ModuleBuild {
        name: String,
        version: String,
        module: String,
    },
    /// One PCI function, by its netdev or its address: its configuration space.
    PciDevice { device: String },
    /// PCI bridges with their configuration spaces, and the GPUs and NICs below them.
    PciBridges,
    /// The interrupts of the PCI function below a netdev, and where they are handled.
    Interrupts { netdev: String },
    /// The read probe of a `command` resource: a script of the user's module.
    Command { script: String },
    /// A configuration of a switch.
    Switch {
        system: SwitchSystem,
        of: SwitchRead,
    },
    /// What ports of a switch have counted.
    SwitchCounters {
        system: SwitchSystem,
        ports: Vec<String>,
        sample: CounterSampleOrdinal,
    },
    /// A read of the API server of a Kubernetes cluster; no host is contacted for it.
    Kubernetes(KubernetesRead),
    /// A release of Helm: what is installed, and what the desired release would come to. Asked of a
    /// cluster, and of no host.
    HelmRelease(Box<Release>),
}

impl Read {
    /// True for the key of a file that was read in plain.
    pub fn is_key_of_file(key: &str) -> bool {
        key.starts_with("file:")
    }

    /// The key under which the answer is kept: `file:/etc/hosts`.
    pub fn key(&self) -> String {
        match self {
            Read::Host => "host".to_owned(),
            Read::Hardware => "hardware".to_owned(),
            Read::Platform => "platform".to_owned(),
            Read::VirtualFunctions { netdev } => format!("virtual_functions:{netdev}"),
            Read::CageModules => "cage_modules".to_owned(),
            Read::File { path } => format!("file:{path}"),
            Read::SealedFile { path } => format!("sealed_file:{path}"),
            Read::Sysctl { key } => format!("sysctl:{key}"),
            Read::KernelModule { name } => format!("kernel_module:{name}"),
            Read::RepositoryLists {
                name, url, suite, ..
            } => format!("repository_lists:{name}:{url}:{suite}"),
            Read::Packages { names } => format!("packages:{}", names.join(",")),
            Read::Unit { name } => format!("unit:{name}"),
            Read::Modified { paths } => format!("modified:{}", paths.join(",")),
            Read::Boot => "boot".to_owned(),
            Read::Link { netdev } => format!("link:{netdev}"),
            Read::LinkManager { netdev } => format!("link_manager:{netdev}"),
            Read::LinkLayers { netdev } => format!("link_layers:{netdev}"),
            Read::NetdevName { device, name } => format!("netdev_name:{name}:{device}"),
            Read::LinkQos { netdev } => format!("link_qos:{netdev}"),
            Read::LinkEcn { netdev } => format!("link_ecn:{netdev}"),
            Read::FirmwareSettings { netdev, settings } => {
                format!("firmware_settings:{netdev}:{}", settings.join(","))
            }
            Read::LldpNeighbours => "lldp_neighbours".to_owned(),
            Read::SwitchNeighbours { .. } => "switch_neighbours".to_owned(),
            Read::RdmaLinks => "rdma_links".to_owned(),
            Read::Configfs { path } => format!("configfs:{path}"),
            Read::ModuleBuild { name, version, .. } => format!("module_build:{name}/{version}"),
            Read::PciDevice { device } => format!("pci_device:{device}"),
            Read::PciBridges => "pci_bridges".to_owned(),
            Read::Interrupts { netdev } => format!("interrupts:{netdev}"),
            Read::Switch { of, .. } => format!("switch:{}", of.word()),
            // Of all netdevs or ports that are cabled, so that the key needs no names.
            Read::LinkCounters { sample, .. } => format!("link_counters:{}", sample.word()),
            Read::RailTraffic { .. } => "rail_traffic".to_owned(),
            Read::SwitchCounters { sample, .. } => format!("switch_counters:{}", sample.word()),
            Read::Kubernetes(read) => read.key(),
            Read::HelmRelease(release) => release.key(),
            Read::Command { script } => format!(
                "command:{}",
                railwright_base::Digest::of_bytes(script.as_bytes()).short()
            ),
        }
    }

    /// How long the section may run, in seconds.
    pub fn limit_s(&self) -> u32 {
        match self {
            // mlxconfig takes seconds a card, and waits for another one that asks it.
            Read::FirmwareSettings { .. } => 60,
            // The tools of both systems are Python programs that load their models first.
            Read::Switch { .. } | Read::SwitchNeighbours { .. } => 60,
            // `nv` is asked twice for each port, EOS for six tables of all ports.
            Read::SwitchCounters { .. } => 120,
            Read::Packages { .. }
            | Read::Command { .. }
            | Read::ModuleBuild { .. }
            | Read::LinkCounters { .. } => 30,
            _ => 10,
        }
    }

    /// True when small programs answer it from files and the kernel's tables: nothing in it waits
    /// for a device or the network, and its output is bounded by itself. A network manager that
    /// does not answer is noticed by the limit of all quick reads.
    pub fn is_quick(&self) -> bool {
        use Read::{
            Configfs, File, Hardware, KernelModule, Link, LinkEcn, LinkManager, Modified, Packages,
            Platform, RepositoryLists,
        };
        use Read::{SealedFile, Sysctl, VirtualFunctions};
        let of_files = matches!(
            self,
            File { .. }
                | SealedFile { .. }
                | Modified { .. }
                | Packages { .. }
                | RepositoryLists { .. }
        );
        let of_the_kernel = matches!(
            self,
            Sysctl { .. }
                | KernelModule { .. }
                | Link { .. }
                | LinkEcn { .. }
                | Configfs { .. }
                | Hardware
        );
        let of_the_machine = matches!(self, Platform | VirtualFunctions { .. });
        of_files || of_the_kernel || of_the_machine || matches!(self, LinkManager { .. })
    }

    /// The body of the section; standard output is the answer. `$R` is the root prefix, empty on a
    /// live host.
    pub fn script(&self) -> String {
        match self {
            Read::File { path } | Read::SealedFile { path } => {
                super::file::script::read_script(path)
            }
            Read::Sysctl { key } => super::sysctl::script::read_script(key),
            Read::Boot => super::kernel_parameter::script::read_script(),
            Read::Link { netdev } => super::link::state::read_script(netdev),
            Read::LinkManager { netdev } => super::link::owner::read_script(netdev),
            Read::LinkLayers { netdev } => super::link::layers::read_script(netdev),
            Read::NetdevName { device, name } => {
                super::netdev_name::script::read_script(device, name)
            }
            Read::Host => super::host::read_script(),
            Read::Hardware => super::hardware::script::read_script(),
            Read::Platform => super::hardware::script::platform_script(),
            Read::VirtualFunctions { netdev } => {
                super::platform_feature::script::read_script(netdev)
            }
            Read::CageModules => super::hardware::script::modules_script(),
            Read::RepositoryLists {
                manager,
                name,
                url,
                suite,
            } => super::package_repository::script::read_script(*manager, name, url, suite),
            Read::Packages { names } => super::package::script::read_script(names),
            Read::KernelModule { name } => super::kernel_module::script::read_script(name),
            Read::Unit { name } => super::systemd_unit::script::read_script(name),
            Read::Modified { paths } => super::systemd_unit::script::modified_script(paths),
            Read::Command { script } => super::command::script::read_script(script),
            Read::Kubernetes(_) | Read::HelmRelease(_) => {
                super::kubernetes_object::NO_HOST.to_owned()
            }
            Read::LinkQos { netdev } => super::link_qos::dcb::read_script(netdev),
            Read::LinkEcn { netdev } => super::link_ecn::read_script(netdev),
            Read::FirmwareSettings { netdev, settings } => {
                super::firmware_setting::script::read_script(netdev, settings)
            }
            Read::LldpNeighbours => super::lldp::script::read_script(),
            Read::SwitchNeighbours { system } => system.neighbours_script(),
            Read::RdmaLinks => super::rdma_link::devices::read_script(),
            Read::Configfs { path } => super::configfs_value::read_script(path),
            Read::PciDevice { device } => super::pci_setting::script::device_script(device),
            Read::PciBridges => super::pci_setting::script::bridges_script(),
            Read::Interrupts { netdev } => super::interrupt_affinity::script::read_script(netdev),
            Read::ModuleBuild {
                name,
                version,
                module,
            } => super::kernel_module_build::script::read_script(name, version, module),
            Read::Switch { system, of } => system.read_script(*of),
            Read::LinkCounters { netdevs, .. } => counters::host_script(netdevs),
            Read::RailTraffic { netdevs } => super::traffic::render_rail_traffic_script(netdevs),
            Read::SwitchCounters { system, ports, .. } => system.counters_script(ports),
        }
    }
}

impl Read {
    /// What a host may keep for root of that which the read looks at. Everything else the world may
    /// read.
    pub fn needs(&self) -> Vec<RootAccessNeed> {
        match self {
            Read::File { path } => vec![RootAccessNeed::File(path.clone())],
            Read::SealedFile { path } => vec![RootAccessNeed::Secret(path.clone())],
            Read::Sysctl { key } => super::sysctl::script::list_sysctl_access_needs(key),
            Read::Boot => super::kernel_parameter::script::list_boot_access_needs(),
            Read::LinkManager { netdev } => super::link::owner::list_manager_access_needs(netdev),
            Read::LinkLayers { netdev } => super::link::layers::list_layer_access_needs(netdev),
            Read::NetdevName { .. } => super::netdev_name::script::list_naming_access_needs(),
            Read::RepositoryLists { manager, .. } => {
                super::package_repository::script::list_repository_access_needs(*manager)
            }
            Read::Packages { .. } => super::package::script::list_package_access_needs(),
            Read::KernelModule { .. } => super::kernel_module::script::list_module_access_needs(),
            Read::Modified { paths } => paths.iter().cloned().map(RootAccessNeed::Sight).collect(),
            Read::Command { .. } => vec![RootAccessNeed::Root("the probe of a command".to_owned())],
            Read::LinkQos { netdev } => super::link_qos::dcb::list_qos_access_needs(netdev),
            Read::FirmwareSettings { .. } => {
                super::firmware_setting::script::list_firmware_access_needs()
            }
            Read::LldpNeighbours => super::lldp::script::list_lldp_access_needs(),
            Read::SwitchNeighbours { system } => vec![RootAccessNeed::Root(format!(
                "what asks {} for its neighbours",
                system.name()
            ))],
            Read::Configfs { path } => super::configfs_value::list_configfs_access_needs(path),
            Read::ModuleBuild { name, version, .. } => {
                super::kernel_module_build::script::list_build_access_needs(name, version)
            }
            Read::PciDevice { device } => super::pci_setting::script::device_needs(device),
            Read::PciBridges => super::pci_setting::script::bridges_needs(),
            Read::Host | Read::Hardware | Read::Platform | Read::CageModules | Read::RdmaLinks => {
                Vec::new()
            }
            Read::LinkCounters { .. } | Read::RailTraffic { .. } => Vec::new(),
            Read::Kubernetes(_) | Read::HelmRelease(_) => Vec::new(),
            Read::SwitchCounters { system, .. } => vec![RootAccessNeed::Root(format!(
                "what asks {} for its counters",
                system.name()
            ))],
            Read::Switch { system, .. } => vec![RootAccessNeed::Root(format!(
                "what asks {} for its configuration",
                system.name()
            ))],
            Read::VirtualFunctions { .. }
            | Read::Unit { .. }
            | Read::Link { .. }
            | Read::LinkEcn { .. }
            | Read::Interrupts { .. } => Vec::new(),
        }
    }

    /// The body of the section for a user without rights.
    pub fn script_for_others(&self) -> String {
        match self {
            Read::File { path } | Read::SealedFile { path } => {
                super::file::script::read_script_for_others(path)
            }
            other => other.script(),
        }
    }
}

/// A path as a shell word below the root prefix.
pub fn quote_rooted_path(path: &str) -> String {
    format!("\"$R\"{}", quote_for_shell(path))
}
