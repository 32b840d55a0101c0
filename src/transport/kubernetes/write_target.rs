//! An object that is written, and where: it is looked at, and patched as long as it is what was
//! looked at.

use super::act::{
    Doubt, KubernetesActionStop, LOOK, TRIES, stop_with_failure, stop_with_refusal,
    stop_with_stale_precondition,
};
use super::edit::new_merge_patch_request;
use super::kinds::{self, ApiResource};
use super::read::no_kind;
use super::server::{KubernetesReply, KubernetesRequest, WriteRequestOutcome};
use super::{KubernetesLink, answer};
use railwright_resource::kubernetes_object::request::ObjectName;
use railwright_system::clock;
use serde_json::Value;

/// An object, and where the server has it.
pub(super) struct WriteTarget<'a> {
    pub object: &'a ObjectName,
    pub resource: ApiResource,
    pub path: String,
}

impl<'a> WriteTarget<'a> {
    /// Of an object of this kind. An error is a name that no object has.
    pub fn new(
        object: &'a ObjectName,
        resource: ApiResource,
    ) -> Result<Self, KubernetesActionStop> {
        let path = kinds::build_object_path(object, &resource)
            .map_err(|reason| stop_with_failure(reason.as_words()))?;
        Ok(WriteTarget {
            object,
            resource,
            path,
        })
    }

    /// The server refused a write of it.
    pub fn refused(&self, reply: &KubernetesReply) -> KubernetesActionStop {
        stop_with_refusal(self.object, &self.resource, reply)
    }

    fn gone(&self) -> KubernetesActionStop {
        stop_with_stale_precondition(&format!("{} is gone", self.object))
    }
}

impl KubernetesLink {
    /// Where the server has an object of a kind that it has to know.
    pub(super) async fn place<'a>(
        &self,
        object: &'a ObjectName,
    ) -> Result<WriteTarget<'a>, KubernetesActionStop> {
        match self.resource(object).await? {
            Some(resource) => WriteTarget::new(object, resource),
            None => Err(stop_with_failure(&no_kind(object))),
        }
    }

    /// The object, which has to be there.
    pub(super) async fn live(
        &self,
        place: &WriteTarget<'_>,
    ) -> Result<Value, KubernetesActionStop> {
        self.find(place).await?.ok_or_else(|| place.gone())
    }

    /// The object as it is; nothing where it is not there.
    pub(super) async fn find(
        &self,
        place: &WriteTarget<'_>,
    ) -> Result<Option<Value>, KubernetesActionStop> {
        let reply = match self
            .server
            .ask(&KubernetesRequest::get(place.path.clone()))
            .await
        {
            Ok(reply) => reply,
            // Nothing was asked to change yet.
            Err(trouble) => return Err(KubernetesActionStop::Failed(trouble.error(&self.server))),
        };
        match (reply.status, reply.json()) {
            (200, Some(live)) if !reply.cut && answer::is_of(place.object, &live) => Ok(Some(live)),
            (404, _) if reply.is_not_found() => Ok(None),
            (404, _) => match self
                .server
                .kinds
                .is_served(&self.server, place.object)
                .await
            {
                Ok(false) => Ok(None),
                _ => Err(stop_with_failure(&format!(
                    "what answers there is no API server: {}",
                    reply.message()
                ))),
            },
            (200, _) => Err(stop_with_failure(&format!(
                "what came is no {}, or too long a one",
                place.object.kind
            ))),
            _ => Err(place.refused(&reply)),
        }
    }

    /// One merge patch of what was looked at: the answer that took it. Nothing where it has to be
    /// re-checked: somebody wrote in between, or the answer got lost.
    pub(super) async fn patch(
        &self,
        place: &WriteTarget<'_>,
        patch: &Value,
        (turn, doubt): (u32, &mut Doubt),
    ) -> Result<Option<KubernetesReply>, KubernetesActionStop> {
        let sent = self
            .send(&new_merge_patch_request(&place.path, patch))
            .await;
        let pause = match sent.map_err(|stop| doubt.over(stop))? {
            WriteRequestOutcome::Answered(reply) if reply.status == 200 => return Ok(Some(reply)),
            WriteRequestOutcome::Answered(reply) if reply.is_not_found() => {
                return Err(doubt.over(place.gone()));
            }
            WriteRequestOutcome::Answered(reply) if reply.status == 409 && turn < TRIES => LOOK,
            WriteRequestOutcome::Answered(reply) => return Err(doubt.over(place.refused(&reply))),
            WriteRequestOutcome::Unsure(unsure) => doubt.add(unsure),
        };
        clock::sleep_for(pause).await;
        Ok(None)
    }
}
