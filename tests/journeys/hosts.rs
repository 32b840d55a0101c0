//! Hosts that refuse what they are told, as the person on call sees them.

use crate::machine::Machine;
use std::io::{BufRead as _, BufReader};

const PACKAGE: &str = "  - id: package\n    package: { name: no-such-thing }\n";

fn without_sources(story: &str) -> Option<Machine> {
    let machine = Machine::start(story, PACKAGE, &[])?;
    machine
        .host
        .must("rm -rf /etc/apt/sources.list /etc/apt/sources.list.d/*");
    Some(machine)
}

#[test]
fn a_package_that_nobody_has() {
    let Some(machine) = without_sources("package missing") else {
        return;
    };
    insta::assert_snapshot!(machine.run(&["apply", "inv", "--yes"]), @r##"
    $ railwright apply inv --yes
    run RUN failed: 1 failed
    next: fix what is said above, then railwright resume inv, or make a new plan
    --- stderr ---
    cluster night   inv   read 2026-01-01T00:00:00Z
    spec     DIGEST (not under version control)

    LIVE: what runs goes on; new files and packages, values, first starts of services ---------------
     + n1             package
           no-such-thing
           because  new: module story

    waves    n1   at most 1 out of service   then a gate with nothing to check (no rails, no checks)
    time     no estimate yet (no completed run)
    summary  1 resource changes, 0 in sync
    digest   DIGEST
    CLOCK  n1  reached and locked
    CLOCK  run RUN: 1 step
    CLOCK  n1  packages  FAILED
    error RW0612: install packages ended with exit status 66 (something that it needs is not there); no
              package no-such-thing in the repositories of this host
      on:     host/n1/transaction/packages
      effect: the host counts as out of service until a later run fixes it
      state:  read again, everything of this step is as it was before; the rest of this host was left
              alone
      next:   fix the cause on the host, then railwright resume inv; or correct the spec, then
              railwright plan inv
    --- exit 1 ---
    "##);
}

#[test]
fn a_package_manager_that_another_holds() {
    let Some(machine) = without_sources("package manager locked") else {
        return;
    };
    // Of one that is not there it would be told first that nobody has it.
    machine.resource("  - id: tool\n    package: { name: hostname, state: absent }\n");
    // no time instead of a minute
    machine.host.must(
        "mv /usr/bin/sleep /usr/bin/sleep.real; printf '#!/bin/sh\\n[ \"$*\" != 5 ] || set \
         0\\nexec sleep.real \"$@\"\\n' >/usr/bin/sleep; chmod +x /usr/bin/sleep",
    );
    // fcntl locks, as apt takes them
    let perl = "use Fcntl; open(F,'+>','/var/lib/dpkg/lock-frontend'); my \\$l=pack('s s l! l! \
                i',F_WRLCK,0,0,0,0); fcntl(F,F_SETLK,\\$l) or die; \\$|=1; print qq(locked\\n); \
                sleep 300";
    let mut holder = machine
        .host
        .start_shell(&format!("exec perl -e \"{perl}\""));
    let mut line = String::new();
    BufReader::new(holder.stdout.take().unwrap())
        .read_line(&mut line)
        .unwrap();
    assert_eq!(line, "locked\n");
    let screen = machine.run(&["apply", "inv", "--yes"]);
    holder.kill().unwrap();
    holder.wait().unwrap();
    insta::assert_snapshot!(screen, @r##"
    $ railwright apply inv --yes
    run RUN failed: 1 failed
    next: fix what is said above, then railwright resume inv, or make a new plan
    --- stderr ---
    cluster night   inv   read 2026-01-01T00:00:00Z
    spec     DIGEST (not under version control)

    LIVE: what runs goes on; new files and packages, values, first starts of services ---------------
     ~ n1             package hostname
           state (persisted)      installed -> absent
           because  not managed yet, and differs from the spec: module story/tool

    planes   persisted: written to disk; running: in effect now; next boot: waits for a boot
    waves    n1   at most 1 out of service   then a gate with nothing to check (no rails, no checks)
    time     no estimate yet (no completed run)
    summary  1 resource changes, 0 in sync
    digest   DIGEST
    CLOCK  n1  reached and locked
    CLOCK  run RUN: 1 step
    CLOCK  n1  packages  FAILED
    error RW0612: remove packages ended with exit status 75 (another program holds the lock); the
              package manager is locked by pid PROCESS (perl); nothing was changed
      on:     host/n1/transaction/packages
      effect: the host counts as out of service until a later run fixes it
      state:  read again, everything of this step is as it was before; the rest of this host was left
              alone
      next:   when that program has ended: railwright resume inv
    --- exit 1 ---
    "##);
}

#[test]
fn a_file_system_that_is_read_only() {
    let resources = "  - id: note\n    file: { path: /etc/rails/note.conf, content: \"rails\\n\" }\n  - id: after\n    after: [note]\n    file: { path: /etc/after.conf, content: x }\n";
    let Some(machine) = Machine::start("read-only", resources, &[]) else {
        return;
    };
    machine.host.must("mkdir /etc/rails");
    machine.host.mount(&["-t", "tmpfs", "none"], "/etc/rails");
    machine.host.must("echo old >/etc/rails/note.conf");
    machine.host.mount(&["-o", "remount,ro"], "/etc/rails");
    insta::assert_snapshot!(machine.run(&["apply", "inv", "--yes"]), @r##"
    $ railwright apply inv --yes
    run RUN failed: 1 failed, 1 not begun
    next: fix what is said above, then railwright resume inv, or make a new plan
    --- stderr ---
    cluster night   inv   read 2026-01-01T00:00:00Z
    spec     DIGEST (not under version control)

    LIVE: what runs goes on; new files and packages, values, first starts of services ---------------
     ~ n1             file /etc/rails/note.conf
           content (persisted)    text changes: +1 -1 lines
           because  not managed yet, and differs from the spec: module story/note
     + n1             file /etc/after.conf
           content x, mode 0644
           because  new: module story/after, nodes[0] (inv/cluster.yaml:4)

    planes   persisted: written to disk; running: in effect now; next boot: waits for a boot
    waves    n1   at most 1 out of service   then a gate with nothing to check (no rails, no checks)
    time     no estimate yet (no completed run)
    summary  2 resources change, 0 in sync
    digest   DIGEST
    CLOCK  n1  reached and locked
    CLOCK  run RUN: 2 steps
    CLOCK  n1  file /etc/rails/note.conf  FAILED
    error RW0612: write file ended with exit status 1; it said: mktemp: failed to create directory via
              template './.rwXXXXXX': Read-only file system
      on:     host/n1/file/%2Fetc%2Frails%2Fnote.conf
      effect: the host counts as out of service until a later run fixes it
      state:  read again, everything of this step is as it was before; the rest of this host was left
              alone
      next:   fix the cause on the host, then railwright resume inv; or correct the spec, then
              railwright plan inv
    --- exit 1 ---
    "##);
    assert_eq!(
        (
            machine.file("/etc/rails/note.conf").as_deref(),
            machine.file("/etc/after.conf")
        ),
        (Some("old\n"), None)
    );
    machine.host.mount(&["-o", "remount,rw"], "/etc/rails");
    assert!(
        machine
            .run(&["resume", "inv"])
            .ends_with("--- exit 0 ---\n")
    );
    assert_eq!(
        (
            machine.file("/etc/rails/note.conf").as_deref(),
            machine.file("/etc/after.conf").as_deref()
        ),
        (Some("rails\n"), Some("x"))
    );
    // Where the host cannot even keep its lock, nothing is begun on it.
    machine.resource(&resources.replace("rails\\n", "other\\n"));
    machine
        .host
        .mount(&["-t", "tmpfs", "-o", "ro", "none"], "/var/lib/railwright");
    let said = machine.run(&["apply", "inv", "--yes"]);
    for part in [
        "error RW0609: the host's lock cannot be taken: exit status 74: chmod:",
        "it counts as out of service",
        "then railwright resume inv",
    ] {
        assert!(said.contains(part), "{said}");
    }
    assert!(!said.contains("refused"), "{said}");
    assert_eq!(
        machine.file("/etc/rails/note.conf").as_deref(),
        Some("rails\n")
    );
}
