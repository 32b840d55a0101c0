//! Looks at a step's resources once more, right before it, and decides: already so, go, or leave it
//! alone. Pure.
//!
//! A resource must be as it was when the plan was made. It may have moved where the plan said so
//! (it is disturbed or known only after another step) or where an earlier step of this run acted on
//! the same target before it; then it is compared again, and may only do what the plan announced.

mod seen;

pub use seen::{ObservedMember, collect_member_reads, moves_by_plan, observe_member};

use railwright_base::{Address, Digest};
use railwright_plan::{ChangeReason, NodeKind, join_actions};
use railwright_resource::{Action, Disruption};
use railwright_state::run_status::StepIntent;
use seen::describe_planned_state;
use std::collections::BTreeSet;

/// What is to be done with a step.
#[derive(Debug, Clone, PartialEq)]
pub enum StepDecision {
    /// It is in sync; nothing to do.
    Met,
    /// Execute these actions.
    Act(Vec<Action>),
    /// The target moved.
    Stale(String),
    /// It would need more than was announced, or cannot be done at all.
    Unannounced(String),
    /// It was begun earlier, and nobody can tell what became of it.
    Undecided(String),
}

/// Decides on a step that was not begun yet.
pub fn decide_step(node: &NodeKind, seen: &[ObservedMember]) -> StepDecision {
    if seen.iter().all(ObservedMember::is_settled) {
        return StepDecision::Met;
    }
    // What is only written down has no action that could fix it.
    let adopts = matches!(node, NodeKind::Adopt { .. });
    for s in seen {
        if (adopts || !s.may_have_moved) && !s.is_settled() && !s.is_as_planned() {
            return StepDecision::Stale(describe_move(s));
        }
    }
    decide_actions(node, seen)
}

fn describe_move(seen: &ObservedMember) -> String {
    format!(
        "{} (when planned: {})",
        seen.what_differs(),
        describe_planned_state(seen.member)
    )
}

/// A resource that has moved although nobody of us touched it.
pub fn has_moved(seen: &ObservedMember) -> Option<String> {
    let has_moved = !seen.may_have_moved && !seen.is_settled() && !seen.is_as_planned();
    has_moved.then(|| describe_move(seen))
}

/// Decides on a step that was begun in an earlier part of the run, or whose connection was lost on
/// the way: in sync is done; as it was before is done again; anything else is done again where that
/// is safe.
pub fn diff_again(
    node: &NodeKind,
    seen: &[ObservedMember],
    intent: &StepIntent,
    redo: &BTreeSet<Address>,
    accept: &BTreeSet<Address>,
) -> StepDecision {
    let open: Vec<&ObservedMember> = seen
        .iter()
        .filter(|s| !s.is_settled() && !accept.contains(s.address()))
        .collect();
    if open.is_empty() {
        return StepDecision::Met;
    }
    let is_decided = open
        .iter()
        .all(|s| redo.contains(s.address()) || is_untouched(s, intent) || s.is_convergent());
    if !is_decided {
        let what: Vec<String> = open.iter().map(|s| s.what_differs()).collect();
        return StepDecision::Undecided(format!(
            "neither as it was nor as desired: {}",
            what.join("; ")
        ));
    }
    let open: Vec<ObservedMember> = seen
        .iter()
        .filter(|s| !accept.contains(s.address()))
        .cloned()
        .collect();
    decide_actions(node, &open)
}

/// Whether a resource is as the intent or the plan saw it.
fn is_untouched(seen: &ObservedMember, intent: &StepIntent) -> bool {
    let mut latest = intent.latest.iter();
    let before = latest.find(|before| before.address == *seen.address());
    before.is_some_and(|before| before.fingerprint == seen.diff.fingerprint())
        || seen.is_as_planned()
}

/// Decides on a step in the middle, after some of its actions: what is still to be done, if it was
/// announced.
pub fn go_on(node: &NodeKind, seen: &[ObservedMember]) -> StepDecision {
    if seen.iter().all(ObservedMember::is_settled) {
        StepDecision::Met
    } else {
        decide_actions(node, seen)
    }
}

