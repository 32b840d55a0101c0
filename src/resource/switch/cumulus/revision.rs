//! Revisions over the REST API of NVUE, as values: what is sent, and how it stands with one.
//!
//! A revision is made (`POST /revision`), filled (`PATCH /?rev=N`) and applied (`PATCH
//! /revision/N`): CumulusNetworks/docs, NVUE-API.md. That it is rolled back unless it is confirmed
//! in time (`state-controls`, `confirm`, in seconds), that it is confirmed by the state
//! `confirm_yes`, and the names of its states: the programs gpncfg (`DeployCumuls`) and an adapter
//! for NVOS (`ApplyOptions.with_confirm`), which agree; the manual names only the command (`nv
//! config apply --confirm`).

use super::edit::{CumulusEdit, build_patch_documents, insert_tree_value, select_effective_edits};
use crate::Fact;
use railwright_base::text::one_line;
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;

/// How the message of a revision of ours begins; the token of its automatic rollback follows.
const OURS: &str = "railwright rollback ";

/// How it stands with a revision.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// It was made, and nobody applied it.
    Pending,
    /// NVUE is about to make it so, or to save it.
    Moving,
    /// It runs, and is rolled back unless somebody confirms it.
    Waits,
    /// It was not confirmed, and is being rolled back.
    GoesBack,
    /// It runs for good, or did until another was applied.
    Applied,
    /// It was rolled back.
    TakenBack,
    /// It was refused before anything of it was made so.
    Refused,
    /// It failed when a part of it may have been made so.
    Broken,
}

impl Stage {
    /// Of the word that NVUE has for it; one that is not known is one that nobody can say what runs
    /// of.
    pub fn of(state: &str) -> Self {
        match state {
            "pending" | "inactive" => Stage::Pending,
            "apply" | "ays" | "ays_yes" | "checking" | "checked" | "readying" | "ready"
            | "verifying" | "verified" | "reloading" | "reloaded" | "ignore_fail_yes"
            | "confirm_yes" | "auto_save" | "auto_saving" | "save" | "saving" => Stage::Moving,
            "confirm" => Stage::Waits,
            "confirm_no" => Stage::GoesBack,
            "applied" | "applied_and_saved" | "saved" => Stage::Applied,
            "confirm_fail" => Stage::TakenBack,
            "invalid" | "ays_no" | "ays_fail" | "verify_error" | "ready_error" | "detached" => {
                Stage::Refused
            }
            _ => Stage::Broken,
        }
    }

    /// True while no other revision can be applied.
    pub fn is_in_the_way(self) -> bool {
        matches!(self, Stage::Moving | Stage::Waits | Stage::GoesBack)
    }
}

/// What the API says of a revision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NvueRevision {
    /// Its number, or its name on older releases (`changeset/cumulus/...`).
    pub id: String,
    /// How it stands.
    pub stage: Stage,
    /// The stage as NVUE spells it.
    pub state: String,
    /// The message that it was applied with.
    pub message: String,
    /// What is wrong with it, in NVUE's words.
    pub issues: String,
}

impl NvueRevision {
    /// From what `GET /revision/ID` gives.
    pub fn of(id: &str, answer: &Value) -> Option<Self> {
        // Some releases put the name around it once more (NVUE-API.md, `ays_fail`).
        let answer = answer.get(id).unwrap_or(answer);
        let state = answer.get("state")?.as_str()?;
        let mut issues = Vec::new();
        if let Some(Value::Object(all)) = answer.pointer("/transition/issue") {
            for issue in all.values() {
                issues.extend(find_message(issue).map(str::trim));
            }
        }
        Some(NvueRevision {
            id: id.to_owned(),
            stage: Stage::of(state),
            state: one_line(state, 40),
            message: find_message(answer).unwrap_or_default().to_owned(),
            issues: one_line(&issues.join("; "), 300),
        })
    }

    /// All of `GET /revision`; names that stand for another revision (`applied`, `startup`) are
    /// none.
    pub fn all(answer: &Value) -> Vec<Self> {
        let named = ["applied", "startup", "operational", "pending", "empty"];
        let mut revisions = Vec::new();
        for (id, answer) in answer.as_object().into_iter().flatten() {
            if !named.contains(&id.as_str()) {
                revisions.extend(NvueRevision::of(id, answer));
            }
        }
        revisions
    }

