//! The cluster's lock: a Lease, written back only where its resource version is the one that was
//! read, so that of two at once one has it. What `Upkeep` promises of a host's lock holds here by
//! the letter; signs of life are dated by the server's clock.
//!
//! The Lease stays when the lock is let go, without a holder: the highest fencing number must
//! outlive it.

use super::answer;
use super::read::{APPLY, apply_path};
use super::server::{KubernetesReply, KubernetesRequest, WriteRequestOutcome};
use super::write::OF_NOTHING;
use super::{KubernetesLink, NAMESPACE, NOT_KEPT, performed_from_exit};
use crate::target_lock::{lock_lost, parse_fencing_token};
use crate::{ExecutionOutcome, Fence, Grounds, TransportError};
use http::Method;
use jiff::Timestamp;
use railwright_base::Reason;
use railwright_base::text::one_line;
use railwright_resource::kubernetes_object::request::ObjectName;
use railwright_system::clock::{self, Deadline};
use serde_json::{Map, Value, json};
use std::time::Duration;

const HOLDER: &str = "railwright.io/holder";
/// The highest fencing token that was seen, on the Lease and on the record.
pub(super) const FENCE: &str = "railwright.io/fence";
const NOTE: &str = "railwright.io/note";
/// As often a write that met another one is begun again.
const TRIES: u32 = 16;
const PAUSE: Duration = Duration::from_millis(30);
/// Clocks of the API servers of one cluster differ by less, in seconds.
const CLOCKS_DIFFER_S: i64 = 5;
/// How long a lock is looked at whose date says nothing, and how often any is: a holder that is
/// alive writes three times in that time.
const OBSERVED_FOR: Duration = Duration::from_secs(200);
const OBSERVED_EVERY: Duration = Duration::from_secs(5);

/// The lock as it was read.
struct Lease {
    /// The whole object, to be written back with what others keep in it; nothing when it is not
    /// there yet.
    object: Option<Value>,
    /// The server's clock.
    now: Timestamp,
}

/// What is to be in it.
#[derive(Default)]
struct DesiredLease {
    holder: Option<String>,
    note: Option<String>,
    fence: Option<u64>,
}

/// A write whose answer got lost.
struct Unsure {
    reason: Reason,
    /// It took the holder out.
    let_go: bool,
}

impl Unsure {
    fn performed(&self) -> ExecutionOutcome {
        ExecutionOutcome::Unknown {
            reason: self.reason.clone(),
        }
    }
}

/// What one write of the lock came to.
enum LeaseWriteOutcome {
    Ended(ExecutionOutcome),
    /// Somebody else wrote in between.
    Conflict,
    /// The answer got lost; the lock is read again after this time.
    Unsure(Unsure, Duration),
}

/// What a look at the lock leads to.
enum LeaseStep {
    Ended { code: i32, stdout: String },
    Write(DesiredLease),
}

impl KubernetesLink {
    /// Takes the lock, and tells which record stands there from then on: none that an earlier
    /// holder writes comes after it.
    pub(super) async fn lock(&self, fence: &Fence) -> Result<ExecutionOutcome, TransportError> {
        let taken = self.take(fence).await?;
        if !matches!(taken, ExecutionOutcome::Ended { code: 0, .. }) {
            return Ok(taken);
        }
        let fenced = self.fence_record(fence.number).await;
        if !matches!(fenced, Ok(ExecutionOutcome::Ended { code: 0, .. })) {
            let _ = self.unlock(fence).await;
        }
        fenced
    }

    async fn take(&self, fence: &Fence) -> Result<ExecutionOutcome, TransportError> {
        self.decided(|lease| match (lease.holder(), lease.fence()) {
            (Some(other), _) if other != fence.holder => end_with_holder(&other),
            (_, Some(high)) if fence.number < high => LeaseStep::Ended {
                code: 76,
                stdout: high.to_string(),
            },
            (Some(_), Some(high)) if fence.number == high => end_with_code(0),
            (own, _) => {
                let note = own.and_then(|_| lease.note());
                LeaseStep::Write(DesiredLease {
                    note,
                    holder: Some(fence.holder.clone()),
                    fence: Some(fence.number),
                })
            }
        })
        .await
    }

