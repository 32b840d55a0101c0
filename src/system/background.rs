//! Processes that outlive the command that started them, found again by a record file. A process id
//! alone may by now belong to somebody else, so the record also holds the start time that the
//! kernel keeps for it.

use super::{clock, files, process};
use process::Program;
use std::io;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Stdio;

/// Starts a program in a process group of its own, so that Ctrl-C here does not reach it, with its
/// output in a log.
pub fn start_background_process(program: &Program, log: &Path, record: &Path) -> io::Result<()> {
    let output = std::fs::File::create(log)?;
    let mut command = program.command();
    command
        .process_group(0)
        .stdin(Stdio::null())
        .stdout(output.try_clone()?)
        .stderr(output);
    let pid = command.spawn()?.id();
    let started = start_time(pid).unwrap_or(0);
    files::write_atomic(record, format!("{pid} {started}\n").as_bytes(), 0o600)
}

/// The process of a record, while it runs.
pub fn find_background_process(record: &Path) -> Option<u32> {
    let text = String::from_utf8(files::read_limited(record, 100).ok()?).ok()?;
    let (pid, started) = text.trim().split_once(' ')?;
    let pid = pid.parse().ok()?;
    (start_time(pid)? == started.parse::<u64>().ok()?).then_some(pid)
}

/// Ends the process of a record and forgets it: a request first, force after five seconds. False
/// when none ran.
pub fn end_background_process(record: &Path) -> io::Result<bool> {
    let Some(pid) = find_background_process(record) else {
        files::remove_path(record)?;
        return Ok(false);
    };
    process::send_signal("TERM", pid)?;
    for _ in 0..100 {
        if find_background_process(record).is_none() {
            break;
        }
        clock::block_for(50);
    }
    if find_background_process(record).is_some() {
        process::send_signal("KILL", pid)?;
    }
    files::remove_path(record)?;
    Ok(true)
}

/// The memory that a process really holds, in KiB.
pub fn resident_kib(pid: u32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))?
        .trim()
        .split(' ')
        .next()?
        .parse()
        .ok()
}

/// Field 22 of /proc/PID/stat (proc(5)), in clock ticks since boot; `None` for a process that is
/// gone or a zombie.
fn start_time(pid: u32) -> Option<u64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name in parentheses may hold anything, so the fields are counted from its end.
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
    let state = fields.next()?;
    if state == "Z" || state == "X" {
        return None;
    }
    fields.nth(18)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_background_process_is_found_and_ended_once() {
        let folder = tempfile::tempdir().unwrap();
        let (log, record) = (folder.path().join("log"), folder.path().join("record"));
        start_background_process(&Program::new("sleep").argument("600"), &log, &record).unwrap();
        let pid = find_background_process(&record).expect("it was just started");
        assert!(resident_kib(pid).is_some());
        assert!(end_background_process(&record).unwrap());
        assert_eq!(find_background_process(&record), None);
        assert!(!end_background_process(&record).unwrap());
    }

    #[test]
    fn a_reused_process_id_is_not_ours() {
        let folder = tempfile::tempdir().unwrap();
        let record = folder.path().join("record");
        let own = std::process::id();
        std::fs::write(&record, format!("{own} {}\n", start_time(own).unwrap() + 1)).unwrap();
        assert_eq!(find_background_process(&record), None);
        assert!(
            !end_background_process(&record).unwrap(),
            "it would have ended this very test"
        );
        std::fs::write(&record, "nonsense").unwrap();
        assert_eq!(find_background_process(&record), None);
    }
}
