//! Writes of objects that were looked at: apply, delete, take our marks, mark a template of pods.
//! What is written is the object that the action goes by and no other: each request carries its UID
//! and its resource version, and one that makes an object a version that no object ever has, so
//! that the server itself refuses whatever came in between
//! (kubernetes.io/docs/reference/using-api/api-concepts, "Resource versions").

use super::act::{
    Doubt, KubernetesActionStop, LOOK, TRIES, stop_with_failure, stop_with_stale_precondition,
};
use super::edit::{build_version_precondition, new_merge_patch_request};
use super::read::{APPLY, apply_path, no_kind};
use super::server::{KubernetesReply, KubernetesRequest, WriteRequestOutcome};
use super::unmarked::refuse_unmarked;
use super::write_target::WriteTarget;
use super::{KubernetesLink, performed_from_exit};
use crate::ExecutionOutcome;
use http::Method;
use railwright_resource::json_in_configmap::mark::{OF_TEMPLATE, RestartMark, find_mark_value};
use railwright_resource::kubernetes_object::ownership::{
    bearing_attempt, build_unmark_patch, is_of_attempt, is_unmarked,
};
use railwright_resource::kubernetes_object::precondition::ObjectPrecondition;
use railwright_resource::kubernetes_object::request::ObjectName;
use railwright_resource::kubernetes_object::{finalizers, owns_nothing};
use railwright_system::clock::{self, Deadline};
use serde_json::{Value, json};
use std::time::Duration;

/// The resource version of nothing: etcd counts from it, and the first object ever written has a
/// higher one. An apply that carries it makes an object, and is refused as a conflict where one is
/// there (kubernetes/kubernetes: staging/src/k8s.io/apiserver/pkg/registry/generic/registry/
/// store.go, `Store.Update`).
pub const OF_NOTHING: &str = "1";
/// A kind that was defined a moment ago is served after about a second.
const KIND_LIMIT: Duration = Duration::from_secs(15);
/// Before the second look at what is being deleted: most objects are gone in no time, and there may
/// be thousands.
const FIRST_LOOK: Duration = Duration::from_millis(20);

/// What a write of an object came to.
enum ObjectWriteOutcome {
    Answered(KubernetesReply),
    /// It is not there.
    Gone,
    /// It was done by a request whose answer got lost.
    Landed,
}

impl KubernetesLink {
    pub(super) async fn apply(
        &self,
        object: &ObjectName,
        manifest: &Value,
        precondition: &ObjectPrecondition,
        token: &str,
    ) -> Result<ExecutionOutcome, KubernetesActionStop> {
        let deadline = Deadline::after(KIND_LIMIT);
        let resource = loop {
            match self.resource(object).await? {
                Some(resource) => break resource,
                None if deadline.left().is_zero() => {
                    return Err(stop_with_failure(&no_kind(object)));
                }
                None => clock::sleep_for(LOOK).await,
            }
        };
        let place = WriteTarget::new(object, resource)?;
        match precondition {
            ObjectPrecondition::Absent => self.make(&place, manifest, token).await,
            ObjectPrecondition::Present { .. } => {
                self.overwrite(&place, manifest, precondition).await
            }
        }
    }

