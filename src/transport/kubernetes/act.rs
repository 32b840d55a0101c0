//! The actions for an API server: apply a whole object, delete an object (`write`), make one
//! (`create`), edit what others own (`edit`). Exit 0 is necessary, never sufficient: the object is
//! read again.

use super::answer;
use super::fault::KubernetesRequestError;
use super::kinds::{ApiResource, NotKnown};
use super::server::{KubernetesReply, KubernetesRequest, UnsureWrite, WriteRequestOutcome};
use super::{KubernetesLink, NOT_HERE, performed_from_exit};
use crate::{ExecutionOutcome, TransportError};
use railwright_base::Reason;
use railwright_base::text::one_line;
use railwright_resource::kubernetes_object::request::{MOVED, ObjectName};
use railwright_resource::{Action, AnswerStatus};
use railwright_system::clock;
use std::time::Duration;

/// How often a write that met another one is tried, all in all.
pub(super) const TRIES: u32 = 5;
/// Between two looks.
pub(super) const LOOK: Duration = Duration::from_millis(500);

/// Ended before the object was asked about, or on the way.
pub(super) enum KubernetesActionStop {
    Ended(ExecutionOutcome),
    Failed(TransportError),
}

impl From<KubernetesRequestError> for KubernetesActionStop {
    fn from(trouble: KubernetesRequestError) -> Self {
        trouble
            .performed()
            .map_or_else(KubernetesActionStop::Failed, KubernetesActionStop::Ended)
    }
}

/// What is not known of one write, over all its tries: one whose outcome is not known leaves every
/// later error so.
#[derive(Default)]
pub(super) struct Doubt {
    /// Why, of the last such try.
    reason: Option<Reason>,
    /// Some try may still be done.
    may_come: bool,
}

impl Doubt {
    /// Of a try whose outcome is not known: when to look again.
    pub fn add(&mut self, unsure: UnsureWrite) -> Duration {
        self.reason = Some(unsure.reason);
        self.may_come |= unsure.may_come;
        unsure.again_after
    }

    /// True once the outcome of a try was not known.
    pub fn is_there(&self) -> bool {
        self.reason.is_some()
    }

    /// What an error comes to after these tries. Of a lock that was lost nothing is said of the
    /// write.
    pub fn over(&self, stop: KubernetesActionStop) -> KubernetesActionStop {
        match (&self.reason, stop) {
            (_, lost @ KubernetesActionStop::Failed(TransportError::LockLost { .. })) => lost,
            (Some(reason), _) => stop_with_unknown_outcome(reason.as_words()),
            (None, stop) => stop,
        }
    }

    /// What tries that came to nothing are told as, where a look has found nothing of them.
    pub fn given_up(&self, otherwise: KubernetesActionStop) -> KubernetesActionStop {
        match &self.reason {
            Some(reason) if !self.may_come => stop_with_failure(reason.as_words()),
            _ => self.over(otherwise),
        }
    }
}

impl KubernetesLink {
    pub(super) async fn act(
        &self,
        action: &Action,
        token: &str,
    ) -> Result<ExecutionOutcome, TransportError> {
        let limit = Duration::from_secs(action.limit_s().into());
        let done = match action {
            Action::ApplyObject {
                object,
                manifest,
                precondition,
            } => self.apply(object, manifest, precondition, token).await,
            Action::CreateObject { object, manifest } => self.create(object, manifest).await,
            Action::DeleteObject {
                object,
                precondition,
                anew,
            } => {
                self.delete(object, precondition, anew.then_some(limit))
                    .await
            }
            Action::UnmarkObject {
                object,
                precondition,
            } => self.unmark(object, precondition).await,
            Action::EditConfigMap {
                object,
                precondition,
                key,
                edits,
                mark,
            } => {
                self.edit(object, precondition, key, edits, mark.as_ref())
                    .await
            }
            Action::MarkPodTemplate {
                object,
                precondition,
                mark,
            } => self.mark(object, precondition, mark).await,
            other => self.act_on_nodes_and_releases(other).await,
        };
        match done {
            Ok(performed) | Err(KubernetesActionStop::Ended(performed)) => Ok(performed),
            Err(KubernetesActionStop::Failed(error)) => Err(error),
        }
    }