    pub(super) async fn unlock(&self, fence: &Fence) -> Result<ExecutionOutcome, TransportError> {
        self.decided(|lease| match lease.holder() {
            None => end_with_code(0),
            Some(other) if !lease.is_of(fence) => end_with_holder(&other),
            Some(_) => LeaseStep::Write(DesiredLease {
                fence: lease.fence(),
                ..DesiredLease::default()
            }),
        })
        .await
    }

    pub(super) async fn beat(
        &self,
        fence: &Fence,
        note: &str,
    ) -> Result<ExecutionOutcome, TransportError> {
        let note = replace_control_characters(note);
        self.decided(|lease| match lease.holder() {
            None => end_with_code(1),
            Some(other) if !lease.is_of(fence) => end_with_holder(&other),
            Some(_) => LeaseStep::Write(DesiredLease {
                holder: Some(fence.holder.clone()),
                note: Some(note.clone()),
                fence: lease.fence(),
            }),
        })
        .await
    }

    /// Goes on only while the lock is this writer's; what the server said instead where it did not
    /// say.
    pub(super) async fn while_locked(
        &self,
        fence: &Fence,
    ) -> Result<Option<ExecutionOutcome>, TransportError> {
        match self.lease().await? {
            Ok(lease) if lease.is_of(fence) => Ok(None),
            Ok(lease) => Err(lock_lost(&self.server.cluster, lease.holder().as_deref())),
            Err(refused) => Ok(Some(refused)),
        }
    }

    /// Takes it away from this holder. That one gave no heartbeat for a while is seen by our own
    /// clock: the dates of the Lease and of the server's answers are whatever wrote them or stands
    /// between.
    pub(super) async fn steal(
        &self,
        holder: &str,
        fence: u64,
        grounds: Grounds,
    ) -> Result<ExecutionOutcome, TransportError> {
        let Grounds::Silent(seconds) = grounds else {
            return self
                .decided(|lease| decide_lock_takeover(lease, holder, fence))
                .await;
        };
        let first = match self.lease().await? {
            Ok(lease) => lease,
            Err(refused) => return Ok(refused),
        };
        let is_silent = self.is_silent(&first, Duration::from_secs(seconds)).await;
        self.decided(|lease| match decide_lock_takeover(lease, holder, fence) {
            LeaseStep::Write(_) if !is_silent || lease.version() != first.version() => {
                LeaseStep::Ended {
                    code: 77,
                    stdout: "0".to_owned(),
                }
            }
            step => step,
        })
        .await
    }

    pub(super) async fn lock_now(&self) -> Result<ExecutionOutcome, TransportError> {
        let lease = match self.lease().await? {
            Ok(lease) => lease,
            Err(refused) => return Ok(refused),
        };
        let Some(holder) = lease.holder() else {
            return Ok(performed_from_exit(1, "", ""));
        };
        let fence = lease
            .fence()
            .map(|fence| fence.to_string())
            .unwrap_or_default();
        let text = format!(
            "{holder}\n{}\n{}\n{fence}\n",
            lease.note().unwrap_or_default(),
            self.age_s(&lease).await
        );
        Ok(performed_from_exit(0, &text, ""))
    }

