//! The record that the cluster keeps of itself: a Secret of its own for each cluster of a spec, because it may hold what stood somewhere before, with
//! the record's JSON in gzip. Its owner is our field manager, so one request writes it, whether it is there or not.

use super::answer::{self, exit};
use super::fault::Trouble;
use super::read::{APPLY, apply_path};
use super::server::{Call, Reply};
use super::{KubernetesLink, NAMESPACE, NOT_KEPT, ended};
use crate::resource::Answer;
use crate::resource::file::base64;
use crate::resource::kubernetes_object::applyset::Members;
use crate::resource::kubernetes_object::request::ObjectName;
use crate::transport::{Performed, TransportError};
use flate2::Compression;
use flate2::read::{GzDecoder, GzEncoder};
use http::Method;
use serde_json::json;
use std::io::Read as _;

const KEY: &str = "record.json";
const TYPE: &str = "railwright.io/record";
/// A Secret holds 1 MiB with everything in it.
const RECORD_LIMIT_BYTES: usize = 900 << 10;
/// Of the Secret as JSON.
const ANSWER_LIMIT_BYTES: usize = 3 << 20;
/// What a record may grow to when it is unpacked.
const UNPACKED_LIMIT_BYTES: u64 = 64 << 20;

enum Found {
    Nothing,
    Record(String),
    Damaged,
    Refused(Reply),
}

impl KubernetesLink {
    async fn record(&self) -> Result<Found, Trouble> {
        let call = Call { limit: ANSWER_LIMIT_BYTES, ..Call::get(path(&self.keeps)) };
        let reply = self.server.ask(&call).await?;
        Ok(match reply.status {
            200 => unpacked(&reply),
            // The API server's own word; a proxy between says the same of what it does not know.
            404 if reply.json().is_some() => Found::Nothing,
            _ => Found::Refused(reply),
        })
    }

    pub(super) async fn record_now(&self) -> Result<Performed, TransportError> {
        Ok(match self.record().await.map_err(|trouble| trouble.error(&self.server))? {
            Found::Nothing => ended(1, "", ""),
            Found::Record(json) => ended(0, &json, ""),
            Found::Damaged => ended(NOT_KEPT, "", &format!("the Secret {NAMESPACE}/{} holds no record", self.keeps)),
            Found::Refused(reply) => ended(NOT_KEPT, "", &refused(&self.keeps, &reply)),
        })
    }

    /// As the read of the file that a host keeps it in.
    pub(super) async fn record_as_file(&self) -> Result<Answer, Trouble> {
        Ok(match self.record().await? {
            Found::Nothing => exit(1, ""),
            Found::Record(json) => exit(0, format!("600 root root {} regular file\n{json}", json.len())),
            Found::Damaged => return Err(self.record_unread("the Secret holds none".to_owned())),
            Found::Refused(reply) => match answer::lacking(&reply) {
                Some(verb) => answer::denied(&secret(&self.keeps), &verb, "secrets"),
                None => return Err(self.record_unread(format!("the API server answers {}: {}", reply.status, reply.message()))),
            },
        })
    }

    /// Whoever took it for absent would forget what is to be taken back, and write that down.
    fn record_unread(&self, reason: String) -> Trouble {
        let (cluster, secret) = (self.server.cluster.clone(), self.keeps.clone());
        Trouble::NotSent(TransportError::RecordUnread { cluster, secret, reason })
    }

    pub(super) async fn write_record(&self, json: &str, members: &[String]) -> Result<Performed, TransportError> {
        let packed = match packed(json) {
            Ok(packed) if packed.len() > RECORD_LIMIT_BYTES => {
                let size = packed.len() >> 10;
                return Ok(ended(
                    NOT_KEPT,
                    "",
                    &format!("the record has {size} KiB in gzip, and a Secret takes {} KiB", RECORD_LIMIT_BYTES >> 10),
                ));
            }
            Ok(packed) => packed,
            Err(error) => return Ok(ended(NOT_KEPT, "", &format!("the record cannot be packed: {error}"))),
        };
        let (labels, annotations) = Members::of(members).of_parent(&self.keeps);
        let metadata = json!({ "name": self.keeps, "namespace": NAMESPACE, "labels": labels, "annotations": annotations });
        let manifest = json!({ "apiVersion": "v1", "kind": "Secret", "type": TYPE, "metadata": metadata,
                               "data": { KEY: base64::encode(&packed) } });
        let call = Call::with(Method::PATCH, apply_path(&path(&self.keeps)), APPLY, manifest.to_string());
        match self.server.ask(&call).await {
            Err(trouble) => trouble.performed(),
            Ok(reply) if matches!(reply.status, 200 | 201) => Ok(ended(0, "", "")),
            Ok(reply) => Ok(ended(NOT_KEPT, "", &refused(&self.keeps, &reply))),
        }
    }
}

fn path(keeps: &str) -> String {
    format!("/api/v1/namespaces/{NAMESPACE}/secrets/{keeps}")
}

fn secret(keeps: &str) -> ObjectName {
    ObjectName { api_version: "v1".to_owned(), kind: "Secret".to_owned(), namespace: Some(NAMESPACE.to_owned()), name: keeps.to_owned() }
}

fn refused(keeps: &str, reply: &Reply) -> String {
    answer::refusal("the cluster's record", &secret(keeps), "secrets", reply)
}

fn packed(json: &str) -> std::io::Result<Vec<u8>> {
    let mut out = Vec::new();
    GzEncoder::new(json.as_bytes(), Compression::default()).read_to_end(&mut out)?;
    Ok(out)
}

fn unpacked(reply: &Reply) -> Found {
    let data = || {
        let secret = reply.json()?;
        let bytes = base64::decode(secret.get("data")?.get(KEY)?.as_str()?)?;
        let mut out = String::new();
        let read = GzDecoder::new(bytes.as_slice()).take(UNPACKED_LIMIT_BYTES + 1).read_to_string(&mut out).ok()?;
        (read as u64 <= UNPACKED_LIMIT_BYTES).then_some(out)
    };
    data().map_or(Found::Damaged, Found::Record)
}