    /// The token of the automatic rollback that it carries; nothing where it is not ours.
    pub fn token(&self) -> Option<&str> {
        self.message.strip_prefix(OURS)
    }

    /// For people: which it is, and how it stands.
    pub fn described(&self) -> String {
        let message = if self.message.is_empty() {
            String::new()
        } else {
            format!(", \"{}\"", one_line(&self.message, 60))
        };
        format!(
            "revision {} ({}{message})",
            one_line(&self.id, 60),
            self.state
        )
    }
}

fn find_message(answer: &Value) -> Option<&str> {
    answer.get("message")?.as_str()
}

/// The name of the revision that `POST /revision` made.
pub fn parse_created_revision_id(answer: &Value) -> Option<String> {
    answer.as_object()?.keys().next().cloned()
}

/// What is patched into a revision, one after the other: what is to go is there without a value
/// (NVUE-API.md, Unset a Configuration Change).
pub fn build_revision_patches(edits: &[CumulusEdit]) -> Vec<Value> {
    let documents = build_patch_documents(edits).into_iter();
    documents
        .filter_map(|document| document.get(0)?.as_object()?.values().next().cloned())
        .collect()
}

/// Applies it, and has it rolled back after so many seconds unless it is confirmed.
pub fn build_apply_request(token: &str, confirm_s: u64) -> Value {
    json!({
        "state": "apply",
        "auto-prompt": { "ays": "ays_yes" },
        "state-controls": { "confirm": confirm_s },
        "message": format!("{OURS}{token}"),
    })
}

/// Applies it for good: it puts back what another one left.
pub fn apply_for_good() -> Value {
    build_state_request("apply")
}

/// Confirms a revision that waits for it.
pub fn build_confirm_request() -> Value {
    build_state_request("confirm_yes")
}

/// Has it rolled back at once.
pub fn take_back() -> Value {
    build_state_request("confirm_no")
}

/// Saves what runs.
pub fn build_save_request() -> Value {
    build_state_request("save")
}

fn build_state_request(word: &str) -> Value {
    json!({ "state": word, "auto-prompt": { "ays": "ays_yes" } })
}

/// What has to be patched, one after the other, so that what these edits touched is again as it
/// was: settings of ports, and profiles. What others changed elsewhere since stays.
pub fn build_rollback_patches(edits: &[CumulusEdit], now: &Value, was: &Value) -> Vec<Value> {
    let (mut gone, mut there) = (Map::new(), Map::new());
    for place in list_touched_places(edits) {
        match (find_at(now, place), find_at(was, place)) {
            (here, before) if here == before => {}
            (Some(here @ Value::Object(_)), Some(before @ Value::Object(_))) => {
                let (below_gone, below_there) = diff_json_trees(here, before);
                for (tree, below) in [(&mut gone, below_gone), (&mut there, below_there)] {
                    if !below.is_empty() {
                        insert_tree_value(tree, place, below.into());
                    }
                }
            }
            (_, Some(before)) => insert_tree_value(&mut there, place, before.clone()),
            (_, None) => insert_tree_value(&mut gone, place, Value::Null),
        }
    }
    let mut patches = Vec::from([gone, there]);
    patches.retain(|tree| !tree.is_empty());
    patches.into_iter().map(Value::Object).collect()
}

fn find_at<'t>(tree: &'t Value, place: &[String]) -> Option<&'t Value> {
    place.iter().try_fold(tree, |tree, word| tree.get(word))
}

/// `interface swp1 link mtu`, `qos pfc PROFILE`: above them other settings lie, some of which are
/// not even read.
fn list_touched_places(edits: &[CumulusEdit]) -> BTreeSet<&[String]> {
    let mut places = BTreeSet::new();
    for edit in select_effective_edits(edits) {
        let is_of_port = edit.path.first().is_some_and(|word| word == "interface");
        let depth = if is_of_port { 4 } else { 3 };
        places.insert(&edit.path[..edit.path.len().min(depth)]);
    }
    places
}

