//! `kernel_module`: loaded (running), loaded at boot (next boot), its options (persisted in
//! modprobe.d, running in /sys/module) and its blacklisting (persisted). Options that are written
//! but not in effect are a reload that is owed; where the module is in use it waits for a reboot.

mod diff;
pub mod found;
pub mod script;
mod undo;

use super::body::{
    FieldShape, check_fields, is_word, new_body_error, new_optional_field, new_required_field,
    read_flag_field, read_text_field, require_condition, scalar_text,
};
use super::{Assessment, BodyError, DesiredResource, Read, ReadResults, ResourceKind};
use diff::KernelModuleDiffBuilder;
use found::normal_name;
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
        read_text_field(body, "name").map(normal_name)
    }

    fn check(&self, body: &Value) -> Vec<BodyError> {
        let mut errors = check_fields(body, "", FIELDS);
        if let Some(name) = read_text_field(body, "name") {
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
