//! The values of a module's parameters on one host: the spec's override, else the path that the
//! parameter is taken from, else its default.

use super::compile::{Module, Modules};
use super::context::{self, value_at};
use super::manifest::ModuleParameter;
use super::subject::ModuleSubject;
use crate::spec::LoadedSpec;
use railwright_base::{Diagnostic, suggest};
use serde_json::Value;
use std::collections::BTreeMap;

/// The path of an override in the spec.
pub fn override_path(module: &str, parameter: &str) -> String {
    format!("modules[\"{module}\"].parameters[\"{parameter}\"]")
}

/// The values for a host whose names are `values`; a parameter without a value is left out.
pub fn resolve_parameters(
    module: &Module,
    values: &BTreeMap<String, Value>,
    loaded: &LoadedSpec,
    on: ModuleSubject,
) -> Result<BTreeMap<String, Value>, Vec<Diagnostic>> {
    let overrides = loaded.spec.modules.get(&module.name);
    let mut out = BTreeMap::new();
    let mut errors = Vec::new();
    for (name, parameter) in &module.parameters {
        let overridden = overrides.and_then(|module| module.parameters.get(name));
        let from = split_path(parameter).and_then(|path| value_at(values, &path));
        let Some(value) = overridden.or(from).or(parameter.default.as_ref()) else {
            if parameter.is_required() {
                errors.push(new_missing_parameter_error(module, name, loaded, on));
            }
            continue;
        };
        if parameter.kind.fits(value) {
            out.insert(name.clone(), value.clone());
        } else {
            let is_overridden = overridden.is_some();
            errors.push(wrong_type(module, name, value, is_overridden, loaded, on));
        }
    }
    if errors.is_empty() {
        Ok(out)
    } else {
        Err(errors)
    }
}

/// The path of the spec that a parameter is taken from on this host.
fn spec_path(
    module: &Module,
    name: &str,
    loaded: &LoadedSpec,
    on: ModuleSubject,
) -> Option<String> {
    let from = split_path(&module.parameters[name])?;
    Some(on.spec_path(loaded, &from, None))
}

/// The path of names that a parameter is taken from.
pub(super) fn split_path(parameter: &ModuleParameter) -> Option<Vec<String>> {
    let words = parameter.from.as_ref()?.split('.');
    Some(words.map(str::to_owned).collect())
}

fn wrong_type(
    module: &Module,
    name: &str,
    value: &Value,
    overridden: bool,
    loaded: &LoadedSpec,
    on: ModuleSubject,
) -> Diagnostic {
    let parameter = &module.parameters[name];
    let error = Diagnostic::error(
        "RW0213",
        format!(
            "`{name}` of module `{}` must be {}",
            module.name,
            parameter.kind.words()
        ),
    );
    let said = railwright_base::text::one_line(&format!("this is {value}"), 60);
    let path = if overridden {
        Some(override_path(&module.name, name))
    } else {
        spec_path(module, name, loaded, on)
    };
    match path.and_then(|path| loaded.label(&path, &said)) {
        Some(label) => error.labelled(label),
        None => error.next(said),
    }
}

fn new_missing_parameter_error(
    module: &Module,
    name: &str,
    loaded: &LoadedSpec,
    on: ModuleSubject,
) -> Diagnostic {
    let parameter = &module.parameters[name];
    let mut error = Diagnostic::error(
        "RW0213",
        format!("module `{}` needs `{name}`: {}", module.name, parameter.doc),
    );
    if let Some(path) = spec_path(module, name, loaded, on) {
        let key = path.rsplit('.').next().unwrap_or_default().to_owned();
        let above = path.rfind(['.', '[']).map(|at| &path[..at]);
        let text = format!("`{key}` is not set here");
        if let Some(label) = above.and_then(|above| loaded.label_around(above, &text)) {
            error = error.labelled(label);
        }
        error = error.next(format!("set `{path}` in the spec"));
    }
    error.next(format!(
        "or set `modules: {{ {}: {{ parameters: {{ {name}: ... }} }} }}`",
        module.name
    ))
}

/// Errors with a suggestion each; a suggestion compares a name with all that there are.
const SUGGESTED_MAX: usize = 30;

/// The most errors that are reported: each looks through the spec for its place.
const ERRORS_MAX: usize = 100;

/// Overrides of modules and parameters that do not exist.
pub fn check_overrides(modules: &Modules, loaded: &LoadedSpec) -> Vec<Diagnostic> {
    let mut errors = Vec::new();
    for (name, desired) in &loaded.spec.modules {
        if errors.len() >= ERRORS_MAX {
            break;
        }
        let Some(module) = modules.modules.iter().find(|module| module.name == *name) else {
            let known = modules.modules.iter().map(|module| module.name.as_str());
            let word = Some(name.as_str()).filter(|_| errors.len() < SUGGESTED_MAX);
            errors.push(new_unknown_override_error(
                loaded,
                format!("there is no module `{name}`"),
                &format!("modules[\"{name}\"]"),
                word,
                known,
            ));
            continue;
        };
        for (parameter, value) in &desired.parameters {
            if context::reserved_text(value).is_some() {
                let message = format!(
                    "`{parameter}` holds a character that is kept for the marks of secrets"
                );
                let mut error = Diagnostic::error("RW0215", message);
                error
                    .labels
                    .extend(loaded.label(&override_path(name, parameter), "in this value"));
                errors.push(error);
            }
        }
        for parameter in desired.parameters.keys() {
            if module.parameters.contains_key(parameter) {
                continue;
            }
            if errors.len() >= ERRORS_MAX {
                break;
            }
            let known = module.parameters.keys().map(String::as_str);
            let path = override_path(name, parameter);
            let word = Some(parameter.as_str()).filter(|_| errors.len() < SUGGESTED_MAX);
            errors.push(new_unknown_override_error(
                loaded,
                format!("module `{name}` has no parameter `{parameter}`"),
                &path,
                word,
                known,
            ));
        }
    }
    errors
}

/// With a suggestion where a `word` is given to compare.
fn new_unknown_override_error<'a>(
    loaded: &LoadedSpec,
    message: String,
    path: &str,
    word: Option<&str>,
    known: impl Iterator<Item = &'a str> + Clone,
) -> Diagnostic {
    let near = word
        .and_then(|word| suggest::find_nearest_word(word, known.clone()))
        .map(|near| format!("did you mean `{near}`?"));
    let error = Diagnostic::error("RW0212", message);
    let error = match loaded.label(path, near.as_deref().unwrap_or("named here")) {
        Some(label) => error.labelled(label),
        None => error,
    };
    error.next(format!(
        "there are: {}",
        known.collect::<Vec<_>>().join(", ")
    ))
}
