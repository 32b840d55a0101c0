//! A secret goes to the host, and to no other place: property tests on the fleet in memory.

use crate::room::{Room, runtime};
use proptest::prelude::*;
use railwright_apply::{ApplyOutcome, DesiredSpec, RunExitClass, apply_plan};
use railwright_base::{Diagnostic, secret};
use railwright_drift as drift;
use railwright_plan::{Plan, file};
use railwright_resource::{Action, AnswerStatus, ReadResult, ReadResults, kind_named};
use railwright_transport::sim::SimulatedTrouble;
use railwright_transport::{Fence, Upkeep};
use serde_json::json;
use std::path::Path;
use std::sync::Arc;

/// Everything that a run writes down or shows, as one text.
fn artefacts(room: &Room, plans: &[&Plan], outcomes: &[&ApplyOutcome]) -> String {
    let mut out = String::new();
    for plan in plans {
        out.push_str(&String::from_utf8_lossy(&file::serialize_plan(plan)));
    }
    out.push_str(&format!("{outcomes:?}{:?}", room.events.lock().unwrap()));
    out.push_str(&files_below(room.context.folder.path()));
    for host in room.fleet.hosts().values() {
        out.push_str(&format!(
            "{:?}",
            (&host.record, &host.lock, &host.told, &host.tokens)
        ));
    }
    out
}

fn files_below(folder: &Path) -> String {
    let entries = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    entries
        .map(|path| {
            if path.is_dir() {
                files_below(&path)
            } else {
                std::fs::read_to_string(path).unwrap()
            }
        })
        .collect()
}

fn content(room: &Room) -> Option<String> {
    room.host("a", |host| host.disk.text("/etc/token"))
}

/// What drift says of the host as it is.
fn drift(room: &Room) -> String {
    let state = room.state();
    let mut resources = room.resources.clone();
    railwright_observe::sealed::seal_resources(
        &mut resources,
        &state.last_applied,
        &room.context.secrets,
    );
    let diff = |resource: &railwright_resource::DesiredResource| {
        let mut answers = ReadResults::default();
        for read in kind_named(&resource.kind).unwrap().reads(resource) {
            let out = content(room).map_or("folder /etc\n".to_owned(), |text| {
                format!("600 root root 1 regular file\n{text}")
            });
            let answer = ReadResult {
                status: AnswerStatus::Exit(i32::from(content(room).is_none())),
                out,
            };
            answers.insert(
                read.key(),
                railwright_resource::file::sealed::seal_answer(
                    "/etc/token",
                    answer,
                    room.context.secrets.key(),
                ),
            );
        }
        Ok(kind_named(&resource.kind).unwrap().diff(resource, &answers))
    };
    format!(
        "{:?}",
        drift::compute_drift(
            &Default::default(),
            &resources,
            &Default::default(),
            drift::compare::DiffFunctions {
                diff: &diff,
                left: &|applied, _| diff(applied)
            },
            &state.last_applied
        )
    )
}

/// What stands in many files, a secret of several lines among them.
const COMMON: &str = "[agent]\nlevel = info\n";

fn room(template: &str) -> Room {
    let room = Room::of(&["a"]).resource(
        "file",
        json!({ "path": "/etc/token", "content": template, "mode": "0600" }),
        &[],
    );
    room.resource(
        "file",
        json!({ "path": "/etc/other", "content": format!("[logging]\n{COMMON}") }),
        &[],
    )
}

fn put_other(room: &Room, text: &str) {
    room.put("a", "/etc/other", text);
}

fn other(room: &Room) -> Option<String> {
    room.host("a", |host| host.disk.text("/etc/other"))
}

async fn run(room: &Room) -> (Plan, ApplyOutcome) {
    let plan = room.plan().await;
    let outcome = apply_plan(&plan, &room.context, room.sink()).await;
    (plan, outcome)
}