/// The planned actions where everything is as planned, else those of now, if they were announced.
fn decide_actions(node: &NodeKind, seen: &[ObservedMember]) -> StepDecision {
    let NodeKind::Change {
        actions,
        announced,
        members,
        ..
    } = node
    else {
        return StepDecision::Met;
    };
    let open: Vec<&ObservedMember> = seen.iter().filter(|s| !s.is_settled()).collect();
    for s in &open {
        if let Some(why) = &s.diff.refusal {
            return StepDecision::Unannounced(format!("{}: {why}", s.address().within_target()));
        }
    }
    if seen.len() == members.len()
        && seen.iter().all(ObservedMember::is_as_planned)
        && !actions.is_empty()
    {
        // A plan file can be edited: what it does has to be what its resources need.
        let needed = join_actions(seen.iter().flat_map(|s| &s.diff.actions));
        return match *needed == **actions {
            true => StepDecision::Act(needed),
            false => StepDecision::Unannounced(
                "its actions in the plan are not those that its resources need".to_owned(),
            ),
        };
    }
    let now = join_actions(open.iter().flat_map(|s| &s.diff.actions));
    if let Some(stuck) = open.iter().find(|s| s.diff.actions.is_empty()) {
        return StepDecision::Unannounced(format!(
            "nothing that railwright can do would fix {}",
            stuck.what_differs()
        ));
    }
    let extra = list_unannounced_actions(&open, actions, announced);
    if extra.is_empty() {
        StepDecision::Act(now)
    } else {
        StepDecision::Unannounced(format!("it would now also take {}", extra.join(", ")))
    }
}

/// The words of the actions that these members need and that were neither planned nor announced.
fn list_unannounced_actions(
    open: &[&ObservedMember],
    actions: &[Action],
    announced: &[String],
) -> Vec<String> {
    let mut planned: BTreeSet<String> = actions.iter().map(Action::word).collect();
    planned.extend(announced.iter().cloned());
    // What an earlier step resets takes whatever applying it once more takes (`*`): its kind makes
    // that of the desired resource, and how much it may disturb is limited. For no other resource.
    let takes_any = planned.contains("*");
    let mut taken: BTreeSet<String> = BTreeSet::new();
    for s in open {
        if !(takes_any && matches!(s.member.reason, ChangeReason::Disturbed { .. })) {
            taken.extend(s.diff.actions.iter().map(Action::word));
        }
    }
    taken.difference(&planned).cloned().collect()
}

/// Why a step disturbs more than it may: the limit holds for what was not known when the plan was
/// made too, and what was known then is as the plan says, so that the host is counted as out of
/// service where it is.
pub fn disturbs_too_much(
    seen: &[ObservedMember],
    planned: Disruption,
    limit: Disruption,
) -> Option<String> {
    seen.iter().filter(|s| !s.is_settled()).find_map(|s| {
        let (now, name) = (s.diff.disruption, s.address().within_target());
        if now > limit {
            return Some(format!(
                "{name} would disturb as much as a {}, and rollout.max_disruption is {}",
                now.word(),
                limit.word()
            ));
        }
        let known = s.is_as_planned() && !moves_by_plan(s.member);
        (known && now > planned).then(|| {
            format!(
                "{name} disturbs as much as a {}, and the plan says {}",
                now.word(),
                planned.word()
            )
        })
    })
}

/// Whether the actions of now would interrupt a netdev.
pub fn may_interrupt_netdev(seen: &[ObservedMember]) -> bool {
    seen.iter()
        .any(|s| !s.is_settled() && !s.diff.interrupts_netdevs.is_empty())
}

/// Digest of what will be done.
pub fn actions_digest(actions: &[Action]) -> Digest {
    Digest::of(&actions)
}

#[cfg(test)]
mod tests {
    use super::*;
    use railwright_plan::{Member, PlannedDiff};
    use railwright_resource::{
        AnswerStatus, DesiredResource, ReadResult, ReadResults, ResourceDeclaration, kind_named,
    };
    use serde_json::json;
    use std::sync::Arc;

