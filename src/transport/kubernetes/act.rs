//! The actions for an API server: apply a whole wish, delete an object, edit what others own (`edit`). Exit 0 is necessary, never sufficient: the
//! object is read again.

use super::answer;
use super::edit::merge;
use super::kinds::{self, NotKnown, Resource};
use super::read::{APPLY, apply_path, create_path, no_kind};
use super::server::{Call, Reply};
use super::{KubernetesLink, NOT_HERE, ended};
use crate::base::text::one_line;
use crate::resource::kubernetes_object;
use crate::resource::kubernetes_object::finalizers;
use crate::resource::kubernetes_object::ownership::unmarking;
use crate::resource::kubernetes_object::request::{NO_KIND, ObjectName, TAKEN};
use crate::resource::{Action, AnswerStatus};
use crate::system::clock::{self, Deadline};
use crate::transport::{Performed, TransportError};
use http::Method;
use serde_json::{Value, json};
use std::time::Duration;

/// How often an apply that met another one is tried, all in all.
pub(super) const TRIES: u32 = 5;
/// A kind that was defined a moment ago is served after about a second.
const KIND_LIMIT: Duration = Duration::from_secs(15);
/// Between two looks.
pub(super) const LOOK: Duration = Duration::from_millis(500);
/// Before the second look at what is being deleted: most objects are gone in no time, and there may be thousands.
const FIRST_LOOK: Duration = Duration::from_millis(20);

/// Ended before the object was asked about, or on the way.
pub(super) enum Stop {
    Ended(Performed),
    Failed(TransportError),
}

impl KubernetesLink {
    pub(super) async fn act(&self, action: &Action) -> Result<Performed, TransportError> {
        let limit = Duration::from_secs(action.limit_s().into());
        let done = match action {
            Action::ApplyObject { object, manifest } => self.apply(object, manifest).await,
            Action::CreateObject { object, manifest } => self.create(object, manifest).await,
            Action::DeleteObject { object, uid, anew } => self.delete(object, uid, anew.then_some(limit)).await,
            Action::UnmarkObject { object, uid } => self.unmark(object, uid).await,
            Action::EditConfigMap { object, key, edits, mark } => self.edit(object, key, edits, mark.as_ref()).await,
            Action::MarkPodTemplate { object, mark } => self.mark(object, mark).await,
            Action::EditNodes { field, edits } => self.edit_nodes(field, edits).await,
            Action::CordonNode { node, mark } => self.cordon(node, mark).await,
            Action::UncordonNode { node } => self.uncordon(node).await,
            Action::EvictPod { namespace, name, uid } => self.evict(namespace, name, uid).await,
            Action::UpgradeRelease { release } => return self.upgrade_release(release).await,
            Action::UninstallRelease { name, namespace, .. } => return self.uninstall_release(name, namespace).await,
            _ => return Ok(ended(NOT_HERE, "", &complaint("this is for a host, not for an API server"))),
        };
        match done {
            Ok(performed) | Err(Stop::Ended(performed)) => Ok(performed),
            Err(Stop::Failed(error)) => Err(error),
        }
    }

    async fn apply(&self, object: &ObjectName, manifest: &Value) -> Result<Performed, Stop> {
        let deadline = Deadline::after(KIND_LIMIT);
        let resource = loop {
            match self.resource(object).await? {
                Some(resource) => break resource,
                None if deadline.left().is_zero() => return Err(failed(&no_kind(object))),
                None => clock::pause(LOOK).await,
            }
        };
        let path = kinds::path(object, &resource).map_err(|reason| failed(&reason))?;
        let call = Call::with(Method::PATCH, apply_path(&path), APPLY, manifest.to_string());
        let mut reply = self.change(&call).await?;
        for _ in 1..TRIES {
            if reply.status != 409 {
                break;
            }
            clock::pause(LOOK).await;
            reply = self.change(&call).await?;
        }
        match reply.status {
            200 | 201 => Ok(ended(0, &reply.warnings.join("\n"), "")),
            _ => Err(refused(object, &resource, &reply)),
        }
    }

    async fn create(&self, object: &ObjectName, manifest: &Value) -> Result<Performed, Stop> {
        let resource = self.resource(object).await?.ok_or_else(|| Stop::Ended(ended(NO_KIND, "", &complaint(&no_kind(object)))))?;
        let path = kinds::list_path(object, &resource).map_err(|reason| failed(&reason))?;
        let call = Call::with(Method::POST, create_path(&path), "application/json", manifest.to_string());
        let reply = self.change(&call).await?;
        match reply.status {
            200 | 201 => Ok(ended(0, &reply.warnings.join("\n"), "")),
            409 => Ok(ended(TAKEN, "", &complaint(&reply.message()))),
            _ => Err(refused(object, &resource, &reply)),
        }
    }

