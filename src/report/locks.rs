//! Locks for people: who has them, since when, and whether that one lives.

use super::wrap::{COLUMNS, wrap_labelled_text};
use indexmap::IndexMap;
use railwright_apply::lock_steal::{HeldLock, HostLock, Stolen, describe_heartbeat_rule};
use railwright_base::nodeset;
use railwright_base::text::{clean_line, format_duration, sanitize_text};
use railwright_state::LocalLock;
use railwright_system::identity::ProcessLiveness;
use std::collections::BTreeMap;

/// What stands in the place of a lock over NVUE.
const NOT_KEPT: &str = "keeps no lock: it is reached over NVUE, where the revisions of others are \
                        looked at before and after a change";

/// The lock on this side, then those on the hosts, hosts with the same to say in one line.
pub fn render_lock_list(here: Option<&LocalLock>, hosts: &BTreeMap<String, HostLock>) -> String {
    let mut out = match here {
        None => "here           free\n".to_owned(),
        Some(lock) => {
            let note = if lock.note.is_empty() {
                String::new()
            } else {
                format!(", {}", lock.note)
            };
            let age = match lock.age_s {
                Some(age) => format!("; seen alive {} ago", format_duration(age)),
                None => String::new(),
            };
            render_lock_line("here", &format!("{}{note}{age}", lock.holder))
        }
    };
    for (hosts, text) in fold_hosts_by_text(
        hosts
            .iter()
            .map(|(host, lock)| (host, describe_host_lock(lock))),
    ) {
        out.push_str(&render_lock_line(&hosts, &text));
    }
    if hosts
        .values()
        .any(|lock| matches!(lock, HostLock::Held(held) if !held.may_be_alive()))
    {
        out.push_str(&format!("\n{}\n", describe_heartbeat_rule()));
    }
    sanitize_text(&out)
}

fn describe_host_lock(lock: &HostLock) -> String {
    match lock {
        HostLock::Free => "free".to_owned(),
        HostLock::NotKept => NOT_KEPT.to_owned(),
        HostLock::Held(held) => format!("{}; {}", held.describe(), describe_holder_liveness(held)),
        HostLock::Unknown { reason } => format!("UNKNOWN: {reason}"),
    }
}

/// What became of the locks.
pub fn render_steal_outcomes(stolen: &BTreeMap<String, Stolen>, inventory: &str) -> String {
    let mut out = String::new();
    for (hosts, text) in fold_hosts_by_text(
        stolen
            .iter()
            .map(|(host, one)| (host, describe_steal_outcome(one))),
    ) {
        out.push_str(&render_lock_line(&hosts, &text));
    }
    if stolen
        .values()
        .any(|one| matches!(one, Stolen::MayBeAlive(_)))
    {
        out.push_str(&format!(
            "\n{}\n--force does not ask\n",
            describe_heartbeat_rule()
        ));
    }
    let is_taken = stolen.values().any(|one| matches!(one, Stolen::Taken(_)));
    let is_left = stolen
        .values()
        .any(|one| matches!(one, Stolen::MayBeAlive(_) | Stolen::Unknown { .. }));
    let next = match !is_taken && is_left {
        true => format!("lock list {inventory} shows who has the locks that were not taken"),
        false => format!("plan {inventory} shows what that run left to be done"),
    };
    out.push_str(&format!("next: railwright {next}\n"));
    sanitize_text(&out)
}

fn describe_steal_outcome(one: &Stolen) -> String {
    match one {
        Stolen::Taken(held) => format!("taken away from {}", held.describe()),
        Stolen::Free => "was free".to_owned(),
        Stolen::NotKept => NOT_KEPT.to_owned(),
        Stolen::MayBeAlive(held) => format!(
            "NOT TAKEN: {}; {}",
            held.describe(),
            describe_holder_liveness(held)
        ),
        Stolen::Unknown { reason } => format!("NOT TAKEN: {reason}"),
    }
}

/// By tens of seconds, so that hosts that were asked one after the other still agree.
fn describe_holder_liveness(held: &HeldLock) -> String {
    let age = if held.age_s < 10 {
        "a moment".to_owned()
    } else {
        format_duration(held.age_s / 10 * 10)
    };
    match held.life {
        ProcessLiveness::Alive => {
            format!("its process lives on this machine; its latest heartbeat came {age} ago")
        }
        ProcessLiveness::Dead => format!("its process is gone; seen alive {age} ago"),
        ProcessLiveness::Unknown if held.may_be_alive() => format!("seen alive {age} ago"),
        ProcessLiveness::Unknown => format!("seen alive {age} ago, likely dead"),
    }
}