    const PATH: &str = "/etc/x";

    fn resource(content: &str) -> DesiredResource {
        DesiredResource {
            address: Address::host("a", "file", PATH),
            after: Vec::new(),
            declaration: ResourceDeclaration {
                kind: "file".to_owned(),
                body: json!({ "path": PATH, "content": content }),
                module: "m/x".to_owned(),
                places: Vec::new(),
            }
            .into(),
        }
    }

    fn answers(resource: &DesiredResource, found: Option<&str>) -> ReadResults {
        let mut answers = ReadResults::default();
        for read in kind_named("file").unwrap().reads(resource) {
            let (code, out) = match found {
                Some(text) => (
                    0,
                    format!("644 root root {} regular file\n{text}", text.len()),
                ),
                None => (1, String::new()),
            };
            answers.insert(
                read.key(),
                ReadResult {
                    status: AnswerStatus::Exit(code),
                    out,
                },
            );
        }
        answers
    }

    fn member(content: &str, found_when_planned: Option<&str>, reason: ChangeReason) -> Member {
        let resource = resource(content);
        let diff = kind_named("file")
            .unwrap()
            .diff(&resource, &answers(&resource, found_when_planned));
        Member {
            reason,
            diff: Arc::new(PlannedDiff {
                removal: false,
                differences: Vec::new(),
                fingerprint: diff.fingerprint(),
                before: diff.before,
                residue: Vec::new(),
                since: Vec::new(),
                needs_power_cycle: false,
            }),
            resource,
        }
    }

    fn node(member: &Member, announced: &[&str]) -> NodeKind {
        let planned = matches!(member.reason, ChangeReason::New | ChangeReason::Drifted);
        let write = Action::WriteFile {
            path: PATH.into(),
            content: member.resource.text("content").unwrap().into(),
            mode: "0644".into(),
            owner: "root".into(),
            group: "root".into(),
        };
        NodeKind::Change {
            members: vec![member.clone()],
            actions: if planned {
                Arc::new([write])
            } else {
                Arc::default()
            },
            announced: announced.iter().map(ToString::to_string).collect(),
            disturbs: Arc::default(),
            interrupts_netdevs: Arc::default(),
            automatic_rollback: None,
        }
    }

    fn compared(
        member: &Member,
        found_now: Option<&str>,
        announced: &[&str],
        moved_by_us: bool,
    ) -> StepDecision {
        decide_step(
            &node(member, announced),
            &[observe_member(
                member,
                None,
                &answers(&member.resource, found_now),
                moved_by_us,
            )],
        )
    }

    fn words(verdict: StepDecision) -> Vec<String> {
        match verdict {
            StepDecision::Act(actions) => actions.iter().map(Action::word).collect(),
            other => vec![format!("{other:?}").split('(').next().unwrap().to_owned()],
        }
    }

    #[test]
    fn as_planned_goes_met_is_done_and_anything_else_is_stale() {
        let member = member("new\n", Some("old\n"), ChangeReason::Drifted);
        assert_eq!(
            words(compared(&member, Some("old\n"), &[], false)),
            ["write_file"]
        );
        assert_eq!(words(compared(&member, Some("new\n"), &[], false)), ["Met"]);
        assert_eq!(
            words(compared(&member, Some("other\n"), &[], false)),
            ["Stale"]
        );
        assert_eq!(words(compared(&member, None, &[], false)), ["Stale"]);
        assert_eq!(
            words(compared(&member, Some("other\n"), &[], true)),
            ["write_file"],
            "an earlier step of ours may have moved it"
        );
    }

    #[test]
    fn what_is_looked_at_again_does_only_what_was_announced() {
        let disturbed = member(
            "new\n",
            Some("new\n"),
            ChangeReason::Disturbed { by: "x".into() },
        );
        assert_eq!(
            words(compared(&disturbed, Some("new\n"), &[], false)),
            ["Met"]
        );
        assert_eq!(
            words(compared(&disturbed, Some("old\n"), &["set_sysctl"], false)),
            ["Unannounced"]
        );
        assert_eq!(
            words(compared(&disturbed, Some("old\n"), &["write_file"], false)),
            ["write_file"]
        );
        assert_eq!(
            words(compared(&disturbed, Some("old\n"), &["*"], false)),
            ["write_file"]
        );
    }

