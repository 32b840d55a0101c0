//! What differs between a declared module and the host, and what fixes it.

use super::found::{FoundModule, normal_name, same_value};
use super::{HEAD, KernelModuleBody, boot_file, modprobe_file};
use crate::body::read_body;
use crate::file::found::{FileState, build_config_file_action};
use crate::{
    Action, Attribute, DesiredResource, Disruption, Plane, ReadResults, Reading, ResourceDiff,
};
use railwright_base::Reason;
use std::collections::BTreeMap;

/// The devices that a software RDMA driver takes along when it goes.
fn list_disturbed_resources(name: &str, module: &FoundModule) -> Vec<String> {
    let mut out = Vec::new();
    for netdev in &module.netdevs {
        out.extend(
            ["link", "link_qos", "interrupt_affinity"].map(|kind| format!("{kind}/{netdev}")),
        );
    }
    if ["rdma_rxe", "siw"].contains(&name) || !module.netdevs.is_empty() {
        out.push("rdma_link/*".to_owned());
    }
    out
}

/// A declared module beside what the host reports of it.
pub(super) struct KernelModuleDiffBuilder {
    /// The module's name as the kernel writes it.
    pub(super) name: String,
    pub(super) body: KernelModuleBody,
    /// What the host reports, or why that is not known.
    pub(super) module: Result<FoundModule, Reason>,
}

impl KernelModuleDiffBuilder {
    pub(super) fn new(resource: &DesiredResource, answers: &ReadResults) -> Self {
        let body: KernelModuleBody = read_body(&resource.body);
        let name = normal_name(&body.name);
        let module = FoundModule::of(&name, answers);
        KernelModuleDiffBuilder { name, body, module }
    }

    fn reading(&self, of: impl Fn(&FoundModule) -> Reading) -> Reading {
        match &self.module {
            Ok(module) => of(module),
            Err(reason) => Reading::Unknown(reason.clone()),
        }
    }

    pub(super) fn attributes(&self, diff: &mut ResourceDiff) {
        let body = &self.body;
        let attributes = &mut diff.attributes;
        if let Some(loaded) = body.loaded {
            let actual = self.reading(|module| reading_from_presence(module.is_there()));
            attributes.insert(
                "loaded".to_owned(),
                Attribute::in_plane(Plane::Running, reading_from_presence(loaded), actual),
            );
        }
        if let Some(at_boot) = body.at_boot {
            let actual = self.reading(|module| {
                reading_from_presence(!module.at_boot.is_empty() || module.builtin)
            });
            attributes.insert(
                "at_boot".to_owned(),
                Attribute::in_plane(Plane::NextBoot, reading_from_presence(at_boot), actual),
            );
        }
        if let Some(blacklist) = body.blacklist {
            let actual = self.reading(|module| {
                reading_from_presence(module.blacklisted_by(&self.name).is_some())
            });
            attributes.insert(
                "blacklist".to_owned(),
                Attribute::in_plane(Plane::Persisted, reading_from_presence(blacklist), actual),
            );
        }
        for (key, value) in &self.body.options {
            let persisted = self.reading(|module| persisted_option(module, &self.name, key));
            let running = self.reading(|module| running_option(module, key, value));
            let desired = Reading::is(value.as_str());
            attributes.insert(
                format!("option {key}"),
                Attribute::in_plane(Plane::Persisted, desired.clone(), persisted).and(
                    Plane::Running,
                    desired,
                    running,
                ),
            );
        }
    }

    /// Unloads, or says why that cannot be.
    pub(super) fn unload(&self, module: &FoundModule, diff: &mut ResourceDiff) -> bool {
        if module.references > 0 {
            return false;
        }
        diff.actions.push(Action::UnloadModule {
            name: self.name.clone(),
        });
        diff.disturbs = list_disturbed_resources(&self.name, module);
        diff.disruption = if module.netdevs.is_empty() {
            Disruption::Reload
        } else {
            Disruption::LinkBlip
        };
        diff.interrupts_netdevs.clone_from(&module.netdevs);
        let served = if module.netdevs.is_empty() {
            String::new()
        } else {
            format!(" with {}", module.netdevs.join(", "))
        };
        diff.interrupts
            .push(format!("the module {} is unloaded{served}", self.name));
        true
    }

    pub(super) fn users(&self, module: &FoundModule) -> String {
        match module.users[..] {
            [] => format!("{} uses of it are open", module.references),
            _ => format!("{} uses it", module.users.join(", ")),
        }
    }

    pub(super) fn load(&self, parameters: &BTreeMap<String, String>) -> Action {
        Action::LoadModule {
            name: self.name.clone(),
            parameters: parameters.clone(),
        }
    }

    /// Loads it again, with the host where it is in use.
    pub(super) fn reload(
        &self,
        module: &FoundModule,
        parameters: &BTreeMap<String, String>,
        diff: &mut ResourceDiff,
    ) {
        if self.unload(module, diff) {
            diff.actions.push(self.load(parameters));
            return;
        }
        diff.needs_reboot = true;
        diff.interrupts.push(format!(
            "the options of {} wait for a reboot: {}",
            self.name,
            self.users(module)
        ));
    }