fn fold_hosts_by_text<'a>(
    lines: impl Iterator<Item = (&'a String, String)>,
) -> impl Iterator<Item = (String, String)> {
    let mut identical: IndexMap<String, Vec<&String>> = IndexMap::new();
    for (host, text) in lines {
        identical.entry(text).or_default().push(host);
    }
    identical
        .into_iter()
        .map(|(text, hosts)| (nodeset::fold_node_set(&hosts), text))
}

fn render_lock_line(who: &str, text: &str) -> String {
    wrap_labelled_text(&format!("{:<14} ", clean_line(who)), text, COLUMNS)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn held(age_s: u64, line: &str) -> HeldLock {
        let holder = railwright_state::LockHolder::parse(line);
        HeldLock {
            holder,
            line: line.to_owned(),
            note: "run r1".to_owned(),
            age_s,
            life: ProcessLiveness::Unknown,
            fence: 3,
        }
    }

    #[test]
    fn hosts_with_the_same_to_say_are_one_line_and_the_dead_are_told_from_the_living() {
        let ann = r#"{"who":"ann","machine":"ops1","machine_id":"m","boot_id":"b","pid_namespace":"p","process":7,"started":1,"since":"2026-01-01T00:00:00Z","command":"apply","taking":"t"}"#;
        let hosts = [
            ("n1", HostLock::Held(Box::new(held(12, ann)))),
            ("n2", HostLock::Held(Box::new(held(17, ann)))),
            ("n3", HostLock::Held(Box::new(held(7200, "x\u{1b}[2J")))),
            ("n4", HostLock::Free),
            ("leaf1", HostLock::NotKept),
            (
                "n5",
                HostLock::Unknown {
                    reason: "no route".to_owned(),
                },
            ),
        ];
        let hosts = hosts
            .into_iter()
            .map(|(host, lock)| (host.to_owned(), lock))
            .collect();
        let here = LocalLock {
            holder: "apply by ann".to_owned(),
            note: "run r1".to_owned(),
            age_s: Some(3),
        };
        insta::assert_snapshot!(render_lock_list(Some(&here), &hosts), @r##"
        here           apply by ann, run r1; seen alive 3 s ago
        leaf1          keeps no lock: it is reached over NVUE, where the revisions of others are looked at
                       before and after a change
        n[1-2]         apply by ann on ops1 (process 7) since 2026-01-01T00:00:00Z, run r1; seen alive 10 s
                       ago
        n3             `x�[2J`, run r1; seen alive 2 h ago, likely dead
        n4             free
        n5             UNKNOWN: no route

        a holder gives a heartbeat every 60 s, and is taken for dead after 180 s without
        "##);
        let stolen_of = [
            ("n1", Stolen::MayBeAlive(held(12, ann))),
            ("n2", Stolen::Taken(held(300, ann))),
            ("n3", Stolen::Free),
        ];
        let stolen_of = stolen_of
            .into_iter()
            .map(|(host, one)| (host.to_owned(), one))
            .collect();
        insta::assert_snapshot!(render_steal_outcomes(&stolen_of, "inv"), @r##"
        n1             NOT TAKEN: apply by ann on ops1 (process 7) since 2026-01-01T00:00:00Z, run r1; seen
                       alive 10 s ago
        n2             taken away from apply by ann on ops1 (process 7) since 2026-01-01T00:00:00Z, run r1
        n3             was free

        a holder gives a heartbeat every 60 s, and is taken for dead after 180 s without
        --force does not ask
        next: railwright plan inv shows what that run left to be done
        "##);
        let young: BTreeMap<String, Stolen> =
            [("n1".to_owned(), Stolen::MayBeAlive(held(12, ann)))].into();
        let not_taken = render_steal_outcomes(&young, "inv");
        assert!(
            not_taken.ends_with(
                "next: railwright lock list inv shows who has the locks that were not taken\n"
            ),
            "{not_taken}"
        );
    }
}
