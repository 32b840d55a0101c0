//! A pod as one in which a program is to be run: which container is meant, and what keeps it from
//! running.

use super::lists::find_json_text;
use railwright_base::text::one_line;
use railwright_resource::json_fields::list_items_at;
use serde_json::Value;
use std::collections::BTreeMap;

/// A pod, as far as programs in it are concerned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunningPod {
    /// Its name.
    pub name: String,
    /// Why no program can be run in it, by container; in words.
    waits: BTreeMap<String, Option<String>>,
    /// The container that is meant where none is named.
    default: Default,
}

/// Which container is meant where none is named.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Default {
    /// There is only one, and a server knows it.
    Only,
    /// The pod says it.
    Named(String),
    /// Nobody says it.
    OneOf(Vec<String>),
}

/// Names the container that is meant where none is named (kubernetes/kubernetes:
/// staging/src/k8s.io/kubectl/pkg/cmd/util/podcmd/podcmd.go, `DefaultContainerAnnotationName`).
const DEFAULT_CONTAINER: &str = "kubectl.kubernetes.io/default-container";

impl RunningPod {
    /// What a server says of it.
    pub fn of(pod: &Value) -> Self {
        let mut waits = BTreeMap::new();
        for status in list_items_at(pod, "/status/containerStatuses") {
            let name = find_json_text(status, "/name").to_owned();
            waits.insert(name, find_wait_reason(status));
        }
        let containers: Vec<String> = list_items_at(pod, "/spec/containers")
            .iter()
            .map(|container| find_json_text(container, "/name").to_owned())
            .collect();
        let phase = find_json_text(pod, "/status/phase");
        if phase != "Running" {
            let why = waits.values().flatten().next().cloned().unwrap_or_default();
            let words = one_line(&format!("{phase} {why}"), 120);
            waits.clear();
            for name in &containers {
                waits.insert(name.clone(), Some(words.clone()));
            }
        }
        RunningPod {
            name: find_json_text(pod, "/metadata/name").to_owned(),
            waits,
            default: find_default_container(pod, containers),
        }
    }

    /// The container that is asked, where it has to be named. The names to choose from as the
    /// error.
    pub fn container<'a>(
        &'a self,
        asked: Option<&'a str>,
    ) -> Result<Option<&'a str>, &'a [String]> {
        match (asked, &self.default) {
            (Some(asked), _) => Ok(Some(asked)),
            (None, Default::Named(named)) => Ok(Some(named)),
            (None, Default::Only) => Ok(None),
            (None, Default::OneOf(names)) => Err(names),
        }
    }

    /// Why no program can be run in it now; nothing where it is not even known in which container.
    pub fn hindrance(&self, asked: Option<&str>) -> Option<&str> {
        let container = self.container(asked).ok()?;
        for (name, why) in &self.waits {
            if why.is_some() && container.is_none_or(|container| container == name) {
                return why.as_deref();
            }
        }
        None
    }
}

/// Why a container does not run; nothing where it does, or where the server does not say.
fn find_wait_reason(status: &Value) -> Option<String> {
    let state = status.get("state")?;
    if state.get("running").is_some() {
        return None;
    }
    let why = state.get("waiting").or(state.get("terminated"))?;
    Some(find_json_text(why, "/reason").to_owned())
}

fn find_default_container(pod: &Value, containers: Vec<String>) -> Default {
    let named = pod
        .pointer("/metadata/annotations")
        .and_then(|all| all.get(DEFAULT_CONTAINER))
        .and_then(Value::as_str);
    match named.filter(|named| containers.iter().any(|name| name == named)) {
        Some(named) => Default::Named(named.to_owned()),
        None if containers.len() > 1 => Default::OneOf(containers),
        None => Default::Only,
    }
}
