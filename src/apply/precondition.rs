//! Looks at a step's resources once more, right before it, and decides: already so, go, or leave it alone. Pure.
//!
//! A resource must be as it was when the plan was made. It may have moved where the plan said so (it is disturbed or
//! known only after another step) or where an earlier step of this run acted on the same target before it; then it is
//! judged anew, and may only do what the plan announced.

mod seen;

pub use seen::{Seen, moves_by_plan, reads, see};

use railwright_base::{Address, Digest};
use railwright_plan::{NodeKind, Reason, join_actions};
use railwright_resource::{Action, Disruption};
use railwright_state::run_status::Intent;
use seen::planned;
use std::collections::BTreeSet;

/// What is to be done with a step.
#[derive(Debug, Clone, PartialEq)]
pub enum Verdict {
    /// It is as wished; nothing to do.
    Met,
    /// Carry these actions out.
    Act(Vec<Action>),
    /// The target moved.
    Stale(String),
    /// It would need more than was announced, or cannot be done at all.
    Unannounced(String),
    /// It was begun earlier, and nobody can tell what became of it.
    Undecided(String),
}

/// Judges a step that was not begun yet.
pub fn judge(node: &NodeKind, seen: &[Seen]) -> Verdict {
    if seen.iter().all(Seen::is_settled) {
        return Verdict::Met;
    }
    // What is only written down has no action that could mend it.
    let adopts = matches!(node, NodeKind::Adopt { .. });
    let moved = |s: &&Seen| (adopts || !s.may_have_moved) && !s.is_settled() && !s.is_as_planned();
    if let Some(moved) = seen.iter().find(moved) {
        return Verdict::Stale(format!("{} (when planned: {})", moved.what_differs(), planned(moved.member)));
    }
    act(node, seen)
}

/// A resource that has moved although nobody of us touched it.
pub fn has_moved(seen: &Seen) -> Option<String> {
    (!seen.may_have_moved && !seen.is_settled() && !seen.is_as_planned())
        .then(|| format!("{} (when planned: {})", seen.what_differs(), planned(seen.member)))
}

/// Judges a step that was begun in an earlier part of the run, or whose connection was lost on the way: as wished is
/// done; as it was before is done again; anything else is done again where that is safe.
pub fn judge_again(node: &NodeKind, seen: &[Seen], intent: &Intent, redo: &BTreeSet<Address>, accept: &BTreeSet<Address>) -> Verdict {
    let open: Vec<&Seen> = seen.iter().filter(|s| !s.is_settled() && !accept.contains(s.address())).collect();
    if open.is_empty() {
        return Verdict::Met;
    }
    let was = |s: &Seen| intent.latest.iter().find(|m| m.address == *s.address()).map(|m| &m.fingerprint);
    let untouched = |s: &&Seen| Some(&s.assessment.fingerprint()) == was(s) || s.is_as_planned();
    let decided = open.iter().all(|s| redo.contains(s.address()) || untouched(s) || s.is_convergent());
    if !decided {
        let what: Vec<String> = open.iter().map(|s| s.what_differs()).collect();
        return Verdict::Undecided(format!("neither as it was nor as wished: {}", what.join("; ")));
    }
    let open: Vec<Seen> = seen.iter().filter(|s| !accept.contains(s.address())).cloned().collect();
    act(node, &open)
}

/// Judges a step in the middle, after some of its actions: what is still to be done, if it was announced.
pub fn go_on(node: &NodeKind, seen: &[Seen]) -> Verdict {
    if seen.iter().all(Seen::is_settled) { Verdict::Met } else { act(node, seen) }
}

/// The planned actions where everything is as planned, else those of now, if they were announced.
fn act(node: &NodeKind, seen: &[Seen]) -> Verdict {
    let NodeKind::Change { actions, announced, members, .. } = node else { return Verdict::Met };
    let open: Vec<&Seen> = seen.iter().filter(|s| !s.is_settled()).collect();
    if let Some((s, why)) = open.iter().find_map(|s| Some((s, s.assessment.refusal.as_ref()?))) {
        return Verdict::Unannounced(format!("{}: {why}", s.address().within_target()));
    }
    if seen.len() == members.len() && seen.iter().all(Seen::is_as_planned) && !actions.is_empty() {
        // A plan file can be edited: what it does has to be what its resources need.
        let needed = join_actions(seen.iter().flat_map(|s| &s.assessment.actions));
        return match *needed == **actions {
            true => Verdict::Act(needed),
            false => Verdict::Unannounced("its actions in the plan are not those that its resources need".to_owned()),
        };
    }
    let now = join_actions(open.iter().flat_map(|s| &s.assessment.actions));
    if let Some(stuck) = open.iter().find(|s| s.assessment.actions.is_empty()) {
        return Verdict::Unannounced(format!("nothing that railwright can do would mend {}", stuck.what_differs()));
    }
    let planned: BTreeSet<String> = actions.iter().map(Action::word).chain(announced.iter().cloned()).collect();
    // What an earlier step resets takes whatever applying the same wish again takes (`*`): its kind makes that of a wish
    // that was held against the spec, and how much it may disturb is held to the limit. For no other resource.
    let is_held = |s: &&&Seen| !(planned.contains("*") && matches!(s.member.reason, Reason::Disturbed { .. }));
    let taken = open.iter().filter(is_held).flat_map(|s| &s.assessment.actions).map(Action::word);
    let extra: Vec<String> = taken.filter(|word| !planned.contains(word)).collect::<BTreeSet<_>>().into_iter().collect();
    if extra.is_empty() { Verdict::Act(now) } else { Verdict::Unannounced(format!("it would now also take {}", extra.join(", "))) }
}

