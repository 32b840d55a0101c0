//! The record that the cluster keeps of itself: a Secret of its own for each cluster of a spec,
//! because it may hold what stood somewhere before, with the record's JSON in gzip.
//!
//! It bears the fencing token of whoever wrote it or took the lock last. A server writes no two
//! objects at once, so the order is what keeps a run that slept away from another one's record: a
//! writer looks at the record first, then whether the lock is its own, and writes only over the
//! version that it looked at; whoever takes the lock puts its token on the record, which makes
//! every earlier look one of another version.

use super::answer::{self, new_exit_answer};
use super::edit::{build_version_precondition, new_merge_patch_request};
use super::fault::KubernetesRequestError;
use super::lock::FENCE;
use super::server::{KubernetesReply, KubernetesRequest, WriteRequestOutcome};
use super::write::{OF_NOTHING, new_apply_request};
use super::{KubernetesLink, NAMESPACE, NOT_KEPT, performed_from_exit};
use crate::target_lock::{RECORD_MOVED, parse_fencing_token};
use crate::{ExecutionOutcome, Fence, NO_RECORD, TransportError};
use flate2::Compression;
use flate2::read::{GzDecoder, GzEncoder};
use railwright_base::{Digest, Reason, bounded_json};
use railwright_resource::ReadResult;
use railwright_resource::file::base64;
use railwright_resource::file::found::answer_of_private;
use railwright_resource::kubernetes_object::applyset::ApplySetMembers;
use railwright_resource::kubernetes_object::request::ObjectName;
use railwright_system::clock;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::io::Read as _;
use std::time::Duration;

const KEY: &str = "record.json";
const TYPE: &str = "railwright.io/record";
/// A Secret holds 1 MiB with everything in it.
const RECORD_LIMIT_BYTES: usize = 900 << 10;
/// Of the Secret as JSON.
const ANSWER_LIMIT_BYTES: usize = 3 << 20;
/// What a record may grow to when it is unpacked.
const UNPACKED_LIMIT_BYTES: u64 = 32 << 20;
/// As often a write that met another one is begun again.
const TRIES: u32 = 8;
const PAUSE: Duration = Duration::from_millis(30);

enum ClusterRecordLookup {
    Nothing,
    Kept(KeptRecord),
    Refused(KubernetesReply),
}

/// The Secret that is there.
struct KeptRecord {
    secret: Value,
    /// Its record, where it holds one.
    json: Option<String>,
}

/// What is to be written.
pub(super) struct NewRecord<'a> {
    pub json: &'a str,
    /// Objects that are ours or are about to be, whose kinds and places stand beside it.
    pub members: &'a [String],
    /// The digests of which one has to be that of the record which is replaced; any where there are
    /// none.
    pub replaces: &'a BTreeSet<String>,
}

impl ClusterRecordLookup {
    /// The digest of the record, as a host tells it of the file that it keeps.
    fn digest(&self) -> String {
        match self {
            ClusterRecordLookup::Kept(kept) => {
                let text = kept.json.as_ref().map_or_else(
                    || kept.secret["data"].to_string(),
                    |json| format!("{json}\n"),
                );
                Digest::of_bytes(text.as_bytes()).as_str().to_owned()
            }
            ClusterRecordLookup::Nothing | ClusterRecordLookup::Refused(_) => NO_RECORD.to_owned(),
        }
    }

    /// The fencing token that it bears.
    fn fence(&self) -> u64 {
        let ClusterRecordLookup::Kept(kept) = self else {
            return 0;
        };
        let token = kept
            .secret
            .pointer("/metadata/annotations")
            .and_then(|all| all.get(FENCE)?.as_str());
        token.map_or(0, parse_fencing_token)
    }

    /// What a write names so that it is refused where another one came in between.
    fn precondition(&self) -> Value {
        match self {
            ClusterRecordLookup::Kept(kept) => build_version_precondition(&kept.secret),
            ClusterRecordLookup::Nothing | ClusterRecordLookup::Refused(_) => {
                json!({ "resourceVersion": OF_NOTHING })
            }
        }
    }
}

impl KubernetesLink {
    async fn record(&self) -> Result<ClusterRecordLookup, KubernetesRequestError> {
        let call = KubernetesRequest {
            limit: ANSWER_LIMIT_BYTES,
            ..KubernetesRequest::get(build_secret_path(&self.keeps))
        };
        let reply = self.server.ask(&call).await?;
        Ok(match reply.status {
            200 => match reply
                .json()
                .filter(|found| answer::is_of(&build_secret_name(&self.keeps), found))
            {
                Some(secret) => ClusterRecordLookup::Kept(KeptRecord {
                    json: decompress_record(&secret),
                    secret,
                }),
                None => ClusterRecordLookup::Refused(reply),
            },
            _ if reply.is_not_found() => ClusterRecordLookup::Nothing,
            _ => ClusterRecordLookup::Refused(reply),
        })
    }

