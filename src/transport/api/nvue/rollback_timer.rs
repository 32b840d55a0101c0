//! The automatic rollback of a change over the REST API is NVUE's own: a revision that waits to be
//! confirmed, whose message has the token, so that another process finds it again. What NVUE does
//! not roll back by itself, because it applied without waiting or broke down half way, is set again
//! as it was, as long as the process lives that knows it.
//!
//! There is no place on the switch for lock and record: two runs at once are kept apart by the
//! revision that waits, and by the lock of their folder.

use super::change::{APPLIED, NvueChangeStop, STARTUP};
use super::{NvueLink, new_exit_with_output, new_exit_with_reason};
use crate::{ExecutionOutcome, FencedWrite, TransportError, Upkeep};
use railwright_base::mutex::lock_ignoring_poison;
use railwright_resource::complaint::{LOCKED, UNAVAILABLE};
use railwright_resource::switch::cumulus::edit::CumulusEdit;
use railwright_resource::switch::cumulus::revision::{self, NvueRevision, Stage};
use railwright_system::clock::Deadline;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

/// What could not be put back, where it could not.
const CONFIGURATION: &str = "configuration";
/// What somebody has saved since, where what was put back could not be saved.
const SAVED: &str = "saved configuration";

/// Automatic rollbacks that this process has armed, by switch.
#[derive(Debug, Clone, Default)]
pub(in crate::api) struct NvueRollbacks(Arc<Mutex<BTreeMap<String, NvueArmedRollback>>>);

#[derive(Debug, Clone)]
struct NvueArmedRollback {
    token: String,
    until: Deadline,
    /// The revision that it watches; nothing as long as none is applied.
    begun: Option<BegunRevision>,
    /// What puts it back where NVUE does not.
    back: Option<Back>,
}

/// A revision that waits to be confirmed.
#[derive(Debug, Clone)]
pub(super) struct BegunRevision {
    pub id: String,
    /// What of the applied revision is compared, as it was before it.
    pub was: Value,
    /// What of the saved configuration is compared, as it was before it.
    pub saved: Value,
    /// What it is made of.
    pub edits: Vec<CumulusEdit>,
}

/// How what was is told again.
#[derive(Debug, Clone)]
enum Back {
    /// There is nothing that would have to be.
    Nothing,
    /// By this revision.
    Revision(String),
    /// NVUE does not take it.
    Failed,
}

impl NvueRollbacks {
    fn all(&self) -> MutexGuard<'_, BTreeMap<String, NvueArmedRollback>> {
        // Poisoned, another task panicked; what it holds is whole between statements.
        lock_ignoring_poison(&self.0)
    }

    fn arm(&self, switch: &str, token: &str, seconds: u32) {
        let until = Deadline::after(Duration::from_secs(seconds.into()));
        self.all().insert(
            switch.to_owned(),
            NvueArmedRollback {
                token: token.to_owned(),
                until,
                begun: None,
                back: None,
            },
        );
    }

    /// The automatic rollback of a switch, and how long it has left.
    pub fn armed(&self, switch: &str) -> Option<(String, Duration)> {
        self.all()
            .get(switch)
            .map(|armed| (armed.token.clone(), armed.until.left()))
    }

    /// It watches this revision from now on.
    pub(super) fn begins(&self, switch: &str, begun: BegunRevision) {
        if let Some(armed) = self.all().get_mut(switch) {
            armed.begun = Some(begun);
        }
    }

    fn of(&self, switch: &str, token: &str) -> Option<NvueArmedRollback> {
        self.all()
            .get(switch)
            .filter(|armed| armed.token == token)
            .cloned()
    }

    fn goes_back(&self, switch: &str, back: Back) {
        if let Some(armed) = self.all().get_mut(switch) {
            armed.back = Some(back);
        }
    }

    fn over(&self, switch: &str) {
        self.all().remove(switch);
    }
}

impl NvueLink {
    /// Automatic rollbacks, and what a switch over this API has no place for.
    pub(super) async fn keep(&self, upkeep: &Upkeep) -> Result<ExecutionOutcome, TransportError> {
        let kept = match upkeep {
            Upkeep::ReadLock | Upkeep::ReadRecord | Upkeep::Steal { .. } => {
                return Ok(new_exit_with_output(1, ""));
            }
            Upkeep::Lock { .. } => return self.may_change().map(|()| new_exit_with_output(0, "")),
            Upkeep::Idle { .. } => return self.idle().await.or_else(NvueChangeStop::ending),
            Upkeep::RollbackStatus { token } => self.standing(token).await,
            Upkeep::Write { write, .. } => match write {
                FencedWrite::Record { .. } => return Ok(new_exit_with_output(UNAVAILABLE, "")),
                FencedWrite::Unlock | FencedWrite::Beat { .. } | FencedWrite::ServerReads => {
                    return Ok(new_exit_with_output(0, ""));
                }
                FencedWrite::Arm { token, seconds, .. } => {
                    return self
                        .arm(token, *seconds)
                        .await
                        .or_else(NvueChangeStop::ending);
                }
                FencedWrite::Disarm { token } => self.disarm(token).await,
                FencedWrite::Fire { token } => self.fire(token).await,
            },
        };
        // A rollback of which nothing is reported must not count as over.
        kept.or_else(|stop| match stop {
            NvueChangeStop::Said(_, reason) => Ok(ExecutionOutcome::Unknown {
                reason: reason.into(),
            }),
            NvueChangeStop::Error(error) => Err(error),
        })
    }

