//! The parameters of a manifest as names for its templates: each has the shape of what it is taken
//! from.

use super::super::manifest::{Manifest, ModuleParameter};
use crate::template::shape::ContextShape;
use railwright_base::{Diagnostic, suggest};

/// The names of the context and the module's parameters beside them.
pub(super) fn add_parameter_shapes(
    names: &ContextShape,
    manifest: &Manifest,
    problems: &mut Vec<Diagnostic>,
) -> ContextShape {
    let ContextShape::Map(known) = names else {
        return names.clone();
    };
    let mut fields = known.clone();
    for (name, parameter) in &manifest.parameters {
        if known.contains_key(name) {
            let message = format!("a parameter cannot be named `{name}`");
            let error = Diagnostic::error("RW0201", message);
            let label = "templates know another thing by this name";
            problems.push(label_parameter(manifest, error, name, "", label));
            continue;
        }
        if let Some(value) = &parameter.default
            && !parameter.kind.fits(value)
        {
            let message = format!("the default of `{name}` is not {}", parameter.kind.words());
            let error = Diagnostic::error("RW0213", message);
            problems.push(label_parameter(
                manifest,
                error,
                name,
                "default",
                "of another type",
            ));
        }
        let shape = match find_parameter_shape(names, name, parameter) {
            Ok(shape) => shape,
            Err((error, label)) => {
                problems.push(label_parameter(manifest, error, name, "from", &label));
                ContextShape::Any
            }
        };
        fields.insert(name.clone(), shape);
    }
    ContextShape::Map(fields)
}

/// Adds where the manifest says this key of a parameter, or its name where it does not say the key.
fn label_parameter(
    manifest: &Manifest,
    error: Diagnostic,
    name: &str,
    key: &str,
    label: &str,
) -> Diagnostic {
    let document = &manifest.document;
    let mut node = 0;
    if let Some(root) = document.root()
        && let Some(parameters) = document.entry(root, "parameters")
        && let Some(parameter) = document.entry(parameters.value, name)
    {
        node = match document.entry(parameter.value, key) {
            Some(entry) => entry.value,
            None => parameter.key,
        };
    }
    error.at(document.source().name(), document.caret(node), label)
}

/// The shape at the path of its `from`; an error with its label where there is no such path.
fn find_parameter_shape(
    names: &ContextShape,
    name: &str,
    parameter: &ModuleParameter,
) -> Result<ContextShape, (Diagnostic, String)> {
    let Some(from) = &parameter.from else {
        return Ok(ContextShape::Any);
    };
    let path: Vec<String> = from.split('.').map(str::to_owned).collect();
    names.at(&path).cloned().map_err(|error| {
        let wrong = path.get(error.segment).map_or("", String::as_str);
        let known = error.known.iter().map(String::as_str);
        let label = match suggest::find_nearest_word(wrong, known) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("there are: {}", error.known.join(", ")),
        };
        let message = format!("there is no `{wrong}` on the path of `{name}`");
        (Diagnostic::error("RW0203", message), label)
    })
}