    /// Reads, decides and writes back, and again where somebody else wrote in between, or where an
    /// answer got lost.
    async fn decided(
        &self,
        decide: impl Fn(&Lease) -> LeaseStep + Send,
    ) -> Result<ExecutionOutcome, TransportError> {
        let mut last: Option<Unsure> = None;
        for n in 0..TRIES {
            let lease = match self.read_lease_again(last.as_ref()).await? {
                Ok(lease) => lease,
                Err(ended) => return Ok(ended),
            };
            let desired = match decide(&lease) {
                LeaseStep::Ended { code, stdout } => {
                    return Ok(performed_from_exit(code, &stdout, ""));
                }
                LeaseStep::Write(desired) => desired,
            };
            match self.write_lease(&lease, &desired, last.as_ref()).await? {
                LeaseWriteOutcome::Ended(ended) => return Ok(ended),
                LeaseWriteOutcome::Conflict => clock::sleep_for(PAUSE * (n + 1)).await,
                LeaseWriteOutcome::Unsure(unsure, again_after) => {
                    last = Some(unsure);
                    clock::sleep_for(again_after).await;
                }
            }
        }
        Ok(match last {
            Some(unsure) => unsure.performed(),
            None => performed_from_exit(
                NOT_KEPT,
                "",
                "the cluster's lock is written by others all the time",
            ),
        })
    }

    /// Reads the lock, or tells how it ended: the server refuses, or a write whose answer got lost
    /// has let it go, or is not cleared up by this read either.
    async fn read_lease_again(
        &self,
        last: Option<&Unsure>,
    ) -> Result<Result<Lease, ExecutionOutcome>, TransportError> {
        let answer = self.lease().await;
        let Some(unsure) = last else {
            return answer;
        };
        let Ok(Ok(lease)) = answer else {
            return Ok(Err(unsure.performed()));
        };
        if unsure.let_go && lease.holder().is_none() {
            return Ok(Err(performed_from_exit(0, "", "")));
        }
        Ok(Ok(lease))
    }

    /// Writes this into the lock, only where it is as it was read. After a write whose answer got
    /// lost, a refusal says nothing of that one.
    async fn write_lease(
        &self,
        lease: &Lease,
        desired: &DesiredLease,
        last: Option<&Unsure>,
    ) -> Result<LeaseWriteOutcome, TransportError> {
        let sent = self.server.send(&lease.write(desired, &self.keeps)).await;
        let ended = match (sent, last) {
            (Ok(WriteRequestOutcome::Answered(reply)), _) if matches!(reply.status, 200 | 201) => {
                performed_from_exit(0, "", "")
            }
            (Ok(WriteRequestOutcome::Answered(reply)), _) if reply.status == 409 => {
                return Ok(LeaseWriteOutcome::Conflict);
            }
            (Ok(WriteRequestOutcome::Answered(_)) | Err(_), Some(unsure)) => unsure.performed(),
            (Ok(WriteRequestOutcome::Answered(reply)), None) => {
                performed_from_refusal(&self.keeps, &reply)
            }
            (Err(trouble), None) => trouble.performed()?,
            (Ok(WriteRequestOutcome::Unsure(sent)), _) => {
                let let_go = desired.holder.is_none();
                let reason = sent.reason;
                let unsure = Unsure { reason, let_go };
                return Ok(LeaseWriteOutcome::Unsure(unsure, sent.again_after));
            }
        };
        Ok(LeaseWriteOutcome::Ended(ended))
    }

    async fn lease(&self) -> Result<Result<Lease, ExecutionOutcome>, TransportError> {
        let reply = self
            .server
            .ask(&KubernetesRequest::get(build_lease_path(&self.keeps)))
            .await
            .map_err(|trouble| trouble.error(&self.server))?;
        Ok(match (reply.status, reply.json()) {
            (404, _) if reply.is_not_found() => Ok(Lease {
                object: None,
                now: reply.now,
            }),
            (200, Some(object)) if answer::is_of(&build_lease_name(&self.keeps), &object) => {
                Ok(Lease {
                    object: Some(object),
                    now: reply.now,
                })
            }
            _ => Err(performed_from_refusal(&self.keeps, &reply)),
        })
    }

