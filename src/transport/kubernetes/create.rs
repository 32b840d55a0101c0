//! Makes an object that nobody may have made before. A POST whose answer got lost may have made it:
//! what is there then is known by the annotation that the manifest alone has.

use super::act::{Doubt, KubernetesActionStop, LOOK, TRIES, format_error_line, stop_with_failure};
use super::kinds;
use super::read::{create_path, no_kind};
use super::server::{KubernetesRequest, WriteRequestOutcome};
use super::unmarked::refuse_unmarked;
use super::write_target::WriteTarget;
use super::{KubernetesLink, performed_from_exit};
use crate::ExecutionOutcome;
use http::Method;
use railwright_resource::json_in_configmap::mark::{OF_OBJECT, find_mark_value};
use railwright_resource::kubernetes_object::ownership::describe_object_owner;
use railwright_resource::kubernetes_object::request::{NO_KIND, ObjectName, SUBMISSION, TAKEN};
use railwright_system::clock;
use serde_json::Value;

impl KubernetesLink {
    pub(super) async fn create(
        &self,
        object: &ObjectName,
        manifest: &Value,
    ) -> Result<ExecutionOutcome, KubernetesActionStop> {
        let Some(resource) = self.resource(object).await? else {
            let line = format_error_line(&no_kind(object));
            return Ok(performed_from_exit(NO_KIND, "", &line));
        };
        let collection = kinds::list_path(object, &resource)
            .map_err(|reason| stop_with_failure(reason.as_words()))?;
        let place = WriteTarget::new(object, resource)?;
        let call = KubernetesRequest::with(
            Method::POST,
            create_path(&collection),
            "application/json",
            manifest.to_string(),
        );
        let mut doubt = Doubt::default();
        for _ in 0..TRIES {
            let (refusal, pause) = match self.send(&call).await.map_err(|stop| doubt.over(stop))? {
                WriteRequestOutcome::Answered(reply) if matches!(reply.status, 200 | 201) => {
                    self.keep_if_marked(&place, manifest, &reply).await?;
                    return Ok(performed_from_exit(0, &reply.warnings.join("\n"), ""));
                }
                WriteRequestOutcome::Answered(reply) if reply.status == 409 => (None, LOOK),
                WriteRequestOutcome::Answered(reply) => (Some(reply), LOOK),
                WriteRequestOutcome::Unsure(unsure) => (None, doubt.add(unsure)),
            };
            if let Some(reply) = refusal.as_ref().filter(|_| !doubt.is_there()) {
                return Err(place.refused(reply));
            }
            let looked = self.find(&place).await;
            match looked.map_err(|stop| doubt.over(stop))? {
                Some(found) if is_of_same_submission(&found, manifest) => {
                    refuse_unmarked(&place, manifest, Some(found))?;
                    return Ok(performed_from_exit(0, "", ""));
                }
                Some(found) if doubt.is_there() && bears_no_submission(&found) => {
                    let reason = format!(
                        "the answer got lost, and {object} is there without the mark of any \
                         submission: whether it is this one's, and something on the way took the \
                         mark, is not known"
                    );
                    return Ok(ExecutionOutcome::Unknown {
                        reason: reason.into(),
                    });
                }
                Some(found) => return Ok(new_taken_outcome(object, &found)),
                None => match refusal {
                    Some(reply) => {
                        return Err(doubt.over(place.refused(&reply)));
                    }
                    None => clock::sleep_for(pause).await,
                },
            }
        }
        Err(doubt.given_up(stop_with_failure(&format!(
            "the server says that {object} is there, and does not show it"
        ))))
    }
}

/// The outcome where another object has the name.
fn new_taken_outcome(object: &ObjectName, found: &Value) -> ExecutionOutcome {
    let owner = describe_object_owner(found);
    let line = format_error_line(&format!("{object} is there already: {owner}"));
    performed_from_exit(TAKEN, "", &line)
}

fn is_of_same_submission(found: &Value, manifest: &Value) -> bool {
    let own = find_mark_value(manifest, OF_OBJECT, SUBMISSION);
    own.is_some() && find_mark_value(found, OF_OBJECT, SUBMISSION) == own
}

fn bears_no_submission(found: &Value) -> bool {
    find_mark_value(found, OF_OBJECT, SUBMISSION).is_none()
}
