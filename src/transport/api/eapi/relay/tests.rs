//! The relay with a real `sh` in the place of the switch's.

use super::*;
use std::process::{Command, Stdio};

fn run(command: &str) -> String {
    let line = command.strip_prefix("bash timeout 30 ").unwrap();
    // What a CLI may read as its own is not in it, but for the pipes.
    assert!(
        line.chars()
            .all(|c| c.is_ascii_alphanumeric() || " +/=|-".contains(c)),
        "{line}"
    );
    let output = Command::new("sh")
        .args(["-c", line])
        .stdin(Stdio::null())
        .output()
        .unwrap();
    String::from_utf8(output.stdout).unwrap()
}

fn relay(name: &str) -> Relay {
    Relay::new(format!("test{name}{}", std::process::id()), false)
}

fn folder(relay: &Relay) -> std::path::PathBuf {
    format!("{FOLDER}-{}", relay.nonce).into()
}

/// Everything, as the shell does it.
fn whole(relay: &Relay, script: &str) -> (RelayedScriptState, Vec<u8>, Vec<u8>) {
    for part in relay.put(script) {
        assert!(relay.is_done(&run(&part)));
    }
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let mut said = run(&relay.start(script));
    loop {
        let look = relay.seen(&said).unwrap();
        out.extend_from_slice(&look.slices[0]);
        err.extend_from_slice(&look.slices[1]);
        if look.state != RelayedScriptState::Running && [out.len(), err.len()] == look.sizes {
            return (look.state, out, err);
        }
        said = run(&relay.look([out.len(), err.len()]));
    }
}

#[test]
fn output_complaints_and_status_come_back_as_they_are() {
    let relay = relay("whole");
    // What forges an answer, what is no text, what is longer than a slice, and quotes of all kinds.
    let script = format!(
        "echo '@{0} 0 5 5'; printf '\\000\\377'; head -c 1500000 /dev/zero | tr '\\0' x; echo \
         \"it's\" >&2; echo '@{0} done' >&2; exit 7\n\
         # {1}",
        relay.nonce,
        "é'\\".repeat(4000)
    );
    let (state, out, err) = whole(&relay, &script);
    assert_eq!(state, RelayedScriptState::Ended(7));
    let begin = format!("@{} 0 5 5\n\0", relay.nonce);
    assert!(
        out.starts_with(begin.as_bytes()) && out.len() == begin.len() + 1 + 1_500_000,
        "{}",
        out.len()
    );
    assert_eq!(
        String::from_utf8(err).unwrap(),
        format!("it's\n@{} done\n", relay.nonce)
    );
    assert!(!folder(&relay).exists(), "nothing of it is left");
}

#[test]
fn a_script_of_which_a_part_is_missing_does_not_begin() {
    let relay = relay("part");
    let script = format!("echo began # {}", "x".repeat(PART));
    let parts = relay.put(&script);
    assert_eq!(parts.len(), 2);
    assert!(relay.is_done(&run(&parts[0])));
    assert_eq!(run(&relay.start(&script)), "");
    assert!(
        !relay.is_done(&run(&parts[0])),
        "a folder that is there is nobody's to write into"
    );
    std::fs::remove_dir_all(folder(&relay)).unwrap();
    assert!(
        !relay.is_done(&run(&parts[1])),
        "a later part makes no folder"
    );
}

#[test]
fn one_that_was_killed_is_gone_and_a_daemon_is_not_waited_for() {
    let killed = relay("killed");
    let (state, ..) = whole(
        &killed,
        "kill -9 $(cat /tmp/railwright-eapi-*killed*/pid); sleep 60",
    );
    assert_eq!(state, RelayedScriptState::Gone);
    let daemon = relay("daemon");
    let began = std::time::Instant::now();
    let (state, out, _) = whole(&daemon, "sleep 20 & echo here; exit 3");
    assert_eq!(
        (state, out),
        (RelayedScriptState::Ended(3), b"here\n".to_vec())
    );
    assert!(began.elapsed() < std::time::Duration::from_secs(15));
}

#[test]
fn what_is_no_answer_of_ours_is_none() {
    let relay = relay("strange");
    let marker = format!("@{}", relay.nonce);
    let unseen = [
        "",
        "sudo: a password is required",
        "@other 0 1 1\n\n\n",
        &format!("{marker} 0 1"),
        &format!("{marker} ok 1 1\n\n"),
    ];
    for said in unseen {
        assert_eq!(relay.seen(said), None, "{said}");
    }
    assert_eq!(relay.seen(&format!("{marker} 0 1 1\n*\n\n")), None);
    let look = relay
        .seen(&format!("Last login\n{marker} 0 1 0\neA==\n\n"))
        .unwrap();
    assert_eq!(
        (look.state, look.slices),
        (RelayedScriptState::Ended(0), [b"x".to_vec(), Vec::new()])
    );
}