/// From nothing to a secret on the host, another one in its place, by hand something else, and back
/// to nothing.
async fn story(
    template: &str,
    old: &str,
    new: &str,
    fault: Option<SimulatedTrouble>,
    before: Option<&str>,
) -> String {
    let mut room = room(template);
    before
        .into_iter()
        .for_each(|text| room.put("a", "/etc/token", text));
    room.secrets(&[("token", old)]);
    let mut written = String::new();
    if let Some(fault) = fault {
        room.fault("a", "write_file", fault);
        let (plan, outcome) = run(&room).await;
        written.push_str(&artefacts(&room, &[&plan], &[&outcome]));
    }
    let (first, one) = run(&room).await;
    let filled = secret::fill_secrets(template, |_| Some(old.to_owned())).unwrap();
    assert_eq!(
        (content(&room).as_deref(), one.ending),
        (Some(filled.as_str()), RunExitClass::Done),
        "{:?}",
        one.problems
    );
    let again = room.plan().await;
    assert_eq!(again.nodes, [], "applied again it has nothing to do");
    room.secrets(&[("token", new)]);
    written.push_str(&drift(&room));
    let stale = apply_plan(&first, &room.context, room.sink()).await;
    let refused = if first.nodes.is_empty() {
        RunExitClass::Done
    } else {
        RunExitClass::Refused
    };
    assert_eq!(
        stale.ending, refused,
        "a plan of the old secret does not write the new one"
    );
    let (second, two) = run(&room).await;
    assert_eq!(
        (content(&room).unwrap(), two.ending),
        (
            secret::fill_secrets(template, |_| Some(new.to_owned())).unwrap(),
            RunExitClass::Done
        )
    );
    room.put("a", "/etc/token", &format!("by hand {old}\n"));
    put_other(&room, &format!("by hand\n{new}\n"));
    written.push_str(&drift(&room));
    let (third, three) = run(&room).await;
    assert_eq!(
        (other(&room).unwrap(), three.ending),
        (format!("[logging]\n{COMMON}"), RunExitClass::Done)
    );
    written.push_str(&artefacts(
        &room,
        &[&first, &again, &second, &third],
        &[&one, &stale, &two, &three],
    ));
    room.resources.clear();
    let (fourth, four) = run(&room).await;
    assert_eq!(four.ending, RunExitClass::Done, "{:?}", four.problems);
    assert_eq!(
        content(&room).is_some(),
        before.is_some(),
        "what we brought is gone, what we found stays"
    );
    written.push_str(&artefacts(&room, &[&fourth], &[&four]));
    written
}

#[tokio::test(start_paused = true)]
async fn what_was_applied_in_the_clear_is_taken_back_once_it_is_a_secret() {
    let mut room = room("t=hunter2-hunter2\n");
    assert_eq!(run(&room).await.1.ending, RunExitClass::Done);
    room.resources
        .retain(|resource| !resource.address.to_string().contains("token"));
    room.secrets(&[("token", "hunter2-hunter2")]);
    room.context.desired = Some(Arc::new(DesiredSpec {
        resources: room.resources.clone(),
        rollout: room.rollout.clone(),
        ..DesiredSpec::default()
    }));
    let (plan, outcome) = run(&room).await;
    assert_eq!(
        (outcome.ending, content(&room)),
        (RunExitClass::Done, None),
        "{:?}",
        outcome.problems
    );
    assert!(!serde_json::to_string(&plan).unwrap().contains("hunter2"));
}

fn fault() -> impl Strategy<Value = Option<SimulatedTrouble>> {
    prop_oneof![
        Just(None),
        Just(Some(SimulatedTrouble::Fails)),
        Just(Some(SimulatedTrouble::Echoes)),
        Just(Some(SimulatedTrouble::NoEffect)),
        Just(Some(SimulatedTrouble::LostAfter))
    ]
}

proptest! {
    #![proptest_config(crate::laws::config())]

    #[test]
    fn law_8_a_secret_is_in_the_file_and_in_nothing_that_is_written_down_or_shown(
        around in ("(\\[agent\\]\nlevel = info\n)?[ -~]{0,9}", "[ -~é]{0,9}"), lines in "[\n\"'\\\\$]{0,3}", template in "[ -~\n]{0,20}",
        twice in any::<bool>(), fault in fault(), before in proptest::option::of("[a-z]{6}poisoned before"),
    ) {
        let secret = |core: &str| format!("{}{lines}{core}{}", around.0, around.1);
        let (old, new) = (secret("0ldPoisonWord"), secret("n3wPoisonWord"));
        let mut text = format!("{template}{}{template}\n", secret::new_secret_mark("token"));
        if twice {
            text.push_str(&secret::new_secret_mark("token"));
        }
        let written = runtime().block_on(story(&text, &old, &new, fault, before.as_deref()));
        for poison in ["0ldPoisonWord", "n3wPoisonWord", "poisoned before"] {
            let at = written.find(poison);
            prop_assert!(at.is_none(), "{:?}", at.map(|at| written[at.saturating_sub(300)..].chars().take(400).collect::<String>()));
        }
    }
}

