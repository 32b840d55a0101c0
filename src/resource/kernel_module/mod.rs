//! `kernel_module`: loaded (running), loaded at boot (next boot), its options (persisted in
//! modprobe.d, running in /sys/module) and its blacklisting (persisted). Options that are written
//! but not in effect are a reload that is owed; where the module is in use it waits for a reboot.

pub mod found;
pub mod script;
mod undo;

use super::body::{
    FieldShape, check_fields, is_word, new_body_error, new_optional_field, new_required_field,
    read_flag_field, require_condition, scalar_text,
};
use super::file::found::{FileState, build_config_file_action};
use super::{
    Action, Assessment, Attribute, BodyError, DesiredResource, Disruption, Plane, Read,
    ReadResults, Reading, ResourceKind,
};
use found::{FoundModule, normal_name, same_value};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// The kind.
pub struct KernelModule;

const FIELDS: &[super::body::BodyField] = &[
    new_required_field("name", FieldShape::Text),
    new_optional_field("loaded", FieldShape::Flag),
    new_optional_field("at_boot", FieldShape::Flag),
    new_optional_field("options", FieldShape::Map),
    new_optional_field("blacklist", FieldShape::Flag),
];

fn module_name(wish: &DesiredResource) -> String {
    normal_name(wish.text("name").unwrap_or_default())
}

fn parse_module_options(wish: &DesiredResource) -> BTreeMap<String, String> {
    let map = wish.body.get("options").and_then(Value::as_object);
    map.into_iter()
        .flatten()
        .filter_map(|(key, value)| Some((key.clone(), option_text(value)?)))
        .collect()
}

/// The kernel takes 1 and 0 for booleans of every sort of parameter.
fn option_text(value: &Value) -> Option<String> {
    match value {
        Value::Bool(flag) => Some(u8::from(*flag).to_string()),
        other => scalar_text(other),
    }
}

fn boot_file(name: &str) -> String {
    format!("/etc/modules-load.d/railwright-{name}.conf")
}

/// Sorts after the files of distributions and drivers, because of two assignments modprobe hands on
/// both and the kernel takes the last.
fn modprobe_file(name: &str) -> String {
    format!("/etc/modprobe.d/zz-railwright-{name}.conf")
}

const HEAD: &str = "# Written by railwright; a change by hand is drift.\n";

/// What our modprobe.d file must hold; nothing when it is not needed.
fn modprobe_content(wish: &DesiredResource) -> Option<String> {
    let name = module_name(wish);
    let mut out = String::new();
    if !parse_module_options(wish).is_empty() {
        let words: Vec<_> = parse_module_options(wish)
            .iter()
            .map(|(key, value)| format!(" {key}={value}"))
            .collect();
        out.push_str(&format!("options {name}{}\n", words.concat()));
    }
    if read_flag_field(&wish.body, "blacklist") == Some(true) {
        out.push_str(&format!("blacklist {name}\n"));
    }
    (!out.is_empty()).then(|| format!("{HEAD}{out}"))
}

/// The devices that a software RDMA driver takes along when it goes.
fn list_disturbed_resources(name: &str, module: &FoundModule) -> Vec<String> {
    let of_netdev = |netdev: &String| {
        ["link", "link_qos", "interrupt_affinity"].map(|kind| format!("{kind}/{netdev}"))
    };
    let mut out: Vec<_> = module.netdevs.iter().flat_map(of_netdev).collect();
    if ["rdma_rxe", "siw"].contains(&name) || !module.netdevs.is_empty() {
        out.push("rdma_link/*".to_owned());
    }
    out
}

struct KernelModuleDiffBuilder<'a> {
    name: String,
    wish: &'a DesiredResource,
    module: Result<FoundModule, String>,
}

impl<'a> KernelModuleDiffBuilder<'a> {
    fn new(wish: &'a DesiredResource, answers: &ReadResults) -> Self {
        let name = module_name(wish);
        let module = FoundModule::of(&name, answers);
        KernelModuleDiffBuilder { name, wish, module }
    }

    fn reading(&self, of: impl Fn(&FoundModule) -> Reading) -> Reading {
        self.module
            .as_ref()
            .map_or_else(|reason| Reading::Unknown(reason.clone()), of)
    }

