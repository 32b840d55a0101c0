//! Edits of what others own: parts of a text in a ConfigMap, and the annotation that starts a workload's pods anew. Both are merge
//! patches (RFC 7386): unlike an apply they never create what is gone, and they name nothing but what they change.

use super::act::{LOOK, Stop, TRIES, complaint, failed, refused};
use super::kinds::{self, Resource};
use super::read::no_kind;
use super::server::{Call, Reply};
use super::{KubernetesLink, ended};
use crate::resource::json_in_configmap::edit::{Edit, edited};
use crate::resource::json_in_configmap::mark::Mark;
use crate::resource::kubernetes_object::MANAGER;
use crate::resource::kubernetes_object::request::{MOVED, ObjectName};
use crate::system::clock;
use crate::transport::Performed;
use http::Method;
use serde_json::{Value, json};

const MERGE: &str = "application/merge-patch+json";

impl KubernetesLink {
    /// Reads the text, edits what is as the edits say, and writes it if the object has not changed meanwhile; else again.
    pub(super) async fn edit(&self, object: &ObjectName, key: &str, edits: &[Edit], mark: Option<&Mark>) -> Result<Performed, Stop> {
        let (path, resource) = self.place(object).await?;
        for turn in 1..=TRIES {
            let live = self.live(object, &path, &resource).await?;
            let text = live.pointer("/data").and_then(|data| data.get(key)).and_then(Value::as_str);
            let Some(text) = text else { return Err(moved(&format!("{object} has no text `{key}` by now"))) };
            let new = edited(text, edits).map_err(|reason| moved(&format!("`{key}` of {object}: {reason}")))?;
            let version = live.pointer("/metadata/resourceVersion");
            let mut patch = json!({ "metadata": { "resourceVersion": version }, "data": { key: new } });
            if let Some(mark) = mark {
                patch["metadata"]["annotations"] = json!({ &mark.name: mark.value });
            }
            let reply = self.change(&merge(&path, &patch)).await?;
            match reply.status {
                200 => return Ok(ended(0, &reply.warnings.join("\n"), "")),
                404 => return Err(gone(object)),
                409 if turn < TRIES => clock::pause(LOOK).await,
                _ => return Err(refused(object, &resource, &reply)),
            }
        }
        Err(failed(&format!("{object} changes all the time; nothing was changed by us")))
    }

    /// Sets or takes an annotation of the template.
    pub(super) async fn mark(&self, object: &ObjectName, mark: &Mark) -> Result<Performed, Stop> {
        let (path, resource) = self.place(object).await?;
        let patch = json!({ "spec": { "template": { "metadata": { "annotations": { &mark.name: mark.value } } } } });
        let reply = self.change(&merge(&path, &patch)).await?;
        match reply.status {
            200 => Ok(ended(0, &reply.warnings.join("\n"), "")),
            404 => Err(failed(&format!("{object} is gone: nothing starts anew"))),
            _ => Err(refused(object, &resource, &reply)),
        }
    }

    async fn place(&self, object: &ObjectName) -> Result<(String, Resource), Stop> {
        let resource = self.resource(object).await?.ok_or_else(|| failed(&no_kind(object)))?;
        let path = kinds::path(object, &resource).map_err(|reason| failed(&reason))?;
        Ok((path, resource))
    }

    pub(super) async fn live(&self, object: &ObjectName, path: &str, resource: &Resource) -> Result<Value, Stop> {
        let reply: Reply = match self.server.ask(&Call::get(path.to_owned())).await {
            Ok(reply) => reply,
            // Nothing was asked to change yet.
            Err(trouble) => return Err(Stop::Failed(trouble.error(&self.server))),
        };
        match (reply.status, reply.json()) {
            (200, Some(live)) if !reply.cut => Ok(live),
            (404, _) => Err(gone(object)),
            (200, _) => Err(failed("the server's answer is no object, or too long a one")),
            _ => Err(refused(object, resource, &reply)),
        }
    }
}

pub(super) fn merge(path: &str, patch: &Value) -> Call {
    Call::with(Method::PATCH, format!("{path}?fieldManager={MANAGER}&fieldValidation=Strict"), MERGE, patch.to_string())
}

fn gone(object: &ObjectName) -> Stop {
    moved(&format!("{object} is gone"))
}

/// What the step goes by is no longer there.
fn moved(sentence: &str) -> Stop {
    Stop::Ended(ended(MOVED, "", &complaint(sentence)))
}