/// Why a step disturbs more than it may: the limit holds for what was not known when the plan was made too, and what was
/// known then is as the plan says, so that the host is counted as out of service where it is.
pub fn disturbs_too_much(seen: &[Seen], planned: Disruption, limit: Disruption) -> Option<String> {
    seen.iter().filter(|s| !s.is_settled()).find_map(|s| {
        let (now, name) = (s.assessment.disruption, s.address().within_target());
        if now > limit {
            return Some(format!("{name} would disturb as much as a {}, and rollout.max_disruption is {}", now.word(), limit.word()));
        }
        let known = s.is_as_planned() && !moves_by_plan(s.member);
        (known && now > planned).then(|| format!("{name} disturbs as much as a {}, and the plan says {}", now.word(), planned.word()))
    })
}

/// Whether the actions of now would interrupt a netdev.
pub fn interrupts(seen: &[Seen]) -> bool {
    seen.iter().any(|s| !s.is_settled() && !s.assessment.interrupts_netdevs.is_empty())
}

/// Digest of what will be done.
pub fn actions_digest(actions: &[Action]) -> Digest {
    Digest::of(&actions)
}

#[cfg(test)]
mod tests {
    use super::*;
    use railwright_plan::{Found, Member};
    use railwright_resource::{Answer, AnswerStatus, Answers, Want, Wish, kind_named};
    use serde_json::json;
    use std::sync::Arc;

    const PATH: &str = "/etc/x";

    fn wish(content: &str) -> Wish {
        Wish {
            address: Address::host("a", "file", PATH),
            after: Vec::new(),
            want: Want {
                kind: "file".to_owned(),
                body: json!({ "path": PATH, "content": content }),
                module: "m/x".to_owned(),
                places: Vec::new(),
            }
            .into(),
        }
    }

    fn answers(wish: &Wish, found: Option<&str>) -> Answers {
        let mut answers = Answers::default();
        for read in kind_named("file").unwrap().reads(wish) {
            let (code, out) = match found {
                Some(text) => (0, format!("644 root root {} regular file\n{text}", text.len())),
                None => (1, String::new()),
            };
            answers.insert(read.key(), Answer { status: AnswerStatus::Exit(code), out });
        }
        answers
    }

    fn member(content: &str, found_when_planned: Option<&str>, reason: Reason) -> Member {
        let wish = wish(content);
        let assessment = kind_named("file").unwrap().assess(&wish, &answers(&wish, found_when_planned));
        Member {
            reason,
            found: Arc::new(Found {
                removal: false,
                differences: Vec::new(),
                fingerprint: assessment.fingerprint(),
                before: assessment.before,
                residue: Vec::new(),
                since: Vec::new(),
                needs_power_cycle: false,
            }),
            wish,
        }
    }

    fn node(member: &Member, announced: &[&str]) -> NodeKind {
        let planned = matches!(member.reason, Reason::New | Reason::Drifted);
        let write = Action::WriteFile {
            path: PATH.into(),
            content: member.wish.text("content").unwrap().into(),
            mode: "0644".into(),
            owner: "root".into(),
            group: "root".into(),
        };
        NodeKind::Change {
            members: vec![member.clone()],
            actions: if planned { Arc::new([write]) } else { Arc::default() },
            announced: announced.iter().map(ToString::to_string).collect(),
            disturbs: Arc::default(),
            interrupts_netdevs: Arc::default(),
            guard: None,
        }
    }

    fn judged(member: &Member, found_now: Option<&str>, announced: &[&str], moved_by_us: bool) -> Verdict {
        judge(&node(member, announced), &[see(member, None, &answers(&member.wish, found_now), moved_by_us)])
    }

    fn words(verdict: Verdict) -> Vec<String> {
        match verdict {
            Verdict::Act(actions) => actions.iter().map(Action::word).collect(),
            other => vec![format!("{other:?}").split('(').next().unwrap().to_owned()],
        }
    }

