//! The values of a module's parameters on one host: the spec's override, else the path that the parameter is taken
//! from, else its default.

use super::compile::{Module, Modules};
use super::context::value_at;
use crate::base::{Diagnostic, suggest};
use crate::spec::Loaded;
use serde_json::Value;
use std::collections::BTreeMap;

/// The path of an override in the spec.
pub fn override_path(module: &str, parameter: &str) -> String {
    format!("modules[\"{module}\"].parameters[\"{parameter}\"]")
}

/// The values for a host whose names are `values`; a parameter without a value is left out.
pub fn resolve(module: &Module, values: &BTreeMap<String, Value>, loaded: &Loaded) -> Result<BTreeMap<String, Value>, Vec<Diagnostic>> {
    let overrides = loaded.spec.modules.get(&module.name);
    let mut out = BTreeMap::new();
    let mut errors = Vec::new();
    for (name, parameter) in &module.parameters {
        let path: Vec<String> = parameter.from.iter().flat_map(|from| from.split('.')).map(str::to_owned).collect();
        let overridden = overrides.and_then(|module| module.parameters.get(name));
        let value = overridden.or_else(|| value_at(values, &path)).or(parameter.default.as_ref());
        match value {
            Some(value) if parameter.kind.fits(value) => drop(out.insert(name.clone(), value.clone())),
            Some(value) => errors.push(wrong_type(module, name, value, overridden.is_some(), loaded)),
            None if parameter.is_required() => errors.push(missing(module, name)),
            None => {}
        }
    }
    if errors.is_empty() { Ok(out) } else { Err(errors) }
}

fn wrong_type(module: &Module, name: &str, value: &Value, overridden: bool, loaded: &Loaded) -> Diagnostic {
    let parameter = &module.parameters[name];
    let error = Diagnostic::error("RW0213", format!("`{name}` of module `{}` must be {}", module.name, parameter.kind.words()));
    let said = crate::base::text::one_line(&format!("this is {value}"), 60);
    let path = if overridden { override_path(&module.name, name) } else { parameter.from.clone().unwrap_or_default() };
    match loaded.label(&path, &said) {
        Some(label) => error.labelled(label),
        None => error.next(said),
    }
}

fn missing(module: &Module, name: &str) -> Diagnostic {
    let parameter = &module.parameters[name];
    let error = Diagnostic::error("RW0213", format!("module `{}` needs `{name}`: {}", module.name, parameter.doc));
    let error = match &parameter.from {
        Some(from) => error.next(format!("set `{}` in the spec", from.strip_prefix("host.").unwrap_or(from))),
        None => error,
    };
    error.next(format!("or set `modules: {{ {}: {{ parameters: {{ {name}: ... }} }} }}`", module.name))
}

/// Overrides of modules and parameters that do not exist.
pub fn check_overrides(modules: &Modules, loaded: &Loaded) -> Vec<Diagnostic> {
    let mut errors = Vec::new();
    for (name, wanted) in &loaded.spec.modules {
        let Some(module) = modules.modules.iter().find(|module| module.name == *name) else {
            let known = modules.modules.iter().map(|module| module.name.as_str());
            errors.push(unknown(loaded, format!("there is no module `{name}`"), &format!("modules[\"{name}\"]"), name, known));
            continue;
        };
        for parameter in wanted.parameters.keys().filter(|parameter| !module.parameters.contains_key(*parameter)) {
            let known = module.parameters.keys().map(String::as_str);
            let path = override_path(name, parameter);
            errors.push(unknown(loaded, format!("module `{name}` has no parameter `{parameter}`"), &path, parameter, known));
        }
    }
    errors
}

fn unknown<'a>(loaded: &Loaded, message: String, path: &str, word: &str, known: impl Iterator<Item = &'a str> + Clone) -> Diagnostic {
    let near = suggest::nearest(word, known.clone()).map(|near| format!("did you mean `{near}`?"));
    let error = Diagnostic::error("RW0212", message);
    let error = match loaded.label(path, near.as_deref().unwrap_or("named here")) {
        Some(label) => error.labelled(label),
        None => error,
    };
    error.next(format!("there are: {}", known.collect::<Vec<_>>().join(", ")))
}
