//! One simulated host: a disk, a running kernel, a boot loader, packages, units and netdevs, and
//! what railwright keeps on it. It answers typed reads with the text that a real host's program
//! prints, and applies typed actions as values; it never sees a script. What it has no part for, it
//! says so, as a host without the program would.

use super::disk::{Disk, SimulatedFile, plain_mode};
use super::fault::SimulatedFault;
use super::firmware::SimulatedFirmware;
use super::links::Links;
use super::loader::{SimulatedBootLoader, SimulatedBootLoaderKind};
use super::modules::Kernel;
use super::names::SimulatedNetdevNames;
use super::packages::Packages;
use super::pci::Pci;
use super::rollback_timer::SimulatedArmedRollback;
use super::steps::SimulatedRunningAction;
use super::switch::SimulatedSwitch;
use super::units::Units;
use crate::fenced_script::FOLDER;
use crate::target_lock::{Fence, HeldBy, TargetLock, Uptime};
use railwright_base::MachineId;
use railwright_resource::action::PackageManager;
use railwright_resource::file::base64;
use railwright_resource::{Action, Read};
use std::collections::BTreeMap;
use std::time::Duration;

/// An exit status and standard output.
pub type Answered = (i32, String);

/// Done, or an exit status and standard error.
pub type Done = Result<(), (i32, String)>;

/// The folders of a fresh system that kinds write below.
const FOLDERS: [&str; 19] = [
    "/etc",
    "/etc/default",
    "/etc/default/grub.d",
    "/etc/modprobe.d",
    "/etc/modules-load.d",
    "/etc/security",
    "/etc/security/limits.d",
    "/etc/sysctl.d",
    "/etc/systemd",
    "/etc/systemd/network",
    "/etc/systemd/system",
    "/etc/apt",
    "/etc/apt/keyrings",
    "/etc/apt/preferences.d",
    "/etc/apt/sources.list.d",
    "/etc/udev",
    "/etc/udev/rules.d",
    "/usr/src",
    "/opt",
];

/// One host.
#[derive(Debug, Clone, PartialEq)]
pub struct SimulatedHost {
    /// Files.
    pub disk: Disk,
    /// Settings and modules.
    pub kernel: Kernel,
    /// Command lines.
    pub loader: SimulatedBootLoader,
    /// Packages.
    pub packages: Packages,
    /// Units.
    pub units: Units,
    /// Netdevs.
    pub links: Links,
    /// Their names.
    pub names: SimulatedNetdevNames,
    /// The firmware of the NICs below them.
    pub firmware: SimulatedFirmware,
    /// PCI functions and interrupts.
    pub pci: Pci,
    /// The probes of `command` resources: the script, and the path whose content it prints.
    pub probes: BTreeMap<String, String>,
    /// The scripts of `command` resources, and what each does.
    pub commands: BTreeMap<String, Vec<Action>>,
    /// It is a switch.
    pub switch: Option<SimulatedSwitch>,
    /// The netdev that carries our connection.
    pub ssh_netdev: Option<String>,
    /// How many boots there were.
    pub boot: u32,
    /// Virtual time of the last boot.
    pub booted: Duration,
    /// Virtual time until which nobody reaches it.
    pub down_until: Duration,
    /// What its clock is ahead of the true time, in seconds.
    pub skew_s: i64,
    /// Virtual time until which another program has the package manager's lock.
    pub packages_locked_until: Duration,
    /// `record.json` below /var/lib/railwright.
    pub record: Option<String>,
    /// The lock there, and the highest fencing token seen.
    pub lock: TargetLock,
    /// What stands in /etc/machine-id, where there is such a file.
    pub machine_id: Option<MachineId>,
    /// Its setup program has the IOMMU switched on.
    pub offers_iommu: bool,
    /// The latest automatic rollback.
    pub armed_rollback: Option<SimulatedArmedRollback>,
    /// A step that runs.
    pub running: Option<SimulatedRunningAction>,
    /// How steps ended, by their token; none for one that was killed.
    pub ended: BTreeMap<String, Option<Done>>,
    /// What will go wrong, in turn.
    pub faults: Vec<SimulatedFault>,
    /// Everything that it was asked, ever: connections, reads, actions and upkeep.
    pub calls: u32,
    /// The words of the actions that took effect, in order.
    pub told: Vec<String>,
    /// The tokens under which it was told anything, heard or not.
    pub tokens: Vec<String>,
}

