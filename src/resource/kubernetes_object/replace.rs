//! Changes that take effect only where the object is deleted and recreated, which is done where the
//! resource allows it: of fields that the server never lets change, and of fields whose change the
//! object's controller takes without a word and leaves what runs as it is.

use super::diff::format_server_refusal;
use super::paths::{FieldDifference, FieldPathStep, is_at_or_below};
use super::precondition::ObjectPrecondition;
use super::{DesiredObject, NEVER_REMOVED, pod_disruption};
use crate::body::BodyErrors;
use crate::{Action, Disruption, ResourceDiff};
use schemars::JsonSchema;
use serde::Deserialize;

/// Why it takes a new object.
#[derive(Debug, Clone, Copy)]
pub enum ReplacementReason {
    /// The server refuses the change.
    NeverChanges,
    /// The server takes it, and the controller leaves what runs as it is.
    ChangesNothing,
}

impl ReplacementReason {
    fn words(self) -> &'static str {
        match self {
            ReplacementReason::NeverChanges => "a field changes that never changes",
            ReplacementReason::ChangesNothing => {
                "its controller leaves its pods as they are when this changes"
            }
        }
    }
}

/// `replace` of a body.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(untagged, expecting = "true, or a list of fields")]
pub enum DeclaredReplacement {
    /// Whether a resource allows it.
    IsAllowed(bool),
    /// It does, and these are the fields whose change takes a new object, by their paths without
    /// the items of lists: `spec.workerGroupSpecs.template`.
    OfFields(Vec<String>),
}

impl DeclaredReplacement {
    /// Notes what is no path of a field.
    pub fn find_errors(&self, errors: &mut BodyErrors) {
        let DeclaredReplacement::OfFields(paths) = self else {
            return;
        };
        errors.require(
            !paths.is_empty() && paths.iter().all(|path| is_field_path(path)),
            "/replace",
            "it is no list of fields",
            "such as `[spec.rayVersion, spec.workerGroupSpecs.template]`; items of lists are left \
             out",
        );
    }

    /// Whether the resource allows it.
    pub fn is_allowed(&self) -> bool {
        !matches!(self, DeclaredReplacement::IsAllowed(false))
    }

    /// The fields whose change takes a new object.
    pub fn into_fields(self) -> Vec<String> {
        match self {
            DeclaredReplacement::IsAllowed(_) => Vec::new(),
            DeclaredReplacement::OfFields(paths) => paths,
        }
    }
}

/// Whether some of these fields are below those whose change takes a new object, or hold one of
/// them: then nobody can tell.
fn may_require_replacement(paths: &[String], differing: &[FieldDifference]) -> bool {
    for field in differing {
        let names = field.path.iter().filter_map(|step| match step {
            FieldPathStep::Field(name) => Some(name.as_str()),
            FieldPathStep::Item { .. } => None,
        });
        let name = names.collect::<Vec<_>>().join(".");
        for path in paths {
            if is_at_or_below(&name, path) || is_at_or_below(path, &name) {
                return true;
            }
        }
    }
    false
}

fn is_field_path(text: &str) -> bool {
    text.split('.').all(|part| !part.is_empty())
}

/// Why an object of this kind is never deleted to be recreated.
pub fn explain_replace_prohibition(kind: &str) -> Option<&'static str> {
    NEVER_REMOVED
        .contains(&kind)
        .then_some("all that lies below it would be deleted with it")
}

/// What is said of a refusal that a replacement would fix.
pub fn format_replace_advice(asked: &DesiredObject, message: &str, ours: bool) -> String {
    let refused = format_server_refusal(&asked.object, message);
    match ours
        && !asked.adopts
        && explain_replace_prohibition(&asked.object.kind_and_group()).is_none()
    {
        true => format!(
            "{refused}; `replace: true` {} has it deleted and recreated",
            asked.beside
        ),
        false => format!("{refused}; {BY_HAND}"),
    }
}

const BY_HAND: &str = "it can only be deleted and recreated, which is done by hand";

/// Whether changes of these fields take a new object though the server takes them; one that was
/// there before us is not deleted for it.
pub fn of_changes(
    asked: &DesiredObject,
    differing: &[FieldDifference],
    diff: &mut ResourceDiff,
) -> Option<ReplacementReason> {
    if diff.refusal.is_some() || !may_require_replacement(&asked.made_once, differing) {
        return None;
    }
    let because = ReplacementReason::ChangesNothing;
    if asked.adopts {
        diff.refusal = Some(format!(
            "{} was there before us, and {}; {BY_HAND}",
            asked.object,
            because.words()
        ));
    }
    (!asked.adopts).then_some(because)
}

/// Deletes the object that is there and makes it anew.
pub fn plan_replacement(
    asked: &DesiredObject,
    looked_at: ObjectPrecondition,
    because: ReplacementReason,
    diff: &mut ResourceDiff,
) {
    let object = asked.object.clone();
    let pods = if pod_disruption::pods_end_with(&object) {
        ", and its pods with it"
    } else {
        ""
    };
    diff.interrupts = vec![format!(
        "{object} is deleted{pods}, and recreated: {}",
        because.words()
    )];
    diff.disruption = Disruption::Restart;
    let delete = Action::DeleteObject {
        object,
        precondition: looked_at,
        anew: true,
    };
    diff.actions = std::iter::once(delete)
        .chain(asked.apply_and_wait(ObjectPrecondition::Absent))
        .collect();
}
