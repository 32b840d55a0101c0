//! Two faults that broke one host a run: a failed gate that later runs forgot, and hosts that were
//! down and did not count. Over real OpenSSH servers.

use crate::machine::scrub;
use crate::rig::Host;
use crate::server::Server;
use crate::support::Place;

/// Hosts behind servers of their own, and an inventory of them whose module disturbs each of them
/// once.
struct Fleet {
    place: Place,
    hosts: Vec<(Host, Server)>,
}

/// What takes a host out of service and does not pass its gate until `/etc/repaired` is there.
const BREAKS: &str = "module: story
summary: a change after which no host is well
resources:
  - id: broken
    command: { name: break, run: 'touch /etc/broken', disruption: drain, read: { probe: 'test -e /etc/broken' } }
verify:
  - id: well
    run: |
      if [ -e /etc/broken ] && ! [ -e /etc/repaired ]; then echo broken; else echo ok; fi
    expect: ok
";

impl Fleet {
    /// These hosts, of which a `dead-` one lets everybody log in and answers nothing, and one that
    /// nobody answers for where it is expected.
    fn start(names: &[&str], silent: Option<&str>) -> Option<Fleet> {
        let place = Place::new();
        let mut spec = "cluster: night\n\
                        fabric: { kind: none }\n\
                        ssh: { user: root, host_keys: known_hosts, identities: [ID] }\n\
                        rollout: { canary: 1, max_unavailable: 1, max_disruption: drain }\n\
                        modules: { story: { enabled: true } }\n\
                        nodes:\n"
            .to_owned();
        let (mut hosts, mut known, mut identities) = (Vec::new(), String::new(), Vec::new());
        for name in names {
            let host = Host::start(&format!("out of service, {name}"), &[])?;
            let enter = match name.starts_with("dead-") {
                true => "ForceCommand /bin/false".to_owned(),
                false => format!(
                    "ForceCommand exec {} /bin/sh -c \"$SSH_ORIGINAL_COMMAND\"",
                    host.entry()
                ),
            };
            let server = Server::start(&["ed25519"], &[enter])?;
            known.push_str(&format!("{}\n", server.line("ed25519")));
            place.write(
                &format!("inv/id_{name}"),
                std::fs::read(server.path("id")).unwrap(),
            );
            identities.push(format!("id_{name}"));
            spec.push_str(&format!(
                "  - {{ name: {name}, ssh: {{ address: 127.0.0.1, port: {} }} }}\n",
                server.port
            ));
            hosts.push((host, server));
        }
        // A port that was free a moment ago: nobody listens there.
        let free = std::net::TcpListener::bind("127.0.0.1:0")
            .unwrap()
            .local_addr()
            .unwrap()
            .port();
        silent.iter().for_each(|name| {
            spec.push_str(&format!(
                "  - {{ name: {name}, ssh: {{ address: 127.0.0.1, port: {free} }} }}\n"
            ))
        });
        place.write(
            "inv/cluster.yaml",
            spec.replace("ID", &identities.join(", ")),
        );
        place.write("inv/known_hosts", known);
        place.write("inv/modules/story/module.yaml", BREAKS);
        Some(Fleet { place, hosts })
    }

    fn run(&self, words: &[&str]) -> String {
        scrub(&self.place.run(words))
    }

    /// Which hosts were disturbed.
    fn disturbed(&self) -> Vec<bool> {
        self.hosts
            .iter()
            .map(|(host, _)| host.sh("test -e /etc/broken").0 == 0)
            .collect()
    }
}

#[test]
fn a_timer_that_applies_again_and_again_breaks_one_host_and_not_one_a_run() {
    let Some(fleet) = Fleet::start(&["h1", "h2"], None) else {
        return;
    };
    for round in 0..3 {
        let applied = fleet.run(&["apply", "inv", "--yes"]);
        assert!(
            applied.ends_with("--- exit 5 ---\n") && applied.contains("GATE FAILED"),
            "{round}: {applied}"
        );
        assert_eq!(fleet.disturbed(), [true, false], "{round}");
    }
    let plan = fleet.run(&["plan", "inv"]);
    assert!(
        plan.contains("OUT OF SERVICE before anything is done: 1, of a budget of 1")
            && plan.contains(" ! h1 "),
        "{plan}"
    );
    assert!(!plan.contains("No changes"), "{plan}");
    // Where there is nothing to change, it is not said as if all were well.
    let narrow = fleet.run(&["plan", "inv", "--target", "host/h1"]);
    assert!(
        narrow.contains("Nothing to change, but h1 is out of service")
            && narrow.ends_with("--- exit 3 ---\n"),
        "{narrow}"
    );
    assert!(
        narrow.contains("next: railwright apply inv")
            && narrow.contains("state return-to-service inv 'h1' --reason"),
        "{narrow}"
    );
    let list = fleet.run(&["state", "list", "inv"]);
    assert!(
        list.contains("host/h1  OUT OF SERVICE  run RUN: its gate failed at 2026-01-01T00:00:00Z"),
        "{list}"
    );
    let status = fleet.run(&["rollout", "status", "inv"]);
    assert!(
        status.contains("budget   1 of at most 1 out of service (h1)")
            && status.contains("out      h1: run RUN: its gate failed"),
        "{status}"
    );
    let drift = fleet.run(&["drift", "inv"]);
    assert!(
        drift.contains("OUT OF SERVICE: counts in the budget of every run"),
        "{drift}"
    );
    // Repaired, the next apply proves it and goes on with the others.
    fleet
        .hosts
        .iter()
        .for_each(|(host, _)| drop(host.must("touch /etc/repaired")));
    let well = fleet.run(&["apply", "inv", "--yes"]);
    assert!(well.ends_with("--- exit 0 ---\n"), "{well}");
    assert_eq!(fleet.disturbed(), [true, true]);
    let plan = fleet.run(&["plan", "inv"]);
    assert!(
        plan.contains("No changes") && plan.ends_with("--- exit 0 ---\n"),
        "{plan}"
    );
}