    /// Whether NVUE has a revision of ours in hand, and which of ours wait to be confirmed.
    async fn idle(&self) -> Result<ExecutionOutcome, NvueChangeStop> {
        let mut ours = self.revisions().await?;
        ours.retain(|revision| revision.token().is_some() || self.is_begun(&revision.id));
        if ours
            .iter()
            .any(|revision| matches!(revision.stage, Stage::Moving | Stage::GoesBack))
        {
            return Ok(new_exit_with_output(77, ""));
        }
        let mut lines = Vec::new();
        for revision in &ours {
            if revision.stage == Stage::Waits
                && let Some(token) = revision.token()
            {
                lines.push(format!("{token} armed 0"));
            }
        }
        Ok(if lines.is_empty() {
            new_exit_with_output(0, "")
        } else {
            new_exit_with_output(78, &lines.join("\n"))
        })
    }

    fn is_begun(&self, id: &str) -> bool {
        self.rollbacks
            .all()
            .get(self.switch())
            .and_then(|armed| armed.begun.as_ref())
            .is_some_and(|begun| begun.id == id)
    }

    async fn arm(&self, token: &str, seconds: u32) -> Result<ExecutionOutcome, NvueChangeStop> {
        self.may_change()?;
        if let Some(other) = self.in_the_way().await? {
            return Ok(match other.token() {
                Some(token) => new_exit_with_output(LOCKED, token),
                None => {
                    let id = &other.id;
                    new_exit_with_reason(
                        1,
                        &format!(
                            "{} is not over: nv config apply {id} --confirm-yes, or --confirm-no, \
                             on the switch",
                            other.described()
                        ),
                    )
                }
            });
        }
        self.rollbacks.arm(self.switch(), token, seconds);
        Ok(new_exit_with_output(0, ""))
    }

    /// What this process knows of an automatic rollback, and its revision.
    async fn watched(
        &self,
        token: &str,
    ) -> Result<(Option<NvueArmedRollback>, Option<NvueRevision>), NvueChangeStop> {
        let armed = self.rollbacks.of(self.switch(), token);
        let revision = match armed.as_ref().and_then(|armed| armed.begun.as_ref()) {
            Some(begun) => {
                let Some(found) = self.look_at(&begun.id).await? else {
                    return Err(NvueChangeStop::Said(
                        1,
                        "NVUE does not tell how it stands with the revision".to_owned(),
                    ));
                };
                Some(found)
            }
            None if armed.is_some() => None,
            None => self
                .revisions()
                .await?
                .into_iter()
                .rev()
                .find(|revision| revision.token() == Some(token)),
        };
        Ok((armed, revision))
    }

    async fn standing(&self, token: &str) -> Result<ExecutionOutcome, NvueChangeStop> {
        let (armed, revision) = self.watched(token).await?;
        let is_ours = armed.is_some();
        let left = armed.as_ref().map(|armed| armed.until.left().as_secs());
        let left = format!("armed {}", left.unwrap_or(0));
        let begun = armed.as_ref().and_then(|armed| armed.begun.as_ref());
        match armed.as_ref().and_then(|armed| armed.back.as_ref()) {
            Some(Back::Nothing) => return self.finish_rollback(begun).await,
            Some(Back::Failed) => return Ok(new_reverted_exit(CONFIGURATION)),
            Some(Back::Revision(id)) => return self.put_back(id, begun).await,
            None => {}
        }
        let Some(revision) = revision else {
            return Ok(if is_ours {
                new_exit_with_output(0, &left)
            } else {
                new_exit_with_output(1, "")
            });
        };
        Ok(match revision.stage {
            Stage::Waits | Stage::Moving => new_exit_with_output(0, &left),
            Stage::Pending if is_ours => new_exit_with_output(0, &left),
            Stage::GoesBack => new_exit_with_output(0, "reverting"),
            Stage::TakenBack => return self.finish_rollback(begun).await,
            Stage::Refused => new_reverted_exit(""),
            // Nothing takes these back but who knows what was before.
            Stage::Applied | Stage::Broken if is_ours => new_exit_with_output(0, &left),
            Stage::Broken => new_reverted_exit(CONFIGURATION),
            Stage::Applied | Stage::Pending => new_exit_with_output(1, ""),
        })
    }

