//! Changes over the REST API: a revision of our own is made from what runs, filled, and applied so
//! that NVUE takes it back unless it is confirmed. What waits in others' revisions is neither
//! applied along nor dropped. A revision that was refused stays behind and is never applied.

use super::rollback_timer::BegunRevision;
use super::{Got, NvueLink, new_exit_with_reason};
use crate::{ExecutionOutcome, TransportError};
use http::Method;
use railwright_resource::complaint::UNAVAILABLE;
use railwright_resource::switch::cumulus::edit::CumulusEdit;
use railwright_resource::switch::cumulus::revision::{self, NvueRevision, Stage};
use railwright_resource::switch::cumulus::{rest, script};
use railwright_resource::switch::edit::SwitchEdit;
use railwright_resource::switch::links::LINK_S;
use railwright_resource::switch::{NOT_TAKEN, SwitchSystem};
use railwright_resource::{Action, Fact};
use railwright_system::clock::{self, Deadline};
use serde_json::{Value, json};
use std::time::Duration;

/// The revision that runs.
pub(super) const APPLIED: &str = "applied";
/// The revision that a boot begins with.
pub(super) const STARTUP: &str = "startup";

/// Between two looks at a revision.
const POLL: Duration = Duration::from_millis(500);
/// How long saving may take: a file is written.
const SAVE_LIMIT: Duration = Duration::from_secs(120);

/// How a change ends before its end: with a sentence, or without an answer.
pub(super) enum NvueChangeStop {
    Said(i32, String),
    Error(TransportError),
}

impl From<TransportError> for NvueChangeStop {
    fn from(error: TransportError) -> Self {
        NvueChangeStop::Error(error)
    }
}

impl NvueChangeStop {
    /// The ending that it is.
    pub fn ending(self) -> Result<ExecutionOutcome, TransportError> {
        match self {
            NvueChangeStop::Said(code, sentence) => Ok(new_exit_with_reason(code, &sentence)),
            NvueChangeStop::Error(error) => Err(error),
        }
    }
}

impl NvueLink {
    /// Executes an action.
    pub(super) async fn change(&self, action: &Action) -> Result<ExecutionOutcome, TransportError> {
        self.may_change()?;
        let changed = match action {
            Action::EditSwitch {
                system: SwitchSystem::Cumulus,
                edits,
            } => self.edit(&SwitchEdit::cumulus(edits)).await,
            Action::SaveSwitch {
                system: SwitchSystem::Cumulus,
            } => self.save().await,
            _ => Err(NvueChangeStop::Said(
                UNAVAILABLE,
                "the NVUE API does not do that".to_owned(),
            )),
        };
        match changed {
            Ok(()) => Ok(super::new_exit_with_output(0, "")),
            // NVUE said so, so that nothing is in doubt.
            Err(NvueChangeStop::Error(error @ TransportError::ReadOnly { .. })) => Ok(
                new_exit_with_reason(NOT_TAKEN, &format!("{error}, and nothing was changed")),
            ),
            Err(stop) => stop.ending(),
        }
    }

    async fn edit(&self, edits: &[CumulusEdit]) -> Result<(), NvueChangeStop> {
        let Some((token, left)) = self.rollbacks.armed(self.switch()) else {
            return Err(NvueChangeStop::Said(
                1,
                "nothing is changed over the NVUE API that NVUE would not roll back".to_owned(),
            ));
        };
        let until = Deadline::after(left);
        if let Some(other) = self.in_the_way().await? {
            return Err(not_taken(&format!("{} is not over", other.described())));
        }
        let (was, saved) = (self.compared(APPLIED).await?, self.compared(STARTUP).await?);
        let up = self.with_a_link(edits).await?;
        let id = self
            .filled(&revision::build_revision_patches(edits))
            .await?;
        if self.compared(APPLIED).await? != was {
            return Err(not_taken(
                "somebody else changes this switch at the same time",
            ));
        }
        // What came in the way while it was filled.
        if let Some(other) = self.in_the_way().await? {
            return Err(not_taken(&describe_other_change(&other)));
        }
        let begun = BegunRevision {
            id: id.clone(),
            was,
            saved,
            edits: edits.to_vec(),
        };
        self.rollbacks.begins(self.switch(), begun);
        self.tell(
            &id,
            &revision::build_apply_request(&token, until.left().as_secs().max(1)),
        )
        .await?;
        let found = self.settled(&id, until).await?;
        if found.stage != Stage::Waits {
            return Err(explain_not_waiting(&found));
        }
        // NVUE cannot be asked and told in one: two that began together both see it, and none of
        // them is confirmed.
        let mut others = self.revisions().await?.into_iter();
        match others.find(|other| other.id != id && other.stage.is_in_the_way()) {
            Some(other) => Err(NvueChangeStop::Said(1, describe_other_change(&other))),
            None => self.links_again(up).await,
        }
    }

