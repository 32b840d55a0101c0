//! The closed list of actions: all that railwright can do to a host. A kind returns them as values;
//! `action_script` turns them into POSIX sh for SSH, and the simulator applies the value itself.

use super::helm_release::request::{Release, ReleaseRecord};
use super::interrupt_affinity::script::InterruptBinding;
use super::json_in_configmap::edit::JsonEdit;
use super::json_in_configmap::mark::RestartMark;
use super::kernel_module_build::source::{ModuleBuildTool, ModuleSource};
use super::kubernetes_object::precondition::ObjectPrecondition;
use super::kubernetes_object::request::ObjectName;
use super::node_field::NodeField;
use super::node_field::edit::NodeEdit;
use super::pci_setting::script::PciWrite;
use super::switch::SwitchSystem;
use super::switch::edit::SwitchEdit;

use railwright_base::secret::{self, UnknownSecret};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// The program that keeps packages on a host.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Default,
    Serialize,
    Deserialize,
    schemars::JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum PackageManager {
    /// Debian and its family.
    #[default]
    Apt,
    /// Red Hat's family.
    Dnf,
}

/// The program that owns a netdev's configuration.
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
pub enum NetworkManagerKind {
    /// systemd-networkd.
    Networkd,
    /// NetworkManager.
    NetworkManager,
    /// netplan (which renders for one of the two above).
    Netplan,
    /// ifupdown (`/etc/network/interfaces`).
    Ifupdown,
}

/// A package with an optional exact version.
#[derive(
    Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, schemars::JsonSchema,
)]
pub struct PackageVersion {
    /// The package's name.
    pub name: String,
    /// The exact version, in the manager's own notation.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub version: Option<String>,
}

/// The systemctl verb for a unit.
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
pub enum UnitVerb {
    /// `systemctl enable`.
    Enable,
    /// `systemctl disable`.
    Disable,
    /// `systemctl start`.
    Start,
    /// `systemctl stop`.
    Stop,
    /// `systemctl restart`.
    Restart,
    /// `systemctl mask`.
    Mask,
    /// `systemctl unmask`.
    Unmask,
    /// `systemctl unmask --runtime`: a mask that the next boot would lose.
    UnmaskRuntime,
}