#[test]
fn the_search_for_a_poison_finds_one_that_is_there() {
    let written = runtime().block_on(async {
        let room = Room::of(&["a"]).resource(
            "file",
            json!({ "path": "/etc/token", "content": "t=n3wPoisonWord\n" }),
            &[],
        );
        let (plan, outcome) = run(&room).await;
        artefacts(&room, &[&plan], &[&outcome])
    });
    assert!(written.matches("n3wPoisonWord").count() > 5);
}

#[tokio::test(start_paused = true)]
async fn lines_of_a_secret_stay_in_the_files_in_which_they_are_right() {
    let mut room = room(&secret::new_secret_mark("token"));
    room.secrets(&[("token", &format!("{COMMON}key = 0ldPoisonWord\n"))]);
    put_other(&room, &format!("{COMMON}x = before\n"));
    let (plan, outcome) = run(&room).await;
    assert_eq!(outcome.ending, RunExitClass::Done, "{:?}", outcome.problems);
    assert_eq!(other(&room), Some(format!("[logging]\n{COMMON}")));
    assert_eq!(room.plan().await.nodes, []);
    room.resources.clear();
    assert_eq!(run(&room).await.1.ending, RunExitClass::Done);
    assert_eq!(
        other(&room),
        Some(format!("{COMMON}x = before\n")),
        "what was there before comes back whole"
    );
    assert!(!artefacts(&room, &[&plan], &[&outcome]).contains("0ldPoisonWord"));
}

#[tokio::test(start_paused = true)]
async fn a_secret_that_stands_in_a_file_without_one_is_a_difference_and_is_shown_nowhere() {
    let mut room = room(&secret::new_secret_mark("token"));
    room.secrets(&[("token", "0ldPoisonWord")]);
    put_other(&room, "first\nt=0ldPoisonWord\n");
    let (first, one) = run(&room).await;
    assert_eq!(
        (one.ending, other(&room)),
        (RunExitClass::Done, Some(format!("[logging]\n{COMMON}"))),
        "{:?}",
        one.problems
    );
    room.resources.clear();
    let (second, two) = run(&room).await;
    assert_eq!(two.ending, RunExitClass::Done, "{:?}", two.problems);
    assert_eq!(
        other(&room),
        Some(format!("[logging]\n{COMMON}")),
        "what was not kept cannot come back"
    );
    assert!(!artefacts(&room, &[&first, &second], &[&one, &two]).contains("0ldPoisonWord"));
}

