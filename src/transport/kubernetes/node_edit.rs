//! A label or a taint of many nodes: each is read, and written as long as nobody changed it meanwhile; many nodes at a time.

use super::act::{LOOK, Stop, TRIES, complaint, failed, refused};
use super::edit::merge;
use super::kinds;
use super::nodes::node;
use super::server::AT_ONCE;
use super::{KubernetesLink, ended};
use crate::base::text::one_line;
use crate::resource::kubernetes_object::request::MOVED;
use crate::resource::node_field::NodeField;
use crate::resource::node_field::edit::{Change, Next, NodeEdit};
use crate::system::clock;
use crate::transport::Performed;
use futures_util::{StreamExt as _, stream};

/// What became of one node.
enum Done {
    /// It is as it is to be.
    Well,
    /// It is not as it was planned; nothing of it was changed.
    Moved(String),
}

impl KubernetesLink {
    /// Carries out every edit; one that cannot be done keeps no other.
    pub(super) async fn edit_nodes(&self, field: &NodeField, edits: &[NodeEdit]) -> Result<Performed, Stop> {
        let all: Vec<(&str, &Change)> = edits.iter().flat_map(|edit| edit.nodes.iter().map(|name| (name.as_str(), &edit.change))).collect();
        // Made first: a stream over borrowed items is none that the compiler takes for `Send`.
        let asked: Vec<_> = all.iter().map(|(name, change)| self.edit_node(field, name, change)).collect();
        let done: Vec<Result<Done, Stop>> = stream::iter(asked).buffered(AT_ONCE).collect().await;
        let well = done.iter().filter(|done| matches!(done, Ok(Done::Well))).count();
        let so_far = if well == 0 { String::new() } else { format!("; {well} of {} nodes are done", all.len()) };
        let (mut first, mut lost) = (None, None);
        for one in done {
            match one {
                Ok(Done::Well) => {}
                Ok(Done::Moved(reason)) => first = first.or(Some((if well == 0 { MOVED } else { 1 }, reason))),
                Err(Stop::Ended(Performed::Ended { stderr, .. })) => {
                    first = first.or(Some((1, stderr.trim().trim_start_matches("railwright: ").to_owned())));
                }
                Err(stop) => lost = lost.or(Some(stop)),
            }
        }
        match (lost, first) {
            (Some(lost), _) => Err(lost),
            (None, Some((code, reason))) => Ok(ended(code, "", &complaint(&format!("{reason}{so_far}")))),
            (None, None) => Ok(ended(0, "", "")),
        }
    }

    async fn edit_node(&self, field: &NodeField, name: &str, change: &Change) -> Result<Done, Stop> {
        let (object, resource) = node(name);
        let path = kinds::path(&object, &resource).map_err(|reason| failed(&reason))?;
        for turn in 1..=TRIES {
            let live = match self.live(&object, &path, &resource).await {
                Ok(live) => live,
                // With the node went all that it bore.
                Err(Stop::Ended(Performed::Ended { code: MOVED, .. })) if change.mark.is_none() => return Ok(Done::Well),
                Err(Stop::Ended(Performed::Ended { code: MOVED, .. })) => return Ok(Done::Moved(format!("{object} is gone"))),
                Err(stop) => return Err(stop),
            };
            let now = field.of(&live);
            match change.next(&now) {
                Next::Nothing => return Ok(Done::Well),
                Next::Moved => {
                    let is = now.value.map_or_else(|| "absent".to_owned(), |value| one_line(&field.shown(&value), 80));
                    return Ok(Done::Moved(format!("on {name} it is {is} by now")));
                }
                Next::Write => {}
            }
            let patch = field.patch(&live, change.new.as_deref(), change.mark.as_ref());
            let reply = self.change(&merge(&path, &patch)).await?;
            match reply.status {
                200 => return Ok(Done::Well),
                409 if turn < TRIES => clock::pause(LOOK).await,
                _ => return Err(refused(&object, &resource, &reply)),
            }
        }
        Err(failed(&format!("{object} changes all the time")))
    }
}