    /// Seconds since the latest heartbeat. Where that is dated ahead of the server's clock, which
    /// was set back or is another one's, a holder that is alive gives another one while it is
    /// looked at (as kubernetes/client-go: tools/leaderelection, which goes by changes that it
    /// observes and by no clock of others).
    async fn age_s(&self, lease: &Lease) -> i64 {
        if !lease.is_ahead() {
            return lease.age_s();
        }
        if self.is_silent(lease, OBSERVED_FOR).await {
            i64::from(u32::MAX)
        } else {
            0
        }
    }

    /// Whether nobody writes the lock for so long, by our own monotonic clock.
    async fn is_silent(&self, lease: &Lease, within: Duration) -> bool {
        let deadline = Deadline::after(within);
        while !deadline.left().is_zero() {
            clock::sleep_for(OBSERVED_EVERY).await;
            match self.lease().await {
                Ok(Ok(now)) if now.version() != lease.version() => return false,
                _ => {}
            }
        }
        true
    }
}

impl Lease {
    fn annotation(&self, name: &str) -> Option<&str> {
        self.object
            .as_ref()?
            .get("metadata")?
            .get("annotations")?
            .get(name)?
            .as_str()
    }

    /// As one line, whoever wrote it: as it is told, and as it is named when it is to be taken
    /// away.
    fn holder(&self) -> Option<String> {
        self.annotation(HOLDER)
            .filter(|holder| !holder.is_empty())
            .map(replace_control_characters)
    }

    fn fence(&self) -> Option<u64> {
        self.annotation(FENCE).map(parse_fencing_token)
    }

    /// Whether it is this taking's.
    fn is_of(&self, fence: &Fence) -> bool {
        self.holder().as_ref() == Some(&fence.holder) && self.fence() == Some(fence.number)
    }

    fn note(&self) -> Option<String> {
        self.annotation(NOTE).map(replace_control_characters)
    }

    fn renewed(&self) -> Option<Timestamp> {
        self.object
            .as_ref()?
            .get("spec")?
            .get("renewTime")?
            .as_str()?
            .parse()
            .ok()
    }

    fn version(&self) -> Option<&Value> {
        self.object.as_ref()?.pointer("/metadata/resourceVersion")
    }

    /// Dated later than now by more than the clocks of one cluster's servers differ.
    fn is_ahead(&self) -> bool {
        self.renewed()
            .is_some_and(|at| at.as_second() > self.now.as_second().saturating_add(CLOCKS_DIFFER_S))
    }

    /// Seconds since the latest heartbeat. One without a date is as old as can be.
    fn age_s(&self) -> i64 {
        self.renewed().map_or(i64::from(u32::MAX), |at| {
            self.now.as_second().saturating_sub(at.as_second()).max(0)
        })
    }

    /// The request that writes it back with this in it, only where it is as it was read.
    fn write(&self, desired: &DesiredLease, keeps: &str) -> KubernetesRequest {
        let mut object = self.with(desired, keeps);
        if self.object.is_some() {
            return KubernetesRequest::with(
                Method::PUT,
                build_lease_path(keeps),
                "application/json",
                object.to_string(),
            );
        }
        // An apply, because a POST has no name that a role could be limited to.
        object["metadata"]["resourceVersion"] = OF_NOTHING.into();
        KubernetesRequest::with(
            Method::PATCH,
            apply_path(&build_lease_path(keeps)),
            APPLY,
            object.to_string(),
        )
    }

    /// The Lease with this desired content; all else in it stays.
    fn with(&self, desired: &DesiredLease, keeps: &str) -> Value {
        let mut object = match &self.object {
            Some(object) => object.clone(),
            None => {
                json!({ "apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": { "name": keeps, "namespace": NAMESPACE } })
            }
        };
        let fence = desired.fence.map(|fence| fence.to_string());
        let annotations = map_in(map_in(&mut object, "metadata"), "annotations");
        for (name, value) in [
            (HOLDER, &desired.holder),
            (NOTE, &desired.note),
            (FENCE, &fence),
        ] {
            set_json_key(annotations, name, value.clone());
        }
        let now = self.now.strftime("%Y-%m-%dT%H:%M:%S.000000Z").to_string();
        let spec = map_in(&mut object, "spec");
        set_json_key(
            spec,
            "holderIdentity",
            desired.holder.as_deref().map(shorten_holder),
        );
        set_json_key(spec, "renewTime", desired.holder.as_ref().map(|_| now));
        object
    }
}