#[test]
fn a_host_that_no_gate_passes_is_returned_to_service_by_a_decision_with_a_reason() {
    let Some(fleet) = Fleet::start(&["h1", "h2"], None) else {
        return;
    };
    assert!(
        fleet
            .run(&["apply", "inv", "--yes"])
            .ends_with("--- exit 5 ---\n")
    );
    let without = fleet.run(&["state", "return-to-service", "inv", "h1", "--reason", " "]);
    assert!(
        without.contains("RW1019") && without.ends_with("--- exit 4 ---\n"),
        "{without}"
    );
    let wrong = fleet.run(&[
        "state",
        "return-to-service",
        "inv",
        "h2",
        "--reason",
        "ticket 7",
    ]);
    assert!(
        wrong.contains("RW0656") && wrong.ends_with("--- exit 4 ---\n"),
        "{wrong}"
    );
    let returned = fleet.run(&[
        "state",
        "return-to-service",
        "inv",
        "h1",
        "--reason",
        "ticket 7",
    ]);
    assert!(
        returned.contains("h1 returned to service") && returned.ends_with("--- exit 0 ---\n"),
        "{returned}"
    );
    let plan = fleet.run(&["plan", "inv"]);
    assert!(!plan.contains("OUT OF SERVICE"), "{plan}");
}

#[test]
fn a_host_that_lets_everybody_log_in_and_answers_nothing_uses_up_the_budget() {
    let Some(fleet) = Fleet::start(&["dead-h1", "h2", "h3"], None) else {
        return;
    };
    let plan = fleet.run(&["plan", "inv"]);
    assert!(
        plan.contains(
            "OUT OF SERVICE before anything is done: 1, of a budget of 1; no other host is disturbed"
        ),
        "{plan}"
    );
    let applied = fleet.run(&["apply", "inv", "--yes"]);
    assert!(
        applied.contains("RW0620")
            && applied.contains("dead-h1 (")
            && applied.ends_with("--- exit 5 ---\n"),
        "{applied}"
    );
    assert_eq!(fleet.disturbed(), [false, false, false]);
}

#[test]
fn a_machine_that_no_gate_passed_is_out_of_service_under_its_next_name() {
    let Some(fleet) = Fleet::start(&["h1", "h2"], None) else {
        return;
    };
    assert!(
        fleet
            .run(&["apply", "inv", "--yes"])
            .ends_with("--- exit 5 ---\n")
    );
    let spec = std::fs::read_to_string(fleet.place.path().join("inv/cluster.yaml")).unwrap();
    fleet
        .place
        .write("inv/cluster.yaml", spec.replace("name: h1,", "name: hx,"));
    let plan = fleet.run(&["plan", "inv"]);
    assert!(
        plan.contains("OUT OF SERVICE before anything is done: 1, of a budget of 1")
            && plan.contains(" ! hx "),
        "{plan}"
    );
    assert!(
        fleet
            .run(&["apply", "inv", "--yes"])
            .ends_with("--- exit 5 ---\n")
    );
    assert_eq!(fleet.disturbed(), [true, false]);
}

#[test]
fn a_lost_state_folder_does_not_forget_whom_no_gate_passed() {
    let Some(fleet) = Fleet::start(&["h1", "h2"], None) else {
        return;
    };
    for round in 0..2 {
        let applied = fleet.run(&["apply", "inv", "--yes"]);
        assert!(
            applied.ends_with("--- exit 5 ---\n") && applied.contains("GATE FAILED"),
            "{round}: {applied}"
        );
        assert_eq!(fleet.disturbed(), [true, false], "{round}");
        std::fs::remove_dir_all(fleet.place.path().join("inv/.railwright")).unwrap();
    }
    // The host's own record tells.
    let plan = fleet.run(&["plan", "inv"]);
    assert!(
        plan.contains("OUT OF SERVICE before anything is done: 1, of a budget of 1")
            && plan.contains("its gate failed"),
        "{plan}"
    );
    fleet
        .hosts
        .iter()
        .for_each(|(host, _)| drop(host.must("touch /etc/repaired")));
    assert!(
        fleet
            .run(&["apply", "inv", "--yes"])
            .ends_with("--- exit 0 ---\n")
    );
    std::fs::remove_dir_all(fleet.place.path().join("inv/.railwright")).unwrap();
    let plan = fleet.run(&["plan", "inv"]);
    assert!(
        plan.contains("No changes") && !plan.contains("OUT OF SERVICE"),
        "{plan}"
    );
}

#[test]
fn a_host_that_is_down_uses_up_the_budget() {
    let Some(fleet) = Fleet::start(&["h1", "h2"], Some("h9")) else {
        return;
    };
    let plan = fleet.run(&["plan", "inv"]);
    assert!(
        plan.contains(
            "OUT OF SERVICE before anything is done: 1, of a budget of 1; no other host is disturbed"
        ),
        "{plan}"
    );
    for words in [
        &["apply", "inv", "--yes"][..],
        &["apply", "inv", "--yes", "--target", "host/h2"],
    ] {
        let applied = fleet.run(words);
        assert!(
            applied.contains("RW0620")
                && applied.contains("h9 (not reachable:")
                && applied.ends_with("--- exit 5 ---\n"),
            "{applied}"
        );
        assert_eq!(fleet.disturbed(), [false, false]);
    }
}