    pub(super) async fn record_now(&self) -> Result<ExecutionOutcome, TransportError> {
        Ok(
            match self
                .record()
                .await
                .map_err(|trouble| trouble.error(&self.server))?
            {
                ClusterRecordLookup::Nothing => performed_from_exit(1, "", ""),
                ClusterRecordLookup::Kept(KeptRecord {
                    json: Some(json), ..
                }) => performed_from_exit(0, &json, ""),
                ClusterRecordLookup::Kept(_) => performed_from_exit(
                    NOT_KEPT,
                    "",
                    &format!("the Secret {NAMESPACE}/{} holds no record", self.keeps),
                ),
                ClusterRecordLookup::Refused(reply) => {
                    performed_from_exit(NOT_KEPT, "", &describe_record_refusal(&self.keeps, &reply))
                }
            },
        )
    }

    /// As the read of the file that a host keeps it in.
    pub(super) async fn record_as_file(&self) -> Result<ReadResult, KubernetesRequestError> {
        Ok(match self.record().await? {
            ClusterRecordLookup::Nothing => new_exit_answer(1, ""),
            ClusterRecordLookup::Kept(KeptRecord {
                json: Some(json), ..
            }) => new_exit_answer(0, answer_of_private(&json)),
            ClusterRecordLookup::Kept(_) => {
                return Err(self.record_unread("the Secret holds none".into()));
            }
            ClusterRecordLookup::Refused(reply) => match answer::find_denied_verb(&reply) {
                Some(verb) => {
                    answer::new_denied_answer(&build_secret_name(&self.keeps), &verb, "secrets")
                }
                None => {
                    return Err(self.record_unread(
                        format!(
                            "the API server answers {}: {}",
                            reply.status,
                            reply.message()
                        )
                        .into(),
                    ));
                }
            },
        })
    }

    /// Whoever took it for absent would forget what is to be rolled back, and write that down.
    fn record_unread(&self, reason: Reason) -> KubernetesRequestError {
        let (cluster, secret) = (self.server.cluster.clone(), self.keeps.clone());
        KubernetesRequestError::NotSent(TransportError::RecordUnread {
            cluster,
            secret,
            reason,
        })
    }

    /// Puts the fencing token of whoever has just taken the lock on the record: stdout the digest
    /// of the record that stands there from then on. 76 where it bears a higher one, stdout that
    /// one: the Lease of its writer was removed.
    pub(super) async fn fence_record(
        &self,
        token: u64,
    ) -> Result<ExecutionOutcome, TransportError> {
        let mut last = None;
        for n in 0..TRIES {
            let found = match self.record_after(last.as_ref()).await? {
                Ok(found) => found,
                Err(over) => return Ok(over),
            };
            if found.fence() > token {
                return Ok(performed_from_exit(76, &found.fence().to_string(), ""));
            }
            if matches!(found, ClusterRecordLookup::Nothing) || found.fence() == token {
                return Ok(performed_from_exit(0, &found.digest(), ""));
            }
            let mut patch = json!({ "metadata": found.precondition() });
            patch["metadata"]["annotations"] = json!({ FENCE: token.to_string() });
            match self
                .sent(
                    &new_merge_patch_request(&build_secret_path(&self.keeps), &patch),
                    n,
                    &mut last,
                )
                .await?
            {
                Some(reply) if reply.status != 200 => {
                    return Ok(performed_from_exit(
                        NOT_KEPT,
                        "",
                        &describe_record_refusal(&self.keeps, &reply),
                    ));
                }
                // What stands there is looked at once more.
                _ => (),
            }
        }
        Ok(given_up(last))
    }

    /// Writes it while the lock is this writer's, in the place of one that it may replace.
    pub(super) async fn write_record(
        &self,
        fence: &Fence,
        record: &NewRecord<'_>,
    ) -> Result<ExecutionOutcome, TransportError> {
        let manifest = match self.manifest(fence, record) {
            Ok(manifest) => manifest,
            Err(why) => return Ok(performed_from_exit(NOT_KEPT, "", why.as_words())),
        };
        let own = Digest::of_bytes(format!("{}\n", record.json).as_bytes());
        let mut last = None;
        for n in 0..TRIES {
            let found = match self.record_after(last.as_ref()).await? {
                Ok(found) => found,
                Err(over) => return Ok(over),
            };
            // After the look: whoever took the lock before it has put another token on what was
            // looked at.
            if let Some(refused) = self.while_locked(fence).await? {
                return Ok(refused);
            }
            if last.is_some() && found.digest() == own.as_str() && found.fence() == fence.number {
                return Ok(performed_from_exit(0, "", ""));
            }
            let may_be_replaced =
                record.replaces.is_empty() || record.replaces.contains(&found.digest());
            if !may_be_replaced || found.fence() > fence.number {
                return Ok(performed_from_exit(RECORD_MOVED, "", ""));
            }
            let call = new_apply_request(
                &build_secret_path(&self.keeps),
                &manifest,
                &found.precondition(),
            );
            match self.sent(&call, n, &mut last).await? {
                Some(reply) if matches!(reply.status, 200 | 201) => {
                    return Ok(performed_from_exit(0, "", ""));
                }
                Some(reply) => {
                    return Ok(performed_from_exit(
                        NOT_KEPT,
                        "",
                        &describe_record_refusal(&self.keeps, &reply),
                    ));
                }
                None => (),
            }
        }
        Ok(given_up(last))
    }