    fn attributes(&self, assessment: &mut Assessment) {
        let body = &self.wish.body;
        let mut add = |name: String, attribute| assessment.attributes.insert(name, attribute);
        if let Some(loaded) = read_flag_field(body, "loaded") {
            let found = self.reading(|module| reading_from_presence(module.is_there()));
            add(
                "loaded".to_owned(),
                Attribute::in_plane(Plane::Running, reading_from_presence(loaded), found),
            );
        }
        if let Some(at_boot) = read_flag_field(body, "at_boot") {
            let found = self.reading(|module| {
                reading_from_presence(!module.at_boot.is_empty() || module.builtin)
            });
            add(
                "at_boot".to_owned(),
                Attribute::in_plane(Plane::NextBoot, reading_from_presence(at_boot), found),
            );
        }
        if let Some(blacklist) = read_flag_field(body, "blacklist") {
            let found = self.reading(|module| {
                reading_from_presence(module.blacklisted_by(&self.name).is_some())
            });
            add(
                "blacklist".to_owned(),
                Attribute::in_plane(Plane::Persisted, reading_from_presence(blacklist), found),
            );
        }
        for (key, value) in parse_module_options(self.wish) {
            let persisted = self.reading(|module| {
                match (module.goes_on(&self.name), module.option(&self.name, &key)) {
                    (Some(path), _) => Reading::Unknown(format!(
                        "{path} has options that go on in the next line; write them on one line"
                    )),
                    (None, Some((found, _))) => Reading::is(found),
                    (None, None) => Reading::Absent,
                }
            });
            let running = self.reading(|module| running_option(module, &key, &value));
            let wanted = Reading::is(value.as_str());
            add(
                format!("option {key}"),
                Attribute::in_plane(Plane::Persisted, wanted.clone(), persisted).and(
                    Plane::Running,
                    wanted,
                    running,
                ),
            );
        }
    }

    /// Unloads, or says why that cannot be.
    fn unload(&self, module: &FoundModule, assessment: &mut Assessment) -> bool {
        if module.references > 0 {
            return false;
        }
        assessment.actions.push(Action::UnloadModule {
            name: self.name.clone(),
        });
        assessment.disturbs = list_disturbed_resources(&self.name, module);
        assessment.disruption = if module.netdevs.is_empty() {
            Disruption::Reload
        } else {
            Disruption::LinkBlip
        };
        assessment.interrupts_netdevs.clone_from(&module.netdevs);
        let served = if module.netdevs.is_empty() {
            String::new()
        } else {
            format!(" with {}", module.netdevs.join(", "))
        };
        assessment
            .interrupts
            .push(format!("the module {} is unloaded{served}", self.name));
        true
    }

    fn users(&self, module: &FoundModule) -> String {
        match module.users[..] {
            [] => format!("{} uses of it are open", module.references),
            _ => format!("{} uses it", module.users.join(", ")),
        }
    }

    fn running_actions(&self, module: &FoundModule, assessment: &mut Assessment) {
        let load = || Action::LoadModule {
            name: self.name.clone(),
            parameters: parse_module_options(self.wish),
        };
        let option_differs = parse_module_options(self.wish)
            .keys()
            .any(|key| differs_in(assessment, &format!("option {key}"), Plane::Running));
        let owed = module.loaded && option_differs;
        let loaded_differs = differs_in(assessment, "loaded", Plane::Running);
        match read_flag_field(&self.wish.body, "loaded") {
            Some(true) if loaded_differs => assessment.actions.push(load()),
            Some(false) if module.builtin => {
                assessment.refusal = Some(format!(
                    "{} is built into the kernel and cannot be unloaded",
                    self.name
                ));
            }
            Some(false) if loaded_differs && !self.unload(module, assessment) => {
                assessment.refusal = Some(format!(
                    "{} cannot be unloaded: {}",
                    self.name,
                    self.users(module)
                ));
            }
            Some(false) => {}
            _ if owed && self.unload(module, assessment) => assessment.actions.push(load()),
            _ if owed => {
                assessment.needs_reboot = true;
                assessment.interrupts.push(format!(
                    "the options of {} wait for a reboot: {}",
                    self.name,
                    self.users(module)
                ));
            }
            _ => {}
        }
        if module.builtin && option_differs {
            assessment.refusal = Some(format!(
                "{0} is built into the kernel; its options belong on the command line as \
                 {0}.KEY=VALUE",
                self.name
            ));
        }
    }

