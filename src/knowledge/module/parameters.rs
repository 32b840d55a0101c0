//! The values of a module's parameters on one host: the spec's override, else the path that the
//! parameter is taken from, else its default.

use super::compile::{Module, Modules};
use super::context::{self, value_at};
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
        let path: Vec<String> = parameter
            .from
            .iter()
            .flat_map(|from| from.split('.'))
            .map(str::to_owned)
            .collect();
        let overridden = overrides.and_then(|module| module.parameters.get(name));
        let value = overridden
            .or_else(|| value_at(values, &path))
            .or(parameter.default.as_ref());
        match value {
            Some(value) if parameter.kind.fits(value) => {
                drop(out.insert(name.clone(), value.clone()))
            }
            Some(value) => errors.push(wrong_type(
                module,
                name,
                value,
                overridden.is_some(),
                loaded,
                on,
            )),
            None if parameter.is_required() => {
                errors.push(new_missing_parameter_error(module, name, loaded, on))
            }
            None => {}
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
    let from: Vec<String> = module.parameters[name]
        .from
        .as_ref()?
        .split('.')
        .map(str::to_owned)
        .collect();
    Some(on.spec_path(loaded, &from, None))
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
        let label =
            above.and_then(|above| loaded.label_around(above, &format!("`{key}` is not set here")));
        error = label
            .into_iter()
            .fold(error, Diagnostic::labelled)
            .next(format!("set `{path}` in the spec"));
    }
    error.next(format!(
        "or set `modules: {{ {}: {{ parameters: {{ {name}: ... }} }} }}`",
        module.name
    ))
}

/// Errors with a suggestion each; a suggestion compares a name with all that there are.
const SUGGESTED_MAX: usize = 30;

/// The most errors that are told: each looks through the spec for its place.
const ERRORS_MAX: usize = 100;

/// Overrides of modules and parameters that do not exist.
pub fn check_overrides(modules: &Modules, loaded: &LoadedSpec) -> Vec<Diagnostic> {
    let mut errors = Vec::new();
    for (name, wanted) in &loaded.spec.modules {
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
        for (parameter, value) in &wanted.parameters {
            if context::reserved_text(value).is_some() {
                let error = Diagnostic::error(
                    "RW0215",
                    format!(
                        "`{parameter}` holds a character that is kept for the marks of secrets"
                    ),
                );
                let label = loaded.label(&override_path(name, parameter), "in this value");
                errors.push(label.into_iter().fold(error, Diagnostic::labelled));
            }
        }
        let unknown_ones = wanted
            .parameters
            .keys()
            .filter(|parameter| !module.parameters.contains_key(*parameter));
        for parameter in unknown_ones.take(ERRORS_MAX.saturating_sub(errors.len())) {
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