    /// Applies an object that is not there. One that bears the token of this attempt by then was
    /// made by an earlier try whose answer got lost; the mark of the spec says nothing of that,
    /// because another run makes it too.
    async fn make(
        &self,
        place: &WriteTarget<'_>,
        manifest: &Value,
        token: &str,
    ) -> Result<ExecutionOutcome, KubernetesActionStop> {
        let call = new_apply_request(
            &place.path,
            &bearing_attempt(manifest.clone(), token),
            &json!({ "resourceVersion": OF_NOTHING }),
        );
        let mut doubt = Doubt::default();
        let mut conflict = None;
        for _ in 0..TRIES {
            let pause = match self.send(&call).await.map_err(|stop| doubt.over(stop))? {
                WriteRequestOutcome::Answered(reply) if reply.status == 201 => {
                    self.keep_if_marked(place, manifest, &reply).await?;
                    return Ok(performed_from_exit(0, &reply.warnings.join("\n"), ""));
                }
                // A server that does not hold to the precondition: better said than hidden.
                WriteRequestOutcome::Answered(reply) if reply.status == 200 => {
                    return Err(stop_with_failure(&format!(
                        "{} was there by then, and the server wrote over it all the same",
                        place.object
                    )));
                }
                WriteRequestOutcome::Answered(reply)
                    if reply.status != 409 && !doubt.is_there() =>
                {
                    return Err(place.refused(&reply));
                }
                WriteRequestOutcome::Answered(reply) => {
                    conflict = Some(reply.message());
                    LOOK
                }
                WriteRequestOutcome::Unsure(unsure) => doubt.add(unsure),
            };
            if let Some(found) = self.look(place, &doubt).await? {
                if !is_of_attempt(&found, token) {
                    let violated = ObjectPrecondition::Absent.violated_by(place.object, &found);
                    return Err(stop_with_stale_precondition(&violated));
                }
                refuse_unmarked(place, manifest, Some(found))?;
                return Ok(performed_from_exit(0, "", ""));
            }
            clock::sleep_for(pause).await;
        }
        Err(doubt.given_up(stop_with_failure(
            &conflict.unwrap_or_else(|| describe_changing_object(place)),
        )))
    }

    async fn overwrite(
        &self,
        place: &WriteTarget<'_>,
        manifest: &Value,
        precondition: &ObjectPrecondition,
    ) -> Result<ExecutionOutcome, KubernetesActionStop> {
        let written = self.write(
            place,
            precondition,
            |live| new_apply_request(&place.path, manifest, &build_version_precondition(live)),
            |_| false,
        );
        match written.await? {
            ObjectWriteOutcome::Answered(reply) if reply.status == 200 => {
                refuse_unmarked(place, manifest, reply.json())?;
                Ok(performed_from_exit(0, &reply.warnings.join("\n"), ""))
            }
            ObjectWriteOutcome::Answered(reply) => Err(place.refused(&reply)),
            ObjectWriteOutcome::Gone | ObjectWriteOutcome::Landed => Err(
                stop_with_stale_precondition(&format!("{} is gone", place.object)),
            ),
        }
    }

    /// Deletes the object, its dependants first, and waits until it is gone where another one takes
    /// its place. Else whoever asked for it looks until it is gone.
    pub(super) async fn delete(
        &self,
        object: &ObjectName,
        precondition: &ObjectPrecondition,
        limit: Option<Duration>,
    ) -> Result<ExecutionOutcome, KubernetesActionStop> {
        // Where the kind is gone, so are its objects.
        let Some(resource) = self.resource(object).await? else {
            return Ok(performed_from_exit(0, "", ""));
        };
        let place = WriteTarget::new(object, resource)?;
        let written = self.write(
            &place,
            precondition,
            |live| new_delete_request(&place, &build_version_precondition(live)),
            is_going,
        );
        let warnings = match written.await? {
            ObjectWriteOutcome::Gone => return Ok(performed_from_exit(0, "", "")),
            ObjectWriteOutcome::Answered(reply) if reply.is_not_found() => {
                return Ok(performed_from_exit(0, "", ""));
            }
            ObjectWriteOutcome::Answered(reply) if matches!(reply.status, 200 | 202) => {
                reply.warnings.join("\n")
            }
            ObjectWriteOutcome::Answered(reply) => {
                return Err(place.refused(&reply));
            }
            ObjectWriteOutcome::Landed => String::new(),
        };
        if let Some(limit) = limit {
            // Whether it is gone is read again in any case.
            if let Some(stands) = self.wait_until_gone(&place, precondition, limit).await {
                stands?;
            }
        }
        Ok(performed_from_exit(0, &warnings, ""))
    }

