//! Who runs this process: for people, and as an identity that no other process has.

use nix::errno::Errno;
use nix::sys::signal::kill;
use nix::unistd::Pid;
use serde::{Deserialize, Serialize};

/// The user's name as the environment says it; only shown to people, never trusted.
pub fn find_user_name() -> String {
    ["SUDO_USER", "USER", "LOGNAME"]
        .iter()
        .find_map(|name| std::env::var(name).ok().filter(|value| !value.is_empty()))
        .unwrap_or_else(|| "unknown".to_owned())
}

/// The name of this machine.
pub fn read_machine_name() -> String {
    let named = std::fs::read_to_string("/proc/sys/kernel/hostname")
        .ok()
        .or_else(|| std::env::var("HOSTNAME").ok());
    named
        .map(|name| name.trim().to_owned())
        .filter(|name| !name.is_empty())
        .unwrap_or_else(|| "unknown".to_owned())
}

/// The number of this process.
pub fn read_process_id() -> u32 {
    std::process::id()
}

/// The id of this boot of the kernel; empty where it cannot be read.
pub fn boot_id() -> String {
    read_line("/proc/sys/kernel/random/boot_id")
}

/// One process of one boot of one machine. What could not be read is empty, and proves nothing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessIdentity {
    /// The name of the machine, for people: clones of one image have one name and one machine-id,
    /// and prove nothing.
    pub machine: String,
    /// The boot of its kernel.
    pub boot_id: String,
    /// The namespaces in which its number and its start count (pid_namespaces(7),
    /// time_namespaces(7)).
    pub pid_namespace: String,
    /// Its number.
    pub process: u32,
    /// When it started, in clock ticks since boot (proc_pid_stat(5), field 22): numbers are given
    /// out again.
    pub started: u64,
}

/// Whether a process lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProcessLiveness {
    /// It was found.
    Alive,
    /// It cannot live any more.
    Dead,
    /// Nobody can tell from here.
    Unknown,
}

/// What stands under a process number now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProcessNow {
    /// A process that started then.
    Started(u64),
    /// None, or one that has ended.
    Gone,
    /// It could not be read.
    Unreadable,
}

impl ProcessIdentity {
    /// This process.
    pub fn own() -> Self {
        let namespace = |name: &str| {
            std::fs::read_link(format!("/proc/self/ns/{name}"))
                .map(|link| link.display().to_string())
        };
        // Kernels before 5.6 have no namespaces of time.
        let pid_namespace =
            namespace("pid").map(|pid| format!("{pid} {}", namespace("time").unwrap_or_default()));
        let started = match process_now(read_process_id()) {
            ProcessNow::Started(started) => Some(started),
            ProcessNow::Gone | ProcessNow::Unreadable => None,
        };
        ProcessIdentity {
            machine: read_machine_name(),
            boot_id: boot_id(),
            // A /proc of another namespace tells nothing of our number.
            pid_namespace: pid_namespace
                .ok()
                .filter(|_| started.is_some())
                .unwrap_or_default(),
            process: read_process_id(),
            started: started.unwrap_or_default(),
        }
    }

    /// Whether it lives, as far as `here` can tell. `now` says what stands under its number here.
    pub fn life(
        &self,
        here: &ProcessIdentity,
        now: impl FnOnce(u32) -> ProcessNow,
    ) -> ProcessLiveness {
        let is_same = |own: &str, other: &str| !own.is_empty() && own == other;
        // No two boots have the same id. Another one is no proof that this machine has booted
        // since: what has its name and its machine-id may be a clone, which lives.
        if !is_same(&self.boot_id, &here.boot_id)
            || !is_same(&self.pid_namespace, &here.pid_namespace)
        {
            return ProcessLiveness::Unknown;
        }
        match now(self.process) {
            ProcessNow::Started(started) if started == self.started => ProcessLiveness::Alive,
            ProcessNow::Started(_) | ProcessNow::Gone => ProcessLiveness::Dead,
            ProcessNow::Unreadable => ProcessLiveness::Unknown,
        }
    }
}

/// What stands under this number on this machine.
pub fn process_now(process: u32) -> ProcessNow {
    // Zero and what is negative are groups of processes (kill(2)).
    match i32::try_from(process).ok().filter(|process| *process > 0) {
        Some(number) => interpret_process_probe(kill(Pid::from_raw(number), None), || {
            std::fs::read_to_string(format!("/proc/{process}/stat"))
        }),
        None => ProcessNow::Unreadable,
    }
}

/// That there is none is the kernel's word alone: with `hidepid` a process of another user has no
/// folder in /proc, whatever else is seen there (proc(5)).
fn interpret_process_probe(
    asked: nix::Result<()>,
    stat: impl FnOnce() -> std::io::Result<String>,
) -> ProcessNow {
    match asked {
        Err(Errno::ESRCH) => ProcessNow::Gone,
        // One that is not ours to signal is there.
        Ok(()) | Err(_) => stat().map_or(ProcessNow::Unreadable, |stat| parse_stat(&stat)),
    }
}