/// One thing to do on a host.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(tag = "action", rename_all = "snake_case")]
pub enum Action {
    /// Writes a whole file: temporary file beside it, fsync, rename. `mode` is octal text (`0644`).
    WriteFile {
        path: String,
        content: String,
        mode: String,
        owner: String,
        group: String,
    },
    /// Writes a whole file that is no text, given as base64; else like `WriteFile`. Only for
    /// restoring what was there.
    WriteBinaryFile {
        path: String,
        base64: String,
        mode: String,
        owner: String,
        group: String,
    },
    /// Removes a file; one that is not there is no error. With `below` the folders above it go
    /// along up to, not with, that one, as long as they are empty: in one action, because a file
    /// that is gone would call the step done.
    RemoveFile {
        path: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        below: Option<String>,
    },
    /// Writes a kernel setting below /proc/sys.
    SetSysctl { key: String, value: String },
    /// Loads a kernel module with parameters.
    LoadModule {
        name: String,
        parameters: BTreeMap<String, String>,
    },
    /// Unloads a kernel module.
    UnloadModule { name: String },
    /// Regenerates the boot loader's configuration (`update-grub`, `grub2-mkconfig`).
    UpdateBootLoader,
    /// Puts an argument into all boot entries or takes it out, where grubby keeps them.
    SetKernelArgument { argument: String, present: bool },
    /// Regenerates the initial RAM disks of all kernels (`update-initramfs`, `dracut`).
    UpdateInitialRamDisks,
    /// Reads the package lists anew, of one of our repositories or of all.
    RefreshPackages {
        manager: PackageManager,
        repository: Option<String>,
    },
    /// Removes the lists that were fetched from one of our repositories.
    ForgetPackageLists {
        manager: PackageManager,
        name: String,
        url: String,
        suite: String,
    },
    /// Installs packages in one run of the manager.
    InstallPackages {
        manager: PackageManager,
        packages: Vec<PackageVersion>,
    },
    /// Removes packages in one run of the manager. Their data stay, and with apt their
    /// configuration.
    RemovePackages {
        manager: PackageManager,
        names: Vec<String>,
    },
    /// Removes packages that we installed, as `remove_packages` does; what other packages need
    /// stays, as their dependency. `purge` takes their configuration too where it is as it came,
    /// and where no script of theirs runs then, which might delete more.
    ReleasePackages {
        manager: PackageManager,
        names: Vec<String>,
        purge: bool,
    },
    /// Holds packages at their version, or lets them go again.
    HoldPackages {
        manager: PackageManager,
        names: Vec<String>,
        hold: bool,
    },
    /// `systemctl daemon-reload`.
    ReloadSystemd,
    /// Tells a unit something.
    Unit { name: String, verb: UnitVerb },
    /// Sets running attributes of a netdev; addresses in CIDR form.
    SetLink {
        netdev: String,
        mtu: Option<u32>,
        up: Option<bool>,
        add_addresses: Vec<String>,
        remove_addresses: Vec<String>,
    },
    /// Has the owner of a netdev read its configuration again.
    ReloadLink {
        netdev: String,
        manager: NetworkManagerKind,
    },
    /// Adds a VLAN netdev on a parent.
    AddVlan {
        netdev: String,
        parent: String,
        id: u16,
    },
    /// Removes a VLAN netdev.
    RemoveVlan { netdev: String },
    /// Changes settings of a NetworkManager connection (`nmcli connection modify`), by its UUID.
    ModifyConnection {
        uuid: String,
        settings: BTreeMap<String, String>,
    },
    /// Changes the value of `mtu` in the stanzas of one netdev in a file of ifupdown, and nothing
    /// else of the file.
    SetInterfacesMtu {
        path: String,
        netdev: String,
        from: u32,
        to: u32,
    },
    /// Runs `dcb` with these words, one command after the other (`pfc set dev eth1 prio-pfc all:off
    /// 3:on`).
    SetDcb { commands: Vec<Vec<String>> },
    /// Runs `mlnx_qos` with these words, one command after the other, where the host has no `dcb`.
    SetMlnxQos { commands: Vec<Vec<String>> },
    /// Switches global pause frames of a netdev on or off, in both directions.
    SetPause { netdev: String, on: bool },
    /// Writes files below a netdev's `ecn`, by their names there.
    SetLinkEcn {
        netdev: String,
        settings: BTreeMap<String, String>,
    },
    /// Writes settings of a NIC's firmware for its next boot; the NIC by its PCI address.
    SetFirmware {
        device: String,
        settings: BTreeMap<String, String>,
    },
    /// Adds a Soft-RoCE device on a netdev.
    AddRdmaLink {
        name: String,
        link_type: String,
        netdev: String,
    },
    /// Removes an RDMA device that was added by software.
    RemoveRdmaLink { name: String },
    /// Writes a configfs value, making the directories that the path needs.
    SetConfigfs { path: String, value: String },
    /// Writes bits of PCI registers with `setpci`, one after the other.
    SetPci { writes: Vec<PciWrite> },
    /// Binds interrupts to CPUs.
    SetInterrupts { interrupts: Vec<InterruptBinding> },
    /// Fetches the source of an out-of-tree kernel module, verifies it, and puts it below /usr/src
    /// with a record of `digest`.
    FetchModuleSource {
        name: String,
        version: String,
        source: ModuleSource,
        dkms_conf: Option<String>,
        digest: String,
    },
    /// Builds an out-of-tree kernel module from its source below /usr/src and installs it for the
    /// running kernel; a long step.
    BuildModule {
        name: String,
        version: String,
        module: String,
        builder: ModuleBuildTool,
    },
    /// Removes an out-of-tree kernel module, for every kernel, and its source.
    RemoveModuleBuild {
        name: String,
        version: String,
        module: String,
    },
    /// Runs the script of a `command` resource, as the user's module wrote it.
    RunCommand {
        script: String,
        limit_s: u32,
        /// Variables of its environment.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        environment: BTreeMap<String, String>,
        /// What it reads from standard input.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        input: Option<String>,
    },
    /// Changes what runs on a switch, all fields in one go.
    EditSwitch {
        system: SwitchSystem,
        edits: Vec<SwitchEdit>,
    },
    /// Saves what runs on a switch, so that a reload begins with it.
    SaveSwitch { system: SwitchSystem },
    /// Reboots the host.
    Reboot,
    /// Changes nothing: what is desired becomes ready by itself, and is re-checked until then, for
    /// at most so many seconds.
    Await {
        /// What is waited for, in words.
        until: String,
        within_s: u32,
    },
    /// Applies an object of Kubernetes with its whole manifest, with force, as the field manager
    /// `railwright`; one that changed since it was read is left alone.
    ApplyObject {
        object: ObjectName,
        manifest: Value,
        precondition: ObjectPrecondition,
    },
    /// Makes an object of Kubernetes that is not there yet; one of its name is left alone, unless
    /// it bears the manifest's own annotation `request::SUBMISSION`: then an earlier try of this
    /// action made it.
    CreateObject { object: ObjectName, manifest: Value },
    /// Deletes an object of Kubernetes, its dependants first; one that changed since it was read is
    /// left alone.
    DeleteObject {
        object: ObjectName,
        precondition: ObjectPrecondition,
        /// Another one is made in its place: it has to be gone before.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        anew: bool,
    },
    /// Takes our marks from an object of Kubernetes, and nothing else; one that changed since it
    /// was read is left alone.
    UnmarkObject {
        object: ObjectName,
        precondition: ObjectPrecondition,
    },
    /// Changes parts of a JSON text in a ConfigMap and nothing else of it, if each part is as the
    /// edit says; with it the mark that its readers' pods have to bear. One that changed since it
    /// was read is left alone.
    EditConfigMap {
        object: ObjectName,
        precondition: ObjectPrecondition,
        key: String,
        edits: Vec<JsonEdit>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        mark: Option<RestartMark>,
    },
    /// Sets or takes an annotation of a workload's template of pods, so that its controller starts
    /// them anew; those of a workload that changed since it was read go on.
    MarkPodTemplate {
        object: ObjectName,
        precondition: ObjectPrecondition,
        mark: RestartMark,
    },
    /// Sets or takes one label or taint of nodes, and nothing else of them, if it is as each edit
    /// says.
    EditNodes {
        field: NodeField,
        edits: Vec<NodeEdit>,
    },
    /// Installs a release of Helm, or makes a new revision of it, with all its values.
    UpgradeRelease {
        release: Box<Release>,
        /// The newest revision that was read; nothing where there was none. Of another one nothing
        /// is changed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        looked_at: Option<ReleaseRecord>,
        /// The digest of the chart that was read. Of another one nothing is installed.
        #[serde(default)]
        content: String,
    },
    /// Uninstalls a release of Helm.
    UninstallRelease {
        name: String,
        namespace: String,
        /// What Helm deletes with it, as far as it is known before.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        deletes: Vec<ObjectName>,
        /// The newest revision that was read. Of another one nothing is deleted.
        looked_at: ReleaseRecord,
    },
    /// Has no more pods put on a node, and marks it as cordoned by us. One that somebody else
    /// cordoned is left as it is.
    CordonNode { node: String, mark: String },
    /// Takes our mark from a node and has pods put on it again. One without our mark is left as it
    /// is.
    UncordonNode { node: String },
    /// Has a pod end as its disruption budgets allow; one of another UID is left alone.
    EvictPod {
        namespace: String,
        name: String,
        uid: String,
    },
}