    /// Looks until the object is gone, or another one has taken its place; why it is still there
    /// after the limit. Nothing where the server does not say.
    pub(super) async fn wait_until_gone(
        &self,
        place: &WriteTarget<'_>,
        precondition: &ObjectPrecondition,
        limit: Duration,
    ) -> Option<Result<(), KubernetesActionStop>> {
        let deadline = Deadline::after(limit);
        let mut pause = FIRST_LOOK;
        loop {
            let call = KubernetesRequest::get(place.path.clone());
            let now = self.server.ask(&call).await.ok()?;
            if now.is_not_found() {
                return Some(Ok(()));
            }
            let found = now.json().filter(|_| now.status == 200)?;
            if !is_same(precondition, &found) {
                return Some(Ok(()));
            }
            if deadline.left().is_zero() {
                return Some(Err(stop_with_failure(&format!(
                    "after {} s {} is still {}",
                    limit.as_secs(),
                    place.object,
                    finalizers::describe_deletion(&found)
                ))));
            }
            clock::sleep_for(pause).await;
            pause = (pause * 2).min(LOOK);
        }
    }

    /// Takes our marks from the object.
    pub(super) async fn unmark(
        &self,
        object: &ObjectName,
        precondition: &ObjectPrecondition,
    ) -> Result<ExecutionOutcome, KubernetesActionStop> {
        let Some(resource) = self.resource(object).await? else {
            return Ok(performed_from_exit(0, "", ""));
        };
        let place = WriteTarget::new(object, resource)?;
        let written = self.write(
            &place,
            precondition,
            |live| {
                let version = build_version_precondition(live);
                new_merge_patch_request(&place.path, &with_metadata(build_unmark_patch(), &version))
            },
            |live| is_same(precondition, live) && is_unmarked(live),
        );
        match written.await? {
            ObjectWriteOutcome::Answered(reply) if reply.status == 200 => {
                Ok(performed_from_exit(0, &reply.warnings.join("\n"), ""))
            }
            ObjectWriteOutcome::Gone | ObjectWriteOutcome::Landed => {
                Ok(performed_from_exit(0, "", ""))
            }
            ObjectWriteOutcome::Answered(reply) if reply.is_not_found() => {
                Ok(performed_from_exit(0, "", ""))
            }
            ObjectWriteOutcome::Answered(reply) => Err(place.refused(&reply)),
        }
    }

    /// Sets or takes an annotation of the template of a workload's pods.
    pub(super) async fn mark(
        &self,
        object: &ObjectName,
        precondition: &ObjectPrecondition,
        mark: &RestartMark,
    ) -> Result<ExecutionOutcome, KubernetesActionStop> {
        let place = self.place(object).await?;
        let written = self.write(
            &place,
            precondition,
            |live| new_mark_request(&place, mark, live),
            |live| {
                is_same(precondition, live)
                    && find_mark_value(live, OF_TEMPLATE, &mark.name) == mark.value.as_deref()
            },
        );
        match written.await? {
            ObjectWriteOutcome::Answered(reply) if reply.status == 200 => {
                Ok(performed_from_exit(0, &reply.warnings.join("\n"), ""))
            }
            ObjectWriteOutcome::Landed => Ok(performed_from_exit(0, "", "")),
            ObjectWriteOutcome::Answered(reply) if reply.status != 404 => {
                Err(place.refused(&reply))
            }
            ObjectWriteOutcome::Answered(_) | ObjectWriteOutcome::Gone => Err(
                stop_with_stale_precondition(&format!("{object} is gone: nothing is restarted")),
            ),
        }
    }

