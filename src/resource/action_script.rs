//! Actions rendered to POSIX sh, each by its kind.

use super::action::{Action, PackageManager};

impl Action {
    /// The action as a POSIX sh script, to be fed to `sh -s`. Exit 0 is necessary, never
    /// sufficient: the resource is read again.
    pub fn script(&self) -> String {
        match self {
            Action::WriteFile {
                path,
                content,
                mode,
                owner,
                group,
            } => super::file::script::write_script(path, content, mode, owner, group),
            Action::WriteBinaryFile {
                path,
                base64,
                mode,
                owner,
                group,
            } => super::file::script::write_binary_script(path, base64, mode, owner, group),
            Action::RemoveFile { path, below } => {
                super::file::script::remove_script(path, below.as_deref())
            }
            Action::SetSysctl { key, value } => super::sysctl::script::set_script(key, value),
            Action::UpdateBootLoader => super::kernel_parameter::script::update_script(),
            Action::SetKernelArgument { argument, present } => {
                super::kernel_parameter::script::argument_script(argument, *present)
            }
            Action::UpdateInitialRamDisks => super::netdev_name::script::update_script(),
            Action::SetLink {
                netdev,
                mtu,
                up,
                add_addresses,
                remove_addresses,
            } => super::link::state::set_script(netdev, *mtu, *up, add_addresses, remove_addresses),
            Action::ReloadLink { netdev, manager } => {
                super::link::owner::reload_script(netdev, *manager)
            }
            Action::AddVlan { netdev, parent, id } => {
                super::vlan::change::add_script(netdev, parent, *id)
            }
            Action::RemoveVlan { netdev } => super::vlan::change::remove_script(netdev),
            Action::ModifyConnection { uuid, settings } => {
                super::link::network_manager::modify_script(uuid, settings)
            }
            Action::SetInterfacesMtu {
                path,
                netdev,
                from,
                to,
            } => super::link::ifupdown::mtu_script(path, netdev, *from, *to),
            Action::EditSwitch { system, edits } => system.edit_script(edits),
            Action::SaveSwitch { system } => system.save_script(),
            Action::Reboot => super::reboot::render_reboot_script(),
            Action::Await { .. }
            | Action::ApplyObject { .. }
            | Action::CreateObject { .. }
            | Action::DeleteObject { .. } => super::kubernetes_object::NO_HOST.to_owned(),
            Action::EditConfigMap { .. }
            | Action::MarkPodTemplate { .. }
            | Action::EditNodes { .. }
            | Action::UpgradeRelease { .. }
            | Action::UninstallRelease { .. }
            | Action::CordonNode { .. }
            | Action::UncordonNode { .. }
            | Action::EvictPod { .. }
            | Action::UnmarkObject { .. } => super::kubernetes_object::NO_HOST.to_owned(),
            Action::RefreshPackages { .. }
            | Action::ForgetPackageLists { .. }
            | Action::HoldPackages { .. } => self.package_script(),
            Action::InstallPackages { .. }
            | Action::RemovePackages { .. }
            | Action::ReleasePackages { .. } => self.package_script(),
            Action::ReloadSystemd => super::systemd_unit::script::reload_script(),
            Action::Unit { name, verb } => super::systemd_unit::script::unit_script(name, *verb),
            Action::LoadModule { name, parameters } => {
                super::kernel_module::script::load_script(name, parameters)
            }
            Action::UnloadModule { name } => super::kernel_module::script::unload_script(name),
            Action::FetchModuleSource { .. }
            | Action::BuildModule { .. }
            | Action::RemoveModuleBuild { .. } => self.module_script(),
            Action::RunCommand {
                script,
                environment,
                input,
                ..
            } => super::command::script::run_script(script, environment, input.as_deref()),
            Action::SetDcb { commands } => super::link_qos::dcb::set_now_script(commands),
            Action::SetMlnxQos { commands } => super::link_qos::mlnx::set_script(commands),
            Action::SetPause { netdev, on } => super::link_qos::dcb::pause_script(netdev, *on),
            Action::SetLinkEcn { netdev, settings } => {
                super::link_ecn::set_script(netdev, settings)
            }
            Action::SetFirmware { device, settings } => {
                super::firmware_setting::script::set_script(device, settings)
            }
            Action::AddRdmaLink {
                name,
                link_type,
                netdev,
            } => super::rdma_link::add_script(name, link_type, netdev),
            Action::RemoveRdmaLink { name } => super::rdma_link::remove_script(name),
            Action::SetConfigfs { path, value } => super::configfs_value::set_script(path, value),
            Action::SetPci { writes } => super::pci_setting::script::set_script(writes),
            Action::SetInterrupts { interrupts } => {
                super::interrupt_affinity::script::set_script(interrupts)
            }
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
            _ => String::from("exit 70\n"),
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
            _ => String::from("exit 70\n"),
        }
    }
}
