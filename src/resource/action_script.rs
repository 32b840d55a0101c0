//! Actions rendered to POSIX sh, each by its kind.

use super::action::{Action, PackageManager};
use super::kubernetes_object::NO_HOST;

/// What is run for an action that these functions have no script for; `Action::script` asks each
/// for its own alone.
const NO_SCRIPT: &str = "exit 70\n";

impl Action {
    /// The action as a POSIX sh script, to be fed to `sh -s`. Exit 0 is necessary, never
    /// sufficient: the resource is read again.
    pub fn script(&self) -> String {
        match self {
            Action::WriteFile { .. }
            | Action::WriteBinaryFile { .. }
            | Action::RemoveFile { .. } => self.file_script(),
            Action::SetSysctl { .. }
            | Action::UpdateBootLoader
            | Action::SetKernelArgument { .. }
            | Action::UpdateInitialRamDisks => self.kernel_script(),
            Action::LoadModule { .. } | Action::UnloadModule { .. } => self.kernel_script(),
            Action::FetchModuleSource { .. }
            | Action::BuildModule { .. }
            | Action::RemoveModuleBuild { .. } => self.module_script(),
            Action::RefreshPackages { .. }
            | Action::ForgetPackageLists { .. }
            | Action::HoldPackages { .. } => self.package_script(),
            Action::InstallPackages { .. }
            | Action::RemovePackages { .. }
            | Action::ReleasePackages { .. } => self.package_script(),
            Action::SetLink { .. } | Action::ReloadLink { .. } => self.link_script(),
            Action::AddVlan { .. } | Action::RemoveVlan { .. } => self.link_script(),
            Action::ModifyConnection { .. } | Action::SetInterfacesMtu { .. } => self.link_script(),
            Action::SetDcb { .. } | Action::SetMlnxQos { .. } => self.device_script(),
            Action::SetPause { .. } | Action::SetLinkEcn { .. } => self.device_script(),
            Action::AddRdmaLink { .. } | Action::RemoveRdmaLink { .. } => self.device_script(),
            Action::SetFirmware { .. }
            | Action::SetConfigfs { .. }
            | Action::SetPci { .. }
            | Action::SetInterrupts { .. } => self.device_script(),
            Action::EditSwitch { system, edits } => system.edit_script(edits),
            Action::SaveSwitch { system } => system.save_script(),
            Action::Reboot => super::reboot::render_reboot_script(),
            Action::ReloadSystemd => super::systemd_unit::script::reload_script(),
            Action::Unit { name, verb } => super::systemd_unit::script::unit_script(name, *verb),
            Action::RunCommand { .. } => self.command_script(),
            Action::Await { .. }
            | Action::ApplyObject { .. }
            | Action::CreateObject { .. }
            | Action::DeleteObject { .. }
            | Action::UnmarkObject { .. } => NO_HOST.to_owned(),
            Action::EditConfigMap { .. } | Action::MarkPodTemplate { .. } => NO_HOST.to_owned(),
            Action::UpgradeRelease { .. } | Action::UninstallRelease { .. } => NO_HOST.to_owned(),
            Action::EditNodes { .. }
            | Action::CordonNode { .. }
            | Action::UncordonNode { .. }
            | Action::EvictPod { .. } => NO_HOST.to_owned(),
        }
    }

    fn file_script(&self) -> String {
        use super::file::script::{remove_script, write_binary_script, write_script};
        match self {
            Action::WriteFile {
                path,
                content,
                mode,
                owner,
                group,
            } => write_script(path, content, mode, owner, group),
            Action::WriteBinaryFile {
                path,
                base64,
                mode,
                owner,
                group,
            } => write_binary_script(path, base64, mode, owner, group),
            Action::RemoveFile { path, below } => remove_script(path, below.as_deref()),
            _ => NO_SCRIPT.to_owned(),
        }
    }

    fn kernel_script(&self) -> String {
        use super::{kernel_module, kernel_parameter, netdev_name, sysctl};
        match self {
            Action::SetSysctl { key, value } => sysctl::script::set_script(key, value),
            Action::UpdateBootLoader => kernel_parameter::script::update_script(),
            Action::SetKernelArgument { argument, present } => {
                kernel_parameter::script::argument_script(argument, *present)
            }
            Action::UpdateInitialRamDisks => netdev_name::script::update_script(),
            Action::LoadModule { name, parameters } => {
                kernel_module::script::load_script(name, parameters)
            }
            Action::UnloadModule { name } => kernel_module::script::unload_script(name),
            _ => NO_SCRIPT.to_owned(),
        }
    }