impl Action {
    /// The action's own word, as the plan announces it: `write_file`.
    pub fn word(&self) -> String {
        match serde_json::to_value(self) {
            Ok(value) => value
                .get("action")
                .and_then(|v| v.as_str())
                .unwrap_or_default()
                .to_owned(),
            Err(_) => String::new(),
        }
    }

    /// The file that it changes, where it is one.
    pub fn path(&self) -> Option<&str> {
        match self {
            Action::WriteFile { path, .. }
            | Action::WriteBinaryFile { path, .. }
            | Action::RemoveFile { path, .. }
            | Action::SetInterfacesMtu { path, .. } => Some(path),
            _ => None,
        }
    }

    /// Joins an action with the next one of the same transaction where the target can do both at
    /// once. Package runs join; everything else stays apart.
    pub fn join(&mut self, next: &Action) -> bool {
        match (self, next) {
            (
                Action::InstallPackages { manager, packages },
                Action::InstallPackages {
                    manager: other,
                    packages: more,
                },
            ) if manager == other => extend_without_doubles(packages, more),
            (
                Action::RemovePackages { manager, names },
                Action::RemovePackages {
                    manager: other,
                    names: more,
                },
            ) if manager == other => extend_without_doubles(names, more),
            (
                Action::ReleasePackages {
                    manager,
                    names,
                    purge: how,
                },
                Action::ReleasePackages {
                    manager: other,
                    names: more,
                    purge: also,
                },
            )
            | (
                Action::HoldPackages {
                    manager,
                    names,
                    hold: how,
                },
                Action::HoldPackages {
                    manager: other,
                    names: more,
                    hold: also,
                },
            ) if manager == other && how == also => extend_without_doubles(names, more),
            (this, next) => return *this == *next,
        }
        true
    }