impl SimulatedHost {
    /// A fresh Debian with nothing of ours.
    pub fn fresh() -> Self {
        let mut disk = Disk {
            folders: FOLDERS.map(str::to_owned).into(),
            ..Disk::default()
        };
        disk.put(
            "/etc/default/grub",
            SimulatedFile::from("GRUB_CMDLINE_LINUX_DEFAULT=\"quiet\"\nGRUB_CMDLINE_LINUX=\"\"\n"),
        );
        SimulatedHost {
            disk,
            kernel: Kernel::default(),
            loader: SimulatedBootLoader::of(SimulatedBootLoaderKind::Grub),
            packages: Packages::of(PackageManager::Apt),
            units: Units::default(),
            links: Links::default(),
            names: SimulatedNetdevNames::default(),
            firmware: SimulatedFirmware::default(),
            pci: Pci::default(),
            offers_iommu: true,
            probes: BTreeMap::new(),
            commands: BTreeMap::new(),
            switch: None,
            ssh_netdev: None,
            boot: 0,
            booted: Duration::ZERO,
            down_until: Duration::ZERO,
            skew_s: 0,
            packages_locked_until: Duration::ZERO,
            record: None,
            lock: TargetLock::default(),
            machine_id: None,
            armed_rollback: None,
            running: None,
            ended: BTreeMap::new(),
            faults: Vec::new(),
            calls: 0,
            told: Vec::new(),
            tokens: Vec::new(),
        }
    }

    /// What came of everything: the host without how often, when and under which name it was told.
    pub fn effect(&self) -> SimulatedHost {
        let mut bare = self.clone();
        bare.disk
            .files
            .values_mut()
            .for_each(|file| file.modified_s = 0);
        bare.disk.full_for = 0;
        bare.units.let_go();
        bare.units.now_s = 0;
        bare.units
            .known
            .values_mut()
            .for_each(|unit| unit.since_s = 0);
        (
            bare.boot,
            bare.booted,
            bare.down_until,
            bare.calls,
            bare.lock.highest,
        ) = (0, Duration::ZERO, Duration::ZERO, 0, 0);
        bare.armed_rollback.take_if(|armed| armed.reverted);
        (bare.record, bare.faults, bare.told, bare.tokens) =
            (None, Vec::new(), Vec::new(), Vec::new());
        (bare.ended, bare.skew_s, bare.packages_locked_until) =
            (BTreeMap::new(), 0, Duration::ZERO);
        bare
    }

    /// The netdev or the port that carries our connection carries nothing: it is down, or too small
    /// for a TCP segment.
    pub fn is_cut_off(&self) -> bool {
        let link = self
            .ssh_netdev
            .as_ref()
            .and_then(|netdev| self.links.0.get(netdev));
        link.is_some_and(|link| !link.up || link.mtu < 576)
            || self
                .switch
                .as_ref()
                .is_some_and(SimulatedSwitch::is_cut_off)
    }