    /// Actions on nodes, their pods and releases of Helm; all others are not for an API server.
    async fn act_on_nodes_and_releases(
        &self,
        action: &Action,
    ) -> Result<ExecutionOutcome, KubernetesActionStop> {
        match action {
            Action::EditNodes { field, edits } => self.edit_nodes(field, edits).await,
            Action::CordonNode { node, mark } => self.cordon(node, mark).await,
            Action::UncordonNode { node } => self.uncordon(node).await,
            Action::EvictPod {
                namespace,
                name,
                uid,
            } => self.evict(namespace, name, uid).await,
            Action::UpgradeRelease {
                release,
                looked_at,
                content,
            } => {
                self.upgrade_release(release, looked_at.as_ref(), content)
                    .await
            }
            Action::UninstallRelease {
                name,
                namespace,
                looked_at,
                ..
            } => self.uninstall_release(name, namespace, looked_at).await,
            _ => Ok(performed_from_exit(
                NOT_HERE,
                "",
                &format_error_line("this is for a host, not for an API server"),
            )),
        }
    }

    pub(super) async fn resource(
        &self,
        object: &ObjectName,
    ) -> Result<Option<ApiResource>, KubernetesActionStop> {
        let mut groups = self
            .server
            .kinds
            .of(&self.server, std::iter::once(object))
            .await;
        match groups.remove(&object.api_version) {
            Some(Ok(group)) => Ok(group.get(&object.kind).cloned()),
            Some(Err(NotKnown::Trouble(trouble))) => {
                Err(KubernetesActionStop::Failed(trouble.error(&self.server)))
            }
            Some(Err(NotKnown::Said(answer))) if answer.status == AnswerStatus::Denied => {
                Err(stop_with_failure(&format!(
                    "nothing was changed; a rule is missing: {}",
                    answer.out.trim()
                )))
            }
            Some(Err(NotKnown::Said(answer))) => Err(stop_with_failure(&answer.out)),
            None => Ok(None),
        }
    }

    /// A request that changes something and is sent once, while the lock is its writer's.
    pub(super) async fn send(
        &self,
        call: &KubernetesRequest,
    ) -> Result<WriteRequestOutcome, KubernetesActionStop> {
        self.server.send_while(call, || self.confirm_lock()).await
    }

    /// Goes on only while the lock is this writer's. Between this and what is written after it
    /// nothing holds but the write's own precondition.
    pub(super) async fn confirm_lock(&self) -> Result<(), KubernetesActionStop> {
        let Some(fence) = &self.fence else {
            return Ok(());
        };
        match self.while_locked(fence).await {
            Ok(None) => Ok(()),
            Ok(Some(refused)) => Err(KubernetesActionStop::Ended(refused)),
            Err(error) => Err(KubernetesActionStop::Failed(error)),
        }
    }

    /// A request that changes something and may be repeated, whatever became of it.
    pub(super) async fn change(
        &self,
        call: &KubernetesRequest,
    ) -> Result<KubernetesReply, KubernetesActionStop> {
        let mut doubt = Doubt::default();
        for _ in 1..TRIES {
            match self.send(call).await.map_err(|stop| doubt.over(stop))? {
                WriteRequestOutcome::Answered(reply) if !doubt.is_there() || reply.settles() => {
                    return Ok(reply);
                }
                WriteRequestOutcome::Answered(reply) => {
                    return Err(doubt.over(stop_with_failure(&reply.message())));
                }
                WriteRequestOutcome::Unsure(unsure) => {
                    clock::sleep_for(doubt.add(unsure)).await;
                }
            }
        }
        Err(doubt.given_up(stop_with_failure("the server is too busy")))
    }
}

/// The last line of stderr, behind the mark by which it is found.
pub(super) fn format_error_line(sentence: &str) -> String {
    format!("railwright: {}", one_line(sentence, 2000))
}

/// Nobody knows whether it was done.
pub(super) fn stop_with_unknown_outcome(reason: &str) -> KubernetesActionStop {
    KubernetesActionStop::Ended(ExecutionOutcome::Unknown {
        reason: one_line(reason, 300).into(),
    })
}

/// What an action goes by is no longer there, and nothing was changed.
pub(super) fn stop_with_stale_precondition(sentence: &str) -> KubernetesActionStop {
    KubernetesActionStop::Ended(performed_from_exit(MOVED, "", &format_error_line(sentence)))
}

pub(super) fn stop_with_failure(sentence: &str) -> KubernetesActionStop {
    KubernetesActionStop::Ended(performed_from_exit(1, "", &format_error_line(sentence)))
}

pub(super) fn stop_with_refusal(
    object: &ObjectName,
    resource: &ApiResource,
    reply: &KubernetesReply,
) -> KubernetesActionStop {
    match answer::find_denied_verb(reply) {
        Some(verb) => stop_with_failure(&format!(
            "a rule is missing in the roles of this identity: {}",
            answer::describe_missing_rule(object, &verb, &resource.plural)
        )),
        None => stop_with_failure(&reply.message()),
    }
}
