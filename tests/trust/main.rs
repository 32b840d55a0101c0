//! An inventory is untrusted input until somebody applies it: every command of the program is run
//! over hostile inventories under `strace`, and what it starts, opens and connects to is compared
//! with a list.

// A test that cannot go on stops where it is; that is what `unwrap` says here.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

mod table;
mod trace;
mod world;

use clap::CommandFactory as _;
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use table::{ROWS, Row, Touches};
use trace::{Call, Trace};
use world::{Hostile, World};

/// What the program itself needs, whatever it is asked: libraries, itself, the clock, random
/// numbers, the limits of its control group. Four tell which machine and process holds a lock, the
/// next how much memory a command may take; the last is looked at by the C library where a thread
/// gives memory back.
const OWN_FILES: &[&str] = &[
    "/etc/ld.so.cache",
    "/etc/ld.so.preload",
    "/dev/null",
    "/dev/urandom",
    "/proc/sys/kernel/hostname",
    "/etc/machine-id",
    "/proc/sys/kernel/random/boot_id",
    "/proc/uptime",
    "/proc/meminfo",
    "/proc/sys/vm/overcommit_memory",
];
const OWN_FOLDERS: &[&str] = &[
    "/lib/",
    "/lib64/",
    "/usr/lib/",
    "/usr/lib64/",
    "/sys/fs/cgroup/",
    "/sys/devices/system/cpu/",
];
const OWN_OF_PROCESS: &[&str] = &["maps", "cgroup", "mountinfo", "stat", "status"];

fn has_strace() -> bool {
    let traces = std::process::Command::new("strace")
        .args(["-qq", "-e", "trace=none", "true"])
        .status();
    if traces.is_ok_and(|status| status.success()) {
        return true;
    }
    assert!(
        std::env::var("RAILWRIGHT_REQUIRE_RIGS").as_deref() != Ok("1"),
        "strace is required"
    );
    println!("SKIPPED: the rig `hostile inventories` is missing strace");
    false
}

/// The commands that somebody can give, by clap.
fn commands(command: &clap::Command, above: &str, found: &mut BTreeSet<String>) {
    for below in command
        .get_subcommands()
        .filter(|below| below.get_name() != "help")
    {
        let name = format!("{above}{}", below.get_name());
        if !below.has_subcommands() || !below.is_subcommand_required_set() {
            found.insert(name.clone());
        }
        commands(below, &format!("{name} "), found);
    }
}

#[test]
fn every_command_has_a_row() {
    let mut known = BTreeSet::new();
    commands(&railwright::cli::CliArguments::command(), "", &mut known);
    let rows: BTreeSet<String> = ROWS.iter().map(|row| row.command.to_owned()).collect();
    let missing: Vec<&String> = known.difference(&rows).collect();
    assert!(
        missing.is_empty(),
        "say in tests/trust/table.rs what these commands run, open and contact: {missing:?}"
    );
    let gone: Vec<&String> = rows.difference(&known).collect();
    assert!(gone.is_empty(), "there are no such commands: {gone:?}");
}

/// The commit is that of the clone around the inventory, whatever its folder looks like.
#[test]
fn the_commit_is_that_of_the_clone() {
    if !has_strace() {
        return;
    }
    let world = World::new(Hostile::Repository);
    let (_, exit, said) = world.run(&["validate", "inv", "--json"]);
    let said: serde_json::Value = serde_json::from_str(&said).unwrap();
    let origin = &said["spec"]["origin"];
    assert_eq!(
        (exit, origin["commit"].as_str(), &origin["dirty"]),
        (0, Some(&*world.commit()), &serde_json::json!(false))
    );
}

/// What never reads an inventory need not be tried.
#[test]
fn commands_without_an_inventory_take_none() {
    let root = railwright::cli::CliArguments::command();
    for row in ROWS {
        let Touches::NoInventory(why) = row.touches else {
            continue;
        };
        let command = row.command.split(' ').fold(&root, |command, name| {
            command.find_subcommand(name).unwrap()
        });
        let takes = command
            .get_arguments()
            .any(|argument| argument.get_id() == "inventory" || argument.get_id() == "plan");
        assert!(
            !takes,
            "{} takes an inventory, and its row says that it {why}",
            row.command
        );
    }
}

#[test]
fn commands_that_contact_no_target_run_nothing_and_open_nothing_outside() {
    let rows: Vec<&Row> = ROWS
        .iter()
        .filter(|row| matches!(row.touches, Touches::Nothing))
        .collect();
    run_all(&rows, &Hostile::ALL);
}

/// They may run programs and open files that the inventory names, the ones of their row and no
/// others.
#[test]
fn commands_that_contact_targets_run_what_their_row_says() {
    let rows: Vec<&Row> = ROWS
        .iter()
        .filter(|row| matches!(row.touches, Touches::Targets { .. }))
        .collect();
    run_all(&rows, &[Hostile::Repository]);
}