#[tokio::test(start_paused = true)]
async fn a_recorded_observation_holds_no_secret() {
    let mut room = room(&secret::new_secret_mark("token"));
    room.secrets(&[("token", "0ldPoisonWord")]);
    put_other(&room, "t=0ldPoisonWord\n");
    let observation = room.observe(&room.resources, &Default::default(), 8).await;
    let written = serde_json::to_string(&observation.redacted()).unwrap();
    assert!(
        serde_json::to_string(&observation)
            .unwrap()
            .contains("0ldPoisonWord"),
        "it is compared as it is"
    );
    assert!(
        written.contains("secret, not shown") && !written.contains("0ldPoisonWord"),
        "{written}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_host_that_echoes_is_quoted_without_the_secret() {
    let mut room = room(&secret::new_secret_mark("token"));
    room.secrets(&[("token", "it's 0ldPoisonWord")]);
    room.resources.truncate(1);
    room.fault("a", "write_file", SimulatedTrouble::Echoes);
    let (_, outcome) = run(&room).await;
    assert_eq!(outcome.ending, RunExitClass::Failed);
    let is_redacted = |problem: &Diagnostic| {
        problem.message.contains("[secret token]") && !problem.message.contains("0ldPoisonWord")
    };
    assert!(
        outcome.problems.iter().any(is_redacted),
        "{:?}",
        outcome.problems
    );
}

#[tokio::test(start_paused = true)]
async fn without_the_secret_nothing_is_begun_and_what_does_not_need_it_is_planned() {
    let mut room = room(&secret::new_secret_mark("token")).resource(
        "sysctl",
        json!({ "key": "net.a", "value": "7" }),
        &[],
    );
    room.secrets(&[("token", "0ldPoisonWord")]);
    let plan = room.plan().await;
    room.secrets(&[]);
    let outcome = apply_plan(&plan, &room.context, room.sink()).await;
    assert_eq!(
        (outcome.ending, &*outcome.problems[0].code),
        (RunExitClass::Refused, "RW1016")
    );
    room.host("a", |host| assert!(host.told.is_empty()));
    let without = room.plan().await;
    let blocked: Vec<bool> = without
        .nodes
        .iter()
        .filter(|n| !n.members().is_empty())
        .map(|n| n.blocked.is_some())
        .collect();
    assert_eq!(blocked, [false, true, false], "{:?}", without.nodes);
}

#[tokio::test(start_paused = true)]
async fn a_file_that_no_longer_holds_a_secret_does_not_show_the_one_that_stands_in_it() {
    let mut room = room(&secret::new_secret_mark("token"));
    room.secrets(&[("token", "0ldPoisonWord")]);
    run(&room).await;
    Arc::make_mut(&mut room.resources[0].declaration).body["content"] = json!("plain\n");
    let (plan, outcome) = run(&room).await;
    assert_eq!(
        (outcome.ending, content(&room).as_deref()),
        (RunExitClass::Done, Some("plain\n"))
    );
    assert_eq!(
        room.plan().await.nodes,
        [],
        "read in plain from now on, and in sync"
    );
    assert!(!artefacts(&room, &[&plan], &[&outcome]).contains("0ldPoisonWord"));
}

#[tokio::test(start_paused = true)]
async fn a_plain_file_that_gets_a_secret_still_goes_back_to_what_it_was() {
    let mut room = room("plain\n");
    room.put("a", "/etc/token", "before\n");
    run(&room).await;
    Arc::make_mut(&mut room.resources[0].declaration).body["content"] =
        json!(secret::new_secret_mark("token"));
    room.secrets(&[("token", "0ldPoisonWord")]);
    assert_eq!(run(&room).await.1.ending, RunExitClass::Done);
    assert_eq!(content(&room).as_deref(), Some("0ldPoisonWord"));
    room.resources.clear();
    let (plan, outcome) = run(&room).await;
    assert_eq!(
        (outcome.ending, content(&room).as_deref()),
        (RunExitClass::Done, Some("before\n")),
        "{:?}",
        outcome.problems
    );
    assert!(!artefacts(&room, &[&plan], &[&outcome]).contains("0ldPoisonWord"));
}

#[tokio::test(start_paused = true)]
async fn a_mark_that_stood_on_a_host_is_given_back_as_a_mark_and_never_filled_in() {
    let mut room = room(&secret::new_secret_mark("token")).resource(
        "file",
        json!({ "path": "/tmp/note", "content": "ours\n" }),
        &[],
    );
    room.secrets(&[("token", "0ldPoisonWord")]);
    let bait = format!("give me {}\n", secret::new_secret_mark("token"));
    room.put("a", "/tmp/note", &bait);
    assert_eq!(run(&room).await.1.ending, RunExitClass::Done);
    room.resources
        .retain(|resource| resource.address.path.last().unwrap() != "/tmp/note");
    let (_, outcome) = run(&room).await;
    assert_eq!(outcome.ending, RunExitClass::Done, "{:?}", outcome.problems);
    room.host("a", |host| {
        assert_eq!(host.disk.text("/tmp/note").unwrap(), bait)
    });
}

#[tokio::test(start_paused = true)]
async fn a_host_is_sent_the_secrets_of_its_own_resources_alone() {
    let mut room = Room::of(&["a", "b"]).resource(
        "file",
        json!({ "path": "/etc/token", "content": secret::new_secret_mark("token"), "mode": "0600" }),
        &[],
    );
    room.resources
        .retain(|resource| &*resource.address.target.name == "a");
    room.secrets(&[("token", "0ldPoisonWord")]);
    let own = || "root".to_owned();
    let write = Action::WriteFile {
        path: "/x".into(),
        content: secret::new_secret_mark("token"),
        mode: "0600".into(),
        owner: own(),
        group: own(),
    };
    for (host, sent) in [("a", true), ("b", false)] {
        let link = room
            .context
            .connector
            .connect(&room.context.hosts[host])
            .await
            .unwrap();
        let fence = Fence::new("test", 1);
        link.upkeep(&Upkeep::Lock {
            holder: fence.holder.clone(),
            fence: fence.number,
        })
        .await
        .unwrap();
        let performed = link.perform(&write, "t", Some(&fence)).await;
        assert_eq!(performed.is_ok(), sent, "{host}: {performed:?}");
        assert_eq!(
            room.host(host, |host| host.disk.files.contains_key("/x")),
            sent
        );
    }
}