    /// How it stands with what puts everything back.
    async fn put_back(
        &self,
        id: &str,
        begun: Option<&BegunRevision>,
    ) -> Result<ExecutionOutcome, NvueChangeStop> {
        let revision = self.look_at(id).await?;
        match revision.map(|revision| revision.stage) {
            Some(Stage::Applied) if self.in_the_way().await?.is_none() => {
                self.finish_rollback(begun).await
            }
            Some(Stage::Applied | Stage::Moving | Stage::Pending) => {
                Ok(new_exit_with_output(0, "reverting"))
            }
            _ => Ok(new_reverted_exit(CONFIGURATION)),
        }
    }

    /// What runs is as it was before; what is saved may not be.
    async fn finish_rollback(
        &self,
        begun: Option<&BegunRevision>,
    ) -> Result<ExecutionOutcome, NvueChangeStop> {
        let failed = match begun {
            Some(begun) => self.save_again(begun).await?,
            None => "",
        };
        Ok(new_reverted_exit(failed))
    }

    /// Saves what was put back where somebody has saved the change since: a boot would bring it
    /// again. What could not be saved.
    async fn save_again(&self, begun: &BegunRevision) -> Result<&'static str, NvueChangeStop> {
        let saved = self.compared(STARTUP).await?;
        if revision::build_rollback_patches(&begun.edits, &saved, &begun.saved).is_empty() {
            return Ok("");
        }
        match self.save().await {
            Ok(()) => Ok(""),
            Err(NvueChangeStop::Said(..)) => Ok(SAVED),
            Err(error) => Err(error),
        }
    }

    async fn disarm(&self, token: &str) -> Result<ExecutionOutcome, NvueChangeStop> {
        self.may_change()?;
        let (armed, revision) = self.watched(token).await?;
        if armed.as_ref().is_some_and(|armed| armed.back.is_some()) {
            return Ok(new_exit_with_output(LOCKED, ""));
        }
        let Some(revision) = revision else {
            // Nothing was applied under it: it only saved, or had nothing to do.
            self.rollbacks.over(self.switch());
            return Ok(new_exit_with_output(
                if armed.is_some() { 0 } else { 1 },
                "",
            ));
        };
        match revision.stage {
            Stage::Waits => {
                self.tell(&revision.id, &revision::build_confirm_request())
                    .await?;
                // It is asked again until it says so.
                Ok(ExecutionOutcome::Unknown {
                    reason: format!("{} was confirmed a moment ago", revision.described()).into(),
                })
            }
            Stage::Moving => Ok(ExecutionOutcome::Unknown {
                reason: format!("{} is not over", revision.described()).into(),
            }),
            Stage::Applied => {
                self.rollbacks.over(self.switch());
                Ok(new_exit_with_output(0, ""))
            }
            _ => Ok(new_exit_with_output(LOCKED, "")),
        }
    }

    async fn fire(&self, token: &str) -> Result<ExecutionOutcome, NvueChangeStop> {
        self.may_change()?;
        let (armed, revision) = self.watched(token).await?;
        let begun = armed.as_ref().and_then(|armed| armed.begun.as_ref());
        match (revision.as_ref().map(|revision| revision.stage), begun) {
            (Some(Stage::Waits), _) => {
                let id = revision.map(|revision| revision.id).unwrap_or_default();
                self.tell(&id, &revision::take_back()).await?;
            }
            (Some(Stage::Applied | Stage::Broken), Some(begun)) => {
                // What somebody else has in hand comes to its end first; it is asked for again.
                if self.in_the_way().await?.is_some() {
                    return Ok(new_exit_with_output(1, ""));
                }
                let back = match self.told_again(begun).await {
                    Ok(back) => back,
                    Err(NvueChangeStop::Said(..)) => Back::Failed,
                    Err(error) => return Err(error),
                };
                self.rollbacks.goes_back(self.switch(), back);
            }
            (None | Some(Stage::Pending), _) if armed.is_some() => {
                self.rollbacks.goes_back(self.switch(), Back::Nothing)
            }
            _ => return Ok(new_exit_with_output(1, "")),
        }
        Ok(new_exit_with_output(0, ""))
    }

    /// Begins to tell NVUE again what it was told before, as far as the revision changed it: what
    /// others changed on other ports since stays.
    async fn told_again(&self, begun: &BegunRevision) -> Result<Back, NvueChangeStop> {
        let now = self.compared(APPLIED).await?;
        let patches = revision::build_rollback_patches(&begun.edits, &now, &begun.was);
        if patches.is_empty() {
            return Ok(Back::Nothing);
        }
        let id = self.filled(&patches).await?;
        self.tell(&id, &revision::apply_for_good()).await?;
        Ok(Back::Revision(id))
    }
}

/// The rollback is over, but for what could not be put back.
fn new_reverted_exit(failed: &str) -> ExecutionOutcome {
    new_exit_with_output(0, &format!("reverted {failed}"))
}