/// With nothing to contact, because the spec is wrong, they do neither.
#[test]
fn commands_that_contact_targets_begin_with_the_spec() {
    let rows: Vec<&Row> = ROWS
        .iter()
        .filter(|row| matches!(row.touches, Touches::Targets { .. }))
        .collect();
    run_all(&rows, &[Hostile::Wrong]);
}

/// Runs these rows over these inventories, some at a time, and tells of all that went wrong.
fn run_all(rows: &[&Row], inventories: &[Hostile]) {
    if !has_strace() {
        return;
    }
    let cases: Vec<(&Row, Hostile)> = rows
        .iter()
        .flat_map(|row| inventories.iter().map(|hostile| (*row, *hostile)))
        .collect();
    let (next, wrong) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                while let Some((row, hostile)) = cases.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let found = tried(row, *hostile);
                    wrong.lock().unwrap().extend(
                        found
                            .into_iter()
                            .map(|what| format!("{hostile:?}: {}: {what}", row.words.join(" "))),
                    );
                }
            });
        }
    });
    let wrong = wrong.into_inner().unwrap();
    assert!(
        wrong.is_empty(),
        "{} of {} cases:\n{}",
        wrong.len(),
        cases.len(),
        wrong.join("\n")
    );
}

/// What one command did that it may not.
fn tried(row: &Row, hostile: Hostile) -> Vec<String> {
    let world = World::new(hostile);
    let (trace, exit, screen) = world.run(row.words);
    let mut wrong: Vec<String> = trace
        .calls
        .iter()
        .filter_map(|call| compared(call, row, hostile, &world))
        .collect();
    let reads_inventory = row.words.contains(&"inv") && !row.is_about_state_alone();
    let spec = world.inventory().join("cluster.yaml");
    if reads_inventory
        && hostile.is_read()
        && !trace
            .calls
            .iter()
            .any(|call| matches!(call, Call::Opened(path) if *path == spec))
    {
        wrong.push(format!("it never came to read the spec: {screen}"));
    }
    if hostile == Hostile::Repository && !row.exits.contains(&exit) {
        wrong.push(format!("it ended with {exit}: {screen}"));
    }
    if let Some(word) = world.foreign_words().find(|word| screen.contains(*word)) {
        wrong.push(format!("it quotes a file outside the inventory: {word}"));
    }
    wrong
}

fn compared(call: &Call, row: &Row, hostile: Hostile, world: &World) -> Option<String> {
    let contacts = matches!(row.touches, Touches::Targets { .. }) && hostile != Hostile::Wrong;
    match call {
        Call::Ran(words) => {
            let may = match row.touches {
                Touches::Targets { runs, .. } if contacts => {
                    runs.iter().any(|program| world.is_program(words, program))
                }
                _ => false,
            };
            let of_row = if let Touches::Targets { why, .. } = row.touches {
                format!(", and its row says: {why}")
            } else {
                String::new()
            };
            (!may).then(|| format!("runs {words:?}{of_row}"))
        }
        Call::Opened(path) | Call::TriedToOpen(path) => {
            (!contacts && !is_allowed(path, world)).then(|| format!("opens {}", path.display()))
        }
        Call::Connected(to) => (!contacts).then(|| format!("connects to {to}")),
    }
}

fn is_allowed(path: &Path, world: &World) -> bool {
    let text = path.to_string_lossy();
    let of_process = || {
        let mut parts = text.strip_prefix("/proc/")?.split('/');
        let (process, file) = (parts.next()?, parts.next()?);
        let is_own = process == "self" || process.bytes().all(|byte| byte.is_ascii_digit());
        Some(is_own && parts.next().is_none() && OWN_OF_PROCESS.contains(&file))
    };
    world.given().iter().any(|folder| path.starts_with(folder))
        || path == world.top()
        || OWN_FILES.contains(&&*text)
        || OWN_FOLDERS.iter().any(|folder| text.starts_with(folder))
        || of_process().unwrap_or(false)
}

/// The trace sees what it is there for: without this, an empty one would be taken for a quiet
/// program.
#[test]
fn the_trace_sees_programs_files_and_connections() {
    if !has_strace() {
        return;
    }
    let script = "cat /etc/passwd >/dev/null; true </nowhere/at/all; exec 3<>/dev/tcp/127.0.0.1/9";
    let trace = Trace::of(
        std::process::Command::new("bash")
            .args(["-c", script])
            .get_program(),
        &["-c", script],
        |command| {
            command.env_clear().env("PATH", "/usr/bin:/bin");
        },
    );
    let has = |desired: &dyn Fn(&Call) -> bool| trace.0.calls.iter().any(desired);
    assert!(has(
        &|call| matches!(call, Call::Ran(words) if words.first().is_some_and(|word| word.ends_with("/cat")))
    ));
    assert!(has(&|call| *call == Call::Opened("/etc/passwd".into())));
    assert!(has(
        &|call| *call == Call::TriedToOpen("/nowhere/at/all".into())
    ));
    assert!(has(
        &|call| matches!(call, Call::Connected(to) if to.contains("AF_INET"))
    ));
}
