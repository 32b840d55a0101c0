//! Hosts that hang delay nobody else, and nobody is connected to twice. Told by the order of
//! events: what hangs is let go only when everybody else has answered.

use crate::a_read;
use crate::server::Server;
use railwright_base::Target;
use railwright_observe::{HostRequest, ObservationEvent, observe_hosts};
use railwright_resource::{AnswerStatus, Read};
use railwright_transport::{SshAccess, TargetAccess, TargetContact, TargetReach, new_connector};
use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Duration;

/// A port that accepts connections and says nothing, until the file is there; then they are
/// dropped.
fn silent_until(flag: PathBuf) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        let _held = listener.accept().unwrap();
        while !flag.exists() {
            std::thread::sleep(Duration::from_millis(20));
        }
    });
    port
}

/// A section that goes on until the file is there.
fn waits_for(flag: &Path) -> Read {
    Read::Command {
        script: format!(
            "echo begun; while ! [ -e '{}' ]; do sleep 0.1; done; echo let go",
            flag.display()
        ),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hosts_that_hang_delay_nobody_and_nobody_is_connected_to_twice() {
    let Some(server) = Server::start(&["ed25519"], &["LogLevel VERBOSE".to_owned()]) else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let flag = folder.path().join("everybody-else-answered");
    let fine = ["n1", "n2", "n3", "n4", "n5"];
    // Longer than any run of this test: only being let go ends what is silent.
    let access = SshAccess {
        connect_timeout_s: 120,
        ..server.access(&server.line("ed25519"))
    };
    let host = |name: &str, port: u16, reads: Vec<Read>| {
        let reach = TargetReach::Host(SshAccess {
            port,
            ..access.clone()
        });
        let access = TargetAccess {
            name: name.to_owned(),
            reach,
        };
        HostRequest { access, reads }
    };
    let before = server.log().matches("Connection from").count();
    let mut requests = vec![host("silent", silent_until(flag.clone()), vec![a_read()])];
    requests.push(host("stuck", server.port, vec![a_read(), waits_for(&flag)]));
    requests.extend(
        fine.iter()
            .map(|name| host(name, server.port, vec![a_read(), Read::Boot])),
    );
    let ends = Mutex::new(Vec::new());
    let note = |event: ObservationEvent| {
        if let ObservationEvent::Answered { host } | ObservationEvent::Failed { host, .. } = event {
            let mut ends = ends.lock().unwrap();
            ends.push(host);
            if fine.iter().all(|name| ends.iter().any(|end| end == name)) {
                fs::write(&flag, "").unwrap();
            }
        }
    };
    let connector = new_connector(TargetContact::begin());
    // Two of the three places are taken by those that hang.
    let observation = observe_hosts(&*connector, requests, 3, &note).await;
    let ends = ends.into_inner().unwrap();
    assert_eq!(
        ends[..fine.len()],
        fine,
        "everybody else was through first: {ends:?}"
    );
    let of = |name: &str| &observation.targets[&Target::host(name)];
    for name in fine.iter().chain([&"stuck"]) {
        assert!(of(name).problem.is_none(), "{name}: {:?}", of(name).problem);
        assert!(
            of(name)
                .answers
                .output(&a_read())
                .unwrap()
                .1
                .contains("root:"),
            "{name}"
        );
    }
    let stuck = of("stuck").answers.get(&waits_for(&flag)).unwrap();
    assert_eq!(
        (stuck.status.clone(), stuck.out.as_str()),
        (AnswerStatus::Exit(0), "begun\nlet go\n"),
        "it was let go, not given up"
    );
    assert_eq!(
        of("silent")
            .problem
            .as_ref()
            .map(|problem| problem.code.as_str()),
        Some("RW0401")
    );
    let log = server.log();
    assert_eq!(
        log.matches("Connection from").count() - before,
        fine.len() + 1,
        "one connection each: {log}"
    );
    assert_eq!(
        log.matches("Starting session").count(),
        fine.len() + 1,
        "and one program each: {log}"
    );
}
