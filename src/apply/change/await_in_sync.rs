//! After a step's last action: looks until everything is in sync. What becomes ready by itself
//! (pods that start, a resource that a node comes to give) is waited for as long as the spec says,
//! and no longer than there is hope.

use super::look::{read_answers, seen_after_actions};
use super::{ChangeStep, Halt};
use crate::context::RunEvent;
use crate::precondition::ObservedMember;
use crate::trouble::NextCommands;
use railwright_base::quote::quote_word_if_needed;
use railwright_base::text::one_line;
use railwright_base::{Diagnostic, Target};
use railwright_resource::Read;
use railwright_resource::kind::NotReadyReason;
use railwright_system::clock;
use std::collections::BTreeSet;
use std::time::Duration;

/// The longest pause between two looks at what is waited for.
const LONGEST_PAUSE: Duration = Duration::from_secs(5);
/// What is waited for has to be in sync in so many looks, one after the other: the resources of a
/// node come and go while its kubelet and the device plugins start (kubernetes/kubernetes#125579).
const STEADY_LOOKS: u32 = 2;
/// What was set back after somebody else changed it has to stay so for so many looks: a controller
/// that rewrites it has its own watch, and answers within a moment.
const LOOKS_AFTER_A_RIVAL: u32 = 4;
/// How it stands where everything is in sync by a status that may be old.
const STALE: &str = "its status may be of before the change: nobody wrote to it since";

/// How it stands after the last look.
pub(super) enum SettleOutcome<'a> {
    /// In sync.
    As(Vec<ObservedMember<'a>>),
    /// Not, and no longer waited for.
    Not {
        /// How it stands.
        now: Vec<ObservedMember<'a>>,
        /// Why, where more is known of it.
        trouble: Option<String>,
    },
    /// The user asked to stop while it was waited for; how it stood, in words.
    Interrupted(String),
}

impl<'a> ChangeStep<'a> {
    /// Looks until all is in sync. `waits` is for how many seconds something may take that becomes
    /// ready by itself.
    pub(super) async fn settled(
        &mut self,
        seen: &[ObservedMember<'a>],
        desired: &BTreeSet<Read>,
        waits: Option<u32>,
    ) -> Result<SettleOutcome<'a>, Halt> {
        let patience = &self.shared.context.patience;
        let limit = match waits {
            Some(seconds) => Duration::from_secs(seconds.into()),
            None => patience.settle,
        };
        let undone = clock::Deadline::after(patience.settle);
        let steady = count_steady_looks(seen, waits);
        let (end, mut pause) = (clock::Deadline::after(limit), patience.settle_poll);
        let (mut now, mut good, mut said, mut looks) =
            (seen.to_vec(), 0, String::new(), self.looks());
        loop {
            let answers = match &self.writer {
                Some(writer) => read_answers(writer, desired).await,
                None => return Ok(SettleOutcome::Not { now, trouble: None }),
            };
            match answers {
                Ok(answers) => now = seen_after_actions(seen, &answers),
                Err(error) if self.reconnect().await.is_err() => {
                    return Err(self.unknown(error.to_string()));
                }
                Err(_) => {}
            }
            let is_good = now.iter().all(ObservedMember::is_settled);
            good = if is_good { good + 1 } else { 0 };
            if good >= steady && (waits.is_none() || is_believed(&now, &[undone, end])) {
                return Ok(SettleOutcome::As(now));
            }
            let trouble = match waits {
                Some(_) if !is_good => self.trouble(&now).await,
                _ => None,
            };
            looks = looks.saturating_sub(1);
            let is_over = match waits {
                Some(_) => end.left().is_zero() || (undone.left().is_zero() && is_lost(&now)),
                None => looks == 0,
            };
            let is_hopeless = !is_good && is_hopeless(&now, seen, trouble.as_ref());
            let trouble = trouble.map(|trouble| trouble.words);
            if is_over || is_hopeless {
                return Ok(SettleOutcome::Not { now, trouble });
            }
            if waits.is_some() {
                said = self.tell(&now, trouble, said);
                if self.shared.is_ending() {
                    return Ok(SettleOutcome::Interrupted(said));
                }
            }
            clock::sleep_for(pause).await;
            if waits.is_some() {
                pause = (pause * 5 / 4).min(LONGEST_PAUSE.max(patience.settle_poll));
            }
        }
    }

