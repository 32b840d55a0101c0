//! Hosts that cannot be reached or read, as the person on call sees them.

use crate::machine::Machine;
use crate::server::{Server, keygen, public};
use crate::support::Place;
use std::io::Write as _;
use std::net::TcpListener;
use std::process::{Command, Stdio};

const NOTE: &str = "  - id: note\n    file: { path: /etc/note.conf, content: \"rails\\n\" }\n";

/// Wherever the descriptors of the program end, it says so: that keys could not be opened is not
/// told as keys that the host refused.
#[test]
fn a_program_without_descriptors_says_that_it_has_none() {
    let Some(machine) = Machine::start("no descriptors", NOTE, &[]) else {
        return;
    };
    let told = |limit: u32| {
        let plain = machine.place.command(&["plan", "inv"]);
        let mut command = Command::new("prlimit");
        command
            .arg(format!("--nofile={limit}:{limit}"))
            .arg(plain.get_program())
            .args(plain.get_args());
        command
            .current_dir(machine.place.path())
            .stdin(Stdio::null())
            .env_clear();
        command.envs(
            plain
                .get_envs()
                .filter_map(|(name, value)| Some((name, value?))),
        );
        let output = command.output().unwrap();
        let said = [output.stdout, output.stderr]
            .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
            .concat();
        assert!(!said.contains("RW0406"), "{limit}: {said}");
        said
    };
    let enough = told(39);
    assert!(enough.contains("/etc/note.conf"), "{enough}");
    // Modules lie in folders, whose reading takes as many descriptors as a connection.
    std::fs::remove_dir_all(machine.place.path().join("inv/modules")).unwrap();
    // Which of its files meets the end of the descriptors is not the same each time.
    let ends_at_key = |_| {
        let few: Vec<String> = (4..40).rev().map(told).collect();
        few.iter().any(|said| said.contains("RW0423"))
    };
    assert!(
        (0..10).any(ends_at_key),
        "no end of descriptors was met by a key"
    );
}