/// The name in the second field may hold anything, brackets and blanks too: the last bracket ends
/// it.
fn parse_stat(stat: &str) -> ProcessNow {
    let after_name = stat
        .rsplit_once(") ")
        .map(|(_, rest)| rest)
        .unwrap_or_default();
    let mut fields = after_name.split(' ');
    let (state, started) = (
        fields.next(),
        fields.nth(18).and_then(|field| field.parse().ok()),
    );
    match (state, started) {
        // A zombie has ended; only its parent has not noticed yet.
        (Some("Z" | "X"), _) => ProcessNow::Gone,
        (Some(_), Some(started)) => ProcessNow::Started(started),
        _ => ProcessNow::Unreadable,
    }
}

fn read_line(path: &str) -> String {
    std::fs::read_to_string(path)
        .map(|text| text.trim().to_owned())
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn identity() -> ProcessIdentity {
        ProcessIdentity {
            machine: "ops1".to_owned(),
            boot_id: "b1".to_owned(),
            pid_namespace: "pid:[1] time:[1]".to_owned(),
            process: 7,
            started: 100,
        }
    }

    #[test]
    fn only_the_same_machine_can_tell_that_a_process_is_dead() {
        let here = identity();
        let with = |change: fn(&mut ProcessIdentity), now| {
            let mut other = identity();
            change(&mut other);
            other.life(&here, |_| now)
        };
        let is_there = ProcessNow::Started(100);
        assert_eq!(with(|_| (), is_there), ProcessLiveness::Alive);
        assert_eq!(with(|_| (), ProcessNow::Gone), ProcessLiveness::Dead);
        assert_eq!(
            with(|_| (), ProcessNow::Started(200)),
            ProcessLiveness::Dead,
            "its number was given to another"
        );
        assert_eq!(
            with(|_| (), ProcessNow::Unreadable),
            ProcessLiveness::Unknown
        );
        for now in [is_there, ProcessNow::Gone] {
            let other_boot = with(|other| other.boot_id = "b0".to_owned(), now);
            assert_eq!(
                other_boot,
                ProcessLiveness::Unknown,
                "a clone of one image has the same name and another boot"
            );
        }
        assert_eq!(
            with(
                |other| other.pid_namespace = "pid:[2] time:[1]".to_owned(),
                ProcessNow::Gone
            ),
            ProcessLiveness::Unknown,
            "a container"
        );
        for empty in [
            |other: &mut ProcessIdentity| other.boot_id.clear(),
            |other: &mut ProcessIdentity| other.pid_namespace.clear(),
        ] {
            assert_eq!(with(empty, ProcessNow::Gone), ProcessLiveness::Unknown);
        }
    }

    #[test]
    fn a_process_that_is_not_seen_is_not_gone() {
        let hidden = || Err(std::io::ErrorKind::NotFound.into());
        let seen = || Ok("7 (a) S 1 7 7 0 -1 0 1 0 0 0 0 0 0 0 20 0 1 0 100 0 0".to_owned());
        for asked in [Ok(()), Err(Errno::EPERM)] {
            assert_eq!(
                interpret_process_probe(asked, hidden),
                ProcessNow::Unreadable,
                "hidepid: {asked:?}"
            );
            assert_eq!(
                interpret_process_probe(asked, seen),
                ProcessNow::Started(100)
            );
        }
        assert_eq!(
            interpret_process_probe(Err(Errno::ESRCH), hidden),
            ProcessNow::Gone
        );
    }

    #[test]
    fn this_process_lives_and_one_that_has_ended_does_not() {
        let own = ProcessIdentity::own();
        assert_eq!(own.life(&own, process_now), ProcessLiveness::Alive);
        let mut child = std::process::Command::new("true").spawn().unwrap();
        let number = child.id();
        child.wait().unwrap();
        assert_ne!(process_now(number), ProcessNow::Started(own.started));
        // Another user's, where we are not root.
        assert!(matches!(
            process_now(1),
            ProcessNow::Started(_) | ProcessNow::Unreadable
        ));
        assert_eq!(
            (process_now(0), process_now(u32::MAX)),
            (ProcessNow::Unreadable, ProcessNow::Unreadable),
            "no numbers of processes"
        );
        let odd = "4711 (a) (b c) Z 1 4711 4711 0 -1 4194304 1 0 0 0 0 0 0 0 20 0 1 0 987654 0 0";
        assert_eq!(parse_stat(odd), ProcessNow::Gone, "a zombie");
        assert_eq!(
            parse_stat(&odd.replace(" Z ", " S ")),
            ProcessNow::Started(987654)
        );
        assert_eq!(parse_stat("nonsense"), ProcessNow::Unreadable);
    }
}