    /// The hosts whose nodes have what is waited for, where others alone lack it; nothing where it
    /// is not lacking on nodes of hosts.
    pub(super) fn spared(&self, open: &[&ObservedMember<'a>]) -> Option<BTreeSet<Target>> {
        let nodes = &self.shared.context.nodes;
        let mut lacking: BTreeSet<&String> = BTreeSet::new();
        for s in open {
            let names = &s.diff.lacking;
            if names.is_empty() || !names.iter().all(|name| nodes.contains_key(name)) {
                return None;
            }
            lacking.extend(names);
        }
        let mut spared = BTreeSet::new();
        for (name, host) in nodes {
            if !lacking.contains(name) {
                spared.insert(host.clone());
            }
        }
        (!spared.is_empty()).then_some(spared)
    }

    /// Why it does not become ready, asked of the target.
    async fn trouble(&self, now: &[ObservedMember<'a>]) -> Option<NotReadyReason> {
        let open: Vec<&ObservedMember> = now.iter().filter(|s| !s.is_settled()).collect();
        let mut desired: BTreeSet<Read> = BTreeSet::new();
        for s in &open {
            if let Some(kind) = s.kind {
                desired.extend(kind.troubles(&s.member.resource));
            }
        }
        if desired.is_empty() {
            return None;
        }
        let answers = read_answers(self.writer.as_ref()?, &desired).await.ok()?;
        let trouble = open
            .iter()
            .find_map(|s| s.kind?.trouble(&s.member.resource, &answers))?;
        Some(NotReadyReason {
            words: answers.shown(&trouble.words),
            ..trouble
        })
    }

    /// Says what is waited for, where that is not what was said last.
    fn tell(&self, now: &[ObservedMember<'a>], trouble: Option<String>, said: String) -> String {
        let open = now.iter().filter(|s| !s.is_settled());
        let mut open: Vec<String> = open.map(ObservedMember::what_is_waited_for).collect();
        open.extend(trouble);
        if open.is_empty() && now.iter().any(|s| s.diff.may_be_stale) {
            open.push(STALE.to_owned());
        }
        let words = open.join("; ");
        if open.is_empty() || words == said {
            return said;
        }
        (self.shared.sink)(RunEvent::StepWaits {
            node: self.node.id.clone(),
            words: words.clone(),
        });
        words
    }
}

/// In how many looks, one after the other, everything has to be in sync.
fn count_steady_looks(seen: &[ObservedMember<'_>], waits: Option<u32>) -> u32 {
    if seen.iter().any(|s| s.rival().is_some()) {
        return LOOKS_AFTER_A_RIVAL;
    }
    match waits {
        // What is gone does not come back by itself.
        Some(_) if seen.iter().all(|s| s.member.removal) => 1,
        Some(_) => STEADY_LOOKS,
        None => 1,
    }
}

/// Whether what was found says how it stands after the step: it is not of before it, or one of
/// these times to write a newer one is over.
fn is_believed(now: &[ObservedMember<'_>], times: &[clock::Deadline]) -> bool {
    now.iter().all(|s| !s.diff.may_be_stale) || times.iter().any(|time| time.left().is_zero())
}

/// What was applied and is not there (somebody deleted it) is not made by waiting.
fn is_lost(now: &[ObservedMember<'_>]) -> bool {
    now.iter().any(|s| !s.is_settled() && !s.diff.only_waits())
}

/// Whether waiting does not help, by what the target says since the step, or because somebody else
/// set back what was changed.
fn is_hopeless(
    now: &[ObservedMember<'_>],
    before: &[ObservedMember<'_>],
    trouble: Option<&NotReadyReason>,
) -> bool {
    if trouble.is_some_and(|trouble| trouble.hopeless) {
        return true;
    }
    let is_contested = before.iter().any(|s| s.rival().is_some());
    now.iter().zip(before).any(|(now, before)| {
        let since = hopeless_since(now);
        let is_news = since.is_none() || since != hopeless_since(before);
        (is_contested && now.set_back_by(before).is_some())
            || (now.diff.hopeless.is_some() && is_news)
    })
}

fn hopeless_since<'s>(seen: &'s ObservedMember<'_>) -> Option<&'s String> {
    seen.diff.hopeless.as_ref()?.since.as_ref()
}

/// What is waited for did not become ready.
pub(super) fn not_ready(
    node: &str,
    what: &str,
    others_go_on: bool,
    next: &NextCommands,
) -> Diagnostic {
    let effect = match others_go_on {
        true => {
            "what needs it would not run, so nothing is begun on the hosts of these nodes; hosts \
             whose nodes have it go on"
        }
        false => "what needs it would not run, so nothing after this step was begun",
    };
    let problem = Diagnostic::error(
        "RW0633",
        format!(
            "what is waited for does not become ready: {}",
            one_line(what, 900)
        ),
    )
    .on(node)
    .effect(effect)
    .state("everything of this step was applied as desired; it only waits")
    .next(format!("fix what keeps it, then {}", next.resume()));
    match others_go_on {
        true => problem.next(format!(
            "or, where a node is not to have it, take its host out of what is waited for in the \
             spec, then {}",
            next.plan()
        )),
        // `--exclude` would leave out what comes after it as well.
        false => problem.next(format!(
            "or take the wait out of the spec, where what comes after it can do without, then {}",
            next.plan()
        )),
    }
}

/// An object that was deleted is not gone.
pub(super) fn not_gone(members: &[&ObservedMember], node: &str, next: &NextCommands) -> Diagnostic {
    let what: Vec<String> = members
        .iter()
        .map(|s| format!("{} is {}", s.address().words(), s.what_is_waited_for()))
        .collect();
    let mut problem = Diagnostic::error(
        "RW0654",
        format!(
            "what was deleted is not gone: {}",
            one_line(&what.join("; "), 900)
        ),
    )
    .on(node)
    .effect(
        "a finalizer is taken away by its own controller, once that has cleaned up; what comes \
         after this step was not begun",
    )
    .state("it was told to go, and goes by itself as soon as nothing holds it any more");
    for address in members.iter().take(3).map(|s| s.address()) {
        let [kind, namespace, name] = &address.path[..] else {
            continue;
        };
        let kind = quote_word_if_needed(kind.strip_suffix(".core").unwrap_or(kind));
        let place = if namespace == "-" {
            String::new()
        } else {
            format!("-n {} ", quote_word_if_needed(namespace))
        };
        let name = quote_word_if_needed(name);
        problem = problem
            .next(format!(
                "see whether the controller that is named runs (kubectl get pods -A), and what it \
                 says: kubectl {place}describe {kind} {name}"
            ))
            .next(format!(
                "only where that controller is gone for good, and nothing is left for it to clean \
                 up: kubectl {place}patch {kind} {name} --type=merge -p \
                 '{{\"metadata\":{{\"finalizers\":null}}}}'"
            ));
    }
    problem.next(format!("then {}", next.resume()))
}

/// The run was stopped while it waited.
pub(super) fn left_waiting(node: &str, what: &str, next: &NextCommands) -> Diagnostic {
    Diagnostic::warning(
        "RW0634",
        format!(
            "the run was stopped while this was waited for: {}",
            one_line(what, 600)
        ),
    )
    .on(node)
    .effect("whether it becomes ready is not known yet, and nothing after this step was begun")
    .state("everything of this step was applied as desired; it only waits")
    .next(format!("{} looks again and goes on", next.resume()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::precondition::observe_member;
    use railwright_base::Digest;
    use railwright_plan::{ChangeReason, Member, PlannedDiff};
    use railwright_resource::{
        AnswerStatus, Attribute, DesiredResource, Plane, Provenance, ReadResult, ReadResults,
        Reading, kind_named,
    };
    use serde_json::json;
    use std::sync::Arc;

    const RAIL: &str = "kube/prod/Rail.example.org/n/a";

    fn removed_member(resource: DesiredResource) -> Member {
        let diff = PlannedDiff {
            removal: true,
            differences: Vec::new(),
            fingerprint: Digest::of(&0),
            before: json!({ "existed": false }),
            residue: Vec::new(),
            since: Vec::new(),
            needs_power_cycle: false,
        };
        Member {
            resource,
            reason: ChangeReason::RemovedFromSpec,
            diff: Arc::new(diff),
        }
    }

    /// What differs after a step bears the name of whoever set it once, before the step too.
    #[test]
    fn what_nobody_set_since_is_set_back_by_nobody() {
        let resource = DesiredResource::of(RAIL.parse().unwrap(), "no_kind", json!({}));
        let member = removed_member(resource);
        let seen = |name: &str, by: Option<(u8, bool)>| {
            let mut seen = observe_member(&member, None, &ReadResults::default(), false);
            let set_by = |(second, with_ours)| {
                let time = format!("2026-01-02T03:04:0{second}Z");
                Provenance::set_by("kubectl-patch", &time, with_ours)
            };
            let attribute = Attribute {
                by: by.map(set_by),
                ..Attribute::in_plane(Plane::Persisted, Reading::is("ours"), Reading::is("theirs"))
            };
            seen.diff.attributes = [(name.to_owned(), attribute)].into();
            seen
        };
        let first = Some((5, false));
        // In the second of our own write.
        let with_ours = Some((5, true));
        let later = Some((6, false));
        for (before, now, is_rival) in [
            (("data.k", first), first, false),
            (("data.k", first), with_ours, true),
            (("data.k", first), later, true),
            (("data.k", None), later, true),
            (("data.other", first), first, false),
            (("data.other", first), with_ours, true),
            (("data.other", first), later, true),
            (("data.other", None), first, false),
        ] {
            let (before, now) = (seen(before.0, before.1), seen("data.k", now));
            let rival = now.rival().filter(|_| is_rival).map(str::to_owned);
            assert_eq!(now.set_back_by(&before), rival.as_deref());
            let is_contested = before.rival().is_some();
            assert_eq!(
                is_hopeless(&[now], &[before], None),
                is_contested && rival.is_some()
            );
        }
    }

    #[test]
    fn what_to_do_about_a_wait_leaves_nothing_else_out() {
        let said = format!(
            "{:?}",
            not_ready(
                "kube/prod/node_allocatable/rdma%2Fhca",
                "2 nodes",
                false,
                &NextCommands {
                    inventory: "inv".to_owned()
                }
            )
        );
        assert!(
            said.contains("railwright resume inv")
                && said.contains("railwright plan inv")
                && !said.contains("--exclude"),
            "{said}"
        );
        assert!(
            said.contains("everything of this step was applied"),
            "{said}"
        );
    }

    #[test]
    fn who_holds_what_is_deleted_is_named_with_how_to_look() {
        let body = json!({ "cluster": "lab", "manifest": { "apiVersion": "example.org/v1", "kind": "Rail", "metadata": { "name": "a", "namespace": "n" } } });
        let resource = DesiredResource::of(RAIL.parse().unwrap(), "kubernetes_object", body);
        let managed = json!([{ "manager": "railwright", "operation": "Apply", "time": "2026-01-02T03:04:05Z",
                               "fieldsV1": { "f:metadata": { "f:labels": { "f:railwright.io/part-of": {} } } } }]);
        let labels = json!({ "railwright.io/part-of": "lab" });
        let finalizers = ["example.org/never"];
        let live = json!({ "metadata": { "uid": "u", "deletionTimestamp": "x", "finalizers": finalizers, "labels": labels, "managedFields": managed } });
        let mut answers = ReadResults::default();
        answers.insert(
            kind_named("kubernetes_object").unwrap().reads(&resource)[0].key(),
            ReadResult {
                status: AnswerStatus::Exit(0),
                out: live.to_string(),
            },
        );
        let member = removed_member(resource);
        let seen = observe_member(&member, None, &answers, false);
        assert!(seen.diff.only_waits(), "{:?}", seen.diff);
        let said = format!(
            "{:?}",
            not_gone(
                &[&seen],
                RAIL,
                &NextCommands {
                    inventory: "inv".to_owned()
                }
            )
        );
        for words in [
            "Rail.example.org n/a is being deleted, held by its finalizer example.org/never (the \
             controller of example.org takes it away)",
            "kubectl -n n describe Rail.example.org a",
            "kubectl -n n patch Rail.example.org a --type=merge",
        ] {
            assert!(said.contains(words), "{words}: {said}");
        }
    }
}
