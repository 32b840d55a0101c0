//! Where a template may put a secret: only where its kind brings it to the host without showing it
//! on the way.

use super::body::span_of;
use super::compile::{Module, ModuleResource};
use railwright_base::{Diagnostic, secret};
use railwright_resource::ResourceKind;
use serde_json::Value;

/// The fields that may name a secret, for the person who has to move it.
const PLACES: &str = "a secret may stand in the content of a `file`, in `environment` and `input` \
                      of a `command`, and in `values` of a `helm_release`";

/// Every secret of a body that stands where it would not be kept.
pub(super) fn find_misplaced_secrets(
    module: &Module,
    resource: &ModuleResource,
    kind: &dyn ResourceKind,
    body: &Value,
) -> Vec<Diagnostic> {
    let name = format!("{}/{}", module.name, resource.entry.id.text);
    let document = module.document();
    let mut out = Vec::new();
    for (pointer, text) in secret::find_marked_texts(body) {
        let label = if !secret::is_whole(text) {
            "a filter has changed it here: use it as it is".to_owned()
        } else if !kind.may_hold_secret(&pointer) {
            format!("a `{}` cannot keep it secret here", kind.name())
        } else {
            continue;
        };
        let field = pointer.trim_start_matches('/').replace('/', ".");
        let place = describe_secret_place(text, &field);
        let span = span_of(document, resource.entry.body, &pointer);
        out.push(
            Diagnostic::error("RW0216", format!("{name}: {place}"))
                .at(document.source().name(), span, label)
                .effect("it would show in a plan, in a log or in the host's process list")
                .next(PLACES),
        );
    }
    out
}

fn describe_secret_place(text: &str, field: &str) -> String {
    let names = secret::list_secret_names(text);
    let secret = match names.first() {
        Some(name) => format!("the secret `{name}`"),
        None => "a secret".to_owned(),
    };
    if field.is_empty() {
        format!("{secret} stands in a name")
    } else {
        format!("{secret} stands in `{field}`")
    }
}

/// A secret in the script of a check, which travels as an argument.
pub(super) fn in_check(
    module: &Module,
    id: &str,
    node: crate::spec::yaml::NodeId,
    text: &str,
) -> Option<Diagnostic> {
    secret::find_mark_character(text)?;
    let document = module.document();
    Some(
        Diagnostic::error(
            "RW0216",
            format!(
                "{}/{id}: {}",
                module.name,
                describe_secret_place(text, "verify")
            ),
        )
        .at(
            document.source().name(),
            document.caret(node),
            "a check cannot keep it secret",
        )
        .effect("it would show in the host's process list, and in a report")
        .next(PLACES),
    )
}