/// The mapping under this key; made where there is none.
fn map_in<'v>(value: &'v mut Value, key: &str) -> &'v mut Value {
    if !value.get(key).is_some_and(Value::is_object) {
        value[key] = Value::Object(Map::new());
    }
    &mut value[key]
}

fn set_json_key(map: &mut Value, key: &str, value: Option<String>) {
    match (map.as_object_mut(), value) {
        (Some(map), Some(value)) => drop(map.insert(key.to_owned(), value.into())),
        (Some(map), None) => drop(map.remove(key)),
        (None, _) => (),
    }
}

/// What becomes of a lock that is to be taken away from this holder.
fn decide_lock_takeover(lease: &Lease, holder: &str, fence: u64) -> LeaseStep {
    match lease.holder() {
        None => end_with_code(1),
        Some(other) if other != replace_control_characters(holder) => end_with_holder(&other),
        Some(_) => LeaseStep::Write(DesiredLease {
            fence: lease.fence().max(Some(fence)),
            ..DesiredLease::default()
        }),
    }
}

fn end_with_code(code: i32) -> LeaseStep {
    LeaseStep::Ended {
        code,
        stdout: String::new(),
    }
}

fn end_with_holder(other: &str) -> LeaseStep {
    LeaseStep::Ended {
        code: 75,
        stdout: other.to_owned(),
    }
}

/// A holder is one line; what is not, is made one.
fn replace_control_characters(text: &str) -> String {
    text.chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect()
}

/// What other tools show of a holder.
fn shorten_holder(holder: &str) -> String {
    let words = name_holder(holder).unwrap_or_else(|| holder.to_owned());
    one_line(&words, 120)
}

/// `WHO@MACHINE`, where the line of the holder is ours.
fn name_holder(holder: &str) -> Option<String> {
    let holder: Value = serde_json::from_str(holder).ok()?;
    let (who, machine) = (holder.get("who")?, holder.get("machine")?);
    Some(format!("{}@{}", who.as_str()?, machine.as_str()?))
}

fn build_leases_path() -> String {
    format!("/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases")
}

fn build_lease_path(keeps: &str) -> String {
    format!("{}/{keeps}", build_leases_path())
}

fn build_lease_name(keeps: &str) -> ObjectName {
    ObjectName {
        api_version: "coordination.k8s.io/v1".to_owned(),
        kind: "Lease".to_owned(),
        namespace: Some(NAMESPACE.to_owned()),
        name: keeps.to_owned(),
    }
}

fn performed_from_refusal(keeps: &str, reply: &KubernetesReply) -> ExecutionOutcome {
    performed_from_exit(
        NOT_KEPT,
        "",
        &answer::describe_failed_request(
            "the cluster's lock",
            &build_lease_name(keeps),
            "leases",
            reply,
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_is_taken_away_from_the_holder_that_was_told_whatever_stands_there() {
        let annotations = json!({ HOLDER: "ann\u{7}\nat\tops1", FENCE: "3" });
        let lease = Lease {
            object: Some(json!({ "metadata": { "annotations": annotations } })),
            now: Timestamp::UNIX_EPOCH,
        };
        let told = lease.holder().unwrap();
        assert_eq!(told, "ann  at ops1");
        assert!(matches!(
            decide_lock_takeover(&lease, &told, 5),
            LeaseStep::Write(DesiredLease {
                holder: None,
                fence: Some(5),
                ..
            })
        ));
        assert!(
            matches!(decide_lock_takeover(&lease, "ben", 5), LeaseStep::Ended { code: 75, stdout } if stdout == told)
        );
    }
}