    pub(super) fn running_actions(&self, module: &FoundModule, diff: &mut ResourceDiff) {
        let mut options = self.body.options.keys();
        let option_differs =
            options.any(|key| differs_in(diff, &format!("option {key}"), Plane::Running));
        let pending = module.loaded && option_differs;
        let loaded_differs = differs_in(diff, "loaded", Plane::Running);
        match self.body.loaded {
            Some(true) if loaded_differs => diff.actions.push(self.load(&self.body.options)),
            Some(false) if module.builtin => {
                diff.refusal = Some(format!(
                    "{} is built into the kernel and cannot be unloaded",
                    self.name
                ));
            }
            Some(false) if loaded_differs && !self.unload(module, diff) => {
                diff.refusal = Some(format!(
                    "{} cannot be unloaded: {}",
                    self.name,
                    self.users(module)
                ));
            }
            Some(false) => {}
            _ if pending => self.reload(module, &self.body.options, diff),
            _ => {}
        }
        if module.builtin && option_differs {
            diff.refusal = Some(format!(
                "{0} is built into the kernel; its options belong on the command line as \
                 {0}.KEY=VALUE",
                self.name
            ));
        }
    }

    pub(super) fn file_actions(
        &self,
        own: &[(String, Option<String>, FileState)],
        diff: &mut ResourceDiff,
    ) {
        for (path, content, found) in own {
            match content {
                Some(content) if found.text() != Some(content) => diff
                    .actions
                    .push(build_config_file_action(path, content.clone())),
                None if !matches!(found, FileState::Absent { .. } | FileState::Unknown { .. }) => {
                    diff.actions.push(Action::RemoveFile {
                        path: path.clone(),
                        below: None,
                    });
                }
                _ => {}
            }
        }
    }

    /// What is loaded from the initial RAM disk is loaded as its copy of modprobe.d says
    /// (initramfs-tools(7), dracut(8)), whatever the module runs with until then.
    pub(super) fn copy_to_ram_disk(&self, module: &FoundModule, diff: &mut ResourceDiff) {
        let own = modprobe_file(&self.name);
        let changes = diff.needs_reboot
            || diff
                .actions
                .iter()
                .any(|action| action.path() == Some(&*own));
        if module.ram_disk && changes {
            diff.actions.push(Action::UpdateInitialRamDisks);
        }
    }

    /// Somebody else's file that contradicts the desired state.
    pub(super) fn contradiction(&self, module: &FoundModule) -> Option<String> {
        let ours = [boot_file(&self.name), modprobe_file(&self.name)];
        let body = &self.body;
        let loads = module
            .at_boot
            .iter()
            .find(|line| !ours.contains(&line.path));
        if let Some(line) = loads.filter(|_| body.at_boot == Some(false)) {
            return Some(format!(
                "{} loads {} at boot; remove that line first",
                line.path, self.name
            ));
        }
        let blacklists = module
            .blacklisted_by(&self.name)
            .filter(|path| !ours.iter().any(|own| own == path));
        // systemd-modules-load loads nothing that is blacklisted (systemd:
        // src/modules-load/modules-load.c, KMOD_PROBE_APPLY_BLACKLIST).
        let is_undesired = body.blacklist == Some(false) || body.at_boot == Some(true);
        if let Some(path) = blacklists.filter(|_| is_undesired) {
            return Some(format!(
                "{path} blacklists {}; remove that line first",
                self.name
            ));
        }
        for (key, value) in &self.body.options {
            if let Some((found, path)) = module.option(&self.name, key)
                && found != *value
                && path > modprobe_file(&self.name)
                && !ours.contains(&path)
            {
                return Some(format!(
                    "{path} gives {} another option ({found}) and is read after our file; change \
                     that line first",
                    self.name
                ));
            }
        }
        None
    }

    pub(super) fn own_files(
        &self,
        answers: &ReadResults,
    ) -> Vec<(String, Option<String>, FileState)> {
        let (boot, modprobe) = (boot_file(&self.name), modprobe_file(&self.name));
        let elsewhere = self
            .module
            .as_ref()
            .is_ok_and(|m| m.builtin || m.at_boot.iter().any(|line| line.path != boot));
        let desired = self.body.at_boot == Some(true) && !elsewhere;
        let boot_content = desired.then(|| format!("{HEAD}{}\n", self.name));
        let boot_state = FileState::at(&boot, answers);
        let modprobe_state = FileState::at(&modprobe, answers);
        vec![
            (boot, boot_content, boot_state),
            (modprobe, self.body.render_modprobe_file(), modprobe_state),
        ]
    }
}

fn differs_in(diff: &ResourceDiff, name: &str, plane: Plane) -> bool {
    diff.attributes
        .get(name)
        .is_some_and(|attribute| attribute.differences().iter().any(|(p, ..)| *p == plane))
}

/// `true`, or absent: a module that is not loaded is not there.
pub(super) fn reading_from_presence(there: bool) -> Reading {
    if there {
        Reading::is(true)
    } else {
        Reading::Absent
    }
}

pub(super) fn persisted_option(module: &FoundModule, name: &str, key: &str) -> Reading {
    match (module.goes_on(name), module.option(name, key)) {
        (Some(path), _) => Reading::Unknown(
            format!("{path} has options that go on in the next line; write them on one line")
                .into(),
        ),
        (None, Some((found, _))) => Reading::is(found),
        (None, None) => Reading::Absent,
    }
}

pub(super) fn running_option(module: &FoundModule, key: &str, desired: &str) -> Reading {
    match module.parameters.get(&normal_name(key)) {
        Some(actual) if same_value(desired, actual) => Reading::is(desired),
        Some(actual) => Reading::is(actual.as_str()),
        None if module.hidden.contains(&normal_name(key)) => {
            Reading::Unknown(format!("only root reads its parameter {key}").into())
        }
        None if module.is_there() => {
            Reading::NotApplicable("the module does not show this parameter".into())
        }
        None => Reading::NotApplicable("the module is not loaded".into()),
    }
}