    /// The release of its kernel.
    pub fn release(&self) -> &'static str {
        "6.1.0-37-amd64"
    }

    /// Seconds since 1970 by its own clock. The fleet began at the start of 2026.
    pub fn clock_s(&self, now: Duration) -> u64 {
        const BEGAN_S: u64 = 1_767_225_600;
        (BEGAN_S + now.as_secs()).saturating_add_signed(self.skew_s)
    }

    /// Its monotonic clock. It was up for a day when the fleet began.
    pub fn uptime(&self, now: Duration) -> Uptime {
        const BEFORE_S: u64 = 86_400;
        let before = if self.boot == 0 { BEFORE_S } else { 0 };
        Uptime {
            boot: format!("boot-{}", self.boot),
            seconds: before + now.saturating_sub(self.booted).as_secs(),
        }
    }

    /// Gives the lock to this holder, whose latest heartbeat was so many seconds ago.
    pub fn hold(&mut self, holder: &str, number: u64, silence_s: u64, now: Duration) {
        let mut seen = self.uptime(now);
        seen.seconds = seen.seconds.saturating_sub(silence_s);
        self.lock = TargetLock {
            held: Some(HeldBy {
                fence: Fence::new(holder, number),
                seen,
                note: String::new(),
            }),
            highest: number,
        };
    }

    /// The line of who has the lock.
    pub fn holder(&self) -> Option<&str> {
        self.lock
            .held
            .as_ref()
            .map(|held| held.fence.holder.as_str())
    }

    /// The answer to a read.
    pub fn answer(&self, read: &Read) -> Answered {
        match read {
            Read::Host => (0, self.identity()),
            Read::File { path } if path.strip_prefix(FOLDER) == Some("/record.json") => {
                let Some(record) = &self.record else {
                    return (1, String::new());
                };
                let size = record.len();
                (0, format!("600 root root {size} regular file\n{record}"))
            }
            Read::File { path } | Read::SealedFile { path } => self.disk.read(path),
            Read::Modified { paths } => self.disk.modified(paths),
            Read::Sysctl { key } => self.kernel.read_sysctl(key, &self.disk),
            Read::KernelModule { name } => {
                self.kernel.read_module(name, self.release(), &self.disk)
            }
            Read::Packages { names } => self.packages.read(names),
            Read::RepositoryLists { manager, name, .. } => self.packages.read_lists(*manager, name),
            Read::Unit { name } => self.units.read(name, &self.disk),
            Read::Boot => self.loader.read(&self.disk),
            Read::Link { netdev } => self.links.read(netdev),
            Read::LinkLayers { netdev } => self.links.read_layers(netdev, &self.disk),
            Read::LinkManager { netdev } => self.links.read_manager(netdev, &self.disk),
            Read::NetdevName { device, name } => {
                self.names.read(device, name, &self.links, &self.disk)
            }
            Read::Command { script } => match self.probes.get(script) {
                Some(path) => self
                    .disk
                    .text(path)
                    .map_or((1, String::new()), |text| (0, text)),
                None => (127, String::new()),
            },
            Read::PciDevice { device } => self.pci.read(device),
            Read::PciBridges => self.pci.read_bridges(),
            Read::Interrupts { netdev } => self.pci.read_interrupts(netdev),
            Read::Hardware | Read::CageModules => (0, String::new()),
            Read::Platform => (0, self.platform()),
            Read::VirtualFunctions { .. } => (1, String::new()),
            Read::RdmaLinks => (1, String::new()),
            Read::FirmwareSettings { netdev, .. } => self
                .firmware
                .read(netdev, self.links.0.contains_key(netdev)),
            Read::LinkQos { .. }
            | Read::LinkEcn { .. }
            | Read::Configfs { .. }
            | Read::ModuleBuild { .. } => (127, String::new()),
            Read::Switch { system, of } => self.read_switch(*system, *of),
            Read::LinkCounters { netdevs, .. } => self.links.read_counters(netdevs),
            Read::RailTraffic { netdevs } => self.links.read_traffic(netdevs),
            Read::SwitchCounters { system, ports, .. } => self.read_switch_counters(*system, ports),
            Read::LldpNeighbours | Read::SwitchNeighbours { .. } => {
                (0, "\n== lldpctl 127\n".to_owned())
            }
            Read::Kubernetes(_) | Read::HelmRelease(_) => (70, String::new()),
        }
    }

    fn platform(&self) -> String {
        let table = if self.offers_iommu {
            "|iommu_table=DMAR\n"
        } else {
            ""
        };
        format!(
            "\n\
             == platform\n\
             |sys_vendor=Simulated\n\
             |product_name=Server\n\
             |processor_vendor=GenuineIntel\n\
             |acpi=1\n\
             {table}|iommu_known=1\n\
             \n\
             == end\n"
        )
    }

    fn identity(&self) -> String {
        let tools = match self.packages.manager {
            PackageManager::Apt => "tool apt-get\ntool dpkg-query\n",
            PackageManager::Dnf => "tool dnf\ntool rpm\n",
        };
        let machine_id = self
            .machine_id
            .as_ref()
            .map_or_else(|| "none".to_owned(), ToString::to_string);
        let ssh = self
            .ssh_netdev
            .as_ref()
            .map(|netdev| format!("ssh {netdev}\n"))
            .unwrap_or_default();
        format!(
            "version 1\n\
             os ID=debian\n\
             os VERSION_ID=\"12\"\n\
             kernel {}\n\
             boot_id boot-{}\n\
             cmdline {}\n\
             architecture x86_64\n\
             uid 0\n\
             init systemd\n\
             {tools}virtualization none\n\
             machine_id {machine_id}\n\
             {ssh}end\n",
            self.release(),
            self.boot,
            self.loader.running.join(" "),
        )
    }

    /// Applies an action.
    pub fn act(&mut self, action: &Action, now: Duration) -> Done {
        match action {
            Action::SetSysctl { key, value } => self.kernel.set_sysctl(key, value),
            Action::LoadModule { name, parameters } => {
                self.kernel
                    .load(name, parameters, self.release(), &self.disk)
            }
            Action::UnloadModule { name } => self.kernel.unload(name),
            Action::UpdateBootLoader => self.loader.update(&self.disk),
            Action::UpdateInitialRamDisks => {
                self.names.update(&self.disk);
                Ok(())
            }
            Action::SetKernelArgument { argument, present } => {
                self.loader.set_argument(argument, *present)
            }
            Action::ReloadSystemd => {
                self.units.reload(&self.disk);
                Ok(())
            }
            Action::Unit { name, verb } => {
                let now_s = self.clock_s(now);
                self.units.tell(name, *verb, &self.disk, now_s)
            }
            Action::SetFirmware { device, settings } => self.firmware.set(device, settings),
            Action::SetPci { writes } => self.pci.set(writes),
            Action::SetInterrupts { interrupts } => self.pci.bind(interrupts),
            Action::RunCommand { script, .. } => self.run(script, now),
            Action::EditSwitch { .. } | Action::SaveSwitch { .. } => self.act_on_switch(action),
            Action::Reboot => {
                self.reboot(now);
                Ok(())
            }
            other => self.act_on_files(other, self.clock_s(now)),
        }
    }

    /// Applies an action on files, which get this time, in seconds since 1970; any other goes to
    /// the links.
    fn act_on_files(&mut self, action: &Action, modified_s: u64) -> Done {
        let (path, content, mode, owner, group) = match action {
            Action::WriteFile {
                path,
                content,
                mode,
                owner,
                group,
            } => (path, content.clone().into_bytes(), mode, owner, group),
            Action::WriteBinaryFile {
                path,
                base64,
                mode,
                owner,
                group,
            } => {
                let content = base64::decode_base64_text(base64)
                    .ok_or_else(|| (1, "base64: invalid input".to_owned()))?;
                (path, content, mode, owner, group)
            }
            Action::RemoveFile { path, below } => {
                self.disk.remove(path, below.as_deref());
                return Ok(());
            }
            other => return self.act_on_links(other),
        };
        let file = SimulatedFile {
            content,
            mode: plain_mode(mode),
            owner: owner.clone(),
            group: group.clone(),
            modified_s,
        };
        self.disk.write(path, file)
    }

    /// Applies an action on netdevs; any other goes to the packages.
    fn act_on_links(&mut self, action: &Action) -> Done {
        match action {
            Action::SetLink {
                netdev,
                mtu,
                up,
                add_addresses,
                remove_addresses,
            } => self
                .links
                .set(netdev, *mtu, *up, add_addresses, remove_addresses),
            Action::AddVlan { netdev, parent, id } => self.links.add_vlan(netdev, parent, *id),
            Action::RemoveVlan { netdev } => self.links.remove_vlan(netdev),
            Action::ReloadLink { .. } => {
                self.links.reload(&self.disk);
                Ok(())
            }
            other => self.act_on_packages(other),
        }
    }

    fn act_on_packages(&mut self, action: &Action) -> Done {
        self.disk
            .room()
            .map_err(|(_, why)| (100, format!("E: {why}\nrailwright: {why}")))?;
        match action {
            Action::RefreshPackages { repository, .. } => {
                self.packages.refresh(repository.as_deref())
            }
            Action::ForgetPackageLists { name, .. } => {
                self.packages.fetched.remove(name);
                Ok(())
            }
            Action::InstallPackages { packages, .. } => self.packages.install(packages),
            Action::RemovePackages { names, .. } => self.packages.remove(names, false),
            Action::ReleasePackages { names, purge, .. } => self.packages.remove(names, *purge),
            Action::HoldPackages { names, hold, .. } => self.packages.hold(names, *hold),
            other => Err((
                127,
                format!(
                    "sh: a simulated host has nothing for {}: not found",
                    other.word()
                ),
            )),
        }
    }

    fn run(&mut self, script: &str, now: Duration) -> Done {
        let actions = self
            .commands
            .get(script)
            .cloned()
            .ok_or_else(|| (127, "sh: not found".to_owned()))?;
        actions.iter().try_for_each(|action| self.act(action, now))
    }

    /// The host goes down and comes back: what only ran is gone, what was written counts.
    pub fn reboot(&mut self, now: Duration) {
        self.boot += 1;
        self.booted = now + super::pace::BOOT;
        self.down_until = self.booted;
        self.running = None;
        self.loader.running = self.loader.next.clone();
        let release = self.release();
        self.kernel.boot(release, &self.disk);
        self.units.boot(&self.disk, self.clock_s(self.booted));
        self.names
            .boot(&self.disk, &mut self.links, &mut self.ssh_netdev);
        self.links.boot(&self.disk);
        self.firmware.boot(false);
        self.pci.boot(&self.disk);
        if let Some(switch) = &mut self.switch {
            switch.boot(&self.disk);
        }
        // A boot with an automatic rollback that is armed: nobody has confirmed anything.
        if self
            .armed_rollback
            .as_ref()
            .is_some_and(|armed| !armed.reverted)
        {
            self.revert(self.booted);
        }
    }

    /// The host is switched off and on.
    pub fn power_cycle(&mut self, now: Duration) {
        self.firmware.boot(true);
        self.reboot(now);
    }

    /// The boot failed and the earlier entry was taken: the command line of before.
    pub fn reboot_into_old(&mut self, now: Duration) {
        let old = self.loader.running.clone();
        self.reboot(now);
        self.loader.running = old;
    }
}