    /// Deletes the object of this UID, its dependants first, and waits until it is gone where another one takes its place. Else whoever
    /// asked for it looks until it is gone.
    async fn delete(&self, object: &ObjectName, uid: &str, limit: Option<Duration>) -> Result<Performed, Stop> {
        // Where the kind is gone, so are its objects.
        let Some(resource) = self.resource(object).await? else { return Ok(ended(0, "", "")) };
        let path = kinds::path(object, &resource).map_err(|reason| failed(&reason))?;
        let policy = if kubernetes_object::owns_nothing(object) { "Background" } else { "Foreground" };
        let options = json!({ "apiVersion": "v1", "kind": "DeleteOptions", "preconditions": { "uid": uid }, "propagationPolicy": policy });
        let reply = self.change(&Call::with(Method::DELETE, path.clone(), "application/json", options.to_string())).await?;
        match reply.status {
            404 => return Ok(ended(0, "", "")),
            200 | 202 => (),
            409 => {
                return Err(failed(
                    "another object of this name stands there now, and is left alone: delete it by hand if it is not wanted",
                ));
            }
            _ => return Err(refused(object, &resource, &reply)),
        }
        let Some(limit) = limit else { return Ok(ended(0, &reply.warnings.join("\n"), "")) };
        let deadline = Deadline::after(limit);
        let mut pause = FIRST_LOOK;
        loop {
            let now = self.server.ask(&Call::get(path.clone())).await;
            // That it goes was taken; whether it is gone is read again in any case.
            let Ok(now) = now else { return Ok(ended(0, &reply.warnings.join("\n"), "")) };
            let found = now.json().unwrap_or_default();
            if now.status != 200 || found.pointer("/metadata/uid").and_then(Value::as_str) != Some(uid) {
                return Ok(ended(0, &reply.warnings.join("\n"), ""));
            }
            if deadline.left().is_zero() {
                return Err(failed(&held(object, &found, limit)));
            }
            clock::pause(pause).await;
            pause = (pause * 2).min(LOOK);
        }
    }

    /// Takes our marks from the object of this UID.
    async fn unmark(&self, object: &ObjectName, uid: &str) -> Result<Performed, Stop> {
        let Some(resource) = self.resource(object).await? else { return Ok(ended(0, "", "")) };
        let path = kinds::path(object, &resource).map_err(|reason| failed(&reason))?;
        let reply = self.change(&merge(&path, &unmarking(uid))).await?;
        match reply.status {
            200 => Ok(ended(0, &reply.warnings.join("\n"), "")),
            404 => Ok(ended(0, "", "")),
            _ => Err(refused(object, &resource, &reply)),
        }
    }

    pub(super) async fn resource(&self, object: &ObjectName) -> Result<Option<Resource>, Stop> {
        let mut groups = self.kinds.of(&self.server, std::iter::once(object)).await;
        match groups.remove(&object.api_version) {
            Some(Ok(group)) => Ok(group.get(&object.kind).cloned()),
            Some(Err(NotKnown::Trouble(trouble))) => Err(Stop::Failed(trouble.error(&self.server))),
            Some(Err(NotKnown::Said(answer))) if answer.status == AnswerStatus::Denied => {
                Err(failed(&format!("nothing was changed; a rule is missing: {}", answer.out.trim())))
            }
            Some(Err(NotKnown::Said(answer))) => Err(failed(&answer.out)),
            None => Ok(None),
        }
    }

    /// A request that changes something. A server that gave up half way does not say whether it did.
    pub(super) async fn change(&self, call: &Call) -> Result<Reply, Stop> {
        match self.server.ask(call).await {
            Ok(reply) if reply.status == 504 => Err(Stop::Ended(Performed::Unknown { reason: reply.message() })),
            Ok(reply) => Ok(reply),
            Err(trouble) => Err(trouble.performed().map_or_else(Stop::Failed, Stop::Ended)),
        }
    }
}

/// The last line of stderr, behind the mark by which it is found.
pub(super) fn complaint(sentence: &str) -> String {
    format!("railwright: {}", one_line(sentence, 2000))
}

pub(super) fn failed(sentence: &str) -> Stop {
    Stop::Ended(ended(1, "", &complaint(sentence)))
}

pub(super) fn refused(object: &ObjectName, resource: &Resource, reply: &Reply) -> Stop {
    match answer::lacking(reply) {
        Some(verb) => {
            failed(&format!("a rule is missing in the roles of this identity: {}", answer::rule(object, &verb, &resource.plural)))
        }
        None => failed(&reply.message()),
    }
}

fn held(object: &ObjectName, found: &Value, limit: Duration) -> String {
    format!("after {} s {object} is still {}", limit.as_secs(), finalizers::told(found))
}
