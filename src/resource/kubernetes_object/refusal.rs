//! Why a server does not take an object: what it says, and the single causes that it gives.

use railwright_base::text::one_line;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What a server says where it does not take an object. Hostile: never print it unclean.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refusal {
    /// All of it, for people.
    pub message: String,
    /// One for each field that it is about; none where the server tells none apart.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub causes: Vec<Cause>,
}

/// One cause (kubernetes/kubernetes staging/src/k8s.io/apimachinery/pkg/apis/meta/v1/types.go,
/// `StatusCause`).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Cause {
    /// `FieldValueInvalid`; empty where a policy refuses, not the server itself.
    pub reason: String,
    /// `spec.selector`.
    pub field: String,
    /// `Invalid value: 3: must be less`.
    pub message: String,
}

/// Words on a screen.
const SHOWN: usize = 400;
/// Of one cause among them; of a long one its beginning and its end, because a value, which may be
/// a whole pod, is between.
const SHOWN_HEAD: usize = 100;
const SHOWN_TAIL: usize = 60;
/// Causes on a screen.
const SHOWN_CAUSES: usize = 3;

/// The end of what is invalid, behind the value: `ErrorBody` of apimachinery's
/// pkg/util/validation/field/errors.go puts what is wrong last. The words: `FieldImmutableErrorMsg`
/// of pkg/api/validation/objectmeta.go, and definitions whose rules compare with `oldSelf`;
/// kubernetes/kubernetes pkg/apis/rbac/validation/validation.go;
/// pkg/apis/core/validation/validation.go, of services.
const INVALID_ENDS: [&str; 3] = [
    " is immutable",
    ": cannot change roleRef",
    ": may not change once set",
];
/// The beginning of what is forbidden, which has no value (kubernetes/kubernetes
/// pkg/apis/core/validation/validation.go, of volumes, claims, pods, config maps and secrets;
/// pkg/apis/scheduling/validation/validation.go).
const FORBIDDEN_BEGINS: [&str; 5] = [
    "field is immutable",
    "spec is immutable after creation",
    "spec.persistentvolumesource is immutable after creation",
    "pod updates may not change fields other than",
    "may not be changed in an update",
];

impl Refusal {
    /// What a server answers instead of an object: a `Status`, of which people read the message.
    pub fn of_status(status: &Value, message: String) -> Self {
        let causes = status
            .pointer("/details/causes")
            .and_then(|causes| Vec::<Cause>::deserialize(causes).ok());
        Refusal {
            message,
            causes: causes.unwrap_or_default(),
        }
    }

    /// Words of our own.
    pub fn of_words(message: String) -> Self {
        Refusal {
            message,
            causes: Vec::new(),
        }
    }

    /// As an answer has it.
    pub fn of_answer(out: &str) -> Self {
        serde_json::from_str(out).unwrap_or_else(|_| Refusal::of_words(out.to_owned()))
    }

    /// As an answer.
    pub fn to_answer(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    /// True where nothing is wrong with the object but that it is there already: every cause is a
    /// field that never changes. A value that says so, or the words of a webhook or a policy, are
    /// none of the server's causes.
    pub fn is_only_of_fields_that_never_change(&self) -> bool {
        !self.causes.is_empty()
            && self
                .causes
                .iter()
                .all(Cause::is_of_a_field_that_never_changes)
    }

    /// In one line. A cause is shown with its field and its end, however long the value is.
    pub fn told(&self) -> String {
        if self.causes.is_empty() || self.message.chars().count() <= SHOWN {
            return one_line(&self.message, SHOWN);
        }
        let shown: Vec<String> = self
            .causes
            .iter()
            .take(SHOWN_CAUSES)
            .map(Cause::told)
            .collect();
        let more = self.causes.len().saturating_sub(SHOWN_CAUSES);
        shown.join("; ")
            + &if more > 0 {
                format!("; and {more} more")
            } else {
                String::new()
            }
    }
}

impl Cause {
    fn is_of_a_field_that_never_changes(&self) -> bool {
        let message = self.message.trim_end();
        match self.reason.as_str() {
            "FieldValueInvalid" => INVALID_ENDS.iter().any(|end| message.ends_with(end)),
            "FieldValueForbidden" => {
                let said = message.strip_prefix("Forbidden: ").unwrap_or_default();
                // Of stateful sets and of storage classes: pkg/apis/apps/validation/validation.go,
                // pkg/apis/storage/validation/validation.go.
                let updates = said.starts_with("updates to ")
                    && said.trim_end_matches('.').ends_with(" are forbidden");
                updates
                    || said.ends_with(" is immutable")
                    || FORBIDDEN_BEGINS.iter().any(|begin| said.starts_with(begin))
            }
            _ => false,
        }
    }