    /// Saves what runs. Nothing that waits for its confirmation is saved: a boot would keep what
    /// nobody confirmed.
    pub(super) async fn save(&self) -> Result<(), NvueChangeStop> {
        if let Some(other) = self.in_the_way().await? {
            return Err(NvueChangeStop::Said(
                1,
                format!(
                    "nothing is saved, because {} is not over",
                    other.described()
                ),
            ));
        }
        self.tell("applied", &revision::build_save_request())
            .await?;
        let found = self.settled("applied", Deadline::after(SAVE_LIMIT)).await?;
        match found.stage {
            Stage::Applied => Ok(()),
            _ => Err(NvueChangeStop::Said(
                1,
                format!("what runs was not saved: {}: {}", found.state, found.issues),
            )),
        }
    }

    /// A new revision, made from what runs, with these patches.
    pub(super) async fn filled(&self, patches: &[Value]) -> Result<String, NvueChangeStop> {
        let id = match self.send(Method::POST, "/revision", &json!({})).await? {
            Got::Tree(told) => revision::parse_created_revision_id(&told)
                .filter(|id| encode_revision_id(id).is_some()),
            Got::Nothing => None,
            Got::Refused(why) => return Err(not_taken(&why)),
        };
        let id = id.ok_or_else(|| not_taken("NVUE names no revision that it would have made"))?;
        for patch in patches {
            match self
                .send(
                    Method::PATCH,
                    &format!("/?rev={}", encode_revision_id(&id).unwrap_or_default()),
                    patch,
                )
                .await?
            {
                Got::Tree(_) => {}
                Got::Nothing => {
                    return Err(not_taken("NVUE knows nothing of the revision that it made"));
                }
                Got::Refused(why) => return Err(not_taken(&why)),
            }
        }
        Ok(id)
    }

    /// Asks a revision to come into another state.
    pub(super) async fn tell(&self, id: &str, body: &Value) -> Result<(), NvueChangeStop> {
        match self
            .send(
                Method::PATCH,
                &format!("/revision/{}", encode_revision_id(id).unwrap_or_default()),
                body,
            )
            .await?
        {
            Got::Tree(_) => Ok(()),
            Got::Nothing => Err(NvueChangeStop::Said(
                1,
                "NVUE knows nothing of the revision any more".to_owned(),
            )),
            Got::Refused(why) => Err(NvueChangeStop::Said(1, why)),
        }
    }

    /// A revision.
    pub(super) async fn look_at(&self, id: &str) -> Result<Option<NvueRevision>, TransportError> {
        let Some(place) = encode_revision_id(id) else {
            return Ok(None);
        };
        Ok(match self.get(&format!("/revision/{place}")).await? {
            Got::Tree(told) => NvueRevision::of(id, &told),
            Got::Nothing | Got::Refused(_) => None,
        })
    }

    /// A revision that comes to nothing more by itself, or what it is like when there is no time
    /// left.
    async fn settled(&self, id: &str, until: Deadline) -> Result<NvueRevision, NvueChangeStop> {
        loop {
            let found = self.look_at(id).await?;
            let found = found.ok_or_else(|| {
                NvueChangeStop::Said(
                    1,
                    "NVUE does not tell how it stands with the revision".to_owned(),
                )
            })?;
            // One that was just told to be applied may be read as it was before.
            let is_over = !matches!(found.stage, Stage::Moving | Stage::Pending);
            if is_over || until.left().is_zero() {
                return Ok(found);
            }
            clock::sleep_for(POLL.min(until.left())).await;
        }
    }

    /// All revisions.
    pub(super) async fn revisions(&self) -> Result<Vec<NvueRevision>, NvueChangeStop> {
        match self.get("/revision").await? {
            Got::Tree(told) => Ok(NvueRevision::all(&told)),
            Got::Nothing => Err(no_revisions_told("NVUE knows of none")),
            Got::Refused(why) => Err(no_revisions_told(&why)),
        }
    }

    /// A revision that NVUE has in hand, or that waits to be confirmed.
    pub(super) async fn in_the_way(&self) -> Result<Option<NvueRevision>, NvueChangeStop> {
        Ok(self
            .revisions()
            .await?
            .into_iter()
            .find(|revision| revision.stage.is_in_the_way()))
    }