    fn file_actions(
        &self,
        own: &[(String, Option<String>, FileState)],
        assessment: &mut Assessment,
    ) {
        for (path, content, found) in own {
            match content {
                Some(content) if found.text() != Some(content) => assessment
                    .actions
                    .push(build_config_file_action(path, content.clone())),
                None if !matches!(found, FileState::Absent { .. } | FileState::Unknown { .. }) => {
                    assessment.actions.push(Action::RemoveFile {
                        path: path.clone(),
                        below: None,
                    });
                }
                _ => {}
            }
        }
    }

    /// What is loaded from the initial RAM disk is loaded as its copy of modprobe.d says
    /// (initramfs-tools(7), dracut(8)).
    fn copy_to_ram_disk(&self, module: &FoundModule, assessment: &mut Assessment) {
        let waits =
            assessment.needs_reboot || differs_in(assessment, "blacklist", Plane::Persisted);
        if module.ram_disk && waits {
            assessment.actions.push(Action::UpdateInitialRamDisks);
        }
    }

    /// Somebody else's file that would keep our wish from coming true.
    fn contradiction(&self, module: &FoundModule) -> Option<String> {
        let ours = [boot_file(&self.name), modprobe_file(&self.name)];
        let body = &self.wish.body;
        let loads = module
            .at_boot
            .iter()
            .find(|line| !ours.contains(&line.path));
        if let Some(line) = loads.filter(|_| read_flag_field(body, "at_boot") == Some(false)) {
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
        let is_unwanted = read_flag_field(body, "blacklist") == Some(false)
            || read_flag_field(body, "at_boot") == Some(true);
        if let Some(path) = blacklists.filter(|_| is_unwanted) {
            return Some(format!(
                "{path} blacklists {}; remove that line first",
                self.name
            ));
        }
        let later = |(key, value): (&String, &String)| {
            module.option(&self.name, key).filter(|(found, path)| {
                found != value && *path > modprobe_file(&self.name) && !ours.contains(path)
            })
        };
        let (value, path) = parse_module_options(self.wish).iter().find_map(later)?;
        Some(format!(
            "{path} gives {} another option ({value}) and is read after our file; change that line \
             first",
            self.name
        ))
    }

    fn own_files(&self, answers: &ReadResults) -> Vec<(String, Option<String>, FileState)> {
        let (boot, modprobe) = (boot_file(&self.name), modprobe_file(&self.name));
        let elsewhere = self
            .module
            .as_ref()
            .is_ok_and(|m| m.builtin || m.at_boot.iter().any(|line| line.path != boot));
        let wanted = read_flag_field(&self.wish.body, "at_boot") == Some(true) && !elsewhere;
        let boot_content = wanted.then(|| format!("{HEAD}{}\n", self.name));
        let found = |path: &str| FileState::at(path, answers);
        vec![
            (boot.clone(), boot_content, found(&boot)),
            (
                modprobe.clone(),
                modprobe_content(self.wish),
                found(&modprobe),
            ),
        ]
    }
}

fn differs_in(assessment: &Assessment, name: &str, plane: Plane) -> bool {
    assessment
        .attributes
        .get(name)
        .is_some_and(|attribute| attribute.differences().iter().any(|(p, ..)| *p == plane))
}

/// `true`, or absent: a module that is not loaded is not there.
fn reading_from_presence(there: bool) -> Reading {
    if there {
        Reading::is(true)
    } else {
        Reading::Absent
    }
}

fn running_option(module: &FoundModule, key: &str, wanted: &str) -> Reading {
    match module.parameters.get(&normal_name(key)) {
        Some(found) if same_value(wanted, found) => Reading::is(wanted),
        Some(found) => Reading::is(found.as_str()),
        None if module.hidden.contains(&normal_name(key)) => {
            Reading::Unknown(format!("only root reads its parameter {key}"))
        }
        None if module.is_there() => {
            Reading::NotApplicable("the module does not show this parameter".to_owned())
        }
        None => Reading::NotApplicable("the module is not loaded".to_owned()),
    }
}

fn check_options(body: &Value, errors: &mut Vec<BodyError>) {
    for (key, value) in body
        .get("options")
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
    {
        let text = scalar_text(value).unwrap_or_default();
        let clean = is_word(key, "_-")
            && !text.is_empty()
            && !text
                .chars()
                .any(|c| c.is_whitespace() || c.is_control() || "\"'#\\`$".contains(c));
        require_condition(
            errors,
            clean,
            &format!("/options/{key}"),
            "this is no module option",
            "a name with a value of one word",
        );
    }
    let is_loaded = ["loaded", "at_boot"]
        .iter()
        .any(|field| read_flag_field(body, field) == Some(true));
    if is_loaded && read_flag_field(body, "blacklist") == Some(true) {
        errors.push(new_body_error(
            "/blacklist",
            "the module is wished both loaded and blacklisted",
            Some("leave one of the two out"),
        ));
    }
}

impl ResourceKind for KernelModule {
    fn name(&self) -> &'static str {
        "kernel_module"
    }

