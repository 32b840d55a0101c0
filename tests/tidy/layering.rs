//! Data flows one way: which crate uses which stands in the manifests, and cargo knows no circle.
//! What cargo does not check is checked here: the core is pure; the rooms of one crate use only
//! rooms below them; one crate talks to targets, one touches the clock and files of this machine,
//! one prints.

use crate::{files, is_comment, is_test, none, product_lines};

/// Rooms of `knowledge` and `jobs` from the ground up; rooms of one line may not use each other.
const FLOORS: &[&[&str]] = &[
    &["spec"],
    &["catalog", "template"],
    &["solve"],
    &["module"],
    &["rules", "translate"],
    &["job"],
    &["doctor"],
];

const PURE: &[&str] = &["base", "graph", "resource", "knowledge", "workload", "plan"];

const IMPURE_WORDS: &[&str] = &[
    "std::fs",
    "std::process",
    "std::env::",
    "TcpStream",
    "TcpListener",
    "UdpSocket",
    "SystemTime",
    "Instant::now",
    "Timestamp::now",
    "tokio::",
    "async fn",
    ".await",
    "railwright_system",
];

/// The crate of a path: `src/CRATE/...`.
fn room(path: &str) -> &str {
    path.split('/').nth(1).unwrap_or_default()
}

fn floor(room: &str) -> Option<usize> {
    FLOORS.iter().position(|rooms| rooms.contains(&room))
}

fn source() -> impl Iterator<Item = (String, String)> {
    files("src", ".rs")
        .into_iter()
        .filter(|(path, _)| path.matches('/').count() > 1 && !is_test(path))
}

#[test]
fn a_room_uses_only_rooms_below_it() {
    let mut findings = Vec::new();
    for (path, text) in source().filter(|(path, _)| ["knowledge", "jobs"].contains(&room(path))) {
        let own = path.split('/').nth(2).unwrap_or_default();
        let Some(own_floor) = floor(own) else {
            if !own.ends_with(".rs") {
                findings.push(format!("{path}: room `{own}` is not on any floor"));
            }
            continue;
        };
        for (line, code) in product_lines(&text) {
            for used in code.split("crate::").skip(1) {
                let used: String = used
                    .chars()
                    .take_while(|c| c.is_ascii_alphanumeric() || *c == '_')
                    .collect();
                if floor(&used)
                    .is_some_and(|other| other > own_floor || (other == own_floor && used != own))
                {
                    findings.push(format!("{path}:{line}: `{own}` may not use `{used}`"));
                }
            }
        }
    }
    none(&findings);
}

#[test]
fn a_pure_crate_builds_on_pure_crates() {
    let impure = ["railwright-system", "tokio", "russh", "kube"];
    let manifests = files("src", "Cargo.toml")
        .into_iter()
        .filter(|(path, _)| PURE.contains(&room(path)));
    let lines = manifests.flat_map(|(path, text)| {
        let own = text
            .lines()
            .skip_while(|line| *line != "[dependencies]")
            .skip(1)
            .take_while(|line| !line.starts_with('['));
        let used: Vec<String> = own
            .filter_map(|line| Some(line.split_once(['.', ' ', '='])?.0.to_owned()))
            .collect();
        used.into_iter().map(move |used| (path.clone(), used))
    });
    let wrong = |used: &str| {
        impure.contains(&used)
            || used
                .strip_prefix("railwright-")
                .is_some_and(|used| !PURE.contains(&used))
    };
    none(
        &lines
            .filter(|(_, used)| wrong(used))
            .map(|(path, used)| format!("{path}: uses `{used}`"))
            .collect::<Vec<_>>(),
    );
}

#[test]
fn the_core_is_pure() {
    let mut findings = Vec::new();
    for (path, text) in source().filter(|(path, _)| PURE.contains(&room(path))) {
        for (line, code) in product_lines(&text).filter(|(_, code)| !is_comment(code)) {
            for word in IMPURE_WORDS.iter().filter(|word| code.contains(*word)) {
                findings.push(format!("{path}:{line}: `{word}` in a pure room"));
            }
        }
    }
    none(&findings);
}

#[test]
fn files_clock_and_processes_of_this_machine_are_touched_in_one_room() {
    let words = [
        "std::fs",
        "SystemTime::now",
        "Timestamp::now",
        "std::process::Command",
        " File::open",
    ];
    let mut findings = Vec::new();
    // The lab runs machines of its own, which is all files and processes; transport/local is this
    // machine as a target.
    for (path, text) in
        source().filter(|(path, _)| !["system", "lab", "transport"].contains(&room(path)))
    {
        for (line, code) in product_lines(&text).filter(|(_, code)| !is_comment(code)) {
            for word in words.iter().filter(|word| code.contains(*word)) {
                findings.push(format!("{path}:{line}: `{word}` outside `system`"));
            }
        }
    }
    none(&findings);
}

#[test]
fn only_report_prints() {
    let mut findings = Vec::new();
    for (path, text) in source().filter(|(path, _)| room(path) != "report") {
        for (line, code) in product_lines(&text) {
            for word in ["println!(", "print!(", "eprintln!(", "eprint!(", "dbg!("] {
                if code.trim_start().starts_with(word) || code.contains(&format!(" {word}")) {
                    findings.push(format!("{path}:{line}: `{word}` outside `report`"));
                }
            }
        }
    }
    none(&findings);
}

/// Whoever makes a `TargetContact` may open files outside the inventory and run programs: only
/// commands that contact targets do, as the table of `tests/trust` has them.
#[test]
fn only_commands_that_contact_targets_say_so() {
    const COMMANDS: &[&str] = &[
        "apply",
        "cables",
        "drift",
        "facts",
        "job/cluster",
        "job/ladder",
        "job/prove_traffic",
        "job/run",
        "lock",
        "plan",
        "rbac",
        "resume",
        "state",
        "verify",
        "verify_fabric",
        "watch",
        "watch_traffic",
    ];
    let makes =
        |text: &str| product_lines(text).any(|(_, line)| line.contains("TargetContact::begin()"));
    let found: Vec<String> = source()
        .filter(|(_, text)| makes(text))
        .map(|(path, _)| path)
        .collect();
    let known: Vec<String> = COMMANDS
        .iter()
        .map(|name| format!("src/cli/{name}.rs"))
        .collect();
    let unknown = found
        .iter()
        .filter(|path| !known.contains(path))
        .map(|path| format!("{path}: makes a TargetContact"));
    let gone = known
        .iter()
        .filter(|path| !found.contains(path))
        .map(|path| format!("{path}: makes no TargetContact any more"));
    none(&unknown.chain(gone).collect::<Vec<_>>());
}

/// What is said to people decides nothing: what a decision needs is a variant.
#[test]
fn no_decision_is_taken_by_searching_in_a_reason() {
    let searches = [
        "contains(",
        "starts_with(",
        "ends_with(",
        "find(",
        "split",
        "strip_",
        "==",
    ];
    let mut found = Vec::new();
    for (path, text) in source() {
        for (n, line) in product_lines(&text) {
            let behind = line.split(".as_words()").skip(1);
            let is_search = |rest: &str| {
                let rest = rest.trim_start().trim_start_matches('.');
                searches.iter().any(|search| rest.starts_with(search))
            };
            if behind.into_iter().any(is_search) {
                found.push(format!("{path}:{n}: {}", line.trim()));
            }
        }
    }
    none(&found);
}