    /// The action with its secrets filled in: for the rendering on its way to the target, and for
    /// nothing else. The name of the first secret that `find` does not have as the error.
    pub fn filled(&self, find: impl Fn(&str) -> Option<String>) -> Result<Action, UnknownSecret> {
        let mut filled = self.clone();
        match &mut filled {
            Action::WriteFile { content, .. } => *content = secret::fill_secrets(content, find)?,
            Action::UpgradeRelease { release, .. } => **release = release.filled(find)?,
            Action::RunCommand {
                environment, input, ..
            } => {
                for text in environment.values_mut().chain(input) {
                    *text = secret::fill_secrets(text, &find)?;
                }
            }
            _ => {}
        }
        Ok(filled)
    }

    /// How long the action may take, in seconds; ten times what is usual.
    pub fn limit_s(&self) -> u32 {
        match self {
            Action::InstallPackages { .. }
            | Action::RemovePackages { .. }
            | Action::ReleasePackages { .. }
            | Action::RefreshPackages { .. } => 1800,
            Action::BuildModule { .. } => 2700,
            Action::FetchModuleSource { .. } => 900,
            Action::UpdateBootLoader | Action::UpdateInitialRamDisks => 600,
            Action::UpgradeRelease { .. }
            | Action::UninstallRelease { .. }
            | Action::EditNodes { .. } => 600,
            // 150 entries took ten minutes on a switch with 500 ports
            // (sonic-net/sonic-buildimage#22370).
            Action::EditSwitch { .. } => 600,
            Action::RunCommand { limit_s, .. } => *limit_s,
            _ => 120,
        }
    }

    /// How long it waits for what becomes ready by itself, in seconds.
    pub fn waits_s(&self) -> u32 {
        if let Action::Await { within_s, .. } = self {
            *within_s
        } else {
            0
        }
    }

    /// Whether it changes nothing of an object or a release of a cluster that is no longer as it
    /// was looked at, and says so (`request::MOVED`).
    pub fn leaves_moved_alone(&self) -> bool {
        matches!(
            self,
            Action::ApplyObject { .. }
                | Action::DeleteObject { .. }
                | Action::UnmarkObject { .. }
                | Action::EditConfigMap { .. }
                | Action::MarkPodTemplate { .. }
                | Action::EditNodes { .. }
                | Action::UpgradeRelease { .. }
                | Action::UninstallRelease { .. }
        )
    }

    /// A long action runs under a transient unit on the host, so that it outlives our connection
    /// and is found again.
    pub fn is_long(&self) -> bool {
        self.limit_s() > 600
    }
}

fn extend_without_doubles<T: Clone + PartialEq>(all: &mut Vec<T>, more: &[T]) {
    let known = all.len();
    for one in more {
        if !all[..known].contains(one) {
            all.push(one.clone());
        }
    }
}