/// What is there and was not, and what was there and is not.
fn diff_json_trees(now: &Value, was: &Value) -> (Map<String, Value>, Map<String, Value>) {
    let empty = Map::new();
    let (now, was) = (
        now.as_object().unwrap_or(&empty),
        was.as_object().unwrap_or(&empty),
    );
    let (mut gone, mut there) = (Map::new(), Map::new());
    for key in now.keys().chain(was.keys()).collect::<BTreeSet<_>>() {
        match (now.get(key), was.get(key)) {
            (here, before) if here == before => {}
            (Some(here @ Value::Object(_)), Some(before @ Value::Object(_))) => {
                let (below_gone, below_there) = diff_json_trees(here, before);
                for (tree, below) in [(&mut gone, below_gone), (&mut there, below_there)] {
                    if !below.is_empty() {
                        tree.insert(key.clone(), below.into());
                    }
                }
            }
            (_, Some(before)) => drop(there.insert(key.clone(), before.clone())),
            (_, None) => drop(gone.insert(key.clone(), Value::Null)),
        }
    }
    (gone, there)
}

/// Whether a port has a link, from what is asked without a revision. Newer releases have
/// `oper-status`, older ones the state of the link (a program that reads both: 5.11 splits them;
/// NVUE-API.md has the older form).
pub fn has_link(ports: &Value, port: &str) -> Fact<bool> {
    let Some(link) = ports.get(port).and_then(|port| port.get("link")) else {
        return Fact::Absent;
    };
    match (
        link.get("oper-status").and_then(Value::as_str),
        link.get("state"),
    ) {
        (Some(status), _) => Fact::Is(status == "up"),
        (None, Some(Value::Object(state))) => Fact::Is(state.contains_key("up")),
        (None, Some(Value::String(state))) => Fact::Is(state == "up"),
        _ => Fact::Absent,
    }
}

#[cfg(test)]
mod tests {
    use super::super::edit::Leaf;
    use super::*;

    #[test]
    fn states_are_read_as_what_runs_then() {
        for (state, stage) in [
            ("pending", Stage::Pending),
            ("verifying", Stage::Moving),
            // Asked whether it is sure, which it is answered beforehand.
            ("ays", Stage::Moving),
            ("ays_fail", Stage::Refused),
            ("confirm", Stage::Waits),
            ("confirm_no", Stage::GoesBack),
            ("confirm_fail", Stage::TakenBack),
            ("applied_and_saved", Stage::Applied),
            ("invalid", Stage::Refused),
            ("apply_fail", Stage::Broken),
            ("something new", Stage::Broken),
        ] {
            assert_eq!(Stage::of(state), stage, "{state}");
        }
        let in_the_way = |state| Stage::of(state).is_in_the_way();
        assert!(in_the_way("apply") && in_the_way("confirm") && in_the_way("confirm_no"));
        assert!(!in_the_way("pending") && !in_the_way("applied") && !in_the_way("apply_fail"));
    }

    #[test]
    fn a_revision_is_read_in_both_forms_and_knows_whose_it_is() {
        let told = json!({ "state": "invalid", "transition": { "issue": { "0": { "message": "Config invalid at x: no\n" } } } });
        let one = NvueRevision::of("6", &told).unwrap();
        assert_eq!(
            (one.stage, one.issues.as_str(), one.token()),
            (Stage::Refused, "Config invalid at x: no", None)
        );
        assert_eq!(NvueRevision::of("6", &json!({ "6": told })).unwrap(), one);
        let applied = build_apply_request("run-3-1", 90);
        assert_eq!(applied["state-controls"]["confirm"], 90);
        let all = json!({ "applied": { "state": "applied" }, "7": { "state": "confirm", "message": applied["message"] }, "8": [] });
        let all = NvueRevision::all(&all);
        assert_eq!(all.len(), 1);
        assert_eq!((all[0].id.as_str(), all[0].token()), ("7", Some("run-3-1")));
        assert_eq!(
            all[0].described(),
            "revision 7 (confirm, \"railwright rollback run-3-1\")"
        );
        assert_eq!(
            parse_created_revision_id(&json!({ "changeset/cumulus/2026_1": {} })).unwrap(),
            "changeset/cumulus/2026_1"
        );
        for odd in [json!(null), json!([1]), json!("x"), json!({ "state": 3 })] {
            assert_eq!(
                (
                    NvueRevision::of("1", &odd),
                    parse_created_revision_id(&json!(null))
                ),
                (None, None),
                "{odd}"
            );
        }
    }