    #[test]
    fn as_planned_goes_met_is_done_and_anything_else_is_stale() {
        let member = member("new\n", Some("old\n"), Reason::Drifted);
        assert_eq!(words(judged(&member, Some("old\n"), &[], false)), ["write_file"]);
        assert_eq!(words(judged(&member, Some("new\n"), &[], false)), ["Met"]);
        assert_eq!(words(judged(&member, Some("other\n"), &[], false)), ["Stale"]);
        assert_eq!(words(judged(&member, None, &[], false)), ["Stale"]);
        assert_eq!(words(judged(&member, Some("other\n"), &[], true)), ["write_file"], "an earlier step of ours may have moved it");
    }

    #[test]
    fn what_is_looked_at_again_does_only_what_was_announced() {
        let disturbed = member("new\n", Some("new\n"), Reason::Disturbed { by: "x".into() });
        assert_eq!(words(judged(&disturbed, Some("new\n"), &[], false)), ["Met"]);
        assert_eq!(words(judged(&disturbed, Some("old\n"), &["set_sysctl"], false)), ["Unannounced"]);
        assert_eq!(words(judged(&disturbed, Some("old\n"), &["write_file"], false)), ["write_file"]);
        assert_eq!(words(judged(&disturbed, Some("old\n"), &["*"], false)), ["write_file"]);
    }

    #[test]
    fn whatever_it_takes_is_said_of_what_an_earlier_step_resets_and_of_nothing_else() {
        let now = |reason: Reason| {
            let member = member("new\n", Some("old\n"), reason);
            let set = Action::SetSysctl { key: "a".into(), value: "1".into() };
            let node = NodeKind::Change {
                members: vec![member.clone()],
                actions: Arc::new([set]),
                announced: Arc::new(["*".into()]),
                disturbs: Arc::default(),
                interrupts_netdevs: Arc::default(),
                guard: None,
            };
            words(judge(&node, &[see(&member, None, &answers(&member.wish, Some("other\n")), true)]))
        };
        assert_eq!(now(Reason::Disturbed { by: "x".into() }), ["write_file"]);
        assert_eq!(now(Reason::Drifted), ["Unannounced"]);
        assert_eq!(now(Reason::KnownAfter { step: "host/a/file/y".parse().unwrap() }), ["Unannounced"]);
    }

    #[test]
    fn no_step_disturbs_more_than_its_plan_and_the_limit_say() {
        let (drifted, disturbed) =
            (member("new\n", Some("old\n"), Reason::Drifted), member("new\n", None, Reason::Disturbed { by: "x".into() }));
        let told = |member: &Member, planned: Disruption, limit: Disruption| {
            let mut seen = see(member, None, &answers(&member.wish, Some("old\n")), false);
            seen.assessment.disruption = Disruption::Restart;
            disturbs_too_much(&[seen], planned, limit).is_some()
        };
        assert!(!told(&drifted, Disruption::Restart, Disruption::Reboot));
        assert!(told(&drifted, Disruption::Reload, Disruption::Reboot), "the plan says less");
        assert!(!told(&disturbed, Disruption::None, Disruption::Reboot), "the plan could not say");
        assert!(told(&disturbed, Disruption::None, Disruption::Reload));
    }

    #[test]
    fn what_was_begun_is_done_again_when_that_is_safe_or_said() {
        let member = member("new\n", Some("old\n"), Reason::Drifted);
        let seen = |now: &str| see(&member, None, &answers(&member.wish, Some(now)), false);
        let intent = Intent {
            attempt: 1,
            token: String::new(),
            actions: Digest::of(&0),
            first: vec![seen("old\n").intent(None)],
            latest: vec![seen("old\n").intent(None)],
            boot_id: None,
            sequence: 1,
        };
        let none = BTreeSet::new();
        let again = |now: &str, convergent: bool, redo: &BTreeSet<Address>, accept: &BTreeSet<Address>| {
            let mut seen = seen(now);
            if !convergent {
                seen.kind = kind_named("command"); // the kind that must not be run twice
            }
            words(judge_again(&node(&member, &[]), &[seen], &intent, redo, accept))
        };
        let own = BTreeSet::from([member.wish.address.clone()]);
        assert_eq!(again("new\n", false, &none, &none), ["Met"]);
        assert_eq!(again("old\n", false, &none, &none), ["write_file"]);
        assert_eq!(again("half", true, &none, &none), ["write_file"]);
        assert_eq!(again("half", false, &none, &none), ["Undecided"]);
        assert_eq!(again("half", false, &own, &none), ["write_file"]);
        assert_eq!(again("half", false, &none, &own), ["Met"]);
    }
}