    fn told(&self) -> String {
        let words: Vec<char> = one_line(&self.message, usize::MAX).chars().collect();
        let field = one_line(&self.field, SHOWN_HEAD);
        if words.len() <= SHOWN_HEAD + SHOWN_TAIL {
            return format!("{field}: {}", words.into_iter().collect::<String>());
        }
        let (head, tail) = (
            words.iter().take(SHOWN_HEAD),
            words.iter().skip(words.len() - SHOWN_TAIL),
        );
        format!(
            "{field}: {} ... {}",
            head.collect::<String>(),
            tail.collect::<String>()
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn refusal(causes: &[(&str, &str, &str)]) -> Refusal {
        let causes: Vec<Value> =
            causes.iter().map(|(reason, field, message)| json!({ "reason": reason, "field": field, "message": message })).collect();
        Refusal::of_status(
            &json!({ "details": { "causes": causes } }),
            "it is invalid".to_owned(),
        )
    }

    #[test]
    fn only_what_the_server_itself_says_of_every_field_counts() {
        let never = |reason: &str, message: &str| {
            refusal(&[(reason, "spec", message)]).is_only_of_fields_that_never_change()
        };
        let (invalid, forbidden) = ("FieldValueInvalid", "FieldValueForbidden");
        for message in [
            "Invalid value: core.PodTemplateSpec{Name:\"a: b\"}: field is immutable",
            "Invalid value: \"object\": Value is immutable",
            "Invalid value: rbac.RoleRef{Name:\"b\"}: cannot change roleRef",
            "Invalid value: []string{\"10.0.0.9\"}: may not change once set",
        ] {
            assert!(never(invalid, message), "{message}");
        }
        for message in [
            "Forbidden: field is immutable when `immutable` is set",
            "Forbidden: may not be changed in an update.",
            "Forbidden: updates to provisioner are forbidden.",
            "Forbidden: updates to statefulset spec for fields other than 'replicas' and \
             'template' are forbidden",
            "Forbidden: spec.persistentvolumesource is immutable after creation\n  core.PersistentVolumeSource{ ... }",
        ] {
            assert!(never(forbidden, message), "{message}");
        }
        // A value that says so; what is wrong with it; who says it.
        assert!(!never(
            invalid,
            "Invalid value: \"the field is immutable\": a valid config key must consist of \
             alphanumeric characters"
        ));
        assert!(!never(
            invalid,
            "Invalid value: \"this field is immutable\""
        ));
        assert!(!never(
            invalid,
            "Invalid value: 80000: must be between 1 and 65535, inclusive"
        ));
        assert!(!never(
            forbidden,
            "Forbidden: not allowed here: field is immutable when it is set"
        ));
        assert!(!never("", "a policy says: field is immutable"));
        assert!(
            !Refusal::of_answer("admission webhook denied it: field is immutable")
                .is_only_of_fields_that_never_change()
        );
    }

    #[test]
    fn one_cause_that_is_another_one_is_enough() {
        let immutable = (
            "FieldValueInvalid",
            "spec.selector",
            "Invalid value: {}: field is immutable",
        );
        let wrong = (
            "FieldValueInvalid",
            "spec.port",
            "Invalid value: 80000: must be between 1 and 65535, inclusive",
        );
        assert!(refusal(&[immutable, immutable]).is_only_of_fields_that_never_change());
        assert!(!refusal(&[immutable, wrong]).is_only_of_fields_that_never_change());
    }

    #[test]
    fn a_long_value_hides_neither_field_nor_reason() {
        let long = format!(
            "Invalid value: core.PodTemplateSpec{{{}}}: field is immutable",
            "x".repeat(5000)
        );
        let mut refusal = refusal(&[("FieldValueInvalid", "spec.template", &long)]);
        refusal.message = format!("Job.batch \"a\" is invalid: spec.template: {long}");
        let told = refusal.told();
        assert!(
            told.starts_with("spec.template: Invalid value: core.Pod")
                && told.ends_with("}: field is immutable"),
            "{told}"
        );
        assert!(told.chars().count() < 400, "{told}");
        assert_eq!(Refusal::of_answer(&refusal.to_answer()), refusal);
    }
}