    #[test]
    fn what_goes_is_patched_before_what_comes() {
        let edit = |path: &[&str], value| CumulusEdit {
            path: path.iter().map(|w| (*w).to_owned()).collect(),
            value,
            copied: false,
            missing: false,
        };
        let edits = [
            edit(
                &["interface", "swp1", "link", "mtu"],
                Some(Leaf::Number(9000)),
            ),
            edit(&["qos", "pfc", "p"], None),
        ];
        let expected = [
            json!({ "qos": { "pfc": { "p": null } } }),
            json!({ "interface": { "swp1": { "link": { "mtu": 9000 } } } }),
        ];
        assert_eq!(build_revision_patches(&edits), expected);
    }

    #[test]
    fn what_was_is_patched_back_and_what_others_changed_elsewhere_stays() {
        let edit = |path: &str, value| CumulusEdit {
            path: path.split(' ').map(str::to_owned).collect(),
            value,
            copied: false,
            missing: false,
        };
        let edits = [
            edit("interface swp1 link mtu", Some(Leaf::Number(9000))),
            edit(
                "interface swp1 qos pfc profile",
                Some(Leaf::Word("p".into())),
            ),
            edit("interface swp3 link mtu", Some(Leaf::Number(9000))),
            edit("qos pfc p cable-length", Some(Leaf::Number(40))),
            edit("qos pfc p switch-priority 3", Some(Leaf::Entry {})),
            edit(
                "qos traffic-pool roce memory-percent",
                Some(Leaf::Number(50)),
            ),
        ];
        let was = json!({
            "interface": { "swp1": { "link": { "mtu": 9216 } }, "swp2": { "link": { "mtu": 1 } } },
            "qos": { "traffic-pool": { "roce": { "memory-percent": 20 } } },
        });
        let now = json!({
            "interface": {
                "swp1": { "link": { "mtu": 9000 }, "qos": { "pfc": { "profile": "p" } } },
                "swp2": { "link": { "mtu": 2 } },
                "swp3": { "link": { "mtu": 9000, "state": { "up": {} } } },
            },
            "qos": {
                "pfc": { "p": { "cable-length": 40, "switch-priority": { "3": {} } }, "theirs": {} },
                "traffic-pool": { "roce": { "memory-percent": 50 } },
            },
        });
        let gone = json!({
            "interface": { "swp1": { "qos": { "pfc": null } }, "swp3": { "link": { "mtu": null } } },
            "qos": { "pfc": { "p": null } },
        });
        let there = json!({
            "interface": { "swp1": { "link": { "mtu": 9216 } } },
            "qos": { "traffic-pool": { "roce": { "memory-percent": 20 } } },
        });
        assert_eq!(
            build_rollback_patches(&edits, &now, &was),
            [gone, there.clone()]
        );
        assert_eq!(
            build_rollback_patches(&edits, &was, &was),
            Vec::<Value>::new()
        );
        assert_eq!(build_rollback_patches(&edits, &json!(null), &was), [there]);
    }

    #[test]
    fn a_link_is_read_from_new_and_old_releases() {
        let ports = json!({
            "swp1": { "link": { "oper-status": "up", "admin-status": "up" } }, "swp2": { "link": { "oper-status": "down", "state": { "up": {} } } },
            "swp3": { "link": { "state": { "up": {} } } }, "swp4": { "link": { "state": { "down": {} } } }, "swp5": { "link": {} }, "swp6": {},
        });
        let found: Vec<Fact<bool>> = (1..=7)
            .map(|n| has_link(&ports, &format!("swp{n}")))
            .collect();
        let (up, down) = (Fact::Is(true), Fact::Is(false));
        assert_eq!(
            found,
            [
                up.clone(),
                down.clone(),
                up,
                down,
                Fact::Absent,
                Fact::Absent,
                Fact::Absent
            ]
        );
    }
}