    /// Looks, and writes what was looked at if it is what the action goes by; again where somebody
    /// wrote in between, or the answer got lost.
    async fn write(
        &self,
        place: &WriteTarget<'_>,
        precondition: &ObjectPrecondition,
        call: impl Fn(&Value) -> KubernetesRequest + Send + Sync,
        has_landed: impl Fn(&Value) -> bool + Send + Sync,
    ) -> Result<ObjectWriteOutcome, KubernetesActionStop> {
        let mut doubt = Doubt::default();
        for turn in 1..=TRIES {
            let Some(live) = self.look(place, &doubt).await? else {
                return Ok(ObjectWriteOutcome::Gone);
            };
            if doubt.is_there() && has_landed(&live) {
                return Ok(ObjectWriteOutcome::Landed);
            }
            if !precondition.holds_for(&live) {
                return Err(doubt.over(stop_with_stale_precondition(
                    &precondition.violated_by(place.object, &live),
                )));
            }
            match self
                .send(&call(&live))
                .await
                .map_err(|stop| doubt.over(stop))?
            {
                WriteRequestOutcome::Answered(reply) if reply.status == 409 && turn < TRIES => {
                    clock::sleep_for(LOOK).await
                }
                WriteRequestOutcome::Answered(reply)
                    if doubt.is_there() && (!reply.settles() || reply.status == 409) =>
                {
                    return Err(doubt.over(place.refused(&reply)));
                }
                WriteRequestOutcome::Answered(reply) => {
                    return Ok(ObjectWriteOutcome::Answered(reply));
                }
                WriteRequestOutcome::Unsure(unsure) => {
                    clock::sleep_for(doubt.add(unsure)).await;
                }
            }
        }
        match self.look(place, &doubt).await? {
            None => Ok(ObjectWriteOutcome::Gone),
            Some(live) if has_landed(&live) => Ok(ObjectWriteOutcome::Landed),
            Some(_) => Err(doubt.given_up(stop_with_failure(&describe_changing_object(place)))),
        }
    }

    /// The object as it is now.
    async fn look(
        &self,
        place: &WriteTarget<'_>,
        doubt: &Doubt,
    ) -> Result<Option<Value>, KubernetesActionStop> {
        self.find(place).await.map_err(|stop| doubt.over(stop))
    }
}

/// A request that applies an object, with this beside its name.
pub(super) fn new_apply_request(path: &str, manifest: &Value, more: &Value) -> KubernetesRequest {
    KubernetesRequest::with(
        Method::PATCH,
        apply_path(path),
        APPLY,
        with_metadata(manifest.clone(), more).to_string(),
    )
}

/// A request that deletes an object of which this holds; its dependants first, where it has any.
pub(super) fn new_delete_request(
    place: &WriteTarget<'_>,
    preconditions: &Value,
) -> KubernetesRequest {
    let policy = if owns_nothing(place.object) {
        "Background"
    } else {
        "Foreground"
    };
    let options = json!({ "apiVersion": "v1", "kind": "DeleteOptions", "preconditions": preconditions, "propagationPolicy": policy });
    KubernetesRequest::with(
        Method::DELETE,
        place.path.clone(),
        "application/json",
        options.to_string(),
    )
}

/// A request that sets or takes an annotation of the template of this version of a workload.
fn new_mark_request(
    place: &WriteTarget<'_>,
    mark: &RestartMark,
    live: &Value,
) -> KubernetesRequest {
    let template = json!({ "metadata": { "annotations": { &mark.name: mark.value } } });
    new_merge_patch_request(
        &place.path,
        &json!({ "metadata": build_version_precondition(live), "spec": { "template": template } }),
    )
}

fn with_metadata(mut object: Value, more: &Value) -> Value {
    if !object["metadata"].is_object() {
        object["metadata"] = json!({});
    }
    for (field, value) in more.as_object().into_iter().flatten() {
        object["metadata"][field] = value.clone();
    }
    object
}

fn is_going(object: &Value) -> bool {
    object.pointer("/metadata/deletionTimestamp").is_some()
}

/// Whether this is the very object, whoever it belongs to by now.
fn is_same(precondition: &ObjectPrecondition, object: &Value) -> bool {
    let uid = object.pointer("/metadata/uid").and_then(Value::as_str);
    matches!(precondition, ObjectPrecondition::Present { uid: looked_at, .. } if Some(looked_at.as_str()) == uid)
}

fn describe_changing_object(place: &WriteTarget<'_>) -> String {
    format!(
        "{} changes all the time; nothing was changed by us",
        place.object
    )
}