    #[test]
    fn whatever_it_takes_is_said_of_what_an_earlier_step_resets_and_of_nothing_else() {
        let now = |reason: ChangeReason| {
            let member = member("new\n", Some("old\n"), reason);
            let set = Action::SetSysctl {
                key: "a".into(),
                value: "1".into(),
            };
            let node = NodeKind::Change {
                members: vec![member.clone()],
                actions: Arc::new([set]),
                announced: Arc::new(["*".into()]),
                disturbs: Arc::default(),
                interrupts_netdevs: Arc::default(),
                automatic_rollback: None,
            };
            words(decide_step(
                &node,
                &[observe_member(
                    &member,
                    None,
                    &answers(&member.resource, Some("other\n")),
                    true,
                )],
            ))
        };
        assert_eq!(
            now(ChangeReason::Disturbed { by: "x".into() }),
            ["write_file"]
        );
        assert_eq!(now(ChangeReason::Drifted), ["Unannounced"]);
        assert_eq!(
            now(ChangeReason::KnownAfter {
                step: "host/a/file/y".parse().unwrap()
            }),
            ["Unannounced"]
        );
    }

    #[test]
    fn no_step_disturbs_more_than_its_plan_and_the_limit_say() {
        let (drifted, disturbed) = (
            member("new\n", Some("old\n"), ChangeReason::Drifted),
            member("new\n", None, ChangeReason::Disturbed { by: "x".into() }),
        );
        let told = |member: &Member, planned: Disruption, limit: Disruption| {
            let mut seen = observe_member(
                member,
                None,
                &answers(&member.resource, Some("old\n")),
                false,
            );
            seen.diff.disruption = Disruption::Restart;
            disturbs_too_much(&[seen], planned, limit).is_some()
        };
        assert!(!told(&drifted, Disruption::Restart, Disruption::Reboot));
        assert!(
            told(&drifted, Disruption::Reload, Disruption::Reboot),
            "the plan says less"
        );
        assert!(
            !told(&disturbed, Disruption::None, Disruption::Reboot),
            "the plan could not say"
        );
        assert!(told(&disturbed, Disruption::None, Disruption::Reload));
    }

    #[test]
    fn what_was_begun_is_done_again_when_that_is_safe_or_said() {
        let member = member("new\n", Some("old\n"), ChangeReason::Drifted);
        let seen =
            |now: &str| observe_member(&member, None, &answers(&member.resource, Some(now)), false);
        let intent = StepIntent {
            attempt: 1,
            token: String::new(),
            actions: Digest::of(&0),
            first: vec![seen("old\n").intent(None)],
            latest: vec![seen("old\n").intent(None)],
            boot_id: None,
            sequence: 1,
        };
        let none = BTreeSet::new();
        let again =
            |now: &str, convergent: bool, redo: &BTreeSet<Address>, accept: &BTreeSet<Address>| {
                let mut seen = seen(now);
                if !convergent {
                    seen.kind = kind_named("command"); // the kind that must not be run twice
                }
                words(diff_again(
                    &node(&member, &[]),
                    &[seen],
                    &intent,
                    redo,
                    accept,
                ))
            };
        let own = BTreeSet::from([member.resource.address.clone()]);
        assert_eq!(again("new\n", false, &none, &none), ["Met"]);
        assert_eq!(again("old\n", false, &none, &none), ["write_file"]);
        assert_eq!(again("half", true, &none, &none), ["write_file"]);
        assert_eq!(again("half", false, &none, &none), ["Undecided"]);
        assert_eq!(again("half", false, &own, &none), ["write_file"]);
        assert_eq!(again("half", false, &none, &own), ["Met"]);
    }
}