    fn link_script(&self) -> String {
        use super::link::{ifupdown, network_manager, owner, state};
        use super::vlan;
        match self {
            Action::SetLink {
                netdev,
                mtu,
                up,
                add_addresses,
                remove_addresses,
            } => state::set_script(netdev, *mtu, *up, add_addresses, remove_addresses),
            Action::ReloadLink { netdev, manager } => owner::reload_script(netdev, *manager),
            Action::AddVlan { netdev, parent, id } => vlan::change::add_script(netdev, parent, *id),
            Action::RemoveVlan { netdev } => vlan::change::remove_script(netdev),
            Action::ModifyConnection { uuid, settings } => {
                network_manager::modify_script(uuid, settings)
            }
            Action::SetInterfacesMtu {
                path,
                netdev,
                from,
                to,
            } => ifupdown::mtu_script(path, netdev, *from, *to),
            _ => NO_SCRIPT.to_owned(),
        }
    }

    fn device_script(&self) -> String {
        use super::{configfs_value, firmware_setting, interrupt_affinity, link_ecn, pci_setting};
        use super::{link_qos, rdma_link};
        match self {
            Action::SetDcb { commands } => link_qos::dcb::set_now_script(commands),
            Action::SetMlnxQos { commands } => link_qos::mlnx::set_script(commands),
            Action::SetPause { netdev, on } => link_qos::dcb::pause_script(netdev, *on),
            Action::SetLinkEcn { netdev, settings } => link_ecn::set_script(netdev, settings),
            Action::SetFirmware { device, settings } => {
                firmware_setting::script::set_script(device, settings)
            }
            Action::AddRdmaLink {
                name,
                link_type,
                netdev,
            } => rdma_link::add_script(name, link_type, netdev),
            Action::RemoveRdmaLink { name } => rdma_link::remove_script(name),
            Action::SetConfigfs { path, value } => configfs_value::set_script(path, value),
            Action::SetPci { writes } => pci_setting::script::set_script(writes),
            Action::SetInterrupts { interrupts } => {
                interrupt_affinity::script::set_script(interrupts)
            }
            _ => NO_SCRIPT.to_owned(),
        }
    }

    fn command_script(&self) -> String {
        match self {
            Action::RunCommand {
                script,
                environment,
                input,
                ..
            } => super::command::script::run_script(script, environment, input.as_deref()),
            _ => NO_SCRIPT.to_owned(),
        }
    }

    fn module_script(&self) -> String {
        use super::kernel_module_build::script::{build_script, fetch_script, remove_script};
        match self {
            Action::FetchModuleSource {
                name,
                version,
                source,
                dkms_conf,
                digest,
            } => fetch_script(name, version, source, dkms_conf.as_deref(), digest),
            Action::BuildModule {
                name,
                version,
                module,
                builder,
            } => build_script(name, version, module, *builder),
            Action::RemoveModuleBuild {
                name,
                version,
                module,
            } => remove_script(name, version, module),
            _ => NO_SCRIPT.to_owned(),
        }
    }

    fn package_script(&self) -> String {
        use super::package::{apt, dnf};
        use PackageManager::{Apt, Dnf};
        match self {
            Action::RefreshPackages {
                manager: Apt,
                repository,
            } => apt::refresh_script(repository.as_deref()),
            Action::RefreshPackages {
                manager: Dnf,
                repository,
            } => dnf::refresh_script(repository.as_deref()),
            Action::InstallPackages {
                manager: Apt,
                packages,
            } => apt::install_script(packages),
            Action::InstallPackages {
                manager: Dnf,
                packages,
            } => dnf::install_script(packages),
            Action::RemovePackages {
                manager: Apt,
                names,
            } => apt::remove_script(names),
            Action::RemovePackages {
                manager: Dnf,
                names,
            } => dnf::remove_script(names),
            Action::ReleasePackages {
                manager: Apt,
                names,
                purge,
            } => apt::release_script(names, *purge),
            Action::ReleasePackages {
                manager: Dnf,
                names,
                ..
            } => dnf::release_script(names),
            Action::HoldPackages {
                manager: Apt,
                names,
                hold,
            } => apt::hold_script(names, *hold),
            Action::HoldPackages {
                manager: Dnf,
                names,
                hold,
            } => dnf::hold_script(names, *hold),
            Action::ForgetPackageLists {
                manager,
                name,
                url,
                suite,
            } => super::package_repository::script::forget_script(*manager, name, url, suite),
            _ => NO_SCRIPT.to_owned(),
        }
    }
}