    fn address_name(&self, body: &Value) -> Option<String> {
        body.get("name").and_then(Value::as_str).map(normal_name)
    }

    fn check(&self, body: &Value) -> Vec<BodyError> {
        let mut errors = check_fields(body, "", FIELDS);
        if let Some(name) = body.get("name").and_then(Value::as_str) {
            require_condition(
                &mut errors,
                is_word(name, "_-"),
                "/name",
                "this is no module name",
                "for example rdma_rxe",
            );
        }
        check_options(body, &mut errors);
        let wishes = ["loaded", "at_boot", "options", "blacklist"]
            .iter()
            .any(|field| body.get(*field).is_some());
        if body.is_object() && !wishes {
            errors.push(new_body_error(
                "",
                "nothing is wished of the module",
                Some("give `loaded`, `at_boot`, `options` or `blacklist`"),
            ));
        }
        errors
    }

    fn reads(&self, wish: &DesiredResource) -> Vec<Read> {
        let name = module_name(wish);
        vec![
            Read::File {
                path: boot_file(&name),
            },
            Read::File {
                path: modprobe_file(&name),
            },
            Read::KernelModule { name },
        ]
    }

    fn assess(&self, wish: &DesiredResource, answers: &ReadResults) -> Assessment {
        let judge = KernelModuleDiffBuilder::new(wish, answers);
        let own = judge.own_files(answers);
        let files: serde_json::Map<_, _> = own
            .iter()
            .map(|(path, _, found)| (path.clone(), found.remember()))
            .collect();
        let mut assessment = Assessment::default();
        judge.attributes(&mut assessment);
        if !assessment.is_met() {
            judge.file_actions(&own, &mut assessment);
        }
        if let Ok(module) = &judge.module {
            judge.running_actions(module, &mut assessment);
            judge.copy_to_ram_disk(module, &mut assessment);
            if let Some(why) = judge.contradiction(module) {
                assessment.refusal = Some(why);
            }
            let parameters: BTreeMap<_, _> = parse_module_options(wish)
                .into_keys()
                .filter_map(|key| Some((key.clone(), module.parameters.get(&normal_name(&key))?)))
                .collect();
            assessment.before =
                json!({ "loaded": module.is_there(), "parameters": parameters, "files": files });
        } else {
            assessment.before = json!({ "files": files });
        }
        assessment
    }

    fn undo(
        &self,
        last_applied: &DesiredResource,
        before: &Value,
        answers: &ReadResults,
    ) -> Assessment {
        undo::plan_kernel_module_undo(last_applied, before, answers)
    }

    fn open_fields(&self) -> &'static [&'static str] {
        &["loaded", "at_boot", "blacklist"]
    }

    fn after_kinds(&self) -> &'static [&'static str] {
        &["package", "kernel_module_build"]
    }
}

#[cfg(test)]
mod tests;