    /// What of a revision is evaluated.
    pub(super) async fn compared(&self, revision: &str) -> Result<Value, NvueChangeStop> {
        let mut trees = Vec::new();
        for path in rest::list_revision_paths(revision) {
            trees.push(match self.get(&path).await? {
                Got::Tree(tree) => tree,
                Got::Nothing => Value::Null,
                Got::Refused(why) => return Err(not_taken(&why)),
            });
        }
        Ok(rest::select_compared_settings(&trees[0], &trees[1]))
    }

    /// The ports whose own settings change that have a link now.
    async fn with_a_link(&self, edits: &[CumulusEdit]) -> Result<Vec<String>, NvueChangeStop> {
        let ports = match self.get(rest::PORTS).await? {
            Got::Tree(ports) => ports,
            Got::Nothing => return Err(no_link_known("NVUE has nothing of its interfaces")),
            Got::Refused(why) => return Err(no_link_known(&why)),
        };
        let mut up = Vec::new();
        for port in script::ports_of(edits) {
            match revision::has_link(&ports, port) {
                Fact::Is(true) => up.push(port.to_owned()),
                Fact::Is(false) => {}
                _ => return Err(no_link_known(&format!("NVUE says nothing of {port}"))),
            }
        }
        Ok(up)
    }

    /// Waits until they have one again: optics and link training take their time.
    async fn links_again(&self, mut down: Vec<String>) -> Result<(), NvueChangeStop> {
        let until = Deadline::after(Duration::from_secs(LINK_S.into()));
        while !down.is_empty() {
            if let Got::Tree(ports) = self.get(rest::PORTS).await? {
                down.retain(|port| revision::has_link(&ports, port) != Fact::Is(true));
            }
            if !down.is_empty() && until.left().is_zero() {
                return Err(NvueChangeStop::Said(
                    1,
                    format!(
                        "up before the change, and not up again {LINK_S} s after it: {}",
                        down.join(" ")
                    ),
                ));
            }
            clock::sleep_for(if down.is_empty() {
                Duration::ZERO
            } else {
                POLL
            })
            .await;
        }
        Ok(())
    }
}

fn describe_other_change(other: &NvueRevision) -> String {
    format!(
        "somebody else changes this switch at the same time: {} is not over",
        other.described()
    )
}

/// Why a revision that was applied does not wait for its confirmation.
fn explain_not_waiting(found: &NvueRevision) -> NvueChangeStop {
    match found.stage {
        Stage::Refused => not_taken(&found.issues),
        Stage::Applied => NvueChangeStop::Said(
            1,
            "this release applies a revision without waiting for its confirmation, so that \
             nothing would take it back; reach the switch over SSH"
                .to_owned(),
        ),
        _ => NvueChangeStop::Said(
            1,
            format!(
                "NVUE did not come through with {}: {}",
                found.described(),
                found.issues
            ),
        ),
    }
}

fn no_revisions_told(why: &str) -> NvueChangeStop {
    NvueChangeStop::Said(1, format!("which revisions are in hand is not told: {why}"))
}

fn not_taken(why: &str) -> NvueChangeStop {
    NvueChangeStop::Said(
        NOT_TAKEN,
        format!("Cumulus Linux does not take the change, and nothing was changed: {why}"),
    )
}

fn no_link_known(why: &str) -> NvueChangeStop {
    not_taken(&format!("which ports have a link cannot be told: {why}"))
}

/// The name of a revision in a path; nothing where it is none that NVUE would give. Older releases
/// have slashes in it (NVUE-API.md, `%2F`).
fn encode_revision_id(id: &str) -> Option<String> {
    let mut characters = id.chars();
    let is_plain = characters.all(|c| c.is_ascii_alphanumeric() || "/_.-".contains(c));
    (!id.is_empty() && id.len() <= 200 && is_plain).then(|| id.replace('/', "%2F"))
}

#[cfg(test)]
mod tests {
    use super::encode_revision_id;

    #[test]
    fn a_name_stands_in_a_path_or_is_none() {
        assert_eq!(encode_revision_id("7").as_deref(), Some("7"));
        assert_eq!(
            encode_revision_id("changeset/cumulus/2026-09-28_12.03.11_K3Q9").as_deref(),
            Some("changeset%2Fcumulus%2F2026-09-28_12.03.11_K3Q9")
        );
        for odd in ["", "7?x", "7 8", "a%2F", "é"] {
            assert_eq!(encode_revision_id(odd), None, "{odd}");
        }
    }
}
