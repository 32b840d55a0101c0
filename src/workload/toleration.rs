//! A taint that is tolerated, in the words of `arena submit pytorch --toleration`: `all`, `KEY`, or
//! `KEY=VALUE:EFFECT,OPERATOR`.
//!
//! Source: kubeflow/arena `pkg/argsbuilder/submit.go`; what the API server takes:
//! kubernetes/kubernetes `pkg/apis/core/validation/validation.go` (`ValidateTolerations`).

use railwright_base::Reason;
use railwright_resource::kubernetes_object::labels;
use serde_json::{Value, json};

/// Effects of taints.
const EFFECTS: [&str; 3] = ["NoSchedule", "PreferNoSchedule", "NoExecute"];

/// A toleration in its parts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Toleration<'a> {
    /// The taint's key; nothing is every taint.
    key: Option<&'a str>,
    /// Its value, where it counts.
    value: Option<&'a str>,
    /// Its effect; nothing is every effect.
    effect: Option<&'a str>,
}

impl<'a> Toleration<'a> {
    /// Reads it; else why the API server would not take it.
    pub(super) fn parse(text: &'a str) -> Result<Self, Reason> {
        if text == "all" {
            return Ok(Toleration {
                key: None,
                value: None,
                effect: None,
            });
        }
        let (rest, operator) = text
            .rsplit_once(',')
            .map_or((text, None), |(rest, operator)| (rest, Some(operator)));
        let (pair, effect) = rest
            .split_once(':')
            .map_or((rest, None), |(pair, effect)| (pair, Some(effect)));
        let (key, value) = pair
            .split_once('=')
            .map_or((pair, None), |(key, value)| (key, Some(value)));
        if !labels::is_key(key) {
            return Err("a taint's key has at most 63 letters, digits and `-_.`".into());
        }
        if let Some(effect) = effect.filter(|effect| !EFFECTS.contains(effect)) {
            return Err(
                format!("`{effect}` is no effect; there are {}", EFFECTS.join(", ")).into(),
            );
        }
        let value = match (operator, value) {
            // Arena's pattern has a place for a value there, which counts for nothing.
            (None | Some("Exists"), None) | (Some("Exists"), Some(_)) => None,
            (None | Some("Equal"), Some(value)) => Some(value),
            (Some("Equal"), None) => Some(""),
            (Some(other), _) => {
                return Err(format!("`{other}` is no operator; there are Exists and Equal").into());
            }
        };
        match value.filter(|value| !labels::is_value(value)) {
            Some(_) => Err("its value has at most 63 letters, digits and `-_.`".into()),
            None => Ok(Toleration {
                key: Some(key),
                value,
                effect,
            }),
        }
    }

    /// As a pod has it.
    pub(super) fn object(&self) -> Value {
        let Some(key) = self.key else {
            return json!({ "operator": "Exists" });
        };
        let operator = self.value.map_or("Exists", |_| "Equal");
        let mut made = json!({ "key": key, "operator": operator });
        for (name, value) in [("value", self.value), ("effect", self.effect)] {
            if let Some(value) = value {
                made[name] = json!(value);
            }
        }
        made
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_arena() {
        for (text, object) in [
            ("all", json!({ "operator": "Exists" })),
            ("gpu", json!({ "key": "gpu", "operator": "Exists" })),
            (
                "gpu:NoSchedule",
                json!({ "key": "gpu", "operator": "Exists", "effect": "NoSchedule" }),
            ),
            (
                "example.com/gpu=a100:NoExecute",
                json!({ "key": "example.com/gpu", "operator": "Equal", "value": "a100", "effect": "NoExecute" }),
            ),
            (
                "gpu=a100:NoSchedule,Exists",
                json!({ "key": "gpu", "operator": "Exists", "effect": "NoSchedule" }),
            ),
        ] {
            assert_eq!(
                Toleration::parse(text).map(|made| made.object()),
                Ok(object),
                "{text}"
            );
        }
        for (text, why) in [
            ("", "key"),
            ("a b", "key"),
            ("gpu:Never", "`Never` is no effect"),
            ("gpu,Maybe", "`Maybe` is no operator"),
            ("gpu=a b", "value"),
        ] {
            assert!(
                Toleration::parse(text)
                    .unwrap_err()
                    .as_words()
                    .contains(why),
                "{text}"
            );
        }
    }
}