    /// The record that a write goes by; how the write is over where that cannot be known. After one
    /// whose answer got lost, nobody knows.
    async fn record_after(
        &self,
        last: Option<&Reason>,
    ) -> Result<Result<ClusterRecordLookup, ExecutionOutcome>, TransportError> {
        match (self.record().await, last) {
            (Ok(ClusterRecordLookup::Refused(_)) | Err(_), Some(reason)) => {
                let reason = reason.clone();
                Ok(Err(ExecutionOutcome::Unknown { reason }))
            }
            (Ok(ClusterRecordLookup::Refused(reply)), None) => Ok(Err(performed_from_exit(
                NOT_KEPT,
                "",
                &describe_record_refusal(&self.keeps, &reply),
            ))),
            (Ok(found), _) => Ok(Ok(found)),
            (Err(trouble), None) => Err(trouble.error(&self.server)),
        }
    }

    /// Sends a write; none where it met another one, or its answer got lost, and a look has to
    /// tell.
    async fn sent(
        &self,
        call: &KubernetesRequest,
        n: u32,
        last: &mut Option<Reason>,
    ) -> Result<Option<KubernetesReply>, TransportError> {
        match self.server.send(call).await {
            Ok(WriteRequestOutcome::Answered(reply))
                if reply.status != 409 && (last.is_none() || reply.settles()) =>
            {
                Ok(Some(reply))
            }
            Err(trouble) if last.is_none() => Err(trouble.error(&self.server)),
            // Once an answer got lost, no later error says that it was not done.
            Ok(WriteRequestOutcome::Answered(_)) | Err(_) => {
                clock::sleep_for(PAUSE * (n + 1)).await;
                Ok(None)
            }
            Ok(WriteRequestOutcome::Unsure(unsure)) => {
                *last = Some(unsure.reason);
                clock::sleep_for(unsure.again_after).await;
                Ok(None)
            }
        }
    }

    fn manifest(&self, fence: &Fence, record: &NewRecord<'_>) -> Result<Value, Reason> {
        if record.json.len() as u64 > UNPACKED_LIMIT_BYTES
            || !bounded_json::is_of_record(record.json)
        {
            return Err(format!(
                "the record holds more than {} values, {} levels or {} MiB",
                bounded_json::RECORD_VALUES,
                bounded_json::RECORD_LEVELS,
                UNPACKED_LIMIT_BYTES >> 20
            )
            .into());
        }
        let packed = compress_record(record.json)
            .map_err(|error| format!("the record cannot be packed: {error}"))?;
        if packed.len() > RECORD_LIMIT_BYTES {
            let size = packed.len() >> 10;
            return Err(format!(
                "the record has {size} KiB in gzip, and a Secret takes {} KiB",
                RECORD_LIMIT_BYTES >> 10
            )
            .into());
        }
        let (labels, mut annotations) = ApplySetMembers::of(record.members).of_parent(&self.keeps);
        annotations[FENCE] = fence.number.to_string().into();
        let metadata = json!({ "name": self.keeps, "namespace": NAMESPACE, "labels": labels, "annotations": annotations });
        Ok(
            json!({ "apiVersion": "v1", "kind": "Secret", "type": TYPE, "metadata": metadata, "data": { KEY: base64::encode_base64_text(&packed) } }),
        )
    }
}

fn given_up(last: Option<Reason>) -> ExecutionOutcome {
    match last {
        Some(reason) => ExecutionOutcome::Unknown { reason },
        None => performed_from_exit(
            NOT_KEPT,
            "",
            "the cluster's record is written by others all the time",
        ),
    }
}

fn build_secret_path(keeps: &str) -> String {
    format!("/api/v1/namespaces/{NAMESPACE}/secrets/{keeps}")
}

fn build_secret_name(keeps: &str) -> ObjectName {
    ObjectName {
        api_version: "v1".to_owned(),
        kind: "Secret".to_owned(),
        namespace: Some(NAMESPACE.to_owned()),
        name: keeps.to_owned(),
    }
}

fn describe_record_refusal(keeps: &str, reply: &KubernetesReply) -> String {
    answer::describe_failed_request(
        "the cluster's record",
        &build_secret_name(keeps),
        "secrets",
        reply,
    )
}

fn compress_record(json: &str) -> std::io::Result<Vec<u8>> {
    let mut out = Vec::new();
    GzEncoder::new(json.as_bytes(), Compression::default()).read_to_end(&mut out)?;
    Ok(out)
}

fn decompress_record(secret: &Value) -> Option<String> {
    let bytes = base64::decode_base64_text(secret.get("data")?.get(KEY)?.as_str()?)?;
    let mut out = String::new();
    let read = GzDecoder::new(bytes.as_slice())
        .take(UNPACKED_LIMIT_BYTES + 1)
        .read_to_string(&mut out)
        .ok()?;
    (read as u64 <= UNPACKED_LIMIT_BYTES && bounded_json::is_of_record(&out)).then_some(out)
}
