//! Makes an object that nobody may have made before. A POST whose answer got lost may have made it: what is there then is known by the
//! annotation that the manifest alone has.

use super::act::{LOOK, Stop, TRIES, complaint, failed, refused, unsure};
use super::kinds;
use super::read::{create_path, no_kind};
use super::server::{Call, Sent};
use super::{KubernetesLink, ended};
use crate::resource::kubernetes_object::ownership::maker;
use crate::resource::kubernetes_object::request::{NO_KIND, ObjectName, SUBMISSION, TAKEN};
use crate::system::clock;
use crate::transport::Performed;
use http::Method;
use serde_json::Value;

impl KubernetesLink {
    pub(super) async fn create(&self, object: &ObjectName, manifest: &Value) -> Result<Performed, Stop> {
        let resource = self.resource(object).await?.ok_or_else(|| Stop::Ended(ended(NO_KIND, "", &complaint(&no_kind(object)))))?;
        let collection = kinds::list_path(object, &resource).map_err(|reason| failed(&reason))?;
        let path = kinds::path(object, &resource).map_err(|reason| failed(&reason))?;
        let call = Call::with(Method::POST, create_path(&collection), "application/json", manifest.to_string());
        let mut last: Option<(String, bool)> = None;
        for _ in 0..TRIES {
            let (refusal, pause) = match self.send(&call).await? {
                Sent::Answered(reply) if matches!(reply.status, 200 | 201) => return Ok(ended(0, &reply.warnings.join("\n"), "")),
                Sent::Answered(reply) if reply.status == 409 => (None, LOOK),
                Sent::Answered(reply) => (Some(reply), LOOK),
                Sent::Unsure { reason, may_come, again_after } => {
                    last = Some((reason, may_come));
                    (None, again_after)
                }
            };
            if let (Some(reply), None) = (&refusal, &last) {
                return Err(refused(object, &resource, reply));
            }
            let looked = self.find(object, &path, &resource).await;
            match looked.map_err(|stop| last.as_ref().map_or(stop, |(reason, _)| unsure(reason)))? {
                Some(found) if is_of_same_submission(&found, manifest) => return Ok(ended(0, "", "")),
                Some(found) => return Ok(ended(TAKEN, "", &complaint(&format!("{object} is there already: {}", maker(&found))))),
                None => match refusal {
                    Some(reply) => return Err(refused(object, &resource, &reply)),
                    None => clock::pause(pause).await,
                },
            }
        }
        Err(match last {
            Some((reason, true)) => unsure(&reason),
            Some((reason, false)) => failed(&reason),
            None => failed(&format!("the server says that {object} is there, and does not show it")),
        })
    }
}

fn is_of_same_submission(found: &Value, manifest: &Value) -> bool {
    let word = |object: &Value| Some(object.pointer("/metadata/annotations")?.get(SUBMISSION)?.as_str()?.to_owned());
    word(manifest).is_some_and(|own| word(found) == Some(own))
}