#[test]
fn a_host_key_that_is_unknown_wrong_or_revoked() {
    let Some(machine) = Machine::start("host keys", NOTE, &[]) else {
        return;
    };
    let key = public(&machine.server.path("host_ed25519"));
    keygen(&machine.server.path("other"), "ed25519", "");
    let other = public(&machine.server.path("other"));
    let (port, pinned) = (machine.server.port, machine.server.line("ed25519"));
    let mut screens = String::new();
    for lines in [
        String::new(),
        format!("[127.0.0.1]:{port} {other}"),
        format!("{pinned}\n@revoked * {key}"),
    ] {
        machine.pin(&lines);
        screens.push_str(&machine.run(&["plan", "inv"]).replace(&key, "KEY"));
    }
    insta::assert_snapshot!(screens, @r#"
    $ railwright plan inv
    cluster night   inv   read 2026-01-01T00:00:00Z
    spec     DIGEST (not under version control)
    Nothing could be compared with the spec: nobody knows what would change.

    UNKNOWN: could not be found out -----------------------------------------------------------------
     ? n1 the whole target   RW0402
           the host key of n1 is not known: ssh-ed25519
           SHA256:FINGERPRINT
           next: compare it on the host's console: ssh-keygen -lf /etc/ssh/ssh_host_ed25519_key.pub
           next: if it is the same, add this line to [place]/inv/known_hosts: [127.0.0.1]:PORT KEY
           next: then run the same command again

    next: fix what could not be read, then railwright plan inv
    --- exit 3 ---
    $ railwright plan inv
    cluster night   inv   read 2026-01-01T00:00:00Z
    spec     DIGEST (not under version control)
    Nothing could be compared with the spec: nobody knows what would change.

    UNKNOWN: could not be found out -----------------------------------------------------------------
     ? n1 the whole target   RW0403
           the host key of n1 is not the pinned one: ssh-ed25519
           SHA256:FINGERPRINT
           next: compare it on the console of n1: ssh-keygen -lf /etc/ssh/ssh_host_ed25519_key.pub
           next: if the host has a new key, replace line 1 of [place]/inv/known_hosts
           next: then run the same command again

    next: fix what could not be read, then railwright plan inv
    --- exit 3 ---
    $ railwright plan inv
    cluster night   inv   read 2026-01-01T00:00:00Z
    spec     DIGEST (not under version control)
    Nothing could be compared with the spec: nobody knows what would change.

    UNKNOWN: could not be found out -----------------------------------------------------------------
     ? n1 the whole target   RW0404
           the host key of n1 is revoked: ssh-ed25519 SHA256:FINGERPRINT
           next: give the host new keys (ssh-keygen -A), then pin them beside line 2 of [place]/inv/known_hosts
           next: then run the same command again

    next: fix what could not be read, then railwright plan inv
    --- exit 3 ---
    "#);
    // The plan was made while the key was valid: nothing is done behind another one.
    machine.pin(&pinned);
    assert!(
        machine
            .run(&["plan", "inv", "-o", "a.plan"])
            .ends_with("--- exit 0 ---\n")
    );
    machine.pin(&format!("[127.0.0.1]:{port} {other}"));
    insta::assert_snapshot!(machine.run(&["apply", "a.plan", "--yes"]), @r#"
    $ railwright apply a.plan --yes
    refused: nothing was changed
    --- stderr ---
    error RW0403: the host key of n1 is not the pinned one: ssh-ed25519
              SHA256:FINGERPRINT
      on:     host/n1
      effect: the host was reinstalled, or somebody else answers at its address
      state:  nothing was changed, and no run was begun
      next:   compare it on the console of n1: ssh-keygen -lf /etc/ssh/ssh_host_ed25519_key.pub
      next:   if the host has a new key, replace line 1 of [place]/inv/known_hosts
      next:   then run the same command again
    --- exit 4 ---
    "#);
    assert_eq!(machine.file("/etc/note.conf"), None);
    machine.pin(&pinned);
    assert!(
        machine
            .run(&["apply", "a.plan", "--yes"])
            .ends_with("--- exit 0 ---\n")
    );
    assert_eq!(machine.file("/etc/note.conf").as_deref(), Some("rails\n"));
}

#[test]
fn a_host_that_is_down_or_is_no_ssh_server() {
    let Some(machine) = Machine::start("host down", NOTE, &[]) else {
        return;
    };
    assert!(
        machine
            .run(&["plan", "inv", "-o", "a.plan"])
            .ends_with("--- exit 0 ---\n")
    );
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let garbage = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let _ = stream
                .unwrap()
                .write_all(b"HTTP/1.0 400 \xff\xfe\x1b[31m garbage\r\n");
        }
    });
    let nobody = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port();
    let spec = std::fs::read_to_string(machine.place.path().join("inv/cluster.yaml")).unwrap();
    let mut screens = String::new();
    for port in [nobody, garbage] {
        machine.place.write(
            "inv/cluster.yaml",
            spec.replace(&machine.server.port.to_string(), &port.to_string()),
        );
        for command in [&["plan", "inv"][..], &["drift", "inv"]] {
            screens.push_str(&machine.run(command).replace(&port.to_string(), "PORT"));
        }
    }
    insta::assert_snapshot!(screens, @r#"
    $ railwright plan inv
    cluster night   inv   read 2026-01-01T00:00:00Z
    spec     DIGEST (not under version control)
    Nothing could be compared with the spec: nobody knows what would change.

    UNKNOWN: could not be found out -----------------------------------------------------------------
     ? n1 the whole target   RW0401
           n1 is not reachable at 127.0.0.1:PORT: Connection refused (os error 111)
           next: check that it is up and that 127.0.0.1:PORT is right in the inventory
           next: then run the same command again
           next: or leave it out of a plan: --exclude n1

    next: fix what could not be read, then railwright plan inv
    --- exit 3 ---
    $ railwright drift inv
    drift inv   0 resources on 1 target   not under version control

    NOT COMPARED ------------------------------------------------------------------------------------
     ? n1 the whole target   RW0401
           n1 is not reachable at 127.0.0.1:PORT: Connection refused (os error 111)
           next: check that it is up and that 127.0.0.1:PORT is right in the inventory
           next: then run the same command again
           next: or leave it out of a plan: --exclude n1

    No drift in what could be read.
    next: fix what could not be read, then railwright drift inv
    --- exit 3 ---
    $ railwright plan inv
    cluster night   inv   read 2026-01-01T00:00:00Z
    spec     DIGEST (not under version control)
    Nothing could be compared with the spec: nobody knows what would change.

    UNKNOWN: could not be found out -----------------------------------------------------------------
     ? n1 the whole target   RW0401
           n1 is not reachable at 127.0.0.1:PORT: the server closed the connection
           next: check that it is up and that 127.0.0.1:PORT is right in the inventory
           next: then run the same command again
           next: or leave it out of a plan: --exclude n1

    next: fix what could not be read, then railwright plan inv
    --- exit 3 ---
    $ railwright drift inv
    drift inv   0 resources on 1 target   not under version control

    NOT COMPARED ------------------------------------------------------------------------------------
     ? n1 the whole target   RW0401
           n1 is not reachable at 127.0.0.1:PORT: the server closed the connection
           next: check that it is up and that 127.0.0.1:PORT is right in the inventory
           next: then run the same command again
           next: or leave it out of a plan: --exclude n1

    No drift in what could be read.
    next: fix what could not be read, then railwright drift inv
    --- exit 3 ---
    "#);
    assert_eq!(machine.file("/etc/note.conf"), None);
}

