//! Makes an object that nobody may have made before. A POST whose answer got lost may have made it: what is there then is known by the
//! annotation that the manifest alone has.

use super::act::{Doubt, LOOK, Stop, TRIES, complaint, failed, refused};
use super::kinds;
use super::read::{create_path, no_kind};
use super::server::{Call, Sent};
use super::{KubernetesLink, ended};
use crate::Performed;
use http::Method;
use railwright_resource::kubernetes_object::ownership::maker;
use railwright_resource::kubernetes_object::request::{NO_KIND, ObjectName, SUBMISSION, TAKEN};
use railwright_system::clock;
use serde_json::Value;

impl KubernetesLink {
    pub(super) async fn create(&self, object: &ObjectName, manifest: &Value) -> Result<Performed, Stop> {
        let resource = self.resource(object).await?.ok_or_else(|| Stop::Ended(ended(NO_KIND, "", &complaint(&no_kind(object)))))?;
        let collection = kinds::list_path(object, &resource).map_err(|reason| failed(&reason))?;
        let path = kinds::path(object, &resource).map_err(|reason| failed(&reason))?;
        let call = Call::with(Method::POST, create_path(&collection), "application/json", manifest.to_string());
        let mut doubt = Doubt::default();
        for _ in 0..TRIES {
            let (refusal, pause) = match self.send(&call).await.map_err(|stop| doubt.over(stop))? {
                Sent::Answered(reply) if matches!(reply.status, 200 | 201) => return Ok(ended(0, &reply.warnings.join("\n"), "")),
                Sent::Answered(reply) if reply.status == 409 => (None, LOOK),
                Sent::Answered(reply) => (Some(reply), LOOK),
                Sent::Unsure { reason, may_come, again_after } => {
                    doubt.add(reason, may_come);
                    (None, again_after)
                }
            };
            if let Some(reply) = refusal.as_ref().filter(|_| !doubt.is_there()) {
                return Err(refused(object, &resource, reply));
            }
            let looked = self.find(object, &path, &resource).await;
            match looked.map_err(|stop| doubt.over(stop))? {
                Some(found) if is_of_same_submission(&found, manifest) => return Ok(ended(0, "", "")),
                Some(found) => return Ok(ended(TAKEN, "", &complaint(&format!("{object} is there already: {}", maker(&found))))),
                None => match refusal {
                    Some(reply) => return Err(doubt.over(refused(object, &resource, &reply))),
                    None => clock::pause(pause).await,
                },
            }
        }
        Err(doubt.given_up(failed(&format!("the server says that {object} is there, and does not show it"))))
    }
}

fn is_of_same_submission(found: &Value, manifest: &Value) -> bool {
    let word = |object: &Value| Some(object.pointer("/metadata/annotations")?.get(SUBMISSION)?.as_str()?.to_owned());
    word(manifest).is_some_and(|own| word(found) == Some(own))
}
