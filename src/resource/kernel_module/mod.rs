//! `kernel_module`: loaded (running), loaded at boot (next boot), its options (persisted in
//! modprobe.d, running in /sys/module) and its blacklisting (persisted). Options that are written
//! but not in effect are a pending reload; where the module is in use it waits for a reboot.

mod diff;
pub mod found;
pub mod script;
mod undo;

use super::file::found::FileState;
use super::json_fields::read_text_field;
use super::merged_before::merge_before_values;
use super::names::is_word;
use super::{DesiredResource, Read, ReadResults, ResourceDiff, ResourceKind};
use crate::body::{Body, BodyErrors, BodyType, Scalar, read_body};
use diff::KernelModuleDiffBuilder;
use found::normal_name;
use schemars::JsonSchema;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// The kind.
pub struct KernelModule;

/// What was there before our first change. Where the module could not be read, it has the files
/// alone.
#[derive(Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct PriorKernelModule {
    #[serde(skip_serializing_if = "Option::is_none")]
    loaded: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    parameters: Option<BTreeMap<String, String>>,
    files: BTreeMap<String, FileState>,
}

/// The desired state of a module.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct KernelModuleBody {
    name: String,
    loaded: Option<bool>,
    at_boot: Option<bool>,
    #[serde(default, deserialize_with = "read_options")]
    #[schemars(with = "BTreeMap<String, Scalar>")]
    options: BTreeMap<String, String>,
    blacklist: Option<bool>,
}

/// Options as the kernel takes them: 1 and 0 for booleans of every sort of parameter.
fn read_options<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<BTreeMap<String, String>, D::Error> {
    let mut options = BTreeMap::<String, Value>::deserialize(deserializer)?;
    for value in options.values_mut() {
        if let Value::Bool(flag) = value {
            *value = u8::from(*flag).into();
        }
    }
    let options = options.into_iter().map(|(key, value)| {
        let Scalar(text) = serde_json::from_value(value).map_err(D::Error::custom)?;
        Ok((key, text))
    });
    options.collect()
}

impl Body for KernelModuleBody {
    fn find_errors(&self, errors: &mut BodyErrors) {
        errors.require(
            is_word(&self.name, "_-"),
            "/name",
            "this is no module name",
            "for example rdma_rxe",
        );
        for (key, value) in &self.options {
            let is_plain =
                |c: char| !c.is_whitespace() && !c.is_control() && !"\"'#\\`$".contains(c);
            errors.require(
                is_word(key, "_-") && !value.is_empty() && value.chars().all(is_plain),
                &format!("/options/{key}"),
                "this is no module option",
                "a name with a value of one word",
            );
        }
        let is_loaded = self.loaded == Some(true) || self.at_boot == Some(true);
        errors.require(
            !is_loaded || self.blacklist != Some(true),
            "/blacklist",
            "the module is declared both loaded and blacklisted",
            "leave one of the two out",
        );
        let flags = [self.loaded, self.at_boot, self.blacklist];
        errors.require(
            !self.options.is_empty() || flags.iter().any(Option::is_some),
            "",
            "nothing is declared for the module",
            "give `loaded`, `at_boot`, `options` or `blacklist`",
        );
    }
}

impl KernelModuleBody {
    /// What our modprobe.d file must hold; nothing when it is not needed.
    fn render_modprobe_file(&self) -> Option<String> {
        let name = normal_name(&self.name);
        let mut out = String::new();
        if !self.options.is_empty() {
            let words: Vec<_> = self
                .options
                .iter()
                .map(|(key, value)| format!(" {key}={value}"))
                .collect();
            out.push_str(&format!("options {name}{}\n", words.concat()));
        }
        if self.blacklist == Some(true) {
            out.push_str(&format!("blacklist {name}\n"));
        }
        (!out.is_empty()).then(|| format!("{HEAD}{out}"))
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

impl ResourceKind for KernelModule {
    fn name(&self) -> &'static str {
        "kernel_module"
    }

    fn address_name(&self, body: &Value) -> Option<String> {
        read_text_field(body, "name").map(normal_name)
    }

    fn body_type(&self) -> BodyType {
        BodyType::of::<KernelModuleBody>()
    }

    fn reads(&self, resource: &DesiredResource) -> Vec<Read> {
        let name = normal_name(&read_body::<KernelModuleBody>(&resource.body).name);
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

    fn diff(&self, resource: &DesiredResource, answers: &ReadResults) -> ResourceDiff {
        let builder = KernelModuleDiffBuilder::new(resource, answers);
        let own = builder.own_files(answers);
        let mut before = PriorKernelModule::default();
        for (path, _, found) in &own {
            before.files.insert(path.clone(), found.clone());
        }
        let mut diff = ResourceDiff::default();
        builder.attributes(&mut diff);
        if !diff.is_met() {
            builder.file_actions(&own, &mut diff);
        }
        if let Ok(module) = &builder.module {
            builder.running_actions(module, &mut diff);
            builder.copy_to_ram_disk(module, &mut diff);
            if let Some(why) = builder.contradiction(module) {
                diff.refusal = Some(why);
            }
            let options = builder.body.options.keys();
            let parameters = options.filter_map(|key| {
                let value = module.parameters.get(&normal_name(key))?;
                Some((key.clone(), value.clone()))
            });
            before.parameters = Some(parameters.collect());
            before.loaded = Some(module.is_there());
        }
        diff.before = serde_json::to_value(before).unwrap_or_default();
        diff
    }

    /// Parameters that could not be read before the first change are not made up now.
    fn remembered(&self, first: &Value, now: &Value) -> Value {
        match first.get("parameters") {
            Some(_) => merge_before_values(first, now),
            None => first.clone(),
        }
    }

    fn undo(
        &self,
        last_applied: &DesiredResource,
        before: &Value,
        answers: &ReadResults,
    ) -> ResourceDiff {
        undo::plan_kernel_module_undo(last_applied, before, answers)
    }

    fn can_read_before(&self, before: &Value) -> bool {
        PriorKernelModule::deserialize(before).is_ok()
    }

    fn open_fields(&self) -> &'static [&'static str] {
        &["loaded", "at_boot", "blacklist"]
    }

    fn open_maps(&self) -> &'static [&'static str] {
        &["options"]
    }

    fn after_kinds(&self) -> &'static [&'static str] {
        &["package", "kernel_module_build"]
    }
}

#[cfg(test)]
mod tests;