#[test]
#[ignore = "long: make test-deep"]
fn a_host_that_hangs_in_one_section_or_answers_a_gigabyte() {
    let command = |name: &str, probe: &str| {
        format!(
            "  - id: {name}\n    command: {{ name: {name}, run: \"touch /etc/{name}\", read: {{ probe: \"{probe}\" \
             }} }}\n"
        )
    };
    let resources = [
        NOTE.to_owned(),
        command("hangs", "sleep 1000"),
        command("floods", "head -c 1000000000 /dev/zero"),
    ]
    .concat();
    let Some(machine) = Machine::start("a section hangs", &resources, &[]) else {
        return;
    };
    insta::assert_snapshot!(machine.run(&["apply", "inv", "--yes"]), @r##"
    $ railwright apply inv --yes
    run RUN incomplete: 1 changed, 2 could not be found out
    next: railwright plan inv
    --- stderr ---
    cluster night   inv   read 2026-01-01T00:00:00Z
    spec     DIGEST (not under version control)

    LIVE: what runs goes on; new files and packages, values, first starts of services ---------------
     + n1             file /etc/note.conf
           content rails, mode 0644
           because  new: module story/note, nodes[0] (inv/cluster.yaml:4)

    UNKNOWN: could not be found out -----------------------------------------------------------------
     ? n1 command/floods#probe (running)
           the answer was longer than the limit
     ? n1 command/hangs#probe (running)
           the read ran past its time limit

    waves    n1   at most 1 out of service   then a gate with nothing to check (no rails, no checks)
    time     no estimate yet (no completed run)
    summary  1 resource changes, 2 unknown, 0 in sync
    digest   DIGEST
    CLOCK  n1  reached and locked
    CLOCK  run RUN: 1 step
    CLOCK  n1  file /etc/note.conf  done
    CLOCK  n1  gate: what `verify` proves, on what the hosts have
    CLOCK  n1  gate passed
    --- exit 3 ---
    "##);
    assert_eq!(
        machine.file("/etc/note.conf").as_deref(),
        Some("rails\n"),
        "what could be read was done"
    );
    assert_eq!(
        (machine.file("/etc/hangs"), machine.file("/etc/floods")),
        (None, None)
    );
}

/// Resources of many kinds, some with a package that is not there and a command that is asked for:
/// all that a host is asked travels over one connection as one program, for whatever command reads
/// it.
#[test]
fn no_host_is_connected_to_twice_for_one_plan() {
    let Some(first) = Server::start(&["ed25519"], &["LogLevel VERBOSE".to_owned()]) else {
        return;
    };
    let Some(second) = Server::start(&["ed25519"], &["LogLevel VERBOSE".to_owned()]) else {
        return;
    };
    let place = Place::new();
    let node = |name: &str, server: &Server, id: &str| {
        place.write(
            &format!("inv/{id}"),
            std::fs::read(server.path("id")).unwrap(),
        );
        format!(
            "  - {{ name: {name}, os: debian-12, ssh: {{ address: 127.0.0.1, port: {}, identities: \
             [{id}] }} }}\n",
            server.port
        )
    };
    let nodes = [node("n1", &first, "id1"), node("n2", &second, "id2")].concat();
    place.write(
        "inv/cluster.yaml",
        format!("cluster: night\nssh: {{ user: root, host_keys: known_hosts }}\nnodes:\n{nodes}"),
    );
    place.write(
        "inv/known_hosts",
        format!("{}\n{}\n", first.line("ed25519"), second.line("ed25519")),
    );
    let resources = "  - id: note\n    file: { path: /etc/note.conf, content: \"rails\\n\" }
  - id: setting\n    sysctl: { key: vm.swappiness, value: 10 }
  - id: driver\n    kernel_module: { name: rdma_cm, at_boot: true }
  - id: tool\n    package: { name: no-such-package-anywhere }
  - id: unit\n    systemd_unit: { name: nobody.service, enabled: true }
  - id: asked\n    command: { name: asked, run: \"true\", read: { probe: \"echo asked\", expect: asked } }\n";
    place.write(
        "inv/modules/story/module.yaml",
        format!("module: story\nsummary: what the story needs\nresources:\n{resources}"),
    );
    let counted = |server: &Server| {
        ["Connection from", "Starting session"].map(|words| server.log().matches(words).count())
    };
    for words in [
        &["plan", "inv", "-o", "a.plan"][..],
        &["plan", "inv"],
        &["drift", "inv"],
        &["facts", "inv", "-o", "facts.json"],
    ] {
        let before = [counted(&first), counted(&second)];
        let said = place.run(words);
        assert!(
            !said.contains("UNREACHABLE") && !said.contains("error"),
            "{said}"
        );
        for (server, before) in [&first, &second].into_iter().zip(before) {
            let after = counted(server);
            assert_eq!(
                [after[0] - before[0], after[1] - before[1]],
                [1, 1],
                "{words:?}: {said}\n{}",
                server.log()
            );
        }
    }
}
